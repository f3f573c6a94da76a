//! Whom the connection below wakes: the task that drives the session, or the one that reads its only stream.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// Passes on that the connection below can be used again. The connection always gets the same waker, so the task behind it can change
/// without another look at the connection.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    /// What the connection below gets.
    waker: Waker,
    /// Copies of the wakers, to compare.
    driver: RefCell<Option<Waker>>,
    reader: RefCell<Option<Waker>>,
}

#[derive(Debug)]
struct Shared {
    /// Whether the connection may have something since it was last found to have nothing.
    has_news: AtomicBool,
    /// Whether the reader is woken, and not the driver.
    is_of_reader: AtomicBool,
    wakers: Mutex<Wakers>,
}

#[derive(Debug, Default)]
struct Wakers {
    driver: Option<Waker>,
    reader: Option<Waker>,
}

impl Shared {
    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_news.store(true, Ordering::Release);
        let wakers = self.wakers();
        let woken = if self.is_of_reader.load(Ordering::Acquire) { &wakers.reader } else { &wakers.driver };
        woken.iter().for_each(Waker::wake_by_ref);
    }
}

impl Default for Relay {
    /// Nobody has looked at the connection yet.
    fn default() -> Relay {
        let shared = Arc::new(Shared {
            has_news: AtomicBool::new(true),
            is_of_reader: AtomicBool::new(false),
            wakers: Mutex::default(),
        });
        let waker = Waker::from(Arc::clone(&shared));
        Relay { shared, waker, driver: RefCell::default(), reader: RefCell::default() }
    }
}

impl Relay {
    /// The context with which the connection below is polled.
    pub fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// The driver is woken by this waker.
    pub fn set_driver(&self, waker: &Waker) {
        if differs(&self.driver, waker) {
            self.shared.wakers().driver = Some(waker.clone());
        }
    }

    /// Wakes the driver.
    pub fn wake_driver(&self) {
        self.driver.borrow().iter().for_each(Waker::wake_by_ref);
    }

    /// Whether the connection may have something.
    pub fn has_news(&self) -> bool {
        self.shared.has_news.load(Ordering::Acquire)
    }

    /// As [`Relay::has_news`]. Whoever asks uses the connection until it has nothing more, or says with [`Relay::keep_news`] that it did
    /// not.
    pub fn take_news(&self) -> bool {
        self.has_news() && self.shared.has_news.swap(false, Ordering::AcqRel)
    }

    /// The connection may have more.
    pub fn keep_news(&self) {
        self.shared.has_news.store(true, Ordering::Release);
    }

    /// The connection may have more, and whoever uses it is woken.
    pub fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// From now on the connection wakes the task with this waker, which reads the only stream. What was new before is known to it.
    pub fn give_to_reader(&self, waker: &Waker) {
        if differs(&self.reader, waker) {
            self.shared.wakers().reader = Some(waker.clone());
        }
        self.shared.is_of_reader.store(true, Ordering::Release);
    }

    /// From now on the connection wakes the driver, which is woken now if the reader has not looked at what is new.
    pub fn give_to_driver(&self) {
        if self.shared.is_of_reader.load(Ordering::Acquire)
            && self.shared.is_of_reader.swap(false, Ordering::AcqRel)
            && self.has_news()
        {
            self.wake_driver();
        }
    }
}

/// Keeps a copy of a waker. Returns whether another one was there.
fn differs(kept: &RefCell<Option<Waker>>, waker: &Waker) -> bool {
    let mut kept = kept.borrow_mut();
    let is_known = kept.as_ref().is_some_and(|kept| kept.will_wake(waker));
    if !is_known {
        *kept = Some(waker.clone());
    }
    !is_known
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counter() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), Waker::from(count))
    }

    #[test]
    fn either_the_driver_or_the_reader_is_woken() {
        let (relay, (driver, of_driver), (reader, of_reader)) = (Relay::default(), counter(), counter());
        let woken = || (driver.0.swap(0, Ordering::Relaxed), reader.0.swap(0, Ordering::Relaxed));
        let below = relay.context().waker().clone();
        relay.set_driver(&of_driver);
        assert!(relay.has_news() && relay.take_news() && !relay.take_news());
        below.wake_by_ref();
        assert_eq!((relay.take_news(), woken()), (true, (1, 0)));
        relay.give_to_reader(&of_reader);
        below.wake_by_ref();
        assert_eq!((relay.take_news(), woken()), (true, (0, 1)));
        relay.give_to_driver();
        below.wake_by_ref();
        assert_eq!((relay.take_news(), woken()), (true, (1, 0)));
    }

    #[test]
    fn news_that_the_reader_leaves_are_the_drivers() {
        let (relay, (driver, of_driver), (_, of_reader)) = (Relay::default(), counter(), counter());
        let woken = || driver.0.swap(0, Ordering::Relaxed);
        relay.set_driver(&of_driver);
        relay.give_to_driver();
        assert_eq!(woken(), 0, "it has them already");
        for (leaves, expected) in [(true, 1), (false, 0)] {
            relay.give_to_reader(&of_reader);
            relay.wake();
            assert!(relay.take_news());
            if leaves {
                relay.keep_news();
            }
            relay.give_to_driver();
            assert_eq!(woken(), expected);
            assert_eq!(relay.take_news(), leaves);
        }
    }
}
