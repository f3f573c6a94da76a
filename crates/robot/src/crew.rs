//! The robots of one event loop: when they launch requests, and what becomes of them.

use std::cell::{Cell, RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, Nanos, SECOND, nanos, yield_now};
use polygraph_stats::{Class, ErrorKind, Recorder};
use polygraph_traffic::rng::mix;
use polygraph_traffic::store::{Fill, Legacy, Share};
use polygraph_traffic::{
    AbortCoords, Arrivals, Catalog, Content, Distr, Draw, IdSource, LoadCurve, Oid, Random, RequestKind,
    Selector, Stream,
};
use polygraph_wire::markup::Tags;
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use crate::account;
use crate::auth::{Answers, Asker, Wallet};
use crate::cookies::Jar;
use crate::entity::Entity;
use crate::exchange::{Done, Fault, exchange};
use crate::gaps::Gaps;
use crate::gate::Gate;
use crate::history::History;
use crate::links::Links;
use crate::names::Names;
use crate::order::{Cause, Chooser, Factors, Order};
use crate::pace::Pace;
use crate::page::Page;
use crate::pipeline::{Backlog, exchange_together};
use crate::pool::Leased;
use crate::request::{self, Context};
use crate::session::{Change, Period};
use crate::settings::{Expect, Load, Profile, Settings};

/// So many overdue requests are launched before replies and timers get their turn.
const LAUNCHES_IN_A_ROW: u32 = 16;
/// A transaction answers so many challenges, at most.
const MAX_CHALLENGES: usize = 3;
/// How often a robot that may not launch looks whether it may again.
const PAUSE: Nanos = SECOND / 20;
/// The robots of a loop look no more often than this lets them all together.
const LOOK: Nanos = SECOND / 50_000;

/// A robot.
#[derive(Debug)]
pub struct Robot<C> {
    /// Decides everything that is this robot's own choice.
    pub rng: Stream,
    /// Its kind.
    pub profile: u32,
    /// Its number among its kind.
    pub number: u32,
    /// It is active while the populus factor is above this (0 to 1).
    rank: f32,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    http_minor: u8,
    /// Open connections, busy and idle.
    pub open: u32,
    /// Transactions that are running.
    active: u32,
    /// Launches to be left out because embedded objects and redirects took their place.
    extra: u32,
    /// Idle connections, the most recently used one last.
    pub idle: Vec<Leased<C>>,
    /// What only some robots have.
    private: Option<Box<Private>>,
}

/// What only some robots have.
#[derive(Debug, Default)]
struct Private {
    session: Option<Period>,
    /// Embedded objects received lately, the oldest first.
    received: VecDeque<Oid>,
    /// Names of request bodies sent so far, by kind.
    sent: Vec<(u8, u64)>,
    /// World of its request bodies.
    world: Option<polygraph_traffic::UniqId>,
    jar: Option<Jar>,
    backlog: Backlog,
    wallet: Option<Box<Wallet>>,
}

/// When a robot launches requests.
#[derive(Debug)]
enum Clock<'a> {
    Poisson(Arrivals),
    Renewal(Gaps<'a>),
    /// Not by the clock.
    None,
}

impl Clock<'_> {
    fn is_due(&self) -> bool {
        !matches!(self, Clock::Renewal(gaps) if !gaps.is_due())
    }
}

/// What is prepared once for each kind of robots.
#[derive(Debug)]
struct Kit {
    tags: Rc<Tags>,
    raw: Option<Rc<str>>,
    accepts_gzip: bool,
}

/// The robots of one event loop.
#[derive(Debug)]
pub struct Crew<L: Link> {
    link: L,
    settings: Settings,
    recorder: Recorder,
    kits: Vec<Kit>,
    chooser: RefCell<Chooser>,
    robots: RefCell<Vec<Robot<L::Conn>>>,
    /// Look-up of names.
    names: Names<L>,
    /// What was learned about objects.
    history: RefCell<History>,
    /// Something may be asked for again.
    repeats: bool,
    /// Draws what depends on replies and thus on time, like the length of connections; apart from the robots' own
    /// streams so that the sequence of their requests does not.
    connection_rng: RefCell<Stream>,
    /// Head of the request that is being sent.
    request: RefCell<Vec<u8>>,
    open: Cell<usize>,
    pace: Cell<Pace>,
    frozen: Cell<bool>,
    /// Transactions that wait for a connection, by robot.
    gates: RefCell<FxHashMap<usize, Rc<Gate>>>,
    /// Closed-loop robots that wait for the end of all their transactions.
    quiet: RefCell<FxHashMap<usize, Rc<Gate>>>,
    /// Transactions that follow from others and have not begun yet.
    followers: RefCell<VecDeque<(usize, Order)>>,
    launcher: Gate,
    /// Time of day at the start, in seconds since 1970.
    started_unix: i64,
}

