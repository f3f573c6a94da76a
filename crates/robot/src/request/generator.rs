//! Decides what robots request: a new object or a known one, from which server, with which kind of request and method.

use std::cell::Cell;
use std::rc::Rc;

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::content::BodySource;
use polygraph_traffic::store::{Galaxies, RestoredShare};
use polygraph_traffic::{
    Behavior, ContentKind, IdSource, Method, Oid, Random, RequestKind, Selector, Stream, UniqId, World,
};

use rustc_hash::FxHashMap;

use crate::request::trace::{self, TraceWalk};
use crate::request::universe::{ChosenObject, SharedWorld, Universe, fit_worlds};
use crate::request::{Cause, Request};
use crate::settings::{Field, Profile, Settings};

/// The factors of a phase that requests depend on.
#[derive(Clone, Copy, Debug)]
pub struct Factors {
    /// Multiplier of recurrence.
    pub recur: f64,
    /// Probability that kind and method are drawn at all.
    pub special: f64,
}

/// Decides the requests of a loop's robots. Knows the objects of the loop and gives out its ids.
#[derive(Debug)]
pub struct RequestGenerator {
    /// One universe for each visible server, created at the first visit.
    universes: Vec<Option<Box<Universe>>>,
    /// Ids of worlds and of launched requests. They determine the properties of objects, so this source has no other
    /// use.
    ids: IdSource,
    /// Ids of requests that follow from replies.
    follower_ids: IdSource,
    /// The behaviour by profile and content type.
    behaviors: Vec<Vec<Behavior>>,
    /// By profile, the origins that were not visited yet, in random order (`docs/reference/models.md`, "First contact").
    unvisited: Vec<Vec<usize>>,
    /// By profile, the position in `walks` of the walk through its foreign URLs. Profiles with the same trace share a walk.
    foreign: Vec<usize>,
    walks: Vec<TraceWalk>,
    /// Whether the working sets are frozen. They freeze once, and servers without objects at that time are left out.
    frozen: bool,
}

/// The server, world and scheduled time of a request whose object is not chosen yet.
#[derive(Clone, Copy, Debug)]
struct Target {
    server: usize,
    /// Number of the world in the server's galaxies.
    world: usize,
    due: Nanos,
}

impl RequestGenerator {
    /// A generator with empty worlds.
    pub fn new(settings: &Settings, ids: IdSource) -> RequestGenerator {
        let field = &settings.field;
        let contents = field.catalog.contents.len();
        let behavior = |profile: &Profile, index: usize| match &field.catalog.contents[index].behavior {
            Some(change) => profile.behavior.with(change),
            None => profile.behavior.clone(),
        };
        let unvisited = |profile: &Profile| {
            let mut rng = settings.seed.stream("warm-up", settings.first_number() as u64);
            let mut origins: Vec<usize> = profile.origins.items().to_vec();
            if origins.len() < 2 {
                return Vec::new();
            }
            shuffle(&mut origins, &mut rng);
            origins
        };
        RequestGenerator {
            universes: (0..field.servers.len()).map(|_| None).collect(),
            follower_ids: ids.branch(),
            ids,
            behaviors: settings
                .profiles
                .iter()
                .map(|profile| (0..contents).map(|index| behavior(profile, index)).collect())
                .collect(),
            unvisited: settings.profiles.iter().map(|profile| unvisited(profile)).collect(),
            foreign: settings.profiles.iter().map(|profile| trace::first_with(settings, profile)).collect(),
            walks: settings.profiles.iter().map(|profile| TraceWalk::new(settings, profile)).collect(),
            frozen: false,
        }
    }

    /// Whether this loop created the object of a request, or the page in which it is embedded, so that other loops do not request
    /// it. Files of a document root count as the loop's own.
    pub fn is_own(&self, request: &Request) -> bool {
        let (world, universe) = (request.oid.world, self.universes[request.server].as_deref());
        let is_local = |local: UniqId| world == local || world == local.mutant();
        world == UniqId::default() || universe.is_some_and(|universe| is_local(universe.local.id))
    }

    /// Freezes the working sets. Further calls do nothing.
    pub fn freeze(&mut self) {
        if std::mem::replace(&mut self.frozen, true) {
            return;
        }
        for universe in self.universes.iter_mut().flatten() {
            universe.own_mut().flat_map(|galaxy| &mut galaxy.worlds).for_each(World::freeze);
        }
    }

