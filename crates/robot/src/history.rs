//! What this loop knows of the past of objects, to tell why an offered hit did not happen, and of transactions,
//! to tell whose reply came back.

use polygraph_stats::MissCause;
use polygraph_traffic::{Oid, RequestKind, UniqId};
use rustc_hash::FxHashMap;

/// Objects whose past is kept; beyond that new ones have none.
const MAX_OBJECTS: usize = 1 << 20;
/// Transactions for uncachable objects whose robot is kept.
const XACTS: usize = 1 << 14;

/// What became of an object so far: flags, and when it was last delivered, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Past(u8, u32);

impl Past {
    const DELIVERED: u8 = 1;
    const HIT: u8 = 2;
    const CUT: u8 = 4;
    const RELOADED: u8 = 8;

    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// The past of objects and transactions.
#[derive(Debug, Default)]
pub struct History {
    objects: FxHashMap<u64, Past>,
    /// Counter of the transaction's id and the robot, by a part of the counter.
    xacts: Vec<(u32, u32)>,
}

impl History {
    /// A request for a cachable object brought the whole of it at `now_ms`, in milliseconds since any fixed moment.
    /// Returns the time since it was delivered before, if it was.
    pub fn delivered(&mut self, oid: &Oid, kind: RequestKind, hit: bool, now_ms: u64) -> Option<u64> {
        let past = self.past_mut(oid)?;
        // Wraps after 49 days.
        let age = past.has(Past::DELIVERED).then(|| u64::from((now_ms as u32).wrapping_sub(past.1)));
        past.1 = now_ms as u32;
        let reloaded = if kind == RequestKind::Reload { Past::RELOADED } else { 0 };
        let hit = if hit { Past::HIT } else { 0 };
        past.0 = past.0 & Past::HIT | hit | Past::DELIVERED | reloaded;
        age
    }

    /// A request for a cachable object did not bring the whole of it.
    pub fn cut(&mut self, oid: &Oid) {
        if let Some(past) = self.past_mut(oid) {
            past.0 |= Past::CUT;
        }
    }

    fn past_mut(&mut self, oid: &Oid) -> Option<&mut Past> {
        let key = key(oid);
        if self.objects.len() >= MAX_OBJECTS && !self.objects.contains_key(&key) {
            return None;
        }
        Some(self.objects.entry(key).or_default())
    }

    /// Why a repeated request for a cachable object was no hit. `modified` tells that the object has changed
    /// since the start of the test.
    pub fn miss_cause(&self, oid: &Oid, modified: bool) -> MissCause {
        let Some(past) = self.objects.get(&key(oid)).copied() else { return MissCause::InFlight };
        match past {
            past if past.has(Past::CUT) => MissCause::AfterAbort,
            _ if modified => MissCause::Expired,
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

fn key(oid: &Oid) -> u64 {
    oid.hash() ^ u64::from(oid.kind.0)
}

fn place(xact: UniqId) -> usize {
    (xact.counter / 2) as usize % XACTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::Kind;

    #[test]
    fn causes_by_example() {
        let oid = |name| Oid { world: UniqId::default(), kind: Kind::FIRST, name };
        let mut history = History::default();
        assert_eq!(history.miss_cause(&oid(1), false), MissCause::InFlight);
        assert_eq!(history.delivered(&oid(1), RequestKind::Basic, false, 1000), None);
        assert_eq!(history.miss_cause(&oid(1), false), MissCause::NeverStored);
        assert_eq!(history.delivered(&oid(1), RequestKind::Basic, true, 1700), Some(700));
        assert_eq!(history.miss_cause(&oid(1), false), MissCause::Evicted);
        assert_eq!(history.miss_cause(&oid(1), true), MissCause::Expired);
        history.delivered(&oid(1), RequestKind::Reload, false, 2000);
        assert_eq!(history.miss_cause(&oid(1), false), MissCause::AfterReload);
        history.cut(&oid(1));
        assert_eq!(history.miss_cause(&oid(1), false), MissCause::AfterAbort);
        let xact = UniqId { counter: 42, ..UniqId::default() };
        assert_eq!(history.asker(xact), None);
        history.asks(xact, 7);
        assert_eq!(history.asker(xact), Some(7));
        assert_eq!(history.asker(UniqId { counter: 42 + 2 * XACTS as u32, ..xact }), None);
    }
}
