//! Handshakes that clients begin and do not complete.

use std::collections::BTreeMap;
use std::task::{Context, Waker};

use polygraph_sim::VirtualDatagrams;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::ServerConfig;

use super::*;
use crate::handshakes::{LIMIT, MOST, MOST_NOT_VALIDATED};

/// Type bits of long headers of version 1.
const INITIAL: u8 = 0xc0;
const RETRY: u8 = 0xf0;

/// The size of a first datagram.
const SIZE: usize = 1200;

/// How many datagrams are on the way at once.
const BATCH: u64 = 500;

/// A client that begins handshakes with the first bytes of a ClientHello, and does not go on.
struct Stranger {
    socket: VirtualDatagrams,
    link: VirtualLink,
    crypto: Arc<dyn ServerConfig>,
    begun: u64,
}

impl Stranger {
    fn new(link: &VirtualLink) -> Stranger {
        let mut rng = Seed(2).stream("server", 0);
        // The keys of first packets depend on nothing but an id of the connection.
        let server = ServerConfigs::default().server(0, &tls().1, 0, "10.0.0.1", &mut rng).unwrap();
        let socket = link.bind_datagrams(SocketAddr::from(([10, 0, 0, 9], 9))).unwrap();
        Stranger { socket, link: link.clone(), crypto: server.quic().unwrap(), begun: 0 }
    }

    /// A first packet, with a token if there is one.
    fn initial(&self, connection: u64, number: u8, token: &[u8]) -> Vec<u8> {
        let id = connection.to_be_bytes();
        let mut packet = vec![INITIAL, 0, 0, 0, 1, 8];
        packet.extend_from_slice(&id);
        packet.push(0);
        let put_length = |length: usize, packet: &mut Vec<u8>| {
            packet.extend_from_slice(&(length as u16 | 0x4000).to_be_bytes());
        };
        put_length(token.len(), &mut packet);
        packet.extend_from_slice(token);
        let rest = SIZE - packet.len() - 2;
        put_length(rest, &mut packet);
        let at = packet.len();
        packet.push(number);
        let header = packet.len();
        // CRYPTO with the type of a ClientHello and its length.
        packet.extend_from_slice(b"\x06\x00\x04\x01\x00\x02\x00");
        packet.resize(SIZE, 0);
        let keys = self.crypto.initial_keys(1, &ConnectionId::new(&id)).unwrap();
        keys.packet.remote.encrypt(number.into(), &mut packet, header);
        keys.header.remote.encrypt(at, &mut packet);
        packet
    }

    fn send(&self, bytes: &[u8]) {
        let out = OutgoingDatagrams { to: address(), from: None, ecn: 0, segment: None, bytes };
        self.socket.try_send(&out).unwrap();
    }

    /// Begins so many handshakes. Returns how many answers of each type there are, and one of them.
    fn begin(&mut self, count: u64, token: &[u8]) -> BTreeMap<u8, (usize, Vec<u8>)> {
        let mut answers = BTreeMap::new();
        for _ in 0..count {
            self.begun += 1;
            self.send(&self.initial(self.begun, 0, token));
            if self.begun.is_multiple_of(BATCH) {
                self.pause();
                self.receive(&mut answers);
            }
        }
        self.pause();
        self.receive(&mut answers);
        answers
    }

    fn pause(&self) {
        self.link.run(self.link.now() + Nanos::from_millis(20));
    }

    fn receive(&self, answers: &mut BTreeMap<u8, (usize, Vec<u8>)>) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut take = |bytes: &[u8]| {
            let (count, kept) = answers.entry(bytes[0] & 0xf0).or_default();
            *count += 1;
            *kept = bytes.to_vec();
        };
        while self.socket.poll_recv(&mut cx, |datagrams| take(datagrams.bytes)).is_ready() {}
    }
}

/// The token of a Retry packet (RFC 9000, section 17.2.5).
fn token(retry: &[u8]) -> Vec<u8> {
    let mut rest = &retry[5..];
    for _ in 0..2 {
        rest = &rest[1 + usize::from(rest[0])..];
    }
    rest[..rest.len() - 16].to_vec()
}

