//! The time of day for checks of certificates and tickets: that of the link, so that it also works in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// A clock that shows the second that was set last.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Sets the time of day in seconds since 1970.
    pub fn set(&self, unix_seconds: i64) {
        self.0.store(u64::try_from(unix_seconds).unwrap_or(0), Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Relaxed))))
    }
}
