//! A request stream of an HTTP/3 connection that looks like a connection on which one exchange takes place.

use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_multiplex::message::heads::{ReplyHeadWriter, RequestHeadWriter};
use polygraph_multiplex::message::incoming::{IncomingMessage, Placed, TargetForm};
use polygraph_multiplex::message::outgoing::{FieldSection, OutgoingMessage, Start};
use polygraph_multiplex::message::request::{FieldName, FieldSink, RequestFields, RequestLine};
use polygraph_multiplex::message::{MessageError, ReplyTo};
use polygraph_multiplex::{Fault, FaultKind, WireBytes};
use polygraph_tls::handshake::Handshake;
use polygraph_wire::head::HeadIndex;
use quinn_proto::{Dir, ReadError, StreamId, VarInt, WriteError};

use crate::http3::frames::{FrameReader, Piece, kind, put_headers};
use crate::http3::qpack;
use crate::http3::{Http3Error, codes};
use crate::session::{Buffers, Http3Session, MAX_FIELD_SECTION};

/// The most content in one DATA frame, and the most that a call of [`Conn::try_send`] takes.
const MOST_CONTENT: usize = 64 * 1024;

/// The header of a DATA frame, whose last four bytes become the size.
const DATA_HEADER: [u8; 5] = [kind::DATA as u8, 0, 0, 0, 0];

/// Room for the headers of frames of a usual message, in bytes.
const USUAL_FRAMING: usize = 64;

