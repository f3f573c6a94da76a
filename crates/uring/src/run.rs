//! The loop: runs the tasks that are ready, then turns the ring.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use crate::ring::{Gather, Ring, Wait};
use crate::tasks::Tasks;

/// The time, and when the loop must go on at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time in nanoseconds.
    pub now_ns: u64,
    /// When the next timer is due, in nanoseconds; `None`: no timer runs.
    pub next_ns: Option<u64>,
}

/// Runs `main` and the tasks that it spawns until it completes; then the remaining tasks are dropped by the owner of `tasks`.
/// `fire` wakes the tasks whose timers are due and returns the time. A completion waits for others for `linger` at most.
///
/// # Errors
/// What the system reports about the ring.
pub fn run<R: 'static>(
    ring: &Ring,
    tasks: &Tasks,
    linger: Duration,
    mut fire: impl FnMut() -> Clock,
    main: impl Future<Output = R> + 'static,
) -> io::Result<R> {
    ring.watch_bell(tasks.bell())?;
    let result = Rc::new(RefCell::new(None));
    let of_main = Rc::clone(&result);
    tasks.spawn(async move {
        let output = main.await;
        *of_main.borrow_mut() = Some(output);
    });
    let mut pace = Pace::new(linger);
    loop {
        let more = tasks.run_ready();
        if let Some(output) = result.borrow_mut().take() {
            return Ok(output);
        }
        if Rc::strong_count(&result) == 1 {
            return Err(io::Error::other("the main task of an event loop panicked"));
        }
        let Clock { now_ns, next_ns } = fire();
        let wait = match next_ns.map(|next| next.saturating_sub(now_ns)) {
            _ if more || tasks.has_ready() => Wait::No,
            Some(0) => Wait::No,
            left => Wait::For(left.map(Duration::from_nanos), pace.gather(left)),
        };
        let count = ring.turn(wait)?;
        pace.note(now_ns, count);
        if ring.was_rung() {
            tasks.collect_remote();
        }
    }
}

/// How many completions arrive, and how many of them are worth waiting for: as many as arrive while one may wait for others. A loop
/// with little to do therefore waits for none.
#[derive(Debug)]
struct Pace {
    linger: Duration,
    /// When the last turn began.
    last_ns: u64,
    /// The recent past, in which the latest turns weigh most: its length in nanoseconds, and the completions in it.
    time_ns: u64,
    count: u64,
}

impl Pace {
    /// More completions do not make a wait cheaper.
    const MOST: u64 = 8;
    /// About how long the past counts, in nanoseconds.
    const MEMORY_NS: u64 = 1_000_000;

    fn new(linger: Duration) -> Pace {
        Pace { linger, last_ns: 0, time_ns: Self::MEMORY_NS, count: 0 }
    }

    fn note(&mut self, begin_ns: u64, count: usize) {
        // A long sleep must not outweigh what comes after it.
        self.time_ns += begin_ns.saturating_sub(self.last_ns).min(Self::MEMORY_NS);
        self.count += count as u64;
        self.last_ns = begin_ns;
        if self.time_ns > 2 * Self::MEMORY_NS {
            self.time_ns /= 2;
            self.count /= 2;
        }
    }

    /// What to gather if the wait may last for `left_ns`; `None`: for ever.
    fn gather(&self, left_ns: Option<u64>) -> Gather {
        let linger_ns = (self.linger.as_nanos() as u64).min(left_ns.unwrap_or(u64::MAX));
        let count = (self.count * linger_ns / self.time_ns.max(1)).clamp(1, Self::MOST);
        // A linger of 0 would gather without a limit.
        match linger_ns / 1000 {
            0 => Gather::NOTHING,
            micros => Gather { count: count as usize, linger: Duration::from_micros(micros) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_loop_gathers_and_never_beyond_a_due_timer() {
        let mut pace = Pace::new(Duration::from_micros(50));
        assert_eq!(pace.gather(None).count, 1);
        // One completion every 10 us.
        (0..1000).for_each(|turn| pace.note(turn * 10_000, 1));
        assert!((4..=5).contains(&pace.gather(None).count), "{pace:?}");
        assert_eq!(pace.gather(Some(20_000)).linger, Duration::from_micros(20));
        assert!(pace.gather(Some(20_000)).count <= 2);
        assert_eq!(pace.gather(Some(900)), Gather::NOTHING);
        // 1 us.
        (0..10_000).for_each(|turn| pace.note(10_000_000 + turn * 1000, 1));
        assert_eq!(pace.gather(None).count, 8);
        // It becomes quiet: one every 5 ms.
        (0..20).for_each(|turn| pace.note(20_000_000 + turn * 5_000_000, 1));
        assert_eq!(pace.gather(None).count, 1, "{pace:?}");
    }
}
