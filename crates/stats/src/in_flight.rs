//! Transactions in flight: started, but not complete.

use slab::Slab;

use crate::summary_stats::TimeAndSize;
use crate::unanswered::Unanswered;

/// Identifies a transaction in flight within its loop. After the end of the transaction the value is reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionHandle(u32);

#[derive(Debug)]
struct InFlight {
    began_ns: u64,
    /// When its request was sent last; 0 before.
    asked_ns: u64,
    bytes: u64,
}

/// The transactions in flight of one loop.
#[derive(Debug, Default)]
pub struct InFlightTransactions(Slab<InFlight>);

impl InFlightTransactions {
    /// Adds a transaction that starts now.
    pub fn begin(&mut self, now_ns: u64) -> TransactionHandle {
        TransactionHandle(self.0.insert(InFlight { began_ns: now_ns, asked_ns: 0, bytes: 0 }) as u32)
    }

    /// The request of a transaction is sent.
    pub fn ask(&mut self, handle: TransactionHandle, now_ns: u64) {
        if let Some(running) = self.0.get_mut(handle.0 as usize) {
            running.asked_ns = now_ns;
        }
    }

    /// Counts received bytes of the reply of a transaction.
    pub fn read(&mut self, handle: TransactionHandle, bytes: u64) {
        if let Some(running) = self.0.get_mut(handle.0 as usize) {
            running.bytes += bytes;
        }
    }

    /// Removes a transaction that ended.
    pub fn end(&mut self, handle: TransactionHandle) {
        self.0.try_remove(handle.0 as usize);
    }

    /// The requests that were sent, and of whose replies nothing has arrived.
    pub fn unanswered(&self, now_ns: u64) -> Unanswered {
        let mut unanswered = Unanswered::default();
        let asked = self.0.iter().filter(|(_, running)| running.asked_ns > 0 && running.bytes == 0);
        asked.for_each(|(_, running)| unanswered.count(now_ns.saturating_sub(running.asked_ns)));
        unanswered
    }

    /// Ages in microseconds, and bytes received so far.
    pub fn sums(&self, now_ns: u64) -> TimeAndSize {
        let mut sums = TimeAndSize::default();
        for (_, running) in &self.0 {
            sums.record(now_ns.saturating_sub(running.began_ns) / 1000, running.bytes);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_grow_until_the_end() {
        let mut unfinished = InFlightTransactions::default();
        let first = unfinished.begin(1_000_000);
        let second = unfinished.begin(3_000_000);
        unfinished.ask(first, 1_000_000);
        unfinished.ask(second, 3_000_000);
        unfinished.read(second, 10);
        assert_eq!(unfinished.unanswered(1_001_000_000).older_than(1.0), Some((1, 1)));
        unfinished.read(second, 5);
        let sums = unfinished.sums(5_000_000);
        assert_eq!(
            (sums.rptm_us.sum, sums.rptm_us.min(), sums.rptm_us.max()),
            (6000.0, Some(2000), Some(4000))
        );
        assert_eq!((sums.size.sum, sums.size.min()), (15.0, Some(0)));
        unfinished.end(first);
        unfinished.end(second);
        assert_eq!(unfinished.sums(9_000_000), TimeAndSize::default());
        let again = unfinished.begin(9_000_000);
        assert_eq!(unfinished.sums(9_001_000).rptm_us.sum, 1.0, "{again:?}");
    }
}
