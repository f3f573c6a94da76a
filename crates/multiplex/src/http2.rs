//! HTTP/2 (RFC 9113) without I/O.
//!
//! * [`frames`], [`reader`]: frames, and cutting what arrives into frames.
//! * [`hpack`]: field sections.
//! * [`settings`], [`window`]: what the sides announce, and flow control.
//! * [`streams`], [`connection`]: the state of a connection.
//! * [`codes`]: error codes.

pub mod codes;
pub mod connection;
pub mod frames;
pub mod hpack;
pub mod reader;
pub mod settings;
pub mod streams;
pub mod window;

use crate::fault::FaultKind;

/// Why a connection or a stream must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {text}", codes::name(*code))]
pub struct Http2Error {
    /// The code that the peer gets.
    pub code: u32,
    /// What is wrong.
    pub text: &'static str,
}

impl Http2Error {
    /// An error.
    pub const fn new(code: u32, text: &'static str) -> Http2Error {
        Http2Error { code, text }
    }

    /// A breach of the protocol.
    pub const fn protocol(text: &'static str) -> Http2Error {
        Http2Error::new(codes::PROTOCOL_ERROR, text)
    }

    /// What kind of fault it is.
    pub fn kind(&self) -> FaultKind {
        if self.code == codes::ENHANCE_YOUR_CALM { FaultKind::Flood } else { FaultKind::Protocol }
    }
}

impl From<hpack::HpackError> for Http2Error {
    fn from(error: hpack::HpackError) -> Http2Error {
        Http2Error::new(codes::COMPRESSION_ERROR, error.text())
    }
}
