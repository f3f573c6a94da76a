//! Agreement of the processes of a test about phases: what each process reports, and what it has received from
//! others.
//!
//! All loops of a process, and of its worker processes, are one *group* with one id. A group reports its
//! *position*: the number of phases that it has completed, including one whose end it waits for. Robots send
//! theirs in requests; servers answer with the least of all positions that they know
//! (`docs/reference/models.md`, "End of a phase").

use serde::{Deserialize, Serialize};

use crate::id::UniqId;

/// The largest number of groups that are remembered: more than any bench has, and a bound for forged messages.
pub const MAX_GROUPS: usize = 1000;

/// The phase status that a process sends to others, and what it keeps for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStatus {
    /// The position of this process.
    pub position: u64,
    /// The least position of this process and of all clients that it has received.
    pub least: u64,
    /// The process is at the end of a phase and waits for others.
    pub waits: bool,
    /// A group that was given up because it was silent for too long.
    pub gone: Option<UniqId>,
}

/// The last status of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// The group.
    pub group: UniqId,
    /// Its position.
    pub position: u64,
    /// The group is at the end of a phase and waits for others; otherwise its position is that of a running
    /// phase.
    pub waits: bool,
    /// When the status arrived, in nanoseconds by the receiver's clock.
    pub at: u64,
    /// The group that it has given up, if any.
    pub gone: Option<UniqId>,
    /// Others answer in place of the group, so nobody waits for it until it sends a status again.
    pub replaced: bool,
}

/// Which status of a group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRule {
    /// The largest position: clients never go back, and their requests may overtake each other.
    Highest,
    /// The last one: the position that servers answer with falls when a new client appears.
    Latest,
}

/// The groups whose status has arrived.
#[derive(Clone, Debug)]
pub struct Groups {
    rule: StatusRule,
    statuses: Vec<PeerStatus>,
}

impl Groups {
    /// No groups.
    pub const fn new(rule: StatusRule) -> Groups {
        Groups { rule, statuses: Vec::new() }
    }

    /// Records a status. Returns the index of its group, or `None` if there are too many groups.
    pub fn record(&mut self, status: PeerStatus) -> Option<usize> {
        let Some(at) = self.statuses.iter().position(|known| known.group == status.group) else {
            if self.statuses.len() >= MAX_GROUPS {
                return None;
            }
            self.statuses.push(status);
            return Some(self.statuses.len() - 1);
        };
        let known = &mut self.statuses[at];
        match self.rule {
            StatusRule::Highest if status.position > known.position => {
                (known.position, known.waits) = (status.position, status.waits);
            }
            // A group that has gone on does not come back.
            StatusRule::Highest if status.position == known.position => known.waits &= status.waits,
            StatusRule::Latest if status.at >= known.at => {
                (known.position, known.replaced) = (status.position, status.replaced);
            }
            StatusRule::Highest | StatusRule::Latest => {}
        }
        known.at = known.at.max(status.at);
        known.gone = known.gone.or(status.gone);
        Some(at)
    }

    /// The last status of each group.
    pub fn statuses(&self) -> &[PeerStatus] {
        &self.statuses
    }

    /// The least position; `None` if no status has arrived.
    pub fn least(&self) -> Option<u64> {
        self.statuses.iter().map(|status| status.position).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(group: u32, position: u64, at: u64) -> PeerStatus {
        PeerStatus {
            group: UniqId { time: group, mix: 0, counter: 2 },
            position,
            waits: false,
            at,
            gone: None,
            replaced: false,
        }
    }

    #[test]
    fn which_word_counts() {
        // Statuses in a row, and the positions that are known then under both rules.
        let rows: [(&[PeerStatus], &[u64], &[u64]); 5] = [
            (&[], &[], &[]),
            (&[status(1, 3, 10), status(2, 4, 11)], &[3, 4], &[3, 4]),
            (&[status(1, 3, 10), status(1, 4, 12)], &[4], &[4]),
            // A request that was overtaken, and a new client far behind.
            (&[status(1, 4, 12), status(1, 3, 13)], &[4], &[3]),
            // Loops report the same group one after the other.
            (&[status(1, 4, 12), status(1, 3, 11)], &[4], &[4]),
        ];
        for (statuses, highest, latest) in rows {
            for (rule, expected) in [(StatusRule::Highest, highest), (StatusRule::Latest, latest)] {
                let mut groups = Groups::new(rule);
                for status in statuses {
                    assert!(groups.record(*status).is_some());
                }
                let positions: Vec<u64> = groups.statuses().iter().map(|status| status.position).collect();
                assert_eq!(positions, expected, "{rule:?} {statuses:?}");
                assert_eq!(groups.least(), expected.iter().min().copied());
            }
        }
    }

    #[test]
    fn who_has_gone_on_does_not_come_back() {
        let mut groups = Groups::new(StatusRule::Highest);
        for (position, waits, known) in [
            (1, false, (1, false)),
            (2, true, (2, true)),
            (1, false, (2, true)),
            (2, false, (2, false)),
            (2, true, (2, false)),
        ] {
            let _ = groups.record(PeerStatus { waits, ..status(1, position, 5) });
            let heard = groups.statuses()[0];
            assert_eq!((heard.position, heard.waits), known);
        }
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let mut groups = Groups::new(StatusRule::Highest);
        for number in 0..2 * MAX_GROUPS as u32 {
            let place = groups.record(status(number, 1, 0));
            assert_eq!(place.is_some(), (number as usize) < MAX_GROUPS);
        }
        assert_eq!(groups.record(status(7, 2, 5)), Some(7));
        assert_eq!((groups.statuses().len(), groups.statuses()[7].at), (MAX_GROUPS, 5));
    }
}
