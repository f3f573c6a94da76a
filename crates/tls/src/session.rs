//! The state of a TLS connection without the connection of the link: records in, plaintext out, and the reverse.

use std::io::IoSlice;
use std::ops::Range;

use polygraph_link::Nanos;
use rustls::{HandshakeKind as Kind, ProtocolVersion};

use crate::buffer::{Buffer, Plaintext};
use crate::certificate;
use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::{Handshake, HandshakeFacts, HandshakeKind};
use crate::library::{Given, Library};
use crate::names::Version;
use crate::record::{self, MAX_PLAINTEXT, MOST_UNSENT};
use crate::staple::Staple;
use crate::traffic::{Opened, Traffic};
use crate::verify;

/// The most bytes of an incomplete handshake that are kept.
const MOST_UNFINISHED: usize = 256 * 1024;

/// Reads the clock of the link.
pub type Now = Box<dyn Fn() -> Nanos>;

/// Who works on records.
enum State {
    /// The library carries out the handshake.
    Handshake(Box<Library>),
    /// The handshake is complete.
    Traffic(Box<Traffic>),
    /// The connection has failed.
    Failed(TlsFailure),
}

/// The state of one side of a connection.
pub struct Session {
    state: State,
    now: Now,
    /// Received bytes that are not used up.
    inbox: Buffer,
    /// The plaintext of a record that was decrypted on its way from the connection below; empty if there is none.
    opened: Plaintext,
    /// Where in `opened`, or else in `inbox`, plaintext waits to be read; in `inbox`, it is followed by received bytes. Empty if there is
    /// none.
    plain: Range<usize>,
    /// The end of the record in `inbox` that contains the plaintext.
    record_end: usize,
    /// Encrypted bytes that wait to be sent.
    outbox: Buffer,
    given: Given,
    /// Early data that were sent, until it is known whether the server took them.
    early_sent: Option<Vec<u8>>,
    /// Whether this side is a client.
    is_client: bool,
    /// Whether this side is a client and offered to resume a session.
    offered: bool,
    staple: Option<Staple>,
    protocol: Option<Vec<u8>>,
    handshake: HandshakeFacts,
    complete: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("complete", &self.complete)
            .field("ended", &self.given.ended)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// The session of a new connection.
    pub fn new(library: Library, offered: bool, now: Now) -> Session {
        let mut session = Session {
            is_client: matches!(library, Library::Client(_)),
            state: State::Handshake(Box::new(library)),
            now,
            inbox: Buffer::default(),
            opened: Plaintext::default(),
            plain: 0..0,
            record_end: 0,
            outbox: Buffer::default(),
            given: Given::default(),
            early_sent: None,
            offered,
            staple: None,
            protocol: None,
            handshake: HandshakeFacts::default(),
            complete: false,
        };
        // A client begins. If that fails, whoever reads or writes learns why.
        let _ = session.work();
        session
    }

    /// Whether the handshake is complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether nothing more comes from the peer.
    pub fn is_ended(&self) -> bool {
        self.given.ended
    }

    /// Whether a whole record waits.
    pub fn has_backlog(&self) -> bool {
        let rest = &self.inbox.rest()[self.record_end..];
        matches!(self.state, State::Traffic(_))
            && !self.given.ended
            && record::size(rest).is_ok_and(|size| size.is_some_and(|size| size <= rest.len()))
    }

    /// Whether there is plaintext to read.
    pub fn has_plaintext(&self) -> bool {
        !self.given.plaintext.is_empty() || !self.plain.is_empty()
    }

    /// Whether a client may send early data now.
    pub fn may_send_early(&self) -> bool {
        !self.complete && self.given.early_room
    }

    /// Where the facts of the handshake appear when it is complete.
    pub fn handshake(&self) -> &HandshakeFacts {
        &self.handshake
    }

