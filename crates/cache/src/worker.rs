//! What all connections of one loop share.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use polygraph_traffic::{Seed, Stream};

use crate::config::ProxyConfig;
use crate::counters::Counters;
use crate::faults::Faults;
use crate::origins::Origins;
use crate::peer::Buffers;
use crate::service::Service;
use crate::store::Store;

/// Room for a usual request head; larger ones make their buffer grow.
const HEAD_BUFFER: usize = 4 * 1024;
/// Room for what an origin sends at a time.
const BODY_BUFFER: usize = 32 * 1024;

/// What all loops of a proxy share.
#[derive(Debug)]
pub struct Common {
    /// The settings.
    pub config: ProxyConfig,
    /// The cache.
    pub store: Arc<Store>,
    /// The slower device that the proxy poses as.
    pub service: Service,
    /// The name in `Via`, different for each proxy so that loops are seen.
    pub name: String,
    /// Makes challenges that no other proxy makes.
    pub secret: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Worker {
    /// Shared with the other loops.
    pub common: Arc<Common>,
    /// This loop's counters.
    pub counters: Arc<Counters>,
    /// Buffers for what clients send.
    pub heads: Buffers,
    /// Buffers for what origins send.
    pub bodies: Buffers,
    /// Connections to origins.
    pub origins: Origins,
    /// Where keys are put together.
    pub key: RefCell<Vec<u8>>,
    /// The proxy is being stopped: connections close after their transaction.
    pub stopping: Cell<bool>,
    /// Transactions under way.
    pub active: Cell<usize>,
    /// What is done wrongly on purpose.
    pub faults: Option<Faults>,
    delays: RefCell<Stream>,
}

impl Worker {
    /// For loop number `index`.
    pub fn new(common: Arc<Common>, counters: Arc<Counters>, index: usize) -> Worker {
        let config = &common.config;
        let max_idle = config.max_connections.div_ceil(config.loops);
        Worker {
            heads: Buffers::new(HEAD_BUFFER),
            bodies: Buffers::new(BODY_BUFFER),
            origins: Origins::new(max_idle, config, Arc::clone(&counters)),
            key: RefCell::default(),
            stopping: Cell::new(false),
            active: Cell::new(0),
            faults: Faults::new(&config.faults, config.seed, index, &counters),
            delays: RefCell::new(Seed(config.seed).stream("proxy service time", index as u64)),
            counters,
            common,
        }
    }

    /// A worker with a small store, for tests of what needs no sockets.
    #[cfg(test)]
    pub fn for_tests() -> Worker {
        use crate::service::ServiceModel;
        let common = Common {
            config: ProxyConfig::default(),
            store: Arc::new(Store::new(100_000)),
            service: Service::new(ServiceModel::default(), Instant::now()),
            name: "me".to_owned(),
            secret: 1,
        };
        Worker::new(Arc::new(common), Arc::default(), 0)
    }

    /// Whether a service model delays transactions.
    pub fn is_slowed(&self) -> bool {
        self.common.service.is_slower()
    }

    /// Waits as long as the service model says for every request.
    pub async fn serve_slowly(&self) {
        let until = self.common.service.enter(Instant::now(), &self.delays);
        tokio::time::sleep_until(until.into()).await;
    }

    /// Waits as long as the service model says for requests that an origin is asked for.
    pub async fn miss_slowly(&self) {
        let until = self.common.service.miss(Instant::now(), &self.delays);
        tokio::time::sleep_until(until.into()).await;
    }

    /// Counts a transaction as under way until the guard is dropped.
    pub fn begin(&self) -> impl Drop {
        struct Active<'a>(&'a Cell<usize>);
        impl Drop for Active<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.active.set(self.active.get() + 1);
        Active(&self.active)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
