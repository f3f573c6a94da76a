//! HTTP/2 connections in virtual time: both sides, and what one side does to the other with frames written by hand.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos, SECOND, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{
    ClientConnection, ClientEnd, Fault, FaultKind, Http2Settings, ServerEnd, ServerPolicy, Stream, server,
};
use polygraph_sim::{VirtualConn, VirtualLink};

const POLICY: ServerPolicy = ServerPolicy {
    settings: Http2Settings { streams: 10, window: 1 << 20 },
    form: TargetForm::Origin,
    use_limit: u64::MAX,
    idle_timeout: None,
};

fn place() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

/// A world with a server that `answer`s each stream in its own task.
struct World {
    link: VirtualLink,
    ends: Rc<RefCell<Vec<ServerEnd>>>,
}

impl World {
    fn new<F: Future<Output = ()> + 'static>(
        policy: ServerPolicy,
        answer: impl Fn(VirtualLink, Stream) -> F + 'static,
    ) -> World {
        let world = World { link: VirtualLink::new(0), ends: Rc::default() };
        let (link, ends, answer) = (world.link.clone(), Rc::clone(&world.ends), Rc::new(answer));
        world.link.listen(place(), move |conn, _| {
            let (task, ends, answer) = (link.clone(), Rc::clone(&ends), Rc::clone(&answer));
            link.spawn(async move {
                let accept = |stream| task.spawn(answer(task.clone(), stream));
                let end = server::serve(&task, conn, &[], &policy, accept).await;
                ends.borrow_mut().push(end);
            });
        });
        world
    }

    /// Runs `client` in a task until it ends, or for a minute at most; returns its result.
    #[track_caller]
    fn run<R: 'static, F: Future<Output = R> + 'static>(
        &self,
        client: impl FnOnce(VirtualLink, VirtualConn) -> F,
    ) -> R {
        let conn = self.link.connect(None, place()).unwrap();
        let task = client(self.link.clone(), conn);
        let result = Rc::new(RefCell::new(None));
        let given = Rc::clone(&result);
        self.link.spawn(async move { *given.borrow_mut() = Some(task.await) });
        let start = self.link.now();
        for second in 1..=60 {
            assert!(self.link.run(start + second * SECOND));
            if let Some(result) = result.take() {
                return result;
            }
        }
        panic!("the client does not end");
    }

    fn end(&self) -> ServerEnd {
        assert!(self.link.run(self.link.now() + SECOND));
        self.ends.borrow_mut().pop().expect("the server's connection has ended")
    }
}

/// Receives until there are `size` bytes after the head, or until the end.
async fn receive(conn: &mut impl Conn, size: usize) -> io::Result<String> {
    let mut all = Vec::new();
    loop {
        let n = conn
            .recv(|data| {
                all.extend_from_slice(data);
                data.len()
            })
            .await?;
        let text = String::from_utf8_lossy(&all);
        if n == 0 || text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= size) {
            return Ok(text.into_owned());
        }
    }
}

async fn answer_with(mut stream: Stream, reply: Vec<u8>) {
    if receive(&mut stream, 0).await.is_ok() {
        let _ = send_all(&mut stream, &reply).await;
    }
}

