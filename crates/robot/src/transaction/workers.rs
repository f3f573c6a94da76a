//! Who carries out transactions: tasks that go on to the next one instead of ending.
//!
//! The task of a transaction is a few kilobytes of state. Making one for each would cost a good part of what the
//! transaction itself does, so a task that is through rests until there is another one. It also breaks a circle:
//! what follows from a transaction is carried out by the same kind of task, and a task cannot contain itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::Link;

use crate::connections::wait_queue::{WaitQueue, Waiter};
use crate::group::RobotGroup;
use crate::request::generator::Request;

/// Tasks that rest, at most: those of a burst beyond that end with it.
const MAX_RESTING: usize = 1024;

/// What a worker does next.
#[derive(Debug)]
enum Job {
    /// One transaction of the robot.
    One(usize, Request),
    /// Those of the robot's backlog that go the same way.
    Together(usize, SocketAddr),
}

/// The workers of a group.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// Each is for one worker that was called or is missing.
    jobs: RefCell<VecDeque<Job>>,
    resting: WaitQueue,
    /// Workers that have to be made, and who makes them.
    missing: Cell<usize>,
    maker: WaitQueue,
}

impl Workers {
    fn assign(&self, job: Job) {
        self.jobs.borrow_mut().push_back(job);
        if !self.resting.call_last() {
            self.missing.set(self.missing.get() + 1);
            self.maker.call();
        }
    }
}

impl<L: Link> RobotGroup<L> {
    /// Begins a transaction as a task of its own. It counts as running from now on, not only from its first turn.
    pub(crate) fn begin(&self, robot: usize, request: Request) {
        self.robots()[robot].active += 1;
        let job = match request.hop {
            Some(hop) if self.profile(robot).pipeline.is_some() => {
                self.backlog(robot).push(request);
                Job::Together(robot, hop)
            }
            _ => Job::One(robot, request),
        };
        self.workers.assign(job);
    }

    /// Makes workers when there are not enough.
    pub(crate) async fn make_workers(self: Rc<Self>) {
        loop {
            for _ in 0..self.workers.missing.take() {
                self.link.spawn(Rc::clone(&self).work());
            }
            self.workers.maker.wait(pending()).await;
        }
    }

    async fn work(self: Rc<Self>) {
        let place = Waiter::default();
        loop {
            let Some(job) = self.workers.jobs.borrow_mut().pop_front() else { return };
            let robot = match job {
                Job::One(robot, mut request) => {
                    let now = self.now();
                    self.transact(robot, &mut request, now).await;
                    robot
                }
                Job::Together(robot, hop) => {
                    self.transact_together(robot, hop).await;
                    robot
                }
            };
            self.end_one(robot);
            if self.workers.resting.len() >= MAX_RESTING {
                return;
            }
            self.workers.resting.wait_with(&place, pending()).await;
        }
    }
}
