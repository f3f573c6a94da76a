//! What keeps a phase from ending although its goal is met (docs/reference/models.md, "End of a phase" and "First
//! contact").

use polygraph_link::Nanos;
use polygraph_plan::Phase;

use super::working_set::WorkingSet;

/// The robots give up the first visits to all servers after this time without a successful one.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// A reason for which a phase does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndBlocker {
    /// The working set is filling and not frozen yet.
    WorkingSet,
    /// Robots have not visited all servers yet.
    FirstVisits,
    /// Other processes of the test have not reached the end of the phase.
    PeerSettings,
}

impl EndBlocker {
    /// The reason as the end of a message.
    pub fn text(self) -> &'static str {
        match self {
            EndBlocker::WorkingSet => "the working set is not frozen yet",
            EndBlocker::FirstVisits => "not all servers have been visited yet",
            EndBlocker::PeerSettings => "other processes have not reached its end yet",
        }
    }
}

/// All reasons in this process for which a phase may not end.
#[derive(Debug)]
pub struct EndBlockers {
    /// The working set.
    pub working_set: WorkingSet,
    /// The first visits to all servers.
    pub first_visits: FirstVisits,
}

impl EndBlockers {
    /// The reason for which `phase`, with the number `number` in the schedule, does not end at `now`.
    pub fn blocking(&self, phase: &Phase, number: usize, now: Nanos) -> Option<EndBlocker> {
        if phase.wait_wss_freeze && self.working_set.blocks_phases() {
            return Some(EndBlocker::WorkingSet);
        }
        (number == 0 && self.first_visits.are_awaited(now)).then_some(EndBlocker::FirstVisits)
    }
}

/// The progress of the first visits to all servers.
#[derive(Clone, Copy, Debug)]
pub struct FirstVisits {
    left: usize,
    /// When the last visit succeeded.
    last: Nanos,
}

impl FirstVisits {
    /// No visit has been made at `start`.
    pub fn new(start: Nanos) -> FirstVisits {
        FirstVisits { left: 0, last: start }
    }

    /// Records that `left` servers remain at `now`. Returns true if the last visit has just succeeded.
    pub fn look(&mut self, left: usize, now: Nanos) -> bool {
        let before = std::mem::replace(&mut self.left, left);
        if before != left {
            self.last = now;
        }
        before > 0 && left == 0
    }

    fn are_awaited(&self, now: Nanos) -> bool {
        self.left > 0 && now < self.last + PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;

    #[test]
    fn first_visits_hold_the_first_phase_for_as_long_as_they_succeed() {
        let phase = Phase::default();
        let mut end_blockers = EndBlockers {
            working_set: WorkingSet::new(None, Nanos::ZERO),
            first_visits: FirstVisits::new(SECOND),
        };
        // Second, servers left, whether these were the last, and what holds the first phase.
        for (second, left, done, lock) in [
            (1, 0, false, None),
            (2, 40, false, Some(EndBlocker::FirstVisits)),
            (31, 39, false, Some(EndBlocker::FirstVisits)),
            (60, 39, false, Some(EndBlocker::FirstVisits)),
            (61, 39, false, None),
            (62, 38, false, Some(EndBlocker::FirstVisits)),
            (63, 0, true, None),
            (64, 0, false, None),
        ] {
            let now = second * SECOND;
            assert_eq!(end_blockers.first_visits.look(left, now), done, "{second} s");
            assert_eq!(end_blockers.blocking(&phase, 0, now), lock, "{second} s");
            assert_eq!(end_blockers.blocking(&phase, 1, now), None);
        }
    }
}
