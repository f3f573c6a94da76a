//! The processor time that a test took, to tell a limit of the network from a limit of the host.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// From this share on, a processor or a thread counts as the limit.
const FULL: f64 = 0.9;

/// The use of processors during a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// The number of processors.
    pub processors: u32,
    /// The share of the time of all processors that was used, by whatever programs.
    pub busy: f64,
    /// The same of the busiest processor.
    pub busiest: f64,
    /// The share of one processor that the busiest thread of the test used.
    pub thread: f64,
}

impl CpuUse {
    /// Whether the host rather than the network may have been the limit.
    pub fn is_limit(&self) -> bool {
        self.busiest >= FULL || self.thread >= FULL
    }
}

/// Busy and all clock ticks of each processor since the start of the system.
type Ticks = Vec<(u64, u64)>;

/// Measures the use of processors from its creation on.
pub struct CpuMeter(Ticks);

impl CpuMeter {
    /// Begins to measure.
    pub fn start() -> CpuMeter {
        CpuMeter(ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()))
    }

    /// The use since the start. `thread` is the share of the busiest thread.
    pub fn stop(&self, thread: f64) -> CpuUse {
        use_between(&self.0, &ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()), thread)
    }
}

/// Reads the lines of processors in `/proc/stat` (proc(5)).
fn ticks(text: &str) -> Ticks {
    let of_processor = |line: &str| {
        let rest = line.strip_prefix("cpu").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
        let fields: Vec<u64> =
            rest.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        // User, nice, system, idle, wait for disks, interrupts, soft interrupts, stolen; guests are in user already.
        let all: u64 = fields.iter().take(8).sum();
        let idle: u64 = fields.iter().skip(3).take(2).sum();
        (fields.len() >= 5).then_some((all - idle, all))
    };
    text.lines().filter_map(of_processor).collect()
}

fn use_between(before: &[(u64, u64)], after: &[(u64, u64)], thread: f64) -> CpuUse {
    let shares = before.iter().zip(after).map(|(before, after)| {
        let (busy, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        (busy as f64, all as f64)
    });
    let shares: Vec<(f64, f64)> = shares.filter(|(_, all)| *all > 0.0).collect();
    let sum = shares.iter().fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    CpuUse {
        processors: after.len() as u32,
        busy: if sum.1 > 0.0 { sum.0 / sum.1 } else { 0.0 },
        busiest: shares.iter().map(|(busy, all)| busy / all).fold(0.0, f64::max),
        thread,
    }
}

/// The share of one processor that this thread uses, from its creation on.
pub struct ThreadMeter {
    begin: Instant,
    before: Duration,
}

impl ThreadMeter {
    /// Begins to measure this thread.
    pub fn start() -> ThreadMeter {
        ThreadMeter { begin: Instant::now(), before: thread_time() }
    }

    /// The share since the start.
    pub fn stop(&self) -> f64 {
        let wall = self.begin.elapsed().as_secs_f64();
        let used = thread_time().saturating_sub(self.before).as_secs_f64();
        if wall > 0.0 { (used / wall).min(1.0) } else { 0.0 }
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_processors() {
        let before =
            ticks("cpu  9 9 9 9 9\ncpu0 10 0 0 90 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 5 0\nintr 7\n");
        let after = ticks("cpu0 105 0 0 95 0 0 0 0 0 0\ncpu1 20 5 15 120 20 5 5 10 0 0\n");
        assert_eq!(before, [(10, 100), (0, 100)]);
        let found = use_between(&before, &after, 0.2);
        assert_eq!((found.processors, found.busiest), (2, 0.95));
        assert!((found.busy - 155.0 / 200.0).abs() < 1e-9, "{found:?}");
        assert!(found.is_limit());
        assert!(CpuUse { thread: 0.95, ..CpuUse::default() }.is_limit());
        assert_eq!(use_between(&[], &[], 0.0), CpuUse::default());
        assert_eq!(ticks("cpu0 x\ncpu1 1 2\n"), []);
    }
}
