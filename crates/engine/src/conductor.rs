//! The conductor of a test: decides when phases begin and end, without a clock, threads or sockets.
//!
//! Whoever drives it tells what it has [`Seen`] and when; the conductor writes its decisions to the [`Timeline`] that all
//! loops read, and returns [`Event`]s for logs and consoles. A driver of real loops and a simulation do the same
//! with it.
//!
//! * [`event`]: what the conductor has to tell, and how that is logged.
//! * [`locks`]: what keeps a phase from ending although its goal is met.
//! * [`agree`], [`barrier`]: agreement with other processes of the test.
//! * [`adjust`]: factors that change while a phase goes on.
//! * [`governor`]: those who watch a phase and change them: scripts, controllers.
//! * [`thermostat`]: load that follows the response time.
//! * [`script`]: scripts of phases.
//! * [`outlook`]: when a test is given up, for nothing comes of it.
//! * [`freeze`]: when the working set stops growing.
//! * `progress`: how far a phase is, and what is in force then.

pub mod adjust;
pub mod agree;
pub mod barrier;
pub mod event;
pub mod freeze;
pub mod governor;
pub mod locks;
pub mod outlook;
mod progress;
pub mod script;
pub mod thermostat;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::{Phase, Schedule, WorkingSetLimit};
use polygraph_stats::{EndReason, Side, Window};
use polygraph_traffic::groups::Word;

pub use self::adjust::Adjustment;
use self::agree::Agreement;
pub use self::agree::Others;
pub use self::event::Event;
use self::freeze::WorkingSet;
pub use self::governor::{Governor, Helm, Sampler};
use self::locks::{FirstVisits, Lock, Locks};
use self::outlook::Outlook;
use self::script::ScriptGovernor;
use self::thermostat::Thermostat;
use crate::gauge::Counts;
use crate::timeline::Timeline;

/// Decisions are made this much ahead of their time, so that all loops see them before.
pub const NOTICE: Nanos = SECOND / 10;
/// How often goals should be looked at.
pub const TICK: Nanos = SECOND / 50;

/// What the driver has seen when it calls.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The time.
    pub now: Nanos,
    /// The counts by which goals are judged, since the start.
    pub counts: Counts,
    /// What happened on the robots' side since the last look; empty while nobody steers, see
    /// [`Timeline::news_wanted`].
    pub news: Window,
    /// A number that changes when anything happens on any side.
    pub activity: u64,
    /// Something outside the test ends it.
    pub stop: Option<EndReason>,
    /// What loops have heard of other processes since the last call, with the side of who told it.
    pub words: Vec<(Side, Word)>,
    /// Servers that robots must still visit before the first phase may end, summed over loops.
    pub unvisited: usize,
}

/// What the conductor follows.
#[derive(Clone, Debug)]
pub struct Score {
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
    pub others: Option<Others>,
}

impl Score {
    /// What is told at the start: the phases.
    pub fn opening(&self, start: Nanos) -> Event {
        Event::said(start, 2, polygraph_plan::table::table(&self.schedule))
    }
}

/// The phase that is going on.
#[derive(Clone, Copy, Debug)]
struct Current {
    phase: usize,
    begin: Nanos,
    /// What was counted before it began.
    before: Counts,
}

/// Where the test is.
#[derive(Clone, Debug)]
enum Stage {
    /// A phase is next, and begins at this time.
    Before(usize, Nanos),
    In(Current),
    Over(EndReason),
}

/// The conductor.
#[derive(Debug)]
pub struct Conductor {
    score: Score,
    start: Nanos,
    stage: Stage,
    locks: Locks,
    /// Activity, and when it was seen first.
    last_traffic: (u64, Nanos),
    /// Whether anything comes of the test.
    outlook: Outlook,
    /// The current phase has reached what it is for, whatever its goal says.
    satisfied: bool,
    /// What was told to hold the current phase.
    held: Option<Lock>,
    agreement: Agreement,
    /// When the current phase began.
    begun: Nanos,
    /// When was told how far the phase is.
    reported: Nanos,
    /// Those who will steer later phases.
    engaged: Vec<(usize, Box<dyn Governor>)>,
    /// Those who steer the current phase.
    governors: Vec<Box<dyn Governor>>,
    /// What happened in the current phase so far, if it is steered.
    so_far: Window,
}

