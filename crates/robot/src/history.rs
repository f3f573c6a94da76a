//! What this loop knows of the past of objects, to tell why an offered hit did not happen, and of transactions,
//! to tell whose reply came back.

use polygraph_stats::MissCause;
use polygraph_traffic::rng::mix;
use polygraph_traffic::{Oid, RequestKind, UniqId};
use rustc_hash::FxHashMap;

/// So many objects are known before those are forgotten that nothing was heard of while as many others came: the hash
/// tables are as full as they get before they take more than 9.4 MB each.
const GENERATION: usize = (1 << 20) / 8 * 7;
/// Transactions for uncachable objects whose robot is kept.
const XACTS: usize = 1 << 14;

/// What became of an object so far: flags in the lowest bits, and above them when it was last delivered, in milliseconds. Small,
/// for the past of an object is seldom in the processor's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Past(u32);

impl Past {
    const DELIVERED: u32 = 1;
    const HIT: u32 = 2;
    const CUT: u32 = 4;
    const RELOADED: u32 = 8;
    const FLAG_BITS: u32 = 4;
    const FLAGS: u32 = (1 << Self::FLAG_BITS) - 1;

    fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Milliseconds from the last delivery to `now_ms`. Wraps after three days.
    fn age_at(self, now_ms: u64) -> u64 {
        u64::from(((now_ms as u32) << Self::FLAG_BITS).wrapping_sub(self.0 & !Self::FLAGS) >> Self::FLAG_BITS)
    }
}

/// The past of objects and transactions.
#[derive(Debug)]
pub struct History {
    /// Objects of which something was heard lately, by a digest.
    recent: FxHashMap<u32, Past>,
    /// The others that are still known.
    older: FxHashMap<u32, Past>,
    /// Objects in each of these, at most.
    generation: usize,
    /// Some are not known any more.
    forgot: bool,
    /// Counter of the transaction's id and the robot, by a part of the counter.
    xacts: Vec<(u32, u32)>,
}

impl Default for History {
    fn default() -> History {
        History::with_generation(GENERATION)
    }
}

impl History {
    /// A history that remembers the latest `generation` objects, and up to as many before them.
    fn with_generation(generation: usize) -> History {
        let (recent, older) = (FxHashMap::default(), FxHashMap::default());
        History { recent, older, generation, forgot: false, xacts: Vec::new() }
    }

    /// A request for a cachable object brought the whole of it at `now_ms`, in milliseconds since any fixed moment.
    /// Returns the time since it was delivered before, if it was.
    pub fn delivered(&mut self, oid: &Oid, kind: RequestKind, hit: bool, now_ms: u64) -> Option<u64> {
        let past = self.past_mut(oid);
        let age = past.has(Past::DELIVERED).then(|| past.age_at(now_ms));
        let reloaded = if kind == RequestKind::Reload { Past::RELOADED } else { 0 };
        let hit = if hit { Past::HIT } else { 0 };
        let flags = past.0 & Past::HIT | hit | Past::DELIVERED | reloaded;
        past.0 = (now_ms as u32) << Past::FLAG_BITS | flags;
        age
    }

    /// A request for a cachable object did not bring the whole of it.
    pub fn cut(&mut self, oid: &Oid) {
        self.past_mut(oid).0 |= Past::CUT;
    }

    fn past_mut(&mut self, oid: &Oid) -> &mut Past {
        let key = digest(oid);
        if self.recent.len() >= self.generation && !self.recent.contains_key(&key) {
            self.forgot |= !self.older.is_empty();
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
        }
        let older = &mut self.older;
        self.recent.entry(key).or_insert_with(|| older.remove(&key).unwrap_or_default())
    }

    /// Why a repeated request for a cachable object was no hit. `modified` tells that the object has changed
    /// since the start of the test, `own` that only this loop asks for it.
    pub fn miss_cause(&self, oid: &Oid, modified: impl FnOnce() -> bool, own: bool) -> MissCause {
        let key = digest(oid);
        let Some(past) = self.recent.get(&key).or_else(|| self.older.get(&key)).copied() else {
            // The first reply has not come yet, or it was too long ago, or somebody else's.
            return if own && !self.forgot { MissCause::InFlight } else { MissCause::Elsewhere };
        };
        match past {
            past if past.has(Past::CUT) => MissCause::AfterAbort,
            _ if modified() => MissCause::Expired,
            past if past.has(Past::RELOADED) => MissCause::AfterReload,
            past if past.has(Past::HIT) => MissCause::Evicted,
            past if past.has(Past::DELIVERED) => MissCause::NeverStored,
            _ => MissCause::InFlight,
        }
    }

