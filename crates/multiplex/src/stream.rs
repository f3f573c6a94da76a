//! A stream of an HTTP/2 connection that looks like a connection on which one exchange takes place.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::Method;
use http::request::Parts;
use polygraph_link::{Capture, Conn, IdleState, Nanos};

use crate::convert;
use crate::deadlines::Deadlines;
use crate::fault::{self, Fault, FaultKind};
use crate::message::incoming::{IncomingMessage, Placed, TargetForm};
use crate::message::outgoing::OutgoingMessage;
use crate::message::{MessageError, ReplyTo};
use crate::transport::{Meter, WireBytes};

/// What the streams of a connection share with the task that drives it.
#[derive(Debug, Default)]
pub struct Shared {
    /// The deadlines of the streams.
    pub deadlines: Deadlines,
    /// An empty capture for each stream, if the connection keeps captures.
    pub capture: Option<Capture>,
    /// Counts the bytes of the connection.
    pub meter: Rc<Meter>,
    /// Why the connection ended, if it ended with an error.
    pub failure: RefCell<Option<(io::ErrorKind, String)>>,
    /// Messages that were read completely before the end of their streams arrived. Dropping such a stream would reset it.
    pub ending: RefCell<Vec<RecvStream>>,
}

/// Room for usual heads of messages, in bytes.
const USUAL_HEAD: usize = 1024;

/// Opens the streams of a client's connection.
pub type Sender = Rc<RefCell<SendRequest<Bytes>>>;

/// What a stream does to send a head.
enum Opener {
    /// A client's stream before its request.
    Request(Sender),
    /// A client's stream after its request.
    Requested,
    /// A server's stream.
    Reply(SendResponse<Bytes>),
}

/// What arrives next.
enum Arrival {
    /// A client's stream before its request.
    Nothing,
    /// The head of a reply. If the request expects it, an interim reply may come first.
    Head { response: ResponseFuture, to: ReplyTo, expects_interim: bool },
    /// Content of a message.
    Content(RecvStream, IncomingMessage),
    /// Nothing more.
    End,
}

/// A stream. Dropping it before the exchange is complete resets it.
pub struct Stream {
    shared: Rc<Shared>,
    /// The stream's place among the deadlines.
    place: usize,
    opener: Opener,
    outgoing: OutgoingMessage,
    send: Option<SendStream<Bytes>>,
    arrival: Arrival,
    /// Bytes of the HTTP/1 message that were not received yet.
    inbox: Vec<u8>,
    capture: Option<Capture>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("outgoing", &self.outgoing).finish_non_exhaustive()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.deadlines.remove(self.place);
        if let Arrival::Content(body, incoming) = std::mem::replace(&mut self.arrival, Arrival::End)
            && incoming.is_complete()
            && !body.is_end_stream()
        {
            self.shared.ending.borrow_mut().push(body);
        }
    }
}

impl Stream {
    fn new(shared: &Rc<Shared>, opener: Opener, outgoing: OutgoingMessage) -> Stream {
        Stream {
            place: shared.deadlines.add(),
            capture: shared.capture.clone(),
            shared: Rc::clone(shared),
            opener,
            outgoing,
            send: None,
            arrival: Arrival::Nothing,
            inbox: Vec::new(),
        }
    }

    /// A stream on which a client sends a request with this scheme.
    pub fn of_client(shared: &Rc<Shared>, sender: &Sender, scheme: &'static str) -> Stream {
        Stream::new(shared, Opener::Request(Rc::clone(sender)), OutgoingMessage::request(scheme))
    }

