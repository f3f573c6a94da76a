//! The specs of event loops: how the agents of a test are divided among them. A spec is plain data, so that it can
//! be played in another process.

use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_origin::{House, Server};
use polygraph_stats::{DumpPlan, Side};
use polygraph_traffic::IdSource;
use polygraph_traffic::store::Legacy;
use serde::{Deserialize, Serialize};

use crate::setup::{ClientSetup, ServerSetup};

/// What a loop does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LoopSpec {
    /// Robots.
    Robots {
        /// Their settings.
        settings: Box<polygraph_robot::Settings>,
        /// The loop's share of the explicit local ports: first and last.
        ports: Option<(u16, u16)>,
        /// Source of world and transaction ids.
        ids: IdSource,
        /// What they go on with, if there was an earlier test.
        legacy: Option<Box<Legacy>>,
        /// Whether the loop delivers its share of the working set at the end.
        stores: bool,
        /// What is shown of transactions.
        dump: DumpPlan,
    },
    /// Origin servers.
    Origin {
        /// What all servers have in common.
        house: Arc<House>,
        /// Each server and where it listens.
        sites: Vec<(Server, SocketAddr)>,
        /// Number of the loop among those of its side.
        index: u64,
        /// What is shown of transactions.
        dump: DumpPlan,
    },
}

impl LoopSpec {
    /// The side that the loop belongs to.
    pub fn side(&self) -> Side {
        match self {
            LoopSpec::Robots { .. } => Side::Client,
            LoopSpec::Origin { .. } => Side::Server,
        }
    }
}

/// Divides the robots among loops.
pub fn client_loops(job: &ClientSetup) -> Vec<LoopSpec> {
    let loops = job.layout.loops.clamp(1, job.settings.robots);
    let edge = |index: usize| job.settings.robots * index / loops;
    let mut legacies = job.earlier.as_ref().map(|set| set.deal(loops)).unwrap_or_default().into_iter();
    (0..loops)
        .map(|index| {
            let mut settings = job.settings.clone();
            settings.first_robot = edge(index);
            settings.robots = edge(index + 1) - edge(index);
            settings.open_limit = (job.settings.open_limit / loops).max(1);
            LoopSpec::Robots {
                settings: Box::new(settings),
                ports: job.ports.map(|range| share(range, index, loops)),
                ids: job.ids[index].clone(),
                legacy: legacies.next().map(Box::new),
                stores: job.stores,
                dump: job.dump,
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

/// Gives the loops of each process a share of the servers; all loops of the process listen at all addresses of
/// that share. If there are fewer servers than processes, several processes listen at the same address.
pub fn server_loops(job: &ServerSetup) -> Vec<LoopSpec> {
    let loops = job.layout.loops;
    let processes = job.layout.processes.max(1);
    let servers = job.sites.len();
    let of_process = |process: usize| match servers < processes {
        true => process % servers..process % servers + 1,
        false => servers * process / processes..servers * (process + 1) / processes,
    };
    let loops_of_processes = job.layout.divide((0..loops).collect());
    let spec = |process: usize, index: usize| {
        let site = |at: usize| (job.sites[at].0.clone(), job.sites[at].1.address());
        LoopSpec::Origin {
            house: Arc::clone(&job.house),
            sites: of_process(process).map(site).collect(),
            index: index as u64,
            dump: job.dump,
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
