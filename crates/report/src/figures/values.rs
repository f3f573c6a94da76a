//! Statistics of many values: count, sum, extremes and distribution.

use std::borrow::Cow;

use polygraph_stats::{CoarseHistogram, Histogram, SummaryStats};

/// Many values: count, sum, extremes, and how many lie in each bin. Without bins there are no percentiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values<'a> {
    summary: SummaryStats,
    bins: ValueBins<'a>,
}

/// Bins of either width. They are listed only on demand, because most figures are facts that the summary knows.
#[derive(Clone, Debug, Default, PartialEq)]
enum ValueBins<'a> {
    #[default]
    None,
    Narrow(Cow<'a, Histogram>),
    Wide(Cow<'a, CoarseHistogram>),
}

/// A line of a printed distribution: several neighbouring bins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinRow {
    /// Number of its first bin among those with values, from 0 on.
    pub bin: usize,
    /// Smallest value of its first bin.
    pub first: u64,
    /// Largest value of its last bin.
    pub last: u64,
    /// Number of values in the row.
    pub count: u64,
}

impl<'a> From<Cow<'a, Histogram>> for Values<'a> {
    fn from(histogram: Cow<'a, Histogram>) -> Values<'a> {
        Values { summary: histogram.summary(), bins: ValueBins::Narrow(histogram) }
    }
}

impl<'a> From<Cow<'a, CoarseHistogram>> for Values<'a> {
    fn from(histogram: Cow<'a, CoarseHistogram>) -> Values<'a> {
        Values { summary: histogram.summary(), bins: ValueBins::Wide(histogram) }
    }
}

impl From<SummaryStats> for Values<'_> {
    fn from(summary: SummaryStats) -> Self {
        Values { summary, bins: ValueBins::None }
    }
}

impl Values<'_> {
    /// Count, sum, extremes.
    pub fn summary(&self) -> &SummaryStats {
        &self.summary
    }

    /// The used bins: smallest value, largest value, how many values; in ascending order.
    pub fn bins(&self) -> Vec<(u64, u64, u64)> {
        match &self.bins {
            ValueBins::None => Vec::new(),
            ValueBins::Narrow(histogram) => histogram.ranges(),
            ValueBins::Wide(histogram) => histogram.ranges(),
        }
    }

    /// The smallest value that a share `q` (0 to 1) of all values does not exceed; `None` without values or bins.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        match &self.bins {
            ValueBins::None => None,
            ValueBins::Narrow(histogram) => histogram.quantile(q),
            ValueBins::Wide(histogram) => histogram.quantile(q),
        }
    }

    /// The bins, put together until a row has at least the share `step` (0 to 1) of all values. So there are at most
    /// `1 / step` rows.
    pub fn rows(&self, step: f64) -> Vec<BinRow> {
        let enough = step * self.summary.count as f64;
        let mut rows: Vec<BinRow> = Vec::new();
        let mut full = true;
        for (bin, (first, last, count)) in self.bins().into_iter().enumerate() {
            match rows.last_mut().filter(|_| !full) {
                Some(row) => (row.last, row.count) = (last, row.count + count),
                None => rows.push(BinRow { bin, first, last, count }),
            }
            full = rows.last().is_some_and(|row| row.count as f64 >= enough);
        }
        rows
    }
}

/// A fact about values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Statistic {
    Count,
    Mean,
    Min,
    Max,
    StdDev,
    RelDev,
    Sum,
    Quantile(f64),
}

impl Statistic {
    /// The fact, in the unit that the `scale` leads to.
    pub(super) fn of(self, values: &Values<'_>, scale: f64) -> Option<f64> {
        let summary = &values.summary;
        match self {
            Statistic::Count => Some(summary.count as f64),
            Statistic::Mean => Some(summary.mean()? * scale),
            Statistic::Min => Some(summary.min()? as f64 * scale),
            Statistic::Max => Some(summary.max()? as f64 * scale),
            Statistic::StdDev => Some(summary.std_dev()? * scale),
            Statistic::RelDev => super::percent(summary.std_dev()?, summary.mean()?),
            Statistic::Sum => Some(summary.sum * scale),
            Statistic::Quantile(q) => Some(values.quantile(q)? as f64 * scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_a_hundredth_each_or_more() {
        let mut hist = Histogram::new();
        (0..1000).for_each(|value| hist.record(value));
        hist.record_n(5_000, 1000);
        let values = Values::from(Cow::<Histogram>::Owned(hist));
        let rows = values.rows(0.01);
        // Twenty values are a hundredth.
        assert_eq!(rows[0], BinRow { bin: 0, first: 0, last: 19, count: 20 });
        assert_eq!(rows.len(), 51);
        assert_eq!(rows[50], BinRow { bin: 1000, first: 5_000, last: 5_003, count: 1000 });
        assert_eq!((values.quantile(0.5), values.quantile(1.0)), (Some(999), Some(5_000)));
        assert_eq!((Values::default().quantile(0.5), Values::default().rows(0.01)), (None, vec![]));
    }
}
