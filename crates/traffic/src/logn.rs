//! The lognormal distribution.

use crate::distr::standard_normal;
use crate::rng::Random;

/// A lognormal distribution, given by mean and standard deviation of the *result*.
///
/// What follows from them is computed once: two of the three logarithms of a draw are always the same.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Moments", into = "Moments")]
pub struct Logn {
    moments: Moments,
    /// Mean of the logarithm.
    location: f64,
    /// Standard deviation of the logarithm.
    scale: f64,
}

/// What a lognormal distribution is given by.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Moments {
    mean: f64,
    sd: f64,
}

impl From<Moments> for Logn {
    fn from(moments: Moments) -> Logn {
        let Moments { mean, sd } = moments;
        if mean <= 0.0 {
            // It has no logarithm, and all values are 0.
            return Logn { moments, location: 0.0, scale: 0.0 };
        }
        let variance = (1.0 + (sd / mean).powi(2)).ln();
        Logn { moments, location: mean.ln() - variance / 2.0, scale: variance.sqrt() }
    }
}

impl From<Logn> for Moments {
    fn from(logn: Logn) -> Moments {
        logn.moments
    }
}

impl Logn {
    /// The distribution with this mean and standard deviation. Without a positive mean all values are 0.
    pub fn new(mean: f64, sd: f64) -> Logn {
        Moments { mean, sd }.into()
    }

    /// Mean of the values.
    pub fn mean(&self) -> f64 {
        self.moments.mean
    }

    /// Standard deviation of the values.
    pub fn sd(&self) -> f64 {
        self.moments.sd
    }

    /// Draws a value. Where all are 0 nothing is drawn from `rng`.
    pub(crate) fn sample(&self, rng: &mut impl Random) -> f64 {
        if self.mean() <= 0.0 { 0.0 } else { self.at(standard_normal(rng)) }
    }

    /// The value that is so many standard deviations of the logarithm above the median.
    pub(crate) fn at(&self, deviations: f64) -> f64 {
        if self.mean() <= 0.0 { 0.0 } else { (self.location + self.scale * deviations).exp() }
    }
}
