//! Packets that are on their way, in the order in which they arrive.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::model::Nanos;

/// Packets that are on their way.
#[derive(Debug)]
pub enum DelayLine<T> {
    /// None overtakes another one, so a queue is enough.
    Ordered(VecDeque<(Nanos, T)>),
    /// Each has its own time. Equal times keep the order of sending.
    Sorted {
        /// The packets.
        heap: BinaryHeap<Reverse<Entry<T>>>,
        /// Packets that were sent so far.
        sent: u64,
    },
}

/// A packet with its time of arrival, and the number that orders packets with equal times.
#[derive(Debug)]
pub struct Entry<T>(Nanos, u64, T);

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl<T> DelayLine<T> {
    /// A line without packets. `reorder` says whether packets may overtake each other.
    pub fn new(reorder: bool) -> DelayLine<T> {
        match reorder {
            true => DelayLine::Sorted { heap: BinaryHeap::new(), sent: 0 },
            false => DelayLine::Ordered(VecDeque::new()),
        }
    }

    /// Adds a packet that arrives at `due`, which never goes back on a line in order.
    pub fn push(&mut self, due: Nanos, packet: T) {
        match self {
            DelayLine::Ordered(queue) => queue.push_back((due, packet)),
            DelayLine::Sorted { heap, sent } => {
                *sent += 1;
                heap.push(Reverse(Entry(due, *sent, packet)));
            }
        }
    }

    /// When the next packet arrives.
    pub fn next_due(&self) -> Option<Nanos> {
        match self {
            DelayLine::Ordered(queue) => queue.front().map(|(due, _)| *due),
            DelayLine::Sorted { heap, .. } => heap.peek().map(|Reverse(entry)| entry.0),
        }
    }

    /// The next packet that has arrived by `now`, with the time at which it was due.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        self.next_due().filter(|due| *due <= now)?;
        match self {
            DelayLine::Ordered(queue) => queue.pop_front(),
            DelayLine::Sorted { heap, .. } => heap.pop().map(|Reverse(Entry(due, _, packet))| (due, packet)),
        }
    }

    /// The number of packets.
    pub fn len(&self) -> usize {
        match self {
            DelayLine::Ordered(queue) => queue.len(),
            DelayLine::Sorted { heap, .. } => heap.len(),
        }
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_when_they_are_due() {
        for reorder in [false, true] {
            let mut line = DelayLine::new(reorder);
            for (due, name) in [(10, "a"), (20, "b"), (20, "c"), (30, "d")] {
                line.push(due, name);
            }
            assert_eq!((line.len(), line.next_due(), line.pop_due(9)), (4, Some(10), None));
            let left: Vec<_> = std::iter::from_fn(|| line.pop_due(20)).collect();
            assert_eq!(left, [(10, "a"), (20, "b"), (20, "c")]);
            assert!(!line.is_empty());
            assert_eq!(line.pop_due(u64::MAX), Some((30, "d")));
            assert!(line.is_empty() && line.next_due().is_none());
        }
    }

    #[test]
    fn packets_overtake_on_a_sorted_line() {
        let mut line = DelayLine::new(true);
        for due in [30, 10, 20] {
            line.push(due, due);
        }
        assert_eq!(
            std::iter::from_fn(|| line.pop_due(100)).map(|(due, _)| due).collect::<Vec<_>>(),
            [10, 20, 30]
        );
    }
}
