//! A stream of an HTTP/2 connection that looks like a connection on which one exchange takes place.

use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_wire::head::HeadIndex;

use crate::fault::Fault;
use crate::http2::codes;
use crate::http2::connection::{Connection, OpenData};
use crate::message::outgoing::OutgoingMessage;
use crate::message::request::{RequestFields, RequestLine};
use crate::message::{MessageError, ReplyTo};
use crate::session::Http2Session;
use crate::traffic::WireBytes;

/// A stream. Dropping it before the exchange is complete resets it.
pub struct Stream {
    session: Rc<Http2Session>,
    /// The stream's place among the deadlines.
    deadline: usize,
    /// The stream's place in the connection. A client's stream has it when its request is sent.
    place: Option<usize>,
    is_client: bool,
    outgoing: OutgoingMessage,
    /// Whether the stream was given up before its request.
    is_given_up: bool,
    capture: Option<Capture>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("outgoing", &self.outgoing).finish_non_exhaustive()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let session = &self.session;
        session.stop_reading();
        session.deadlines.remove(self.deadline);
        if let Some(place) = self.place {
            session.connection.borrow_mut().leave(place);
        }
        // Without streams, a client's connection may be at its end, and a server's is idle.
        if session.deadlines.streams() == 0 && !(self.is_client && session.is_kept.get()) {
            session.wake_driver();
        }
        session.wake_to_send();
    }
}

impl Stream {
    fn new(session: &Rc<Http2Session>, place: Option<usize>, outgoing: OutgoingMessage) -> Stream {
        // A stream that was alone is not any more.
        session.stop_reading();
        Stream {
            deadline: session.deadlines.add(),
            capture: session.capture.clone(),
            session: Rc::clone(session),
            is_client: place.is_none(),
            place,
            outgoing,
            is_given_up: false,
        }
    }

    /// A stream on which a client sends a request with this scheme.
    pub(crate) fn of_client(session: &Rc<Http2Session>, scheme: &'static str) -> Stream {
        Stream::new(session, None, OutgoingMessage::request(scheme))
    }

    /// A stream on which a server has received a request.
    pub(crate) fn of_server(session: &Rc<Http2Session>, place: usize, to: ReplyTo) -> Stream {
        Stream::new(session, Some(place), OutgoingMessage::reply(to))
    }

    /// The bytes of the whole connection since this was last asked, on any of its streams.
    pub fn take_bytes(&self) -> WireBytes {
        self.session.connection.borrow_mut().take_bytes()
    }

    /// Number of open streams of the connection, this one included.
    pub fn open_streams(&self) -> usize {
        self.session.deadlines.streams()
    }

    /// Whether the stream sends and receives itself.
    fn is_alone(&self) -> bool {
        self.is_client && self.session.is_alone()
    }

    /// Sends the frames of the stream now if it is alone, and otherwise with those of the other streams.
    fn flush(&self) {
        match self.is_alone() {
            true => self.session.send_alone(),
            false => self.session.wake_to_send(),
        }
    }

