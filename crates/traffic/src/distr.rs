//! The distributions that a workload may name, in the base unit of their quantity (seconds, bytes, counts).

use std::fmt;

use crate::logn::Logn;
use crate::rng::{Random, positive_unit, standard_normal};
use crate::table::{DistributionTable, mean_within};

/// A probability distribution of a non-negative quantity.
///
/// Samples are drawn by methods with a fixed formula, not by a library's current algorithm, because results
/// must repeat from a seed across releases. Parameters are checked where they are read; meaningless ones
/// (negative, not a number) give 0 here and never panic.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Distr {
    /// A constant value.
    Const(f64),
    /// Uniform over `[min, max)`.
    Unif {
        /// Smallest value.
        min: f64,
        /// Upper bound, never reached.
        max: f64,
    },
    /// The exponential distribution.
    Exp {
        /// Mean value.
        mean: f64,
    },
    /// Normal; negative draws become 0 (see [`Distr::sample`]).
    Norm {
        /// Mean of the normal before negative draws are cut.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Lognormal, given by mean and standard deviation of the *result* (not of its logarithm).
    Logn(Logn),
    /// `floor((n + 1)^u)` with `u` uniform, over `1..=n`: value `k` has the probability `ln(1 + 1/k) / ln(n +
    /// 1)`, close to Zipf's `1/k`. This is the language's `zipf(n)`.
    Zipf {
        /// Largest value.
        n: u64,
    },
    /// `1, 2, ... period, 1, 2, ...` in the order of the draws' index; uniform for draws without an index.
    Seq {
        /// Number of values.
        period: u64,
    },
    /// `first, first + 1, ...` in the order of the draws' index. This is the language's `seq(first)`.
    ///
    /// The sequence advances only where draws are numbered, see [`Distr::sample_at`]; a draw without an index
    /// gives `first`.
    Ascending {
        /// First value.
        first: f64,
    },
    /// A table given by the user.
    Table(DistributionTable),
}

impl Distr {
    /// Lognormal with this mean and standard deviation of the result.
    pub fn logn(mean: f64, sd: f64) -> Distr {
        Distr::Logn(Logn::new(mean, sd))
    }

    /// Draws a value, never a negative one and always a number.
    ///
    /// All quantities in workloads (times, sizes, counts) are non-negative, so a negative draw of `Norm`
    /// becomes 0. For PolyMix-1's think time, normal with mean 3 s and deviation 1.5 s, that concerns 2.3 %
    /// of the draws and lifts the mean to 3.013 s.
    pub fn sample(&self, rng: &mut impl Random) -> f64 {
        non_negative(match *self {
            Distr::Const(value) => value,
            Distr::Unif { min, max } => min + (max - min) * rng.unit(),
            Distr::Exp { mean } => -mean * positive_unit(rng).ln(),
            Distr::Norm { mean, sd } => mean + sd * standard_normal(rng),
            Distr::Logn(ref logn) => logn.sample(rng),
            Distr::Zipf { n } => (n as f64 + 1.0).powf(rng.unit()).floor().clamp(1.0, n.max(1) as f64),
            Distr::Seq { period } => (1 + rng.below(period)) as f64,
            Distr::Ascending { first } => first,
            Distr::Table(ref table) => table.quantile(rng.unit()),
        })
    }

    /// Draw number `index` (from 0) of a sequence of draws. Only `Seq` and `Ascending` use the index.
    ///
    /// The quantity determines how draws are numbered: a robot numbers its gaps; objects have the index of
    /// their names.
    pub fn sample_at(&self, index: u64, rng: &mut impl Random) -> f64 {
        match *self {
            Distr::Seq { period } => (1 + index % period.max(1)) as f64,
            Distr::Ascending { first } => non_negative(first + index as f64),
            _ => self.sample(rng),
        }
    }

