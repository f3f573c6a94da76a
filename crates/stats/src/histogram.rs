//! Histograms of fixed size: exact count, sum, minimum and maximum, percentiles within 0.1 % (or 6 %).

mod packed_bins;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use self::packed_bins::PackedBins;
use crate::fold::Fold;
use crate::summary_stats::SummaryStats;

/// Largest recordable value: an hour in microseconds, 3.6 GB in bytes. Larger values count as this one.
const HIGHEST: u64 = 3_600_000_000;
/// Maximum number of bins kept as a list before an array is allocated; rare classes never need an array.
const FEW: usize = 64;

/// A histogram of non-negative integers up to 3.6e9 with an exact summary. `DIGITS` decimal digits of every value are
/// kept: bins are at most 0.1 % wide with three digits, and 6 % with one ([`CoarseHistogram`]).
#[derive(Clone)]
pub struct Histogram<const DIGITS: u8 = 3> {
    bins: Bins,
    /// Moments of all values, extremes of those since [`Histogram::take_extremes`].
    summary: SummaryStats,
    /// Extremes of earlier values.
    earlier: (u64, u64),
    /// The position of the previous value in the list of bins, as a hint: the next value is often in the same bin.
    recent: usize,
}

/// The extremes of no values: any value is smaller and larger.
const NONE: (u64, u64) = (u64::MAX, 0);

/// The histogram for breakdowns, which takes a fiftieth of the memory and a tenth of the log.
pub type CoarseHistogram = Histogram<1>;

/// A histogram that is being filled has an array of counters, or a list of bins if there are few. A histogram that was read
/// from a log remains packed until values are added; otherwise a report of a four-hour run would need gigabytes.
#[derive(Clone)]
enum Bins {
    /// Largest value of each bin and its count, in ascending order.
    Used(Vec<(u64, u32)>),
    /// Counts by number of the bin, up to about the last used bin: 29 KB for values up to 0.1 s in microseconds with
    /// three digits, at most 94 KB, and 2 KB with one.
    Array(Vec<u32>),
    /// The form of the log.
    Packed(PackedBins),
    /// Nobody needs the bins: [`Histogram::drop_bins`].
    Dropped,
}

impl<const DIGITS: u8> Default for Histogram<DIGITS> {
    fn default() -> Self {
        Histogram::of(Bins::Used(Vec::new()), SummaryStats::default())
    }
}

impl Histogram {
    /// An empty histogram. Memory for counters is allocated when there are many different values.
    pub fn new() -> Histogram {
        Histogram::default()
    }
}

impl<const DIGITS: u8> Histogram<DIGITS> {
    /// Values below this have separate bins; larger bins are as wide as the digits allow.
    const EXACT: u64 = (2 * 10u64.pow(DIGITS as u32)).next_power_of_two();

    /// Bins, and the moments of all their values.
    fn of(bins: Bins, summary: SummaryStats) -> Histogram<DIGITS> {
        Histogram { bins, summary, earlier: NONE, recent: 0 }
    }

    /// Binary logarithm of the width of the bin that `value` belongs to.
    #[inline]
    fn scale_of(value: u64) -> u32 {
        (value.min(HIGHEST) | (Self::EXACT - 1)).ilog2() - (Self::EXACT - 1).ilog2()
    }

    /// Width of the bin that `value` belongs to.
    #[inline]
    fn width_at(value: u64) -> u64 {
        1 << Self::scale_of(value)
    }

    /// The largest value of the bin that `value` belongs to.
    #[inline]
    fn bin_of(value: u64) -> u64 {
        Self::bin_in(value, Self::scale_of(value))
    }

    /// As [`Histogram::bin_of`], with the scale of the value.
    #[inline]
    fn bin_in(value: u64, scale: u32) -> u64 {
        value.min(HIGHEST) | ((1 << scale) - 1)
    }

    /// The number of the bin that `value` belongs to. There are half as many bins of each width as exact bins.
    #[inline]
    fn index_of(value: u64) -> usize {
        Self::index_in(value, Self::scale_of(value))
    }

    /// As [`Histogram::index_of`], with the scale of the value.
    #[inline]
    fn index_in(value: u64, scale: u32) -> usize {
        ((value.min(HIGHEST) >> scale) + u64::from(scale) * (Self::EXACT / 2)) as usize
    }

