//! Timers: a heap of alarms ordered by time; alarms for the same time fire in the order in which they were set.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

use polygraph_link::Nanos;
use slab::Slab;

/// All timers of a loop.
#[derive(Default)]
pub struct Timers {
    heap: RefCell<BinaryHeap<Reverse<Entry>>>,
    /// The wakers of alarms in the heap that have neither fired nor been cancelled.
    sleepers: RefCell<Slab<(u64, Waker)>>,
    count: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Nanos,
    number: u64,
    place: usize,
}

/// The handle of a timer that was set.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    /// The time at which the alarm fires.
    pub at: Nanos,
    number: u64,
    place: usize,
}

impl Timers {
    /// Wakes `waker` at `at`.
    pub fn set(&self, at: Nanos, waker: &Waker) -> Alarm {
        let number = self.count.replace(self.count.get() + 1);
        let place = self.sleepers.borrow_mut().insert((number, waker.clone()));
        self.heap.borrow_mut().push(Reverse(Entry { at, number, place }));
        Alarm { at, number, place }
    }

    /// Replaces the waker of an alarm. Returns false if the alarm has fired already.
    pub fn redirect(&self, alarm: Alarm, waker: &Waker) -> bool {
        match self.sleepers.borrow_mut().get_mut(alarm.place) {
            Some((number, old)) if *number == alarm.number => {
                if !old.will_wake(waker) {
                    *old = waker.clone();
                }
                true
            }
            _ => false,
        }
    }

    /// Cancels an alarm.
    pub fn cancel(&self, alarm: Alarm) {
        let mut sleepers = self.sleepers.borrow_mut();
        if sleepers.get(alarm.place).is_some_and(|(number, _)| *number == alarm.number) {
            sleepers.remove(alarm.place);
        }
    }

    /// The time of the next alarm.
    pub fn next(&self) -> Option<Nanos> {
        let mut heap = self.heap.borrow_mut();
        while let Some(Reverse(entry)) = heap.peek() {
            if self.sleepers.borrow().get(entry.place).is_some_and(|(number, _)| *number == entry.number) {
                return Some(entry.at);
            }
            heap.pop();
        }
        None
    }

    /// Fires all alarms for `now` or earlier.
    pub fn strike(&self, now: Nanos) {
        while self.next().is_some_and(|at| at <= now) {
            let Some(Reverse(entry)) = self.heap.borrow_mut().pop() else { return };
            let (_, waker) = self.sleepers.borrow_mut().remove(entry.place);
            waker.wake();
        }
    }
}
