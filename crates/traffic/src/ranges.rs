//! The parts of an object that a range request selects (`docs/reference/models.md`, "Ranges").

use crate::distr::Distr;
use crate::rng::Random;

/// A position or length in an entity: bytes, or a share of its size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Extent {
    /// A number of bytes.
    Absolute(u64),
    /// Share of the entity's size (0 to 1).
    Relative(f64),
}

impl Extent {
    fn of(self, size: u64) -> u64 {
        match self {
            Extent::Absolute(bytes) => bytes,
            Extent::Relative(share) => (share * size as f64) as u64,
        }
    }
}

/// A drawn position or length in an entity.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum DrawnExtent {
    /// A number of bytes.
    Absolute(Distr),
    /// Share of the entity's size (0 to 1).
    Relative(Distr),
}

impl DrawnExtent {
    fn draw(&self, size: u64, rng: &mut impl Random) -> f64 {
        match self {
            DrawnExtent::Absolute(distr) => distr.sample(rng),
            DrawnExtent::Relative(distr) => distr.sample(rng) * size as f64,
        }
    }

    fn mean(&self, size: u64) -> f64 {
        match self {
            DrawnExtent::Absolute(distr) => distr.mean(),
            DrawnExtent::Relative(distr) => distr.mean() * size as f64,
        }
    }
}

/// A rule for the ranges of a request.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RangeRule {
    /// `first-last` or, without `last`, `first-`.
    From {
        /// First byte.
        first: Extent,
        /// Last byte, included.
        last: Option<Extent>,
    },
    /// `-length`: the last bytes of the entity.
    Suffix(Extent),
    /// Several ranges with gaps between them.
    Many {
        /// The number of ranges.
        count: Distr,
        /// The length of each range.
        length: DrawnExtent,
        /// First byte of the first range; `None` if a gap comes first.
        first: Option<DrawnExtent>,
    },
}

/// One range of a request (RFC 9110, section 14.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// `a-b`: from byte `a` to byte `b`, both included, `a <= b`.
    FromTo(u64, u64),
    /// `a-`: from byte `a` to the end.
    From(u64),
    /// `-n`: the last `n` bytes.
    Suffix(u64),
}

impl RangeSpec {
    /// The first byte of an entity of `size` bytes that the range covers, and the first byte after it; they are
    /// equal if it covers none.
    pub fn within(self, size: u64) -> (u64, u64) {
        match self {
            RangeSpec::FromTo(first, last) => (first.min(size), last.saturating_add(1).min(size)),
            RangeSpec::From(first) => (first.min(size), size),
            RangeSpec::Suffix(length) => (size.saturating_sub(length), size),
        }
    }

    /// True if the range covers bytes beyond the end of an entity of `size` bytes.
    pub fn overflows(self, size: u64) -> bool {
        match self {
            RangeSpec::FromTo(_, last) => last >= size,
            RangeSpec::From(first) => first >= size,
            RangeSpec::Suffix(length) => length > size,
        }
    }
}

/// The ranges of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSet {
    /// The ranges, at least one.
    pub specs: Vec<RangeSpec>,
    /// Size in bytes of the entity that the ranges were drawn for.
    pub size: u64,
    /// The last byte was drawn before the first one.
    pub swapped: bool,
    /// There are fewer ranges than drawn, because the next one would start beyond the end.
    pub cut: bool,
}

