//! Those who watch a running phase and steer it: scripts, controllers of load.
//!
//! A [`LoadController`] belongs to one phase. It gets to see what is new at every step of the controller, collects
//! [`Sampler`]s of whatever length, and acts on the phase through the [`ControlHandle`].

use std::fmt::Debug;

use polygraph_link::{Nanos, nanos};
use polygraph_plan::{Factors, Goal};
use polygraph_stats::{Class, ErrorKind, Window};

use crate::phase_controller::{Adjustment, ControlEvent};

/// Somebody who steers a phase.
pub trait LoadController: Debug {
    /// The phase has begun.
    fn begin(&mut self, handle: &mut ControlHandle<'_>);

    /// Some time has passed; `handle.delta` is what happened since the last look or the begin.
    fn look(&mut self, handle: &mut ControlHandle<'_>);
}

/// What a load_controller knows, and what it can do.
#[derive(Debug)]
pub struct ControlHandle<'a> {
    /// The time.
    pub now: Nanos,
    /// What happened since the last look.
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

    /// Changes a factor from now on, and tells so (message level 6) if that makes a difference.
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
        let mut text = format!("fyi: {name} factor {:.2}% -> ", before * 100.0);
        text += &match after.is_flat() {
            true => format!("{:.2}%", after.beg * 100.0),
            false => {
                format!("{:.2}%, {:.2}% at the end", after.at(self.progress) * 100.0, after.at(1.0) * 100.0)
            }
        };
        self.say(6, text);
    }

    /// RelayChannels the phase as if its positive goal were met.
    pub fn satisfy(&mut self) {
        self.satisfied = true;
    }

    /// A line for people at a message level.
    pub fn say(&mut self, level: u8, text: impl Into<String>) {
        self.events.push(ControlEvent::said(self.now, level, text));
    }

    /// An error of the workload, which is counted.
    pub fn error(&mut self, kind: ErrorKind, detail: impl Into<String>) {
        self.events.push(ControlEvent::Erred { at: self.now, kind, detail: detail.into() });
    }
}

/// A sample that grows until its goal is reached, and then begins anew.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// When a sample is complete: any of its parts is reached, positive or negative.
    pub goal: Goal,
    begin: Nanos,
    window: Window,
}

impl Sampler {
    /// A sample that begins at `now`.
    pub fn new(goal: Goal, now: Nanos) -> Sampler {
        Sampler { goal, begin: now, window: Window::default() }
    }

    /// Adds what is new; returns the sample if it is complete.
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
