//! State that a virtual loop shares with its connections: the clock, the timers, the delay of the network, what is
//! about to arrive, spare buffers.

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
    /// What the connections receive.
    pub arrivals: Arrivals,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl Network {
    /// The arrival time of data that is sent now.
    pub fn arrival(&self) -> Nanos {
        self.now.get() + self.delay.get()
    }

    /// An empty buffer with room for so many bytes.
    pub fn buffer(&self, room: usize) -> Vec<u8> {
        let spare = self.buffers.borrow_mut().pop().unwrap_or_default();
        // A buffer that grows would be copied, although it is empty.
        if spare.capacity() >= room { spare } else { Vec::with_capacity(room) }
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

/// Whether anything is on its way to each end of each connection, or waits there: bytes, or the end of the stream.
///
/// Thousands of idle connections are asked about it every second. So it is not in the connections, which are all over the
/// memory, but in a few lines of the processor's cache.
#[derive(Default)]
pub struct Arrivals {
    ends: RefCell<Vec<[bool; 2]>>,
    /// Places without a connection.
    free: RefCell<Vec<usize>>,
}

impl Arrivals {
    /// Adds a connection at whose ends nothing arrives. Returns its place.
    pub fn enter(&self) -> usize {
        let mut ends = self.ends.borrow_mut();
        let free = self.free.borrow_mut().pop();
        free.unwrap_or_else(|| {
            ends.push([false; 2]);
            ends.len() - 1
        })
    }

    /// Removes the connection at `place`.
    pub fn leave(&self, place: usize) {
        self.ends.borrow_mut()[place] = [false; 2];
        self.free.borrow_mut().push(place);
    }

    /// Sets whether anything arrives at an end of the connection at `place`.
    pub fn set(&self, place: usize, end: usize, any: bool) {
        self.ends.borrow_mut()[place][end] = any;
    }

    /// Whether anything arrives at an end of the connection at `place`.
    pub fn any(&self, place: usize, end: usize) -> bool {
        self.ends.borrow()[place][end]
    }
}
