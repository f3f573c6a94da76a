//! The client's side of an HTTP/2 connection.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection};
use polygraph_link::{Conn, Link};

use crate::driver::drive;
use crate::fault::{self, Fault, FaultKind};
use crate::settings::{Http2Settings, MAX_FIELD_SECTION};
use crate::stream::{Sender, Shared, Stream};
use crate::transport::{Transport, WireBytes};

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// In order, by either side.
    Closed,
    /// With an error: its fault, if the protocol caused it, and a description.
    Failed(Option<FaultKind>, String),
}

/// State of a connection outside of `h2`.
#[derive(Default)]
struct Progress {
    end: RefCell<Option<ClientEnd>>,
}

/// A connection to a server, on which streams can be opened. When it and its streams are dropped, the connection is closed in
/// order.
pub struct ClientConnection {
    sender: Sender,
    shared: Rc<Shared>,
    progress: Rc<Progress>,
    scheme: &'static str,
    streams: u32,
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConnection").field("streams", &self.open_streams()).finish_non_exhaustive()
    }
}

impl ClientConnection {
    /// Starts HTTP/2 on a connection, which need not be established yet. The server must know that the client does so: by ALPN, or
    /// by prior knowledge (RFC 9113, section 3). `scheme` is `http` or `https`.
    pub fn start<L: Link, C: Conn>(
        link: &L,
        mut conn: C,
        scheme: &'static str,
        settings: &Http2Settings,
    ) -> ClientConnection {
        let mut shared = Shared { capture: conn.take_capture(), ..Shared::default() };
        if let Some(capture) = &mut shared.capture {
            capture.take();
        }
        let (shared, progress) = (Rc::new(shared), Rc::new(Progress::default()));
        let transport = Transport::new(conn, &[], Rc::clone(&shared.meter));
        let mut builder = Builder::new();
        builder
            .initial_window_size(settings.window)
            .initial_connection_window_size(settings.window)
            .max_header_list_size(MAX_FIELD_SECTION)
            .enable_push(false);
        let handshake = pin!(builder.handshake::<_, Bytes>(transport.clone()));
        // The transport takes the preface at once, so nothing waits for the server.
        let Poll::Ready(Ok((sender, connection))) = handshake.poll(&mut Context::from_waker(Waker::noop()))
        else {
            unreachable!("the first bytes of a connection fit the buffer of its transport");
        };
        link.spawn(drive_client(
            link.clone(),
            transport,
            connection,
            Rc::clone(&shared),
            Rc::clone(&progress),
        ));
        ClientConnection {
            sender: Rc::new(RefCell::new(sender)),
            shared,
            progress,
            scheme,
            streams: settings.streams,
        }
    }

    /// Opens a stream. It is announced to the server together with its request.
    pub fn open_stream(&self) -> Stream {
        Stream::of_client(&self.shared, &self.sender, self.scheme)
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.shared.deadlines.streams()
    }

    /// Whether another stream may be opened: neither the client's own limit nor that of the server is reached.
    pub fn has_room(&self) -> bool {
        let theirs = self.sender.borrow().current_max_send_streams();
        self.open_streams() < theirs.min(self.streams as usize)
    }

    /// Whether requests can still be sent: the connection has not ended, and the server has not announced its end.
    pub fn is_usable(&self) -> bool {
        let ready = self.sender.borrow_mut().poll_ready(&mut Context::from_waker(Waker::noop()));
        self.progress.end.borrow().is_none() && !matches!(ready, Poll::Ready(Err(_)))
    }

    /// How the connection ended, if it did.
    pub fn end(&self) -> Option<ClientEnd> {
        self.progress.end.borrow().clone()
    }

    /// Whether the server has announced the end of the connection.
    pub fn has_goaway(&self) -> bool {
        let ready = self.sender.borrow_mut().poll_ready(&mut Context::from_waker(Waker::noop()));
        matches!(ready, Poll::Ready(Err(e)) if e.is_go_away() && e.is_remote())
    }

    /// The bytes on the wire since the last call.
    pub fn take_bytes(&self) -> WireBytes {
        self.shared.meter.take()
    }
}

async fn drive_client<L: Link, C: Conn>(
    link: L,
    transport: Transport<C>,
    mut connection: Connection<Transport<C>>,
    shared: Rc<Shared>,
    progress: Rc<Progress>,
) {
    let ended = drive(&link, &transport, &shared, |cx, _| Pin::new(&mut connection).poll(cx)).await;
    let failure = match ended {
        Ok(Ok(())) => None,
        Ok(Err(e)) => fault::of_connection(e),
        Err(e) => Some(e),
    };
    *progress.end.borrow_mut() = Some(match &failure {
        None => ClientEnd::Closed,
        Some(e) => ClientEnd::Failed(Fault::of(e).map(|fault| fault.kind), e.to_string()),
    });
    *shared.failure.borrow_mut() = failure.map(|e| (e.kind(), e.to_string()));
    // Streams that still wait learn of the end now, when its reason is known.
    drop(connection);
}
