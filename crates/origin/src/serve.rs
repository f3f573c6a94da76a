//! Serving a connection: request, think time, reply, until one side has enough.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Conn, Link, Nanos, nanos};
use polygraph_stats::{Class, ErrorKind, Recorder};
use polygraph_traffic::{Body, Stream};

use crate::reply::{Answer, ReplyWriter, answer};
use crate::request::{self, Refusal, Request};
use crate::settings::{Farm, House, Server};

/// An origin server as one event loop sees it.
#[derive(Debug)]
pub struct Site<L: Link> {
    origin: Rc<Origin<L>>,
    server: Server,
    writer: ReplyWriter,
}

/// All origin servers of one event loop.
#[derive(Debug)]
pub struct Origin<L: Link> {
    link: L,
    house: Arc<House>,
    recorder: Recorder,
    rng: RefCell<Stream>,
    /// Head of the reply that is being sent.
    head: RefCell<Vec<u8>>,
    /// Share of requests that may be answered in special ways (0 to 1).
    special: Cell<f64>,
}

impl<L: Link> Origin<L> {
    /// The servers of loop number `index` among all loops of the test's servers.
    pub fn new(link: L, house: Arc<House>, index: u64, recorder: Recorder) -> Rc<Origin<L>> {
        Rc::new(Origin {
            rng: RefCell::new(house.seed.stream("server", index)),
            head: RefCell::default(),
            special: Cell::new(1.0),
            link,
            house,
            recorder,
        })
    }

    /// From now on a share `factor` (0 to 1) of requests may be answered in special ways.
    pub fn set_special(&self, factor: f64) {
        self.special.set(factor);
    }

    /// A server of this loop, ready to serve connections.
    ///
    /// # Panics
    /// If the house has no such farm.
    pub fn site(self: &Rc<Self>, server: Server) -> Rc<Site<L>> {
        let farm = &self.house.farms[server.farm];
        let minor = farm.http_minors.draw(&mut self.house.seed.stream("version", server.number));
        Rc::new(Site {
            writer: ReplyWriter::new(&server.address, self.house.group, minor.copied().unwrap_or(1)),
            server,
            origin: Rc::clone(self),
        })
    }
}

/// A request was read, or why not.
enum Received {
    Request(Request),
    /// The client closed the connection between requests.
    Closed,
    Refused(Refusal),
}

impl<L: Link> Site<L> {
    fn farm(&self) -> &Farm {
        &self.origin.house.farms[self.server.farm]
    }

    /// Serves a connection that was just accepted, until it ends.
    pub async fn serve(self: Rc<Self>, mut conn: L::Conn) {
        let opened = self.origin.link.now();
        self.origin.recorder.with(|block| block.conns.enter(opened));
        let mut uses = 0;
        let good = self.serve_requests(&mut conn, &mut uses).await;
        let now = self.origin.link.now();
        self.origin.recorder.with(|block| {
            block.conns.leave(now);
            if good && uses > 0 {
                block.conn_ttl_us.record((now - opened) / 1000);
                block.conn_uses.record(uses);
            }
        });
    }

    /// Returns true if nothing went wrong.
    async fn serve_requests(&self, conn: &mut L::Conn, uses: &mut u64) -> bool {
        let limit = self.connection_uses();
        let mut inbox = Vec::new();
        loop {
            let received = self.receive(conn, &mut inbox).await;
            let started = self.origin.link.now();
            let request = match received {
                Ok(Received::Request(request)) => request,
                Ok(Received::Closed) => return true,
                Ok(Received::Refused(refusal)) => return self.refuse(conn, refusal).await,
                Err(e) => {
                    // Idle connections may be cut in any way; a request that began must end.
                    if !inbox.is_empty() {
                        let kind = ErrorKind::HeadShort;
                        self.origin.recorder.error(kind, started, || format!("while reading a request: {e}"));
                    }
                    return inbox.is_empty();
                }
            };
            *uses += 1;
            self.origin.recorder.with(|block| block.xacts.enter(started));
            self.think(started).await;
            let last = !request.keep_alive
                || *uses >= limit
                || matches!(answer(&request), Answer::NotFound | Answer::MethodNotAllowed);
            let sent = self.reply(conn, &request, last).await;
            let good = self.settle(&request, started, sent);
            if last || !good {
                return good;
            }
        }
    }

