//! Several requests in flight on one connection (reference: models.md, section 15). Only embedded objects are
//! asked for so.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Conn, Link};
use polygraph_stats::ErrorKind;
use polygraph_traffic::Method;

use crate::exchange::reply::ReplyReader;
use crate::exchange::{
    Done, Talk, TransactionFailure, Unfinished, check_end, conclude, is_intended, receive, send_head,
};
use crate::group::RobotGroup;
use crate::request::generator::Request;

/// Embedded objects of one robot that wait for a connection.
#[derive(Debug, Default)]
pub struct Backlog(VecDeque<Request>);

impl Backlog {
    /// One more has to wait.
    pub fn push(&mut self, request: Request) {
        self.0.push_back(request);
    }

    /// Takes the first that goes to `hop`, if there is any.
    pub fn first(&mut self, hop: SocketAddr) -> Option<Request> {
        let at = self.0.iter().position(|request| request.hop == Some(hop))?;
        self.0.remove(at)
    }

    /// Takes up to `room` more that go to `hop`.
    pub fn more(&mut self, hop: SocketAddr, room: usize) -> Vec<Request> {
        let mut taken = Vec::new();
        while taken.len() < room
            && let Some(request) = self.first(hop)
        {
            taken.push(request);
        }
        taken
    }
}

/// An request and what came of it; `None`: it has to be tried again by itself.
pub type Outcome = (Request, Option<Result<Done, Unfinished>>);

/// Sends all requests on one connection, as many as it takes and as `depth` and the backlog of the robot give,
/// and reads the replies in request. If one fails, those behind it are to be tried again. Without a connection only
/// the first request is taken, and fails.
pub async fn exchange_together<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    first: Request,
    hop: SocketAddr,
) -> Vec<Outcome> {
    let deadline = group.deadline(robot, group.now());
    let mut requests = vec![first];
    let mut connection = match group.lease(robot, hop, deadline).await {
        Ok(connection) => connection,
        Err(why) => {
            group.count_begun(&mut requests);
            return requests.into_iter().map(|request| (request, Some(Err(why.clone())))).collect();
        }
    };
    let reused = connection.uses > 0;
    let room = (connection.use_limit - connection.uses).min(group.pipeline_depth(robot)) as usize;
    requests.extend(group.backlog(robot).more(hop, room.saturating_sub(1)));
    let depth = requests.len() as u64;
    group.count_begun(&mut requests);
    if reused {
        group.count_reuse(group.now());
    }
    group.recorder().with(|block| block.pipeline_depth.record(depth));
    connection.conn.set_deadline(deadline);

    let (mut talks, mut lines) = (Vec::new(), Vec::new());
    let mut failed = None;
    for request in &requests {
        connection.uses += 1;
        let last = connection.uses >= connection.use_limit;
        let mut talk = Talk::new(group.now(), hop, connection.number, false);
        talk.deadline = deadline;
        if failed.is_none() {
            lines.clear();
            talk.answers = group.write_private_lines(robot, request, &mut lines);
            let conn = &mut connection.conn;
            failed = send_head(group, robot, conn, request, last, false, None, &lines, &mut talk).await.err();
            if failed.is_none() {
                talk.tell(group, &mut connection.stands);
            }
        }
        talks.push(talk);
    }
    let (mut outcomes, mut carry, mut keep) = (Vec::new(), Vec::new(), failed.is_none());
    let count = requests.len();
    // The peer closed an idle connection just as we used it: nobody's fault.
    let is_race = |index: usize, silent: bool, fault: &TransactionFailure| {
        reused && index == 0 && silent && fault.kind != ErrorKind::Timeout
    };
    let mut raced = false;
    for (index, (request, mut talk)) in requests.into_iter().zip(talks).enumerate() {
        if let Some(fault) = failed.take() {
            raced = is_race(index, true, &fault);
            outcomes.push((request, (!raced).then(|| Err(fault.into()))));
            keep = false;
            continue;
        }
        if !keep {
            outcomes.push((request, None));
            continue;
        }
        let mut reader = ReplyReader::new(request.method == Method::Head, false);
        let url = || group.url(&request);
        let mut entity = group.entity(robot, &request, &url);
        let conn = &mut connection.conn;
        conn.set_deadline(deadline);
        let received =
            receive(group, robot, conn, &request, &mut reader, &mut entity, &mut talk, &mut carry).await;
        let is_last = index + 1 == count;
        let received = received.and_then(|_| if is_last { check_end(&carry, &reader) } else { Ok(()) });
        if let Err(fault) = &received
            && is_race(index, reader.is_silent(), fault)
        {
            drop(entity);
            (raced, keep) = (true, false);
            outcomes.push((request, None));
            continue;
        }
        let capture = connection.conn.take_capture().map(Box::new);
        talk.capture = capture.clone();
        let result = match received {
            Ok(()) => conclude(reader, entity, &mut connection, &mut talk).0,
            Err(fault) if is_intended(&fault, &request, group) => {
                drop(entity);
                talk.aborted = true;
                Ok(reader.into_facts())
            }
            Err(fault) => {
                drop(entity);
                Err(TransactionFailure { capture, ..fault.since(talk.started) })
            }
        };
        keep = result.as_ref().is_ok_and(|facts| facts.keep_alive) && !talk.aborted;
        outcomes.push((
            request,
            Some(result.map(|facts| talk.done(facts, group.now())).map_err(Unfinished::from)),
        ));
    }
    match keep {
        true => group.give_back(robot, connection, true, group.now()),
        false => group.close(robot, connection, outcomes.iter().all(|(_, done)| matches!(done, Some(Ok(_))))),
    }
    for (request, outcome) in outcomes.iter().skip(usize::from(raced)) {
        if outcome.is_none() {
            let now = group.now();
            group.recorder().error(ErrorKind::PipelineCancelled, now, || group.url(request));
        }
    }
    outcomes
}
