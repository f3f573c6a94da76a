//! The robots of one event loop: what they share, and what their transactions need of it.
//!
//! * `member`: one robot.
//! * `launch`: when requests are launched, and which.
//! * `transact`: a transaction from its start to its end.
//! * `follow`: embedded objects and redirects.
//! * `workers`: the tasks that carry out transactions.
//! * `step`: keeping in step with other processes.

use std::cell::{Cell, RefCell, RefMut};

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, Nanos, nanos, run_until};
use polygraph_stats::{ErrorKind, Recorder};
use polygraph_traffic::groups::PhaseStatus;
use polygraph_traffic::store::{Fill, RestoredShare, SavedShare};
use polygraph_traffic::{
    AbortCoords, Catalog, Content, Draw, Fingerprint, IdSource, Oid, Random, RequestKind, Stream,
};
use polygraph_wire::markup::LinkTags;
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use crate::connections::resolving::Resolvers;
use crate::connections::wait_queue::WaitQueue;
use crate::exchange::TransactionFailure;
use crate::exchange::entity::{Entity, Known};
use crate::exchange::links::LinkFilter;
use crate::exchange::pipeline::Backlog;
use crate::judge::history::History;
use crate::load::pace::Pace;
use crate::peers::Peers;
use crate::peers::first_contact::FirstContact;
use crate::record::popularity::PopularityCounts;
use crate::request::auth::CredentialCycle;
use crate::request::encode::{self, Context};
use crate::request::generator::{Request, RequestGenerator};
use crate::robot::{Private, Robot, new_robot};
use crate::settings::{Expect, Profile, Settings};
use crate::transaction::workers::Workers;

/// What is prepared once for each kind of robots.
#[derive(Debug)]
pub(crate) struct ProfileContext {
    pub(crate) links: Option<Rc<LinkFilter>>,
    pub(crate) accepts_gzip: bool,
    pub(crate) credentials: CredentialCycle,
}

/// The robots of one event loop.
#[derive(Debug)]
pub struct RobotGroup<L: Link> {
    pub(crate) link: L,
    pub(crate) settings: Settings,
    pub(crate) recorder: Recorder,
    pub(crate) contexts: Vec<ProfileContext>,
    /// What contents robots expect of servers.
    pub(crate) contents: Fingerprint,
    pub(crate) generator: RefCell<RequestGenerator>,
    pub(crate) robots: RefCell<Vec<Robot<L::Conn>>>,
    /// The kind of each robot; it never changes and is asked for at every step, so it is not kept among what does.
    pub(crate) kinds: Vec<u32>,
    /// Look-up of names.
    pub(crate) names: Resolvers<L>,
    /// What was learned about objects.
    pub(crate) history: RefCell<History>,
    pub(crate) ranks: RefCell<PopularityCounts>,
    /// Something may be asked for again.
    pub(crate) repeats: bool,
    /// Draws what depends on replies and thus on time, like the length of connections; apart from the robots' own
    /// streams so that the sequence of their requests does not.
    pub(crate) connection_rng: RefCell<Stream>,
    /// Head of the request that is being sent.
    pub(crate) head_buffer: RefCell<Vec<u8>>,
    pub(crate) open: Cell<usize>,
    /// Connections that were opened so far.
    pub(crate) opened: Cell<u64>,
    pub(crate) pace: Cell<Pace>,
    /// Share of the robots that were alive when they were counted last.
    pub(crate) alive: Cell<f64>,
    /// Launches that are due from then on wait for what is in force then.
    pub(crate) paced_until: Cell<Nanos>,
    /// The working set freezes for requests that are due from then on.
    pub(crate) freezes: Cell<Nanos>,
    /// Transactions that wait for a connection, by robot.
    pub(crate) queues: RefCell<FxHashMap<usize, Rc<WaitQueue>>>,
    /// Closed-loop robots that wait for the end of all their transactions.
    pub(crate) quiet: RefCell<FxHashMap<usize, Rc<WaitQueue>>>,
    pub(crate) workers: Workers,
    /// What is told of phases.
    pub(crate) standing: Cell<PhaseStatus>,
    /// The server processes.
    pub(crate) peers: RefCell<Peers>,
    /// The first visits to all servers.
    pub(crate) visits: RefCell<FirstContact>,
}