    /// Remembers for whom an uncachable reply is made.
    pub fn asks(&mut self, xact: UniqId, robot: usize) {
        if self.xacts.is_empty() {
            self.xacts = vec![(0, 0); XACTS];
        }
        self.xacts[place(xact)] = (xact.counter, robot as u32);
    }

    /// The robot whose transaction `xact` was, if that is still known.
    pub fn asker(&self, xact: UniqId) -> Option<usize> {
        let (counter, robot) = *self.xacts.get(place(xact))?;
        (counter == xact.counter).then_some(robot as usize)
    }
}

/// A digest of an object. Of a million objects one in 4,000 shares its own with another one, which does not change any share
/// of the causes.
pub(crate) fn digest(oid: &Oid) -> u32 {
    // The kind takes no part in the digest of an id, but each kind has its own serial numbers.
    (mix(oid.hash() ^ u64::from(oid.kind.0)) >> 32) as u32
}

fn place(xact: UniqId) -> usize {
    (xact.counter / 2) as usize % XACTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::Kind;

    fn oid(name: u64) -> Oid {
        Oid { world: UniqId::default(), kind: Kind::FIRST, name }
    }

    #[test]
    fn causes_by_example() {
        let mut history = History::default();
        assert_eq!(history.miss_cause(&oid(1), || false, false), MissCause::Elsewhere);
        let cause = |history: &History, modified| history.miss_cause(&oid(1), || modified, true);
        assert_eq!(cause(&history, false), MissCause::InFlight);
        assert_eq!(history.delivered(&oid(1), RequestKind::Basic, false, 1000), None);
        assert_eq!(cause(&history, false), MissCause::NeverStored);
        assert_eq!(history.delivered(&oid(1), RequestKind::Basic, true, 1700), Some(700));
        assert_eq!(history.delivered(&oid(2), RequestKind::Basic, true, (1 << 28) - 10), None);
        assert_eq!(history.delivered(&oid(2), RequestKind::Basic, true, (1 << 28) + 90), Some(100));
        assert_eq!(cause(&history, false), MissCause::Evicted);
        assert_eq!(cause(&history, true), MissCause::Expired);
        history.delivered(&oid(1), RequestKind::Reload, false, 2000);
        assert_eq!(cause(&history, false), MissCause::AfterReload);
        history.cut(&oid(1));
        assert_eq!(cause(&history, false), MissCause::AfterAbort);
        let xact = UniqId { counter: 42, ..UniqId::default() };
        assert_eq!(history.asker(xact), None);
        history.asks(xact, 7);
        assert_eq!(history.asker(xact), Some(7));
        assert_eq!(history.asker(UniqId { counter: 42 + 2 * XACTS as u32, ..xact }), None);
    }

    #[test]
    fn what_was_heard_of_last_is_known() {
        let mut history = History::with_generation(100);
        let hear =
            |history: &mut History, name| history.delivered(&oid(name), RequestKind::Basic, true, name);
        let cause = |history: &History, name| history.miss_cause(&oid(name), || false, true);
        (0..90).for_each(|name| assert_eq!(hear(&mut history, name), None));
        assert_eq!(cause(&history, 0), MissCause::Evicted);
        assert_eq!(cause(&history, 1_000), MissCause::InFlight, "nothing was forgotten yet");
        // The working set is heard of now and then, the others are new each time.
        for name in (0..1_000).map(|i| if i % 5 == 0 { i / 5 % 10 } else { 90 + i }) {
            assert_eq!(hear(&mut history, name).is_some(), name < 10, "{name}");
        }
        assert!(history.recent.len() <= 100 && history.older.len() <= 100);
        assert_eq!([cause(&history, 3), cause(&history, 1_089)], [MissCause::Evicted; 2]);
        assert_eq!(cause(&history, 121), MissCause::Elsewhere, "that was long ago");
    }
}