    /// The largest value of bin number `index`.
    fn bin_at(index: usize) -> u64 {
        let index = index as u64;
        let scale = (index / (Self::EXACT / 2)).saturating_sub(1);
        ((index - scale * (Self::EXACT / 2) + 1) << scale) - 1
    }

    /// Converts the bins, which are not dropped, to an array and returns the counters.
    fn array(&mut self) -> &mut Vec<u32> {
        let mut counts = Vec::new();
        let counts = match &mut self.bins {
            Bins::Array(_) => None,
            Bins::Dropped => unreachable!("nothing is counted in dropped bins"),
            Bins::Used(used) => {
                Self::make_room(&mut counts, used.last().map(|&(bin, _)| bin));
                used.iter().for_each(|&(bin, n)| add(&mut counts, Self::index_of(bin), n));
                Some(counts)
            }
            Bins::Packed(packed) => {
                Self::add_packed(&mut counts, packed, self.summary.max());
                Some(counts)
            }
        };
        if let Some(counts) = counts {
            self.bins = Bins::Array(counts);
        }
        match &mut self.bins {
            Bins::Array(counts) => counts,
            _ => unreachable!("turned into an array above"),
        }
    }

    /// Makes an array long enough for values up to `max`. An array that grew bin by bin would be copied again and again.
    fn make_room(counts: &mut Vec<u32>, max: Option<u64>) {
        let needed = max.map_or(0, |max| Self::index_of(max) + 1);
        if needed > counts.len() {
            counts.reserve_exact(needed - counts.len());
            counts.resize(needed, 0);
        }
    }

    /// Adds packed bins, the last of which should be that of `max`, to an array of counters.
    fn add_packed(counts: &mut Vec<u32>, packed: &PackedBins, max: Option<u64>) {
        Self::make_room(counts, max);
        let last = Self::index_of(HIGHEST);
        packed.each(|index, n| {
            // A damaged log may name any bin.
            if index <= last {
                add(counts, index, n);
            }
        });
    }

    /// Converts packed bins to a form that values can be added to.
    #[cold]
    fn unpack(&mut self) {
        let Bins::Packed(packed) = &self.bins else { return };
        if packed.most() > FEW {
            self.array();
        } else {
            self.bins = Bins::Used(packed.iter().map(|(index, n)| (Self::bin_at(index), n)).collect());
        }
    }

