//! Why a transaction has no result.

use std::io;

use polygraph_link::{Capture, ConnectError, Nanos};
use polygraph_multiplex::{Fault, FaultKind};
use polygraph_stats::ErrorKind;
use polygraph_tls::failure::TlsFailure;
use polygraph_transport::TunnelFailure;
use polygraph_wire::socks::SocksError;

use crate::exchange::reply::ReplyMeta;
use crate::violation::Violation;

/// Why a transaction failed.
#[derive(Clone, Debug)]
pub struct TransactionFailure {
    /// The class and the detail of the error.
    pub violation: Violation,
    /// The reply, as far as it arrived.
    pub reply: Option<Box<ReplyMeta>>,
    /// When the exchange started, if there was one.
    pub started: Option<Nanos>,
    /// The messages on the wire, if the user requested a dump.
    pub capture: Option<Box<Capture>>,
    /// Whether the peer says that it did not process the request, so that it may be sent again (RFC 9113, section 8.7).
    pub unprocessed: bool,
}

impl TransactionFailure {
    /// A failure without a reply.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> TransactionFailure {
        Violation::new(kind, detail).into()
    }

    /// A failure because of a violation in `reply`.
    pub fn of_reply(violation: Violation, reply: &ReplyMeta) -> TransactionFailure {
        TransactionFailure { reply: Some(Box::new(reply.clone())), ..violation.into() }
    }
}

impl From<Violation> for TransactionFailure {
    fn from(violation: Violation) -> TransactionFailure {
        TransactionFailure { violation, reply: None, started: None, capture: None, unprocessed: false }
    }
}

impl From<ConnectError> for TransactionFailure {
    fn from(error: ConnectError) -> TransactionFailure {
        let kind = match error {
            ConnectError::NoPort => ErrorKind::NoPort,
            ConnectError::NoDescriptor => ErrorKind::NoDescriptor,
            ConnectError::NoMemory | ConnectError::Bind(_) => ErrorKind::System,
            ConnectError::Refused(why) => connect_error(why),
        };
        TransactionFailure::new(kind, error.to_string())
    }
}

/// Why a transaction has no complete reply.
#[derive(Clone, Debug)]
pub enum Incomplete {
    /// The transaction failed. Failures are rare and large, so they are boxed.
    Failed(Box<TransactionFailure>),
    /// The robot's session became idle before it could send the request.
    Cancelled,
}

impl From<TransactionFailure> for Incomplete {
    fn from(failure: TransactionFailure) -> Incomplete {
        Box::new(failure).into()
    }
}

impl From<Box<TransactionFailure>> for Incomplete {
    fn from(failure: Box<TransactionFailure>) -> Incomplete {
        Incomplete::Failed(failure)
    }
}

/// A failure of TLS; `whence` says where it occurred.
pub fn tls_failure(failure: &TlsFailure, whence: &str) -> TransactionFailure {
    TransactionFailure::new(failure.kind.class(), format!("TLS {whence}: {failure}"))
}

/// A proxy opened no tunnel.
pub fn tunnel_failure(failure: &TunnelFailure) -> TransactionFailure {
    let kind = match failure {
        TunnelFailure::Refused { .. } => ErrorKind::TunnelRefused,
        TunnelFailure::Closed(_) | TunnelFailure::NotHttp(_) => ErrorKind::TunnelBroken,
        TunnelFailure::Io(error) => match error.kind() {
            io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ErrorKind::Timeout,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
            why => connect_error(why),
        },
    };
    TransactionFailure::new(kind, failure.to_string())
}

/// The class of an answer of a SOCKS proxy that opens no connection.
pub fn socks_class(error: &SocksError) -> ErrorKind {
    match error {
        SocksError::Version(_) | SocksError::AddressType(_) => ErrorKind::SocksVersion,
        SocksError::PasswordVersion(_) => ErrorKind::SocksPasswordVersion,
        SocksError::NoCredentials => ErrorKind::SocksCredentials,
        SocksError::Method(_) => ErrorKind::SocksMethod,
        SocksError::NoMethod => ErrorKind::SocksNoMethod,
        SocksError::Denied(_) => ErrorKind::SocksDenied,
        SocksError::Refused(_) => ErrorKind::SocksConnect,
    }
}

/// The class of an error that the protocol of a multiplexed connection caused, and whether the peer did not process the
/// request; `None` for other errors.
pub fn stream_error(error: &io::Error) -> Option<(ErrorKind, bool)> {
    Some(match Fault::of(error)?.kind {
        FaultKind::Refused => (ErrorKind::StreamRefused, true),
        FaultKind::Unprocessed => (ErrorKind::NoReply, true),
        FaultKind::Reset => (ErrorKind::StreamReset, false),
        FaultKind::GoAway => (ErrorKind::ConnectionError, false),
        FaultKind::Flood => (ErrorKind::FrameFlood, false),
        FaultKind::Protocol | FaultKind::Message => (ErrorKind::BadFrame, false),
        FaultKind::Transport => (ErrorKind::QuicError, false),
        FaultKind::Silent => (ErrorKind::QuicSilent, false),
    })
}

/// The class of an error of a connection caused by the peer or the network. All other errors, such as a lack of memory
/// or a packet filter on this host, are caused by the robots' host.
pub fn connect_error(why: io::ErrorKind) -> ErrorKind {
    use io::ErrorKind as K;
    match why {
        K::HostUnreachable | K::NetworkUnreachable | K::NetworkDown => ErrorKind::Unreachable,
        K::ConnectionRefused | K::TimedOut | K::ConnectionAborted | K::NotConnected => {
            ErrorKind::ConnectFailed
        }
        _ => ErrorKind::System,
    }
}
