//! A stream that is alone on its connection sends and receives itself; with others, the task that drives the connection does. Both in
//! virtual time.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::{io, task};

use polygraph_link::{Conn, ConnectError, Link, Nanos, SECOND, send_all};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{ClientConnection, ClientEnd, Http2Settings, ServerPolicy, Stream, server};
use polygraph_sim::{VirtualConn, VirtualLink};
use proptest::prelude::*;

/// A link that counts how often its tasks are polled.
#[derive(Clone)]
struct Counting {
    link: VirtualLink,
    polls: Rc<Cell<u32>>,
}

impl Link for Counting {
    type Conn = VirtualConn;
    type Datagrams = <VirtualLink as Link>::Datagrams;

    fn now(&self) -> Nanos {
        self.link.now()
    }

    fn http_date(&self) -> [u8; 29] {
        self.link.http_date()
    }

    fn unix_seconds(&self) -> i64 {
        self.link.unix_seconds()
    }

    fn unix_millis(&self) -> u64 {
        self.link.unix_millis()
    }

    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()> {
        self.link.sleep_until(at)
    }

    fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> Result<VirtualConn, ConnectError> {
        self.link.connect(from, to)
    }

    async fn exchange_datagram<R>(
        &self,
        from: Option<IpAddr>,
        server: SocketAddr,
        datagram: &[u8],
        until: Option<Nanos>,
        accept: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        self.link.exchange_datagram(from, server, datagram, until, accept).await
    }

    fn connect_datagrams(
        &self,
        from: Option<IpAddr>,
        to: SocketAddr,
    ) -> Result<Self::Datagrams, ConnectError> {
        self.link.connect_datagrams(from, to)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let polls = Rc::clone(&self.polls);
        self.link.spawn(async move {
            let mut task = pin!(task);
            poll_fn(|cx| {
                polls.set(polls.get() + 1);
                task.as_mut().poll(cx)
            })
            .await;
        });
    }
}

fn place() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

/// A server that answers `/SIZE` with so many bytes.
fn serve(link: &VirtualLink, settings: Http2Settings, use_limit: u64) {
    let policy = ServerPolicy { settings, form: TargetForm::Origin, use_limit, idle_timeout: None };
    let task = link.clone();
    link.listen(place(), move |conn, _| {
        let link = task.clone();
        task.spawn(async move {
            let accept = |stream| link.spawn(answer(stream));
            server::serve(&link, conn, &[], &policy, accept).await;
        });
    });
}

async fn answer(mut stream: Stream) {
    let mut head = Vec::new();
    if stream.recv(|data| head.extend_from_slice(data)).await.is_err() {
        return;
    }
    let head = String::from_utf8(head).unwrap();
    let size = head.split(' ').nth(1).and_then(|target| target[1..].parse().ok()).unwrap();
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{}", "r".repeat(size));
    // The client may not want the rest.
    let _ = send_all(&mut stream, reply.as_bytes()).await;
}

/// Asks for so many bytes, and reads up to `most` of them. Returns how many there were.
async fn get(stream: &mut Stream, size: usize, most: usize) -> io::Result<usize> {
    send_all(stream, format!("GET /{size} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).await?;
    let (mut all, mut head) = (Vec::new(), None);
    loop {
        let n = stream
            .recv(|data| {
                all.extend_from_slice(data);
                data.len()
            })
            .await?;
        head = head.or_else(|| all.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4));
        let content = all.len() - head.unwrap_or(all.len());
        if n == 0 || head.is_some() && content >= size.min(most) {
            return Ok(content);
        }
    }
}

/// Runs `client` until it ends, within ten minutes.
#[track_caller]
fn run<R: 'static>(link: &VirtualLink, client: impl Future<Output = R> + 'static) -> R {
    let result = Rc::new(RefCell::new(None));
    let given = Rc::clone(&result);
    link.spawn(async move { *given.borrow_mut() = Some(client.await) });
    for _ in 0..600 {
        assert!(link.run(link.now() + SECOND));
        if let Some(result) = result.take() {
            return result;
        }
    }
    panic!("the client does not end");
}

fn settings(window: u32) -> Http2Settings {
    Http2Settings { streams: 10, window }
}