async fn get(stream: &mut Stream, path: &str, size: usize) -> io::Result<String> {
    send_all(stream, format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await?;
    receive(stream, size).await
}

fn start(link: &VirtualLink, conn: VirtualConn) -> ClientConnection {
    ClientConnection::start(link, conn, "http", &Http2Settings { streams: 100, window: 100_000 })
}

#[test]
fn streams_are_independent_exchanges() {
    let world = World::new(POLICY, |link, mut stream| async move {
        let request = receive(&mut stream, 0).await.unwrap();
        let path = request.split(' ').nth(1).unwrap()[1..].to_owned();
        assert_eq!(request, format!("GET /{path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        // Later requests are answered first.
        link.sleep_until(Nanos::from_secs(10 - path.parse::<u64>().unwrap())).await;
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{path}");
        send_all(&mut stream, reply.as_bytes()).await.unwrap();
    });
    let order: Rc<RefCell<Vec<u64>>> = Rc::default();
    let seen = Rc::clone(&order);
    world.run(|link, conn| async move {
        let connection = Rc::new(start(&link, conn));
        for number in 1..=3u64 {
            let (connection, seen) = (Rc::clone(&connection), Rc::clone(&seen));
            link.spawn(async move {
                let mut stream = connection.open_stream();
                let reply = get(&mut stream, &format!("/{number}"), 1).await.unwrap();
                assert_eq!(reply, format!("HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\n{number}"));
                seen.borrow_mut().push(number);
            });
        }
        link.sleep_until(5 * SECOND).await;
        assert_eq!(connection.open_streams(), 3);
        link.sleep_until(11 * SECOND).await;
        assert_eq!(connection.open_streams(), 0);
        let bytes = connection.take_bytes();
        assert!(bytes.sent > 100 && bytes.received > 100, "{bytes:?}");
        assert_eq!((bytes.sent_content, bytes.received_content), (0, 3));
        assert_eq!(connection.take_bytes(), polygraph_multiplex::WireBytes::default());
    });
    assert_eq!(*order.borrow(), [3, 2, 1]);
    let end = world.end();
    assert!(end.failure.is_none() && !end.by_server, "{end:?}");
    assert_eq!((end.requests, end.malformed), (3, 0));
}

#[test]
fn bodies_larger_than_all_windows_arrive() {
    const SIZE: usize = 3_000_000;
    let world = World::new(POLICY, |_, mut stream| async move {
        let body = vec![b'r'; SIZE];
        let request = receive(&mut stream, SIZE).await.unwrap();
        assert!(request.starts_with("POST / HTTP/1.1\r\nHost: h\r\n"), "{}", &request[..100]);
        assert!(request.ends_with(&"q".repeat(1000)));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        let mut parts = [IoSlice::new(head.as_bytes()), IoSlice::new(&body[..10]), IoSlice::new(&body[10..])];
        polygraph_link::send_all_parts(&mut stream, &mut parts).await.unwrap();
    });
    let reply = world.run(|link, conn| async move {
        let mut stream = start(&link, conn).open_stream();
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {SIZE}\r\n\r\n");
        send_all(&mut stream, head.as_bytes()).await.unwrap();
        send_all(&mut stream, &vec![b'q'; SIZE]).await.unwrap();
        receive(&mut stream, SIZE).await.unwrap()
    });
    assert!(reply.ends_with(&"r".repeat(SIZE)) && reply.len() < SIZE + 100);
    assert!(world.end().bytes.received > SIZE as u64);
}

#[test]
fn interim_replies_chunks_and_trailers_cross() {
    let world = World::new(POLICY, |_, mut stream| async move {
        receive(&mut stream, 0).await.unwrap();
        send_all(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            stream.recv(|data| body.extend_from_slice(data)).await.unwrap();
        }
        assert_eq!(body, b"2\r\nab\r\n0\r\n\r\n");
        let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\nX-Sum: 7\r\n\r\n";
        send_all(&mut stream, reply.as_bytes()).await.unwrap();
    });
    let (interim, reply) = world.run(|link, conn| async move {
        let mut stream = start(&link, conn).open_stream();
        let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
        send_all(&mut stream, head.as_bytes()).await.unwrap();
        let interim = receive(&mut stream, 0).await.unwrap();
        send_all(&mut stream, b"2\r\nab\r\n0\r\n\r\n").await.unwrap();
        (interim, receive(&mut stream, 100).await.unwrap())
    });
    assert_eq!(interim, "HTTP/1.1 100 \r\n\r\n");
    let expected = "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\nx-sum: 7\r\n\r\n";
    assert_eq!(reply, expected);
}

#[test]
fn deadlines_end_waiting() {
    let world = World::new(POLICY, |link, mut stream| async move {
        receive(&mut stream, 0).await.unwrap();
        link.sleep_until(50 * SECOND).await;
    });
    let (kind, at, second) = world.run(|link, conn| async move {
        let connection = start(&link, conn);
        let (mut stream, mut other) = (connection.open_stream(), connection.open_stream());
        other.set_deadline(Some(30 * SECOND));
        stream.set_deadline(Some(3 * SECOND));
        let error = get(&mut stream, "/", 0).await.unwrap_err();
        let at = link.now();
        stream.set_deadline(Some(5 * SECOND));
        stream.recv(|_| ()).await.unwrap_err();
        (error.kind(), at, link.now())
    });
    assert_eq!(kind, io::ErrorKind::TimedOut);
    assert!(at >= 3 * SECOND && at < 4 * SECOND, "{at:?}");
    assert!(second >= 5 * SECOND && second < 6 * SECOND, "{second:?}");
}

#[test]
fn resets_are_seen_on_both_sides() {
    let errors: Rc<RefCell<Vec<FaultKind>>> = Rc::default();
    let noted = Rc::clone(&errors);
    let world = World::new(POLICY, move |_, mut stream| {
        let noted = Rc::clone(&noted);
        async move {
            let request = receive(&mut stream, 0).await.unwrap();
            if request.contains("/cut") {
                send_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut").await.unwrap();
                return;
            }
            let error = receive(&mut stream, 100).await.unwrap_err();
            noted.borrow_mut().push(Fault::of(&error).unwrap().kind);
        }
    });
    world.run(|link, conn| async move {
        let connection = start(&link, conn);
        let mut stream = connection.open_stream();
        let error = get(&mut stream, "/cut", 9).await.unwrap_err();
        assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Reset), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(error.to_string().contains("CANCEL"), "{error}");
        let mut stream = connection.open_stream();
        send_all(&mut stream, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx").await.unwrap();
        drop(stream);
        link.sleep_until(SECOND).await;
        assert!(connection.is_usable());
        let mut stream = connection.open_stream();
        let error = send_all(&mut stream, b"GET / HTTP/1.1\r\nHost: h\r\n\r\nmore").await.unwrap_err();
        assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Message), "{error}");
    });
    assert_eq!(errors.borrow()[0], FaultKind::Reset);
}

#[test]
fn a_server_announces_the_end_after_its_last_request() {
    let world = World::new(ServerPolicy { use_limit: 2, ..POLICY }, |_, stream| {
        answer_with(stream, b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())
    });
    world.run(|link, conn| async move {
        let connection = start(&link, conn);
        for _ in 0..2 {
            assert!(connection.is_usable());
            assert_eq!(get(&mut connection.open_stream(), "/", 0).await.unwrap(), "HTTP/1.1 204 \r\n\r\n");
        }
        link.sleep_until(SECOND).await;
        assert!(!connection.is_usable());
        let error = get(&mut connection.open_stream(), "/", 0).await.unwrap_err();
        assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Unprocessed), "{error}");
        assert_eq!(connection.end(), Some(ClientEnd::Closed));
    });
    let end = world.end();
    assert!(end.by_server && end.failure.is_none(), "{end:?}");
}

