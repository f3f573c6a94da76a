//! Both sides of connections over the virtual link.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Conn, Datagrams, Link, Nanos, OutgoingDatagrams, SECOND, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{Fault, FaultKind, Http2Settings, ServerEnd, ServerPolicy};
use polygraph_sim::VirtualLink;
use polygraph_tls::client::{ClientConfigs, RobotTls};
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::handshake::{Handshake, HandshakeKind, TlsPeer};
use polygraph_tls::quic::HTTP3;
use polygraph_tls::server::ServerConfigs;
use polygraph_tls::settings::{ClientTls, KeyKind, ServerTls, TlsOffer};
use polygraph_tls::{make_authority, make_key};
use polygraph_traffic::{Random, Seed, Selector};
use quinn_proto::Dir;

use crate::http3::frames::{kind, put_header};
use crate::http3::{codes, qpack};
use crate::{ClientConnection, Http3Stream, Lost, PathCounts, ServerConnection, listen};

mod goaway;
mod handshakes;
mod requests;

const EPOCH: u64 = 1_795_219_200;

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 443))
}

/// A server that sends back what it gets, and says of what size a reply is to be.
struct Bench {
    link: VirtualLink,
    robot: RefCell<RobotTls>,
    settings: Http2Settings,
    ends: Rc<RefCell<Vec<ServerEnd>>>,
    handshakes: Rc<RefCell<Vec<Handshake>>>,
    lost: Rc<RefCell<Vec<Lost>>>,
    served: Rc<Cell<PathCounts>>,
}

fn tls() -> (ClientTls, ServerTls) {
    tls_of("Test CA")
}

fn tls_of(authority: &str) -> (ClientTls, ServerTls) {
    let authority = make_authority(authority, KeyKind::EcdsaP256).unwrap();
    let server = ServerTls {
        authority: Some(authority.clone()),
        keys: Selector::only(make_key(KeyKind::EcdsaP256).unwrap()),
        cache: 100,
        early_data: 16_000,
        ..ServerTls::default()
    };
    let client =
        ClientTls { roots: authority.chain.clone(), verify: true, resumption: 1.0, ..ClientTls::default() };
    (client, server)
}

fn policy() -> ServerPolicy {
    ServerPolicy {
        settings: Http2Settings::default(),
        form: TargetForm::Origin,
        use_limit: u64::MAX,
        idle_timeout: None,
    }
}