    /// The mean of the values that [`Distr::sample`] gives.
    pub fn mean(&self) -> f64 {
        non_negative(match *self {
            Distr::Const(value) => value,
            Distr::Unif { min, max } => mean_within(min, max),
            Distr::Exp { mean } => mean,
            Distr::Logn(ref logn) => logn.mean(),
            Distr::Norm { mean, sd } if sd != 0.0 => {
                // Mean of max(0, N(mean, sd)): mean * cdf(z) + sd * pdf(z) with z = mean / sd.
                let z = mean / sd.abs();
                let pdf = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                mean * normal_cdf(z) + sd.abs() * pdf
            }
            Distr::Norm { mean, .. } => mean,
            Distr::Zipf { n } => {
                // The sum of k * ln(1 + 1/k) telescopes to n * ln(n + 1) - ln(n!).
                let n = n.max(1);
                let log = (n as f64 + 1.0).ln();
                (n as f64 * log - ln_factorial(n)) / log
            }
            Distr::Seq { period } => (1.0 + period.max(1) as f64) / 2.0,
            Distr::Ascending { first } => first,
            Distr::Table(ref table) => table.mean(),
        })
    }

    /// A value that few draws exceed (about one in a thousand). It bounds waiting times and is never used as a
    /// measurement.
    pub fn high(&self) -> f64 {
        non_negative(match *self {
            Distr::Const(value) => value,
            Distr::Unif { min, max } => min.max(max),
            Distr::Exp { mean } => mean * 1000f64.ln(),
            Distr::Norm { mean, sd } => mean + 3.0 * sd.abs(),
            Distr::Logn(ref logn) => logn.at(3.0),
            Distr::Zipf { n } => n.max(1) as f64,
            Distr::Seq { period } => period.max(1) as f64,
            Distr::Ascending { first } => first,
            Distr::Table(ref table) => table.quantile(0.999),
        })
    }
}

impl fmt::Display for Distr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distr::Const(v) => write!(f, "const:{v}"),
            Distr::Unif { min, max } => write!(f, "unif:{min},{max}"),
            Distr::Exp { mean } => write!(f, "exp:{mean}"),
            Distr::Norm { mean, sd } => write!(f, "norm:{mean},{sd}"),
            Distr::Logn(logn) => write!(f, "logn:{},{}", logn.mean(), logn.sd()),
            Distr::Zipf { n } => write!(f, "zipf:{n}"),
            Distr::Seq { period } => write!(f, "seq:{period}"),
            Distr::Ascending { first } => write!(f, "ascending:{first}"),
            Distr::Table(table) => table.fmt(f),
        }
    }
}

/// The value, or 0 if it is negative or not a number.
fn non_negative(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}

/// The natural logarithm of `n!`: summed for small `n`, Stirling's series beyond (error below `1e-9`).
fn ln_factorial(n: u64) -> f64 {
    if n < 64 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + (2.0 * std::f64::consts::PI * x).ln() / 2.0 + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
}

