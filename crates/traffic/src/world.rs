//! Worlds: the existing objects, and those that a repeated request may choose (`docs/reference/models.md`, "Worlds
//! and working sets").

use std::collections::VecDeque;

use crate::id::UniqId;
use crate::popularity::{Candidates, Chosen, PopModel};
use crate::rng::Random;

/// The state of a world that is shared with other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WorldFacts {
    /// The number of objects that may be requested again.
    pub size: u64,
    /// Size of the working set once it is frozen.
    pub window: Option<u64>,
    /// Newest name of the hot set.
    pub hot_end: u64,
}

/// The objects of one content type in one galaxy: names `1..=size`, in order of creation.
///
/// A new object becomes repeatable a delay after its first request was due (`repeat_delay` in crate `plan`).
/// Without the delay, a short run would request objects whose first reply is still on its way, and no device
/// can hit on those: with PolyMix-1's think time of 3 s, a 90-second run would lose 5 points of its offered hit
/// ratio. The rule uses due times and not replies, so the sequence of requests depends on the seed alone.
#[derive(Clone, Debug, Default)]
pub struct World {
    known: WorldFacts,
    /// When each of the newest objects becomes repeatable, oldest first.
    settling: VecDeque<u64>,
}

impl World {
    /// A world as known from another process, whose objects can be repeated.
    pub fn known(facts: WorldFacts) -> World {
        World { known: facts, settling: VecDeque::new() }
    }

    /// Number of objects created so far.
    pub fn size(&self) -> u64 {
        self.known.size + self.settling.len() as u64
    }

    /// The state to share with other processes.
    pub fn facts(&self) -> WorldFacts {
        self.known
    }

    /// The state for a later run, in which all objects are repeatable.
    pub fn settled(&self) -> WorldFacts {
        WorldFacts { size: self.size(), ..self.known }
    }

    /// Takes over newer facts: all of them, or none if they are older. Returns true if they were newer.
    pub fn learn(&mut self, facts: WorldFacts) -> bool {
        let newer = facts.size > self.known.size || facts.window > self.known.window;
        if newer {
            self.known = facts;
        }
        newer
    }

    /// Makes objects repeatable whose delay has passed at `now_ns`. Times must not decrease from call to call.
    pub fn make_repeatable(&mut self, now_ns: u64, rng: &mut impl Random) {
        while self.settling.front().is_some_and(|&at| at <= now_ns) {
            self.settling.pop_front();
            self.known.size += 1;
        }
        match self.known.window {
            None => self.known.hot_end = (self.known.size / 2).max(1),
            Some(window) if self.known.hot_end + window <= self.known.size => {
                self.known.hot_end = self.known.size - rng.below(window.max(1));
            }
            Some(_) => {}
        }
    }

    /// True if there is an object to request again.
    pub fn can_repeat(&self) -> bool {
        self.known.size > 0 && self.known.window != Some(0)
    }

    /// The name of a new object, which becomes repeatable at `repeatable_ns`.
    pub fn produce(&mut self, repeatable_ns: u64) -> u64 {
        self.settling.push_back(repeatable_ns);
        self.size()
    }

    /// An object to request again; call it only if [`World::can_repeat`].
    pub fn repeat(
        &self,
        model: &PopModel,
        rng: &mut impl Random,
        size_if_cachable: impl Fn(u64) -> Option<u64>,
    ) -> Chosen {
        let WorldFacts { size, window, hot_end } = self.known;
        model.choose(Candidates { last: size.max(1), window, hot_end }, rng, size_if_cachable)
    }

    /// Freezes the working set: from now on its size is constant, and only that many of the newest objects are
    /// requested again. New objects still appear, so the window moves. An empty world is not frozen, because an
    /// empty window would prevent repeats for the rest of the test.
    pub fn freeze(&mut self) {
        if self.known.window.is_none() && self.size() > 0 {
            self.known.window = Some(self.size());
        }
    }
}

/// Worlds that share an id, one for each content type of a list.
#[derive(Clone, Debug)]
pub struct Galaxy {
    /// The id in URLs.
    pub id: UniqId,
    /// The worlds, by index in the list of content types.
    pub worlds: Vec<World>,
}

