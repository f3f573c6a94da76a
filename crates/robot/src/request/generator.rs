//! What a request asks for, and under which transaction id.

use std::cell::Cell;
use std::rc::Rc;

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::content::BodySource;
use polygraph_traffic::store::{Galaxies, RestoredShare};
use polygraph_traffic::{
    Behavior, ContentKind, Galaxy, IdSource, Method, Oid, Random, RequestKind, Selector, Stream, UniqId,
    World, WorldFacts,
};

use rustc_hash::FxHashMap;

use crate::request::trace::{self, TraceWalk};
use crate::request::{Cause, Request};
use crate::settings::{Field, Profile, Settings};

/// All objects known at a visible server.
#[derive(Debug)]
struct Universe {
    /// The galaxy in which this loop creates objects.
    local: Galaxy,
    /// Galaxies of others.
    remote: Vec<Galaxy>,
    /// The first so many of `remote` are this loop's own: an earlier test, with more loops, left them.
    adopted: usize,
    /// Which world is told of next.
    told: usize,
}

impl Universe {
    /// The galaxies that belong to this loop.
    fn own_mut(&mut self) -> impl Iterator<Item = &mut Galaxy> {
        std::iter::once(&mut self.local).chain(&mut self.remote[..self.adopted])
    }
}

/// The factors of a phase that matter to decisions.
#[derive(Clone, Copy, Debug)]
pub struct Factors {
    /// Multiplier of recurrence.
    pub recur: f64,
    /// Probability that kind and method are drawn at all.
    pub special: f64,
}

/// Decides requests: the objects known to this loop and its source of ids.
#[derive(Debug)]
pub struct RequestGenerator {
    /// One for each visible server, made when it is first visited.
    universes: Vec<Option<Box<Universe>>>,
    /// Ids of worlds and of what is launched: they decide what objects are like, so nothing else takes from them.
    ids: IdSource,
    /// Ids of what follows from replies.
    follower_ids: IdSource,
    /// For each profile the behaviour by kind of content.
    behaviors: Vec<Vec<Behavior>>,
    /// For each profile the origins that were not visited yet, in random request (docs/reference/models.md, "First contact").
    unvisited: Vec<Vec<usize>>,
    /// For each profile, which of `walks` is its own: that of the first profile with the same trace of foreign URLs.
    foreign: Vec<usize>,
    walks: Vec<TraceWalk>,
    /// Working sets are frozen once; objects of a server that had none then are not.
    frozen: bool,
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
            let mut rng = settings.seed.stream("warm-up", settings.first_robot as u64);
            let mut request: Vec<usize> = profile.origins.items().to_vec();
            if request.len() > 1 {
                shuffle(&mut request, &mut rng);
                request
            } else {
                Vec::new()
            }
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

    /// Whether this loop has made up the object of an request, or the page that it is part of, so that other loops do not ask for
    /// it. Files of a document root count as its own.
    pub fn is_own(&self, request: &Request) -> bool {
        let (world, universe) = (request.oid.world, self.universes[request.server].as_deref());
        let is_local = |local: UniqId| world == local || world == local.mutant();
        world == UniqId::default() || universe.is_some_and(|universe| is_local(universe.local.id))
    }

    /// Freezes the working sets. Repeated calls do nothing.
    pub fn freeze(&mut self) {
        if std::mem::replace(&mut self.frozen, true) {
            return;
        }
        for universe in self.universes.iter_mut().flatten() {
            universe.own_mut().flat_map(|galaxy| &mut galaxy.worlds).for_each(World::freeze);
        }
    }