/// Room for usual heads of messages, in bytes.
const USUAL_HEAD: usize = 1024;

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
        if self.session.deadlines.streams() == 0 {
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

    /// Sends bytes that wait. Returns whether all of them are sent.
    fn flush(&mut self) -> io::Result<bool> {
        let Some(id) = self.live_id()? else { return Ok(true) };
        let mut touched = false;
        let result = loop {
            if self.unsent.is_empty() {
                break Ok(true);
            }
            let mut chunks = [std::mem::take(&mut self.unsent)];
            let written = self.session.wire.state().quic.send_stream(id).write_chunks(&mut chunks);
            [self.unsent] = chunks;
            match written {
                Ok(_) => touched = true,
                Err(WriteError::Blocked) => break Ok(false),
                Err(WriteError::Stopped(code)) => break Err(stopped(code)),
                Err(WriteError::ClosedStream) => break Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        if touched {
            self.session.wire.touch();
        }
        result
    }

    /// Sends the end of the stream once everything before it is sent.
    fn finish_if_done(&mut self) {
        if self.outgoing.is_done()
            && self.unsent.is_empty()
            && !self.finished
            && let Ok(Some(id)) = self.live_id()
        {
            self.finished = true;
            // A stream that the peer has stopped needs no end.
            let _ = self.session.wire.state().quic.send_stream(id).finish();
            self.session.wire.touch();
        }
    }

    /// Sends a request without content. `fields` passes on its fields. Returns the size of its head in HTTP/1; `None` if it must be written in
    /// this form: the connection takes no request now, or captures are kept.
    ///
    /// # Errors
    /// As [`Conn::try_send`].
    pub fn send_request(
        &mut self,
        line: &RequestLine<'_>,
        fields: impl FnOnce(&mut RequestFields<'_>),
    ) -> io::Result<Option<usize>> {
        if self.capture.is_some() || self.id.is_some() {
            return Ok(None);
        }
        let Some(id) = self.open()? else { return Ok(None) };
        let Some(scheme) = self.outgoing.give_up_request() else { return Ok(None) };
        let session = Rc::clone(&self.session);
        let limit = session.peer.get().max_field_section.unwrap_or(u64::MAX);
        let mut buffers = session.buffers.take();
        buffers.frames.clear();
        let size = encode_request(line, (scheme, limit), &mut buffers, fields).map_err(Fault::from)?;
        self.arrival = Arrival::Reply(ReplyTo::method(line.method));
        let written = match session.wire.state().quic.send_stream(id).write(&buffers.frames) {
            Ok(written) => written,
            Err(WriteError::Blocked) => 0,
            Err(WriteError::Stopped(code)) => return Err(stopped(code)),
            Err(WriteError::ClosedStream) => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        // The rest follows while the reply is awaited.
        self.unsent = Bytes::copy_from_slice(&buffers.frames[written..]);
        session.buffers.replace(buffers);
        session.wire.touch();
        self.finish_if_done();
        Ok(Some(size))
    }

    /// As [`Conn::poll_recv`]. `take` also gets an index of the head with which the bytes begin, which is complete if they do.
    ///
    /// # Errors
    /// As [`Conn::poll_recv`].
    pub fn poll_recv_head<R>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8], Option<&HeadIndex>) -> R,
    ) -> Poll<io::Result<R>> {
        if self.session.deadlines.check(self.place, cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        // The rest of a head must leave, although nobody waits to send.
        if !self.unsent.is_empty() {
            match (self.flush(), self.id) {
                (Ok(true), _) => self.finish_if_done(),
                (Ok(false), Some(id)) => self.session.wire.state().wakers.when_writable(id, cx),
                // What is received tells why.
                (Ok(false), None) | (Err(_), _) => {}
            }
        }
        let content = ready!(self.poll_arrival(cx))?;
        let (data, index) = match self.inbox.is_empty() {
            true => (&content[..], None),
            false => (&self.inbox[..], Some(&self.index)),
        };
        if let Some(capture) = &mut self.capture {
            capture.receive(data);
        }
        let taken = take(data, index);
        self.inbox.clear();
        self.index.clear();
        Poll::Ready(Ok(taken))
    }

    /// Takes bytes of a head. Returns the number of bytes.
    fn take_head(&mut self, data: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let limit = self.session.peer.get().max_field_section.unwrap_or(u64::MAX);
        let (used, section) =
            self.outgoing.take_head(data, |section| encode(section, limit, out)).map_err(Fault::from)?;
        if let Some(section) = section {
            let to = section.map_err(Fault::from)?;
            if let (Some(to), Arrival::Reply(answers)) = (to, &mut self.arrival) {
                *answers = to;
            }
        }
        Ok(used)
    }

    /// Takes parts of an HTTP/1 message without their first `skip` bytes, and makes frames of them. Returns the number of bytes.
    fn take(&mut self, parts: &[IoSlice<'_>], mut skip: usize) -> io::Result<usize> {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let (mut taken, mut out) = (0, Vec::with_capacity(all.min(MOST_CONTENT) + USUAL_FRAMING));
        // Where the content begins; its size is known at the end.
        let (mut begin, mut content) = (None, 0);
        'parts: for part in parts {
            let skipped = skip.min(part.len());
            skip -= skipped;
            let mut rest = &part[skipped..];
            while !rest.is_empty() {
                let used = if self.outgoing.expects_head() {
                    self.take_head(rest, &mut out)?
                } else {
                    let fits = rest.len().min(MOST_CONTENT - content);
                    if fits == 0 && !self.outgoing.is_done() {
                        break 'parts;
                    }
                    let begin = *begin.get_or_insert_with(|| {
                        out.extend_from_slice(&DATA_HEADER);
                        out.len()
                    });
                    let used = self
                        .outgoing
                        .take_content(&rest[..fits.max(1)], |bytes| out.extend_from_slice(bytes))
                        .map_err(Fault::from)?;
                    content = out.len() - begin;
                    used
                };
                if used == 0 {
                    break 'parts;
                }
                if let Some(capture) = &mut self.capture {
                    capture.send(&rest[..used]);
                }
                (taken, rest) = (taken + used, &rest[used..]);
            }
        }
        if let Some(begin) = begin {
            if content == 0 {
                out.truncate(begin - DATA_HEADER.len());
            } else {
                // A variable-length integer of four bytes (RFC 9000, section 16).
                out[begin - 4..begin].copy_from_slice(&(content as u32 | 2 << 30).to_be_bytes());
                let (sent, received) = self.session.content.get();
                self.session.content.set((sent + content as u64, received));
            }
        }
        if self.outgoing.is_done() && self.outgoing.has_trailers() && !self.finished {
            let passed = put_headers(&mut out, |out| {
                self.outgoing.trailers(|name, value| qpack::put_field(name, value, out))
            });
            passed.map_err(Fault::from)?;
        }
        self.unsent = out.into();
        Ok(taken)
    }

    /// Receives the next bytes of the stream. Returns false at its end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(id) = self.live_id()? else { return Poll::Pending };
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(true));
        }
        if self.ended {
            self.check_processed()?;
            return Poll::Ready(Ok(false));
        }
        let mut state = self.session.wire.state();
        let mut receive = state.quic.recv_stream(id);
        let Ok(mut chunks) = receive.read(true) else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        let next = chunks.next(usize::MAX);
        let must_tell = chunks.finalize().should_transmit();
        match next {
            Ok(Some(chunk)) => (self.unread, self.answered) = (chunk.bytes, true),
            Ok(None) => self.ended = true,
            Err(ReadError::Reset(code)) => {
                self.ended = true;
                drop(state);
                if matches!(self.arrival, Arrival::Request(_)) {
                    self.session.note_unread();
                }
                if code.into_inner() != codes::H3_REQUEST_REJECTED {
                    self.check_processed()?;
                }
                return Poll::Ready(Err(reset(code)));
            }
            Err(ReadError::Blocked) => {
                state.wakers.when_readable(id, cx);
                drop(state);
                self.check_processed()?;
                return Poll::Pending;
            }
        }
        drop(state);
        if must_tell {
            self.session.wire.touch();
        }
        Poll::Ready(Ok(!self.ended))
    }

    /// Fills the inbox, or returns content that is part of the HTTP/1 message as it is. Neither means that the message is complete.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        while self.inbox.is_empty() {
            if matches!(self.arrival, Arrival::End) {
                break;
            }
            let more = ready!(self.poll_fill(cx))?;
            if !more {
                self.take_end()?;
                continue;
            }
            let mut unread = std::mem::take(&mut self.unread);
            let piece = self.frames.next(&mut unread);
            self.unread = unread;
            match piece.map_err(|error| self.broken(&error))? {
                None => {}
                Some(Piece::Content(content)) => {
                    let (sent, received) = self.session.content.get();
                    self.session.content.set((sent, received + content.len() as u64));
                    let Arrival::Content(incoming) = &mut self.arrival else {
                        return Poll::Ready(Err(self.unexpected("content where none may come")));
                    };
                    match incoming.content(&content, &mut self.inbox) {
                        Ok(Placed::AsIs) => return Poll::Ready(Ok(content)),
                        Ok(Placed::Framed) => {}
                        Err(error) => return Poll::Ready(Err(self.malformed(error))),
                    }
                }
                Some(Piece::Whole(kind::HEADERS, section)) => self.take_section(&section, cx)?,
                Some(Piece::Whole(..)) => {
                    return Poll::Ready(Err(self.unexpected("a control frame on the stream of a request")));
                }
            }
        }
        Poll::Ready(Ok(Bytes::new()))
    }

    /// The peer has ended its side of the stream.
    fn take_end(&mut self) -> io::Result<()> {
        if !self.frames.is_between_frames() {
            return Err(self.broken(&Http3Error::new(codes::H3_FRAME_ERROR, "a frame ends early")));
        }
        match std::mem::replace(&mut self.arrival, Arrival::End) {
            Arrival::Content(mut incoming) => {
                incoming.end(std::iter::empty(), &mut self.inbox).map_err(|error| self.malformed(error))
            }
            Arrival::Request(_) | Arrival::Reply(_) => {
                self.abandon(codes::H3_REQUEST_INCOMPLETE);
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Arrival::Trailers | Arrival::End => Ok(()),
        }
    }

    /// Whether nothing follows what was read last, as far as that is known.
    fn is_at_end(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        Ok(self.frames.is_between_frames() && matches!(self.poll_fill(cx)?, Poll::Ready(false)))
    }

    /// A field section has arrived.
    fn take_section(&mut self, section: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        let is_last = self.is_at_end(cx)?;
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.reserve(USUAL_HEAD);
        let placed = self.place(section, is_last, &mut inbox);
        self.inbox = inbox;
        placed.map_err(|error| self.broken(&error))?.map_err(|error| self.malformed(error))
    }

    /// Appends a field section to the HTTP/1 message in `out`. It may be no part of a message, or it cannot even be decoded.
    fn place(
        &mut self,
        section: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), MessageError>, Http3Error> {
        let (limit, mut memory) = (MAX_FIELD_SECTION, Vec::new());
        let next = match std::mem::replace(&mut self.arrival, Arrival::End) {
            Arrival::Request(form) => {
                let mut head = RequestHeadWriter::new(form, &mut memory);
                qpack::read(section, limit, |name, value| head.field(name, value, out))?;
                head.end(is_last, out).map(|(incoming, to)| {
                    self.outgoing = OutgoingMessage::reply(to);
                    Some(incoming)
                })
            }
            Arrival::Reply(to) => {
                let mut head = ReplyHeadWriter::new(to, Some(&mut self.index));
                qpack::read(section, limit, |name, value| head.field(name, value, out))?;
                head.end(is_last, out).inspect(|incoming| {
                    if incoming.is_none() {
                        self.arrival = Arrival::Reply(to);
                    }
                })
            }
            Arrival::Content(mut incoming) => {
                let fields = qpack::decode(section, limit)?;
                self.arrival = Arrival::Trailers;
                return Ok(incoming.end(fields.iter(), out));
            }
            Arrival::Trailers | Arrival::End => {
                qpack::decode(section, limit)?;
                return Ok(Err(MessageError::Excess));
            }
        };
        Ok(next.map(|incoming| {
            if let Some(incoming) = incoming.filter(|_| !is_last) {
                self.arrival = Arrival::Content(incoming);
            }
        }))
    }

    /// The peer breaks the protocol, which ends the connection.
    fn broken(&mut self, error: &Http3Error) -> io::Error {
        self.arrival = Arrival::End;
        self.session.fail(error);
        self.session.error().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into())
    }

    fn unexpected(&mut self, text: &'static str) -> io::Error {
        self.broken(&Http3Error::new(codes::H3_FRAME_UNEXPECTED, text))
    }

    /// The peer has sent what is no HTTP message, which ends the stream (RFC 9114, section 4.1.2).
    fn malformed(&mut self, error: MessageError) -> io::Error {
        self.arrival = Arrival::End;
        if !self.session.is_client {
            self.session.malformed.set(self.session.malformed.get() + 1);
        }
        self.abandon(codes::H3_MESSAGE_ERROR);
        Fault::new(FaultKind::Protocol, format!("malformed message: {error}")).into()
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

/// A field section that is being put together.
struct Section<'a> {
    out: &'a mut Vec<u8>,
    /// The size as RFC 9114, section 4.2.2, counts it.
    size: usize,
}

