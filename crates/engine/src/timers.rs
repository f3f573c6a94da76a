//! Timers finer than a millisecond: a heap of deadlines per loop.
//!
//! The timers of the runtime and the timeout of `epoll` count milliseconds, which would quantise the start times of
//! requests. On epoll a timerfd wakes the loop; on io_uring the wait itself has an end. Either is set to the earliest deadline, rounded
//! up to a quantum, so that deadlines close to each other share a wake-up.

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
    /// The timerfd; `None` if the loop asks when the next timer is due.
    timer: Option<AsyncFd<OwnedFd>>,
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
    /// Timers of a loop that calls [`Timers::fire`].
    pub fn new(quantum: Nanos) -> Timers {
        Timers::with(None, quantum)
    }

    /// Timers of the current loop on epoll. The function must be called inside the loop's runtime.
    ///
    /// # Errors
    /// If the system cannot create a timerfd.
    pub fn on_timerfd(quantum: Nanos) -> io::Result<Timers> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Timers::with(Some(register(fd, Interest::READABLE)?), quantum))
    }

    fn with(timer: Option<AsyncFd<OwnedFd>>, quantum: Nanos) -> Timers {
        Timers(Rc::new(Inner {
            timer,
            quantum: quantum.max(Nanos::new(1)),
            agenda: RefCell::default(),
            sleepers: RefCell::default(),
            counter: Cell::new(0),
            armed: Cell::new(Nanos::MAX),
        }))
    }

    /// Wakes the sleepers that are due at `now`. Returns when the next one is due, rounded up to the quantum; `None` if there is none.
    pub fn fire(&self, now: Nanos) -> Option<Nanos> {
        self.wake_due(now);
        self.0.agenda.borrow().peek().map(|&Reverse((at, ..))| self.round_up(at))
    }

    fn round_up(&self, at: Nanos) -> Nanos {
        at.div_ceil(self.0.quantum) * self.0.quantum
    }

    /// Wakes sleepers when the timerfd expires. A task of a loop on epoll must run this function.
    pub async fn drive(self) {
        let Some(timer) = &self.0.timer else { return };
        loop {
            // The timer is registered edge-triggered, and every expiry is an edge, so it need not be read.
            match timer.readable().await {
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
        let Some(timer) = &self.0.timer else { return };
        let at = self.round_up(at);
        if at >= self.0.armed.get() {
            return;
        }
        let time = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: (at / SECOND) as i64, tv_nsec: (at % SECOND).as_u64() as i64 },
        };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &time)
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
    use crate::event_loop::{Engine, EventLoop};
    use crate::net::Net;
    use polygraph_link::Link;

    fn on_every_loop<F: Future<Output = ()> + 'static>(test: impl Fn(Net) -> F) {
        for engine in Engine::available() {
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            event_loop.run(test(net)).unwrap();
        }
    }

    #[test]
    fn sleepers_wake_in_order_and_never_early() {
        on_every_loop(|net| async move {
            let order = Rc::new(RefCell::new(Vec::new()));
            let start = now();
            for ms in [30u64, 10, 20, 0] {
                let (timers, order) = (net.timers().clone(), Rc::clone(&order));
                net.spawn(async move {
                    let at = start + Nanos::new(ms * 1_000_000);
                    timers.sleep_until(at).await;
                    assert!(now() >= at);
                    order.borrow_mut().push(ms);
                });
            }
            while order.borrow().len() < 4 {
                net.sleep_until(now() + Nanos::new(1_000_000)).await;
            }
            assert_eq!(*order.borrow(), [0, 10, 20, 30]);
        });
    }

    #[test]
    fn a_dropped_sleep_leaves_no_sleeper_behind() {
        on_every_loop(|net| async move {
            let timers = net.timers();
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
