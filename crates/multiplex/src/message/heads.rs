//! Heads of HTTP/1 messages that are written while the fields of a section are decoded, one by one, so that no field is kept.

use polygraph_wire::head::{HeadIndex, is_target, write_field};

use super::fields::{NameKind, ReceivedField, check_value, is_token};
use super::incoming::{
    Content, FieldLines, IncomingMessage, TargetForm, drops_length, is_interim, write_status_line,
};
use super::{MessageError, ReplyTo};

/// The pseudo-header fields of a request (RFC 9113, section 8.3.1).
#[derive(Clone, Copy, Debug)]
struct RequestStart<'a> {
    method: &'a [u8],
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
}

/// The head of a request.
#[derive(Debug)]
pub struct RequestHeadWriter<'a> {
    form: TargetForm,
    /// The values of the pseudo-header fields.
    text: &'a mut Vec<u8>,
    /// Where the values of `:method`, `:scheme`, `:authority` and `:path` are.
    pseudo: [Option<(usize, usize)>; 4],
    /// What follows the pseudo-header fields, once there is something.
    lines: Option<RequestLines>,
    failure: Option<MessageError>,
}

/// The names of the pseudo-header fields of requests.
const PSEUDO: [&str; 4] = [":method", ":scheme", ":authority", ":path"];

#[derive(Debug)]
struct RequestLines {
    fields: FieldLines,
    is_connect: bool,
    /// Where the target is in the head.
    target: (usize, usize),
    /// The host, if only a field names it.
    host: Option<Vec<u8>>,
}

impl<'a> RequestHeadWriter<'a> {
    /// A head whose target gets this form. `memory` is for the time until the head ends.
    pub fn new(form: TargetForm, memory: &'a mut Vec<u8>) -> RequestHeadWriter<'a> {
        memory.clear();
        RequestHeadWriter { form, text: memory, pseudo: [None; 4], lines: None, failure: None }
    }

    /// Takes the next field, and appends what it is in the head to `out`.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.received(&ReceivedField::new(name, value), out);
    }

    /// As [`RequestHeadWriter::field`].
    #[inline]
    pub fn received(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) {
        if self.failure.is_none() {
            self.failure = self.put(field, out).err();
        }
    }

    fn put(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if field.kind == NameKind::Pseudo {
            let place = match field.name {
                b":method" => 0,
                b":scheme" => 1,
                b":authority" => 2,
                b":path" => 3,
                _ => return Err(MessageError::Pseudo("of an unknown name")),
            };
            if self.lines.is_some() || self.pseudo[place].is_some() {
                return Err(MessageError::Pseudo(PSEUDO[place]));
            }
            let start = self.text.len();
            self.text.extend_from_slice(field.value);
            self.pseudo[place] = Some((start, self.text.len()));
            return Ok(());
        }
        self.begin(out)?;
        if field.kind == NameKind::Host {
            field.check()?;
            return self.host(field.value, out);
        }
        if let Some(lines) = &mut self.lines
            && (field.is_plain() || lines.fields.take(field)?)
        {
            write_field(field.name, field.value, out);
        }
        Ok(())
    }

    fn start(&self) -> RequestStart<'_> {
        let [method, scheme, authority, path] =
            self.pseudo.map(|part| part.map(|(start, end)| &self.text[start..end]));
        RequestStart { method: method.unwrap_or_default(), scheme, authority, path }
    }

    /// Writes the request line, if that was not done.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.lines.is_some() {
            return Ok(());
        }
        let start = self.start();
        if !is_token(start.method) {
            return Err(MessageError::Pseudo(":method"));
        }
        check_target(start.authority.unwrap_or_default(), ":authority")?;
        out.extend_from_slice(start.method);
        out.push(b' ');
        let (target, is_connect) = (out.len(), start.method == b"CONNECT");
        match is_connect {
            true => write_connect_target(&start, start.authority, out)?,
            false => write_target(&start, start.authority, self.form, out)?,
        }
        let target = (target, out.len());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        if let Some(authority) = start.authority {
            write_field(b"Host", authority, out);
        }
        self.lines =
            Some(RequestLines { fields: FieldLines::new(is_connect), is_connect, target, host: None });
        Ok(())
    }

    /// A field `host` must be the same as `:authority`, or takes its place.
    fn host(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<(), MessageError> {
        let start = self.start();
        let known = start.authority.or(self.lines.as_ref().and_then(|lines| lines.host.as_deref()));
        match known {
            Some(known) if known.eq_ignore_ascii_case(value) => return Ok(()),
            Some(_) => return Err(MessageError::Host),
            None => check_target(value, ":authority")?,
        }
        let is_asterisk = start.path == Some(b"*");
        let prefix = [start.scheme.unwrap_or_default(), b"://", value].concat();
        let Some(lines) = &mut self.lines else { return Ok(()) };
        write_field(b"Host", value, out);
        lines.host = Some(value.to_vec());
        if self.form == TargetForm::Absolute && !value.is_empty() {
            let (start, end) = lines.target;
            out.splice(start..if is_asterisk { end } else { start }, prefix);
        }
        Ok(())
    }

    /// Ends the head. `is_last` means that nothing follows the field section. Returns what the reply depends on, too.
    ///
    /// # Errors
    /// If the request is malformed (RFC 9113, section 8.1.1); `out` must then be given up.
    pub fn end(
        mut self,
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(IncomingMessage, ReplyTo), MessageError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.begin(out)?;
        let to = ReplyTo::method(std::str::from_utf8(self.start().method).unwrap_or_default());
        let Some(lines) = self.lines else { return Err(MessageError::Incomplete) };
        let length = lines.fields.end(out);
        let content = Content::of_request(length, lines.is_connect, is_last);
        Ok((IncomingMessage::start(content, is_last, out)?, to))
    }
}