/// Reads a message with `Content-Length`, or without content.
async fn read_message(conn: &mut impl Conn) -> io::Result<(String, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let head = all.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8(all[..head].to_vec()).unwrap();
            let length = text
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if all.len() >= head + length.unwrap_or(0) {
                return Ok((text, all.split_off(head)));
            }
        }
        let n = conn
            .recv(|data| {
                all.extend_from_slice(data);
                data.len()
            })
            .await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn answer(link: VirtualLink, mut stream: Http3Stream, think: Nanos) {
    let Ok((head, body)) = read_message(&mut stream).await else { return };
    link.sleep_until(link.now() + think).await;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let size = path.trim_start_matches('/').parse().unwrap_or(body.len());
    let body = if body.is_empty() { content(size) } else { body };
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Path: {path}\r\n\r\n", body.len());
    if send_all(&mut stream, reply.as_bytes()).await.is_ok() {
        let _ = send_all(&mut stream, &body).await;
    }
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

impl Bench {
    fn new(tls: (ClientTls, ServerTls), policy: ServerPolicy, think: Nanos) -> Bench {
        let bench = Bench::without_server(tls.0);
        let mut rng = Seed(1).stream("server", 0);
        let server = ServerConfigs::default().server(0, &tls.1, 0, "10.0.0.1", &mut rng).unwrap();
        let socket = bench.link.bind_datagrams(address()).unwrap();
        let (link, ends, handshakes) =
            (bench.link.clone(), Rc::clone(&bench.ends), Rc::clone(&bench.handshakes));
        let (lost, served) = (Rc::clone(&bench.lost), Rc::clone(&bench.served));
        let accept = move |accepted: Result<ServerConnection, Lost>| match accepted {
            Err(why) => lost.borrow_mut().push(why),
            Ok(connection) => {
                let (ends, handshakes, served) =
                    (Rc::clone(&ends), Rc::clone(&handshakes), Rc::clone(&served));
                let of_task = link.clone();
                link.spawn(async move {
                    let accept = |stream| of_task.spawn(answer(of_task.clone(), stream, think));
                    let end = connection
                        .serve(&of_task, &policy, accept, |facts| handshakes.borrow_mut().push(facts))
                        .await;
                    served.set(connection.take_path());
                    ends.borrow_mut().push(end);
                });
            }
        };
        listen(&bench.link, socket, &server, &policy.settings, accept).unwrap();
        bench
    }

    fn without_server(client: ClientTls) -> Bench {
        let mut rng = Seed(1).stream("robot", 0);
        let robot = ClientConfigs::default().robot(0, &Arc::new(client), 0, &mut rng).unwrap();
        let link = VirtualLink::new(EPOCH);
        link.set_delay(Nanos::from_millis(1));
        Bench {
            link,
            robot: RefCell::new(robot),
            settings: Http2Settings::default(),
            ends: Rc::default(),
            handshakes: Rc::default(),
            lost: Rc::default(),
            served: Rc::default(),
        }
    }

    fn connect(&self, name: &str) -> ClientConnection {
        let wanted = TlsPeer { peer: (address(), Some(0)), name, resume: true, protocol: Some(HTTP3) };
        let tls = self.robot.borrow_mut().quic(&self.link, &wanted).unwrap();
        ClientConnection::connect(&self.link, (None, address()), tls, &self.settings).unwrap()
    }

    /// Runs `work` to its end.
    fn run<R: 'static>(&self, work: impl Future<Output = R> + 'static) -> R {
        let result = Rc::new(RefCell::new(None));
        let of_task = Rc::clone(&result);
        self.link.spawn(async move {
            let done = work.await;
            *of_task.borrow_mut() = Some(done);
        });
        for _ in 0..200 {
            assert!(self.link.run(self.link.now() + SECOND), "tasks run for ever");
            if let Some(result) = result.borrow_mut().take() {
                return result;
            }
        }
        panic!("not done after 200 virtual seconds");
    }

    /// Waits for the handshake and sends requests for replies of these sizes, at the same time.
    fn get(
        &self,
        connection: ClientConnection,
        sizes: &[usize],
    ) -> (ClientConnection, Vec<io::Result<usize>>) {
        let (link, sizes) = (self.link.clone(), sizes.to_vec());
        self.run(async move {
            if let Err(error) = connection.ready(&link, Some(link.now() + 100 * SECOND)).await {
                return (connection, vec![Err(error)]);
            }
            let results = Rc::new(RefCell::new(Vec::new()));
            for size in sizes.clone() {
                let (stream, results) = (connection.open_stream(), Rc::clone(&results));
                link.spawn(async move {
                    let result = get(stream, size).await;
                    results.borrow_mut().push(result);
                });
            }
            while results.borrow().len() < sizes.len() {
                link.sleep_until(link.now() + Nanos::from_millis(1)).await;
            }
            let results = results.take();
            (connection, results)
        })
    }
}

/// Requests a reply of this size, and checks it.
async fn get(mut stream: Http3Stream, size: usize) -> io::Result<usize> {
    let request = format!("GET /{size} HTTP/1.1\r\nHost: www.example.com\r\nX-Xact: 1\r\n\r\n");
    send_all(&mut stream, request.as_bytes()).await?;
    let (head, body) = read_message(&mut stream).await?;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(&format!("x-path: /{size}\r\n")), "{head}");
    assert_eq!(body, content(size));
    Ok(body.len())
}