impl<L: Link> RobotGroup<L> {
    /// Robots that are ready to start.
    pub fn new(link: L, settings: Settings, recorder: Recorder, ids: IdSource) -> Rc<RobotGroup<L>> {
        let robots = (0..settings.robots).map(|i| new_robot(&settings, settings.first_robot + i)).collect();
        let kinds =
            (0..settings.robots).map(|i| settings.member(settings.first_robot + i).0 as u32).collect();
        let context = |profile: &Arc<Profile>| ProfileContext {
            links: (profile.embed_recur > 0.0).then(|| {
                let tags = LinkTags::parse(&profile.container_tags).unwrap_or_default();
                Rc::new(LinkFilter { tags, raw: profile.raw_uri_thrower.clone() })
            }),
            accepts_gzip: profile.accept_encoding.as_deref().is_some_and(accepts_gzip),
            credentials: CredentialCycle::new(
                settings.seed,
                profile.credentials.len(),
                settings.all_robots(),
            ),
        };
        Rc::new(RobotGroup {
            contexts: settings.profiles.iter().map(context).collect(),
            contents: Fingerprint::of(&settings.field.catalog),
            generator: RefCell::new(RequestGenerator::new(&settings, ids)),
            connection_rng: RefCell::new(settings.seed.stream("connection", settings.first_robot as u64)),
            robots: RefCell::new(robots),
            kinds,
            history: RefCell::default(),
            ranks: RefCell::default(),
            repeats: settings.profiles.iter().any(|profile| repeats(profile, &settings.field.catalog)),
            head_buffer: RefCell::default(),
            open: Cell::new(0),
            opened: Cell::new(0),
            pace: Cell::new(Pace::FULL),
            alive: Cell::new(0.0),
            paced_until: Cell::new(Nanos::MAX),
            freezes: Cell::new(Nanos::MAX),
            queues: RefCell::default(),
            quiet: RefCell::default(),
            workers: Workers::default(),
            standing: Cell::default(),
            peers: RefCell::default(),
            visits: RefCell::new(crate::peers::phase_sync::first_visits(&settings)),
            names: Resolvers::new(link.clone(), recorder.clone(), &settings),
            link,
            settings,
            recorder,
        })
    }

    /// Sets the factors in force from now on, and counts the robots that live by them.
    pub fn set_pace(&self, pace: Pace) {
        self.pace.set(pace);
        let now = self.now();
        let share = if pace.stopped { 0.0 } else { pace.populus.at(now) };
        if self.alive.replace(share) != share {
            let alive = self.robots().iter().filter(|robot| f64::from(robot.rank) < share).count();
            self.recorder.with(|block| block.populus.set(now, alive as u64));
        }
    }

    /// The pace that was set holds for launches that are due before `end`. Even if they are all late, those behind it wait for
    /// the next one, so that the clock alone does not decide which pace is theirs.
    pub fn set_pace_end(&self, end: Nanos) {
        self.paced_until.set(end);
    }

    /// Repeats that are due from `at` on are drawn from as many of the newest objects as there are then (reference:
    /// models.md, section 3.3). Only the first call counts.
    pub fn freeze_working_set(&self, at: Nanos) {
        self.freezes.set(self.freezes.get().min(at));
    }

    /// Freezes the working set if it is time for a request that is due at `due`.
    pub(crate) fn freeze_by(&self, due: Nanos) {
        if due >= self.freezes.get() {
            self.generator.borrow_mut().freeze();
        }
    }

    /// What a later test needs to go on with the objects of this one.
    pub fn working_set(&self) -> SavedShare {
        self.freeze_by(self.now());
        let totals = self.recorder.totals();
        let (ids, galaxies) = self.generator.borrow().own_galaxies(&self.settings.field);
        let fill = Fill { count: totals.fills, bytes: totals.fill_bytes };
        SavedShare { ids, galaxies, fill }
    }

