//! The memory store: least recently used replies are evicted first when a limit of bytes would be exceeded.
//!
//! There are one list and one lock for all loops instead of shards, so the order is exactly LRU, as cache models
//! assume, and a cache of any size can store any object up to its share. The lock is held only for a look-up and a few
//! links (well under a microsecond); keys are hashed before, and evicted objects are freed afterwards.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polygraph_link::Nanos;

use crate::object::Object;

/// One object may take up to one part in this many of the store ...
const OBJECT_SHARE: u64 = 8;
/// ... and replies that are still arriving may take the same share in addition, so that memory is always bounded.
const FILLING_SHARE: u64 = 4;
/// Maximum number of variants of one URL; a further one replaces the oldest.
const MAX_VARIANTS: usize = 16;
/// Maximum number of places that a search for another object visits.
const MAX_STEPS: usize = 64;
/// Memory of an index entry, at the load that a hash map has after growing.
const INDEX_BYTES: u64 = 32;

/// The replacement rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Evict the least recently used reply.
    Lru,
    /// Evict the reply that was stored first.
    Fifo,
}

/// The store; see the description of the module.
#[derive(Debug)]
pub struct Store {
    lru: Mutex<Lru>,
    capacity: u64,
    replacement: Replacement,
    /// Makes hashes differ between processes, so that clients cannot prepare URLs that collide.
    seed: u64,
    filling: AtomicU64,
}

/// Counts of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Bytes taken by stored objects and their bookkeeping.
    pub bytes: u64,
    /// Stored objects.
    pub objects: u64,
    /// Objects evicted to make room, so far.
    pub evicted: u64,
    /// When the first object was evicted.
    pub full_at: Option<Nanos>,
}

impl Store {
    /// A store for `capacity` bytes, including bookkeeping. `seed` determines its hashes.
    pub fn new(capacity: u64, replacement: Replacement, seed: u64) -> Store {
        Store { lru: Mutex::new(Lru::default()), capacity, replacement, seed, filling: AtomicU64::new(0) }
    }

    /// The hash of a key.
    pub fn hash(&self, key: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(key, self.seed)
    }

    /// The largest body that is stored.
    pub fn max_body(&self) -> u64 {
        self.capacity / OBJECT_SHARE
    }

    /// The object with this key that `selects` accepts; it becomes the most recently used.
    pub fn get(&self, hash: u64, key: &[u8], selects: impl Fn(&Object) -> bool) -> Option<Arc<Object>> {
        self.lock().get(hash, key, self.replacement == Replacement::Lru, selects)
    }

    /// An object with another key, chosen by the number `place`; `None` if none is found within a few places.
    pub fn another(&self, key: &[u8], place: u64) -> Option<Arc<Object>> {
        let lru = self.lock();
        let start = (place % lru.nodes.len().max(1) as u64) as usize;
        let (before, behind) = lru.nodes.split_at(start);
        let near = behind.iter().chain(before).take(MAX_STEPS).filter_map(|node| node.object.as_ref());
        near.into_iter().find(|object| *object.key != *key).map(Arc::clone)
    }

    /// Stores an object at the time `now`, in place of those of the same key that `replaces` accepts, and makes room
    /// for it. False if it is too large.
    pub fn put(&self, object: Arc<Object>, now: Nanos, replaces: impl Fn(&Object) -> bool) -> bool {
        let bytes = object.bytes() + STORED_BYTES;
        if bytes > self.capacity || object.body.len() > self.max_body() {
            return false;
        }
        // Evicted objects are dropped after the lock is released, because freeing memory takes longer than unlinking.
        let mut lru = self.lock();
        let evicted = lru.evicted;
        let gone = lru.put(object, bytes, self.capacity, replaces);
        if lru.evicted > evicted {
            lru.full_at.get_or_insert(now);
        }
        drop(lru);
        drop(gone);
        true
    }

    /// Removes all objects of this key.
    pub fn remove(&self, hash: u64, key: &[u8]) {
        let _gone = self.lock().remove_where(hash, key, |_| true);
    }

    /// Removes this object if it is still stored.
    pub fn remove_object(&self, object: &Object) {
        let _gone = self.lock().remove_where(object.hash, &object.key, |stored| std::ptr::eq(stored, object));
    }

    /// The current counts.
    pub fn figures(&self) -> StoreFigures {
        let lru = self.lock();
        let objects = lru.nodes.len() - lru.free.len();
        StoreFigures { bytes: lru.bytes, objects: objects as u64, evicted: lru.evicted, full_at: lru.full_at }
    }

