//! A proxy on one event loop, and the state that the loops of a proxy share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use polygraph_link::{Link, Nanos};
use polygraph_traffic::{Seed, Stream};
use polygraph_transport::Channel;
use polygraph_transport::tls::{ServerConfigs, TlsServer};

use crate::buffered::{BufferedConn, Buffers};
use crate::config::ProxyConfig;
use crate::content::ContentGenerator;
use crate::counters::{Counters, Snapshot};
use crate::faults::Faults;
use crate::origins::{Origins, Resolver};
use crate::service::{Service, nanos_of};
use crate::store::Store;

/// Size of buffers for request heads; a larger head makes its buffer grow.
const HEAD_BUFFER: usize = 4 * 1024;
/// Size of buffers for data of origins.
const BODY_BUFFER: usize = 64 * 1024;

/// A connection of a client, or a stream of one.
pub type Client<L> = BufferedConn<Channel<<L as Link>::Conn>>;

/// The identity of a proxy.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The name in `Via`, by which forwarding loops are detected.
    pub name: String,
    /// Makes authentication challenges and hashes of URLs unpredictable for others.
    pub secret: u64,
}

impl Identity {
    /// A random identity.
    pub fn unique() -> Identity {
        use std::hash::BuildHasher;
        let number = || std::hash::RandomState::new().hash_one(std::process::id());
        Identity { name: format!("polygraph-{:08x}", number() as u32), secret: number() }
    }
}

/// The state that all event loops of a proxy share.
pub struct Shared {
    pub(crate) config: ProxyConfig,
    pub(crate) store: Arc<Store>,
    pub(crate) service: Service,
    pub(crate) name: String,
    pub(crate) secret: u64,
    /// Recognizes contents that need not be kept.
    pub(crate) generator: Option<Box<ContentGenerator>>,
    /// TLS with clients, if the proxy has it.
    pub(crate) tls: Option<TlsServer>,
    /// Open client connections.
    open: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// A proxy that starts at `start` with an empty store. Contents for which `generator` has a recipe are not kept.
    ///
    /// # Errors
    /// The problem of the settings.
    pub fn new(
        config: ProxyConfig,
        identity: Identity,
        start: Nanos,
        generator: Option<Box<ContentGenerator>>,
    ) -> Result<Shared, String> {
        if let Some(problem) = config.problem() {
            return Err(problem.to_owned());
        }
        let own = config.listen.ip().to_string();
        let mut rng = Seed(config.seed).stream("proxy TLS", 0);
        let server =
            config.tls.as_ref().map(|tls| ServerConfigs::default().server(0, tls, 0, &own, &mut rng));
        let tls = server.transpose().map_err(|failure| failure.to_string())?;
        let Identity { name, secret } = identity;
        let store = Arc::new(Store::new(config.cache_bytes, config.replacement, secret));
        let service = Service::new(config.service.clone(), start);
        Ok(Shared { config, store, service, name, secret, generator, tls, open: AtomicU64::new(0) })
    }

    /// The sum of the counters of all event loops. It is cheap enough to be called every second.
    pub fn snapshot<'a>(&self, loops: impl IntoIterator<Item = &'a Counters>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        loops.into_iter().for_each(|counters| snapshot.add(counters));
        let store = self.store.figures();
        snapshot.client_connections = self.open.load(Relaxed);
        snapshot.store_bytes = store.bytes;
        snapshot.store_objects = store.objects;
        snapshot.evicted = store.evicted;
        snapshot.full_at = store.full_at;
        snapshot
    }
}

/// A proxy on one event loop. [`Proxy::serve`] is the entry point.
pub struct Proxy<L: Link> {
    pub(crate) link: L,
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    /// Buffers for data of clients.
    pub(crate) heads: Buffers,
    /// Buffers for data of origins.
    pub(crate) bodies: Buffers,
    pub(crate) origins: Origins<L>,
    /// A buffer in which store keys are built.
    pub(crate) key: RefCell<Vec<u8>>,
    pub(crate) faults: Option<Faults>,
    pub(crate) io_timeout: Nanos,
    /// Connections that are being refused with a reply.
    pub(crate) refusals: Cell<usize>,
    stopping: Cell<bool>,
    active: Cell<usize>,
    service_draws: RefCell<Stream>,
}

