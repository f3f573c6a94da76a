//! What an emulation has done so far.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::emulation::Direction;
use crate::model::Nanos;

/// The longest excess that has its own bucket, in nanoseconds: one minute.
const LONGEST: u64 = 60_000_000_000;

/// What the process of an emulation has done so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// How long it has been at work, in seconds.
    pub seconds: f64,
    /// The processor time that it took, in seconds.
    pub cpu_seconds: f64,
    /// Messages or packets that the kernel did not take.
    pub errors: u64,
    /// What happened in each direction.
    pub pipes: Vec<PipeStatus>,
}

/// What happened to the packets of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipeStatus {
    /// The direction.
    pub direction: Direction,
    /// Packets that entered the pipe.
    pub packets: u64,
    /// Packets that left it.
    pub delivered: u64,
    /// Packets that were lost on purpose.
    pub lost: u64,
    /// Packets that found the queue for transmission full. `None` if they are counted as lost.
    pub overflowed: Option<u64>,
    /// Packets that are in the pipe.
    pub held: u64,
    /// Packets that the kernel dropped because we did not read them in time.
    pub missed: u64,
    /// How much longer packets were held than they should have been. `None` if that is not measured.
    pub excess: Option<HoldExcess>,
}

/// The time for which packets were held minus the time for which they should have been held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldExcess {
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// The value that 99 of 100 packets do not exceed, in microseconds.
    pub p99_us: f64,
    /// The value that 999 of 1000 packets do not exceed, in microseconds.
    pub p999_us: f64,
    /// The largest value, in microseconds.
    pub max_us: f64,
}

/// The excess of all packets of a pipe.
#[derive(Debug)]
pub struct ExcessRecorder(Histogram<u64>);

impl Default for ExcessRecorder {
    fn default() -> ExcessRecorder {
        ExcessRecorder::new()
    }
}

impl ExcessRecorder {
    /// A recorder without packets.
    pub fn new() -> ExcessRecorder {
        // The bounds are fixed and valid.
        ExcessRecorder(Histogram::new_with_bounds(1, LONGEST, 2).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Adds a packet.
    pub fn add(&mut self, late: Nanos) {
        self.0.saturating_record(late.max(1));
    }

    /// The distribution so far. `None` without packets.
    pub fn excess(&self) -> Option<HoldExcess> {
        let us = |nanos: u64| nanos as f64 / 1000.0;
        (!self.0.is_empty()).then(|| HoldExcess {
            mean_us: self.0.mean() / 1000.0,
            p50_us: us(self.0.value_at_quantile(0.5)),
            p99_us: us(self.0.value_at_quantile(0.99)),
            p999_us: us(self.0.value_at_quantile(0.999)),
            max_us: us(self.0.max()),
        })
    }
}

/// The packets of queues that the kernel dropped because nobody read them: `/proc/net/netfilter/nfnetlink_queue`.
pub fn missed_packets(table: &str, queues: &[u16]) -> u64 {
    let rows = table.lines().filter_map(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        match numbers[..] {
            [queue, _, _, _, _, not_queued, not_read, ..] => {
                Some((queue, not_queued.saturating_add(not_read)))
            }
            _ => None,
        }
    });
    rows.filter(|(queue, _)| queues.iter().any(|known| u64::from(*known) == *queue))
        .fold(0, |sum, (_, missed)| sum.saturating_add(missed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_of_packets() {
        let mut recorder = ExcessRecorder::new();
        assert_eq!(recorder.excess(), None);
        for us in 1..=1000 {
            recorder.add(us * 1000);
        }
        let excess = recorder.excess().unwrap();
        let near = |value: f64, expected: f64| (value - expected).abs() < expected * 0.01;
        assert!(near(excess.mean_us, 500.5) && near(excess.p50_us, 500.0), "{excess:?}");
        assert!(near(excess.p99_us, 990.0) && near(excess.max_us, 1000.0), "{excess:?}");
    }

    #[test]
    fn the_kernels_table_of_queues() {
        let table = " 7400  12345     0 2     1     3     4      999  1\n 7401  12345     0 2     1     0     5      999  1\nnonsense\n";
        assert_eq!(missed_packets(table, &[7400]), 7);
        assert_eq!(missed_packets(table, &[7400, 7401]), 12);
        assert_eq!(missed_packets(table, &[1]), 0);
    }
}
