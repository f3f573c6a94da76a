//! Field sections of requests and replies, as HEADERS frames.

use polygraph_multiplex::message::outgoing::{FieldSection, Start};
use polygraph_multiplex::message::request::{FieldName, FieldSink, RequestFields, RequestLine};
use polygraph_multiplex::message::{MessageError, ReplyTo};

use crate::http3::frames::put_headers;
use crate::http3::qpack;
use crate::http3::static_table::usual;
use crate::session::Buffers;

/// A field section that is being put together.
struct Section<'a> {
    out: &'a mut Vec<u8>,
    /// The size as RFC 9114, section 4.2.2, counts it.
    size: usize,
}

impl Section<'_> {
    #[inline]
    fn count(&mut self, name: &str, value: &[u8]) {
        self.size += name.len() + value.len() + qpack::OVERHEAD;
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        self.count(name, value);
        qpack::put_field(name, value, self.out);
    }

    /// Adds the pseudo-header fields of a request. What nearly all requests have is not searched for.
    fn start(&mut self, line: &RequestLine<'_>, scheme: &str) {
        let pseudo: [(&str, &[u8]); 4] = [
            (":method", line.method.as_bytes()),
            (":scheme", scheme.as_bytes()),
            (":authority", line.authority.as_bytes()),
            (":path", line.path),
        ];
        for (name, value) in pseudo {
            self.count(name, value);
            match (name, value) {
                (":method", b"GET") => qpack::put_entry(usual::GET, self.out),
                (":scheme", b"https") => qpack::put_entry(usual::HTTPS, self.out),
                (":authority", [_, ..]) => qpack::put_named(usual::AUTHORITY, value, self.out),
                (":path", [_, _, ..]) => qpack::put_named(usual::PATH, value, self.out),
                _ => qpack::put_field(name, value, self.out),
            }
        }
    }

    /// Checks that the peer accepts so large a section.
    fn check(&self, limit: u64) -> Result<(), MessageError> {
        if self.size as u64 > limit { Err(MessageError::HeadTooLarge) } else { Ok(()) }
    }
}

impl FieldSink for Section<'_> {
    fn put(&mut self, name: &FieldName, value: &[u8]) {
        match name.unlisted() {
            Some(name) => {
                self.count(name, value);
                qpack::put_unlisted(name, value, self.out);
            }
            None => self.add(name.text, value),
        }
    }
}

/// Appends a HEADERS frame with the field section. Returns, for a request, what its reply depends on.
pub(super) fn encode(
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
pub(super) fn encode_request(
    line: &RequestLine<'_>,
    (scheme, limit): (&str, u64),
    Buffers { frames, value, .. }: &mut Buffers,
    pass: impl FnOnce(&mut RequestFields<'_>),
) -> Result<usize, MessageError> {
    put_headers(frames, |out| {
        let mut section = Section { out, size: 0 };
        section.start(line, scheme);
        let mut fields = RequestFields::new(line, &mut section, value);
        pass(&mut fields);
        let size = fields.end()?;
        section.check(limit)?;
        Ok(size)
    })
}

#[cfg(test)]
#[path = "section_tests.rs"]
mod tests;