    /// The next request of a robot of kind `profile`, whose stream is `rng`, due at `due`.
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
            return self.foreign_order(settings, profile, factors, due, rng);
        }
        let server = match self.unvisited[profile].last() {
            Some(&server) => server,
            None => robot.origins.draw(rng).copied().unwrap_or(0),
        };
        let direct = &field.direct[field.servers[server].direct];
        let wanted = if field.marks_cachable.is_some() { 0 } else { direct.draw_index(rng).unwrap_or(0) };
        let content = direct.items().get(wanted).and_then(|kind| kind.index()).unwrap_or(0);
        // Nothing of a behaviour is copied but what the decision needs.
        let behavior = &self.behaviors[profile][content];
        let (kind, method) = special(behavior, factors.special, rng);
        let known_only = field.rules.spares_new_objects() && !gives_all(kind, method);
        let repeat = rng.event(behavior.recurrence * factors.recur) || known_only;
        let prefers_small = behavior.popularity.bhr_discrimination;
        let server = match repeat && field.rules.moves_repeats() {
            true => self.repeatable_server(field, robot, server, wanted, prefers_small, due, rng),
            false => server,
        };
        // Where there was nothing to repeat yet the visit is put off.
        if self.unvisited[profile].last() == Some(&server) {
            self.unvisited[profile].pop();
        }
        let repeat_wanted = repeat;
        let (world, name, hot, repeat) =
            self.choose_object(field, server, content, profile, wanted, repeat, due, rng);
        let kind_of_content = match field.marks_cachable {
            Some(share) => field.catalog.classic_kind(world, name, share),
            None => direct.items().get(wanted).copied().unwrap_or(ContentKind::UNKNOWN),
        };
        let mut oid = Oid { world, kind: kind_of_content, name };
        if robot.unique_urls {
            oid.world = self.ids.fresh();
        }
        if let Some(BodySource::Root(files)) = field.catalog.content(oid.kind).map(|content| &content.source)
        {
            // The URLs of files carry no world: every file is one object.
            oid = Oid {
                world: UniqId::default(),
                name: (oid.name - 1) % files.0.len().max(1) as u64 + 1,
                ..oid
            };
        }
        let basic = Request::basic(server, oid, self.ids.fresh(), due);
        let mut request = Request { repeat, repeat_wanted, hot, kind, method, ..basic };
        if kind == RequestKind::Range {
            let size = field.catalog.size(&oid);
            let ranges = self.behaviors[profile][content].ranges.draw(rng).map(|rule| rule.draw(size, rng));
            request.ranges = ranges.map(Rc::new);
        }
        if robot.embed_recur > 0.0 && !gives_all(kind, method) {
            // This reply may be a container, too. Nothing is drawn for it, so it does not change what follows.
            request.seed = request.xact.hash();
        } else if robot.embed_recur > 0.0 {
            request.seed = rng.bits();
            let count = field.catalog.embedded_count(&oid);
            request.planned =
                (1..=count).filter(|&index| request.wants_embedded(index, robot.embed_recur)).count() as u32;
            let is_kept = repeat && kind != RequestKind::Reload && field.catalog.cachable(&request.oid);
            request.parts_from = due + if is_kept { 0 } else { nanos(field.page_delay) };
        }
        request
    }

    /// A server of the robot that has an object of the wanted type to repeat: the one drawn first or, if it has
    /// none, one that is drawn for it. At full length every server has objects soon and this changes nothing; a
    /// short test with hundreds of servers would otherwise offer much less than its recurrence.
    ///
    /// Where small objects are preferred it stays with the first one. A server with one or two objects of a rare type
    /// leaves no choice, and these are the large ones: looking for them would raise the byte hit ratio of a short
    /// test far above that of a long one.
    #[expect(clippy::too_many_arguments, reason = "all that the choice depends on")]
    fn repeatable_server(
        &mut self,
        field: &Field,
        robot: &Profile,
        first: usize,
        wanted: usize,
        prefers_small: f64,
        due: Nanos,
        rng: &mut Stream,
    ) -> usize {
        let direct = field.servers[first].direct;
        let mut server = first;
        for tried in 0..REPEAT_TRIES {
            let universe = universe(&mut self.universes[server], &mut self.ids, field, server);
            universe.local.worlds[wanted].make_repeatable(due, rng);
            if universe.local.worlds[wanted].can_repeat()
                || universe.remote.iter().any(|galaxy| galaxy.worlds[wanted].can_repeat())
            {
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
        first
    }

    #[expect(clippy::too_many_arguments, reason = "the two steps of one decision")]
    fn choose_object(
        &mut self,
        field: &Field,
        server: usize,
        content: usize,
        profile: usize,
        wanted: usize,
        repeat: bool,
        due: Nanos,
        rng: &mut Stream,
    ) -> (UniqId, u64, bool, bool) {
        let popularity = self.behaviors[profile][content].popularity.clone();
        let universe = universe(&mut self.universes[server], &mut self.ids, field, server);
        universe.local.worlds[wanted].make_repeatable(due, rng);
        let galaxies = 1 + universe.remote.len();
        if repeat {
            // From a random galaxy on, the first one that has something to offer.
            let start = if galaxies > 1 { rng.below(galaxies as u64) as usize } else { 0 };
            let found = (0..galaxies)
                .map(|step| match (start + step) % galaxies {
                    0 => &universe.local,
                    at => &universe.remote[at - 1],
                })
                .find(|galaxy| galaxy.worlds[wanted].can_repeat());
            if let Some(galaxy) = found {
                let kind = |name| match field.marks_cachable {
                    Some(share) => field.catalog.classic_kind(galaxy.id, name, share),
                    None => ContentKind::of_index(content),
                };
                let size_if_cachable = |name| {
                    let oid = Oid { world: galaxy.id, kind: kind(name), name };
                    field.catalog.cachable(&oid).then(|| field.catalog.size(&oid))
                };
                let chosen = galaxy.worlds[wanted].repeat(&popularity, rng, size_if_cachable);
                return (galaxy.id, chosen.name, chosen.hot, true);
            }
        }
        let name = universe.local.worlds[wanted].produce(due + nanos(field.settle));
        (universe.local.id, name, false, false)
    }

    /// A request for a URL of the robot's trace.
    fn foreign_order(
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
            // When it was modified, and how large it is, only its owner knows.
            RequestKind::Ims200 | RequestKind::Ims304 | RequestKind::Range => RequestKind::Basic,
            RequestKind::Basic | RequestKind::Reload | RequestKind::Upload => kind,
        };
        let walk = &mut self.walks[self.foreign[profile]];
        walk.world.make_repeatable(due, rng);
        let known_only = settings.field.rules.spares_new_objects() && !gives_all(kind, method);
        let repeat_wanted = rng.event(robot.behavior.recurrence * factors.recur) || known_only;
        let repeat = repeat_wanted && walk.world.can_repeat();
        let name = match repeat {
            true => walk.world.repeat(&robot.behavior.popularity, rng, |_| None).name,
            false => walk.world.produce(due),
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

    /// A request that the server itself must answer, and that changes nothing in what is known to robots or caches:
    /// HEAD of an object in a world of its own.
    pub fn status_query(&mut self, field: &Field, server: usize, now: Nanos) -> Request {
        let kinds = field.direct[field.servers[server].direct].items();
        let is_file = |kind: ContentKind| {
            field.catalog.content(kind).is_some_and(|content| matches!(content.source, BodySource::Root(_)))
        };
        let kind = kinds.iter().copied().find(|kind| !is_file(*kind)).or(kinds.first().copied());
        let kind = kind.unwrap_or(ContentKind::UNKNOWN);
        let oid = Oid { world: self.ids.fresh(), kind, name: 1 };
        let question = Request::basic(server, oid, self.ids.fresh(), now);
        match is_file(kind) {
            false => Request { method: Method::Head, ..question },
            // Files have no world, so others may have asked for this one.
            true => {
                let oid = Oid { world: UniqId::default(), ..oid };
                Request { oid, method: Method::Head, kind: RequestKind::Reload, ..question }
            }
        }
    }

    /// A server that has not answered is visited once more, after all others.
    pub fn visit_again(&mut self, settings: &Settings, server: usize) {
        for (profile, servers) in settings.profiles.iter().zip(&mut self.unvisited) {
            if profile.origins.items().contains(&server) && !servers.contains(&server) {
                servers.insert(0, server);
            }
        }
    }

    /// The request for an object found inside `container`, or where a reply to it led: it inherits what the
    /// robot wanted of it (docs/reference/models.md, "Recognition of embedded objects").
    pub fn follow_up(&mut self, container: &Request, cause: Cause, oid: Oid, now: Nanos) -> Request {
        // Parts of one object are no parts of another, and what was sent is not sent again.
        let kind = match container.kind {
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
            redirects: if cause == Cause::Redirected { container.redirects + 1 } else { 0 },
            planned: 0,
            launched: Cell::new(0),
            seed: container.seed ^ oid.hash(),
            ..container.clone()
        }
    }

    /// The galaxies of this loop by visible server, and the source of its ids: what a later test needs to go on
    /// with the same objects (docs/reference/models.md, "Working set files").
    pub fn own_galaxies(&self, field: &Field) -> (IdSource, Galaxies) {
        let named = self.universes.iter().zip(&field.servers);
        let own = named.filter_map(|(universe, server)| universe.as_deref().zip(Some(&server.authority)));
        let galaxies = own.flat_map(|(universe, name)| {
            let adopted = universe.remote[..universe.adopted].iter();
            std::iter::once(&universe.local).chain(adopted).map(|galaxy| (name.clone(), galaxy.clone()))
        });
        (self.ids.beyond(&self.follower_ids), galaxies.collect())
    }

    /// Goes on with galaxies of an earlier test. Those of servers that this test has not are left out; returns
    /// their number.
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
            // Whoever gives a legacy has seen to that; but a file is foreign, and must not break anything.
            galaxy.worlds.resize(worlds_at(field, at), World::default());
            self.unvisited.iter_mut().for_each(|servers| servers.retain(|&server| server != at));
            match &mut self.universes[at] {
                slot @ None if is_own => {
                    let (remote, adopted, told) = (Vec::new(), 0, 0);
                    *slot = Some(Box::new(Universe { local: galaxy, remote, adopted, told }));
                }
                slot => {
                    let universe = universe(slot, &mut self.ids, field, at);
                    universe.remote.push(galaxy);
                    universe.adopted += usize::from(is_own);
                }
            }
        }
        left_out
    }

    /// A fresh id.
    pub fn fresh_id(&mut self) -> UniqId {
        self.ids.fresh()
    }

    /// What a request to `server` tells of worlds: one of this loop's own, and one that it knows.
    pub fn worlds_to_share(
        &mut self,
        field: &Field,
        server: usize,
    ) -> (Option<SharedWorld>, Option<SharedWorld>) {
        let Some(universe) = self.universes[server].as_deref_mut() else { return (None, None) };
        let direct = &field.direct[field.servers[server].direct];
        universe.told = universe.told.wrapping_add(1);
        let at = universe.told;
        let of = |galaxy: &Galaxy, at: usize| {
            let index = at % galaxy.worlds.len().max(1);
            let kind = *direct.items().get(index)?;
            Some(SharedWorld { id: galaxy.id, kind, facts: galaxy.worlds.get(index)?.facts() })
        };
        let galaxies = 1 + universe.remote.len();
        let known = match at % galaxies {
            0 => of(&universe.local, at / galaxies),
            n => of(&universe.remote[n - 1], at / galaxies),
        };
        (of(&universe.local, at), known)
    }

    /// Adopts what a first-hand reply of `server` tells of a world.
    pub fn learn(&mut self, field: &Field, server: usize, told: SharedWorld) {
        let direct = &field.direct[field.servers[server].direct];
        let Some(universe) = self.universes[server].as_deref_mut() else { return };
        let Some(index) = direct.items().iter().position(|kind| *kind == told.kind) else { return };
        if told.id == universe.local.id {
            return;
        }
        let at = match universe.remote.iter().position(|galaxy| galaxy.id == told.id) {
            Some(at) => at,
            None if universe.remote.len() >= MAX_REMOTE => return,
            None => {
                universe.remote.push(Galaxy::new(told.id, direct.items().len()));
                universe.remote.len() - 1
            }
        };
        universe.remote[at].worlds[index].learn(told.facts);
    }
}

