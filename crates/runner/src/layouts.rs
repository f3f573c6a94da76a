//! The number of event loops and processes of a test on this machine.

use polygraph_engine::{DescriptorNeed, Layout, lay_out, limits};
use polygraph_plan::Test;
use polygraph_plan::division::client_loops;
use polygraph_robot::Profile;
use polygraph_stats::Side;
use polygraph_traffic::Distr;

use crate::RunSettings;

/// Connections that a robot with persistent connections is expected to have open: one in use, and one that is idle or was
/// opened because the other was still in use.
const PERSISTENT: usize = 2;

/// The layouts of the given sides: all loops run in this process if its file descriptors suffice for both sides. Otherwise,
/// or if the user requests it, loops run in worker processes.
pub fn layouts<const N: usize>(
    test: &Test,
    settings: &RunSettings,
    open_connections: Option<u32>,
    sides: [Side; N],
) -> [Layout; N] {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let loops = |usual: usize| settings.loops.unwrap_or(usual);
    let workers = Some(settings.workers).filter(|&workers| workers > 0);
    let limit = limits::connection_limit(limits::raise_descriptor_limit());
    let connections = connections(test, open_connections);
    let needs = sides.map(|side| match side {
        Side::Client => DescriptorNeed {
            connections,
            listeners: 0,
            loops: loops(client_loops(test.peak_rate(), processors)),
            most_loops: test.robot_count(),
        },
        // A device may open fewer connections to servers than robots open to it, but hardly ever more.
        Side::Server => DescriptorNeed {
            connections,
            listeners: test.servers.iter().map(|servers| servers.sites.len()).sum(),
            loops: loops(processors),
            most_loops: usize::MAX,
        },
    });
    let layouts = lay_out(&needs, workers, limit);
    std::array::from_fn(|at| layouts[at])
}

/// Connections that the robots of a test are expected to have open together; 0 if the robots are elsewhere.
fn connections(test: &Test, most: Option<u32>) -> usize {
    let of_kind = |profile: &Profile| {
        let each = match profile.requests_per_connection {
            Distr::Const(requests) if requests < 2.0 => 1,
            _ => PERSISTENT,
        };
        profile.count.saturating_mul(each.min(profile.open_limit.unwrap_or(usize::MAX)))
    };
    let expected = test.robots.iter().map(|profile| of_kind(profile)).sum();
    most.map_or(expected, |most| usize::min(expected, most as usize))
}

/// Connections that the robots of a test are expected to have open together if response times are the servers' think
/// times: the number of robots, or the rate times the think time (Little's law), whichever is more.
pub fn expected_connections(test: &Test) -> usize {
    let think = |farm: &polygraph_origin::ServerProfile| farm.think.as_ref().map_or(0.0, Distr::mean);
    let longest = test.servers.iter().map(|servers| think(&servers.farm)).fold(0.0, f64::max);
    let busy = test.peak_rate().unwrap_or(0.0) * longest;
    connections(test, None).max(busy as usize)
}
