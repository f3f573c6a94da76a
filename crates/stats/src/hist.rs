//! Histograms of fixed size: exact count, sum, minimum and maximum, percentiles within 0.1 %.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Largest recordable value: an hour in microseconds, 3.6 GB in bytes. Larger values count as this one.
const HIGHEST: u64 = 3_600_000_000;
/// Decimal digits kept of every value.
const DIGITS: u8 = 3;
/// Values below this have bins of their own; from there on a bin is as wide as three digits allow.
const EXACT: u64 = 2048;
/// So many bins are kept as a list, before an array is taken: rare classes never need one.
const FEW: usize = 64;

/// The largest value of the bin that `value` belongs to.
fn bin_of(value: u64) -> u64 {
    let value = value.min(HIGHEST);
    let shift = (value | (EXACT - 1)).ilog2() - (EXACT - 1).ilog2();
    value | ((1 << shift) - 1)
}

/// A histogram of non-negative integers up to 3.6e9 with 0.1 % bins, plus exact moments.
#[derive(Clone)]
pub struct Hist {
    bins: Bins,
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    /// Extremes of the values since [`Hist::take_extremes`].
    min: u64,
    max: u64,
    /// Extremes of those before.
    earlier: (u64, u64),
}

/// No values: any value is smaller, and larger.
const NONE: (u64, u64) = (u64::MAX, 0);

/// A histogram that is being filled wants an array of counters (94 KB); one that was read from a log, or is
/// hardly used, wants only its used bins, or a report of a four-hour run would need gigabytes. Bins of the list
/// are in ascending order.
#[derive(Clone)]
enum Bins {
    Used(Vec<(u64, u32)>),
    Array(Histogram<u32>),
}

impl Default for Hist {
    fn default() -> Self {
        Hist::new()
    }
}

impl Hist {
    /// An empty histogram; memory for counters is taken when there are many different values.
    pub fn new() -> Hist {
        let (min, max) = NONE;
        let bins = Bins::Used(Vec::new());
        Hist { bins, count: 0, sum: 0.0, sum_of_squares: 0.0, min, max, earlier: NONE }
    }

    /// The counters, as an array from now on.
    fn array(&mut self) -> &mut Histogram<u32> {
        if let Bins::Used(used) = &self.bins {
            let mut array = Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("the bounds are constants");
            used.iter().for_each(|&(value, count)| array.saturating_record_n(value, count));
            self.bins = Bins::Array(array);
        }
        match &mut self.bins {
            Bins::Array(array) => array,
            Bins::Used(_) => unreachable!("turned into an array above"),
        }
    }

    /// Counts `n` values of one bin.
    fn count_in_bin(&mut self, value: u64, n: u32) {
        if let Bins::Used(used) = &mut self.bins {
            let bin = bin_of(value);
            match used.binary_search_by_key(&bin, |&(bin, _)| bin) {
                Ok(at) => {
                    used[at].1 = used[at].1.saturating_add(n);
                    return;
                }
                Err(at) if used.len() < FEW => {
                    used.insert(at, (bin, n));
                    return;
                }
                Err(_) => {}
            }
        }
        self.array().saturating_record_n(value, n);
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        match &mut self.bins {
            Bins::Array(array) => array.saturating_record(value),
            Bins::Used(_) => self.count_in_bin(value, 1),
        }
        self.count += 1;
        self.sum += value as f64;
        self.sum_of_squares += (value as f64).powi(2);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds everything that `other` has counted.
    pub fn merge(&mut self, other: &Hist) {
        if other.count == 0 {
            return;
        }
        match &other.bins {
            Bins::Used(used) => used.iter().for_each(|&(value, n)| self.count_in_bin(value, n)),
            Bins::Array(theirs) => self.array().add(theirs).expect("all histograms have the same bounds"),
        }
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        let (lowest, highest) = other.extremes();
        self.min = self.min.min(lowest);
        self.max = self.max.max(highest);
    }

    fn extremes(&self) -> (u64, u64) {
        (self.min.min(self.earlier.0), self.max.max(self.earlier.1))
    }

    /// Smallest and largest value since the last call; the first is above the second if there were none. Values are
    /// recorded as fast as without this.
    pub(crate) fn take_extremes(&mut self) -> (u64, u64) {
        self.earlier = self.extremes();
        let taken = (self.min, self.max);
        (self.min, self.max) = NONE;
        taken
    }

    /// Forgets everything, but keeps the memory.
    pub fn reset(&mut self) {
        if self.count > 0 {
            match &mut self.bins {
                Bins::Used(used) => used.clear(),
                Bins::Array(array) => array.reset(),
            }
            *self = Hist { bins: std::mem::replace(&mut self.bins, Bins::Used(Vec::new())), ..Hist::new() };
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Exact sum of the squares of the values.
    pub fn sum_of_squares(&self) -> f64 {
        self.sum_of_squares
    }

    /// Exact mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Standard deviation of the sample, `None` with fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        let n = self.count as f64;
        (n >= 2.0).then(|| ((self.sum_of_squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0).sqrt())
    }

    /// Smallest value, `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.extremes().0)
    }

    /// Largest value, `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.extremes().1)
    }

    /// The smallest recorded value (within 0.1 %) that a share `q` (0 to 1) of all values does not exceed;
    /// `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let wanted = ((q * self.count as f64).ceil() as u64).max(1);
        let (min, max) = self.extremes();
        let mut seen = 0;
        self.bins()
            .find(|&(_, count)| {
                seen += count;
                seen >= wanted
            })
            .map(|(value, _)| value.clamp(min, max))
    }

