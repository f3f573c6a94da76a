//! The worlds that a server knows from requests. It shares them with robots that do not know them, and redirects
//! requests to their objects (docs/reference/models.md, "Sharing worlds").

use polygraph_traffic::{Catalog, ContentKind, Oid, PopModel, Random, UniqId, World, WorldFacts};
use polygraph_wire::worlds::WorldMark;
use rustc_hash::FxHashMap;

/// The most worlds that are remembered. A test has fewer processes, and names of worlds come from clients, which must
/// not fill the memory.
const MAX_WORLDS: usize = 4096;

/// The worlds behind one server name.
#[derive(Debug, Default)]
pub struct KnownWorlds {
    worlds: Vec<(UniqId, ContentKind, World)>,
    places: FxHashMap<(UniqId, ContentKind), usize>,
    /// Where the search for a world that a client may lack continues.
    turn: usize,
}

impl KnownWorlds {
    /// Records what a robot reports about its own world.
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

    /// The world to report to a client that quotes `quoted`: newer facts about that world if there are any, otherwise
    /// facts about another world that is not the client's `own`. `None` if the quoted world is unknown.
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

    /// An object that a robot has already requested. The search starts at a random world and ends at the first one
    /// that has such an object of a kind in `served`.
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