fn sizes(results: &[io::Result<usize>]) -> Vec<usize> {
    let mut sizes: Vec<usize> = results.iter().map(|result| *result.as_ref().unwrap()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn requests_and_replies_of_all_sizes_share_a_connection() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let wanted = [0, 1, 100, 1200, 65_536, 70_000, 3_000_000];
    let (connection, results) = bench.get(bench.connect("www.example.com"), &wanted);
    assert_eq!(sizes(&results), wanted);
    let facts = connection.take_handshake().unwrap();
    assert_eq!((facts.kind, facts.alpn.as_deref()), (HandshakeKind::Full, Some(&b"h3"[..])));
    assert!(facts.cipher != 0 && facts.group.is_some() && facts.issuer.is_some(), "{facts:?}");
    assert_eq!(bench.handshakes.borrow()[0].kind, HandshakeKind::Full);
    let bytes = connection.take_bytes();
    let all: usize = wanted.iter().sum();
    assert_eq!((bytes.received_content, bytes.sent_content), (all as u64, 0));
    assert!(bytes.received > all as u64 && bytes.sent > 0);
    assert_eq!((connection.open_streams(), connection.take_path().lost), (0, 0));
    drop(connection);
    bench.link.run(bench.link.now() + SECOND);
    let end = bench.ends.borrow_mut().pop().unwrap();
    assert!(end.failure.is_none() && !end.by_server && end.requests == 7, "{end:?}");
    assert_eq!(end.bytes.sent_content, all as u64);
}

#[test]
fn large_requests_come_back() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let (connection, link) = (bench.connect("www.example.com"), bench.link.clone());
    let body = bench.run(async move {
        connection.ready(&link, None).await.unwrap();
        let mut stream = connection.open_stream();
        let body = content(2_500_000);
        let head = format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
        send_all(&mut stream, head.as_bytes()).await.unwrap();
        send_all(&mut stream, &body).await.unwrap();
        let (_, back) = read_message(&mut stream).await.unwrap();
        back == body
    });
    assert!(body);
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    bench.link.lose_one_of(20);
    let wanted = [500_000, 700_000];
    let (connection, results) = bench.get(bench.connect("www.example.com"), &wanted);
    assert_eq!(sizes(&results), wanted);
    bench.link.lose_one_of(0);
    drop(connection);
    bench.link.run(bench.link.now() + SECOND);
    let path = bench.served.get();
    // The server sends nearly all packets, and one of 20 is lost.
    assert!(path.lost * 10 > path.sent / 4 && path.lost * 10 < path.sent, "{path:?}");
}

#[test]
fn sessions_are_resumed_and_requests_leave_early() {
    let (mut client, server) = tls();
    client.early_data = true;
    let bench = Bench::new((client, server), policy(), Nanos::ZERO);
    let (first, results) = bench.get(bench.connect("www.example.com"), &[10]);
    assert_eq!(sizes(&results), [10]);
    assert_eq!(first.take_handshake().unwrap().kind, HandshakeKind::Full);
    drop(first);
    let started = bench.link.now();
    let second = bench.connect("www.example.com");
    let link = bench.link.clone();
    let (second, took) = bench.run(async move {
        second.ready(&link, None).await.unwrap();
        get(second.open_stream(), 10).await.unwrap();
        (second, link.now() - started)
    });
    let facts = second.take_handshake().unwrap();
    assert_eq!((facts.kind, facts.offered, facts.early_refused), (HandshakeKind::Early, true, false));
    assert_eq!(bench.handshakes.borrow()[1].kind, HandshakeKind::Early);
    // There and back once: a millisecond each way.
    assert!(took < Nanos::from_millis(3), "{took:?}");
}

