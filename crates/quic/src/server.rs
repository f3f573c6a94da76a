//! The server's side of HTTP/3 connections.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use polygraph_link::{Datagrams, Link, Nanos};
use polygraph_multiplex::{Http2Settings, ServerEnd, ServerPolicy};
use polygraph_tls::failure::TlsFailure;
use polygraph_tls::handshake::Handshake;
use polygraph_tls::server::TlsServer;
use quinn_proto::crypto;
use quinn_proto::{Dir, Endpoint, ServerConfig, StreamId, VarInt};

use crate::client::watched;
use crate::config;
use crate::driver::{Accept, Driver, Listener};
use crate::handshakes::{Handshakes, TokenTime};
use crate::http3::codes;
use crate::lost::Lost;
use crate::session::{Control, Http3Session, PathCounts};
use crate::stream::{Http3Stream, Owner};
use crate::wire::{Queue, Wire};

/// A connection that a client has begun. Dropping it closes it.
#[derive(Debug)]
pub struct ServerConnection {
    session: Rc<Http3Session>,
    _owner: Owner,
}

/// Takes the connections that arrive at `socket` from now on, for ever. `accept` takes each of them, or why it failed at once.
///
/// # Errors
/// If the settings exclude TLS 1.3, which QUIC needs.
pub fn listen<L: Link>(
    link: &L,
    socket: L::Datagrams,
    tls: &TlsServer,
    settings: &Http2Settings,
    accept: impl FnMut(Result<ServerConnection, Lost>) + 'static,
) -> Result<(), TlsFailure> {
    let (clock, of_clock) = (tls.clone(), link.clone());
    let prepare = move || clock.set_clock(&of_clock);
    listen_with(link, socket, (tls.quic()?, prepare), settings, accept);
    Ok(())
}

/// As [`listen`], with any cryptography, and what is called before each connection.
pub fn listen_with<L: Link>(
    link: &L,
    socket: L::Datagrams,
    (crypto, prepare): (Arc<dyn crypto::ServerConfig>, impl Fn() + 'static),
    settings: &Http2Settings,
    mut accept: impl FnMut(Result<ServerConnection, Lost>) + 'static,
) {
    let mut server = ServerConfig::with_crypto(crypto);
    let transport = config::transport(settings, settings.streams, socket.largest());
    let token_time = Arc::<TokenTime>::default();
    let time_source = Arc::clone(&token_time);
    server.migration(false).transport_config(transport).time_source(time_source);
    let capture = socket.new_capture();
    let of_queue = link.clone();
    let queue = Rc::new(Queue::new(Box::new(move || of_queue.now())));
    let endpoint =
        Endpoint::new(Arc::clone(&config::ENDPOINT), Some(Arc::new(server)), socket.keeps_whole(), None);
    let accept: Accept = Box::new(move |wire: Result<Rc<Wire>, Lost>| {
        accept(wire.map(|wire| {
            let session = Http3Session::new(wire, false, capture.clone());
            ServerConnection { _owner: Owner(Rc::clone(&session)), session }
        }));
    });
    let handshakes = Handshakes::default();
    let listener = Listener { prepare: Box::new(prepare), accept, handshakes, token_time };
    let driver = Driver::new(socket, endpoint, queue, Some(listener));
    link.spawn(driver.run(link.clone()));
}

/// What is left to do for a connection.
struct Serving {
    control: Control,
    end: ServerEnd,
    /// The stream after the last one that is served.
    next: u64,
}

impl ServerConnection {
    /// Serves the connection until it ends. Each request is a stream, which `accept` takes. `connected` gets the facts of the handshake
    /// when it is complete.
    pub async fn serve<L: Link>(
        &self,
        link: &L,
        policy: &ServerPolicy,
        mut accept: impl FnMut(Http3Stream),
        mut connected: impl FnMut(Handshake),
    ) -> ServerEnd {
        let session = self.session();
        session.idle_since.set(link.now());
        let mut serving = Serving { control: Control::new(), end: ServerEnd::default(), next: 0 };
        watched(link, session, |until| {
            let handshake = session.wire.state().handshake.take();
            if let Some(facts) = handshake {
                connected(facts);
            }
            if session.wire.state().lost.is_some() {
                return Poll::Ready(());
            }
            serving.accept(session, policy, &mut accept);
            serving.control.turn(session);
            serving.end_if_idle(session, policy, link.now(), until);
            match session.wire.state().lost {
                Some(_) => Poll::Ready(()),
                None => Poll::Pending,
            }
        })
        .await;
        let mut end = serving.end;
        let lost = session.wire.state().lost.clone();
        end.failure = match lost {
            Some(Lost::Closed) if !session.has_failed() => None,
            _ => session.error(),
        };
        end.malformed = session.malformed.get();
        (end.bytes, end.unreported) = (session.bytes(), session.take_bytes());
        end
    }

    /// The address of the client.
    pub fn client(&self) -> std::net::SocketAddr {
        self.session().wire.state().quic.remote_address()
    }

    /// What became of packets since the last call.
    pub fn take_path(&self) -> PathCounts {
        self.session().take_path()
    }

    pub(crate) fn session(&self) -> &Rc<Http3Session> {
        &self.session
    }
}

impl Serving {
    /// Takes new streams, or refuses them if the end was announced.
    fn accept(
        &mut self,
        session: &Rc<Http3Session>,
        policy: &ServerPolicy,
        accept: &mut impl FnMut(Http3Stream),
    ) {
        loop {
            let id = session.wire.state().quic.streams().accept(Dir::Bi);
            let Some(id) = id else { return };
            if self.end.by_server {
                refuse(session, id);
                continue;
            }
            self.next = u64::from(id) + 4;
            self.end.requests += 1;
            if self.end.requests >= policy.use_limit {
                self.announce_end();
            }
            accept(Http3Stream::of_server(session, id, policy.form));
        }
    }

    fn announce_end(&mut self) {
        self.end.by_server = true;
        self.control.announce_end(self.next);
    }

    /// Ends a connection that has been idle for too long, or whose end was announced and whose replies have arrived.
    fn end_if_idle(&mut self, session: &Http3Session, policy: &ServerPolicy, now: Nanos, until: &mut Nanos) {
        let is_idle = session.deadlines.streams() == 0;
        if self.end.by_server {
            let mut state = session.wire.state();
            state.wakers.session_awaits_ends = true;
            // Only the control stream never ends.
            let is_delivered = is_idle && state.quic.streams().send_streams() <= 1;
            drop(state);
            if is_delivered {
                session.wire.close(codes::H3_NO_ERROR, "");
            }
            return;
        }
        let Some(timeout) = policy.idle_timeout else { return };
        // The end of the last stream does not wake this task, but the time will come.
        let since = if is_idle { session.idle_since.get() } else { now };
        let limit = since.saturating_add(timeout);
        if limit <= now {
            self.announce_end();
            session.wire.close(codes::H3_NO_ERROR, "");
        } else {
            *until = limit;
        }
    }
}

/// Refuses a request that arrives after the end was announced (RFC 9114, section 5.2).
fn refuse(session: &Http3Session, id: StreamId) {
    let code = VarInt::from_u64(codes::H3_REQUEST_REJECTED).unwrap_or(VarInt::MAX);
    let state = &mut *session.wire.state();
    // The stream is there, as it was just accepted.
    let _ = state.quic.send_stream(id).reset(code);
    let _ = state.quic.recv_stream(id).stop(code);
    session.wire.touch();
}
