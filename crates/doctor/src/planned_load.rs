//! The load that a test will put on a host, against which checks judge it.

use serde::Serialize;

/// The load of a test on this host. The default is an unknown load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedLoad {
    /// Requests per second at the busiest moment; `None`: unknown.
    pub rate: Option<f64>,
    /// New connections per second at the busiest moment; `None`: unknown.
    pub connection_rate: Option<f64>,
    /// Bytes of replies per second; `None`: unknown.
    pub bytes_per_s: Option<f64>,
    /// Seconds that the test takes; `None`: unknown.
    pub duration_s: Option<f64>,
    /// Connections that are expected to be open together; 0: unknown.
    pub connections: usize,
    /// Connections that robots may have open, if the user sets a limit.
    pub connection_limit: Option<usize>,
    /// Worker processes that share the connections; 0: none.
    pub processes: usize,
    /// Whether robots run on this host.
    pub robots: bool,
    /// Whether servers run on this host.
    pub servers: bool,
    /// Addresses that robots connect from; 1 if the system chooses.
    pub sources: usize,
    /// Addresses with ports that robots connect to.
    pub targets: usize,
    /// Whether all connections stay on loopback addresses.
    pub on_loopback: bool,
    /// Hosts and addresses in connected networks that this host exchanges packets with.
    pub neighbours: usize,
    /// The lowest and the highest local port that robots use instead of those that the system chooses.
    pub ports: Option<(u16, u16)>,
    /// Ports at which servers listen.
    pub listening: Vec<u16>,
}

impl Default for PlannedLoad {
    fn default() -> PlannedLoad {
        PlannedLoad {
            rate: None,
            connection_rate: None,
            bytes_per_s: None,
            duration_s: None,
            connections: 0,
            connection_limit: None,
            processes: 0,
            robots: true,
            servers: true,
            sources: 1,
            targets: 1,
            on_loopback: false,
            neighbours: 0,
            ports: None,
            listening: Vec::new(),
        }
    }
}

impl PlannedLoad {
    /// Whether anything is known about the load.
    pub fn is_known(&self) -> bool {
        self.rate.is_some() || self.connections > 0
    }

    /// Ends of each connection in this process.
    pub fn ends(&self) -> usize {
        if self.robots && self.servers && self.processes == 0 { 2 } else { 1 }
    }

    /// Ends of each connection on this host.
    pub fn ends_on_host(&self) -> usize {
        usize::from(self.robots) + usize::from(self.servers)
    }

    /// Pairs of addresses between which connections are opened.
    pub fn pairs(&self) -> usize {
        self.sources.max(1) * self.targets.max(1)
    }
}
