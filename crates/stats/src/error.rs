//! Error classes: what can go wrong with a transaction, counted under stable numbers and names.

use serde::{Deserialize, Serialize};

/// What went wrong. Numbers follow the catalogue of the benchmark (`cN`); classes of the operating system have
/// `sN` numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum ErrorKind {
    /// A reply without the benchmark's marks: somebody else answered. Noted, the transaction succeeds.
    ForeignReply,
    /// A request for a URL that is not ours.
    ForeignRequest,
    /// The body ended before its announced length.
    BodyShort,
    /// The head ended early.
    HeadShort,
    /// More body than announced.
    BodyLong,
    /// The connection closed before any byte of a reply.
    NoReply,
    /// The reply does not begin with an HTTP/1 head.
    BadHead,
    /// A status code that is not the expected one.
    BadStatus,
    /// The head is larger than the buffer for heads.
    HeadTooLarge,
    /// A hit on an object that must not be cached. Noted, the transaction succeeds.
    UncachableHit,
    /// A stored copy that is older than its last modification. Noted, the transaction succeeds.
    Stale,
    /// The limit of open connections was reached.
    TooManyOpen,
    /// The lifetime of the transaction was over.
    Timeout,
    /// The connection could not be established.
    ConnectFailed,
    /// Broken transfer coding.
    BadCoding,
    /// No local port was left.
    NoPort,
    /// No file descriptor was left.
    NoDescriptor,
    /// The peer reset the connection.
    Reset,
    /// Any other failure of the operating system.
    System,
    /// The reply's body or length is not that of the requested object.
    WrongObject,
}

/// Everything that is fixed about a class: in the order of the enum.
struct Facts {
    kind: ErrorKind,
    number: &'static str,
    name: &'static str,
    text: &'static str,
    fails: bool,
}

const fn facts(
    kind: ErrorKind,
    number: &'static str,
    name: &'static str,
    text: &'static str,
    fails: bool,
) -> Facts {
    Facts { kind, number, name, text, fails }
}

const TABLE: [Facts; 20] = [
    facts(ErrorKind::ForeignReply, "c1", "foreign_reply", "reply is not from our servers", false),
    facts(ErrorKind::ForeignRequest, "c2", "foreign_request", "request for a URL we do not own", true),
    facts(ErrorKind::BodyShort, "c14", "body_short", "body ended early", true),
    facts(ErrorKind::HeadShort, "c15", "head_short", "header ended early", true),
    facts(ErrorKind::BodyLong, "c16", "body_long", "more data than announced", true),
    facts(ErrorKind::NoReply, "c17", "no_reply", "connection closed before any byte of the reply", true),
    facts(ErrorKind::BadHead, "c18", "bad_head", "not an HTTP/1 message", true),
    facts(ErrorKind::BadStatus, "c19", "bad_status", "status code is not the expected one", true),
    facts(ErrorKind::HeadTooLarge, "c29", "head_too_large", "header exceeds the buffer", true),
    facts(ErrorKind::UncachableHit, "c30", "uncachable_hit", "hit on an uncachable object", false),
    facts(ErrorKind::Stale, "c33", "stale", "stale object", false),
    facts(ErrorKind::TooManyOpen, "c56", "too_many_open", "limit of open connections reached", true),
    facts(ErrorKind::Timeout, "c57", "timeout", "transaction lifetime over", true),
    facts(ErrorKind::ConnectFailed, "c63", "connect_failed", "connection was not established", true),
    facts(ErrorKind::BadCoding, "c64", "bad_coding", "broken transfer coding", true),
    facts(ErrorKind::NoPort, "s99", "no_port", "address not available: out of local ports", true),
    facts(ErrorKind::NoDescriptor, "s24", "no_descriptor", "too many open files", true),
    facts(ErrorKind::Reset, "s104", "reset", "connection reset by peer", true),
    facts(ErrorKind::System, "s0", "system", "other operating system error", true),
    facts(ErrorKind::WrongObject, "c6", "wrong_object", "reply is not the requested object", true),
];

impl ErrorKind {
    /// Number of classes.
    pub const COUNT: usize = TABLE.len();

    /// All classes in the order of their indices.
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        TABLE.iter().map(|facts| facts.kind)
    }

    fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }

    /// Position in tables of counts.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Catalogue number, for example `c57`.
    pub fn number(self) -> &'static str {
        self.facts().number
    }

    /// A name for programs, for example `timeout`.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// A text for people.
    pub fn text(self) -> &'static str {
        self.facts().text
    }

    /// Whether the transaction fails. Otherwise the error is only noted and the transaction succeeds.
    pub fn fails(self) -> bool {
        self.facts().fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, kind) in ErrorKind::all().enumerate() {
            assert_eq!(kind.index(), index, "{kind:?}");
        }
        assert_eq!(ErrorKind::WrongObject.index() + 1, ErrorKind::COUNT);
    }
}
