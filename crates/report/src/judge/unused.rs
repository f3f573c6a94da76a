//! Whether the device opens connections to servers that it does not use.

use polygraph_stats::Block;

use super::Findings;
use crate::facts::RunFacts;

pub(super) const UNUSED: &str = "unused connections";
/// Fewer connections are no leak: some devices open a few before they need them.
pub(super) const LEAST: u64 = 100;

/// Connections to servers that have not carried any request, if they are many, at the end of the measured phases.
pub(super) fn count(facts: &RunFacts) -> Option<u64> {
    if !facts.tested.is_device() {
        return None;
    }
    let (client, server) = (facts.client.as_ref()?, facts.server.as_ref()?);
    let phase = client.phases.iter().rev().find(|phase| phase.primary)?;
    let robots = &phase.scope.as_ref()?.block;
    let servers = &server.phase(&phase.name)?.scope.as_ref()?.block;
    let unused = without_requests(servers);
    (unused >= LEAST && unused > robots.established.peak).then_some(unused)
}

/// Of a connection with many streams, servers do not count whether it is idle.
fn without_requests(servers: &Block) -> u64 {
    let has_streams = servers.streams != Default::default();
    if has_streams {
        0
    } else {
        servers.established.last.saturating_sub(servers.idle.last + servers.xacts.last)
    }
}

/// A device that leaks connections works until it, or a server, has no descriptors left.
pub(super) fn unused(facts: &RunFacts, found: &mut Findings) {
    let Some(unused) = count(facts) else { return };
    found.warn(
        UNUSED,
        format!(
            "at the end of the measured phase, {unused} connections to servers were open that had carried no request, more than robots had to the \
             device: it opens connections that it does not use, and does not close them"
        ),
    );
}
