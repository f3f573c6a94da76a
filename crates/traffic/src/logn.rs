//! The lognormal distribution.

use crate::rng::{Random, standard_normal};

/// A lognormal distribution, given by mean and standard deviation of the *result*.
///
/// Derived values are computed once: two of the three logarithms of a draw are always the same.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Moments", into = "Moments")]
pub struct Logn {
    moments: Moments,
    /// Mean of the logarithm.
    location: f64,
    /// Standard deviation of the logarithm.
    scale: f64,
}

/// The parameters of a lognormal distribution.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Moments {
    mean: f64,
    sd: f64,
}

impl From<Moments> for Logn {
    fn from(moments: Moments) -> Logn {
        let Moments { mean, sd } = moments;
        if mean <= 0.0 {
            // The logarithm is undefined, and all values are 0.
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

    /// Draws a value. If all values are 0, nothing is drawn from `rng`.
    pub(crate) fn sample(&self, rng: &mut impl Random) -> f64 {
        if self.mean() <= 0.0 { 0.0 } else { self.at(standard_normal(rng)) }
    }

    /// The value that is this many standard deviations of the logarithm above the median.
    pub(crate) fn at(&self, deviations: f64) -> f64 {
        if self.mean() <= 0.0 { 0.0 } else { (self.location + self.scale * deviations).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_moments_are_stored() {
        for (mean, sd) in [(25_600.0, 10_240.0), (1.0, 0.0), (0.0, 1.0), (-3.0, 2.0)] {
            let logn = Logn::new(mean, sd);
            let stored = postcard::to_allocvec(&logn).unwrap();
            assert_eq!(stored, postcard::to_allocvec(&(mean, sd)).unwrap());
            assert_eq!(postcard::from_bytes::<Logn>(&stored).unwrap(), logn);
        }
    }

    #[test]
    fn the_logarithm_has_the_parameters_that_follow() {
        // Half of the values are below mean / sqrt(1 + (sd / mean)^2).
        let logn = Logn::new(3.0, 4.0);
        let median = 3.0 / (1.0f64 + 16.0 / 9.0).sqrt();
        assert!((logn.at(0.0) / median - 1.0).abs() < 1e-12);
        // One standard deviation above the median, the logarithm is greater by the square root of ln(1 + (sd /
        // mean)^2).
        let scale = (1.0f64 + 16.0 / 9.0).ln().sqrt();
        assert!(((logn.at(1.0) / median).ln() / scale - 1.0).abs() < 1e-12);
        assert_eq!((Logn::new(0.0, 1.0).at(1.0), Logn::new(-1.0, 1.0).at(1.0)), (0.0, 0.0));
    }
}
