//! A request stream of an HTTP/3 connection that looks like a connection on which one exchange takes place.
//!
//! * this file: the state of a stream, how it begins and ends, and [`Conn`].
//! * `reading`, `writing`: its two sides.
//! * `section`: field sections as frames.

mod reading;
mod section;
mod writing;

use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_multiplex::message::ReplyTo;
use polygraph_multiplex::message::incoming::{IncomingMessage, TargetForm};
use polygraph_multiplex::message::outgoing::OutgoingMessage;
use polygraph_multiplex::{Fault, FaultKind, WireBytes};
use polygraph_tls::handshake::Handshake;
use polygraph_wire::head::HeadIndex;
use quinn_proto::{Dir, StreamId, VarInt};

use crate::http3::codes;
use crate::http3::frames::FrameReader;
use crate::session::{Http3Session, MAX_FIELD_SECTION};

/// Ends a connection in order when the last of its owners is dropped.
#[derive(Debug)]
pub struct Owner(pub Rc<Http3Session>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.wire.close(codes::H3_NO_ERROR, "");
    }
}

/// What arrives next.
#[derive(Debug)]
enum Arrival {
    /// The head of a request, whose target gets this form.
    Request(TargetForm),
    /// The head of the reply to such a request.
    Reply(ReplyTo),
    /// Content of a message.
    Content(IncomingMessage),
    /// Nothing but the end of the stream.
    Trailers,
    /// Nothing more.
    End,
}

/// A stream. Dropping it before the exchange is complete resets it.
pub struct Http3Stream {
    session: Rc<Http3Session>,
    /// Keeps a client's connection open.
    _owner: Option<Rc<Owner>>,
    /// The stream's place among the deadlines.
    place: usize,
    /// The id; a client's stream gets it with its request.
    id: Option<StreamId>,
    epoch: u32,
    outgoing: OutgoingMessage,
    /// Bytes of frames that the connection has not taken yet.
    unsent: Bytes,
    /// Number of bytes that are in `unsent`, but not reported as sent: see [`Conn::try_send`].
    held: usize,
    /// Whether the end of the stream was sent.
    finished: bool,
    frames: FrameReader,
    /// Received bytes that were not taken apart yet.
    unread: Bytes,
    /// Whether something has arrived on the stream.
    answered: bool,
    /// Whether the peer has ended its side of the stream.
    ended: bool,
    arrival: Arrival,
    /// Bytes of the HTTP/1 message that were not received yet.
    inbox: Vec<u8>,
    /// The fields of the reply's head with which `inbox` begins.
    index: HeadIndex,
    capture: Option<Capture>,
}

impl fmt::Debug for Http3Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3Stream")
            .field("id", &self.id)
            .field("outgoing", &self.outgoing)
            .finish_non_exhaustive()
    }
}

fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

impl Drop for Http3Stream {
    fn drop(&mut self) {
        self.session.deadlines.remove(self.place);
        if !self.session.is_client && self.session.deadlines.streams() == 0 {
            self.session.idle_since.set(self.session.wire.now());
        }
        self.abandon(codes::H3_REQUEST_CANCELLED);
    }
}

impl Http3Stream {
    fn new(
        session: &Rc<Http3Session>,
        id: Option<StreamId>,
        outgoing: OutgoingMessage,
        arrival: Arrival,
    ) -> Http3Stream {
        Http3Stream {
            place: session.deadlines.add(),
            capture: session.capture.clone(),
            epoch: session.wire.state().epoch,
            session: Rc::clone(session),
            _owner: None,
            id,
            outgoing,
            unsent: Bytes::new(),
            held: 0,
            finished: false,
            frames: FrameReader::new(MAX_FIELD_SECTION),
            unread: Bytes::new(),
            answered: false,
            ended: false,
            arrival,
            inbox: Vec::new(),
            index: HeadIndex::NONE,
        }
    }

    /// A stream on which a client sends a request.
    pub(crate) fn of_client(owner: &Rc<Owner>) -> Http3Stream {
        let outgoing = OutgoingMessage::request("https");
        let mut stream = Http3Stream::new(&owner.0, None, outgoing, Arrival::Reply(ReplyTo::Other));
        stream._owner = Some(Rc::clone(owner));
        stream
    }

    /// A stream that a client has opened for a request.
    pub(crate) fn of_server(session: &Rc<Http3Session>, id: StreamId, form: TargetForm) -> Http3Stream {
        let outgoing = OutgoingMessage::reply(ReplyTo::Other);
        Http3Stream::new(session, Some(id), outgoing, Arrival::Request(form))
    }

    /// The facts of the connection's handshake, once after it is complete.
    pub fn take_handshake(&self) -> Option<Handshake> {
        self.session.wire.state().handshake.take()
    }

    /// The bytes of the whole connection since this was last asked, on any of its streams.
    pub fn take_bytes(&self) -> WireBytes {
        self.session.take_bytes()
    }

