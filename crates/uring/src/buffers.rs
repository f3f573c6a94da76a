//! The memory that the kernel receives into and sends from.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The size of a receive buffer in bytes: the most that one completion brings. The replies of the standard workloads fit with
/// few exceptions.
pub const RECEIVE_SIZE: usize = 16 * 1024;
/// The number of receive buffers of a loop, a power of two. The kernel uses them in turn, so with more of them, messages of 13 KB no
/// longer fit into the second cache of a processor (`bench/PROFILE.md`); with 32 of them, one message in ten finds none.
const RECEIVE_COUNT: u16 = 64;
/// The group of the receive buffers in requests to the kernel.
pub const GROUP: u16 = 0;

/// The receive buffers of a loop: a ring in memory shared with the kernel (io_uring_register_buf_ring(3)). The kernel takes a buffer
/// when bytes arrive, and the loop gives it back.
#[derive(Debug)]
pub struct ReceiveBuffers {
    ring: NonNull<BufRingEntry>,
    tail: Cell<u16>,
    bytes: NonNull<u8>,
    /// Number of buffers that were given back so far.
    given_back: Cell<u64>,
}

/// The layout of the ring: it must begin at a page.
fn ring_layout() -> Layout {
    let size = usize::from(RECEIVE_COUNT) * size_of::<BufRingEntry>();
    Layout::from_size_align(size, 4096).expect("a size and alignment that make sense")
}

fn bytes_layout() -> Layout {
    let size = usize::from(RECEIVE_COUNT) * RECEIVE_SIZE;
    Layout::from_size_align(size, 4096).expect("a size and alignment that make sense")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: both layouts have a size.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

impl Default for ReceiveBuffers {
    /// Buffers that belong to nobody yet.
    fn default() -> ReceiveBuffers {
        ReceiveBuffers {
            ring: allocate(ring_layout()).cast(),
            tail: Cell::new(0),
            bytes: allocate(bytes_layout()),
            given_back: Cell::new(0),
        }
    }
}

impl ReceiveBuffers {
    /// Passes all buffers to the kernel.
    ///
    /// # Errors
    /// If the kernel does not support buffer rings.
    ///
    /// # Safety
    /// `self` must stay where it is in memory, and live for longer than the ring of the submitter.
    pub unsafe fn register(&self, submitter: &Submitter<'_>) -> io::Result<()> {
        // SAFETY: the memory is valid for this many entries, as long as the caller promises.
        unsafe {
            submitter.register_buf_ring_with_flags(self.ring.as_ptr() as u64, RECEIVE_COUNT, GROUP, 0)?;
        }
        (0..RECEIVE_COUNT).for_each(|number| self.give_back(number));
        self.given_back.set(0);
        Ok(())
    }

    /// Passes the first `length` bytes of a buffer to `use_it`.
    ///
    /// The kernel must have handed buffer `number` over with this many bytes, and the loop must not have given it back.
    pub fn with<R>(&self, number: u16, length: usize, use_it: impl FnOnce(&[u8]) -> R) -> R {
        assert!(number < RECEIVE_COUNT && length <= RECEIVE_SIZE, "the kernel hands over what it was given");
        // SAFETY: within the allocation, as just checked, and the kernel does not write to a buffer that it has handed over.
        use_it(unsafe { std::slice::from_raw_parts(self.start(number).as_ptr(), length) })
    }

    /// Where a buffer begins.
    fn start(&self, number: u16) -> NonNull<u8> {
        // SAFETY: all numbers are below the count of buffers, so this is within the allocation.
        unsafe { self.bytes.add(usize::from(number) * RECEIVE_SIZE) }
    }

    /// Gives a buffer to the kernel.
    pub fn give_back(&self, number: u16) {
        let tail = self.tail.get();
        let index = usize::from(tail & (RECEIVE_COUNT - 1));
        let address = self.start(number).as_ptr() as u64;
        // SAFETY: the index is within the ring. The kernel reads the entry after the tail has passed it. The tail is inside the
        // first entry, in a field that the setters leave alone (io_uring_buf_ring_add(3)).
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(index);
            entry.set_addr(address);
            entry.set_len(RECEIVE_SIZE as u32);
            entry.set_bid(number);
            let shared = BufRingEntry::tail(self.ring.as_ptr()).cast::<AtomicU16>();
            (*shared).store(tail.wrapping_add(1), Ordering::Release);
        }
        self.tail.set(tail.wrapping_add(1));
        self.given_back.set(self.given_back.get() + 1);
    }

    /// Number of buffers that were given back so far.
    pub fn given_back(&self) -> u64 {
        self.given_back.get()
    }
}

impl Drop for ReceiveBuffers {
    fn drop(&mut self) {
        // SAFETY: allocated with these layouts, and the kernel no longer uses them, as `register` demands.
        unsafe {
            dealloc(self.ring.as_ptr().cast(), ring_layout());
            dealloc(self.bytes.as_ptr(), bytes_layout());
        }
    }
}

/// The size of a send buffer in bytes: requests and small replies fit.
pub const SEND_SIZE: usize = 4096;
/// The most send buffers of a loop: those of one turn.
const SEND_COUNT: usize = 1024;

/// A send buffer.
pub type SendBuffer = Box<[u8; SEND_SIZE]>;

/// Send buffers that are free.
#[derive(Debug, Default)]
pub struct SendBuffers {
    free: Vec<SendBuffer>,
    used: usize,
}

impl SendBuffers {
    /// A free buffer; `None` if too many are in use.
    pub fn take(&mut self) -> Option<SendBuffer> {
        if self.used >= SEND_COUNT {
            return None;
        }
        self.used += 1;
        Some(self.free.pop().unwrap_or_else(|| Box::new([0; SEND_SIZE])))
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, buffer: SendBuffer) {
        self.used -= 1;
        self.free.push(buffer);
    }
}
