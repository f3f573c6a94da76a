//! An origin that sends exactly what a test tells it to, a client that reads exactly what it gets, and a proxy between
//! them in virtual time: all on one loop per test.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use polygraph_cache::{Identity, ProxyConfig, Shared, Snapshot};
use polygraph_link::{Link, Nanos, send_all};
use polygraph_sim::device::Device;
use polygraph_sim::{VirtualConn, VirtualLink};
use polygraph_wire::body::{reply_framing, request_framing};
use polygraph_wire::{BodyReader, Framing, parse_reply, parse_request};

/// The time of day at the start of each test.
const EPOCH: u64 = 1_795_219_200;
/// A client looks for new bytes this often.
const STEP: Nanos = Nanos::from_millis(1);
/// A client waits no longer than this for a reply.
const PATIENCE: Nanos = Nanos::from_secs(20);

thread_local! {
    /// The loop of the test, which has its own thread.
    static LINK: VirtualLink = VirtualLink::new(EPOCH);
    static ADDRESSES: Cell<u8> = const { Cell::new(1) };
}

/// The loop of this test.
pub fn link() -> VirtualLink {
    LINK.with(VirtualLink::clone)
}

/// Lets time pass.
pub fn advance(time: Duration) {
    let link = link();
    assert!(link.run(link.now() + Nanos::new(time.as_nanos() as u64)), "a task never waits");
}

/// The time since the start of the test.
pub fn elapsed() -> Duration {
    Duration::from_nanos(link().now().as_u64())
}

/// An address where nobody listens yet.
pub fn new_address() -> SocketAddr {
    let last = ADDRESSES.replace(ADDRESSES.get() + 1);
    SocketAddr::from(([10, 0, 0, last], 80))
}

/// What an origin does with a request, step by step.
pub enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits for this time.
    Wait(Duration),
    /// Closes the connection.
    Close,
}

/// A request as an origin got it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Head and, decoded, body.
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The path in the request line.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// An origin at its own address.
pub struct Origin {
    pub address: SocketAddr,
    seen: Rc<RefCell<Vec<Seen>>>,
    connections: Rc<Cell<usize>>,
}

impl Origin {
    /// Answers each request with what `script` says; connections persist unless a script closes them.
    pub fn start(script: impl Fn(&Seen) -> Vec<Act> + 'static) -> Origin {
        let (address, link) = (new_address(), link());
        let (seen, connections) = (Rc::<RefCell<Vec<Seen>>>::default(), Rc::<Cell<usize>>::default());
        let (log, count, script, spawning) =
            (Rc::clone(&seen), Rc::clone(&connections), Rc::new(script), link.clone());
        link.listen(address, move |conn, _| {
            count.set(count.get() + 1);
            let (log, script) = (Rc::clone(&log), Rc::clone(&script));
            spawning.spawn(async move { serve(conn, &log, &*script).await });
        });
        Origin { address, seen, connections }
    }

    /// Answers each request with the same reply.
    pub fn with(reply: impl Into<Vec<u8>>) -> Origin {
        let reply = reply.into();
        Origin::start(move |_| vec![Act::Send(reply.clone())])
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }

    /// The URL of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `GET` of a path, with further lines of fields.
    pub fn get(&self, path: &str, fields: &[&str]) -> String {
        request("GET", &self.url(path), fields)
    }
}

async fn serve(mut conn: VirtualConn, log: &RefCell<Vec<Seen>>, script: &dyn Fn(&Seen) -> Vec<Act>) {
    let mut input = Vec::new();
    while let Some(request) = read_request(&mut conn, &mut input).await {
        log.borrow_mut().push(request.clone());
        for act in script(&request) {
            match act {
                Act::Send(bytes) => {
                    if send_all(&mut conn, &bytes).await.is_err() {
                        return;
                    }
                }
                Act::Wait(time) => {
                    let link = link();
                    link.sleep_until(link.now() + Nanos::new(time.as_nanos() as u64)).await;
                }
                Act::Close => return,
            }
        }
    }
}

async fn read_request(conn: &mut VirtualConn, input: &mut Vec<u8>) -> Option<Seen> {
    let (len, framing) = loop {
        let parsed = parse_request(input, |head| (head.len, request_framing(head)));
        if let Some((len, framing)) = parsed.expect("the proxy sends well-formed heads") {
            break (len, framing.expect("the proxy frames bodies well"));
        }
        input.extend(conn.take().await.ok().filter(|piece| !piece.is_empty())?);
    };
    let head = String::from_utf8(input.drain(..len).collect()).expect("an ASCII head");
    if head.contains("Expect: 100-continue") {
        send_all(conn, b"HTTP/1.1 100 Continue\r\n\r\n").await.ok()?;
    }
    let (mut reader, mut body) = (BodyReader::new(framing), Vec::new());
    while !feed(&mut reader, input, &mut body) {
        input.extend(conn.take().await.ok().filter(|piece| !piece.is_empty())?);
    }
    Some(Seen { head, body })
}

