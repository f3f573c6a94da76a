//! The objects that a loop knows at a visible server, its own and those of others (`docs/reference/models.md`, "Worlds and working
//! sets").

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::{
    ContentKind, Galaxy, IdSource, Oid, PopModel, Random, Stream, UniqId, World, WorldFacts,
};

use crate::settings::Field;

/// Maximum number of galaxies of other loops that a loop keeps for each server.
const MAX_REMOTE: usize = 64;

/// The state of a world in a request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedWorld {
    /// Id of the world.
    pub id: UniqId,
    /// Content type of its objects.
    pub kind: ContentKind,
    /// Its size and window.
    pub facts: WorldFacts,
}

/// All objects known at a visible server.
#[derive(Debug)]
pub struct Universe {
    /// The galaxy in which this loop creates objects.
    pub local: Galaxy,
    /// The galaxies of other loops.
    pub remote: Vec<Galaxy>,
    /// The number of galaxies at the start of `remote` that are this loop's own: an earlier test with more loops left them.
    pub adopted: usize,
    /// The world that is shared next.
    shared: usize,
}

/// The object of a request.
#[derive(Clone, Copy, Debug)]
pub struct ChosenObject {
    /// The world of the object.
    pub world: UniqId,
    /// The name of the object in its world.
    pub name: u64,
    /// Whether it was chosen from the hot set.
    pub hot: bool,
    /// Whether it was requested before.
    pub repeat: bool,
}

impl Universe {
    /// A universe with only this galaxy.
    pub fn of(local: Galaxy) -> Universe {
        Universe { local, remote: Vec::new(), adopted: 0, shared: 0 }
    }

    /// The universe of `server` in `slot`; it is created if it does not exist.
    pub fn get_or_create<'a>(
        slot: &'a mut Option<Box<Universe>>,
        ids: &mut IdSource,
        field: &Field,
        server: usize,
    ) -> &'a mut Universe {
        slot.get_or_insert_with(|| Box::new(Universe::of(Galaxy::new(ids.fresh(), worlds_at(field, server)))))
    }

    /// The galaxies that belong to this loop.
    pub fn own_mut(&mut self) -> impl Iterator<Item = &mut Galaxy> {
        std::iter::once(&mut self.local).chain(&mut self.remote[..self.adopted])
    }

    /// Whether world number `world` of any galaxy has an object to request again at `due`.
    pub fn can_repeat(&mut self, world: usize, due: Nanos, rng: &mut Stream) -> bool {
        self.local.worlds[world].make_repeatable(due.as_u64(), rng);
        self.local.worlds[world].can_repeat()
            || self.remote.iter().any(|galaxy| galaxy.worlds[world].can_repeat())
    }

    /// An object of world number `world` for a request that is due at `due`: if `popularity` is given one that was requested
    /// before, if there is any, otherwise a new one. `content` is the position of its content type.
    pub fn choose(
        &mut self,
        field: &Field,
        (world, content): (usize, usize),
        popularity: Option<&PopModel>,
        due: Nanos,
        rng: &mut Stream,
    ) -> ChosenObject {
        self.local.worlds[world].make_repeatable(due.as_u64(), rng);
        if let Some(popularity) = popularity
            && let Some(galaxy) = self.draw_galaxy(world, rng)
        {
            let size_if_cachable = |name| {
                let kind = match field.marks_cachable {
                    Some(share) => field.catalog.classic_kind(galaxy.id, name, share),
                    None => ContentKind::of_index(content),
                };
                let oid = Oid { world: galaxy.id, kind, name };
                field.catalog.cachable(&oid).then(|| field.catalog.size(&oid))
            };
            let chosen = galaxy.worlds[world].repeat(popularity, rng, size_if_cachable);
            return ChosenObject { world: galaxy.id, name: chosen.name, hot: chosen.hot, repeat: true };
        }
        let name = self.local.worlds[world].produce((due + nanos(field.settle)).as_u64());
        ChosenObject { world: self.local.id, name, hot: false, repeat: false }
    }

    /// From a random galaxy on, the first one whose world number `world` has an object to request again.
    fn draw_galaxy(&self, world: usize, rng: &mut Stream) -> Option<&Galaxy> {
        let galaxies = 1 + self.remote.len();
        let start = if galaxies > 1 { rng.below(galaxies as u64) as usize } else { 0 };
        (0..galaxies)
            .map(|step| match (start + step) % galaxies {
                0 => &self.local,
                at => &self.remote[at - 1],
            })
            .find(|galaxy| galaxy.worlds[world].can_repeat())
    }

    /// The worlds that the next request reports to its server: one of this loop's own, and any one that it knows. `kinds` are
    /// the content types of the worlds.
    pub fn worlds_to_share(&mut self, kinds: &[ContentKind]) -> (Option<SharedWorld>, Option<SharedWorld>) {
        self.shared = self.shared.wrapping_add(1);
        let at = self.shared;
        let of = |galaxy: &Galaxy, at: usize| {
            let index = at % galaxy.worlds.len().max(1);
            let kind = *kinds.get(index)?;
            Some(SharedWorld { id: galaxy.id, kind, facts: galaxy.worlds.get(index)?.facts() })
        };
        let galaxies = 1 + self.remote.len();
        let known = match at % galaxies {
            0 => of(&self.local, at / galaxies),
            n => of(&self.remote[n - 1], at / galaxies),
        };
        (of(&self.local, at), known)
    }

    /// Learns about a world from a server.
    pub fn learn(&mut self, kinds: &[ContentKind], world: SharedWorld) {
        let Some(index) = kinds.iter().position(|kind| *kind == world.kind) else { return };
        if world.id == self.local.id {
            return;
        }
        let at = match self.remote.iter().position(|galaxy| galaxy.id == world.id) {
            Some(at) => at,
            None if self.remote.len() >= MAX_REMOTE => return,
            None => {
                self.remote.push(Galaxy::new(world.id, kinds.len()));
                self.remote.len() - 1
            }
        };
        self.remote[at].worlds[index].learn(world.facts);
    }

    /// Continues with a galaxy of an earlier test.
    pub fn adopt(&mut self, galaxy: Galaxy, is_own: bool) {
        self.remote.push(galaxy);
        self.adopted += usize::from(is_own);
    }
}

/// Gives a galaxy as many worlds as those of the server have. The file of a working set may contain anything.
pub fn fit_worlds(galaxy: &mut Galaxy, field: &Field, server: usize) {
    galaxy.worlds.resize(worlds_at(field, server), World::default());
}

/// Number of worlds in a galaxy of a server.
fn worlds_at(field: &Field, server: usize) -> usize {
    match field.marks_cachable {
        Some(_) => 1,
        None => field.direct[field.servers[server].direct].items().len().max(1),
    }
}
