//! Several requests in flight on one connection (reference: models.md, section 15). Only embedded objects are
//! asked for so.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Conn, Link};
use polygraph_stats::ErrorKind;
use polygraph_traffic::Method;

use crate::crew::Crew;
use crate::exchange::{Done, Fault, Talk, Unfinished, check_end, conclude, is_intended, receive, send_head};
use crate::order::Order;
use crate::reply::ReplyReader;

/// Embedded objects of one robot that wait for a connection.
#[derive(Debug, Default)]
pub struct Backlog(VecDeque<Order>);

impl Backlog {
    /// One more has to wait.
    pub fn push(&mut self, order: Order) {
        self.0.push_back(order);
    }

    /// Takes the first that goes to `hop`, if there is any.
    pub fn first(&mut self, hop: SocketAddr) -> Option<Order> {
        let at = self.0.iter().position(|order| order.hop == Some(hop))?;
        self.0.remove(at)
    }

    /// Takes up to `room` more that go to `hop`.
    pub fn more(&mut self, hop: SocketAddr, room: usize) -> Vec<Order> {
        let mut taken = Vec::new();
        while taken.len() < room
            && let Some(order) = self.first(hop)
        {
            taken.push(order);
        }
        taken
    }
}

/// An order and what came of it; `None`: it has to be tried again by itself.
pub type Outcome = (Order, Option<Result<Done, Unfinished>>);

/// Sends all requests on one connection, as many as it takes and as `depth` and the backlog of the robot give,
/// and reads the replies in order. If one fails, those behind it are to be tried again. Without a connection only
/// the first order is taken, and fails.
pub async fn exchange_together<L: Link>(
    crew: &Rc<Crew<L>>,
    robot: usize,
    first: Order,
    hop: SocketAddr,
) -> Vec<Outcome> {
    let deadline = crew.deadline(robot, crew.now());
    let mut orders = vec![first];
    let mut leased = match crew.lease(robot, hop, deadline).await {
        Ok(leased) => leased,
        Err(why) => {
            crew.count_begun(&mut orders);
            return orders.into_iter().map(|order| (order, Some(Err(why.clone())))).collect();
        }
    };
    let reused = leased.uses > 0;
    let room = (leased.use_limit - leased.uses).min(crew.pipeline_depth(robot)) as usize;
    orders.extend(crew.backlog(robot).more(hop, room.saturating_sub(1)));
    let depth = orders.len() as u64;
    crew.count_begun(&mut orders);
    if reused {
        crew.count_reuse(crew.now());
    }
    crew.recorder().with(|block| block.pipeline_depth.record(depth));
    leased.conn.set_deadline(deadline);

    let (mut talks, mut lines) = (Vec::new(), Vec::new());
    let mut failed = None;
    for order in &orders {
        leased.uses += 1;
        let last = leased.uses >= leased.use_limit;
        let mut talk = Talk::new(crew.now(), hop, leased.number, false);
        talk.deadline = deadline;
        if failed.is_none() {
            lines.clear();
            talk.answers = crew.write_private_lines(robot, order, &mut lines);
            let conn = &mut leased.conn;
            failed = send_head(crew, robot, conn, order, last, false, None, &lines, &mut talk).await.err();
            if failed.is_none() {
                talk.tell(crew, &mut leased.stands);
            }
        }
        talks.push(talk);
    }
    let (mut outcomes, mut carry, mut keep) = (Vec::new(), Vec::new(), failed.is_none());
    let count = orders.len();
    // The peer closed an idle connection just as we used it: nobody's fault.
    let is_race = |index: usize, silent: bool, fault: &Fault| {
        reused && index == 0 && silent && fault.kind != ErrorKind::Timeout
    };
    let mut raced = false;
    for (index, (order, mut talk)) in orders.into_iter().zip(talks).enumerate() {
        if let Some(fault) = failed.take() {
            raced = is_race(index, true, &fault);
            outcomes.push((order, (!raced).then(|| Err(fault.into()))));
            keep = false;
            continue;
        }
        if !keep {
            outcomes.push((order, None));
            continue;
        }
        let mut reader = ReplyReader::new(order.method == Method::Head, false);
        let url = || crew.url(&order);
        let mut entity = crew.entity(robot, &order, &url);
        let conn = &mut leased.conn;
        conn.set_deadline(deadline);
        let received =
            receive(crew, robot, conn, &order, &mut reader, &mut entity, &mut talk, &mut carry).await;
        let is_last = index + 1 == count;
        let received = received.and_then(|_| if is_last { check_end(&carry, &reader) } else { Ok(()) });
        if let Err(fault) = &received
            && is_race(index, reader.is_silent(), fault)
        {
            drop(entity);
            (raced, keep) = (true, false);
            outcomes.push((order, None));
            continue;
        }
        let capture = leased.conn.take_capture().map(Box::new);
        talk.capture = capture.clone();
        let result = match received {
            Ok(()) => conclude(reader, entity, &mut leased, &mut talk).0,
            Err(fault) if is_intended(&fault, &order, crew) => {
                drop(entity);
                talk.aborted = true;
                Ok(reader.into_facts())
            }
            Err(fault) => {
                drop(entity);
                Err(Fault { capture, ..fault.since(talk.started) })
            }
        };
        keep = result.as_ref().is_ok_and(|facts| facts.keep_alive) && !talk.aborted;
        outcomes
            .push((order, Some(result.map(|facts| talk.done(facts, crew.now())).map_err(Unfinished::from))));
    }
    match keep {
        true => crew.give_back(robot, leased, true, crew.now()),
        false => crew.close(robot, leased, outcomes.iter().all(|(_, done)| matches!(done, Some(Ok(_))))),
    }
    for (order, outcome) in outcomes.iter().skip(usize::from(raced)) {
        if outcome.is_none() {
            let now = crew.now();
            crew.recorder().error(ErrorKind::PipelineCancelled, now, || crew.url(order));
        }
    }
    outcomes
}