    /// The next request of a robot with profile number `profile`, whose stream is `rng`, due at `due`.
    pub fn next(
        &mut self,
        settings: &Settings,
        profile: usize,
        factors: Factors,
        due: Nanos,
        rng: &mut Stream,
    ) -> Request {
        let field = &*settings.field;
        let robot = &*settings.profiles[profile];
        if robot.foreign > 0.0 && rng.event(robot.foreign) {
            return self.next_foreign(settings, profile, factors, due, rng);
        }
        let server = match self.unvisited[profile].last() {
            Some(&server) => server,
            None => robot.origins.draw(rng).copied().unwrap_or(0),
        };
        let direct = &field.direct[field.servers[server].direct];
        let world = if field.marks_cachable.is_some() { 0 } else { direct.draw_index(rng).unwrap_or(0) };
        let content = direct.items().get(world).and_then(|kind| kind.index()).unwrap_or(0);
        let behavior = &self.behaviors[profile][content];
        let (kind, method) = special(behavior, factors.special, rng);
        let known_only = field.rules.spares_new_objects() && !gives_all(kind, method);
        let repeat_wanted = rng.event(behavior.recurrence * factors.recur) || known_only;
        let mut target = Target { server, world, due };
        if repeat_wanted && field.rules.moves_repeats() {
            let prefers_small = behavior.popularity.bhr_discrimination;
            target.server = self.repeatable_server(field, robot, target, prefers_small, rng);
        }
        // A visit to a server without an object to repeat is postponed.
        if self.unvisited[profile].last() == Some(&target.server) {
            self.unvisited[profile].pop();
        }
        let popularity = repeat_wanted.then(|| &self.behaviors[profile][content].popularity);
        let universe =
            Universe::get_or_create(&mut self.universes[target.server], &mut self.ids, field, target.server);
        let chosen = universe.choose(field, (world, content), popularity, due, rng);
        let oid = self.oid(field, robot, direct.items().get(world).copied(), chosen);
        let kind = field.kind_for(kind, &oid);
        let mut request = Request::basic(target.server, oid, self.ids.fresh(), due);
        let ChosenObject { repeat, hot, .. } = chosen;
        (request.repeat, request.repeat_wanted, request.hot) = (repeat, repeat_wanted, hot);
        (request.kind, request.method) = (kind, method);
        if kind == RequestKind::Range {
            let size = field.catalog.size(&oid);
            let ranges = self.behaviors[profile][content].ranges.draw(rng).map(|rule| rule.draw(size, rng));
            request.ranges = ranges.map(Rc::new);
        }
        if robot.embed_recur > 0.0 && !gives_all(kind, method) {
            // This reply may be a container, too. It needs no draw, so it does not change later draws.
            request.seed = request.xact.hash();
        } else if robot.embed_recur > 0.0 {
            request.seed = rng.bits();
            let count = field.catalog.embedded_count(&oid);
            request.planned =
                (1..=count).filter(|&index| request.wants_embedded(index, robot.embed_recur)).count() as u32;
            let is_kept = repeat && kind != RequestKind::Reload && field.catalog.cachable(&request.oid);
            request.parts_from = due + if is_kept { Nanos::ZERO } else { nanos(field.page_delay) };
        }
        request
    }

    /// The id of a chosen object with this content type.
    fn oid(
        &mut self,
        field: &Field,
        robot: &Profile,
        kind: Option<ContentKind>,
        chosen: ChosenObject,
    ) -> Oid {
        let ChosenObject { world, name, .. } = chosen;
        let kind = match field.marks_cachable {
            Some(share) => field.catalog.classic_kind(world, name, share),
            None => kind.unwrap_or(ContentKind::UNKNOWN),
        };
        let world = if robot.unique_urls { self.ids.fresh() } else { world };
        match field.catalog.content(kind).map(|content| &content.source) {
            // The URLs of files carry no world: every file is one object.
            Some(BodySource::Root(files)) => {
                let name = (name - 1) % files.0.len().max(1) as u64 + 1;
                Oid { world: UniqId::default(), kind, name }
            }
            _ => Oid { world, kind, name },
        }
    }

