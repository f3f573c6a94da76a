//! Deadlines of connections, checked ten times a second.
//!
//! A connection's deadline changes with every transaction and almost never expires, so setting it must cost nothing:
//! it is a number in a table, and a sweep compares the table with the clock.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;

use polygraph_link::Nanos;
use slab::Slab;

/// Time between two sweeps in nanoseconds: the resolution of deadlines.
pub const SWEEP_INTERVAL: Nanos = Nanos::new(100_000_000);

/// The deadlines of one loop. Clones are handles to the same table.
#[derive(Clone, Debug, Default)]
pub struct Deadlines(Rc<RefCell<Slab<Deadline>>>);

#[derive(Debug)]
struct Deadline {
    deadline: Nanos,
    expired: bool,
    waker: Option<Waker>,
}

impl Deadlines {
    /// Adds a connection without a deadline and returns its slot.
    pub fn enter(&self) -> usize {
        self.0.borrow_mut().insert(Deadline { deadline: Nanos::MAX, expired: false, waker: None })
    }

    /// Frees a slot.
    pub fn leave(&self, place: usize) {
        self.0.borrow_mut().remove(place);
    }

    /// Sets the deadline of a slot and clears an expired one.
    pub fn set(&self, place: usize, deadline: Option<Nanos>) {
        let deadline_entry = &mut self.0.borrow_mut()[place];
        deadline_entry.deadline = deadline.unwrap_or(Nanos::MAX);
        deadline_entry.expired = false;
    }

    /// True if the deadline has expired; otherwise `waker` is woken when it expires.
    pub fn check(&self, place: usize, waker: &Waker) -> bool {
        let deadline_entry = &mut self.0.borrow_mut()[place];
        if deadline_entry.expired {
            return true;
        }
        if deadline_entry.deadline != Nanos::MAX
            && !deadline_entry.waker.as_ref().is_some_and(|old| old.will_wake(waker))
        {
            deadline_entry.waker = Some(waker.clone());
        }
        false
    }

    /// Expires the deadlines that have passed.
    pub fn sweep(&self, now: Nanos) {
        for (_, deadline_entry) in self.0.borrow_mut().iter_mut() {
            if deadline_entry.deadline <= now {
                deadline_entry.deadline = Nanos::MAX;
                deadline_entry.expired = true;
                if let Some(waker) = deadline_entry.waker.take() {
                    waker.wake();
                }
            }
        }
    }

    /// Number of slots in use: the open connections of the loop.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// True if no connection is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
