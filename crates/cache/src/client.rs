//! A client's connection: one request after the other, each decided upon and answered.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_wire::body::{has_two_framings, request_framing};
use polygraph_wire::head::keeps_alive;
use polygraph_wire::{Framing, HeadError, RequestHead, parse_request};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::forward::{Job, forward};
use crate::message::{own_reply, went_through, write_end, write_not_modified};
pub use crate::object::How;
use crate::object::Object;
use crate::peer::{Peer, within};
use crate::policy::{RequestFacts, Reuse};
use crate::target::{Target, TargetError};
use crate::worker::{Worker, now_ms};

/// Heads larger than this are refused, of requests and of replies.
pub const MAX_HEAD: usize = 64 * 1024;

/// How a client's connection goes on after a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// With the next request.
    Next,
    /// It is closed.
    Close,
    /// It is closed once the client has read the reply, although it may have sent more than was read.
    CloseGently,
    /// It is reset, because the reply could not be completed.
    Abort,
}

/// Serves a client's connection until its end.
pub async fn serve(worker: Rc<Worker>, stream: TcpStream) {
    let mut client = Peer::new(stream);
    let mut then = Then::Next;
    while then == Then::Next {
        let decision = next_decision(&worker, &mut client).await;
        let _active = worker.begin();
        then = carry_out(&worker, &mut client, decision).await;
        if then == Then::Next && worker.stopping.get() {
            then = Then::Close;
        }
    }
    match then {
        Then::Next | Then::Close => {}
        Then::CloseGently => client.close_gently(&worker.heads).await,
        Then::Abort => client.abort(),
    }
}

/// Tells a client that there is no room for it.
pub async fn refuse(worker: Rc<Worker>, stream: TcpStream) {
    let mut client = Peer::new(stream);
    let text = "The proxy has as many connections as it may have.";
    let reply = own_reply(503, text, None, 1, false, now_ms() / 1000, &worker.common.name);
    if client.write_all(&mut [IoSlice::new(&reply)]).await.is_ok() {
        client.close_gently(&worker.heads).await;
    }
}

