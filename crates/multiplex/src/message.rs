//! Translates between HTTP/1 messages, which robots and servers write and read, and what HTTP/2 and HTTP/3 carry on a
//! stream: field sections and content (RFC 9113, section 8; RFC 9114, section 4). No I/O.
//!
//! * [`outgoing`]: the bytes of an HTTP/1 message become a field section, content, and trailers.
//! * [`incoming`]: a field section, content and trailers become the bytes of an HTTP/1 message.
//! * [`heads`]: the same for field sections whose fields come one by one.
//! * [`fields`]: which fields may cross, and in which form.
//! * [`request`]: requests that never have the form of HTTP/1, whichever of the two protocols carries them.
//!
//! What HTTP/1 says about the connection (`Connection`, `Transfer-Encoding` and others) does not cross. Content without a
//! `Content-Length` becomes chunks on the HTTP/1 side, so that its end and its trailers can be seen.

pub mod fields;
pub mod heads;
pub mod incoming;
pub mod outgoing;
pub mod request;
#[cfg(test)]
mod tests;

/// The request that a reply answers, as far as the framing of the reply depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyTo {
    /// A `HEAD` request: the reply has no content, whatever its fields say.
    Head,
    /// A `CONNECT` request: a successful reply starts a tunnel.
    Connect,
    /// Any other request.
    #[default]
    Other,
}

impl ReplyTo {
    /// What a request with this method asks for.
    pub fn method(method: &str) -> ReplyTo {
        match method {
            "HEAD" => ReplyTo::Head,
            "CONNECT" => ReplyTo::Connect,
            _ => ReplyTo::Other,
        }
    }
}

/// Why a message cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The bytes are not an HTTP/1 message.
    #[error("not an HTTP/1 message")]
    Malformed,
    /// The head is larger than [`outgoing::MAX_HEAD`].
    #[error("the head has more than {} KB", outgoing::MAX_HEAD / 1024)]
    HeadTooLarge,
    /// Bytes follow the end of the message.
    #[error("bytes follow the end of the message")]
    Excess,
    /// The message ends early.
    #[error("the message ends early")]
    Incomplete,
    /// A pseudo-header field is missing, or its value is not allowed.
    #[error("bad or missing pseudo-header field {0}")]
    Pseudo(&'static str),
    /// The name of a field has characters that are not allowed, such as capital letters.
    #[error("bad field name")]
    FieldName,
    /// The value of a field has characters that are not allowed, such as line ends.
    #[error("bad field value")]
    FieldValue,
    /// A field that only has a meaning on an HTTP/1 connection.
    #[error("a connection-specific field")]
    ConnectionField,
    /// `Host` and `:authority` differ.
    #[error("Host and :authority differ")]
    Host,
    /// `Content-Length` is not a number, or several differ, or the content has another length.
    #[error("Content-Length contradicts the content")]
    Length,
    /// Content where a message cannot have any.
    #[error("content in a message that cannot have any")]
    Content,
}
