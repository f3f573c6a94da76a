//! The phase controller of a test: decides when phases start and end, without a clock, threads or sockets.
//!
//! A driver calls it with [`Observations`] at a given time. The controller writes its decisions to the [`Timeline`],
//! which all loops read, and returns [`ControlEvent`]s for logs and consoles. The driver of real loops and the
//! simulation use it in the same way.
//!
//! * [`event`]: what the controller decides or reports, and how that is logged.
//! * [`end_blockers`]: what keeps a phase from ending although its goal is met.
//! * [`agreement`], [`barrier`]: agreement with other processes of the test.
//! * [`adjustment`]: changes of factors during a phase.
//! * [`load_controller`]: the interface of scripts and controllers that change the load during a phase.
//! * [`response_time_controller`]: load that follows the response time.
//! * [`script_controller`]: phase scripts.
//! * [`give_up`]: detects that a test cannot succeed any more.
//! * [`working_set`]: when the working set stops growing.
//! * `progress`: how far a phase is, and which factors are in force.

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

use polygraph_link::{Nanos, nanos};
use polygraph_plan::{Phase, Schedule, WorkingSetLimit};
use polygraph_stats::{EndReason, Side, Window};
use polygraph_text as text;
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

/// How long before its time a decision is published, so that all loops see it in time.
pub const NOTICE: Nanos = Nanos::from_millis(100);
/// How often the driver should call the controller.
pub const TICK: Nanos = Nanos::from_millis(20);

/// What the driver has observed when it calls.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// The time.
    pub now: Nanos,
    /// The counts by which goals are judged, since the start.
    pub counts: Counts,
    /// What happened on the robots' side since the last step; empty while no load controller is active, see
    /// [`Timeline::deltas_wanted`].
    pub delta: Window,
    /// A number that changes with every transaction and connection of any side.
    pub activity: u64,
    /// A reason outside the test to end it.
    pub stop: Option<EndReason>,
    /// Statuses of other processes since the last step, each with the side of the process that sent it.
    pub statuses: Vec<(Side, PeerStatus)>,
    /// Servers that robots must still visit before the first phase may end, over all loops.
    pub unvisited: usize,
}

/// What the phase controller executes.
#[derive(Clone, Debug)]
pub struct TestPlan {
    /// The phases.
    pub schedule: Arc<Schedule>,
    /// Where the controller publishes its decisions.
    pub timeline: Arc<Timeline>,
    /// Objects that an earlier test has filled into the working set.
    pub filled_before: u64,
    /// Whether this process runs robots, and so has a working set.
    pub has_robots: bool,
    /// The test ends after this many seconds without traffic; `None`: never.
    pub idle_timeout: Option<f64>,
    /// The test fails after this many seconds in which transactions fail and none succeeds; `None`: never.
    pub fail_timeout: Option<f64>,
    /// The settings for agreement with other processes; `None` if this process runs the whole test.
    pub peers: Option<PeerSettings>,
}

impl TestPlan {
    /// The first message of a log: the table of phases.
    pub fn opening(&self, start: Nanos) -> ControlEvent {
        ControlEvent::message(start, 2, polygraph_plan::table::table(&self.schedule))
    }

    /// The side of this process; that of the robots if it runs both.
    pub fn main_side(&self) -> Side {
        if self.has_robots { Side::Client } else { Side::Server }
    }
}

/// The phase that is running.
#[derive(Clone, Copy, Debug)]
struct CurrentPhase {
    phase: usize,
    begin: Nanos,
    /// The counts at its start.
    before: Counts,
}

/// The state of the test.
#[derive(Clone, Debug)]
enum ControllerState {
    /// The next phase, and when it starts.
    Before(usize, Nanos),
    In(CurrentPhase),
    Over(EndReason),
}

