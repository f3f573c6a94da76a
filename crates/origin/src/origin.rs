//! The servers of one event loop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::Link;
use polygraph_stats::servers::MAX_SERVERS;
use polygraph_stats::{Recorder, ServerStats};
use polygraph_tls::failure::TlsFailure;
use polygraph_traffic::groups::{Groups, PeerStatus, PhaseStatus, StatusRule};
use polygraph_traffic::{ContentKind, Fingerprint, Oid, Random, Stream, UniqId};
use polygraph_transport::tls::{ServerConfigs, TlsServer};
use polygraph_wire::marks::Marks;
use polygraph_wire::uri;

use crate::names::ServerNames;
use crate::settings::{OriginConfig, ServerProfile, ServerSpec};

/// What statistics say about a server besides its counts.
#[derive(Debug)]
struct KnownServer {
    address: String,
    bad_certificate: bool,
}

/// All origin servers of one event loop, and what they share.
#[derive(Debug)]
pub struct Origin<L: Link> {
    pub(crate) link: L,
    pub(crate) config: Arc<OriginConfig>,
    pub(crate) recorder: Recorder,
    /// The fingerprint of the catalog.
    pub(crate) contents: Fingerprint,
    /// The names of all servers of the test.
    pub(crate) all_names: ServerNames,
    /// Random numbers for choices that depend on nothing else.
    pub(crate) rng: RefCell<Stream>,
    /// The head of the reply that is being sent.
    pub(crate) head: RefCell<Vec<u8>>,
    /// A buffer for comparing paths.
    pub(crate) scratch: RefCell<Vec<u8>>,
    /// Configurations of TLS.
    tls: RefCell<ServerConfigs>,
    special: Cell<f64>,
    /// The servers on this loop, by their places.
    servers: RefCell<Vec<KnownServer>>,
    health_checks: Cell<u64>,
    /// Connections accepted so far.
    accepted: Cell<u64>,
    /// The phase status that replies report.
    phase_status: Cell<PhaseStatus>,
    /// The phase statuses that clients have reported.
    clients: RefCell<Groups>,
}

impl<L: Link> Origin<L> {
    /// The servers of the loop with number `index` among all server loops of the test.
    pub fn new(link: L, config: Arc<OriginConfig>, index: u64, recorder: Recorder) -> Rc<Origin<L>> {
        Rc::new(Origin {
            rng: RefCell::new(config.seed.stream("server", index)),
            head: RefCell::default(),
            scratch: RefCell::default(),
            tls: RefCell::default(),
            special: Cell::new(1.0),
            servers: RefCell::default(),
            health_checks: Cell::new(0),
            accepted: Cell::new(0),
            phase_status: Cell::default(),
            clients: RefCell::new(Groups::new(StatusRule::Highest)),
            contents: Fingerprint::of(&config.catalog),
            // Names of servers with TLS have their ports, too.
            all_names: ServerNames::new(&config.all_names, false),
            link,
            config,
            recorder,
        })
    }

    /// The TLS of a server of this loop, if it has any.
    pub(crate) fn tls_of(&self, spec: &ServerSpec) -> Option<Result<TlsServer, TlsFailure>> {
        let profile = &self.config.profiles[spec.profile];
        let mut rng = self.config.seed.stream("tls server", spec.number);
        let wrap = profile.tls.draw_index(&mut rng)?;
        let host =
            uri::host_port(spec.address.as_bytes()).and_then(|(host, _)| std::str::from_utf8(host).ok());
        let own = host.unwrap_or(&spec.address).trim_matches(['[', ']']);
        let key = spec.profile << 16 | wrap;
        let settings = &profile.tls.items()[wrap];
        Some(self.tls.borrow_mut().server(key, settings, spec.number as usize, own, &mut rng))
    }

    /// Adds a server of this loop. Returns its place among them.
    pub(crate) fn register_server(&self, spec: &ServerSpec) -> usize {
        let bad_certificate = self.config.profiles[spec.profile].certificate_fault().is_some();
        let mut servers = self.servers.borrow_mut();
        servers.push(KnownServer { address: spec.address.clone(), bad_certificate });
        servers.len() - 1
    }

    /// Counts for a server of this loop, unless there are too many of them.
    pub(crate) fn count_at(&self, place: usize, count: impl FnOnce(&mut ServerStats)) {
        let servers = self.servers.borrow();
        if servers.len() <= MAX_SERVERS {
            let known = &servers[place];
            self.recorder.with(|block| {
                let stats = block.servers.at_mut(place, &known.address);
                stats.bad_certificate = known.bad_certificate;
                count(stats);
            });
        }
    }

    /// Sets the share (0 to 1) of requests that get the configured special replies. The servers count as alive from
    /// the first call on.
    pub fn set_special(&self, factor: f64) {
        self.special.set(factor);
        let (alive, now) = (self.servers.borrow().len(), self.link.now());
        if alive <= MAX_SERVERS {
            // A server that gets no request is counted, too.
            (0..alive).for_each(|place| self.count_at(place, |_| {}));
        }
        let alive = alive as u64;
        self.recorder.with(|block| {
            if block.populus.last != alive {
                block.populus.set(now, alive);
            }
        });
    }

    /// Sets the phase status that replies report from now on.
    pub fn set_phase_status(&self, phase_status: PhaseStatus) {
        self.phase_status.set(phase_status);
    }

    /// The phase statuses that clients have reported.
    pub fn clients(&self) -> Vec<PeerStatus> {
        self.clients.borrow().statuses().to_vec()
    }

    /// Records the phase status in a request.
    pub(crate) fn note_phases(&self, marks: &Marks) {
        if let (Some(xact), Some(position)) = (marks.xact, marks.sync_position) {
            let (group, waits) = (xact.group, marks.sync_waits);
            let status = PeerStatus {
                group,
                position,
                waits,
                at: self.link.now().as_u64(),
                gone: None,
                replaced: false,
            };
            // A group beyond the limit is none of this test.
            let _ = self.clients.borrow_mut().record(status);
        }
    }

    /// The phase fields of the reply to a request with these marks: the least known position, and a group that was
    /// given up.
    pub(crate) fn phase_fields(&self, marks: &Marks) -> Option<(u64, Option<UniqId>)> {
        marks.xact.zip(marks.sync_position)?;
        let phase_status = self.phase_status.get();
        // Only this loop knows a client that has just appeared.
        let least =
            self.clients.borrow().least().map_or(phase_status.least, |least| least.min(phase_status.least));
        Some((least, phase_status.gone))
    }

    /// The number of health checks so far. They also count as transactions.
    pub fn health_checks(&self) -> u64 {
        self.health_checks.get()
    }

    /// The number of the connection that is accepted now, from 1.
    pub(crate) fn number_connection(&self) -> u64 {
        self.accepted.set(self.accepted.get() + 1);
        self.accepted.get()
    }

    pub(crate) fn special(&self) -> f64 {
        self.special.get()
    }

    pub(crate) fn note_health_check(&self) {
        self.health_checks.set(self.health_checks.get() + 1);
    }

    /// A random object for a request that does not determine one, in its own world.
    pub(crate) fn any_object(&self, profile: &ServerProfile) -> Oid {
        let mut rng = self.rng.borrow_mut();
        let (time, mix, counter) = (rng.bits() as u32, rng.bits() as u32, rng.bits() as u32);
        let kind = profile.contents.draw(&mut *rng).copied().unwrap_or(ContentKind::FIRST);
        let world = UniqId { time: time >> 1, mix: mix >> 1, counter: counter >> 1 & !1 };
        Oid { world, kind, name: rng.below(1 << 32) | 1 }
    }
}
