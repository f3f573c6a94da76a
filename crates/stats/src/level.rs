//! Levels: numbers of things that exist at the same time (open connections, transactions in progress).

use polygraph_link::Nanos;
use serde::{Deserialize, Serialize};

/// A level over an interval: its value, its mean over time, and the numbers of increments and decrements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Value at the end of the interval.
    pub last: u64,
    /// Largest value in the interval; for merged levels the sum of the largest values of the parts, an upper bound.
    pub peak: u64,
    /// Number of increments.
    pub entered: u64,
    /// Number of decrements.
    pub left: u64,
    /// Integral of the level over the interval, in units times seconds.
    pub integral: f64,
    /// Time of the last change in nanoseconds; used only while the interval is filled.
    #[serde(skip)]
    changed: Nanos,
}

impl Level {
    /// Increments the level at `now`.
    #[inline]
    pub fn enter(&mut self, now: Nanos) {
        self.advance(now);
        self.last += 1;
        self.entered += 1;
        self.peak = self.peak.max(self.last);
    }

    /// Decrements the level at `now`.
    #[inline]
    pub fn leave(&mut self, now: Nanos) {
        self.advance(now);
        self.last = self.last.saturating_sub(1);
        self.left += 1;
    }

    /// Cancels at `now` an increment at `then` of this interval that is not to be counted.
    pub fn forget(&mut self, then: Nanos, now: Nanos) {
        self.advance(now);
        let (last, entered) = (self.last, self.entered);
        self.last = last.saturating_sub(1);
        self.entered = entered.saturating_sub(1);
        if self.peak == last {
            self.peak -= last - self.last;
        }
        self.integral = (self.integral - now.saturating_sub(then).as_f64() * 1e-9).max(0.0);
    }

    /// Sets the level to `value` at `now`.
    pub fn set(&mut self, now: Nanos, value: u64) {
        self.advance(now);
        self.entered += value.saturating_sub(self.last);
        self.left += self.last.saturating_sub(value);
        self.last = value;
        self.peak = self.peak.max(value);
    }

    /// Ends the interval at `now`: brings the integral up to date.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.changed);
        self.integral += self.last as f64 * elapsed.as_f64() * 1e-9;
        self.changed = self.changed.max(now);
    }

    /// The level at the start of the next interval, after [`Level::advance`]: the same value, without counts.
    #[must_use]
    pub fn carry(&self) -> Level {
        Level { last: self.last, peak: self.last, changed: self.changed, ..Level::default() }
    }

    /// Adds a concurrent level (another loop, same interval).
    pub fn merge(&mut self, other: &Level) {
        self.last += other.last;
        self.peak += other.peak;
        self.entered += other.entered;
        self.left += other.left;
        self.integral += other.integral;
    }

    /// Appends the level of a later interval.
    pub fn concatenate(&mut self, later: &Level) {
        self.last = later.last;
        self.peak = self.peak.max(later.peak);
        self.entered += later.entered;
        self.left += later.left;
        self.integral += later.integral;
    }

    /// Mean over `seconds`; `None` if no time passed.
    pub fn mean(&self, seconds: f64) -> Option<f64> {
        (seconds > 0.0).then(|| self.integral / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_mean_is_weighted_by_time() {
        let mut level = Level::default();
        level.enter(Nanos::ZERO);
        level.enter(Nanos::new(SECOND));
        level.leave(Nanos::new(3 * SECOND));
        level.advance(Nanos::new(4 * SECOND));
        assert_eq!(level.mean(4.0), Some((1.0 + 2.0 * 2.0 + 1.0) / 4.0));
        assert_eq!((level.last, level.peak, level.entered, level.left), (1, 2, 2, 1));
        level.set(Nanos::new(4 * SECOND), 3);
        level.set(Nanos::new(4 * SECOND), 1);
        assert_eq!((level.last, level.peak, level.entered, level.left), (1, 3, 4, 3));
        let mut next = level.carry();
        next.advance(Nanos::new(5 * SECOND));
        assert_eq!(next.mean(1.0), Some(1.0));
    }

    #[test]
    fn what_is_forgotten_leaves_nothing() {
        let mut level = Level::default();
        level.enter(Nanos::ZERO);
        let mut other = level.clone();
        other.enter(Nanos::new(SECOND));
        other.forget(Nanos::new(SECOND), Nanos::new(2 * SECOND));
        level.advance(Nanos::new(2 * SECOND));
        assert_eq!(other, level);
    }
}
