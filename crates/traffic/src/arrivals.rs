//! When the next request is due (`docs/reference/models.md`, "Arrivals"): a Poisson stream whose rate may ramp
//! up at the start.

use crate::distr::Distr;
use crate::rng::Random;

/// How a stream's mean rate relates to its full rate over time: a linear ramp from zero over the launch
/// window, constant afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadCurve {
    /// Length of the ramp in seconds, 0 for none.
    pub launch_window: f64,
}

impl LoadCurve {
    /// The time in seconds at which the expected load, in seconds at the full rate, reaches `work`.
    ///
    /// A Poisson stream with a changing rate is a unit-rate stream in "operational time" (Cinlar 1975), so
    /// mapping the arrivals of a plain stream through this inverse gives exactly the ramped stream.
    pub fn time_of(&self, work: f64) -> f64 {
        let ramp_work = self.launch_window / 2.0;
        if work < ramp_work { (2.0 * self.launch_window * work).sqrt() } else { work + ramp_work }
    }
}

/// The arrivals of one robot, independent of replies.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: Distr,
    work: f64,
}

impl Arrivals {
    /// A Poisson stream of `rate` arrivals per second (positive): exponential gaps with a constant mean.
    pub fn new(rate: f64) -> Arrivals {
        Arrivals { gaps: Distr::Exp { mean: 1.0 / rate }, work: 0.0 }
    }

    /// The next due time in seconds since the start. Due times never decrease.
    pub fn next(&mut self, curve: &LoadCurve, rng: &mut impl Random) -> f64 {
        self.work += self.gaps.sample(rng);
        curve.time_of(self.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn arrivals(curve: LoadCurve, rate: f64, until: f64) -> Vec<f64> {
        let mut stream = Arrivals::new(rate);
        let mut rng = Seed(21).stream("arrivals", 0);
        std::iter::from_fn(|| Some(stream.next(&curve, &mut rng))).take_while(|&t| t < until).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        // Kolmogorov-Smirnov, 1 % critical value, about 50,000 gaps.
        let times = arrivals(LoadCurve { launch_window: 0.0 }, 50.0, 1000.0);
        let mut gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, x)| ((1.0 - (-x * 50.0).exp()) - (i as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / n.sqrt(), "distance {distance} of {n}");
    }

    #[test]
    fn the_launch_window_ramps_linearly() {
        // Expected arrivals before t in the ramp: rate * t^2 / (2 * window); five standard deviations.
        let times = arrivals(LoadCurve { launch_window: 60.0 }, 100.0, 120.0);
        for (until, expected) in [(30.0, 750.0), (60.0, 3000.0), (120.0, 9000.0)] {
            let count = times.iter().filter(|&&t| t < until).count() as f64;
            assert!((count - expected).abs() < 5.0 * f64::sqrt(expected), "{count} before {until} s");
        }
        assert!(times.windows(2).all(|w| w[0] <= w[1]));
    }
}
