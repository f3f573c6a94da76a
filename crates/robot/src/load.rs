//! When robots send requests.

mod closed;
pub mod interarrival;
mod open;
pub mod pace;
pub mod session;

use std::rc::Rc;

use polygraph_link::{Link, Nanos};
use polygraph_traffic::{Method, Oid, Random};

use self::session::{SessionChange, SessionState};
use crate::group::RobotGroup;
use crate::request::Request;
use crate::request::generator::Factors;
use crate::robot::Robot;
use crate::settings::{Load, Profile};

impl<L: Link> RobotGroup<L> {
    /// Runs the robots from `start` until the pace stops them. Transactions that are running then continue as tasks of
    /// the link.
    pub async fn run(self: Rc<Self>, start: Nanos) {
        let link = &self.context.link;
        link.spawn(Rc::clone(&self).spawn_workers());
        if self.context.settings.share_phases {
            link.spawn(Rc::clone(&self).keep_in_touch());
        }
        for robot in 0..self.context.settings.robots {
            let profile = self.context.of(robot).profile();
            if profile.session.is_some() {
                self.rare(robot).session = Some(SessionState::new(start));
            }
            match &profile.load {
                Load::Closed { think: None } => link.spawn(Rc::clone(&self).run_busy(start, robot)),
                Load::Closed { think: Some(think) } => {
                    link.spawn(Rc::clone(&self).run_pausing(start, robot, think.clone()));
                }
                Load::Open { .. } | Load::InterArrival(_) | Load::Passive => {}
            }
        }
        self.run_open(start).await;
    }

    /// Whether the robot sends a request that is due at `due`.
    fn sends(&self, robot: usize, due: Nanos) -> bool {
        let pace = self.pace.borrow();
        let profile = self.context.of(robot).profile();
        let load = pace.load.at(due);
        let thinned = match profile.load {
            // Skipping arrivals with the complementary probability turns a Poisson stream into a slower Poisson stream.
            // A draw is made at any load; otherwise the start time of a phase would change all later arrivals.
            Load::Open { .. } => self.robot(robot).arrivals.unit() >= load,
            Load::Closed { .. } => self.robot(robot).rank as f64 >= load,
            Load::InterArrival(_) | Load::Passive => false,
        };
        if pace.stopped || thinned || !self.is_active(robot, due) {
            return false;
        }
        if profile.session.is_some() && !self.is_busy(robot, profile, due) {
            return false;
        }
        if matches!(profile.load, Load::Closed { .. }) {
            return true;
        }
        let skips = self.robot(robot).skips(due);
        if skips {
            self.context.of(robot).recorder.with(|block| block.skipped_launches += 1);
        }
        !skips
    }

    /// Whether the robot's session is in a busy period.
    fn is_busy(&self, robot: usize, profile: &Profile, now: Nanos) -> bool {
        let Some(session) = &profile.session else { return true };
        let change = {
            let Robot { rng, rare, .. } = &mut *self.robot(robot);
            let Some(state) = rare.as_mut().and_then(|rare| rare.session.as_mut()) else { return true };
            state.advance(session, now, rng)
        };
        let idle_until = match change {
            SessionChange::Busy => return true,
            SessionChange::Idle => return false,
            SessionChange::BecameIdle(until) => Some(until),
            SessionChange::BecameBusy => None,
        };
        self.pool.change_session(self.context.of(robot), idle_until);
        {
            let mut state = self.rare(robot);
            state.received.clear();
            if let Some(cookies) = &mut state.cookies {
                cookies.end_session();
            }
        }
        if idle_until.is_none() {
            self.renew_credentials(robot);
        }
        idle_until.is_none()
    }

    /// The robot's next request, which is due at `due`.
    fn next_request(&self, robot: usize, due: Nanos) -> Request {
        self.freeze_by(due);
        let cx = self.context.of(robot);
        let factors = {
            let pace = self.pace.borrow();
            Factors { recur: pace.recur.at(due), special: pace.special.at(due) }
        };
        let mut generator = cx.generator.borrow_mut();
        let mut state = self.robot(robot);
        let mut request = generator.next(&cx.settings, cx.profile_index(), factors, due, &mut state.rng);
        // Robots of a closed loop skip no launches.
        if !matches!(cx.profile().load, Load::Closed { .. }) {
            state.skip_later(request.parts_from, request.planned);
        }
        drop((generator, state));
        if request.method.has_body() {
            request.sends = self.request_body(robot, request.method);
        }
        request
    }

    /// The object in the body of a request: an earlier one of the robot, or a new one (`docs/reference/models.md`, "Request
    /// bodies").
    fn request_body(&self, robot: usize, method: Method) -> Option<Oid> {
        let cx = self.context.of(robot);
        let profile = cx.profile();
        let contents = match method {
            Method::Post => &profile.post,
            _ => &profile.upload,
        };
        let mut state = self.robot(robot);
        let Robot { rng, rare, .. } = &mut *state;
        let rare = rare.get_or_insert_default();
        let world = *rare.world.get_or_insert_with(|| cx.generator.borrow_mut().fresh_id());
        let kind = *contents.draw(rng)?;
        if !rare.bodies.iter().any(|(known, _)| *known == kind.0) {
            rare.bodies.push((kind.0, 0));
        }
        let (_, last) = rare.bodies.iter_mut().find(|(known, _)| *known == kind.0)?;
        let name = if *last > 0 && rng.event(profile.body_recurrence) {
            1 + rng.below(*last)
        } else {
            *last += 1;
            *last
        };
        Some(Oid { world, kind, name })
    }
}
