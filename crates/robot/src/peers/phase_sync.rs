//! Agreement about phases with the other processes of a test: robots carry the status of this process in requests, and read that
//! of servers in first-hand replies.

use std::rc::Rc;

use polygraph_link::{Link, Nanos};
use polygraph_traffic::groups::PeerStatus;

use super::Route;
use super::first_contact::NextVisit;
use crate::exchange::reply::ReplyMeta;
use crate::group::RobotGroup;
use crate::request::Request;

/// How often the loop checks which processes to query.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);
/// A request that waits for its answer for so many seconds may be in the hands of a slow server.
const SLOW_S: f64 = 1.0;

impl<L: Link> RobotGroup<L> {
    /// Processes the end of a transaction. `first_hand` is the reply, if the server made it for this request.
    pub(crate) fn note_visit(&self, robot: usize, request: &Request, first_hand: Option<&ReplyMeta>) {
        let cx = &self.context;
        if !cx.settings.share_phases || request.foreign.is_some() {
            return;
        }
        let next = self.first_contact.borrow_mut().visited(request.server, first_hand.is_some());
        if next == NextVisit::Again {
            cx.generator.borrow_mut().visit_again(&cx.settings, request.server);
        }
        let Some(marks) = first_hand.map(|reply| reply.marks) else { return };
        if let (Some(xact), Some(position)) = (marks.xact, marks.sync_position) {
            let (group, gone) = (xact.group, marks.gone);
            let status =
                PeerStatus { group, position, waits: false, at: cx.now().as_u64(), gone, replaced: false };
            self.peers.borrow_mut().record(status, robot, request.server);
        }
    }

    /// Queries each server process that has sent no status for a while: at low loads, and while all replies come from a cache,
    /// neither side would otherwise get the status of the other. All of them get the status of this process when it changes.
    pub(crate) async fn keep_in_touch(self: Rc<Self>) {
        let cx = &self.context;
        let mut sent = cx.phase_position();
        loop {
            cx.link.sleep_until(cx.now() + CHECK_INTERVAL).await;
            if self.pace.borrow().stopped {
                return;
            }
            if sent != cx.phase_position() {
                sent = cx.phase_position();
                self.peers.borrow_mut().query_all();
            }
            let waits = cx.phase_status.get().waits;
            let slow =
                || cx.recorder.unanswered(cx.now()).older_than(SLOW_S).map_or(0, |(_, requests)| requests);
            if waits && slow() == 0 {
                self.peers.borrow_mut().mark_replaced(cx.now());
            }
            let quiet = self.peers.borrow_mut().to_query(cx.now(), waits);
            for Route { robot, server, .. } in quiet {
                let request = cx.generator.borrow_mut().status_query(&cx.settings.field, server, cx.now());
                self.launch(robot, request);
            }
        }
    }
}
