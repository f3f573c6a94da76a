//! Closed loop: a robot sends its next request when all its transactions have ended.

use std::future::pending;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, nanos};
use polygraph_traffic::Distr;

use crate::connections::wait_queue::Waiter;
use crate::group::RobotGroup;

/// How often a robot that must not send checks whether it may again.
const CHECK_INTERVAL: Nanos = Nanos::from_millis(50);
/// All robots of a loop together check no more often than this.
const LOOP_CHECK_INTERVAL: Nanos = Nanos::new(20000);
/// A pause after a failure: a device that refuses at once must not turn a robot into a busy loop.
const FAILURE_PAUSE: Nanos = Nanos::from_millis(10);

impl<L: Link> RobotGroup<L> {
    /// Runs a closed-loop robot until the pace stops it. Before each request it pauses for the think time.
    pub(super) async fn run_closed(self: Rc<Self>, start: Nanos, robot: usize, think: Option<Distr>) {
        let cx = &self.context;
        let rest = CHECK_INTERVAL.max(cx.settings.robots as u64 * LOOP_CHECK_INTERVAL);
        let share = cx.of(robot).number() as f64;
        let delay = cx.settings.launch_window * share / cx.settings.all_robots() as f64;
        cx.link.sleep_until(start + nanos(delay)).await;
        let waiter = Waiter::default();
        loop {
            if let Some(think) = &think {
                let pause = think.sample(&mut self.robot(robot).rng);
                cx.link.sleep_until(cx.now() + nanos(pause)).await;
            }
            let now = cx.now();
            if self.pace.get().stopped {
                return;
            }
            if !self.sends(robot, now) {
                cx.link.sleep_until(now + rest).await;
                continue;
            }
            let mut request = self.next_request(robot, now);
            let failed = self.transact(robot, &mut request, now).await;
            while self.robot(robot).active > 0 {
                let queue = Rc::clone(self.completions.borrow_mut().entry(robot).or_default());
                queue.wait_with(&waiter, pending()).await;
            }
            if failed {
                cx.link.sleep_until(cx.now() + FAILURE_PAUSE).await;
            }
        }
    }
}
