//! Why a stream or its connection ended before the exchange was complete.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The kind of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The peer refused the stream (`REFUSED_STREAM`), so that the request may be sent again on another connection (RFC 9113,
    /// section 8.7).
    Refused,
    /// The peer announced the end of the connection before it saw the stream. The request may be sent again likewise.
    Unprocessed,
    /// The peer reset the stream.
    Reset,
    /// The peer ended the connection because of an error.
    GoAway,
    /// The peer breaks the protocol.
    Protocol,
    /// The peer sends more frames of a kind than sense can make, or a field section that is too large.
    Flood,
    /// A message cannot be carried by the protocol.
    Message,
    /// The transport below the protocol failed: the peer breaks QUIC, or ended the connection with an error of QUIC.
    Transport,
    /// Nothing has come from the peer for so long that the connection counts as lost.
    Silent,
}

/// An error of a stream or its connection, as the source of an [`io::Error`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    text: String,
}

impl Fault {
    /// A fault with a description.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Fault {
        Fault { kind, text: text.into() }
    }

    /// The fault behind an error of a stream; `None` if the connection itself failed.
    pub fn of(error: &io::Error) -> Option<&Fault> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> io::Error {
        let kind = match fault.kind {
            FaultKind::Refused
            | FaultKind::Unprocessed
            | FaultKind::Reset
            | FaultKind::GoAway
            | FaultKind::Transport
            | FaultKind::Silent => io::ErrorKind::ConnectionReset,
            FaultKind::Protocol | FaultKind::Flood | FaultKind::Message => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, fault)
    }
}

/// The failure of the connection below, which all streams report. Its source is what the failure itself contains, for example that of
/// TLS.
#[derive(Clone, Debug)]
pub struct BelowFailure(Arc<io::Error>);

impl BelowFailure {
    /// The failure of the connection below.
    pub fn new(error: io::Error) -> BelowFailure {
        BelowFailure(Arc::new(error))
    }
}

impl fmt::Display for BelowFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for BelowFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.get_ref().map(|error| error as _)
    }
}

impl From<BelowFailure> for io::Error {
    fn from(failure: BelowFailure) -> io::Error {
        match failure.0.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(failure.0.kind(), failure),
        }
    }
}

impl From<crate::message::MessageError> for Fault {
    fn from(error: crate::message::MessageError) -> Fault {
        Fault::new(FaultKind::Message, error.to_string())
    }
}
