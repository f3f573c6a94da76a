//! Whether the servers of the run made the replies that robots took for theirs.

use polygraph_stats::{Block, Class, ErrorKind};

use super::blame::ERRORS_MAX;
use super::surplus::LEAST;
use super::{Findings, LimitingParty, logs};
use crate::facts::{ProcessFacts, RunFacts};

pub(super) const UNASKED: &str = "unasked";

/// Basic transactions and uploads whose reply a server made for them, by its marks (`X-Xact`). Replies of other servers, which the user
/// tolerates or the workload asks for, prove nothing, and are not verified. Those that name other contents are not verified either, but are
/// marked.
fn first_hand(robots: &Block) -> u64 {
    let replies = [Class::Miss, Class::Uncachable].map(|class| robots.class(class).size.count());
    let marked = robots.verified.replies + robots.errors[ErrorKind::OtherContents];
    replies.iter().sum::<u64>().saturating_sub(robots.foreign.started).min(marked) + robots.first_hand_uploads
}

/// What robots took for replies that servers made for their requests, and how many requests arrived at servers.
struct Counts {
    replies: u64,
    arrived: u64,
}

/// Only what is known in full can be compared: others may go on where a server has ended. Requests without a reply, and those that a device
/// makes by itself, are among those that arrived, so that fewer requests than replies mean something.
fn counts(facts: &RunFacts) -> Option<Counts> {
    let (client, server) = (facts.client.as_ref()?, facts.server.as_ref()?);
    let arrived = server.total.as_ref().map_or(0, |total| total.block.xacts.entered);
    let needed_s = facts.headline.as_ref().map_or(0.0, |headline| headline.end_s);
    let is_whole = |process: &ProcessFacts| {
        process.end.is_some() && process.missing.is_empty() && (arrived == 0 || process.lived_until(needed_s))
    };
    let lacks_logs = logs::servers(client, server).is_some_and(|(here, planned)| here < planned);
    let counts = Counts { replies: first_hand(&client.total.as_ref()?.block), arrived };
    (!lacks_logs && server.processes.iter().all(is_whole)).then_some(counts)
}

/// The replies that nobody asked the servers of the run for, if there are too many of them.
fn elsewhere(facts: &RunFacts) -> Option<(u64, Counts)> {
    let counts = counts(facts)?;
    let missing = counts.replies.saturating_sub(counts.arrived);
    (missing as f64 >= LEAST.max(ERRORS_MAX * counts.replies as f64)).then_some((missing, counts))
}

/// Whether other servers than those of the run answered.
pub(super) fn others_answered(facts: &RunFacts) -> bool {
    elsewhere(facts).is_some()
}

/// Any server of this program answers for any object, with marks that look right. What is known of the servers of the run then says
/// nothing about the replies of the others, such as whether they were late.
pub(super) fn unasked(facts: &RunFacts, found: &mut Findings) {
    let Some((missing, Counts { replies, arrived })) = elsewhere(facts) else { return };
    let cause = match facts.tested.is_device() {
        true => {
            "the device asks servers that are not part of this run, such as one left over from another test, or makes such replies \
                 itself: check where it finds its servers"
        }
        false => "robots asked servers that are not part of this run, or the logs are of different runs",
    };
    let came = match arrived {
        0 => "none of these arrived at the servers of this run".to_owned(),
        _ => format!("only {arrived} requests arrived at the servers of this run, {missing} fewer"),
    };
    let text =
        format!("{replies} replies look as if servers had made them for their requests, but {came}: {cause}");
    found.invalid(UNASKED, LimitingParty::Test, text);
}