impl Galaxy {
    /// A galaxy without objects.
    pub fn new(id: UniqId, kinds: usize) -> Galaxy {
        Galaxy { id, worlds: vec![World::default(); kinds] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::{Catalog, ContentKind, Distr};

    /// A request due at `due`: repeats a repeatable object with probability `recurrence`, if there is one.
    fn choose(
        world: &mut World,
        due: u64,
        settle: u64,
        recurrence: f64,
        rng: &mut impl Random,
    ) -> (u64, bool) {
        world.make_repeatable(due, rng);
        if rng.event(recurrence) && world.can_repeat() {
            (world.repeat(&PopModel::default(), rng, |_| None).name, true)
        } else {
            (world.produce(due + settle), false)
        }
    }

    #[test]
    fn names_are_new_or_known_and_settled() {
        let mut world = World::default();
        let mut rng = Seed(1).stream("world", 0);
        let mut created = Vec::new();
        for step in 0..10_000u64 {
            let due = step * 10;
            let (name, repeat) = choose(&mut world, due, 1_000, 0.6875, &mut rng);
            if repeat {
                assert!(created[name as usize - 1] + 1_000 <= due);
            } else {
                created.push(due);
                assert_eq!(name, created.len() as u64);
            }
        }
        assert_eq!(world.size(), created.len() as u64);
    }

    #[test]
    fn recurrence_is_as_asked_once_objects_settled() {
        let n = 200_000u64;
        let mut world = World::default();
        let mut rng = Seed(2).stream("world", 0);
        let repeats =
            (0..n).filter(|&due| choose(&mut world, due, 5, 0.6875, &mut rng).1 && due >= 100).count();
        let share = repeats as f64 / (n - 100) as f64;
        assert!((share - 0.6875).abs() < 5.0 * (0.215 / n as f64).sqrt(), "share {share}");
    }

    #[test]
    fn the_offered_hit_ratio_of_short_runs_has_no_bias() {
        // 100 runs of 9,000 requests at 100/s, a tenth of each left out as warm-up: repeats of cachable
        // objects, offered by a recurrence of 0.55/0.8. Five standard errors of the mean of all.
        let catalog = Catalog::classic(Seed(1), Distr::Const(1.0));
        let mut ids = crate::IdSource::unique(1_800_000_000, 5, 5, 5);
        let (mut offered, mut all) = (0u64, 0u64);
        for run in 0..100 {
            let mut world = World::default();
            let id = ids.fresh();
            let mut rng = Seed(3).stream("offered", run);
            for step in 0..9_000u64 {
                let (name, repeat) = choose(&mut world, step * 10_000_000, 7_750_000_000, 0.6875, &mut rng);
                if step >= 900 {
                    all += 1;
                    offered += u64::from(repeat && catalog.classic_kind(id, name, 0.8) == ContentKind::FIRST);
                }
            }
        }
        let share = offered as f64 / all as f64;
        assert!((share - 0.55).abs() < 5.0 * (0.55 * 0.45 / all as f64).sqrt(), "{share} of {all}");
    }

    #[test]
    fn a_frozen_working_set_slides() {
        let mut world = World::default();
        let mut rng = Seed(4).stream("freeze", 0);
        for due in 0..1_000 {
            choose(&mut world, due, 10, 0.0, &mut rng);
        }
        world.freeze();
        assert_eq!(world.facts().window, Some(1_000));
        for due in 1_000..20_000 {
            let (name, repeat) = choose(&mut world, due, 10, 0.5, &mut rng);
            let size = world.facts().size;
            assert!(!repeat || (name <= size && name + 1_000 > size), "{name} of {size}");
            let hot = world.facts().hot_end;
            assert!(hot <= size && hot + 1_000 > size, "hot {hot} of {size}");
        }
        assert!(world.size() > 10_000 && world.facts().window == Some(1_000));
    }

    #[test]
    fn an_empty_working_set_is_not_frozen() {
        let mut world = World::default();
        let mut rng = Seed(4).stream("freeze", 1);
        world.freeze();
        assert_eq!(world.facts().window, None);
        assert!((0..100).any(|due| choose(&mut world, due, 10, 0.5, &mut rng).1));
        let size = world.size();
        world.freeze();
        assert_eq!(world.facts().window, Some(size));
    }

    #[test]
    fn newer_knowledge_is_adopted_as_a_whole() {
        let facts = |size, window| WorldFacts { size, window, hot_end: size / 2 };
        let mut world = World::known(facts(10, None));
        assert!(!world.learn(facts(10, None)) && !world.learn(facts(9, None)));
        assert!(world.learn(facts(11, None)) && world.learn(facts(11, Some(5))));
        assert_eq!(world.facts(), facts(11, Some(5)));
    }

    #[test]
    fn same_seed_same_sequence() {
        let run = || {
            let mut world = World::default();
            let mut rng = Seed(8).stream("world", 3);
            (0..1000u64).map(|due| choose(&mut world, due, 100, 0.5, &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }
}
