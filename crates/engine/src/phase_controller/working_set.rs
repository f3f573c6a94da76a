//! When the working set stops growing (docs/reference/models.md, "Working set limits").

use polygraph_link::{Nanos, nanos};
use polygraph_plan::WorkingSetLimit;

/// The state of the working set.
#[derive(Clone, Copy, Debug)]
pub struct WorkingSet {
    limit: Option<WorkingSetLimit>,
    start: Nanos,
    filling: bool,
    frozen: bool,
}

/// A change of the working set, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkingSetEvent {
    /// The first object was filled.
    Started,
    /// The limit is met, and the working set stops growing.
    Frozen,
}

impl WorkingSet {
    /// The empty working set of a run that starts at `start`.
    pub fn new(limit: Option<WorkingSetLimit>, start: Nanos) -> WorkingSet {
        WorkingSet { limit, start, filling: false, frozen: false }
    }

    /// A working set that an earlier run has frozen.
    pub fn frozen() -> WorkingSet {
        WorkingSet { limit: None, start: Nanos::ZERO, filling: true, frozen: true }
    }

    /// The changes when `fills` objects were filled until `now`, `of_phase` of them since the current phase started.
    /// Each change is returned once. Without a limit nothing changes.
    pub fn look(&mut self, fills: u64, of_phase: u64, now: Nanos) -> Vec<WorkingSetEvent> {
        let Some(limit) = self.limit else { return Vec::new() };
        let mut events = Vec::new();
        if fills > 0 && !self.filling {
            self.filling = true;
            events.push(WorkingSetEvent::Started);
        }
        let met = match limit {
            WorkingSetLimit::After(seconds) => now >= self.start.saturating_add(nanos(seconds)),
            WorkingSetLimit::Fill(count) => fills >= count,
            WorkingSetLimit::FillOfPhase(count) => of_phase >= count,
        };
        if met && !self.frozen {
            self.frozen = true;
            events.push(WorkingSetEvent::Frozen);
        }
        events
    }

    /// When the working set freezes, if only the clock decides.
    pub fn freezes_at(&self) -> Option<Nanos> {
        match self.limit? {
            WorkingSetLimit::After(seconds) => Some(self.start.saturating_add(nanos(seconds))),
            WorkingSetLimit::Fill(_) | WorkingSetLimit::FillOfPhase(_) => None,
        }
    }

    /// Whether phases that wait for the freeze must continue.
    pub fn blocks_phases(&self) -> bool {
        self.filling && !self.frozen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;

    #[test]
    fn a_set_fills_and_freezes_once() {
        use WorkingSetEvent::{Frozen, Started};
        let fill = Some(WorkingSetLimit::Fill(10));
        let after = Some(WorkingSetLimit::After(2.0));
        // Limit, and looks in a row: fills, seconds since the start, events, phases held afterwards.
        type Look = (u64, u64, &'static [WorkingSetEvent], bool);
        let cases: [(Option<WorkingSetLimit>, &[Look]); 4] = [
            (
                fill,
                &[
                    (0, 0, &[], false),
                    (3, 1, &[Started], true),
                    (9, 9, &[], true),
                    (12, 9, &[Frozen], false),
                    (99, 10, &[], false),
                ],
            ),
            (fill, &[(10, 1, &[Started, Frozen], false)]),
            (
                after,
                &[
                    (0, 1, &[], false),
                    (3, 1, &[Started], true),
                    (9, 2, &[Frozen], false),
                    (10, 3, &[], false),
                ],
            ),
            (None, &[(99, 9, &[], false)]),
        ];
        for (limit, looks) in cases {
            let start = 50 * SECOND;
            let mut set = WorkingSet::new(limit, start);
            for &(fills, seconds, events, held) in looks {
                let observed = set.look(fills, 0, start + seconds * SECOND);
                assert_eq!(
                    (&observed[..], set.blocks_phases()),
                    (events, held),
                    "{limit:?}: {fills} at {seconds} s"
                );
            }
        }
    }

    #[test]
    fn the_fill_of_a_phase_counts_alone_if_the_limit_says_so() {
        use WorkingSetEvent::{Frozen, Started};
        let mut set = WorkingSet::new(Some(WorkingSetLimit::FillOfPhase(10)), SECOND);
        assert_eq!(set.look(9, 9, SECOND), [Started]);
        assert_eq!(set.look(12, 3, SECOND), []);
        assert!(set.blocks_phases());
        assert_eq!(set.look(19, 10, SECOND), [Frozen]);
    }
}
