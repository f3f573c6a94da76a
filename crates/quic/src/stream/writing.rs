//! The sending side of a stream: parts of an HTTP/1 message become frames, which wait until the connection takes them.

use std::io::{self, IoSlice};
use std::rc::Rc;

use bytes::Bytes;
use polygraph_multiplex::message::ReplyTo;
use polygraph_multiplex::message::request::{RequestFields, RequestLine};
use polygraph_multiplex::{Fault, FaultKind};
use quinn_proto::{VarInt, WriteError};

use super::section::{encode, encode_request};
use super::{Arrival, Http3Stream};
use crate::http3::frames::{kind, put_headers};
use crate::http3::{codes, qpack};

/// The most content in one DATA frame, and the most that a call of [`Conn::try_send`](polygraph_link::Conn::try_send) takes.
const MOST_CONTENT: usize = 64 * 1024;

/// The header of a DATA frame, whose last four bytes become the size.
const DATA_HEADER: [u8; 5] = [kind::DATA as u8, 0, 0, 0, 0];

/// Room for the headers of frames of a usual message, in bytes.
const USUAL_FRAMING: usize = 64;

impl Http3Stream {
    /// Sends bytes that wait. Returns whether all of them are sent.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
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
    pub(super) fn finish_if_done(&mut self) {
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
    /// As [`Conn::try_send`](polygraph_link::Conn::try_send).
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
    pub(super) fn take(&mut self, parts: &[IoSlice<'_>], mut skip: usize) -> io::Result<usize> {
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
}

fn stopped(code: VarInt) -> io::Error {
    let code = code.into_inner();
    let kind = if code == codes::H3_REQUEST_REJECTED { FaultKind::Refused } else { FaultKind::Reset };
    Fault::new(kind, format!("STOP_SENDING {}", codes::name(code))).into()
}