impl RangeRule {
    /// Draws the ranges for an entity of `size` bytes.
    ///
    /// Several ranges are separated by gaps with an exponential length whose mean is that of the ranges. Ranges
    /// that would start beyond the end are left out.
    pub fn draw(&self, size: u64, rng: &mut impl Random) -> RangeSet {
        let of = |specs| RangeSet { specs, size, swapped: false, cut: false };
        match self {
            RangeRule::From { first, last } => {
                let first = first.of(size);
                let last = last.map(|last| last.of(size));
                let spec = match last {
                    Some(last) => RangeSpec::FromTo(first, last.max(first)),
                    None => RangeSpec::From(first),
                };
                RangeSet { swapped: last.is_some_and(|last| last < first), ..of(vec![spec]) }
            }
            RangeRule::Suffix(length) => of(vec![RangeSpec::Suffix(length.of(size).max(1))]),
            RangeRule::Many { count, length, first } => {
                let gaps = Distr::Exp { mean: length.mean(size) };
                let mut at = match first {
                    Some(first) => first.draw(size, rng),
                    None => gaps.sample(rng),
                };
                let (mut specs, mut cut) = (Vec::new(), false);
                for _ in 0..(count.sample(rng) as u64).clamp(1, 1000) {
                    if at as u64 >= size && !specs.is_empty() {
                        cut = true;
                        break;
                    }
                    let last = at + length.draw(size, rng);
                    specs.push(RangeSpec::FromTo(at as u64, last as u64));
                    // A server would treat ranges that touch as one.
                    at = last + 2.0 + gaps.sample(rng);
                }
                RangeSet { cut, ..of(specs) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn single_ranges_are_as_written() {
        use Extent::{Absolute, Relative};
        let mut rng = Seed(1).stream("ranges", 0);
        let cases = [
            (RangeRule::From { first: Absolute(10), last: None }, RangeSpec::From(10)),
            (RangeRule::From { first: Absolute(10), last: Some(Relative(0.5)) }, RangeSpec::FromTo(10, 500)),
            // The last byte is not before the first.
            (RangeRule::From { first: Relative(0.9), last: Some(Absolute(5)) }, RangeSpec::FromTo(900, 900)),
            (RangeRule::Suffix(Relative(0.25)), RangeSpec::Suffix(250)),
            (RangeRule::Suffix(Absolute(0)), RangeSpec::Suffix(1)),
        ];
        for (rule, expected) in &cases {
            assert_eq!(rule.draw(1000, &mut rng).specs, [*expected], "{rule:?}");
        }
        let before = RangeRule::From { first: Absolute(10), last: Some(Absolute(5)) };
        assert!(before.draw(1000, &mut rng).swapped && !cases[0].0.draw(1000, &mut rng).swapped);
    }

    #[test]
    fn ranges_end_with_the_entity() {
        for (spec, within, overflows) in [
            (RangeSpec::From(10), (10, 100), false),
            (RangeSpec::FromTo(10, 99), (10, 100), false),
            (RangeSpec::FromTo(10, 100), (10, 100), true),
            (RangeSpec::From(100), (100, 100), true),
            (RangeSpec::Suffix(100), (0, 100), false),
            (RangeSpec::Suffix(101), (0, 100), true),
        ] {
            assert_eq!((spec.within(100), spec.overflows(100)), (within, overflows), "{spec:?}");
        }
    }

    #[test]
    fn several_ranges_follow_each_other_with_exponential_gaps() {
        // 20,000 sets of 3 ranges of 100 bytes in a large entity: 40,000 gaps between them with a mean of 100 bytes, two
        // more than drawn so that neighbours never touch, one less because ends are included. Five standard errors.
        let rule = RangeRule::Many {
            count: Distr::Const(3.0),
            length: DrawnExtent::Absolute(Distr::Const(100.0)),
            first: Some(DrawnExtent::Relative(Distr::Const(0.5))),
        };
        let mut rng = Seed(2).stream("ranges", 0);
        let (mut gaps, n) = (0.0, 20_000);
        for _ in 0..n {
            let RangeSet { specs, cut, .. } = rule.draw(1_000_000, &mut rng);
            assert!(!cut);
            assert_eq!((specs.len(), specs[0]), (3, RangeSpec::FromTo(500_000, 500_100)));
            for pair in specs.windows(2) {
                let [RangeSpec::FromTo(_, last), RangeSpec::FromTo(next, end)] = *pair else { panic!() };
                assert!(next > last + 1 && end - next <= 101);
                gaps += (next - last) as f64 - 2.0;
            }
        }
        let mean = gaps / (2.0 * f64::from(n));
        assert!((mean - 100.0).abs() < 5.0 * 100.0 / (2.0 * f64::from(n)).sqrt() + 0.5, "{mean}");
        // Ranges that would start beyond the end are left out, except for the first.
        assert!((0..100).all(|_| rule.draw(150, &mut rng).specs.len() <= 2));
        assert!((0..100).all(|_| rule.draw(150, &mut rng).cut));
        assert_eq!(rule.draw(0, &mut rng).specs.len(), 1);
    }
}
