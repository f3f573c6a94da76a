//! The configuration of a proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use polygraph_tls::settings::ServerTls;
use polygraph_wire::auth::access::Access;

use crate::faults::Fault;
use crate::service::ServiceModel;
use crate::store::Replacement;
use crate::target::Role;

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Memory for stored replies in bytes, including heads and bookkeeping; 0: nothing is stored.
    pub cache_bytes: u64,
    /// The replacement rule.
    pub replacement: Replacement,
    /// TLS with clients; `None`: they connect without it.
    pub tls: Option<ServerTls>,
    /// The origins for which the proxy acts; requests go to them in turn, whatever host they name. Empty: it is a forward proxy.
    pub origins: Vec<SocketAddr>,
    /// Event loops, each with its own thread and listening socket; at least 1.
    pub loops: usize,
    /// Addresses of origins by name. Other names are looked up by the resolver.
    pub hosts: Vec<(String, IpAddr)>,
    /// Addresses of origins by `name:port`, which take precedence over `hosts`.
    pub servers: Vec<(String, SocketAddr)>,
    /// Maximum number of open client connections, over all event loops. Further connections are answered with `503` and
    /// closed.
    pub max_connections: usize,
    /// The model of a slower device.
    pub service: ServiceModel,
    /// Access control; `None`: everybody may use the proxy.
    pub access: Option<Access>,
    /// Injected faults, each with its share (0 to 1) of the occasions. If a fault has several shares, the last one
    /// counts.
    pub faults: Vec<(Fault, f64)>,
    /// Seed of the random numbers for `service` and faults.
    pub seed: u64,
    /// The longest time that a connection, on either side, may be idle between transactions.
    pub idle_timeout: Duration,
    /// The longest time that a client may take for a request head, from its first byte.
    pub head_timeout: Duration,
    /// The longest time that connecting to an origin may take.
    pub connect_timeout: Duration,
    /// The longest time to wait for the next bytes of an origin, or for a peer to take bytes, within a transaction.
    pub io_timeout: Duration,
}

impl Default for ProxyConfig {
    fn default() -> ProxyConfig {
        ProxyConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            cache_bytes: 256 << 20,
            replacement: Replacement::Lru,
            tls: None,
            origins: Vec::new(),
            loops: 1,
            hosts: Vec::new(),
            servers: Vec::new(),
            max_connections: 10_000,
            service: ServiceModel::default(),
            access: None,
            faults: Vec::new(),
            seed: 1,
            idle_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            io_timeout: Duration::from_secs(120),
        }
    }
}

impl ProxyConfig {
    /// What the proxy is for its clients.
    pub(crate) fn role(&self) -> Role {
        if self.origins.is_empty() { Role::Forward } else { Role::Surrogate }
    }

    /// The first problem of the settings, if there is one.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.loops == 0 {
            Some("the proxy needs at least one loop")
        } else if self.max_connections == 0 {
            Some("the proxy needs room for at least one connection")
        } else if self.faults.iter().any(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some("the share of a fault must be between 0 and 1")
        } else {
            self.service.problem()
        }
    }
}
