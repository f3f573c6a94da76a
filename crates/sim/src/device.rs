//! Models of caching proxies: they speak HTTP as the built-in proxy does and decide by the same rules (RFC 9111), but
//! what they keep, and how long they take, is a model's.
//!
//! * [`policy`]: what stays in a cache of limited size.
//! * `store`: what is in the cache; contents that can be made again are not kept as bytes.
//! * `client`: a client's connection; `forward`: what is fetched from an origin.
//! * `message`: reading messages from connections.
//! * `service`: how long requests take.

mod client;
mod forward;
mod message;
pub mod policy;
mod service;
mod store;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_traffic::Catalog;
use rustc_hash::FxHashMap;

use self::forward::Origins;
use self::policy::{Ages, Ideal, Policy, S3Fifo, TinyLfu};
use self::service::Service;
use self::store::Store;
use crate::link::VirtualLink;

/// Connections may be idle for so long.
const IDLE: Nanos = 60 * SECOND;
/// Within a transaction, the next bytes may take so long.
const PATIENCE: Nanos = 120 * SECOND;
/// Its name in `Via`.
const NAME: &str = "model";

/// What a device keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Everything.
    Ideal,
    /// What was asked for last, up to so many bytes.
    Lru(u64),
    /// What came last.
    Fifo(u64),
    /// See [`policy::S3Fifo`].
    S3Fifo(u64),
    /// See [`policy::TinyLfu`].
    TinyLfu(u64),
}

impl Cache {
    /// Bytes that it may keep, bookkeeping included; `None` without a limit.
    pub fn capacity(self) -> Option<u64> {
        match self {
            Cache::Ideal => None,
            Cache::Lru(bytes) | Cache::Fifo(bytes) | Cache::S3Fifo(bytes) | Cache::TinyLfu(bytes) => {
                Some(bytes)
            }
        }
    }

    fn policy(self) -> Box<dyn Policy> {
        match self {
            Cache::Ideal => Box::new(Ideal::default()),
            Cache::Lru(bytes) => Box::new(Ages::lru(bytes)),
            Cache::Fifo(bytes) => Box::new(Ages::fifo(bytes)),
            Cache::S3Fifo(bytes) => Box::new(S3Fifo::new(bytes)),
            Cache::TinyLfu(bytes) => Box::new(TinyLfu::new(bytes)),
        }
    }
}

/// A model of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// What it keeps.
    pub cache: Cache,
    /// Time in nanoseconds that it takes for a hit ...
    pub hit: Nanos,
    /// ... and for everything else, beside what the origin takes.
    pub miss: Nanos,
    /// Requests per second that it can serve, one after the other; `None`: any number.
    pub rate: Option<f64>,
}

impl Model {
    /// A device that takes no time.
    pub fn instant(cache: Cache) -> Model {
        Model { cache, hit: 0, miss: 0, rate: None }
    }
}

/// What a device has done and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests that could be read.
    pub requests: u64,
    /// Answered from the cache.
    pub hits: u64,
    /// Answered from the cache after the origin said that the reply was still good.
    pub validated: u64,
    /// Replies that an origin could not give.
    pub origin_errors: u64,
    /// Objects that it holds ...
    pub objects: u64,
    /// ... and their bytes, bookkeeping included.
    pub bytes: u64,
    /// Objects that were pushed out to make room.
    pub evicted: u64,
    /// When the first of them was: the cache was full.
    pub full_at: Option<Nanos>,
}

/// A device on a virtual loop. Clones are handles to the same device.
#[derive(Clone)]
pub struct Device(Rc<Inner>);

struct Inner {
    link: VirtualLink,
    store: RefCell<Store>,
    service: Service,
    origins: Origins,
    /// Addresses of origins that have names.
    hosts: FxHashMap<String, Vec<IpAddr>>,
    /// Where the servers are that clients know as `host:port`.
    servers: FxHashMap<String, SocketAddr>,
    figures: Cell<Figures>,
}

impl Device {
    /// Starts a device that listens at `addresses`. Its clients ask for objects of `catalog`, whose contents it need not keep because
    /// they can be made again; `hosts` are names of origins and their addresses, `servers` where the servers are that
    /// clients know as `host:port`, which need not have the port of the name.
    pub fn start(
        link: &VirtualLink,
        addresses: &[SocketAddr],
        model: Model,
        catalog: Catalog,
        hosts: &[(String, Vec<IpAddr>)],
        servers: &[(String, SocketAddr)],
    ) -> Device {
        let device = Device(Rc::new(Inner {
            link: link.clone(),
            store: RefCell::new(Store::new(model.cache, catalog)),
            service: Service::new(model),
            origins: Origins::default(),
            hosts: hosts.iter().map(|(name, ips)| (name.to_ascii_lowercase(), ips.clone())).collect(),
            servers: servers.iter().map(|(name, at)| (name.to_ascii_lowercase(), *at)).collect(),
            figures: Cell::default(),
        }));
        for address in addresses {
            let (serving, spawning) = (device.clone(), link.clone());
            link.listen(*address, move |conn, _| spawning.spawn(client::serve(serving.clone(), conn)));
        }
        link.spawn(device.clone().sweep());
        device
    }

    /// What it has done until now.
    pub fn figures(&self) -> Figures {
        let store = self.0.store.borrow();
        let (objects, bytes) = store.size();
        Figures { objects, bytes, evicted: store.evicted, full_at: store.full_at, ..self.0.figures.get() }
    }

    fn count(&self, add: impl FnOnce(&mut Figures)) {
        let mut figures = self.0.figures.get();
        add(&mut figures);
        self.0.figures.set(figures);
    }

    fn now(&self) -> Nanos {
        self.0.link.now()
    }

    /// Time of day in milliseconds.
    fn now_ms(&self) -> u64 {
        let whole = self.0.link.unix_seconds() as u64;
        whole * 1000 + self.now() % SECOND / 1_000_000
    }

    /// Closes connections to origins that nobody has used for long.
    async fn sweep(self) {
        loop {
            self.0.link.sleep_until(self.now() + SECOND).await;
            self.0.origins.sweep(self.now());
        }
    }
}
