//! Whether the servers of the run made the replies that robots took for theirs.

use polygraph_stats::{Block, Class};

use super::surplus::LEAST;
use super::{Findings, LimitingParty, logs};
use crate::facts::{ProcessFacts, RunFacts};

pub(super) const UNASKED: &str = "unasked";

/// Basic transactions whose reply a server made for them, by its marks (`X-Xact`). Replies of other servers, which the user tolerates or
/// the workload asks for, prove nothing, and are not verified.
fn first_hand(robots: &Block) -> u64 {
    let replies = [Class::Miss, Class::Uncachable].map(|class| robots.class(class).size.count());
    replies.iter().sum::<u64>().saturating_sub(robots.foreign.started).min(robots.verified.replies)
}

/// Any server of this program answers for any object, with marks that look right. If none is one of the run, what is known of the
/// servers says nothing about the run, such as whether they were late.
pub(super) fn unasked(facts: &RunFacts, found: &mut Findings) {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return };
    let Some(robots) = client.total.as_ref().map(|total| &total.block) else { return };
    let arrived = server.total.as_ref().map_or(0, |total| total.block.xacts.entered);
    let is_whole = |process: &ProcessFacts| process.end.is_some() && process.missing.is_empty();
    let lacks_logs = logs::servers(client, server).is_some_and(|(here, planned)| here < planned);
    let new = first_hand(robots);
    if arrived > 0 || (new as f64) < LEAST || lacks_logs || !server.processes.iter().all(is_whole) {
        return;
    }
    let cause = match facts.tested.is_device() {
        true => {
            "the device asks servers that are not part of this run, such as one left over from another test, or makes such replies \
                 itself: check where it finds its servers"
        }
        false => "robots asked servers that are not part of this run, or the logs are of different runs",
    };
    let text = format!(
        "{new} replies look as if servers had made them for their requests, but none of these arrived at the servers of this run: {cause}"
    );
    found.invalid(UNASKED, LimitingParty::Test, text);
}
