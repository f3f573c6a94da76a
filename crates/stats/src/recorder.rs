//! Where the parties of one loop count what happens.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::block::Block;
use crate::error::ErrorKind;

/// An example of an error, with the facts a person needs to understand it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time in nanoseconds of the loop's clock.
    pub at_ns: u64,
    /// Class of the error.
    pub kind: ErrorKind,
    /// URL, peer, what was seen.
    pub detail: String,
}

/// At most so many examples of one class are kept per interval.
const SAMPLES_PER_CLASS: u64 = 2;

/// Transactions ended since the start of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Begun.
    pub started: u64,
    /// Ended well.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
}

/// A handle to the current [`Block`] of a loop. Clones are handles to the same block.
#[derive(Clone, Debug)]
pub struct Recorder(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    block: RefCell<Box<Block>>,
    samples: RefCell<Vec<Sample>>,
    /// Of the intervals before the current one.
    before: Cell<Totals>,
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
            before: Cell::default(),
        }))
    }

    /// Counts in the current block.
    pub fn with<R>(&self, count: impl FnOnce(&mut Block) -> R) -> R {
        count(&mut self.0.block.borrow_mut())
    }

    /// Counts an error and keeps an example of it if there are few yet; `detail` is only called then.
    pub fn error(&self, kind: ErrorKind, now_ns: u64, detail: impl FnOnce() -> String) {
        let count = self.with(|block| {
            block.count_error(kind);
            block.errors[kind.index()]
        });
        if count <= SAMPLES_PER_CLASS {
            self.0.samples.borrow_mut().push(Sample { at_ns: now_ns, kind, detail: detail() });
        }
    }

    /// Transactions since the start.
    pub fn totals(&self) -> Totals {
        let before = self.0.before.get();
        self.with(|block| Totals {
            started: before.started + block.xacts.entered,
            ok: before.ok + block.ok_count(),
            failed: before.failed + block.failed_count(),
        })
    }

    /// Ends the interval at `now_ns`: returns its block and samples; `fresh` is filled from now on.
    pub fn hand_over(&self, mut fresh: Box<Block>, now_ns: u64) -> (Box<Block>, Vec<Sample>) {
        self.0.before.set(self.totals());
        let mut block = self.0.block.borrow_mut();
        block.close(now_ns);
        fresh.begin_after(&block);
        (std::mem::replace(&mut block, fresh), self.0.samples.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_go_on_and_totals_grow_over_intervals() {
        let recorder = Recorder::new();
        recorder.with(|block| block.xacts.enter(10));
        recorder.with(|block| block.xacts.enter(20));
        recorder.error(ErrorKind::Timeout, 30, || "first".into());
        let (block, samples) = recorder.hand_over(Box::new(Block::new()), 1_000);
        assert_eq!((block.xacts.last, samples.len()), (2, 1));
        recorder.with(|block| block.xacts.leave(1_500));
        let (block, samples) = recorder.hand_over(Box::new(Block::new()), 2_000);
        assert_eq!((block.xacts.last, block.xacts.entered, samples.len()), (1, 0, 0));
        assert_eq!(recorder.totals(), Totals { started: 2, ok: 0, failed: 1 });
    }

    #[test]
    fn samples_are_few() {
        let recorder = Recorder::new();
        (0..100).for_each(|i| recorder.error(ErrorKind::Reset, i, || "again".into()));
        assert_eq!(recorder.hand_over(Box::new(Block::new()), 1).1.len(), SAMPLES_PER_CLASS as usize);
    }
}
