//! Waiting for something that only another task of the same loop can bring about.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A place in a queue.
#[derive(Debug, Default)]
struct Ticket {
    called: Cell<Option<Waited>>,
    /// Kept for the next time.
    waker: RefCell<Option<Waker>>,
}

impl Ticket {
    fn call(&self, how: Waited) {
        self.called.set(Some(how));
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn remember(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}

/// What a task waits with that waits again and again, so that it costs no memory each time.
#[derive(Debug, Default)]
pub struct Waiter(Rc<Ticket>);

/// A queue of tasks that wait to be called, first come, first served.
#[derive(Debug, Default)]
pub struct WaitQueue(RefCell<VecDeque<Rc<Ticket>>>);

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The task was called.
    Called,
    /// There is nothing to wait for any more.
    CalledOff,
    /// Time was over.
    TimedOut,
}

impl WaitQueue {
    /// Number of tasks that wait.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Calls the first task that waits. Returns false if nobody does.
    pub fn call(&self) -> bool {
        let first = self.0.borrow_mut().pop_front();
        first.inspect(|ticket| ticket.call(Waited::Called)).is_some()
    }

    /// Calls the task that began to wait last, if any does: its memory is still warm.
    pub fn call_last(&self) -> bool {
        let last = self.0.borrow_mut().pop_back();
        last.inspect(|ticket| ticket.call(Waited::Called)).is_some()
    }

    /// Ends all waiting.
    pub fn call_off(&self) {
        self.0.borrow_mut().drain(..).for_each(|ticket| ticket.call(Waited::CalledOff));
    }

    /// Waits to be called, or until `timeout` completes.
    pub async fn wait(&self, timeout: impl Future<Output = ()>) -> Waited {
        self.wait_with(&Waiter::default(), timeout).await
    }

    /// The same, with a place that nobody else waits with.
    pub async fn wait_with(&self, Waiter(ticket): &Waiter, timeout: impl Future<Output = ()>) -> Waited {
        ticket.called.set(None);
        self.0.borrow_mut().push_back(Rc::clone(ticket));
        let mut timeout = pin!(timeout);
        let waited = poll_fn(|cx| {
            if let Some(how) = ticket.called.get() {
                return Poll::Ready(how);
            }
            ticket.remember(cx.waker());
            timeout.as_mut().poll(cx).map(|()| Waited::TimedOut)
        })
        .await;
        if waited == Waited::TimedOut {
            self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, ticket));
        }
        waited
    }
}
