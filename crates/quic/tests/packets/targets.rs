//! What fuzzers run: a session of HTTP/3 in which packets are changed on the way, and in which one side seals others than it means.
//! Nothing may panic, and everything must come to rest.

use std::any::Any;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex};

use bytes::BytesMut;
use polygraph_link::{Conn, Link, Nanos, SECOND, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{Http2Settings, ServerPolicy};
use polygraph_quic::{ClientConnection, ServerConnection, listen_with};
use polygraph_sim::VirtualLink;
use polygraph_tls::client::{ClientConfigs, RobotTls};
use polygraph_tls::handshake::TlsPeer;
use polygraph_tls::quic::HTTP3;
use polygraph_tls::server::{ServerConfigs, TlsServer};
use polygraph_tls::settings::{ClientTls, KeyKind, ServerTls};
use polygraph_tls::{make_authority, make_key};
use polygraph_traffic::{Seed, Selector};
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// How often a session was disturbed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disturbed {
    /// Changed copies of datagrams that arrived besides them.
    pub forged: u64,
    /// Packets that were sealed with other content than the side meant.
    pub sealed: u64,
    /// Requests that were answered.
    pub answered: u64,
}

/// The choices of a session: bytes that are read in a circle, with something that grows, so that the end differs from the start.
struct Choices {
    bytes: Vec<u8>,
    at: usize,
    round: u8,
    disturbed: Disturbed,
}

impl Choices {
    fn byte(&mut self) -> u8 {
        if self.at == self.bytes.len() {
            (self.at, self.round) = (0, self.round.wrapping_add(29));
        }
        self.at += 1;
        self.bytes[self.at - 1].wrapping_add(self.round)
    }

    fn below(&mut self, n: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % n.max(1)
    }
}

type Shared = Arc<Mutex<Choices>>;

fn with<R>(choices: &Shared, work: impl FnOnce(&mut Choices) -> R) -> R {
    work(&mut choices.lock().expect("nobody panics"))
}

/// Frames of every kind (RFC 9000, section 19), with small and with extreme values.
const FRAMES: &[&[u8]] = &[
    b"\x00\x00\x00\x01",
    b"\x02\x05\x00\x01\x02\x01\x01",
    b"\x03\x40\x20\x00\x00\x05\x01\x01\x01",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00",
    b"\x04\x00\x41\x0c\x00",
    b"\x04\x04\x41\x0c\x50\x00",
    b"\x05\x00\x41\x0c",
    b"\x05\x03\x41\x0c",
    b"\x06\x00\x04\x0b\x00\x00\x00",
    b"\x06\x7f\xff\x04\x01\x02\x03\x04",
    b"\x07\x02\xab\xcd",
    b"\x0b\x00\x03abc",
    b"\x0e\x04\x7f\xff\x02ab",
    b"\x0f\x08\x00\x05\x01\x03\x00\x00\xd1",
    b"\x0f\x0c\xff\xff\xff\xff\xff\xff\xff\xff\x01x",
    b"\x0b\x02\x05\x00\x04\x01\x01\x00",
    b"\x10\x7f\xff",
    b"\x11\x00\x7f\xff",
    b"\x12\x7f\xff",
    b"\x13\xd0\x00\x00\x00\x00\x00\x00\x00",
    b"\x14\x00",
    b"\x15\x00\x00",
    b"\x16\x10",
    b"\x17\x00",
    b"\x18\x05\x01\x08abcdefgh0123456789abcdef",
    b"\x18\x03\x04\x04abcd0123456789abcdef",
    b"\x19\x00",
    b"\x19\x05",
    b"\x1a01234567",
    b"\x1b01234567",
    b"\x1c\x0a\x06\x01x",
    b"\x1d\x41\x00\x00",
    b"\x1e",
    b"\x30xyz",
    b"\x31\x02xy",
    b"\x40\x1c\x01\x00\x00",
];

/// Changes a few bytes in place, or puts frames there.
fn disturb(choices: &mut Choices, bytes: &mut [u8]) {
    for _ in 0..1 + choices.byte() % 4 {
        if bytes.is_empty() {
            return;
        }
        // Frames are at the start, and changes there matter most.
        let near = choices.byte().is_multiple_of(2);
        let at = choices.below(if near { bytes.len().min(24) } else { bytes.len() });
        match choices.byte() % 4 {
            0 => bytes[at] = choices.byte(),
            1 => bytes[at] ^= 1 << (choices.byte() % 8),
            2 => bytes[at] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff][usize::from(choices.byte() % 8)],
            _ => {
                let frame = FRAMES[choices.below(FRAMES.len())];
                let at = if near { 0 } else { at };
                let fits = frame.len().min(bytes.len() - at);
                bytes[at..at + fits].copy_from_slice(&frame[..fits]);
            }
        }
    }
}

