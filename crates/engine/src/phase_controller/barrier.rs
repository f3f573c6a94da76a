//! The end of a phase as a barrier for all processes of a test (docs/reference/models.md, "End of a phase").

use polygraph_link::Nanos;
use polygraph_stats::Side;
use polygraph_traffic::UniqId;
use polygraph_traffic::groups::{Groups, PeerStatus, StatusRule};

/// What is known about the other processes.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// The group ids of this process.
    own: Vec<UniqId>,
    clients: Groups,
    servers: Groups,
    /// After this time without a status, a group that others wait for is given up; `None`: never.
    patience: Option<Nanos>,
}

/// A group that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPeer {
    /// The side of the group; `None` if only another process knows the group.
    pub side: Option<Side>,
    /// The id of the group.
    pub group: UniqId,
}

impl Barrier {
    /// A barrier that knows only the groups of this process.
    pub fn new(own: Vec<UniqId>, patience: Option<Nanos>) -> Barrier {
        Barrier {
            own,
            clients: Groups::new(StatusRule::Highest),
            servers: Groups::new(StatusRule::Latest),
            patience,
        }
    }

    /// Records the status of a group of `side`.
    pub fn record(&mut self, side: Side, status: PeerStatus) {
        if self.own.contains(&status.group) {
            return;
        }
        let groups = match side {
            Side::Client => &mut self.clients,
            Side::Server => &mut self.servers,
        };
        // A group beyond the limit is none of this test.
        let _ = groups.record(status);
    }

    /// The least position of all other clients; `None` if no client is known.
    pub fn least_client(&self) -> Option<u64> {
        self.clients.least()
    }

    /// Whether a client has left `position`, or is beyond it.
    pub fn has_left(&self, position: u64) -> bool {
        let gone =
            |status: &PeerStatus| status.position > position || status.position == position && !status.waits;
        self.clients.statuses().iter().any(gone)
    }

    /// Number of other groups.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// True if no other group is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all other groups have reached `position`.
    pub fn have_all_reached(&self, position: u64) -> bool {
        self.lagging(position).next().is_none()
    }

    /// The groups that have not reached `position`, without those in whose place others answer.
    pub fn lagging(&self, position: u64) -> impl Iterator<Item = (Side, &PeerStatus)> {
        self.all().filter(move |(_, status)| status.position < position && !status.replaced)
    }

    /// The groups that have not reached `position`, and for which nobody waits, because others answer in their place.
    pub fn replaced(&self, position: u64) -> impl Iterator<Item = (Side, &PeerStatus)> {
        self.all().filter(move |(_, status)| status.position < position && status.replaced)
    }

    /// A group that keeps a process waiting for too long: this process if it waits at `waits`, or any process that is further.
    /// The time without a status counts from the last status of the group, but not from before `since`.
    pub fn lost(&self, waits: Option<u64>, since: Nanos, now: Nanos) -> Option<LostPeer> {
        let gone = self.all().find_map(|(_, status)| status.gone).filter(|group| !self.own.contains(group));
        if let Some(group) = gone {
            return Some(LostPeer { side: self.side_of(group), group });
        }
        let patience = self.patience?;
        let furthest = self.all().map(|(_, status)| status.position).chain(waits).max()?;
        let silent = |status: &PeerStatus| {
            now >= Nanos::new(status.at.max(since.as_u64()).saturating_add(patience.as_u64()))
        };
        let (side, status) = self.lagging(furthest).find(|(_, status)| silent(status))?;
        Some(LostPeer { side: Some(side), group: status.group })
    }

    fn side_of(&self, group: UniqId) -> Option<Side> {
        self.all().find(|(_, status)| status.group == group).map(|(side, _)| side)
    }

