//! Servers that announce the end of a connection, and leave it to the client what becomes of its streams.

use polygraph_link::Link;
use quinn_proto::{ReadError, Side, StreamId};

use super::*;
use crate::http3::control;

/// A server whose streams the test serves.
struct Raw {
    bench: Bench,
    client: Rc<ClientConnection>,
    server: ServerConnection,
    control: StreamId,
}

/// The outcomes of requests, by their numbers.
type Outcomes = Rc<RefCell<Vec<(usize, io::Result<usize>)>>>;

fn request_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

impl Raw {
    fn new(settings: Http2Settings) -> Raw {
        let (client, server) = tls();
        let bench = Bench::without_server(client);
        let mut rng = Seed(1).stream("server", 0);
        let server = ServerConfigs::default().server(0, &server, 0, "10.0.0.1", &mut rng).unwrap();
        let socket = bench.link.bind_datagrams(address()).unwrap();
        let accepted = Rc::<RefCell<Option<ServerConnection>>>::default();
        let of_task = Rc::clone(&accepted);
        let accept = move |connection: Result<ServerConnection, Lost>| {
            *of_task.borrow_mut() = Some(connection.unwrap());
        };
        listen(&bench.link, socket, &server, &settings, accept).unwrap();
        let (client, _) = bench.get(bench.connect("www.example.com"), &[]);
        let server = accepted.take().expect("the client has connected");
        let control = server.session().wire.state().quic.streams().open(Dir::Uni).unwrap();
        let raw = Raw { bench, client: Rc::new(client), server, control };
        raw.send(control, &control::start(70_000));
        raw
    }

    fn pause(&self) {
        self.bench.link.run(self.bench.link.now() + Nanos::from_millis(20));
    }

    fn send(&self, id: StreamId, bytes: &[u8]) {
        let wire = &self.server.session().wire;
        assert_eq!(wire.state().quic.send_stream(id).write(bytes), Ok(bytes.len()));
        wire.touch();
        self.pause();
    }

    /// Announces that streams from this one on are not processed.
    fn announce(&self, index: u64) {
        self.send(self.control, &control::goaway(u64::from(request_stream(index))));
    }

    /// Sends GET requests.
    fn get(&self, requests: usize) -> Outcomes {
        let outcomes = Outcomes::default();
        for number in 0..requests {
            let (stream, outcomes) = (self.client.open_stream(), Rc::clone(&outcomes));
            self.bench.link.spawn(async move {
                let result = get(stream, 3).await;
                outcomes.borrow_mut().push((number, result));
            });
        }
        self.pause();
        while self.server.session().wire.state().quic.streams().accept(Dir::Bi).is_some() {}
        outcomes
    }

    /// The code with which the client has stopped the reply on a stream.
    fn stopped(&self, index: u64) -> Option<u64> {
        let state = &mut *self.server.session().wire.state();
        state.quic.send_stream(request_stream(index)).stopped().unwrap().map(|code| code.into_inner())
    }
}

