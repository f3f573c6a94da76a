//! Errors of lookups, with the numbers of the benchmark's error catalogue.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// Why a name has no address: the classes c125 to c135 of the catalogue (docs/reference/generated/errors.md), one
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DnsError {
    /// c125: until the timeout there were only replies with the ids of other queries.
    #[error("DNS reply has the id of another query")]
    Id,
    /// c126: several servers were asked, or a server could not be reached, and none returned an address.
    #[error("all DNS servers failed")]
    AllFailed,
    /// c127: no reply in time.
    #[error("DNS query timed out")]
    Timeout,
    /// c128: until the timeout there were only replies to other questions.
    #[error("DNS reply answers another question")]
    Mismatch,
    /// c129: the reply is not a DNS message, or its aliases lead nowhere.
    #[error("DNS reply is malformed")]
    Format,
    /// c130: the server considers the query malformed (FORMERR, rcode 1).
    #[error("DNS server cannot read the query")]
    QueryFormat,
    /// c131: the server failed (SERVFAIL, rcode 2).
    #[error("DNS server failure")]
    ServerFailure,
    /// c132: the name does not exist (NXDOMAIN, rcode 3), or has no address of the requested type.
    #[error("no such name, or no address of the requested type")]
    NoName,
    /// c133: the server does not support the query (NOTIMP, rcode 4).
    #[error("DNS server does not support the query")]
    NotSupported,
    /// c134: the server refuses to answer (REFUSED, rcode 5).
    #[error("DNS server refused")]
    Refused,
    /// c135: any other response code.
    #[error("DNS response code {0}")]
    Other(u8),
}

impl DnsError {
    /// Number of classes.
    pub const COUNT: usize = 11;

    /// The catalogue number: 125 to 135.
    pub fn number(self) -> u8 {
        match self {
            DnsError::Id => 125,
            DnsError::AllFailed => 126,
            DnsError::Timeout => 127,
            DnsError::Mismatch => 128,
            DnsError::Format => 129,
            DnsError::QueryFormat => 130,
            DnsError::ServerFailure => 131,
            DnsError::NoName => 132,
            DnsError::NotSupported => 133,
            DnsError::Refused => 134,
            DnsError::Other(_) => 135,
        }
    }

    /// The position of the class in tables of counts, from 0.
    pub fn index(self) -> usize {
        usize::from(self.number() - 125)
    }

    /// The class of a response code (RFC 1035, section 4.1.1); `None` for success.
    pub fn of_rcode(rcode: u8) -> Option<DnsError> {
        Some(match rcode {
            0 => return None,
            1 => DnsError::QueryFormat,
            2 => DnsError::ServerFailure,
            3 => DnsError::NoName,
            4 => DnsError::NotSupported,
            5 => DnsError::Refused,
            other => DnsError::Other(other),
        })
    }
}

/// Why one server returned no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// The server returned an error, or no reply.
    Dns(DnsError),
    /// The query could not be sent: no such port, no route, no free descriptor.
    Socket(io::ErrorKind),
}

/// A query to one server that returned no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The address of the server.
    pub server: SocketAddr,
    /// The failure.
    pub failure: AttemptFailure,
}

/// Why a lookup failed. Clones, and lookups that shared a query, share the list of attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupError {
    /// The class to count: that of the only server, "no such name" if the last server said so, or "all failed".
    pub error: DnsError,
    /// The attempts in the order of the queries.
    pub attempts: Rc<[Attempt]>,
}

impl LookupError {
    /// The error after these attempts. "No such name" is final: other servers would say the same.
    pub fn new(attempts: Vec<Attempt>) -> LookupError {
        let error = match attempts[..] {
            [.., Attempt { failure: AttemptFailure::Dns(DnsError::NoName), .. }] => DnsError::NoName,
            [Attempt { failure: AttemptFailure::Dns(error), .. }] => error,
            _ => DnsError::AllFailed,
        };
        LookupError { error, attempts: attempts.into() }
    }
}

impl fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptFailure::Dns(error) => error.fmt(f),
            AttemptFailure::Socket(kind) => kind.fmt(f),
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        for (i, attempt) in self.attempts.iter().enumerate() {
            write!(f, "{}{}: {}", if i == 0 { " (" } else { ", " }, attempt.server, attempt.failure)?;
        }
        f.write_str(if self.attempts.is_empty() { "" } else { ")" })
    }
}

impl std::error::Error for LookupError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_numbered_without_gaps() {
        use DnsError::*;
        let all = [
            Id,
            AllFailed,
            Timeout,
            Mismatch,
            Format,
            QueryFormat,
            ServerFailure,
            NoName,
            NotSupported,
            Refused,
            Other(9),
        ];
        assert_eq!(all.len(), DnsError::COUNT);
        for (index, error) in all.into_iter().enumerate() {
            assert_eq!((error.index(), usize::from(error.number())), (index, 125 + index), "{error}");
        }
    }

    #[test]
    fn the_class_of_a_lookup() {
        use DnsError::*;
        let refused = AttemptFailure::Socket(io::ErrorKind::ConnectionRefused);
        #[track_caller]
        fn check(failures: &[AttemptFailure], expected: DnsError) {
            let server = SocketAddr::from(([127, 0, 0, 1], 53));
            let attempts = failures.iter().map(|&failure| Attempt { server, failure }).collect();
            assert_eq!(LookupError::new(attempts).error, expected, "{failures:?}");
        }
        check(&[], AllFailed);
        check(&[AttemptFailure::Dns(Timeout)], Timeout);
        check(&[AttemptFailure::Dns(Refused)], Refused);
        check(&[refused], AllFailed);
        check(&[AttemptFailure::Dns(Timeout), AttemptFailure::Dns(Timeout)], AllFailed);
        check(&[AttemptFailure::Dns(Timeout), AttemptFailure::Dns(NoName)], NoName);
        check(&[refused, AttemptFailure::Dns(ServerFailure)], AllFailed);
    }

    #[test]
    fn the_text_names_every_server() {
        let attempt = |port, failure| Attempt { server: SocketAddr::from(([10, 0, 0, 1], port)), failure };
        let error = LookupError::new(vec![
            attempt(53, AttemptFailure::Dns(DnsError::Timeout)),
            attempt(54, AttemptFailure::Socket(io::ErrorKind::ConnectionRefused)),
        ]);
        let expected =
            "all DNS servers failed (10.0.0.1:53: DNS query timed out, 10.0.0.1:54: connection refused)";
        assert_eq!(error.to_string(), expected);
    }
}
