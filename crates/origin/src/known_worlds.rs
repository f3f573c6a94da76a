//! The worlds that a server has heard of, for robots that have not, and as targets of redirects (reference:
//! models.md, section 3.2).

use polygraph_traffic::{Catalog, ContentKind, Oid, PopModel, Random, UniqId, World, WorldFacts};
use polygraph_wire::worlds::WorldMark;
use rustc_hash::FxHashMap;

/// More worlds than this are not remembered: there are only so many processes in a test, and names of worlds
/// come from outside.
const MAX_WORLDS: usize = 4096;

/// The worlds behind one visible name.
#[derive(Debug, Default)]
pub struct KnownWorlds {
    worlds: Vec<(UniqId, ContentKind, World)>,
    places: FxHashMap<(UniqId, ContentKind), usize>,
    /// Where to look next for a world that a client may lack.
    turn: usize,
}

impl KnownWorlds {
    /// Adopts what a robot says of a world of its own.
    pub fn learn(&mut self, mark: &WorldMark) {
        let facts = WorldFacts { size: mark.size, window: mark.window, hot_end: mark.hot };
        match self.places.get(&(mark.id, mark.kind)) {
            Some(&place) => drop(self.worlds[place].2.learn(facts)),
            None if self.worlds.len() < MAX_WORLDS => {
                self.places.insert((mark.id, mark.kind), self.worlds.len());
                self.worlds.push((mark.id, mark.kind, World::known(facts)));
            }
            None => {}
        }
    }

    /// What to tell a client that knows of `quoted`: newer facts about that world if there are any, else about
    /// another world, but not about the client's `own`. Nothing if `quoted` is not known here.
    pub fn advise(&mut self, quoted: &WorldMark, own: Option<&WorldMark>) -> Option<WorldMark> {
        let place = *self.places.get(&(quoted.id, quoted.kind))?;
        let newer = self.mark(place);
        if newer.size > quoted.size || newer.window > quoted.window {
            return Some(newer);
        }
        let other = (0..self.worlds.len())
            .map(|step| (self.turn + step) % self.worlds.len())
            .find(|&at| at != place && own.is_none_or(|own| own.id != self.worlds[at].0))?;
        self.turn = other + 1;
        Some(self.mark(other))
    }

    fn mark(&self, place: usize) -> WorldMark {
        let (id, kind, world) = &self.worlds[place];
        let WorldFacts { size, window, hot_end } = world.facts();
        WorldMark { id: *id, kind: *kind, window, size, hot: hot_end }
    }

    /// An object that somebody has asked for: from the first world, beginning anywhere, that has one of a kind
    /// that is `served`.
    pub fn choose(
        &self,
        model: &PopModel,
        catalog: &Catalog,
        served: &[ContentKind],
        rng: &mut impl Random,
    ) -> Option<Oid> {
        let count = self.worlds.len();
        let start = rng.below(count as u64) as usize;
        let (id, kind, world) = (0..count)
            .map(|step| &self.worlds[(start + step) % count])
            .find(|(_, kind, world)| world.can_repeat() && served.contains(kind))?;
        let oid = |name| Oid { world: *id, kind: *kind, name };
        let size_if_cachable = |name| catalog.cachable(&oid(name)).then(|| catalog.size(&oid(name)));
        Some(oid(world.repeat(model, rng, size_if_cachable).name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::{Distr, Seed};

    fn mark(counter: u32, size: u64, window: Option<u64>) -> WorldMark {
        let id = UniqId { time: 1, mix: 2, counter };
        WorldMark { id, kind: ContentKind::FIRST, window, size, hot: size / 2 }
    }

    #[test]
    fn clients_hear_what_they_lack() {
        let mut worlds = KnownWorlds::default();
        assert_eq!(worlds.advise(&mark(2, 5, None), None), None);
        worlds.learn(&mark(2, 10, None));
        assert_eq!(worlds.advise(&mark(2, 5, None), None), Some(mark(2, 10, None)));
        assert_eq!(worlds.advise(&mark(2, 10, None), None), None);
        worlds.learn(&mark(4, 7, None));
        worlds.learn(&mark(6, 8, None));
        assert_eq!(worlds.advise(&mark(2, 10, None), Some(&mark(4, 1, None))), Some(mark(6, 8, None)));
        let heard: Vec<_> = (0..4).filter_map(|_| worlds.advise(&mark(2, 10, None), None)).collect();
        assert_eq!(heard, [4, 6, 4, 6].map(|c| mark(c, if c == 4 { 7 } else { 8 }, None)));
        // Older knowledge does not replace newer; a frozen working set is newer.
        worlds.learn(&mark(2, 9, None));
        worlds.learn(&mark(4, 7, Some(3)));
        assert_eq!(worlds.advise(&mark(2, 9, None), None), Some(mark(2, 10, None)));
        assert_eq!(worlds.advise(&mark(4, 7, None), None), Some(mark(4, 7, Some(3))));
    }

    #[test]
    fn the_number_of_worlds_is_bounded() {
        let mut worlds = KnownWorlds::default();
        (0..10_000).for_each(|counter| worlds.learn(&mark(counter, 1, None)));
        assert_eq!(worlds.worlds.len(), MAX_WORLDS);
    }

    #[test]
    fn redirects_go_to_known_objects() {
        let catalog = Catalog::classic(Seed(1), Distr::Const(10.0));
        let mut worlds = KnownWorlds::default();
        let mut rng = Seed(1).stream("redirect", 0);
        let mut choose =
            |worlds: &KnownWorlds, served| worlds.choose(&PopModel::default(), &catalog, served, &mut rng);
        assert_eq!(choose(&worlds, &[ContentKind::FIRST]), None);
        worlds.learn(&mark(2, 0, None));
        worlds.learn(&mark(4, 7, None));
        for _ in 0..100 {
            let oid = choose(&worlds, &[ContentKind::FIRST]).unwrap();
            assert!(oid.world.counter == 4 && (1..=7).contains(&oid.name), "{oid:?}");
        }
        assert_eq!(choose(&worlds, &[ContentKind::of_index(1)]), None);
    }
}
