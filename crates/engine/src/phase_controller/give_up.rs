//! Detects that a test cannot succeed any more: no transaction succeeds, or a cache that must be filled does not
//! fill. Without this check such a test would never end.

use polygraph_link::Nanos;

use crate::live_counters::Counts;

/// The least number of failed transactions after which a test is given up.
const FAILED_LEAST: u64 = 10;
/// Transactions that neither succeed nor fail may take this many times as long as failing ones before the test is
/// given up.
const WAITING_FACTOR: u64 = 20;
/// A phase that has to fill the cache is given up after this time without a fill ...
const FILL_PATIENCE: Nanos = Nanos::from_secs(60);
/// ... if this many transactions have ended in it.
const FILL_LEAST: u64 = 1000;

/// Monitors whether transactions succeed and fill the cache.
#[derive(Clone, Copy, Debug)]
pub struct GiveUpMonitor {
    /// The longest time without a success; `None`: unlimited.
    patience: Option<Nanos>,
    /// The counts at the last success, and its time.
    good: (Counts, Nanos),
    /// The counts at the last fill, and its time.
    fill: (Counts, Nanos),
}

impl GiveUpMonitor {
    /// A monitor of a test that starts at `start`.
    pub fn new(patience: Option<Nanos>, start: Nanos) -> GiveUpMonitor {
        let none = (Counts::default(), start);
        GiveUpMonitor { patience, good: none, fill: none }
    }

    /// Records the counts at `now`.
    pub fn look(&mut self, counts: Counts, now: Nanos) {
        if counts.ok != self.good.0.ok {
            self.good = (counts, now);
        }
        if counts.fills != self.fill.0.fills {
            self.fill = (counts, now);
        }
    }

    /// Restarts the wait for a fill, because a phase starts at `now`.
    pub fn begin_phase(&mut self, counts: Counts, now: Nanos) {
        self.fill = (counts, now);
    }

    /// The reason why no transaction can be expected to succeed, if there is one.
    pub fn cannot_succeed(&self, counts: Counts, now: Nanos) -> Option<String> {
        let (before, last) = self.good;
        let (patience, quiet) = (self.patience?, now.saturating_sub(last));
        let failed = counts.failed - before.failed;
        let seconds = quiet.as_f64() * 1e-9;
        if quiet >= patience && failed >= FAILED_LEAST {
            return Some(format!(
                "nothing has succeeded for {seconds:.1} s, and {failed} transactions failed"
            ));
        }
        let waiting = counts.started.saturating_sub(counts.ended());
        (quiet >= patience.saturating_mul(WAITING_FACTOR) && waiting >= FAILED_LEAST)
            .then(|| format!("nothing has succeeded for {seconds:.1} s, and {waiting} transactions wait"))
    }

    /// The reason why the cache cannot be expected to fill, if there is one.
    pub fn cannot_fill(&self, counts: Counts, now: Nanos) -> Option<String> {
        let (before, last) = self.fill;
        let (ended, quiet) = (counts.ended() - before.ended(), now.saturating_sub(last));
        (quiet >= FILL_PATIENCE && ended >= FILL_LEAST).then(|| {
            format!(
                "none of {ended} transactions in the last {:.0} s was a miss on a cachable object, which would fill the cache",
                quiet.as_f64() * 1e-9
            )
        })
    }
}
