//! Timers: a heap of alarms ordered by time; alarms for the same time fire in the order in which they were set.
//!
//! Most alarms are deadlines, which are far away and cancelled before. They wait in lists by second, so that the heap is
//! small and stays in the caches.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::task::Waker;

use polygraph_link::{Nanos, SECOND};
use slab::Slab;

/// All timers of a loop.
#[derive(Default)]
pub struct Timers {
    /// All alarms before `horizon`.
    heap: RefCell<BinaryHeap<Reverse<Entry>>>,
    /// All others, by second.
    later: RefCell<BTreeMap<u64, Vec<Reverse<Entry>>>>,
    /// A number of seconds.
    horizon: Cell<u64>,
    /// The wakers of alarms that have neither fired nor been cancelled.
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
        let (entry, second) = (Reverse(Entry { at, number, place }), at / SECOND);
        if second < self.horizon.get() {
            self.heap.borrow_mut().push(entry);
        } else {
            self.later.borrow_mut().entry(second).or_default().push(entry);
        }
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
        let (mut heap, sleepers) = (self.heap.borrow_mut(), self.sleepers.borrow());
        let waits = |Reverse(entry): &Reverse<Entry>| {
            sleepers.get(entry.place).is_some_and(|(number, _)| *number == entry.number)
        };
        loop {
            while let Some(first) = heap.peek() {
                if waits(first) {
                    return Some(first.0.at);
                }
                heap.pop();
            }
            let (second, alarms) = self.later.borrow_mut().pop_first()?;
            self.horizon.set(second + 1);
            heap.extend(alarms.into_iter().filter(waits));
        }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    use polygraph_traffic::{Random, Seed};

    use super::*;

    /// Notes that an alarm has fired.
    struct Note(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.1.lock().expect("no other thread").push(self.0);
        }
    }

    #[test]
    fn alarms_fire_in_order_unless_cancelled() {
        let mut rng = Seed(1).stream("alarms", 0);
        for _ in 0..200 {
            let (timers, fired) = (Timers::default(), Arc::default());
            let mut expected = Vec::new();
            let pause = rng.below(5000);
            for (from, until) in [(0, pause), (pause, 10_000)] {
                for _ in 0..rng.below(50) {
                    let at = Nanos::from_millis(from + rng.below(5000));
                    let note = Note(expected.len(), Arc::clone(&fired));
                    let (alarm, cancelled) = (timers.set(at, &Arc::new(note).into()), rng.event(0.3));
                    expected.push((at, expected.len(), cancelled));
                    if cancelled {
                        timers.cancel(alarm);
                    }
                }
                while let Some(next) = timers.next().filter(|next| *next <= Nanos::from_millis(until)) {
                    timers.strike(next);
                }
            }
            expected.sort_unstable();
            let expected: Vec<_> = expected.iter().filter(|alarm| !alarm.2).map(|alarm| alarm.1).collect();
            assert_eq!(*fired.lock().expect("no other thread"), expected);
        }
    }
}
