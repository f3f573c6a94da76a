//! From a field section, content and trailers to the bytes of an HTTP/1 message.

use std::io::Write as _;

use polygraph_wire::body::parse_decimal;
use polygraph_wire::head::write_field;

use super::fields::{NameKind, ReceivedField, check, may_trail};
use super::{MessageError, ReplyTo};

/// The form of a request target (RFC 9112, section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// The path alone, as servers receive it.
    #[default]
    Origin,
    /// The whole URL, as forward proxies receive it.
    Absolute,
}

/// How the content reaches the HTTP/1 side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// No content may follow.
    None,
    /// So many more bytes, as `Content-Length` says.
    Length(u64),
    /// Any number of bytes, each piece as a chunk.
    Chunks,
    /// The bytes of a tunnel.
    Tunnel,
}

/// Puts a message together while it arrives. The caller first passes its field section, then its content, then its end.
#[derive(Debug)]
pub struct IncomingMessage {
    content: Content,
}

/// What [`IncomingMessage::content`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The content is part of the HTTP/1 message as it is.
    AsIs,
    /// The content was appended as a chunk.
    Framed,
}

impl IncomingMessage {
    /// Ends a head whose content arrives in this way.
    pub(super) fn start(
        content: Content,
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<IncomingMessage, MessageError> {
        if content == Content::Chunks {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        out.extend_from_slice(b"\r\n");
        let mut message = IncomingMessage { content };
        if is_last {
            message.end(std::iter::empty(), out)?;
        }
        Ok(message)
    }

    /// Takes a piece of the content. If it needs framing, appends it to `out` as a chunk.
    ///
    /// # Errors
    /// If the message cannot have so much content.
    pub fn content(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<Placed, MessageError> {
        match &mut self.content {
            Content::Tunnel => Ok(Placed::AsIs),
            Content::None if data.is_empty() => Ok(Placed::AsIs),
            Content::None => Err(MessageError::Content),
            Content::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(MessageError::Length)?;
                Ok(Placed::AsIs)
            }
            Content::Chunks => {
                // An empty chunk would end the message.
                if !data.is_empty() {
                    let _ = write!(out, "{:x}\r\n", data.len());
                    out.extend_from_slice(data);
                    out.extend_from_slice(b"\r\n");
                }
                Ok(Placed::Framed)
            }
        }
    }

    /// Ends the message, and appends what ends it to `out`. Trailers cross only behind chunks: behind a length or in a message
    /// without content they are dropped (RFC 9110, section 6.5.1).
    ///
    /// # Errors
    /// If content is missing, or if the trailers are malformed.
    pub fn end<'a>(
        &mut self,
        trailers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), MessageError> {
        match std::mem::replace(&mut self.content, Content::None) {
            Content::Length(left) if left > 0 => return Err(MessageError::Length),
            Content::None | Content::Length(_) | Content::Tunnel => {
                for (name, value) in trailers {
                    check(name, value)?;
                }
            }
            Content::Chunks => {
                out.extend_from_slice(b"0\r\n");
                for (name, value) in trailers {
                    check(name, value)?;
                    if std::str::from_utf8(name).is_ok_and(may_trail) {
                        write_field(name, value, out);
                    }
                }
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }

    /// Whether the HTTP/1 side has the whole message, although its end may not have arrived yet.
    pub fn is_complete(&self) -> bool {
        matches!(self.content, Content::None | Content::Length(0))
    }

    /// Whether the HTTP/1 side sees the end of the message only at the end of its connection.
    pub fn ends_at_close(&self) -> bool {
        self.content == Content::Tunnel
    }
}

impl Content {
    pub(super) fn of_request(length: Option<u64>, is_connect: bool, is_last: bool) -> Content {
        match length {
            _ if is_connect => Content::Tunnel,
            Some(length) => Content::Length(length),
            None if is_last => Content::None,
            None => Content::Chunks,
        }
    }

    pub(super) fn of_reply(length: Option<u64>, status: u16, to: ReplyTo) -> Content {
        match (length, to) {
            (_, ReplyTo::Connect) if status < 300 => Content::Tunnel,
            (_, ReplyTo::Head) => Content::None,
            _ if matches!(status, 204 | 304) => Content::None,
            (Some(length), _) => Content::Length(length),
            (None, _) => Content::Chunks,
        }
    }
}

/// Whether a final reply has no use for a `Content-Length`.
pub(super) fn drops_length(status: u16, to: ReplyTo) -> bool {
    status == 204 || to == ReplyTo::Connect && status < 300
}

/// Whether a final reply follows. A switch of protocols has no place on a stream (RFC 9113, section 8.6).
pub(super) fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != 101
}

/// Writes the status line for a status, which has three digits.
pub(super) fn write_status_line(status: &[u8; 3], out: &mut Vec<u8>) {
    let [a, b, c] = *status;
    // Multiplexed protocols have no reason phrases.
    out.extend_from_slice(&[
        b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b' ', a, b, c, b' ', b'\r', b'\n',
    ]);
}

/// The fields of a head that are more than lines.
#[derive(Debug, Default)]
pub(super) struct FieldLines {
    length: Option<u64>,
    /// Whether a `Content-Length` must not cross.
    drops_length: bool,
    /// Cookies may come in pieces, which belong together (RFC 9113, section 8.2.3).
    cookies: Option<Vec<u8>>,
}

impl FieldLines {
    pub(super) fn new(drops_length: bool) -> FieldLines {
        FieldLines { drops_length, ..FieldLines::default() }
    }

    /// Takes a field. Returns whether its line follows now.
    pub(super) fn take(&mut self, field: &ReceivedField<'_>) -> Result<bool, MessageError> {
        field.check()?;
        match field.kind {
            NameKind::Length => {
                if self.drops_length {
                    return Ok(false);
                }
                let length = parse_decimal(field.value).ok_or(MessageError::Length)?;
                match self.length {
                    Some(known) if known == length => return Ok(false),
                    Some(_) => return Err(MessageError::Length),
                    None => self.length = Some(length),
                }
            }
            NameKind::Cookie => {
                match &mut self.cookies {
                    Some(cookies) => {
                        cookies.extend_from_slice(b"; ");
                        cookies.extend_from_slice(field.value);
                    }
                    none => *none = Some(field.value.to_vec()),
                }
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Writes what is left, and returns the length of the content.
    pub(super) fn end(self, out: &mut Vec<u8>) -> Option<u64> {
        if let Some(cookies) = self.cookies {
            write_field(b"cookie", &cookies, out);
        }
        self.length
    }
}
