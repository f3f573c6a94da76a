//! The end of a phase as a barrier for all processes of a test (reference: models.md, section 17.4).

use polygraph_link::Nanos;
use polygraph_stats::Side;
use polygraph_traffic::UniqId;
use polygraph_traffic::groups::{Groups, Rule, Word};

/// What is known of the other processes.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// Groups of this process.
    own: Vec<UniqId>,
    clients: Groups,
    servers: Groups,
    /// A group that others wait for is given up after so long without a sign; `None`: never.
    patience: Option<Nanos>,
}

/// A group that is not waited for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Robots or servers; `None` if only others know.
    pub side: Option<Side>,
    /// Which group.
    pub group: UniqId,
}

impl Barrier {
    /// Nobody is known yet but the groups of this process.
    pub fn new(own: Vec<UniqId>, patience: Option<Nanos>) -> Barrier {
        Barrier { own, clients: Groups::new(Rule::Highest), servers: Groups::new(Rule::Latest), patience }
    }

    /// Takes note of what a group of `side` has told.
    pub fn hear(&mut self, side: Side, word: Word) {
        if self.own.contains(&word.group) {
            return;
        }
        let groups = match side {
            Side::Client => &mut self.clients,
            Side::Server => &mut self.servers,
        };
        // One too many is a stranger.
        let _ = groups.hear(word);
    }

    /// The least position of all other clients; `None` if there are none.
    pub fn least_client(&self) -> Option<u64> {
        self.clients.least()
    }

    /// Whether a client has gone on from `position`, or beyond.
    pub fn has_left(&self, position: u64) -> bool {
        let gone = |word: &Word| word.position > position || word.position == position && !word.waits;
        self.clients.words().iter().any(gone)
    }

    /// Number of other groups.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// True if no other group is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all other groups have come as far as `position`.
    pub fn have_all_reached(&self, position: u64) -> bool {
        self.lagging(position).next().is_none()
    }

    /// The groups that have not come as far as `position`.
    pub fn lagging(&self, position: u64) -> impl Iterator<Item = (Side, &Word)> {
        self.all().filter(move |(_, word)| word.position < position)
    }

    /// A group that others wait for in vain: this process if it waits at `waits`, or any that is further. Time counts
    /// from the last sign of the group, but not before `since`.
    pub fn lost(&self, waits: Option<u64>, since: Nanos, now: Nanos) -> Option<Lost> {
        let told = self.all().find_map(|(_, word)| word.gone).filter(|group| !self.own.contains(group));
        if let Some(group) = told {
            return Some(Lost { side: self.side_of(group), group });
        }
        let patience = self.patience?;
        let furthest = self.all().map(|(_, word)| word.position).chain(waits).max()?;
        let silent = |word: &Word| now >= word.at.max(since).saturating_add(patience);
        let (side, word) = self.lagging(furthest).find(|(_, word)| silent(word))?;
        Some(Lost { side: Some(side), group: word.group })
    }

    fn side_of(&self, group: UniqId) -> Option<Side> {
        self.all().find(|(_, word)| word.group == group).map(|(side, _)| side)
    }

    fn all(&self) -> impl Iterator<Item = (Side, &Word)> {
        let clients = self.clients.words().iter().map(|word| (Side::Client, word));
        clients.chain(self.servers.words().iter().map(|word| (Side::Server, word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;

    fn id(group: u32) -> UniqId {
        UniqId { time: group, mix: 0, counter: 2 }
    }

    fn word(group: u32, position: u64, second: u64) -> Word {
        Word { group: id(group), position, waits: false, at: second * SECOND, gone: None }
    }

    fn barrier(words: &[(Side, Word)]) -> Barrier {
        let mut barrier = Barrier::new(vec![id(0)], Some(30 * SECOND));
        words.iter().for_each(|(side, word)| barrier.hear(*side, *word));
        barrier
    }

    #[test]
    fn a_barrier_opens_when_all_are_there() {
        use Side::{Client, Server};
        // What was heard, a position, and whether all have reached it.
        type Row<'a> = (&'a [(Side, Word)], u64, bool);
        let rows: [Row<'_>; 7] = [
            (&[], 1, true),
            (&[(Server, word(0, 0, 1))], 1, true),
            (&[(Server, word(1, 1, 1))], 1, true),
            (&[(Server, word(1, 1, 1)), (Server, word(2, 0, 1))], 1, false),
            // A new client has appeared: servers fall back, and everybody counts anew.
            (&[(Server, word(1, 1, 1)), (Server, word(1, 0, 2))], 1, false),
            (&[(Client, word(1, 2, 1)), (Client, word(2, 1, 1))], 2, false),
            (&[(Client, word(1, 2, 1)), (Client, word(2, 1, 1)), (Client, word(2, 2, 2))], 2, true),
        ];
        for (words, position, open) in rows {
            assert_eq!(barrier(words).have_all_reached(position), open, "{words:?} {position}");
        }
        let waits = [(Client, Word { waits: true, ..word(1, 2, 1) })];
        for (words, position, left) in [(rows[5].0, 1, true), (rows[5].0, 2, true), (&waits[..], 2, false)] {
            assert_eq!(barrier(words).has_left(position), left, "{words:?} {position}");
        }
        assert_eq!(barrier(rows[5].0).least_client(), Some(1));
        assert_eq!((barrier(rows[1].0).len(), barrier(rows[3].0).len()), (0, 2));
    }

    #[test]
    fn who_is_waited_for_must_give_signs() {
        use Side::{Client, Server};
        let lost = |side, group| Some(Lost { side: Some(side), group: id(group) });
        // What was heard, where this process waits, since when (seconds), the time, and who is lost.
        type Row = (&'static [(Side, (u32, u64, u64))], Option<u64>, u64, u64, Option<Lost>);
        let rows: [Row; 10] = [
            (&[(Server, (1, 0, 5))], Some(1), 0, 34, None),
            (&[(Server, (1, 0, 5))], Some(1), 0, 35, lost(Server, 1)),
            // Nobody waits for it.
            (&[(Server, (1, 0, 5))], None, 0, 99, None),
            (&[(Server, (1, 1, 5))], Some(1), 0, 99, None),
            // This process was not there to hear it, or has not waited for long.
            (&[(Server, (1, 0, 5))], Some(1), 20, 49, None),
            (&[(Server, (1, 0, 5))], Some(1), 20, 50, lost(Server, 1)),
            // One client is further than another.
            (&[(Client, (1, 2, 9)), (Client, (2, 1, 5))], None, 0, 34, None),
            (&[(Client, (1, 2, 9)), (Client, (2, 1, 5))], None, 0, 35, lost(Client, 2)),
            (&[(Client, (1, 2, 9)), (Client, (2, 2, 5))], None, 0, 99, None),
            (&[(Client, (1, 2, 9))], None, 0, 99, None),
        ];
        for (words, waits, since, now, expected) in rows {
            let heard: Vec<_> = words.iter().map(|&(side, (g, p, at))| (side, word(g, p, at))).collect();
            let lost = barrier(&heard).lost(waits, since * SECOND, now * SECOND);
            assert_eq!(lost, expected, "{words:?} {waits:?} {since} {now}");
        }
        let told = Word { gone: Some(id(7)), ..word(1, 3, 5) };
        let heard = barrier(&[(Server, told)]);
        assert_eq!(heard.lost(None, 0, 5 * SECOND), Some(Lost { side: None, group: id(7) }));
        let mut endless = Barrier::new(Vec::new(), None);
        endless.hear(Server, word(1, 0, 5));
        assert_eq!(endless.lost(Some(1), 0, 1_000_000 * SECOND), None);
    }
}