    /// Reads the next request; `inbox` holds bytes that arrived but are not used yet.
    async fn receive(&self, conn: &mut L::Conn, inbox: &mut Vec<u8>) -> io::Result<Received> {
        conn.set_deadline(self.farm().idle_timeout.map(|timeout| self.origin.link.now() + timeout));
        let mut request = None;
        if !inbox.is_empty() {
            let data = std::mem::take(inbox);
            match take(&data, &mut request, inbox) {
                Ok(()) => {}
                Err(refusal) => return Ok(Received::Refused(refusal)),
            }
        }
        loop {
            if request.as_ref().is_some_and(|request| request.body.is_done())
                && let Some(request) = request
            {
                conn.set_deadline(None);
                return Ok(Received::Request(request));
            }
            let taken = conn
                .recv(|data| {
                    self.origin.recorder.with(|block| block.bytes_read += data.len() as u64);
                    if data.is_empty() {
                        return None;
                    }
                    if inbox.is_empty() {
                        return Some(take(data, &mut request, inbox));
                    }
                    let mut all = std::mem::take(inbox);
                    all.extend_from_slice(data);
                    Some(take(&all, &mut request, inbox))
                })
                .await?;
            match taken {
                Some(Ok(())) => {}
                Some(Err(refusal)) => return Ok(Received::Refused(refusal)),
                None if request.is_none() && inbox.is_empty() => return Ok(Received::Closed),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    async fn think(&self, started: Nanos) {
        if let Some(think) = &self.farm().think {
            let seconds = think.sample(&mut *self.origin.rng.borrow_mut());
            if seconds > 0.0 {
                self.origin.link.sleep_until(started + nanos(seconds)).await;
            }
        }
    }

    /// Sends the reply and returns its size in bytes.
    async fn reply(&self, conn: &mut L::Conn, request: &Request, last: bool) -> io::Result<u64> {
        conn.set_deadline(self.farm().idle_timeout.map(|timeout| self.origin.link.now() + timeout));
        // Nearly always the socket takes head and body at once and the loop's one buffer is enough.
        let (mut body, unsent, size) = {
            let mut head = self.origin.head.borrow_mut();
            head.clear();
            let now = self.origin.link.http_date();
            let mut body = self.writer.write(request, &self.origin.house.catalog, &now, last, &mut head);
            let size = head.len() as u64 + body.len();
            let sent = send_some(conn, &head, &body)?;
            body.advance(sent.saturating_sub(head.len()) as u64);
            (body, head[sent.min(head.len())..].to_vec(), size)
        };
        self.send_rest(conn, &unsent, &mut body).await?;
        Ok(size)
    }

    async fn send_rest(&self, conn: &mut L::Conn, mut head: &[u8], body: &mut Body) -> io::Result<()> {
        while !(head.is_empty() && body.is_empty()) {
            conn.writable().await?;
            let sent = send_some(conn, head, body)?;
            if sent > 0 {
                conn.set_deadline(self.farm().idle_timeout.map(|timeout| self.origin.link.now() + timeout));
            }
            let of_head = sent.min(head.len());
            head = &head[of_head..];
            body.advance((sent - of_head) as u64);
        }
        Ok(())
    }

    /// Counts a transaction that has ended. Returns true if it ended well.
    fn settle(&self, request: &Request, started: Nanos, sent: io::Result<u64>) -> bool {
        let now = self.origin.link.now();
        self.origin.recorder.with(|block| block.xacts.leave(now));
        match (sent, &request.sample) {
            (Err(e), _) => {
                let kind = match e.kind() {
                    io::ErrorKind::TimedOut => ErrorKind::Timeout,
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
                    _ => ErrorKind::System,
                };
                self.origin.recorder.error(kind, now, || format!("while sending a reply: {e}"));
                false
            }
            (Ok(_), Some(line)) => {
                self.origin.recorder.error(ErrorKind::ForeignRequest, now, || line.clone());
                false
            }
            (Ok(size), None) => {
                let cachable = request.oid.is_some_and(|oid| self.origin.house.catalog.cachable(&oid));
                self.origin.recorder.with(|block| {
                    block.bytes_written += size;
                    let stats = block.class_mut(if cachable { Class::Miss } else { Class::Uncachable });
                    stats.rptm_us.record((now - started) / 1000);
                    stats.size.record(size);
                });
                true
            }
        }
    }

    /// Answers bytes that are not a request.
    async fn refuse(&self, conn: &mut L::Conn, refusal: Refusal) -> bool {
        let (kind, reply): (_, &[u8]) = match refusal {
            Refusal::Malformed => (ErrorKind::BadHead, b"HTTP/1.1 400 Bad Request\r\n"),
            Refusal::TooLarge => {
                (ErrorKind::HeadTooLarge, b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
            }
        };
        self.origin.recorder.error(kind, self.origin.link.now(), || "in a request".into());
        let rest = b"Connection: close\r\nContent-Length: 0\r\n\r\n";
        // The connection ends either way, so whether the peer hears why does not matter.
        let _ = conn.try_send(&[IoSlice::new(reply), IoSlice::new(rest)]);
        false
    }

    fn connection_uses(&self) -> u64 {
        let drawn = self.farm().requests_per_connection.sample(&mut *self.origin.rng.borrow_mut());
        drawn.trunc().max(1.0) as u64
    }
}

/// Uses `data` for the request: its head, then its body. What is left over goes to `inbox`.
fn take(data: &[u8], request: &mut Option<Request>, inbox: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut rest = data;
    if request.is_none() {
        match request::read(rest)? {
            None => {
                inbox.extend_from_slice(rest);
                return Ok(());
            }
            Some((read, len)) => {
                *request = Some(read);
                rest = &rest[len..];
            }
        }
    }
    if let Some(request) = request {
        let fed = request.body.feed(rest, |_| ()).map_err(|_| Refusal::Malformed)?;
        inbox.extend_from_slice(&rest[fed.consumed..]);
    }
    Ok(())
}

/// Sends as much of head and body as the connection takes now.
fn send_some<C: Conn>(conn: &mut C, head: &[u8], body: &Body) -> io::Result<usize> {
    match conn.try_send(&[IoSlice::new(head), IoSlice::new(body.chunk())]) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
        sent => sent,
    }
}
