//! Moments and extremes of values, without a histogram.

use serde::{Deserialize, Serialize};

use crate::fold::Fold;
use crate::hist::Hist;

/// Count, sum, sum of squares, smallest and largest of some values that are never negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggr {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
    min: u64,
    max: u64,
}

impl Default for Aggr {
    fn default() -> Aggr {
        Aggr { count: 0, sum: 0.0, squares: 0.0, min: u64::MAX, max: 0 }
    }
}

impl Aggr {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += value as f64;
        self.squares += (value as f64).powi(2);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The moments of all values of a histogram, and the extremes of those since this was asked last.
    pub fn take(hist: &mut Hist) -> Aggr {
        let (min, max) = hist.take_extremes();
        Aggr { count: hist.count(), sum: hist.sum(), squares: hist.sum_of_squares(), min, max }
    }

    /// The moments without those of `earlier`; extremes stay.
    #[must_use]
    pub fn since(&self, earlier: &Aggr) -> Aggr {
        Aggr {
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum - earlier.sum,
            squares: self.squares - earlier.squares,
            ..*self
        }
    }

    /// Mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Standard deviation of the sample, `None` with fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        let n = self.count as f64;
        (n >= 2.0).then(|| ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0).sqrt())
    }

    /// Standard deviation as a share of the mean.
    pub fn rel_dev(&self) -> Option<f64> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        Some(self.std_dev()? / mean)
    }

    /// Smallest value, `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0 && self.min <= self.max).then_some(self.min)
    }

    /// Largest value, `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0 && self.min <= self.max).then_some(self.max)
    }
}

impl Fold for Aggr {
    fn fold(&mut self, other: &Aggr) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn clear(&mut self) {
        *self = Aggr::default();
    }
}

/// Times and sizes of the same transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TmSz {
    /// Response times in microseconds.
    pub rptm_us: Aggr,
    /// Sizes in bytes.
    pub size: Aggr,
}

crate::fold::fold_fields! { TmSz { rptm_us, size } }

impl TmSz {
    /// Counts one transaction.
    pub fn record(&mut self, rptm_us: u64, size: u64) {
        self.rptm_us.record(rptm_us);
        self.size.record(size);
    }

    /// See [`Aggr::take`].
    pub fn take(rptm_us: &mut Hist, size: &mut Hist) -> TmSz {
        TmSz { rptm_us: Aggr::take(rptm_us), size: Aggr::take(size) }
    }

    /// See [`Aggr::since`].
    #[must_use]
    pub fn since(&self, earlier: &TmSz) -> TmSz {
        TmSz { rptm_us: self.rptm_us.since(&earlier.rptm_us), size: self.size.since(&earlier.size) }
    }

    /// Both together.
    #[must_use]
    pub fn with(mut self, other: &TmSz) -> TmSz {
        self.fold(other);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_its_own_moments_and_extremes() {
        let mut hist = Hist::new();
        [900, 1].into_iter().for_each(|value| hist.record(value));
        let before = Aggr::take(&mut hist);
        assert_eq!((before.min(), before.max(), before.mean()), (Some(1), Some(900), Some(450.5)));
        [10, 20].into_iter().for_each(|value| hist.record(value));
        let later = Aggr::take(&mut hist).since(&before);
        let mut same = Aggr::default();
        [10, 20].into_iter().for_each(|value| same.record(value));
        assert_eq!(later, same);
        assert_eq!((later.min(), later.max(), later.std_dev()), (Some(10), Some(20), Some(50f64.sqrt())));
        let none = Aggr::take(&mut hist).since(&Aggr { count: 4, ..later });
        assert_eq!((none.min(), none.mean(), none.rel_dev()), (None, None, None));
        assert_eq!((hist.min(), hist.max()), (Some(1), Some(900)), "the histogram forgets nothing");
    }
}
