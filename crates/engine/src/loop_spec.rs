//! How the robots and servers of a test are divided among event loops. The specification of a loop is plain data, so
//! another process can run it.

use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_origin::{OriginConfig, ServerSpec};
use polygraph_stats::{DumpPlan, Side};
use polygraph_traffic::IdSource;
use polygraph_traffic::store::RestoredShare;
use serde::{Deserialize, Serialize};

use crate::setup::{ClientSetup, ServerSetup};

/// What a loop runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LoopSpec {
    /// A group of robots.
    Robots {
        /// The settings of the robots.
        settings: Box<polygraph_robot::Settings>,
        /// The loop's share of the explicit local ports: first and last.
        ports: Option<(u16, u16)>,
        /// The source of world and transaction ids.
        ids: IdSource,
        /// The loop's share of the working set of an earlier test, if the test continues one.
        legacy: Option<Box<RestoredShare>>,
        /// Whether the loop delivers its share of the working set at the end.
        stores: bool,
        /// Which transactions are dumped.
        dump: DumpPlan,
    },
    /// Origin servers.
    Origin {
        /// The configuration that all servers share.
        config: Arc<OriginConfig>,
        /// Each server and the address on which it listens.
        servers: Vec<(ServerSpec, SocketAddr)>,
        /// The number of the loop on its side, which differs from those of other processes that run other servers of the test.
        index: u64,
        /// Which transactions are dumped.
        dump: DumpPlan,
    },
}

impl LoopSpec {
    /// The side of the loop.
    pub fn side(&self) -> Side {
        match self {
            LoopSpec::Robots { .. } => Side::Client,
            LoopSpec::Origin { .. } => Side::Server,
        }
    }
}

/// Divides the robots among loops.
pub fn client_loops(setup: &ClientSetup) -> Vec<LoopSpec> {
    let loops = setup.layout.loops.clamp(1, setup.settings.robots);
    let edge = |index: usize| setup.settings.robots * index / loops;
    let mut legacies = setup.earlier.as_ref().map(|set| set.deal(loops)).unwrap_or_default().into_iter();
    (0..loops)
        .map(|index| {
            let mut settings = setup.settings.clone();
            settings.first_robot = edge(index);
            settings.robots = edge(index + 1) - edge(index);
            settings.open_limit = (setup.settings.open_limit / loops).max(1);
            LoopSpec::Robots {
                settings: Box::new(settings),
                ports: setup.ports.map(|range| share(range, index, loops)),
                ids: setup.ids[index].clone(),
                legacy: legacies.next().map(Box::new),
                stores: setup.stores,
                dump: setup.dump,
            }
        })
        .collect()
}

/// The part of a range of ports that belongs to loop `index` of `count`.
fn share((low, high): (u16, u16), index: usize, count: usize) -> (u16, u16) {
    let length = usize::from(high - low) + 1;
    let edge = |i: usize| usize::from(low) + length * i / count;
    (edge(index) as u16, (edge(index + 1).max(edge(index) + 1) - 1) as u16)
}

/// Divides the servers among processes. All loops of a process listen on all addresses of its share. If there are
/// fewer servers than processes, several processes listen on the same address.
pub fn server_loops(setup: &ServerSetup) -> Vec<LoopSpec> {
    let loops = setup.layout.loops;
    let processes = setup.layout.processes.max(1);
    let servers = setup.servers.len();
    let of_process = |process: usize| match servers < processes {
        true => process % servers..process % servers + 1,
        false => servers * process / processes..servers * (process + 1) / processes,
    };
    let first_number = setup.servers.iter().map(|(server, _)| server.number).min().unwrap_or(0);
    let loops_of_processes = setup.layout.divide((0..loops).collect());
    let spec = |process: usize, index: usize| {
        let server = |at: usize| (setup.servers[at].0.clone(), setup.servers[at].1.address());
        LoopSpec::Origin {
            config: Arc::clone(&setup.config),
            servers: of_process(process).map(server).collect(),
            index: first_number << 16 | index as u64,
            dump: setup.dump,
        }
    };
    let of_loops = |(process, loops): (usize, Vec<usize>)| {
        loops.into_iter().map(|index| spec(process, index)).collect::<Vec<_>>()
    };
    loops_of_processes.into_iter().enumerate().flat_map(of_loops).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_ports_are_disjoint_and_complete() {
        let mut all = Vec::new();
        for index in 0..3 {
            let (low, high) = share((1024, 30_000), index, 3);
            all.extend(low..=high);
        }
        assert_eq!(all, (1024..=30_000).collect::<Vec<_>>());
    }
}
