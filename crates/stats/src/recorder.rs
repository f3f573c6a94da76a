//! The recorder, in which robots and servers of one event loop count.

use polygraph_link::Nanos;
use std::cell::{Cell, RefCell};
use std::iter::Sum;
use std::rc::Rc;

use crate::block::{Block, Finished};
use crate::dump::{DumpPlan, Dumps};
use crate::error::{ErrorCounts, ErrorKind};
use crate::evidence::{ErrorSample, Evidence, is_kept};
use crate::in_flight::{InFlightTransactions, TransactionHandle};
use crate::unanswered::Unanswered;
use crate::window::Window;
use crate::xacts::{TransactionSample, TransactionSampler, Xact};

/// Numbers of transactions since the start of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Started transactions.
    pub started: u64,
    /// Successful transactions.
    pub ok: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Cachable replies that did not come from the cache, and so filled it.
    pub fills: u64,
    /// Bytes of these replies.
    pub fill_bytes: u64,
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Totals>>(all: I) -> Totals {
        all.fold(Totals::default(), |a, b| Totals {
            started: a.started + b.started,
            ok: a.ok + b.ok,
            failed: a.failed + b.failed,
            fills: a.fills + b.fills,
            fill_bytes: a.fill_bytes + b.fill_bytes,
        })
    }
}

/// A handle to the current [`Block`] of a loop. Clones are handles to the same block.
#[derive(Clone, Debug)]
pub struct Recorder(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    block: RefCell<Box<Block>>,
    samples: RefCell<Vec<ErrorSample>>,
    /// Errors since the start.
    errors: RefCell<ErrorCounts>,
    /// Counts of the intervals before the current one.
    before: Cell<Totals>,
    unfinished: RefCell<InFlightTransactions>,
    delta: RefCell<DeltaState>,
    taker: RefCell<TransactionSampler>,
    dump: Cell<DumpPlan>,
    dumps: RefCell<Dumps>,
}

/// Counts since the last delta was taken.
#[derive(Debug, Default)]
struct DeltaState {
    /// Time of the last delta in nanoseconds; `None` before the first one.
    until: Option<u64>,
    /// The counts of the current block at that time.
    counted: Window,
    /// Counts since then, in blocks that were taken.
    unread: Window,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new()
    }
}

impl Recorder {
    /// A recorder with an empty block.
    pub fn new() -> Recorder {
        Recorder(Rc::new(Inner {
            block: RefCell::new(Box::new(Block::new())),
            samples: RefCell::default(),
            errors: RefCell::default(),
            before: Cell::default(),
            unfinished: RefCell::default(),
            delta: RefCell::default(),
            taker: RefCell::default(),
            dump: Cell::default(),
            dumps: RefCell::default(),
        }))
    }

    /// Counts in the current block.
    pub fn with<R>(&self, count: impl FnOnce(&mut Block) -> R) -> R {
        count(&mut self.0.block.borrow_mut())
    }

    /// Counts the start of a transaction.
    pub fn begin(&self, now: Nanos) -> TransactionHandle {
        let now_ns = now.as_u64();
        self.with(|block| block.xacts.enter(now));
        self.0.unfinished.borrow_mut().begin(now_ns)
    }

    /// The request of an unfinished transaction is sent now.
    pub fn ask(&self, handle: TransactionHandle, now: Nanos) {
        self.0.unfinished.borrow_mut().ask(handle, now.as_u64());
    }

    /// Counts bytes of the reply of an unfinished transaction that arrived on a connection.
    pub fn read(&self, handle: TransactionHandle, bytes: u64) {
        self.with(|block| block.reads.record(bytes));
        self.0.unfinished.borrow_mut().read(handle, bytes);
    }

    /// The requests that wait for their answer.
    pub fn unanswered(&self, now: Nanos) -> Unanswered {
        self.0.unfinished.borrow().unanswered(now.as_u64())
    }

    /// Counts a successful transaction.
    pub fn finish(&self, done: &Finished) {
        self.with(|block| block.finish(done));
        let mut delta = self.0.delta.borrow_mut();
        // In most runs, nobody asks for news.
        if delta.until.is_some() {
            delta.unread.finish(done);
        }
    }

    /// Counts a reply of a transaction that failed, see [`Block::fail`].
    pub fn fail(&self, status: u16, rptm_us: u64, size: u64, custom: bool) {
        self.with(|block| block.fail(status, rptm_us, size, custom));
    }