/// Decides when phases start and end.
#[derive(Debug)]
pub struct PhaseController {
    plan: TestPlan,
    start: Nanos,
    stage: ControllerState,
    end_blockers: EndBlockers,
    /// The last [`Observations::activity`], and when it was first observed.
    last_traffic: (u64, Nanos),
    /// Detects that the test cannot succeed any more.
    give_up: GiveUpMonitor,
    /// A load controller has declared the goal of the current phase to be met.
    satisfied: bool,
    /// The last reported reason that keeps the current phase from ending.
    held: Option<EndBlocker>,
    agreement: Agreement,
    /// When the current phase started.
    begun: Nanos,
    /// When the progress of the phase was last reported.
    reported: Nanos,
    /// The load controllers of later phases, with the number of the phase.
    upcoming: Vec<(usize, Box<dyn LoadController>)>,
    /// The load controllers of the current phase.
    load_controllers: Vec<Box<dyn LoadController>>,
    /// What happened in the current phase so far, if it has a load controller.
    so_far: Window,
}

impl PhaseController {
    /// The controller of a test that starts at `start`.
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

    /// Adds the load controllers that the schedule names. A process without robots leaves load control to its
    /// clients.
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

    /// Adds a load controller to a phase that has not started.
    pub fn add_load_controller(&mut self, phase: usize, load_controller: Box<dyn LoadController>) {
        self.plan.timeline.request_deltas();
        self.upcoming.push((phase, load_controller));
    }

    /// Makes the decisions that are due. The driver calls it every [`TICK`], and at once after the end of a phase,
    /// see [`PhaseController::is_between`].
    pub fn step(&mut self, observed: &Observations) -> Vec<ControlEvent> {
        let mut events = Vec::new();
        self.record_peers(observed);
        match self.stage.clone() {
            ControllerState::Before(phase, begin) => self.begin_phase(phase, begin, observed, &mut events),
            ControllerState::In(current) => self.go_on(&current, observed, &mut events),
            ControllerState::Over(_) => {}
        }
        self.publish_status();
        events
    }

    /// True if the next step starts a phase.
    pub fn is_between(&self) -> bool {
        matches!(self.stage, ControllerState::Before(..))
    }