/// Changed copies of a datagram, some of them cut or longer.
fn forge(choices: &mut Choices, datagram: &[u8], most: u64, kept: &mut Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if kept.len() < 8 {
        kept.push(datagram.to_vec());
    }
    let mut forged = Vec::new();
    for _ in 0..8 {
        if choices.disturbed.forged >= most {
            break;
        }
        choices.disturbed.forged += 1;
        let from_kept = choices.byte().is_multiple_of(4);
        let place = choices.below(kept.len());
        let mut copy = if from_kept { kept[place].clone() } else { datagram.to_vec() };
        match choices.byte() % 8 {
            0 => copy.truncate(choices.below(copy.len() + 1)),
            1 => copy.extend_from_slice(&kept[place]),
            _ => {}
        }
        disturb(choices, &mut copy);
        forged.push(copy);
    }
    forged
}

/// A key with which a side seals other packets than it means.
struct WrongKey {
    key: Box<dyn PacketKey>,
    choices: Shared,
}

impl PacketKey for WrongKey {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let end = buf.len() - self.key.tag_len();
        let is_long = buf[0] & 0x80 != 0;
        with(&self.choices, |choices| {
            // Most handshakes are to succeed, so that later packets are seen, too.
            let one_of = if is_long { 32 } else { 4 };
            if choices.byte().is_multiple_of(one_of) {
                choices.disturbed.sealed += 1;
                disturb(choices, &mut buf[header_len..end]);
            }
        });
        self.key.encrypt(packet, buf, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.key.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// The cryptography of a side that seals wrong packets.
struct Wrong<T> {
    inner: T,
    choices: Shared,
}

impl<T> Wrong<T> {
    fn key(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(WrongKey { key, choices: Arc::clone(&self.choices) })
    }

    fn keys(&self, keys: Keys) -> Keys {
        let KeyPair { local, remote } = keys.packet;
        Keys { packet: KeyPair { local: self.key(local), remote }, ..keys }
    }

    fn session(&self, session: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(Wrong { inner: session, choices: Arc::clone(&self.choices) })
    }
}

impl<T: ClientConfig> ClientConfig for Wrong<Arc<T>> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Arc::clone(&self.inner).start_session(version, name, params)?))
    }
}

impl<T: ServerConfig> ServerConfig for Wrong<Arc<T>> {
    fn initial_keys(&self, version: u32, destination: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(self.keys(self.inner.initial_keys(version, destination)?))
    }

    fn retry_tag(&self, version: u32, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, original, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.session(Arc::clone(&self.inner).start_session(version, params))
    }
}

