//! Random variation of figures, estimated by resampling.
//!
//! The method is a block bootstrap (Künsch 1989, with blocks that do not overlap): blocks of the phase are drawn with
//! replacement, as many as there are, and every figure is computed from their sum; percentiles too, because blocks
//! hold histograms. The standard deviation of a figure over the draws is its standard error. All runs draw the same
//! blocks, so effects that they share at the same time (the requests of the same seed, ramps of the load) cancel out
//! in differences; other effects are not affected.
//!
//! Groups of several runs need no draws: each run is one independent observation of the figure, and whatever varies within runs makes
//! their figures vary, too (independent replications, Law 2015, section 9.5.2; Kalibera and Jones 2013 for benchmarks). Student's test
//! of two means asks for nothing else, and in particular not that a run be stationary.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::blocks::{FEWEST, PhasesOfRun};
use crate::figures::{self, Figure};
use crate::parallel;
use crate::scope::Scope;

/// Number of draws. With this number, the standard error itself is known within 7 %, three times better than the few
/// blocks allow.
const DRAWS: usize = 100;

/// If both groups have so many runs, the variation between runs suffices. Two runs per group would leave two degrees of freedom, on which
/// the intervals of a whole table are several times as wide as on four.
pub(super) const REPEATS: usize = 3;

/// The blocks of each draw.
pub(super) struct Draws(Vec<Vec<usize>>);

impl Draws {
    /// The draws of `blocks` blocks. They are always the same, so that a comparison can be repeated.
    pub(super) fn new(blocks: usize) -> Draws {
        let mut random = SplitMix64::seed_from_u64(1);
        // The bias of the remainder is negligible for a few blocks.
        let mut below = move |limit: usize| (random.next_u64() % limit.max(1) as u64) as usize;
        let draws = if blocks < FEWEST { 0 } else { DRAWS };
        Draws((0..draws).map(|_| (0..blocks).map(|_| below(blocks)).collect()).collect())
    }
}

/// A figure of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct ResampledFigure {
    /// Measured value; `None` if undefined.
    pub(super) value: Option<f64>,
    /// Value in each draw.
    drawn: Vec<Option<f64>>,
    /// Value in each single block.
    blocks: Vec<Option<f64>>,
}

/// The values of figures in a part of a run.
pub(super) fn values(
    cut: PhasesOfRun<'_>,
    blocks: usize,
    draws: &Draws,
    wanted: &[&Figure],
) -> Vec<ResampledFigure> {
    let extract = |scope: &Scope| figures::extract(wanted.iter().copied(), scope);
    let undefined = || vec![None; wanted.len()];
    let whole = cut.scope().as_ref().map_or_else(undefined, extract);
    let mut values: Vec<ResampledFigure> =
        whole.into_iter().map(|value| ResampledFigure { value, ..ResampledFigure::default() }).collect();
    if draws.0.is_empty() {
        return values;
    }
    let blocks = cut.into_blocks(blocks);
    for block in &blocks {
        values.iter_mut().zip(extract(block)).for_each(|(value, of_block)| value.blocks.push(of_block));
    }
    let drawn = parallel::map(&draws.0, |draw| {
        let scope = Scope::sequential(draw.iter().map(|&block| &blocks[block]));
        scope.as_ref().map_or_else(undefined, extract)
    });
    for of_draw in drawn {
        values.iter_mut().zip(of_draw).for_each(|(value, of_draw)| value.drawn.push(of_draw));
    }
    values
}

/// The difference of a figure between two groups of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedDifference {
    /// Mean of the second group minus mean of the first.
    pub by: f64,
    /// Standard error of `by`; `None` if the phase was too short to estimate it.
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the standard error.
    pub degrees: f64,
}

impl EstimatedDifference {
    /// Half of the width of the interval that contains the true difference with this confidence (0 to 1).
    pub fn plus_minus(&self, confidence: f64) -> Option<f64> {
        Some(self.standard_error? * student(confidence, self.degrees))
    }
}

/// No more runs than this on each side are advised.
pub(crate) const RUNS_MAX: usize = 100;

impl EstimatedDifference {
    /// The number of runs on each side that show a difference of this size with this confidence (0 to 1), if repeats vary as much as the
    /// compared runs, of which there are so many on each side. `None` if that is not known, or if a hundred runs are too few.
    pub fn runs_that_decide(&self, runs: [usize; 2], confidence: f64) -> Option<usize> {
        let of_one = self.standard_error?.powi(2) / runs.iter().map(|&count| 1.0 / count as f64).sum::<f64>();
        let shows = |count: usize| {
            let error = (of_one * 2.0 / count as f64).sqrt();
            error * student(confidence, 2.0 * (count - 1) as f64) < self.by.abs()
        };
        (REPEATS..=RUNS_MAX).find(|&count| shows(count))
    }
}

/// The number of standard errors on each side of the mean that give this confidence (0 to 1): Student's distribution.
pub(super) fn student(confidence: f64, degrees: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, degrees.max(1.0)) else { return f64::INFINITY };
    t.inverse_cdf(0.5 + confidence.clamp(0.0, 1.0) / 2.0)
}