    /// Share of the values (0 to 1) that are at most `value`; `None` without values.
    pub fn share_up_to(&self, value: u64) -> Option<f64> {
        let below: u64 = self.bins().take_while(|&(bin, _)| bin <= value).map(|(_, count)| count).sum();
        (self.count > 0).then(|| below as f64 / self.count as f64)
    }

    /// The bins that have values: largest value of the bin and its count, in ascending order.
    pub fn bins(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        match &self.bins {
            Bins::Used(used) => Box::new(used.iter().map(|&(value, count)| (value, u64::from(count)))),
            Bins::Array(array) => Box::new(
                array.iter_recorded().map(|bin| (bin.value_iterated_to(), u64::from(bin.count_at_value()))),
            ),
        }
    }
}

impl std::fmt::Debug for Hist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hist {{ count: {}, mean: {:?}, max: {:?} }}", self.count(), self.mean(), self.max())
    }
}

impl PartialEq for Hist {
    fn eq(&self, other: &Hist) -> bool {
        self.count() == other.count()
            && self.sum == other.sum
            && self.extremes() == other.extremes()
            && self.bins().eq(other.bins())
    }
}

/// The form in the log, unless it is empty: moments, then the used bins as (difference to the previous bin's value, count).
#[derive(Serialize, Deserialize)]
struct Sparse {
    sum: f64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
    bins: Vec<(u64, u32)>,
}

impl Serialize for Hist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sparse = (self.count > 0).then(|| {
            let mut previous = 0;
            let mut bins = Vec::new();
            for (value, count) in self.bins() {
                bins.push((value - previous, u32::try_from(count).unwrap_or(u32::MAX)));
                previous = value;
            }
            let (min, max) = self.extremes();
            Sparse { sum: self.sum, sum_of_squares: self.sum_of_squares, min, max, bins }
        });
        sparse.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hist, D::Error> {
        let Some(sparse) = Option::<Sparse>::deserialize(deserializer)? else { return Ok(Hist::new()) };
        let Sparse { sum, sum_of_squares, min, max, mut bins } = sparse;
        let (mut value, mut total) = (0u64, 0u64);
        for (bin, count) in &mut bins {
            value = value.checked_add(*bin).ok_or_else(|| de::Error::custom("bin out of range"))?;
            *bin = value;
            total += u64::from(*count);
        }
        if total > 0 && min > max {
            return Err(de::Error::custom("smallest value above the largest"));
        }
        Ok(Hist { bins: Bins::Used(bins), count: total, sum, sum_of_squares, min, max, earlier: NONE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Hist {
        let mut hist = Hist::new();
        values.iter().for_each(|&v| hist.record(v));
        hist
    }

    #[test]
    fn nothing_is_undefined_not_zero() {
        let hist = Hist::new();
        assert_eq!((hist.mean(), hist.min(), hist.quantile(0.5), hist.std_dev()), (None, None, None, None));
    }

    #[test]
    fn moments_are_exact() {
        let hist = of(&[0, 1_000_003, 5]);
        assert_eq!(hist.sum(), 1_000_008.0);
        assert_eq!((hist.min(), hist.max(), hist.count()), (Some(0), Some(1_000_003), 3));
        assert_eq!(of(&[1, 3]).std_dev(), Some(2f64.sqrt()));
    }

    #[test]
    fn lists_and_arrays_have_the_same_bins() {
        let array = Histogram::<u32>::new_with_bounds(1, HIGHEST, DIGITS).unwrap();
        let around = (0..32).flat_map(|bit| (0..40).map(move |i| (1u64 << bit) + i * (1 << bit) / 40));
        for value in around.chain([0, 1, 2046, 2047, 2048, 2049, 4095, 4096, HIGHEST]) {
            let value = value.min(HIGHEST);
            assert_eq!(bin_of(value), array.highest_equivalent(value), "{value}");
        }
    }

    #[test]
    fn few_bins_take_no_array() {
        let values: Vec<u64> = (0..FEW as u64).map(|i| i * 3).collect();
        let mut hist = of(&values);
        hist.merge(&of(&values));
        assert!(matches!(hist.bins, Bins::Used(_)));
        hist.record(1_000);
        assert!(matches!(hist.bins, Bins::Array(_)));
        assert_eq!((hist.count(), hist.quantile(1.0)), (2 * FEW as u64 + 1, Some(1_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn merging_equals_recording_together(a in prop::collection::vec(0u64..4_000_000_000, 0..50),
                                             b in prop::collection::vec(0u64..100_000, 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn survives_the_log(values in prop::collection::vec(0u64..3_600_000_000, 0..80)) {
            let hist = of(&values);
            let bytes = postcard::to_stdvec(&hist).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Hist>(&bytes).unwrap(), hist);
        }

        #[test]
        fn quantiles_are_within_a_tenth_of_a_percent(mut values in prop::collection::vec(1u64..3_000_000_000, 1..200)) {
            let hist = of(&values);
            values.sort_unstable();
            let median = values[(values.len() - 1) / 2] as f64;
            let got = hist.quantile(0.5).unwrap() as f64;
            prop_assert!((got - median).abs() <= median * 0.001 + 1.0, "{} {}", got, median);
        }
    }
}