#[test]
fn refused_early_data_are_unprocessed_requests() {
    let (mut client, server) = tls();
    client.early_data = true;
    let bench = Bench::new((client.clone(), server.clone()), policy(), Nanos::ZERO);
    let (first, _) = bench.get(bench.connect("www.example.com"), &[10]);
    drop(first);
    // Another server, which does not know the session.
    let mut elsewhere = Bench::new((client, server), policy(), Nanos::ZERO);
    elsewhere.robot = bench.robot;
    let (second, results) = elsewhere.get(elsewhere.connect("www.example.com"), &[10]);
    let error = results.into_iter().next().unwrap().unwrap_err();
    assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Unprocessed), "{error}");
    let facts = second.take_handshake().unwrap();
    assert_eq!((facts.kind, facts.early_refused), (HandshakeKind::Full, true));
    let (_, again) = elsewhere.get(second, &[10, 20]);
    assert_eq!(sizes(&again), [10, 20]);
}

fn failure_of(bench: &Bench, name: &str) -> TlsFailure {
    let (_, results) = bench.get(bench.connect(name), &[1]);
    let error = results.into_iter().next().unwrap().unwrap_err();
    TlsFailure::of(&error).unwrap_or_else(|| panic!("{error:?}")).clone()
}

#[test]
fn failed_handshakes_have_their_kinds_on_both_sides() {
    let (client, mut server) = tls();
    let other = ClientTls { roots: tls_of("Other CA").0.roots, ..client.clone() };
    let bench = Bench::new((other, server.clone()), policy(), Nanos::ZERO);
    assert_eq!(failure_of(&bench, "www.example.com").kind, FailureKind::UnknownAuthority);
    bench.link.run(bench.link.now() + SECOND);
    let failure = bench.ends.borrow_mut().pop().unwrap().failure.unwrap();
    let failure = TlsFailure::of(&failure).unwrap().clone();
    assert_eq!((failure.kind, failure.alert), (FailureKind::Refused, Some(48)), "unknown_ca");
    // The server has only ciphers that the client does not offer.
    let only = |cipher| TlsOffer { ciphers: Selector::only(vec![cipher]), ..TlsOffer::default() };
    let client = ClientTls { offer: only(0x1301), ..client };
    server.offer = only(0x1302);
    let bench = Bench::new((client, server), policy(), Nanos::ZERO);
    assert_eq!(failure_of(&bench, "www.example.com").kind, FailureKind::NothingInCommon);
    assert!(matches!(&bench.lost.borrow()[..], [Lost::Tls(_)]), "{:?}", bench.lost);
}

#[test]
fn nobody_at_home_and_silence_are_told_apart() {
    let bench = Bench::without_server(tls().0);
    let (connection, results) = bench.get(bench.connect("www.example.com"), &[1]);
    let kind = results.into_iter().next().unwrap().unwrap_err().kind();
    assert_eq!((kind, connection.lost()), (io::ErrorKind::ConnectionRefused, Some(Lost::Absent)));
    let _silent = bench.link.bind_datagrams(address()).unwrap();
    let (connection, results) = bench.get(bench.connect("www.example.com"), &[1]);
    let kind = results.into_iter().next().unwrap().unwrap_err().kind();
    assert_eq!((kind, connection.lost()), (io::ErrorKind::TimedOut, None));
}

#[test]
fn servers_announce_the_end_of_a_connection_and_lose_no_reply() {
    let limited = ServerPolicy { use_limit: 3, ..policy() };
    let bench = Bench::new(tls(), limited, Nanos::from_millis(20));
    let (connection, results) = bench.get(bench.connect("www.example.com"), &[50_000; 5]);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Refused), "{error}");
    }
    assert!(connection.has_goaway() && !connection.is_usable());
    drop(connection);
    bench.link.run(bench.link.now() + SECOND);
    let end = bench.ends.borrow_mut().pop().unwrap();
    assert!(end.by_server && end.failure.is_none() && end.requests == 3, "{end:?}");
}