    /// Reserves room for `bytes` of a reply that is arriving; `None` if too much is arriving already.
    pub fn reserve(self: &Arc<Store>, bytes: u64) -> Option<Reservation> {
        let mut reservation = Reservation { store: Arc::clone(self), bytes: 0 };
        reservation.grow_to(bytes).then_some(reservation)
    }

    fn lock(&self) -> MutexGuard<'_, Lru> {
        // No code panics while it holds the lock; if it did, the device should continue nevertheless.
        self.lru.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for a reply that is arriving; released when dropped.
#[derive(Debug)]
pub struct Reservation {
    store: Arc<Store>,
    bytes: u64,
}

impl Reservation {
    /// Extends the reservation to `bytes`. Returns false, without a change, if there is no room or the object would be
    /// too large.
    pub fn grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if bytes > self.store.max_body() {
            return false;
        }
        let limit = self.store.capacity / FILLING_SHARE;
        let fits = |filling: u64| filling.checked_add(more).filter(|&sum| sum <= limit);
        if self.store.filling.fetch_update(Relaxed, Relaxed, fits).is_err() {
            return false;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.store.filling.fetch_sub(self.bytes, Relaxed);
    }
}

/// Index of a node; `NONE` for no node.
type Id = u32;
const NONE: Id = Id::MAX;
/// Memory that a stored object takes in addition to [`Object::bytes`].
const STORED_BYTES: u64 = size_of::<Node>() as u64 + INDEX_BYTES;

#[derive(Debug)]
struct Node {
    /// `None` in a free node.
    object: Option<Arc<Object>>,
    bytes: u64,
    /// Towards the most recently used.
    newer: Id,
    /// Towards the least recently used.
    older: Id,
    /// The next object with the same hash, newest first.
    sibling: Id,
}

/// Nodes in a slab with two kinds of links: in order of use, and by hash.
#[derive(Debug)]
struct Lru {
    nodes: Vec<Node>,
    free: Vec<Id>,
    /// From hash to the newest object with that hash. Keys are compared while siblings are visited.
    index: HashMap<u64, Id, BuildHasherDefault<Identity>>,
    newest: Id,
    oldest: Id,
    bytes: u64,
    evicted: u64,
    full_at: Option<Nanos>,
}

impl Default for Lru {
    fn default() -> Lru {
        let (nodes, free, index) = (Vec::new(), Vec::new(), HashMap::default());
        Lru { nodes, free, index, newest: NONE, oldest: NONE, bytes: 0, evicted: 0, full_at: None }
    }
}

impl Lru {
    fn get(
        &mut self,
        hash: u64,
        key: &[u8],
        renews: bool,
        selects: impl Fn(&Object) -> bool,
    ) -> Option<Arc<Object>> {
        let mut id = self.index.get(&hash).copied().unwrap_or(NONE);
        while id != NONE {
            let node = &self.nodes[id as usize];
            if let Some(object) = node.object.as_ref().filter(|object| *object.key == *key && selects(object))
            {
                let found = Arc::clone(object);
                if renews && self.newest != id {
                    self.unlink(id);
                    self.link_newest(id);
                }
                return Some(found);
            }
            id = node.sibling;
        }
        None
    }

