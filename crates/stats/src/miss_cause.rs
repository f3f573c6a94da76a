//! Why an offered hit was a miss.

use serde::{Deserialize, Serialize};

/// Why the reply to a repeated request for a cachable object was first hand, as far as the robots can know. The first
/// cause that applies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MissCause {
    /// The reply has no mark of a server, so it cannot be recognized as a hit.
    Unmarked,
    /// The reply forbids caching although the object is cachable.
    Forbidden,
    /// The object's last transfer was aborted or failed: there was no complete copy to store.
    AfterAbort,
    /// The previous copy was still being transferred when this request was sent.
    InFlight,
    /// The last request for the object was a PUT or POST, after which a cache must not use the copies that it had (RFC 9111,
    /// section 4.4).
    Invalidated,
    /// The copy's freshness lifetime was over, so the device had to contact the server.
    Expired,
    /// The last request for the object was a reload, whose reply need not be stored.
    AfterReload,
    /// The object was a hit before, and no other request or time explains why it is none now: it was evicted.
    Evicted,
    /// The object was delivered completely and first hand before, and has never been a hit since: it was not stored, or
    /// it was evicted before its first use.
    NeverStored,
    /// What happened to the object before is unknown: requests for it came from another loop, process or test, were too long
    /// ago, or asked for another coding.
    Elsewhere,
}

impl MissCause {
    /// Number of causes.
    pub const COUNT: usize = 10;
    /// All causes in the order of their indices.
    pub const ALL: [MissCause; MissCause::COUNT] = [
        MissCause::Unmarked,
        MissCause::Forbidden,
        MissCause::AfterAbort,
        MissCause::InFlight,
        MissCause::Invalidated,
        MissCause::Expired,
        MissCause::AfterReload,
        MissCause::Evicted,
        MissCause::NeverStored,
        MissCause::Elsewhere,
    ];

    /// The name in figures.
    pub fn name(self) -> &'static str {
        match self {
            MissCause::Unmarked => "unmarked",
            MissCause::Forbidden => "forbidden",
            MissCause::AfterAbort => "after_abort",
            MissCause::InFlight => "in_flight",
            MissCause::Invalidated => "invalidated",
            MissCause::Expired => "expired",
            MissCause::AfterReload => "after_reload",
            MissCause::Evicted => "evicted",
            MissCause::NeverStored => "never_stored",
            MissCause::Elsewhere => "elsewhere",
        }
    }

    /// Whether the device had a complete copy, and evicted it or never stored it.
    pub fn is_of_storage(self) -> bool {
        matches!(self, MissCause::Evicted | MissCause::NeverStored)
    }

    /// A text for people.
    pub fn text(self) -> &'static str {
        match self {
            MissCause::Unmarked => "the reply had lost its marks",
            MissCause::Forbidden => "the reply forbade caching",
            MissCause::AfterAbort => "the last transfer of the object did not complete",
            MissCause::InFlight => "the first copy was still being transferred",
            MissCause::Invalidated => "the last request for the object was a PUT or POST",
            MissCause::Expired => "the stored copy had expired",
            MissCause::AfterReload => "the last request for the object was a reload",
            MissCause::Evicted => "the object had been evicted after an earlier hit",
            MissCause::NeverStored => "the object had been delivered, but had never been a hit",
            MissCause::Elsewhere => {
                "the object had been requested by others, in another coding, or too long ago to be known"
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
