//! The client's side of an HTTP/3 connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use polygraph_link::{ConnectError, Datagrams, Link, Nanos};
use polygraph_multiplex::alarm::Alarm;
use polygraph_multiplex::{Http2Settings, WireBytes};
use polygraph_tls::handshake::Handshake;
use quinn_proto::crypto;
use quinn_proto::{ClientConfig, Endpoint};

use crate::clock::instant;
use crate::config;
use crate::driver::Driver;
use crate::lost::Lost;
use crate::session::{Control, Http3Session, PathCounts, poll_connected};
use crate::stream::{Http3Stream, Owner};
use crate::wire::{Queue, Wire};

/// A connection to a server, on which streams can be opened. When it and its streams are dropped, the connection is closed in
/// order.
#[derive(Debug)]
pub struct ClientConnection {
    owner: Rc<Owner>,
    streams: u32,
}

impl ClientConnection {
    /// Starts a connection to `to`, from the address `from` if given, over its own UDP socket. `tls` is a
    /// [`QuicClient`](polygraph_tls::quic::QuicClient), except in tests.
    ///
    /// # Errors
    /// If a local resource is missing, or the system refuses at once.
    pub fn connect<L: Link>(
        link: &L,
        (from, to): (Option<IpAddr>, SocketAddr),
        tls: impl crypto::ClientConfig + 'static,
        settings: &Http2Settings,
    ) -> Result<ClientConnection, ConnectError> {
        let socket = link.connect_datagrams(from, to)?;
        let capture = socket.new_capture();
        let of_queue = link.clone();
        let queue = Rc::new(Queue::new(Box::new(move || of_queue.now())));
        let mut endpoint = Endpoint::new(Arc::clone(&config::ENDPOINT), None, socket.keeps_whole(), None);
        let mut client = ClientConfig::new(Arc::new(tls));
        // A server opens no bidirectional streams (RFC 9114, section 6.1).
        client.transport_config(config::transport(settings, 0, socket.largest()));
        let connected = endpoint.connect(instant(link.now()), client, to, "");
        let (handle, quic) = connected.map_err(|_| ConnectError::Refused(io::ErrorKind::InvalidInput))?;
        let wire = Wire::new(handle, quic, &queue, None);
        let mut driver = Driver::new(socket, endpoint, queue, None);
        driver.add(Rc::clone(&wire));
        link.spawn(driver.run(link.clone()));
        let session = Http3Session::new(wire, true, capture);
        link.spawn(watch(link.clone(), Rc::clone(&session)));
        Ok(ClientConnection { owner: Rc::new(Owner(session)), streams: settings.streams })
    }

    /// Completes when requests can be sent: after the handshake, or at once if the first of them may be sent before it is complete.
    ///
    /// # Errors
    /// `TimedOut` at `deadline`, a [`TlsFailure`](polygraph_tls::failure::TlsFailure) or a
    /// [`Fault`](polygraph_multiplex::Fault) in an `io::Error`, or what the system reports.
    pub async fn ready<L: Link>(&self, link: &L, deadline: Option<Nanos>) -> io::Result<()> {
        let connected = poll_fn(|cx| poll_connected(&self.session().wire, cx));
        match deadline {
            None => connected.await,
            Some(at) => {
                let ready = polygraph_link::run_until(link.sleep_until(at), connected).await;
                ready.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Why the connection ended, if it did.
    pub fn lost(&self) -> Option<Lost> {
        self.session().wire.state().lost.clone()
    }

    /// The error with which the connection ended, if it did.
    pub fn failure(&self) -> Option<io::Error> {
        self.lost().map(|lost| lost.error())
    }

    /// The facts of the handshake, once after it is complete.
    pub fn take_handshake(&self) -> Option<Handshake> {
        self.session().wire.state().handshake.take()
    }

    /// Opens a stream. It is announced to the server together with its request.
    pub fn open_stream(&self) -> Http3Stream {
        Http3Stream::of_client(&self.owner)
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.session().deadlines.streams()
    }

    /// Whether another stream may be opened: the client's own limit is not reached. If that of the server is, the stream waits.
    pub fn has_room(&self) -> bool {
        self.open_streams() < self.streams as usize
    }

    /// Whether requests can still be sent: the connection has not ended, and the server has not announced its end.
    pub fn is_usable(&self) -> bool {
        self.session().error().is_none() && !self.has_goaway()
    }

    /// Whether the server has announced the end of the connection.
    pub fn has_goaway(&self) -> bool {
        self.session().peer.get().goaway.is_some()
    }

    /// The bytes of UDP datagrams since the last call.
    pub fn take_bytes(&self) -> WireBytes {
        self.session().take_bytes()
    }

    /// What became of packets since the last call.
    pub fn take_path(&self) -> PathCounts {
        self.session().take_path()
    }

    pub(crate) fn session(&self) -> &Rc<Http3Session> {
        &self.owner.0
    }
}

/// Watches over the control streams and the deadlines of a connection until it ends.
async fn watch<L: Link>(link: L, session: Rc<Http3Session>) {
    let control = RefCell::new(Control::new());
    watched(&link, &session, |_| {
        control.borrow_mut().turn(&session);
        match session.wire.state().lost {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    })
    .await;
}

/// Calls `turn` whenever something has happened on the connection, and at the time that it sets, until it is ready. Watches the
/// deadlines of the streams meanwhile.
pub async fn watched<L: Link, R>(
    link: &L,
    session: &Http3Session,
    mut turn: impl FnMut(&mut Nanos) -> Poll<R>,
) -> R {
    let mut sleep = pin!(None);
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        loop {
            session.wire.set_session(cx);
            let mut until = Nanos::MAX;
            if let Poll::Ready(result) = turn(&mut until) {
                return Poll::Ready(result);
            }
            let next = session.deadlines.strike(link.now(), cx.waker()).min(until);
            if alarm.poll(sleep.as_mut(), next, |at| link.sleep_until(at), cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
