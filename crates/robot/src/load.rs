//! When robots launch requests, and which.

pub mod interarrival;
pub mod pace;
pub mod session;

use std::cell::RefMut;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND, nanos, yield_now};
use polygraph_traffic::{Arrivals, Distr, LoadCurve, Oid, Random};

use crate::connections::wait_queue::Waiter;
use crate::group::RobotGroup;
use crate::load::interarrival::InterArrival;
use crate::load::session::{Change, SessionState};
use crate::request::generator::{Factors, Request};
use crate::robot::Robot;
use crate::settings::{Load, Profile};

/// So many overdue requests are launched before replies and timers get their turn.
const LAUNCHES_IN_A_ROW: u32 = 16;
/// How often a robot that may not launch looks whether it may again.
const PAUSE: Nanos = SECOND / 20;
/// The robots of a loop look no more often than this lets them all together.
const LOOK: Nanos = SECOND / 50_000;

/// When a robot launches requests.
#[derive(Debug)]
enum Clock<'a> {
    Poisson(Arrivals),
    Renewal(InterArrival<'a>),
    /// Not by the clock.
    None,
}

impl Clock<'_> {
    fn is_due(&self) -> bool {
        !matches!(self, Clock::Renewal(gaps) if !gaps.is_due())
    }
}

impl<L: Link> RobotGroup<L> {
    /// Runs the robots from `start` until the pace stops them. Transactions that are running then go on as tasks
    /// of the link.
    pub async fn run(self: Rc<Self>, start: Nanos) {
        self.link.spawn(Rc::clone(&self).make_workers());
        if self.settings.share_phases {
            self.link.spawn(Rc::clone(&self).keep_in_touch());
        }
        for robot in 0..self.settings.robots {
            if self.profile(robot).session.is_some() {
                self.private(robot).session = Some(SessionState::new(start));
            }
            if let Load::Closed { think } = self.profile(robot).load.clone() {
                self.link.spawn(Rc::clone(&self).run_closed(start, robot, think));
            }
        }
        self.run_open(start).await;
    }