    /// Counts the end of a transaction.
    pub fn end(&self, handle: TransactionHandle, now: Nanos) {
        self.with(|block| block.xacts.leave(now));
        self.0.unfinished.borrow_mut().end(handle);
    }

    /// Counts since the last call, for live views and load controllers, which cannot wait for the end of the interval.
    /// The first call starts counting.
    pub fn take_delta(&self, now: Nanos) -> Window {
        let now_ns = now.as_u64();
        self.update_delta(now_ns);
        let mut delta = self.0.delta.borrow_mut();
        let carried = delta.unread.carry();
        let mut taken = std::mem::replace(&mut delta.unread, carried);
        taken.live = self.0.unfinished.borrow().sums(now_ns);
        taken
    }

    fn update_delta(&self, now_ns: u64) {
        let mut block = self.0.block.borrow_mut();
        let mut delta = self.0.delta.borrow_mut();
        block.close(now_ns);
        let seconds = now_ns.saturating_sub(delta.until.unwrap_or(now_ns)) as f64 * 1e-9;
        let whole = Window::take(&mut block, delta.counted.seconds() + seconds);
        let fresh = whole.since(&delta.counted);
        if delta.until.is_some() {
            delta.unread.append(&fresh);
        } else {
            delta.unread = fresh.carry();
        }
        delta.until = Some(now_ns);
        delta.counted = whole;
    }

    /// Takes the next `capacity` successful transactions for a sample.
    pub fn begin_sample(&self, sample: usize, capacity: u64) {
        self.0.taker.borrow_mut().begin(sample, capacity);
    }

    /// Takes a transaction if a sample is running; otherwise `xact` is not called.
    pub fn take(&self, xact: impl FnOnce() -> Xact) {
        let mut taker = self.0.taker.borrow_mut();
        if taker.is_running() {
            taker.take(&xact());
        }
    }

    /// Takes the transactions that were sampled since the last call.
    pub fn taken(&self) -> Vec<TransactionSample> {
        self.0.taker.borrow_mut().hand_over()
    }

    /// Sets what to dump of transactions.
    pub fn set_dump(&self, plan: DumpPlan) {
        self.0.dump.set(plan);
    }

    /// What to dump of transactions.
    pub fn dump(&self) -> DumpPlan {
        self.0.dump.get()
    }

    /// Adds a dumped text, unless it is empty.
    pub fn show(&self, text: String) {
        if !text.is_empty() {
            self.0.dumps.borrow_mut().push(text);
        }
    }

    /// Takes the texts that were dumped since the last call.
    pub fn shown(&self) -> Vec<String> {
        self.0.dumps.borrow_mut().hand_over()
    }

    /// Counts an error and keeps an example of it: the first few of each class, then whenever the count since the
    /// start has doubled. `detail` is only called if the example is kept.
    pub fn error(&self, kind: ErrorKind, now: Nanos, detail: impl FnOnce() -> String) {
        self.error_with(kind, now, || Evidence::new(detail()));
    }

    /// Like [`Recorder::error`], with facts of both sides.
    pub fn error_with(&self, kind: ErrorKind, now: Nanos, evidence: impl FnOnce() -> Evidence) {
        let now_ns = now.as_u64();
        self.with(|block| block.count_error(kind));
        let count = self.0.errors.borrow_mut().count(kind);
        if is_kept(count) {
            let sample = ErrorSample { at_ns: now_ns, kind, evidence: evidence() };
            self.0.samples.borrow_mut().push(sample);
        }
    }

    /// Transactions since the start.
    pub fn totals(&self) -> Totals {
        let before = self.0.before.get();
        self.with(|block| Totals {
            started: before.started + block.xacts.entered,
            ok: before.ok + block.ok_count(),
            failed: before.failed + block.failed_count(),
            fills: before.fills + block.fills().count,
            fill_bytes: before.fill_bytes + block.fills().bytes,
        })
    }