    /// Number of open streams of the connection, this one included.
    pub fn open_streams(&self) -> usize {
        self.session.deadlines.streams()
    }

    /// The id, if the stream still exists.
    ///
    /// # Errors
    /// If the connection has ended, or if the stream was lost with data that the server refused to take early. The request may then be
    /// sent again.
    fn live_id(&self) -> io::Result<Option<StreamId>> {
        if let Some(error) = self.session.error() {
            return Err(error);
        }
        if self.id.is_some() && self.epoch != self.session.wire.state().epoch {
            let text = "the server refused early data, with which the request was sent";
            return Err(Fault::new(FaultKind::Unprocessed, text).into());
        }
        Ok(self.id)
    }

    /// Opens a client's stream; `None` if the connection takes no stream now.
    fn open(&mut self) -> io::Result<Option<StreamId>> {
        if let Some(id) = self.live_id()? {
            self.check_processed()?;
            return Ok(Some(id));
        }
        if self.session.peer.get().goaway.is_some() {
            return Err(Fault::new(FaultKind::Unprocessed, "the server has announced the end").into());
        }
        let mut state = self.session.wire.state();
        self.id = state.quic.streams().open(Dir::Bi);
        self.epoch = state.epoch;
        if let Some(id) = self.id {
            state.wakers.begin(id);
        }
        Ok(self.id)
    }

    /// Gives the stream up if the server has announced that it does not process it (RFC 9114, section 5.2), and nothing of the reply
    /// has arrived.
    ///
    /// # Errors
    /// If the stream is given up. The request may then be sent again.
    fn check_processed(&mut self) -> io::Result<()> {
        let goaway = self.session.peer.get().goaway.filter(|_| self.session.is_client && !self.answered);
        let is_above = |id: StreamId| goaway.is_some_and(|first| u64::from(id) >= first);
        if !self.id.is_some_and(is_above) {
            return Ok(());
        }
        self.abandon(codes::H3_REQUEST_CANCELLED);
        Err(Fault::new(FaultKind::Unprocessed, "GOAWAY: the request was not processed").into())
    }

    /// Gives up what is not complete.
    fn abandon(&mut self, code: u64) {
        let Some(id) = self.id.filter(|_| self.session.wire.state().lost.is_none()) else { return };
        {
            let state = &mut *self.session.wire.state();
            if self.epoch != state.epoch {
                return;
            }
            state.wakers.forget(id);
            if !self.finished {
                self.finished = true;
                let _ = state.quic.send_stream(id).reset(varint(code));
            }
            if !self.ended {
                self.ended = true;
                let complete = match &self.arrival {
                    Arrival::End | Arrival::Trailers => true,
                    Arrival::Content(incoming) => incoming.is_complete(),
                    Arrival::Request(_) | Arrival::Reply(_) => false,
                };
                let mut receive = state.quic.recv_stream(id);
                // The end of a complete message may just not have been read.
                let is_over = match receive.read(true) {
                    Ok(mut chunks) => {
                        let next = chunks.next(0);
                        let _ = chunks.finalize();
                        complete && matches!(next, Ok(None))
                    }
                    Err(_) => true,
                };
                if !is_over {
                    let code = if complete { codes::H3_NO_ERROR } else { code };
                    let _ = state.quic.recv_stream(id).stop(varint(code));
                }
            }
        }
        self.session.wire.touch();
    }
}

impl Conn for Http3Stream {
    /// Bytes count as sent when the connection has taken their last frame completely: until then, the last of them is held back.
    /// Otherwise a caller that has sent everything could drop the stream before the rest has left.
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.open()?.is_none() || !self.flush()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut sent = std::mem::take(&mut self.held).min(all);
        while sent < all {
            let taken = self.take(parts, sent)?;
            sent += taken;
            if !self.flush()? {
                (self.held, sent) = (1, sent - 1);
                break;
            }
            if taken == 0 {
                break;
            }
        }
        self.finish_if_done();
        if sent == 0 && all > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(sent) }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.session.deadlines.check(self.place, cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        match self.open()? {
            None => {
                self.session.wire.state().wakers.when_available(cx);
                Poll::Pending
            }
            Some(_) if self.flush()? => Poll::Ready(Ok(())),
            Some(id) => {
                self.session.wire.state().wakers.when_writable(id, cx);
                Poll::Pending
            }
        }
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        self.poll_recv_head(cx, |data, _| take(data))
    }

    /// A stream has one exchange, so it is never idle.
    fn idle_state(&mut self) -> IdleState {
        IdleState::Quiet
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.session.deadlines.set(self.place, at);
    }

    fn finish(&mut self) {
        match self.outgoing.finish() {
            Ok(_) => self.finish_if_done(),
            Err(_) => self.reset(),
        }
    }

    fn reset(&mut self) {
        let code =
            if self.session.is_client { codes::H3_REQUEST_CANCELLED } else { codes::H3_INTERNAL_ERROR };
        self.abandon(code);
        self.arrival = Arrival::End;
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(Capture::take)
    }
}
