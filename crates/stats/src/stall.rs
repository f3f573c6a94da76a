//! Times in which event loops did not run, because the process was stopped, swapped out or starved, or the loop was
//! stuck.

use serde::{Deserialize, Serialize};

/// A loop that runs this much later than scheduled was stalled. A host that shares its processors makes loops wait for some
/// milliseconds; a quota of processor time makes them wait for most of its period, which usually is 100 ms.
pub const STALLED_NS: u64 = 20_000_000;

/// A stall of this length is also an error of class [`LateTimers`](crate::ErrorKind::LateTimers).
pub const LATE_TIMER_NS: u64 = 100_000_000;

/// A time in which loops did not run although tasks were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the first loop should have run again, in nanoseconds since the start of the run.
    pub begin_ns: u64,
    /// When the last loop ran again.
    pub end_ns: u64,
    /// Number of stalled loops.
    pub loops: u32,
}

impl Stall {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns) as f64 * 1e-9
    }

    /// Merges stalls of concurrent loops: overlapping stalls become one, so their number does not depend on the number
    /// of loops.
    pub fn united(mut stalls: Vec<Stall>) -> Vec<Stall> {
        stalls.sort_by_key(|stall| stall.begin_ns);
        let mut united: Vec<Stall> = Vec::new();
        for stall in stalls {
            match united.last_mut().filter(|last| stall.begin_ns <= last.end_ns) {
                Some(last) => {
                    last.end_ns = last.end_ns.max(stall.end_ns);
                    last.loops += stall.loops;
                }
                None => united.push(stall),
            }
        }
        united
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_several_loops_are_one_if_they_overlap() {
        let stall = |begin_ns, end_ns, loops| Stall { begin_ns, end_ns, loops };
        let all = vec![stall(50, 60, 1), stall(10, 30, 1), stall(20, 25, 1), stall(30, 40, 2)];
        assert_eq!(Stall::united(all), [stall(10, 40, 4), stall(50, 60, 1)]);
        assert_eq!(Stall::united(Vec::new()), []);
    }
}
