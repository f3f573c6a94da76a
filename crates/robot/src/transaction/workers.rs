//! The tasks that carry out transactions. A task continues with the next transaction instead of ending.
//!
//! The state of a transaction's task is a few kilobytes. Creating a task for each transaction would cost a large part of the cost
//! of the transaction, so a task that has finished rests until there is another transaction. This also breaks a cycle of types:
//! transactions that follow from another one run in the same kind of task, and a task cannot contain itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::connections::hop::Hop;
use crate::connections::wait_queue::WaitQueue;
use crate::request::Request;

/// Maximum number of resting tasks. Additional tasks of a larger burst end after it.
pub const MAX_RESTING: usize = 1024;

/// The next job of a task.
#[derive(Debug)]
pub enum Job {
    /// The transaction of a request of this robot.
    Alone(usize, Request),
    /// The transactions in this robot's backlog that go to this peer.
    Pipelined(usize, Hop),
}

/// The tasks of a robot group.
#[derive(Debug, Default)]
pub struct Workers {
    /// Each job is for one task that was woken or is missing.
    jobs: RefCell<VecDeque<Job>>,
    /// Tasks without a job.
    pub resting: WaitQueue,
    /// Number of tasks to spawn.
    pub missing: Cell<usize>,
    /// The task that spawns them.
    pub spawner: WaitQueue,
}

impl Workers {
    /// Gives a job to a resting task, or to a new one.
    pub fn assign(&self, job: Job) {
        self.jobs.borrow_mut().push_back(job);
        if !self.resting.wake_last() {
            self.missing.set(self.missing.get() + 1);
            self.spawner.wake_first();
        }
    }

    /// The next job.
    pub fn next(&self) -> Option<Job> {
        self.jobs.borrow_mut().pop_front()
    }
}