/// The variance between repeats of a run, estimated from all groups with repeats, as in an analysis of variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Between {
    squares: f64,
    degrees: f64,
}

impl Between {
    pub(super) fn new<'a>(groups: impl Iterator<Item = &'a [ResampledFigure]>) -> Between {
        let mut all = Between::default();
        for group in groups {
            let values: Option<Vec<f64>> = group.iter().map(|value| value.value).collect();
            let Some(values) = values.filter(|values| values.len() > 1) else { continue };
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            all.squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            all.degrees += (values.len() - 1) as f64;
        }
        all
    }
}

/// Mean of a group; `None` if the figure is undefined in one of its runs.
pub(super) fn mean(group: &[ResampledFigure]) -> Option<f64> {
    let values: Option<Vec<f64>> = group.iter().map(|value| value.value).collect();
    values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

/// How `other` differs from `reference`; `None` if the figure is undefined in one of them.
///
/// If both groups have [`REPEATS`] runs, only the variation between runs counts. If there are fewer repeats, that part of it which does not
/// show within runs is added to the variation within runs: a device may behave differently tomorrow, and no single run shows that.
pub(super) fn difference(
    reference: &[ResampledFigure],
    other: &[ResampledFigure],
    between: Between,
) -> Option<EstimatedDifference> {
    let by = mean(other)? - mean(reference)?;
    let repeated = (between.degrees > 0.0).then(|| {
        let groups = 1.0 / reference.len() as f64 + 1.0 / other.len() as f64;
        (between.squares / between.degrees * groups, between.degrees)
    });
    let (variance, degrees) = match (within(reference, other), repeated) {
        (_, Some(repeated)) if reference.len().min(other.len()) >= REPEATS => repeated,
        (Some(within), Some(repeated)) => together(within, (repeated.0 - within.0, repeated.1)),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => return Some(EstimatedDifference { by, standard_error: None, degrees: 0.0 }),
    };
    Some(EstimatedDifference { by, standard_error: Some(variance.sqrt()), degrees })
}

/// The sum of two variances and its degrees of freedom after Satterthwaite (1946). A second variance that is not
/// positive is ignored, so that two repeats that happen to agree do not invalidate a well-known variance.
fn together(first: (f64, f64), second: (f64, f64)) -> (f64, f64) {
    if second.0 <= 0.0 {
        return first;
    }
    let sum = first.0 + second.0;
    (sum, sum.powi(2) / (first.0.powi(2) / first.1 + second.0.powi(2) / second.1))
}

/// Variance of the difference and its degrees of freedom, from the variation within runs.
fn within(reference: &[ResampledFigure], other: &[ResampledFigure]) -> Option<(f64, f64)> {
    let blocks = reference.first()?.blocks.len();
    let draws = series(reference, other, |value| &value.drawn);
    // A rare figure may be undefined in some draws; if it is undefined in most of them, no variance can be estimated.
    if blocks < FEWEST || draws.len() < DRAWS * 9 / 10 {
        return None;
    }
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let variance = draws.iter().map(|by| (by - mean).powi(2)).sum::<f64>() / (draws.len() - 1) as f64;
    // A sum drawn from a few blocks varies slightly less than the sum that it represents.
    let few = blocks as f64 / (blocks as f64 - 1.0);
    let remembered = memory(&series(reference, other, |value| &value.blocks));
    Some((variance * few * remembered, blocks as f64 - 1.0))
}

/// Differences of the groups' means, draw by draw or block by block, where they are defined.
fn series(
    reference: &[ResampledFigure],
    other: &[ResampledFigure],
    pick: impl Fn(&ResampledFigure) -> &Vec<Option<f64>>,
) -> Vec<f64> {
    let mean = |group: &[ResampledFigure], index: usize| {
        let values: Option<Vec<f64>> =
            group.iter().map(|value| pick(value).get(index).copied().flatten()).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    let length = reference.first().map_or(0, |value| pick(value).len());
    (0..length).filter_map(|index| Some(mean(other, index)? - mean(reference, index)?)).collect()
}

/// The factor by which the variance of a mean exceeds that of independent blocks if neighbouring blocks are still
/// correlated: (1 + r) / (1 - r) with the correlation r of neighbours, if that is positive.
fn memory(blocks: &[f64]) -> f64 {
    let mean = blocks.iter().sum::<f64>() / blocks.len().max(1) as f64;
    let square: f64 = blocks.iter().map(|value| (value - mean).powi(2)).sum();
    let product: f64 = blocks.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if square <= 0.0 {
        return 1.0;
    }
    let r = (product / square).clamp(0.0, 0.8);
    (1.0 + r) / (1.0 - r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student() {
        // From printed tables.
        for (confidence, degrees, want) in [(0.95, 9.0, 2.262), (0.99, 19.0, 2.861), (0.95, 1.0, 12.706)] {
            assert!((student(confidence, degrees) - want).abs() < 1e-3, "{confidence} {degrees}");
        }
    }

    #[test]
    fn so_many_runs_decide() {
        let trend =
            |by: f64, error: f64| EstimatedDifference { by, standard_error: Some(error), degrees: 4.0 };
        // Means of three runs each with a deviation of 3 differ by 4.2: Student's t is 2.776 on 4 degrees, and 2.306 on 8.
        let error = 3.0 * (2.0_f64 / 3.0).sqrt();
        assert!(trend(4.2, error).plus_minus(0.95).unwrap() > 4.2);
        assert_eq!(trend(4.2, error).runs_that_decide([3, 3], 0.95), Some(6));
        let needed = 3.0 * (2.0_f64 / 6.0).sqrt() * student(0.95, 10.0);
        assert!(needed < 4.2 && 3.0 * (2.0_f64 / 5.0).sqrt() * student(0.95, 8.0) > 4.2);
        // The same deviation of one run, and a trend of the other direction.
        assert_eq!(trend(-4.2, 3.0 * 2.0_f64.sqrt()).runs_that_decide([1, 1], 0.95), Some(6));
        assert_eq!(trend(0.01, error).runs_that_decide([3, 3], 0.95), None);
        assert_eq!(
            EstimatedDifference { standard_error: None, ..trend(1.0, 1.0) }.runs_that_decide([1, 1], 0.95),
            None
        );
    }

    fn run(value: f64) -> ResampledFigure {
        ResampledFigure { value: Some(value), ..ResampledFigure::default() }
    }

    #[test]
    fn repeats_tell_of_the_variance_between_runs() {
        let (a, b) = ([run(10.0), run(12.0)], [run(15.0), run(17.0)]);
        let between = Between::new([&a[..], &b[..]].into_iter());
        let difference = difference(&a, &b, between).unwrap();
        // Each group has a variance of 2, on one degree of freedom.
        assert_eq!((difference.by, difference.degrees), (5.0, 2.0));
        assert!((difference.standard_error.unwrap() - 2f64.sqrt()).abs() < 1e-12);
    }

    /// Runs whose figure drifts from block to block, by as much as a cache that is still filling: a bootstrap takes that for noise.
    #[test]
    fn drift_within_runs_does_not_count_if_there_are_three_of_each() {
        let drifting = |value: f64| {
            let draws = (0..DRAWS).map(|draw| Some(value + (draw % 20) as f64)).collect();
            let blocks = (0..20).map(|block| Some(value + f64::from(block))).collect();
            ResampledFigure { value: Some(value), drawn: draws, blocks }
        };
        let even = |value: f64| ResampledFigure {
            value: Some(value),
            drawn: vec![Some(value); DRAWS],
            blocks: vec![Some(value); 20],
        };
        let estimate = |old: &[f64], new: &[f64]| {
            let old: Vec<_> = old.iter().map(|value| drifting(*value)).collect();
            let new: Vec<_> = new.iter().map(|value| even(*value)).collect();
            let between = Between::new([&old[..], &new[..]].into_iter());
            let estimate = difference(&old, &new, between).unwrap();
            (estimate.standard_error.unwrap(), estimate.degrees)
        };
        // Each group has a variance of 1, so their difference has 2 / 3, with 2 + 2 degrees of freedom.
        let (error, degrees) = estimate(&[52.0, 53.0, 54.0], &[25.0, 26.0, 27.0]);
        assert!((error - (2.0_f64 / 3.0).sqrt()).abs() < 1e-12 && degrees == 4.0, "{error} {degrees}");
        for (old, new) in
            [(&[53.0][..], &[26.0][..]), (&[52.0, 54.0], &[25.0, 27.0]), (&[52.0, 53.0, 54.0], &[26.0])]
        {
            let (error, degrees) = estimate(old, new);
            assert!(error > 5.0 && degrees > 10.0, "{old:?} {new:?}: {error} {degrees}");
        }
    }

    #[test]
    fn what_hardly_varies_between_repeats_hardly_costs_certainty() {
        assert_eq!(together((1.0, 10.0), (-0.5, 1.0)), (1.0, 10.0));
        let (variance, degrees) = together((1.0, 10.0), (0.05, 1.0));
        assert!(variance == 1.05 && degrees > 9.0, "{degrees}");
        let (_, degrees) = together((1.0, 10.0), (50.0, 1.0));
        assert!((1.0..1.1).contains(&degrees), "{degrees}");
    }

    #[test]
    fn single_runs_that_are_too_short_tell_nothing() {
        let between = Between::new([&[run(1.0)][..]].into_iter());
        let difference = difference(&[run(1.0)], &[run(2.0)], between).unwrap();
        assert_eq!((difference.by, difference.plus_minus(0.95)), (1.0, None));
        assert!(super::difference(&[run(1.0)], &[ResampledFigure::default()], between).is_none());
    }

    #[test]
    fn neighbours_that_resemble_each_other_count_for_less() {
        let slow: Vec<f64> = (0..20).map(|i| f64::from(i / 5)).collect();
        let quick: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
        assert!(memory(&slow) > 3.0);
        assert_eq!((memory(&quick), memory(&[1.0; 20])), (1.0, 1.0));
    }
}