impl<L: Link> Crew<L> {
    /// Robots that are ready to start.
    pub fn new(link: L, settings: Settings, recorder: Recorder, ids: IdSource) -> Rc<Crew<L>> {
        let robots = (0..settings.robots).map(|i| new_robot(&settings, settings.first_robot + i)).collect();
        let kit = |profile: &Arc<Profile>| Kit {
            tags: Rc::new(Tags::parse(&profile.container_tags).unwrap_or_default()),
            raw: profile.raw_uri_thrower.as_deref().map(Rc::from),
            accepts_gzip: profile.accept_encoding.as_deref().is_some_and(accepts_gzip),
        };
        Rc::new(Crew {
            kits: settings.profiles.iter().map(kit).collect(),
            chooser: RefCell::new(Chooser::new(&settings, ids)),
            connection_rng: RefCell::new(settings.seed.stream("connection", settings.first_robot as u64)),
            robots: RefCell::new(robots),
            history: RefCell::default(),
            repeats: settings.profiles.iter().any(|profile| repeats(profile, &settings.field.catalog)),
            request: RefCell::default(),
            open: Cell::new(0),
            pace: Cell::new(Pace::FULL),
            frozen: Cell::new(false),
            gates: RefCell::default(),
            quiet: RefCell::default(),
            followers: RefCell::default(),
            launcher: Gate::default(),
            names: Names::new(link.clone(), recorder.clone(), &settings),
            started_unix: link.unix_seconds(),
            link,
            settings,
            recorder,
        })
    }

    /// Sets the factors in force from now on.
    pub fn set_pace(&self, pace: Pace) {
        self.pace.set(pace);
    }

    /// From now on repeats are drawn from as many of the newest objects as there are now (reference: models.md,
    /// section 3.3). Repeated calls do nothing.
    pub fn freeze_working_set(&self) {
        if !self.frozen.replace(true) {
            self.chooser.borrow_mut().freeze();
        }
    }

    /// What a later test needs to go on with the objects of this one.
    pub fn working_set(&self) -> Share {
        let totals = self.recorder.totals();
        let (ids, galaxies) = self.chooser.borrow().own_galaxies(&self.settings.field);
        let fill = Fill { count: totals.fills, bytes: totals.fill_bytes };
        Share { ids, galaxies, fill }
    }

    /// Goes on with the objects of an earlier test. Returns the number of galaxies of servers that this test has
    /// not.
    pub fn go_on_with(&self, legacy: Legacy) -> usize {
        self.chooser.borrow_mut().go_on_with(&self.settings.field, legacy)
    }

    /// Runs the robots from `start` until the pace stops them. Transactions that are running then go on as tasks
    /// of the link.
    pub async fn run(self: Rc<Self>, start: Nanos) {
        self.link.spawn(Rc::clone(&self).launch_followers());
        for robot in 0..self.settings.robots {
            if self.profile(robot).session.is_some() {
                self.private(robot).session = Some(Period::new(start));
            }
            if let Load::Closed { think } = self.profile(robot).load.clone() {
                self.link.spawn(Rc::clone(&self).run_closed(start, robot, think));
            }
        }
        self.run_open(start).await;
    }

