//! What a loop knows about earlier deliveries of objects, to find out why an offered hit was a miss, and about earlier
//! transactions, to find out for which robot a stored reply was made.

use polygraph_stats::MissCause;
use polygraph_traffic::rng::mix;
use polygraph_traffic::{Oid, RequestKind, UniqId};
use rustc_hash::FxHashMap;

use crate::exchange::reply::Coding;

/// Number of objects in a generation. An object is forgotten when a whole generation of others has arrived since it was last
/// seen. At this number, each hash table is as full as it can be in 13.6 MB.
const GENERATION: usize = (1 << 20) / 8 * 7;
/// Number of transactions for uncachable objects whose robot is remembered.
const XACTS: usize = 1 << 14;

/// The past of an object. It is small, because it is rarely in the processor's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Past {
    /// Flags in the lowest bits, and above them when it was last delivered, in milliseconds.
    last: u32,
    /// When the last delivered reply expires, in seconds since 1970; 0 if it does not say.
    expires: u32,
}

impl Past {
    const DELIVERED: u32 = 1;
    const HIT: u32 = 2;
    /// What happened last, other than an ordinary delivery: one of the next three, or 0.
    const EVENT: u32 = 12;
    const CUT: u32 = 4;
    const RELOADED: u32 = 8;
    const INVALIDATED: u32 = 12;
    const FLAG_BITS: u32 = 4;
    const FLAGS: u32 = (1 << Self::FLAG_BITS) - 1;

    fn has(self, flag: u32) -> bool {
        self.last & flag != 0
    }

    fn event(self) -> u32 {
        self.last & Self::EVENT
    }

    fn happen(&mut self, event: u32) {
        self.last = self.last & !Self::EVENT | event;
    }

    /// Milliseconds from the last delivery to `now_ms`. Wraps after three days.
    fn age_at(self, now_ms: u64) -> u64 {
        u64::from(
            ((now_ms as u32) << Self::FLAG_BITS).wrapping_sub(self.last & !Self::FLAGS) >> Self::FLAG_BITS,
        )
    }
}

/// A reply with a complete cachable object.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// When it was complete, in milliseconds since some fixed moment.
    pub at_ms: u64,
    /// The kind of the request.
    pub kind: RequestKind,
    /// Whether the reply was stored.
    pub hit: bool,
    /// When it expires, in seconds since 1970, if it says.
    pub expires: Option<i64>,
}

/// A miss where a hit was offered.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// When its reply was complete, in milliseconds since the moment that deliveries count from.
    pub at_ms: u64,
    /// When its reply was complete, in seconds since 1970.
    pub unix: i64,
    /// Whether only this loop requests the object, and in one coding.
    pub own: bool,
}

