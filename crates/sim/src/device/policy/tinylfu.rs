//! W-TinyLFU: a small LRU window in front of a main cache that takes a newcomer only in the place of something that is
//! asked for less often (Einziger, Friedman, Manes, 2017). The main cache is a segmented LRU: what is asked for again
//! there is protected from newcomers.

use lru::LruCache;

use super::sketch::Sketch;
use super::{Key, Policy};

/// The window has one part in so many of the capacity.
const WINDOW_SHARE: u64 = 100;
/// Of the main cache, so much may be protected.
const PROTECTED_SHARE: f64 = 0.8;
/// Objects are expected to have so many bytes at least, on average, when the sketch is made.
const SMALL_OBJECT: u64 = 4096;

/// See the module's text.
#[derive(Debug)]
pub struct TinyLfu {
    window: Segment,
    probation: Segment,
    protected: Segment,
    sketch: Sketch,
    capacity: u64,
}

/// Objects in the order of their last request.
#[derive(Debug)]
struct Segment {
    sizes: LruCache<Key, u64>,
    bytes: u64,
}

impl Segment {
    fn new() -> Segment {
        Segment { sizes: LruCache::unbounded(), bytes: 0 }
    }

    fn put(&mut self, key: Key, bytes: u64) {
        self.bytes += bytes;
        self.sizes.push(key, bytes);
    }

    fn pop_oldest(&mut self) -> Option<(Key, u64)> {
        let oldest = self.sizes.pop_lru()?;
        self.bytes -= oldest.1;
        Some(oldest)
    }

    fn oldest_first(&self) -> impl Iterator<Item = (&Key, &u64)> {
        self.sizes.iter().rev()
    }

    fn remove(&mut self, key: Key) -> Option<u64> {
        let bytes = self.sizes.pop(&key)?;
        self.bytes -= bytes;
        Some(bytes)
    }
}

impl TinyLfu {
    /// A cache of `capacity` bytes.
    pub fn new(capacity: u64) -> TinyLfu {
        TinyLfu {
            window: Segment::new(),
            probation: Segment::new(),
            protected: Segment::new(),
            sketch: Sketch::new((capacity / SMALL_OBJECT).min(1 << 26) as usize),
            capacity,
        }
    }

    fn main_capacity(&self) -> u64 {
        self.capacity - self.capacity / WINDOW_SHARE
    }

    /// A newcomer from the window has to be asked for more often than everything that would have to go for it.
    fn admit(&mut self, key: Key, bytes: u64, gone: &mut Vec<Key>) {
        if bytes > self.main_capacity() {
            gone.push(key);
            return;
        }
        let wanted = self.sketch.count(key);
        let mut room = self.main_capacity().saturating_sub(self.probation.bytes + self.protected.bytes);
        let mut victims = Vec::new();
        for (&victim, &size) in self.probation.oldest_first().chain(self.protected.oldest_first()) {
            if room >= bytes {
                break;
            }
            if self.sketch.count(victim) >= wanted {
                gone.push(key);
                return;
            }
            room += size;
            victims.push(victim);
        }
        victims.iter().for_each(|victim| self.drop_key(*victim));
        gone.append(&mut victims);
        self.probation.put(key, bytes);
    }
}

impl Policy for TinyLfu {
    fn ask(&mut self, key: Key) {
        self.sketch.add(key);
        if self.window.sizes.promote(&key) || self.protected.sizes.promote(&key) {
            return;
        }
        let Some(bytes) = self.probation.remove(key) else { return };
        self.protected.put(key, bytes);
        let most = (self.main_capacity() as f64 * PROTECTED_SHARE) as u64;
        while self.protected.bytes > most
            && let Some((key, bytes)) = self.protected.pop_oldest()
        {
            self.probation.put(key, bytes);
        }
    }

    fn take(&mut self, key: Key, bytes: u64, gone: &mut Vec<Key>) {
        self.window.put(key, bytes);
        while self.window.bytes > self.capacity / WINDOW_SHARE
            && let Some((key, bytes)) = self.window.pop_oldest()
        {
            self.admit(key, bytes, gone);
        }
    }

    fn drop_key(&mut self, key: Key) {
        [&mut self.window, &mut self.probation, &mut self.protected]
            .into_iter()
            .find_map(|segment| segment.remove(key));
    }

    fn bytes(&self) -> u64 {
        self.window.bytes + self.probation.bytes + self.protected.bytes
    }
}
