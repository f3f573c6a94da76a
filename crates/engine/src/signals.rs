//! Events that interrupt a process: panics, and the signals of Ctrl-C, SIGTERM and the loss of the terminal (SIGHUP).
//! The first signal requests an orderly end, the second kills the process.

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
    /// SIGHUP; `None` if the process was started with the signal ignored, as by nohup(1).
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Starts listening. The function must be called inside a runtime.
    ///
    /// # Errors
    /// If the system refuses a signal handler.
    pub fn new() -> io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if is_ignored(libc::SIGHUP) { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Waits for a signal; from then on another one kills the process.
    pub async fn recv(&mut self) {
        poll_fn(|cx| {
            let all = [Some(&mut self.interrupt), Some(&mut self.terminate), self.hangup.as_mut()];
            match all.into_iter().flatten().any(|signal| signal.poll_recv(cx).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        // SIGHUP may arrive several times, so its action is unchanged.
        for number in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: setting a signal to its default action involves no handler of ours.
            unsafe {
                libc::signal(number, libc::SIG_DFL);
            }
        }
    }
}

/// Whether the process was started with this signal ignored.
fn is_ignored(number: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the present one to memory that is large enough for it.
    let known = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: the call has succeeded, so the value is initialised.
    known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Blocks until the process is asked to stop, for `limit` at most.
///
/// # Errors
/// If the system refuses a signal handler.
pub fn wait(limit: Option<Duration>) -> io::Result<()> {
    wait_ticking(limit, Duration::MAX, || {})
}

/// Does the same as [`wait`], and calls `tick` after every `period`.
///
/// # Errors
/// If the system refuses a signal handler.
pub fn wait_ticking(limit: Option<Duration>, period: Duration, mut tick: impl FnMut()) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = StopSignals::new()?;
        let begin = Instant::now();
        loop {
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(begin.elapsed()));
            // Reaching the limit ends the wait like a signal.
            if tokio::time::timeout(left.min(period), signals.recv()).await.is_ok() || left <= period {
                return Ok(());
            }
            tick();
        }
    })
}

/// Checks for Ctrl-C, SIGTERM and SIGHUP from time to time, in code that runs outside a runtime.
#[derive(Debug)]
pub struct StopPoller {
    runtime: tokio::runtime::Runtime,
    signals: StopSignals,
}

impl StopPoller {
    /// Starts listening.
    ///
    /// # Errors
    /// If the system refuses a signal handler.
    pub fn new() -> io::Result<StopPoller> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { StopSignals::new() })?;
        Ok(StopPoller { runtime, signals })
    }

    /// Waits for `time`. Returns true, at once, if the process has been asked to stop since the last call.
    pub fn pause(&mut self, time: Duration) -> bool {
        let signals = &mut self.signals;
        self.runtime.block_on(async { tokio::time::timeout(time, signals.recv()).await.is_ok() })
    }
}

/// Ignores Ctrl-C, SIGTERM and SIGHUP, because another process handles them.
pub fn ignore_stop_signals() {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: ignoring a signal involves no handler of ours.
        unsafe {
            libc::signal(number, libc::SIG_IGN);
        }
    }
}

/// A flag that the first panic of any thread sets. The runtime catches panics of tasks without reporting them.
#[derive(Clone, Debug, Default)]
pub struct PanicFlag(Arc<AtomicBool>);

impl PanicFlag {
    /// Whether any thread or task has panicked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Installs a panic hook and returns the flag that it sets.
pub fn watch_panics() -> PanicFlag {
    let panicked = PanicFlag::default();
    let seen = Arc::clone(&panicked.0);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        seen.store(true, Ordering::Relaxed);
        report(info);
    }));
    panicked
}