/// The numbers of the requests that were not processed since the last call. There must be no others.
fn unprocessed(outcomes: &Outcomes) -> Vec<usize> {
    let mut numbers: Vec<usize> = outcomes
        .take()
        .into_iter()
        .map(|(number, result)| {
            let error = result.unwrap_err();
            assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(FaultKind::Unprocessed), "{error}");
            number
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The server neither resets the streams nor closes the connection.
#[test]
fn requests_from_the_announced_one_on_are_unprocessed_at_once() {
    let raw = Raw::new(Http2Settings::default());
    let outcomes = raw.get(4);
    raw.announce(10);
    assert!(outcomes.borrow().is_empty() && raw.client.has_goaway());
    raw.announce(2);
    assert_eq!(unprocessed(&outcomes), [2, 3]);
    assert_eq!([1, 2, 3].map(|index| raw.stopped(index)), [None, Some(0x10c), Some(0x10c)]);
    raw.announce(1);
    assert_eq!(unprocessed(&outcomes), [1]);
    assert_eq!([0, 1].map(|index| raw.stopped(index)), [None, Some(0x10c)]);
    raw.send(request_stream(0), &reply());
    assert!(matches!(outcomes.take()[..], [(0, Ok(3))]));
    assert!(raw.client.lost().is_none());
}

fn reply() -> Vec<u8> {
    let fields = [(":status", "200"), ("content-length", "3"), ("x-path", "/3")];
    [&headers(&fields)[..], b"\x00\x03", &content(3)].concat()
}

/// A server that answers has processed the request, whatever it announces.
#[test]
fn replies_that_have_begun_are_read_to_their_end() {
    let raw = Raw::new(Http2Settings::default());
    let outcomes = raw.get(2);
    let (reply, id) = (reply(), request_stream(1));
    let (begin, end) = reply.split_at(reply.len() - 2);
    raw.send(id, begin);
    raw.announce(0);
    assert_eq!(unprocessed(&outcomes), [0]);
    raw.send(id, end);
    assert!(matches!(outcomes.take()[..], [(1, Ok(3))]));
}

/// The content waits for room, and another request for the limit of streams.
#[test]
fn those_who_wait_to_send_are_woken() {
    let raw = Raw::new(Http2Settings { window: 2000, streams: 1 });
    let (mut stream, first) = (raw.client.open_stream(), Outcomes::default());
    let of_task = Rc::clone(&first);
    raw.bench.link.spawn(async move {
        let head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
        send_all(&mut stream, head).await.unwrap();
        let sent = send_all(&mut stream, &content(100_000)).await;
        of_task.borrow_mut().push((0, sent.map(|()| 0)));
        // It stays what it is.
        let received = stream.recv(|data| data.len()).await;
        let sent = send_all(&mut stream, b"x").await;
        of_task.borrow_mut().extend([(1, received), (2, sent.map(|()| 0))]);
        // The stream is reset although nobody drops it.
        std::future::pending::<()>().await;
    });
    raw.pause();
    let second = raw.get(1);
    assert!(first.borrow().is_empty() && second.borrow().is_empty());
    raw.announce(0);
    assert_eq!((unprocessed(&first), unprocessed(&second)), (vec![0, 1, 2], vec![0]));
    let state = &mut *raw.server.session().wire.state();
    let mut receive = state.quic.recv_stream(request_stream(0));
    let mut chunks = receive.read(true).unwrap();
    let reset = chunks.next(usize::MAX).map(|_| ());
    let _ = chunks.finalize();
    assert_eq!(reset, Err(ReadError::Reset(quinn_proto::VarInt::from_u32(0x10c))));
}

/// Whatever code the server resets such a stream with.
#[test]
fn streams_that_the_server_resets_are_unprocessed_as_well() {
    for (code, kind) in [(0x100, FaultKind::Unprocessed), (0x10b, FaultKind::Refused)] {
        let raw = Raw::new(Http2Settings::default());
        let (mut stream, link) = (raw.client.open_stream(), raw.bench.link.clone());
        let outcome = Rc::<RefCell<Option<io::Error>>>::default();
        let of_task = Rc::clone(&outcome);
        raw.bench.link.spawn(async move {
            send_all(&mut stream, b"GET /3 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
            // Both have arrived when the reply is awaited.
            link.sleep_until(link.now() + SECOND).await;
            *of_task.borrow_mut() = stream.recv(|data| data.len()).await.err();
        });
        raw.pause();
        raw.announce(0);
        let code = quinn_proto::VarInt::from_u32(code);
        raw.server.session().wire.state().quic.send_stream(request_stream(0)).reset(code).unwrap();
        raw.server.session().wire.touch();
        raw.bench.link.run(raw.bench.link.now() + 2 * SECOND);
        let error = outcome.take().unwrap();
        assert_eq!(Fault::of(&error).map(|fault| fault.kind), Some(kind), "{error}");
    }
}
