//! In how many processes a test runs on this machine.

use polygraph_engine::{Layout, Need, lay_out, limits};
use polygraph_plan::Test;
use polygraph_stats::Side;
use polygraph_traffic::Distr;

use crate::options::CommonOptions;

/// A robot that keeps connections open is expected to hold so many at a time: one that it uses, and one that waits
/// for its next request or was opened because another had not ended.
const PERSISTENT: usize = 2;

/// Where the loops of the given sides live: in this process if its descriptors suffice for both, else, or if
/// `--workers` says so, in worker processes.
pub fn layouts<const N: usize>(
    test: &Test,
    common: &CommonOptions,
    open_connections: Option<u32>,
    sides: [Side; N],
) -> [Layout; N] {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let loops = common.loops.map_or(processors, |loops| loops as usize);
    let workers = Some(common.workers as usize).filter(|&workers| workers > 0);
    let limit = limits::connection_limit(limits::raise_descriptor_limit());
    let connections = connections(test, open_connections);
    let needs = sides.map(|side| match side {
        Side::Client => Need { connections, listeners: 0, most_loops: test.robots.count },
        // Through a device there may be fewer, but hardly ever more.
        Side::Server => Need { connections, listeners: test.servers.listen.len(), most_loops: usize::MAX },
    });
    let layouts = lay_out(&needs, loops, workers, limit);
    std::array::from_fn(|at| layouts[at])
}

/// Connections that the robots of a test are expected to have open together. Those of a test whose robots are
/// elsewhere are not known here, and none are counted.
fn connections(test: &Test, most: Option<u32>) -> usize {
    let per_robot = match test.robots.requests_per_connection {
        Distr::Const(requests) if requests < 2.0 => 1,
        _ => PERSISTENT,
    };
    let expected = test.robots.count.saturating_mul(per_robot);
    most.map_or(expected, |most| expected.min(most as usize))
}