    /// The reason for the end of the test; `None` while it runs.
    pub fn ended(&self) -> Option<&EndReason> {
        match &self.stage {
            ControllerState::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the last phase has ended at `now`, so that loops may end.
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
            // Includes what has happened since the end was decided.
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
        self.start_phase_together();
        events.push(ControlEvent::PhaseStarts { phase, at: begin });
        self.so_far = observed.delta.carry();
        let upcoming = std::mem::take(&mut self.upcoming);
        let (of_this, others): (Vec<_>, _) = upcoming.into_iter().partition(|(of, _)| *of == phase);
        self.upcoming = others;
        self.load_controllers = of_this.into_iter().map(|(_, load_controller)| load_controller).collect();
        // Samples begin with the phase, even if this step is late.
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
        self.follow_working_set(current, observed, events);
        self.follow_first_visits(observed, events);
        if let Some(reason) = self.cut(current, observed).or_else(|| self.gives_up(current, observed, events))
        {
            // An endless phase has no goal to miss, so it is complete when it is stopped.
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

    /// Runs `act` on all load controllers of the phase and carries out their changes.
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

    /// The reason to end the test before its last phase is over, if there is one.
    fn cut(&mut self, current: &CurrentPhase, observed: &Observations) -> Option<EndReason> {
        if observed.stop.is_none()
            && let Some(reason) = self.lost_peer(current, observed)
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

    /// The reason to end the test because it cannot succeed any more, if there is one.
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
        if let Some(why) = self.give_up.cannot_succeed(observed.counts, observed.now) {
            events.push(ControlEvent::message(
                observed.now,
                0,
                format!("phase {}: {why}: the test ends", phase.name),
            ));
            return Some(EndReason::ErrorGoal { phase: phase.name.clone() });
        }
        let has_to_fill = phase.goal.ends_by_fill_alone()
            || phase.wait_wss_freeze
                && matches!(
                    self.plan.schedule.working_set,
                    Some(WorkingSetLimit::Fill(_) | WorkingSetLimit::FillOfPhase(_))
                )
                && self.end_blockers.working_set.blocks_phases();
        let why = self.give_up.cannot_fill(observed.counts, observed.now).filter(|_| has_to_fill)?;
        Some(EndReason::NoEnd(format!("phase {} cannot reach its end: {why}", phase.name)))
    }

    /// Sets the end of the current phase as soon as it is known: ahead of time for durations, or when another goal is
    /// met. A phase does not end while anything blocks its end.
    fn decide_end(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) {
        let published = self.plan.timeline.end(current.phase);
        // A load controller may end a phase before its planned time.
        let brought_forward = self.satisfied && published.is_some_and(|end| end > observed.now + NOTICE);
        if published.is_some() && !brought_forward {
            return;
        }
        let Some(end) = self.end_of_this_process(current, observed) else { return };
        let lock = self.end_blockers.blocking(self.phase_of(current), current.phase, observed.now);
        let lock = match lock {
            None if self.is_shared(current) && !self.has_everyone_arrived(current, observed, events) => {
                Some(EndBlocker::PeerSettings)
            }
            lock => lock,
        };
        if let Some(lock) = lock {
            if self.held.replace(lock) != Some(lock) {
                let name = &self.phase_of(current).name;
                let text = format!("phase {name}: goal reached, but {}", lock.text());
                events.push(ControlEvent::message(observed.now, 1, text));
            }
            return;
        }
        // The end is never in the past, even if this step is late: loops may have passed that time already.
        let end = if end <= observed.now { observed.now + NOTICE } else { end };
        // The factors of the next phase come first, because loops may reach it at once.
        let length = end.saturating_sub(current.begin);
        self.hand_on(current.phase, self.progress_at(current.phase, length));
        self.plan.timeline.set_end(current.phase, end);
    }

    /// When the current phase ends as far as this process can tell; `None` while that is unknown.
    fn end_of_this_process(&mut self, current: &CurrentPhase, observed: &Observations) -> Option<Nanos> {
        if self.follows(current) {
            return self.end_after_clients(current, observed);
        }
        let phase = self.phase_of(current);
        let (goal, now) = (&phase.goal, observed.now);
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let done = observed.counts - current.before;
        if self.satisfied || goal.is_met(done.ended(), done.fill_bytes) {
            return Some(planned.unwrap_or(Nanos::MAX).min(now + NOTICE));
        }
        // The end is published ahead unless something else may end the phase earlier or block its end.
        let may_be_held = phase.wait_wss_freeze || self.plan.peers.is_some();
        let sure = goal.xactions.is_none() && goal.fill_size.is_none() && !may_be_held;
        planned.filter(|&planned| sure || planned <= now + 2 * NOTICE)
    }

    /// Reports when all servers have been visited.
    fn follow_first_visits(&mut self, observed: &Observations, events: &mut Vec<ControlEvent>) {
        if self.end_blockers.first_visits.look(observed.unvisited, observed.now) {
            events.push(ControlEvent::message(observed.now, 3, "all servers have been visited"));
        }
    }

    /// Freezes the working set when its limit is met, and reports that.
    fn follow_working_set(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) {
        let fills = self.plan.filled_before + observed.counts.fills;
        let of_phase = observed.counts.fills - current.before.fills;
        for event in self.end_blockers.working_set.look(fills, of_phase, observed.now) {
            let text = match event {
                WorkingSetEvent::Started => "working set: fill started".to_owned(),
                WorkingSetEvent::Frozen => {
                    if self.plan.timeline.frozen_from().is_none() {
                        // The notice lets all loops read the time before it comes.
                        self.plan.timeline.freeze_from(observed.now + NOTICE);
                    }
                    format!(
                        "working set frozen: {}, {} filled",
                        text::counted(fills, "object"),
                        text::bytes(Some(observed.counts.fill_bytes as f64))
                    )
                }
            };
            events.push(ControlEvent::message(observed.now, 5, text));
        }
    }
}

#[cfg(test)]
#[path = "phase_controller/tests.rs"]
mod tests;
