//! Requests that a client gives up before they are read ("rapid reset", CVE-2023-44487): each costs the client nothing, and the server
//! a stream.

use polygraph_link::Nanos;

/// The most requests of a connection that its client may give up at once before they are read: more are a flood. The numbers are those of
/// nghttp2.
pub const MOST_AT_ONCE: u64 = 1000;

/// The time in which one of them is forgiven, so that a long connection can have any number of them: 33 in a second.
const FORGIVEN_AFTER: Nanos = Nanos::from_millis(30);

/// What is wrong with a client that gives up too many.
pub const RAPID_RESET: &str = "too many requests were given up before they were read";

/// The requests of a connection that were given up before they were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct RapidResets {
    /// When all of them will be forgiven.
    forgiven_at: Nanos,
}

impl RapidResets {
    /// Counts a request that was given up at this time. Returns whether the requests are still too few for a flood.
    pub fn count(&mut self, now: Nanos) -> bool {
        self.forgiven_at = self.forgiven_at.max(now) + FORGIVEN_AFTER;
        self.forgiven_at - now <= FORGIVEN_AFTER.saturating_mul(MOST_AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_allowed_at_once_as_were_forgiven() {
        let (mut resets, mut now) = (RapidResets::default(), Nanos::from_secs(7));
        assert!((0..MOST_AT_ONCE).all(|_| resets.count(now)));
        assert!(!resets.count(now));
        let mut resets = RapidResets::default();
        for _ in 0..3 * MOST_AT_ONCE {
            now += FORGIVEN_AFTER;
            assert!(resets.count(now));
        }
        assert!((1..MOST_AT_ONCE).all(|_| resets.count(now)));
        assert!(!resets.count(now));
    }
}