/// What to do with a request.
enum Decision {
    /// The head is not complete yet.
    Partial,
    /// The client closed, or stayed idle for too long.
    Over,
    /// A reply of the proxy itself to something that is not a request; the connection is of no more use.
    Bad { status: u16, text: &'static str },
    /// A reply of the proxy itself.
    Own { status: u16, text: &'static str, client: Side },
    /// The client has to say first who it is; the value of `Proxy-Authenticate`.
    Ask { challenge: Vec<u8>, client: Side },
    /// A stored reply.
    Hit { object: Arc<Object>, how: How, client: Side },
    /// The origin is asked.
    Forward(Box<Job>),
}

/// What the reply must know about the request's head and connection.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Bytes of the head.
    pub head_len: usize,
    /// The client's HTTP minor version.
    pub minor: u8,
    /// The connection may go on.
    pub keep: bool,
}

impl Side {
    /// How the connection goes on after a complete reply to a request that was read as a whole.
    pub fn after(&self, client: &Peer) -> Then {
        if self.keep {
            Then::Next
        } else if client.unread().is_empty() {
            // The client has announced that nothing more will come, so nothing can arrive too late.
            Then::Close
        } else {
            Then::CloseGently
        }
    }
}

/// Reads until a request can be decided upon.
async fn next_decision(worker: &Worker, client: &mut Peer) -> Decision {
    let config = &worker.common.config;
    let mut deadline = Instant::now() + config.idle_timeout;
    let (mut seen, mut served) = (0, false);
    loop {
        // A head that arrives byte by byte is not parsed for each byte, but for each line.
        if client.unread()[seen..].contains(&b'\n') {
            if worker.is_slowed() && !served && !matches!(parse_request(client.unread(), |_| ()), Ok(None)) {
                worker.serve_slowly().await;
                served = true;
            }
            if !worker.is_slowed() || served {
                match decide(worker, client.unread()) {
                    Decision::Partial => {}
                    decision => return decision,
                }
            }
        }
        if client.unread().len() > MAX_HEAD {
            return Decision::Bad { status: 431, text: "The request head is too large." };
        }
        if seen == 0 && !client.unread().is_empty() {
            deadline = Instant::now() + config.head_timeout;
        }
        seen = client.unread().len();
        match timeout_at(deadline, client.fill(&worker.heads)).await {
            Ok(Ok(1..)) => {}
            Err(_) if seen > 0 => {
                return Decision::Bad { status: 408, text: "The request head took too long." };
            }
            _ => return Decision::Over,
        }
    }
}

fn decide(worker: &Worker, bytes: &[u8]) -> Decision {
    match parse_request(bytes, |head| decide_on(worker, head)) {
        Ok(Some(decision)) => decision,
        Ok(None) => Decision::Partial,
        Err(HeadError::TooManyHeaders) => Decision::Bad { status: 431, text: "Too many header fields." },
        Err(HeadError::Malformed) => Decision::Bad { status: 400, text: "This is not an HTTP/1 request." },
    }
}

fn decide_on(worker: &Worker, head: &RequestHead<'_, '_>) -> Decision {
    worker.counters.requests.add(1);
    let framing = request_framing(head);
    let has_body = framing != Ok(Framing::Length(0));
    let keep = keeps_alive(head.minor_version, head.headers)
        && !has_two_framings(head.headers)
        && !worker.stopping.get();
    let client = Side { head_len: head.len, minor: head.minor_version, keep };
    let own = |status, text| {
        // The body of a refused request is not read, so the connection cannot go on after it.
        Decision::Own { status, text, client: Side { keep: keep && !has_body, ..client } }
    };
    let framing = match framing {
        Ok(Framing::Chunked) if head.minor_version == 0 => return own(400, "HTTP/1.0 has no chunks."),
        Ok(framing) => framing,
        Err(_) => return own(400, "The body of the request is badly framed."),
    };
    let hosts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).count();
    if hosts > 1 {
        // Whoever is behind might take the other one (RFC 9112, section 3.2).
        let client = Side { keep: false, ..client };
        return Decision::Own { status: 400, text: "The request has several Host fields.", client };
    }
    if let Some(access) = &worker.common.config.access {
        let secret = worker.common.secret;
        if let Err(challenge) = access.check(head.headers, head.method, head.target, now_ms() / 1000, secret)
        {
            return Decision::Ask { challenge, client: Side { keep: keep && !has_body, ..client } };
        }
    }
    if head.method == "CONNECT" {
        // Whatever follows is for a tunnel that does not exist.
        let client = Side { keep: false, ..client };
        return Decision::Own { status: 501, text: "This proxy opens no tunnels.", client };
    }
    let target = match Target::parse(head.target) {
        Ok(target) => target,
        Err(TargetError::NotAbsolute) => {
            return own(400, "This is a proxy: the target must be an absolute URL.");
        }
        Err(TargetError::Scheme) => return own(501, "This proxy serves http URLs only."),
        Err(TargetError::Authority) => return own(400, "The host or port in the URL is not valid."),
    };
    if went_through(head.headers, &worker.common.name) {
        return own(508, "The request has come back to this proxy.");
    }
    if matches!(head.method, "OPTIONS" | "TRACE") && has_zero_max_forwards(head) {
        return own(200, "This proxy is where Max-Forwards ends.");
    }

    let now = now_ms();
    let facts = RequestFacts::read(head.headers, now);
    let mut key = worker.key.borrow_mut();
    key.clear();
    target.write_key(&mut key);
    let store = &worker.common.store;
    let hash = store.hash(&key);
    let safe = matches!(head.method, "GET" | "HEAD") && !has_body;
    if let Some(faults) = worker.faults.as_ref().filter(|_| safe)
        && let Some(wrong) = faults.instead(store, head, &facts, (hash, &key), now)
    {
        worker.counters.hits.add(1);
        let client = Side { keep: keep && !wrong.closes, ..client };
        return Decision::Hit { object: wrong.object, how: wrong.how, client };
    }
    let reads = safe && !facts.for_origin;
    let stored =
        if reads { store.get(hash, &key, |object| object.selecting.matches(head.headers)) } else { None };
    let mut stale = None;
    if let Some(object) = stored {
        if object.freshness.reuse(&facts.control, now) == Reuse::Fresh {
            worker.counters.hits.add(1);
            let how = How::to(head.method, &facts, &object);
            return Decision::Hit { object, how, client };
        }
        stale = Some(object).filter(|object| head.method == "GET" && object.has_validator());
    }
    if facts.control.only_if_cached {
        return own(504, "The store has no reply that may be used.");
    }
    Decision::Forward(Box::new(Job::new(head, client, framing, key.as_slice().into(), hash, stale)))
}

fn has_zero_max_forwards(head: &RequestHead<'_, '_>) -> bool {
    let zero = |value: &[u8]| polygraph_wire::body::parse_decimal(value.trim_ascii()) == Some(0);
    head.headers.iter().any(|header| header.name.eq_ignore_ascii_case("max-forwards") && zero(header.value))
}

