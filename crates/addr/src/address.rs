//! One address: `[interface::]host[:port][/subnet]`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Where an address points: an IP address or a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address; written in square brackets.
    V6(Ipv6Addr),
    /// A domain name, also with a leading `*.` or `.` for dynamic names.
    Name(Arc<str>),
}

impl Host {
    /// The IP address, if this is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Host::V4(ip) => Some(IpAddr::V4(*ip)),
            Host::V6(ip) => Some(IpAddr::V6(*ip)),
            Host::Name(_) => None,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Host::V4(ip),
            IpAddr::V6(ip) => Host::V6(ip),
        }
    }
}

/// Writes the host as it appears in an address: IPv6 in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::V4(ip) => write!(f, "{ip}"),
            Host::V6(ip) => write!(f, "[{ip}]"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// One address: host, port, and the interface and subnet of its alias.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr {
    /// The network interface that carries the alias (`lo0` in `lo0::10.1.0.7`).
    pub interface: Option<Arc<str>>,
    /// IP address or name.
    pub host: Host,
    /// TCP or UDP port, 1 to 65535.
    pub port: Option<u16>,
    /// Prefix length of the alias: 1 to 32 (IPv4) or 128 (IPv6); never present with a name.
    pub subnet: Option<u8>,
}

impl Addr {
    /// An address without interface, port and subnet.
    pub fn new(host: Host) -> Self {
        Addr { interface: None, host, port: None, subnet: None }
    }

    /// The same address with another port, or none.
    pub fn with_port(self, port: Option<u16>) -> Self {
        Addr { port, ..self }
    }
}

impl From<IpAddr> for Addr {
    fn from(ip: IpAddr) -> Self {
        Addr::new(ip.into())
    }
}

/// Writes plain text. A name that happens to look like a range (`x.1-3.y`) is not escaped; to write text that
/// can be read back, convert the address to an [`AddrRange`](crate::AddrRange) first.
impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, "{interface}::")?;
        }
        write!(f, "{}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(subnet) = self.subnet {
            write!(f, "/{subnet}")?;
        }
        Ok(())
    }
}