    /// A stream on which a server has received a request.
    ///
    /// # Errors
    /// If the request has no HTTP/1 form; the stream is then reset.
    pub fn of_server(
        shared: &Rc<Shared>,
        (head, body): (Parts, RecvStream),
        mut respond: SendResponse<Bytes>,
        form: TargetForm,
    ) -> Result<Stream, MessageError> {
        let mut inbox = Vec::with_capacity(USUAL_HEAD);
        let fields = convert::received(&head.headers);
        let incoming =
            IncomingMessage::request(&convert::start(&head), fields, body.is_end_stream(), form, &mut inbox);
        let incoming = incoming.inspect_err(|_| respond.send_reset(Reason::PROTOCOL_ERROR))?;
        let is_last = body.is_end_stream();
        let outgoing = OutgoingMessage::reply(reply_to(&head.method));
        let arrival = if is_last { Arrival::End } else { Arrival::Content(body, incoming) };
        let mut stream = Stream::new(shared, Opener::Reply(respond), outgoing);
        (stream.arrival, stream.inbox) = (arrival, inbox);
        Ok(stream)
    }

    /// The bytes of the whole connection since this was last asked, on any of its streams.
    pub fn take_bytes(&self) -> WireBytes {
        self.shared.meter.take()
    }

    /// Number of open streams of the connection, this one included.
    pub fn open_streams(&self) -> usize {
        self.shared.deadlines.streams()
    }

