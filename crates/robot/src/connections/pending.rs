//! HTTP/2 and HTTP/3 connections that are being set up. Requests that start meanwhile wait for them, as those of browsers do, instead
//! of opening a connection each.

use std::cell::RefCell;
use std::rc::Rc;

use polygraph_stats::ErrorKind;
use rustc_hash::FxHashMap;

use super::hop::Hop;
use super::wait_queue::WaitQueue;
use crate::failure::TransactionFailure;

/// A connection that is being set up.
#[derive(Debug)]
pub struct PendingConnection {
    /// Transactions that wait for it.
    pub waiting: WaitQueue,
    /// The most streams that it will have at the same time, and the most requests.
    most: usize,
    failure: RefCell<Option<(ErrorKind, String)>>,
}

impl PendingConnection {
    /// Why it could not be set up, if that is known.
    pub fn failure(&self) -> Option<TransactionFailure> {
        let failure = self.failure.borrow();
        failure.as_ref().map(|(kind, detail)| TransactionFailure::new(*kind, detail.clone()))
    }
}

/// The latest of them for each robot and peer.
#[derive(Debug, Default)]
pub struct PendingConnections(RefCell<FxHashMap<(usize, Hop), Rc<PendingConnection>>>);

impl PendingConnections {
    /// A connection of the robot that is being set up, and will have a stream to spare.
    pub fn with_room(&self, robot: usize, hop: Hop) -> Option<Rc<PendingConnection>> {
        let all = self.0.borrow();
        all.get(&(robot, hop)).filter(|pending| pending.waiting.len() + 1 < pending.most).map(Rc::clone)
    }

    /// The set-up of a connection begins. It will have so many streams at most.
    pub fn begin(&self, robot: usize, hop: Hop, most: u32) -> PendingGuard<'_> {
        let pending = Rc::new(PendingConnection {
            waiting: WaitQueue::default(),
            most: most as usize,
            failure: RefCell::default(),
        });
        self.0.borrow_mut().insert((robot, hop), Rc::clone(&pending));
        PendingGuard { all: self, key: (robot, hop), pending }
    }

    /// Cancels the transactions of the robot that wait.
    pub fn cancel(&self, robot: usize) {
        let all = self.0.borrow();
        let of_robot = all.iter().filter(|((of, _), _)| *of == robot);
        of_robot.for_each(|(_, pending)| pending.waiting.cancel_all());
    }
}

/// A set-up. At its end, those who wait are woken.
#[derive(Debug)]
pub struct PendingGuard<'a> {
    all: &'a PendingConnections,
    key: (usize, Hop),
    pending: Rc<PendingConnection>,
}

impl PendingGuard<'_> {
    /// The set-up has failed, and with it those who wait.
    pub fn fail(&self, failure: &TransactionFailure) {
        let violation = &failure.violation;
        *self.pending.failure.borrow_mut() = Some((violation.kind, violation.detail.clone()));
    }
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.borrow_mut();
        if all.get(&self.key).is_some_and(|latest| Rc::ptr_eq(latest, &self.pending)) {
            all.remove(&self.key);
        }
        while self.pending.waiting.wake_first() {}
    }
}
