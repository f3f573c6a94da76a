//! What one loop counts during one interval.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
use crate::hist::Hist;
use crate::level::Level;

/// The class of a finished transaction; each is counted in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// Answered by the device without asking the server for this request.
    Hit,
    /// Answered first hand by the server, cachable.
    Miss,
    /// Answered first hand by the server, not cachable.
    Uncachable,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 3;
    /// All classes.
    pub const ALL: [Class; Class::COUNT] = [Class::Hit, Class::Miss, Class::Uncachable];

    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Hit => "hit",
            Class::Miss => "miss",
            Class::Uncachable => "uncachable",
        }
    }
}

/// What is known of the finished transactions of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassStats {
    /// Response time in microseconds from the actual start (connect or first use) to the last byte.
    pub rptm_us: Hist,
    /// Response time in microseconds from the moment the request was due.
    pub due_rptm_us: Hist,
    /// Size of the complete reply, head and body, in bytes.
    pub size: Hist,
}

impl ClassStats {
    fn merge(&mut self, other: &ClassStats) {
        self.rptm_us.merge(&other.rptm_us);
        self.due_rptm_us.merge(&other.due_rptm_us);
        self.size.merge(&other.size);
    }

    fn reset(&mut self) {
        self.rptm_us.reset();
        self.due_rptm_us.reset();
        self.size.reset();
    }
}

/// A count with a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Number of transactions.
    pub count: u64,
    /// Their reply bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one transaction.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Tally) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// The counters and histograms of one loop and one interval, or of any fold of those.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Finished transactions by [`Class`].
    pub classes: [ClassStats; Class::COUNT],
    /// Finished transactions for which a perfect cache would have had a hit: repeats of cachable objects.
    pub offered_hits: Tally,
    /// Errors by [`ErrorKind::index`], noted ones included.
    pub errors: Vec<u64>,
    /// Transactions that were begun again on another connection after a persistent-connection race.
    pub retried: u64,
    /// Lateness of every start in microseconds: actual minus due.
    pub late_us: Hist,
    /// Concurrent transactions: entered = started, left = finished or failed.
    pub xacts: Level,
    /// Open connections.
    pub conns: Level,
    /// Lifetime of closed connections in microseconds.
    pub conn_ttl_us: Hist,
    /// Transactions per closed connection.
    pub conn_uses: Hist,
    /// Bytes read from and written to sockets.
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
}

impl Block {
    /// An empty block (about 1.1 MB, nearly all of it histogram bins).
    pub fn new() -> Block {
        Block { errors: vec![0; ErrorKind::COUNT], ..Block::default() }
    }

    /// The statistics of one class.
    pub fn class(&self, class: Class) -> &ClassStats {
        &self.classes[class as usize]
    }

    /// The statistics of one class, to be added to.
    pub fn class_mut(&mut self, class: Class) -> &mut ClassStats {
        &mut self.classes[class as usize]
    }

    /// Counts an error.
    pub fn count_error(&mut self, kind: ErrorKind) {
        self.errors[kind.index()] += 1;
    }

    /// Adds the block of another loop for the same interval.
    pub fn merge(&mut self, other: &Block) {
        self.add_counts(other);
        self.xacts.merge(&other.xacts);
        self.conns.merge(&other.conns);
    }

    /// Appends the block of a later interval.
    pub fn concatenate(&mut self, later: &Block) {
        self.add_counts(later);
        self.xacts.concatenate(&later.xacts);
        self.conns.concatenate(&later.conns);
    }

