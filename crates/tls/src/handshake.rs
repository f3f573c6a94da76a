//! What a handshake agreed on.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::Nanos;
use polygraph_stats::tls::TlsStats;

use crate::names::Version;
use crate::staple::Staple;

/// The peer to which a session belongs: an address, and the visible server behind it.
pub type Peer = (SocketAddr, Option<u32>);

/// The handshake that a client wants.
#[derive(Clone, Copy, Debug)]
pub struct TlsPeer<'a> {
    /// With whom.
    pub peer: Peer,
    /// The name for which the certificate of the peer must be valid.
    pub name: &'a str,
    /// Whether the client offers to resume a session.
    pub resume: bool,
    /// The only application protocol that the client accepts (RFC 7301); `None`: those of the settings, or none.
    pub protocol: Option<&'static str>,
}

/// How much of a handshake was necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeKind {
    /// The whole handshake, with certificates.
    Full,
    /// An earlier session was resumed.
    Resumed,
    /// An earlier session was resumed, and the peer accepted data that were sent before the handshake was complete.
    Early,
}

/// The facts of a complete handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// How much of it was necessary.
    pub kind: HandshakeKind,
    /// Whether this side is a client and offered to resume a session.
    pub offered: bool,
    /// Whether early data were sent that the server ignored; they were sent again.
    pub early_refused: bool,
    /// The version of the protocol.
    pub version: Option<Version>,
    /// The registered number of the cipher suite.
    pub cipher: u16,
    /// The registered number of the group; `None` for a resumed session without a new key exchange.
    pub group: Option<u16>,
    /// The application protocol, if one was negotiated.
    pub alpn: Option<Vec<u8>>,
    /// The issuer of the peer's certificate, if it presented one in this handshake.
    pub issuer: Option<String>,
    /// What the OCSP response says that came with the certificate, if one came (RFC 6066, section 8).
    pub staple: Option<Staple>,
    /// When the handshake was complete.
    pub completed: Nanos,
}

/// Where the facts of a handshake appear when it is complete. Copies share them, so whoever passes a connection on while early data
/// are on their way can take them later.
#[derive(Clone, Debug, Default)]
pub struct HandshakeFacts(Rc<RefCell<Option<Handshake>>>);

impl HandshakeFacts {
    /// The handshake is complete.
    pub fn put(&self, handshake: Handshake) {
        self.0.replace(Some(handshake));
    }

    /// The facts, once after the handshake is complete.
    pub fn take(&self) -> Option<Handshake> {
        // Every transaction asks, nearly always in vain, and the facts are large.
        if self.0.borrow().is_none() {
            return None;
        }
        self.0.take()
    }
}

impl Handshake {
    /// Counts a handshake that began at `started`.
    pub fn count(&self, stats: &mut TlsStats, started: Nanos) {
        let times = match self.kind {
            HandshakeKind::Full => &mut stats.full_us,
            HandshakeKind::Resumed => &mut stats.resumed_us,
            HandshakeKind::Early => &mut stats.early_us,
        };
        times.record(self.completed.saturating_sub(started).as_micros());
        stats.offered += u64::from(self.offered);
        stats.early_refused += u64::from(self.early_refused);
        if let Some(staple) = &self.staple {
            stats.stapled += 1;
            stats.staples.add(&staple.to_string(), 1);
        }
        if let Some(version) = self.version {
            stats.versions.add(version.code(), 1);
        }
        stats.ciphers.add(self.cipher, 1);
        if let Some(group) = self.group {
            stats.groups.add(group, 1);
        }
        if let Some(issuer) = &self.issuer {
            stats.issuers.add(issuer, 1);
        }
    }
}
