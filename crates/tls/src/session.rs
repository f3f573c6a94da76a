//! The buffers of a TLS connection: records in, plaintext out, and the reverse.

use std::io::{self, BufRead, IoSlice, Read, Write};

use polygraph_link::Nanos;
use rustls::{Connection, HandshakeKind as Kind, ProtocolVersion};

use crate::certificate;
use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::{Handshake, HandshakeKind};
use crate::names::Version;
use crate::verify;

/// Reads the clock of the link.
pub type Now = Box<dyn Fn() -> Nanos>;

/// The state of one side of a connection, without the connection of the link.
pub struct Session {
    tls: Connection,
    now: Now,
    /// Records that the library has no room for yet, and how many of these bytes it has taken.
    inbox: Vec<u8>,
    taken: usize,
    /// Early data that arrived and were not read yet.
    early_received: Vec<u8>,
    /// Whether any arrived.
    early_arrived: bool,
    /// Early data that were sent, until it is known whether the server took them.
    early_sent: Option<Vec<u8>>,
    /// Whether this side is a client and offered to resume a session.
    offered: bool,
    stapled: bool,
    /// Whether nothing more comes from the peer.
    ended: bool,
    handshake: Option<Handshake>,
    complete: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("complete", &self.complete)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// The session of a new connection.
    pub fn new(tls: Connection, offered: bool, now: Now) -> Session {
        Session {
            tls,
            now,
            inbox: Vec::new(),
            taken: 0,
            early_received: Vec::new(),
            early_arrived: false,
            early_sent: None,
            offered,
            stapled: false,
            ended: false,
            handshake: None,
            complete: false,
        }
    }

    /// Whether the handshake is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether nothing more comes from the peer.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether records wait that the library has not seen.
    pub fn has_backlog(&self) -> bool {
        self.taken < self.inbox.len()
    }

    /// Whether there is plaintext to read.
    pub fn has_plaintext(&mut self) -> bool {
        !self.early_received.is_empty() || self.tls.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Whether a client may send early data now.
    pub fn may_send_early(&mut self) -> bool {
        match &mut self.tls {
            Connection::Client(client) => !self.complete && client.early_data().is_some(),
            Connection::Server(_) => false,
        }
    }

    /// The facts of the handshake, once after it is complete.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        self.handshake.take()
    }

    /// The application protocol, once it is negotiated, which may be before the handshake is complete.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// Takes bytes of the peer; none mean that it has closed the connection.
    ///
    /// # Errors
    /// If they are not what TLS allows here.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TlsFailure> {
        if bytes.is_empty() {
            self.ended = true;
            return Ok(());
        }
        if self.has_backlog() {
            self.inbox.extend_from_slice(bytes);
            return self.work_off();
        }
        let used = self.feed(bytes)?;
        if used < bytes.len() {
            self.inbox.extend_from_slice(&bytes[used..]);
        }
        Ok(())
    }

    /// Passes waiting records to the library.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub fn work_off(&mut self) -> Result<(), TlsFailure> {
        let inbox = std::mem::take(&mut self.inbox);
        let fed = self.feed(&inbox[self.taken..]);
        self.inbox = inbox;
        self.taken += fed?;
        if self.taken == self.inbox.len() {
            (self.taken, self.inbox) = (0, Vec::new());
        }
        Ok(())
    }

    /// Passes records to the library until there is plaintext to read. Returns the number of bytes that it took.
    fn feed(&mut self, bytes: &[u8]) -> Result<usize, TlsFailure> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_plaintext() {
            let before = rest.len();
            let taken = self.tls.read_tls(&mut rest);
            taken.map_err(|e| TlsFailure::new(FailureKind::Protocol, e.to_string()))?;
            verify::take_stapled();
            let state = self.tls.process_new_packets()?;
            self.stapled |= verify::take_stapled();
            self.ended |= state.peer_has_closed();
            self.receive_early();
            self.settle();
            if self.ended || rest.len() == before {
                // Nothing counts after the end.
                return Ok(bytes.len());
            }
        }
        Ok(bytes.len() - rest.len())
    }

    fn receive_early(&mut self) {
        let Connection::Server(server) = &mut self.tls else { return };
        if self.complete {
            return;
        }
        if let Some(mut early) = server.early_data() {
            // Reading from memory does not fail; the amount is limited by the settings.
            let _ = early.read_to_end(&mut self.early_received);
            self.early_arrived |= !self.early_received.is_empty();
        }
    }

    /// Does what is due when the handshake has become complete.
    fn settle(&mut self) {
        if self.complete || self.tls.is_handshaking() {
            return;
        }
        self.complete = true;
        let accepted = match &self.tls {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(_) => self.early_arrived,
        };
        let resent = self.early_sent.take().filter(|_| !accepted);
        if let Some(again) = &resent {
            self.tls.set_buffer_limit(None);
            // Without a limit, the library takes everything.
            let _ = self.tls.writer().write_all(again);
            self.tls.set_buffer_limit(Some(WRITE_LIMIT));
        }
        let kind = match self.tls.handshake_kind() {
            Some(Kind::Resumed) if accepted => HandshakeKind::Early,
            Some(Kind::Resumed) => HandshakeKind::Resumed,
            _ => HandshakeKind::Full,
        };
        let of_peer = self.tls.peer_certificates().filter(|_| kind == HandshakeKind::Full);
        self.handshake = Some(Handshake {
            kind,
            offered: self.offered,
            early_refused: resent.is_some(),
            version: match self.tls.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => Some(Version::Tls12),
                Some(ProtocolVersion::TLSv1_3) => Some(Version::Tls13),
                _ => None,
            },
            cipher: self.tls.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
            group: self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name())),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            issuer: of_peer.and_then(|chain| certificate::issuer(chain.first()?)),
            stapled: self.stapled,
            completed: (self.now)(),
        });
    }

    /// Passes the next plaintext to `take`; `None` if there is none.
    pub fn read<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if !self.early_received.is_empty() {
            return Some(take(&std::mem::take(&mut self.early_received)));
        }
        let mut reader = self.tls.reader();
        let bytes = reader.fill_buf().ok().filter(|bytes| !bytes.is_empty())?;
        let (length, taken) = (bytes.len(), take(bytes));
        reader.consume(length);
        Some(taken)
    }

    /// Encrypts as much of `parts`, without their first `skip` bytes, as there is room for, and returns the number of bytes.
    pub fn write(&mut self, parts: &[IoSlice<'_>], mut skip: usize) -> usize {
        let mut written = 0;
        for part in parts {
            let skipped = skip.min(part.len());
            skip -= skipped;
            let part = &part[skipped..];
            if part.is_empty() {
                continue;
            }
            let n = self.write_part(part);
            written += n;
            if n < part.len() {
                break;
            }
        }
        written
    }

    fn write_part(&mut self, part: &[u8]) -> usize {
        match &mut self.tls {
            Connection::Client(client) if !self.complete => {
                let Some(mut early) = client.early_data() else { return 0 };
                let n = early.write(part).unwrap_or(0);
                self.early_sent.get_or_insert_default().extend_from_slice(&part[..n]);
                n
            }
            tls => tls.writer().write(part).unwrap_or(0),
        }
    }

    /// Whether encrypted bytes wait to be sent.
    pub fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    /// Passes encrypted bytes to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to(&mut self, out: &mut impl Write) -> io::Result<usize> {
        self.tls.write_tls(out)
    }

    /// Says that nothing more comes from this side.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
    }
}

/// Maximum number of encrypted bytes that wait to be sent.
pub const WRITE_LIMIT: usize = 64 * 1024;
