//! Configured aborts: a header tells both sides whether and where a message is cut (`docs/reference/models.md`,
//! "Aborts").

use crate::rng::{Draw, Random};

/// Coordinates of an abort: two generator states, both non-zero. From them alone a receiver can compute whether
/// the sender of a body meant to cut it, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortCoords {
    /// State that the generator must reach if the message is to be cut.
    pub whether: i64,
    /// State from which the generator starts.
    pub place: i64,
}

impl AbortCoords {
    /// Draws the coordinates of a message that is cut with probability `prob`.
    pub fn draw(prob: f64, rng: &mut impl Random) -> AbortCoords {
        let place = non_zero(rng.bits());
        let (_, state) = cut(place, 1);
        let whether = if prob > 0.0 && rng.event(prob) { state } else { non_zero((state ^ 2) as u64) };
        AbortCoords { whether, place }
    }

    /// The number of bytes of a body of `size` bytes that are sent before the message is cut, or `None` if it
    /// is not cut.
    pub fn cut(&self, size: u64) -> Option<u64> {
        let (position, state) = cut(self.place, size);
        (size > 0 && state == self.whether).then_some(position)
    }
}

/// Position of the cut in a body, and the state of the generator afterwards, which does not depend on the size.
fn cut(place: i64, size: u64) -> (u64, i64) {
    let mut rng = Draw::new(place as u64);
    (rng.below(size), non_zero(rng.bits()))
}

fn non_zero(bits: u64) -> i64 {
    // The sign is left out, so the decimal form has no minus sign, which a device might refuse.
    ((bits >> 1) as i64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn the_share_and_the_places_are_as_asked() {
        let mut rng = Seed(11).stream("abort", 0);
        let (n, size) = (100_000, 1000);
        let cuts: Vec<u64> = (0..n).filter_map(|_| AbortCoords::draw(0.1, &mut rng).cut(size)).collect();
        let share = cuts.len() as f64 / f64::from(n);
        assert!((share - 0.1).abs() < 5.0 * (0.09 / f64::from(n)).sqrt(), "{share}");
        let mean = cuts.iter().sum::<u64>() as f64 / cuts.len() as f64;
        // Uniform over 0..1000: deviation 289.
        assert!((mean - 499.5).abs() < 5.0 * 289.0 / (cuts.len() as f64).sqrt(), "{mean}");
        assert!((0..1000).all(|_| AbortCoords::draw(0.0, &mut rng).cut(size).is_none()));
        assert!((0..1000).all(|_| AbortCoords::draw(1.0, &mut rng).cut(size).is_some()));
        assert_eq!(AbortCoords::draw(1.0, &mut rng).cut(0), None);
    }
}
