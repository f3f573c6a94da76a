//! The other processes of a test, as far as the robots of one loop know them, with a way to reach each of them.

pub mod first_contact;
mod phase_sync;

use polygraph_link::Nanos;
use polygraph_traffic::groups::{Groups, PeerStatus, StatusRule};

/// A server process that has sent no status for this long is queried.
const QUIET: Nanos = Nanos::from_secs(10);
/// The same while this process waits for others.
const QUIET_WHEN_WAITING: Nanos = Nanos::from_millis(250);

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
            None => self.routes.push(Route { robot, server, queried: Some(Nanos::new(status.at)) }),
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
            let status =
                PeerStatus { group, position: 1, waits: false, at: (second * SECOND).as_u64(), gone: None };
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
}