#[test]
fn idle_connections_end_in_order() {
    let policy = ServerPolicy { idle_timeout: Some(5 * SECOND), ..POLICY };
    let world = World::new(policy, |link, mut stream| async move {
        receive(&mut stream, 0).await.unwrap();
        // A busy connection is not idle.
        link.sleep_until(20 * SECOND).await;
        send_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    });
    world.run(|link, conn| async move {
        let connection = start(&link, conn);
        get(&mut connection.open_stream(), "/", 0).await.unwrap();
        assert_eq!(link.now(), 20 * SECOND);
        link.sleep_until(24 * SECOND).await;
        assert!(connection.is_usable());
        link.sleep_until(26 * SECOND).await;
        assert!(!connection.is_usable());
    });
    assert!(world.end().by_server);
    // A client that sends nothing is idle, too.
    world.run(|link, conn| async move {
        link.sleep_until(link.now() + 7 * SECOND).await;
        drop(conn);
    });
    let end = world.end();
    assert!(end.by_server && end.failure.is_none(), "{end:?}");
}

#[test]
fn limits_of_the_server_are_kept() {
    let policy = ServerPolicy { settings: Http2Settings { streams: 2, ..POLICY.settings }, ..POLICY };
    let world = World::new(policy, |_, stream| {
        answer_with(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    world.run(|link, conn| async move {
        let connection = start(&link, conn);
        get(&mut connection.open_stream(), "/", 0).await.unwrap();
        let (_one, two) = (connection.open_stream(), connection.open_stream());
        assert!(!connection.has_room());
        drop(two);
        assert!(connection.has_room());
    });
}

/// Frames written by hand.
mod frames {
    pub const SETTINGS: u8 = 4;
    pub const HEADERS: u8 = 1;
    pub const CONTINUATION: u8 = 9;
    pub const RST_STREAM: u8 = 3;
    pub const PING: u8 = 6;
    pub const END_HEADERS: u8 = 4;
    pub const END_STREAM: u8 = 1;

    /// A frame (RFC 9113, section 4.1).
    pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let size = (payload.len() as u32).to_be_bytes();
        [&size[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// `GET http://h/` in HPACK, without the dynamic table (RFC 7541, appendix A).
    pub const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 0x01, b'h'];

    /// A field that is not indexed (RFC 7541, section 6.2.2), with a name of one letter.
    pub fn field(value: &[u8]) -> Vec<u8> {
        let mut field = vec![0x00, 0x01, b'a', 0x7f];
        let mut rest = value.len() - 127;
        while rest >= 128 {
            field.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        field.push(rest as u8);
        [&field, value].concat()
    }
}

/// Sends `bytes` after the preface and an empty SETTINGS frame, and reads what the server sends until it closes.
fn attack(world: &World, pieces: impl Iterator<Item = Vec<u8>> + 'static) -> (usize, Vec<u8>) {
    world.run(|link, mut conn| async move {
        let mut sent = 0;
        let mut replies = Vec::new();
        let hello = [server::PREFACE, &frames::frame(frames::SETTINGS, 0, 0, &[])].concat();
        conn.set_deadline(Some(link.now() + 30 * SECOND));
        for piece in std::iter::once(hello).chain(pieces) {
            if send_all(&mut conn, &piece).await.is_err() {
                break;
            }
            sent += piece.len();
            polygraph_link::yield_now().await;
        }
        while let Ok(n) = conn
            .recv(|data| {
                replies.extend_from_slice(data);
                data.len()
            })
            .await
        {
            if n == 0 {
                break;
            }
        }
        (sent, replies)
    })
}

fn flooded() -> World {
    World::new(POLICY, |_, stream| answer_with(stream, b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()))
}

/// The attack ends with an error of this kind, before all of it is taken.
#[track_caller]
fn ends_as(world: &World, kind: FaultKind) {
    let end = world.end();
    assert_eq!(end.fault(), Some(kind), "{end:?}");
}

#[test]
fn a_continuation_flood_ends_the_connection() {
    use frames::*;
    let world = flooded();
    let first = frame(HEADERS, END_STREAM, 1, GET);
    let more = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &field(&[b'x'; 1000])), 10_000);
    attack(&world, std::iter::once(first).chain(more));
    let end = world.end();
    assert!(end.bytes.received < 1 << 20, "{end:?}");
    assert_eq!(end.fault(), Some(FaultKind::Flood), "{end:?}");
    // Empty frames never fill the field section.
    let world = flooded();
    let first = frame(HEADERS, END_STREAM, 1, GET);
    attack(
        &world,
        std::iter::once(first).chain(std::iter::repeat_n(frame(CONTINUATION, 0, 1, &[]), 100_000)),
    );
    ends_as(&world, FaultKind::Flood);
}

#[test]
fn a_rapid_reset_ends_the_connection() {
    use frames::*;
    let world = flooded();
    let burst = |start: u32| {
        (start..start + 100)
            .flat_map(|n| {
                let stream = 2 * n + 1;
                let get = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
                [get, frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())].concat()
            })
            .collect::<Vec<u8>>()
    };
    attack(&world, (0..1000).map(move |n| burst(100 * n)));
    let end = world.end();
    assert_eq!(end.fault(), Some(FaultKind::Flood), "{end:?}");
    assert!(end.bytes.received < 1 << 20, "{end:?}");
}

#[test]
fn replies_to_floods_of_settings_and_pings_wait_for_the_client() {
    use frames::*;
    for flood in [frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]), frame(PING, 0, 0, &[0; 8])] {
        let world = flooded();
        let size = 100_000 * flood.len();
        let piece: Vec<u8> = flood.repeat(1000);
        // The client never reads while it sends, so the server stops reading when its own replies cannot leave.
        let conn = world.link.connect(None, place()).unwrap();
        let taken: Rc<RefCell<usize>> = Rc::default();
        let counted = Rc::clone(&taken);
        let mut conn = conn;
        world.link.spawn(async move {
            let hello = [server::PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
            send_all(&mut conn, &hello).await.unwrap();
            for _ in 0..100 {
                if send_all(&mut conn, &piece).await.is_err() {
                    return;
                }
                *counted.borrow_mut() += piece.len();
            }
        });
        assert!(world.link.run(30 * SECOND));
        assert!(
            *taken.borrow() < size,
            "the server takes everything and keeps {} replies",
            size / flood.len()
        );
    }
}

#[test]
fn huge_field_sections_are_refused() {
    use frames::*;
    let world = flooded();
    let fields = [GET.to_vec(), field(&vec![b'x'; 15_000])].concat();
    let first = frame(HEADERS, END_STREAM, 1, &fields);
    let more =
        (0..9).map(|n| frame(CONTINUATION, if n == 8 { END_HEADERS } else { 0 }, 1, &field(&[b'x'; 10_000])));
    let (_, replies) = attack(&world, std::iter::once(first).chain(more));
    assert!(!replies.is_empty());
    let end = world.end();
    assert!(end.bytes.received < 1 << 20, "{end:?}");
}

#[test]
fn what_is_not_http2_ends_the_connection() {
    use frames::*;
    for garbage in [frame(HEADERS, END_HEADERS, 2, GET), frame(CONTINUATION, 0, 1, b""), vec![0xff; 100]] {
        let world = flooded();
        attack(&world, std::iter::once(garbage));
        ends_as(&world, FaultKind::Protocol);
    }
}

#[test]
fn a_server_that_is_no_http2_server_is_an_error() {
    let link = VirtualLink::new(0);
    let (ours, mut theirs) = link.pair();
    let result: Rc<RefCell<Option<String>>> = Rc::default();
    let given = Rc::clone(&result);
    link.spawn(async move {
        send_all(&mut theirs, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        while theirs.recv(|data| data.len()).await.is_ok_and(|n| n > 0) {}
    });
    let task = link.clone();
    link.spawn(async move {
        let connection = start(&task, ours);
        let error = get(&mut connection.open_stream(), "/", 0).await.unwrap_err();
        *given.borrow_mut() = Some(format!("{:?} {error}", Fault::of(&error).map(|fault| fault.kind)));
    });
    assert!(link.run(SECOND));
    let text = result.take().expect("the stream has failed");
    assert!(text.starts_with("Some(Protocol)"), "{text}");
}
