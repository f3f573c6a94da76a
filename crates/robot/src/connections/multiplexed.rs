//! HTTP/2 connections of robots. Transactions use their streams like connections with one request.

use std::cell::Cell;

use polygraph_link::Nanos;
use polygraph_multiplex::{ClientConnection, Stream, WireBytes};

use super::hop::Hop;
use super::layers::SetUp;

/// A connection on which a robot has several requests at the same time.
#[derive(Debug)]
pub struct MultiplexedConnection {
    connection: ClientConnection,
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
    /// Whether a SOCKS proxy has accepted the robot's name and password for it.
    pub socks_password: bool,
    /// Whether no further streams are opened, because the peer does not want them.
    retired: Cell<bool>,
}

impl MultiplexedConnection {
    /// A connection without streams.
    pub fn new(
        connection: ClientConnection,
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
            socks_password: false,
            retired: Cell::new(false),
        }
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
        !self.is_finished() && self.connection.has_room()
    }

    /// Whether no stream can be opened any more.
    pub fn is_finished(&self) -> bool {
        self.retired.get() || self.uses.get() >= self.use_limit || !self.connection.is_usable()
    }

    /// Whether it was left by the peer.
    pub fn was_left(&self) -> bool {
        !self.connection.is_usable()
    }

    /// Whether the peer has announced its end.
    pub fn has_goaway(&self) -> bool {
        self.connection.has_goaway()
    }

    /// Whether it has no streams.
    pub fn is_idle(&self) -> bool {
        self.connection.open_streams() == 0
    }

    /// Number of its streams.
    pub fn open_streams(&self) -> usize {
        self.connection.open_streams()
    }

    /// Opens no further streams.
    pub fn retire(&self) {
        self.retired.set(true);
    }

    /// Opens a stream.
    pub fn open_stream(&self) -> Stream {
        self.uses.set(self.uses.get() + 1);
        self.connection.open_stream()
    }

    /// The bytes on the wire since this was last asked.
    pub fn take_bytes(&self) -> WireBytes {
        self.connection.take_bytes()
    }
}