    /// Takes bytes of a head, and sends the head once it is complete. Returns the number of bytes; 0 if the connection takes no
    /// request now.
    fn send_head(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.opener {
            Opener::Requested => Err(Fault::from(MessageError::Excess).into()),
            Opener::Request(sender) => {
                let mut cx = Context::from_waker(Waker::noop());
                match sender.borrow_mut().poll_ready(&mut cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(e)) => return Err(self.shared.explain(fault::of_h2(e))),
                    Poll::Pending => return Ok(0),
                }
                let (used, section) = self
                    .outgoing
                    .take_head(data, |section| {
                        convert::request(section).map(|request| (request, section.is_last))
                    })
                    .map_err(Fault::from)?;
                let Some(section) = section else { return Ok(used) };
                let (request, is_last) = section.map_err(Fault::from)?;
                let to = reply_to(request.method());
                let expects_interim = request.headers().contains_key(http::header::EXPECT);
                let opened = sender.borrow_mut().send_request(request, is_last);
                let (response, send) = opened.map_err(|e| self.shared.explain(fault::of_h2(e)))?;
                self.arrival = Arrival::Head { response, to, expects_interim };
                self.send = (!is_last).then_some(send);
                self.opener = Opener::Requested;
                Ok(used)
            }
            Opener::Reply(respond) => {
                let (used, section) = self
                    .outgoing
                    .take_head(data, |section| convert::reply(section).map(|reply| (reply, section.is_last)))
                    .map_err(Fault::from)?;
                let Some(section) = section else { return Ok(used) };
                let (reply, is_last) = section.map_err(Fault::from)?;
                let sent = if reply.status().is_informational() {
                    respond.send_informational(reply)
                } else {
                    respond.send_response(reply, is_last).map(|send| self.send = (!is_last).then_some(send))
                };
                match sent {
                    Ok(()) => Ok(used),
                    Err(e) => Err(closed(|cx| respond.poll_reset(cx), e)),
                }
            }
        }
    }

    /// How many of `wanted` bytes of content the windows of the stream and its connection allow now.
    fn room(&mut self, wanted: usize) -> usize {
        let Some(send) = &mut self.send else { return wanted };
        send.reserve_capacity(wanted);
        send.capacity()
    }

    /// Sends content, and the end of the message if it is complete.
    fn send_content(&mut self, content: Bytes) -> io::Result<()> {
        let is_done = self.outgoing.is_done();
        self.shared.meter.count(|bytes| bytes.sent_content += content.len() as u64);
        let Some(send) = &mut self.send else { return Ok(()) };
        let has_trailers = is_done && self.outgoing.has_trailers();
        if !content.is_empty() || is_done && !has_trailers {
            let sent = send.send_data(content, is_done && !has_trailers);
            sent.map_err(|e| closed(|cx| send.poll_reset(cx), e))?;
        }
        if has_trailers {
            let trailers = convert::trailers(|each| self.outgoing.trailers(each)).map_err(Fault::from)?;
            send.send_trailers(trailers).map_err(|e| closed(|cx| send.poll_reset(cx), e))?;
        }
        if is_done {
            self.send = None;
        }
        Ok(())
    }

    /// Fills the inbox, or returns content that is part of the HTTP/1 message as it is. Neither means that the message is
    /// complete.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        while self.inbox.is_empty() {
            match &mut self.arrival {
                // Nothing can arrive before there is a request: only the deadline ends this.
                Arrival::Nothing => return Poll::Pending,
                Arrival::End => break,
                Arrival::Head { response, to, expects_interim } => {
                    if *expects_interim {
                        match ready!(response.poll_informational(cx)) {
                            Some(Ok(interim)) => {
                                let status = interim.status().as_u16();
                                let fields = convert::received(interim.headers());
                                IncomingMessage::interim_reply(status, fields, &mut self.inbox)
                                    .map_err(bad_message)?;
                                break;
                            }
                            Some(Err(e)) => return Poll::Ready(Err(self.shared.explain(fault::of_h2(e)))),
                            None => *expects_interim = false,
                        }
                    }
                    let reply = ready!(Pin::new(response).poll(cx));
                    let (head, body) = reply.map_err(|e| self.shared.explain(fault::of_h2(e)))?.into_parts();
                    let (status, is_last) = (head.status.as_u16(), body.is_end_stream());
                    self.inbox.reserve(USUAL_HEAD);
                    let fields = convert::received(&head.headers);
                    let incoming = IncomingMessage::reply(status, fields, is_last, *to, &mut self.inbox);
                    let incoming = incoming.map_err(bad_message)?;
                    self.arrival = if is_last { Arrival::End } else { Arrival::Content(body, incoming) };
                }
                Arrival::Content(body, incoming) => match ready!(body.poll_data(cx)) {
                    Some(Ok(content)) => {
                        // The stream may be gone already, and then nobody counts.
                        let _ = body.flow_control().release_capacity(content.len());
                        self.shared.meter.count(|bytes| bytes.received_content += content.len() as u64);
                        let placed = incoming.content(&content, &mut self.inbox).map_err(bad_message)?;
                        if placed == Placed::AsIs && !content.is_empty() {
                            return Poll::Ready(Ok(content));
                        }
                    }
                    Some(Err(e)) => return Poll::Ready(Err(self.shared.explain(fault::of_h2(e)))),
                    None => {
                        let trailers = ready!(body.poll_trailers(cx));
                        let trailers = trailers.map_err(|e| self.shared.explain(fault::of_h2(e)))?;
                        let trailers = trailers.unwrap_or_default();
                        incoming.end(convert::received(&trailers), &mut self.inbox).map_err(bad_message)?;
                        self.arrival = Arrival::End;
                    }
                },
            }
        }
        Poll::Ready(Ok(Bytes::new()))
    }
}

impl Shared {
    /// Reads on until the ends of complete messages arrive.
    pub fn poll_ending(&self, cx: &mut Context<'_>) {
        self.ending.borrow_mut().retain_mut(|body| match body.poll_data(cx) {
            // An empty frame, with or without the end. Content would be too much.
            Poll::Ready(Some(Ok(content))) => content.is_empty() && !body.is_end_stream(),
            Poll::Ready(_) => false,
            Poll::Pending => true,
        });
    }

    /// An error of the connection has its own reason, which `h2` tells only the task that drives the connection.
    fn explain(&self, error: io::Error) -> io::Error {
        match &*self.failure.borrow() {
            Some((kind, text)) if Fault::of(&error).is_none() => io::Error::new(*kind, text.clone()),
            _ => error,
        }
    }
}

fn reply_to(method: &Method) -> ReplyTo {
    ReplyTo::method(method.as_str())
}

