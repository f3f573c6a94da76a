//! The tasks of a virtual loop. Tasks run in the order in which they became ready.
//!
//! A waker is only a number, and the queues of ready tasks belong to the thread. So waking, which happens several times in a transaction,
//! touches no memory of the task: with thousands of tasks, that is seldom in the caches.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use slab::Slab;

thread_local! {
    /// The ready tasks of each loop of the thread; there is seldom more than one.
    static READY: RefCell<Vec<Ready>> = const { RefCell::new(Vec::new()) };
}

/// Number of the next loop, of whichever thread.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// What a waker tells: 16 bits for the loop, 16 for the task among those that had its place one after the other, 32 for the place.
#[derive(Clone, Copy)]
struct Call {
    number: u16,
    age: u16,
    place: u32,
}

// All of it is in an address.
const _: () = assert!(usize::BITS == 64);

impl Call {
    fn of(data: *const ()) -> Call {
        let bits = data.addr() as u64;
        Call { number: (bits >> 48) as u16, age: (bits >> 32) as u16, place: bits as u32 }
    }

    fn waker(self) -> Waker {
        let bits = u64::from(self.number) << 48 | u64::from(self.age) << 32 | u64::from(self.place);
        let data = ptr::without_provenance(bits as usize);
        // SAFETY: the functions use the address as a number and never as a pointer.
        unsafe { Waker::from_raw(RawWaker::new(data, &WAKER)) }
    }
}

/// The ready tasks of a loop.
struct Ready {
    number: u16,
    /// Their places.
    queue: VecDeque<u32>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    age: u16,
    /// Whether the task is in the queue.
    queued: bool,
}

impl Ready {
    fn push(&mut self, call: Call) {
        // A waker may outlive its task; another task at the same place may then be polled for nothing. A waker that outlives 65,536 loops
        // may name a place that there is not.
        let Some(place) = self.places.get_mut(call.place as usize) else { return };
        if place.age != call.age || !std::mem::replace(&mut place.queued, true) {
            self.queue.push_back(call.place);
        }
    }

    /// A new task, which is ready, at a place.
    fn enter(&mut self, place: u32) {
        if place as usize >= self.places.len() {
            self.places.resize(place as usize + 1, Place::default());
        }
        let age = self.places[place as usize].age;
        self.push(Call { number: self.number, age, place });
    }

    /// The task at a place is over.
    fn leave(&mut self, place: u32) {
        let age = self.places[place as usize].age.wrapping_add(1);
        self.places[place as usize] = Place { age, queued: false };
    }

    fn pop(&mut self) -> Option<Call> {
        let place = self.queue.pop_front()?;
        let Place { age, queued } = &mut self.places[place as usize];
        *queued = false;
        Some(Call { number: self.number, age: *age, place })
    }
}

/// The functions of wakers. Threads other than that of the loop know nothing of its tasks and wake none of them.
static WAKER: RawWakerVTable = RawWakerVTable::new(|data| RawWaker::new(data, &WAKER), wake, wake, |_| ());

fn wake(data: *const ()) {
    let call = Call::of(data);
    // Values of the thread that own wakers may be dropped after the queues.
    let _ = READY.try_with(|loops| {
        let mut loops = loops.borrow_mut();
        if let Some(ready) = loops.iter_mut().rev().find(|ready| ready.number == call.number) {
            ready.push(call);
        }
    });
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// All tasks.
pub struct Tasks {
    /// The number of the loop in the thread.
    number: u16,
    /// `None` while a task runs.
    slots: RefCell<Slab<Option<Task>>>,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        READY.with_borrow_mut(|loops| {
            loops.push(Ready { number, queue: VecDeque::new(), places: Vec::new() });
        });
        Tasks { number, slots: RefCell::default() }
    }
}

impl Tasks {
    /// Adds a task, which is ready at once.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let place = self.slots.borrow_mut().insert(Some(Box::pin(task)));
        self.with_ready(|ready| ready.enter(place as u32));
    }

    /// Runs tasks until all wait, or for this many turns. Returns true if all wait.
    pub fn run(&self, turns: u64) -> bool {
        for _ in 0..turns {
            let Some(call) = self.with_ready(Ready::pop) else { return true };
            let place = call.place as usize;
            let taken = self.slots.borrow_mut().get_mut(place).and_then(Option::take);
            let Some(mut task) = taken else { continue };
            match task.as_mut().poll(&mut Context::from_waker(&call.waker())) {
                Poll::Pending => self.slots.borrow_mut()[place] = Some(task),
                Poll::Ready(()) => {
                    self.with_ready(|ready| ready.leave(call.place));
                    drop(self.slots.borrow_mut().remove(place));
                }
            }
        }
        false
    }

    fn with_ready<R>(&self, use_it: impl FnOnce(&mut Ready) -> R) -> R {
        READY.with_borrow_mut(|loops| {
            let own = loops.iter_mut().rev().find(|ready| ready.number == self.number);
            use_it(own.expect("a loop that exists, on its own thread"))
        })
    }

    /// Drops all tasks, whatever their state.
    pub fn clear(&self) {
        // Values that tasks own may wake or spawn other tasks when they are dropped.
        while !self.slots.borrow().is_empty() {
            let tasks = std::mem::take(&mut *self.slots.borrow_mut());
            drop(tasks);
        }
        self.with_ready(|ready| while ready.pop().is_some() {});
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        // The queues are gone if the thread is ending.
        let _ = READY.try_with(|loops| loops.borrow_mut().retain(|ready| ready.number != self.number));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Waits until its waker, which it leaves in `waker`, is used; then counts.
    async fn wait(waker: Rc<RefCell<Option<Waker>>>, woken: Rc<Cell<u32>>) {
        let mut polled = false;
        std::future::poll_fn(|cx| match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => {
                *waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await;
        woken.set(woken.get() + 1);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "wakers may leave their thread")]
    fn wakers_wake_tasks_of_their_own_loop_and_thread_only() {
        let (first, second) = (Tasks::default(), Tasks::default());
        let (waker, woken): (Rc<RefCell<Option<Waker>>>, Rc<Cell<u32>>) = Default::default();
        // The other task has the same number in its loop.
        second.spawn(wait(Rc::default(), Rc::clone(&woken)));
        first.spawn(wait(Rc::clone(&waker), Rc::clone(&woken)));
        let run = || assert!(first.run(10) && second.run(10));
        run();
        let waker = waker.take().expect("a task that was polled");
        let sent = waker.clone();
        std::thread::spawn(move || sent.wake()).join().expect("a thread that wakes nothing");
        run();
        assert_eq!(woken.get(), 0);
        waker.wake_by_ref();
        run();
        assert_eq!(woken.get(), 1);
        // The task and then the loop are gone.
        waker.wake_by_ref();
        run();
        drop(first);
        waker.wake();
        assert!(second.run(10));
        assert_eq!(woken.get(), 1);
    }
}