    /// Goes on with the objects of an earlier test. Returns the number of galaxies of servers that this test has
    /// not.
    pub fn resume_from(&self, legacy: RestoredShare) -> usize {
        self.generator.borrow_mut().resume_from(&self.settings.field, legacy)
    }

    /// A robot's private cache takes an object, or loses it.
    pub fn remember(&self, robot: usize, oid: Oid, keep: bool) {
        let cap = self.profile(robot).private_cache;
        if cap == 0 {
            return;
        }
        let mut private = self.private(robot);
        private.received.retain(|other| *other != oid);
        if keep {
            if private.received.len() >= cap {
                private.received.pop_front();
            }
            private.received.push_back(oid);
        }
    }

    /// A transaction of the robot's session has ended.
    pub fn count_session(&self, robot: usize, fill: u64) {
        let mut private = RefMut::map(self.robots(), |robots| &mut robots[robot].private);
        if let Some(period) = private.as_mut().and_then(|private| private.session.as_mut()) {
            period.count(fill);
        }
    }
}

/// What transactions need of their group.
impl<L: Link> RobotGroup<L> {
    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The kind of a robot.
    pub fn profile(&self, robot: usize) -> &Arc<Profile> {
        &self.settings.profiles[self.kind(robot)]
    }

    /// The number of the kind of a robot.
    pub(crate) fn kind(&self, robot: usize) -> usize {
        self.kinds[robot] as usize
    }