    /// Ends the interval at `now`: returns its block and samples, and continues with `fresh`.
    pub fn hand_over(&self, mut fresh: Box<Block>, now: Nanos) -> (Box<Block>, Vec<ErrorSample>) {
        let now_ns = now.as_u64();
        self.0.before.set(self.totals());
        if self.0.delta.borrow().until.is_some() {
            self.update_delta(now_ns);
            self.0.delta.borrow_mut().counted = Window::default();
        }
        let mut block = self.0.block.borrow_mut();
        block.close(now_ns);
        block.unanswered = self.0.unfinished.borrow().unanswered(now_ns);
        fresh.begin_after(&block);
        (std::mem::replace(&mut block, fresh), self.0.samples.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn levels_go_on_and_totals_grow_over_intervals() {
        let recorder = Recorder::new();
        recorder.with(|block| block.xacts.enter(Nanos::new(10)));
        recorder.with(|block| block.xacts.enter(Nanos::new(20)));
        recorder.error(ErrorKind::Timeout, Nanos::new(30), || "first".into());
        let (block, samples) = recorder.hand_over(Box::new(Block::new()), Nanos::new(1_000));
        assert_eq!((block.xacts.last, samples.len()), (2, 1));
        recorder.with(|block| block.xacts.leave(Nanos::new(1_500)));
        let (block, samples) = recorder.hand_over(Box::new(Block::new()), Nanos::new(2_000));
        assert_eq!((block.xacts.last, block.xacts.entered, samples.len()), (1, 0, 0));
        assert_eq!(recorder.totals(), Totals { started: 2, failed: 1, ..Totals::default() });
    }

    #[test]
    fn fills_are_cachable_misses() {
        let recorder = Recorder::new();
        let finish = |class, size| {
            recorder.with(|block| block.finish(&Finished { class, size, ..Finished::default() }));
        };
        finish(Class::Miss, 100);
        finish(Class::Hit, 10);
        recorder.hand_over(Box::new(Block::new()), Nanos::new(1));
        finish(Class::Miss, 50);
        finish(Class::Reload, 7);
        let totals = recorder.totals();
        assert_eq!((totals.ok, totals.fills, totals.fill_bytes), (4, 2, 150));
    }

    #[test]
    fn news_are_told_once_whatever_blocks_they_are_in() {
        const SECOND: u64 = 1_000_000_000;
        let recorder = Recorder::new();
        let finish = |rptm_us, begun| {
            recorder.end(begun, Nanos::new(SECOND));
            let authenticated = (rptm_us == 10).then_some(crate::AuthScheme::Basic);
            recorder.finish(&Finished { rptm_us, size: 7, authenticated, ..Finished::default() });
        };
        finish(9, recorder.begin(Nanos::ZERO));
        recorder.with(|block| block.auth_steps[1].record(3, 8));
        let before = recorder.take_delta(Nanos::new(SECOND));
        assert_eq!((before.ended(), before.seconds()), (0, 0.0), "nobody had asked");
        let (first, second) = (recorder.begin(Nanos::new(SECOND)), recorder.begin(Nanos::new(SECOND)));
        recorder.read(second, 100);
        finish(20, first);
        recorder.with(|block| block.auth_steps[0].record(4, 9));
        recorder.error(ErrorKind::Timeout, Nanos::new(30), || "first".into());
        recorder.hand_over(Box::new(Block::new()), Nanos::new(2 * SECOND));
        finish(10, recorder.begin(Nanos::new(2 * SECOND)));
        let delta = recorder.take_delta(Nanos::new(3 * SECOND));
        let all = delta.all();
        assert_eq!((all.rptm_us.sum, all.rptm_us.min(), all.rptm_us.max()), (30.0, Some(10), Some(20)));
        assert_eq!((delta.offered[1], delta.authenticated.size.count), (all, 1));
        assert_eq!((delta.auth_steps.size.sum, delta.auth_steps.rptm_us.max()), (9.0, Some(4)));
        assert_eq!((delta.failed, delta.ended(), delta.seconds()), (1, 3, 2.0));
        assert_eq!((delta.xacts.entered, delta.xacts.left, delta.xacts.last), (3, 2, 1));
        assert_eq!((delta.live.size.sum, delta.live.rptm_us.sum), (100.0, 2e6));
        let quiet = recorder.take_delta(Nanos::new(5 * SECOND));
        assert_eq!(
            (quiet.ended(), quiet.xacts.last, quiet.xacts.integral, quiet.seconds()),
            (0, 1, 2.0, 2.0)
        );
        assert_eq!((quiet.all().rptm_us.min(), quiet.live.rptm_us.sum), (None, 4e6));
    }

    #[test]
    fn samples_are_few_over_intervals() {
        let recorder = Recorder::new();
        let mut kept = 0;
        for interval in 0..10 {
            (0..100).for_each(|i| {
                recorder.error(ErrorKind::Reset, Nanos::new(interval * 100 + i), || "again".into())
            });
            kept += recorder.hand_over(Box::new(Block::new()), Nanos::new(1)).1.len();
        }
        // The first four, then numbers 8, 16, ... 512.
        assert_eq!(kept, 4 + 7);
    }
}
