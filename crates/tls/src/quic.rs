//! TLS for QUIC (RFC 9001): the library rustls as the cryptography of the library quinn-proto.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use aws_lc_rs::aead;
use polygraph_link::Nanos;
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::ServerName;
use rustls::quic::{Connection, KeyChange, Secrets, Suite, Version as QuicVersion};
use rustls::{HandshakeKind as Kind, ProtocolVersion};

use crate::certificate;
use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::{Handshake, HandshakeKind};
use crate::names::Version;
use crate::staple::Staple;
use crate::verify;

/// The name of HTTP/3 among application protocols (RFC 9114, section 3.1).
pub const HTTP3: &str = "h3";

/// QUIC version 1 (RFC 9000, section 15).
const VERSION_1: u32 = 1;

/// The key and the nonce with which Retry packets of version 1 are protected (RFC 9001, section 5.8).
const RETRY_KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// What came of the handshake of a QUIC connection, as `handshake_data` of its session tells.
#[derive(Debug)]
pub enum QuicHandshake {
    /// It has not ended.
    UnderWay,
    /// This side has ended it.
    Failed(TlsFailure),
    /// What was agreed on. The caller knows the time.
    Complete(Handshake),
}

/// The suite that protects the first packets of every connection (RFC 9001, section 5).
fn initial_suite() -> Suite {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    suite.tls13().and_then(|suite| suite.quic_suite()).expect("the library has this suite for QUIC")
}

fn version_of(version: u32) -> Result<QuicVersion, UnsupportedVersion> {
    match version {
        VERSION_1 => Ok(QuicVersion::V1),
        _ => Err(UnsupportedVersion),
    }
}

fn initial_keys(destination: &ConnectionId, side: Side) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    keys(initial_suite().keys(destination, side, QuicVersion::V1))
}

fn keys(keys: rustls::quic::Keys) -> Keys {
    let rustls::quic::Keys { local, remote } = keys;
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

/// The tag of a Retry packet without its tag (RFC 9001, section 5.8).
fn retry_tag(original: &ConnectionId, parts: &[&[u8]]) -> [u8; 16] {
    let mut pseudo_packet = vec![original.len() as u8];
    pseudo_packet.extend_from_slice(original);
    parts.iter().for_each(|part| pseudo_packet.extend_from_slice(part));
    let key = aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY).expect("the key has the right size");
    let nonce = aead::Nonce::assume_unique_for_key(RETRY_NONCE);
    let sealed = aead::LessSafeKey::new(key).seal_in_place_separate_tag(
        nonce,
        aead::Aad::from(pseudo_packet),
        &mut [],
    );
    let mut tag = [0; 16];
    tag.copy_from_slice(sealed.expect("nothing is sealed").as_ref());
    tag
}

/// The TLS of a client's connections to a peer.
pub struct QuicClient {
    /// The settings.
    pub config: Arc<rustls::ClientConfig>,
    /// The name of the peer.
    pub name: ServerName<'static>,
    /// Reads whether the client has offered to resume a session.
    pub offered: Box<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for QuicClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicClient").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ClientConfig for QuicClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn quinn_proto::crypto::Session>, ConnectError> {
        let (version, name) = (version_of(version)?, self.name.clone());
        let tls =
            rustls::quic::ClientConnection::new(Arc::clone(&self.config), version, name, encoded(params))
                .map_err(|_| ConnectError::UnsupportedVersion)?;
        Ok(Box::new(QuicSession::new(Connection::Client(tls), (self.offered)())))
    }
}

/// The TLS of a server's connections.
#[derive(Debug)]
pub struct QuicServer {
    /// The settings, with TLS 1.3 and [`HTTP3`].
    pub config: Arc<rustls::ServerConfig>,
}

impl ServerConfig for QuicServer {
    fn initial_keys(&self, version: u32, destination: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        version_of(version)?;
        Ok(initial_keys(destination, Side::Server))
    }

    fn retry_tag(&self, _: u32, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(original, &[packet])
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        params: &TransportParameters,
    ) -> Box<dyn quinn_proto::crypto::Session> {
        let config = Arc::clone(&self.config);
        let tls = rustls::quic::ServerConnection::new(config, QuicVersion::V1, encoded(params))
            .expect("the settings have TLS 1.3 and a permitted limit of early data");
        Box::new(QuicSession::new(Connection::Server(tls), false))
    }
}

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes
}