    /// Launches requests when they are due, whatever became of earlier ones.
    pub(crate) async fn run_open(self: Rc<Self>, start: Nanos) {
        let curve = LoadCurve { launch_window: self.settings.launch_window };
        let mut clocks: Vec<Clock<'_>> = (0..self.settings.robots)
            .map(|robot| match &self.profile(robot).load {
                Load::Open { rate } => Clock::Poisson(Arrivals::new(*rate)),
                Load::InterArrival(gaps) => Clock::Renewal(InterArrival::new(gaps)),
                Load::Closed { .. } | Load::Passive => Clock::None,
            })
            .collect();
        let next = |clock: &mut Clock<'_>, robot: usize, last: Nanos| {
            let rng = &mut self.robots()[robot].arrivals;
            match clock {
                Clock::Poisson(arrivals) => start + nanos(arrivals.next(&curve, rng)),
                Clock::Renewal(gaps) => gaps.next(last, &self.pace.get().load, rng),
                Clock::None => Nanos::MAX,
            }
        };
        // Ties are broken by robot number, so the request of launches follows from the seed alone.
        let open =
            |robot: &usize| matches!(self.profile(*robot).load, Load::Open { .. } | Load::InterArrival(_));
        let mut agenda: BinaryHeap<_> = (0..self.settings.robots)
            .filter(open)
            .map(|i| Reverse((next(&mut clocks[i], i, start), i)))
            .collect();
        let mut launched_in_a_row = 0;
        while let Some(&Reverse((due, robot))) = agenda.peek() {
            if due > self.link.now() {
                self.link.sleep_until(due).await;
                launched_in_a_row = 0;
            } else if launched_in_a_row == LAUNCHES_IN_A_ROW {
                yield_now().await;
                launched_in_a_row = 0;
            }
            launched_in_a_row += 1;
            if self.pace.get().stopped {
                return;
            }
            if due >= self.paced_until.get() {
                yield_now().await;
                continue;
            }
            agenda.pop();
            let is_due = clocks[robot].is_due();
            agenda.push(Reverse((next(&mut clocks[robot], robot, due), robot)));
            if is_due && self.launches(robot, due) {
                let request = self.request(robot, due);
                self.begin(robot, request);
            }
        }
    }

    /// Launches the next request when everything before has ended.
    pub(crate) async fn run_closed(self: Rc<Self>, start: Nanos, robot: usize, think: Option<Distr>) {
        let number = (self.settings.first_robot + robot) as f64;
        let rest = PAUSE.max(self.settings.robots as u64 * LOOK);
        let wait = self.settings.launch_window * number / self.settings.all_robots() as f64;
        self.link.sleep_until(start + nanos(wait)).await;
        let place = Waiter::default();
        loop {
            if let Some(think) = &think {
                let pause = think.sample(&mut self.robots()[robot].rng);
                self.link.sleep_until(self.link.now() + nanos(pause)).await;
            }
            let now = self.link.now();
            if self.pace.get().stopped {
                return;
            }
            if !self.launches(robot, now) {
                self.link.sleep_until(now + rest).await;
                continue;
            }
            let mut request = self.request(robot, now);
            let failed = self.transact(robot, &mut request, now).await;
            while self.robots()[robot].active > 0 {
                let queue = Rc::clone(self.quiet.borrow_mut().entry(robot).or_default());
                queue.wait_with(&place, std::future::pending()).await;
            }
            if failed {
                // A device that refuses at once must not turn a robot into a busy loop.
                self.link.sleep_until(self.link.now() + SECOND / 100).await;
            }
        }
    }

    /// Whether a robot launches a request that is due now.
    pub(crate) fn launches(&self, robot: usize, due: Nanos) -> bool {
        let pace = self.pace.get();
        let profile = self.profile(robot);
        let load = pace.load.at(due);
        let thinned = match profile.load {
            // Leaving out arrivals with the complementary probability makes a Poisson stream a slower one. It is drawn
            // whatever the load, or the moment at which a phase begins would decide on all arrivals after it.
            Load::Open { .. } => self.robots()[robot].arrivals.unit() >= load,
            Load::Closed { .. } => self.robots()[robot].rank as f64 >= load,
            Load::InterArrival(_) | Load::Passive => false,
        };
        if pace.stopped || thinned || !self.is_active(robot, due) {
            return false;
        }
        if profile.session.is_some() && !self.is_busy(robot, profile, due) {
            return false;
        }
        matches!(profile.load, Load::Closed { .. }) || !self.robots()[robot].leaves_out(due)
    }

    /// Whether the robot is among those that the populus factor lets live.
    pub fn is_active(&self, robot: usize, at: Nanos) -> bool {
        f64::from(self.robots()[robot].rank) < self.pace.get().populus.at(at)
    }

    /// Whether the robot's session is in a busy period.
    pub(crate) fn is_busy(&self, robot: usize, profile: &Profile, now: Nanos) -> bool {
        let Some(session) = &profile.session else { return true };
        let change = {
            let robot = &mut self.robots()[robot];
            let Some(period) = robot.private.as_mut().and_then(|private| private.session.as_mut()) else {
                return true;
            };
            period.advance(session, now, &mut robot.rng)
        };
        if matches!(change, Change::BecameIdle(_) | Change::BecameBusy) {
            self.cancel_waiting(robot);
            self.close_all_idle(robot);
            let mut private = self.private(robot);
            private.received.clear();
            if let Some(jar) = &mut private.jar {
                jar.end_session();
            }
        }
        if change == Change::BecameBusy {
            self.renew_credentials(robot);
        }
        matches!(change, Change::Busy | Change::BecameBusy)
    }

    /// Whether the robot's session is idle: its connections are not kept, and nothing waits for one.
    pub fn is_resting(&self, robot: usize) -> bool {
        let private = RefMut::map(self.robots(), |robots| &mut robots[robot].private);
        let Some(period) = private.as_ref().and_then(|private| private.session.as_ref()) else {
            return false;
        };
        period.is_idle(self.now())
    }

    pub(crate) fn request(&self, robot: usize, due: Nanos) -> Request {
        self.freeze_by(due);
        let pace = self.pace.get();
        let factors = Factors { recur: pace.recur.at(due), special: pace.special.at(due) };
        let mut robots = self.robots.borrow_mut();
        let member = &mut robots[robot];
        let mut request = self.generator.borrow_mut().request(
            &self.settings,
            self.kind(robot),
            factors,
            due,
            &mut member.rng,
        );
        // Robots of a closed loop never make up for them.
        if !matches!(self.profile(robot).load, Load::Closed { .. }) {
            member.owe(request.parts_from, request.planned);
        }
        drop(robots);
        if request.method.has_body() {
            request.sends = self.request_body(robot, &request);
        }
        request
    }

    /// The object that a request sends: an earlier one of the robot's own, or a new one (reference: models.md,
    /// section 10.1).
    pub(crate) fn request_body(&self, robot: usize, request: &Request) -> Option<Oid> {
        let profile = self.profile(robot);
        let contents = match request.method {
            polygraph_traffic::Method::Post => &profile.post,
            _ => &profile.upload,
        };
        let fresh = self.private(robot).world.is_none().then(|| self.generator.borrow_mut().fresh_id());
        let mut robots = self.robots.borrow_mut();
        let Robot { rng, private, .. } = &mut robots[robot];
        let private = private.get_or_insert_default();
        let kind = *contents.draw(rng)?;
        let world = *private.world.get_or_insert(fresh.unwrap_or_default());
        if !private.sent.iter().any(|(known, _)| *known == kind.0) {
            private.sent.push((kind.0, 0));
        }
        let (_, last) = private.sent.iter_mut().find(|(known, _)| *known == kind.0)?;
        let name = if *last > 0 && rng.event(profile.body_recurrence) {
            1 + rng.below(*last)
        } else {
            *last += 1;
            *last
        };
        Some(Oid { world, kind, name })
    }
}