    /// Launches requests when they are due, whatever became of earlier ones.
    async fn run_open(self: Rc<Self>, start: Nanos) {
        let curve = LoadCurve { launch_window: self.settings.launch_window };
        let mut clocks: Vec<Clock<'_>> = (0..self.settings.robots)
            .map(|robot| match &self.profile(robot).load {
                Load::Open { rate } => Clock::Poisson(Arrivals::new(*rate)),
                Load::Gaps(gaps) => Clock::Renewal(Gaps::new(gaps)),
                Load::Closed { .. } | Load::Passive => Clock::None,
            })
            .collect();
        let next = |clock: &mut Clock<'_>, robot: usize, last: Nanos| {
            let rng = &mut self.robots()[robot].rng;
            match clock {
                Clock::Poisson(arrivals) => start + nanos(arrivals.next(&curve, rng)),
                Clock::Renewal(gaps) => gaps.next(last, &self.pace.get().load, rng),
                Clock::None => Nanos::MAX,
            }
        };
        // Ties are broken by robot number, so the order of launches follows from the seed alone.
        let open = |robot: &usize| matches!(self.profile(*robot).load, Load::Open { .. } | Load::Gaps(_));
        let mut agenda: BinaryHeap<_> = (0..self.settings.robots)
            .filter(open)
            .map(|i| Reverse((next(&mut clocks[i], i, start), i)))
            .collect();
        let mut launched_in_a_row = 0;
        while let Some(&Reverse((due, robot))) = agenda.peek() {
            if due > self.link.now() {
                self.link.sleep_until(due).await;
                launched_in_a_row = 0;
            } else if launched_in_a_row == LAUNCHES_IN_A_ROW {
                yield_now().await;
                launched_in_a_row = 0;
            }
            launched_in_a_row += 1;
            if self.pace.get().stopped {
                return;
            }
            agenda.pop();
            let is_due = clocks[robot].is_due();
            agenda.push(Reverse((next(&mut clocks[robot], robot, due), robot)));
            if is_due && self.launches(robot, due) {
                let order = self.order(robot, due);
                let crew = Rc::clone(&self);
                self.link.spawn(async move {
                    crew.transact(robot, order).await;
                });
            }
        }
    }

    /// Launches the next request when everything before has ended.
    async fn run_closed(self: Rc<Self>, start: Nanos, robot: usize, think: Option<Distr>) {
        let number = (self.settings.first_robot + robot) as f64;
        let rest = PAUSE.max(self.settings.robots as u64 * LOOK);
        let wait = self.settings.launch_window * number / self.settings.all_robots() as f64;
        self.link.sleep_until(start + nanos(wait)).await;
        loop {
            if let Some(think) = &think {
                let pause = think.sample(&mut self.robots()[robot].rng);
                self.link.sleep_until(self.link.now() + nanos(pause)).await;
            }
            let now = self.link.now();
            if self.pace.get().stopped {
                return;
            }
            if !self.launches(robot, now) {
                self.link.sleep_until(now + rest).await;
                continue;
            }
            let order = self.order(robot, now);
            let failed = self.transact(robot, order).await;
            while self.robots()[robot].active > 0 {
                let gate = Rc::clone(self.quiet.borrow_mut().entry(robot).or_default());
                gate.wait(std::future::pending()).await;
            }
            if failed {
                // A device that refuses at once must not turn a robot into a busy loop.
                self.link.sleep_until(self.link.now() + SECOND / 100).await;
            }
        }
    }

    /// Whether a robot launches a request that is due now.
    fn launches(&self, robot: usize, due: Nanos) -> bool {
        let pace = self.pace.get();
        if pace.stopped || !self.is_active(robot, due) {
            return false;
        }
        let profile = self.profile(robot);
        let load = pace.load.at(due);
        let thinned = match profile.load {
            // Leaving out arrivals with the complementary probability makes a Poisson stream a slower one.
            Load::Open { .. } => load < 1.0 && !self.robots()[robot].rng.event(load),
            Load::Closed { .. } => self.robots()[robot].rank as f64 >= load,
            Load::Gaps(_) | Load::Passive => false,
        };
        if thinned || profile.session.is_some() && !self.is_busy(robot, profile, due) {
            return false;
        }
        let extra = &mut self.robots()[robot].extra;
        let open = !matches!(profile.load, Load::Closed { .. });
        if open && *extra > 0 {
            *extra -= 1;
            return false;
        }
        true
    }

    /// Whether the robot is among those that the populus factor lets live.
    pub fn is_active(&self, robot: usize, at: Nanos) -> bool {
        f64::from(self.robots()[robot].rank) < self.pace.get().populus.at(at)
    }

    /// Whether the robot's session is in a busy period.
    fn is_busy(&self, robot: usize, profile: &Profile, now: Nanos) -> bool {
        let Some(session) = &profile.session else { return true };
        let change = {
            let robot = &mut self.robots()[robot];
            let Some(period) = robot.private.as_mut().and_then(|private| private.session.as_mut()) else {
                return true;
            };
            period.advance(session, now, &mut robot.rng)
        };
        if matches!(change, Change::BecameIdle(_) | Change::BecameBusy) {
            self.close_all_idle(robot);
            let mut private = self.private(robot);
            private.received.clear();
            if let Some(jar) = &mut private.jar {
                jar.end_session();
            }
        }
        if change == Change::BecameBusy {
            self.renew_credentials(robot);
        }
        matches!(change, Change::Busy | Change::BecameBusy)
    }

    /// Connections of a robot whose session is idle are not kept.
    pub fn keeps_connections(&self, robot: usize) -> bool {
        let private = RefMut::map(self.robots(), |robots| &mut robots[robot].private);
        let Some(period) = private.as_ref().and_then(|private| private.session.as_ref()) else { return true };
        !period.is_idle(self.now())
    }

    fn order(&self, robot: usize, due: Nanos) -> Order {
        let pace = self.pace.get();
        let factors = Factors { recur: pace.recur.at(due), special: pace.special.at(due) };
        let mut order = {
            let mut robots = self.robots.borrow_mut();
            let robot = &mut robots[robot];
            let profile = robot.profile as usize;
            let order =
                self.chooser.borrow_mut().order(&self.settings, profile, factors, due, &mut robot.rng);
            robot.extra = robot.extra.saturating_add(order.planned);
            order
        };
        if order.method.has_body() {
            order.sends = self.request_body(robot, &order);
        }
        order
    }

    /// The object that a request sends: an earlier one of the robot's own, or a new one (reference: models.md,
    /// section 10.1).
    fn request_body(&self, robot: usize, order: &Order) -> Option<Oid> {
        let profile = self.profile(robot);
        let contents = match order.method {
            polygraph_traffic::Method::Post => &profile.post,
            _ => &profile.upload,
        };
        let fresh = self.private(robot).world.is_none().then(|| self.chooser.borrow_mut().fresh_id());
        let mut robots = self.robots.borrow_mut();
        let Robot { rng, private, .. } = &mut robots[robot];
        let private = private.get_or_insert_default();
        let kind = *contents.draw(rng)?;
        let world = *private.world.get_or_insert(fresh.unwrap_or_default());
        if !private.sent.iter().any(|(known, _)| *known == kind.0) {
            private.sent.push((kind.0, 0));
        }
        let (_, last) = private.sent.iter_mut().find(|(known, _)| *known == kind.0)?;
        let name = if *last > 0 && rng.event(profile.body_recurrence) {
            1 + rng.below(*last)
        } else {
            *last += 1;
            *last
        };
        Some(Oid { world, kind, name })
    }

    /// One transaction from its start, now, to its end. Returns true if it failed.
    async fn transact(self: &Rc<Self>, robot: usize, mut order: Order) -> bool {
        let entered = self.link.now();
        self.robots()[robot].active += 1;
        if order.cause == Cause::Direct && order.planned > 0 {
            order.page = Some(Rc::new(Page::new(entered)));
        }
        self.recorder.with(|block| {
            block.xacts.enter(entered);
            if order.cause == Cause::Direct {
                block.late_us.record(entered.saturating_sub(order.due) / 1000);
            }
        });
        let outcome = self.converse(robot, &order, None).await;
        let failed = account::settle(self, robot, &order, outcome);
        let left_out_for_nothing = order.planned.saturating_sub(order.launched.get());
        if left_out_for_nothing > 0 {
            let extra = &mut self.robots()[robot].extra;
            *extra = extra.saturating_sub(left_out_for_nothing);
        }
        self.end_one(robot);
        failed
    }

    /// One of the robot's tasks is over; if it was the last, whoever waits for that is called.
    fn end_one(&self, robot: usize) {
        let active = {
            let robot = &mut self.robots()[robot];
            robot.active -= 1;
            robot.active
        };
        if active == 0 {
            let gate = self.quiet.borrow().get(&robot).cloned();
            if let Some(gate) = gate {
                gate.call();
            }
        }
    }

    /// Transactions that share a connection: the first one that waits, and others that go the same way. Those
    /// that are cut off by the failure of another one are tried again, each by itself.
    async fn transact_together(self: &Rc<Self>, robot: usize, hop: SocketAddr) {
        // Another task may have taken it along already.
        let Some(order) = self.backlog(robot).first(hop) else { return };
        self.robots()[robot].active += 1;
        let outcomes = exchange_together(self, robot, order, hop).await;
        for (order, outcome) in outcomes {
            let outcome = match outcome {
                // Answers to challenges go one by one.
                Some(Ok(done)) => self.converse(robot, &order, Some(done)).await,
                Some(failed) => failed,
                None => {
                    self.count_retry();
                    self.converse(robot, &order, None).await
                }
            };
            account::settle(self, robot, &order, outcome);
        }
        self.end_one(robot);
    }

    /// Exchanges request and reply, and once more with credentials for each side that asks for them: all of
    /// that is one transaction (reference: models.md, section 21). The first exchange may have been made already.
    async fn converse(
        self: &Rc<Self>,
        robot: usize,
        order: &Order,
        mut made: Option<Done>,
    ) -> Result<Done, Fault> {
        let (mut lines, mut first, mut sent, mut asked) = (Vec::new(), None, 0, Vec::new());
        loop {
            let mut done = match made.take() {
                Some(done) => done,
                None => {
                    lines.clear();
                    let answers = self.write_private_lines(robot, order, &mut lines);
                    Done { answers, ..exchange(self, robot, order, &lines).await? }
                }
            };
            let began = done.started;
            done.started = *first.get_or_insert(began);
            sent += done.sent;
            done.sent = sent;
            self.keep_cookies(robot, order, &done);
            let asker = match done.facts.status {
                407 => Asker::Proxy,
                401 if order.foreign.is_none() => Asker::Origin(order.server),
                _ => {
                    done.denied = self.was_spoiled(robot) && done.facts.status == 403;
                    if done.facts.status < 400 && self.was_spoiled(robot) {
                        // Proxies that ask do so for everything, origins perhaps for this alone.
                        let proxy = done.answers.proxy.then_some(Asker::Proxy);
                        done.fooled = proxy.or(asked.last().copied());
                    }
                    return Ok(done);
                }
            };
            if self.profile(robot).credentials.is_empty() {
                return Ok(done);
            }
            let fields = done.facts.rare.as_deref().map_or(&[][..], |rare| &rare.challenges);
            let can_answer = self.wallet(robot).learn(asker, fields, done.answers.to(asker));
            if !can_answer || asked.len() > MAX_CHALLENGES {
                // With a spoiled password that is how it has to be.
                done.denied = self.was_spoiled(robot) && (done.answers.to(asker) || !asked.is_empty());
                return Ok(done);
            }
            asked.push(asker);
            let (now, size) = (self.now(), done.facts.size());
            self.recorder.with(|block| {
                let stats = block.class_mut(Class::Authenticating);
                stats.record((now - began) / 1000, size);
            });
        }
    }

    /// Appends credentials and cookies. Foreign servers get neither. Tells whose challenges are answered.
    pub(crate) fn write_private_lines(&self, robot: usize, order: &Order, out: &mut Vec<u8>) -> Answers {
        let profile = self.profile(robot);
        let mut answers = Answers::default();
        if !profile.credentials.is_empty() {
            let url = self.url(order);
            let via_proxy = !profile.proxies.is_empty();
            let path = uri::split(url.as_bytes()).and_then(|parts| std::str::from_utf8(parts.path).ok());
            let target = if via_proxy { &url } else { path.unwrap_or("/") };
            let mut wallet = self.wallet(robot);
            if order.foreign.is_none() {
                answers.origin = wallet.write(Asker::Origin(order.server), order.method.word(), target, out);
            }
            if via_proxy {
                answers.proxy = wallet.write(Asker::Proxy, order.method.word(), target, out);
            }
        }
        if order.foreign.is_some() {
            return answers;
        }
        let mut private = RefMut::map(self.robots(), |robots| &mut robots[robot].private);
        if let Some(jar) = private.as_mut().and_then(|private| private.jar.as_mut()) {
            let unix = u64::try_from(self.link.unix_seconds()).unwrap_or(0);
            jar.write(order.server, unix, out, &self.recorder);
        }
        answers
    }

    fn keep_cookies(&self, robot: usize, order: &Order, done: &Done) {
        let Some(rare) = done.facts.rare.as_deref().filter(|rare| !rare.cookies.is_empty()) else { return };
        if order.foreign.is_some() {
            return;
        }
        let profile = self.profile(robot);
        let unix = u64::try_from(self.link.unix_seconds()).unwrap_or(0);
        let mut choices = self.settings.seed.stream("cookies", (self.settings.first_robot + robot) as u64);
        if !choices.event(profile.cookie_sender) {
            return;
        }
        let room = profile.cookies_keep.sample(&mut choices).ceil().clamp(0.0, 1000.0) as usize;
        let mut private = self.private(robot);
        let jar = private.jar.get_or_insert_with(|| Jar::new(room));
        jar.store(order.server, &rare.cookies, unix, &self.recorder);
    }

    /// The robot's credentials, taken from the list when it needs them first.
    fn wallet(&self, robot: usize) -> RefMut<'_, Wallet> {
        if self.private(robot).wallet.is_none() {
            self.private(robot).wallet = Some(Box::default());
            self.renew_credentials(robot);
        }
        RefMut::map(self.private(robot), |private| &mut **private.wallet.get_or_insert_default())
    }

    /// The next credentials of a random cycle (reference: models.md, section 21).
    fn renew_credentials(&self, robot: usize) {
        let profile = self.profile(robot);
        if profile.credentials.is_empty() {
            return;
        }
        let seed = self.settings.seed.derive("credentials", (self.settings.first_robot + robot) as u64);
        let mut private = self.private(robot);
        let wallet = private.wallet.get_or_insert_default();
        // The first are taken when a reply asks for them: the robot's own stream must not depend on that.
        let mut rng = Draw::new(seed ^ mix(wallet.renewals));
        let at = rng.below(profile.credentials.len() as u64) as usize;
        wallet.renew(&profile.credentials[at], rng.event(profile.auth_error));
    }

    fn was_spoiled(&self, robot: usize) -> bool {
        !self.profile(robot).credentials.is_empty() && self.wallet(robot).spoiled
    }

    /// Starts a transaction that follows from another one. It counts as running from now on, not only from its
    /// first turn.
    fn follow(&self, robot: usize, order: Order) {
        if let Some(page) = &order.page {
            page.enter();
        }
        self.robots()[robot].active += 1;
        self.followers.borrow_mut().push_back((robot, order));
        self.launcher.call();
    }

    /// Starts what follows from other transactions. They cannot start each other: a task would contain itself.
    async fn launch_followers(self: Rc<Self>) {
        loop {
            while let Some((robot, order)) = self.next_follower() {
                let crew = Rc::clone(&self);
                match order.hop {
                    Some(hop) if self.profile(robot).pipeline.is_some() => {
                        self.backlog(robot).push(order);
                        self.link.spawn(async move {
                            crew.transact_together(robot, hop).await;
                            crew.end_one(robot);
                        });
                    }
                    _ => self.link.spawn(async move {
                        crew.transact(robot, order).await;
                        crew.end_one(robot);
                    }),
                }
            }
            self.launcher.wait(std::future::pending()).await;
        }
    }

    fn next_follower(&self) -> Option<(usize, Order)> {
        self.followers.borrow_mut().pop_front()
    }

    /// Asks for an embedded object that `link` in the reply to `container` refers to.
    pub fn follow_link(self: &Rc<Self>, robot: usize, container: &Order, hop: SocketAddr, link: &[u8]) {
        let profile = self.profile(robot);
        if container.foreign.is_some() {
            return self.follow_foreign(robot, container, link, profile);
        }
        let field = &self.settings.field;
        let authority = field.servers[container.server].authority.as_bytes();
        if let Some(parts) = uri::split(link)
            && parts.authority != authority.strip_suffix(b":80").unwrap_or(authority)
            && parts.authority != authority
        {
            return self.note_link(ErrorKind::ForeignLink, container, link);
        }
        let Some(oid) = polygraph_wire::url::parse(link) else {
            return self.note_link(ErrorKind::ForeignTag, container, link);
        };
        if !container.wants_embedded(oid.name & 0xff, profile.embed_recur) {
            return;
        }
        // Only basic requests are satisfied with what the robot has.
        let has = profile.private_cache > 0 && self.private(robot).received.contains(&oid);
        if has && container.kind == RequestKind::Basic {
            return;
        }
        let now = self.now();
        let mut order = self.chooser.borrow_mut().follow_up(container, Cause::Embedded, oid, now);
        order.hop = Some(hop);
        self.count_launched(robot, container);
        self.follow(robot, order);
    }

    /// An embedded object of `container` is asked for. If no launch was left out for it in advance, the next one
    /// is (reference: models.md, section 9.3).
    fn count_launched(&self, robot: usize, container: &Order) {
        let launched = container.launched.get() + 1;
        container.launched.set(launched);
        if launched > container.planned {
            self.leave_out(robot, 1);
        }
    }

    /// So many of the robot's next launches are left out.
    fn leave_out(&self, robot: usize, launches: u32) {
        let extra = &mut self.robots()[robot].extra;
        // Robots of a closed loop never make up for them.
        *extra = extra.saturating_add(launches);
    }

    fn follow_foreign(self: &Rc<Self>, robot: usize, container: &Order, link: &[u8], profile: &Profile) {
        let base = container.foreign.as_deref().unwrap_or_default();
        let mut url = Vec::new();
        let now = self.now();
        let wanted = self.connection_rng().event(profile.embed_recur);
        if !wanted || !uri::resolve(base.as_bytes(), link, &mut url) {
            return;
        }
        let Ok(url) = String::from_utf8(url) else { return };
        let oid = Oid { name: container.oid.name << 8, ..container.oid };
        let mut order = self.chooser.borrow_mut().follow_up(container, Cause::Embedded, oid, now);
        order.foreign = Some(Rc::from(url));
        self.count_launched(robot, container);
        self.follow(robot, order);
    }

    fn note_link(&self, kind: ErrorKind, container: &Order, link: &[u8]) {
        let now = self.now();
        self.recorder
            .error(kind, now, || format!("{} in {}", String::from_utf8_lossy(link), self.url(container)));
    }

    /// Goes where a redirect leads.
    pub fn follow_redirect(self: &Rc<Self>, robot: usize, from: &Order, location: &[u8]) {
        let now = self.now();
        let base = self.url(from);
        let mut url = Vec::new();
        if !uri::resolve(base.as_bytes(), location, &mut url) {
            return self.note_link(ErrorKind::BadLocation, from, location);
        }
        let oid = polygraph_wire::url::parse(&url);
        let authority = self.settings.field.servers.get(from.server).map_or("", |server| &server.authority);
        let same = uri::split(&url).is_some_and(|parts| {
            parts.authority == authority.as_bytes()
                || parts.authority == authority.strip_suffix(":80").unwrap_or(authority).as_bytes()
        });
        let mut order = match oid {
            Some(oid) if same => {
                let order = self.chooser.borrow_mut().follow_up(from, Cause::Redirected, oid, now);
                Order { repeat: true, kind: RequestKind::Basic, ..order }
            }
            Some(_) => return self.note_link(ErrorKind::ForeignLink, from, location),
            None => {
                let Ok(url) = String::from_utf8(url) else {
                    return self.note_link(ErrorKind::BadLocation, from, location);
                };
                let oid = Oid { kind: polygraph_traffic::Kind::FOREIGN, ..from.oid };
                let order = self.chooser.borrow_mut().follow_up(from, Cause::Redirected, oid, now);
                Order { foreign: Some(Rc::from(url)), repeat: false, hop: None, ..order }
            }
        };
        order.page = None;
        self.leave_out(robot, 1);
        self.follow(robot, order);
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

/// What transactions need of their crew.
impl<L: Link> Crew<L> {
    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The kind of a robot.
    pub fn profile(&self, robot: usize) -> &Arc<Profile> {
        let index = self.robots.borrow()[robot].profile as usize;
        &self.settings.profiles[index]
    }

    /// The robots.
    pub fn robots(&self) -> RefMut<'_, Vec<Robot<L::Conn>>> {
        self.robots.borrow_mut()
    }

    fn private(&self, robot: usize) -> RefMut<'_, Private> {
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

    /// Time of day at the start, in seconds since 1970.
    pub fn started_unix(&self) -> i64 {
        self.started_unix
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

    /// What decides orders.
    pub fn chooser(&self) -> RefMut<'_, Chooser> {
        self.chooser.borrow_mut()
    }

    /// Draws what depends on replies.
    pub fn connection_rng(&self) -> RefMut<'_, Stream> {
        self.connection_rng.borrow_mut()
    }

    /// Queues for connections, by robot.
    pub fn gates(&self) -> RefMut<'_, FxHashMap<usize, Rc<Gate>>> {
        self.gates.borrow_mut()
    }

    /// Open connections of all robots.
    pub fn open_connections(&self) -> usize {
        self.open.get()
    }

    /// Sets the number of open connections.
    pub fn set_open_connections(&self, open: usize) {
        self.open.set(open);
    }

    /// The URL of an order.
    pub fn url(&self, order: &Order) -> String {
        if let Some(url) = &order.foreign {
            return url.to_string();
        }
        let field = &self.settings.field;
        let authority = &field.servers[order.server].authority;
        let mut path = Vec::new();
        field.catalog.write_path(&order.oid, &mut path);
        let host = authority.strip_suffix(":80").unwrap_or(authority);
        format!("http://{host}{}", String::from_utf8_lossy(&path))
    }

    /// Until when a transaction that begins now must have ended.
    pub fn deadline(&self, robot: usize) -> Option<Nanos> {
        let profile = self.profile(robot);
        let lifetime = profile.lifetime.as_ref()?.sample(&mut *self.connection_rng());
        Some(self.now() + nanos(lifetime))
    }

    /// Where the request goes: the robot's proxy, where its container came from, or one of the addresses behind
    /// the server's name.
    ///
    /// # Errors
    /// If the name has no address.
    pub async fn hop(&self, robot: usize, order: &Order) -> Result<SocketAddr, Fault> {
        if let Some(proxy) = self.proxy(robot) {
            return Ok(proxy);
        }
        if let Some(hop) = order.hop {
            return Ok(hop);
        }
        if let Some(url) = &order.foreign {
            let authority = match foreign_host(url)? {
                Host::Address(address) => return Ok(address),
                Host::Name(authority) => authority,
            };
            return self.resolve(robot, authority).await;
        }
        let server = &self.settings.field.servers[order.server];
        match server.addresses[..] {
            [] => self.resolve(robot, &server.authority).await,
            [only] => Ok(only),
            _ => {
                let at = self.connection_rng().below(server.addresses.len() as u64) as usize;
                Ok(server.addresses[at])
            }
        }
    }

    async fn resolve(&self, robot: usize, authority: &str) -> Result<SocketAddr, Fault> {
        let profile = self.profile(robot);
        let Some(dns) = &profile.dns else {
            let detail = format!("{authority} has no address, and the robots have no dns_resolver");
            return Err(Fault::new(ErrorKind::UnknownHost, detail));
        };
        let kind = self.robots()[robot].profile as usize;
        let from = self.address(robot);
        self.names.resolve(dns, kind, robot, from, authority).await
    }

    fn proxy(&self, robot: usize) -> Option<SocketAddr> {
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
    pub fn abort_coords(&self, robot: usize, order: &Order) -> AbortCoords {
        let mut rng = Draw::new(u64::from(order.xact.counter) ^ self.settings.seed.0 << 32);
        AbortCoords::draw(self.profile(robot).abort_prob, &mut rng)
    }

    /// What is to be done with the content of the reply to `order`.
    pub fn entity<'a>(&'a self, robot: usize, order: &'a Order, url: &'a dyn Fn() -> String) -> Entity<'a> {
        let field = &*self.settings.field;
        let profile = self.profile(robot);
        let kit = &self.kits[self.robots.borrow()[robot].profile as usize];
        let links = (profile.embed_recur > 0.0)
            .then(|| Links::new(Rc::clone(&kit.tags), kit.raw.as_ref().map(Rc::clone)));
        let trusts_unmarked = self.settings.tolerance.foreign_replies;
        Entity::new(&field.catalog, order, url, field.verify, trusts_unmarked, kit.accepts_gzip, links)
    }

    /// Writes the head of the request for `order` and hands it to `send`.
    #[expect(clippy::too_many_arguments, reason = "all that a head depends on")]
    pub fn with_request<R>(
        &self,
        robot: usize,
        order: &Order,
        last: bool,
        expects: bool,
        body: Option<(u64, Option<&str>, AbortCoords)>,
        lines: &[u8],
        send: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let field = &*self.settings.field;
        let profile = self.profile(robot);
        let told = match field.share_worlds && order.foreign.is_none() {
            true => self.chooser.borrow_mut().told(field, order.server),
            false => (None, None),
        };
        let http_minor = self.robots.borrow()[robot].http_minor;
        let validates = matches!(order.kind, RequestKind::Ims200 | RequestKind::Ims304);
        let context = Context {
            field,
            profile,
            http_minor,
            via_proxy: !profile.proxies.is_empty(),
            last,
            unix_s: if validates { self.link.unix_seconds() } else { 0 },
            group: self.settings.group,
            told,
            body,
            expects,
            lines,
        };
        let mut request = self.request.borrow_mut();
        request.clear();
        request::write(order, &context, &mut request);
        send(&request)
    }

    /// Counts bytes written to a connection.
    pub fn count_written(&self, bytes: usize) {
        self.recorder.with(|block| block.bytes_written += bytes as u64);
    }

    /// Counts bytes read from a connection.
    pub fn count_read(&self, bytes: usize) {
        self.recorder.with(|block| block.bytes_read += bytes as u64);
    }

    /// Counts transactions that begin now.
    pub fn count_begun(&self, count: u64) {
        let now = self.now();
        self.recorder.with(|block| (0..count).for_each(|_| block.xacts.enter(now)));
    }

    /// Counts a retry.
    pub fn count_retry(&self) {
        self.recorder.with(|block| block.retried += 1);
    }

    /// Counts the use of a connection that had been used before.
    pub fn count_reuse(&self) {
        self.recorder.with(|block| block.reused += 1);
    }
}