async fn carry_out(worker: &Worker, client: &mut Peer, decision: Decision) -> Then {
    match decision {
        Decision::Partial | Decision::Over => Then::Close,
        Decision::Bad { status, text } => {
            worker.counters.bad_requests.add(1);
            reply_self(worker, client, status, text, None, 1, false).await
        }
        Decision::Own { status, text, client: side } => {
            worker.counters.rejected.add(1);
            client.consume(side.head_len);
            reply_self(worker, client, status, text, None, side.minor, side.keep).await
        }
        Decision::Ask { challenge, client: side } => {
            worker.counters.asked.add(1);
            client.consume(side.head_len);
            let text = "This proxy wants to know who you are.";
            reply_self(worker, client, 407, text, Some(&challenge), side.minor, side.keep).await
        }
        Decision::Hit { object, how, client: side } => {
            client.consume(side.head_len);
            answer(worker, client, &object, how, side).await
        }
        // Boxed, so that idle connections do not carry the room for a transaction with an origin.
        Decision::Forward(job) => {
            client.consume(job.client.head_len);
            if worker.is_slowed() {
                worker.miss_slowly().await;
            }
            Box::pin(forward(worker, client, job)).await
        }
    }
}

/// Answers with a stored reply: one system call, nothing copied.
pub async fn answer(worker: &Worker, client: &mut Peer, object: &Object, how: How, side: Side) -> Then {
    let mut end = [0; 64];
    let mut space = &mut end[..];
    let age = object.freshness.age_ms(now_ms()) / 1000;
    write_end(&mut space, Some(age), side.minor, side.keep);
    let unused = space.len();
    let end = &end[..end.len() - unused];

    let mut not_modified = Vec::new();
    let (head, body): (&[u8], &[u8]) = match how {
        How::Whole => (&object.head, &object.body),
        How::Head => (&object.head, &[]),
        How::NotModified => {
            write_not_modified(&mut not_modified, &object.head);
            (&not_modified, &[])
        }
    };
    let bytes = head.len() + end.len() + body.len();
    let mut slices = [IoSlice::new(head), IoSlice::new(end), IoSlice::new(body)];
    if within(worker.common.config.io_timeout, client.write_all(&mut slices)).await.is_err() {
        worker.counters.aborted.add(1);
        return Then::Close;
    }
    worker.counters.bytes_out.add(bytes as u64);
    side.after(client)
}

/// Answers with a status and a sentence of the proxy's own.
pub async fn reply_self(
    worker: &Worker,
    client: &mut Peer,
    status: u16,
    text: &str,
    challenge: Option<&[u8]>,
    minor: u8,
    keep: bool,
) -> Then {
    let keep = keep && !worker.stopping.get();
    let reply = own_reply(status, text, challenge, minor, keep, now_ms() / 1000, &worker.common.name);
    match within(worker.common.config.io_timeout, client.write_all(&mut [IoSlice::new(&reply)])).await {
        Ok(()) => worker.counters.bytes_out.add(reply.len() as u64),
        Err(_) => return Then::Close,
    }
    if keep { Then::Next } else { Then::CloseGently }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts near to requests: a request with some bytes replaced, doubled or cut off.
    pub fn mangled(base: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
        let edits = prop::collection::vec((0..base.len(), any::<u8>(), any::<bool>()), 0..6);
        // Half of the cases are cut off somewhere.
        (edits, 0..=2 * base.len()).prop_map(move |(edits, end)| {
            let mut text = base.to_vec();
            for (at, byte, insert) in edits {
                if insert {
                    text.insert(at, byte);
                } else {
                    text[at] = byte;
                }
            }
            text.truncate(end);
            text
        })
    }

    const REQUEST: &[u8] =
        b"GET http://a.b:80/c?d HTTP/1.1\r\nHost: a.b\r\nVia: 1.1 x\r\nVary: e\r\nConnection: f, close\r\n\
        Cache-Control: max-age=5, only-if-cached\r\nIf-None-Match: \"g\", W/\"h\"\r\nMax-Forwards: 0\r\n\
        If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\nContent-Length: 0\r\nPragma: no-cache\r\n\r\n";

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            decide(&Worker::for_tests(), &bytes);
        }

        #[test]
        fn mangled_requests_never_panic(bytes in mangled(REQUEST)) {
            if let Decision::Forward(job) = decide(&Worker::for_tests(), &bytes) {
                job.exercise();
            }
        }
    }

    #[test]
    fn the_text_that_is_mangled_is_a_request() {
        let decision = decide(&Worker::for_tests(), REQUEST);
        // Nothing is stored, and the request wants nothing else.
        assert!(matches!(decision, Decision::Own { status: 504, .. }));
    }
}
