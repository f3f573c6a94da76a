//! The server processes of a test as the robots of one loop know them, and how to reach each of them.

pub mod first_contact;
pub mod phase_sync;

use polygraph_link::{Nanos, SECOND};
use polygraph_traffic::groups::{Groups, PeerStatus, StatusRule};

/// A server process that has not been heard for so long is asked for a sign.
const QUIET: Nanos = 10 * SECOND;
/// The same while this process waits for others.
const QUIET_WHEN_WAITING: Nanos = SECOND / 4;

/// The server processes that replies have come from.
#[derive(Debug)]
pub struct Peers {
    groups: Groups,
    /// By number of the group.
    ways: Vec<Way>,
}

/// How a process was reached last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// By which robot.
    pub robot: usize,
    /// Behind which visible server.
    pub server: usize,
    /// When it was asked for a sign; `None`: it must be asked.
    asked: Option<Nanos>,
}

impl Default for Peers {
    fn default() -> Peers {
        Peers { groups: Groups::new(StatusRule::Latest), ways: Vec::new() }
    }
}

impl Peers {
    /// Takes note of what a first-hand reply tells of phases.
    pub fn hear(&mut self, word: PeerStatus, robot: usize, server: usize) {
        let Some(at) = self.groups.record(word) else { return };
        match self.ways.get_mut(at) {
            Some(way) => (way.robot, way.server) = (robot, server),
            None => self.ways.push(Way { robot, server, asked: Some(word.at) }),
        }
    }

    /// What each process said last.
    pub fn words(&self) -> &[PeerStatus] {
        self.groups.statuses()
    }

    /// All must be asked now, for there is news for them.
    pub fn ask_all(&mut self) {
        self.ways.iter_mut().for_each(|way| way.asked = None);
    }

    /// Those that must be asked for a sign now; they count as asked.
    pub fn to_ask(&mut self, now: Nanos, waits: bool) -> Vec<Way> {
        let quiet = if waits { QUIET_WHEN_WAITING } else { QUIET };
        let words = self.groups.statuses().iter().zip(&mut self.ways);
        let due = words.filter(|(word, way)| way.asked.is_none_or(|asked| now >= word.at.max(asked) + quiet));
        due.map(|(_, way)| {
            way.asked = Some(now);
            *way
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::UniqId;

    #[test]
    fn who_is_quiet_is_asked() {
        let mut peers = Peers::default();
        let mut hear = |group: u32, second: u64, robot, server| {
            let group = UniqId { time: group, mix: 0, counter: 2 };
            let word = PeerStatus { group, position: 1, waits: false, at: second * SECOND, gone: None };
            peers.hear(word, robot, server);
        };
        hear(1, 0, 4, 5);
        hear(2, 3, 6, 7);
        hear(1, 2, 8, 9);
        // Second, whether others are waited for, and the servers that are asked.
        for (second, waits, asked) in [
            (11, false, &[][..]),
            (12, false, &[9]),
            (12, true, &[7]),
            (13, false, &[]),
            (13, true, &[9, 7]),
            (13, true, &[]),
            (99, false, &[9, 7]),
        ] {
            let ways = peers.to_ask(second * SECOND, waits);
            let servers: Vec<usize> = ways.iter().map(|way| way.server).collect();
            assert_eq!(servers, asked, "at {second} s");
        }
        peers.ask_all();
        assert_eq!(peers.to_ask(99 * SECOND, false).len(), 2);
        assert_eq!(peers.to_ask(99 * SECOND, false).len(), 0);
    }
}
