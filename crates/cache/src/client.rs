//! Decides on each request of a client, and answers it.

use std::sync::Arc;

use polygraph_link::{Conn, Link};
use polygraph_wire::auth::access::{AccessRequest, ConnectionAccess, ProvenKeys};
use polygraph_wire::body::{has_two_framings, request_framing};
use polygraph_wire::head::{Header, keeps_alive};
use polygraph_wire::{Framing, HeadError, RequestHead, parse_request};

use crate::message::{MAX_HEAD, OwnReply, went_through};
use crate::object::{Object, ReplyForm};
use crate::policy::{RequestFacts, Reuse};
use crate::proxy::{Client, Proxy};
use crate::reply::{AfterReply, ClientContext};
use crate::request::{ForwardedRequest, Outgoing};
use crate::service::nanos_of;
use crate::target::{Role, Target, TargetError, split_port};

/// The sentence for bytes that are not a request.
const NO_REQUEST: &str = "This is not an HTTP/1 request.";

/// The decision about a request.
pub enum Decision {
    /// The head is not complete yet.
    Partial,
    /// The client closed the connection, or was idle for too long.
    Over,
    /// The connection starts like one of HTTP/2.
    Http2,
    /// A reply of the proxy itself to bytes that are not a request; the connection cannot be used any longer.
    Malformed(OwnReply<'static>),
    /// A reply of the proxy itself.
    Own(OwnReply<'static>, ClientContext),
    /// The client has to authenticate itself.
    Challenge(Vec<Vec<u8>>, ClientContext),
    /// A stored reply.
    Hit(Arc<Object>, ReplyForm, ClientContext),
    /// The client wants a tunnel to a host and port.
    Tunnel(String, u16, ClientContext),
    /// The origin has to answer.
    Forward(Box<ForwardedRequest>),
}

impl<L: Link> Proxy<L> {
    /// Reads until the proxy can decide on a request.
    pub(crate) async fn next_decision(
        &self,
        client: &mut Client<L>,
        access: &mut ConnectionAccess,
    ) -> Decision {
        let config = &self.shared.config;
        let deadline_in = |timeout| Some(self.link.now() + nanos_of(timeout));
        client.conn.set_deadline(deadline_in(config.idle_timeout));
        let (mut seen, mut delayed) = (0, !self.is_slowed());
        loop {
            // A head that arrives byte by byte is parsed once per line, not once per byte.
            if client.unread()[seen..].contains(&b'\n') {
                if polygraph_multiplex::may_be_http2(client.unread()) {
                    return Decision::Http2;
                }
                if !delayed && !matches!(parse_request(client.unread(), |_| ()), Ok(None)) {
                    self.delay_request().await;
                    delayed = true;
                }
                if delayed {
                    match self.decide(client.unread(), access) {
                        Decision::Partial => {}
                        decision => return decision,
                    }
                }
            }
            if client.unread().len() > MAX_HEAD {
                return Decision::Malformed(OwnReply::new(431, "The request head is too large."));
            }
            if seen == 0 && !client.unread().is_empty() {
                client.conn.set_deadline(deadline_in(config.head_timeout));
            }
            seen = client.unread().len();
            match client.fill(&self.heads).await {
                Ok(1..) => {}
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut && seen > 0 => {
                    return Decision::Malformed(OwnReply::new(
                        408,
                        "The request head did not arrive in time.",
                    ));
                }
                _ => return Decision::Over,
            }
        }
    }

    pub(crate) fn decide(&self, bytes: &[u8], access: &mut ConnectionAccess) -> Decision {
        match parse_request(bytes, |head| self.decide_on(&bytes[..head.len], head, access)) {
            Ok(Some(decision)) => decision,
            Ok(None) => Decision::Partial,
            Err(HeadError::TooManyHeaders) => {
                Decision::Malformed(OwnReply::new(431, "Too many header fields."))
            }
            Err(HeadError::Malformed) => Decision::Malformed(OwnReply::new(400, NO_REQUEST)),
        }
    }

    /// Decides on a request with this head, which was received as `bytes`.
    fn decide_on(
        &self,
        bytes: &[u8],
        head: &RequestHead<'_, '_>,
        connection: &mut ConnectionAccess,
    ) -> Decision {
        self.counters.requests.add(1);
        let framing = request_framing(head);
        let has_body = framing != Ok(Framing::Length(0));
        let keep = keeps_alive(head.minor_version, head.headers)
            && !has_two_framings(head.headers)
            && !self.is_stopping();
        let client = ClientContext { head_len: head.len, minor: head.minor_version, keep };
        // The body of a refused request is not read, so the connection cannot be used afterwards.
        let refused = ClientContext { keep: keep && !has_body, ..client };
        let closing = ClientContext { keep: false, ..client };
        let own = |status, text| Decision::Own(OwnReply::new(status, text), refused);
        let framing = match framing {
            Ok(Framing::Chunked) if head.minor_version == 0 => {
                return own(400, "HTTP/1.0 does not support chunked coding.");
            }
            Ok(framing) => framing,
            Err(_) => return own(400, "The framing of the request body is invalid."),
        };
        let hosts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).count();
        if hosts > 1 {
            // The next server might use the other field (RFC 9112, section 3.2).
            return Decision::Own(OwnReply::new(400, "The request has several Host fields."), closing);
        }
        if let Some(access) = &self.shared.config.access {
            let request = AccessRequest {
                method: head.method,
                target: head.target,
                unix_ms: self.link.unix_millis(),
                secret: self.shared.secret,
                proven: &ProvenKeys::default(),
            };
            let is_field = |header: &&Header<'_>| header.name.eq_ignore_ascii_case("proxy-authorization");
            let fields = head.headers.iter().filter(is_field).map(|header| header.value);
            if let Err(denial) = access.check(connection, fields, &request) {
                return Decision::Challenge(denial.challenges, refused);
            }
        }
        let role = self.shared.config.role();
        if head.method == "CONNECT" && role == Role::Surrogate {
            return Decision::Own(OwnReply::new(405, "This is not a forward proxy."), closing);
        }
        if head.method == "CONNECT" {
            return match split_port(head.target) {
                Some((host, port)) if !host.is_empty() => Decision::Tunnel(host.to_owned(), port, closing),
                _ => Decision::Own(OwnReply::new(400, "CONNECT needs a host and a port."), closing),
            };
        }
        let target = match Target::of(head, role) {
            Ok(target) => target,
            Err(TargetError::NotAbsolute) => {
                return own(400, "This is a proxy: the target must be an absolute URL.");
            }
            Err(TargetError::NoHost) => return own(400, "The request names no host."),
            Err(TargetError::Scheme) => return own(501, "This proxy serves http URLs only."),
            Err(TargetError::Authority) => return own(400, "The host or port in the URL is not valid."),
        };
        if went_through(head.headers, &self.shared.name) {
            return own(508, "The request has looped back to this proxy.");
        }
        if matches!(head.method, "OPTIONS" | "TRACE") && has_zero_max_forwards(head) {
            return own(200, "Max-Forwards ended at this proxy.");
        }
        self.look_up(bytes, head, &target, (framing, client))
            .unwrap_or_else(|| own(504, "The cache has no stored reply that may be used."))
    }

    /// Whether the store or the origin answers a request; `None` if the client does not accept an answer of the origin.
    fn look_up(
        &self,
        bytes: &[u8],
        head: &RequestHead<'_, '_>,
        target: &Target<'_>,
        (framing, client): (Framing, ClientContext),
    ) -> Option<Decision> {
        let now = self.link.unix_millis();
        let facts = RequestFacts::read(head.headers, now);
        let mut key = self.key.borrow_mut();
        key.clear();
        target.write_key(&mut key);
        let store = &self.shared.store;
        let hash = store.hash(&key);
        let is_read = matches!(head.method, "GET" | "HEAD") && framing == Framing::Length(0);
        if let Some(faults) = self.faults.as_ref().filter(|_| is_read)
            && let Some(wrong) = faults.instead(store, head, &facts, (hash, &key), now)
        {
            self.counters.hits.add(1);
            let client = ClientContext { keep: client.keep && !wrong.closes, ..client };
            return Some(Decision::Hit(wrong.object, wrong.form, client));
        }
        let stored = match is_read && !facts.for_origin {
            true => store.get(hash, &key, |object| object.selecting.matches(head.headers)),
            false => None,
        };
        let mut stale = None;
        if let Some(object) = stored {
            if object.freshness.reuse(&facts.control, now) == Reuse::Fresh {
                self.counters.hits.add(1);
                let form = ReplyForm::to(head.method, &facts, &object);
                return Some(Decision::Hit(object, form, client));
            }
            stale = Some(object).filter(|object| head.method == "GET" && object.validators.can_validate());
        }
        if facts.control.only_if_cached {
            return None;
        }
        Some(Decision::Forward(Box::new(ForwardedRequest {
            head: bytes.into(),
            outgoing: Outgoing::new(head, target, framing, stale.as_deref(), &self.shared.name),
            rules: facts.for_reply(head.method),
            client,
            framing,
            key: key.as_slice().into(),
            hash,
            stale,
        })))
    }

    async fn malformed(&self, client: &mut Client<L>, reply: OwnReply<'_>) -> AfterReply {
        self.counters.bad_requests.add(1);
        self.send_own(client, reply, 1, false).await
    }

    pub(crate) async fn carry_out(&self, client: &mut Client<L>, decision: Decision) -> AfterReply {
        if self.is_slowed() && !matches!(decision, Decision::Partial | Decision::Over) {
            self.delay_decided(matches!(decision, Decision::Hit(..))).await;
        }
        match decision {
            Decision::Partial | Decision::Over => AfterReply::Close,
            // HTTP/2 cannot follow requests of HTTP/1.
            Decision::Http2 => self.malformed(client, OwnReply::new(400, NO_REQUEST)).await,
            Decision::Malformed(reply) => self.malformed(client, reply).await,
            Decision::Own(reply, context) => {
                self.counters.rejected.add(1);
                client.consume(context.head_len);
                self.send_own(client, reply, context.minor, context.keep).await
            }
            Decision::Challenge(challenges, context) => {
                self.counters.challenged.add(1);
                client.consume(context.head_len);
                let reply = OwnReply::challenge("This proxy requires authentication.", &challenges);
                self.send_own(client, reply, context.minor, context.keep).await
            }
            Decision::Hit(object, form, context) => {
                client.consume(context.head_len);
                self.send_stored(client, &object, form, context).await
            }
            Decision::Tunnel(host, port, context) => {
                client.consume(context.head_len);
                Box::pin(self.tunnel(client, (&host, port), context.minor)).await
            }
            // Boxed, so that idle connections do not carry the room for a transaction with an origin.
            Decision::Forward(request) => {
                client.consume(request.client.head_len);
                if self.is_slowed() {
                    self.delay_miss().await;
                }
                Box::pin(self.forward(client, request)).await
            }
        }
    }
}

fn has_zero_max_forwards(head: &RequestHead<'_, '_>) -> bool {
    let zero = |value: &[u8]| polygraph_wire::body::parse_decimal(value.trim_ascii()) == Some(0);
    head.headers.iter().any(|header| header.name.eq_ignore_ascii_case("max-forwards") && zero(header.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{mangled, proxy};
    use proptest::prelude::*;

    const REQUEST: &[u8] =
        b"GET http://a.b:80/c?d HTTP/1.1\r\nHost: a.b\r\nVia: 1.1 x\r\nVary: e\r\nConnection: f, close\r\n\
        Cache-Control: max-age=5, only-if-cached\r\nIf-None-Match: \"g\", W/\"h\"\r\nMax-Forwards: 0\r\n\
        If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\nContent-Length: 0\r\nPragma: no-cache\r\n\r\n";

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            proxy().decide(&bytes, &mut ConnectionAccess::default());
        }

        #[test]
        fn mangled_requests_never_panic(bytes in mangled(REQUEST)) {
            if let Decision::Forward(mut request) = proxy().decide(&bytes, &mut ConnectionAccess::default()) {
                request.is_replayable();
                request.with_head(|_| ());
                request.take_stale("me", Role::Forward);
            }
        }
    }

    #[test]
    fn the_text_that_is_mangled_is_a_request() {
        let decision = proxy().decide(REQUEST, &mut ConnectionAccess::default());
        // Nothing is stored, and the request wants nothing else.
        assert!(matches!(decision, Decision::Own(reply, _) if reply.status == 504));
    }
}
