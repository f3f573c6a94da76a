//! Sessions of this crate with connections of the library, whose records come from elsewhere.

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

use polygraph_link::Nanos;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use crate::failure::{FailureKind, TlsFailure};
use crate::library::Library;
use crate::record::{self, MOST_UNSENT, RecordKey};
use crate::session::Session;
use crate::settings::KeyKind;
use crate::verify::PeerVerifier;
use crate::{Authority, Validity, make_authority, make_key};

/// A session and the connection of the library with which it talks.
struct Pair {
    session: Session,
    peer: Connection,
    /// What the session has received.
    received: Vec<u8>,
    /// What the peer has received.
    of_peer: Vec<u8>,
    /// Size of the pieces in which bytes arrive.
    piece: usize,
}

fn configs(suite: rustls::SupportedCipherSuite) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let provider = Arc::new(CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() });
    // Suites of TLS 1.2 tell which kind of key the certificate has.
    let is_rsa = format!("{:?}", suite.suite()).contains("_RSA_");
    let key = make_key(if is_rsa { KeyKind::Rsa(2048) } else { KeyKind::EcdsaP256 }).unwrap();
    let authority = make_authority("CA", KeyKind::EcdsaP256).unwrap();
    let identity =
        Authority::new(&authority).unwrap().sign(&["a.test".to_owned()], &key, Validity::Always).unwrap();
    let chain = identity.chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let versions = [suite.version()];
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::try_from(identity.key).unwrap())
        .unwrap();
    server.enable_secret_extraction = true;
    let verifier = PeerVerifier { webpki: None, provider: Arc::clone(&provider) };
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    client.enable_secret_extraction = true;
    (Arc::new(client), Arc::new(server))
}

impl Pair {
    fn new(suite: rustls::SupportedCipherSuite, is_client: bool, piece: usize) -> Pair {
        let (client, server) = configs(suite);
        let name = ServerName::try_from("a.test").unwrap();
        let (library, peer) = match is_client {
            true => (
                Library::Client(UnbufferedClientConnection::new(client, name).unwrap()),
                Connection::Server(ServerConnection::new(server).unwrap()),
            ),
            false => (
                Library::Server(UnbufferedServerConnection::new(server).unwrap()),
                Connection::Client(ClientConnection::new(client, name).unwrap()),
            ),
        };
        let session = Session::new(library, false, Box::new(|| Nanos::new(0)));
        let mut pair = Pair { session, peer, received: Vec::new(), of_peer: Vec::new(), piece };
        pair.pass().unwrap();
        assert!(pair.session.is_complete() && !pair.peer.is_handshaking(), "{suite:?} {is_client}");
        pair
    }

