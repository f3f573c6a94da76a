//! Deadlines of the streams of one connection. The task that drives the connection waits for the earliest of them.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use polygraph_link::Nanos;
use slab::Slab;

#[derive(Debug, Default)]
struct Entry {
    at: Option<Nanos>,
    passed: bool,
    waiting: Option<Waker>,
}

/// The deadlines of the streams of one connection.
#[derive(Debug)]
pub struct Deadlines {
    entries: RefCell<Slab<Entry>>,
    /// When the driver wakes up. No deadline is earlier.
    armed: Cell<Nanos>,
    driver: RefCell<Option<Waker>>,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { entries: RefCell::default(), armed: Cell::new(Nanos::MAX), driver: RefCell::default() }
    }
}

impl Deadlines {
    /// Adds a stream without a deadline, and returns its place.
    pub fn add(&self) -> usize {
        self.entries.borrow_mut().insert(Entry::default())
    }

    /// Forgets a stream.
    pub fn remove(&self, place: usize) {
        self.entries.borrow_mut().remove(place);
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Sets the deadline of a stream.
    pub fn set(&self, place: usize, at: Option<Nanos>) {
        let entry = &mut self.entries.borrow_mut()[place];
        (entry.at, entry.passed) = (at, false);
        if at.is_some_and(|at| at < self.armed.get())
            && let Some(driver) = &*self.driver.borrow()
        {
            driver.wake_by_ref();
        }
    }

    /// Whether the deadline of a stream has passed. Otherwise the stream is woken when it does.
    pub fn check(&self, place: usize, waker: &Waker) -> bool {
        let entry = &mut self.entries.borrow_mut()[place];
        if entry.at.is_some() && !entry.waiting.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            entry.waiting = Some(waker.clone());
        }
        entry.passed
    }

    /// Wakes the streams whose deadlines have passed at `now`. Returns when to look again, for the driver, which `driver` wakes if a
    /// deadline before that is set.
    pub fn strike(&self, now: Nanos, driver: &Waker) -> Nanos {
        let mut kept = self.driver.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            *kept = Some(driver.clone());
        }
        let mut next = Nanos::MAX;
        for (_, entry) in self.entries.borrow_mut().iter_mut() {
            match entry.at {
                Some(at) if at <= now => {
                    (entry.at, entry.passed) = (None, true);
                    if let Some(waiting) = entry.waiting.take() {
                        waiting.wake();
                    }
                }
                Some(at) => next = next.min(at),
                None => {}
            }
        }
        // An earlier time stays until it has come: it costs less to wake up for nothing than to wake up for each new deadline.
        if self.armed.get() > now {
            next = next.min(self.armed.get());
        }
        self.armed.set(next);
        next
    }
}
