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
/// The group of the receive buffers of streams in requests to the kernel.
pub const GROUP: u16 = 0;

/// The size of a buffer for datagrams in bytes: the kernel joins datagrams to 64 KB, and puts their address and their control messages
/// before them. It is no multiple of a page, so that the beginnings of the buffers share no set of the cache.
pub const DATAGRAM_SIZE: usize = 64 * 1024 + 192;
/// The number of buffers for datagrams, a power of two. Only the pages that are written to take memory.
const DATAGRAM_COUNT: u16 = 64;
/// Their group.
pub const DATAGRAM_GROUP: u16 = 1;

/// Receive buffers of a loop: a ring in memory shared with the kernel (io_uring_register_buf_ring(3)). The kernel takes a buffer
/// when bytes arrive, and the loop gives it back.
#[derive(Debug)]
pub struct ReceiveBuffers {
    group: u16,
    /// How many there are, a power of two.
    count: u16,
    /// The size of each in bytes.
    size: usize,
    ring: NonNull<BufRingEntry>,
    tail: Cell<u16>,
    bytes: NonNull<u8>,
    /// Number of buffers that were given back so far.
    given_back: Cell<u64>,
}

/// The layout of the ring: it must begin at a page.
fn ring_layout(count: u16) -> Layout {
    let size = usize::from(count) * size_of::<BufRingEntry>();
    Layout::from_size_align(size, 4096).expect("a size and alignment that make sense")
}

fn bytes_layout(count: u16, size: usize) -> Layout {
    Layout::from_size_align(usize::from(count) * size, 4096).expect("a size and alignment that make sense")
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: both layouts have a size.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

impl ReceiveBuffers {
    /// Buffers for the bytes of streams, which belong to nobody yet.
    pub fn for_streams() -> ReceiveBuffers {
        ReceiveBuffers::new(GROUP, RECEIVE_COUNT, RECEIVE_SIZE)
    }

    /// Buffers for datagrams, which belong to nobody yet.
    pub fn for_datagrams() -> ReceiveBuffers {
        let buffers = ReceiveBuffers::new(DATAGRAM_GROUP, DATAGRAM_COUNT, DATAGRAM_SIZE);
        let size = bytes_layout(buffers.count, buffers.size).size();
        // Most datagrams are far smaller than their buffers. The kernel would clear 2 MB for the first of them, which takes it
        // milliseconds, while the loop waits. If it does not listen, everything works.
        // SAFETY: the memory belongs to the buffers, and begins at a page. The call changes no byte of it.
        unsafe { libc::madvise(buffers.bytes.as_ptr().cast(), size, libc::MADV_NOHUGEPAGE) };
        buffers
    }

    fn new(group: u16, count: u16, size: usize) -> ReceiveBuffers {
        ReceiveBuffers {
            group,
            count,
            size,
            ring: allocate(ring_layout(count)).cast(),
            tail: Cell::new(0),
            bytes: allocate(bytes_layout(count, size)),
            given_back: Cell::new(0),
        }
    }

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
            submitter.register_buf_ring_with_flags(self.ring.as_ptr() as u64, self.count, self.group, 0)?;
        }
        (0..self.count).for_each(|number| self.give_back(number));
        self.given_back.set(0);
        Ok(())
    }

    /// Passes the first `length` bytes of a buffer to `use_it`.
    ///
    /// The kernel must have handed buffer `number` over with this many bytes, and the loop must not have given it back.
    pub fn with<R>(&self, number: u16, length: usize, use_it: impl FnOnce(&[u8]) -> R) -> R {
        assert!(number < self.count && length <= self.size, "the kernel hands over what it was given");
        // SAFETY: within the allocation, as just checked, and the kernel does not write to a buffer that it has handed over.
        use_it(unsafe { std::slice::from_raw_parts(self.start(number).as_ptr(), length) })
    }

    /// Where a buffer begins.
    fn start(&self, number: u16) -> NonNull<u8> {
        // SAFETY: all numbers are below the count of buffers, so this is within the allocation.
        unsafe { self.bytes.add(usize::from(number) * self.size) }
    }

    /// Gives a buffer to the kernel.
    pub fn give_back(&self, number: u16) {
        let tail = self.tail.get();
        let index = usize::from(tail & (self.count - 1));
        let address = self.start(number).as_ptr() as u64;
        // SAFETY: the index is within the ring. The kernel reads the entry after the tail has passed it. The tail is inside the
        // first entry, in a field that the setters leave alone (io_uring_buf_ring_add(3)).
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(index);
            entry.set_addr(address);
            entry.set_len(self.size as u32);
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
            dealloc(self.ring.as_ptr().cast(), ring_layout(self.count));
            dealloc(self.bytes.as_ptr(), bytes_layout(self.count, self.size));
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
