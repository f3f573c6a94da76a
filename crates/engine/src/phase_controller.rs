//! The controller of a test: decides when phases begin and end, without a clock, threads or sockets.
//!
//! Whoever drives it tells what it has [`Observations`] and when; the controller writes its decisions to the [`Timeline`] that all
//! loops read, and returns [`ControlEvent`]s for logs and consoles. A driver of real loops and a simulation do the same
//! with it.
//!
//! * [`event`]: what the controller has to tell, and how that is logged.
//! * [`end_blockers`]: what keeps a phase from ending although its goal is met.
//! * [`agree`], [`barrier`]: agreement with other processes of the test.
//! * [`adjust`]: factors that change while a phase goes on.
//! * [`load_controller`]: those who watch a phase and change them: scripts, controllers.
//! * [`thermostat`]: load that follows the response time.
//! * [`script`]: scripts of phases.
//! * [`give_up`]: when a test is given up, for nothing comes of it.
//! * [`freeze`]: when the working set stops growing.
//! * `progress`: how far a phase is, and what is in force then.

pub mod adjustment;
pub mod agreement;
pub mod barrier;
pub mod end_blockers;
pub mod event;
pub mod give_up;
pub mod load_controller;
mod progress;
pub mod response_time_controller;
pub mod script_controller;
pub mod working_set;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::{Phase, Schedule, WorkingSetLimit};
use polygraph_stats::{EndReason, Side, Window};
use polygraph_traffic::groups::PeerStatus;

pub use self::adjustment::Adjustment;
use self::agreement::Agreement;
pub use self::agreement::PeerSettings;
use self::end_blockers::{EndBlocker, EndBlockers, FirstVisits};
pub use self::event::ControlEvent;
use self::give_up::GiveUpMonitor;
pub use self::load_controller::{ControlHandle, LoadController, Sampler};
use self::response_time_controller::ResponseTimeController;
use self::script_controller::ScriptController;
use self::working_set::{WorkingSet, WorkingSetEvent};
use crate::live_counters::Counts;
use crate::timeline::Timeline;

/// Decisions are made this much ahead of their time, so that all loops see them before.
pub const NOTICE: Nanos = SECOND / 10;
/// How often goals should be looked at.
pub const TICK: Nanos = SECOND / 50;

/// What the driver has observed when it calls.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// The time.
    pub now: Nanos,
    /// The counts by which goals are judged, since the start.
    pub counts: Counts,
    /// What happened on the robots' side since the last look; empty while nobody steers, see
    /// [`Timeline::deltas_wanted`].
    pub delta: Window,
    /// A number that changes when anything happens on any side.
    pub activity: u64,
    /// Something outside the test ends it.
    pub stop: Option<EndReason>,
    /// What loops have heard of other processes since the last call, with the side of who told it.
    pub statuses: Vec<(Side, PeerStatus)>,
    /// Servers that robots must still visit before the first phase may end, summed over loops.
    pub unvisited: usize,
}

/// What the controller follows.
#[derive(Clone, Debug)]
pub struct TestPlan {
    /// The phases.
    pub schedule: Arc<Schedule>,
    /// Where decisions are published.
    pub timeline: Arc<Timeline>,
    /// Objects that an earlier test has filled.
    pub filled_before: u64,
    /// There are robots, so there is a working set.
    pub has_robots: bool,
    /// The test ends after so many seconds without any traffic.
    pub idle_timeout: Option<f64>,
    /// The test has failed if nothing succeeds for so many seconds while transactions fail.
    pub fail_timeout: Option<f64>,
    /// Other processes may take part in the test; `None`: this one is alone.
    pub peers: Option<PeerSettings>,
}

impl TestPlan {
    /// What is told at the start: the phases.
    pub fn opening(&self, start: Nanos) -> ControlEvent {
        ControlEvent::said(start, 2, polygraph_plan::table::table(&self.schedule))
    }
}

/// The phase that is going on.
#[derive(Clone, Copy, Debug)]
struct CurrentPhase {
    phase: usize,
    begin: Nanos,
    /// What was counted before it began.
    before: Counts,
}

/// Where the test is.
#[derive(Clone, Debug)]
enum ControllerState {
    /// A phase is next, and begins at this time.
    Before(usize, Nanos),
    In(CurrentPhase),
    Over(EndReason),
}

