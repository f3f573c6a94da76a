//! Goals: when a phase has done its work, and when the test has failed.

use std::fmt;

/// Error shares are judged only after so many transactions.
pub const ERROR_RATIO_AFTER: u64 = 1000;

/// What a phase aims at. Meeting one of the positive goals (duration, transactions) ends the phase; reaching
/// the negative goal (errors) ends the whole test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// Positive: seconds since the phase began.
    pub duration: Option<f64>,
    /// Positive: transactions ended in the phase, well or badly.
    pub xactions: Option<u64>,
    /// Negative: below 1 a share of failed transactions, checked after [`ERROR_RATIO_AFTER`] of them; from 1
    /// on a number of failed transactions.
    pub errors: Option<f64>,
}

impl Goal {
    /// True if nothing ends the phase but its negative goal or a signal.
    pub fn is_endless(&self) -> bool {
        self.duration.is_none() && self.xactions.is_none()
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

    /// The part of the goal that a phase with `share` of the whole gets; the negative goal is the same for all.
    #[must_use]
    pub fn part(&self, share: f64) -> Goal {
        Goal {
            duration: self.duration.map(|duration| duration * share),
            xactions: self.xactions.map(|xactions| ((xactions as f64 * share).round() as u64).max(1)),
            errors: self.errors,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.xactions.map(|n| format!("{n} transactions")));
        parts.extend(self.duration.map(|s| format!("{s} s")));
        parts.extend(self.errors.map(|e| match e < 1.0 {
            true => format!("fail at {:.0} % errors", e * 100.0),
            false => format!("fail at {e} errors"),
        }));
        if parts.is_empty() { f.write_str("none") } else { f.write_str(&parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