fn bad_message(error: MessageError) -> io::Error {
    Fault::new(FaultKind::Protocol, format!("malformed message: {error}")).into()
}

/// Why a stream takes nothing more: the reason of the peer's reset, if there was one.
fn closed(
    poll_reset: impl FnOnce(&mut Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    error: h2::Error,
) -> io::Error {
    match poll_reset(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(reason)) => reset_by_peer(reason),
        Poll::Ready(Err(e)) => fault::of_h2(e),
        Poll::Pending => fault::of_h2(error),
    }
}

fn reset_by_peer(reason: Reason) -> io::Error {
    let kind = if reason == Reason::REFUSED_STREAM { FaultKind::Refused } else { FaultKind::Reset };
    Fault::new(kind, format!("RST_STREAM {}", fault::name(reason))).into()
}

impl Conn for Stream {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let (mut taken, mut content, mut room) = (0, BytesMut::new(), None);
        let mut left: usize = parts.iter().map(|part| part.len()).sum();
        'parts: for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() {
                let used = if self.outgoing.expects_head() {
                    self.send_head(rest)?
                } else {
                    let room: usize = *room.get_or_insert_with(|| self.room(left));
                    let fits = rest.len().min(room.saturating_sub(content.len()));
                    content.reserve(if content.is_empty() { room.min(left) } else { 0 });
                    match fits {
                        0 if !self.outgoing.is_done() => 0,
                        _ => self
                            .outgoing
                            .take_content(&rest[..fits.max(1)], |bytes| content.extend_from_slice(bytes))
                            .map_err(Fault::from)?,
                    }
                };
                if used == 0 {
                    break 'parts;
                }
                if let Some(capture) = &mut self.capture {
                    capture.send(&rest[..used]);
                }
                (taken, left, rest) = (taken + used, left - used, &rest[used..]);
            }
        }
        if room.is_some() {
            self.send_content(content.freeze())?;
        }
        if taken == 0 && left > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.shared.deadlines.check(self.place, cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if let Opener::Request(sender) = &self.opener {
            let is_ready = ready!(sender.borrow_mut().poll_ready(cx));
            return Poll::Ready(is_ready.map_err(|e| self.shared.explain(fault::of_h2(e))));
        }
        let Some(send) = &mut self.send else { return Poll::Ready(Ok(())) };
        match ready!(send.poll_capacity(cx)) {
            Some(Ok(_)) => Poll::Ready(Ok(())),
            Some(Err(e)) => Poll::Ready(Err(self.shared.explain(fault::of_h2(e)))),
            None => Poll::Ready(Err(closed(|cx| send.poll_reset(cx), Reason::STREAM_CLOSED.into()))),
        }
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        if self.shared.deadlines.check(self.place, cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let content = ready!(self.poll_arrival(cx))?;
        let data = if self.inbox.is_empty() { &content[..] } else { &self.inbox[..] };
        if let Some(capture) = &mut self.capture {
            capture.receive(data);
        }
        let taken = take(data);
        self.inbox.clear();
        Poll::Ready(Ok(taken))
    }

    /// A stream has one exchange, so it is never idle.
    fn idle_state(&mut self) -> IdleState {
        IdleState::Quiet
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.shared.deadlines.set(self.place, at);
    }

    fn finish(&mut self) {
        match self.outgoing.finish() {
            // If the stream is closed already, nobody waits for its end.
            Ok(true) => drop(self.send_content(Bytes::new())),
            Ok(false) => {}
            Err(_) => self.reset(),
        }
    }

    fn reset(&mut self) {
        match (&mut self.send, &mut self.opener) {
            (Some(send), _) => send.send_reset(Reason::CANCEL),
            (None, Opener::Reply(respond)) => respond.send_reset(Reason::INTERNAL_ERROR),
            // Dropping the reply cancels the stream.
            (None, Opener::Request(_) | Opener::Requested) => self.arrival = Arrival::End,
        }
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(Capture::take)
    }
}