/// The controller.
#[derive(Debug)]
pub struct PhaseController {
    plan: TestPlan,
    start: Nanos,
    stage: ControllerState,
    end_blockers: EndBlockers,
    /// Activity, and when it was observed first.
    last_traffic: (u64, Nanos),
    /// Whether anything comes of the test.
    give_up: GiveUpMonitor,
    /// The current phase has reached what it is for, whatever its goal says.
    satisfied: bool,
    /// What was told to hold the current phase.
    held: Option<EndBlocker>,
    agreement: Agreement,
    /// When the current phase began.
    begun: Nanos,
    /// When was told how far the phase is.
    reported: Nanos,
    /// Those who will steer later phases.
    upcoming: Vec<(usize, Box<dyn LoadController>)>,
    /// Those who steer the current phase.
    load_controllers: Vec<Box<dyn LoadController>>,
    /// What happened in the current phase so far, if it is steered.
    so_far: Window,
}

impl PhaseController {
    /// A controller of a test that starts at `start`.
    pub fn new(plan: TestPlan, start: Nanos) -> PhaseController {
        let limit = plan.schedule.working_set.filter(|_| plan.has_robots);
        let working_set = match plan.timeline.frozen_from() {
            Some(_) => WorkingSet::frozen(),
            None => WorkingSet::new(limit, start),
        };
        if let (None, Some(at)) = (plan.timeline.frozen_from(), working_set.freezes_at()) {
            plan.timeline.freeze_from(at);
        }
        let controller = PhaseController {
            start,
            stage: ControllerState::Before(0, start),
            end_blockers: EndBlockers { working_set, first_visits: FirstVisits::new(start) },
            last_traffic: (0, start),
            give_up: GiveUpMonitor::new(plan.fail_timeout.map(nanos), start),
            satisfied: false,
            upcoming: Vec::new(),
            load_controllers: Vec::new(),
            so_far: Window::default(),
            held: None,
            agreement: Agreement::new(plan.peers.as_ref(), start),
            begun: start,
            reported: start,
            plan,
        };
        controller.with_planned_load_controllers()
    }

    /// Engages those whom the schedule itself names. Servers leave that to their clients.
    fn with_planned_load_controllers(mut self) -> PhaseController {
        if !self.plan.has_robots {
            return self;
        }
        let schedule = Arc::clone(&self.plan.schedule);
        let mut interpreter = None;
        for (number, phase) in schedule.phases.iter().enumerate() {
            if let Some(script) = &phase.script {
                let shared = interpreter.get_or_insert_with(|| Rc::new(RefCell::new(script.interpreter())));
                let load_controller = ScriptController::new(script.clone(), Rc::clone(shared));
                self.add_load_controller(number, Box::new(load_controller));
            }
            if let Some(rule) = phase.rptmstat {
                self.add_load_controller(number, Box::new(ResponseTimeController::new(rule)));
            }
        }
        self
    }

    /// Lets somebody steer a phase that has not begun.
    pub fn add_load_controller(&mut self, phase: usize, load_controller: Box<dyn LoadController>) {
        self.plan.timeline.request_deltas();
        self.upcoming.push((phase, load_controller));
    }

    /// Decides what is to be decided now; to be called every [`TICK`], and at once after a phase has ended, see
    /// [`PhaseController::is_between`].
    pub fn step(&mut self, observed: &Observations) -> Vec<ControlEvent> {
        let mut events = Vec::new();
        self.listen(observed);
        match self.stage.clone() {
            ControllerState::Before(phase, begin) => self.begin_phase(phase, begin, observed, &mut events),
            ControllerState::In(current) => self.go_on(&current, observed, &mut events),
            ControllerState::Over(_) => {}
        }
        self.publish_status();
        events
    }

    /// True if a phase is to begin with the next step.
    pub fn is_between(&self) -> bool {
        matches!(self.stage, ControllerState::Before(..))
    }

