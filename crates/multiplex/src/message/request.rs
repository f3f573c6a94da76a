//! Requests whose fields are passed on one by one, so that they need no HTTP/1 form.

use super::MessageError;
use super::fields::check_value;
use crate::http2::hpack::names::{self, Name};

/// The name of a field, with what is known about it when the program is compiled.
#[derive(Debug)]
pub struct FieldName {
    /// The name, in any case.
    pub text: &'static str,
    /// What HPACK knows about it.
    pub(crate) known: Option<Name>,
}

impl FieldName {
    /// A name, which must be a token. It should be a constant: the search for it is slow.
    pub const fn new(text: &'static str) -> FieldName {
        FieldName { text, known: names::search(text) }
    }

    /// The name in lower case, if it is known to be in no static table: names of the benchmark's own fields, for example.
    pub fn unlisted(&self) -> Option<&'static str> {
        self.known.filter(|name| name.number == 0).map(|name| name.text)
    }
}

/// A request without content for a resource of the server, apart from its fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// The method, which must not be `CONNECT`.
    pub method: &'static str,
    /// The host, as in the field `Host`.
    pub authority: &'a str,
    /// The path, which begins with a slash and has visible characters only.
    pub path: &'a [u8],
}

impl RequestLine<'_> {
    /// The size of the line in HTTP/1.
    fn size(&self) -> usize {
        self.method.len() + " ".len() + self.path.len() + " HTTP/1.1\r\n".len()
    }
}

/// Takes the fields of a request.
pub trait FieldSink {
    /// Takes a field.
    fn put(&mut self, name: &FieldName, value: &[u8]);
}

/// The fields of a request that is being sent.
pub struct RequestFields<'a> {
    sink: &'a mut dyn FieldSink,
    value: &'a mut Vec<u8>,
    size: usize,
    failure: Option<MessageError>,
}

impl<'a> RequestFields<'a> {
    /// The fields of a request, which `sink` takes. `memory` is for their values.
    pub fn new(
        line: &RequestLine<'_>,
        sink: &'a mut dyn FieldSink,
        memory: &'a mut Vec<u8>,
    ) -> RequestFields<'a> {
        RequestFields { sink, value: memory, size: line.size(), failure: None }
    }

    /// Adds a field that is neither `Host` nor about the connection. `write` appends its value.
    #[inline]
    pub fn add(&mut self, name: &FieldName, write: impl FnOnce(&mut Vec<u8>)) {
        self.value.clear();
        write(self.value);
        self.skip(name.text, self.value.len());
        let value = self.value.trim_ascii();
        match check_value(value) {
            Ok(()) => self.sink.put(name, value),
            Err(error) => self.failure = Some(error),
        }
    }

    /// Counts a field of the HTTP/1 form that is not sent, with a value of this size.
    pub fn skip(&mut self, name: &str, size: usize) {
        self.size += name.len() + ": ".len() + size + "\r\n".len();
    }

    /// The size of the head in HTTP/1.
    ///
    /// # Errors
    /// If a field cannot be sent.
    pub fn end(self) -> Result<usize, MessageError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.size + "\r\n".len()),
        }
    }
}