#[test]
fn idle_connections_are_closed_by_the_server_in_order() {
    let limited = ServerPolicy { idle_timeout: Some(2 * SECOND), ..policy() };
    let bench = Bench::new(tls(), limited, Nanos::ZERO);
    let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
    bench.link.run(bench.link.now() + SECOND / 2);
    assert!(connection.is_usable());
    bench.link.run(bench.link.now() + 3 * SECOND);
    assert_eq!((connection.is_usable(), connection.lost()), (false, Some(Lost::Closed)));
    assert!(bench.ends.borrow()[0].by_server);
}

#[test]
fn streams_wait_for_their_limit_and_for_their_deadlines() {
    let limited =
        ServerPolicy { settings: Http2Settings { streams: 2, ..Http2Settings::default() }, ..policy() };
    let bench = Bench::new(tls(), limited, Nanos::from_millis(100));
    let (connection, results) = bench.get(bench.connect("www.example.com"), &[5; 7]);
    assert_eq!(sizes(&results), [5; 7]);
    let link = bench.link.clone();
    let error = bench.run(async move {
        let mut stream = connection.open_stream();
        stream.set_deadline(Some(link.now() + Nanos::from_millis(50)));
        get(stream, 5).await.unwrap_err().kind()
    });
    assert_eq!(error, io::ErrorKind::TimedOut);
}

/// Opens a stream of the connection and sends these bytes on it.
fn send_raw(connection: &ClientConnection, dir: Dir, bytes: &[u8]) {
    let wire = &connection.session().wire;
    let id = wire.state().quic.streams().open(dir).unwrap();
    assert_eq!(wire.state().quic.send_stream(id).write(bytes), Ok(bytes.len()));
    wire.state().quic.send_stream(id).finish().unwrap();
    wire.touch();
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut section, mut out) = (Vec::new(), Vec::new());
    qpack::put_prefix(&mut section);
    fields.iter().for_each(|(name, value)| qpack::put_field(name, value.as_bytes(), &mut section));
    put_header(kind::HEADERS, section.len(), &mut out);
    out.extend_from_slice(&section);
    out
}

#[test]
fn malformed_messages_end_their_streams_only() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
    let get = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/1")];
    let with = |field| headers(&[&get[..], &[field]].concat());
    for bytes in [
        with((":path", "/2")),
        with((":other", "x")),
        with(("connection", "close")),
        with(("x", "a\rb")),
        headers(&get[1..]),
        headers(&[("x", "y"), (":method", "GET")]),
        [with(("content-length", "3")), b"\x00\x04long".to_vec()].concat(),
    ] {
        send_raw(&connection, Dir::Bi, &bytes);
    }
    let (connection, results) = bench.get(connection, &[9]);
    assert_eq!(sizes(&results), [9]);
    drop(connection);
    bench.link.run(bench.link.now() + SECOND);
    assert_eq!(bench.ends.borrow()[0].malformed, 7);
}

#[test]
fn broken_frames_and_floods_end_the_connection() {
    let flood = [headers(&[]), b"\x01\x80\x02\x00\x00".to_vec()].concat();
    for (dir, bytes, kind) in [
        (Dir::Bi, b"\x00\x01x".to_vec(), FaultKind::Protocol),
        (Dir::Bi, b"\x04\x00".to_vec(), FaultKind::Protocol),
        (Dir::Bi, b"\x01\x03\x00\x00\x80".to_vec(), FaultKind::Protocol),
        (Dir::Bi, b"\x01\x20\x00".to_vec(), FaultKind::Protocol),
        (Dir::Uni, b"\x00\x04\x00".to_vec(), FaultKind::Protocol),
        (Dir::Bi, flood[flood.len() - 5..].to_vec(), FaultKind::Flood),
    ] {
        let bench = Bench::new(tls(), policy(), Nanos::ZERO);
        let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
        send_raw(&connection, dir, &bytes);
        bench.link.run(bench.link.now() + SECOND);
        let end = bench.ends.borrow_mut().pop().unwrap();
        assert_eq!(end.fault(), Some(kind), "{bytes:?}: {end:?}");
        let Some(Lost::Fault(FaultKind::GoAway, text)) = connection.lost() else { panic!("{connection:?}") };
        assert!(
            text.starts_with("CONNECTION_CLOSE H3_") || text.starts_with("CONNECTION_CLOSE QPACK_"),
            "{text}"
        );
    }
}

