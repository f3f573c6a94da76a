//! When the next request is due (reference: models.md, section 14.1): a stream of independent gaps whose mean
//! rate may ramp up at the start.

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
    /// mapping the arrivals of a plain stream through this inverse gives exactly the ramped stream. Other renewal
    /// streams keep the shape of their gaps in operational time, which is what a changing rate means for them.
    pub fn time_of(&self, work: f64) -> f64 {
        let ramp_work = self.launch_window / 2.0;
        if work < ramp_work { (2.0 * self.launch_window * work).sqrt() } else { work + ramp_work }
    }

    /// Share of the full rate that is offered at `time` seconds.
    pub fn factor(&self, time: f64) -> f64 {
        if time < self.launch_window { time.max(0.0) / self.launch_window } else { 1.0 }
    }
}

/// The arrivals of one robot: a renewal stream, independent of replies.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: Distr,
    index: u64,
    work: f64,
}

impl Arrivals {
    /// A Poisson stream of `rate` arrivals per second (positive): exponential gaps with a constant mean.
    pub fn new(rate: f64) -> Arrivals {
        Arrivals { gaps: Distr::Exp { mean: 1.0 / rate }, index: 0, work: 0.0 }
    }

    /// A stream with these gaps in seconds at the full rate. The first arrival comes after the first gap, as after
    /// any other: robots with constant gaps that start together stay together.
    ///
    /// `None` if the mean gap is zero: such a stream would never get beyond its first moment.
    pub fn renewal(gaps: Distr) -> Option<Arrivals> {
        (gaps.mean() > 0.0).then_some(Arrivals { gaps, index: 0, work: 0.0 })
    }

    /// The next due time in seconds since the start. Due times never decrease.
    pub fn next(&mut self, curve: &LoadCurve, rng: &mut impl Random) -> f64 {
        self.work += self.gaps.sample_at(self.index, rng);
        self.index += 1;
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
    fn renewal_streams_keep_their_gaps() {
        let steady = LoadCurve { launch_window: 0.0 };
        let mut rng = Seed(22).stream("arrivals", 0);
        let mut first = |gaps, n| -> Vec<f64> {
            let mut stream = Arrivals::renewal(gaps).unwrap();
            (0..n).map(|_| stream.next(&steady, &mut rng)).collect()
        };
        assert_eq!(first(Distr::Const(0.25), 4), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(first(Distr::Ascending { first: 1.0 }, 4), [1.0, 3.0, 6.0, 10.0]);
        // Uniform gaps over 0.1..0.3 s: mean 0.2, deviation 0.2/sqrt(12); 20,000 of them, five standard errors, and
        // Kolmogorov-Smirnov at the 1 % critical value.
        let times = first(Distr::Unif { min: 0.1, max: 0.3 }, 20_001);
        let mut gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        assert!((mean - 0.2).abs() < 5.0 * 0.2 / 12f64.sqrt() / n.sqrt(), "{mean}");
        let off = |(i, gap): (usize, &f64)| ((gap - 0.1) / 0.2 - (i as f64 + 0.5) / n).abs();
        assert!(gaps.iter().enumerate().map(off).fold(0.0, f64::max) < 1.63 / n.sqrt());
        assert!(Arrivals::renewal(Distr::Const(0.0)).is_none());
        assert!(Arrivals::renewal(Distr::Norm { mean: f64::NAN, sd: 1.0 }).is_none());
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