    /// Counts one value. Always inlined: what several histograms compute from the same value is then computed once for all of them.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.summary.record(value);
        let scale = Self::scale_of(value);
        let known = match &mut self.bins {
            Bins::Array(counts) => counts.get_mut(Self::index_in(value, scale)),
            Bins::Used(used) => match used.get_mut(self.recent) {
                Some((bin, count)) if *bin == Self::bin_in(value, scale) => Some(count),
                _ => None,
            },
            Bins::Packed(_) | Bins::Dropped => None,
        };
        match known {
            Some(count) => *count = count.saturating_add(1),
            None => self.count_in_bin(value, 1),
        }
    }

    /// Counts `n` values of one bin.
    #[inline(never)]
    fn count_in_bin(&mut self, value: u64, n: u32) {
        match self.bins {
            Bins::Packed(_) => self.unpack(),
            Bins::Dropped => return,
            _ => {}
        }
        if let Bins::Used(used) = &mut self.bins {
            let bin = Self::bin_of(value);
            match used.binary_search_by_key(&bin, |&(bin, _)| bin) {
                Ok(at) => {
                    self.recent = at;
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
        add(self.array(), Self::index_of(value), n);
    }

    /// Counts `n` equal values.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n > 0 {
            self.count_in_bin(value, u32::try_from(n).unwrap_or(u32::MAX));
            self.summary.record_n(value, n);
        }
    }

    /// Adds everything that `other` has counted. If one of them has dropped its bins, the sum has none.
    pub fn merge(&mut self, other: &Histogram<DIGITS>) {
        if other.count() == 0 {
            return;
        }
        if self.count() == 0 && !matches!(self.bins, Bins::Array(_)) {
            *self = Histogram::of(other.bins.clone(), other.summary());
            return;
        }
        match &other.bins {
            Bins::Dropped => self.bins = Bins::Dropped,
            _ if matches!(self.bins, Bins::Dropped) => {}
            Bins::Used(used) => self.merge_used(used),
            Bins::Packed(packed) => self.merge_packed(packed, other.max()),
            Bins::Array(theirs) => {
                let ours = self.array();
                ours.resize(ours.len().max(theirs.len()), 0);
                ours.iter_mut().zip(theirs).for_each(|(ours, n)| *ours = ours.saturating_add(*n));
            }
        }
        self.summary.fold(&other.summary());
    }

    /// Adds a list of bins.
    fn merge_used(&mut self, used: &[(u64, u32)]) {
        if used.len() <= FEW && !matches!(self.bins, Bins::Array(_)) {
            return used.iter().for_each(|&(value, n)| self.count_in_bin(value, n));
        }
        let ours = self.array();
        used.iter().for_each(|&(value, n)| add(ours, Self::index_of(value), n));
    }

    /// Adds packed bins. Reports of long runs spend most of their time here.
    fn merge_packed(&mut self, packed: &PackedBins, max: Option<u64>) {
        if packed.most() <= FEW && !matches!(self.bins, Bins::Array(_)) {
            return packed.iter().for_each(|(index, n)| self.count_in_bin(Self::bin_at(index), n));
        }
        Self::add_packed(self.array(), packed, max);
    }

    /// Smallest and largest value since the last call; the first is larger than the second if there were no values.
    /// This does not slow down recording.
    pub(crate) fn take_extremes(&mut self) -> (u64, u64) {
        let taken = self.summary.take_extremes();
        self.earlier = (self.earlier.0.min(taken.0), self.earlier.1.max(taken.1));
        taken
    }

    /// The summary of all values, with the extremes of the values since the last call.
    pub(crate) fn take_summary(&mut self) -> SummaryStats {
        let extremes = self.take_extremes();
        self.summary().with_only_extremes(extremes)
    }

    /// Forgets the bins, which take nearly all the time of adding up and nearly all the memory. Count, sum, extremes and moments
    /// remain. Percentiles are then undefined, in this histogram and in all sums that include it.
    pub fn drop_bins(&mut self) {
        if self.count() > 0 {
            self.bins = Bins::Dropped;
        }
    }

    /// The histogram without `part`, all of whose values must be in it. Smallest and largest value of the result are
    /// exact to the width of a bin; they are undefined if bins are missing.
    #[must_use]
    pub fn without(&self, part: &Histogram<DIGITS>) -> Histogram<DIGITS> {
        if part.count() == 0 {
            return self.clone();
        }
        if !(self.has_bins() && part.has_bins()) {
            let summary = self.summary().since(&part.summary()).with_only_extremes(NONE);
            return Histogram::of(Bins::Dropped, summary);
        }
        let mut taken = part.bins().peekable();
        let mut used = Vec::new();
        for (value, count) in self.bins() {
            while taken.next_if(|&(other, _)| other < value).is_some() {}
            let gone = taken.next_if(|&(other, _)| other == value).map_or(0, |(_, count)| count);
            if count > gone {
                used.push((value, u32::try_from(count - gone).unwrap_or(u32::MAX)));
            }
        }
        let bounds = |used: &[(u64, u32)]| {
            let (first, last) = (used.first()?.0, used.last()?.0);
            Some(((first + 1).saturating_sub(Self::width_at(first)), last))
        };
        let summary = self.summary().without(&part.summary(), bounds(&used));
        Histogram::of(Bins::Used(used), summary)
    }

    /// Removes all values, but keeps the memory.
    pub fn reset(&mut self) {
        if self.count() > 0 {
            match &mut self.bins {
                Bins::Used(used) => used.clear(),
                // Memory that is zero already is left in the state in which it is in the caches.
                Bins::Array(counts) => {
                    counts.chunks_mut(LINE).filter(|line| has_any(line)).for_each(|line| line.fill(0))
                }
                Bins::Packed(_) | Bins::Dropped => self.bins = Bins::Used(Vec::new()),
            }
            (self.summary, self.earlier) = (SummaryStats::default(), NONE);
        }
    }

    /// Whether there are bins for all values.
    pub fn has_bins(&self) -> bool {
        !matches!(self.bins, Bins::Dropped)
    }

    /// Count, sum, extremes.
    pub fn summary(&self) -> SummaryStats {
        self.summary.with_extremes(self.earlier)
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.summary.count
    }

    /// Exact sum of the values.
    pub fn sum(&self) -> f64 {
        self.summary.sum
    }

    /// Exact mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        self.summary.mean()
    }

    /// Standard deviation of the sample, `None` with fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        self.summary.std_dev()
    }

    /// Smallest value, `None` without values.
    pub fn min(&self) -> Option<u64> {
        self.summary().min()
    }

    /// Largest value, `None` without values.
    pub fn max(&self) -> Option<u64> {
        self.summary().max()
    }

    /// The smallest recorded value (within the width of a bin) that a share `q` (0 to 1) of all values does not
    /// exceed; `None` without values or without bins.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let wanted = ((q * self.count() as f64).ceil() as u64).max(1);
        let (min, max) = (self.min()?, self.max()?);
        let bin = match &self.bins {
            Bins::Used(used) => reaches(used.iter().map(|&(_, n)| n), wanted).map(|at| used[at].0),
            Bins::Packed(packed) => {
                let at = reaches(packed.iter().map(|(_, n)| n), wanted);
                at.and_then(|at| packed.iter().nth(at)).map(|(index, _)| Self::bin_at(index))
            }
            Bins::Array(counts) => {
                // Most counters are skipped: the sum of many neighbours takes a fraction of the time of a search.
                let (mut before, mut skipped) = (0, 0);
                for chunk in counts.chunks(SKIPPED) {
                    let sum: u64 = chunk.iter().map(|&n| u64::from(n)).sum();
                    if before + sum >= wanted {
                        break;
                    }
                    before += sum;
                    skipped += chunk.len();
                }
                let rest = counts[skipped..].iter().copied();
                reaches(rest, wanted - before).map(|at| Self::bin_at(skipped + at))
            }
            Bins::Dropped => None,
        };
        Some(bin?.clamp(min, max))
    }

    /// Share of the values (0 to 1) that are at most `value`; `None` without values or without bins.
    pub fn share_up_to(&self, value: u64) -> Option<f64> {
        let below: u64 = self.bins().take_while(|&(bin, _)| bin <= value).map(|(_, count)| count).sum();
        (self.count() > 0 && self.has_bins()).then(|| below as f64 / self.count() as f64)
    }

    /// The bins that have values: largest value of the bin and its count, in ascending order.
    pub fn bins(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        match &self.bins {
            Bins::Used(used) => Box::new(used.iter().map(|&(value, count)| (value, u64::from(count)))),
            Bins::Array(counts) => {
                let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                Box::new(used.map(|(index, count)| (Self::bin_at(index), u64::from(*count))))
            }
            Bins::Packed(packed) => {
                let last = Self::index_of(HIGHEST);
                let sound = packed.iter().take_while(move |(index, _)| *index <= last);
                Box::new(sound.map(|(index, count)| (Self::bin_at(index), u64::from(count))))
            }
            Bins::Dropped => Box::new(std::iter::empty()),
        }
    }

    /// The bins that have values with both bounds: smallest and largest value of the bin, both included, and its
    /// count, in ascending order.
    pub fn ranges(&self) -> Vec<(u64, u64, u64)> {
        let range =
            |last: u64, count: u32| ((last + 1).saturating_sub(Self::width_at(last)), last, u64::from(count));
        match &self.bins {
            Bins::Used(used) => used.iter().map(|&(last, count)| range(last, count)).collect(),
            Bins::Array(counts) => {
                let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                used.map(|(index, &count)| range(Self::bin_at(index), count)).collect()
            }
            Bins::Packed(_) | Bins::Dropped => self
                .bins()
                .map(|(last, count)| ((last + 1).saturating_sub(Self::width_at(last)), last, count))
                .collect(),
        }
    }
}

