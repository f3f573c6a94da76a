//! A request that is forwarded to an origin, and the possible failures.

use std::io::{self, Write as _};
use std::sync::Arc;

use polygraph_wire::{Framing, RequestHead, parse_request};

use crate::message::{BodyOut, write_request};
use crate::object::Object;
use crate::origins::{Connection, SendError};
use crate::policy::is_idempotent;
use crate::reply::ClientContext;
use crate::target::{Role, Target};

/// A request that is forwarded to an origin.
#[derive(Debug)]
pub struct ForwardedRequest {
    /// The head as received: parsing it again is cheaper than keeping its parts.
    head: Box<[u8]>,
    /// The client's connection.
    pub client: ClientContext,
    /// The framing of the body.
    pub framing: Framing,
    /// The key of the requested object in the store.
    pub key: Box<[u8]>,
    /// Hash of `key`, computed by the store.
    pub hash: u64,
    /// The stored reply to be validated.
    pub stale: Option<Arc<Object>>,
}

impl ForwardedRequest {
    /// Creates the request from its head.
    pub fn new(
        head: &RequestHead<'_, '_>,
        client: ClientContext,
        framing: Framing,
        (hash, key): (u64, &[u8]),
        stale: Option<Arc<Object>>,
    ) -> ForwardedRequest {
        ForwardedRequest { head: raw(head).into_boxed_slice(), client, framing, key: key.into(), hash, stale }
    }

    /// Passes the parsed head to `use_it`.
    pub fn with_head<R>(&self, use_it: impl FnOnce(&RequestHead<'_, '_>) -> R) -> R {
        let parsed = parse_request(&self.head, use_it);
        parsed.ok().flatten().expect("a request head that was written from a parsed one")
    }

    /// True if there is no body.
    pub fn is_bodiless(&self) -> bool {
        self.framing == Framing::Length(0)
    }

    /// True if the request may be sent again when a reused connection turns out to be closed.
    pub fn is_replayable(&self) -> bool {
        self.is_bodiless() && self.with_head(|head| is_idempotent(head.method))
    }

    /// The framing of the body towards the origin.
    pub fn body_out(&self) -> BodyOut {
        match self.framing {
            Framing::Length(0) => BodyOut::None,
            Framing::Chunked => BodyOut::Chunked,
            _ => BodyOut::Length,
        }
    }

    /// Host, port and head for the origin. `name` is the name of the proxy.
    pub fn to_origin(&self, name: &str, role: Role) -> (Box<str>, u16, Vec<u8>) {
        self.with_head(|request| {
            let target = Target::of(request, role).expect("a target that was parsed before");
            let mut head = Vec::with_capacity(self.head.len() + 128);
            let validators = self.stale.as_ref().map(|stale| &stale.validators);
            write_request(&mut head, request, &target, self.body_out(), validators, name);
            (Box::from(target.host), target.port, head)
        })
    }
}

/// Builds the bytes of a head from its parts.
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

/// Why no reply can be relayed.
#[derive(Debug)]
pub enum ForwardError {
    /// The origin closed a reused connection before it received the request.
    Outdated,
    /// The origin's `304` refers to a version other than the stored one.
    Contradiction,
    /// The origin failed: status and text for the client.
    Gateway(u16, &'static str),
    /// The client has closed the connection.
    Client,
}

impl ForwardError {
    /// The failure for an error on a connection to the origin.
    pub fn of<C: polygraph_link::Conn>(
        error: &io::Error,
        connection: &Connection<C>,
        request: &ForwardedRequest,
    ) -> ForwardError {
        if error.kind() == io::ErrorKind::TimedOut {
            ForwardError::Gateway(504, "The origin did not answer in time.")
        } else if connection.is_reused && connection.stream.unread().is_empty() && request.is_replayable() {
            ForwardError::Outdated
        } else {
            ForwardError::Gateway(502, "The origin closed the connection before its reply was complete.")
        }
    }
}

impl From<SendError> for ForwardError {
    fn from(error: SendError) -> ForwardError {
        match error {
            SendError::Unreachable => ForwardError::Gateway(502, "The origin could not be reached."),
            SendError::Timeout => ForwardError::Gateway(504, "The origin could not be reached in time."),
            SendError::Outdated => ForwardError::Outdated,
        }
    }
}