    fn put(
        &mut self,
        object: Arc<Object>,
        bytes: u64,
        capacity: u64,
        replaces: impl Fn(&Object) -> bool,
    ) -> Vec<Arc<Object>> {
        let mut gone = self.remove_where(object.hash, &object.key, replaces);
        self.cut_variants(object.hash, &mut gone);
        while self.bytes + bytes > capacity && self.oldest != NONE {
            gone.extend(self.remove(self.oldest));
            self.evicted += 1;
        }
        let hash = object.hash;
        let sibling = self.index.get(&hash).copied().unwrap_or(NONE);
        let node = Node { object: Some(object), bytes, newer: NONE, older: NONE, sibling };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as Id
            }
        };
        self.index.insert(hash, id);
        self.link_newest(id);
        self.bytes += bytes;
        gone
    }

    /// Makes room for one more variant among the objects of a hash.
    fn cut_variants(&mut self, hash: u64, gone: &mut Vec<Arc<Object>>) {
        let mut count = 0;
        let mut id = self.index.get(&hash).copied().unwrap_or(NONE);
        while id != NONE {
            let next = self.nodes[id as usize].sibling;
            count += 1;
            if count >= MAX_VARIANTS {
                gone.extend(self.remove(id));
                self.evicted += 1;
            }
            id = next;
        }
    }

    fn remove_where(
        &mut self,
        hash: u64,
        key: &[u8],
        unwanted: impl Fn(&Object) -> bool,
    ) -> Vec<Arc<Object>> {
        let mut gone = Vec::new();
        let mut id = self.index.get(&hash).copied().unwrap_or(NONE);
        while id != NONE {
            let node = &self.nodes[id as usize];
            let next = node.sibling;
            if node.object.as_ref().is_some_and(|object| *object.key == *key && unwanted(object)) {
                gone.extend(self.remove(id));
            }
            id = next;
        }
        gone
    }

    fn remove(&mut self, id: Id) -> Option<Arc<Object>> {
        self.unlink(id);
        let node = &mut self.nodes[id as usize];
        let (object, sibling) = (node.object.take()?, node.sibling);
        self.bytes -= node.bytes;
        self.free.push(id);
        self.unlink_sibling(object.hash, id, sibling);
        Some(object)
    }

    fn unlink_sibling(&mut self, hash: u64, id: Id, next: Id) {
        let first = self.index.get(&hash).copied().unwrap_or(NONE);
        if first == id && next == NONE {
            self.index.remove(&hash);
        } else if first == id {
            self.index.insert(hash, next);
        } else {
            let mut before = first;
            while before != NONE && self.nodes[before as usize].sibling != id {
                before = self.nodes[before as usize].sibling;
            }
            if before != NONE {
                self.nodes[before as usize].sibling = next;
            }
        }
    }

    fn unlink(&mut self, id: Id) {
        let Node { newer, older, .. } = self.nodes[id as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, id: Id) {
        let before = std::mem::replace(&mut self.newest, id);
        let node = &mut self.nodes[id as usize];
        node.newer = NONE;
        node.older = before;
        match before {
            NONE => self.oldest = id,
            before => self.nodes[before as usize].newer = id,
        }
    }
}

