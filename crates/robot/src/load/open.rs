//! Open loop: requests are sent when they are due, regardless of earlier ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, nanos, yield_now};
use polygraph_traffic::{Arrivals, LoadCurve};

use super::interarrival::InterArrival;
use crate::group::RobotGroup;
use crate::settings::Load;

/// Number of overdue requests that are launched before replies and timers get their turn.
const LAUNCHES_IN_A_ROW: u32 = 16;

/// The schedule of one robot.
#[derive(Debug)]
enum Schedule<'a> {
    Poisson(Arrivals),
    Renewal(InterArrival<'a>),
    /// The robot does not send requests by the clock.
    None,
}

impl Schedule<'_> {
    fn is_due(&self) -> bool {
        !matches!(self, Schedule::Renewal(gaps) if !gaps.is_due())
    }
}

impl<L: Link> RobotGroup<L> {
    /// Launches the requests of all open-loop robots when they are due, until the pace stops them.
    pub(super) async fn run_open(self: Rc<Self>, start: Nanos) {
        let cx = &self.context;
        let curve = LoadCurve { launch_window: cx.settings.launch_window };
        let robots = 0..cx.settings.robots;
        let mut schedules: Vec<Schedule<'_>> = robots
            .clone()
            .map(|robot| match &cx.of(robot).profile().load {
                Load::Open { rate } => Schedule::Poisson(Arrivals::new(*rate)),
                Load::InterArrival(gaps) => Schedule::Renewal(InterArrival::new(gaps)),
                Load::Closed { .. } | Load::Passive => Schedule::None,
            })
            .collect();
        let next = |schedule: &mut Schedule<'_>, robot: usize, last: Nanos| {
            let rng = &mut self.robot(robot).arrivals;
            match schedule {
                Schedule::Poisson(arrivals) => start + nanos(arrivals.next(&curve, rng)),
                Schedule::Renewal(gaps) => gaps.next(last, &self.pace.borrow().load, rng),
                Schedule::None => Nanos::MAX,
            }
        };
        let open =
            |robot: &usize| matches!(cx.of(*robot).profile().load, Load::Open { .. } | Load::InterArrival(_));
        // Of launches at the same time, that of the robot with the lowest number comes first, so the sequence follows from the
        // seed alone.
        let mut agenda: BinaryHeap<_> =
            robots.filter(open).map(|i| Reverse((next(&mut schedules[i], i, start), i))).collect();
        let mut launched_in_a_row = 0;
        while let Some(&Reverse((due, robot))) = agenda.peek() {
            if due > cx.now() {
                cx.link.sleep_until(due).await;
                launched_in_a_row = 0;
            } else if launched_in_a_row == LAUNCHES_IN_A_ROW {
                yield_now().await;
                launched_in_a_row = 0;
            }
            launched_in_a_row += 1;
            if self.pace.borrow().stopped {
                return;
            }
            if due >= self.pace_end.get() {
                yield_now().await;
                continue;
            }
            agenda.pop();
            let is_due = schedules[robot].is_due();
            agenda.push(Reverse((next(&mut schedules[robot], robot, due), robot)));
            if is_due && self.sends(robot, due) {
                let request = self.next_request(robot, due);
                self.launch(robot, request);
            }
        }
    }
}
