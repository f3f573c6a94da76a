//! Samples of single transactions: all details of a few transactions.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A successful transaction, as one side saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xact {
    /// When it ended, in nanoseconds since the start of the run.
    pub ended_ns: u64,
    /// Time from its start to its end, in microseconds.
    pub lifetime_us: u64,
    /// Time in microseconds from the due time, or from the moment when its link was found in a page, to its start on a
    /// connection. Servers do not know it.
    pub queued_us: Option<u64>,
    /// Its id; empty if the request had none.
    pub id: String,
    /// Number of its connection among those of its event loop, from 1.
    pub connection: u64,
    /// The object: path of its URL, or the whole URL if it is not one of ours.
    pub object: String,
    /// Bytes of the reply, head and body.
    pub size: u64,
    /// Status code of the reply; 0 if there was none because the transaction was aborted.
    pub status: u16,
    /// Number of the robot, on the client side.
    pub robot: Option<u64>,
    /// Number of the server: on the client side, that of the visible server if it is one of ours; on the server side,
    /// its own number.
    pub server: Option<u64>,
    /// `If-Modified-Since` in seconds since 1970, on the server side.
    pub ims: Option<u64>,
}

/// Transactions taken for a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionSample {
    /// Number of the sample.
    pub sample: usize,
    /// Transactions in the order of their ends.
    pub xacts: Vec<Xact>,
}

/// The samples that a loop takes.
#[derive(Debug, Default)]
pub struct TransactionSampler {
    /// Number of each running sample, and the number of transactions that it still takes.
    running: Vec<(usize, u64)>,
    taken: Vec<TransactionSample>,
}

impl TransactionSampler {
    /// Takes the next `capacity` transactions for a sample.
    pub fn begin(&mut self, sample: usize, capacity: u64) {
        self.running.push((sample, capacity));
        self.taken.push(TransactionSample { sample, xacts: Vec::new() });
    }

    /// Whether any sample is running.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Takes a transaction for all running samples.
    pub fn take(&mut self, xact: &Xact) {
        for (sample, room) in &mut self.running {
            *room -= 1;
            if let Some(taken) = self.taken.iter_mut().find(|taken| taken.sample == *sample) {
                taken.xacts.push(xact.clone());
            }
        }
        self.running.retain(|(_, room)| *room > 0);
    }

    /// Transactions taken since the last call.
    pub fn hand_over(&mut self) -> Vec<TransactionSample> {
        let running =
            self.running.iter().map(|(sample, _)| TransactionSample { sample: *sample, xacts: Vec::new() });
        let mut taken = std::mem::replace(&mut self.taken, running.collect());
        taken.retain(|taken| !taken.xacts.is_empty());
        taken
    }
}

/// Merges the samples of all loops: the transactions that ended first, up to the capacity.
#[derive(Debug)]
pub struct SampleMerger {
    /// Transactions taken by loops, before which earlier ones may still arrive.
    room: u64,
    waiting: VecDeque<Xact>,
}

impl SampleMerger {
    /// A sample of `capacity` transactions.
    pub fn new(capacity: u64) -> SampleMerger {
        SampleMerger { room: capacity, waiting: VecDeque::new() }
    }

    /// Adds the transactions taken by a loop.
    pub fn add(&mut self, xacts: Vec<Xact>) {
        self.waiting.extend(xacts);
    }

    /// The next transactions of the sample, from intervals for which all loops have delivered; empty when the sample is
    /// full.
    pub fn draw(&mut self) -> Vec<Xact> {
        let mut all: Vec<Xact> = std::mem::take(&mut self.waiting).into();
        all.sort_by_key(|xact| xact.ended_ns);
        all.truncate(self.room.try_into().unwrap_or(usize::MAX));
        self.room -= all.len() as u64;
        all
    }

    /// Whether the sample is complete.
    pub fn is_full(&self) -> bool {
        self.room == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xact(ended_ns: u64) -> Xact {
        Xact {
            ended_ns,
            lifetime_us: 5,
            queued_us: None,
            id: String::new(),
            connection: 1,
            object: "/".into(),
            size: 9,
            status: 200,
            robot: Some(1),
            server: None,
            ims: None,
        }
    }

    fn times(xacts: &[Xact]) -> Vec<u64> {
        xacts.iter().map(|xact| xact.ended_ns).collect()
    }

    #[test]
    fn samples_take_what_they_have_room_for_and_may_overlap() {
        let mut taker = TransactionSampler::default();
        taker.begin(3, 2);
        taker.take(&xact(1));
        taker.begin(4, 2);
        taker.take(&xact(2));
        let first = taker.hand_over();
        let seen: Vec<_> = first.iter().map(|taken| (taken.sample, times(&taken.xacts))).collect();
        assert_eq!(seen, [(3, vec![1, 2]), (4, vec![2])]);
        taker.take(&xact(3));
        assert!(!taker.is_running());
        taker.take(&xact(4));
        let second = taker.hand_over();
        assert_eq!((second.len(), second[0].sample, times(&second[0].xacts)), (1, 4, vec![3]));
        assert!(taker.hand_over().is_empty());
    }

    #[test]
    fn of_all_loops_those_that_ended_first_are_kept() {
        let mut merger = SampleMerger::new(5);
        merger.add(vec![xact(10), xact(30)]);
        merger.add(vec![xact(20)]);
        assert_eq!(times(&merger.draw()), [10, 20, 30]);
        merger.add((40..50).rev().map(xact).collect());
        assert_eq!(times(&merger.draw()), [40, 41]);
        assert!(merger.is_full() && merger.draw().is_empty());
    }
}
