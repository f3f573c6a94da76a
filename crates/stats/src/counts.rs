//! Small groups of counters that a [`Block`](crate::Block) is made of.

use serde::{Deserialize, Serialize};

use crate::class::ClassStats;
use crate::fold::fold_fields;
use crate::hist::Hist;

/// A count with a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of transactions.
    pub count: u64,
    /// Their reply bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one transaction.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Tally) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Transactions of one kind of content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindStats {
    /// All that ended well, aborts included.
    pub all: Tally,
    /// Sum of their response times in microseconds.
    pub rptm_us: u64,
    /// Basic ones.
    pub basic: Tally,
    /// Basic ones that a perfect cache would have answered.
    pub offered_hits: Tally,
    /// Basic ones that the device answered.
    pub hits: Tally,
}

/// Pages: containers with all their embedded objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// Time in microseconds from the start of the container's request to the end of its last embedded object.
    pub rptm_us: Hist,
    /// Bytes of all replies together.
    pub size: Hist,
    /// Replies per page, the container included.
    pub parts: Hist,
}

/// Cookies, by messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cookies {
    /// Cookies per message that sent at least one.
    pub sent: Hist,
    /// Cookies per message that brought at least one.
    pub received: Hist,
    /// Dropped to make room, although they had not expired.
    pub purged_fresh: u64,
    /// Dropped because they had expired.
    pub purged_stale: u64,
    /// Replaced by one of the same name.
    pub updated: u64,
}

/// Name look-ups. Failed ones are errors of their own classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dns {
    /// Names that were needed.
    pub lookups: u64,
    /// Of these, answered from the robots' own cache.
    pub cache_hits: u64,
    /// Response time in microseconds of look-ups that asked a server and got an answer, retries included.
    pub rptm_us: Hist,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Closes {
    /// Number of connections.
    pub count: u64,
    /// Transactions on them.
    pub uses: u64,
    /// Sum of their lifetimes in microseconds.
    pub ttl_us: u64,
}

/// Validations that the device made on its own account, as the servers see them; they are counted in their
/// [`Class`](crate::Class) as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validations {
    /// Answered with the object: the stored copy was out of date.
    pub useful: ClassStats,
    /// Answered with 304: the stored copy was still good.
    pub useless: ClassStats,
}

/// How much of what was received has been compared with what the servers must have sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Replies whose identity (marks, length) was checked.
    pub replies: u64,
    /// Body bytes that were compared with the expected ones, byte by byte or by digest.
    pub bytes: u64,
    /// Bodies whose digest was checked.
    pub digests: u64,
}

fold_fields! {
    Tally { count, bytes }
    KindStats { all, rptm_us, basic, offered_hits, hits }
    Pages { rptm_us, size, parts }
    Cookies { sent, received, purged_fresh, purged_stale, updated }
    Dns { lookups, cache_hits, rptm_us }
    Closes { count, uses, ttl_us }
    Validations { useful, useless }
    Verified { replies, bytes, digests }
}
