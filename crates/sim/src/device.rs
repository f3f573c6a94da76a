//! Simulated devices: the built-in proxy on a virtual loop, with the capacity, replacement policy and speed of another
//! device. Contents that the catalog of a test can generate are not kept in memory.

mod content;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

pub use polygraph_cache::Snapshot;
use polygraph_cache::{Identity, Proxy, ProxyConfig, Replacement, ServiceModel, Shared};
use polygraph_link::{Link, Nanos, SECOND};
use polygraph_traffic::{Catalog, Distr};

use crate::link::VirtualLink;

/// The name of simulated devices in `Via`.
const NAME: &str = "model";

/// The storage model of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// An unlimited cache: every reply that may be stored.
    Ideal,
    /// LRU: the most recently used replies, up to this many bytes.
    Lru(u64),
    /// FIFO: the most recently stored replies, up to this many bytes.
    Fifo(u64),
}

impl Cache {
    /// Size of the store in bytes, including bookkeeping; `None` without a limit.
    pub fn capacity(self) -> Option<u64> {
        match self {
            Cache::Ideal => None,
            Cache::Lru(bytes) | Cache::Fifo(bytes) => Some(bytes),
        }
    }
}

/// A model of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// The storage model.
    pub cache: Cache,
    /// Time for a hit in nanoseconds.
    pub hit: Nanos,
    /// Time for all other requests in nanoseconds, in addition to the time of the origin.
    pub miss: Nanos,
    /// Maximum number of requests per second, served one after the other; `None`: unlimited.
    pub rate: Option<f64>,
}

impl Model {
    /// A device without service times.
    pub fn instant(cache: Cache) -> Model {
        Model { cache, hit: Nanos::ZERO, miss: Nanos::ZERO, rate: None }
    }

    fn config(&self) -> ProxyConfig {
        let latency =
            |time: Nanos| (time > Nanos::ZERO).then_some(Distr::Const(time.as_f64() / SECOND.as_f64()));
        ProxyConfig {
            cache_bytes: self.cache.capacity().unwrap_or(u64::MAX),
            replacement: match self.cache {
                Cache::Fifo(_) => Replacement::Fifo,
                Cache::Ideal | Cache::Lru(_) => Replacement::Lru,
            },
            max_connections: usize::MAX,
            service: ServiceModel {
                work: self.rate.map(ServiceModel::rate),
                hit_latency: latency(self.hit),
                miss_latency: latency(self.miss),
                ..ServiceModel::default()
            },
            ..ProxyConfig::default()
        }
    }
}

/// A device on a virtual loop. Clones are handles to the same device.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
    proxy: Rc<Proxy<VirtualLink>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Device {
    /// Starts a device that listens at `addresses`. Its clients request objects of `catalog`. `hosts` are names of
    /// origins and their addresses; `servers` are the addresses of servers that clients know as `host:port`; an
    /// address may have another port.
    pub fn start(
        link: &VirtualLink,
        addresses: &[SocketAddr],
        model: Model,
        catalog: Catalog,
        hosts: &[(String, Vec<IpAddr>)],
        servers: &[(String, SocketAddr)],
    ) -> Device {
        let pairs = |(name, ips): &(String, Vec<IpAddr>)| {
            ips.iter().map(|ip| (name.clone(), *ip)).collect::<Vec<_>>()
        };
        let hosts = hosts.iter().flat_map(pairs).collect();
        let config = ProxyConfig { hosts, servers: servers.to_vec(), ..model.config() };
        let identity = Identity { name: NAME.to_owned(), secret: 0 };
        let generator = content::generator(catalog);
        let shared = Shared::new(config, identity, link.now(), Some(generator));
        let shared = Arc::new(shared.expect("settings of a model make sense"));
        Device::run(link, addresses, shared)
    }

    /// Runs a proxy with any settings, as [`Device::start`] does for a model.
    pub fn run(link: &VirtualLink, addresses: &[SocketAddr], shared: Arc<Shared>) -> Device {
        // There are no names other than the configured ones.
        let resolver = |_: &str, _| Box::pin(ready(Err(io::ErrorKind::NotFound.into()))) as _;
        let proxy = Rc::new(Proxy::new(link.clone(), Arc::clone(&shared), 0, Box::new(resolver)));
        for address in addresses {
            let (serving, spawning) = (Rc::clone(&proxy), link.clone());
            link.listen(*address, move |conn, _| spawning.spawn(Rc::clone(&serving).serve(conn)));
        }
        let (sweeping, clock) = (Rc::clone(&proxy), link.clone());
        link.spawn(async move {
            loop {
                clock.sleep_until(clock.now() + SECOND).await;
                sweeping.sweep();
            }
        });
        Device { shared, proxy }
    }

    /// The counters of the proxy so far.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot([&**self.proxy.counters()])
    }

    /// The proxy itself.
    pub fn proxy(&self) -> &Proxy<VirtualLink> {
        &self.proxy
    }
}