impl Conductor {
    /// A conductor of a test that starts at `start`.
    pub fn new(score: Score, start: Nanos) -> Conductor {
        let limit = score.schedule.working_set.filter(|_| score.has_robots);
        let working_set = match score.timeline.is_frozen() {
            true => WorkingSet::frozen(),
            false => WorkingSet::new(limit, start),
        };
        let conductor = Conductor {
            start,
            stage: Stage::Before(0, start),
            locks: Locks { working_set, first_visits: FirstVisits::new(start) },
            last_traffic: (0, start),
            outlook: Outlook::new(score.fail_timeout.map(nanos), start),
            satisfied: false,
            engaged: Vec::new(),
            governors: Vec::new(),
            so_far: Window::default(),
            held: None,
            agreement: Agreement::new(score.others.as_ref(), start),
            begun: start,
            reported: start,
            score,
        };
        conductor.with_planned_governors()
    }

    /// Engages those whom the schedule itself names. Servers leave that to their clients.
    fn with_planned_governors(mut self) -> Conductor {
        if !self.score.has_robots {
            return self;
        }
        let schedule = Arc::clone(&self.score.schedule);
        let mut interpreter = None;
        for (number, phase) in schedule.phases.iter().enumerate() {
            if let Some(script) = &phase.script {
                let shared = interpreter.get_or_insert_with(|| Rc::new(RefCell::new(script.interpreter())));
                let governor = ScriptGovernor::new(script.clone(), Rc::clone(shared));
                self.engage(number, Box::new(governor));
            }
            if let Some(rule) = phase.rptmstat {
                self.engage(number, Box::new(Thermostat::new(rule)));
            }
        }
        self
    }

    /// Lets somebody steer a phase that has not begun.
    pub fn engage(&mut self, phase: usize, governor: Box<dyn Governor>) {
        self.score.timeline.want_news();
        self.engaged.push((phase, governor));
    }

    /// Decides what is to be decided now; to be called every [`TICK`], and at once after a phase has ended, see
    /// [`Conductor::is_between`].
    pub fn step(&mut self, seen: &Seen) -> Vec<Event> {
        let mut events = Vec::new();
        self.listen(seen);
        match self.stage.clone() {
            Stage::Before(phase, begin) => self.begin_phase(phase, begin, seen, &mut events),
            Stage::In(current) => self.go_on(&current, seen, &mut events),
            Stage::Over(_) => {}
        }
        self.publish_standing();
        events
    }

    /// True if a phase is to begin with the next step.
    pub fn is_between(&self) -> bool {
        matches!(self.stage, Stage::Before(..))
    }

