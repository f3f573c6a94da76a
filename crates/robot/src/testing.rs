//! What tests of this crate share: a loop with a virtual clock, whose connections lead to a server made of a function.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use polygraph_link::{Conn, ConnectError, Link, Nanos, SECOND};
use polygraph_traffic::{Catalog, Oid};
use polygraph_wire::date;
use polygraph_wire::marks::Xact;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Ask {
    /// When.
    pub at: Nanos,
    /// Where.
    pub hop: SocketAddr,
    /// Its head.
    pub head: String,
    /// How many requests came before it on the connection.
    pub before: usize,
}

impl Ask {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let line =
            |line: &'_ str| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).is_some();
        self.head
            .lines()
            .find(|text| line(text))
            .and_then(|text| text.split_once(": "))
            .map(|(_, value)| value)
    }

    /// The object that is asked for.
    pub fn oid(&self) -> Oid {
        let target = self.head.split(' ').nth(1).unwrap();
        polygraph_wire::url::parse(target.as_bytes()).unwrap()
    }
}

/// What the server does with a request.
pub enum Answer {
    /// Sends this, so much later.
    Reply(Vec<u8>, Nanos),
    /// Closes the connection.
    Close,
}

/// The whole object that is asked for, first hand.
pub fn object(catalog: &Catalog, ask: &Ask, fields: &str) -> Vec<u8> {
    let oid = ask.oid();
    let body = catalog.body(&oid, b"").to_vec();
    let cachable = if catalog.cachable(&oid) { "public" } else { "private,no-cache" };
    let mut out = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: {cachable}\r\nDate: {}\r\nContent-Length: {}\r\n{fields}",
        date::format(EPOCH + ask.at / SECOND),
        body.len()
    )
    .into_bytes();
    let mark = Xact::parse(ask.field("X-Xact").unwrap().as_bytes()).unwrap();
    out.extend_from_slice(b"X-Xact: ");
    Xact { id: mark.id.mutant(), ..mark }.write(&mut out);
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&body);
    out
}

type Server = Box<dyn FnMut(&Ask) -> Answer>;

/// The loop.
#[derive(Clone)]
pub struct TestLink(Rc<Clockwork>);

struct Clockwork {
    now: Cell<Nanos>,
    /// The next moment that somebody waits for.
    next: Cell<Option<Nanos>>,
    tasks: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
    woken: Arc<Woken>,
    server: RefCell<Server>,
    asked: RefCell<Vec<Ask>>,
    /// From then on no connection can be opened.
    refuses_from: Cell<Nanos>,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time of day when the clock starts: Sat, 21 Nov 2026 00:00:00 GMT.
pub const EPOCH: u64 = 1_795_219_200;

impl TestLink {
    /// A loop with this server behind every address.
    pub fn new(server: impl FnMut(&Ask) -> Answer + 'static) -> TestLink {
        TestLink(Rc::new(Clockwork {
            now: Cell::default(),
            next: Cell::default(),
            tasks: RefCell::default(),
            woken: Arc::default(),
            server: RefCell::new(Box::new(server)),
            asked: RefCell::default(),
            refuses_from: Cell::new(Nanos::MAX),
        }))
    }

    /// Runs all tasks until `until`, or until nothing is left to do.
    pub fn run(&self, until: Nanos) {
        let waker = Waker::from(Arc::clone(&self.0.woken));
        let mut context = Context::from_waker(&waker);
        loop {
            self.0.next.set(None);
            self.0.woken.0.store(false, Ordering::Relaxed);
            let mut tasks = self.0.tasks.take();
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            let is_new = !self.0.tasks.borrow().is_empty();
            self.0.tasks.borrow_mut().append(&mut tasks);
            if is_new || self.0.woken.0.load(Ordering::Relaxed) {
                continue;
            }
            match self.0.next.get() {
                Some(next) if next <= until => self.0.now.set(next),
                _ => break,
            }
        }
        self.0.now.set(until.max(self.0.now.get()));
    }

    /// From `at` on no connection can be opened.
    pub fn refuse_from(&self, at: Nanos) {
        self.0.refuses_from.set(at);
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Ask> {
        self.0.asked.borrow().clone()
    }

    fn wake_at(&self, at: Nanos) {
        self.0.next.set(Some(self.0.next.get().map_or(at, |next| next.min(at))));
    }
}

impl Link for TestLink {
    type Conn = TestConn;

    fn now(&self) -> Nanos {
        self.0.now.get()
    }

    fn http_date(&self) -> [u8; 29] {
        date::text(self.unix_seconds() as u64)
    }

    fn unix_seconds(&self) -> i64 {
        (EPOCH + self.now() / SECOND) as i64
    }

    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()> {
        poll_fn(move |_| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            self.wake_at(at);
            Poll::Pending
        })
    }

    fn connect(&self, _: Option<IpAddr>, hop: SocketAddr) -> Result<TestConn, ConnectError> {
        if self.now() >= self.0.refuses_from.get() {
            return Err(ConnectError::NoPort);
        }
        let (sent, inbox) = (Vec::new(), VecDeque::new());
        Ok(TestConn { link: self.clone(), hop, sent, inbox, requests: 0, is_closed: false, deadline: None })
    }

    async fn ask<R>(
        &self,
        _: Option<IpAddr>,
        _: SocketAddr,
        _: &[u8],
        _: Option<Nanos>,
        _: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.tasks.borrow_mut().push(Box::pin(task));
    }
}

/// A robot's end of a connection. Requests have no bodies.
pub struct TestConn {
    link: TestLink,
    hop: SocketAddr,
    /// An incomplete request.
    sent: Vec<u8>,
    /// Replies and when they come.
    inbox: VecDeque<(Nanos, Vec<u8>)>,
    requests: usize,
    is_closed: bool,
    deadline: Option<Nanos>,
}

impl Conn for TestConn {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        parts.iter().for_each(|part| self.sent.extend_from_slice(part));
        while let Some(end) = self.sent.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = self.sent.drain(..end + 4).collect();
            let head = String::from_utf8(head).unwrap();
            let ask = Ask { at: self.link.now(), hop: self.hop, head, before: self.requests };
            self.requests += 1;
            match (self.link.0.server.borrow_mut())(&ask) {
                Answer::Reply(bytes, delay) => self.inbox.push_back((ask.at + delay, bytes)),
                Answer::Close => self.is_closed = true,
            }
            self.link.0.asked.borrow_mut().push(ask);
        }
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    async fn writable(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn recv<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let piece = poll_fn(|_| {
            let now = self.link.now();
            match self.inbox.front() {
                Some((at, _)) if *at <= now => {}
                Some((at, _)) => self.link.wake_at(*at),
                None if self.is_closed => return Poll::Ready(Ok(Vec::new())),
                None => {}
            }
            if self.inbox.front().is_some_and(|(at, _)| *at <= now) {
                return Poll::Ready(Ok(self.inbox.pop_front().unwrap_or_default().1));
            }
            let Some(deadline) = self.deadline else { return Poll::Pending };
            if now >= deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.link.wake_at(deadline);
            Poll::Pending
        });
        piece.await.map(|piece| see(&piece))
    }

    fn is_disturbed(&mut self) -> bool {
        // Found out only when it is used.
        false
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.deadline = at;
    }
}
