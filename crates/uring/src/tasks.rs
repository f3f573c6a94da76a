//! The tasks of one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_task::{Builder, Runnable, Task};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;

thread_local! {
    /// The number of the tasks that belong to this thread; 0: none.
    static OWNED: Cell<usize> = const { Cell::new(0) };
    /// Tasks of this thread that are ready to run.
    static READY: RefCell<VecDeque<Runnable<usize>>> = const { RefCell::new(VecDeque::new()) };
}

/// The number of the last [`Tasks`] of the process.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Runs futures on the thread that created it, until [`Tasks::end`]. Clones are handles to the same tasks.
#[derive(Clone, Debug)]
pub struct Tasks(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// All tasks, also those that wait.
    all: RefCell<Slab<Task<(), usize>>>,
    remote: Arc<Remote>,
}

/// Where other threads put the tasks that they wake.
#[derive(Debug)]
struct Remote {
    number: usize,
    /// Woken tasks; `None` after the end of the loop.
    woken: Mutex<Option<Vec<Runnable<usize>>>>,
    /// Counts up with each of them, to end the wait of the loop.
    bell: OwnedFd,
}

impl Tasks {
    /// No tasks yet.
    ///
    /// # Errors
    /// If the system provides no event descriptor.
    ///
    /// # Panics
    /// If the thread already has tasks.
    pub fn new() -> io::Result<Tasks> {
        assert_eq!(OWNED.get(), 0, "one loop at a time runs on a thread");
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        OWNED.set(number);
        let remote = Remote { number, woken: Mutex::new(Some(Vec::new())), bell };
        Ok(Tasks(Rc::new(Inner { all: RefCell::default(), remote: Arc::new(remote) })))
    }

    /// The descriptor that becomes readable when another thread wakes a task.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.0.remote.bell.as_fd()
    }

    /// Adds a task, which is ready to run.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut all = self.0.all.borrow_mut();
        let entry = all.vacant_entry();
        let remote = Arc::clone(&self.0.remote);
        let schedule = move |runnable| remote.schedule(runnable);
        let (runnable, task) = Builder::new().metadata(entry.key()).spawn_local(|_| future, schedule);
        entry.insert(task);
        drop(all);
        runnable.schedule();
    }

    /// Runs the tasks that are ready now, each once. Tasks that they wake are ready for the next call. Returns whether there are
    /// any. A panic ends its task; the panic hook has reported it.
    pub fn run_ready(&self) -> bool {
        let ready = READY.with_borrow(VecDeque::len);
        for _ in 0..ready {
            let Some(runnable) = READY.with_borrow_mut(VecDeque::pop_front) else { break };
            let key = *runnable.metadata();
            let _ = catch_unwind(AssertUnwindSafe(|| runnable.run()));
            let mut all = self.0.all.borrow_mut();
            if all.get(key).is_some_and(Task::is_finished) {
                drop(all.remove(key));
            }
        }
        self.has_ready()
    }

    /// Whether a task is ready.
    pub fn has_ready(&self) -> bool {
        READY.with_borrow(|ready| !ready.is_empty())
    }

    /// Drops all tasks with their futures. Tasks that are spawned or woken later never run, and other tasks can be created on the
    /// thread.
    pub fn end(&self) {
        // Dropping a handle cancels its task, which makes it ready, and dropping what is ready drops the future. Futures may
        // wake each other meanwhile.
        loop {
            let tasks: Vec<_> = self.0.all.borrow_mut().drain().collect();
            drop(tasks);
            self.0.remote.collect();
            match READY.with_borrow_mut(VecDeque::pop_front) {
                Some(runnable) => drop(runnable),
                None => break,
            }
        }
        *self.0.remote.woken.lock().unwrap_or_else(PoisonError::into_inner) = None;
        OWNED.set(0);
    }

    /// Makes the tasks ready that other threads have woken.
    pub fn collect_remote(&self) {
        self.0.remote.collect();
    }
}

impl Remote {
    fn schedule(&self, runnable: Runnable<usize>) {
        let mut runnable = Some(runnable);
        let owned = OWNED.try_with(Cell::get).is_ok_and(|number| number == self.number);
        if owned {
            // The queue is gone if the thread is ending; then the task ends up with those of other threads.
            let _ = READY.try_with(|ready| ready.borrow_mut().extend(runnable.take()));
        }
        let Some(runnable) = runnable else { return };
        match self.woken.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(woken) => woken.push(runnable),
            // Its future may be dropped only by the thread of the loop, which is gone.
            None => return std::mem::forget(runnable),
        }
        // The counter never overflows in practice, and then the loop is awake anyway.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn collect(&self) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(woken) = woken.as_mut()
            && !woken.is_empty()
        {
            READY.with_borrow_mut(|ready| ready.extend(woken.drain(..)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::{Poll, Waker};

    /// Completes the second time that it is polled; until then its waker is in the cell.
    async fn wait(waker: &RefCell<Option<Waker>>) {
        let mut polled = false;
        poll_fn(|cx| match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => {
                *waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await;
    }

    #[test]
    fn tasks_run_when_they_are_woken_also_by_other_threads() {
        let tasks = Tasks::new().unwrap();
        let (waker, steps) = (Rc::new(RefCell::new(None)), Rc::new(Cell::new(0)));
        let (of_task, counted) = (Rc::clone(&waker), Rc::clone(&steps));
        tasks.spawn(async move {
            for _ in 0..2 {
                wait(&of_task).await;
                counted.set(counted.get() + 1);
            }
        });
        assert!(!tasks.run_ready());
        waker.take().unwrap().wake();
        assert!(tasks.has_ready());
        assert!(!tasks.run_ready());
        assert_eq!(steps.get(), 1);
        let remote: Waker = waker.take().unwrap();
        std::thread::spawn(move || remote.wake()).join().unwrap();
        assert!(!tasks.has_ready());
        let mut count = [0; 8];
        assert_eq!(rustix::io::read(tasks.bell(), &mut count), Ok(8));
        tasks.collect_remote();
        tasks.run_ready();
        assert_eq!((steps.get(), tasks.0.all.borrow().len()), (2, 0));
        tasks.end();
    }

    #[test]
    fn the_end_drops_what_waits_and_a_panic_ends_one_task() {
        let tasks = Tasks::new().unwrap();
        let (waker, held) = (Rc::new(RefCell::new(None)), Rc::new(()));
        for _ in 0..3 {
            let (waker, held) = (Rc::clone(&waker), Rc::clone(&held));
            tasks.spawn(async move {
                wait(&waker).await;
                drop(held);
            });
        }
        tasks.spawn(async { panic!("on purpose") });
        tasks.run_ready();
        assert_eq!((Rc::strong_count(&held), tasks.0.all.borrow().len()), (4, 3));
        tasks.end();
        assert_eq!(Rc::strong_count(&held), 1);
        let late: Waker = waker.take().unwrap();
        std::thread::spawn(move || late.wake()).join().unwrap();
        // The thread is free for other tasks.
        Tasks::new().unwrap().end();
    }
}