    fn add_counts(&mut self, other: &Block) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs);
        }
        self.offered_hits.merge(other.offered_hits);
        self.errors.resize(self.errors.len().max(other.errors.len()), 0);
        for (mine, theirs) in self.errors.iter_mut().zip(&other.errors) {
            *mine += theirs;
        }
        self.retried += other.retried;
        self.late_us.merge(&other.late_us);
        self.conn_ttl_us.merge(&other.conn_ttl_us);
        self.conn_uses.merge(&other.conn_uses);
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }

    /// Brings levels up to `now_ns`, the end of the interval.
    pub fn close(&mut self, now_ns: u64) {
        self.xacts.advance(now_ns);
        self.conns.advance(now_ns);
    }

    /// Empties the block for the interval after `previous`, whose levels go on.
    pub fn begin_after(&mut self, previous: &Block) {
        self.clear();
        self.xacts = previous.xacts.carry();
        self.conns = previous.conns.carry();
    }

    /// Empties the block, levels included.
    pub fn clear(&mut self) {
        self.classes.iter_mut().for_each(ClassStats::reset);
        self.offered_hits = Tally::default();
        self.errors.fill(0);
        self.retried = 0;
        self.late_us.reset();
        self.xacts = Level::default();
        self.conns = Level::default();
        self.conn_ttl_us.reset();
        self.conn_uses.reset();
        self.bytes_read = 0;
        self.bytes_written = 0;
    }

    /// Number of transactions that finished well.
    pub fn ok_count(&self) -> u64 {
        self.classes.iter().map(|class| class.size.count()).sum()
    }

    /// Number of transactions that failed.
    pub fn failed_count(&self) -> u64 {
        self.errors_where(ErrorKind::fails)
    }

    /// Number of errors that were only noted.
    pub fn noted_count(&self) -> u64 {
        self.errors_where(|kind| !kind.fails())
    }

    fn errors_where(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        ErrorKind::all().zip(&self.errors).filter(|(kind, _)| wanted(*kind)).map(|(_, n)| n).sum()
    }

    /// Reply bytes of the transactions that finished well.
    pub fn ok_bytes(&self) -> f64 {
        self.classes.iter().map(|class| class.size.sum()).sum()
    }

    /// Share of failed transactions among all that ended (0 to 1), `None` if none ended.
    pub fn error_ratio(&self) -> Option<f64> {
        ratio(self.failed_count() as f64, (self.ok_count() + self.failed_count()) as f64)
    }

    /// Measured document hit ratio (0 to 1), `None` without finished transactions.
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.class(Class::Hit).size.count() as f64, self.ok_count() as f64)
    }

    /// Measured byte hit ratio (0 to 1).
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.class(Class::Hit).size.sum(), self.ok_bytes())
    }

    /// Offered document hit ratio (0 to 1).
    pub fn offered_hit_ratio(&self) -> Option<f64> {
        ratio(self.offered_hits.count as f64, self.ok_count() as f64)
    }

    /// Offered byte hit ratio (0 to 1).
    pub fn offered_byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.offered_hits.bytes as f64, self.ok_bytes())
    }

    /// Mean response time in microseconds over all classes.
    pub fn mean_rptm_us(&self) -> Option<f64> {
        ratio(self.classes.iter().map(|class| class.rptm_us.sum()).sum(), self.ok_count() as f64)
    }

    /// Response times of all classes together, from the actual start.
    pub fn rptm_us(&self) -> Hist {
        self.over_classes(|class| &class.rptm_us)
    }

    /// Response times of all classes together, from the due time.
    pub fn due_rptm_us(&self) -> Hist {
        self.over_classes(|class| &class.due_rptm_us)
    }

    /// Reply sizes of all classes together.
    pub fn sizes(&self) -> Hist {
        self.over_classes(|class| &class.size)
    }

    fn over_classes(&self, pick: impl Fn(&ClassStats) -> &Hist) -> Hist {
        let mut all = Hist::new();
        self.classes.iter().for_each(|class| all.merge(pick(class)));
        all
    }
}

/// `part / whole`, undefined if there is no whole.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hits: u64, misses: u64) -> Block {
        let mut block = Block::new();
        for (class, n, bytes) in [(Class::Hit, hits, 10), (Class::Miss, misses, 30)] {
            for _ in 0..n {
                block.class_mut(class).size.record(bytes);
                block.class_mut(class).rptm_us.record(1000);
            }
        }
        block
    }

    #[test]
    fn ratios_are_undefined_without_transactions() {
        let empty = Block::new();
        assert_eq!((empty.hit_ratio(), empty.error_ratio(), empty.mean_rptm_us()), (None, None, None));
    }

    #[test]
    fn ratios_by_count_and_by_bytes() {
        let mut all = block(3, 1);
        assert_eq!(all.hit_ratio(), Some(0.75));
        assert_eq!(all.byte_hit_ratio(), Some(0.5));
        all.concatenate(&block(0, 4));
        assert_eq!(all.hit_ratio(), Some(3.0 / 8.0));
        all.count_error(ErrorKind::Timeout);
        all.count_error(ErrorKind::UncachableHit);
        assert_eq!(all.error_ratio(), Some(1.0 / 9.0));
        assert_eq!(all.noted_count(), 1);
    }
}