impl<const DIGITS: u8> Fold for Histogram<DIGITS> {
    fn fold(&mut self, other: &Self) {
        self.merge(other);
    }

    fn clear(&mut self) {
        self.reset();
    }

    fn drop_bins(&mut self) {
        Histogram::drop_bins(self);
    }
}

/// Number of neighbouring counters that a search skips at once.
const SKIPPED: usize = 256;
/// Number of counters in a line of the processor's cache.
const LINE: usize = 16;

/// Whether any of these counters is not zero. All are read, which takes less time than a search for the first one.
#[inline]
fn has_any(counts: &[u32]) -> bool {
    counts.iter().fold(0, |all, n| all | n) != 0
}

/// The counters that are not zero, with their numbers. Most counters are zero.
fn used(counts: &[u32]) -> impl Iterator<Item = (usize, u32)> {
    let lines = counts.chunks(LINE).enumerate().filter(|(_, line)| has_any(line));
    let bins = lines.flat_map(|(number, line)| (number * LINE..).zip(line.iter().copied()));
    bins.filter(|(_, n)| *n > 0)
}

/// The position at which the sum of counts reaches `wanted`.
fn reaches(mut counts: impl Iterator<Item = u32>, wanted: u64) -> Option<usize> {
    let mut seen = 0;
    counts.position(|n| {
        seen += u64::from(n);
        n > 0 && seen >= wanted
    })
}

