//! Decides, when the head of an origin's reply is complete, whether the reply is relayed, stored, or used to confirm a
//! stored reply.

use std::sync::Arc;

use polygraph_link::Link;
use polygraph_wire::body::{has_two_framings, reply_framing};
use polygraph_wire::head::keeps_alive;
use polygraph_wire::{Framing, ReplyHead, decimal, field_start};

use crate::content::ArrivingContent;
use crate::message::write_reply;
use crate::object::{Object, Selecting};
use crate::policy::{Freshness, ReplyFacts, Validators, may_store};
use crate::proxy::Proxy;
use crate::request::{ForwardError, ForwardedRequest};
use crate::store::Reservation;
use crate::target::path_of_key;

/// Maximum number of bytes for which room is made before they arrive.
const MAX_ROOM_AHEAD: u64 = 64 << 20;

/// The decision about a reply.
pub struct Admission {
    pub status: u16,
    /// Bytes of the head.
    pub head_len: usize,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether only the head is relayed, regardless of its fields.
    pub is_bodiless: bool,
    /// Status line and fields for the client, and for the store.
    pub head: Vec<u8>,
    /// The `Age` of the reply.
    pub age: Option<u64>,
    /// Whether the connection can serve another transaction after the body.
    pub is_reusable: bool,
    /// The reply as it will be stored.
    pub pending: Option<PendingObject>,
    /// The stored reply, confirmed and updated.
    pub validated: Option<Arc<Object>>,
}

/// A reply that is stored once it is complete.
pub struct PendingObject {
    reservation: Reservation,
    reserved: u64,
    content: ArrivingContent,
    selecting: Selecting,
    freshness: Freshness,
    validators: Validators,
}

impl PendingObject {
    /// Appends a piece of the content; false if there is no room for it.
    pub fn append(&mut self, piece: &[u8]) -> bool {
        let size = self.content.len() + piece.len() as u64;
        if size > self.reserved {
            let wanted = size.max(2 * self.reserved);
            let reserved = [wanted, size].into_iter().find(|&bytes| self.reservation.grow_to(bytes));
            match reserved {
                Some(bytes) => self.reserved = bytes,
                None => return false,
            }
        }
        self.content.append(piece);
        true
    }
}

impl<L: Link> Proxy<L> {
    /// Decides on a reply whose request was sent at `request_ms`.
    pub(crate) fn admit(
        &self,
        request: &ForwardedRequest,
        reply: &ReplyHead<'_, '_>,
        request_ms: u64,
    ) -> Result<Admission, ForwardError> {
        let rules = &request.rules;
        if !(200..=599).contains(&reply.status) {
            return Err(ForwardError::Gateway(502, "The status code of the origin's reply is invalid."));
        }
        let framing = reply_framing(reply, rules.is_head)
            .map_err(|_| ForwardError::Gateway(502, "The framing of the origin's reply body is invalid."))?;
        let now = self.link.unix_millis();
        let mut facts = ReplyFacts::read(reply.headers, now);
        let is_bodiless = rules.is_head || matches!(reply.status, 204 | 304);
        let mut block = Vec::with_capacity(reply.len + 128);
        let keep_length = is_bodiless && reply.status != 204;
        write_reply(&mut block, reply, keep_length, now / 1000, &self.shared.name);
        if let Some(faults) = &self.faults {
            faults.on_head(reply.status, &mut block);
            faults.on_facts(&mut facts);
        }
        let mut admission = Admission {
            status: reply.status,
            head_len: reply.len,
            framing,
            is_bodiless,
            head: block,
            age: reply.headers.iter().any(|h| h.name.eq_ignore_ascii_case("age")).then_some(facts.age),
            is_reusable: keeps_alive(reply.minor_version, reply.headers)
                && framing != Framing::UntilClose
                && !has_two_framings(reply.headers),
            pending: None,
            validated: None,
        };
        let store = &self.shared.store;
        if let Some(stale) = &request.stale {
            if reply.status == 304 {
                if stale.validators.contradict(&facts) {
                    return Err(ForwardError::Contradiction);
                }
                let updated = stale.updated(&admission.head, &facts, rules, request_ms, now);
                admission.validated = Some(self.store_updated(stale, updated));
                return Ok(admission);
            }
            // Any reply except a failure of the origin replaces the stored reply.
            if reply.status < 500 {
                store.remove_object(stale);
            }
        }
        if !rules.is_safe && reply.status < 400 {
            store.remove(request.hash, &request.key);
        }
        if request.is_bodiless() && may_store(rules, reply.status, &facts, now) {
            let expected = if let Framing::Length(bytes) = framing { bytes } else { 0 };
            admission.pending = store.reserve(expected).map(|reservation| PendingObject {
                reservation,
                reserved: expected,
                content: self.arriving(request, expected.min(MAX_ROOM_AHEAD) as usize),
                selecting: match facts.varies {
                    true => request.with_head(|head| Selecting::new(reply.headers, head.headers)),
                    false => Selecting::default(),
                },
                freshness: Freshness::new(reply.status, &facts, request_ms, now),
                validators: Validators::of(&facts, now),
            });
        }
        Ok(admission)
    }

    /// The content of a reply that is stored, with memory for `room` bytes if it has to be kept.
    fn arriving(&self, request: &ForwardedRequest, room: usize) -> ArrivingContent {
        let generator = self.shared.generator.as_ref();
        ArrivingContent::new(generator.and_then(|generator| generator(path_of_key(&request.key))), room)
    }

