//! Serves HTTP/2 connections. Each stream is served like a connection with one request.

use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{FaultKind, ServerEnd, ServerPolicy, Stream, WireBytes};
use polygraph_stats::{Block, CloseKind, ErrorKind};
use polygraph_transport::Channel;
use polygraph_wire::auth::access::ConnectionAccess;

use crate::record::ConnectionId;
use crate::request::Request;
use crate::server::{NextRequest, Server};

/// How an HTTP/2 connection was served.
pub struct ServedHttp2 {
    /// How it was closed, if no error occurred.
    pub closed: Option<CloseKind>,
    /// Number of requests, without preflight requests.
    pub requests: u64,
    /// Whether there was a preflight request.
    pub looked: bool,
}

/// What the streams of a connection have in common.
#[derive(Default)]
struct StreamStates {
    /// Streams that are being served.
    busy: Cell<u32>,
    requests: Cell<u64>,
    looked: Cell<bool>,
}

/// Counts the bytes of a connection.
fn count_bytes(block: &mut Block, bytes: WireBytes) {
    block.streams.sent += bytes.sent;
    block.streams.received += bytes.received;
    block.streams.sent_content += bytes.sent_content;
    block.streams.received_content += bytes.received_content;
}

impl<L: Link> Server<L> {
    /// Serves a connection that starts with the bytes `received` of HTTP/2, until it ends.
    pub(crate) async fn serve_http2(
        self: Rc<Self>,
        conn: Channel<L::Conn>,
        received: &[u8],
        connection: u64,
    ) -> ServedHttp2 {
        let states = Rc::new(StreamStates::default());
        let profile = self.profile();
        let policy = ServerPolicy {
            settings: profile.http2.unwrap_or_default(),
            form: TargetForm::Origin,
            use_limit: self.connection_uses(),
            idle_timeout: profile.idle_timeout,
        };
        let place = ConnectionId { server: self.number(), connection, http2: true };
        let link = self.link().clone();
        let accept = |stream| {
            link.spawn(Rc::clone(&self).serve_stream(stream, place, Rc::clone(&states)));
        };
        let end = polygraph_multiplex::serve(&link, conn, received, &policy, accept).await;
        let now = self.now();
        let (requests, looked) = (states.requests.get(), states.looked.get());
        self.recorder().with(|block| {
            count_bytes(block, end.unreported);
            if states.busy.get() == 0 && requests > 0 {
                block.idle.leave(now);
            }
            if requests > 0 {
                block.streams.per_connection.record(requests);
            }
        });
        let closed = self.count_end(&end, states.busy.get() > 0);
        ServedHttp2 { closed, requests, looked }
    }

    /// Counts what ended a connection, if that was an error. Returns how it was closed otherwise.
    fn count_end(&self, end: &ServerEnd, busy: bool) -> Option<CloseKind> {
        for _ in 0..end.malformed {
            self.count_broken(ErrorKind::BadHead, "an HTTP/2 request without an HTTP/1 form".into());
        }
        let Some(failure) = &end.failure else {
            return Some(match (end.by_server, busy) {
                (_, true) => CloseKind::Busy,
                (true, false) => CloseKind::IdleLocal,
                (false, false) => CloseKind::IdleForeign,
            });
        };
        let kind = match end.fault() {
            // Clients may close the connection at any time; exchanges that this cuts fail on their own.
            None => return Some(if busy { CloseKind::Busy } else { CloseKind::IdleForeign }),
            Some(FaultKind::Flood) => ErrorKind::FrameFlood,
            Some(FaultKind::GoAway) => ErrorKind::ConnectionError,
            Some(_) => ErrorKind::BadFrame,
        };
        self.count_broken(kind, format!("HTTP/2 connection: {failure}"));
        None
    }

    /// Serves the request of a stream.
    async fn serve_stream(self: Rc<Self>, stream: Stream, place: ConnectionId, states: Rc<StreamStates>) {
        let (opened, concurrent) = (self.now(), stream.open_streams() as u64);
        let mut conn = Channel::Stream(Box::new(stream));
        let (mut request, mut inbox) = (Request::default(), Vec::new());
        self.enter(&states, opened, concurrent);
        match self.next_request(&mut conn, &mut request, &mut inbox, false).await {
            NextRequest::Request(first_byte) => {
                states.requests.set(states.requests.get() + 1);
                // Handshakes of authentication need a connection of HTTP/1, so what a stream begins, no other one continues.
                self.check_access(&mut request, &mut ConnectionAccess::default());
                // The connection has its own limit of requests.
                let served =
                    self.serve_request(&mut conn, &mut request, &mut inbox, place, first_byte, false);
                // The connection learns from the end of the stream how the exchange ended.
                let _ = served.await;
            }
            NextRequest::Preflight(reply) => {
                states.looked.set(true);
                // If the reply does not arrive, the client reports that.
                let _ = conn.try_send(&[IoSlice::new(&reply)]);
            }
            other => drop(self.without_request(&mut conn, other)),
        }
        let bytes = match &conn {
            Channel::Stream(stream) => stream.take_bytes(),
            _ => WireBytes::default(),
        };
        drop(conn);
        self.leave(&states, bytes);
    }

    /// Counts the start of a stream.
    fn enter(&self, states: &StreamStates, now: Nanos, concurrent: u64) {
        states.busy.set(states.busy.get() + 1);
        let was_idle = states.busy.get() == 1 && states.requests.get() > 0;
        self.recorder().with(|block| {
            block.streams.concurrent.record(concurrent);
            if was_idle {
                block.idle.leave(now);
            }
        });
    }

    /// Counts the end of a stream, and the bytes of its connection since the last one.
    fn leave(&self, states: &StreamStates, bytes: WireBytes) {
        states.busy.set(states.busy.get() - 1);
        let is_idle = states.busy.get() == 0 && states.requests.get() > 0;
        let now = self.now();
        self.recorder().with(|block| {
            count_bytes(block, bytes);
            if is_idle {
                block.idle.enter(now);
            }
        });
    }
}
