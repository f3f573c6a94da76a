//! Whether the bodies that robots sent arrived at servers, and as often as they were sent.

use polygraph_stats::{Block, Class, EndReason};

use super::blame::ERRORS_MAX;
use super::surplus::unexplained;
use super::{Findings, logs, unasked};
use crate::facts::{RunFacts, SideFacts};

pub(super) const UPLOADS: &str = "uploads";
/// Fewer uploads than these prove nothing: some are under way when logs end.
const LEAST: f64 = 10.0;
/// What a device did that made other requests of uploads.
const ALTERED: &str = "altered requests";
/// What a device did that kept uploads from servers.
const ANSWERED_ITSELF: &str = "answered uploads itself";

fn of(class: Class, block: &Block) -> f64 {
    block.class(class).size.count() as f64
}

/// Requests with the methods that have a body.
fn count(block: &Block) -> f64 {
    of(Class::Post, block) + of(Class::Put, block)
}

fn total(side: &SideFacts) -> Option<&Block> {
    side.total.as_ref().map(|total| &total.block)
}

pub(super) fn uploads(facts: &RunFacts, found: &mut Findings) {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return };
    let (Some(robots), Some(servers)) = (total(client), total(server)) else { return };
    let (sent, arrived) = (count(robots), count(servers));
    let lacks_logs = logs::servers(client, server).is_some_and(|(here, planned)| here < planned);
    if sent < LEAST || facts.origin_gone.is_some() || lacks_logs || unasked::others_answered(facts) {
        return;
    }
    let text =
        format!("{sent:.0} uploads of robots (POST, PUT) succeeded, and {arrived:.0} arrived at servers");
    let (due, checked) = (servers.verified.due as f64, servers.verified.replies as f64);
    let missing = sent - arrived;
    if missing > allowed(sent) && covers(server, client) {
        // What arrived as GET is among the plain requests there.
        let (deed, why) = match 2.0 * unexplained(robots, servers) > missing {
            true => (ALTERED, "about as many arrived as GET"),
            false => (ANSWERED_ITSELF, "the device answered the others itself, so their content is lost"),
        };
        return found.failed_as(UPLOADS, deed, format!("{text}: {why}"));
    }
    if due - checked > allowed(due) {
        let text = format!(
            "{:.0} of {due:.0} request bodies could not be verified, because they came without X-Upload",
            due - checked
        );
        found.failed_as(UPLOADS, ALTERED, text);
    }
    // Failed attempts may have arrived, too, and those that had not ended.
    let others = robots.failed_count() + robots.retried + open(client);
    if arrived - sent > allowed(sent) + others as f64 {
        let posts = of(Class::Post, servers) - of(Class::Post, robots);
        let forbidden = match posts > allowed(of(Class::Post, robots)) {
            true => format!(
                "; {posts:.0} of these are POST, which nobody may send again on their own (RFC 9110, section 9.2.2)"
            ),
            false => String::new(),
        };
        found.warn(
            UPLOADS,
            format!("{text}: the device sends some more than once, or the logs do not cover the same time{forbidden}"),
        );
    }
}

/// Whether the servers' logs go on as long as those of the robots, so that what robots sent must be in them. A server that ended without
/// traffic has missed nothing.
fn covers(server: &SideFacts, client: &SideFacts) -> bool {
    let end_s = client.processes.iter().map(|process| process.last_s).fold(0.0, f64::max);
    server.processes.iter().all(|process| {
        process.missing.is_empty() && (process.end == Some(EndReason::Idle) || process.lived_until(end_s))
    })
}

/// Transactions that had not ended when the logs of robots did.
fn open(client: &SideFacts) -> u64 {
    client.processes.iter().filter_map(|process| process.unfinished).sum()
}

/// So many may differ: some are under way when a log begins or ends.
fn allowed(count: f64) -> f64 {
    (LEAST / 2.0).max(ERRORS_MAX * count)
}