/// The past of objects and transactions.
#[derive(Debug)]
pub struct History {
    /// Objects of the current generation, by a digest of the object and its coding.
    recent: FxHashMap<u32, Past>,
    /// Objects of the previous generation, by the same digest.
    older: FxHashMap<u32, Past>,
    /// Maximum number of objects in each generation.
    generation: usize,
    /// Whether some objects were forgotten.
    forgot: bool,
    /// Whether the robots upload to cachable objects. Those of other loops do as they do.
    uploads: bool,
    /// For each value of a part of the transaction counter: a digest of the transaction's id, and the robot.
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
        History { recent, older, generation, forgot: false, uploads: false, xacts: Vec::new() }
    }

    /// Remembers that a request for a cachable object brought the complete object, in this coding. Returns the milliseconds since
    /// the previous delivery, if there was one.
    pub fn delivered(&mut self, oid: &Oid, coding: Coding, delivery: Delivery) -> Option<u64> {
        let past = self.past_mut(oid, coding);
        let age = past.has(Past::DELIVERED).then(|| past.age_at(delivery.at_ms));
        let reloaded = if delivery.kind == RequestKind::Reload { Past::RELOADED } else { 0 };
        let hit = if delivery.hit { Past::HIT } else { 0 };
        let flags = past.last & Past::HIT | hit | Past::DELIVERED | reloaded;
        past.last = (delivery.at_ms as u32) << Past::FLAG_BITS | flags;
        past.expires = delivery.expires.map_or(0, |at| at.clamp(1, u32::MAX.into()) as u32);
        age
    }

    /// Remembers that a request for a cachable object did not bring the complete object.
    pub fn cut(&mut self, oid: &Oid, coding: Coding) {
        self.past_mut(oid, coding).happen(Past::CUT);
    }

    /// Remembers a request with PUT or POST for a cachable object, which invalidates copies of all codings.
    pub fn invalidated(&mut self, oid: &Oid) {
        self.uploads = true;
        self.past_mut(oid, Coding::Identity).happen(Past::INVALIDATED);
        for coding in [Coding::Gzip, Coding::Other] {
            let key = key(oid, coding);
            if let Some(past) = self.recent.get_mut(&key).or_else(|| self.older.get_mut(&key)) {
                past.happen(Past::INVALIDATED);
            }
        }
    }

    fn past_mut(&mut self, oid: &Oid, coding: Coding) -> &mut Past {
        let key = key(oid, coding);
        if self.recent.len() >= self.generation && !self.recent.contains_key(&key) {
            self.forgot |= !self.older.is_empty();
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
        }
        let older = &mut self.older;
        self.recent.entry(key).or_insert_with(|| older.remove(&key).unwrap_or_default())
    }

    /// Why a repeated request for a cachable object, whose reply arrived in this coding, was not a hit. `modified_since` says
    /// whether the object has changed since a time in seconds since 1970.
    pub fn miss_cause(
        &self,
        oid: &Oid,
        coding: Coding,
        miss: Miss,
        modified_since: impl FnOnce(i64) -> bool,
    ) -> MissCause {
        let key = key(oid, coding);
        let Some(past) = self.recent.get(&key).or_else(|| self.older.get(&key)).copied() else {
            // The first reply has not arrived yet, or it was too long ago, or another loop received it.
            return if miss.own && !self.forgot { MissCause::InFlight } else { MissCause::Elsewhere };
        };
        let has_expired = || match i64::from(past.expires) {
            0 => modified_since(miss.unix - (past.age_at(miss.at_ms) / 1000) as i64),
            at => at <= miss.unix,
        };
        match past {
            past if past.event() == Past::CUT => MissCause::AfterAbort,
            past if past.event() == Past::INVALIDATED => MissCause::Invalidated,
            past if past.has(Past::DELIVERED) && has_expired() => MissCause::Expired,
            past if past.event() == Past::RELOADED => MissCause::AfterReload,
            // Others may have invalidated the copy.
            _ if self.uploads && !miss.own => MissCause::Elsewhere,
            past if past.has(Past::HIT) => MissCause::Evicted,
            past if past.has(Past::DELIVERED) => MissCause::NeverStored,
            _ => MissCause::InFlight,
        }
    }

    /// Remembers for whom an uncachable reply is made.
    pub fn keep_requester(&mut self, xact: UniqId, robot: usize) {
        if self.xacts.is_empty() {
            self.xacts = vec![(0, 0); XACTS];
        }
        self.xacts[place(xact)] = (signature(xact), robot as u32);
    }

    /// The robot of transaction `xact`, if it is still known.
    pub fn requester(&self, xact: UniqId) -> Option<usize> {
        let (known, robot) = *self.xacts.get(place(xact))?;
        (known == signature(xact)).then_some(robot as usize)
    }
}

/// A digest of an object. Among a million objects, one in 4,000 has the same digest as another, which does not change the shares
/// of the causes.
pub(crate) fn digest(oid: &Oid) -> u32 {
    // The digest of an id does not include the kind, but each kind has its own serial numbers.
    (mix(oid.hash() ^ u64::from(oid.kind.0)) >> 32) as u32
}

/// A cache keeps a copy of each coding.
fn key(oid: &Oid, coding: Coding) -> u32 {
    digest(oid) ^ coding as u32
}

/// The ids of a loop and of its branch have the same counters.
fn signature(xact: UniqId) -> u32 {
    xact.counter ^ xact.mix
}

