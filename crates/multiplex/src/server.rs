//! The server's side of an HTTP/2 connection.

use std::io;
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos};

use crate::driver::drive;
use crate::fault::{Fault, FaultKind};
pub use crate::http2::connection::PREFACE;
use crate::http2::connection::Side;
use crate::message::ReplyTo;
use crate::message::incoming::TargetForm;
use crate::session::Http2Session;
use crate::settings::Http2Settings;
use crate::stream::Stream;
use crate::traffic::WireBytes;

/// The reply to a client whose first bytes are not [`PREFACE`]: SETTINGS, and GOAWAY with PROTOCOL_ERROR (RFC 9113, sections 3.4
/// and 6.8). The connection must then be closed.
pub const NO_PREFACE: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";

/// Whether `data`, the first bytes of a connection, may be the start of HTTP/2. Four bytes are enough to tell it from HTTP/1.
pub fn may_be_http2(data: &[u8]) -> bool {
    let n = data.len().min(PREFACE.len());
    n > 0 && data[..n] == PREFACE[..n]
}

/// How a server treats a connection.
#[derive(Clone, Copy, Debug)]
pub struct ServerPolicy {
    /// What the server announces.
    pub settings: Http2Settings,
    /// The form of the targets of requests.
    pub form: TargetForm,
    /// The number of requests after which the server announces the end of the connection.
    pub use_limit: u64,
    /// How long a connection without streams stays open.
    pub idle_timeout: Option<Nanos>,
}

/// How a connection ended.
#[derive(Debug, Default)]
pub struct ServerEnd {
    /// The error, if there was one.
    pub failure: Option<io::Error>,
    /// Whether the server itself ended the connection.
    pub by_server: bool,
    /// Number of requests, those included that are no HTTP message.
    pub requests: u64,
    /// Requests without an HTTP/1 form.
    pub malformed: u64,
    /// The bytes on the wire.
    pub bytes: WireBytes,
    /// Those of them that no stream has reported.
    pub unreported: WireBytes,
}

impl ServerEnd {
    /// The kind of the fault with which the connection ended, if the protocol caused it.
    pub fn fault(&self) -> Option<FaultKind> {
        self.failure.as_ref().and_then(Fault::of).map(|fault| fault.kind)
    }
}

/// Serves a connection until it ends. `received` is what was read from it already: the start of [`PREFACE`]. Each request is a
/// stream, which `accept` takes; it is in the stream's first bytes.
pub async fn serve<L: Link, C: Conn>(
    link: &L,
    mut conn: C,
    received: &[u8],
    policy: &ServerPolicy,
    mut accept: impl FnMut(Stream),
) -> ServerEnd {
    conn.set_deadline(None);
    let session = Rc::new(Http2Session::new(conn, Side::Server(policy.form), &policy.settings));
    session.connection.borrow_mut().receive(received);
    let mut by_server = false;
    let mut idle_since = Some(link.now());
    let failure = drive(link, &session, |until| {
        while let Some((place, to)) = next_request(&session) {
            accept(Stream::of_server(&session, place, to));
        }
        let mut connection = session.connection.borrow_mut();
        if connection.requests >= policy.use_limit && !by_server {
            by_server = true;
            connection.announce_end();
        }
        let Some(timeout) = policy.idle_timeout else { return };
        if session.deadlines.streams() > 0 {
            idle_since = None;
            return;
        }
        let now = link.now();
        let limit = idle_since.get_or_insert(now).saturating_add(timeout);
        if limit > now {
            *until = limit;
        } else if by_server || !connection.has_begun() {
            // The client does not answer, or is none.
            by_server = true;
            connection.close_in_order();
        } else {
            by_server = true;
            connection.announce_end();
            idle_since = Some(now);
            *until = now.saturating_add(timeout);
        }
    })
    .await;
    let mut connection = session.connection.borrow_mut();
    let (requests, malformed, bytes) = (connection.requests, connection.malformed, connection.all_bytes());
    ServerEnd { failure, by_server, requests, malformed, bytes, unreported: connection.take_bytes() }
}

fn next_request(session: &Http2Session) -> Option<(usize, ReplyTo)> {
    session.connection.borrow_mut().accept()
}