    /// Why the test has ended, if it has.
    pub fn ended(&self) -> Option<&EndReason> {
        match &self.stage {
            Stage::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the last phase has reached its end at `now`: loops may go.
    pub fn is_done(&self, now: Nanos) -> bool {
        let last = self.score.schedule.phases.len() - 1;
        match &self.stage {
            Stage::In(current) if current.phase == last => {
                self.score.timeline.end(last).is_some_and(|end| now >= end)
            }
            Stage::In(_) | Stage::Before(..) => false,
            Stage::Over(_) => true,
        }
    }

    fn plan(&self, current: &Current) -> &Phase {
        &self.score.schedule.phases[current.phase]
    }

    fn begin_phase(&mut self, phase: usize, begin: Nanos, seen: &Seen, events: &mut Vec<Event>) {
        let before = if phase == 0 { Counts::default() } else { seen.counts };
        if phase == 0 {
            self.last_traffic = (seen.activity, self.start);
        } else {
            // Whatever happened since the end was decided.
            let length = begin.saturating_sub(self.begun);
            self.hand_on(phase - 1, self.progress_at(phase - 1, length));
        }
        self.outlook.begin_phase(before, begin);
        let current = Current { phase, begin, before };
        self.begun = begin;
        self.stage = Stage::In(current);
        self.satisfied = false;
        self.held = None;
        self.reported = begin;
        self.move_on();
        events.push(Event::PhaseBegins { phase, at: begin });
        self.so_far = seen.news.carry();
        let engaged = std::mem::take(&mut self.engaged);
        let (of_this, others): (Vec<_>, _) = engaged.into_iter().partition(|(of, _)| *of == phase);
        self.engaged = others;
        self.governors = of_this.into_iter().map(|(_, governor)| governor).collect();
        // Samples begin with the phase, whenever that is seen.
        self.govern(&current, seen, events, |governor, helm| {
            helm.now = begin;
            governor.begin(helm);
        });
        self.decide_end(&current, seen, events);
    }

    fn go_on(&mut self, current: &Current, seen: &Seen, events: &mut Vec<Event>) {
        if self.last_traffic.0 != seen.activity {
            self.last_traffic = (seen.activity, seen.now);
        }
        self.outlook.look(seen.counts, seen.now);
        self.follow_working_set(seen, events);
        self.follow_first_visits(seen, events);
        if let Some(reason) = self.cut(current, seen).or_else(|| self.gives_up(current, seen, events)) {
            // An endless phase has no goal that could be missed: being stopped is its end.
            let complete = self.plan(current).goal.is_endless();
            let at = seen.now.max(self.start) + NOTICE;
            self.score.timeline.cut(current.phase, at);
            events.push(Event::PhaseEnds { phase: current.phase, at, complete });
            self.stage = Stage::Over(reason);
            return;
        }
        self.publish_progress(current, seen);
        self.report(current, seen, events);
        self.so_far.append(&seen.news);
        self.govern(current, seen, events, |governor, helm| governor.look(helm));
        self.decide_end(current, seen, events);
        if let Some(end) = self.score.timeline.end(current.phase).filter(|&end| end <= seen.now) {
            events.push(Event::PhaseEnds { phase: current.phase, at: end, complete: true });
            self.stage = match current.phase + 1 {
                next if next < self.score.schedule.phases.len() => Stage::Before(next, end),
                _ => Stage::Over(EndReason::Finished),
            };
        }
    }

    /// Lets all governors of the phase do something, and does what they want.
    fn govern(
        &mut self,
        current: &Current,
        seen: &Seen,
        events: &mut Vec<Event>,
        act: impl Fn(&mut dyn Governor, &mut Helm<'_>),
    ) {
        if self.governors.is_empty() {
            return;
        }
        let mut governors = std::mem::take(&mut self.governors);
        let before = self.score.timeline.factors(current.phase);
        let mut helm = Helm {
            now: seen.now,
            news: &seen.news,
            phase: &self.so_far,
            factors: before,
            progress: self.progress_of(current, seen).unwrap_or(0.0),
            satisfied: false,
            events,
        };
        governors.iter_mut().for_each(|governor| act(&mut **governor, &mut helm));
        let (factors, satisfied) = (helm.factors, helm.satisfied);
        if factors != before {
            self.score.timeline.set_factors(current.phase, factors);
        }
        self.satisfied |= satisfied;
        self.governors = governors;
    }

    /// Why the test must end now, before its phases do.
    fn cut(&mut self, current: &Current, seen: &Seen) -> Option<EndReason> {
        if seen.stop.is_none()
            && let Some(reason) = self.loses(current, seen)
        {
            return Some(reason);
        }
        let phase = self.plan(current);
        let done = seen.counts - current.before;
        let timeout = self.score.idle_timeout.map(nanos);
        if let Some(reason) = &seen.stop {
            Some(reason.clone())
        } else if phase.goal.has_failed(done.ok, done.failed) {
            Some(EndReason::ErrorGoal { phase: phase.name.clone() })
        } else if timeout.is_some_and(|timeout| seen.now > self.last_traffic.1 + timeout) {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// Why the test must end because nothing comes of it.
    fn gives_up(&self, current: &Current, seen: &Seen, events: &mut Vec<Event>) -> Option<EndReason> {
        if !self.score.has_robots {
            return None;
        }
        let phase = self.plan(current);
        if let Some(why) = self.outlook.is_hopeless(seen.counts, seen.now) {
            events.push(Event::said(seen.now, 0, format!("phase {}: {why}: the test ends", phase.name)));
            return Some(EndReason::ErrorGoal { phase: phase.name.clone() });
        }
        let has_to_fill = phase.goal.ends_by_fill_alone()
            || phase.wait_wss_freeze
                && matches!(self.score.schedule.working_set, Some(WorkingSetLimit::Fill(_)))
                && self.locks.working_set.holds_phases();
        let why = self.outlook.is_unfillable(seen.counts, seen.now).filter(|_| has_to_fill)?;
        Some(EndReason::Fatal(format!("phase {} cannot reach its end: {why}", phase.name)))
    }

    /// Sets the end of the current phase when it is known: ahead of time for durations, or when another goal is
    /// met; never while a lock holds the phase.
    fn decide_end(&mut self, current: &Current, seen: &Seen, events: &mut Vec<Event>) {
        let published = self.score.timeline.end(current.phase);
        // Who has enough of a phase need not wait for its time.
        let brought_forward = self.satisfied && published.is_some_and(|end| end > seen.now + NOTICE);
        if published.is_some() && !brought_forward {
            return;
        }
        let Some(end) = self.own_end(current, seen) else { return };
        let lock = self.locks.holding(self.plan(current), current.phase, seen.now);
        let lock = match lock {
            None if self.is_shared(current) && !self.meet(current, seen, events) => Some(Lock::Others),
            lock => lock,
        };
        if let Some(lock) = lock {
            if self.held.replace(lock) != Some(lock) {
                let name = &self.plan(current).name;
                let text = format!("phase {name}: goal reached, but {}", lock.text());
                events.push(Event::said(seen.now, 1, text));
            }
            return;
        }
        // Never in the past, even if this comes late: loops may be beyond it already.
        let end = if end <= seen.now { seen.now + NOTICE } else { end };
        // First what is in force then, for loops may be there at once.
        let length = end.saturating_sub(current.begin);
        self.hand_on(current.phase, self.progress_at(current.phase, length));
        self.score.timeline.set_end(current.phase, end);
    }

    /// When the current phase ends as far as this process is concerned; `None` while that cannot be said.
    fn own_end(&mut self, current: &Current, seen: &Seen) -> Option<Nanos> {
        if self.follows(current) {
            return self.goes_along(current, seen).then_some(seen.now + NOTICE);
        }
        let phase = self.plan(current);
        let (goal, now) = (&phase.goal, seen.now);
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let done = seen.counts - current.before;
        if self.satisfied || goal.is_met(done.ended(), done.fill_bytes) {
            return Some(planned.unwrap_or(Nanos::MAX).min(now + NOTICE));
        }
        // A time is published ahead, unless something else may still come first or stand against it.
        let may_be_held = phase.wait_wss_freeze || self.score.others.is_some();
        let sure = goal.xactions.is_none() && goal.fill_size.is_none() && !may_be_held;
        planned.filter(|&planned| sure || planned <= now + 2 * NOTICE)
    }

    /// Tells when all servers have been visited.
    fn follow_first_visits(&mut self, seen: &Seen, events: &mut Vec<Event>) {
        if self.locks.first_visits.look(seen.unvisited, seen.now) {
            events.push(Event::said(seen.now, 3, "all servers have been visited"));
        }
    }

    /// Freezes the working set when its limit is met, and tells.
    fn follow_working_set(&mut self, seen: &Seen, events: &mut Vec<Event>) {
        let fills = self.score.filled_before + seen.counts.fills;
        for event in self.locks.working_set.look(fills, seen.now) {
            let text = match event {
                freeze::Event::Started => "working set: fill started".to_owned(),
                freeze::Event::Frozen => {
                    self.score.timeline.freeze();
                    format!("working set frozen: {fills} objects, {} bytes filled", seen.counts.fill_bytes)
                }
            };
            events.push(Event::said(seen.now, 5, text));
        }
    }
}

#[cfg(test)]
#[path = "conductor/tests.rs"]
mod tests;
