//! HTTP/3 on a QUIC connection: what its streams share, and its control streams.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use polygraph_link::{Capture, Nanos};
use polygraph_multiplex::deadlines::Deadlines;
use polygraph_multiplex::rapid_reset::{RAPID_RESET, RapidResets};
use polygraph_multiplex::{Fault, FaultKind, WireBytes};
use quinn_proto::{Dir, ReadError, StreamId, VarInt};

use crate::http3::control::{self, ControlStream, Fate, PeerControl};
use crate::http3::{Http3Error, codes};
use crate::wire::Wire;

/// The largest field section that is accepted, in bytes as RFC 9114, section 4.2.2, counts them.
pub const MAX_FIELD_SECTION: usize = 64 * 1024;

/// The most unidirectional streams that a peer opens in the life of a connection: more are a flood.
const MOST_UNIDIRECTIONAL: u32 = 1000;

/// What the streams of a connection share with the task that watches over it.
#[derive(Debug)]
pub struct Http3Session {
    /// The QUIC connection.
    pub wire: Rc<Wire>,
    /// Whether this side is the client.
    pub is_client: bool,
    /// The deadlines of the streams.
    pub deadlines: Deadlines,
    /// When the last stream of a server ended.
    pub idle_since: Cell<Nanos>,
    /// An empty capture for each stream, if the connection keeps captures.
    pub capture: Option<Capture>,
    /// What the peer has said.
    pub peer: Cell<PeerControl>,
    /// Memory for requests while they are put together.
    pub buffers: RefCell<Buffers>,
    /// Bytes of content that were sent and received.
    pub content: Cell<(u64, u64)>,
    /// Requests that are no HTTP message.
    pub malformed: Cell<u64>,
    rapid_resets: Cell<RapidResets>,
    /// What [`Http3Session::take_bytes`] and [`Http3Session::take_path`] have returned.
    taken: Cell<WireBytes>,
    path_taken: Cell<PathCounts>,
    /// Why this side ended the connection, if the peer broke the protocol.
    failure: RefCell<Option<Fault>>,
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub struct Buffers {
    /// For frames.
    pub frames: Vec<u8>,
    /// For the value of a field.
    pub value: Vec<u8>,
    /// For the head of a message that has arrived.
    pub head: Vec<u8>,
}

/// What became of the packets of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Packets that were sent.
    pub sent: u64,
    /// Those of them that count as lost.
    pub lost: u64,
}

impl Http3Session {
    /// HTTP/3 on this connection.
    pub fn new(wire: Rc<Wire>, is_client: bool, capture: Option<Capture>) -> Rc<Http3Session> {
        Rc::new(Http3Session {
            wire,
            is_client,
            deadlines: Deadlines::default(),
            idle_since: Cell::new(Nanos::new(0)),
            capture,
            peer: Cell::default(),
            buffers: RefCell::default(),
            content: Cell::default(),
            malformed: Cell::default(),
            rapid_resets: Cell::default(),
            taken: Cell::default(),
            path_taken: Cell::default(),
            failure: RefCell::default(),
        })
    }

    /// All bytes of the connection so far: those of UDP datagrams.
    pub fn bytes(&self) -> WireBytes {
        let stats = self.wire.state().quic.stats();
        let (sent_content, received_content) = self.content.get();
        WireBytes { sent: stats.udp_tx.bytes, received: stats.udp_rx.bytes, sent_content, received_content }
    }

    /// The bytes since the last call.
    pub fn take_bytes(&self) -> WireBytes {
        let all = self.bytes();
        all.since(self.taken.replace(all))
    }

    /// What became of packets since the last call.
    pub fn take_path(&self) -> PathCounts {
        let path = self.wire.state().quic.stats().path;
        let all = PathCounts { sent: path.sent_packets, lost: path.lost_packets };
        let before = self.path_taken.replace(all);
        PathCounts { sent: all.sent - before.sent, lost: all.lost - before.lost }
    }

    /// Ends the connection because the peer breaks HTTP/3.
    pub fn fail(&self, error: &Http3Error) {
        let kind = match error.code {
            codes::H3_EXCESSIVE_LOAD => FaultKind::Flood,
            _ => FaultKind::Protocol,
        };
        self.failure.borrow_mut().get_or_insert(Fault::new(kind, error.to_string()));
        self.wire.close(error.code, error.text);
    }

    /// Counts a request that the client gave up before it was read.
    pub fn note_unread(&self) {
        let mut resets = self.rapid_resets.get();
        if !resets.count(self.wire.now()) {
            self.fail(&Http3Error::new(codes::H3_EXCESSIVE_LOAD, RAPID_RESET));
        }
        self.rapid_resets.set(resets);
    }

