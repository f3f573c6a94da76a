//! Classes of finished transactions.

use serde::{Deserialize, Serialize};

use crate::fold::{Fold, fold_fields};
use crate::histogram::Histogram;

/// The class of a successful transaction. Each transaction has exactly one class. `docs/reference/models.md`, "Transaction classes",
/// lists the conditions in the order in which robots and servers try them.
///
/// Only the basic classes count in hit ratios: plain GETs without any of the other properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Basic: the reply was generated for another request. Servers do not see such transactions.
    Hit,
    /// Basic: not a hit, and the reply may be stored (a *fill* of the cache). For servers: the object is cachable.
    Miss,
    /// Basic: not a hit, and the reply must not be stored. For servers: the object is not cachable.
    Uncachable,
    /// Either side ended the transaction on purpose before its end.
    Abort,
    /// Refused after an authentication that failed on purpose. Steps of authentications that continue are parts of
    /// transactions, see [`Block::auth_steps`](crate::Block::auth_steps).
    Authenticating,
    /// The reply is a redirect.
    RepToRedir,
    /// Request for the target of a redirect.
    RedirectedReq,
    /// Conditional request, answered with the object.
    Ims200,
    /// Conditional request, answered with 304 (not modified).
    Ims304,
    /// Request that forbids the use of stored copies.
    Reload,
    /// Request for ranges of bytes.
    Range,
    /// A HEAD request.
    Head,
    /// A POST request.
    Post,
    /// A PUT request.
    Put,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 14;
    /// All classes.
    pub const ALL: [Class; Class::COUNT] = [
        Class::Hit,
        Class::Miss,
        Class::Uncachable,
        Class::Abort,
        Class::Authenticating,
        Class::RepToRedir,
        Class::RedirectedReq,
        Class::Ims200,
        Class::Ims304,
        Class::Reload,
        Class::Range,
        Class::Head,
        Class::Post,
        Class::Put,
    ];
    /// The classes that count in hit ratios.
    pub const BASIC: [Class; 3] = [Class::Hit, Class::Miss, Class::Uncachable];

    /// The name of the class in tables and figures.
    pub fn name(self) -> &'static str {
        match self {
            Class::Hit => "hit",
            Class::Miss => "miss",
            Class::Uncachable => "uncachable",
            Class::Abort => "abort",
            Class::Authenticating => "auth.ing",
            Class::RepToRedir => "rep_to_redir",
            Class::RedirectedReq => "redired_req",
            Class::Ims200 => "ims.sc200",
            Class::Ims304 => "ims.sc304",
            Class::Reload => "reload",
            Class::Range => "range",
            Class::Head => "head",
            Class::Post => "post",
            Class::Put => "put",
        }
    }

    /// Whether the class counts in hit ratios.
    #[inline]
    pub fn is_basic(self) -> bool {
        Class::BASIC.contains(&self)
    }
}

/// Response times and sizes of the finished transactions of one class. Unused statistics take a few hundred bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassStats {
    /// Response time in microseconds from the actual start (connect or first use) to the last byte.
    pub rptm_us: Histogram,
    /// Response time in microseconds from the due time of the request; servers do not know it.
    pub due_rptm_us: Histogram,
    /// Size of the complete reply, head and body, in bytes.
    pub size: Histogram,
}

fold_fields! { ClassStats { rptm_us, due_rptm_us, size } }

impl ClassStats {
    /// Counts a transaction.
    #[inline]
    pub fn record(&mut self, rptm_us: u64, size: u64) {
        self.rptm_us.record(rptm_us);
        self.size.record(size);
    }

    /// The statistics without `part`, all of whose transactions must be among them.
    #[must_use]
    pub fn without(&self, part: &ClassStats) -> ClassStats {
        ClassStats {
            rptm_us: self.rptm_us.without(&part.rptm_us),
            due_rptm_us: self.due_rptm_us.without(&part.due_rptm_us),
            size: self.size.without(&part.size),
        }
    }

    /// Adds other transactions.
    pub fn merge(&mut self, other: &ClassStats) {
        self.fold(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_classes_are_listed_in_the_order_of_their_indices() {
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, index, "{class:?}");
        }
        assert_eq!(Class::Put as usize + 1, Class::COUNT);
    }
}
