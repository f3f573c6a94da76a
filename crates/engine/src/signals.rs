//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second kills.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that ask a process to stop.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Begins to listen; must be called inside a runtime.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn new() -> io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal; from then on another one kills the process.
    pub async fn recv(&mut self) {
        let (interrupt, terminate) = (&mut self.interrupt, &mut self.terminate);
        poll_fn(|cx| match (interrupt.poll_recv(cx), terminate.poll_recv(cx)) {
            (Poll::Pending, Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        for number in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: setting a signal to its default action involves no handler of ours.
            unsafe {
                libc::signal(number, libc::SIG_DFL);
            }
        }
    }
}

/// Blocks until the process is asked to stop, or for `limit` at most.
///
/// # Errors
/// If signals cannot be listened for.
pub fn wait(limit: Option<Duration>) -> io::Result<()> {
    wait_ticking(limit, Duration::MAX, || {})
}

/// As [`wait`], and calls `tick` at the end of every `period` that goes by.
///
/// # Errors
/// If signals cannot be listened for.
pub fn wait_ticking(limit: Option<Duration>, period: Duration, mut tick: impl FnMut()) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = StopSignals::new()?;
        let begin = Instant::now();
        loop {
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(begin.elapsed()));
            // A limit that was reached is as good an end as a signal.
            if tokio::time::timeout(left.min(period), signals.recv()).await.is_ok() || left <= period {
                return Ok(());
            }
            tick();
        }
    })
}
