//! The peers of connections.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// The peer of a connection. Requests that go to the same peer can share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The address to which the robot connects: that of the proxy, of the device, or of the server; that of the SOCKS proxy, if this
    /// one gets the name of the server.
    pub address: SocketAddr,
    /// The visible server or foreign host for which alone the connection is, because TLS ends there or because a SOCKS proxy got its
    /// name; `None` if requests for all servers at the address can use it.
    pub server: Option<u32>,
    /// The UDP port at which an alternative service of the server speaks HTTP/3 (RFC 7838), if the request goes there.
    pub alternative: Option<NonZeroU16>,
}

impl Hop {
    /// The address to which a connection is opened.
    pub fn target(self) -> SocketAddr {
        match self.alternative {
            Some(port) => SocketAddr::new(self.address.ip(), port.get()),
            None => self.address,
        }
    }

    /// The peer without an alternative service.
    pub fn of_origin(self) -> Hop {
        Hop { alternative: None, ..self }
    }
}

impl From<SocketAddr> for Hop {
    fn from(address: SocketAddr) -> Hop {
        Hop { address, server: None, alternative: None }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target().fmt(f)
    }
}
