//! The records of a connection whose handshake is complete.
//!
//! The library rustls carries out handshakes; afterwards, it hands over the keys (as for encryption in the kernel) and keeps what has
//! to do with sessions. Records with data then need one pass over their bytes, in a buffer that is there already.

use std::ops::Range;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{AlertDescription, ContentType, Error, ExtractedSecrets, HandshakeType};
use rustls::{InvalidMessage, PeerMisbehaved, ProtocolVersion};

use crate::record::{MOST_UNSENT, RecordKey, kind};

/// The most records without data, and messages in them, in a row. Servers send some tickets; more have no purpose.
const MOST_SILENT: u32 = 64;
/// The largest message of the handshake that is put together.
const MOST_MESSAGE: usize = 64 * 1024;

/// Alerts (RFC 8446, section 6; RFC 5246, section 7.2).
mod alert {
    pub const WARNING: u8 = 1;
    pub const FATAL: u8 = 2;
    pub const CLOSE_NOTIFY: u8 = 0;
    pub const UNEXPECTED_MESSAGE: u8 = 10;
    pub const BAD_RECORD_MAC: u8 = 20;
    pub const RECORD_OVERFLOW: u8 = 22;
    pub const DECODE_ERROR: u8 = 50;
    pub const INTERNAL_ERROR: u8 = 80;
    pub const USER_CANCELED: u8 = 90;
    pub const NO_RENEGOTIATION: u8 = 100;
}

/// Types of messages (RFC 8446, section 4; RFC 5246, section 7.4).
mod message {
    pub const HELLO_REQUEST: u8 = 0;
    pub const CLIENT_HELLO: u8 = 1;
    pub const NEW_SESSION_TICKET: u8 = 4;
    pub const KEY_UPDATE: u8 = 24;
}

/// What the library keeps of a connection: it makes new keys, and takes tickets.
pub enum KeySource {
    /// Of a client.
    Client(KernelConnection<ClientConnectionData>),
    /// Of a server.
    Server(KernelConnection<ServerConnectionData>),
}

impl KeySource {
    fn version(&self) -> ProtocolVersion {
        match self {
            KeySource::Client(of) => of.protocol_version(),
            KeySource::Server(of) => of.protocol_version(),
        }
    }
}

/// What a record contained.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// Data, at this place in the record, or where they were put.
    Data(Range<usize>),
    /// Nothing for whoever reads.
    Nothing,
    /// The end of what the peer sends.
    End,
}

/// Both directions of a connection.
pub struct Traffic {
    source: KeySource,
    tls13: bool,
    incoming: RecordKey,
    outgoing: RecordKey,
    /// The start of a message of the handshake.
    message: Vec<u8>,
    /// Number of records without data since the last data.
    silent: u32,
    /// Whether the peer has asked for another key of this side.
    update_due: bool,
}

impl Traffic {
    /// The records of a connection with these keys.
    ///
    /// # Errors
    /// If the cipher is unknown.
    pub fn new(source: KeySource, secrets: &ExtractedSecrets) -> Result<Traffic, Error> {
        let version = source.version();
        let ((rx, incoming), (tx, outgoing)) = (&secrets.rx, &secrets.tx);
        Ok(Traffic {
            tls13: version == ProtocolVersion::TLSv1_3,
            incoming: RecordKey::new(version, *rx, incoming)?,
            outgoing: RecordKey::new(version, *tx, outgoing)?,
            source,
            message: Vec::new(),
            silent: 0,
            update_due: false,
        })
    }

