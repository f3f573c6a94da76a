//! Goals: when a phase is complete, and when the test has failed.

use std::fmt;

use polygraph_text as text;

use serde::{Deserialize, Serialize};

/// The number of transactions after which an error share is judged.
pub const ERROR_RATIO_AFTER: u64 = 1000;

/// The default share of failed transactions in a phase that ends the test.
pub const DEFAULT_ERRORS: f64 = 0.5;

/// What a phase aims at. Meeting one of the positive goals (duration, transactions, fill) ends the phase;
/// reaching the negative goal (errors) ends the whole test (`docs/reference/models.md`, "Goals").
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Positive: seconds since the start of the phase.
    pub duration: Option<f64>,
    /// Positive: transactions that ended in the phase, successful or not.
    pub xactions: Option<u64>,
    /// Positive: bytes of replies that filled the device's cache in the phase: cachable basic misses.
    pub fill_size: Option<u64>,
    /// Negative: below 1 a share of failed transactions, checked after [`ERROR_RATIO_AFTER`] of them; from 1
    /// on a number of failed transactions.
    pub errors: Option<f64>,
}

/// The positive goal along which the factors of a phase change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PositiveGoal {
    /// Seconds since the start of the phase.
    Time(f64),
    /// Transactions that ended in the phase.
    Xactions(u64),
    /// Bytes filled in the phase.
    Fill(u64),
}

impl Goal {
    /// True if nothing ends the phase but its negative goal or a signal.
    pub fn is_endless(&self) -> bool {
        self.along().is_none()
    }

    /// The goal that factors follow: the duration if there is one, else transactions, else the fill. `None` in an
    /// endless phase.
    pub fn along(&self) -> Option<PositiveGoal> {
        let others = || self.xactions.map(PositiveGoal::Xactions).or(self.fill_size.map(PositiveGoal::Fill));
        self.duration.map(PositiveGoal::Time).or_else(others)
    }

    /// True if a fill is the only positive goal.
    pub fn ends_by_fill_alone(&self) -> bool {
        matches!(self.along(), Some(PositiveGoal::Fill(_)))
    }

    /// Whether `xactions` ended transactions or `filled` bytes of the phase meet a positive goal. The duration
    /// is not considered: its end is known in advance.
    pub fn is_met(&self, xactions: u64, filled: u64) -> bool {
        self.xactions.is_some_and(|goal| xactions >= goal)
            || self.fill_size.is_some_and(|goal| filled >= goal)
    }

    /// Whether `ok` and `failed` transactions of the phase reach the negative goal.
    pub fn has_failed(&self, ok: u64, failed: u64) -> bool {
        let ended = ok + failed;
        match self.errors {
            Some(share) if share < 1.0 => ended >= ERROR_RATIO_AFTER && failed as f64 >= share * ended as f64,
            Some(count) => failed as f64 >= count,
            None => false,
        }
    }

    /// The goal with its positive parts multiplied by `share`, counts at least 1. The negative goal does not
    /// change.
    #[must_use]
    pub fn part(&self, share: f64) -> Goal {
        Goal {
            duration: self.duration.map(|duration| duration * share),
            xactions: self.xactions.map(|xactions| scaled(xactions, share)),
            fill_size: self.fill_size.map(|bytes| scaled(bytes, share)),
            errors: self.errors,
        }
    }
}

/// A count multiplied by `factor`, at least 1.
pub(crate) fn scaled(count: u64, factor: f64) -> u64 {
    ((count as f64 * factor).round() as u64).max(1)
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.xactions.map(|count| text::counted(count, "transaction")));
        parts.extend(self.duration.map(text::duration));
        parts.extend(self.fill_size.map(|bytes| format!("{} filled", text::bytes(Some(bytes as f64)))));
        parts.extend(self.errors.map(|errors| match errors < 1.0 {
            true => format!("fail at {} errors", text::percent(errors, 2)),
            false => format!("fail at {}", text::counted(errors as u64, "error")),
        }));
        if parts.is_empty() { f.write_str("none") } else { f.write_str(&parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_goals() {
        let goal = |duration, xactions, fill_size| Goal { duration, xactions, fill_size, errors: Some(0.5) };
        for (goal, along) in [
            (goal(None, None, None), None),
            (goal(Some(2.0), Some(5), Some(7)), Some(PositiveGoal::Time(2.0))),
            (goal(None, Some(5), Some(7)), Some(PositiveGoal::Xactions(5))),
            (goal(None, None, Some(7)), Some(PositiveGoal::Fill(7))),
        ] {
            assert_eq!((goal.along(), goal.is_endless()), (along, along.is_none()), "{goal}");
        }
        let both = goal(Some(2.0), Some(5), Some(7));
        for (xactions, filled, met) in [(0, 0, false), (4, 6, false), (5, 0, true), (0, 7, true)] {
            assert_eq!(both.is_met(xactions, filled), met, "{xactions} {filled}");
        }
    }

    #[test]
    fn negative_goals() {
        let share = Goal { errors: Some(0.3), ..Goal::default() };
        assert!(!share.has_failed(10, 989), "too early to judge");
        assert!(share.has_failed(700, 300));
        assert!(!share.has_failed(701, 299));
        let count = Goal { errors: Some(5.0), ..Goal::default() };
        assert!(count.has_failed(0, 5) && !count.has_failed(1000, 4));
    }
}