#[test]
fn exchanges_one_after_the_other_need_no_turn_of_the_driver() {
    let link = VirtualLink::new(0);
    serve(&link, settings(100_000), u64::MAX);
    let counting = Counting { link: link.clone(), polls: Rc::default() };
    let polls = Rc::clone(&counting.polls);
    let used = run(&link, async move {
        let conn = counting.connect(None, place()).unwrap();
        let connection = ClientConnection::start(&counting, conn, "http", &settings(10_000_000));
        let mut used = Vec::new();
        for size in [0, 1_000, 13_000].into_iter().cycle().take(99) {
            let before = polls.get();
            let mut stream = connection.open_stream();
            stream.set_deadline(Some(counting.now() + 600 * SECOND));
            assert_eq!(get(&mut stream, size, size).await.unwrap(), size);
            drop(stream);
            used.push(polls.get() - before);
        }
        used
    });
    // It begins with the connection, learns of the first deadline, and later only of windows.
    assert!(used[0] <= 4, "{used:?}");
    assert_eq!(used[1..].iter().sum::<u32>(), 0, "{used:?}");
}

#[test]
fn an_idle_connection_still_learns_that_the_server_leaves() {
    let link = VirtualLink::new(0);
    serve(&link, settings(100_000), 3);
    let end = run(&link, {
        let link = link.clone();
        async move {
            let conn = link.connect(None, place()).unwrap();
            let connection = ClientConnection::start(&link, conn, "http", &settings(100_000));
            for _ in 0..3 {
                assert!(connection.is_usable());
                get(&mut connection.open_stream(), 10, 10).await.unwrap();
            }
            link.sleep_until(link.now() + SECOND).await;
            assert!(!connection.is_usable() && connection.has_goaway());
            connection.end()
        }
    });
    assert_eq!(end, Some(ClientEnd::Closed));
}

#[test]
fn what_the_reader_does_not_look_at_is_not_lost() {
    let link = VirtualLink::new(0);
    serve(&link, settings(100_000), u64::MAX);
    run(&link, {
        let link = link.clone();
        async move {
            let conn = link.connect(None, place()).unwrap();
            let connection = Rc::new(ClientConnection::start(&link, conn, "http", &settings(100_000)));
            let mut first = connection.open_stream();
            send_all(&mut first, b"GET /5000 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
            // It waits once, and then for something else.
            let waits = poll_fn(|cx| task::Poll::Ready(first.poll_recv(cx, |_| ()).is_pending())).await;
            assert!(waits);
            link.sleep_until(link.now() + SECOND).await;
            // With a second stream, the driver has to look.
            assert_eq!(get(&mut connection.open_stream(), 2_000, 2_000).await.unwrap(), 2_000);
            let n = first.recv(<[u8]>::len).await.unwrap();
            assert!(n >= 5_000, "{n}");
        }
    });
}

/// What a task does: after a pause, it asks for an object and reads some of it.
#[derive(Clone, Debug)]
struct Exchange {
    pause_ms: u64,
    size: usize,
    most: usize,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let size = prop_oneof![0usize..2_000, 10_000usize..20_000, 60_000usize..400_000];
    let most = prop_oneof![3 => Just(usize::MAX), 1 => 0usize..50_000];
    (0u64..40, size, most).prop_map(|(pause_ms, size, most)| Exchange { pause_ms, size, most })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However exchanges overlap, and wherever clients leave, the others are complete.
    #[test]
    fn all_exchanges_complete(
        tasks in prop::collection::vec(prop::collection::vec(exchange(), 1..5), 1..4),
        window in prop_oneof![Just(65_535u32), Just(1 << 20)],
    ) {
        let link = VirtualLink::new(0);
        serve(&link, settings(100_000), u64::MAX);
        let expected: usize = tasks.iter().map(Vec::len).sum();
        let client = link.clone();
        let complete = run(&link, async move {
            let conn = client.connect(None, place()).unwrap();
            let connection = Rc::new(ClientConnection::start(&client, conn, "http", &settings(window)));
            let complete = Rc::new(Cell::new(0));
            for exchanges in tasks {
                let (connection, complete, link) = (Rc::clone(&connection), Rc::clone(&complete), client.clone());
                client.spawn(async move {
                    for Exchange { pause_ms, size, most } in exchanges {
                        link.sleep_until(link.now() + Nanos::from_millis(pause_ms)).await;
                        let read = get(&mut connection.open_stream(), size, most).await.unwrap();
                        assert!(read >= size.min(most), "{read} of {size}");
                        complete.set(complete.get() + 1);
                    }
                });
            }
            client.sleep_until(client.now() + 120 * SECOND).await;
            assert!(connection.is_usable());
            complete.get()
        });
        prop_assert_eq!(complete, expected);
    }
}