/// The head of a reply.
#[derive(Debug)]
pub struct ReplyHeadWriter<'a> {
    to: ReplyTo,
    /// Gets to know where the fields are.
    index: Option<&'a mut HeadIndex>,
    status: Option<u16>,
    fields: FieldLines,
    failure: Option<MessageError>,
}

impl<'a> ReplyHeadWriter<'a> {
    /// The head of the reply to such a request. `index` is completed if the head is that of a final reply in a usual form; otherwise it stays
    /// without effect.
    pub fn new(to: ReplyTo, index: Option<&'a mut HeadIndex>) -> ReplyHeadWriter<'a> {
        ReplyHeadWriter { to, index, status: None, fields: FieldLines::default(), failure: None }
    }

    /// Takes the next field, and appends what it is in the head to `out`.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.received(&ReceivedField::new(name, value), out);
    }

    /// As [`ReplyHeadWriter::field`].
    #[inline]
    pub fn received(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) {
        if self.failure.is_none() && self.status.is_some() && field.is_plain() {
            self.write(field, out);
        } else if self.failure.is_none() {
            self.failure = self.put(field, out).err();
        }
    }

    #[inline]
    fn write(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) {
        if let Some(index) = &mut self.index {
            index.add(out.len(), field.name.len(), field.value.len());
        }
        write_field(field.name, field.value, out);
    }

    #[inline(never)]
    fn put(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if field.kind == NameKind::Pseudo || self.status.is_none() {
            return self.begin(field, out);
        }
        if self.fields.take(field)? {
            self.write(field, out);
        }
        Ok(())
    }

    /// Writes the status line.
    fn begin(&mut self, field: &ReceivedField<'_>, out: &mut Vec<u8>) -> Result<(), MessageError> {
        let digits = match (field.name, field.value.as_array()) {
            (b":status", Some(digits @ [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'])) if self.status.is_none() => {
                digits
            }
            _ => return Err(MessageError::Pseudo(":status")),
        };
        let status = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
        if status < 200 && !is_interim(status) {
            return Err(MessageError::Pseudo(":status"));
        }
        self.status = Some(status);
        self.fields = FieldLines::new(status < 200 || drops_length(status, self.to));
        write_status_line(digits, out);
        Ok(())
    }

    /// Ends the head. `is_last` means that nothing follows the field section. Returns the message of a final reply, `None` for an interim
    /// one.
    ///
    /// # Errors
    /// If the reply is malformed (RFC 9113, section 8.1.1); `out` must then be given up.
    pub fn end(self, is_last: bool, out: &mut Vec<u8>) -> Result<Option<IncomingMessage>, MessageError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let status = self.status.ok_or(MessageError::Pseudo(":status"))?;
        let before = out.len();
        let length = self.fields.end(out);
        if status < 200 {
            out.extend_from_slice(b"\r\n");
            if let Some(index) = self.index {
                index.clear();
            }
            return if is_last { Err(MessageError::Incomplete) } else { Ok(None) };
        }
        let message = IncomingMessage::start(Content::of_reply(length, status, self.to), is_last, out)?;
        // Other lines are rare.
        if let Some(index) = self.index.filter(|_| out.len() == before + "\r\n".len()) {
            index.end(out.len());
        }
        Ok(Some(message))
    }
}

/// Checks a part of a request target, which must not end the request line.
fn check_target(part: &[u8], name: &'static str) -> Result<(), MessageError> {
    if is_target(part) {
        return Ok(());
    }
    check_value(part).map_err(|_| MessageError::Pseudo(name))?;
    // HTTP/1 servers read the target as text.
    let is_bad = part.iter().any(|b| matches!(b, b' ' | b'\t')) || std::str::from_utf8(part).is_err();
    if is_bad { Err(MessageError::Pseudo(name)) } else { Ok(()) }
}

/// The target of CONNECT (RFC 9113, section 8.5).
fn write_connect_target(
    start: &RequestStart<'_>,
    authority: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), MessageError> {
    if start.scheme.is_some() || start.path.is_some() {
        return Err(MessageError::Pseudo(":path"));
    }
    let target = authority.filter(|authority| !authority.is_empty());
    out.extend_from_slice(target.ok_or(MessageError::Pseudo(":authority"))?);
    Ok(())
}

/// The target of a request with another method.
fn write_target(
    start: &RequestStart<'_>,
    authority: Option<&[u8]>,
    form: TargetForm,
    out: &mut Vec<u8>,
) -> Result<(), MessageError> {
    let scheme = start.scheme.ok_or(MessageError::Pseudo(":scheme"))?;
    let is_scheme_byte = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) || !scheme.iter().all(is_scheme_byte) {
        return Err(MessageError::Pseudo(":scheme"));
    }
    let path = start.path.ok_or(MessageError::Pseudo(":path"))?;
    check_target(path, ":path")?;
    let is_asterisk = path == b"*" && start.method == b"OPTIONS";
    if !path.starts_with(b"/") && !is_asterisk {
        return Err(MessageError::Pseudo(":path"));
    }
    if form == TargetForm::Absolute
        && let Some(authority) = authority.filter(|authority| !authority.is_empty())
    {
        out.extend_from_slice(scheme);
        out.extend_from_slice(b"://");
        out.extend_from_slice(authority);
        if is_asterisk {
            return Ok(());
        }
    }
    out.extend_from_slice(path);
    Ok(())
}

#[cfg(test)]
#[path = "heads_tests.rs"]
mod tests;
