//! How the clocks of servers differ from that of robots.

use serde::{Deserialize, Serialize};

use crate::fold::Fold;

/// By how many seconds the clock of servers is ahead of that of robots: the largest difference between `Date` of a reply that a server
/// made for the request and the time at which it arrived, of replies that took less than a second. Both times are whole seconds, so the
/// clocks differ by about as much, give or take a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAhead(Option<i64>);

impl ClockAhead {
    /// Adds a reply whose `Date` differs by so many seconds.
    pub fn note(&mut self, seconds: i64) {
        self.0 = self.0.max(Some(seconds));
    }

    /// The difference in seconds; `None` without replies.
    pub fn seconds(self) -> Option<i64> {
        self.0
    }
}

impl Fold for ClockAhead {
    fn fold(&mut self, other: &ClockAhead) {
        self.0 = self.0.max(other.0);
    }

    fn clear(&mut self) {
        self.0 = None;
    }

    fn drop_bins(&mut self) {}
}
