//! A transaction with an origin: the request is passed on, the reply relayed and, if it may be, stored.

use std::io::{self, IoSlice, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use polygraph_wire::body::{BodyReader, has_two_framings, reply_framing};
use polygraph_wire::head::keeps_alive;
use polygraph_wire::{Framing, ReplyHead, RequestHead, parse_reply, parse_request};

use crate::client::{How, MAX_HEAD, Side, Then, answer, reply_self};
use crate::message::{BodyOut, contradicts, write_end, write_reply, write_request};
use crate::object::{Object, Selecting};
use crate::origins::Connection;
use crate::peer::{First, Peer, first, within};
use crate::policy::{Freshness, ReplyFacts, RequestFacts, is_idempotent, is_safe, may_store};
use crate::store::Reservation;
use crate::target::Target;
use crate::worker::{Worker, now_ms};

/// A request on its way to an origin.
#[derive(Debug)]
pub struct Job {
    /// The head as received: parsing it again is cheaper than keeping its parts.
    head: Box<[u8]>,
    /// The client's connection.
    pub client: Side,
    framing: Framing,
    key: Box<[u8]>,
    hash: u64,
    /// The stored reply that the origin is asked to confirm.
    stale: Option<Arc<Object>>,
}

impl Job {
    /// For a request with this head.
    pub fn new(
        head: &RequestHead<'_, '_>,
        client: Side,
        framing: Framing,
        key: Box<[u8]>,
        hash: u64,
        stale: Option<Arc<Object>>,
    ) -> Job {
        Job { head: raw(head).into_boxed_slice(), client, framing, key, hash, stale }
    }

    fn with_head<R>(&self, then: impl FnOnce(&RequestHead<'_, '_>) -> R) -> R {
        let parsed = parse_request(&self.head, then);
        parsed.ok().flatten().expect("a request head that was written from a parsed one")
    }

    /// May be sent again when a reused connection turns out to be closed.
    fn is_replayable(&self) -> bool {
        self.framing == Framing::Length(0) && self.with_head(|head| is_idempotent(head.method))
    }
}

/// The bytes of a head, from its parts.
fn raw(head: &RequestHead<'_, '_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len + 8);
    let _ = write!(out, "{} {} HTTP/1.{}\r\n", head.method, head.target, head.minor_version);
    for header in head.headers {
        out.extend_from_slice(header.name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(header.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Why there is no reply to relay.
enum Failure {
    /// A reused connection was closed by the origin before it saw the request.
    Outdated,
    /// The origin's `304` is about another version than the stored one.
    Contradiction,
    /// The origin failed; what to tell the client.
    Gateway(u16, &'static str),
    /// The client is gone.
    Client,
}

impl Failure {
    fn of(error: &io::Error, connection: &Connection, job: &Job) -> Failure {
        if error.kind() == io::ErrorKind::TimedOut {
            Failure::Gateway(504, "The origin did not answer in time.")
        } else if connection.reused && connection.peer.unread().is_empty() && job.is_replayable() {
            Failure::Outdated
        } else {
            Failure::Gateway(502, "The origin closed the connection before its reply was complete.")
        }
    }
}

/// Carries a request out with its origin.
pub async fn forward(worker: &Worker, client: &mut Peer, mut job: Box<Job>) -> Then {
    match job.stale {
        Some(_) => worker.counters.validations.add(1),
        None => worker.counters.misses.add(1),
    }
    let mut reuse = job.is_replayable();
    loop {
        match attempt(worker, client, &job, reuse).await {
            Ok(then) => return then,
            // Not more than once: a new connection is not outdated.
            Err(Failure::Outdated) => reuse = false,
            Err(Failure::Contradiction) => {
                if let Some(stale) = job.stale.take() {
                    worker.common.store.remove_object(&stale);
                }
            }
            Err(Failure::Client) => {
                worker.counters.aborted.add(1);
                return Then::Close;
            }
            Err(Failure::Gateway(status, text)) => {
                worker.counters.origin_errors.add(1);
                let keep = job.client.keep && job.framing == Framing::Length(0);
                return reply_self(worker, client, status, text, None, job.client.minor, keep).await;
            }
        }
    }
}

async fn attempt(worker: &Worker, client: &mut Peer, job: &Job, reuse: bool) -> Result<Then, Failure> {
    let (host, port) = job.with_head(|head| {
        let target = Target::parse(head.target).expect("a target that was parsed before");
        (Box::<str>::from(target.host), target.port)
    });
    let mut connection =
        worker.origins.connect(&host, port, reuse).await.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Failure::Gateway(504, "The origin could not be reached in time."),
            _ => Failure::Gateway(502, "The origin could not be reached."),
        })?;
    let request_ms = now_ms();
    let whole = send_request(worker, client, job, &mut connection).await?;
    let plan = read_reply_head(worker, client, job, &mut connection, request_ms).await?;
    if let Some(fresh) = plan.validated {
        connection.peer.consume(plan.head_len);
        if plan.reusable && connection.peer.unread().is_empty() {
            connection.peer.release(&worker.bodies);
            worker.origins.give_back(connection);
        }
        worker.counters.validated.add(1);
        let facts = |head: &RequestHead<'_, '_>| {
            How::to(head.method, &RequestFacts::read(head.headers, request_ms), &fresh)
        };
        let how = job.with_head(facts);
        return Ok(answer(worker, client, &fresh, how, job.client).await);
    }
    relay(worker, client, job, connection, plan, whole).await
}

/// Sends the request. False if the origin began its reply before it had the whole body.
async fn send_request(
    worker: &Worker,
    client: &mut Peer,
    job: &Job,
    connection: &mut Connection,
) -> Result<bool, Failure> {
    let limit = worker.common.config.io_timeout;
    let body = match job.framing {
        Framing::Length(0) => BodyOut::None,
        Framing::Chunked => BodyOut::Chunked,
        _ => BodyOut::Length,
    };
    let mut head = Vec::with_capacity(job.head.len() + 128);
    job.with_head(|request| {
        let target = Target::parse(request.target).expect("a target that was parsed before");
        write_request(&mut head, request, &target, body, job.stale.as_deref(), &worker.common.name);
    });
    let sent = within(limit, connection.peer.write_all(&mut [IoSlice::new(&head)])).await;
    sent.map_err(|error| Failure::of(&error, connection, job))?;

    let mut reader = BodyReader::new(job.framing);
    let mut content = Vec::new();
    while !reader.is_done() {
        if client.unread().is_empty() {
            client.release(&worker.heads);
            let both = first(client.fill(&worker.heads), connection.peer.fill(&worker.bodies));
            match tokio::time::timeout(limit, both).await {
                Ok(First::Left(Ok(1..))) => {}
                Ok(First::Right(Ok(n @ 1..))) => {
                    worker.counters.bytes_in.add(n as u64);
                    if !pass_interim(worker, client, job, connection).await? {
                        return Ok(false);
                    }
                }
                Ok(First::Right(_)) => {
                    return Err(Failure::Gateway(
                        502,
                        "The origin closed the connection during the request.",
                    ));
                }
                Ok(First::Left(_)) | Err(_) => return Err(Failure::Client),
            }
            continue;
        }
        content.clear();
        let fed = reader.feed(client.unread(), |piece| content.extend_from_slice(piece));
        let fed = fed.map_err(|_| Failure::Client)?;
        client.consume(fed.consumed);
        let frame = Frame::new(body == BodyOut::Chunked, content.len(), fed.done);
        let mut slices = [IoSlice::new(frame.before()), IoSlice::new(&content), IoSlice::new(frame.after())];
        let sent = within(limit, connection.peer.write_all(&mut slices)).await;
        sent.map_err(|error| Failure::of(&error, connection, job))?;
    }
    Ok(true)
}

/// Passes a `1xx` reply on to the client. False if what the origin sends is the final reply.
async fn pass_interim(
    worker: &Worker,
    client: &mut Peer,
    job: &Job,
    connection: &mut Connection,
) -> Result<bool, Failure> {
    loop {
        let mut block = Vec::new();
        let interim = parse_reply(connection.peer.unread(), |reply| {
            write_reply(&mut block, reply, false, now_ms() / 1000, &worker.common.name);
            (matches!(reply.status, 100 | 102..=199), reply.len)
        });
        let Ok(Some((true, len))) = interim else {
            // Final, incomplete or broken: all for the reader of the reply.
            return Ok(connection.peer.unread().is_empty());
        };
        connection.peer.consume(len);
        if job.client.minor > 0 {
            block.extend_from_slice(b"\r\n");
            let passed =
                within(worker.common.config.io_timeout, client.write_all(&mut [IoSlice::new(&block)])).await;
            passed.map_err(|_| Failure::Client)?;
            worker.counters.bytes_out.add(block.len() as u64);
        }
    }
}

/// What is to be done with a reply, decided when its head is complete.
struct Plan {
    status: u16,
    head_len: usize,
    framing: Framing,
    /// Nothing but the head is sent, whatever the fields say.
    bodiless: bool,
    /// Status line and fields for the client, and for the store.
    block: Vec<u8>,
    age: Option<u64>,
    /// The connection can serve another transaction after the body.
    reusable: bool,
    filling: Option<Filling>,
    /// The stored reply, confirmed and brought up to date.
    validated: Option<Arc<Object>>,
}

/// A reply that is going to be stored.
struct Filling {
    reservation: Reservation,
    reserved: u64,
    body: Vec<u8>,
    selecting: Selecting,
    freshness: Freshness,
    etag: Option<Box<[u8]>>,
    last_modified: Option<u64>,
    date: u64,
}

impl Filling {
    /// Takes content; false if the reply has become too large to be stored.
    fn take(&mut self, piece: &[u8]) -> bool {
        let size = (self.body.len() + piece.len()) as u64;
        if size > self.reserved {
            let wanted = size.max(2 * self.reserved);
            let reserved = [wanted, size].into_iter().find(|&bytes| self.reservation.grow_to(bytes));
            match reserved {
                Some(bytes) => self.reserved = bytes,
                None => return false,
            }
        }
        self.body.extend_from_slice(piece);
        true
    }

    fn into_object(self, job: &Job, status: u16, mut head: Vec<u8>) -> Object {
        if status != 204 {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        Object {
            key: job.key.clone(),
            hash: job.hash,
            selecting: self.selecting,
            status,
            head: head.into_boxed_slice(),
            // Without spare capacity, so that the store's figures are true.
            body: Bytes::from(self.body.into_boxed_slice()),
            freshness: self.freshness,
            etag: self.etag,
            last_modified: self.last_modified,
            date: self.date,
        }
    }
}

async fn read_reply_head(
    worker: &Worker,
    client: &mut Peer,
    job: &Job,
    connection: &mut Connection,
    request_ms: u64,
) -> Result<Plan, Failure> {
    let mut seen = 0;
    loop {
        if connection.peer.unread()[seen..].contains(&b'\n') {
            pass_interim(worker, client, job, connection).await?;
            match parse_reply(connection.peer.unread(), |reply| make_plan(worker, job, reply, request_ms)) {
                Ok(Some(plan)) => return plan,
                Ok(None) => {}
                Err(_) => return Err(Failure::Gateway(502, "The origin's reply is not HTTP/1.")),
            }
        }
        seen = connection.peer.unread().len();
        if seen > MAX_HEAD {
            return Err(Failure::Gateway(502, "The head of the origin's reply is too large."));
        }
        match within(worker.common.config.io_timeout, connection.peer.fill(&worker.bodies)).await {
            Ok(0) => return Err(Failure::of(&io::ErrorKind::UnexpectedEof.into(), connection, job)),
            Ok(n) => worker.counters.bytes_in.add(n as u64),
            Err(error) => return Err(Failure::of(&error, connection, job)),
        }
    }
}

fn make_plan(
    worker: &Worker,
    job: &Job,
    reply: &ReplyHead<'_, '_>,
    request_ms: u64,
) -> Result<Plan, Failure> {
    job.with_head(|request| {
        if !(200..=599).contains(&reply.status) {
            return Err(Failure::Gateway(502, "The status of the origin's reply makes no sense."));
        }
        let to_head = request.method == "HEAD";
        let framing = reply_framing(reply, to_head)
            .map_err(|_| Failure::Gateway(502, "The body of the origin's reply is badly framed."))?;
        let now = now_ms();
        let mut facts = ReplyFacts::read(reply.headers, now);
        let bodiless = to_head || matches!(reply.status, 204 | 304);
        let mut block = Vec::with_capacity(reply.len + 128);
        write_reply(&mut block, reply, bodiless && reply.status != 204, now / 1000, &worker.common.name);
        if let Some(faults) = &worker.faults {
            faults.on_head(reply.status, &mut block);
            faults.on_facts(&mut facts);
        }
        let mut plan = Plan {
            status: reply.status,
            head_len: reply.len,
            framing,
            bodiless,
            block,
            age: reply.headers.iter().any(|h| h.name.eq_ignore_ascii_case("age")).then_some(facts.age),
            reusable: keeps_alive(reply.minor_version, reply.headers)
                && framing != Framing::UntilClose
                && !has_two_framings(reply.headers),
            filling: None,
            validated: None,
        };
        let store = &worker.common.store;
        let wanted = RequestFacts::read(request.headers, now);
        if let Some(stale) = &job.stale {
            if reply.status == 304 {
                if contradicts(stale, &facts) {
                    return Err(Failure::Contradiction);
                }
                plan.validated =
                    Some(bring_up_to_date(worker, stale, &plan.block, &facts, &wanted, request_ms, now));
                return Ok(plan);
            }
            // Anything but a failure of the origin is its new word on the matter.
            if reply.status < 500 {
                store.remove_object(stale);
            }
        }
        if !is_safe(request.method) && reply.status < 400 {
            store.remove(job.hash, &job.key);
        }
        let expected = match framing {
            Framing::Length(bytes) => bytes,
            _ => 0,
        };
        if job.framing == Framing::Length(0) && may_store(request.method, &wanted, reply.status, &facts, now)
        {
            plan.filling = store.reserve(expected).map(|reservation| {
                let (etag, last_modified, date) = Object::validators(&facts, now);
                Filling {
                    reservation,
                    reserved: expected,
                    body: Vec::with_capacity(expected as usize),
                    selecting: if facts.varies {
                        Selecting::new(reply.headers, request.headers)
                    } else {
                        Selecting::default()
                    },
                    freshness: Freshness::new(reply.status, &facts, request_ms, now),
                    etag,
                    last_modified,
                    date,
                }
            });
        }
        Ok(plan)
    })
}

/// The stored reply with the fields of the origin's `304`, put in the place of the old one (RFC 9111, section
/// 4.3.4).
fn bring_up_to_date(
    worker: &Worker,
    stale: &Arc<Object>,
    block: &[u8],
    facts_304: &ReplyFacts<'_>,
    wanted: &RequestFacts<'_>,
    request_ms: u64,
    now: u64,
) -> Arc<Object> {
    let store = &worker.common.store;
    let Some((object, keep)) = stale.brought_up_to_date(block, facts_304, wanted, request_ms, now) else {
        // The old head will do, once.
        store.remove_object(stale);
        return Arc::clone(stale);
    };
    let object = Arc::new(object);
    if !keep {
        store.remove_object(stale);
    } else if store.put(Arc::clone(&object), |old| old.selecting == object.selecting) {
        worker.counters.stored.add(1);
    }
    object
}

/// Passes the reply on as it arrives. `whole`: the origin got the whole request.
async fn relay(
    worker: &Worker,
    client: &mut Peer,
    job: &Job,
    mut connection: Connection,
    plan: Plan,
    whole: bool,
) -> Result<Then, Failure> {
    let limit = worker.common.config.io_timeout;
    let Plan { status, head_len, framing, bodiless, block, age, reusable, mut filling, .. } = plan;
    connection.peer.consume(head_len);
    let until_close = matches!(framing, Framing::Chunked | Framing::UntilClose) && job.client.minor == 0;
    let chunked = matches!(framing, Framing::Chunked | Framing::UntilClose) && !until_close;
    let keep = job.client.keep && whole && !until_close && !worker.stopping.get();

    let mut head = if filling.is_some() { block.clone() } else { Vec::new() };
    let mut block = block;
    if filling.is_none() {
        std::mem::swap(&mut head, &mut block);
    }
    match framing {
        _ if bodiless => {}
        Framing::Length(bytes) => {
            let _ = write!(head, "Content-Length: {bytes}\r\n");
        }
        _ if chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        _ => {}
    }
    write_end(&mut head, age, job.client.minor, keep);

    let mut reader = BodyReader::new(framing);
    let mut content = Vec::new();
    let mut ended = false;
    loop {
        content.clear();
        let fed = reader.feed(connection.peer.unread(), |piece| {
            if framing == Framing::Chunked {
                content.extend_from_slice(piece);
            }
            if filling.as_mut().is_some_and(|filling| !filling.take(piece)) {
                filling = None;
            }
        });
        let Ok(fed) = fed else {
            worker.counters.aborted.add(1);
            return Ok(Then::Abort);
        };
        let done = fed.done || ended;
        if done && let Some(filling) = filling.take() {
            // Before the last byte is sent, so that a client that has the reply will find it stored.
            let object = filling.into_object(job, status, std::mem::take(&mut block));
            let selects = |old: &Object| job.with_head(|head| old.selecting.matches(head.headers));
            if worker.common.store.put(Arc::new(object), selects) {
                worker.counters.stored.add(1);
            }
        }
        let piece: &[u8] = match framing {
            Framing::Chunked => &content,
            _ => &connection.peer.unread()[..fed.consumed],
        };
        let frame = Frame::new(chunked, piece.len(), done);
        let mut slices = [
            IoSlice::new(&head),
            IoSlice::new(frame.before()),
            IoSlice::new(piece),
            IoSlice::new(frame.after()),
        ];
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        within(limit, client.write_all(&mut slices)).await.map_err(|_| Failure::Client)?;
        worker.counters.bytes_out.add(bytes as u64);
        head.clear();
        connection.peer.consume(fed.consumed);
        if done {
            break;
        }
        match within(limit, connection.peer.fill(&worker.bodies)).await {
            Ok(0) if reader.ends_at_close() => ended = true,
            Ok(n @ 1..) => worker.counters.bytes_in.add(n as u64),
            _ => {
                worker.counters.aborted.add(1);
                return Ok(Then::Abort);
            }
        }
    }
    if reusable && whole && connection.peer.unread().is_empty() {
        connection.peer.release(&worker.bodies);
        worker.origins.give_back(connection);
    }
    Ok(match (keep, whole && !job.client.keep) {
        (true, _) => Then::Next,
        (false, true) => job.client.after(client),
        // The client does not expect this end and may have sent more.
        (false, false) => Then::CloseGently,
    })
}

/// What stands around a piece of content on the wire: the line with its size and its end, if it is a chunk.
struct Frame {
    size: [u8; 18],
    size_len: usize,
    after: &'static [u8],
}

impl Frame {
    /// For `len` bytes of content; `last` if no more follow.
    fn new(chunked: bool, len: usize, last: bool) -> Frame {
        let mut frame = Frame { size: [0; 18], size_len: 0, after: b"" };
        if !chunked {
            return frame;
        }
        if len > 0 {
            let mut space = &mut frame.size[..];
            // Sixteen digits and a line end fit exactly.
            let _ = write!(space, "{len:x}\r\n");
            frame.size_len = 18 - space.len();
        }
        frame.after = match (len > 0, last) {
            (true, true) => b"\r\n0\r\n\r\n",
            (true, false) => b"\r\n",
            (false, true) => b"0\r\n\r\n",
            (false, false) => b"",
        };
        frame
    }

    fn before(&self) -> &[u8] {
        &self.size[..self.size_len]
    }

    fn after(&self) -> &'static [u8] {
        self.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 5\r\nVary: a, b\r\n\
        Cache-Control: max-age=600, private=\"x, y\"\r\nExpires: Sun Nov  6 08:49:37 1994\r\nETag: \"c\"\r\n\
        Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\nConnection: d\r\nContent-Length: 10\r\n\r\n0123456789";
    const CONFIRMATION: &[u8] =
        b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"c\"\r\n\r\n";

    fn job(worker: &Worker, stale: Option<Arc<Object>>) -> Job {
        let text = b"GET http://h/ HTTP/1.1\r\nA: 1\r\n\r\n";
        let job = parse_request(text, |head| {
            let client = Side { head_len: head.len, minor: 1, keep: true };
            let key: Box<[u8]> = b"h:00080/".as_slice().into();
            Job::new(head, client, Framing::Length(0), key.clone(), worker.common.store.hash(&key), stale)
        });
        job.expect("a head").expect("a complete head")
    }

    impl Job {
        /// Runs what a job does with its head, for tests that look for panics.
        pub fn exercise(&self) {
            self.is_replayable();
            self.with_head(|head| {
                let target = Target::parse(head.target).expect("a target that was parsed before");
                write_request(&mut Vec::new(), head, &target, BodyOut::None, None, "me");
            });
        }
    }

    /// Takes in a whole reply as the relay would; gives the object if it is to be stored.
    fn take_in(worker: &Worker, job: &Job, bytes: &[u8]) -> Option<Object> {
        let plan = parse_reply(bytes, |reply| make_plan(worker, job, reply, now_ms())).ok()??.ok()?;
        let mut filling = plan.filling?;
        let mut reader = BodyReader::new(plan.framing);
        let fed = reader.feed(&bytes[plan.head_len..], |piece| {
            filling.take(piece);
        });
        fed.ok()?.done.then(|| filling.into_object(job, plan.status, plan.block))
    }

    fn stored(worker: &Worker) -> Arc<Object> {
        let text =
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"c\"\r\nContent-Length: 2\r\n\r\nok";
        let object = Arc::new(take_in(worker, &job(worker, None), text).expect("a reply to be stored"));
        assert!(worker.common.store.put(Arc::clone(&object), |_| true));
        object
    }

    #[test]
    fn a_confirmation_is_a_plan_of_its_own() {
        let worker = Worker::for_tests();
        let job = job(&worker, Some(stored(&worker)));
        let plan = parse_reply(CONFIRMATION, |reply| make_plan(&worker, &job, reply, now_ms()));
        let plan = plan.expect("a head").expect("a complete head").ok().expect("a plan");
        assert_eq!(plan.validated.map(|object| object.body.clone()), Some(Bytes::from_static(b"ok")));
    }

    proptest! {
        #[test]
        fn random_replies_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let worker = Worker::for_tests();
            take_in(&worker, &job(&worker, None), &bytes);
        }

        #[test]
        fn mangled_replies_never_panic(bytes in crate::client::tests::mangled(REPLY)) {
            let worker = Worker::for_tests();
            take_in(&worker, &job(&worker, None), &bytes);
        }

        #[test]
        fn mangled_confirmations_never_panic(bytes in crate::client::tests::mangled(CONFIRMATION)) {
            let worker = Worker::for_tests();
            take_in(&worker, &job(&worker, Some(stored(&worker))), &bytes);
        }
    }
}