    /// Replaces a stored reply that a `304` has confirmed with its updated version (RFC 9111, section 4.3.4), and
    /// returns the reply to use.
    fn store_updated(&self, stale: &Arc<Object>, updated: Option<(Object, bool)>) -> Arc<Object> {
        let store = &self.shared.store;
        let Some((object, keep)) = updated else {
            // The old head is used for this reply.
            store.remove_object(stale);
            return Arc::clone(stale);
        };
        let object = Arc::new(object);
        if !keep {
            store.remove_object(stale);
        } else if store.put(Arc::clone(&object), self.link.now(), |old| old.selecting == object.selecting) {
            self.counters.stored.add(1);
        }
        object
    }

    /// Stores a complete reply to a request, which loses its key. `head` is the status line with the fields for the store.
    pub(crate) fn store_complete(
        &self,
        request: &mut ForwardedRequest,
        status: u16,
        head: Vec<u8>,
        pending: PendingObject,
    ) {
        let object = Arc::new(self.complete(request, status, head, pending));
        let replaces = |old: &Object| request.with_head(|request| old.selecting.matches(request.headers));
        if self.shared.store.put(object, self.link.now(), replaces) {
            self.counters.stored.add(1);
        }
    }

    fn complete(
        &self,
        request: &mut ForwardedRequest,
        status: u16,
        mut head: Vec<u8>,
        pending: PendingObject,
    ) -> Object {
        let PendingObject { content, selecting, freshness, validators, reservation: _, reserved: _ } =
            pending;
        if status != 204 {
            head.extend_from_slice(field_start!("Content-Length"));
            decimal::write(&mut head, content.len());
            head.extend_from_slice(b"\r\n");
        }
        Object {
            key: std::mem::take(&mut request.key),
            hash: request.hash,
            selecting,
            status,
            // Copied into a block of its size: spare room that is cut off would stay as a hole behind it.
            head: Box::from(head.as_slice()),
            body: content.complete(),
            freshness,
            validators,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Decision;
    use crate::testing::{NoLink, mangled, proxy};
    use bytes::Bytes;
    use polygraph_link::Nanos;
    use polygraph_wire::auth::access::ConnectionAccess;
    use polygraph_wire::{BodyReader, parse_reply};
    use proptest::prelude::*;

    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 5\r\nVary: a, b\r\n\
        Cache-Control: max-age=600, private=\"x, y\"\r\nExpires: Sun Nov  6 08:49:37 1994\r\nETag: \"c\"\r\n\
        Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\nConnection: d\r\nContent-Length: 10\r\n\r\n0123456789";
    const CONFIRMATION: &[u8] =
        b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"c\"\r\n\r\n";

    fn request(proxy: &Proxy<NoLink>, stale: Option<Arc<Object>>) -> ForwardedRequest {
        let text = b"GET http://h/ HTTP/1.1\r\nA: 1\r\n\r\n";
        match proxy.decide(text, &mut ConnectionAccess::default()) {
            Decision::Forward(request) => ForwardedRequest { stale, ..*request },
            _ => panic!("nothing that is stored is fresh"),
        }
    }

    /// Takes in a whole reply as the relay would; gives the object if it is to be stored.
    fn take_in(proxy: &Proxy<NoLink>, mut request: ForwardedRequest, bytes: &[u8]) -> Option<Object> {
        let admission = parse_reply(bytes, |reply| proxy.admit(&request, reply, 0)).ok()??.ok()?;
        let mut pending = admission.pending?;
        let mut reader = BodyReader::new(admission.framing);
        let fed = reader.feed(&bytes[admission.head_len..], |piece| {
            pending.append(piece);
        });
        fed.ok()?.done.then(|| proxy.complete(&mut request, admission.status, admission.head, pending))
    }

    fn stored(proxy: &Proxy<NoLink>) -> Arc<Object> {
        let text =
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"c\"\r\nContent-Length: 2\r\n\r\nok";
        let object = Arc::new(take_in(proxy, request(proxy, None), text).expect("a reply to be stored"));
        assert!(proxy.shared.store.put(Arc::clone(&object), Nanos::ZERO, |_| true));
        object
    }

    #[test]
    fn a_confirmation_brings_the_stored_reply_up_to_date() {
        let proxy = proxy();
        let request = request(&proxy, Some(stored(&proxy)));
        let admission = parse_reply(CONFIRMATION, |reply| proxy.admit(&request, reply, 0));
        let admission = admission.expect("a head").expect("a complete head").expect("an admission");
        let body = admission.validated.map(|object| object.body.bytes());
        assert_eq!(body, Some(Bytes::from_static(b"ok")));
    }

    proptest! {
        #[test]
        fn random_replies_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let proxy = proxy();
            take_in(&proxy, request(&proxy, None), &bytes);
        }

        #[test]
        fn mangled_replies_never_panic(bytes in mangled(REPLY)) {
            let proxy = proxy();
            take_in(&proxy, request(&proxy, None), &bytes);
        }

        #[test]
        fn mangled_confirmations_never_panic(bytes in mangled(CONFIRMATION)) {
            let proxy = proxy();
            take_in(&proxy, request(&proxy, Some(stored(&proxy))), &bytes);
        }
    }
}
