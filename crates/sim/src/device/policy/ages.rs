//! The two policies that know an age only: LRU counts it from the last request, FIFO from the arrival.

use lru::LruCache;

use super::{Key, Policy};

/// The oldest goes first.
#[derive(Debug)]
pub struct Ages {
    sizes: LruCache<Key, u64>,
    bytes: u64,
    capacity: u64,
    /// A request makes an object young again.
    renews: bool,
}

impl Ages {
    /// Least recently used goes first.
    pub fn lru(capacity: u64) -> Ages {
        Ages { sizes: LruCache::unbounded(), bytes: 0, capacity, renews: true }
    }

    /// First in, first out.
    pub fn fifo(capacity: u64) -> Ages {
        Ages { renews: false, ..Ages::lru(capacity) }
    }
}

impl Policy for Ages {
    fn ask(&mut self, key: Key) {
        if self.renews {
            self.sizes.promote(&key);
        }
    }

    fn take(&mut self, key: Key, bytes: u64, gone: &mut Vec<Key>) {
        if bytes > self.capacity {
            gone.push(key);
            return;
        }
        while self.bytes + bytes > self.capacity
            && let Some((oldest, size)) = self.sizes.pop_lru()
        {
            self.bytes -= size;
            gone.push(oldest);
        }
        self.bytes += bytes;
        self.sizes.push(key, bytes);
    }

    fn drop_key(&mut self, key: Key) {
        self.bytes -= self.sizes.pop(&key).unwrap_or(0);
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
