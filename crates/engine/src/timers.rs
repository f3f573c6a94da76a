//! Timers finer than a millisecond: a heap of deadlines and one timerfd per loop.
//!
//! The timers of the runtime and the timeout of `epoll` count milliseconds, which would quantise the start times of
//! requests. Here a timerfd wakes the loop. It is set to the earliest deadline, rounded up to a quantum, so that
//! deadlines close to each other share a wake-up.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use polygraph_link::{Nanos, SECOND};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use slab::Slab;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::poller::register;

/// The default quantum in nanoseconds: deadlines within a quantum share a wake-up.
pub const DEFAULT_QUANTUM: Nanos = Nanos::new(100_000);

/// The time of the monotonic clock in nanoseconds.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + Nanos::new(time.tv_nsec as u64)
}

/// The timers of one loop. Clones are handles to the same timers.
#[derive(Clone, Debug)]
pub struct Timers(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    timer: AsyncFd<OwnedFd>,
    quantum: Nanos,
    /// Deadlines in order. An entry whose sleeper is gone is skipped when its time comes.
    agenda: RefCell<BinaryHeap<Reverse<(Nanos, u64, usize)>>>,
    sleepers: RefCell<Slab<Sleeper>>,
    /// The number of the last sleeper. Numbers keep an agenda entry from waking a later user of the same slot.
    counter: Cell<u64>,
    /// When the timerfd expires next.
    armed: Cell<Nanos>,
}

#[derive(Debug)]
struct Sleeper {
    number: u64,
    waker: Waker,
}

impl Timers {
    /// Timers of the current loop. The function must be called inside the loop's runtime.
    ///
    /// # Errors
    /// If the system cannot create a timerfd.
    pub fn new(quantum: Nanos) -> io::Result<Timers> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Timers(Rc::new(Inner {
            timer: register(fd, Interest::READABLE)?,
            quantum: quantum.max(Nanos::new(1)),
            agenda: RefCell::default(),
            sleepers: RefCell::default(),
            counter: Cell::new(0),
            armed: Cell::new(Nanos::MAX),
        })))
    }

    /// Wakes sleepers when their time comes. A task of the loop must run this function.
    pub async fn drive(self) {
        loop {
            // The timer is registered edge-triggered, and every expiry is an edge, so it need not be read.
            match self.0.timer.readable().await {
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
            self.0.armed.set(Nanos::MAX);
            self.wake_due(now());
            if let Some(&Reverse((at, ..))) = self.0.agenda.borrow().peek() {
                self.arm(at);
            }
        }
    }

    /// Completes at `at` or a little later, never earlier.
    pub fn sleep_until(&self, at: Nanos) -> Sleep {
        Sleep { timers: self.clone(), at, slot: None }
    }

    fn wake_due(&self, now: Nanos) {
        let mut agenda = self.0.agenda.borrow_mut();
        while let Some(&Reverse((at, number, slot))) = agenda.peek() {
            if at > now {
                break;
            }
            agenda.pop();
            if let Some(sleeper) = self.0.sleepers.borrow().get(slot)
                && sleeper.number == number
            {
                sleeper.waker.wake_by_ref();
            }
        }
    }

    fn arm(&self, at: Nanos) {
        let at = at.div_ceil(self.0.quantum) * self.0.quantum;
        if at >= self.0.armed.get() {
            return;
        }
        let time = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: (at / SECOND) as i64, tv_nsec: (at % SECOND).as_u64() as i64 },
        };
        timerfd_settime(self.0.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &time)
            .expect("an absolute time is accepted by a timer of ours");
        self.0.armed.set(at);
    }
}

/// A sleep in progress; dropping it cancels it.
#[derive(Debug)]
pub struct Sleep {
    timers: Timers,
    at: Nanos,
    slot: Option<usize>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if now() >= self.at {
            return Poll::Ready(());
        }
        let inner = Rc::clone(&self.timers.0);
        match self.slot {
            Some(slot) => inner.sleepers.borrow_mut()[slot].waker.clone_from(cx.waker()),
            None => {
                let number = inner.counter.get() + 1;
                inner.counter.set(number);
                let slot = inner.sleepers.borrow_mut().insert(Sleeper { number, waker: cx.waker().clone() });
                self.slot = Some(slot);
                inner.agenda.borrow_mut().push(Reverse((self.at, number, slot)));
                self.timers.arm(self.at);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.timers.0.sleepers.borrow_mut().remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_loop(test: impl AsyncFnOnce(Timers)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build_local(Default::default())
            .unwrap();
        runtime.block_on(async {
            let timers = Timers::new(DEFAULT_QUANTUM).unwrap();
            tokio::task::spawn_local(timers.clone().drive());
            test(timers).await;
        });
    }

    #[test]
    fn sleepers_wake_in_order_and_never_early() {
        on_a_loop(async |timers| {
            let order = Rc::new(RefCell::new(Vec::new()));
            let start = now();
            let tasks: Vec<_> = [30u64, 10, 20, 0]
                .map(|ms| {
                    let (timers, order) = (timers.clone(), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        let at = start + Nanos::new(ms * 1_000_000);
                        timers.sleep_until(at).await;
                        assert!(now() >= at);
                        order.borrow_mut().push(ms);
                    })
                })
                .into();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.borrow(), [0, 10, 20, 30]);
        });
    }

    #[test]
    fn a_dropped_sleep_leaves_no_sleeper_behind() {
        on_a_loop(async |timers| {
            let far = timers.sleep_until(now() + 3600 * SECOND);
            let near = timers.sleep_until(now() + Nanos::new(1_000_000));
            // Whichever future is polled first registers both.
            let mut far = Box::pin(far);
            std::future::poll_fn(|cx| {
                assert!(far.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            drop(far);
            near.await;
            assert!(timers.0.sleepers.borrow().is_empty());
        });
    }
}
