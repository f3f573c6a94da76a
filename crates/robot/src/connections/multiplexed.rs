//! HTTP/2 and HTTP/3 connections of robots. Transactions use their streams like connections with one request.

use std::cell::Cell;
use std::io;

use polygraph_link::{Conn, Nanos};
use polygraph_multiplex::{ClientConnection, WireBytes};
use polygraph_stats::AuthScheme;
use polygraph_tls::handshake::{Handshake, HandshakeFacts};
use polygraph_transport::Channel;
use polygraph_transport::http3::{self, Http3Client, PathCounts};

use super::hop::Hop;
use super::layers::SetUp;

/// A connection of either protocol.
#[derive(Debug)]
pub enum Protocol {
    /// A connection of HTTP/2.
    Http2(ClientConnection),
    /// A connection of HTTP/3.
    Http3(Http3Client),
}

/// Calls a method of the connection.
macro_rules! either {
    ($protocol:expr, $connection:ident => $call:expr) => {
        match &$protocol {
            Protocol::Http2($connection) => $call,
            Protocol::Http3($connection) => $call,
        }
    };
}

/// A connection on which a robot has several requests at the same time.
#[derive(Debug)]
pub struct MultiplexedConnection {
    connection: Protocol,
    /// The peer.
    pub hop: Hop,
    /// Its number among the connections of the loop, from 1.
    pub number: u64,
    /// Number of requests after which it is closed.
    pub use_limit: u32,
    /// When it was opened.
    pub opened: Nanos,
    uses: Cell<u32>,
    /// When its last stream ended.
    pub idle_since: Cell<Nanos>,
    /// Whether an exchange was complete, which shows that it is established.
    pub established: Cell<bool>,
    /// The time that its set-up took, until its first stream is charged with it.
    pub set_up: Cell<Option<SetUp>>,
    /// The scheme by which a proxy accepted the robot when it was set up.
    pub granted: Option<AuthScheme>,
    /// With TLS over TCP: where the facts of its handshake appear, if early data went ahead of its end.
    pub handshake: Option<HandshakeFacts>,
    /// Whether no further streams are opened, because the peer does not want them.
    retired: Cell<bool>,
}

impl MultiplexedConnection {
    /// A connection without streams.
    pub fn new(
        connection: Protocol,
        (hop, number): (Hop, u64),
        use_limit: u32,
        opened: Nanos,
    ) -> MultiplexedConnection {
        MultiplexedConnection {
            connection,
            hop,
            number,
            use_limit,
            opened,
            uses: Cell::new(0),
            idle_since: Cell::new(opened),
            established: Cell::new(false),
            set_up: Cell::new(None),
            granted: None,
            handshake: None,
            retired: Cell::new(false),
        }
    }

    /// The facts of its TLS handshake, once after it is complete.
    pub fn take_handshake(&self) -> Option<Handshake> {
        self.handshake.as_ref()?.take()
    }

    /// The time that its set-up took, once.
    pub fn take_set_up(&self) -> Option<SetUp> {
        self.set_up.take()
    }

    /// Number of streams that were opened so far.
    pub fn uses(&self) -> u32 {
        self.uses.get()
    }

    /// Whether another stream may be opened now.
    pub fn has_room(&self) -> bool {
        !self.is_finished() && either!(self.connection, connection => connection.has_room())
    }

    /// Whether no stream can be opened any more.
    pub fn is_finished(&self) -> bool {
        self.retired.get() || self.uses.get() >= self.use_limit || self.was_left()
    }

    /// Whether it was left by the peer.
    pub fn was_left(&self) -> bool {
        !either!(self.connection, connection => connection.is_usable())
    }

    /// Whether the peer has announced its end.
    pub fn has_goaway(&self) -> bool {
        either!(self.connection, connection => connection.has_goaway())
    }

    /// Whether it has no streams.
    pub fn is_idle(&self) -> bool {
        self.open_streams() == 0
    }

    /// Number of its streams.
    pub fn open_streams(&self) -> usize {
        either!(self.connection, connection => connection.open_streams())
    }

    /// Opens no further streams.
    pub fn retire(&self) {
        self.retired.set(true);
    }

    /// Opens a stream.
    pub fn open_stream<C: Conn>(&self) -> Channel<C> {
        self.uses.set(self.uses.get() + 1);
        match &self.connection {
            Protocol::Http2(connection) => Channel::Stream(Box::new(connection.open_stream())),
            Protocol::Http3(connection) => http3::open_stream(connection),
        }
    }

    /// The bytes on the wire since this was last asked.
    pub fn take_bytes(&self) -> WireBytes {
        either!(self.connection, connection => connection.take_bytes())
    }

    /// The error of the transport or of TLS with which it ended, if it did.
    pub fn failure(&self) -> Option<io::Error> {
        either!(self.connection, connection => connection.failure())
    }

    /// What became of QUIC packets since this was last asked.
    pub fn take_path(&self) -> PathCounts {
        match &self.connection {
            Protocol::Http2(_) => PathCounts::default(),
            Protocol::Http3(connection) => connection.take_path(),
        }
    }
}