impl Section<'_> {
    #[inline]
    fn add(&mut self, name: &str, value: &[u8]) {
        self.size += name.len() + value.len() + qpack::OVERHEAD;
        qpack::put_field(name, value, self.out);
    }

    /// Checks that the peer accepts so large a section.
    fn check(&self, limit: u64) -> Result<(), MessageError> {
        if self.size as u64 > limit { Err(MessageError::HeadTooLarge) } else { Ok(()) }
    }
}

impl FieldSink for Section<'_> {
    fn put(&mut self, name: &FieldName, value: &[u8]) {
        self.add(name.text, value);
    }
}

/// Appends a HEADERS frame with the field section. Returns, for a request, what its reply depends on.
fn encode(
    section: &FieldSection<'_>,
    limit: u64,
    out: &mut Vec<u8>,
) -> Result<Option<ReplyTo>, MessageError> {
    put_headers(out, |out| {
        let mut fields = Section { out, size: 0 };
        let to = match &section.start {
            Start::Request { method, scheme, authority, path } => {
                fields.add(":method", method.as_bytes());
                let pseudo = [(":scheme", *scheme), (":authority", *authority), (":path", path.as_deref())];
                for (name, value) in pseudo {
                    if let Some(value) = value {
                        fields.add(name, value.as_bytes());
                    }
                }
                Some(ReplyTo::method(method))
            }
            Start::Reply { status } => {
                let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
                fields.add(":status", &digits);
                None
            }
        };
        section.fields().for_each(|(name, value)| fields.add(name, value));
        fields.check(limit)?;
        Ok(to)
    })
}

