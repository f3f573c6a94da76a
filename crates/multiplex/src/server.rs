//! The server's side of an HTTP/2 connection.

use std::io;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h2::server::Builder;
use polygraph_link::{Conn, Link, Nanos};
use std::future::Future;
use std::pin::pin;

use crate::driver::drive;
use crate::fault::{self, Fault, FaultKind};
use crate::message::incoming::TargetForm;
use crate::settings::{Http2Settings, MAX_FIELD_SECTION};
use crate::stream::{Shared, Stream};
use crate::transport::{Transport, WireBytes};

/// The first bytes of every client (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

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
    let mut shared = Shared { capture: conn.take_capture(), ..Shared::default() };
    if let Some(capture) = &mut shared.capture {
        capture.take();
    }
    let shared = Rc::new(shared);
    let transport = Transport::new(conn, received, Rc::clone(&shared.meter));
    let mut end = ServerEnd::default();
    let mut builder = Builder::new();
    builder
        .initial_window_size(policy.settings.window)
        .initial_connection_window_size(policy.settings.window)
        .max_concurrent_streams(policy.settings.streams)
        .max_header_list_size(MAX_FIELD_SECTION);
    let handshake = builder.handshake::<_, Bytes>(transport.clone());
    let opened = link.now();
    let ended = {
        let mut handshake = pin!(handshake);
        let mut connection = None;
        let mut idle_since = Some(opened);
        drive(link, &transport, &shared, |cx, until| {
            let idle_limit = |since: Nanos| policy.idle_timeout.map(|timeout| since.saturating_add(timeout));
            if connection.is_none() {
                match handshake.as_mut().poll(cx) {
                    Poll::Ready(Ok(ready)) => connection = Some(ready),
                    Poll::Ready(Err(e)) => return Poll::Ready(Some(e)),
                    Poll::Pending => {
                        match idle_since.and_then(idle_limit) {
                            Some(limit) if limit <= link.now() => {
                                end.by_server = true;
                                return Poll::Ready(None);
                            }
                            limit => *until = limit.unwrap_or(Nanos::MAX),
                        }
                        return Poll::Pending;
                    }
                }
            }
            let Some(connection) = &mut connection else { return Poll::Pending };
            loop {
                match connection.poll_accept(cx) {
                    Poll::Ready(Some(Ok((request, respond)))) => {
                        end.requests += 1;
                        if end.requests >= policy.use_limit && !end.by_server {
                            end.by_server = true;
                            connection.graceful_shutdown();
                        }
                        match Stream::of_server(&shared, request.into_parts(), respond, policy.form) {
                            Ok(stream) => accept(stream),
                            Err(_) => end.malformed += 1,
                        }
                    }
                    Poll::Ready(Some(Err(e))) => return Poll::Ready(Some(e)),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => break,
                }
            }
            if policy.idle_timeout.is_some() && !end.by_server {
                if shared.deadlines.streams() > 0 {
                    idle_since = None;
                    return Poll::Pending;
                }
                let limit = idle_limit(*idle_since.get_or_insert_with(|| link.now())).unwrap_or(Nanos::MAX);
                if limit <= link.now() {
                    end.by_server = true;
                    connection.graceful_shutdown();
                    // The connection must be polled again, or nothing is sent.
                    cx.waker().wake_by_ref();
                } else {
                    *until = limit;
                }
            }
            Poll::Pending
        })
        .await
    };
    end.failure = match ended {
        Ok(None) => None,
        Ok(Some(e)) => fault::of_connection(e),
        Err(e) => Some(e),
    };
    *shared.failure.borrow_mut() = end.failure.as_ref().map(|e| (e.kind(), e.to_string()));
    (end.bytes, end.unreported) = (shared.meter.all(), shared.meter.take());
    end
}
