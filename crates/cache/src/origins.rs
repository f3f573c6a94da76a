//! Connections to origins: names, connecting, and idle connections kept for reuse.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::config::ProxyConfig;
use crate::counters::Counters;
use crate::peer::{Peer, within};

/// How long an answer of the resolver is used; its own lifetime is not known here.
const NAME_LIFETIME: Duration = Duration::from_secs(30);
/// Known names; when there are more, all are forgotten.
const MAX_NAMES: usize = 1024;

/// The origins side of one loop.
#[derive(Debug)]
pub struct Origins {
    idle: RefCell<HashMap<SocketAddr, Vec<Idle>>>,
    idle_count: Cell<usize>,
    max_idle: usize,
    names: RefCell<HashMap<(Box<str>, u16), Name>>,
    /// Addresses that need no resolver, by name in lower case.
    hosts: HashMap<String, Vec<IpAddr>>,
    connect_timeout: Duration,
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

#[derive(Debug)]
struct Name {
    addresses: Arc<[SocketAddr]>,
    until: Instant,
}

/// A connection to an origin.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub peer: Peer,
    /// It has served a transaction before, so the origin may be closing it just now.
    pub reused: bool,
    address: SocketAddr,
    counters: Arc<Counters>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.counters.origin_connections.sub(1);
    }
}

impl Origins {
    /// Keeps up to `max_idle` idle connections.
    pub fn new(max_idle: usize, config: &ProxyConfig, counters: Arc<Counters>) -> Origins {
        let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for (name, ip) in &config.hosts {
            hosts.entry(name.to_ascii_lowercase()).or_default().push(*ip);
        }
        Origins {
            idle: RefCell::default(),
            idle_count: Cell::new(0),
            max_idle,
            names: RefCell::default(),
            hosts,
            connect_timeout: config.connect_timeout,
            counters,
        }
    }

    /// A connection to the host: an idle one if `reuse` allows and there is one, else a new one.
    ///
    /// # Errors
    /// If the name has no address or none of its addresses can be connected to.
    pub async fn connect(&self, host: &str, port: u16, reuse: bool) -> io::Result<Connection> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return self.connect_any(&[SocketAddr::new(ip, port)], reuse).await;
        }
        let addresses = self.resolve(host, port).await?;
        self.connect_any(&addresses, reuse).await
    }

    async fn connect_any(&self, addresses: &[SocketAddr], reuse: bool) -> io::Result<Connection> {
        if let Some(connection) = reuse.then(|| addresses.iter().find_map(|a| self.take_idle(a))).flatten() {
            return Ok(connection);
        }
        let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        for &address in addresses {
            outcome = within(self.connect_timeout, TcpStream::connect(address)).await.and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            if let Ok(stream) = outcome {
                self.counters.origin_connects.add(1);
                self.counters.origin_connections.add(1);
                let counters = Arc::clone(&self.counters);
                return Ok(Connection { peer: Peer::new(stream), reused: false, address, counters });
            }
        }
        outcome.and(Err(io::ErrorKind::NotFound.into()))
    }

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Arc<[SocketAddr]>> {
        let host = host.to_ascii_lowercase();
        if let Some(known) = self.hosts.get(&host) {
            return Ok(known.iter().map(|ip| SocketAddr::new(*ip, port)).collect());
        }
        let name: (Box<str>, u16) = (host.into(), port);
        let now = Instant::now();
        if let Some(known) = self.names.borrow().get(&name).filter(|known| known.until > now) {
            return Ok(Arc::clone(&known.addresses));
        }
        let found = within(self.connect_timeout, tokio::net::lookup_host((&*name.0, port))).await?;
        let addresses: Arc<[SocketAddr]> = found.collect();
        let mut names = self.names.borrow_mut();
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        names.insert(name, Name { addresses: Arc::clone(&addresses), until: now + NAME_LIFETIME });
        Ok(addresses)
    }

    /// The idle connection that was used last: the others may grow old and be closed.
    fn take_idle(&self, address: &SocketAddr) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let stack = idle.get_mut(address)?;
        while let Some(Idle { mut connection, .. }) = stack.pop() {
            self.idle_count.set(self.idle_count.get() - 1);
            if connection.peer.is_quiet() {
                connection.reused = true;
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose transaction is complete; closes it if there are too many.
    pub fn give_back(&self, connection: Connection) {
        if self.idle_count.get() >= self.max_idle {
            return;
        }
        self.idle_count.set(self.idle_count.get() + 1);
        let address = connection.address;
        self.idle.borrow_mut().entry(address).or_default().push(Idle { connection, since: Instant::now() });
    }

    /// Closes connections that have been idle for longer than `limit` or were closed by the origin.
    pub fn sweep(&self, limit: Duration) {
        let mut idle = self.idle.borrow_mut();
        let now = Instant::now();
        idle.retain(|_, stack| {
            stack.retain(|idle| now - idle.since < limit && idle.connection.peer.is_quiet());
            !stack.is_empty()
        });
        self.idle_count.set(idle.values().map(Vec::len).sum());
    }
}
