//! Worlds: which objects exist, and which of them a repeated request may ask for.

use std::collections::VecDeque;

use crate::id::UniqId;
use crate::rng::Random;

/// How often which of the known objects is asked for again.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Popularity {
    /// All known objects alike; older objects gather more requests because they are known longer.
    Unif,
    /// Recent objects are the popular ones: rank 1 is the newest. A `skew` of 1 gives the plain Zipf law.
    Zipf {
        /// Exponent of the uniform variate, positive.
        skew: f64,
    },
}

impl Popularity {
    /// A name in `1..=n` (`n >= 1`).
    pub fn choose(&self, n: u64, rng: &mut impl Random) -> u64 {
        match *self {
            Popularity::Unif => 1 + rng.below(n),
            Popularity::Zipf { skew } => {
                let rank = ((n as f64 + 1.0).powf(rng.unit().powf(skew)) as u64).clamp(1, n);
                1 + n - rank
            }
        }
    }
}

/// What the next request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Serial number of the object in its world.
    pub name: u64,
    /// The object was requested before.
    pub repeat: bool,
}

/// The objects of one client loop on one server: names `1..=size`, in order of creation.
///
/// A new object becomes repeatable only `settle` after its first request was due. Without that, a short run
/// would ask again for objects whose first reply is still on its way, and no device can hit on those: with
/// PolyMix-1's think time of 3 s, a 90-second run would lose 5 points of its offered hit ratio. Because the
/// rule looks at due times and not at replies, the sequence of requests depends on the seed alone.
#[derive(Clone, Debug)]
pub struct World {
    id: UniqId,
    settle_ns: u64,
    repeatable: u64,
    /// When each of the objects after `repeatable` becomes repeatable, oldest first.
    settling: VecDeque<u64>,
}

impl World {
    /// An empty world; `settle_ns` is the age in nanoseconds at which objects become repeatable.
    pub fn new(id: UniqId, settle_ns: u64) -> World {
        World { id, settle_ns, repeatable: 0, settling: VecDeque::new() }
    }

    /// The world's id, part of every URL in it.
    pub fn id(&self) -> UniqId {
        self.id
    }

    /// Number of objects created so far.
    pub fn size(&self) -> u64 {
        self.repeatable + self.settling.len() as u64
    }

    /// Chooses the object for a request due at `due_ns`: with probability `recurrence` an earlier one, if
    /// there is one to repeat, else a new one. Due times must not decrease from call to call.
    pub fn choose(
        &mut self,
        due_ns: u64,
        recurrence: f64,
        popularity: Popularity,
        rng: &mut impl Random,
    ) -> Choice {
        while self.settling.front().is_some_and(|&at| at <= due_ns) {
            self.settling.pop_front();
            self.repeatable += 1;
        }
        if rng.event(recurrence) && self.repeatable > 0 {
            return Choice { name: popularity.choose(self.repeatable, rng), repeat: true };
        }
        self.settling.push_back(due_ns + self.settle_ns);
        Choice { name: self.size(), repeat: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn names_are_new_or_known_and_settled() {
        let mut world = World::new(UniqId::default(), 1_000);
        let mut rng = Seed(1).stream("world", 0);
        let mut created = Vec::new();
        for step in 0..10_000u64 {
            let due = step * 10;
            let choice = world.choose(due, 0.6875, Popularity::Unif, &mut rng);
            if choice.repeat {
                assert!(created[choice.name as usize - 1] + 1_000 <= due);
            } else {
                created.push(due);
                assert_eq!(choice.name, created.len() as u64);
            }
        }
        assert_eq!(world.size(), created.len() as u64);
    }

    #[test]
    fn recurrence_is_as_asked_once_objects_settled() {
        let n = 200_000u64;
        let mut world = World::new(UniqId::default(), 5);
        let mut rng = Seed(2).stream("world", 0);
        let repeats = (0..n)
            .filter(|&due| world.choose(due, 0.6875, Popularity::Unif, &mut rng).repeat && due >= 100)
            .count();
        let share = repeats as f64 / (n - 100) as f64;
        assert!((share - 0.6875).abs() < 5.0 * (0.215 / n as f64).sqrt(), "share {share}");
    }

    #[test]
    fn the_offered_hit_ratio_of_short_runs_has_no_bias() {
        // 100 runs of 9,000 requests at 100/s, a tenth of each left out as warm-up: repeats of cachable
        // objects, offered by a recurrence of 0.55/0.8. Five standard errors of the mean of all.
        let properties = crate::Properties { seed: Seed(1), size: crate::Distr::Const(1.0) };
        let mut ids = crate::IdSource::unique(1_800_000_000, 5, 5, 5);
        let (mut offered, mut all) = (0u64, 0u64);
        for run in 0..100 {
            let mut world = World::new(ids.fresh(), 7_750_000_000);
            let mut rng = Seed(3).stream("offered", run);
            for step in 0..9_000u64 {
                let choice = world.choose(step * 10_000_000, 0.6875, Popularity::Unif, &mut rng);
                if step >= 900 {
                    all += 1;
                    let kind = properties.classic_kind(world.id(), choice.name, 0.8);
                    offered += u64::from(choice.repeat && kind == crate::Kind::CACHABLE);
                }
            }
        }
        let share = offered as f64 / all as f64;
        assert!((share - 0.55).abs() < 5.0 * (0.55 * 0.45 / all as f64).sqrt(), "{share} of {all}");
    }

    #[test]
    fn uniform_choice_has_no_favourites() {
        // Chi-square over 20 names: 19 degrees of freedom, 99.9 % point 43.8.
        let mut rng = Seed(4).stream("unif", 0);
        let mut counts = [0f64; 20];
        for _ in 0..100_000 {
            counts[Popularity::Unif.choose(20, &mut rng) as usize - 1] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 5_000.0).powi(2) / 5_000.0).sum();
        assert!(chi < 43.8, "chi-square {chi}");
    }

    #[test]
    fn zipf_prefers_the_newest_with_slope_minus_one() {
        // Rank r is chosen with probability log(1 + 1/r) / log(n + 1).
        let (n, draws) = (1_000u64, 400_000);
        let mut rng = Seed(6).stream("zipf", 0);
        let mut counts = vec![0f64; n as usize + 1];
        for _ in 0..draws {
            let rank = n + 1 - Popularity::Zipf { skew: 1.0 }.choose(n, &mut rng);
            counts[rank as usize] += 1.0;
        }
        for rank in [1u64, 2, 5, 20, 100] {
            let p = (1.0 + 1.0 / rank as f64).ln() / (n as f64 + 1.0).ln();
            let tolerance = 5.0 * (p * (1.0 - p) / draws as f64).sqrt();
            assert!((counts[rank as usize] / draws as f64 - p).abs() < tolerance, "rank {rank}");
        }
    }

    #[test]
    fn same_seed_same_sequence() {
        let run = || {
            let mut world = World::new(UniqId::default(), 100);
            let mut rng = Seed(8).stream("world", 3);
            (0..1000u64)
                .map(|due| world.choose(due, 0.5, Popularity::Zipf { skew: 1.0 }, &mut rng))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }
}