/// Moves what belongs to a body from `input` to `body`; true if it is complete.
fn feed(reader: &mut BodyReader, input: &mut Vec<u8>, body: &mut Vec<u8>) -> bool {
    let fed = reader.feed(input, |piece| body.extend_from_slice(piece)).expect("a well-formed body");
    let (consumed, done) = (fed.consumed, fed.done);
    input.drain(..consumed);
    done
}

/// A request for a proxy.
pub fn request(method: &str, url: &str, fields: &[&str]) -> String {
    let mut text = format!("{method} {url} HTTP/1.1\r\nHost: ignored\r\n");
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

/// A reply of an origin with a body of known length.
pub fn reply(fields: &[&str], body: &str) -> String {
    let mut text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text + "\r\n" + body
}

/// A reply as a client got it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body came to its proper end.
    pub complete: bool,
}

impl Reply {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text body")
    }
}

/// A client's connection to a proxy.
pub struct Client {
    conn: VirtualConn,
    input: Vec<u8>,
}

impl Client {
    /// A new connection to a proxy.
    pub fn of(proxy: &Proxy) -> Client {
        Client { conn: link().connect(None, proxy.address).expect("the proxy accepts"), input: Vec::new() }
    }

    /// Sends bytes.
    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.conn.send_at(link().now(), text.as_ref().to_vec());
    }

    /// Lets time pass until more bytes have come; false at the end of the connection.
    pub fn more(&mut self) -> bool {
        let link = link();
        let (end, mut step) = (link.now() + PATIENCE, 0);
        loop {
            let piece = self.conn.take_arrived();
            if !piece.is_empty() {
                self.input.extend(piece);
                return true;
            }
            if self.conn.is_ended() {
                return false;
            }
            assert!(link.now() < end, "neither a reply nor an end");
            link.run(link.now() + Nanos::new(step));
            step = STEP.as_u64();
        }
    }

    /// Reads a reply, to `HEAD` or to something else; `None` at the end of the connection.
    pub fn try_read(&mut self, to_head: bool) -> Option<Reply> {
        let (status, len, framing) = loop {
            let parsed =
                parse_reply(&self.input, |head| (head.status, head.len, reply_framing(head, to_head)));
            if let Some(found) = parsed.expect("the proxy sends well-formed heads") {
                break found;
            }
            if !self.more() {
                return None;
            }
        };
        let framing: Framing = framing.expect("the proxy frames bodies well");
        let head = String::from_utf8(self.input.drain(..len).collect()).expect("an ASCII head");
        let (mut reader, mut body) = (BodyReader::new(framing), Vec::new());
        let complete = loop {
            if feed(&mut reader, &mut self.input, &mut body) {
                break true;
            }
            if !self.more() {
                break reader.ends_at_close();
            }
        };
        Some(Reply { status, head, body, complete })
    }

    /// Reads a reply that must come.
    pub fn read(&mut self) -> Reply {
        self.try_read(false).expect("a reply")
    }

    /// Sends a request and reads its reply.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Reply {
        self.send(request);
        self.read()
    }

    /// All bytes up to the end of the connection.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.input)
    }

    /// True if the proxy closes and nothing is left to read.
    pub fn is_at_end(&mut self) -> bool {
        self.read_to_end().is_empty()
    }
}

/// A proxy on the loop of the test.
pub struct Proxy {
    address: SocketAddr,
    device: Device,
}

impl Proxy {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What it has done.
    pub fn snapshot(&self) -> Snapshot {
        self.device.snapshot()
    }

    /// From now on connections are closed after their transaction.
    pub fn stop(&self) {
        self.device.proxy().stop();
    }
}

/// A proxy with usual settings.
pub fn proxy() -> Proxy {
    proxy_with(|_| ())
}

/// A proxy with changed settings.
pub fn proxy_with(change: impl FnOnce(&mut ProxyConfig)) -> Proxy {
    let mut config = ProxyConfig { cache_bytes: 8 << 20, ..ProxyConfig::default() };
    change(&mut config);
    let identity = Identity { name: "polygraph-test".to_owned(), secret: 1 };
    let (address, link) = (new_address(), link());
    let shared = Shared::new(config, identity, link.now(), None).expect("settings that make sense");
    Proxy { address, device: Device::run(&link, &[address], Arc::new(shared)) }
}
