//! From the bytes of an HTTP/1 message to a field section, content and trailers.

use std::borrow::Cow;

use polygraph_wire::body::{self, BodyReader};
use polygraph_wire::head::{self, HeadError, Header, is_named};
use polygraph_wire::{parse_reply, parse_request, uri};

use super::fields::{crossing, may_trail};
use super::{MessageError, ReplyTo};

/// The largest head of a message, in bytes.
pub const MAX_HEAD: usize = 64 * 1024;

/// The start of a field section: the pseudo-header fields (RFC 9113, section 8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// Those of a request.
    Request {
        /// `:method`.
        method: &'a str,
        /// `:scheme`; `None` for `CONNECT`.
        scheme: Option<&'a str>,
        /// `:authority`, if the message names one.
        authority: Option<&'a str>,
        /// `:path`; `None` for `CONNECT`.
        path: Option<Cow<'a, str>>,
    },
    /// That of a reply.
    Reply {
        /// `:status`.
        status: u16,
    },
}

/// The field section of a request or a reply.
#[derive(Debug)]
pub struct FieldSection<'a> {
    /// The pseudo-header fields.
    pub start: Start<'a>,
    /// Whether nothing follows: neither content nor trailers, nor a final reply.
    pub is_last: bool,
    /// The head in its HTTP/1 form: the names and values of [`FieldSection::fields`] are parts of it.
    pub head: &'a [u8],
    headers: &'a [Header<'a>],
    /// Whether a `Content-Length` must not cross.
    drops_length: bool,
}

impl<'a> FieldSection<'a> {
    /// The fields in order: names as the message spells them, which must be sent in lower case, and values without white
    /// space around them.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        crossing(self.headers)
            .filter(|field| !(self.drops_length && is_named(field.name, "Content-Length")))
            .map(|field| (field.name, field.value.trim_ascii()))
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A request, with the scheme of a target that names none.
    Request(&'static str),
    Reply(ReplyTo),
}

#[derive(Debug)]
enum State {
    Head,
    Body(BodyReader),
    /// The bytes of a tunnel.
    Tunnel,
    Done,
}

/// Takes a message apart while it is written. The caller passes its bytes to [`OutgoingMessage::take_head`] until there is a
/// head (replies may have several), then to [`OutgoingMessage::take_content`].
#[derive(Debug)]
pub struct OutgoingMessage {
    kind: Kind,
    state: State,
    /// The start of a head that was written in pieces.
    stash: Vec<u8>,
    /// The field lines after the last chunk.
    trailer: Vec<u8>,
}

impl OutgoingMessage {
    /// A request. `scheme` is that of the connection, `http` or `https`; an absolute target names its own.
    pub fn request(scheme: &'static str) -> OutgoingMessage {
        OutgoingMessage::new(Kind::Request(scheme))
    }

    /// A reply to such a request.
    pub fn reply(to: ReplyTo) -> OutgoingMessage {
        OutgoingMessage::new(Kind::Reply(to))
    }

    fn new(kind: Kind) -> OutgoingMessage {
        OutgoingMessage { kind, state: State::Head, stash: Vec::new(), trailer: Vec::new() }
    }

    /// The scheme of a request of which nothing was taken yet, which will be sent without its HTTP/1 form: this message is then done.
    /// `None` if there is no such request.
    pub fn give_up_request(&mut self) -> Option<&'static str> {
        match (self.kind, &self.state) {
            (Kind::Request(scheme), State::Head) if self.stash.is_empty() => {
                self.state = State::Done;
                Some(scheme)
            }
            _ => None,
        }
    }

