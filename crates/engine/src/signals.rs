//! What breaks in on a process: Ctrl-C, SIGTERM and the loss of its terminal (SIGHUP), of which the first asks for an
//! orderly end and the second kills, and panics.

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
    /// The terminal is gone; `None` if whoever started us wants us to live on (nohup(1)).
    hangup: Option<Signal>,
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
        // A lost terminal may be told several times.
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
    // SAFETY: the call has succeeded, so it was written.
    known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
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

/// Ctrl-C, SIGTERM and SIGHUP for a program that is at work outside of a runtime, and looks now and then.
#[derive(Debug)]
pub struct StopPoller {
    runtime: tokio::runtime::Runtime,
    signals: StopSignals,
}

impl StopPoller {
    /// Begins to listen.
    ///
    /// # Errors
    /// If signals cannot be listened for.
    pub fn new() -> io::Result<StopPoller> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { StopSignals::new() })?;
        Ok(StopPoller { runtime, signals })
    }

    /// Waits so long; true, and at once, if the process was asked to stop since the last look.
    pub fn pause(&mut self, time: Duration) -> bool {
        let signals = &mut self.signals;
        self.runtime.block_on(async { tokio::time::timeout(time, signals.recv()).await.is_ok() })
    }
}

/// Leaves Ctrl-C, SIGTERM and SIGHUP to others.
pub fn ignore_stop_signals() {
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: ignoring a signal involves no handler of ours.
        unsafe {
            libc::signal(number, libc::SIG_IGN);
        }
    }
}

/// Set by the first panic of any thread: the runtime keeps those of tasks to itself.
#[derive(Clone, Debug, Default)]
pub struct PanicFlag(Arc<AtomicBool>);

impl PanicFlag {
    /// True if anything has panicked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that is set when anything panics from now on.
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
