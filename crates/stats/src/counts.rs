//! Groups of counters that make up a [`Block`](crate::Block).

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
    #[inline]
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
    /// NTLM (MS-NLMP).
    Ntlm,
    /// Negotiate with NTLM (RFC 4559).
    Negotiate,
    /// Negotiate with Kerberos (RFC 4559).
    Kerberos,
    /// Name and password for a SOCKS proxy (RFC 1929).
    SocksPassword,
}

impl AuthScheme {
    /// Number of schemes.
    pub const COUNT: usize = 6;
    /// All schemes in the order of their indices.
    pub const ALL: [AuthScheme; AuthScheme::COUNT] = [
        AuthScheme::Basic,
        AuthScheme::Digest,
        AuthScheme::Ntlm,
        AuthScheme::Negotiate,
        AuthScheme::Kerberos,
        AuthScheme::SocksPassword,
    ];

    /// The name in figures.
    pub fn name(self) -> &'static str {
        match self {
            AuthScheme::Basic => "basic",
            AuthScheme::Digest => "digest",
            AuthScheme::Ntlm => "ntlm",
            AuthScheme::Negotiate => "negotiate",
            AuthScheme::Kerberos => "kerberos",
            AuthScheme::SocksPassword => "socks.userpass",
        }
    }
}

/// Times of the first and last bytes of basic transactions, in microseconds since their start. A process knows only
/// those of its side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Clients: the last byte of the request was written to the socket.
    pub last_request_byte_written_us: CoarseHistogram,
    /// Clients: the first bytes of the reply arrived.
    pub first_reply_byte_read_us: CoarseHistogram,
    /// Servers: the last byte of the request arrived, since its first byte.
    pub last_request_byte_read_us: CoarseHistogram,
    /// Servers: the first bytes of the reply were written to the socket.
    pub first_reply_byte_written_us: CoarseHistogram,
}

/// Statistics of the ranges that robots generate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeGen {
    /// Bytes of each requested range.
    pub spec_size: SummaryStats,
    /// Bytes of all ranges of a request.
    pub set_size: SummaryStats,
    /// Ranges per request.
    pub specs_per_set: SummaryStats,
    /// Ranges whose last byte would have been before the first; they are one byte long.
    pub first_last_swap: u64,
    /// Ranges that extend beyond the end of the object.
    pub spec_overflow: u64,
    /// Requests with fewer ranges than drawn, because the next range would begin beyond the end of the object.
    pub set_overflow: u64,
}

/// How robots chose the objects of direct requests; requests for embedded objects and redirects are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidGen {
    /// Requests drawn to be for a new object.
    pub need_new: u64,
    /// Requests drawn to repeat an object.
    pub need_repeat: u64,
    /// Requests drawn to repeat an object when no object had been requested yet.
    pub lack_repeat: u64,
    /// Requests for a new object.
    pub new: u64,
    /// Requests that repeated an object.
    pub repeat: u64,
    /// Requests for a new foreign URL.
    pub new_foreign: u64,
    /// Requests that repeated a foreign URL.
    pub repeat_foreign: u64,
}

/// Pages: containers with all their embedded objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageStats {
    /// Time in microseconds from the start of the container's request to the end of its last embedded object.
    pub rptm_us: Histogram,
    /// Bytes of all replies together.
    pub size: Histogram,
    /// Replies per page, including the container.
    pub parts: Histogram,
}

/// Cookies that messages carried, and the fate of stored cookies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CookieStats {
    /// Cookies per message that sent at least one.
    pub sent: Histogram,
    /// Cookies per message that set at least one.
    pub received: Histogram,
    /// Cookies dropped to make room, although they had not expired.
    pub purged_fresh: u64,
    /// Cookies dropped because they had expired.
    pub purged_stale: u64,
    /// Cookies replaced by a cookie with the same name.
    pub updated: u64,
}

/// Name look-ups. Failed look-ups are errors of separate classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DnsStats {
    /// Names that were looked up.
    pub lookups: u64,
    /// Look-ups answered from the robots' own cache.
    pub cache_hits: u64,
    /// Look-ups whose answer is none of the addresses that the workload puts behind the name.
    pub unplanned: u64,
    /// Response time in microseconds of look-ups that a server answered, including retries.
    pub rptm_us: Histogram,
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloseKind {
    /// While in use or immediately afterwards.
    Busy,
    /// While idle, by this side's time-out.
    IdleLocal,
    /// While idle, by the peer.
    IdleForeign,
    /// For another reason: to make room, or at the end of the run.
    Other,
}

impl CloseKind {
    /// Number of kinds.
    pub const COUNT: usize = 4;
    /// All kinds in the order of their indices.
    pub const ALL: [CloseKind; CloseKind::COUNT] =
        [CloseKind::Busy, CloseKind::IdleLocal, CloseKind::IdleForeign, CloseKind::Other];

    /// The name in figures.
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
            CloseKind::Busy => "with the last transaction (planned, or it failed)",
            CloseKind::IdleLocal => "while idle, by our time-out",
            CloseKind::IdleForeign => "while idle, by the peer",
            CloseKind::Other => "otherwise",
        }
    }
}

/// Closed connections of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CloseStats {
    /// Transactions per connection.
    pub uses: CoarseHistogram,
    /// Lifetimes in microseconds.
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

/// The amount of received content that was compared with the content that the servers must have sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationStats {
    /// Replies whose body was compared as a whole: its size was known. Of servers: requests whose body was.
    pub replies: u64,
    /// Body bytes that were compared with the expected bytes, directly or by digest.
    pub bytes: u64,
    /// Body bytes that were not compared.
    pub uncompared: u64,
    /// Bodies whose digest was checked.
    pub digests: u64,
    /// Replies to be verified: successful replies with an object that the robots know, except foreign replies and
    /// replies without a body. Of servers: successful requests with a body.
    pub due: u64,
    /// Successful replies without a body that carry the marks of our servers: replies to HEAD, 304 and the like.
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
    DnsStats { lookups, cache_hits, unplanned, rptm_us }
    CloseStats { uses, ttl_us }
    ValidationStats { useful, useless }
    VerificationStats { replies, bytes, uncompared, digests, due, marked }
}
