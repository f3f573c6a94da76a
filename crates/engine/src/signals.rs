//! What breaks in on a process: Ctrl-C and SIGTERM, of which the first asks for an orderly end and the second kills,
//! and panics.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Ctrl-C and SIGTERM for a program that is at work outside of a runtime, and looks now and then.
#[derive(Debug)]
pub struct StopWatch {
    runtime: tokio::runtime::Runtime,
    signals: StopSignals,
}

impl StopWatch {
    /// Begins to listen.
    ///
    /// # Errors
    /// If signals cannot be listened for.
    pub fn new() -> io::Result<StopWatch> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { StopSignals::new() })?;
        Ok(StopWatch { runtime, signals })
    }

    /// Waits so long; true, and at once, if the process was asked to stop since the last look.
    pub fn pause(&mut self, time: Duration) -> bool {
        let signals = &mut self.signals;
        self.runtime.block_on(async { tokio::time::timeout(time, signals.recv()).await.is_ok() })
    }
}

/// Leaves Ctrl-C and SIGTERM to others.
pub fn ignore_stop_signals() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: ignoring a signal involves no handler of ours.
        unsafe {
            libc::signal(number, libc::SIG_IGN);
        }
    }
}

/// Set by the first panic of any thread: the runtime keeps those of tasks to itself.
#[derive(Clone, Debug, Default)]
pub struct Panicked(Arc<AtomicBool>);

impl Panicked {
    /// True if anything has panicked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that is set when anything panics from now on.
pub fn watch_panics() -> Panicked {
    let panicked = Panicked::default();
    let seen = Arc::clone(&panicked.0);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        seen.store(true, Ordering::Relaxed);
        report(info);
    }));
    panicked
}
