//! Object ids and what follows from them.
//!
//! Every property of an object (reply size, cachability, body) is a pure function of its id and the global
//! seed. Client and server never exchange such facts; each computes them.

use crate::distr::Distr;
use crate::id::UniqId;
use crate::rng::{Draw, Random, Seed, mix};

/// Content kind of an object: the two hex digits after `t` in its URL.
///
/// Kinds 0 to 2 are reserved (foreign, bodiless, unknown). The command lines of generation 1.x know no content
/// types, only a share of cachable replies that the *client* is told and the *server* is not; there the client
/// marks the object's cachability in its id by using kind [`Kind::CACHABLE`] or [`Kind::UNCACHABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// A cachable object of the single content type of a 1.x workload.
    pub const CACHABLE: Kind = Kind(3);
    /// An uncachable object of the single content type of a 1.x workload.
    pub const UNCACHABLE: Kind = Kind(4);
}

/// An object id: which object a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid {
    /// The URL name space the object lives in.
    pub world: UniqId,
    /// Content kind.
    pub kind: Kind,
    /// Serial number within the world, from 1 in order of creation.
    pub name: u64,
}

/// The property constants: each property of an object has a draw of its own.
mod property {
    pub const SIZE: u64 = 1;
    pub const CACHABLE: u64 = 2;
    pub const BODY: u64 = 3;
}

impl Oid {
    /// A number that stands for the object in seeded draws. The kind takes no part in it.
    fn hash(&self) -> u64 {
        mix(self.world.hash() ^ self.name)
    }

    fn draw(&self, seed: Seed, property: u64) -> Draw {
        Draw::new(self.hash() ^ mix(seed.0 ^ (property << 56)))
    }

    /// Where in the filler text the object's body starts, below `modulus`.
    pub fn body_offset(&self, seed: Seed, modulus: usize) -> usize {
        self.draw(seed, property::BODY).below(modulus as u64) as usize
    }
}

/// How object ids turn into properties; equal on both sides of a test.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Properties {
    /// The seed that all processes of the test share.
    pub seed: Seed,
    /// Reply body size in bytes.
    pub size: Distr,
}

/// No reply body is larger: keeps sizes within what every HTTP implementation accepts.
pub const MAX_BODY: f64 = (i32::MAX - 100 * 1024) as f64;

impl Properties {
    /// Body size in bytes, at least 1.
    pub fn size(&self, oid: &Oid) -> u64 {
        let drawn = self.size.sample(&mut oid.draw(self.seed, property::SIZE));
        drawn.ceil().clamp(1.0, MAX_BODY) as u64
    }

    /// The kind of object number `name` of `world` if a share `cachable` of all objects is cachable.
    ///
    /// Cachable objects are spread evenly over names: the multiples of the golden ratio, shifted by a number
    /// that belongs to the world, fill the unit interval with the least possible gaps (Weyl's sequence), so the
    /// share is right in every stretch of names. Independent draws would let the few old objects that gather
    /// most repeats shift the offered hit ratio of a short run by a point or more.
    pub fn classic_kind(&self, world: UniqId, name: u64, cachable: f64) -> Kind {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let shift = Oid { world, kind: Kind::CACHABLE, name: 0 }.draw(self.seed, property::CACHABLE).bits();
        let place = name.wrapping_mul(GOLDEN).wrapping_add(shift) >> 11;
        match (place as f64) < cachable * (1u64 << 53) as f64 {
            true => Kind::CACHABLE,
            false => Kind::UNCACHABLE,
        }
    }

    /// Whether caches may store the object.
    pub fn cachable(&self, oid: &Oid) -> bool {
        oid.kind != Kind::UNCACHABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::IdSource;

    fn properties() -> Properties {
        Properties { seed: Seed(1), size: Distr::Exp { mean: 13.0 * 1024.0 } }
    }

    #[test]
    fn sizes_follow_the_distribution_and_repeat() {
        let world = IdSource::unique(1_800_000_000, 1, 1, 1).fresh();
        let n = 100_000u64;
        let oid = |name| Oid { world, kind: Kind::CACHABLE, name };
        let mut sizes: Vec<u64> = (1..=n).map(|name| properties().size(&oid(name))).collect();
        assert_eq!(properties().size(&oid(77)), sizes[76]);
        let mean = sizes.iter().sum::<u64>() as f64 / n as f64;
        sizes.sort_unstable();
        // Reference values of PolyMix-1: mean 13,312 and median 9,227 bytes; five standard errors.
        assert!((mean - 13_312.5).abs() < 5.0 * 13_312.0 / (n as f64).sqrt(), "mean {mean}");
        let median = sizes[n as usize / 2] as f64;
        assert!((median - 9_227.0).abs() < 5.0 * 13_312.0 / (n as f64).sqrt(), "median {median}");
    }

    #[test]
    fn cachable_share_is_as_asked_in_every_stretch_of_names() {
        let mut ids = IdSource::unique(1_800_000_000, 1, 2, 2);
        for _ in 0..20 {
            let world = ids.fresh();
            for (from, to) in [(1u64, 100u64), (500, 700), (10_000, 20_000)] {
                let cachable = (from..to)
                    .filter(|&name| properties().classic_kind(world, name, 0.8) == Kind::CACHABLE)
                    .count();
                let off = cachable as f64 - 0.8 * (to - from) as f64;
                assert!(off.abs() < 5.0, "names {from} to {to}: {cachable}");
            }
        }
        let world = ids.fresh();
        assert!((1..1000).all(|name| properties().classic_kind(world, name, 1.0) == Kind::CACHABLE));
        assert!((1..1000).all(|name| properties().classic_kind(world, name, 0.0) == Kind::UNCACHABLE));
    }

    #[test]
    fn kind_does_not_change_the_size() {
        let world = UniqId { time: 1, mix: 2, counter: 2 };
        let a = Oid { world, kind: Kind::CACHABLE, name: 5 };
        let b = Oid { world, kind: Kind::UNCACHABLE, name: 5 };
        assert_eq!(properties().size(&a), properties().size(&b));
    }
}
