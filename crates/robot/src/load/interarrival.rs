//! Launch times of robots with gaps of any distribution (`docs/reference/models.md`, "Arrivals").

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_traffic::{Distr, Random};

use crate::load::pace::Ramp;

/// Longest time, in nanoseconds, after which a stretched gap is computed again, because the load factor may have
/// changed.
const LOOK_AGAIN: Nanos = SECOND;

/// The launches of one robot. A load factor of `x` stretches gaps by `1/x`; at 0, time stops, and continues as
/// soon as the factor rises.
#[derive(Debug)]
pub struct InterArrival<'a> {
    gaps: &'a Distr,
    /// Number of gaps so far.
    drawn: u64,
    /// The remaining part of the current gap, in seconds at the full rate.
    left: f64,
}

impl<'a> InterArrival<'a> {
    /// A stream with these gaps in seconds at the full rate.
    pub fn new(gaps: &'a Distr) -> InterArrival<'a> {
        InterArrival { gaps, drawn: 0, left: 0.0 }
    }

    /// Whether the last time that [`InterArrival::next`] returned is that of a launch, and not only one to compute the
    /// gap again.
    pub fn is_due(&self) -> bool {
        self.left <= 0.0
    }

    /// The next time after the previous one, `last`, under the load factor `load`.
    pub fn next(&mut self, last: Nanos, load: &Ramp, rng: &mut impl Random) -> Nanos {
        if self.left <= 0.0 {
            // The excess of the previous gap is subtracted from this one.
            self.left += self.gaps.sample_at(self.drawn, rng);
            self.drawn += 1;
        }
        let factor = load.at(last);
        let stretched = nanos(self.left.max(0.0) / factor).max(Nanos::new(1));
        if factor >= 1.0 || stretched <= LOOK_AGAIN {
            self.left = 0.0;
            return last.saturating_add(stretched);
        }
        let then = last + LOOK_AGAIN;
        self.left -= (factor + load.at(then)) / 2.0 * (LOOK_AGAIN.as_f64() / SECOND.as_f64());
        then
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::Seed;

    fn launches(gaps: Distr, load: Ramp, until: f64) -> Vec<f64> {
        let (mut gaps, mut rng) = (InterArrival::new(&gaps), Seed(31).stream("gaps", 0));
        let (mut now, mut launches) = (0, Vec::new());
        loop {
            now = gaps.next(Nanos::new(now), &load, &mut rng).as_u64();
            if now > nanos(until).as_u64() {
                return launches;
            }
            if gaps.is_due() {
                launches.push(now as f64 / 1e9);
            }
        }
    }

    #[test]
    fn gaps_are_stretched_and_counted() {
        let at = |gaps, factor| launches(gaps, Ramp::flat(factor), 10.0);
        assert_eq!(at(Distr::Const(4.0), 1.0), [4.0, 8.0]);
        assert_eq!(at(Distr::Const(2.0), 0.5), [4.0, 8.0]);
        assert_eq!(at(Distr::Ascending { first: 1.0 }, 1.0), [1.0, 3.0, 6.0, 10.0]);
        assert_eq!(at(Distr::Const(1.0), 0.0), []);
    }

    #[test]
    fn a_ramp_from_nothing_does_not_get_stuck() {
        // The area under the ramp is 50 s at the full rate, and 100 s follow: a request every 2 s of that.
        let load = Ramp { begin: Nanos::ZERO, end: 100 * SECOND, from: 0.0, to: 1.0 };
        let times = launches(Distr::Const(2.0), load, 200.0);
        assert!((74..=76).contains(&times.len()), "{times:?}");
        let early = times.iter().filter(|&&at| at <= 50.0).count();
        assert!((5..=7).contains(&early), "12.5 s at the full rate: {times:?}");
        let idle = Ramp { begin: 60 * SECOND, end: 60 * SECOND, from: 0.0, to: 1.0 };
        let times = launches(Distr::Exp { mean: 1000.0 }, idle, 30_060.0);
        assert!((12..=48).contains(&times.len()) && times[0] > 60.0, "{}", times.len());
    }
}