/// Floods that cost the client little: each ends the connection, whose error says so.
#[test]
fn floods_have_their_kind() {
    let flooded = |flood: &dyn Fn(&Bench, &ClientConnection)| {
        let bench = Bench::new(tls(), policy(), Nanos::ZERO);
        let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
        flood(&bench, &connection);
        bench.link.run(bench.link.now() + SECOND);
        let end = bench.ends.borrow_mut().pop().expect("the server ends the connection");
        assert_eq!(end.fault(), Some(FaultKind::Flood), "{end:?}");
        end
    };
    // MAX_PUSH_ID again and again on the control stream, which the client has opened already.
    flooded(&|_, connection| {
        let wire = &connection.session().wire;
        let control = quinn_proto::StreamId::new(quinn_proto::Side::Client, Dir::Uni, 0);
        let frames: Vec<u8> = (0..120).flat_map(|id| [0x0d, 1, id % 64]).collect();
        let written = wire.state().quic.send_stream(control).write(&frames);
        assert_eq!(written, Ok(frames.len()));
        wire.touch();
    });
    // An endless stream of the decoder of QPACK: stream cancellations.
    flooded(&|bench, connection| {
        let wire = &connection.session().wire;
        let id = wire.state().quic.streams().open(Dir::Uni).unwrap();
        for piece in 0..10 {
            let bytes = if piece == 0 { b"\x03".to_vec() } else { vec![0x40; 10_000] };
            let _ = wire.state().quic.send_stream(id).write(&bytes);
            wire.touch();
            bench.link.run(bench.link.now() + Nanos::from_millis(20));
        }
    });
    // Streams of unknown types.
    flooded(&|bench, connection| {
        for _ in 0..1200 {
            let wire = &connection.session().wire;
            let Some(id) = wire.state().quic.streams().open(Dir::Uni) else {
                bench.link.run(bench.link.now() + Nanos::from_millis(5));
                continue;
            };
            let _ = wire.state().quic.send_stream(id).write(b"\x21x");
            let _ = wire.state().quic.send_stream(id).finish();
            wire.touch();
        }
    });
    // Requests that are given up at once ("rapid reset").
    let end = flooded(&|bench, connection| give_up(bench, connection, 5000, Nanos::ZERO));
    assert!(end.requests < 2000, "{end:?}");
}

/// Sends requests and gives them up before the server can have read them, one after each `pause`, until the connection ends.
fn give_up(bench: &Bench, connection: &ClientConnection, requests: u32, pause: Nanos) {
    let request = headers(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/9")]);
    for _ in 0..requests {
        let wire = &connection.session().wire;
        if wire.state().lost.is_some() {
            return;
        }
        let Some(id) = wire.state().quic.streams().open(Dir::Bi) else {
            bench.link.run(bench.link.now() + Nanos::from_millis(5));
            continue;
        };
        let _ = wire.state().quic.send_stream(id).write(&request);
        let _ = wire.state().quic.send_stream(id).reset(quinn_proto::VarInt::from_u32(0x10c));
        wire.touch();
        if pause > Nanos::ZERO {
            bench.link.run(bench.link.now() + pause);
        }
    }
}

/// A long connection may have many requests that are given up, if they are not too many at once.
#[test]
fn a_few_given_up_requests_now_and_then_are_no_flood() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
    give_up(&bench, &connection, 3000, Nanos::from_millis(40));
    assert!(connection.lost().is_none() && bench.ends.borrow().is_empty(), "{connection:?}");
    // Nothing is left of them: as many at once are allowed as at the start.
    give_up(&bench, &connection, 900, Nanos::ZERO);
    bench.link.run(bench.link.now() + SECOND);
    assert!(connection.lost().is_none() && bench.ends.borrow().is_empty(), "{connection:?}");
    give_up(&bench, &connection, 5000, Nanos::ZERO);
    bench.link.run(bench.link.now() + SECOND);
    let end = bench.ends.borrow_mut().pop().expect("the server ends the connection");
    assert_eq!(end.fault(), Some(FaultKind::Flood), "{end:?}");
}

