//! Connections to origins: names, connecting, and idle connections kept for reuse.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_wire::decimal;
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::buffered::BufferedConn;
use crate::config::ProxyConfig;
use crate::counters::Counters;
use crate::service::nanos_of;

/// How long the addresses of a name are used; their time to live is unknown here.
const NAME_LIFETIME: Nanos = Nanos::from_secs(30);
/// Maximum number of names with cached addresses; when it is exceeded, all are removed.
const MAX_NAMES: usize = 1024;

/// Finds the addresses of a host and port that are not configured.
pub type Resolver = dyn Fn(&str, u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>;

/// The connections of one event loop to origins.
pub struct Origins<L: Link> {
    link: L,
    idle: RefCell<IdleConnections<L::Conn>>,
    idle_count: Cell<usize>,
    max_idle: usize,
    /// No idle connection has been idle for too long before.
    next_timeout: Cell<Nanos>,
    resolver: Box<Resolver>,
    /// Addresses found by the resolver, by name and port.
    resolved: RefCell<FxHashMap<(Box<str>, u16), ResolvedName>>,
    /// Configured addresses, by name in lower case.
    hosts: FxHashMap<String, Vec<IpAddr>>,
    /// Configured addresses, by `name:port` in lower case.
    servers: FxHashMap<Vec<u8>, SocketAddr>,
    /// Memory for the name of a server.
    name: RefCell<Vec<u8>>,
    /// The origins of a surrogate, which are used in turn.
    own: Vec<SocketAddr>,
    turn: Cell<usize>,
    connect_timeout: Nanos,
    io_timeout: Nanos,
    counters: Arc<Counters>,
}

/// Idle connections by address.
struct IdleConnections<C> {
    numbers: FxHashMap<SocketAddr, usize>,
    addresses: Slab<IdleAddress<C>>,
}

/// The idle connections to an address, the last used one last.
struct IdleAddress<C> {
    address: SocketAddr,
    connections: Vec<IdleConnection<C>>,
}

struct IdleConnection<C> {
    connection: Connection<C>,
    since: Nanos,
}

struct ResolvedName {
    addresses: Arc<[SocketAddr]>,
    until: Nanos,
}

/// A connection to an origin.
pub struct Connection<C> {
    /// The connection itself.
    pub stream: BufferedConn<C>,
    /// Whether it has served a transaction before, so that the origin may be closing it.
    pub is_reused: bool,
    address: SocketAddr,
    counters: Arc<Counters>,
}

impl<C> Drop for Connection<C> {
    fn drop(&mut self) {
        self.counters.origin_connections.sub(1);
    }
}

/// Why a request could not be sent.
#[derive(Debug)]
pub enum SendError {
    /// The origin has no address, or none of its addresses accepts connections.
    Unreachable,
    /// The origin could not be reached in time.
    Timeout,
    /// The origin closed the reused connection.
    Outdated,
}

impl<L: Link> Origins<L> {
    /// Keeps up to `max_idle` idle connections.
    pub fn new(
        link: L,
        max_idle: usize,
        config: &ProxyConfig,
        resolver: Box<Resolver>,
        counters: Arc<Counters>,
    ) -> Origins<L> {
        let mut hosts: FxHashMap<String, Vec<IpAddr>> = FxHashMap::default();
        for (name, ip) in &config.hosts {
            hosts.entry(name.to_ascii_lowercase()).or_default().push(*ip);
        }
        let servers = config.servers.iter();
        let servers = servers.map(|(name, at)| (name.to_ascii_lowercase().into_bytes(), *at)).collect();
        let (numbers, addresses) = (FxHashMap::default(), Slab::new());
        Origins {
            link: link.separate(),
            idle: RefCell::new(IdleConnections { numbers, addresses }),
            idle_count: Cell::new(0),
            max_idle,
            next_timeout: Cell::new(Nanos::ZERO),
            resolver,
            resolved: RefCell::default(),
            hosts,
            servers,
            name: RefCell::default(),
            own: config.origins.clone(),
            turn: Cell::new(0),
            connect_timeout: nanos_of(config.connect_timeout),
            io_timeout: nanos_of(config.io_timeout),
            counters,
        }
    }

    /// Sends the head of a request to a host, or to one of a surrogate's origins, and returns the connection: an idle one if `reuse` allows and there is
    /// one, otherwise a new one.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(
        &self,
        host: &str,
        port: u16,
        reuse: bool,
        head: &[u8],
    ) -> Result<Connection<L::Conn>, SendError> {
        if !self.own.is_empty() {
            let turn = self.turn.replace(self.turn.get().wrapping_add(1)) % self.own.len();
            return self.send_to_any(&[self.own[turn]], reuse, head).await;
        }
        if let Some(address) = self.server(host, port) {
            return self.send_to_any(&[address], reuse, head).await;
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            return self.send_to_any(&[SocketAddr::new(ip, port)], reuse, head).await;
        }
        let addresses = self.resolve(host, port).await.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => SendError::Timeout,
            _ => SendError::Unreachable,
        })?;
        self.send_to_any(&addresses, reuse, head).await
    }

    /// The address of a server that the configuration names.
    fn server(&self, host: &str, port: u16) -> Option<SocketAddr> {
        if self.servers.is_empty() {
            return None;
        }
        let mut name = self.name.borrow_mut();
        name.clear();
        name.extend_from_slice(host.as_bytes());
        name.make_ascii_lowercase();
        name.push(b':');
        decimal::write(&mut name, port.into());
        self.servers.get(name.as_slice()).copied()
    }

    async fn send_to_any(
        &self,
        addresses: &[SocketAddr],
        reuse: bool,
        head: &[u8],
    ) -> Result<Connection<L::Conn>, SendError> {
        if reuse && let Some(mut idle) = addresses.iter().find_map(|address| self.take_idle(address)) {
            idle.stream.conn.set_deadline(Some(self.link.now() + self.io_timeout));
            return match send_all(&mut idle.stream.conn, head).await {
                Ok(()) => Ok(idle),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(SendError::Timeout),
                Err(_) => Err(SendError::Outdated),
            };
        }
        let mut failure = SendError::Unreachable;
        for &address in addresses {
            let Ok(mut conn) = self.link.connect(None, address) else { continue };
            // The connection is established when it accepts the head.
            conn.set_deadline(Some(self.link.now() + self.connect_timeout));
            match send_all(&mut conn, head).await {
                Ok(()) => {
                    self.counters.origin_connects.add(1);
                    self.counters.origin_connections.add(1);
                    let (stream, counters) = (BufferedConn::new(conn), Arc::clone(&self.counters));
                    return Ok(Connection { stream, is_reused: false, address, counters });
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => failure = SendError::Timeout,
                Err(_) => failure = SendError::Unreachable,
            }
        }
        Err(failure)
    }

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Arc<[SocketAddr]>> {
        let host = host.to_ascii_lowercase();
        if let Some(known) = self.hosts.get(&host) {
            return Ok(known.iter().map(|ip| SocketAddr::new(*ip, port)).collect());
        }
        let name: (Box<str>, u16) = (host.into(), port);
        let now = self.link.now();
        if let Some(known) = self.resolved.borrow().get(&name).filter(|known| known.until > now) {
            return Ok(Arc::clone(&known.addresses));
        }
        let limit = self.link.sleep_until(now + self.connect_timeout);
        let found = polygraph_link::run_until(limit, (self.resolver)(&name.0, port)).await;
        let addresses: Arc<[SocketAddr]> =
            found.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?.into();
        let mut resolved = self.resolved.borrow_mut();
        if resolved.len() >= MAX_NAMES {
            resolved.clear();
        }
        resolved.insert(name, ResolvedName { addresses: Arc::clone(&addresses), until: now + NAME_LIFETIME });
        Ok(addresses)
    }

    /// The most recently used idle connection, so that the others can time out.
    fn take_idle(&self, address: &SocketAddr) -> Option<Connection<L::Conn>> {
        let mut idle = self.idle.borrow_mut();
        let number = *idle.numbers.get(address)?;
        let connections = &mut idle.addresses[number].connections;
        while let Some(IdleConnection { mut connection, .. }) = connections.pop() {
            self.idle_count.set(self.idle_count.get() - 1);
            if connection.stream.is_quiet() {
                connection.is_reused = true;
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose transaction is complete; closes it if there are too many.
    pub fn give_back(&self, mut connection: Connection<L::Conn>) {
        if self.idle_count.get() >= self.max_idle {
            return;
        }
        self.idle_count.set(self.idle_count.get() + 1);
        connection.stream.conn.set_deadline(None);
        let (address, since) = (connection.address, self.link.now());
        let IdleConnections { numbers, addresses } = &mut *self.idle.borrow_mut();
        let new = || addresses.insert(IdleAddress { address, connections: Vec::new() });
        let number = *numbers.entry(address).or_insert_with(new);
        connection.stream.conn.note_idle(number as u32);
        addresses[number].connections.push(IdleConnection { connection, since });
    }

    /// Closes connections that have been idle for `limit` or were closed by the origin.
    pub fn sweep(&self, limit: Nanos) {
        let now = self.link.now();
        let mut idle = self.idle.borrow_mut();
        match self.link.take_disturbed() {
            Some(disturbed) if now < self.next_timeout.get() => {
                disturbed
                    .iter()
                    .for_each(|&number| self.sweep_address(&mut idle, number as usize, limit, true));
            }
            disturbed => {
                let numbers: Vec<_> = idle.numbers.values().copied().collect();
                for number in numbers {
                    let is_disturbed = |numbers: &Vec<u32>| numbers.binary_search(&(number as u32)).is_ok();
                    self.sweep_address(&mut idle, number, limit, disturbed.as_ref().is_none_or(is_disturbed));
                }
                let oldest = |(_, address): (_, &IdleAddress<_>)| Some(address.connections.first()?.since);
                let oldest = idle.addresses.iter().filter_map(oldest).min();
                self.next_timeout.set(oldest.unwrap_or(now) + limit);
            }
        }
    }

    /// As [`Origins::sweep`] for one address. Without `disturbed`, the origin has closed none.
    fn sweep_address(
        &self,
        idle: &mut IdleConnections<L::Conn>,
        number: usize,
        limit: Nanos,
        disturbed: bool,
    ) {
        let now = self.link.now();
        let Some(IdleAddress { address, connections }) = idle.addresses.get_mut(number) else { return };
        let before = connections.len();
        connections
            .retain_mut(|idle| now - idle.since < limit && (!disturbed || idle.connection.stream.is_quiet()));
        self.idle_count.set(self.idle_count.get() - (before - connections.len()));
        if connections.is_empty() {
            idle.numbers.remove(address);
            idle.addresses.remove(number);
        }
    }
}
