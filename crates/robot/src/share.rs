//! The share of a test's robots that one process runs, while other processes run the rest.

use serde::{Deserialize, Serialize};

/// The robots that a process runs, by the numbers that they have in the whole test. All choices of a robot follow from the seed and
/// its number, so it makes the same choices whichever process runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotShare {
    /// The numbers of the robots, in order.
    pub(crate) numbers: NumberRuns,
    /// By position of the kind: where its robots are in the whole test.
    pub(crate) places: Vec<KindPlace>,
    /// Number of robots of the whole test.
    pub(crate) all: usize,
}

/// Ascending numbers, stored as runs of consecutive ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberRuns {
    /// For each run, the position of its first number among all numbers, and this number.
    runs: Vec<(usize, usize)>,
    len: usize,
}

impl NumberRuns {
    /// Appends a number.
    pub fn push(&mut self, number: usize) {
        if self.runs.last().is_none_or(|(position, first)| first + (self.len - position) != number) {
            self.runs.push((self.len, number));
        }
        self.len += 1;
    }

    /// The number at `position`; `None` if there are fewer.
    pub fn get(&self, position: usize) -> Option<usize> {
        let run = self.runs.partition_point(|(begin, _)| *begin <= position).checked_sub(1)?;
        let (begin, first) = self.runs[run];
        (position < self.len).then(|| first + (position - begin))
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Where the robots of a kind are in the whole test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindPlace {
    /// Number of the first robot of the kind.
    pub first: usize,
    /// Number of robots with the same trace of foreign URLs that come before the kind.
    pub trace_before: usize,
    /// Number of all robots with the same trace.
    pub trace_all: usize,
}

impl RobotShare {
    /// The number, in the whole test, of robot number `position` of this process.
    pub fn number(&self, position: usize) -> usize {
        self.numbers.get(position).unwrap_or(position)
    }

    /// Number of robots of the whole test.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Where the robots of a kind are in the whole test.
    pub fn place(&self, kind: usize) -> KindPlace {
        self.places[kind]
    }
}
