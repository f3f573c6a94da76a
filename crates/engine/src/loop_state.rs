//! What the connections of one event loop share: deadlines, the receive buffer, captures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use polygraph_link::Capture;

use crate::deadlines::Deadlines;

/// The size of the receive buffer in bytes: the most that one read returns. Replies of the standard workloads fit with few
/// exceptions.
const BUFFER: usize = 64 * 1024;

/// What the connections of one loop share. Clones are handles to the same state.
#[derive(Clone, Debug)]
pub struct LoopState(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    deadlines: Deadlines,
    buffer: RefCell<Box<[u8]>>,
    /// For many datagrams at once; empty on loops that receive none.
    batch: RefCell<Vec<u8>>,
    eager_reads: EagerReads,
    /// How many bytes of its messages each new connection captures; `None`: none.
    capture: Cell<Option<usize>>,
}

impl LoopState {
    /// The state of a loop without connections. Nothing is captured.
    pub fn new() -> LoopState {
        LoopState(Rc::new(Inner {
            deadlines: Deadlines::default(),
            buffer: RefCell::new(vec![0; BUFFER].into_boxed_slice()),
            batch: RefCell::default(),
            eager_reads: EagerReads::default(),
            capture: Cell::new(None),
        }))
    }

    /// Makes connections that are opened from now on capture `size` bytes of their messages.
    pub fn capture_messages(&self, size: usize) {
        self.0.capture.set(Some(size));
    }

    /// The capture of a new connection, if messages are captured.
    pub fn new_capture(&self) -> Option<Box<Capture>> {
        self.0.capture.get().map(|size| Box::new(Capture::new(size)))
    }

    /// The deadlines of this loop's connections.
    pub fn deadlines(&self) -> &Deadlines {
        &self.0.deadlines
    }

    /// The statistics about first reads of accepted connections.
    pub fn eager_reads(&self) -> &EagerReads {
        &self.0.eager_reads
    }

    /// Lends the loop's receive buffer to `use_it`.
    pub fn with_buffer<R>(&self, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
        use_it(&mut self.0.buffer.borrow_mut())
    }

    /// Lends a buffer of this size, in which several batches of datagrams fit, to `use_it`.
    pub fn with_batch<R>(&self, size: usize, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut batch = self.0.batch.borrow_mut();
        if batch.len() < size {
            *batch = vec![0; size];
        }
        use_it(&mut batch[..size])
    }
}

impl Default for LoopState {
    fn default() -> LoopState {
        LoopState::new()
    }
}

/// Predicts whether a read right after accepting a connection finds a request. That depends on the clients: some send their
/// request without waiting for the connect to complete, as the robots of this program do, and others wait.
#[derive(Debug, Default)]
pub struct EagerReads {
    /// Recent successes minus failures, limited to ±[`EagerReads::LIMIT`].
    score: Cell<i8>,
    /// Connections since the last try, while tries fail.
    skipped: Cell<u8>,
}

impl EagerReads {
    const LIMIT: i8 = 8;
    /// While first reads fail, one connection in this many is tried all the same, to notice when that changes.
    const PROBE: u8 = 32;

    /// Whether a first read is worth a system call.
    pub fn is_worth_it(&self) -> bool {
        if self.score.get() >= 0 {
            return true;
        }
        self.skipped.set((self.skipped.get() + 1) % Self::PROBE);
        self.skipped.get() == 0
    }

    /// Records whether a first read has found bytes.
    pub fn record(&self, found: bool) {
        let step = if found { 2 } else { -1 };
        self.score.set((self.score.get() + step).clamp(-Self::LIMIT, Self::LIMIT));
    }
}