fn place(xact: UniqId) -> usize {
    (xact.counter / 2) as usize % XACTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::{ContentKind, IdSource};

    fn oid(name: u64) -> Oid {
        Oid { world: UniqId::default(), kind: ContentKind::FIRST, name }
    }

    const PLAIN: Coding = Coding::Identity;

    /// A miss of this loop's own object.
    fn miss(at_ms: u64) -> Miss {
        Miss { at_ms, unix: 1_000_000 + (at_ms / 1000) as i64, own: true }
    }

    fn basic(at_ms: u64, hit: bool) -> Delivery {
        Delivery { at_ms, kind: RequestKind::Basic, hit, expires: None }
    }

    #[test]
    fn causes_by_example() {
        let mut history = History::default();
        let unknown = history.miss_cause(&oid(1), PLAIN, Miss { own: false, ..miss(0) }, |_| false);
        assert_eq!(unknown, MissCause::Elsewhere);
        let cause = |history: &History| history.miss_cause(&oid(1), PLAIN, miss(5_000), |_| false);
        assert_eq!(cause(&history), MissCause::InFlight);
        assert_eq!(history.delivered(&oid(1), PLAIN, basic(1000, false)), None);
        assert_eq!(cause(&history), MissCause::NeverStored);
        assert_eq!(history.delivered(&oid(1), PLAIN, basic(1700, true)), Some(700));
        assert_eq!(history.delivered(&oid(2), PLAIN, basic((1 << 28) - 10, true)), None);
        assert_eq!(history.delivered(&oid(2), PLAIN, basic((1 << 28) + 90, true)), Some(100));
        assert_eq!(cause(&history), MissCause::Evicted);
        history.delivered(&oid(1), PLAIN, Delivery { kind: RequestKind::Reload, ..basic(2000, false) });
        assert_eq!(cause(&history), MissCause::AfterReload);
        history.invalidated(&oid(1));
        assert_eq!(cause(&history), MissCause::Invalidated);
        history.cut(&oid(1), PLAIN);
        assert_eq!(cause(&history), MissCause::AfterAbort);
        history.invalidated(&oid(3));
        assert_eq!(history.miss_cause(&oid(3), PLAIN, miss(0), |_| true), MissCause::Invalidated);
        let xact = UniqId { counter: 42, ..UniqId::default() };
        assert_eq!(history.requester(xact), None);
        history.keep_requester(xact, 7);
        assert_eq!(history.requester(xact), Some(7));
        assert_eq!(history.requester(UniqId { counter: 42 + 2 * XACTS as u32, ..xact }), None);
        let mut ids = IdSource::reproducible(1, 5);
        let mut followers = ids.branch();
        history.keep_requester(ids.fresh(), 8);
        assert_eq!(history.requester(followers.fresh()), None, "the other one with this counter");
    }

    #[test]
    fn a_copy_expires_when_its_reply_says_so_or_else_when_the_object_changes() {
        let mut history = History::default();
        let fresh_until = |at_ms, unix| Delivery { expires: Some(unix), ..basic(at_ms, true) };
        history.delivered(&oid(1), PLAIN, fresh_until(1_000, 1_000_010));
        let cause = |history: &History, ms, modified: i64| {
            history.miss_cause(&oid(1), PLAIN, miss(ms), |since| modified >= since)
        };
        assert_eq!(
            cause(&history, 9_999, 1_000_005),
            MissCause::Evicted,
            "it was fresh, whatever came after it"
        );
        assert_eq!(cause(&history, 10_000, 0), MissCause::Expired);
        history.delivered(&oid(1), PLAIN, fresh_until(11_000, -5));
        assert_eq!(cause(&history, 11_001, 0), MissCause::Expired, "it had never been fresh");
        // Without a date the object itself decides.
        history.delivered(&oid(1), PLAIN, basic(12_000, true));
        assert_eq!(cause(&history, 20_000, 1_000_011), MissCause::Evicted);
        assert_eq!(cause(&history, 20_000, 1_000_012), MissCause::Expired);
    }

    #[test]
    fn an_upload_invalidates_the_copies_of_all_codings_until_the_next_delivery() {
        let mut history = History::default();
        for coding in [PLAIN, Coding::Gzip] {
            history.delivered(&oid(1), coding, basic(0, true));
        }
        history.invalidated(&oid(1));
        let cause = |history: &History, coding| history.miss_cause(&oid(1), coding, miss(1), |_| true);
        assert_eq!([PLAIN, Coding::Gzip].map(|coding| cause(&history, coding)), [MissCause::Invalidated; 2]);
        history.delivered(&oid(1), PLAIN, Delivery { expires: Some(2_000_000), ..basic(2, false) });
        assert_eq!(cause(&history, PLAIN), MissCause::Evicted, "the copy was new");
        assert_eq!(cause(&history, Coding::Gzip), MissCause::Invalidated);
    }

    #[test]
    fn a_copy_that_others_may_have_invalidated_was_not_evicted_for_certain() {
        let mut history = History::default();
        history.delivered(&oid(1), PLAIN, basic(0, true));
        history.delivered(&oid(2), PLAIN, basic(0, false));
        let causes = |history: &History, own| {
            let miss = Miss { own, ..miss(1) };
            [1, 2].map(|name| history.miss_cause(&oid(name), PLAIN, miss, |_| false))
        };
        let known = [MissCause::Evicted, MissCause::NeverStored];
        assert_eq!(causes(&history, false), known);
        history.invalidated(&oid(3));
        assert_eq!([true, false].map(|own| causes(&history, own)), [known, [MissCause::Elsewhere; 2]]);
    }

    #[test]
    fn each_coding_has_its_own_copy() {
        let mut history = History::default();
        history.delivered(&oid(1), Coding::Gzip, basic(0, true));
        let cause = |coding| history.miss_cause(&oid(1), coding, Miss { own: false, ..miss(1) }, |_| false);
        assert_eq!([cause(Coding::Gzip), cause(PLAIN)], [MissCause::Evicted, MissCause::Elsewhere]);
    }

    #[test]
    fn what_was_heard_of_last_is_known() {
        let mut history = History::with_generation(100);
        let hear = |history: &mut History, name| history.delivered(&oid(name), PLAIN, basic(name, true));
        let cause = |history: &History, name| history.miss_cause(&oid(name), PLAIN, miss(name), |_| false);
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
