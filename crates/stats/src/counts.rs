//! Groups of counters that make up a [`Block`](crate::Block) is made of.

use serde::{Deserialize, Serialize};

use crate::class::ClassStats;
use crate::fold::fold_fields;
use crate::histogram::{CoarseHistogram, Histogram};
use crate::summary_stats::SummaryStats;

/// A number of transactions and the number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CountAndBytes {
    /// Number of transactions.
    pub count: u64,
    /// Their reply bytes.
    pub bytes: u64,
}

impl CountAndBytes {
    /// Counts one transaction.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: CountAndBytes) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Response time and size of some transactions, for breakdowns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Response time in microseconds.
    pub rptm_us: CoarseHistogram,
    /// Bytes of the message, head and body.
    pub size: CoarseHistogram,
}

impl Breakdown {
    /// Counts a transaction.
    pub fn record(&mut self, rptm_us: u64, size: u64) {
        self.rptm_us.record(rptm_us);
        self.size.record(size);
    }

    /// Number of transactions and their bytes.
    pub fn count_and_bytes(&self) -> CountAndBytes {
        CountAndBytes { count: self.size.count(), bytes: self.size.sum() as u64 }
    }
}

/// Transactions of one kind of content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindStats {
    /// All successful transactions, aborted ones included.
    pub replies: Breakdown,
    /// Basic transactions.
    pub basic: CountAndBytes,
    /// Basic transactions that a perfect cache would have answered.
    pub offered_hits: CountAndBytes,
    /// Basic transactions that the device answered from its cache.
    pub hits: CountAndBytes,
}

impl KindStats {
    /// All successful transactions, aborted ones included.
    pub fn all(&self) -> CountAndBytes {
        self.replies.count_and_bytes()
    }
}

/// Transactions of several exchanges: those that answered an authentication challenge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompoundStats {
    /// Time in microseconds from the start of the first exchange to the end of the last.
    pub rptm_us: Histogram,
    /// Bytes of all requests together.
    pub request_size: Histogram,
    /// Bytes of the last reply.
    pub size: Histogram,
    /// Number of exchanges.
    pub exchanges: Histogram,
}

/// Schemes of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AuthScheme {
    /// Basic authentication (RFC 7617).
    Basic,
    /// Digest authentication (RFC 7616).
    Digest,
}

impl AuthScheme {
    /// Number of schemes.
    pub const COUNT: usize = 2;
    /// All schemes in the order of their indices.
    pub const ALL: [AuthScheme; AuthScheme::COUNT] = [AuthScheme::Basic, AuthScheme::Digest];

    /// A name for figures.
    pub fn name(self) -> &'static str {
        match self {
            AuthScheme::Basic => "basic",
            AuthScheme::Digest => "digest",
        }
    }
}

/// When the first and last bytes of basic transactions passed, in microseconds since their start. Only one side's are
/// known to a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Clients: the last byte of the request was given to the socket.
    pub last_request_byte_written_us: CoarseHistogram,
    /// Clients: the first bytes of the reply came.
    pub first_reply_byte_read_us: CoarseHistogram,
    /// Servers: the last byte of the request came, since its first one.
    pub last_request_byte_read_us: CoarseHistogram,
    /// Servers: the first bytes of the reply were given to the socket.
    pub first_reply_byte_written_us: CoarseHistogram,
}

/// Statistics of the ranges that robots generate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeGen {
    /// Bytes of each range that was asked for.
    pub spec_size: SummaryStats,
    /// Bytes of all ranges of a request.
    pub set_size: SummaryStats,
    /// Ranges of a request.
    pub specs_per_set: SummaryStats,
    /// Ranges whose last byte would have been before the first; they are one byte long.
    pub first_last_swap: u64,
    /// Ranges that go on beyond the end of the object.
    pub spec_overflow: u64,
    /// Requests with fewer ranges than drawn, because the next one would begin beyond the end of the object.
    pub set_overflow: u64,
}

/// How robots chose the objects of direct requests; requests for embedded objects and redirects are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidGen {
    /// A new object was wanted.
    pub need_new: u64,
    /// One to be asked for again was wanted.
    pub need_repeat: u64,
    /// A repeat was wanted, but no object had been requested yet.
    pub lack_repeat: u64,
    /// A new object was taken.
    pub new: u64,
    /// One was asked for again.
    pub repeat: u64,
    /// A new foreign URL was taken.
    pub new_foreign: u64,
    /// A foreign URL was asked for again.
    pub repeat_foreign: u64,
}

