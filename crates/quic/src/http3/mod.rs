//! The syntax of HTTP/3 (RFC 9114) and QPACK (RFC 9204), without I/O.
//!
//! * [`varint`], [`frames`]: integers and frames.
//! * [`qpack`], [`static_table`]: field sections.
//! * [`control`]: what comes on the control stream and the streams of QPACK.
//! * [`codes`]: error codes.

pub mod codes;
pub mod control;
pub mod frames;
pub mod qpack;
pub mod static_table;
pub mod varint;

/// Why a connection or a stream must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {text}", codes::name(*code))]
pub struct Http3Error {
    /// The code that the peer gets.
    pub code: u64,
    /// What is wrong.
    pub text: &'static str,
}

impl Http3Error {
    /// An error.
    pub fn new(code: u64, text: &'static str) -> Http3Error {
        Http3Error { code, text }
    }
}
