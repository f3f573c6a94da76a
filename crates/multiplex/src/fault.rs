//! Why a stream or its connection ended before the exchange was complete.

use std::io;

use h2::Reason;

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

impl From<crate::message::MessageError> for Fault {
    fn from(error: crate::message::MessageError) -> Fault {
        Fault::new(FaultKind::Message, error.to_string())
    }
}

/// What an error of `h2` means.
pub fn of_h2(error: h2::Error) -> io::Error {
    if error.is_io() {
        let error = error.into_io().unwrap_or_else(|| io::ErrorKind::Other.into());
        // What `h2` calls a broken pipe is the end of the connection in the middle of a stream: the peer closed it.
        return match error.kind() {
            io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::ConnectionReset, error),
            _ => error,
        };
    }
    let reason = error.reason().unwrap_or(Reason::INTERNAL_ERROR);
    let kind = match (error.is_remote(), reason) {
        (true, Reason::REFUSED_STREAM) => FaultKind::Refused,
        // Only streams behind the last one that the peer processed get this error.
        (true, _) if error.is_go_away() => FaultKind::Unprocessed,
        (true, _) => FaultKind::Reset,
        (false, Reason::ENHANCE_YOUR_CALM) => FaultKind::Flood,
        (false, _) => FaultKind::Protocol,
    };
    Fault::new(kind, text(&error, reason)).into()
}

/// What the end of a whole connection means; `None` if it ended in order.
pub fn of_connection(error: h2::Error) -> Option<io::Error> {
    if error.is_go_away() && error.is_remote() {
        let reason = error.reason().unwrap_or(Reason::NO_ERROR);
        let fault = || Fault::new(FaultKind::GoAway, text(&error, reason)).into();
        return (reason != Reason::NO_ERROR).then(fault);
    }
    Some(of_h2(error))
}

fn text(error: &h2::Error, reason: Reason) -> String {
    format!("{} {}: {error}", if error.is_go_away() { "GOAWAY" } else { "RST_STREAM" }, name(reason))
}

/// The name of an error code (RFC 9113, section 7).
pub fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::NO_ERROR => "NO_ERROR",
        Reason::PROTOCOL_ERROR => "PROTOCOL_ERROR",
        Reason::INTERNAL_ERROR => "INTERNAL_ERROR",
        Reason::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
        Reason::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
        Reason::STREAM_CLOSED => "STREAM_CLOSED",
        Reason::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
        Reason::REFUSED_STREAM => "REFUSED_STREAM",
        Reason::CANCEL => "CANCEL",
        Reason::COMPRESSION_ERROR => "COMPRESSION_ERROR",
        Reason::CONNECT_ERROR => "CONNECT_ERROR",
        Reason::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
        Reason::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
        Reason::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
        _ => "an unknown code",
    }
}
