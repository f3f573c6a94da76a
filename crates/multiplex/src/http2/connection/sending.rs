//! What streams do to a connection: they open, send heads and content, read, and end.

use std::io;
use std::task::{Poll, Waker};

use super::super::codes;
use super::super::frames::{FrameHeader, HEADER, MAX_31, close_block, flag, kind};
use super::super::hpack::Encoder;
use super::super::streams::{Arrival, Closed, keep_waker};
use super::{Connection, SEND_BUFFER};
use crate::fault::{Fault, FaultKind};
use crate::message::fields::check_value;
use crate::message::outgoing::{FieldSection, OutgoingMessage, Start};
use crate::message::request::{FieldName, FieldSink, RequestFields, RequestLine};
use crate::message::{MessageError, ReplyTo};

/// The DATA frames that a stream is sending.
#[derive(Debug, Default)]
pub struct OpenData {
    /// Where the header of the last of them is.
    header: Option<usize>,
    /// The content of all of them.
    content: usize,
}

impl OpenData {
    /// The content so far.
    pub fn content(&self) -> usize {
        self.content
    }
}

/// A header block that is being put together.
struct HeaderBlock<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
}

impl FieldSink for HeaderBlock<'_> {
    fn put(&mut self, name: &FieldName, value: &[u8]) {
        self.encoder.field_of(name.text, name.known.as_ref(), value, self.out);
    }
}

fn put_fields(
    section: &FieldSection<'_>,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<(), MessageError> {
    section.fields().try_for_each(|(name, value)| {
        check_value(value)?;
        encoder.field(name, value, out);
        Ok(())
    })
}

impl Connection {
    /// Whether a client's stream can be opened now.
    ///
    /// # Errors
    /// If none can be opened any more.
    pub fn can_open(&self) -> io::Result<bool> {
        match (&self.end, self.goaway) {
            (Some(end), None) => Err(end.error()),
            (_, Some(_)) => {
                let text = "the server has announced the end of the connection";
                Err(Fault::new(FaultKind::Unprocessed, text).into())
            }
            _ if self.next_id > MAX_31 => {
                Err(Fault::new(FaultKind::Unprocessed, "the connection has no ids for streams left").into())
            }
            _ => Ok(self.streams.open_count() < self.peer.streams as usize && self.has_buffer()),
        }
    }

    /// Wakes a task when it is worth another try to open a stream.
    pub fn when_open(&mut self, waker: &Waker) {
        if !self.openers.iter().any(|kept| kept.will_wake(waker)) {
            self.openers.push(waker.clone());
        }
    }

    /// Sends a request on a new stream, and returns its place.
    ///
    /// # Errors
    /// If a field cannot be sent. The connection is as before.
    pub fn send_request(&mut self, section: &FieldSection<'_>) -> Result<usize, MessageError> {
        let Start::Request { method, scheme, authority, path } = &section.start else {
            return Err(MessageError::Pseudo(":method"));
        };
        self.send_head(self.next_id, section.is_last, |encoder, out| {
            encoder.method(method, out);
            if let Some(scheme) = scheme {
                encoder.scheme(scheme, out);
            }
            if let Some(authority) = authority {
                encoder.authority(authority, out);
            }
            if let Some(path) = path {
                encoder.path(path.as_bytes(), out);
            }
            put_fields(section, encoder, out)
        })?;
        Ok(self.open(method, section.is_last))
    }