/// Adds `n` to counter number `index`, which is created if it is missing.
#[inline]
fn add(counts: &mut Vec<u32>, index: usize, n: u32) {
    if index >= counts.len() {
        lengthen(counts, index);
    }
    counts[index] = counts[index].saturating_add(n);
}

/// The array grows by more than one counter, so this is rare.
#[cold]
fn lengthen(counts: &mut Vec<u32>, index: usize) {
    counts.resize(index + 1 + index / 4, 0);
}

impl<const DIGITS: u8> std::fmt::Debug for Histogram<DIGITS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hist {{ count: {}, mean: {:?}, max: {:?} }}", self.count(), self.mean(), self.max())
    }
}

impl<const DIGITS: u8> PartialEq for Histogram<DIGITS> {
    fn eq(&self, other: &Self) -> bool {
        (self.count(), self.sum(), self.min(), self.max())
            == (other.count(), other.sum(), other.min(), other.max())
            && self.bins().eq(other.bins())
    }
}

/// The form in the log, unless the histogram is empty. Bins that were dropped are empty.
#[derive(Serialize, Deserialize)]
struct Logged {
    summary: SummaryStats,
    bins: PackedBins,
}

impl<const DIGITS: u8> Serialize for Histogram<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let logged = (self.count() > 0).then(|| {
            let bins = match &self.bins {
                Bins::Used(used) => PackedBins::of(used.iter().map(|&(bin, n)| (Self::index_of(bin), n))),
                Bins::Array(counts) => PackedBins::of(used(counts)),
                Bins::Packed(packed) => packed.clone(),
                Bins::Dropped => PackedBins::default(),
            };
            Logged { summary: self.summary(), bins }
        });
        logged.serialize(serializer)
    }
}

