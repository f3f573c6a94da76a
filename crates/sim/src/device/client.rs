//! A client's connection: one request after the other, answered from the cache or by an origin.

use std::rc::Rc;

use polygraph_cache::message::{own_reply, write_end, write_not_modified};
use polygraph_cache::object::How;
use polygraph_cache::policy::{RequestFacts, Reuse};
use polygraph_cache::target::Target;
use polygraph_link::Conn;
use polygraph_traffic::Body;
use polygraph_wire::body::request_framing;
use polygraph_wire::head::keeps_alive;
use polygraph_wire::{Framing, HeadError, RequestHead, parse_request};

use super::forward::{Job, forward};
use super::message::Peer;
use super::store::{Store, Stored};
use super::{Device, IDLE, NAME, PATIENCE};
use crate::conn::VirtualConn;

/// Heads larger than this are refused.
pub const MAX_HEAD: usize = 64 * 1024;

/// How a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// With the next request.
    Next,
    /// It is closed.
    Close,
    /// It is reset: a reply could not be completed.
    Reset,
}

impl Then {
    /// As the client wishes, after a complete reply.
    pub fn wished(keep: bool) -> Then {
        if keep { Then::Next } else { Then::Close }
    }
}

/// What to do with a request.
enum Decision {
    /// A reply of the device's own.
    Own { status: u16, text: &'static str, minor: u8, keep: bool },
    /// A stored reply.
    Hit { stored: Rc<Stored>, how: How, minor: u8, keep: bool },
    /// The origin is asked.
    Forward(Box<Job>),
}

/// Serves a client until its connection ends.
pub async fn serve(device: Device, conn: VirtualConn) {
    let mut client = Peer::new(conn);
    let mut then = Then::Next;
    while then == Then::Next {
        client.conn.set_deadline(Some(device.now() + IDLE));
        let Some(head_len) = read_head(&device, &mut client).await else { return };
        device.0.service.queue(&device.0.link).await;
        client.conn.set_deadline(Some(device.now() + PATIENCE));
        let decision = decide(&device, client.unread());
        client.consume(head_len);
        device.0.service.spend(&device.0.link, matches!(decision, Decision::Hit { .. })).await;
        then = match decision {
            Decision::Own { status, text, minor, keep } => {
                reply_self(&device, &mut client, status, text, minor, keep).await
            }
            Decision::Hit { stored, how, minor, keep } => {
                answer(&device, &mut client, &stored, how, minor, keep).await
            }
            Decision::Forward(job) => forward(&device, &mut client, job).await,
        };
    }
    if then == Then::Reset {
        client.conn.reset();
    }
}

/// Waits for a whole head, or for something that is none; gives its length. `None` if the client is gone.
async fn read_head(device: &Device, client: &mut Peer) -> Option<usize> {
    loop {
        if !client.unread().is_empty() {
            match parse_request(client.unread(), |head| head.len) {
                Ok(Some(len)) => {
                    device.count(|figures| figures.requests += 1);
                    return Some(len);
                }
                Ok(None) if client.unread().len() <= MAX_HEAD => {}
                Ok(None) | Err(_) => return Some(client.unread().len()),
            }
        }
        if !client.fill().await.ok()? {
            return None;
        }
    }
}

fn decide(device: &Device, bytes: &[u8]) -> Decision {
    let bad = |status, text| Decision::Own { status, text, minor: 1, keep: false };
    match parse_request(bytes, |head| decide_on(device, head)) {
        Ok(Some(decision)) => decision,
        Ok(None) | Err(HeadError::TooManyHeaders) => bad(431, "The request head is too large."),
        Err(HeadError::Malformed) => bad(400, "This is not an HTTP/1 request."),
    }
}

fn decide_on(device: &Device, head: &RequestHead<'_, '_>) -> Decision {
    let minor = head.minor_version;
    let keep = keeps_alive(minor, head.headers);
    // The body of a refused request is not read, so the connection cannot go on after it.
    let own = |status, text| Decision::Own { status, text, minor, keep: false };
    let Ok(framing) = request_framing(head) else {
        return own(400, "The body of the request is badly framed.");
    };
    if head.method == "CONNECT" {
        return own(501, "This proxy opens no tunnels.");
    }
    let Ok(target) = Target::parse(head.target) else {
        return own(400, "This is a proxy: the target must be an absolute URL.");
    };
    let now = device.now_ms();
    let facts = RequestFacts::read(head.headers, now);
    let mut url = Vec::with_capacity(head.target.len());
    target.write_key(&mut url);
    let hash = Store::hash(&url);
    let reads = matches!(head.method, "GET" | "HEAD") && framing == Framing::Length(0) && !facts.for_origin;
    let stored = match reads {
        true => device.0.store.borrow_mut().ask(hash, &url, head.headers),
        false => None,
    };
    let mut stale = None;
    if let Some(stored) = stored {
        if stored.object.freshness.reuse(&facts.control, now) == Reuse::Fresh {
            device.count(|figures| figures.hits += 1);
            let how = How::to(head.method, &facts, &stored.object);
            return Decision::Hit { stored, how, minor, keep };
        }
        stale = Some(stored).filter(|stored| head.method == "GET" && stored.object.has_validator());
    }
    if facts.control.only_if_cached {
        return own(504, "The store has no reply that may be used.");
    }
    Decision::Forward(Box::new(Job::new(head, framing, url.into_boxed_slice(), hash, keep, stale)))
}

/// Answers with a stored reply.
pub async fn answer(
    device: &Device,
    client: &mut Peer,
    stored: &Stored,
    how: How,
    minor: u8,
    keep: bool,
) -> Then {
    let mut head = Vec::with_capacity(stored.object.head.len() + 64);
    let body = match how {
        How::Whole => {
            head.extend_from_slice(&stored.object.head);
            device.0.store.borrow().body(&stored.content)
        }
        How::Head => {
            head.extend_from_slice(&stored.object.head);
            Body::empty()
        }
        How::NotModified => {
            write_not_modified(&mut head, &stored.object.head);
            Body::empty()
        }
    };
    let age = stored.object.freshness.age_ms(device.now_ms()) / 1000;
    write_end(&mut head, Some(age), minor, keep);
    match client.send(&head, body).await {
        Ok(()) => Then::wished(keep),
        Err(_) => Then::Close,
    }
}

/// Answers with a status and a sentence of the device's own.
pub async fn reply_self(
    device: &Device,
    client: &mut Peer,
    status: u16,
    text: &str,
    minor: u8,
    keep: bool,
) -> Then {
    let reply = own_reply(status, text, None, minor, keep, device.now_ms() / 1000, NAME);
    match client.send(&reply, Body::empty()).await {
        Ok(()) => Then::wished(keep),
        Err(_) => Then::Close,
    }
}