/// Datagrams of somebody else, some of which look like the start of a connection.
#[test]
fn foreign_datagrams_disturb_nobody() {
    let bench = Bench::new(tls(), policy(), Nanos::ZERO);
    let (connection, _) = bench.get(bench.connect("www.example.com"), &[1]);
    let stranger = bench.link.bind_datagrams(SocketAddr::from(([10, 0, 0, 9], 9))).unwrap();
    let mut rng = Seed(1).stream("noise", 0);
    for number in 0..3000 {
        let mut bytes: Vec<u8> = (0..1 + rng.below(1300)).map(|_| rng.below(256) as u8).collect();
        match number % 4 {
            // A long header of QUIC version 1 with ids of the usual lengths.
            0 => {
                bytes.resize(1200, 0);
                bytes[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
                bytes[14..16].copy_from_slice(&[0, 0]);
            }
            1 => bytes[0] |= 0xc0,
            2 => bytes[0] = bytes[0] & 0x3f | 0x40,
            _ => {}
        }
        let out = OutgoingDatagrams { to: address(), from: None, ecn: 0, segment: None, bytes: &bytes };
        stranger.try_send(&out).unwrap();
        if number % 100 == 0 {
            bench.link.run(bench.link.now() + Nanos::from_millis(10));
        }
    }
    let (_, results) = bench.get(connection, &[7, 8]);
    assert_eq!(sizes(&results), [7, 8]);
    let (_, results) = bench.get(bench.connect("www.example.com"), &[9]);
    assert_eq!(sizes(&results), [9]);
}

/// Both sides pay for every byte of a datagram that only tries out its size.
#[test]
fn the_size_that_fits_the_path_is_found_in_few_steps() {
    for (largest, expected, probes) in [(1452, 1452, &[1452][..]), (1400, 1325, &[1452, 1452, 1452, 1325])] {
        let bench = Bench::new(tls(), policy(), Nanos::ZERO);
        bench.link.lose_larger_than(largest);
        let large = Rc::<RefCell<Vec<usize>>>::default();
        let seen = Rc::clone(&large);
        bench.link.forge(move |bytes| {
            seen.borrow_mut().extend((bytes.len() > 1200).then_some(bytes.len()));
            Vec::new()
        });
        let mut connection = bench.connect("www.example.com");
        for _ in 0..8 {
            let results;
            (connection, results) = bench.get(connection, &[1]);
            assert_eq!(sizes(&results), [1]);
            bench.link.run(bench.link.now() + SECOND);
        }
        let mtu = connection.session().wire.state().quic.current_mtu();
        let mut of_both = large.borrow().clone();
        of_both.sort_unstable();
        let mut wanted = [probes, probes].concat();
        wanted.sort_unstable();
        assert_eq!((mtu, of_both), (expected, wanted));
        let (_, results) = bench.get(connection, &[100_000]);
        assert_eq!(sizes(&results), [100_000]);
    }
}

#[test]
fn names_of_codes_are_those_of_the_standards() {
    assert_eq!(codes::name(codes::H3_EXCESSIVE_LOAD), "H3_EXCESSIVE_LOAD");
    assert!(codes::is_known(codes::QPACK_DECOMPRESSION_FAILED) && !codes::is_known(0));
    assert_eq!((codes::name(0x100).as_str(), codes::name(0x7).as_str()), ("H3_NO_ERROR", "code 0x7"));
}