    /// Appends a record with data to `out`.
    ///
    /// # Errors
    /// If the cryptographic library refuses.
    pub fn seal<'a>(&mut self, data: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.update_due || self.outgoing.is_used_up() {
            self.update_outgoing(out)?;
        }
        self.outgoing.seal(kind::DATA, data, out)
    }

    /// Appends the announcement that nothing more comes from this side to `out`.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.send_alert([alert::WARNING, alert::CLOSE_NOTIFY], out);
    }

    /// Appends the alert for an error of the peer to `out`, and returns the error.
    pub fn refuse(&mut self, error: Error, out: &mut Vec<u8>) -> Error {
        let description = match &error {
            Error::AlertReceived(_) => return error,
            Error::DecryptError => alert::BAD_RECORD_MAC,
            Error::PeerSentOversizedRecord => alert::RECORD_OVERFLOW,
            Error::InvalidMessage(_) => alert::DECODE_ERROR,
            Error::PeerMisbehaved(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. } => alert::UNEXPECTED_MESSAGE,
            _ => alert::INTERNAL_ERROR,
        };
        self.send_alert([alert::FATAL, description], out);
        error
    }

    fn send_alert(&mut self, alert: [u8; 2], out: &mut Vec<u8>) {
        // Without cryptography, the peer sees the end of the connection only.
        let _ = self.outgoing.seal(kind::ALERT, std::iter::once(&alert[..]), out);
    }

    /// Takes a whole record. What has to be answered is appended to `out`.
    ///
    /// # Errors
    /// If the record is not allowed; then the alert has been appended.
    pub fn take(&mut self, record: &mut [u8], out: &mut Vec<u8>) -> Result<Opened, Error> {
        let opened = self.incoming.open(record);
        let taken = opened.and_then(|(kind, plain)| self.opened(kind, record, plain, out));
        taken.map_err(|error| self.refuse(error, out))
    }

    /// As [`Traffic::take`], but leaves the record as it is, and puts what it contains to the start of `plain`.
    ///
    /// # Errors
    /// As [`Traffic::take`].
    pub fn take_to(&mut self, record: &[u8], plain: &mut [u8], out: &mut Vec<u8>) -> Result<Opened, Error> {
        let opened = self.incoming.open_to(record, plain);
        let taken = opened.and_then(|(kind, size)| self.opened(kind, plain, 0..size, out));
        taken.map_err(|error| self.refuse(error, out))
    }

    fn opened(
        &mut self,
        kind: u8,
        bytes: &[u8],
        plain: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        if kind == kind::DATA && !plain.is_empty() {
            self.silent = 0;
            return Ok(Opened::Data(plain));
        }
        self.count_silent()?;
        match kind {
            kind::DATA => Ok(Opened::Nothing),
            kind::ALERT => self.take_alert(&bytes[plain]),
            kind::HANDSHAKE => {
                self.message.extend_from_slice(&bytes[plain]);
                self.take_messages(out)?;
                Ok(Opened::Nothing)
            }
            other => Err(Error::InappropriateMessage {
                expect_types: vec![ContentType::ApplicationData],
                got_type: other.into(),
            }),
        }
    }

    /// Counts a record or a message without data.
    fn count_silent(&mut self) -> Result<(), Error> {
        self.silent += 1;
        if self.silent > MOST_SILENT { Err(PeerMisbehaved::TooManyEmptyFragments.into()) } else { Ok(()) }
    }

    fn take_alert(&self, alert: &[u8]) -> Result<Opened, Error> {
        let &[level, description] = alert else {
            return Err(InvalidMessage::TrailingData("alert").into());
        };
        match (level, description) {
            (_, alert::CLOSE_NOTIFY) => Ok(Opened::End),
            (_, alert::USER_CANCELED) => Ok(Opened::Nothing),
            // The level has a meaning in TLS 1.2 only.
            (alert::WARNING, _) if !self.tls13 => Ok(Opened::Nothing),
            _ => Err(Error::AlertReceived(AlertDescription::from(description))),
        }
    }

    /// Takes the complete ones of the received messages.
    fn take_messages(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        while let Some((&[kind, a, b, c], rest)) = self.message.split_first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MOST_MESSAGE {
                return Err(InvalidMessage::HandshakePayloadTooLarge.into());
            }
            let Some((body, after)) = rest.split_at_checked(length) else { break };
            let (body, after) = (body.to_vec(), after.to_vec());
            self.message = after;
            self.count_silent()?;
            self.take_message(kind, &body, out)?;
        }
        Ok(())
    }

    fn take_message(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match (self.tls13, kind, &mut self.source) {
            (true, message::NEW_SESSION_TICKET, KeySource::Client(of)) => of.handle_new_session_ticket(body),
            (true, message::KEY_UPDATE, _) => self.update_incoming(body),
            (false, message::HELLO_REQUEST, KeySource::Client(_))
            | (false, message::CLIENT_HELLO, KeySource::Server(_)) => {
                // A peer that asks without end may not read, so that its answers would take more and more memory.
                if out.len() < MOST_UNSENT {
                    self.send_alert([alert::WARNING, alert::NO_RENEGOTIATION], out);
                }
                Ok(())
            }
            _ => Err(Error::InappropriateHandshakeMessage {
                expect_types: vec![HandshakeType::NewSessionTicket, HandshakeType::KeyUpdate],
                got_type: kind.into(),
            }),
        }
    }

    /// The peer changes its key (RFC 8446, section 4.6.3), and may ask this side to do the same. The answer is due before the next data,
    /// and one answers all requests until then, so a peer that asks without end and reads nothing takes no memory.
    fn update_incoming(&mut self, body: &[u8]) -> Result<(), Error> {
        if !self.message.is_empty() {
            return Err(PeerMisbehaved::KeyEpochWithPendingFragment.into());
        }
        let &[request @ (0 | 1)] = body else { return Err(InvalidMessage::InvalidKeyUpdate.into()) };
        let (number, secrets) = match &mut self.source {
            KeySource::Client(of) => of.update_rx_secret()?,
            KeySource::Server(of) => of.update_rx_secret()?,
        };
        self.incoming = RecordKey::new(ProtocolVersion::TLSv1_3, number, &secrets)?;
        self.update_due |= request == 1;
        Ok(())
    }

    /// Changes the key of this side.
    fn update_outgoing(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let update = [message::KEY_UPDATE, 0, 0, 1, 0];
        self.outgoing.seal(kind::HANDSHAKE, std::iter::once(&update[..]), out)?;
        let (number, secrets) = match &mut self.source {
            KeySource::Client(of) => of.update_tx_secret()?,
            KeySource::Server(of) => of.update_tx_secret()?,
        };
        self.outgoing = RecordKey::new(ProtocolVersion::TLSv1_3, number, &secrets)?;
        self.update_due = false;
        Ok(())
    }
}
