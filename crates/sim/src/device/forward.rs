//! What is fetched from an origin: a request is passed on, the reply taken in, stored if it may be, and passed back.
//!
//! Replies are passed on when they are complete, or broken off: between machines without a limit of bandwidth that
//! takes no time.

use std::cell::RefCell;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use polygraph_cache::message::{BodyOut, contradicts, write_end, write_reply, write_request};
use polygraph_cache::object::{How, Object, Selecting};
use polygraph_cache::policy::{Freshness, ReplyFacts, RequestFacts, is_idempotent, is_safe, may_store};
use polygraph_cache::target::Target;
use polygraph_link::{Conn, Link, Nanos};
use polygraph_traffic::Body;
use polygraph_wire::body::{BodyReader, reply_framing};
use polygraph_wire::head::keeps_alive;
use polygraph_wire::{Framing, ReplyHead, RequestHead, parse_reply, parse_request};
use rustc_hash::FxHashMap;

use super::client::{MAX_HEAD, Then, answer, reply_self};
use super::message::Peer;
use super::store::Stored;
use super::{Device, IDLE, NAME, PATIENCE};

/// Idle connections to origins.
#[derive(Default)]
pub struct Origins(RefCell<FxHashMap<SocketAddr, Vec<(Peer, Nanos)>>>);

impl Origins {
    /// The one that was used last.
    fn take(&self, to: SocketAddr) -> Option<Peer> {
        let mut idle = self.0.borrow_mut();
        let stack = idle.get_mut(&to)?;
        while let Some((mut peer, _)) = stack.pop() {
            if !peer.conn.is_disturbed() {
                return Some(peer);
            }
        }
        None
    }

    fn give_back(&self, to: SocketAddr, mut peer: Peer, now: Nanos) {
        peer.conn.set_deadline(None);
        self.0.borrow_mut().entry(to).or_default().push((peer, now));
    }

    /// Closes those that were idle for long, or are closed by the origin.
    pub fn sweep(&self, now: Nanos) {
        let mut idle = self.0.borrow_mut();
        for stack in idle.values_mut() {
            stack.retain_mut(|(peer, since)| *since + IDLE > now && !peer.conn.is_disturbed());
        }
        idle.retain(|_, stack| !stack.is_empty());
    }
}

/// A request on its way to an origin.
pub struct Job {
    /// The head as it is read again when it is needed.
    head: Vec<u8>,
    framing: Framing,
    url: Box<[u8]>,
    hash: u64,
    minor: u8,
    keep: bool,
    /// The client waits for 100 (continue) before it sends the body.
    expects: bool,
    /// The stored reply that the origin is asked to confirm.
    stale: Option<Rc<Stored>>,
}

impl Job {
    /// For a request with this head.
    pub fn new(
        head: &RequestHead<'_, '_>,
        framing: Framing,
        url: Box<[u8]>,
        hash: u64,
        keep: bool,
        stale: Option<Rc<Stored>>,
    ) -> Job {
        let mut raw = Vec::with_capacity(head.len);
        let _ = write!(raw, "{} {} HTTP/1.{}\r\n", head.method, head.target, head.minor_version);
        for header in head.headers {
            let _ = write!(raw, "{}: ", header.name);
            raw.extend_from_slice(header.value);
            raw.extend_from_slice(b"\r\n");
        }
        raw.extend_from_slice(b"\r\n");
        let expects = head.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("expect") && header.value.eq_ignore_ascii_case(b"100-continue")
        });
        Job { head: raw, framing, url, hash, minor: head.minor_version, keep, expects, stale }
    }

    /// The head that was read once; `None` never happens.
    fn with_head<R>(&self, then: impl FnOnce(&RequestHead<'_, '_>, &Target<'_>) -> R) -> Option<R> {
        let parsed = parse_request(&self.head, |head| {
            Target::parse(head.target).ok().map(|target| then(head, &target))
        });
        parsed.ok().flatten().flatten()
    }
}