    /// Whether this side ended the connection because the peer broke the protocol.
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// The error of a stream whose connection has ended; `None` if it has not.
    #[inline]
    pub fn error(&self) -> Option<io::Error> {
        self.wire.state().lost.as_ref().map(|lost| match &*self.failure.borrow() {
            Some(fault) => fault.clone().into(),
            None => lost.error(),
        })
    }
}

/// The control streams of a connection.
#[derive(Debug, Default)]
pub struct Control {
    /// That of this side.
    own: Option<StreamId>,
    /// Bytes that it did not take yet.
    unsent: Vec<u8>,
    /// Those of the peer.
    peers: Vec<(StreamId, ControlStream)>,
    /// How many the peer has opened.
    opened: u32,
    epoch: u32,
}

impl Control {
    /// The settings, which are sent when a stream can be opened.
    pub fn new() -> Control {
        Control { unsent: control::start(MAX_FIELD_SECTION as u64), ..Control::default() }
    }

    /// Announces the end of the connection: streams from `id` on are not processed.
    pub fn announce_end(&mut self, id: u64) {
        self.unsent.extend(control::goaway(id));
    }

    /// Sends and receives what is due. The connection must be watched before.
    pub fn turn(&mut self, session: &Http3Session) {
        if let Err(error) = self.exchange(session) {
            session.fail(&error);
        }
    }

    fn exchange(&mut self, session: &Http3Session) -> Result<(), Http3Error> {
        let state = &mut *session.wire.state();
        if state.quic.is_closed() {
            return Ok(());
        }
        if state.epoch != self.epoch {
            // The server has not seen what was sent before the handshake was complete.
            *self = Control { epoch: state.epoch, ..Control::new() };
        }
        if self.own.is_none() {
            self.own = state.quic.streams().open(Dir::Uni);
        }
        if !std::mem::take(&mut state.wakers.control) && self.own.is_some() && self.unsent.is_empty() {
            return Ok(());
        }
        let mut touched = false;
        if let (Some(own), false) = (self.own, self.unsent.is_empty())
            && let Ok(n) = state.quic.send_stream(own).write(&self.unsent)
        {
            self.unsent.drain(..n);
            touched = true;
        }
        while let Some(id) = state.quic.streams().accept(Dir::Uni) {
            self.opened += 1;
            if self.opened > MOST_UNIDIRECTIONAL {
                return Err(Http3Error::new(codes::H3_EXCESSIVE_LOAD, "too many unidirectional streams"));
            }
            self.peers.push((id, ControlStream::default()));
        }
        let mut peer = session.peer.get();
        let mut result = Ok(());
        self.peers.retain_mut(|(id, stream)| {
            match read(&mut state.quic, *id, stream, session.is_client, &mut peer) {
                Ok((goes_on, read_some)) => {
                    touched |= read_some;
                    goes_on
                }
                Err(error) => {
                    result = Err(error);
                    true
                }
            }
        });
        let before = session.peer.replace(peer);
        if session.is_client
            && peer.goaway != before.goaway
            && let Some(id) = peer.goaway
        {
            state.wakers.wake_from(id);
        }
        if touched {
            session.wire.touch();
        }
        result
    }
}

/// Reads a unidirectional stream of the peer. Returns whether it is read on, and whether something was read.
fn read(
    quic: &mut quinn_proto::Connection,
    id: StreamId,
    stream: &mut ControlStream,
    of_server: bool,
    peer: &mut PeerControl,
) -> Result<(bool, bool), Http3Error> {
    let mut receive = quic.recv_stream(id);
    let Ok(mut chunks) = receive.read(true) else { return Ok((false, false)) };
    let mut read_some = false;
    let goes_on = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                read_some = true;
                if stream.take(chunk.bytes, of_server, peer)? == Fate::Stops {
                    break false;
                }
            }
            Ok(None) | Err(ReadError::Reset(_)) => {
                stream.end()?;
                return Ok((false, true));
            }
            Err(ReadError::Blocked) => break true,
        }
    };
    let _ = chunks.finalize();
    if !goes_on {
        let code = VarInt::from_u64(codes::H3_STREAM_CREATION_ERROR).unwrap_or(VarInt::MAX);
        let _ = quic.recv_stream(id).stop(code);
    }
    Ok((goes_on, read_some))
}

/// Ready when the handshake is complete, or data may be sent before it is.
///
/// # Errors
/// If the connection has ended.
pub fn poll_connected(wire: &Wire, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    let state = wire.state();
    if let Some(lost) = &state.lost {
        return Poll::Ready(Err(lost.error()));
    }
    if state.connected || state.quic.side().is_client() && state.quic.has_0rtt() {
        return Poll::Ready(Ok(()));
    }
    drop(state);
    wire.when_connected(cx);
    Poll::Pending
}