    /// Encrypted bytes of the peer.
    fn take_of_peer(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.peer.wants_write() {
            self.peer.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    /// Encrypted bytes of the session.
    fn take_of_session(&mut self) -> Vec<u8> {
        let bytes = self.session.outgoing().to_vec();
        self.session.sent(bytes.len());
        bytes
    }

    fn arrive(&mut self, bytes: &[u8]) -> Result<(), TlsFailure> {
        for piece in bytes.chunks(self.piece) {
            self.session.receive(piece)?;
            loop {
                while self.session.read(|bytes| self.received.extend_from_slice(bytes)).is_some() {}
                if !self.session.has_backlog() {
                    break;
                }
                self.session.work()?;
            }
        }
        Ok(())
    }

    /// Passes bytes until nothing more is to be passed.
    fn pass(&mut self) -> Result<(), TlsFailure> {
        loop {
            let (ours, theirs) = (self.take_of_session(), self.take_of_peer());
            if ours.is_empty() && theirs.is_empty() {
                return Ok(());
            }
            let mut rest = &ours[..];
            while !rest.is_empty() {
                self.peer.read_tls(&mut rest).unwrap();
                self.peer.process_new_packets()?;
                let _ = self.peer.reader().read_to_end(&mut self.of_peer);
            }
            self.arrive(&theirs)?;
        }
    }

    /// Data in both directions.
    fn exchange(&mut self, size: usize) {
        let data: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
        self.received.clear();
        self.of_peer.clear();
        let (mut sent, mut answered) = (0, 0);
        while sent < size || answered < size {
            let (first, second) = data.split_at(size / 3);
            sent += self.session.write(&[IoSlice::new(first), IoSlice::new(second)], sent).unwrap();
            answered += self.peer.writer().write(&data[answered..]).unwrap();
            self.pass().unwrap();
        }
        assert!(self.received == data && self.of_peer == data, "{size} bytes");
    }
}

#[test]
fn records_of_all_ciphers_are_those_of_the_library() {
    for &suite in aws_lc_rs::ALL_CIPHER_SUITES {
        for (is_client, piece) in [(true, 100_000), (false, 100_000), (true, 1000), (false, 7)] {
            let mut pair = Pair::new(suite, is_client, piece);
            for size in [1, 2, 100, 16_384, 16_385, 70_000] {
                pair.exchange(size);
            }
            // The library asks for another key of this side, too; in TLS 1.2 there is no such message.
            let updates = pair.peer.refresh_traffic_keys().is_ok();
            assert_eq!(updates, suite.tls13().is_some());
            pair.exchange(20_000);
            // Each side can say that nothing more comes.
            pair.peer.send_close_notify();
            pair.pass().unwrap();
            assert!(pair.session.is_ended());
            pair.session.close();
            let closing = pair.take_of_session();
            pair.peer.read_tls(&mut &closing[..]).unwrap();
            assert!(pair.peer.process_new_packets().unwrap().peer_has_closed());
        }
    }
}

#[test]
fn a_changed_record_is_refused_with_an_alert() {
    for &suite in aws_lc_rs::ALL_CIPHER_SUITES {
        // A record that comes in one piece is decrypted on its way, and another one where it is put together.
        for (at, piece) in [0, 3, 5, 20, 60].into_iter().flat_map(|at| [(at, 100_000), (at, 30)]) {
            let mut pair = Pair::new(suite, true, piece);
            pair.peer.writer().write_all(&[b'x'; 100]).unwrap();
            let mut record = pair.take_of_peer();
            record[at] ^= 0x40;
            // A header that announces more than there is waits for the rest.
            record.resize(record.len() + 20_000, 0);
            let failure = pair.arrive(&record).unwrap_err();
            let kind = if at == 0 { FailureKind::NotTls } else { FailureKind::Protocol };
            assert_eq!(failure.kind, kind, "{suite:?} {at}: {failure}");
            assert!(pair.received.is_empty());
            assert_eq!(pair.session.receive(b"more").unwrap_err(), failure);
            let answer = pair.take_of_session();
            pair.peer.read_tls(&mut &answer[..]).unwrap();
            let seen = pair.peer.process_new_packets().unwrap_err().to_string();
            assert!(seen.contains("BadRecordMac") || seen.contains("DecodeError"), "{seen}");
            let more = pair.session.write(&[IoSlice::new(b"data")], 0);
            assert!(more.is_err(), "nothing is sent after a failure");
        }
    }
}

#[test]
fn an_alert_of_the_peer_has_its_name() {
    for &suite in aws_lc_rs::ALL_CIPHER_SUITES {
        let mut pair = Pair::new(suite, false, 100_000);
        // The peer refuses what it cannot decrypt.
        let junk = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
        pair.peer.read_tls(&mut &junk[..]).unwrap();
        pair.peer.process_new_packets().unwrap_err();
        let failure = pair.pass().unwrap_err();
        assert_eq!((failure.kind, failure.alert), (FailureKind::Refused, Some(20)), "{failure}");
    }
}

#[test]
fn messages_without_end_are_a_failure() {
    let suite = aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| suite.tls13().is_some()).unwrap();
    let mut pair = Pair::new(*suite, true, 100_000);
    let mut update = || {
        pair.peer.refresh_traffic_keys().unwrap();
        pair.pass()
    };
    let passed = (0..1000).take_while(|_| update().is_ok()).count();
    assert!((20..100).contains(&passed), "{passed}");
    assert!(pair.session.work().is_err_and(|failure| failure.kind == FailureKind::Protocol));
}

/// Number of records in `bytes`.
fn count_records(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(size) = record::size(bytes).unwrap() {
        (bytes, count) = (&bytes[size..], count + 1);
    }
    count
}

#[test]
fn one_new_key_answers_all_requests_of_a_peer_that_does_not_read() {
    let suites = aws_lc_rs::ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some());
    for (&suite, is_client) in suites.flat_map(|suite| [(suite, true), (suite, false)]) {
        let mut pair = Pair::new(suite, is_client, 100_000);
        for _ in 0..50 {
            for _ in 0..20 {
                pair.peer.refresh_traffic_keys().unwrap();
            }
            // Without data in between, so many messages would be a failure.
            pair.peer.writer().write_all(b"data").unwrap();
            let flood = pair.take_of_peer();
            pair.arrive(&flood).unwrap();
        }
        assert_eq!(pair.session.outgoing().len(), 0, "{suite:?} {is_client}");
        for records in [2, 1] {
            pair.session.write(&[IoSlice::new(b"x")], 0).unwrap();
            assert_eq!(count_records(pair.session.outgoing()), records, "the answer precedes the next data");
            pair.pass().unwrap();
        }
        assert_eq!(pair.of_peer, b"xx");
        pair.exchange(20_000);
    }
}

#[test]
fn refused_renegotiations_of_a_peer_that_does_not_read_take_little_memory() {
    let suite = *aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| suite.tls13().is_none()).unwrap();
    // The types of HelloRequest and ClientHello.
    for (is_client, kind) in [(true, 0), (false, 1)] {
        let Pair { mut session, peer, .. } = Pair::new(suite, is_client, 100_000);
        let secrets = peer.dangerous_extract_secrets().unwrap();
        let (number, keys) = secrets.tx;
        let mut key = RecordKey::new(suite.version().version, number, &keys).unwrap();
        for _ in 0..100 {
            let mut flood = Vec::new();
            for _ in 0..30 {
                let message = [kind, 0, 0, 0];
                key.seal(record::kind::HANDSHAKE, std::iter::once(&message[..]), &mut flood).unwrap();
            }
            key.seal(record::kind::DATA, std::iter::once(&b"data"[..]), &mut flood).unwrap();
            session.receive(&flood).unwrap();
            assert!(session.read(|data| assert_eq!(data, b"data")).is_some());
        }
        let refusals = session.outgoing().len();
        assert!((MOST_UNSENT..MOST_UNSENT + 100).contains(&refusals), "{refusals} bytes");
    }
}