    /// Whether a head comes next.
    pub fn expects_head(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// Whether the message is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes bytes of a head. Once it is complete, passes its field section to `then`. Returns the number of bytes that belong
    /// to the head, and what `then` returned.
    ///
    /// # Errors
    /// If the bytes are not the head of an HTTP/1 message; the message must then be given up.
    pub fn take_head<R>(
        &mut self,
        data: &[u8],
        then: impl FnOnce(&FieldSection<'_>) -> R,
    ) -> Result<(usize, Option<R>), MessageError> {
        let kind = self.kind;
        if self.stash.is_empty() {
            // Nearly all heads are written at once, and are read where they are.
            return match read_head(kind, data, then)? {
                Some((len, next, result)) => {
                    self.state = next;
                    Ok((len, Some(result)))
                }
                None => self.keep(data).map(|()| (data.len(), None)),
            };
        }
        let earlier = self.stash.len();
        self.keep(data)?;
        match read_head(kind, &self.stash, then)? {
            Some((len, next, result)) => {
                self.state = next;
                self.stash.clear();
                Ok((len.saturating_sub(earlier), Some(result)))
            }
            None => Ok((data.len(), None)),
        }
    }

    fn keep(&mut self, data: &[u8]) -> Result<(), MessageError> {
        if self.stash.len() + data.len() > MAX_HEAD {
            return Err(MessageError::HeadTooLarge);
        }
        self.stash.extend_from_slice(data);
        Ok(())
    }

    /// Takes bytes after the head, and passes the content among them to `content`. Returns the number of bytes that belong to
    /// the message. When the message is done, see [`OutgoingMessage::is_done`], its trailers are known.
    ///
    /// # Errors
    /// If bytes follow the end of the message, or if its chunks are broken; the message must then be given up.
    pub fn take_content(
        &mut self,
        data: &[u8],
        mut content: impl FnMut(&[u8]),
    ) -> Result<usize, MessageError> {
        match &mut self.state {
            State::Head => Err(MessageError::Malformed),
            State::Done if data.is_empty() => Ok(0),
            State::Done => Err(MessageError::Excess),
            State::Tunnel => {
                content(data);
                Ok(data.len())
            }
            State::Body(reader) => {
                let trailer = &mut self.trailer;
                let fed = reader
                    .feed_with_trailer(data, content, |byte| trailer.push(byte))
                    .map_err(|_| MessageError::Malformed)?;
                if fed.done {
                    self.state = State::Done;
                }
                Ok(fed.consumed)
            }
        }
    }

    /// Whether the complete message has trailers.
    pub fn has_trailers(&self) -> bool {
        self.trailer.len() > 2
    }

    /// Passes the trailers to `each`: names as the message spells them, and values. Fields that must not be in a trailer are left
    /// out.
    ///
    /// # Errors
    /// If the lines are not field lines.
    pub fn trailers(&self, mut each: impl FnMut(&str, &[u8])) -> Result<(), MessageError> {
        let read = head::parse_fields(&self.trailer, |fields| {
            fields
                .iter()
                .filter(|field| may_trail(field.name))
                .for_each(|field| each(field.name, field.value.trim_ascii()));
        });
        read.ok().flatten().ok_or(MessageError::Malformed)
    }

    /// Ends the message. Returns whether the end must still be announced: that of a message which only the end of its connection
    /// would end.
    ///
    /// # Errors
    /// If more of the message was announced than was written.
    pub fn finish(&mut self) -> Result<bool, MessageError> {
        let is_open = match &self.state {
            State::Done => false,
            State::Tunnel => true,
            State::Body(reader) if reader.ends_at_close() => true,
            State::Head | State::Body(_) => return Err(MessageError::Incomplete),
        };
        self.state = State::Done;
        Ok(is_open)
    }
}

/// Reads a head, if it is complete: its length, what follows, and what `then` made of its field section.
fn read_head<R>(
    kind: Kind,
    data: &[u8],
    then: impl FnOnce(&FieldSection<'_>) -> R,
) -> Result<Option<(usize, State, R)>, MessageError> {
    let failed = |error| match error {
        HeadError::Malformed | HeadError::TooManyHeaders => MessageError::Malformed,
    };
    match kind {
        Kind::Request(scheme) => {
            let read = parse_request(data, |request| {
                let state = match request.method {
                    "CONNECT" => State::Tunnel,
                    _ => after(BodyReader::new(
                        body::request_framing(request).map_err(|_| MessageError::Malformed)?,
                    )),
                };
                let section = FieldSection {
                    start: request_start(request.method, request.target, request.headers, scheme)?,
                    is_last: matches!(state, State::Done),
                    head: &data[..request.len],
                    headers: request.headers,
                    drops_length: request.method == "CONNECT",
                };
                Ok((request.len, state, then(&section)))
            });
            read.map_err(failed)?.transpose()
        }
        Kind::Reply(to) => {
            let read = parse_reply(data, |reply| {
                let status = reply.status;
                let state = match (status, to) {
                    // A switch of protocols has no place on a stream (RFC 9113, section 8.6).
                    (101, _) | (0..100, _) => return Err(MessageError::Malformed),
                    (100..200, _) => State::Head,
                    (200..300, ReplyTo::Connect) => State::Tunnel,
                    _ => {
                        let framing = body::reply_framing(reply, to == ReplyTo::Head);
                        after(BodyReader::new(framing.map_err(|_| MessageError::Malformed)?))
                    }
                };
                let section = FieldSection {
                    start: Start::Reply { status },
                    is_last: matches!(state, State::Done),
                    head: &data[..reply.len],
                    headers: reply.headers,
                    drops_length: status < 200 || status == 204 || matches!(state, State::Tunnel),
                };
                Ok((reply.len, state, then(&section)))
            });
            read.map_err(failed)?.transpose()
        }
    }
}

fn after(reader: BodyReader) -> State {
    if reader.is_done() { State::Done } else { State::Body(reader) }
}

/// The pseudo-header fields of a request (RFC 9113, section 8.3.1).
fn request_start<'a>(
    method: &'a str,
    target: &'a str,
    headers: &[Header<'a>],
    scheme: &'a str,
) -> Result<Start<'a>, MessageError> {
    if method == "CONNECT" {
        return Ok(Start::Request { method, scheme: None, authority: Some(target), path: None });
    }
    let text = |bytes| head::text(bytes).ok_or(MessageError::Pseudo(":authority"));
    let host = || {
        let host = headers.iter().find(|field| is_named(field.name, "Host"));
        host.map(|field| text(field.value.trim_ascii())).transpose()
    };
    if target.starts_with('/') || target == "*" {
        return Ok(Start::Request {
            method,
            scheme: Some(scheme),
            authority: host()?,
            path: Some(target.into()),
        });
    }
    // An authority in the target overrides that of `Host` (RFC 9112, section 3.2.2).
    let parts = uri::split(target.as_bytes()).ok_or(MessageError::Pseudo(":path"))?;
    let path: Cow<'_, str> = match text(parts.path)? {
        "" if method == "OPTIONS" => "*".into(),
        path if path.starts_with('/') => path.into(),
        path => format!("/{path}").into(),
    };
    Ok(Start::Request {
        method,
        scheme: Some(text(parts.scheme)?),
        authority: Some(text(parts.authority)?),
        path: Some(path),
    })
}