/// Pages: containers with all their embedded objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageStats {
    /// Time in microseconds from the start of the container's request to the end of its last embedded object.
    pub rptm_us: Histogram,
    /// Bytes of all replies together.
    pub size: Histogram,
    /// Replies per page, the container included.
    pub parts: Histogram,
}

/// Cookies that messages carried, and what became of stored ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CookieStats {
    /// Cookies per message that sent at least one.
    pub sent: Histogram,
    /// Cookies per message that brought at least one.
    pub received: Histogram,
    /// Dropped to make room, although they had not expired.
    pub purged_fresh: u64,
    /// Dropped because they had expired.
    pub purged_stale: u64,
    /// Replaced by one of the same name.
    pub updated: u64,
}

/// Name look-ups. Failed ones are errors of their own classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DnsStats {
    /// Names that were needed.
    pub lookups: u64,
    /// Of these, answered from the robots' own cache.
    pub cache_hits: u64,
    /// Response time in microseconds of look-ups that asked a server and got an answer, retries included.
    pub rptm_us: Histogram,
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloseKind {
    /// In use, or right after its last use.
    Busy,
    /// By this side's idle time-out.
    IdleLocal,
    /// By the peer, while idle.
    IdleForeign,
    /// Otherwise: to make room, or at the end of the run.
    Other,
}

impl CloseKind {
    /// Number of kinds.
    pub const COUNT: usize = 4;
    /// All kinds in the order of their indices.
    pub const ALL: [CloseKind; CloseKind::COUNT] =
        [CloseKind::Busy, CloseKind::IdleLocal, CloseKind::IdleForeign, CloseKind::Other];

    /// A name for figures.
    pub fn name(self) -> &'static str {
        match self {
            CloseKind::Busy => "busy",
            CloseKind::IdleLocal => "idle_local",
            CloseKind::IdleForeign => "idle_foreign",
            CloseKind::Other => "other",
        }
    }

    /// A text for people.
    pub fn text(self) -> &'static str {
        match self {
            CloseKind::Busy => "in use or right after it",
            CloseKind::IdleLocal => "idle, by our time-out",
            CloseKind::IdleForeign => "idle, by the peer",
            CloseKind::Other => "otherwise",
        }
    }
}

/// Closed connections of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CloseStats {
    /// Transactions on each.
    pub uses: CoarseHistogram,
    /// Their lifetimes in microseconds.
    pub ttl_us: CoarseHistogram,
}

impl CloseStats {
    /// Number of connections.
    pub fn count(&self) -> u64 {
        self.uses.count()
    }
}

/// Validations that the device initiated, as the servers see them; they are counted in their
/// [`Class`](crate::Class) as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValidationStats {
    /// Answered with the object: the stored copy was out of date.
    pub useful: ClassStats,
    /// Answered with 304: the stored copy was still valid.
    pub useless: ClassStats,
}

/// How much of the received content was compared with the content that the servers must have sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationStats {
    /// Replies whose identity (marks, length) was checked.
    pub replies: u64,
    /// Body bytes that were compared with the expected ones, byte by byte or by digest.
    pub bytes: u64,
    /// Body bytes that were not compared.
    pub uncompared: u64,
    /// Bodies whose digest was checked.
    pub digests: u64,
    /// Replies to be verified: good ones that bring an object which the robots know. Foreign ones are none of them,
    /// nor are those without a body.
    pub due: u64,
    /// Good replies that bring no body, but the marks of our servers: to HEAD, 304 and the like.
    pub marked: u64,
}

fold_fields! {
    CountAndBytes { count, bytes }
    Breakdown { rptm_us, size }
    KindStats { replies, basic, offered_hits, hits }
    CompoundStats { rptm_us, request_size, size, exchanges }
    Latency {
        last_request_byte_written_us, first_reply_byte_read_us, last_request_byte_read_us, first_reply_byte_written_us
    }
    RangeGen { spec_size, set_size, specs_per_set, first_last_swap, spec_overflow, set_overflow }
    OidGen { need_new, need_repeat, lack_repeat, new, repeat, new_foreign, repeat_foreign }
    PageStats { rptm_us, size, parts }
    CookieStats { sent, received, purged_fresh, purged_stale, updated }
    DnsStats { lookups, cache_hits, rptm_us }
    CloseStats { uses, ttl_us }
    ValidationStats { useful, useless }
    VerificationStats { replies, bytes, uncompared, digests, due, marked }
}