impl<'de, const DIGITS: u8> Deserialize<'de> for Histogram<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(Logged { summary, bins }) = Option::<Logged>::deserialize(deserializer)? else {
            return Ok(Histogram::default());
        };
        if summary.count == 0 {
            return Err(de::Error::custom("bins without values"));
        }
        let bins = if bins.is_empty() { Bins::Dropped } else { Bins::Packed(bins) };
        Ok(Histogram::of(bins, summary))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut hist = Histogram::new();
        values.iter().for_each(|&v| hist.record(v));
        hist
    }

    #[test]
    fn nothing_is_undefined_not_zero() {
        let hist = Histogram::new();
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
    fn bins_are_those_of_hdr_histograms() {
        same_bins::<1>();
        same_bins::<3>();
    }

    fn same_bins<const DIGITS: u8>() {
        let array = hdrhistogram::Histogram::<u32>::new_with_bounds(1, HIGHEST, DIGITS).unwrap();
        let around = (0..32).flat_map(|bit| (0..40).map(move |i| (1u64 << bit) + i * (1 << bit) / 40));
        for value in around.chain([0, 1, 2046, 2047, 2048, 2049, 4095, 4096, HIGHEST]) {
            let value = value.min(HIGHEST);
            assert_eq!(Histogram::<DIGITS>::bin_of(value), array.highest_equivalent(value), "{value}");
            let width = array.highest_equivalent(value) - array.lowest_equivalent(value) + 1;
            assert_eq!(Histogram::<DIGITS>::width_at(value), width, "{value}");
            let index = Histogram::<DIGITS>::index_of(value);
            assert_eq!(Histogram::<DIGITS>::bin_at(index), Histogram::<DIGITS>::bin_of(value), "{value}");
            let next = Histogram::<DIGITS>::bin_of(value) + 1;
            assert!(next > HIGHEST || Histogram::<DIGITS>::index_of(next) == index + 1, "{value}");
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

    #[test]
    fn few_values_are_told_apart_by_one_digit() {
        let mut coarse = CoarseHistogram::default();
        (0..100_000).for_each(|value| coarse.record(value));
        assert_eq!((coarse.count(), coarse.mean(), coarse.max()), (100_000, Some(49_999.5), Some(99_999)));
        for (q, value) in [(0.05, 5_000.0), (0.5, 50_000.0), (0.99, 99_000.0)] {
            let got = coarse.quantile(q).unwrap() as f64;
            assert!((got - value).abs() <= value * 0.0625, "{got}");
        }
        assert!(coarse.bins().count() < 300);
        assert_eq!(
            coarse.ranges().into_iter().map(|(first, last, _)| last - first + 1).sum::<u64>(),
            98_304 + 4_096
        );
    }

    #[test]
    fn without_bins_only_percentiles_are_unknown() {
        let (mut dropped, whole) = (of(&[5, 7_000, 9]), of(&[5, 7_000, 9]));
        dropped.drop_bins();
        let bytes = postcard::to_stdvec(&dropped).unwrap();
        dropped = postcard::from_bytes(&bytes).unwrap();
        assert_eq!((dropped.summary(), dropped.has_bins()), (whole.summary(), false));
        assert_eq!((dropped.quantile(0.5), dropped.share_up_to(9), dropped.bins().count()), (None, None, 0));
        // Neither a sum nor a difference pretends to know all bins.
        let mut sums = [whole.clone(), dropped.clone()];
        sums[0].merge(&dropped);
        sums[1].merge(&whole);
        for mut sum in sums {
            sum.record(12);
            assert_eq!((sum.count(), sum.max(), sum.quantile(0.5)), (7, Some(7_000), None));
            let left = sum.without(&whole);
            assert_eq!((left.count(), left.sum(), left.max(), left.quantile(0.5)), (4, 7_026.0, None, None));
            sum.reset();
            sum.record(12);
            assert_eq!(sum.quantile(0.5), Some(12));
        }
        let mut empty = Histogram::new();
        empty.drop_bins();
        empty.merge(&whole);
        assert_eq!(empty.quantile(0.5), Some(9));
    }

    #[test]
    fn a_part_can_be_taken_away() {
        let (part, rest) = (of(&[5, 7_000_000, 9]), of(&[9, 9, 100, 5_000]));
        let mut all = part.clone();
        all.merge(&rest);
        let left = all.without(&part);
        assert_eq!((left.count(), left.sum(), left.std_dev()), (rest.count(), rest.sum(), rest.std_dev()));
        assert!(left.bins().eq(rest.bins()));
        // 5,000 is in a bin from 5,000 to 5,003.
        assert_eq!((left.min(), left.max()), (Some(9), Some(5_003)));
        assert_eq!(all.without(&all), Histogram::new());
        assert_eq!(rest.without(&Histogram::new()), rest);
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
            prop_assert_eq!(postcard::from_bytes::<Histogram>(&bytes).unwrap(), hist);
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

    #[test]
    fn a_difference_has_its_own_moments_and_extremes() {
        let mut hist = Histogram::new();
        [900, 1].into_iter().for_each(|value| hist.record(value));
        let before = hist.take_summary();
        assert_eq!((before.min(), before.max(), before.mean()), (Some(1), Some(900), Some(450.5)));
        [10, 20].into_iter().for_each(|value| hist.record(value));
        let later = hist.take_summary().since(&before);
        let mut same = SummaryStats::default();
        [10, 20].into_iter().for_each(|value| same.record(value));
        assert_eq!(later, same);
        assert_eq!((later.min(), later.max(), later.std_dev()), (Some(10), Some(20), Some(50f64.sqrt())));
        let mut all = later;
        all.count = 4;
        let none = hist.take_summary().since(&all);
        assert_eq!((none.min(), none.mean(), none.rel_dev()), (None, None, None));
        assert_eq!((hist.min(), hist.max()), (Some(1), Some(900)), "the histogram forgets nothing");
    }
}