impl<L: Link> fmt::Debug for Proxy<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl<L: Link> Proxy<L> {
    /// The proxy on event loop number `index`. `resolver` finds addresses that the configuration does not name.
    pub fn new(link: L, shared: Arc<Shared>, index: usize, resolver: Box<Resolver>) -> Proxy<L> {
        let config = &shared.config;
        let counters = Arc::<Counters>::default();
        let max_idle = config.max_connections.div_ceil(config.loops);
        Proxy {
            heads: Buffers::new(HEAD_BUFFER),
            bodies: Buffers::new(BODY_BUFFER),
            origins: Origins::new(link.clone(), max_idle, config, resolver, Arc::clone(&counters)),
            key: RefCell::default(),
            faults: Faults::new(&config.faults, config.seed, index, &counters),
            io_timeout: nanos_of(config.io_timeout),
            refusals: Cell::new(0),
            stopping: Cell::new(false),
            active: Cell::new(0),
            service_draws: RefCell::new(Seed(config.seed).stream("proxy service time", index as u64)),
            link,
            counters,
            shared,
        }
    }

    /// The counters of this event loop, for [`Shared::snapshot`].
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Counts a connection that could not be accepted.
    pub fn count_accept_error(&self) {
        self.counters.accept_errors.add(1);
    }

    /// Counts clients that found the queue of the listening socket full, each as often as it tried.
    pub fn count_full_queue(&self, times: u32) {
        self.counters.queue_full.add(u64::from(times));
    }

    /// Closes connections to origins that have been idle for too long. Call it about once a second.
    pub fn sweep(&self) {
        self.origins.sweep(nanos_of(self.shared.config.idle_timeout));
    }

    /// From now on connections are closed after their transaction.
    pub fn stop(&self) {
        self.stopping.set(true);
    }

    /// True after [`Proxy::stop`].
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Transactions in progress.
    pub fn active(&self) -> usize {
        self.active.get()
    }

    /// Counts a transaction as in progress until the guard is dropped.
    pub(crate) fn begin_transaction(&self) -> impl Drop {
        struct Active<'a>(&'a Cell<usize>);
        impl Drop for Active<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.active.set(self.active.get() + 1);
        Active(&self.active)
    }

    /// Counts a client connection as open until the guard is dropped; `None` if there are too many.
    pub(crate) fn open_connection(&self) -> Option<impl Drop + use<L>> {
        struct Open(Arc<Shared>);
        impl Drop for Open {
            fn drop(&mut self) {
                self.0.open.fetch_sub(1, Relaxed);
            }
        }
        let open = Open(Arc::clone(&self.shared));
        let before = self.shared.open.fetch_add(1, Relaxed);
        (before < self.shared.config.max_connections as u64).then_some(open)
    }

    /// Whether a service model delays transactions.
    pub(crate) fn is_slowed(&self) -> bool {
        self.shared.service.is_slower()
    }

    /// Waits for the time that the service model sets for every request.
    pub(crate) async fn delay_request(&self) {
        let until = self.shared.service.enter(self.link.now(), &self.service_draws);
        self.link.sleep_until(until).await;
    }

    /// Waits for the time that the service model sets for requests that the store answers (`hit`) or for other
    /// requests.
    pub(crate) async fn delay_decided(&self, hit: bool) {
        let until = self.shared.service.decided(self.link.now(), hit, &self.service_draws);
        self.link.sleep_until(until).await;
    }

    /// Waits for the time that the service model sets for requests that are forwarded to an origin.
    pub(crate) async fn delay_miss(&self) {
        let until = self.shared.service.miss(self.link.now(), &self.service_draws);
        self.link.sleep_until(until).await;
    }
}
