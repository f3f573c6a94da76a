//! The conductor of a test: decides when phases begin and end, without a clock, threads or sockets.
//!
//! Whoever drives it tells what it has [`Seen`] and when; the conductor writes its decisions to the [`Timeline`] that all
//! loops read, and returns [`Event`]s for logs and consoles. A driver of real loops and a simulation do the same
//! with it.
//!
//! * [`event`]: what the conductor has to tell, and how that is logged.
//! * [`locks`]: what keeps a phase from ending although its goal is met.
//! * [`adjust`]: factors that change while a phase goes on.
//! * [`governor`]: those who watch a phase and change them: scripts, controllers.
//! * [`script`]: scripts of phases.
//! * [`freeze`]: when the working set stops growing.

pub mod adjust;
pub mod event;
pub mod freeze;
pub mod governor;
pub mod locks;
pub mod script;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::{Along, Factors, Phase, Schedule};
use polygraph_stats::{EndReason, Window};

pub use self::adjust::Adjustment;
pub use self::event::Event;
use self::freeze::WorkingSet;
pub use self::governor::{Governor, Helm, Sampler};
use self::locks::Locks;
use self::script::ScriptGovernor;
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
    /// The current phase has reached what it is for, whatever its goal says.
    satisfied: bool,
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
        Conductor {
            score,
            start,
            stage: Stage::Before(0, start),
            locks: Locks { working_set },
            last_traffic: (0, start),
            satisfied: false,
            engaged: Vec::new(),
            governors: Vec::new(),
            so_far: Window::default(),
        }
        .with_planned_governors()
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
        match self.stage.clone() {
            Stage::Before(phase, begin) => self.begin_phase(phase, begin, seen, &mut events),
            Stage::In(current) => self.go_on(&current, seen, &mut events),
            Stage::Over(_) => {}
        }
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

    /// The phase that is going on.
    pub fn phase(&self) -> Option<&Phase> {
        match &self.stage {
            Stage::In(current) => Some(&self.score.schedule.phases[current.phase]),
            Stage::Before(..) | Stage::Over(_) => None,
        }
    }

    /// The factors that are in force in the current phase.
    pub fn factors(&self) -> Option<Factors> {
        match &self.stage {
            Stage::In(current) => Some(self.score.timeline.factors(current.phase)),
            Stage::Before(..) | Stage::Over(_) => None,
        }
    }

    /// Share of its goal that the current phase has reached (0 to 1): what its factors follow. 0 without a goal.
    pub fn progress(&self, seen: &Seen) -> f64 {
        match &self.stage {
            Stage::In(current) => self.progress_of(current, seen).unwrap_or(0.0),
            Stage::Before(..) | Stage::Over(_) => 0.0,
        }
    }

    /// Changes factors of the current phase from now on.
    pub fn adjust(&mut self, adjustment: Adjustment, seen: &Seen) {
        let Stage::In(current) = &self.stage else { return };
        let progress = self.progress_of(current, seen).unwrap_or(0.0);
        let factors = adjustment.apply(self.score.timeline.factors(current.phase), progress);
        self.score.timeline.set_factors(current.phase, factors);
    }

    /// Ends the current phase as if its goal were met: as soon as no lock holds it.
    pub fn satisfy(&mut self) {
        self.satisfied = true;
    }

    fn plan(&self, current: &Current) -> &Phase {
        &self.score.schedule.phases[current.phase]
    }

    fn begin_phase(&mut self, phase: usize, begin: Nanos, seen: &Seen, events: &mut Vec<Event>) {
        let before = if phase == 0 { Counts::default() } else { seen.counts };
        if phase == 0 {
            self.last_traffic = (seen.activity, self.start);
        }
        let current = Current { phase, begin, before };
        self.stage = Stage::In(current);
        self.satisfied = false;
        self.decide_end(&current, seen);
        events.push(Event::PhaseBegins { phase, at: begin });
        self.so_far = seen.news.carry();
        let engaged = std::mem::take(&mut self.engaged);
        let (of_this, others) = engaged.into_iter().partition(|(of, _)| *of == phase);
        self.engaged = others;
        self.governors = Vec::from_iter(of_this).into_iter().map(|(_, governor)| governor).collect();
        self.govern(&current, seen, events, |governor, helm| governor.begin(helm));
    }

    fn go_on(&mut self, current: &Current, seen: &Seen, events: &mut Vec<Event>) {
        if self.last_traffic.0 != seen.activity {
            self.last_traffic = (seen.activity, seen.now);
        }
        self.follow_working_set(seen, events);
        if let Some(reason) = self.cut(current, seen) {
            // An endless phase has no goal that could be missed: being stopped is its end.
            let complete = self.plan(current).goal.is_endless();
            let at = seen.now.max(self.start) + NOTICE;
            self.score.timeline.cut(current.phase, at);
            events.push(Event::PhaseEnds { phase: current.phase, at, complete });
            self.stage = Stage::Over(reason);
            return;
        }
        self.publish_progress(current, seen);
        self.so_far.append(&seen.news);
        self.govern(current, seen, events, |governor, helm| governor.look(helm));
        self.decide_end(current, seen);
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
    fn cut(&self, current: &Current, seen: &Seen) -> Option<EndReason> {
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

    /// Sets the end of the current phase when it is known: ahead of time for durations, or when another goal is
    /// met; never while a lock holds the phase.
    fn decide_end(&self, current: &Current, seen: &Seen) {
        let phase = self.plan(current);
        let (goal, now) = (&phase.goal, seen.now);
        let published = self.score.timeline.end(current.phase);
        // Who has enough of a phase need not wait for its time.
        let brought_forward = self.satisfied && published.is_some_and(|end| end > now + NOTICE);
        if published.is_some() && !brought_forward || self.locks.holding(phase).is_some() {
            return;
        }
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let done = seen.counts - current.before;
        // A time is published ahead, unless something else may still come first or stand against it.
        let sure = goal.xactions.is_none() && goal.fill_size.is_none() && !Locks::may_hold(phase);
        let end = if self.satisfied || goal.is_met(done.ended(), done.fill_bytes) {
            planned.unwrap_or(Nanos::MAX).min(now + NOTICE)
        } else {
            match planned {
                Some(planned) if sure || planned <= now + 2 * NOTICE => planned,
                _ => return,
            }
        };
        // Never in the past, even if this comes late: loops may be beyond it already.
        let end = if end <= now { now + NOTICE } else { end };
        self.score.timeline.set_end(current.phase, end);
    }

    /// Publishes how far the current phase is, if its factors follow that.
    fn publish_progress(&self, current: &Current, seen: &Seen) {
        let along = self.plan(current).goal.along();
        if !matches!(along, Some(Along::Time(_)) | None)
            && let Some(share) = self.progress_of(current, seen)
        {
            self.score.timeline.set_progress(current.phase, share);
        }
    }

    fn progress_of(&self, current: &Current, seen: &Seen) -> Option<f64> {
        let done = seen.counts - current.before;
        let share = match self.plan(current).goal.along()? {
            Along::Time(seconds) => seen.now.saturating_sub(current.begin) as f64 / nanos(seconds) as f64,
            Along::Xactions(goal) => done.ended() as f64 / goal as f64,
            Along::Fill(goal) => done.fill_bytes as f64 / goal as f64,
        };
        Some(share.clamp(0.0, 1.0))
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
