//! Sessions: robots that are busy and idle in turn (reference: models.md, section 14.4).

use crate::distr::Distr;
use crate::rng::Random;

/// When a busy period ends: at the first of these that is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BusyGoal {
    /// Length in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Number of transactions that ended.
    pub transactions: Option<u64>,
    /// Bytes of fills.
    pub fill_bytes: Option<u64>,
}

/// How a robot alternates.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SessionPlan {
    /// End of busy periods.
    pub busy: BusyGoal,
    /// Length of idle periods in seconds.
    pub idle: Distr,
    /// Status notices per second while busy; 0: none.
    pub heartbeats: f64,
}

/// A busy period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    goal: BusyGoal,
    begin_ns: u64,
    transactions: u64,
    fill_bytes: u64,
}

impl SessionPlan {
    /// Begins a busy period.
    pub fn begin(&self, now_ns: u64) -> Session {
        Session { goal: self.busy, begin_ns: now_ns, transactions: 0, fill_bytes: 0 }
    }

    /// Length in nanoseconds of the idle period after session number `index` (from 0).
    pub fn idle_ns(&self, index: u64, rng: &mut impl Random) -> u64 {
        (self.idle.sample_at(index, rng) * 1e9) as u64
    }
}

impl Session {
    /// Counts a transaction that ended, and what it filled.
    pub fn count(&mut self, fill_bytes: u64) {
        self.transactions += 1;
        self.fill_bytes = self.fill_bytes.saturating_add(fill_bytes);
    }

    /// The period is over.
    pub fn is_over(&self, now_ns: u64) -> bool {
        let counted = |goal: Option<u64>, count: u64| goal.is_some_and(|goal| count >= goal);
        self.end_ns().is_some_and(|end| now_ns >= end)
            || counted(self.goal.transactions, self.transactions)
            || counted(self.goal.fill_bytes, self.fill_bytes)
    }

    /// When the period ends at the latest, if time ends it.
    pub fn end_ns(&self) -> Option<u64> {
        self.goal.duration_ns.map(|length| self.begin_ns.saturating_add(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn the_first_goal_ends_a_session() {
        let goal = |duration_ns, transactions, fill_bytes| BusyGoal { duration_ns, transactions, fill_bytes };
        let cases = [
            // goal, transactions of 100 bytes each, now, over
            (goal(Some(50), None, None), 1_000, 149, false),
            (goal(Some(50), None, None), 0, 150, true),
            (goal(None, Some(3), None), 2, u64::MAX, false),
            (goal(None, Some(3), None), 3, 100, true),
            (goal(None, None, Some(250)), 2, 100, false),
            (goal(None, None, Some(250)), 3, 100, true),
            (goal(Some(50), Some(3), None), 3, 101, true),
            (goal(Some(50), Some(3), None), 2, 150, true),
            (goal(None, None, None), 1_000, u64::MAX, false),
        ];
        for (busy, transactions, now, over) in cases {
            let mut session = SessionPlan { busy, idle: Distr::Const(1.0), heartbeats: 0.0 }.begin(100);
            (0..transactions).for_each(|_| session.count(100));
            assert_eq!(session.is_over(now), over, "{session:?} at {now}");
        }
    }

    #[test]
    fn idle_periods_follow_their_distribution() {
        let plan =
            SessionPlan { busy: BusyGoal::default(), idle: Distr::Ascending { first: 2.0 }, heartbeats: 0.0 };
        let mut rng = Seed(1).stream("session", 0);
        assert_eq!(
            [0, 1, 5].map(|index| plan.idle_ns(index, &mut rng)),
            [2, 3, 7].map(|s| s * 1_000_000_000)
        );
        let forever = SessionPlan { idle: Distr::Const(f64::INFINITY), ..plan };
        assert_eq!(forever.idle_ns(0, &mut rng), u64::MAX);
    }
}
