//! A request that is forwarded to an origin, and the possible failures.

use std::io;
use std::sync::Arc;

use polygraph_wire::{Framing, RequestHead, parse_request};

use crate::message::{BodyOut, write_request};
use crate::object::Object;
use crate::origins::{Connection, SendError};
use crate::policy::ReplyRules;
use crate::reply::ClientContext;
use crate::target::{Role, Target};

/// A request that is forwarded to an origin.
#[derive(Debug)]
pub struct ForwardedRequest {
    /// The head as received. Few replies need it: parsing it again for them is cheaper than keeping its parts.
    pub head: Box<[u8]>,
    /// What the origin receives.
    pub outgoing: Outgoing,
    /// What the request says about the use of its reply.
    pub rules: ReplyRules,
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

/// A request as the origin receives it.
#[derive(Debug)]
pub struct Outgoing {
    /// The host to connect to, or its name.
    pub host: Box<str>,
    /// The port to connect to.
    pub port: u16,
    /// The head.
    pub head: Vec<u8>,
}

impl Outgoing {
    /// The form of a request with this framing. A stored reply that is to be validated replaces the client's conditions. `name`
    /// is the name of the proxy.
    pub fn new(
        head: &RequestHead<'_, '_>,
        target: &Target<'_>,
        framing: Framing,
        stale: Option<&Object>,
        name: &str,
    ) -> Outgoing {
        let mut out = Vec::with_capacity(head.len + 128);
        write_request(
            &mut out,
            head,
            target,
            BodyOut::of(framing),
            stale.map(|stale| &stale.validators),
            name,
        );
        Outgoing { host: Box::from(target.host), port: target.port, head: out }
    }
}

impl ForwardedRequest {
    /// Passes the parsed head to `use_it`.
    pub fn with_head<R>(&self, use_it: impl FnOnce(&RequestHead<'_, '_>) -> R) -> R {
        let parsed = parse_request(&self.head, use_it);
        parsed.ok().flatten().expect("a request head that was parsed before")
    }

    /// True if there is no body.
    pub fn is_bodiless(&self) -> bool {
        self.framing == Framing::Length(0)
    }

    /// True if the request may be sent again when a reused connection turns out to be closed.
    pub fn is_replayable(&self) -> bool {
        self.is_bodiless() && self.rules.is_idempotent
    }

    /// Takes the stored reply, which is not validated any more: the origin receives the client's own conditions. `name` is the name
    /// of the proxy.
    pub fn take_stale(&mut self, name: &str, role: Role) -> Option<Arc<Object>> {
        let stale = self.stale.take()?;
        self.outgoing = self.with_head(|head| {
            let target = Target::of(head, role).expect("a target that was parsed before");
            Outgoing::new(head, &target, self.framing, None, name)
        });
        Some(stale)
    }
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