    /// The robots.
    pub fn robots(&self) -> RefMut<'_, Vec<Robot<L::Conn>>> {
        self.robots.borrow_mut()
    }

    pub(crate) fn private(&self, robot: usize) -> RefMut<'_, Private> {
        RefMut::map(self.robots(), |robots| &mut **robots[robot].private.get_or_insert_default())
    }

    /// The robot's embedded objects that wait for a connection.
    pub fn backlog(&self, robot: usize) -> RefMut<'_, Backlog> {
        RefMut::map(self.private(robot), |private| &mut private.backlog)
    }

    /// Requests in flight on a connection of the robot, at most; drawn anew each time.
    pub fn pipeline_depth(&self, robot: usize) -> u32 {
        let drawn =
            self.profile(robot).pipeline.as_ref().map(|depth| depth.sample(&mut *self.connection_rng()));
        drawn.unwrap_or(1.0).clamp(1.0, 1000.0) as u32
    }

    /// The loop.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.link.now()
    }

    /// Where to count.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Whether anything is asked for again, so that the past of objects matters.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// What was learned about objects.
    pub fn history(&self) -> RefMut<'_, History> {
        self.history.borrow_mut()
    }

    /// Counts a request for an object that may be asked for again.
    pub fn count_request(&self, request: &Request) {
        if request.foreign.is_some() || !self.repeats() {
            return;
        }
        if let Some((n, weight)) = self.ranks.borrow_mut().count(&request.oid) {
            self.recorder().with(|block| block.ordinals.record_n(u64::from(n), u64::from(weight)));
        }
    }

    /// What decides requests.
    pub fn generator(&self) -> RefMut<'_, RequestGenerator> {
        self.generator.borrow_mut()
    }

    /// Draws what depends on replies.
    pub fn connection_rng(&self) -> RefMut<'_, Stream> {
        self.connection_rng.borrow_mut()
    }

    /// Queues for connections, by robot.
    pub fn queues(&self) -> RefMut<'_, FxHashMap<usize, Rc<WaitQueue>>> {
        self.queues.borrow_mut()
    }

    /// Open connections of all robots.
    pub fn open_connections(&self) -> usize {
        self.open.get()
    }

    /// The number of the connection that is opened now, from 1.
    pub fn number_connection(&self) -> u64 {
        self.opened.set(self.opened.get() + 1);
        self.opened.get()
    }

    /// Sets the number of open connections.
    pub fn set_open_connections(&self, open: usize) {
        self.open.set(open);
    }

    /// The URL of an request.
    pub fn url(&self, request: &Request) -> String {
        if let Some(url) = &request.foreign {
            return url.to_string();
        }
        let authority = &self.settings.field.servers[request.server].authority;
        let host = authority.strip_suffix(":80").unwrap_or(authority);
        format!("http://{host}{}", self.path(request))
    }

    /// The path in that URL, of an object of ours.
    pub fn path(&self, request: &Request) -> String {
        let mut path = Vec::new();
        self.settings.field.catalog.write_path(&request.oid, &mut path);
        String::from_utf8_lossy(&path).into_owned()
    }

    /// Until when a transaction that begins at `now` must have ended.
    pub fn deadline(&self, robot: usize, now: Nanos) -> Option<Nanos> {
        let profile = self.profile(robot);
        let lifetime = profile.lifetime.as_ref()?.sample(&mut *self.connection_rng());
        Some(now + nanos(lifetime))
    }

    /// Where the request goes: the robot's proxy, where its container came from, or one of the addresses behind
    /// the server's name.
    ///
    /// # Errors
    /// If the name has no address, or none becomes known before `deadline`.
    pub async fn hop(
        &self,
        robot: usize,
        request: &Request,
        deadline: Option<Nanos>,
    ) -> Result<SocketAddr, TransactionFailure> {
        if let Some(proxy) = self.proxy(robot) {
            return Ok(proxy);
        }
        if let Some(hop) = request.hop {
            return Ok(hop);
        }
        if let Some(url) = &request.foreign {
            let authority = match foreign_host(url)? {
                Host::Address(address) => return Ok(address),
                Host::Name(authority) => authority,
            };
            return Box::pin(self.resolve(robot, authority, deadline)).await;
        }
        let server = &self.settings.field.servers[request.server];
        match server.addresses[..] {
            // Look-ups are rare and large.
            [] => Box::pin(self.resolve(robot, &server.authority, deadline)).await,
            [only] => Ok(only),
            _ => {
                let at = self.connection_rng().below(server.addresses.len() as u64) as usize;
                Ok(server.addresses[at])
            }
        }
    }

    async fn resolve(
        &self,
        robot: usize,
        authority: &str,
        deadline: Option<Nanos>,
    ) -> Result<SocketAddr, TransactionFailure> {
        let profile = self.profile(robot);
        let Some(dns) = &profile.dns else {
            let detail = format!("{authority} has no address, and the robots have no dns_resolver");
            return Err(TransactionFailure::new(ErrorKind::UnknownHost, detail));
        };
        let from = self.address(robot);
        let found = self.names.resolve(dns, self.kind(robot), robot, from, authority);
        let Some(deadline) = deadline else { return found.await };
        match run_until(self.link.sleep_until(deadline), found).await {
            Some(found) => found,
            None => Err(TransactionFailure::new(ErrorKind::Timeout, format!("while looking up {authority}"))),
        }
    }

    pub(crate) fn proxy(&self, robot: usize) -> Option<SocketAddr> {
        let proxies = &self.profile(robot).proxies;
        let number = self.robots()[robot].number as usize;
        (!proxies.is_empty()).then(|| proxies[number % proxies.len()])
    }

    /// Whether a request body of `size` bytes waits for 100 (continue).
    pub fn expects_continue(&self, robot: usize, size: u64) -> bool {
        let http_minor = self.robots()[robot].http_minor;
        match self.profile(robot).expect {
            Expect::Never => false,
            Expect::Prob(prob) => http_minor > 0 && self.connection_rng().event(prob),
            Expect::From(from) => http_minor > 0 && size >= from,
        }
    }

    /// The abort coordinates of a request, the same whenever it is sent.
    pub fn abort_coords(&self, robot: usize, request: &Request) -> AbortCoords {
        let mut rng = Draw::new(u64::from(request.xact.counter) ^ self.settings.seed.0 << 32);
        AbortCoords::draw(self.profile(robot).abort_prob, &mut rng)
    }

    /// What is to be done with the content of the reply to `request`.
    pub fn entity<'a>(
        &'a self,
        robot: usize,
        request: &'a Request,
        url: &'a dyn Fn() -> String,
    ) -> Entity<'a> {
        let field = &*self.settings.field;
        let context = &self.contexts[self.kind(robot)];
        let known = Known {
            catalog: &field.catalog,
            fingerprint: self.contents,
            verify: field.verify,
            trusts_unmarked: self.settings.tolerance.foreign_replies,
        };
        Entity::new(known, request, url, context.accepts_gzip, context.links.as_ref())
    }

    /// Writes the head of the request for `request` and hands it to `send`.
    #[expect(clippy::too_many_arguments, reason = "all that a head depends on")]
    pub fn with_request<R>(
        &self,
        robot: usize,
        request: &Request,
        last: bool,
        expects: bool,
        body: Option<(u64, Option<&str>, AbortCoords)>,
        lines: &[u8],
        send: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let field = &*self.settings.field;
        let profile = self.profile(robot);
        let told = match field.share_worlds && request.foreign.is_none() {
            true => self.generator.borrow_mut().told(field, request.server),
            false => (None, None),
        };
        let http_minor = self.robots.borrow()[robot].http_minor;
        let validates = matches!(request.kind, RequestKind::Ims200 | RequestKind::Ims304);
        let context = Context {
            field,
            profile,
            http_minor,
            via_proxy: !profile.proxies.is_empty(),
            last,
            unix_s: if validates { self.link.unix_seconds() } else { 0 },
            group: self.settings.group,
            told,
            position: self.position(),
            body,
            expects,
            lines,
        };
        let mut head = self.head_buffer.borrow_mut();
        head.clear();
        encode::write(request, &context, &mut head);
        send(&head)
    }

    /// Counts bytes that a connection took at once.
    pub fn count_written(&self, bytes: usize) {
        self.recorder.with(|block| block.writes.record(bytes as u64));
    }

    /// Counts transactions that begin now.
    pub fn count_begun(&self, requests: &mut [Request]) {
        let now = self.now();
        requests.iter_mut().for_each(|request| request.ticket = self.recorder.begin(now));
    }

    /// Counts a retry.
    pub fn count_retry(&self) {
        self.recorder.with(|block| block.retried += 1);
    }

    /// Counts the use, from `now` on, of a connection that had been used before.
    pub fn count_reuse(&self, now: Nanos) {
        self.recorder.with(|block| {
            block.reused += 1;
            block.idle.leave(now);
        });
    }
}

