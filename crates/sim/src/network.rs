//! What the connections of a virtual loop share with it: the clock, the timers, the delay of the network, spare buffers.

use std::cell::{Cell, RefCell};

use polygraph_link::Nanos;

use crate::timers::Timers;

/// Number of buffers that are kept for reuse, at most.
const SPARE_BUFFERS: usize = 64;
/// Larger buffers are not kept, bytes.
const LARGEST_SPARE: usize = 1 << 20;

/// The network of one virtual loop.
#[derive(Default)]
pub struct Network {
    /// The time that the virtual clock shows.
    pub now: Cell<Nanos>,
    /// Time that everything takes from one end of the network to the other.
    pub delay: Cell<Nanos>,
    /// The tasks that wait for a time.
    pub timers: Timers,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl Network {
    /// When something that is sent now arrives.
    pub fn arrival(&self) -> Nanos {
        self.now.get() + self.delay.get()
    }

    /// An empty buffer.
    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub fn recycle(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < SPARE_BUFFERS && buffer.capacity() <= LARGEST_SPARE {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}
