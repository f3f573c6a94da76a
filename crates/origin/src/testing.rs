//! What tests of this crate share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use polygraph_link::{Conn, ConnectError, Link, Nanos, SECOND};
use polygraph_traffic::{Catalog, Content, Distr, Kind, Seed, UniqId};
use polygraph_wire::date;

use crate::settings::{Farm, House};

/// The standard path of object 500 of the first content type.
pub const PATH: &str = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4";

/// A house with one farm that serves all of `contents`.
pub fn house(contents: Vec<Content>) -> House {
    let kinds = (0..contents.len()).map(Kind::of_index).collect();
    House {
        catalog: Arc::new(Catalog { seed: Seed(1), contents }),
        farms: vec![Farm::plain("test", kinds)],
        seed: Seed(1),
        group: UniqId { time: 7, mix: 7, counter: 8 },
        classic: false,
        ignore_urls: false,
        accept_foreign_msgs: false,
        share_worlds: false,
    }
}

/// A house of generation 1.x whose objects have `size` bytes; kind 3 is cachable, kind 4 is not.
pub fn classic(size: f64) -> House {
    let catalog = Catalog::classic(Seed(1), Distr::Const(size));
    House { classic: true, ..house(catalog.contents) }
}

/// A link with a virtual clock: tasks run until all wait, then time goes on to the next moment that one waits for.
#[derive(Clone, Default)]
pub struct TestLink(Rc<Clockwork>);

#[derive(Default)]
struct Clockwork {
    now: Cell<Nanos>,
    /// The next moment that somebody waits for.
    next: Cell<Option<Nanos>>,
    tasks: RefCell<Vec<Pin<Box<dyn Future<Output = ()>>>>>,
}

/// The time of day when the clock starts: Sat, 21 Nov 2026 00:00:00 GMT.
pub const EPOCH: u64 = 1_795_219_200;

impl TestLink {
    /// Runs all tasks until `until`, or until nothing is left to do.
    pub fn run(&self, until: Nanos) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            self.0.next.set(None);
            let mut tasks = self.0.tasks.take();
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            self.0.tasks.borrow_mut().append(&mut tasks);
            match self.0.next.get() {
                Some(next) if next <= until => self.0.now.set(next),
                _ => break,
            }
        }
        self.0.now.set(until.max(self.0.now.get()));
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

    fn connect(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<TestConn, ConnectError> {
        Err(ConnectError::Refused(io::ErrorKind::ConnectionRefused))
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

/// What passes between a client and a server.
#[derive(Default)]
pub struct Pipe {
    /// Pieces that the client has sent.
    sent: VecDeque<Vec<u8>>,
    /// The client has ended its side, in this way.
    ended: Option<io::ErrorKind>,
    received: Vec<u8>,
    /// Bytes that the server may send before it has to wait; one is added whenever it waits.
    room: usize,
    closed: bool,
}

/// The client's end of a connection.
pub struct TestClient(Rc<RefCell<Pipe>>);

impl TestClient {
    /// Sends a piece.
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        self.0.borrow_mut().sent.push_back(bytes.as_ref().to_vec());
    }

    /// Closes the connection in order.
    pub fn close(&self) {
        self.0.borrow_mut().ended = Some(io::ErrorKind::UnexpectedEof);
    }

    /// Resets the connection.
    pub fn reset(&self) {
        self.0.borrow_mut().ended = Some(io::ErrorKind::ConnectionReset);
    }

    /// Lets the server send only so many bytes before it has to wait.
    pub fn narrow(&self, room: usize) {
        self.0.borrow_mut().room = room;
    }

    /// What has come since the last call.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().received)
    }

    /// The same as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.take()).unwrap()
    }

    /// The server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.0.borrow().closed
    }
}

/// The server's end of a connection.
pub struct TestConn {
    pipe: Rc<RefCell<Pipe>>,
    link: TestLink,
    deadline: Option<Nanos>,
}

/// The two ends of a connection.
pub fn connection(link: &TestLink) -> (TestClient, TestConn) {
    let pipe = Rc::new(RefCell::new(Pipe { room: usize::MAX, ..Pipe::default() }));
    (TestClient(Rc::clone(&pipe)), TestConn { pipe, link: link.clone(), deadline: None })
}

impl TestConn {
    /// What waiting comes to if there is nothing to do.
    fn wait<T>(&self) -> Poll<io::Result<T>> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        if self.link.now() >= deadline {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.link.wake_at(deadline);
        Poll::Pending
    }
}

impl Conn for TestConn {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.ended == Some(io::ErrorKind::ConnectionReset) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut sent = 0;
        for part in parts {
            let n = part.len().min(pipe.room - sent);
            pipe.received.extend_from_slice(&part[..n]);
            sent += n;
        }
        if pipe.room != usize::MAX {
            pipe.room -= sent;
        }
        if sent == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(sent) }
    }

    async fn writable(&mut self) -> io::Result<()> {
        if self.pipe.borrow().room == 0 {
            // A millisecond for each byte, so that slow clients take their time.
            let at = self.link.now() + SECOND / 1000;
            if self.deadline.is_some_and(|deadline| deadline <= at) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.link.clone().sleep_until(at).await;
            self.pipe.borrow_mut().room += 1;
        }
        Ok(())
    }

    async fn recv<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let piece = poll_fn(|_| {
            let mut pipe = self.pipe.borrow_mut();
            match (pipe.sent.pop_front(), pipe.ended) {
                (Some(piece), _) => Poll::Ready(Ok(piece)),
                (None, Some(io::ErrorKind::UnexpectedEof)) => Poll::Ready(Ok(Vec::new())),
                (None, Some(kind)) => Poll::Ready(Err(kind.into())),
                (None, None) => self.wait(),
            }
        });
        piece.await.map(|piece| see(&piece))
    }

    fn is_disturbed(&mut self) -> bool {
        let pipe = self.pipe.borrow();
        pipe.ended.is_some() || !pipe.sent.is_empty()
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.deadline = at;
    }
}

impl Drop for TestConn {
    fn drop(&mut self) {
        self.pipe.borrow_mut().closed = true;
    }
}
