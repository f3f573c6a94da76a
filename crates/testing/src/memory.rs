//! An allocator that counts. A test installs it in its own program:
//!
//! ```
//! use polygraph_testing::memory::Counting;
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = polygraph_testing::memory::allocations();
//! drop(vec![1, 2, 3]);
//! assert_eq!(polygraph_testing::memory::allocations(), before + 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, and counters of what it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed) + layout.size() as i64;
        PEAK.fetch_max(live, Ordering::Relaxed);
        // A thread that is ending has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// How many times this thread has allocated memory; growing an allocation counts as one.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// What `work` returns, and the largest number of bytes that were allocated while it ran, beyond those before it. The bytes are those of
/// the whole process, so nothing else may run.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    (done, PEAK.load(Ordering::Relaxed) - before)
}
