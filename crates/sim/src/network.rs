//! State that a virtual loop shares with its connections: the clock, the timers, the delay of the network, spare
//! buffers.

use std::cell::{Cell, RefCell};

use polygraph_link::Nanos;

use crate::timers::Timers;

/// Maximum number of buffers that are kept for reuse.
const SPARE_BUFFERS: usize = 64;
/// Maximum size of a kept buffer in bytes.
const LARGEST_SPARE: usize = 1 << 20;

/// The network of one virtual loop.
#[derive(Default)]
pub struct Network {
    /// The time of the virtual clock.
    pub now: Cell<Nanos>,
    /// Delay of the network in one direction.
    pub delay: Cell<Nanos>,
    /// The tasks that wait for a time.
    pub timers: Timers,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl Network {
    /// The arrival time of data that is sent now.
    pub fn arrival(&self) -> Nanos {
        self.now.get() + self.delay.get()
    }

    /// An empty buffer.
    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a buffer.
    pub fn recycle(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < SPARE_BUFFERS && buffer.capacity() <= LARGEST_SPARE {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}
