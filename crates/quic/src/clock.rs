//! Time as quinn-proto counts it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use polygraph_link::Nanos;

/// The moment that stands for time 0 of all links. Only differences matter.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to make an `Instant`, and its value has no effect"
)]
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A time of a link.
pub fn instant(at: Nanos) -> Instant {
    *ORIGIN + Duration::from_nanos(at.as_u64())
}

/// The time of a link that `instant` made.
pub fn nanos(at: Instant) -> Nanos {
    let since = at.saturating_duration_since(*ORIGIN).as_nanos();
    Nanos::new(u64::try_from(since).unwrap_or(u64::MAX))
}