    /// Why the test has ended, if it has.
    pub fn ended(&self) -> Option<&EndReason> {
        match &self.stage {
            ControllerState::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the last phase has reached its end at `now`: loops may go.
    pub fn is_done(&self, now: Nanos) -> bool {
        let last = self.plan.schedule.phases.len() - 1;
        match &self.stage {
            ControllerState::In(current) if current.phase == last => {
                self.plan.timeline.end(last).is_some_and(|end| now >= end)
            }
            ControllerState::In(_) | ControllerState::Before(..) => false,
            ControllerState::Over(_) => true,
        }
    }

    fn phase_of(&self, current: &CurrentPhase) -> &Phase {
        &self.plan.schedule.phases[current.phase]
    }

    fn begin_phase(
        &mut self,
        phase: usize,
        begin: Nanos,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) {
        let before = if phase == 0 { Counts::default() } else { observed.counts };
        if phase == 0 {
            self.last_traffic = (observed.activity, self.start);
        } else {
            // Whatever happened since the end was decided.
            let length = begin.saturating_sub(self.begun);
            self.hand_on(phase - 1, self.progress_at(phase - 1, length));
        }
        self.give_up.begin_phase(before, begin);
        let current = CurrentPhase { phase, begin, before };
        self.begun = begin;
        self.stage = ControllerState::In(current);
        self.satisfied = false;
        self.held = None;
        self.reported = begin;
        self.move_on();
        events.push(ControlEvent::PhaseBegins { phase, at: begin });
        self.so_far = observed.delta.carry();
        let upcoming = std::mem::take(&mut self.upcoming);
        let (of_this, others): (Vec<_>, _) = upcoming.into_iter().partition(|(of, _)| *of == phase);
        self.upcoming = others;
        self.load_controllers = of_this.into_iter().map(|(_, load_controller)| load_controller).collect();
        // TransactionSamples begin with the phase, whenever that is observed.
        self.run_load_controllers(&current, observed, events, |load_controller, handle| {
            handle.now = begin;
            load_controller.begin(handle);
        });
        self.decide_end(&current, observed, events);
    }

    fn go_on(&mut self, current: &CurrentPhase, observed: &Observations, events: &mut Vec<ControlEvent>) {
        if self.last_traffic.0 != observed.activity {
            self.last_traffic = (observed.activity, observed.now);
        }
        self.give_up.look(observed.counts, observed.now);
        self.follow_working_set(observed, events);
        self.follow_first_visits(observed, events);
        if let Some(reason) = self.cut(current, observed).or_else(|| self.gives_up(current, observed, events))
        {
            // An endless phase has no goal that could be missed: being stopped is its end.
            let complete = self.phase_of(current).goal.is_endless();
            let at = observed.now.max(self.start) + NOTICE;
            self.plan.timeline.cut(current.phase, at);
            events.push(ControlEvent::PhaseEnds { phase: current.phase, at, complete });
            self.stage = ControllerState::Over(reason);
            return;
        }
        self.publish_progress(current, observed);
        self.report(current, observed, events);
        self.so_far.append(&observed.delta);
        self.run_load_controllers(current, observed, events, |load_controller, handle| {
            load_controller.look(handle)
        });
        self.decide_end(current, observed, events);
        if let Some(end) = self.plan.timeline.end(current.phase).filter(|&end| end <= observed.now) {
            events.push(ControlEvent::PhaseEnds { phase: current.phase, at: end, complete: true });
            self.stage = match current.phase + 1 {
                next if next < self.plan.schedule.phases.len() => ControllerState::Before(next, end),
                _ => ControllerState::Over(EndReason::Finished),
            };
        }
    }

    /// Lets all load_controllers of the phase do something, and does what they want.
    fn run_load_controllers(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
        act: impl Fn(&mut dyn LoadController, &mut ControlHandle<'_>),
    ) {
        if self.load_controllers.is_empty() {
            return;
        }
        let mut load_controllers = std::mem::take(&mut self.load_controllers);
        let before = self.plan.timeline.factors(current.phase);
        let mut handle = ControlHandle {
            now: observed.now,
            delta: &observed.delta,
            phase: &self.so_far,
            factors: before,
            progress: self.progress_of(current, observed).unwrap_or(0.0),
            satisfied: false,
            events,
        };
        load_controllers.iter_mut().for_each(|load_controller| act(&mut **load_controller, &mut handle));
        let (factors, satisfied) = (handle.factors, handle.satisfied);
        if factors != before {
            self.plan.timeline.set_factors(current.phase, factors);
        }
        self.satisfied |= satisfied;
        self.load_controllers = load_controllers;
    }

    /// Why the test must end now, before its phases do.
    fn cut(&mut self, current: &CurrentPhase, observed: &Observations) -> Option<EndReason> {
        if observed.stop.is_none()
            && let Some(reason) = self.loses(current, observed)
        {
            return Some(reason);
        }
        let phase = self.phase_of(current);
        let done = observed.counts - current.before;
        let timeout = self.plan.idle_timeout.map(nanos);
        if let Some(reason) = &observed.stop {
            Some(reason.clone())
        } else if phase.goal.has_failed(done.ok, done.failed) {
            Some(EndReason::ErrorGoal { phase: phase.name.clone() })
        } else if timeout.is_some_and(|timeout| observed.now > self.last_traffic.1 + timeout) {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// Why the test must end because nothing comes of it.
    fn gives_up(
        &self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) -> Option<EndReason> {
        if !self.plan.has_robots {
            return None;
        }
        let phase = self.phase_of(current);
        if let Some(why) = self.give_up.is_hopeless(observed.counts, observed.now) {
            events.push(ControlEvent::said(
                observed.now,
                0,
                format!("phase {}: {why}: the test ends", phase.name),
            ));
            return Some(EndReason::ErrorGoal { phase: phase.name.clone() });
        }
        let has_to_fill = phase.goal.ends_by_fill_alone()
            || phase.wait_wss_freeze
                && matches!(self.plan.schedule.working_set, Some(WorkingSetLimit::Fill(_)))
                && self.end_blockers.working_set.holds_phases();
        let why = self.give_up.is_unfillable(observed.counts, observed.now).filter(|_| has_to_fill)?;
        Some(EndReason::Fatal(format!("phase {} cannot reach its end: {why}", phase.name)))
    }

    /// Sets the end of the current phase when it is known: ahead of time for durations, or when another goal is
    /// met; never while a lock holds the phase.
    fn decide_end(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) {
        let published = self.plan.timeline.end(current.phase);
        // Who has enough of a phase need not wait for its time.
        let brought_forward = self.satisfied && published.is_some_and(|end| end > observed.now + NOTICE);
        if published.is_some() && !brought_forward {
            return;
        }
        let Some(end) = self.own_end(current, observed) else { return };
        let lock = self.end_blockers.blocking(self.phase_of(current), current.phase, observed.now);
        let lock = match lock {
            None if self.is_shared(current) && !self.meet(current, observed, events) => {
                Some(EndBlocker::PeerSettings)
            }
            lock => lock,
        };
        if let Some(lock) = lock {
            if self.held.replace(lock) != Some(lock) {
                let name = &self.phase_of(current).name;
                let text = format!("phase {name}: goal reached, but {}", lock.text());
                events.push(ControlEvent::said(observed.now, 1, text));
            }
            return;
        }
        // Never in the past, even if this comes late: loops may be beyond it already.
        let end = if end <= observed.now { observed.now + NOTICE } else { end };
        // First what is in force then, for loops may be there at once.
        let length = end.saturating_sub(current.begin);
        self.hand_on(current.phase, self.progress_at(current.phase, length));
        self.plan.timeline.set_end(current.phase, end);
    }

    /// When the current phase ends as far as this process is concerned; `None` while that cannot be said.
    fn own_end(&mut self, current: &CurrentPhase, observed: &Observations) -> Option<Nanos> {
        if self.follows(current) {
            return self.goes_along(current, observed).then_some(observed.now + NOTICE);
        }
        let phase = self.phase_of(current);
        let (goal, now) = (&phase.goal, observed.now);
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let done = observed.counts - current.before;
        if self.satisfied || goal.is_met(done.ended(), done.fill_bytes) {
            return Some(planned.unwrap_or(Nanos::MAX).min(now + NOTICE));
        }
        // A time is published ahead, unless something else may still come first or stand against it.
        let may_be_held = phase.wait_wss_freeze || self.plan.peers.is_some();
        let sure = goal.xactions.is_none() && goal.fill_size.is_none() && !may_be_held;
        planned.filter(|&planned| sure || planned <= now + 2 * NOTICE)
    }

    /// Tells when all servers have been visited.
    fn follow_first_visits(&mut self, observed: &Observations, events: &mut Vec<ControlEvent>) {
        if self.end_blockers.first_visits.look(observed.unvisited, observed.now) {
            events.push(ControlEvent::said(observed.now, 3, "all servers have been visited"));
        }
    }

    /// Freezes the working set when its limit is met, and tells.
    fn follow_working_set(&mut self, observed: &Observations, events: &mut Vec<ControlEvent>) {
        let fills = self.plan.filled_before + observed.counts.fills;
        for event in self.end_blockers.working_set.look(fills, observed.now) {
            let text = match event {
                WorkingSetEvent::Started => "working set: fill started".to_owned(),
                WorkingSetEvent::Frozen => {
                    if self.plan.timeline.frozen_from().is_none() {
                        // All loops hear of it before.
                        self.plan.timeline.freeze_from(observed.now + NOTICE);
                    }
                    format!(
                        "working set frozen: {fills} objects, {} bytes filled",
                        observed.counts.fill_bytes
                    )
                }
            };
            events.push(ControlEvent::said(observed.now, 5, text));
        }
    }
}

#[cfg(test)]
#[path = "phase_controller/tests.rs"]
mod tests;
