//! The client's side of an HTTP/2 connection.

use std::fmt;
use std::io;
use std::rc::Rc;

use polygraph_link::{Conn, Link};

use crate::driver::drive;
use crate::fault::FaultKind;
use crate::http2::connection::{End, Side};
use crate::session::Http2Session;
use crate::settings::Http2Settings;
use crate::stream::Stream;
use crate::traffic::WireBytes;

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// In order, by either side.
    Closed,
    /// With an error: its fault, if the protocol caused it, and a description.
    Failed(Option<FaultKind>, String),
}

/// A connection to a server, on which streams can be opened. When it and its streams are dropped, the connection is closed in
/// order.
pub struct ClientConnection {
    session: Rc<Http2Session>,
    scheme: &'static str,
    streams: u32,
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConnection").field("streams", &self.open_streams()).finish_non_exhaustive()
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.session.is_kept.set(false);
        self.session.wake_driver();
    }
}

impl ClientConnection {
    /// Starts HTTP/2 on a connection, which need not be established yet. The server must know that the client does so: by ALPN, or
    /// by prior knowledge (RFC 9113, section 3). `scheme` is `http` or `https`.
    pub fn start<L: Link, C: Conn>(
        link: &L,
        conn: C,
        scheme: &'static str,
        settings: &Http2Settings,
    ) -> ClientConnection {
        let session = Rc::new(Http2Session::new(conn, Side::Client, settings));
        link.spawn(drive_client(link.clone(), Rc::clone(&session)));
        ClientConnection { session, scheme, streams: settings.streams }
    }

    /// Opens a stream. It is announced to the server together with its request.
    pub fn open_stream(&self) -> Stream {
        Stream::of_client(&self.session, self.scheme)
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.session.deadlines.streams()
    }

    /// Whether another stream may be opened: neither the client's own limit nor that of the server is reached.
    pub fn has_room(&self) -> bool {
        let theirs = self.session.connection.borrow().peer_streams();
        self.open_streams() < theirs.min(self.streams) as usize
    }

    /// Whether requests can still be sent: the connection has not ended, and the server has not announced its end.
    pub fn is_usable(&self) -> bool {
        self.session.connection.borrow().is_usable()
    }

    /// How the connection ended, if it did.
    pub fn end(&self) -> Option<ClientEnd> {
        Some(match self.session.connection.borrow().end()? {
            End::Closed => ClientEnd::Closed,
            End::Fault(fault) => ClientEnd::Failed(Some(fault.kind), fault.to_string()),
            End::Io(failure) => ClientEnd::Failed(None, failure.to_string()),
        })
    }

    /// The error of the connection below with which it ended, if it did.
    pub fn failure(&self) -> Option<io::Error> {
        match self.session.connection.borrow().end()? {
            End::Io(failure) => Some(failure.clone().into()),
            End::Closed | End::Fault(_) => None,
        }
    }

    /// Whether the server has announced the end of the connection.
    pub fn has_goaway(&self) -> bool {
        self.session.connection.borrow().has_goaway()
    }

    /// The bytes on the wire since the last call.
    pub fn take_bytes(&self) -> WireBytes {
        self.session.connection.borrow_mut().take_bytes()
    }
}

async fn drive_client<L: Link>(link: L, session: Rc<Http2Session>) {
    drive(&link, &session, |_| {
        if !session.is_kept.get() && session.deadlines.streams() == 0 {
            session.connection.borrow_mut().close_in_order();
        }
    })
    .await;
}