    fn all(&self) -> impl Iterator<Item = (Side, &PeerStatus)> {
        let clients = self.clients.statuses().iter().map(|status| (Side::Client, status));
        clients.chain(self.servers.statuses().iter().map(|status| (Side::Server, status)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;

    fn id(group: u32) -> UniqId {
        UniqId { time: group, mix: 0, counter: 2 }
    }

    fn status(group: u32, position: u64, second: u64) -> PeerStatus {
        PeerStatus {
            group: id(group),
            position,
            waits: false,
            at: (second * SECOND).as_u64(),
            gone: None,
            replaced: false,
        }
    }

    fn barrier(statuses: &[(Side, PeerStatus)]) -> Barrier {
        let mut barrier = Barrier::new(vec![id(0)], Some(30 * SECOND));
        statuses.iter().for_each(|(side, status)| barrier.record(*side, *status));
        barrier
    }

    #[test]
    fn a_barrier_opens_when_all_are_there() {
        use Side::{Client, Server};
        // Received statuses, a position, and whether all have reached it.
        type Row<'a> = (&'a [(Side, PeerStatus)], u64, bool);
        let in_place =
            |group, position, second| PeerStatus { replaced: true, ..status(group, position, second) };
        let rows: [Row<'_>; 9] = [
            (&[], 1, true),
            (&[(Server, status(0, 0, 1))], 1, true),
            (&[(Server, status(1, 1, 1))], 1, true),
            (&[(Server, status(1, 1, 1)), (Server, status(2, 0, 1))], 1, false),
            // A new client has appeared: the position of the servers falls, and all groups are counted again.
            (&[(Server, status(1, 1, 1)), (Server, status(1, 0, 2))], 1, false),
            (&[(Client, status(1, 2, 1)), (Client, status(2, 1, 1))], 2, false),
            (&[(Client, status(1, 2, 1)), (Client, status(2, 1, 1)), (Client, status(2, 2, 2))], 2, true),
            // Others answer in place of a server, until it answers again.
            (&[(Server, status(1, 1, 1)), (Server, status(2, 0, 1)), (Server, in_place(2, 0, 2))], 1, true),
            (&[(Server, in_place(2, 0, 2)), (Server, status(2, 0, 3))], 1, false),
        ];
        for (statuses, position, open) in rows {
            assert_eq!(barrier(statuses).have_all_reached(position), open, "{statuses:?} {position}");
        }
        let waits = [(Client, PeerStatus { waits: true, ..status(1, 2, 1) })];
        for (statuses, position, left) in [(rows[5].0, 1, true), (rows[5].0, 2, true), (&waits[..], 2, false)]
        {
            assert_eq!(barrier(statuses).has_left(position), left, "{statuses:?} {position}");
        }
        assert_eq!(barrier(rows[5].0).least_client(), Some(1));
        assert_eq!((barrier(rows[1].0).len(), barrier(rows[3].0).len()), (0, 2));
    }

    #[test]
    fn who_is_waited_for_must_give_signs() {
        use Side::{Client, Server};
        let lost = |side, group| Some(LostPeer { side: Some(side), group: id(group) });
        // Received statuses, the position at which this process waits, since when (seconds), the time, and the lost
        // group.
        type Row = (&'static [(Side, (u32, u64, u64))], Option<u64>, u64, u64, Option<LostPeer>);
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
        for (statuses, waits, since, now, expected) in rows {
            let received: Vec<_> =
                statuses.iter().map(|&(side, (g, p, at))| (side, status(g, p, at))).collect();
            let lost = barrier(&received).lost(waits, since * SECOND, now * SECOND);
            assert_eq!(lost, expected, "{statuses:?} {waits:?} {since} {now}");
        }
        let replaced = barrier(&[(Server, PeerStatus { replaced: true, ..status(1, 0, 5) })]);
        assert_eq!(replaced.lost(Some(1), Nanos::ZERO, 99 * SECOND), None);
        let reported = PeerStatus { gone: Some(id(7)), ..status(1, 3, 5) };
        let stopped = barrier(&[(Server, reported)]);
        assert_eq!(stopped.lost(None, Nanos::ZERO, 5 * SECOND), Some(LostPeer { side: None, group: id(7) }));
        let mut endless = Barrier::new(Vec::new(), None);
        endless.record(Server, status(1, 0, 5));
        assert_eq!(endless.lost(Some(1), Nanos::ZERO, 1_000_000 * SECOND), None);
    }
}
