//! The peers of connections.

use std::fmt;
use std::net::SocketAddr;

/// The peer of a connection. Requests that go to the same peer can share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The address to which the robot connects: that of the proxy, of the device, or of the server; that of the SOCKS proxy, if this
    /// one gets the name of the server.
    pub address: SocketAddr,
    /// The visible server or foreign host for which alone the connection is, because TLS ends there or because a SOCKS proxy got its
    /// name; `None` if requests for all servers at the address can use it.
    pub server: Option<u32>,
}

impl From<SocketAddr> for Hop {
    fn from(address: SocketAddr) -> Hop {
        Hop { address, server: None }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