/// Waits for the handshake of a connection and gets a reply. Returns how long the handshake took.
fn time_of_handshake(bench: &Bench) -> io::Result<Nanos> {
    let (connection, link) = (bench.connect("www.example.com"), bench.link.clone());
    bench.run(async move {
        let begun = link.now();
        connection.ready(&link, Some(link.now() + 10 * SECOND)).await?;
        let took = link.now() - begun;
        get(connection.open_stream(), 10).await.map(|_| took)
    })
}

#[test]
fn half_open_connections_are_bounded() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let usual = time_of_handshake(&bench).unwrap();
    let mut stranger = Stranger::new(&bench.link);
    let excess = 300;
    let answers = stranger.begin((MOST_NOT_VALIDATED + excess) as u64, b"");
    let (retries, retry) = &answers[&RETRY];
    assert_eq!(*retries, excess);
    assert!(retry.len() < SIZE / 3, "the answer must not amplify an attack: {}", retry.len());
    // Real clients take one round trip more: a millisecond each way.
    let longer = time_of_handshake(&bench).unwrap();
    assert!(longer >= usual + Nanos::from_millis(2), "{usual:?} {longer:?}");
    // Those who receive at their addresses get further, but not for ever.
    let answers = stranger.begin((MOST - MOST_NOT_VALIDATED + excess) as u64, &token(retry));
    assert!(!answers.contains_key(&RETRY));
    let refused = bench.lost.take();
    assert_eq!(refused.len(), excess);
    assert!(refused.iter().all(|why| *why == Lost::Refused), "{:?}", refused[0]);
    let error = time_of_handshake(&bench).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    // All of them are given up and forgotten.
    bench.link.run(bench.link.now() + LIMIT + 5 * SECOND);
    assert_eq!(bench.ends.borrow().len(), MOST + 2);
    assert_eq!(time_of_handshake(&bench).unwrap(), usual);
}

/// Their age is that of the link.
#[test]
fn tokens_of_retry_packets_expire() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let mut stranger = Stranger::new(&bench.link);
    let token = token(&stranger.begin(MOST_NOT_VALIDATED as u64 + 1, b"")[&RETRY].1);
    bench.link.run(bench.link.now() + 10 * SECOND);
    stranger.begin(1, &token);
    bench.link.run(bench.link.now() + 10 * SECOND);
    stranger.begin(1, &token);
    bench.link.run(bench.link.now() + LIMIT + 5 * SECOND);
    assert_eq!(bench.ends.borrow().len(), MOST_NOT_VALIDATED + 1);
}

/// A first request that is sent early survives a Retry.
#[test]
fn requests_leave_early_although_the_address_must_be_shown() {
    let (mut client, server) = tls();
    client.early_data = true;
    let bench = Bench::new((client, server), policy(), Nanos::ZERO);
    let (first, _) = bench.get(bench.connect("www.example.com"), &[10]);
    drop(first);
    Stranger::new(&bench.link).begin(MOST_NOT_VALIDATED as u64, b"");
    let (second, results) = bench.get(bench.connect("www.example.com"), &[10]);
    assert_eq!(sizes(&results), [10]);
    let facts = second.take_handshake().unwrap();
    assert_eq!((facts.kind, facts.early_refused), (HandshakeKind::Early, false));
}

/// A client that goes on to send does not keep the memory.
#[test]
fn handshakes_that_are_not_completed_are_given_up() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let mut stranger = Stranger::new(&bench.link);
    stranger.begin(1, b"");
    for number in 1..30 {
        bench.link.run(bench.link.now() + SECOND);
        stranger.send(&stranger.initial(stranger.begun, number, b""));
        assert!(bench.ends.borrow().is_empty(), "{number}");
    }
    bench.link.run(bench.link.now() + 2 * SECOND);
    let end = bench.ends.borrow_mut().pop().expect("the handshake is given up");
    assert_eq!(end.failure.as_ref().map(io::Error::kind), Some(io::ErrorKind::TimedOut), "{end:?}");
    assert_eq!(end.fault(), None);
}

/// The limit is one of handshakes.
#[test]
fn complete_handshakes_have_no_limit() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
    bench.link.run(bench.link.now() + LIMIT + 5 * SECOND);
    let (_, results) = bench.get(connection, &[7]);
    assert_eq!(sizes(&results), [7]);
}
