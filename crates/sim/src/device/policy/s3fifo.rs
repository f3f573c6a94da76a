//! S3-FIFO: three queues, a small one for what is new, a main one for what was asked for again, and the names of what
//! was new and is gone (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).

use lru::LruCache;

use super::{Key, Policy};

/// The small queue has one part in so many of the capacity.
const SMALL_SHARE: u64 = 10;
/// Requests that are counted, at most.
const MOST: u8 = 3;
/// With more requests than this an object leaves the small queue for the main one.
const WORTH: u8 = 1;

/// See the module's text.
#[derive(Debug)]
pub struct S3Fifo {
    small: Queue,
    main: Queue,
    ghosts: LruCache<Key, ()>,
    capacity: u64,
}

#[derive(Debug)]
struct Item {
    bytes: u64,
    /// Requests since it came into its queue, or since it was last spared.
    asked: u8,
}

/// Objects in the order in which they came.
#[derive(Debug)]
struct Queue {
    items: LruCache<Key, Item>,
    bytes: u64,
}

impl Queue {
    fn new() -> Queue {
        Queue { items: LruCache::unbounded(), bytes: 0 }
    }

    fn put(&mut self, key: Key, item: Item) {
        self.bytes += item.bytes;
        self.items.push(key, item);
    }

    fn pop_first(&mut self) -> Option<(Key, Item)> {
        let first = self.items.pop_lru()?;
        self.bytes -= first.1.bytes;
        Some(first)
    }

    fn remove(&mut self, key: Key) -> bool {
        let removed = self.items.pop(&key);
        self.bytes -= removed.as_ref().map_or(0, |item| item.bytes);
        removed.is_some()
    }
}

impl S3Fifo {
    /// A cache of `capacity` bytes.
    pub fn new(capacity: u64) -> S3Fifo {
        S3Fifo { small: Queue::new(), main: Queue::new(), ghosts: LruCache::unbounded(), capacity }
    }

    fn evict(&mut self, gone: &mut Vec<Key>) {
        let small_is_full = !self.small.items.is_empty() && self.small.bytes >= self.capacity / SMALL_SHARE;
        if small_is_full || self.main.items.is_empty() {
            self.evict_small(gone);
        } else {
            self.evict_main(gone);
        }
    }

    /// What was asked for again goes on to the main queue; the first other one goes.
    fn evict_small(&mut self, gone: &mut Vec<Key>) {
        while let Some((key, item)) = self.small.pop_first() {
            if item.asked > WORTH {
                self.main.put(key, Item { asked: 0, ..item });
            } else {
                self.remember(key);
                gone.push(key);
                return;
            }
        }
    }

    /// What was asked for since it came, or since it was spared, is spared; the first other one goes.
    fn evict_main(&mut self, gone: &mut Vec<Key>) {
        while let Some((key, item)) = self.main.pop_first() {
            if item.asked > 0 {
                self.main.put(key, Item { asked: item.asked - 1, ..item });
            } else {
                gone.push(key);
                return;
            }
        }
    }

    /// Keeps the name; as many names as there are objects in the main queue.
    fn remember(&mut self, key: Key) {
        self.ghosts.push(key, ());
        while self.ghosts.len() > self.main.items.len().max(1) {
            self.ghosts.pop_lru();
        }
    }
}

impl Policy for S3Fifo {
    fn ask(&mut self, key: Key) {
        let queues = [&mut self.small, &mut self.main];
        let item = queues.into_iter().find_map(|queue| queue.items.peek_mut(&key));
        if let Some(item) = item {
            item.asked = MOST.min(item.asked + 1);
        }
    }

    fn take(&mut self, key: Key, bytes: u64, gone: &mut Vec<Key>) {
        if bytes > self.capacity {
            gone.push(key);
            return;
        }
        while self.bytes() + bytes > self.capacity && self.bytes() > 0 {
            self.evict(gone);
        }
        let queue = if self.ghosts.pop(&key).is_some() { &mut self.main } else { &mut self.small };
        queue.put(key, Item { bytes, asked: 0 });
    }

    fn drop_key(&mut self, key: Key) {
        if !self.small.remove(key) {
            self.main.remove(key);
        }
    }

    fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }
}