fn new_robot<C>(settings: &Settings, number: usize) -> Robot<C> {
    let (profile, own) = settings.member(number);
    let mut choices = settings.seed.stream("agent", number as u64);
    Robot {
        rng: settings.seed.stream("robot", number as u64),
        profile: profile as u32,
        number: own as u32,
        rank: rank(number),
        http_minor: settings.profiles[profile].http_minor.draw(&mut choices).copied().unwrap_or(1),
        open: 0,
        active: 0,
        extra: first_debt(settings, profile, &mut choices),
        idle: Vec::new(),
        private: None,
    }
}

/// Launches that a robot leaves out at first, as if it had been there before and were somewhere among the embedded
/// objects of a page. Without it all robots would begin with a page, and a test with few requests per robot would
/// offer several times its rate at first.
fn first_debt(settings: &Settings, profile: usize, rng: &mut Stream) -> u32 {
    const TRIES: usize = 8;
    let (field, robot) = (&settings.field, &settings.profiles[profile]);
    if robot.embed_recur <= 0.0 || !matches!(robot.load, Load::Open { .. } | Load::Gaps(_)) {
        return 0;
    }
    // A moment falls into a page in proportion to the number of its parts.
    let mut page = || {
        let server = robot.origins.draw(rng).copied().unwrap_or(0);
        let direct = field.servers.get(server).map(|server| &field.direct[server.direct])?;
        let kind = *direct.draw(rng)?;
        let world = polygraph_traffic::UniqId { counter: rng.bits() as u32 & !1, ..Default::default() };
        Some(field.catalog.embedded_count(&Oid { world, kind, name: 1 }))
    };
    let parts: Vec<(u64, f64)> =
        (0..TRIES).filter_map(|_| page()).map(|n| (n, robot.embed_recur.mul_add(n as f64, 1.0))).collect();
    let Some(&embedded) = Selector::weighted(parts).draw(rng) else { return 0 };
    rng.below((embedded as f64 * robot.embed_recur).round() as u64 + 1) as u32
}

/// The place of a robot in the order in which robots become active. Multiples of the golden ratio are spread so
/// evenly that of `all` robots very nearly a share `x` has a rank below `x`, on every loop alike; the first
/// robot is active whenever any is.
fn rank(number: usize) -> f32 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    ((number as f64 * GOLDEN).fract() as f32).min(0.999_999)
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

fn foreign_host(url: &str) -> Result<Host<'_>, Fault> {
    let fault = || Fault::new(ErrorKind::NoUrlHost, url);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_active_robots_is_as_asked() {
        for all in [1usize, 26, 250, 2500] {
            for share in [0.001, 0.09, 0.1, 0.5, 0.75, 1.0] {
                let active = (0..all).filter(|&n| f64::from(rank(n)) < share).count();
                let asked = (share * all as f64).max(1.0);
                assert!((active as f64 - asked).abs() <= 2.0, "{active} of {all} for {share}");
            }
        }
    }
}
