//! Closed loop: a robot sends its next request when all its transactions have ended.

use std::future::pending;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, nanos};
use polygraph_traffic::Distr;

use crate::connections::wait_queue::Waiter;
use crate::group::RobotGroup;
use crate::request::Request;
use crate::transaction::Ended;

/// How often a robot that must not send checks whether it may again.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);
/// All robots of a loop together check no more often than this.
const LOOP_CHECK_INTERVAL: Nanos = Nanos::new(20000);
/// A pause after a failure: a device that refuses at once must not turn a robot into a busy loop.
const FAILURE_PAUSE: Nanos = Nanos::from_millis(10);

impl<L: Link> RobotGroup<L> {
    /// Runs a closed-loop robot without think time until the pace stops it.
    pub(super) async fn run_busy(self: Rc<Self>, start: Nanos, robot: usize) {
        let transact = async |request: &mut Request, now| self.transact(robot, request, now).await;
        self.run_closed(start, robot, None, transact).await;
    }

    /// Runs a closed-loop robot with think time until the pace stops it. Most such robots are idle at any time, so the state of a
    /// transaction is boxed and takes no memory during a pause.
    pub(super) async fn run_pausing(self: Rc<Self>, start: Nanos, robot: usize, think: Distr) {
        let transact = async |request: &mut Request, now| Box::pin(self.transact(robot, request, now)).await;
        self.run_closed(start, robot, Some(think), transact).await;
    }

    /// Runs a closed-loop robot until the pace stops it. Before each request it pauses for the think time. `transact` carries out
    /// the transaction of a request that starts now.
    async fn run_closed(
        &self,
        start: Nanos,
        robot: usize,
        think: Option<Distr>,
        transact: impl AsyncFn(&mut Request, Nanos) -> Ended,
    ) {
        let cx = &self.context;
        let rest = CHECK_INTERVAL.max(cx.settings.robots as u64 * LOOP_CHECK_INTERVAL);
        let share = cx.of(robot).number() as f64;
        let delay = cx.settings.launch_window * share / cx.settings.all_robots() as f64;
        cx.link.sleep_until(start + nanos(delay)).await;
        let waiter = Waiter::default();
        // A request is due when the robot is free. The clock is read as rarely as possible: the end of the previous transaction
        // is known.
        let mut free = cx.now();
        loop {
            if let Some(think) = &think {
                let pause = think.sample(&mut self.robot(robot).rng);
                cx.link.sleep_until(free + nanos(pause)).await;
                free = cx.now();
            }
            if self.pace.borrow().stopped {
                return;
            }
            if !self.sends(robot, free) {
                cx.link.sleep_until(free + rest).await;
                free = cx.now();
                continue;
            }
            let ended = {
                let mut request = self.next_request(robot, free);
                transact(&mut request, cx.now()).await
            };
            free = ended.at;
            while self.robot(robot).active > 0 {
                let queue = Rc::clone(self.completions.borrow_mut().entry(robot).or_default());
                queue.wait_with(&waiter, pending()).await;
                free = cx.now();
            }
            if ended.failed {
                cx.link.sleep_until(cx.now() + FAILURE_PAUSE).await;
                free = cx.now();
            }
        }
    }
}
