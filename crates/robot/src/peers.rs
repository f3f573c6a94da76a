//! The other processes of a test, as far as the robots of one loop know them, with a way to reach each of them.

pub mod first_contact;
mod phase_sync;

use polygraph_link::Nanos;
use polygraph_traffic::groups::{Groups, PeerStatus, StatusRule};

/// A server process that has sent no status for this long is queried.
const QUIET: Nanos = Nanos::from_secs(10);
/// The same while this process waits for others.
const QUIET_WHEN_WAITING: Nanos = Nanos::from_millis(250);
/// Others must answer for so long, and so many times for each process behind the visible server, until they replace one of which
/// nothing is heard: a balancer that chooses by chance passes over a process with a probability of `1 - 1/n` each time.
const REPLACED_AFTER: Nanos = Nanos::from_secs(3);
const REPLIES_IN_PLACE: u64 = 20;

/// The server processes that have replied.
#[derive(Debug)]
pub struct KnownPeers {
    groups: Groups,
    /// By number of the process in `groups`.
    routes: Vec<Route>,
}

/// How a server process was reached last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The robot that reached it.
    pub robot: usize,
    /// The visible server that it belongs to.
    pub server: usize,
    /// When a robot queried it last; `None` if one must query it now.
    queried: Option<Nanos>,
    /// Replies of other processes of the same visible server since the last one of this process.
    in_place: u64,
}

impl Default for KnownPeers {
    fn default() -> KnownPeers {
        KnownPeers { groups: Groups::new(StatusRule::Latest), routes: Vec::new() }
    }
}

impl KnownPeers {
    /// Records the status in a first-hand reply of `server` to `robot`.
    pub fn record(&mut self, status: PeerStatus, robot: usize, server: usize) {
        let Some(at) = self.groups.record(status) else { return };
        match self.routes.get_mut(at) {
            Some(route) => (route.robot, route.server) = (robot, server),
            None => {
                let queried = Some(Nanos::new(status.at));
                self.routes.push(Route { robot, server, queried, in_place: 0 });
            }
        }
        for (other, route) in self.routes.iter_mut().enumerate().filter(|(_, route)| route.server == server) {
            route.in_place = if other == at { 0 } else { route.in_place + 1 };
        }
    }

    /// Marks the processes in whose place others answer at `now`. A process that is alive and slow holds requests: this must only be
    /// called while no request waits for its answer for long.
    pub fn mark_replaced(&mut self, now: Nanos) {
        let of = |server| self.routes.iter().filter(|route| route.server == server).count() as u64;
        let known = self.groups.statuses().iter().zip(&self.routes);
        let replaced = known.filter(|(status, route)| {
            !status.replaced
                && now >= Nanos::new(status.at) + REPLACED_AFTER
                && route.in_place >= REPLIES_IN_PLACE * of(route.server)
        });
        let replaced: Vec<PeerStatus> = replaced.map(|(status, _)| *status).collect();
        for status in replaced {
            // The process is known, so there is room for it.
            let _ = self.groups.record(PeerStatus { replaced: true, at: now.as_u64(), ..status });
        }
    }

    /// The last status of each process.
    pub fn statuses(&self) -> &[PeerStatus] {
        self.groups.statuses()
    }

    /// Marks all processes to be queried now, because the status of this process has changed.
    pub fn query_all(&mut self) {
        self.routes.iter_mut().for_each(|route| route.queried = None);
    }

    /// The processes to query at `now`; they count as queried. `waits` is whether this process waits for others.
    pub fn to_query(&mut self, now: Nanos, waits: bool) -> Vec<Route> {
        let quiet = if waits { QUIET_WHEN_WAITING } else { QUIET };
        let known = self.groups.statuses().iter().zip(&mut self.routes);
        let due = known.filter(|(status, route)| {
            route.queried.is_none_or(|at| now >= Nanos::new(status.at).max(at) + quiet)
        });
        due.map(|(_, route)| {
            route.queried = Some(now);
            *route
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;
    use polygraph_traffic::UniqId;

    #[test]
    fn quiet_servers_are_queried() {
        let mut peers = KnownPeers::default();
        let mut record = |group: u32, second: u64, robot, server| {
            let group = UniqId { time: group, mix: 0, counter: 2 };
            let status = PeerStatus {
                group,
                position: 1,
                waits: false,
                at: (second * SECOND).as_u64(),
                gone: None,
                replaced: false,
            };
            peers.record(status, robot, server);
        };
        record(1, 0, 4, 5);
        record(2, 3, 6, 7);
        record(1, 2, 8, 9);
        // Second, whether this process waits for others, and the servers that are queried.
        for (second, waits, queried) in [
            (11, false, &[][..]),
            (12, false, &[9]),
            (12, true, &[7]),
            (13, false, &[]),
            (13, true, &[9, 7]),
            (13, true, &[]),
            (99, false, &[9, 7]),
        ] {
            let routes = peers.to_query(second * SECOND, waits);
            let servers: Vec<usize> = routes.iter().map(|route| route.server).collect();
            assert_eq!(servers, queried, "at {second} s");
        }
        peers.query_all();
        assert_eq!(peers.to_query(99 * SECOND, false).len(), 2);
        assert_eq!(peers.to_query(99 * SECOND, false).len(), 0);
    }

    #[test]
    fn a_process_in_whose_place_others_answer_is_replaced_until_it_answers() {
        // Processes behind the same visible server, replies of others since the last of process 0, seconds since then.
        for (processes, replies, seconds, replaced) in [
            (2, 40, 3, true),
            (2, 39, 3, false),
            (2, 4000, 2, false),
            (3, 59, 3, false),
            (3, 60, 3, true),
            (1, 0, 99, false),
        ] {
            let mut peers = KnownPeers::default();
            let record = |peers: &mut KnownPeers, group: u32, second: u64, server| {
                let group = UniqId { time: group, mix: 0, counter: 2 };
                let at = (second * SECOND).as_u64();
                let status = PeerStatus { group, position: 1, waits: false, at, gone: None, replaced: false };
                peers.record(status, 0, server);
            };
            (0..processes).rev().for_each(|group| record(&mut peers, group, 0, 5));
            for reply in 0..replies {
                record(&mut peers, 1 + reply % processes.saturating_sub(1).max(1), 1, 5);
                // Those of another visible server tell nothing.
                record(&mut peers, 9, 1, 6);
            }
            peers.mark_replaced(seconds * SECOND);
            let now = |peers: &KnownPeers| {
                let first = peers.statuses().iter().find(|status| status.group.time == 0);
                first.map(|status| status.replaced)
            };
            assert_eq!(now(&peers), Some(replaced), "{processes} {replies} {seconds}");
            assert_eq!(
                peers.statuses().iter().filter(|status| status.replaced).count(),
                usize::from(replaced)
            );
            record(&mut peers, 0, 100, 5);
            assert_eq!(now(&peers), Some(false));
        }
    }
}