    /// The application protocol, once it is negotiated, which may be before the handshake is complete.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.protocol.as_deref()
    }

    /// Takes bytes of the peer; none mean that it has closed the connection.
    ///
    /// # Errors
    /// If they are not what TLS allows here.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TlsFailure> {
        if bytes.is_empty() {
            self.given.ended = true;
        }
        // Nothing counts after the end.
        if self.given.ended {
            return Ok(());
        }
        let used = self.take_first(bytes)?;
        if !self.given.ended && used < bytes.len() {
            self.inbox.append(&bytes[used..]);
        }
        self.work()
    }

    /// Decrypts the record with which `bytes` begins, if nothing is before it and all of it is there: most records come so, and need not be
    /// kept. Returns its size.
    fn take_first(&mut self, bytes: &[u8]) -> Result<usize, TlsFailure> {
        let State::Traffic(traffic) = &mut self.state else { return Ok(0) };
        let is_first = self.inbox.is_empty() && self.plain.is_empty() && self.given.plaintext.is_empty();
        let size = record::size(bytes).ok().flatten().filter(|size| is_first && *size <= bytes.len());
        let Some(size) = size else { return Ok(0) };
        let mut plain = Plaintext::new();
        match self.outbox.fill(|out| traffic.take_to(&bytes[..size], plain.bytes_mut(), out)) {
            Ok(Opened::Data(range)) => (self.opened, self.plain) = (plain, range),
            Ok(Opened::Nothing) => {}
            Ok(Opened::End) => self.given.ended = true,
            Err(error) => return Err(self.fail(error.into())),
        }
        Ok(size)
    }

    /// Works on what has arrived until there is plaintext to read or more has to arrive.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub fn work(&mut self) -> Result<(), TlsFailure> {
        let worked = match &mut self.state {
            State::Handshake(_) => self.shake_hands().and_then(|()| self.take_records()),
            State::Traffic(_) => self.take_records(),
            State::Failed(failure) => return Err(failure.clone()),
        };
        worked.map_err(|failure| self.fail(failure))
    }

    fn fail(&mut self, failure: TlsFailure) -> TlsFailure {
        self.state = State::Failed(failure.clone());
        failure
    }

    /// Works on the handshake.
    fn shake_hands(&mut self) -> Result<(), TlsFailure> {
        let State::Handshake(library) = &mut self.state else { return Ok(()) };
        verify::take_staple();
        let (inbox, given) = (&mut self.inbox, &mut self.given);
        let (used, worked) = self.outbox.fill(|out| library.work(inbox.rest_mut(), out, given));
        self.inbox.advance(used);
        self.staple = verify::take_staple().or(self.staple.take());
        worked?;
        if self.protocol.is_none() {
            self.protocol = library.common().alpn_protocol().map(<[u8]>::to_vec);
        }
        if library.common().is_handshaking() {
            let is_endless = self.inbox.len() > MOST_UNFINISHED;
            let endless = || TlsFailure::new(FailureKind::Protocol, "a message of the handshake has no end");
            return if is_endless { Err(endless()) } else { Ok(()) };
        }
        let refused = if self.complete { None } else { self.settle() };
        // A record that the library has not used up is part of a message that it puts together.
        let has_record = record::size(self.inbox.rest())?.is_some_and(|size| size <= self.inbox.len());
        if !has_record {
            let empty = State::Failed(TlsFailure::new(FailureKind::Protocol, "the handshake failed"));
            if let State::Handshake(library) = std::mem::replace(&mut self.state, empty) {
                self.state = State::Traffic(Box::new(library.into_traffic()?));
            }
        }
        if let Some(again) = refused {
            let mut sent = 0;
            while sent < again.len() {
                match self.encrypt(&[IoSlice::new(&again)], sent)? {
                    0 => break,
                    n => sent += n,
                }
            }
        }
        Ok(())
    }

    /// Does what is due when the handshake has become complete. Returns early data that have to be sent again.
    fn settle(&mut self) -> Option<Vec<u8>> {
        let State::Handshake(library) = &mut self.state else { return None };
        let tls = library.common();
        self.complete = true;
        let accepted = if self.is_client { self.given.early_accepted } else { self.given.early_arrived };
        let refused = self.early_sent.take().filter(|_| !accepted);
        let kind = match tls.handshake_kind() {
            Some(Kind::Resumed) if accepted => HandshakeKind::Early,
            Some(Kind::Resumed) => HandshakeKind::Resumed,
            _ => HandshakeKind::Full,
        };
        let of_peer = tls.peer_certificates().filter(|_| kind == HandshakeKind::Full);
        self.handshake.put(Handshake {
            kind,
            offered: self.offered,
            early_refused: refused.is_some(),
            version: match tls.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => Some(Version::Tls12),
                Some(ProtocolVersion::TLSv1_3) => Some(Version::Tls13),
                _ => None,
            },
            cipher: tls.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
            group: tls.negotiated_key_exchange_group().map(|group| u16::from(group.name())),
            alpn: self.protocol.clone(),
            issuer: of_peer.and_then(|chain| certificate::issuer(chain.first()?)),
            staple: self.staple.take(),
            completed: (self.now)(),
        });
        refused
    }

    /// Takes records until there is plaintext to read.
    fn take_records(&mut self) -> Result<(), TlsFailure> {
        let State::Traffic(traffic) = &mut self.state else { return Ok(()) };
        while self.given.plaintext.is_empty() && self.plain.is_empty() && !self.given.ended {
            let rest = self.inbox.rest_mut();
            let size = match record::size(rest) {
                Ok(Some(size)) if size <= rest.len() => size,
                Ok(_) => break,
                Err(error) => return Err(self.outbox.fill(|out| traffic.refuse(error, out)).into()),
            };
            match self.outbox.fill(|out| traffic.take(&mut rest[..size], out))? {
                Opened::Data(range) => (self.plain, self.record_end) = (range, size),
                Opened::Nothing => self.inbox.advance(size),
                Opened::End => {
                    self.given.ended = true;
                    self.inbox.clear();
                }
            }
        }
        Ok(())
    }

    /// Passes the next plaintext to `take`; `None` if there is none.
    pub fn read<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if !self.given.plaintext.is_empty() {
            return Some(take(&std::mem::take(&mut self.given.plaintext)));
        }
        if self.plain.is_empty() {
            return None;
        }
        let plain = std::mem::take(&mut self.plain);
        if !self.opened.is_empty() {
            return Some(take(&std::mem::take(&mut self.opened).bytes()[plain]));
        }
        let taken = take(&self.inbox.rest()[plain]);
        self.inbox.advance(std::mem::take(&mut self.record_end));
        Some(taken)
    }

    /// Encrypts as much of `parts`, without their first `skip` bytes, as there is room for, and returns the number of bytes.
    ///
    /// # Errors
    /// If the connection has failed.
    pub fn write(&mut self, parts: &[IoSlice<'_>], skip: usize) -> Result<usize, TlsFailure> {
        let mut written = 0;
        while self.outbox.len() < MOST_UNSENT {
            match self.encrypt(parts, skip + written)? {
                0 => break,
                n => written += n,
            }
        }
        Ok(written)
    }

    /// Encrypts the next record. Returns the number of bytes.
    fn encrypt(&mut self, parts: &[IoSlice<'_>], mut skip: usize) -> Result<usize, TlsFailure> {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut rest = all.saturating_sub(skip).min(MAX_PLAINTEXT);
        let size = rest;
        if size == 0 {
            return Ok(0);
        }
        let pieces = parts.iter().filter_map(|part| {
            let skipped = skip.min(part.len());
            let used = (part.len() - skipped).min(rest);
            (skip, rest) = (skip - skipped, rest - used);
            (used > 0).then(|| &part[skipped..skipped + used])
        });
        match &mut self.state {
            State::Traffic(traffic) => {
                self.outbox.fill(|out| traffic.seal(pieces, out))?;
                Ok(size)
            }
            State::Handshake(library) => {
                let data: Vec<u8> = pieces.flatten().copied().collect();
                let incoming = self.inbox.rest_mut();
                let (n, is_early) = self.outbox.fill(|out| library.write(&data, incoming, out));
                if is_early {
                    self.early_sent.get_or_insert_default().extend_from_slice(&data[..n]);
                }
                Ok(n)
            }
            State::Failed(failure) => Err(failure.clone()),
        }
    }

    /// Encrypted bytes that wait to be sent.
    pub fn outgoing(&self) -> &[u8] {
        self.outbox.rest()
    }

    /// The first `n` bytes of [`Session::outgoing`] are sent.
    pub fn sent(&mut self, n: usize) {
        self.outbox.advance(n);
    }

    /// Says that nothing more comes from this side.
    pub fn close(&mut self) {
        let (state, inbox) = (&mut self.state, &mut self.inbox);
        self.outbox.fill(|out| match state {
            State::Traffic(traffic) => traffic.close(out),
            State::Handshake(library) => library.close(inbox.rest_mut(), out),
            State::Failed(_) => {}
        });
    }
}
