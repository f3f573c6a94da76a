//! Whether anything can still come of a test: one in which nothing succeeds any more, or whose cache does not fill although
//! it has to, would go on for ever.

use polygraph_link::{Nanos, SECOND};

use crate::live_counters::Counts;

/// So many failed transactions are needed before a test is given up for them.
const FAILED_LEAST: u64 = 10;
/// Transactions that neither succeed nor fail are waited for so many times as long as those that fail.
const WAITING_FACTOR: u64 = 20;
/// A cache that has to be filled and is not is given up after this time ...
const FILL_PATIENCE: Nanos = 60 * SECOND;
/// ... if so many transactions have ended meanwhile.
const FILL_LEAST: u64 = 1000;

/// Watches whether transactions succeed, and fill the cache.
#[derive(Clone, Copy, Debug)]
pub struct GiveUpMonitor {
    /// How long nothing may succeed; `None`: for ever.
    patience: Option<Nanos>,
    /// What was counted when something succeeded last, and when that was.
    good: (Counts, Nanos),
    /// The same of the last fill.
    fill: (Counts, Nanos),
}

impl GiveUpMonitor {
    /// A test that starts at `start`, in which nothing may succeed for so long.
    pub fn new(patience: Option<Nanos>, start: Nanos) -> GiveUpMonitor {
        let none = (Counts::default(), start);
        GiveUpMonitor { patience, good: none, fill: none }
    }

    /// What was counted until `now`.
    pub fn look(&mut self, counts: Counts, now: Nanos) {
        if counts.ok != self.good.0.ok {
            self.good = (counts, now);
        }
        if counts.fills != self.fill.0.fills {
            self.fill = (counts, now);
        }
    }

    /// A phase that has to fill the cache begins at `now`.
    pub fn begin_phase(&mut self, counts: Counts, now: Nanos) {
        self.fill = (counts, now);
    }

    /// Why nothing can be expected of the test any more, if so.
    pub fn is_hopeless(&self, counts: Counts, now: Nanos) -> Option<String> {
        let (before, last) = self.good;
        let (patience, quiet) = (self.patience?, now.saturating_sub(last));
        let failed = counts.failed - before.failed;
        let seconds = quiet as f64 * 1e-9;
        if quiet >= patience && failed >= FAILED_LEAST {
            return Some(format!(
                "nothing has succeeded for {seconds:.1} s, and {failed} transactions failed"
            ));
        }
        let waiting = counts.started.saturating_sub(counts.ended());
        (quiet >= patience.saturating_mul(WAITING_FACTOR) && waiting >= FAILED_LEAST)
            .then(|| format!("nothing has succeeded for {seconds:.1} s, and {waiting} transactions wait"))
    }

    /// Why a cache that has to be filled will not be, if so.
    pub fn is_unfillable(&self, counts: Counts, now: Nanos) -> Option<String> {
        let (before, last) = self.fill;
        let (ended, quiet) = (counts.ended() - before.ended(), now.saturating_sub(last));
        (quiet >= FILL_PATIENCE && ended >= FILL_LEAST).then(|| {
            format!(
                "none of {ended} transactions of the last {:.0} s filled the cache, which misses on cachable objects do",
                quiet as f64 * 1e-9
            )
        })
    }
}
