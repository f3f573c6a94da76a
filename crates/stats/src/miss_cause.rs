//! Why a hit that was offered did not happen.

use serde::{Deserialize, Serialize};

/// Why the reply to a repeat of a cachable object came first hand, as far as the robots can know. The first that
/// applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MissCause {
    /// The reply carries no mark of a server, so nobody can say that it was a hit.
    Unmarked,
    /// The reply forbids caching although the object is cachable.
    Forbidden,
    /// The object's last transfer was aborted or failed: there was no whole copy to store.
    AfterAbort,
    /// The previous copy was under way when this request was made.
    InFlight,
    /// The copy's freshness lifetime was over: the device had to ask.
    Expired,
    /// The last request for it was a reload, whose reply need not be stored.
    AfterReload,
    /// The object was a hit before: it was stored, and then evicted. A want of capacity.
    Evicted,
    /// It was delivered whole and first hand before, and was never a hit since: it was not stored, or evicted
    /// before its first use.
    NeverStored,
    /// What became of earlier requests is unknown here: they were those of another loop, process or test, or too long ago, or
    /// they wanted another coding.
    Elsewhere,
}

impl MissCause {
    /// Number of causes.
    pub const COUNT: usize = 9;
    /// All causes in the order of their indices.
    pub const ALL: [MissCause; MissCause::COUNT] = [
        MissCause::Unmarked,
        MissCause::Forbidden,
        MissCause::AfterAbort,
        MissCause::InFlight,
        MissCause::Expired,
        MissCause::AfterReload,
        MissCause::Evicted,
        MissCause::NeverStored,
        MissCause::Elsewhere,
    ];

    /// A name for figures.
    pub fn name(self) -> &'static str {
        match self {
            MissCause::Unmarked => "unmarked",
            MissCause::Forbidden => "forbidden",
            MissCause::AfterAbort => "after_abort",
            MissCause::InFlight => "in_flight",
            MissCause::Expired => "expired",
            MissCause::AfterReload => "after_reload",
            MissCause::Evicted => "evicted",
            MissCause::NeverStored => "never_stored",
            MissCause::Elsewhere => "elsewhere",
        }
    }

    /// The device had a whole copy and may have lost it, or never kept it.
    pub fn is_of_storage(self) -> bool {
        matches!(self, MissCause::Evicted | MissCause::NeverStored)
    }

    /// A text for people.
    pub fn text(self) -> &'static str {
        match self {
            MissCause::Unmarked => "the reply had lost its marks",
            MissCause::Forbidden => "the reply forbade caching",
            MissCause::AfterAbort => "its last transfer did not complete",
            MissCause::InFlight => "its first copy was still under way",
            MissCause::Expired => "the stored copy had expired",
            MissCause::AfterReload => "its last request was a reload",
            MissCause::Evicted => "it had been a hit before: evicted",
            MissCause::NeverStored => "it had been delivered, but never became a hit",
            MissCause::Elsewhere => {
                "others had asked for it before, or in another coding, or too long ago to be known"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_causes_are_listed_in_the_order_of_their_indices() {
        for (index, cause) in MissCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index, "{cause:?}");
        }
        assert_eq!(MissCause::Elsewhere as usize + 1, MissCause::COUNT);
    }
}