/// The TLS of one connection.
struct QuicSession {
    tls: Connection,
    /// The secrets of the next keys, once the first ones are in use.
    next: Option<Secrets>,
    /// Whether this side is a client and offered to resume a session.
    offered: bool,
    staple: Option<Staple>,
    /// Whether the library knows that the application protocol is known.
    announced: bool,
    failure: Option<TlsFailure>,
}

impl QuicSession {
    fn new(tls: Connection, offered: bool) -> QuicSession {
        QuicSession { tls, next: None, offered, staple: None, announced: false, failure: None }
    }

    fn facts(&self) -> Handshake {
        // A server has these keys only if it accepts early data.
        let early = match &self.tls {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(server) => server.zero_rtt_keys().is_some(),
        };
        let kind = match self.tls.handshake_kind() {
            Some(Kind::Resumed) if early => HandshakeKind::Early,
            Some(Kind::Resumed) => HandshakeKind::Resumed,
            _ => HandshakeKind::Full,
        };
        let of_peer = self.tls.peer_certificates().filter(|_| kind == HandshakeKind::Full);
        Handshake {
            kind,
            offered: self.offered,
            early_refused: false,
            version: (self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3))
                .then_some(Version::Tls13),
            cipher: self.tls.negotiated_cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
            group: self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name())),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            issuer: of_peer.and_then(|chain| certificate::issuer(chain.first()?)),
            staple: self.staple.clone(),
            completed: Nanos::ZERO,
        }
    }
}

impl quinn_proto::crypto::Session for QuicSession {
    fn initial_keys(&self, destination: &ConnectionId, side: Side) -> Keys {
        initial_keys(destination, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(match &self.failure {
            Some(failure) => QuicHandshake::Failed(failure.clone()),
            None if self.tls.is_handshaking() => QuicHandshake::UnderWay,
            None => QuicHandshake::Complete(self.facts()),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.tls {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        verify::take_staple();
        let read = self.tls.read_hs(bytes);
        self.staple = verify::take_staple().or(self.staple.take());
        if let Err(error) = read {
            let alert = self.tls.alert();
            let reason = error.to_string();
            self.failure = Some(error.into());
            return Err(match alert {
                Some(alert) => {
                    TransportError { code: TransportErrorCode::crypto(alert.into()), frame: None, reason }
                }
                None => TransportError { code: TransportErrorCode::PROTOCOL_VIOLATION, frame: None, reason },
            });
        }
        let is_known = self.tls.alpn_protocol().is_some() || !self.tls.is_handshaking();
        Ok(is_known && !std::mem::replace(&mut self.announced, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let side = match &self.tls {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        };
        let bytes = self.tls.quic_transport_parameters();
        let read = bytes.map(|bytes| TransportParameters::read(side, &mut Cursor::new(bytes)));
        Ok(read.transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.tls.write_hs(out)? {
            KeyChange::Handshake { keys: new } => Some(keys(new)),
            KeyChange::OneRtt { keys: new, next } => {
                self.next = Some(next);
                Some(keys(new))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        payload
            .split_last_chunk::<16>()
            .is_some_and(|(token, tag)| retry_tag(original, &[header, token]) == *tag)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.tls.export_keying_material(output, label, Some(context));
        exported.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

/// What the end of a handshake by the peer means: an alert (RFC 9001, section 4.8) or nothing that has to do with TLS.
pub fn alert_of(code: u64) -> Option<TlsFailure> {
    let alert = code.checked_sub(0x100)?;
    u8::try_from(alert).ok().map(TlsFailure::alert)
}

/// What to say if a side's settings do not allow TLS 1.3.
pub fn needs_tls13() -> TlsFailure {
    let text = "QUIC needs TLS 1.3, which `protocols` and `ciphers` do not allow";
    TlsFailure::new(FailureKind::NothingInCommon, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.4.
    #[test]
    fn a_retry_packet_is_protected_as_in_the_standard() {
        let original = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let packet = b"\xff\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5token";
        let tag = 0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128.to_be_bytes();
        assert_eq!(retry_tag(&original, &[packet]), tag);
        assert_eq!(retry_tag(&original, &[&packet[..7], &packet[7..]]), tag);
    }

    #[test]
    fn codes_of_alerts_are_alerts() {
        assert_eq!(alert_of(0x100 + 48).and_then(|failure| failure.alert), Some(48));
        assert_eq!((alert_of(0x10), alert_of(0x2ff)), (None, None));
    }
}
