//! The receiving side of a stream: frames become parts of an HTTP/1 message.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use polygraph_multiplex::message::MessageError;
use polygraph_multiplex::message::heads::{ReplyHeadWriter, RequestHeadWriter};
use polygraph_multiplex::message::incoming::Placed;
use polygraph_multiplex::message::outgoing::OutgoingMessage;
use polygraph_multiplex::{Fault, FaultKind};
use polygraph_wire::head::HeadIndex;
use quinn_proto::{ReadError, VarInt};

use super::{Arrival, Http3Stream};
use crate::http3::frames::{Piece, kind};
use crate::http3::qpack;
use crate::http3::{Http3Error, codes};
use crate::session::MAX_FIELD_SECTION;

/// Room for usual heads of messages, in bytes.
const USUAL_HEAD: usize = 1024;
/// The most memory of a head that is kept for the next one, in bytes.
const MOST_KEPT: usize = 4 * USUAL_HEAD;

impl Http3Stream {
    /// As [`Conn::poll_recv`](polygraph_link::Conn::poll_recv). `take` also gets an index of the head with which the
    /// bytes begin, if that head is complete.
    ///
    /// # Errors
    /// As [`Conn::poll_recv`](polygraph_link::Conn::poll_recv).
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
        self.clear_inbox();
        Poll::Ready(Ok(taken))
    }

    /// The bytes in the inbox are used. Another stream may use their memory.
    fn clear_inbox(&mut self) {
        self.index.clear();
        self.inbox.clear();
        if (1..=MOST_KEPT).contains(&self.inbox.capacity()) {
            self.session.buffers.borrow_mut().head = std::mem::take(&mut self.inbox);
        }
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
        let (mut next, mut must_tell) = (Err(ReadError::Blocked), false);
        if !state.wakers.is_quiet(id) {
            let mut receive = state.quic.recv_stream(id);
            let Ok(mut chunks) = receive.read(true) else {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            };
            next = chunks.next(usize::MAX);
            must_tell = chunks.finalize().should_transmit();
        }
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
        let mut inbox = std::mem::take(&mut self.session.buffers.borrow_mut().head);
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
}

fn reset(code: VarInt) -> io::Error {
    let code = code.into_inner();
    let kind = if code == codes::H3_REQUEST_REJECTED { FaultKind::Refused } else { FaultKind::Reset };
    Fault::new(kind, format!("RESET_STREAM {}", codes::name(code))).into()
}