/// Why there is no reply.
enum Failure {
    /// A connection that had been used before was closed before the origin saw the request.
    Outdated,
    /// The `304` is about another version than the stored one.
    Contradiction,
    /// What the client is told.
    Gateway(u16, &'static str),
    /// The client is gone, or sends something that is no body.
    Client,
}

/// A reply that was taken in.
struct Fetched {
    status: u16,
    /// Status line and end-to-end fields, without a length.
    block: Vec<u8>,
    age: Option<u64>,
    content: Content,
    /// The origin did not get the whole request, so the client's connection cannot go on.
    whole: bool,
    /// To be stored, if there is no content to come.
    storing: Option<Storing>,
    /// The stored reply, confirmed.
    confirmed: Option<Rc<Stored>>,
}

enum Content {
    /// Nothing but the head, whatever it says.
    None,
    Complete(Vec<u8>),
    /// It broke off; the length that was told, if one was.
    Partial(Vec<u8>, Option<u64>),
}

/// What is known of a reply that is going to be stored.
struct Storing {
    selecting: Selecting,
    freshness: Freshness,
    validators: (Option<Box<[u8]>>, Option<u64>, u64),
}

/// Carries a request out with its origin.
pub async fn forward(device: &Device, client: &mut Peer, mut job: Box<Job>) -> Then {
    let mut reuse = job.framing == Framing::Length(0)
        && job.with_head(|head, _| is_idempotent(head.method)).unwrap_or(false);
    loop {
        match fetch(device, client, &job, reuse).await {
            Ok(fetched) => return pass_back(device, client, &job, fetched).await,
            // Not more than once: a new connection is not outdated.
            Err(Failure::Outdated) => reuse = false,
            Err(Failure::Contradiction) => {
                job.stale = None;
                device.0.store.borrow_mut().remove(job.hash, &job.url);
            }
            Err(Failure::Client) => return Then::Close,
            Err(Failure::Gateway(status, text)) => {
                device.count(|figures| figures.origin_errors += 1);
                let keep = job.keep && job.framing == Framing::Length(0);
                return reply_self(device, client, status, text, job.minor, keep).await;
            }
        }
    }
}

/// Address of an origin.
fn resolve(device: &Device, target: &Target<'_>) -> Option<SocketAddr> {
    let host = target.host.to_ascii_lowercase();
    if let Some(server) = device.0.servers.get(&format!("{host}:{}", target.port)) {
        return Some(*server);
    }
    let named = || device.0.hosts.get(&host)?.first().copied();
    let ip = host.parse::<IpAddr>().ok().or_else(named)?;
    Some(SocketAddr::new(ip, target.port))
}

async fn fetch(device: &Device, client: &mut Peer, job: &Job, reuse: bool) -> Result<Fetched, Failure> {
    let unreachable = Failure::Gateway(502, "The origin could not be reached.");
    let Some(Some(to)) = job.with_head(|_, target| resolve(device, target)) else { return Err(unreachable) };
    let idle = if reuse { device.0.origins.take(to) } else { None };
    let used_before = idle.is_some();
    let mut origin = match idle {
        Some(peer) => peer,
        None => Peer::new(device.0.link.connect(None, to).map_err(|_| unreachable)?),
    };
    origin.conn.set_deadline(Some(device.now() + PATIENCE));
    let request_ms = device.now_ms();
    let whole = match send_request(client, &mut origin, job).await {
        Ok(whole) => whole,
        Err(Some(failure)) => return Err(failure),
        Err(None) if used_before => return Err(Failure::Outdated),
        Err(None) => return Err(Failure::Gateway(502, "The origin closed the connection.")),
    };
    let head = loop {
        match read_reply_head(device, &mut origin, job, request_ms).await {
            // The client of a request that waited has had its own already.
            Ok(Some(head)) if head.status < 200 => {}
            Ok(Some(head)) => break head,
            Ok(None) if used_before && origin.unread().is_empty() => return Err(Failure::Outdated),
            Ok(None) => return Err(Failure::Gateway(502, "The origin gave no reply.")),
            Err(failure) => return Err(failure),
        }
    };
    Ok(take_in(device, origin, to, head, whole).await)
}

/// Sends the request. False if the origin did not want the whole body. An error without a failure: the origin is gone.
async fn send_request(client: &mut Peer, origin: &mut Peer, job: &Job) -> Result<bool, Option<Failure>> {
    let body = match job.framing {
        Framing::Length(0) => BodyOut::None,
        Framing::Chunked => BodyOut::Chunked,
        _ => BodyOut::Length,
    };
    let mut head = Vec::with_capacity(job.head.len() + 128);
    let stale = job.stale.as_ref().map(|stored| &stored.object);
    job.with_head(|request, target| write_request(&mut head, request, target, body, stale, NAME));
    origin.send(&head, Body::empty()).await.map_err(|_| None)?;
    if body == BodyOut::None {
        return Ok(true);
    }
    if job.expects && client.unread().is_empty() {
        if !wait_for_continue(origin).await.map_err(|_| None)? {
            return Ok(false);
        }
        let sent = client.send(b"HTTP/1.1 100 Continue\r\n\r\n", Body::empty()).await;
        sent.map_err(|_| Some(Failure::Client))?;
    }
    let mut content = Vec::new();
    if !client.body(&mut BodyReader::new(job.framing), &mut content).await {
        // What has come goes on: the origin may know that it is cut on purpose.
        if body == BodyOut::Length {
            let _ = origin.send(&content, Body::empty()).await;
        }
        return Err(Some(Failure::Client));
    }
    let framed = match body {
        BodyOut::Chunked if content.is_empty() => b"0\r\n\r\n".to_vec(),
        BodyOut::Chunked => {
            let size = format!("{:x}\r\n", content.len()).into_bytes();
            [&size, &content[..], b"\r\n0\r\n\r\n"].concat()
        }
        _ => content,
    };
    origin.send(&framed, Body::empty()).await.map_err(|_| None)?;
    Ok(true)
}

/// Waits for the first reply; true if it is 100 (continue), which is used up.
async fn wait_for_continue(origin: &mut Peer) -> std::io::Result<bool> {
    loop {
        match parse_reply(origin.unread(), |reply| (reply.status, reply.len)) {
            Ok(Some((100, len))) => {
                origin.consume(len);
                return Ok(true);
            }
            Ok(None) => {}
            // Final or broken: for the reader of replies.
            _ => return Ok(false),
        }
        if !origin.fill().await? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// What a reply's head says.
struct Head {
    status: u16,
    framing: Framing,
    bodiless: bool,
    block: Vec<u8>,
    age: Option<u64>,
    /// The connection can serve another transaction.
    reusable: bool,
    storing: Option<Storing>,
    confirmed: Option<Rc<Stored>>,
}

/// Reads a head; `None` if the origin closes before there is one.
async fn read_reply_head(
    device: &Device,
    origin: &mut Peer,
    job: &Job,
    request_ms: u64,
) -> Result<Option<Head>, Failure> {
    loop {
        if !origin.unread().is_empty() {
            let now = device.now_ms();
            let read = parse_reply(origin.unread(), |reply| {
                (job.with_head(|request, _| judge(device, job, request, reply, request_ms, now)), reply.len)
            });
            match read {
                Ok(Some((Some(head), len))) => {
                    origin.consume(len);
                    return head.map(Some);
                }
                Ok(None) if origin.unread().len() <= MAX_HEAD => {}
                _ => return Err(Failure::Gateway(502, "The origin's reply is not HTTP/1.")),
            }
        }
        match origin.fill().await {
            Ok(true) => {}
            Err(e) if e.kind() == std::io::ErrorKind::TimedOut => {
                return Err(Failure::Gateway(504, "The origin did not answer in time."));
            }
            Ok(false) | Err(_) => return Ok(None),
        }
    }
}

fn judge(
    device: &Device,
    job: &Job,
    request: &RequestHead<'_, '_>,
    reply: &ReplyHead<'_, '_>,
    request_ms: u64,
    now: u64,
) -> Result<Head, Failure> {
    let to_head = request.method == "HEAD";
    let framing = reply_framing(reply, to_head)
        .map_err(|_| Failure::Gateway(502, "The body of the origin's reply is badly framed."))?;
    let facts = ReplyFacts::read(reply.headers, now);
    let bodiless = to_head || matches!(reply.status, 204 | 304);
    let mut block = Vec::with_capacity(reply.len + 128);
    write_reply(&mut block, reply, bodiless && reply.status != 204, now / 1000, NAME);
    let mut head = Head {
        status: reply.status,
        framing,
        bodiless,
        block,
        age: reply.headers.iter().any(|h| h.name.eq_ignore_ascii_case("age")).then_some(facts.age),
        reusable: keeps_alive(reply.minor_version, reply.headers) && framing != Framing::UntilClose,
        storing: None,
        confirmed: None,
    };
    let wanted = RequestFacts::read(request.headers, now);
    let mut store = device.0.store.borrow_mut();
    if let Some(stale) = &job.stale {
        if reply.status == 304 {
            if contradicts(&stale.object, &facts) {
                return Err(Failure::Contradiction);
            }
            drop(store);
            head.confirmed =
                Some(bring_up_to_date(device, stale, &head.block, &facts, &wanted, request_ms, now));
            return Ok(head);
        }
        // Anything but a failure of the origin is its new word on the matter.
        if (200..500).contains(&reply.status) {
            store.remove(job.hash, &job.url);
        }
    }
    if !is_safe(request.method) && (200..400).contains(&reply.status) {
        store.remove(job.hash, &job.url);
    }
    if job.framing == Framing::Length(0) && may_store(request.method, &wanted, reply.status, &facts, now) {
        let selecting = match facts.varies {
            true => Selecting::new(reply.headers, request.headers),
            false => Selecting::default(),
        };
        head.storing = Some(Storing {
            selecting,
            freshness: Freshness::new(reply.status, &facts, request_ms, now),
            validators: Object::validators(&facts, now),
        });
    }
    Ok(head)
}

/// The stored reply with the fields of the origin's `304`, in the place of the old one (RFC 9111, section 4.3.4).
fn bring_up_to_date(
    device: &Device,
    stale: &Rc<Stored>,
    block: &[u8],
    facts_304: &ReplyFacts<'_>,
    wanted: &RequestFacts<'_>,
    request_ms: u64,
    now: u64,
) -> Rc<Stored> {
    let old = &stale.object;
    let mut store = device.0.store.borrow_mut();
    let Some((object, keep)) = old.brought_up_to_date(block, facts_304, wanted, request_ms, now) else {
        // The old head will do, once.
        store.remove(old.hash, &old.key);
        return Rc::clone(stale);
    };
    let fresh = Rc::new(Stored { object, content: Rc::clone(&stale.content) });
    match keep {
        true => store.put(Rc::clone(&fresh), device.now()),
        false => store.remove(old.hash, &old.key),
    }
    fresh
}

/// Takes the content in.
async fn take_in(device: &Device, mut origin: Peer, to: SocketAddr, head: Head, whole: bool) -> Fetched {
    let Head { status, framing, bodiless, block, age, reusable, storing, confirmed } = head;
    let mut bytes = Vec::new();
    let complete = bodiless || origin.body(&mut BodyReader::new(framing), &mut bytes).await;
    if complete && reusable && whole && origin.unread().is_empty() {
        device.0.origins.give_back(to, origin, device.now());
    }
    let content = match (bodiless, complete, framing) {
        (true, _, _) => Content::None,
        (false, true, _) => Content::Complete(bytes),
        (false, false, Framing::Length(told)) => Content::Partial(bytes, Some(told)),
        (false, false, _) => Content::Partial(bytes, None),
    };
    Fetched { status, block, age, content, whole, storing: storing.filter(|_| complete), confirmed }
}

/// Stores the reply if it is to be, and answers the client.
async fn pass_back(device: &Device, client: &mut Peer, job: &Job, fetched: Fetched) -> Then {
    let Fetched { status, block, age, content, whole, storing, confirmed } = fetched;
    client.conn.set_deadline(Some(device.now() + PATIENCE));
    if let Some(fresh) = confirmed {
        device.count(|figures| figures.validated += 1);
        let now = device.now_ms();
        let how = job
            .with_head(|head, _| How::to(head.method, &RequestFacts::read(head.headers, now), &fresh.object));
        return answer(device, client, &fresh, how.unwrap_or(How::Whole), job.minor, job.keep).await;
    }
    let keep = job.keep && whole && !matches!(content, Content::Partial(..));
    let mut head = block;
    let (bytes, length) = match content {
        Content::None => (Vec::new(), None),
        Content::Complete(bytes) => {
            let length = bytes.len() as u64;
            (bytes, Some(length))
        }
        // Nothing could tell the client that the content is not complete.
        Content::Partial(_, None) => return Then::Reset,
        Content::Partial(bytes, length) => (bytes, length),
    };
    if let Some(length) = length.filter(|_| status != 204) {
        let _ = write!(head, "Content-Length: {length}\r\n");
    }
    if let Some(storing) = storing {
        store(device, job, status, &head, &bytes, storing);
    }
    write_end(&mut head, age, job.minor, keep);
    match client.send(&head, Body::from_bytes(bytes)).await {
        Ok(()) => Then::wished(keep),
        Err(_) => Then::Close,
    }
}

fn store(device: &Device, job: &Job, status: u16, head: &[u8], bytes: &[u8], storing: Storing) {
    let (etag, last_modified, date) = storing.validators;
    let mut path = Vec::new();
    job.with_head(|_, target| target.write_path(&mut path));
    let mut store = device.0.store.borrow_mut();
    let content = store.content(&path, bytes);
    let object = Object {
        key: job.url.clone(),
        hash: job.hash,
        selecting: storing.selecting,
        status,
        head: head.into(),
        body: Default::default(),
        freshness: storing.freshness,
        etag,
        last_modified,
        date,
    };
    store.put(Rc::new(Stored { object, content: Rc::new(content) }), device.now());
}
