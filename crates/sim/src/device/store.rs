//! What is in the cache of a device.

use std::rc::Rc;

use polygraph_cache::object::Object;
use polygraph_cache::{OBJECT_SHARE, STORED_BYTES};
use polygraph_link::Nanos;
use polygraph_traffic::{Body, Catalog, Oid};
use polygraph_wire::head::Header;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Cache;
use super::policy::{Key, Policy};

/// A content.
#[derive(Debug)]
pub enum Content {
    /// That of an object of the catalog, from which it can be made.
    Made(Oid, u64),
    /// Anything else.
    Kept(Box<[u8]>),
}

impl Content {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Made(_, len) => *len,
            Content::Kept(bytes) => bytes.len() as u64,
        }
    }
}

/// A stored reply: the head in `object`, whose body is empty, and the content.
#[derive(Debug)]
pub struct Stored {
    /// Everything but the content.
    pub object: Object,
    /// The content, which a reply that was brought up to date shares with the one before.
    pub content: Rc<Content>,
}

impl Stored {
    /// Memory that a real store would need.
    fn bytes(&self) -> u64 {
        self.object.bytes() + self.content.len() + STORED_BYTES
    }
}

/// See the module's text.
pub struct Store {
    policy: Box<dyn Policy>,
    catalog: Catalog,
    objects: FxHashMap<Key, Rc<Stored>>,
    /// Keys of the replies to one URL, where these vary with the request.
    variants: FxHashMap<u64, Vec<Key>>,
    max_content: u64,
    /// Objects that were pushed out.
    pub evicted: u64,
    /// When the first was.
    pub full_at: Option<Nanos>,
}

impl Store {
    /// An empty one.
    pub fn new(cache: Cache, catalog: Catalog) -> Store {
        Store {
            policy: cache.policy(),
            catalog,
            objects: FxHashMap::default(),
            variants: FxHashMap::default(),
            max_content: cache.capacity().map_or(u64::MAX, |bytes| bytes / OBJECT_SHARE),
            evicted: 0,
            full_at: None,
        }
    }

    /// The hash of a canonical URL.
    pub fn hash(url: &[u8]) -> u64 {
        xxh3_64(url)
    }

    /// Objects and their bytes.
    pub fn size(&self) -> (u64, u64) {
        (self.objects.len() as u64, self.policy.bytes())
    }

    /// The stored reply to a request for `url` with these fields; a request that is told to the policy.
    pub fn ask(&mut self, hash: u64, url: &[u8], request: &[Header<'_>]) -> Option<Rc<Stored>> {
        let matches = |key: &Key| {
            let found = self.objects.get(key);
            found.is_some_and(|it| *it.object.key == *url && it.object.selecting.matches(request))
        };
        let keys = self.variants.get(&hash).map_or(std::slice::from_ref(&hash), Vec::as_slice);
        let key = keys.iter().copied().find(matches);
        self.policy.ask(key.unwrap_or(hash));
        key.and_then(|key| self.objects.get(&key)).map(Rc::clone)
    }

    /// Stores a reply in the place of the one to the same requests.
    pub fn put(&mut self, stored: Rc<Stored>, now: Nanos) {
        let object = &stored.object;
        if stored.content.len() > self.max_content {
            return;
        }
        let hash = object.hash;
        let key = match object.selecting == Default::default() {
            true => hash,
            false => xxh3_64_with_seed(format!("{:?}", object.selecting).as_bytes(), hash),
        };
        if key != hash || self.variants.contains_key(&hash) {
            // One that does not vary may be there from before.
            let keys = self.variants.entry(hash).or_insert_with(|| vec![hash]);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if self.objects.remove(&key).is_some() {
            self.policy.drop_key(key);
        }
        let mut gone = Vec::new();
        self.policy.take(key, stored.bytes(), &mut gone);
        self.objects.insert(key, stored);
        if !gone.is_empty() {
            self.full_at.get_or_insert(now);
            self.evicted += gone.len() as u64;
        }
        for key in gone {
            if let Some(old) = self.objects.remove(&key) {
                self.forget_variant(old.object.hash, key);
            }
        }
    }

    /// Removes all replies to `url`.
    pub fn remove(&mut self, hash: u64, url: &[u8]) {
        let keys = self.variants.get(&hash).cloned().unwrap_or_else(|| vec![hash]);
        for key in keys {
            if self.objects.get(&key).is_some_and(|stored| *stored.object.key == *url) {
                self.objects.remove(&key);
                self.policy.drop_key(key);
                self.forget_variant(hash, key);
            }
        }
    }

    fn forget_variant(&mut self, hash: u64, key: Key) {
        if let Some(keys) = self.variants.get_mut(&hash) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.variants.remove(&hash);
            }
        }
    }

    /// A content as it is kept: as bytes only if the catalog does not make the same.
    pub fn content(&self, path: &[u8], bytes: &[u8]) -> Content {
        let oid = polygraph_wire::url::parse(path);
        match oid.filter(|oid| is_made_of(self.catalog.body(oid, b""), bytes)) {
            Some(oid) => Content::Made(oid, bytes.len() as u64),
            None => Content::Kept(bytes.into()),
        }
    }

    /// The content as a body to be sent.
    pub fn body(&self, content: &Content) -> Body {
        match content {
            Content::Made(oid, _) => self.catalog.body(oid, b""),
            Content::Kept(bytes) => Body::from_bytes(bytes.to_vec()),
        }
    }
}

fn is_made_of(mut body: Body, bytes: &[u8]) -> bool {
    let mut rest = bytes;
    if body.len() != rest.len() as u64 {
        return false;
    }
    while !body.is_empty() {
        let chunk = body.chunk();
        let n = chunk.len();
        if rest[..n] != *chunk {
            return false;
        }
        rest = &rest[n..];
        body.advance(n as u64);
    }
    true
}
