//! The cache of a resolver: addresses of names, and queries in progress.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};

use lru::LruCache;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::error::LookupError;
use crate::name::DomainName;
use crate::query::QueryType;

/// The addresses of a name. Clones share the order in which addresses are used.
#[derive(Clone, Debug)]
pub struct Addresses(Rc<Turns>);

#[derive(Debug)]
struct Turns {
    addresses: Box<[IpAddr]>,
    next: Cell<usize>,
}

impl Addresses {
    /// `None` if the list is empty.
    pub(crate) fn new(addresses: Vec<IpAddr>) -> Option<Addresses> {
        let turns = Turns { addresses: addresses.into(), next: Cell::new(0) };
        (!turns.addresses.is_empty()).then(|| Addresses(Rc::new(turns)))
    }

    /// All addresses, in the order of the reply; at least one.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.0.addresses
    }

    /// The next address in turn, over all users of the cache.
    pub fn address(&self) -> IpAddr {
        let turn = self.0.next.get() % self.0.addresses.len();
        self.0.next.set(turn + 1);
        self.0.addresses[turn]
    }
}

/// The result of a lookup.
pub(crate) type LookupResult = Result<Addresses, LookupError>;
pub(crate) type Key = (QueryType, DomainName);

/// A bounded cache of addresses. It evicts the least recently used name, ignores the time to live, and does not store
/// failures. It also knows the queries in progress, so that concurrent lookups of a name share one query. Clones are
/// handles to the same cache.
#[derive(Clone, Debug)]
pub struct AddressCache(Rc<RefCell<Tables>>);

#[derive(Debug)]
struct Tables {
    capacity: usize,
    answers: LruCache<Key, Addresses, FxBuildHasher>,
    pending_queries: FxHashMap<Key, Rc<PendingQuery>>,
}

impl AddressCache {
    /// A cache of at most `capacity` names; with 0 it only shares queries in progress.
    pub fn new(capacity: usize) -> AddressCache {
        // The capacity is enforced here, because the library would allocate memory for its own bound at once.
        let answers = LruCache::unbounded_with_hasher(FxBuildHasher);
        AddressCache(Rc::new(RefCell::new(Tables {
            capacity,
            answers,
            pending_queries: FxHashMap::default(),
        })))
    }

    /// Number of cached names.
    pub fn len(&self) -> usize {
        self.0.borrow().answers.len()
    }

    /// True if no name is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all names.
    pub fn clear(&self) {
        self.0.borrow_mut().answers.clear();
    }

    /// Looks up a name. A caller that gets [`CacheState::Ask`] has to send the query.
    pub(crate) fn enter(&self, key: &Key) -> CacheState {
        let mut tables = self.0.borrow_mut();
        if let Some(answer) = tables.answers.get(key) {
            return CacheState::ZoneAnswer(answer.clone());
        }
        if let Some(pending) = tables.pending_queries.get(key) {
            return CacheState::Asked(Rc::clone(pending));
        }
        let pending = Rc::new(PendingQuery::default());
        tables.pending_queries.insert(key.clone(), Rc::clone(&pending));
        CacheState::Ask(QueryDuty { cache: self.clone(), key: key.clone(), pending })
    }
}

/// The result of [`AddressCache::enter`].
pub(crate) enum CacheState {
    ZoneAnswer(Addresses),
    Asked(Rc<PendingQuery>),
    Ask(QueryDuty),
}

/// A query in progress.
#[derive(Debug, Default)]
pub(crate) struct PendingQuery {
    /// `Some(None)`: the lookup that sent the query was dropped.
    end: RefCell<Option<Option<LookupResult>>>,
    waiting: RefCell<Vec<Waker>>,
}

impl PendingQuery {
    /// Waits for the result; `None` if the lookup that sent the query was dropped, so that another one has to send
    /// it.
    pub async fn end(&self) -> Option<LookupResult> {
        poll_fn(|cx| match &*self.end.borrow() {
            Some(end) => Poll::Ready(end.clone()),
            None => {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }
}

/// The duty to send a query. Dropping it passes the duty to a waiting lookup.
#[derive(Debug)]
pub(crate) struct QueryDuty {
    cache: AddressCache,
    key: Key,
    pending: Rc<PendingQuery>,
}

impl QueryDuty {
    /// Wakes all waiting lookups, and caches the addresses.
    pub fn finish(self, outcome: LookupResult) {
        if let Ok(answer) = &outcome {
            let mut tables = self.cache.0.borrow_mut();
            if tables.capacity > 0 {
                tables.answers.put(self.key.clone(), answer.clone());
            }
            while tables.answers.len() > tables.capacity {
                tables.answers.pop_lru();
            }
        }
        *self.pending.end.borrow_mut() = Some(Some(outcome));
    }
}

impl Drop for QueryDuty {
    fn drop(&mut self) {
        self.cache.0.borrow_mut().pending_queries.remove(&self.key);
        self.pending.end.borrow_mut().get_or_insert(None);
        self.pending.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// The caches of the robots of one loop.
#[derive(Debug, Default)]
pub struct AddressCaches(FxHashMap<String, AddressCache>);

impl AddressCaches {
    /// The cache of a robot: its own one, or that of its sharing group. The cache of a group has the largest capacity
    /// that its members want.
    pub fn cache(&mut self, capacity: usize, sharing_group: Option<&str>) -> AddressCache {
        let Some(group) = sharing_group else { return AddressCache::new(capacity) };
        let cache = self.0.entry(group.to_owned()).or_insert_with(|| AddressCache::new(capacity)).clone();
        let mut tables = cache.0.borrow_mut();
        tables.capacity = tables.capacity.max(capacity);
        drop(tables);
        cache
    }
}
