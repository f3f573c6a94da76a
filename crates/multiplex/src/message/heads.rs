//! Heads of HTTP/1 messages that are written while the fields of a section are decoded, one by one, so that no field is kept.

use super::fields::{check, is_token};
use super::incoming::{
    Content, FieldLines, IncomingMessage, RequestStart, TargetForm, check_target, drops_length, is_interim,
    write_connect_target, write_field, write_status_line, write_target,
};
use super::{MessageError, ReplyTo};

/// The head of a request.
#[derive(Debug)]
pub struct RequestHeadWriter {
    form: TargetForm,
    /// The values of the pseudo-header fields.
    text: Vec<u8>,
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

impl RequestHeadWriter {
    /// A head whose target gets this form.
    pub fn new(form: TargetForm) -> RequestHeadWriter {
        RequestHeadWriter { form, text: Vec::new(), pseudo: [None; 4], lines: None, failure: None }
    }

    /// Takes the next field, and appends what it is in the head to `out`.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        if self.failure.is_none() {
            self.failure = self.put(name, value, out).err();
        }
    }

    fn put(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), MessageError> {
        if name.first() == Some(&b':') {
            let place = PSEUDO.iter().position(|known| known.as_bytes() == name);
            let place = place.ok_or(MessageError::Pseudo("of an unknown name"))?;
            if self.lines.is_some() || self.pseudo[place].is_some() {
                return Err(MessageError::Pseudo(PSEUDO[place]));
            }
            let start = self.text.len();
            self.text.extend_from_slice(value);
            self.pseudo[place] = Some((start, self.text.len()));
            return Ok(());
        }
        self.begin(out)?;
        if name == b"host" {
            check(name, value)?;
            return self.host(value, out);
        }
        self.lines.as_mut().map_or(Ok(()), |lines| lines.fields.put(name, value, out))
    }

    fn start(&self) -> RequestStart<'_> {
        let [method, scheme, authority, path] =
            self.pseudo.map(|part| part.map(|(start, end)| &self.text[start..end]));
        RequestStart { method: method.unwrap_or_default(), scheme, authority, path, host: None }
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
        let (is_asterisk, prefix) =
            (start.path == Some(b"*"), [start.scheme.unwrap_or_default(), b"://", value].concat());
        let known = start.authority.or(self.lines.as_ref().and_then(|lines| lines.host.as_deref()));
        match known {
            Some(known) if known.eq_ignore_ascii_case(value) => return Ok(()),
            Some(_) => return Err(MessageError::Host),
            None => check_target(value, ":authority")?,
        }
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
pub struct ReplyHeadWriter {
    to: ReplyTo,
    status: Option<u16>,
    fields: FieldLines,
    failure: Option<MessageError>,
}

impl ReplyHeadWriter {
    /// The head of the reply to such a request.
    pub fn new(to: ReplyTo) -> ReplyHeadWriter {
        ReplyHeadWriter { to, status: None, fields: FieldLines::default(), failure: None }
    }

    /// Takes the next field, and appends what it is in the head to `out`.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        if self.failure.is_none() {
            self.failure = self.put(name, value, out).err();
        }
    }

    fn put(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), MessageError> {
        if name.first() != Some(&b':') && self.status.is_some() {
            return self.fields.put(name, value, out);
        }
        let status = match (name, value) {
            (b":status", [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']) if self.status.is_none() => {
                [a, b, c].iter().fold(0, |number, digit| number * 10 + u16::from(**digit - b'0'))
            }
            _ => return Err(MessageError::Pseudo(":status")),
        };
        if status < 200 && !is_interim(status) {
            return Err(MessageError::Pseudo(":status"));
        }
        self.status = Some(status);
        self.fields = FieldLines::new(status < 200 || drops_length(status, self.to));
        write_status_line(status, out);
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
        let length = self.fields.end(out);
        if status < 200 {
            out.extend_from_slice(b"\r\n");
            return if is_last { Err(MessageError::Incomplete) } else { Ok(None) };
        }
        IncomingMessage::start(Content::of_reply(length, status, self.to), is_last, out).map(Some)
    }
}

#[cfg(test)]
#[path = "heads_tests.rs"]
mod tests;