/// Appends a HEADERS frame with a request whose fields `pass` passes on. Returns the size of its head in HTTP/1.
fn encode_request(
    line: &RequestLine<'_>,
    (scheme, limit): (&str, u64),
    Buffers { frames, value }: &mut Buffers,
    pass: impl FnOnce(&mut RequestFields<'_>),
) -> Result<usize, MessageError> {
    put_headers(frames, |out| {
        let mut section = Section { out, size: 0 };
        section.add(":method", line.method.as_bytes());
        section.add(":scheme", scheme.as_bytes());
        section.add(":authority", line.authority.as_bytes());
        section.add(":path", line.path);
        let mut fields = RequestFields::new(line, &mut section, value);
        pass(&mut fields);
        let size = fields.end()?;
        section.check(limit)?;
        Ok(size)
    })
}

fn reset(code: VarInt) -> io::Error {
    let code = code.into_inner();
    let kind = if code == codes::H3_REQUEST_REJECTED { FaultKind::Refused } else { FaultKind::Reset };
    Fault::new(kind, format!("RESET_STREAM {}", codes::name(code))).into()
}

fn stopped(code: VarInt) -> io::Error {
    let code = code.into_inner();
    let kind = if code == codes::H3_REQUEST_REJECTED { FaultKind::Refused } else { FaultKind::Reset };
    Fault::new(kind, format!("STOP_SENDING {}", codes::name(code))).into()
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

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