/// The standard normal cumulative distribution (Abramowitz and Stegun 7.1.26, absolute error below 1.5e-7).
fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let erf = 1.0 - poly * (-x * x).exp();
    if z >= 0.0 { (1.0 + erf) / 2.0 } else { (1.0 - erf) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    /// Draws 200,000 values and compares their mean with the stated one, within five standard errors.
    fn check(distr: Distr, expected_mean: f64) {
        let n = 200_000;
        let mut rng = Seed(11).stream("distr", 0);
        let values: Vec<f64> = (0..n).map(|_| distr.sample(&mut rng)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        let tolerance = 5.0 * (variance / n as f64).sqrt() + 1e-9;
        assert!((mean - expected_mean).abs() <= tolerance, "{distr}: mean {mean}, expected {expected_mean}");
        assert!(
            (distr.mean() - expected_mean).abs() <= 1e-3 * expected_mean.max(1.0),
            "{distr}: {}",
            distr.mean()
        );
        assert!(values.iter().all(|&v| v >= 0.0));
        let above = values.iter().filter(|&&v| v > distr.high()).count() as f64 / n as f64;
        assert!(above <= 0.003, "{distr}: {above} of the draws exceed the high value");
    }

    #[test]
    fn means_are_as_stated() {
        check(Distr::Const(3.0), 3.0);
        check(Distr::Unif { min: 1.0, max: 4.0 }, 2.5);
        check(Distr::Exp { mean: 13_312.0 }, 13_312.0);
        check(Distr::Norm { mean: 3.0, sd: 1.5 }, 3.0127);
        check(Distr::logn(25_600.0, 10_240.0), 25_600.0);
        for n in [1u64, 16, 64, 1000] {
            let share = |k: u64| (1.0 + 1.0 / k as f64).ln() / (n as f64 + 1.0).ln();
            check(Distr::Zipf { n }, (1..=n).map(|k| k as f64 * share(k)).sum());
        }
        check(Distr::Seq { period: 5 }, 3.0);
        check(Distr::Ascending { first: 7.0 }, 7.0);
        // Half of the draws of unif(-2, 2) are cut to 0, the others have a mean of 1.
        check(Distr::Unif { min: -2.0, max: 2.0 }, 0.5);
        let bin = |min, max, weight| crate::table::Bin { min, max, weight };
        let bins = [bin(0.0, Some(10.0), 3.0), bin(20.0, None, 1.0), bin(100.0, Some(300.0), 1.0)];
        check(Distr::Table(DistributionTable::new(bins).unwrap()), 0.6 * 5.0 + 0.2 * 20.0 + 0.2 * 200.0);
    }

    #[test]
    fn sequences_follow_the_index() {
        let mut rng = Seed(1).stream("distr", 1);
        let mut first = |distr: Distr| -> Vec<f64> { (0..5).map(|i| distr.sample_at(i, &mut rng)).collect() };
        assert_eq!(first(Distr::Seq { period: 3 }), [1.0, 2.0, 3.0, 1.0, 2.0]);
        assert_eq!(first(Distr::Ascending { first: 7.0 }), [7.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!(first(Distr::Const(2.0)), [2.0; 5]);
    }

    #[test]
    fn parameters_without_a_meaning_give_values_with_one() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MAX, f64::MIN_POSITIVE];
        let mut rng = Seed(2).stream("distr", 2);
        for a in odd {
            for b in odd {
                let bins = [crate::table::Bin { min: a, max: Some(b), weight: 1.0 }];
                let table = DistributionTable::new(bins).map(Distr::Table);
                let distrs = [
                    Distr::Const(a),
                    Distr::Unif { min: a, max: b },
                    Distr::Exp { mean: a },
                    Distr::Norm { mean: a, sd: b },
                    Distr::logn(a, b),
                    Distr::Ascending { first: a },
                ];
                for distr in distrs.into_iter().chain(table) {
                    for value in [distr.sample(&mut rng), distr.mean(), distr.high()] {
                        assert!(value >= 0.0, "{distr}: {value}");
                    }
                }
            }
        }
        for n in [0, 1, u64::MAX] {
            for distr in [Distr::Zipf { n }, Distr::Seq { period: n }] {
                for value in [distr.sample(&mut rng), distr.mean(), distr.high()] {
                    assert!(value >= 1.0, "{distr}: {value}");
                }
            }
        }
    }

    #[test]
    fn exponential_has_its_shape() {
        // Kolmogorov-Smirnov against 1 - exp(-x/mean): 1 % critical value 1.63 / sqrt(n) for n = 20,000.
        let n = 20_000;
        let mut rng = Seed(5).stream("ks", 0);
        let mut values: Vec<f64> = (0..n).map(|_| Distr::Exp { mean: 2.0 }.sample(&mut rng)).collect();
        values.sort_by(f64::total_cmp);
        let distance = values
            .iter()
            .enumerate()
            .map(|(i, x)| ((1.0 - (-x / 2.0).exp()) - (i as f64 + 0.5) / n as f64).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / (n as f64).sqrt(), "distance {distance}");
    }

    #[test]
    fn zipf_shares_fall_with_rank() {
        let n = 400_000;
        let mut rng = Seed(9).stream("zipf", 0);
        let mut counts = [0f64; 65];
        for _ in 0..n {
            counts[Distr::Zipf { n: 64 }.sample(&mut rng) as usize] += 1.0;
        }
        for k in [1usize, 2, 4, 16, 64] {
            let p = (1.0 + 1.0 / k as f64).ln() / 65f64.ln();
            let tolerance = 5.0 * (p * (1.0 - p) / n as f64).sqrt();
            assert!((counts[k] / n as f64 - p).abs() < tolerance, "rank {k}");
        }
    }
}
