//! Why a QUIC connection ended.

use std::io;

use polygraph_multiplex::{Fault, FaultKind};
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::quic::alert_of;
use quinn_proto::ConnectionError;

use crate::http3::codes;

/// The code of QUIC with which a server refuses a connection (RFC 9000, section 20.1).
const CONNECTION_REFUSED: u64 = 0x2;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The peer or this side ended it in order.
    Closed,
    /// The peer does not accept it; or this side, a server, has no room for it.
    Refused,
    /// Nobody listens at the address, as the system there says.
    Absent,
    /// The system knows no way to the peer.
    Unreachable(io::ErrorKind),
    /// The peer has forgotten the connection.
    Reset,
    /// The handshake failed.
    Tls(TlsFailure),
    /// The peer did not answer the first packets, or did not complete the handshake in time.
    NoAnswer,
    /// Another error.
    Fault(FaultKind, String),
}

impl Lost {
    /// What an error of the library means. `failure` is that of TLS on this side, if there is one, and `connected` tells whether the
    /// handshake was complete.
    pub fn of(error: ConnectionError, failure: Option<TlsFailure>, connected: bool) -> Lost {
        let fault = |kind| move |text: String| Lost::Fault(kind, text);
        match error {
            _ if failure.is_some() => Lost::Tls(failure.expect("it was just checked")),
            ConnectionError::TransportError(error) => match alert_of(u64::from(error.code)) {
                Some(alert) => Lost::Tls(TlsFailure { alert: None, text: error.to_string(), ..alert }),
                None => fault(FaultKind::Transport)(format!("the peer breaks QUIC: {error}")),
            },
            ConnectionError::ConnectionClosed(close) => match u64::from(close.error_code) {
                0 => Lost::Closed,
                CONNECTION_REFUSED => Lost::Refused,
                code => match alert_of(code) {
                    Some(failure) => Lost::Tls(failure),
                    None => {
                        fault(FaultKind::Transport)(format!("the peer ended the QUIC connection: {close}"))
                    }
                },
            },
            ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
                code if code == codes::H3_NO_ERROR || !codes::is_known(code) => Lost::Closed,
                code => {
                    let reason = String::from_utf8_lossy(&close.reason);
                    let text = format!("CONNECTION_CLOSE {}: {}", codes::name(code), reason.escape_default());
                    fault(FaultKind::GoAway)(text)
                }
            },
            ConnectionError::Reset => Lost::Reset,
            ConnectionError::TimedOut if connected => {
                fault(FaultKind::Silent)("the peer stopped answering on the QUIC connection".to_owned())
            }
            ConnectionError::TimedOut => Lost::NoAnswer,
            ConnectionError::LocallyClosed => Lost::Closed,
            ConnectionError::VersionMismatch => Lost::Tls(TlsFailure::new(
                FailureKind::NothingInCommon,
                "the peer does not speak QUIC version 1",
            )),
            ConnectionError::CidsExhausted => {
                fault(FaultKind::Transport)("no connection id is left".to_owned())
            }
        }
    }

    /// The error that streams and connections report.
    pub fn error(&self) -> io::Error {
        match self {
            Lost::Closed | Lost::Reset => io::ErrorKind::ConnectionReset.into(),
            Lost::Unreachable(kind) => (*kind).into(),
            Lost::Absent => io::ErrorKind::ConnectionRefused.into(),
            Lost::Refused => {
                io::Error::new(io::ErrorKind::ConnectionAborted, "the peer refuses the connection")
            }
            Lost::Tls(failure) => failure.clone().into(),
            Lost::NoAnswer => io::ErrorKind::TimedOut.into(),
            Lost::Fault(kind, text) => Fault::new(*kind, text.clone()).into(),
        }
    }
}
