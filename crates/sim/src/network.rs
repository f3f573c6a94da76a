//! State that a virtual loop shares with its connections: the clock, the timers, the delay of the network, what has
//! happened on idle connections, spare buffers.

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
    /// What has happened on idle connections.
    pub disturbed: Disturbed,
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

/// What has happened on idle connections, by the handle of the loop that opened them. There are thousands of idle connections all
/// over the memory, so nobody looks at each of them once a second.
#[derive(Default)]
pub struct Disturbed(RefCell<Vec<Vec<Disturbance>>>);

struct Disturbance {
    at: Nanos,
    owner: u32,
}

impl Disturbed {
    /// The number of a new handle.
    pub fn enter(&self) -> u32 {
        let mut handles = self.0.borrow_mut();
        handles.push(Vec::new());
        (handles.len() - 1) as u32
    }

    /// Adds what happens at `at` on an idle connection of `owner`.
    pub fn add(&self, handle: u32, at: Nanos, owner: u32) {
        self.0.borrow_mut()[handle as usize].push(Disturbance { at, owner });
    }

    /// The owners of connections of this handle on which something has happened until `now`, in ascending order.
    pub fn take(&self, handle: u32, now: Nanos) -> Vec<u32> {
        let past = |disturbance: &mut Disturbance| disturbance.at <= now;
        let mut handles = self.0.borrow_mut();
        let mut owners: Vec<_> =
            handles[handle as usize].extract_if(.., past).map(|past| past.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}