/// Whether robots ask for anything again.
fn repeats(profile: &Profile, catalog: &Catalog) -> bool {
    let changed = |content: &Content| {
        content
            .behavior
            .as_ref()
            .and_then(|change| change.recurrence)
            .is_some_and(|recurrence| recurrence > 0.0)
    };
    profile.behavior.recurrence > 0.0 || catalog.contents.iter().any(changed)
}

/// Where a foreign URL leads.
enum Host<'a> {
    Address(SocketAddr),
    /// Name and, maybe, port.
    Name(&'a str),
}

fn foreign_host(url: &str) -> Result<Host<'_>, TransactionFailure> {
    let fault = || TransactionFailure::new(ErrorKind::NoUrlHost, url);
    let parts = uri::split(url.as_bytes()).ok_or_else(fault)?;
    let authority = std::str::from_utf8(parts.authority).map_err(|_| fault())?;
    let (host, port) = uri::host_port(parts.authority).ok_or_else(fault)?;
    let port = port.or_else(|| uri::default_port(parts.scheme)).unwrap_or(80);
    let ip = std::str::from_utf8(host).ok().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
    Ok(ip.map_or(Host::Name(authority), |ip| Host::Address(SocketAddr::new(ip, port))))
}

/// An `Accept-Encoding` that begins an entry with `gzip` or `*`.
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|entry| entry.trim().starts_with("gzip") || entry.trim().starts_with('*'))
}
