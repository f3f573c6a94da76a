//! The tasks of a virtual loop. Tasks run in the order in which they became ready.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use slab::Slab;

/// All tasks.
#[derive(Default)]
pub struct Tasks {
    /// `None` while a task runs.
    slots: RefCell<Slab<Option<Task>>>,
    ready: Arc<Ready>,
    /// Tasks that were ready before those in `ready`.
    first: RefCell<VecDeque<usize>>,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    call: Arc<Call>,
    waker: Waker,
}

/// Numbers of the tasks that are ready. Wakers must be `Send` although nothing here leaves its thread.
#[derive(Default)]
struct Ready(Mutex<VecDeque<usize>>);

impl Ready {
    fn queue(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waker of a task: it puts the task into the queue of ready tasks.
struct Call {
    task: usize,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The first look is cheaper, and many wakes find the task in the queue.
        if !self.queued.load(Ordering::Relaxed) && !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.queue().push_back(self.task);
        }
    }
}

impl Tasks {
    /// Adds a task, which is ready at once.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.vacant_entry();
        let ready = Arc::clone(&self.ready);
        let call = Arc::new(Call { task: slot.key(), queued: AtomicBool::new(false), ready });
        let waker = Waker::from(Arc::clone(&call));
        waker.wake_by_ref();
        slot.insert(Some(Task { future: Box::pin(task), call, waker }));
    }

    /// Runs tasks until all wait, or for this many turns. Returns true if all wait.
    pub fn run(&self, turns: u64) -> bool {
        for _ in 0..turns {
            let Some(number) = self.next() else { return true };
            // A waker may outlive its task; another task with the same number may then be polled for nothing.
            let taken = self.slots.borrow_mut().get_mut(number).and_then(Option::take);
            let Some(mut task) = taken else { continue };
            task.call.queued.store(false, Ordering::Relaxed);
            match task.future.as_mut().poll(&mut Context::from_waker(&task.waker)) {
                Poll::Pending => self.slots.borrow_mut()[number] = Some(task),
                Poll::Ready(()) => drop(self.slots.borrow_mut().remove(number)),
            }
        }
        false
    }

    /// Takes the number of the next task that is ready. The lock is taken once for all that have become ready meanwhile.
    fn next(&self) -> Option<usize> {
        let mut first = self.first.borrow_mut();
        if first.is_empty() {
            std::mem::swap(&mut *first, &mut *self.ready.queue());
        }
        first.pop_front()
    }

    /// Drops all tasks, whatever their state.
    pub fn clear(&self) {
        // Values that tasks own may wake or spawn other tasks when they are dropped.
        while !self.slots.borrow().is_empty() {
            let tasks = std::mem::take(&mut *self.slots.borrow_mut());
            drop(tasks);
        }
        self.ready.queue().clear();
        self.first.borrow_mut().clear();
    }
}