    /// Sends a request without content on a new stream. `fields` passes on its fields. Returns the size of its head in HTTP/1; `None` if it
    /// must be written in this form: the connection takes no request now, or captures are kept.
    ///
    /// # Errors
    /// As [`Conn::try_send`].
    pub fn send_request(
        &mut self,
        line: &RequestLine<'_>,
        fields: impl FnOnce(&mut RequestFields<'_>),
    ) -> io::Result<Option<usize>> {
        if self.capture.is_some() || self.place.is_some() {
            return Ok(None);
        }
        let session = Rc::clone(&self.session);
        session.stop_reading();
        let mut connection = session.connection.borrow_mut();
        if !connection.can_open()? {
            return Ok(None);
        }
        let Some(scheme) = self.outgoing.give_up_request() else { return Ok(None) };
        let (place, size) = connection.send_request_of(line, scheme, fields).map_err(Fault::from)?;
        self.place = Some(place);
        drop(connection);
        self.flush();
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
        if self.session.deadlines.check(self.deadline, cx.waker()) {
            self.session.stop_reading();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let Some(place) = self.place else {
            // Nothing can arrive before there is a request: only the deadline ends this.
            return if self.is_given_up { Poll::Ready(Ok(take(&[], None))) } else { Poll::Pending };
        };
        let session = &self.session;
        let is_alone = self.is_alone();
        if is_alone {
            session.receive_alone(place);
        }
        let read = session.connection.borrow_mut().poll_read(place, cx.waker());
        if is_alone {
            session.wait_alone(cx.waker(), read.is_pending());
        }
        let Some(data) = ready!(read)? else {
            return Poll::Ready(Ok(take(&[], None)));
        };
        if let Some(capture) = &mut self.capture {
            capture.receive(&data);
        }
        let index = self.session.connection.borrow().streams[place].index;
        let taken = take(&data, Some(&index));
        self.session.connection.borrow_mut().note_read(place, data);
        // Windows that this opens are announced at the next turn: that of a stream which is alone is when it reads again.
        if !is_alone {
            self.session.wake_to_send();
        }
        Poll::Ready(Ok(taken))
    }

    /// Takes bytes of a head, and sends the head once it is complete. Returns the number of bytes; 0 if the connection takes no
    /// request now.
    fn send_head(&mut self, connection: &mut Connection, data: &[u8]) -> io::Result<usize> {
        if let Some(place) = self.place {
            if self.is_client {
                return Err(Fault::from(MessageError::Excess).into());
            }
            connection.check_sending(place)?;
            let (used, sent) = self
                .outgoing
                .take_head(data, |section| connection.send_reply(place, section))
                .map_err(Fault::from)?;
            sent.transpose().map_err(Fault::from)?;
            return Ok(used);
        }
        if !connection.can_open()? {
            return Ok(0);
        }
        let (used, sent) =
            self.outgoing.take_head(data, |section| connection.send_request(section)).map_err(Fault::from)?;
        self.place = sent.transpose().map_err(Fault::from)?;
        Ok(used)
    }

    /// Takes parts of the HTTP/1 message, and makes frames of them. Returns the number of bytes.
    fn send(&mut self, connection: &mut Connection, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let (mut taken, mut open, mut room) = (0, OpenData::default(), None);
        'parts: for part in parts {
            let mut rest = &part[..];
            while !rest.is_empty() {
                let used = match self.place {
                    Some(place) if !self.outgoing.expects_head() => {
                        if room.is_none() {
                            connection.check_sending(place)?;
                        }
                        let room = *room.get_or_insert_with(|| connection.room(place));
                        match rest.len().min(room - open.content()) {
                            0 if !self.outgoing.is_done() => 0,
                            fits => self
                                .outgoing
                                .take_content(&rest[..fits.max(1)], |bytes| {
                                    connection.put_content(place, &mut open, bytes);
                                })
                                .map_err(Fault::from)?,
                        }
                    }
                    _ => self.send_head(connection, rest)?,
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
        if let (Some(place), true) = (self.place, room.is_some()) {
            connection.end_content(place, &open, &self.outgoing).map_err(Fault::from)?;
        }
        Ok(taken)
    }
}

impl Conn for Stream {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let session = Rc::clone(&self.session);
        session.stop_reading();
        let sent = self.send(&mut session.connection.borrow_mut(), parts);
        self.flush();
        match sent? {
            0 if parts.iter().any(|part| !part.is_empty()) => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.stop_reading();
        self.session.wake_to_send();
        if self.session.deadlines.check(self.deadline, cx.waker()) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let mut connection = self.session.connection.borrow_mut();
        let is_ready = match self.place {
            None => connection.can_open()?,
            Some(place) => {
                connection.check_sending(place)?;
                self.outgoing.is_done() || self.outgoing.expects_head() || connection.room(place) > 0
            }
        };
        match (is_ready, self.place) {
            (true, _) => return Poll::Ready(Ok(())),
            (false, None) => connection.when_open(cx.waker()),
            (false, Some(place)) => connection.when_room(place, cx.waker()),
        }
        Poll::Pending
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        self.poll_recv_head(cx, |data, _| take(data))
    }

    /// A stream has one exchange, so it is never idle.
    fn idle_state(&mut self) -> IdleState {
        IdleState::Quiet
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.session.deadlines.set(self.deadline, at);
    }

    fn finish(&mut self) {
        self.session.stop_reading();
        match (self.outgoing.finish(), self.place) {
            (Ok(true), Some(place)) => {
                let mut connection = self.session.connection.borrow_mut();
                // If the stream is closed already, nobody waits for its end.
                if connection.check_sending(place).is_ok() {
                    let _ = connection.end_content(place, &OpenData::default(), &self.outgoing);
                }
                drop(connection);
                self.flush();
            }
            (Ok(_), _) => {}
            (Err(_), _) => self.reset(),
        }
    }

    fn reset(&mut self) {
        let Some(place) = self.place else {
            self.is_given_up = true;
            return;
        };
        let code = match !self.is_client && self.outgoing.expects_head() {
            true => codes::INTERNAL_ERROR,
            false => codes::CANCEL,
        };
        self.session.stop_reading();
        self.session.connection.borrow_mut().cancel(place, code);
        self.flush();
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(Capture::take)
    }
}
