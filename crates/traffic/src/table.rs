//! Distributions given by a table (`docs/reference/language.md`, "Distribution tables").

use std::fmt;
use std::sync::Arc;

/// A line of a table: values from `min` to below `max` with the same probability, or just `min`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Smallest value.
    pub min: f64,
    /// Upper bound, not included; `None` for a single value.
    pub max: Option<f64>,
    /// Relative weight.
    pub weight: f64,
}

/// A table of bins with their shares of all draws.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DistributionTable {
    steps: Arc<[TableStep]>,
}

/// A bin with the share of draws up to and including it. Single values have `max == min`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct TableStep {
    min: f64,
    max: f64,
    upto: f64,
}

/// The number of bins that the short form of a table lists.
const LISTED: usize = 6;

impl DistributionTable {
    /// A table of these bins, in any order. Weights are relative. Bins without a positive weight or a finite
    /// start are left out; `None` if no bins remain.
    pub fn new(bins: impl IntoIterator<Item = Bin>) -> Option<DistributionTable> {
        let mut bins: Vec<Bin> = bins
            .into_iter()
            .filter(|bin| bin.weight > 0.0 && bin.weight.is_finite() && bin.min.is_finite())
            .collect();
        bins.sort_by(|a, b| a.min.total_cmp(&b.min));
        let total: f64 = bins.iter().map(|bin| bin.weight).sum();
        let mut sum = 0.0;
        let step = |bin: &Bin| {
            sum += bin.weight;
            let max = bin.max.filter(|max| max.is_finite() && *max > bin.min).unwrap_or(bin.min);
            TableStep { min: bin.min, max, upto: sum / total }
        };
        let steps: Arc<[TableStep]> = bins.iter().map(step).collect();
        (!steps.is_empty()).then_some(DistributionTable { steps })
    }

    /// The value below which a share `u` (0 to 1) of all draws lies; with a uniform `u`, a draw.
    ///
    /// One uniform number selects the bin and the position in it, so every draw costs the same.
    pub fn quantile(&self, u: f64) -> f64 {
        let index = self.steps.partition_point(|step| step.upto <= u).min(self.steps.len() - 1);
        let step = self.steps[index];
        let before = self.before(index);
        let place = ((u - before) / (step.upto - before)).clamp(0.0, 1.0);
        // Rounding must not move a draw to the bound, which belongs to the next bin.
        (step.min + (step.max - step.min) * place).min(step.max.next_down().max(step.min))
    }

    /// The mean of the draws, with negative ones set to 0 (see [`crate::Distr::sample`]).
    pub fn mean(&self) -> f64 {
        let share = |index: usize| self.steps[index].upto - self.before(index);
        self.steps.iter().enumerate().map(|(i, step)| mean_within(step.min, step.max) * share(i)).sum()
    }

    /// Share of the draws below the bin.
    fn before(&self, index: usize) -> f64 {
        if index == 0 { 0.0 } else { self.steps[index - 1].upto }
    }
}

impl fmt::Display for DistributionTable {
    /// Lists the bins with their shares in percent, or the number of bins.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("table:")?;
        if self.steps.len() > LISTED {
            let (first, last) = (self.steps[0], self.steps[self.steps.len() - 1]);
            return write!(f, "{} bins from {} to {}", self.steps.len(), first.min, last.max);
        }
        for (index, step) in self.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let percent = (step.upto - self.before(index)) * 100.0;
            match step.max > step.min {
                true => write!(f, "{comma}{}:{}={percent:.4}%", step.min, step.max)?,
                false => write!(f, "{comma}{}={percent:.4}%", step.min)?,
            }
        }
        Ok(())
    }
}

/// Mean of the uniform distribution over `min..max` with negative draws set to 0.
pub(crate) fn mean_within(min: f64, max: f64) -> f64 {
    let (min, max) = (min.min(max), min.max(max));
    match (min < 0.0, max > 0.0) {
        (false, _) => (min + max) / 2.0,
        (true, true) => max * max / (2.0 * (max - min)),
        (true, false) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Random, Seed};

    fn bin(min: f64, max: impl Into<Option<f64>>, weight: f64) -> Bin {
        Bin { min, max: max.into(), weight }
    }

    #[test]
    fn bins_get_their_shares_and_are_flat_inside() {
        // 400,000 draws, five standard errors for shares; in-bin means within five standard errors too.
        let table =
            DistributionTable::new([bin(512.0, None, 2.0), bin(0.0, 100.0, 5.0), bin(1000.0, 3000.0, 3.0)])
                .unwrap();
        let n = 400_000;
        let mut rng = Seed(31).stream("table", 0);
        let mut draws: Vec<f64> = (0..n).map(|_| table.quantile(rng.unit())).collect();
        draws.sort_by(f64::total_cmp);
        for (min, max, share) in [(0.0, 100.0, 0.5), (512.0, 512.5, 0.2), (1000.0, 3000.0, 0.3)] {
            let inside: Vec<f64> = draws.iter().copied().filter(|v| (min..max).contains(v)).collect();
            let found = inside.len() as f64 / f64::from(n);
            assert!((found - share).abs() < 5.0 * (share * (1.0 - share) / f64::from(n)).sqrt(), "{found}");
            if share == 0.2 {
                assert!(inside.iter().all(|v| *v == 512.0));
                continue;
            }
            let mean = inside.iter().sum::<f64>() / inside.len() as f64;
            let sd = (max - min) / 12f64.sqrt();
            assert!((mean - (min + max) / 2.0).abs() < 5.0 * sd / (inside.len() as f64).sqrt(), "{mean}");
        }
        assert!(draws.iter().all(|v| *v < 3000.0));
    }

    #[test]
    fn weights_are_relative_and_lines_without_weight_do_not_count() {
        let table =
            DistributionTable::new([bin(1.0, None, 1.0), bin(2.0, None, 0.0), bin(3.0, None, 3.0)]).unwrap();
        assert_eq!(table.to_string(), "table:1=25.0000%,3=75.0000%");
        assert_eq!((table.quantile(0.0), table.quantile(0.2499), table.quantile(0.25)), (1.0, 1.0, 3.0));
        assert_eq!((table.quantile(1.0), table.quantile(f64::NAN)), (3.0, 1.0));
        assert_eq!(table.mean(), 2.5);
        assert_eq!(DistributionTable::new([bin(1.0, None, f64::NAN), bin(f64::NAN, None, 1.0)]), None);
        let long =
            DistributionTable::new((0..10).map(|i| bin(f64::from(i), f64::from(i) + 1.0, 1.0))).unwrap();
        assert_eq!(long.to_string(), "table:10 bins from 0 to 10");
        assert_eq!(
            DistributionTable::new([bin(4.0, 5.5, 1.0)]).unwrap().to_string(),
            "table:4:5.5=100.0000%"
        );
    }
}
