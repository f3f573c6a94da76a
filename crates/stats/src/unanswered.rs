//! Requests that nobody has answered yet.

use serde::{Deserialize, Serialize};

/// The ages in seconds by which unanswered requests are counted.
pub const AGES_S: [u64; 14] = [1, 2, 3, 4, 5, 7, 10, 15, 20, 50, 100, 200, 500, 1000];

/// Numbers of requests that had been sent, and of whose replies nothing had arrived, at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// Those at least as old as each of [`AGES_S`].
    older: [u64; AGES_S.len()],
}

impl Unanswered {
    /// Counts a request that was sent so many nanoseconds ago.
    pub fn count(&mut self, age_ns: u64) {
        for (count, age_s) in self.older.iter_mut().zip(AGES_S) {
            *count += u64::from(age_ns >= age_s * 1_000_000_000);
        }
    }

    /// The first of [`AGES_S`] that is not below `seconds`, and the number of requests as old as that; `None` if there is none.
    pub fn older_than(&self, seconds: f64) -> Option<(u64, u64)> {
        let at = AGES_S.iter().position(|age| *age as f64 >= seconds)?;
        Some((AGES_S[at], self.older[at]))
    }

    /// Adds those of another loop at the same time.
    pub fn merge(&mut self, other: &Unanswered) {
        self.older.iter_mut().zip(other.older).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_age() {
        let mut all = Unanswered::default();
        [0, 999_999_999, 1_000_000_000, 7_000_000_000].into_iter().for_each(|age| all.count(age));
        let mut both = all;
        both.merge(&all);
        for (seconds, expected) in [
            (0.0, Some((1, 4))),
            (1.0, Some((1, 4))),
            (1.1, Some((2, 2))),
            (6.0, Some((7, 2))),
            (7.1, Some((10, 0))),
            (2e3, None),
        ] {
            assert_eq!(both.older_than(seconds), expected, "{seconds}");
        }
    }
}
