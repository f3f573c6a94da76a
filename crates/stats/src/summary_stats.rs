//! Summary statistics of values: moments and extremes, without a histogram.

use serde::{Deserialize, Serialize};

use crate::fold::Fold;

/// Count, sum, sum of squares, smallest and largest of some non-negative values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummaryStats {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of the squares of the values.
    pub squares: f64,
    min: u64,
    max: u64,
}

impl Default for SummaryStats {
    fn default() -> SummaryStats {
        SummaryStats { count: 0, sum: 0.0, squares: 0.0, min: u64::MAX, max: 0 }
    }
}

impl SummaryStats {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += value as f64;
        self.squares += (value as f64).powi(2);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts `n` equal values.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n > 0 {
            self.record(value);
            self.count += n - 1;
            self.sum += value as f64 * (n - 1) as f64;
            self.squares += (value as f64).powi(2) * (n - 1) as f64;
        }
    }

    /// Smallest and largest value since the last call.
    pub(crate) fn take_extremes(&mut self) -> (u64, u64) {
        let taken = (self.min, self.max);
        (self.min, self.max) = (u64::MAX, 0);
        taken
    }

    /// The same moments, with extremes that include these.
    #[must_use]
    pub(crate) fn with_extremes(&self, (min, max): (u64, u64)) -> SummaryStats {
        SummaryStats { min: self.min.min(min), max: self.max.max(max), ..*self }
    }

    /// The same summary with these extremes instead.
    #[must_use]
    pub(crate) fn with_only_extremes(self, (min, max): (u64, u64)) -> SummaryStats {
        SummaryStats { min, max, ..self }
    }

    /// The summary without `part`, whose values must be in it; the remaining values lie within `bounds`.
    pub(crate) fn without(&self, part: &SummaryStats, bounds: Option<(u64, u64)>) -> SummaryStats {
        let Some((first, last)) = bounds else { return SummaryStats::default() };
        let left = self.since(part);
        let (sum, squares) = (left.sum.max(0.0), left.squares.max(0.0));
        SummaryStats { sum, squares, min: first.max(self.min), max: last.min(self.max), ..left }
    }

    /// The moments without those of `earlier`; extremes are unchanged.
    #[must_use]
    pub fn since(&self, earlier: &SummaryStats) -> SummaryStats {
        SummaryStats {
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

impl Fold for SummaryStats {
    fn fold(&mut self, other: &SummaryStats) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn clear(&mut self) {
        *self = SummaryStats::default();
    }

    fn drop_bins(&mut self) {}
}

/// The form in the log; an empty summary takes one byte.
#[derive(Serialize, Deserialize)]
struct Logged {
    count: u64,
    sum: f64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Serialize for SummaryStats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SummaryStats { count, sum, squares, min, max } = *self;
        (count > 0).then_some(Logged { count, sum, squares, min, max }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SummaryStats {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<SummaryStats, D::Error> {
        let Some(logged) = Option::<Logged>::deserialize(deserializer)? else {
            return Ok(SummaryStats::default());
        };
        let Logged { count, sum, squares, min, max } = logged;
        if count == 0 || min > max {
            return Err(serde::de::Error::custom("smallest value above the largest"));
        }
        Ok(SummaryStats { count, sum, squares, min, max })
    }
}

/// Times and sizes of the same transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeAndSize {
    /// Response times in microseconds.
    pub rptm_us: SummaryStats,
    /// Sizes in bytes.
    pub size: SummaryStats,
}

crate::fold::fold_fields! { TimeAndSize { rptm_us, size } }

impl TimeAndSize {
    /// Counts one transaction.
    pub fn record(&mut self, rptm_us: u64, size: u64) {
        self.rptm_us.record(rptm_us);
        self.size.record(size);
    }

    /// See [`SummaryStats::since`].
    #[must_use]
    pub fn since(&self, earlier: &TimeAndSize) -> TimeAndSize {
        TimeAndSize { rptm_us: self.rptm_us.since(&earlier.rptm_us), size: self.size.since(&earlier.size) }
    }

    /// The statistics of both sets of transactions together.
    #[must_use]
    pub fn with(mut self, other: &TimeAndSize) -> TimeAndSize {
        self.fold(other);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_brings_them_back() {
        for n in 0..3 {
            let mut aggr = SummaryStats::default();
            aggr.record_n(300, n);
            let bytes = postcard::to_stdvec(&aggr).unwrap();
            assert_eq!(postcard::from_bytes::<SummaryStats>(&bytes).unwrap(), aggr);
            assert!(n > 0 || bytes.len() == 1);
        }
    }
}