impl Session for Wrong<Box<dyn Session>> {
    fn initial_keys(&self, destination: &ConnectionId, side: Side) -> Keys {
        self.keys(self.inner.initial_keys(destination, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto().map(|(header, packet)| (header, self.key(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(out)?;
        Some(self.keys(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let KeyPair { local, remote } = self.inner.next_1rtt_keys()?;
        Some(KeyPair { local: self.key(local), remote })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(original, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

static SERVER: LazyLock<ServerTls> = LazyLock::new(|| ServerTls {
    authority: Some(make_authority("CA", KeyKind::EcdsaP256).expect("a key")),
    keys: Selector::only(make_key(KeyKind::EcdsaP256).expect("a key")),
    ticket_secret: Some([7; 32]),
    early_data: 16_000,
    ..ServerTls::default()
});

/// Both sides of TLS. They live through many sessions, which resume earlier ones, as handshakes are most of the time.
struct Sides {
    server: TlsServer,
    robot: RobotTls,
}

thread_local! {
    static SIDES: RefCell<Sides> = {
        let mut rng = Seed(1).stream("test", 0);
        let server = ServerConfigs::default().server(0, &SERVER, 0, "10.0.0.1", &mut rng).expect("usable settings");
        let settings = Arc::new(ClientTls { early_data: true, resumption: 1.0, ..ClientTls::default() });
        let robot = ClientConfigs::default().robot(0, &settings, 0, &mut rng).expect("usable settings");
        RefCell::new(Sides { server, robot })
    };
}

fn policy() -> ServerPolicy {
    ServerPolicy {
        settings: Http2Settings { streams: 4, window: 20_000 },
        form: TargetForm::Origin,
        use_limit: 6,
        idle_timeout: Some(10 * SECOND),
    }
}

/// The most forged datagrams of a session.
const MOST_FORGED: u64 = 400;

/// Runs a session. The first byte says which side seals wrong packets, if one does; the others say what is changed. Returns how much was
/// changed.
pub fn packets(data: &[u8]) -> Disturbed {
    let Some((&first, rest)) = data.split_first() else { return Disturbed::default() };
    let bytes = if rest.is_empty() { vec![first] } else { rest.to_vec() };
    let choices = Arc::new(Mutex::new(Choices { bytes, at: 0, round: 0, disturbed: Disturbed::default() }));
    SIDES.with_borrow_mut(|sides| session(first, sides, &choices));
    with(&choices, |choices| choices.disturbed)
}

fn session(first: u8, sides: &mut Sides, choices: &Shared) {
    let address = SocketAddr::from(([10, 0, 0, 1], 443));
    let link = VirtualLink::new(1_795_219_200);
    link.set_delay(Nanos::from_millis(1));
    if first & 4 == 0 {
        let (of_forge, mut kept) = (Arc::clone(choices), Vec::new());
        link.forge(move |datagram| {
            with(&of_forge, |choices| forge(choices, datagram, MOST_FORGED, &mut kept))
        });
    }
    sides.server.set_clock(&link);
    let honest = sides.server.quic().expect("TLS 1.3 is allowed");
    let crypto: Arc<dyn ServerConfig> = match first & 1 {
        0 => honest,
        _ => Arc::new(Wrong { inner: honest, choices: Arc::clone(choices) }),
    };
    let socket = link.bind_datagrams(address).expect("it is the only one");
    let task = link.clone();
    let accept = move |accepted: Result<ServerConnection, _>| {
        let Ok(connection) = accepted else { return };
        let of_task = task.clone();
        task.spawn(async move {
            let accept = |stream| of_task.spawn(answer(stream));
            connection.serve(&of_task, &policy(), accept, |_| ()).await;
        });
    };
    listen_with(&link, socket, (crypto, || ()), &policy().settings, accept);
    let wanted =
        TlsPeer { peer: (address, Some(0)), name: "a.test", resume: first & 8 == 0, protocol: Some(HTTP3) };
    let honest = sides.robot.quic(&link, &wanted).expect("usable settings");
    let settings = Http2Settings { streams: 8, window: 20_000 };
    let connected = match first & 2 {
        0 => ClientConnection::connect(&link, (None, address), honest, &settings),
        _ => {
            let wrong = Wrong { inner: Arc::new(honest), choices: Arc::clone(choices) };
            ClientConnection::connect(&link, (None, address), wrong, &settings)
        }
    };
    let connection = Rc::new(connected.expect("the link has sockets"));
    let (task, of_client) = (link.clone(), Arc::clone(choices));
    link.spawn(async move {
        if connection.ready(&task, Some(task.now() + 20 * SECOND)).await.is_err() {
            return;
        }
        for body in [0, 3000, 10, 8000] {
            let mut stream = connection.open_stream();
            stream.set_deadline(Some(task.now() + 5 * SECOND));
            let head = format!("POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: {body}\r\n\r\n");
            if send_all(&mut stream, head.as_bytes()).await.is_ok()
                && send_all(&mut stream, &vec![7; body]).await.is_ok()
                && stream.recv(|data| data.starts_with(b"HTTP/1.1 200 ")).await.unwrap_or(false)
            {
                with(&of_client, |choices| choices.disturbed.answered += 1);
                while stream.recv(|data| data.len()).await.is_ok_and(|n| n > 0) {}
            }
        }
    });
    let rests = (0..400).all(|_| link.run(link.now() + SECOND));
    assert!(rests, "tasks run for ever");
    link.end();
}

/// Answers with a few bytes once the content has arrived.
async fn answer(mut stream: polygraph_quic::Http3Stream) {
    stream.set_deadline(Some(300 * SECOND));
    let mut received = 0;
    while received < 30
        && let Ok(n) = stream.recv(|data| data.len()).await
        && n > 0
    {
        received += n;
    }
    if received > 0 {
        let _ = send_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n").await;
        let _ = send_all(&mut stream, &[5; 5000]).await;
    }
}