    /// A server of the robot that has an object of the wanted type to repeat: the one drawn first or, if it has none, one that is
    /// drawn for it. In a test of full length every server soon has objects, and this changes nothing. A short test with hundreds
    /// of servers would otherwise offer much less than its recurrence.
    ///
    /// If the popularity prefers small objects, the choice stays with the first server. A server with one or two
    /// objects of a rare type leaves no choice, and such objects are often large; selecting them would raise the byte
    /// hit ratio of a short test far above that of a long one.
    fn repeatable_server(
        &mut self,
        field: &Field,
        robot: &Profile,
        target: Target,
        prefers_small: f64,
        rng: &mut Stream,
    ) -> usize {
        let direct = field.servers[target.server].direct;
        let mut server = target.server;
        for tried in 0..REPEAT_TRIES {
            let universe = Universe::get_or_create(&mut self.universes[server], &mut self.ids, field, server);
            if universe.can_repeat(target.world, target.due, rng) {
                return server;
            }
            if tried == 0 && prefers_small > 0.0 && rng.event(prefers_small) {
                break;
            }
            match robot.origins.draw(rng) {
                Some(&other) if field.servers[other].direct == direct => server = other,
                _ => {}
            }
        }
        target.server
    }

    /// The next request for a URL of the robot's trace.
    fn next_foreign(
        &mut self,
        settings: &Settings,
        profile: usize,
        factors: Factors,
        due: Nanos,
        rng: &mut Stream,
    ) -> Request {
        let robot = &*settings.profiles[profile];
        let (kind, method) = special(&robot.behavior, factors.special, rng);
        let kind = match kind {
            // Only the owner of the object knows when it was modified, and how large it is.
            RequestKind::Ims200 | RequestKind::Ims304 | RequestKind::Range => RequestKind::Basic,
            RequestKind::Basic | RequestKind::Reload | RequestKind::Upload => kind,
        };
        let walk = &mut self.walks[self.foreign[profile]];
        walk.world.make_repeatable(due.as_u64(), rng);
        let known_only = settings.field.rules.spares_new_objects() && !gives_all(kind, method);
        let repeat_wanted = rng.event(robot.behavior.recurrence * factors.recur) || known_only;
        let repeat = repeat_wanted && walk.world.can_repeat();
        let name = match repeat {
            true => walk.world.repeat(&robot.behavior.popularity, rng, |_| None).name,
            false => walk.world.produce(due.as_u64()),
        };
        let name = walk.number(name);
        let url = robot.trace.get((name % robot.trace.len().max(1) as u64) as usize);
        let url = url.map_or(String::new(), |url| url.replace("${url_number}", &format!("{name:08x}")));
        let oid = Oid { world: UniqId::default(), kind: ContentKind::FOREIGN, name };
        Request {
            repeat,
            repeat_wanted,
            kind,
            method,
            seed: rng.bits(),
            foreign: Some(Rc::from(url)),
            ..Request::basic(0, oid, self.ids.fresh(), due)
        }
    }

    /// A request that queries the status of a server process. The server itself must answer it, and it changes nothing that robots
    /// or caches know: HEAD of an object in its own world.
    pub fn status_query(&mut self, field: &Field, server: usize, now: Nanos) -> Request {
        let kinds = field.direct[field.servers[server].direct].items();
        let is_file = |kind: ContentKind| {
            field.catalog.content(kind).is_some_and(|content| matches!(content.source, BodySource::Root(_)))
        };
        let kind = kinds.iter().copied().find(|kind| !is_file(*kind)).or(kinds.first().copied());
        let kind = kind.unwrap_or(ContentKind::UNKNOWN);
        let oid = Oid { world: self.ids.fresh(), kind, name: 1 };
        let query = Request::basic(server, oid, self.ids.fresh(), now);
        match is_file(kind) {
            false => Request { method: Method::Head, ..query },
            // Files have no world, so others may have requested this one.
            true => {
                let oid = Oid { world: UniqId::default(), ..oid };
                Request { oid, method: Method::Head, kind: RequestKind::Reload, ..query }
            }
        }
    }

    /// Plans another visit to a server that has not answered, after the visits to all others.
    pub fn visit_again(&mut self, settings: &Settings, server: usize) {
        for (profile, servers) in settings.profiles.iter().zip(&mut self.unvisited) {
            if profile.origins.items().contains(&server) && !servers.contains(&server) {
                servers.insert(0, server);
            }
        }
    }

    /// The request that follows from the reply to `earlier`: for an embedded object, or for the target of a redirect
    /// (`docs/reference/models.md`, "Recognition of embedded objects" and "Redirects"). It has the kind of the earlier request unless
    /// that cannot be: ranges and bodies are not sent again.
    pub fn follow_up(&mut self, earlier: &Request, cause: Cause, oid: Oid, now: Nanos) -> Request {
        let kind = match earlier.kind {
            RequestKind::Range | RequestKind::Upload => RequestKind::Basic,
            kind => kind,
        };
        Request {
            oid,
            kind,
            method: Method::Get,
            cause,
            xact: self.follower_ids.fresh(),
            due: now,
            sends: None,
            ranges: None,
            foreign: None,
            redirects: if cause == Cause::Redirected { earlier.redirects + 1 } else { 0 },
            planned: 0,
            launched: Cell::new(0),
            seed: earlier.seed ^ oid.hash(),
            ..earlier.clone()
        }
    }

