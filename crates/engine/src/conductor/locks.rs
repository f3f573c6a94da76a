//! What keeps a phase from ending although its goal is met (reference: models.md, section 17.4).

use polygraph_plan::Phase;

use super::freeze::WorkingSet;

/// A reason for which a phase goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The working set fills and is not frozen yet.
    WorkingSet,
}

/// All that may hold a phase.
#[derive(Debug)]
pub struct Locks {
    /// The working set.
    pub working_set: WorkingSet,
}

impl Locks {
    /// What holds `phase` now, if anything does.
    pub fn holding(&self, phase: &Phase) -> Option<Lock> {
        (phase.wait_wss_freeze && self.working_set.holds_phases()).then_some(Lock::WorkingSet)
    }

    /// Whether something may hold `phase` when its end comes, so that the end cannot be published ahead.
    pub fn may_hold(phase: &Phase) -> bool {
        phase.wait_wss_freeze
    }
}
