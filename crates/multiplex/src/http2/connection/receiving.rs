//! What arrives on a connection.

use std::task::Waker;

use super::super::frames::{FrameHeader, Http2Frame, put_goaway, put_ping, put_reset, put_settings_ack};
use super::super::reader::{DataPart, FrameReader, Piece};
use super::super::streams::{Arrival, Closed};
use super::super::{Http2Error, codes};
use super::{Connection, Farewell, LAST_PING, OpenBlock, PREFACE, Side};
use crate::fault::{Fault, FaultKind};
use crate::message::heads::{ReplyHeadWriter, RequestHeadWriter};
use crate::message::incoming::{Placed, TargetForm};
use crate::message::{MessageError, ReplyTo};
use crate::rapid_reset::RAPID_RESET;
use crate::settings::MAX_FIELD_SECTION;

/// The most bytes of fields in a section.
const SECTION: usize = MAX_FIELD_SECTION as usize;

/// The most bytes of a header block. What is larger has too many fields, too, or is a flood.
const MAX_BLOCK: usize = 2 * SECTION;

/// The most CONTINUATION frames of a header block.
const MAX_CONTINUATIONS: u32 = 100;

impl Connection {
    /// Takes bytes that have arrived. If they break the protocol, the connection ends.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.bytes.received += bytes.len() as u64;
        let mut reader = std::mem::take(&mut self.reader);
        let result = self.skip_preface(bytes).and_then(|bytes| self.take(&mut reader, bytes));
        self.reader = reader;
        if let Err(error) = result {
            self.fail(error);
        }
    }

    /// What follows the preface.
    fn skip_preface<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Http2Error> {
        if self.is_client() || self.preface == PREFACE.len() {
            return Ok(bytes);
        }
        let rest = &PREFACE[self.preface..];
        let length = rest.len().min(bytes.len());
        if bytes[..length] != rest[..length] {
            return Err(Http2Error::protocol("the client does not begin with the preface"));
        }
        self.preface += length;
        Ok(&bytes[length..])
    }

    fn take(&mut self, reader: &mut FrameReader, mut bytes: &[u8]) -> Result<(), Http2Error> {
        while self.end.is_none() && !bytes.is_empty() {
            let (used, piece) = reader.next(bytes)?;
            match piece {
                Some(Piece::Data(part)) => self.take_data(&part)?,
                Some(Piece::Whole(header, payload)) => self.take_frame(&header, payload)?,
                None => return Ok(()),
            }
            bytes = &bytes[used..];
        }
        Ok(())
    }

    fn check_order(&self, follows_block: bool, is_settings: bool) -> Result<(), Http2Error> {
        match (self.block.is_some() == follows_block, self.has_settings || is_settings) {
            (true, true) => Ok(()),
            (false, _) => Err(Http2Error::protocol("CONTINUATION is missing, or comes where none may come")),
            (_, false) => Err(Http2Error::protocol("the connection does not begin with SETTINGS")),
        }
    }

    fn take_frame(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), Http2Error> {
        let frame = Http2Frame::read(header, payload)?;
        let follows_block = matches!(frame, Http2Frame::Continuation { .. });
        self.check_order(follows_block, matches!(frame, Http2Frame::Settings(_)))?;
        let id = header.stream;
        match frame {
            Http2Frame::Headers { block, is_whole: true, ends_stream, depends_on_itself } => {
                self.take_block(id, block, ends_stream, depends_on_itself)?;
            }
            Http2Frame::Headers { block, ends_stream, depends_on_itself, .. } => {
                let bytes = block.to_vec();
                let open = OpenBlock { stream: id, ends_stream, depends_on_itself, bytes, continuations: 0 };
                self.block = Some(open);
            }
            Http2Frame::Continuation { block, is_last } => self.continue_block(id, block, is_last)?,
            Http2Frame::Priority { depends_on_itself: false }
            | Http2Frame::SettingsAck
            | Http2Frame::Unknown => {}
            Http2Frame::Priority { .. } => match self.streams.find(id) {
                Some(place) => {
                    self.break_stream(place, codes::PROTOCOL_ERROR, "the stream depends on itself")
                }
                None => return Err(Http2Error::protocol("a stream depends on itself")),
            },
            Http2Frame::Reset { code } => self.take_reset(id, code)?,
            Http2Frame::Settings(payload) => self.take_settings(payload)?,
            Http2Frame::PushPromise => {
                return Err(Http2Error::protocol("a pushed reply, which was not allowed"));
            }
            Http2Frame::Ping(data) => put_ping(data, true, &mut self.out),
            Http2Frame::Pong(data) => {
                if data == LAST_PING && self.farewell == Farewell::Announced {
                    put_goaway(self.last_id, codes::NO_ERROR, &mut self.out);
                    self.farewell = Farewell::Final;
                }
            }
            Http2Frame::GoAway { last, code } => self.take_goaway(last, code),
            Http2Frame::WindowUpdate { increment } => self.take_window_update(id, increment)?,
        }
        Ok(())
    }

    fn continue_block(&mut self, id: u32, part: &[u8], is_last: bool) -> Result<(), Http2Error> {
        let Some(mut open) = self.block.take() else { return Ok(()) };
        if open.stream != id {
            return Err(Http2Error::protocol("CONTINUATION of another stream"));
        }
        open.continuations += 1;
        if open.bytes.len() + part.len() > MAX_BLOCK || open.continuations > MAX_CONTINUATIONS {
            return Err(Http2Error::new(codes::ENHANCE_YOUR_CALM, "a field section without end"));
        }
        open.bytes.extend_from_slice(part);
        if is_last {
            return self.take_block(id, &open.bytes, open.ends_stream, open.depends_on_itself);
        }
        self.block = Some(open);
        Ok(())
    }

    /// A complete header block has arrived. Whatever becomes of it, it is decoded, because it may change the dynamic table.
    fn take_block(
        &mut self,
        id: u32,
        block: &[u8],
        ends_stream: bool,
        depends_on_itself: bool,
    ) -> Result<(), Http2Error> {
        if let Some(place) = self.streams.find(id) {
            if depends_on_itself {
                self.skip_block(block)?;
                self.break_stream(place, codes::PROTOCOL_ERROR, "the stream depends on itself");
                return Ok(());
            }
            return match self.streams[place].arrival {
                Arrival::Head(to) => self.take_reply(place, to, block, ends_stream),
                _ => self.take_trailers(place, block, ends_stream),
            };
        }
        match self.side {
            Side::Server(form) if id % 2 == 1 && id > self.last_id => {
                self.last_id = id;
                let refused = match () {
                    () if self.farewell == Farewell::Final => Some(codes::REFUSED_STREAM),
                    () if self.streams.open_count() >= self.settings.streams as usize => {
                        Some(codes::REFUSED_STREAM)
                    }
                    () if self.has_given_up_many() => {
                        self.count_given_up();
                        if self.end.is_some() {
                            return Ok(());
                        }
                        Some(codes::REFUSED_STREAM)
                    }
                    () if depends_on_itself => Some(codes::PROTOCOL_ERROR),
                    () => None,
                };
                let Some(code) = refused else { return self.take_request(id, form, block, ends_stream) };
                self.skip_block(block)?;
                self.refuse(id, code);
                Ok(())
            }
            _ => {
                self.skip_block(block)?;
                self.check_closed(id, codes::PROTOCOL_ERROR)
            }
        }
    }

    /// Whether a server is still busy with many requests that the client gave up. They cost the client nothing, so there may be only
    /// as many of them as of others.
    fn has_given_up_many(&self) -> bool {
        self.streams.kept_count() >= 2 * self.settings.streams as usize
    }

    /// Counts a request that the client gives up. Too many end the connection.
    fn count_given_up(&mut self) {
        if !self.rapid_resets.count(self.now) {
            self.fail(Http2Error::new(codes::ENHANCE_YOUR_CALM, RAPID_RESET));
        }
    }

    fn skip_block(&mut self, block: &[u8]) -> Result<(), Http2Error> {
        self.decoder.decode(block, 0, |_| ())?;
        Ok(())
    }

    fn take_request(
        &mut self,
        id: u32,
        form: TargetForm,
        block: &[u8],
        ends_stream: bool,
    ) -> Result<(), Http2Error> {
        self.requests += 1;
        let place = self.streams.open(id, self.peer.window, self.settings.window, Arrival::End);
        let stream = &mut self.streams[place];
        let mut head = RequestHeadWriter::new(form, &mut self.text);
        let fits = self.decoder.decode(block, SECTION, |field| head.received(field, &mut stream.inbox))?;
        if !fits {
            self.malformed += 1;
            self.refuse_size(place, ends_stream);
            return Ok(());
        }
        match head.end(ends_stream, &mut stream.inbox) {
            Ok((incoming, to)) => {
                stream.received_end = ends_stream;
                stream.arrival = if ends_stream { Arrival::End } else { Arrival::Content(incoming) };
                self.accepted.push_back((place, to));
            }
            Err(_) => {
                self.malformed += 1;
                self.reset(place, codes::PROTOCOL_ERROR, None);
                self.streams.leave(place);
            }
        }
        Ok(())
    }

    /// Resets a stream that has no place.
    fn refuse(&mut self, id: u32, code: u32) {
        put_reset(id, code, &mut self.out);
        self.streams.remember(id, Closed::ByUs);
    }

    /// Answers a request whose fields are too large.
    fn refuse_size(&mut self, place: usize, ends_stream: bool) {
        self.send_status(place, 431);
        self.streams[place].received_end = ends_stream;
        match ends_stream {
            true => self.close_if_done(place),
            // The rest of the request is of no interest (RFC 9113, section 8.1).
            false => self.reset(place, codes::NO_ERROR, None),
        }
        self.streams.leave(place);
    }

    fn take_reply(
        &mut self,
        place: usize,
        to: ReplyTo,
        block: &[u8],
        ends_stream: bool,
    ) -> Result<(), Http2Error> {
        let stream = &mut self.streams[place];
        let start = stream.inbox.len();
        let index = (start == 0).then_some(&mut stream.index);
        let mut head = ReplyHeadWriter::new(to, index);
        let fits = self.decoder.decode(block, SECTION, |field| head.received(field, &mut stream.inbox))?;
        // Interim replies may come faster than they are read.
        if !fits || start > SECTION {
            stream.inbox.truncate(start);
            self.break_stream(place, codes::ENHANCE_YOUR_CALM, "the fields of a reply are too large");
            return Ok(());
        }
        match head.end(ends_stream, &mut stream.inbox) {
            Ok(None) => {}
            Ok(Some(incoming)) => {
                stream.arrival = if ends_stream { Arrival::End } else { Arrival::Content(incoming) };
            }
            Err(error) => {
                stream.inbox.truncate(start);
                self.malformed(place, error);
                return Ok(());
            }
        }
        stream.received_end = ends_stream;
        stream.wake_reader();
        self.close_if_done(place);
        Ok(())
    }

    fn take_trailers(&mut self, place: usize, block: &[u8], ends_stream: bool) -> Result<(), Http2Error> {
        // Trailers are so rare that each field may have its own memory.
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let fits = self
            .decoder
            .decode(block, SECTION, |field| fields.push((field.name.to_vec(), field.value.to_vec())))?;
        let (code, text) = match () {
            () if self.streams[place].received_end => {
                (codes::STREAM_CLOSED, "HEADERS behind the end of the stream")
            }
            () if !fits => (codes::ENHANCE_YOUR_CALM, "the trailers are too large"),
            () if !ends_stream => (codes::PROTOCOL_ERROR, "trailers without the end of the stream"),
            () => {
                self.end_message(place, fields.iter().map(|(name, value)| (&name[..], &value[..])));
                return Ok(());
            }
        };
        self.break_stream(place, code, text);
        Ok(())
    }

    /// The message of a stream is complete.
    fn end_message<'a>(&mut self, place: usize, trailers: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        let stream = &mut self.streams[place];
        if let Arrival::Content(incoming) = &mut stream.arrival
            && let Err(error) = incoming.end(trailers, &mut stream.inbox)
        {
            return self.malformed(place, error);
        }
        stream.arrival = Arrival::End;
        stream.received_end = true;
        stream.wake_reader();
        self.close_if_done(place);
    }

    /// The peer has sent what is no HTTP message.
    fn malformed(&mut self, place: usize, error: MessageError) {
        let fault = Fault::new(FaultKind::Protocol, format!("malformed message: {error}"));
        self.reset(place, codes::PROTOCOL_ERROR, Some(fault));
    }

    /// The peer breaks the protocol on a stream.
    fn break_stream(&mut self, place: usize, code: u32, text: &'static str) {
        let error = Http2Error::new(code, text);
        let is_work = self.streams[place].is_held;
        self.reset(place, code, Some(Fault::new(error.kind(), format!("RST_STREAM {error}"))));
        // A client that breaks its streams gives up requests as well (CVE-2025-8671).
        if is_work && !self.is_client() {
            self.count_given_up();
        }
    }

    fn take_data(&mut self, part: &DataPart<'_>) -> Result<(), Http2Error> {
        self.check_order(false, false)?;
        let size = part.content.len() + part.padding;
        if !self.receive_window.take(size) {
            let text = "more content than the window of the connection";
            return Err(Http2Error::new(codes::FLOW_CONTROL_ERROR, text));
        }
        let Some(place) = self.streams.find(part.stream) else {
            self.release(size);
            return if part.is_first { self.check_closed(part.stream, codes::STREAM_CLOSED) } else { Ok(()) };
        };
        let stream = &mut self.streams[place];
        let (code, text) = match &stream.arrival {
            _ if stream.received_end => (codes::STREAM_CLOSED, "DATA behind the end of the stream"),
            _ if !stream.receive_window.take(size) => {
                (codes::FLOW_CONTROL_ERROR, "more content than the window of the stream")
            }
            Arrival::Content(_) if stream.is_held || part.content.is_empty() => {
                self.take_content(place, part);
                return Ok(());
            }
            Arrival::Content(_) => (codes::CANCEL, "content that nobody reads"),
            Arrival::Head(_) | Arrival::End => (codes::PROTOCOL_ERROR, "DATA before HEADERS"),
        };
        self.release(size);
        self.break_stream(place, code, text);
        Ok(())
    }

    /// Content that the windows allow has arrived for a message.
    fn take_content(&mut self, place: usize, part: &DataPart<'_>) {
        let stream = &mut self.streams[place];
        let Arrival::Content(incoming) = &mut stream.arrival else { return };
        let size = part.content.len();
        match incoming.content(part.content, &mut stream.inbox) {
            Ok(Placed::AsIs) => stream.inbox.extend_from_slice(part.content),
            Ok(Placed::Framed) => {}
            Err(error) => {
                self.release(size + part.padding);
                return self.malformed(place, error);
            }
        }
        stream.unread += size;
        self.bytes.received_content += size as u64;
        if part.ends_stream {
            self.end_message(place, std::iter::empty());
        } else if size > 0 {
            stream.wake_reader();
        }
        if part.padding > 0 {
            // The stream may be closed and gone.
            match self.streams.find(part.stream) {
                Some(place) => self.release_of(place, part.padding),
                None => self.release(part.padding),
            }
        }
    }

    /// A frame has arrived for a stream that is not open. `forgotten` is the error if nothing is known about the stream.
    fn check_closed(&mut self, id: u32, forgotten: u32) -> Result<(), Http2Error> {
        self.check_opened(id)?;
        let text = "a frame for a stream that has ended";
        match self.streams.recall(id) {
            Some(Closed::ByUs) => Ok(()),
            Some(Closed::ByPeer) => {
                self.refuse(id, codes::STREAM_CLOSED);
                Ok(())
            }
            Some(Closed::InOrder) => Err(Http2Error::new(codes::STREAM_CLOSED, text)),
            None => Err(Http2Error::new(forgotten, text)),
        }
    }

    /// Whether a stream was opened at some time.
    fn check_opened(&self, id: u32) -> Result<(), Http2Error> {
        let is_idle = match self.side {
            Side::Client => id.is_multiple_of(2) || id >= self.next_id,
            Side::Server(_) => id.is_multiple_of(2) || id > self.last_id,
        };
        match is_idle {
            true => Err(Http2Error::protocol("a frame for a stream that was not opened")),
            false => Ok(()),
        }
    }

    fn take_reset(&mut self, id: u32, code: u32) -> Result<(), Http2Error> {
        let Some(place) = self.streams.find(id) else {
            self.check_opened(id)?;
            self.streams.remember_reset_by_peer(id);
            return Ok(());
        };
        let kind = if code == codes::REFUSED_STREAM { FaultKind::Refused } else { FaultKind::Reset };
        let is_server = !self.is_client();
        let stream = &mut self.streams[place];
        let is_early = is_server && stream.is_held && !stream.was_polled;
        stream.failure = Some(Fault::new(kind, format!("RST_STREAM {}", codes::name(code))));
        stream.wake();
        self.close(place, Closed::ByPeer);
        if is_early {
            self.count_given_up();
        }
        Ok(())
    }

    fn take_settings(&mut self, payload: &[u8]) -> Result<(), Http2Error> {
        let (before, of_server) = (self.peer.window, self.is_client());
        self.peer.take(payload, !self.has_settings, of_server)?;
        self.has_settings = true;
        put_settings_ack(&mut self.out);
        self.encoder.resize(self.peer.table);
        let change = i64::from(self.peer.window) - i64::from(before);
        if change != 0 {
            for place in self.streams.open_places() {
                let stream = &mut self.streams[place];
                if !stream.send_window.change(change) {
                    return Err(Http2Error::new(codes::FLOW_CONTROL_ERROR, "a window is too large"));
                }
                stream.writer.iter().for_each(Waker::wake_by_ref);
            }
        }
        self.wake_openers();
        Ok(())
    }

    fn take_goaway(&mut self, last: u32, code: u32) {
        let last = self.goaway.map_or(last, |(earlier, _)| last.min(earlier));
        self.goaway = Some((last, code));
        if self.is_client() {
            for place in self.streams.open_places() {
                let stream = &mut self.streams[place];
                if stream.id > last {
                    let text = format!("GOAWAY {}: the request was not processed", codes::name(code));
                    stream.failure = Some(Fault::new(FaultKind::Unprocessed, text));
                    stream.wake();
                    self.close(place, Closed::ByPeer);
                }
            }
        }
        self.wake_openers();
    }

    fn take_window_update(&mut self, id: u32, increment: u32) -> Result<(), Http2Error> {
        if id == 0 {
            if increment == 0 {
                return Err(Http2Error::protocol("WINDOW_UPDATE by nothing"));
            }
            if !self.send_window.change(i64::from(increment)) {
                let text = "the window of the connection is too large";
                return Err(Http2Error::new(codes::FLOW_CONTROL_ERROR, text));
            }
            self.start_turn();
            return Ok(());
        }
        let Some(place) = self.streams.find(id) else {
            return match increment {
                0 => Err(Http2Error::protocol("WINDOW_UPDATE by nothing")),
                _ => self.check_opened(id),
            };
        };
        let stream = &mut self.streams[place];
        if increment == 0 {
            self.break_stream(place, codes::PROTOCOL_ERROR, "WINDOW_UPDATE by nothing");
        } else if !stream.send_window.change(i64::from(increment)) {
            self.break_stream(place, codes::FLOW_CONTROL_ERROR, "the window of the stream is too large");
        } else {
            stream.writer.iter().for_each(Waker::wake_by_ref);
        }
        Ok(())
    }
}
