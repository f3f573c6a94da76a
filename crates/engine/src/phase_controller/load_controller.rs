//! The interface of scripts and controllers that change the load during a phase.
//!
//! A [`LoadController`] belongs to one phase. The phase controller calls it at every step; the load controller
//! collects [`Sampler`]s of any length and acts on the phase through a [`ControlHandle`].

use std::fmt::Debug;

use polygraph_link::{Nanos, nanos};
use polygraph_plan::{Factors, Goal};
use polygraph_stats::{Class, ErrorKind, Window};
use polygraph_text as text;

use crate::phase_controller::{Adjustment, ControlEvent};

/// Changes the load of a phase.
pub trait LoadController: Debug {
    /// The phase has started.
    fn begin(&mut self, handle: &mut ControlHandle<'_>);

    /// Some time has passed; `handle.delta` is what happened since the last call.
    fn look(&mut self, handle: &mut ControlHandle<'_>);
}

/// What a load controller knows and can do.
#[derive(Debug)]
pub struct ControlHandle<'a> {
    /// The time.
    pub now: Nanos,
    /// What happened since the last call.
    pub delta: &'a Window,
    /// What happened in the phase so far.
    pub phase: &'a Window,
    pub(super) factors: Factors,
    pub(super) progress: f64,
    pub(super) satisfied: bool,
    pub(super) events: &'a mut Vec<ControlEvent>,
}

impl ControlHandle<'_> {
    /// The load factor in force (0 to 1).
    pub fn load(&self) -> f64 {
        self.factors.load.at(self.progress)
    }

    /// The populus factor in force (0 to 1).
    pub fn populus(&self) -> f64 {
        self.factors.populus.at(self.progress)
    }

    /// Changes a factor from now on, and reports that (message level 6) if the factor changes.
    pub fn adjust(&mut self, adjustment: Adjustment) {
        let name = adjustment.factor();
        let pick = |factors: Factors| if name == "load" { factors.load } else { factors.populus };
        let planned = pick(self.factors);
        self.factors = adjustment.apply(self.factors, self.progress);
        let after = pick(self.factors);
        if after == planned {
            return;
        }
        let before = planned.at(self.progress);
        let percent = |factor: f64| text::percent(factor, 2);
        let mut text = format!("fyi: {name} factor {} -> ", percent(before));
        text += &match after.is_flat() {
            true => percent(after.beg),
            false => format!("{}, {} at the end", percent(after.at(self.progress)), percent(after.at(1.0))),
        };
        self.say(6, text);
    }

    /// Ends the phase as if its positive goal were met.
    pub fn satisfy(&mut self) {
        self.satisfied = true;
    }

    /// Writes a message for the user.
    pub fn say(&mut self, level: u8, text: impl Into<String>) {
        self.events.push(ControlEvent::message(self.now, level, text));
    }

    /// Counts an error of the workload.
    pub fn error(&mut self, kind: ErrorKind, detail: impl Into<String>) {
        self.events.push(ControlEvent::WorkloadError { at: self.now, kind, detail: detail.into() });
    }
}

/// A sample that grows until its goal is reached, and then starts again.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// The goal of a sample. It is complete as soon as any part of the goal is reached, positive or negative.
    pub goal: Goal,
    begin: Nanos,
    window: Window,
}

impl Sampler {
    /// A sample that starts at `now`.
    pub fn new(goal: Goal, now: Nanos) -> Sampler {
        Sampler { goal, begin: now, window: Window::default() }
    }

    /// Adds `delta`; returns the sample if it is complete.
    pub fn look(&mut self, now: Nanos, delta: &Window) -> Option<Window> {
        self.window.append(delta);
        let window = &self.window;
        let (ended, filled) = (window.ended(), window.of(&[Class::Miss]).size.sum as u64);
        let timed = self.goal.duration.is_some_and(|duration| now >= self.begin + nanos(duration));
        let reached = timed
            || self.goal.is_met(ended, filled)
            || self.goal.has_failed(ended - window.failed, window.failed);
        reached.then(|| {
            self.begin = now;
            let carried = self.window.carry();
            std::mem::replace(&mut self.window, carried)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;
    use polygraph_stats::TimeAndSize;

    /// Ten transactions of 100 bytes that took 1 ms each, and one that failed.
    fn delta() -> Window {
        let mut sums = TimeAndSize::default();
        (0..10).for_each(|_| sums.record(1000, 100));
        let mut delta = Window::lasting(1.0);
        delta.failed = 1;
        delta.classes[Class::Miss as usize] = sums;
        delta
    }

    #[test]
    fn samples_are_complete_when_any_part_of_the_goal_is_reached() {
        let goals = [
            (Goal { duration: Some(2.5), ..Goal::default() }, 3),
            (Goal { xactions: Some(40), ..Goal::default() }, 4),
            (Goal { xactions: Some(40), duration: Some(2.0), ..Goal::default() }, 2),
            (Goal { fill_size: Some(1001), ..Goal::default() }, 2),
            (Goal { errors: Some(5.0), ..Goal::default() }, 5),
        ];
        for (goal, looks) in goals {
            let begin = 7 * SECOND;
            let mut sampler = Sampler::new(goal, begin);
            for round in 0..3 {
                for look in 1..looks {
                    assert!(
                        sampler.look(begin + (round * looks + look) * SECOND, &delta()).is_none(),
                        "{goal}"
                    );
                }
                let sample = sampler.look(begin + (round + 1) * looks * SECOND, &delta());
                let sample = sample.unwrap_or_else(|| panic!("{goal}: nothing in round {round}"));
                assert_eq!((sample.ended(), sample.failed), (looks * 11, looks), "{goal}");
            }
        }
    }
}