    /// Sends a request without content on a new stream. `fields` passes on its fields. Returns its place, and the size of its head in
    /// HTTP/1.
    ///
    /// # Errors
    /// As [`Connection::send_request`].
    pub fn send_request_of(
        &mut self,
        line: &RequestLine<'_>,
        scheme: &str,
        fields: impl FnOnce(&mut RequestFields<'_>),
    ) -> Result<(usize, usize), MessageError> {
        let mut memory = std::mem::take(&mut self.text);
        let size = self.send_head(self.next_id, true, |encoder, out| {
            encoder.method(line.method, out);
            encoder.scheme(scheme, out);
            encoder.authority(line.authority, out);
            encoder.path(line.path, out);
            let mut block = HeaderBlock { encoder, out };
            let mut request = RequestFields::new(line, &mut block, &mut memory);
            fields(&mut request);
            request.end()
        });
        self.text = memory;
        let size = size?;
        Ok((self.open(line.method, true), size))
    }

    /// Opens the stream of a request that was sent, and returns its place.
    fn open(&mut self, method: &str, is_last: bool) -> usize {
        let (id, arrival) = (self.next_id, Arrival::Head(ReplyTo::method(method)));
        self.next_id += 2;
        let place = self.streams.open(id, self.peer.window, self.settings.window, arrival);
        self.streams[place].sent_end = is_last;
        place
    }

    /// Sends the head of a reply.
    ///
    /// # Errors
    /// If a field cannot be sent.
    pub fn send_reply(&mut self, place: usize, section: &FieldSection<'_>) -> Result<(), MessageError> {
        let Start::Reply { status } = section.start else { return Err(MessageError::Pseudo(":status")) };
        self.send_head(self.streams[place].id, section.is_last, |encoder, out| {
            encoder.status(status, out);
            put_fields(section, encoder, out)
        })?;
        self.streams[place].sent_end = section.is_last;
        self.close_if_done(place);
        Ok(())
    }

    /// Sends the frames of a header block, whose fields `put` appends.
    fn send_head<R>(
        &mut self,
        id: u32,
        is_last: bool,
        put: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<R, MessageError>,
    ) -> Result<R, MessageError> {
        let (start, out) = (self.out.len(), &mut self.out);
        out.extend_from_slice(&[0; HEADER]);
        self.encoder.begin(out);
        match put(&mut self.encoder, out) {
            Ok(result) => {
                close_block(start, id, is_last, self.peer.payload, out);
                Ok(result)
            }
            Err(error) => {
                out.truncate(start);
                self.encoder.give_up();
                Err(error)
            }
        }
    }

    /// Sends a reply that is nothing but a status.
    pub(super) fn send_status(&mut self, place: usize, status: u16) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER]);
        self.encoder.begin(&mut self.out);
        self.encoder.status(status, &mut self.out);
        let stream = &mut self.streams[place];
        close_block(start, stream.id, true, self.peer.payload, &mut self.out);
        stream.sent_end = true;
    }

    /// Why a stream can send nothing more, if so.
    ///
    /// # Errors
    /// The reason.
    pub fn check_sending(&self, place: usize) -> io::Result<()> {
        let stream = &self.streams[place];
        match (&stream.failure, &self.end) {
            (Some(failure), _) => Err(failure.clone().into()),
            (None, Some(end)) if !stream.sent_end => Err(end.error()),
            (None, _) if stream.is_closed && !stream.sent_end => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    }

    /// How much content a stream may send now. Streams that wait for each other get room for a frame in each turn.
    pub fn room(&self, place: usize) -> usize {
        let stream = &self.streams[place];
        if !self.has_buffer() || self.is_contended && stream.turn == self.turn {
            return 0;
        }
        let most = if self.is_contended { self.peer.payload } else { SEND_BUFFER };
        stream.send_window.room().min(self.send_window.room()).min(most)
    }

    /// Wakes a task when a stream has room for content.
    pub fn when_room(&mut self, place: usize, waker: &Waker) {
        let stream = &mut self.streams[place];
        keep_waker(&mut stream.writer, waker);
        if !std::mem::replace(&mut stream.is_blocked, true) {
            self.blocked[usize::from(stream.turn == self.turn)].push(place);
        }
    }

    /// Sends content, for which there must be room.
    pub fn put_content(&mut self, place: usize, open: &mut OpenData, mut content: &[u8]) {
        let id = self.streams[place].id;
        open.content += content.len();
        while !content.is_empty() {
            let header = *open.header.get_or_insert_with(|| {
                self.out.extend_from_slice(&[0; HEADER]);
                self.out.len() - HEADER
            });
            let left = self.peer.payload.saturating_sub(self.out.len() - header - HEADER);
            let (now, later) = content.split_at(content.len().min(left));
            self.out.extend_from_slice(now);
            content = later;
            if !content.is_empty() {
                self.close_data(header, id, 0);
                open.header = None;
            }
        }
    }

    fn close_data(&mut self, header: usize, stream: u32, flags: u8) {
        let length = self.out.len() - header - HEADER;
        let bytes = FrameHeader { length, kind: kind::DATA, flags, stream }.bytes();
        self.out[header..header + HEADER].copy_from_slice(&bytes);
    }

    /// Completes the DATA frames, and the message if it is done.
    ///
    /// # Errors
    /// If the trailers cannot be sent.
    pub fn end_content(
        &mut self,
        place: usize,
        open: &OpenData,
        message: &OutgoingMessage,
    ) -> Result<(), MessageError> {
        let (turn, is_done) = (self.turn, message.is_done());
        let has_trailers = is_done && message.has_trailers();
        let stream = &mut self.streams[place];
        let (id, ends) = (stream.id, is_done && !stream.sent_end);
        if open.content > 0 {
            stream.turn = turn;
            stream.send_window.take(open.content);
            self.send_window.take(open.content);
            self.bytes.sent_content += open.content as u64;
        }
        let flags = if ends && !has_trailers { flag::END_STREAM } else { 0 };
        match open.header {
            Some(header) => self.close_data(header, id, flags),
            None if flags != 0 => {
                FrameHeader { length: 0, kind: kind::DATA, flags, stream: id }.put(&mut self.out)
            }
            None => {}
        }
        if ends && has_trailers {
            self.send_trailers(id, message)?;
        }
        if ends {
            self.streams[place].sent_end = true;
            self.close_if_done(place);
        }
        Ok(())
    }

    fn send_trailers(&mut self, id: u32, message: &OutgoingMessage) -> Result<(), MessageError> {
        let (start, encoder, out) = (self.out.len(), &mut self.encoder, &mut self.out);
        out.extend_from_slice(&[0; HEADER]);
        encoder.begin(out);
        let mut result = Ok(());
        let passed = message.trailers(|name, value| {
            result = result.and(check_value(value));
            encoder.field(name, value, out);
        });
        if let Err(error) = passed.and(result) {
            self.out.truncate(start);
            self.encoder.give_up();
            return Err(error);
        }
        close_block(start, id, true, self.peer.payload, &mut self.out);
        Ok(())
    }

    /// What a stream can read: bytes of the HTTP/1 message, `None` behind its end.
    pub fn poll_read(&mut self, place: usize, waker: &Waker) -> Poll<io::Result<Option<Vec<u8>>>> {
        let is_client = self.is_client();
        let stream = &mut self.streams[place];
        stream.was_polled = true;
        match (&stream.failure, &self.end) {
            _ if !stream.inbox.is_empty() => Poll::Ready(Ok(Some(std::mem::take(&mut stream.inbox)))),
            // A complete reply is good, even if the server then resets the stream (RFC 9113, section 8.1). A server wants to know that
            // nobody waits for the reply.
            _ if stream.received_end && (is_client || stream.failure.is_none()) => Poll::Ready(Ok(None)),
            (Some(failure), _) => Poll::Ready(Err(failure.clone().into())),
            _ if stream.is_closed => Poll::Ready(Ok(None)),
            (None, Some(end)) => Poll::Ready(Err(end.error())),
            (None, None) => {
                keep_waker(&mut stream.reader, waker);
                Poll::Pending
            }
        }
    }

    /// What [`Connection::poll_read`] gave was read. Its buffer is used again.
    pub fn note_read(&mut self, place: usize, mut buffer: Vec<u8>) {
        let stream = &mut self.streams[place];
        buffer.clear();
        stream.index.clear();
        if stream.inbox.is_empty() {
            stream.inbox = buffer;
        }
        let unread = std::mem::take(&mut stream.unread);
        self.release_of(place, unread);
    }

    /// Resets a stream on behalf of its user.
    pub fn cancel(&mut self, place: usize, code: u32) {
        if !self.streams[place].is_closed && self.end.is_none() {
            self.reset(place, code, None);
        }
    }

    /// Nobody uses the stream any more. If its exchange is not complete, it is reset.
    pub fn leave(&mut self, place: usize) {
        let is_client = self.is_client();
        let stream = &mut self.streams[place];
        let unread = std::mem::take(&mut stream.unread);
        let reset = match &stream.arrival {
            _ if stream.is_closed || self.end.is_some() => None,
            _ if !stream.sent_end => Some(codes::CANCEL),
            // Its end is still to come.
            Arrival::Content(incoming) if incoming.is_complete() => None,
            // The reply is complete, and the rest of the request of no interest (RFC 9113, section 8.1).
            _ => Some(if is_client { codes::CANCEL } else { codes::NO_ERROR }),
        };
        if let Some(code) = reset {
            super::put_reset(stream.id, code, &mut self.out);
            self.close(place, Closed::ByUs);
        }
        self.release(unread);
        self.streams.leave(place);
    }
}
