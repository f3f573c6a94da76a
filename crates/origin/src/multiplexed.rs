//! Serves HTTP/2 and HTTP/3 connections. Each stream is served like a connection with one request.

use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{FaultKind, Http2Settings, ServerEnd, ServerPolicy, WireBytes};
use polygraph_stats::{Block, CloseKind, ErrorKind, HttpVersion};
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::handshake::HandshakeFacts;
use polygraph_transport::Channel;
use polygraph_transport::http3::{self, EarlyFailure, Http3Server};
use polygraph_wire::auth::access::ConnectionAccess;

use crate::record::ConnectionId;
use crate::request::{Rejection, Request};
use crate::server::{Arrival, NextRequest, Server, begins_like_a_request};

/// How a multiplexed connection was served.
pub struct ServedStreams {
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
    /// Whether the connection has ended.
    ended: Cell<bool>,
    /// With TLS over TCP: where the facts of the handshake appear, if early data went ahead of its end.
    handshake: Option<HandshakeFacts>,
    /// When the connection was opened.
    opened: Nanos,
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
        (connection, opened): (u64, Nanos),
    ) -> ServedStreams {
        let handshake = conn.handshake_facts();
        let states = Rc::new(StreamStates { handshake, opened, ..StreamStates::default() });
        let policy = self.policy(self.profile().http2.unwrap_or_default());
        let place = ConnectionId { server: self.number(), connection, multiplexed: Some(HttpVersion::Http2) };
        let link = self.link().clone();
        let accept = |stream| {
            let conn = Channel::Stream(Box::new(stream));
            // What is spawned is moved several times, and this is large, so it is boxed.
            link.spawn(Box::pin(Rc::clone(&self).serve_stream(conn, place, Rc::clone(&states))));
        };
        let end = polygraph_multiplex::serve(&link, conn, received, &policy, accept).await;
        self.end_streams(&end, &states, HttpVersion::Http2)
    }

    /// Whether a new connection, on which `inbox` has arrived, should carry HTTP/2 and does not. `taken` tells whether there is a
    /// request of HTTP/1.
    pub(crate) fn lacks_preface(
        &self,
        conn: &Channel<L::Conn>,
        inbox: &[u8],
        taken: &Result<bool, Rejection>,
    ) -> bool {
        match conn.protocol() {
            Some(b"h2") => {
                *taken == Ok(true) || !(inbox.is_empty() || polygraph_multiplex::may_be_http2(inbox))
            }
            Some(_) => false,
            None => {
                self.profile().http2.is_some()
                    && *taken == Err(Rejection::Malformed)
                    && begins_like_a_request(inbox)
                    && !names_http1(inbox)
            }
        }
    }

    /// Whether the server accepts HTTP/3, which arrives at a UDP socket.
    pub fn accepts_http3(&self) -> bool {
        self.profile().http3.is_some()
    }

    /// Takes the HTTP/3 connections that arrive at `socket` from now on, if the server accepts them.
    pub fn serve_http3(self: &Rc<Self>, socket: L::Datagrams) {
        let Some(settings) = &self.profile().http3 else { return };
        // Without TLS, every connection over TCP is counted as a failure already.
        let Some(Ok(tls)) = self.tls() else { return };
        let server = Rc::clone(self);
        let accept = move |accepted: Result<Http3Server, EarlyFailure>| match accepted {
            Ok(connection) => {
                let link = server.link().clone();
                link.spawn(Rc::clone(&server).serve_http3_connection(connection));
            }
            Err(failure) => server.count_early(&failure),
        };
        if let Err(failure) = http3::listen(self.link(), socket, tls, settings, accept) {
            self.count_broken(failure.kind.class(), failure.to_string());
        }
    }

    /// Serves an HTTP/3 connection until it ends.
    async fn serve_http3_connection(self: Rc<Self>, conn: Http3Server) {
        let opened = self.now();
        let connection = self.enter_connection(opened);
        let states = Rc::new(StreamStates::default());
        let policy = self.policy(self.profile().http3.unwrap_or_default());
        let place = ConnectionId { server: self.number(), connection, multiplexed: Some(HttpVersion::Http3) };
        let link = self.link().clone();
        let end = conn
            .serve(
                &link,
                &policy,
                |stream| {
                    let stream = Rc::clone(&self).serve_stream(stream.into(), place, Rc::clone(&states));
                    link.spawn(Box::pin(stream));
                },
                |facts| self.recorder().with(|block| facts.count(&mut block.tls, opened)),
            )
            .await;
        let path = conn.take_path();
        self.recorder().with(|block| {
            block.streams.packets += path.sent;
            block.streams.lost_packets += path.lost;
        });
        let ServedStreams { closed, requests, looked } = self.end_streams(&end, &states, HttpVersion::Http3);
        self.leave_connection(opened, closed, requests, looked);
    }

    fn policy(&self, settings: Http2Settings) -> ServerPolicy {
        ServerPolicy {
            settings,
            form: TargetForm::Origin,
            use_limit: self.connection_uses(),
            idle_timeout: self.profile().idle_timeout,
        }
    }

    /// Counts the end of a connection and of its streams.
    fn end_streams(&self, end: &ServerEnd, states: &StreamStates, version: HttpVersion) -> ServedStreams {
        let now = self.now();
        let (requests, looked) = (states.requests.get(), states.looked.get());
        states.ended.set(true);
        self.recorder().with(|block| {
            count_bytes(block, end.unreported);
            if states.busy.get() == 0 && requests > 0 {
                block.idle.leave(now);
            }
            if requests > 0 {
                block.streams.per_connection.record(requests);
            }
        });
        let closed = self.count_end(end, states.busy.get() > 0, version);
        ServedStreams { closed, requests, looked }
    }

    /// Counts what ended a connection, if that was an error. Returns how it was closed otherwise.
    fn count_end(&self, end: &ServerEnd, busy: bool, version: HttpVersion) -> Option<CloseKind> {
        for _ in 0..end.malformed {
            let detail = format!("an {} request without an HTTP/1 form", version.title());
            self.count_broken(ErrorKind::BadHead, detail);
        }
        let Some(failure) = &end.failure else {
            return Some(match (end.by_server, busy) {
                (_, true) => CloseKind::Busy,
                (true, false) => CloseKind::IdleLocal,
                (false, false) => CloseKind::IdleForeign,
            });
        };
        if let Some(failure) = TlsFailure::of(failure) {
            self.count_tls(failure);
            return None;
        }
        let kind = match end.fault() {
            // Clients may close the connection at any time; exchanges that this cuts fail on their own. A client that is gone is
            // noticed over HTTP/3 only because nothing comes any more.
            None | Some(FaultKind::Silent) => {
                return Some(if busy { CloseKind::Busy } else { CloseKind::IdleForeign });
            }
            Some(FaultKind::Flood) => ErrorKind::FrameFlood,
            Some(FaultKind::GoAway) => ErrorKind::ConnectionError,
            Some(FaultKind::Transport) => ErrorKind::QuicError,
            Some(_) => ErrorKind::BadFrame,
        };
        self.count_broken(kind, format!("{} connection: {failure}", version.title()));
        None
    }

    /// Counts a connection over HTTP/3 that was lost before its handshake began.
    fn count_early(&self, failure: &EarlyFailure) {
        match failure {
            EarlyFailure::Tls(failure) => self.count_tls(failure),
            // As over TCP, where the kernel has no room for it: no request of the connection has begun.
            EarlyFailure::NoRoom => {
                let detail = || "an HTTP/3 connection: too many handshakes are under way".to_owned();
                self.recorder().error(ErrorKind::QueueFull, self.now(), detail);
            }
            EarlyFailure::Broken(text) => {
                self.count_broken(ErrorKind::QuicError, format!("HTTP/3 connection: {text}"));
            }
        }
    }

    /// Counts a failed handshake.
    pub(crate) fn count_tls(&self, failure: &TlsFailure) {
        let expected = self.shows_bad_certificate() && failure.is_refusal();
        self.recorder().with(|block| {
            failure.count_alert(&mut block.tls);
            block.tls.refused_handshakes += u64::from(expected);
        });
        // Devices also open connections that they then do not use.
        if !expected && failure.kind != FailureKind::Closed {
            self.count_broken(failure.kind.class(), format!("in a TLS handshake: {failure}"));
        }
    }

    /// Serves the request of a stream.
    async fn serve_stream(
        self: Rc<Self>,
        mut conn: Channel<L::Conn>,
        place: ConnectionId,
        states: Rc<StreamStates>,
    ) {
        let (opened, concurrent) = (self.now(), conn.open_streams() as u64);
        let (mut request, mut inbox) = (Request::default(), Vec::new());
        self.enter(&states, opened, concurrent);
        match self.next_request(&mut conn, &mut request, &mut inbox, false).await {
            NextRequest::Request(first_byte) => {
                states.requests.set(states.requests.get() + 1);
                // Handshakes of authentication need a connection of HTTP/1, so what a stream begins, no other one continues.
                self.check_access(&mut request, &mut ConnectionAccess::default());
                // The connection has its own limit of requests.
                let arrival = Arrival { first_byte, complete: self.now() };
                let served = self.serve_request(&mut conn, &mut request, &mut inbox, place, arrival, false);
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
        let bytes = conn.take_bytes();
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
        let is_idle = states.busy.get() == 0 && states.requests.get() > 0 && !states.ended.get();
        let now = self.now();
        let handshake = states.handshake.as_ref().and_then(HandshakeFacts::take);
        self.recorder().with(|block| {
            count_bytes(block, bytes);
            // With early data, the handshake is complete only after the first request.
            if let Some(facts) = handshake {
                facts.count(&mut block.tls, states.opened);
            }
            if is_idle {
                block.idle.enter(now);
            }
        });
    }
}

/// Whether the first line names HTTP/1.
fn names_http1(data: &[u8]) -> bool {
    let line = data.trim_ascii_start().split(|&b| b == b'\n').next().unwrap_or_default();
    line.windows(7).any(|part| part == b"HTTP/1.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::settings::{OriginConfig, ServerSpec};
    use crate::testing::{classic, connection, link};
    use polygraph_link::SECOND;
    use polygraph_stats::Recorder;
    use std::sync::Arc;

    /// The reply to `bytes` on a new connection that the server then closes, and the errors that it counts.
    fn ask(config: OriginConfig, bytes: &[u8]) -> (Vec<u8>, Vec<(ErrorKind, u64)>) {
        let (link, recorder) = (link(), Recorder::new());
        let origin = Origin::new(link.clone(), Arc::new(config), 0, recorder.clone());
        let names = vec!["www:80".to_owned()];
        let server = ServerSpec { profile: 0, number: 1, address: "10.0.0.1:80".into(), names };
        let (client, conn) = connection(&link);
        link.spawn(Server::new(&origin, server).serve(conn));
        client.send(bytes);
        link.run(link.now() + SECOND);
        assert!(client.is_closed(), "{}", String::from_utf8_lossy(bytes));
        (client.take(), recorder.with(|block| block.errors.iter().collect()))
    }

    #[test]
    fn connections_that_never_began_are_counted() {
        let (link, recorder) = (link(), Recorder::new());
        let origin = Origin::new(link.clone(), Arc::new(classic(10.0)), 0, recorder.clone());
        let server = ServerSpec { profile: 0, number: 1, address: "10.0.0.1:80".into(), names: Vec::new() };
        let server = Server::new(&origin, server);
        let broken = FailureKind::NothingInCommon;
        for (failure, kind, entered) in [
            (EarlyFailure::NoRoom, ErrorKind::QueueFull, 0),
            (EarlyFailure::Broken("a frame that is none".into()), ErrorKind::QuicError, 1),
            (EarlyFailure::Tls(TlsFailure::new(broken, "no version")), broken.class(), 1),
        ] {
            let before = recorder.with(|block| (block.errors[kind], block.xacts.entered));
            server.count_early(&failure);
            let now = recorder.with(|block| (block.errors[kind], block.xacts.entered));
            assert_eq!(now, (before.0 + 1, before.1 + entered), "{failure:?}");
        }
    }

    #[test]
    fn a_wrong_preface_is_answered_in_http2() {
        let mut config = classic(10.0);
        config.profiles[0].http2 = Some(Http2Settings::default());
        let invalid = &b"INVALID CONNECTION PREFACE\r\n\r\n"[..];
        let (reply, errors) = ask(config.clone(), invalid);
        assert_eq!(reply, polygraph_multiplex::NO_PREFACE);
        assert_eq!(errors, [(ErrorKind::BadFrame, 1)]);
        // What names HTTP/1 is answered in HTTP/1, and so is everything by a server that has no HTTP/2.
        let (reply, errors) = ask(config.clone(), b"GET /\0 HTTP/1.1\r\n\r\n");
        assert!(reply.starts_with(b"HTTP/1.1 400"), "{reply:?}");
        assert_eq!(errors, [(ErrorKind::BadHead, 1)]);
        config.profiles[0].http2 = None;
        let (reply, errors) = ask(config, invalid);
        assert!(reply.starts_with(b"HTTP/1.1 400"), "{reply:?}");
        assert_eq!(errors, [(ErrorKind::BadHead, 1)]);
    }
}