/// What a request or a reply says about a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedWorld {
    /// Id of the world.
    pub id: UniqId,
    /// Content type of its objects.
    pub kind: ContentKind,
    /// Its size and window.
    pub facts: WorldFacts,
}

/// So many servers are looked at for an object that can be repeated.
const REPEAT_TRIES: usize = 16;
/// So many galaxies of others are followed for each server.
const MAX_REMOTE: usize = 64;

fn universe<'a>(
    slot: &'a mut Option<Box<Universe>>,
    ids: &mut IdSource,
    field: &Field,
    server: usize,
) -> &'a mut Universe {
    slot.get_or_insert_with(|| {
        let local = Galaxy::new(ids.fresh(), worlds_at(field, server));
        Box::new(Universe { local, remote: Vec::new(), adopted: 0, told: 0 })
    })
}

/// Number of worlds in a galaxy of a server.
fn worlds_at(field: &Field, server: usize) -> usize {
    match field.marks_cachable {
        Some(_) => 1,
        None => field.direct[field.servers[server].direct].items().len().max(1),
    }
}

/// ContentKind and method of a request: basic GET, but with probability `factor` what the behaviour says.
fn special(behavior: &Behavior, factor: f64, rng: &mut Stream) -> (RequestKind, Method) {
    // Where there is no choice nothing is drawn, so simple workloads keep their sequences.
    let kind = pick(&behavior.kinds, factor, rng);
    if kind == RequestKind::Upload {
        return (kind, Method::Put);
    }
    (kind, pick(&behavior.methods, factor, rng))
}

/// Whether the reply gives client and cache the whole object. If not, it must be an object that was asked for before: a
/// client validates, or asks for parts of, what it knows; and the first reply of an object whose repetition is then
/// counted as an offered hit must be one that fills a cache.
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

/// Fisher-Yates.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Stream) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}
