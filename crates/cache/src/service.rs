//! The optional model of a slower device: a queue with a fixed rate, and a latency.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One server with one unbounded queue, shared by all loops: transactions leave it at a constant interval.
///
/// No transaction ever waits in a list: the moment at which the server becomes free again is enough to tell
/// each arrival when it will be served, in the order of arrival.
#[derive(Debug)]
pub struct Queue {
    start: Instant,
    interval_ns: u64,
    /// Nanoseconds after `start` at which everything accepted so far is served.
    free_ns: AtomicU64,
}

impl Queue {
    /// A queue that serves `rate` transactions per second (positive).
    pub fn new(rate: f64, start: Instant) -> Queue {
        Queue { start, interval_ns: (1e9 / rate) as u64, free_ns: AtomicU64::new(0) }
    }

    /// Enters the queue; gives the moment at which the transaction has been served.
    pub fn enter(&self, now: Instant) -> Instant {
        let now_ns = now.saturating_duration_since(self.start).as_nanos() as u64;
        let served = |free_ns: u64| free_ns.max(now_ns).saturating_add(self.interval_ns);
        let before = self.free_ns.fetch_update(Relaxed, Relaxed, |free_ns| Some(served(free_ns)));
        let free_ns = before.unwrap_or_else(|free_ns| free_ns);
        self.start + Duration::from_nanos(served(free_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_the_rate_and_idle_time_is_not_saved_up() {
        let start = Instant::now();
        let queue = Queue::new(100.0, start);
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!(queue.enter(at(0)), at(10));
        assert_eq!(queue.enter(at(0)), at(20));
        assert_eq!(queue.enter(at(15)), at(30));
        assert_eq!(queue.enter(at(1000)), at(1010));
    }
}
