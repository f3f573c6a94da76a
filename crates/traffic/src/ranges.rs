//! Which parts of an object a range request asks for (reference: models.md, section 10.2).

use crate::distr::Distr;
use crate::rng::Random;

/// A position or length in an entity: bytes, or a share of its size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Extent {
    /// Bytes.
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
    /// Bytes.
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

/// How ranges are made.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum RangeRule {
    /// `first-last` or, without `last`, `first-`.
    From {
        /// First byte.
        first: Extent,
        /// Last byte, included.
        last: Option<Extent>,
    },
    /// `-length`: the end of the entity.
    Suffix(Extent),
    /// Several ranges with gaps between them.
    Many {
        /// How many.
        count: Distr,
        /// Length of each.
        length: DrawnExtent,
        /// First byte of the first; `None`: after a gap.
        first: Option<DrawnExtent>,
    },
}

/// One range of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-last`, or `first-` without `last`.
    From(u64, Option<u64>),
    /// `-length`.
    Suffix(u64),
}

impl RangeRule {
    /// The ranges for an entity of `size` bytes; at least one.
    ///
    /// Several ranges are separated by gaps with an exponential length whose mean is that of the ranges; what
    /// would begin beyond the end is left out.
    pub fn draw(&self, size: u64, rng: &mut impl Random) -> Vec<RangeSpec> {
        match self {
            RangeRule::From { first, last } => {
                let first = first.of(size);
                vec![RangeSpec::From(first, last.map(|last| last.of(size).max(first)))]
            }
            RangeRule::Suffix(length) => vec![RangeSpec::Suffix(length.of(size).max(1))],
            RangeRule::Many { count, length, first } => {
                let gaps = Distr::Exp { mean: length.mean(size) };
                let mut at = match first {
                    Some(first) => first.draw(size, rng),
                    None => gaps.sample(rng),
                };
                let mut specs = Vec::new();
                for _ in 0..(count.sample(rng) as u64).clamp(1, 1000) {
                    if at as u64 >= size && !specs.is_empty() {
                        break;
                    }
                    let last = at + length.draw(size, rng);
                    specs.push(RangeSpec::From(at as u64, Some(last as u64)));
                    // Neighbours that touch would be one range to a server.
                    at = last + 2.0 + gaps.sample(rng);
                }
                specs
            }
        }
    }
}