    /// The galaxies of this loop by visible server, and the source of its ids: the data that a later test needs to
    /// continue with the same objects (`docs/reference/models.md`, "Working set files").
    pub fn own_galaxies(&self, field: &Field) -> (IdSource, Galaxies) {
        let named = self.universes.iter().zip(&field.servers);
        let own = named.filter_map(|(universe, server)| universe.as_deref().zip(Some(&server.authority)));
        let galaxies = own.flat_map(|(universe, name)| {
            let adopted = universe.remote[..universe.adopted].iter();
            std::iter::once(&universe.local).chain(adopted).map(|galaxy| (name.clone(), galaxy.clone()))
        });
        (self.ids.beyond(&self.follower_ids), galaxies.collect())
    }

    /// Continues with galaxies of an earlier test. Leaves out those whose servers this test does not have, and returns their
    /// number.
    pub fn resume_from(&mut self, field: &Field, legacy: RestoredShare) -> usize {
        let servers = field.servers.iter().enumerate();
        let servers: FxHashMap<&str, usize> =
            servers.map(|(at, server)| (server.authority.as_str(), at)).collect();
        let mut left_out = 0;
        let own = legacy.own.into_iter().map(|named| (named, true));
        let known = legacy.known.into_iter().map(|named| (named, false));
        for ((name, mut galaxy), is_own) in own.chain(known) {
            let Some(&at) = servers.get(name.as_str()) else {
                left_out += 1;
                continue;
            };
            fit_worlds(&mut galaxy, field, at);
            self.unvisited.iter_mut().for_each(|servers| servers.retain(|&server| server != at));
            match &mut self.universes[at] {
                slot @ None if is_own => *slot = Some(Box::new(Universe::of(galaxy))),
                slot => Universe::get_or_create(slot, &mut self.ids, field, at).adopt(galaxy, is_own),
            }
        }
        left_out
    }

    /// A fresh id.
    pub fn fresh_id(&mut self) -> UniqId {
        self.ids.fresh()
    }

    /// The worlds that the next request to `server` reports: one of this loop's own, and one that it knows.
    pub fn worlds_to_share(
        &mut self,
        field: &Field,
        server: usize,
    ) -> (Option<SharedWorld>, Option<SharedWorld>) {
        let Some(universe) = self.universes[server].as_deref_mut() else { return (None, None) };
        universe.worlds_to_share(field.direct[field.servers[server].direct].items())
    }

    /// Records the facts about a world in a first-hand reply of `server`.
    pub fn learn(&mut self, field: &Field, server: usize, world: SharedWorld) {
        if let Some(universe) = self.universes[server].as_deref_mut() {
            universe.learn(field.direct[field.servers[server].direct].items(), world);
        }
    }
}

/// Number of servers that are tried for an object to repeat.
const REPEAT_TRIES: usize = 16;

/// Kind and method of a request: drawn from the behaviour with probability `factor`, otherwise a basic GET.
fn special(behavior: &Behavior, factor: f64, rng: &mut Stream) -> (RequestKind, Method) {
    // If there is no choice, nothing is drawn, so simple workloads keep their sequences.
    let kind = pick(&behavior.kinds, factor, rng);
    if kind == RequestKind::Upload {
        return (kind, Method::Put);
    }
    (kind, pick(&behavior.methods, factor, rng))
}

/// Whether the reply delivers the complete object to the client and the cache. If it does not, the object must have been
/// requested before: a client validates, or requests parts of, what it knows. The first reply with an object must also
/// fill a cache if the next request for it counts as an offered hit.
fn gives_all(kind: RequestKind, method: Method) -> bool {
    kind.fills() && method == Method::Get
}

fn pick<T: Copy + Default + PartialEq>(choices: &Selector<T>, factor: f64, rng: &mut Stream) -> T {
    match choices.items() {
        [] => T::default(),
        [only] if *only == T::default() => *only,
        _ if rng.event(factor) => choices.draw(rng).copied().unwrap_or_default(),
        _ => T::default(),
    }
}

/// Shuffles `items` by the algorithm of Fisher and Yates.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Stream) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}
