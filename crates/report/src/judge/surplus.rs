//! Whether more requests arrived at servers than robots can have caused.

use polygraph_stats::{Block, Class};

use super::Findings;
use super::blame::ERRORS_MAX;
use crate::facts::{ProcessFacts, RunFacts, SideFacts};

pub(super) const SURPLUS: &str = "surplus";
/// So many more prove nothing: logs do not begin and end at the same time.
pub(super) const LEAST: f64 = 10.0;

fn total(side: &SideFacts) -> Option<&Block> {
    side.total.as_ref().map(|total| &total.block)
}

/// Transactions of robots because of which a device may have to send a basic request to servers: all but hits, uploads and those with
/// other servers. Conditions, ranges and HEAD are among them, because caches fetch the whole object for these.
fn causes(robots: &Block) -> f64 {
    let others = [Class::Hit, Class::Post, Class::Put].map(|class| robots.class(class).size.count());
    let others = others.iter().sum::<u64>() + robots.foreign.started;
    (robots.xacts.entered + robots.retried).saturating_sub(others) as f64
}

/// So many more plain GET requests of robots arrived at servers than robots can have caused.
pub(super) fn unexplained(robots: &Block, servers: &Block) -> f64 {
    servers.basic_marked as f64 - causes(robots)
}

/// Validations do not count, nor do requests without the mark of a robot, as for health checks: a device makes these by itself.
pub(super) fn surplus(facts: &RunFacts, found: &mut Findings) {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return };
    let (Some(robots), Some(servers)) = (total(client), total(server)) else { return };
    let is_whole = |process: &ProcessFacts| process.end.is_some() && process.missing.is_empty();
    if !facts.tested.is_device() || !client.processes.iter().all(is_whole) {
        return;
    }
    let (caused, arrived) = (causes(robots), servers.basic_marked as f64);
    if unexplained(robots, servers) > LEAST.max(ERRORS_MAX * caused) {
        let mut text = format!(
            "{arrived:.0} plain GET requests of robots arrived at servers, but at most {caused:.0} transactions of robots can be the reason, \
             because the others were hits or uploads: the device sends requests more than once or fetches copies in the background, or the \
             logs do not cover the same time"
        );
        let hits = robots.class(Class::Hit).size.count() as f64;
        if hits > 0.0 {
            // A hit that costs a request saves nothing, and may be none: its mark is a field of the reply.
            let doubtful = hits.min(arrived - caused);
            text += &format!(
                "; if it asks for hits again, or changes `X-Xact`, {doubtful:.0} of the {hits:.0} hits are not proven"
            );
        }
        found.warn(SURPLUS, text);
    }
}
