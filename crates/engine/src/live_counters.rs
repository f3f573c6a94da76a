//! Counters of a loop that the coordinator reads while the loop runs.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polygraph_stats::{Totals, Window};
use serde::{Deserialize, Serialize};

/// Counts since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Transactions started.
    pub started: u64,
    /// Transactions that succeeded.
    pub ok: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Connections opened or accepted.
    pub connections: u64,
    /// Replies that filled the device's cache.
    pub fills: u64,
    /// Size of these replies in bytes.
    pub fill_bytes: u64,
}

impl Counts {
    /// The counts of a loop with these totals.
    pub fn new(totals: Totals, connections: u64) -> Counts {
        let Totals { started, ok, failed, fills, fill_bytes } = totals;
        Counts { started, ok, failed, connections, fills, fill_bytes }
    }

    /// The counts without the connections.
    pub fn totals(&self) -> Totals {
        let Counts { started, ok, failed, fills, fill_bytes, .. } = *self;
        Totals { started, ok, failed, fills, fill_bytes }
    }

    /// Transactions that have ended, successfully or not.
    pub fn ended(&self) -> u64 {
        self.ok + self.failed
    }

    fn values(self) -> [u64; 6] {
        [self.started, self.ok, self.failed, self.connections, self.fills, self.fill_bytes]
    }

    fn of([started, ok, failed, connections, fills, fill_bytes]: [u64; 6]) -> Counts {
        Counts { started, ok, failed, connections, fills, fill_bytes }
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        let (mine, other) = (self.values(), other.values());
        Counts::of(std::array::from_fn(|at| mine[at] + other[at]))
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// What was counted since `earlier`.
    fn sub(self, earlier: Counts) -> Counts {
        let (mine, earlier) = (self.values(), earlier.values());
        Counts::of(std::array::from_fn(|at| mine[at].saturating_sub(earlier[at])))
    }
}

/// Counters that one thread writes and another reads. Counts are published value by value, so a reader may see values
/// that are one transaction apart; deltas are published as a whole.
#[derive(Debug, Default)]
pub struct LiveCounters {
    counts: [AtomicU64; 6],
    delta: Mutex<Window>,
}

impl LiveCounters {
    /// The counts that were published last.
    pub fn counts(&self) -> Counts {
        Counts::of(std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed)))
    }

    /// Publishes counts.
    pub fn publish(&self, counts: Counts) {
        for (cell, value) in self.counts.iter().zip(counts.values()) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// Adds what has happened since the last call to the delta.
    pub fn add_delta(&self, delta: &Window) {
        self.delta().append(delta);
    }

    /// Takes the delta since the last call.
    pub fn take_delta(&self) -> Window {
        let mut delta = self.delta();
        let carried = delta.carry();
        std::mem::replace(&mut delta, carried)
    }

    fn delta(&self) -> MutexGuard<'_, Window> {
        self.delta.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