/// The keys of the index are already hashes.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;
    use crate::object::Selecting;
    use crate::policy::{Freshness, ReplyFacts, Validators};
    use bytes::Bytes;
    use proptest::prelude::*;

    fn object(store: &Store, key: &str, tag: &str, body: usize) -> Arc<Object> {
        Arc::new(Object {
            key: key.as_bytes().into(),
            hash: store.hash(key.as_bytes()),
            selecting: Selecting::default(),
            status: 200,
            head: b"HTTP/1.1 200 OK\r\n".to_vec().into(),
            body: Content::Kept(Bytes::from(vec![0; body])),
            freshness: Freshness::new(200, &ReplyFacts::default(), 0, 0),
            validators: Validators { etag: Some(tag.as_bytes().into()), last_modified: None, date: 0 },
        })
    }

    fn tag_of(store: &Store, key: &str) -> Option<String> {
        let found = store.get(store.hash(key.as_bytes()), key.as_bytes(), |_| true)?;
        Some(String::from_utf8_lossy(found.validators.etag.as_deref().unwrap_or_default()).into_owned())
    }

    #[test]
    fn put_replaces_what_it_is_told_to() {
        let store = Store::new(100_000, Replacement::Lru, 1);
        assert!(store.put(object(&store, "a", "1", 10), Nanos::ZERO, |_| true));
        assert!(store.put(object(&store, "a", "2", 10), Nanos::ZERO, |_| true));
        assert_eq!(store.figures().objects, 1);
        assert_eq!(tag_of(&store, "a").as_deref(), Some("2"));
        assert!(store.put(object(&store, "a", "3", 10), Nanos::ZERO, |_| false));
        assert_eq!(store.figures().objects, 2);
        let hash = store.hash(b"a");
        assert!(store.get(hash, b"a", |object| object.validators.etag.as_deref() == Some(b"2")).is_some());
        store.remove(hash, b"a");
        assert_eq!(store.figures(), StoreFigures::default());
        assert_eq!(tag_of(&store, "a"), None);
    }

    #[test]
    fn variants_of_one_url_are_bounded() {
        let store = Store::new(10_000_000, Replacement::Lru, 1);
        for n in 0..100 {
            store.put(object(&store, "a", &n.to_string(), 10), Nanos::ZERO, |_| false);
        }
        assert_eq!(store.figures().objects, MAX_VARIANTS as u64);
        assert_eq!(tag_of(&store, "a").as_deref(), Some("99"));
    }

    #[test]
    fn equal_hashes_do_not_confuse_keys() {
        let store = Store::new(100_000, Replacement::Lru, 1);
        let first = object(&store, "a", "1", 10);
        let hash = first.hash;
        store.put(first, Nanos::ZERO, |_| true);
        let mut second = Arc::into_inner(object(&store, "b", "2", 10)).expect("the only owner");
        second.hash = hash;
        store.put(Arc::new(second), Nanos::ZERO, |_| true);
        assert_eq!(store.figures().objects, 2);
        let tag =
            |key: &[u8]| store.get(hash, key, |_| true).and_then(|object| object.validators.etag.clone());
        assert_eq!((tag(b"a").as_deref(), tag(b"b").as_deref()), (Some(b"1" as &[u8]), Some(b"2" as &[u8])));
    }

    #[test]
    fn an_object_too_large_is_refused_and_evicts_nothing() {
        let store = Store::new(80_000, Replacement::Lru, 1);
        assert!(store.put(object(&store, "a", "1", 10_000), Nanos::ZERO, |_| true));
        assert!(!store.put(object(&store, "b", "1", 10_001), Nanos::ZERO, |_| true));
        assert_eq!((store.figures().objects, store.figures().evicted), (1, 0));
        assert!(!Store::new(0, Replacement::Lru, 1).put(object(&store, "a", "1", 0), Nanos::ZERO, |_| true));
    }

    #[test]
    fn arriving_replies_share_a_bounded_room() {
        let store = Arc::new(Store::new(80_000, Replacement::Lru, 1));
        let mut first = store.reserve(9_000).expect("there is room");
        assert!(store.reserve(10_001).is_none());
        let second = store.reserve(10_000).expect("there is room");
        assert!(first.grow_to(10_000));
        assert!(store.reserve(1).is_none());
        drop(second);
        assert!(store.reserve(10_000).is_some());
    }

    /// The plainest possible LRU: a list of key, tag and bytes, least recently used first.
    #[derive(Default)]
    struct Model(Vec<(String, String, u64)>);

    impl Model {
        fn bytes(&self) -> u64 {
            self.0.iter().map(|(_, _, bytes)| bytes).sum()
        }

        fn get(&mut self, key: &str) -> Option<String> {
            let at = self.0.iter().position(|(k, ..)| k == key)?;
            let entry = self.0.remove(at);
            self.0.push(entry);
            self.0.last().map(|(_, tag, _)| tag.clone())
        }

        fn put(&mut self, key: &str, tag: &str, bytes: u64, capacity: u64) {
            self.0.retain(|(k, ..)| k != key);
            while self.bytes() + bytes > capacity {
                self.0.remove(0);
            }
            self.0.push((key.to_owned(), tag.to_owned(), bytes));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Get(u8),
        Put(u8, usize),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u8..20).prop_map(Step::Get),
            4 => (0u8..20, 0usize..1200).prop_map(|(key, size)| Step::Put(key, size)),
            1 => (0u8..20).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_a_plain_lru_and_keeps_its_limit(steps in prop::collection::vec(step(), 1..200)) {
            const CAPACITY: u64 = 8_000;
            let store = Store::new(CAPACITY, Replacement::Lru, 1);
            let mut model = Model::default();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Get(key) => prop_assert_eq!(tag_of(&store, &key.to_string()), model.get(&key.to_string())),
                    Step::Put(key, size) => {
                        let (key, tag) = (key.to_string(), n.to_string());
                        let object = object(&store, &key, &tag, size);
                        let bytes = object.bytes() + STORED_BYTES;
                        if store.put(object, Nanos::ZERO, |_| true) {
                            model.put(&key, &tag, bytes, CAPACITY);
                        } else {
                            prop_assert!(size as u64 > store.max_body());
                        }
                    }
                    Step::Remove(key) => {
                        let key = key.to_string();
                        store.remove(store.hash(key.as_bytes()), key.as_bytes());
                        model.0.retain(|(k, ..)| *k != key);
                    }
                }
                let figures = store.figures();
                prop_assert!(figures.bytes <= CAPACITY);
                prop_assert_eq!((figures.bytes, figures.objects), (model.bytes(), model.0.len() as u64));
            }
        }
    }
}
