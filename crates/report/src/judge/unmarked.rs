//! Whether requests for objects of the test came from robots.

use super::Findings;
use crate::facts::RunFacts;
use crate::text;

pub(super) const UNMARKED: &str = "unmarked";
/// Largest share of requests without the mark. Some devices check the health of servers with URLs of the test.
pub(super) const SHARE_MAX: f64 = 0.05;
/// Fewer requests prove nothing.
pub(super) const LEAST: u64 = 10;

/// All requests of robots have the mark, of each kind and in tunnels, too. Requests for other URLs do not count, so health checks do not
/// as a rule.
pub(super) fn unmarked(facts: &RunFacts, found: &mut Findings) {
    let (Some(_), Some(server)) = (&facts.client, &facts.server) else { return };
    let Some(servers) = &server.total else { return };
    let (unmarked, arrived) = (servers.block.unmarked, servers.block.xacts.entered);
    if unmarked < LEAST || unmarked as f64 <= SHARE_MAX * arrived as f64 {
        return;
    }
    let share = text::percent(unmarked as f64 / arrived as f64, 1);
    let cause = if facts.tested.is_device() {
        "the device asks for objects by itself (prefetching, fetching copies in the background) or removes fields that it does not know; \
         without the field, nobody can tell a stored reply from a new one"
    } else {
        "somebody else than the robots asked the servers"
    };
    found.warn(
        UNMARKED,
        format!("{unmarked} of {arrived} requests at servers ({share}) are for objects of the test but do not have X-Xact: {cause}"),
    );
}
