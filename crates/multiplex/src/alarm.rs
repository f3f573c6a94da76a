//! The timer of a task that drives connections: it waits for a time that changes with every turn.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use polygraph_link::Nanos;

/// The timer, without the future that sleeps, which stays where the task has pinned it.
///
/// Times move on with nearly every turn, so an alarm for an earlier time than the wanted one stays as it is: the task wakes up for
/// nothing once, which costs less than a new timer in each turn.
#[derive(Debug)]
pub struct Alarm {
    /// For when it is set; [`Nanos::MAX`] if it is not.
    set_for: Nanos,
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm { set_for: Nanos::MAX }
    }
}

impl Alarm {
    /// Sets the alarm for `at`, with [`Nanos::MAX`] for never, and is ready at the earliest time for which it was set since it was ready
    /// last. `sleep` is the same place in all calls, empty at first; `sleep_until` makes the future for a time.
    pub fn poll<F: Future>(
        &mut self,
        mut sleep: Pin<&mut Option<F>>,
        at: Nanos,
        sleep_until: impl FnOnce(Nanos) -> F,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if at < self.set_for {
            self.set_for = at;
            sleep.set(Some(sleep_until(at)));
        }
        match sleep.as_mut().as_pin_mut().map(|sleep| sleep.poll(cx)) {
            Some(Poll::Ready(_)) => {
                self.set_for = Nanos::MAX;
                sleep.set(None);
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Ready, ready};
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_future_is_made_anew_only_for_an_earlier_time() {
        let mut cx = Context::from_waker(Waker::noop());
        let (made, mut alarm) = (Cell::new(0), Alarm::default());
        let mut sleep = pin!(None::<std::future::Pending<()>>);
        for (at, expected) in
            [(Nanos::MAX, 0), (Nanos::new(5), 1), (Nanos::new(7), 1), (Nanos::MAX, 1), (Nanos::new(3), 2)]
        {
            let make = |_| {
                made.set(made.get() + 1);
                std::future::pending()
            };
            assert!(alarm.poll(sleep.as_mut(), at, make, &mut cx).is_pending());
            assert_eq!(made.get(), expected, "{at:?}");
        }
        let mut sleep = pin!(None::<Ready<()>>);
        assert!(Alarm::default().poll(sleep.as_mut(), Nanos::new(1), |_| ready(()), &mut cx).is_ready());
        assert!(sleep.is_none());
    }
}
