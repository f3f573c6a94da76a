//! A queue of tasks that wait for other tasks of the same loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// Another task woke the waiter.
    Woken,
    /// There is nothing left to wait for.
    Cancelled,
    /// The timeout has expired.
    TimedOut,
}

#[derive(Debug, Default)]
struct State {
    end: Cell<Option<WaitEnd>>,
    /// The waker is kept for the next wait.
    waker: RefCell<Option<Waker>>,
}

impl State {
    fn wake(&self, end: WaitEnd) {
        self.end.set(Some(end));
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn keep(&self, waker: &Waker) {
        let mut kept = self.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }
}

/// A waiting task. A task that waits repeatedly can reuse its waiter without further allocations.
#[derive(Debug, Default)]
pub struct Waiter(Rc<State>);

/// A queue of waiting tasks, first come, first served.
#[derive(Debug, Default)]
pub struct WaitQueue(RefCell<VecDeque<Rc<State>>>);

impl WaitQueue {
    /// Number of waiting tasks.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Wakes the task that has waited longest. Returns whether there was one.
    pub fn wake_first(&self) -> bool {
        let first = self.0.borrow_mut().pop_front();
        first.inspect(|state| state.wake(WaitEnd::Woken)).is_some()
    }

    /// Wakes the task that started to wait last, whose memory is most likely in the processor's caches. Returns whether there was
    /// one.
    pub fn wake_last(&self) -> bool {
        let last = self.0.borrow_mut().pop_back();
        last.inspect(|state| state.wake(WaitEnd::Woken)).is_some()
    }

    /// Wakes all tasks, because there is nothing left to wait for.
    pub fn cancel_all(&self) {
        self.0.borrow_mut().drain(..).for_each(|state| state.wake(WaitEnd::Cancelled));
    }

    /// Waits until another task wakes this one, or until `timeout` completes.
    pub async fn wait(&self, timeout: impl Future<Output = ()>) -> WaitEnd {
        self.wait_with(&Waiter::default(), timeout).await
    }

    /// Like [`WaitQueue::wait`], with a waiter that no other task uses at the same time.
    pub async fn wait_with(&self, Waiter(state): &Waiter, timeout: impl Future<Output = ()>) -> WaitEnd {
        state.end.set(None);
        self.0.borrow_mut().push_back(Rc::clone(state));
        let mut timeout = pin!(timeout);
        let end = poll_fn(|cx| {
            if let Some(end) = state.end.get() {
                return Poll::Ready(end);
            }
            state.keep(cx.waker());
            timeout.as_mut().poll(cx).map(|()| WaitEnd::TimedOut)
        })
        .await;
        if end == WaitEnd::TimedOut {
            self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, state));
        }
        end
    }
}
