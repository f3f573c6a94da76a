//! Whether requests of some kind fail that are too few to matter for the share of all failures.

use polygraph_stats::{Block, Class};

use super::{FindingSeverity, Findings};
use crate::facts::RunFacts;

pub(super) const KINDS: &str = "kinds";
/// Largest share of the requests of a kind that may fail.
pub(super) const FAILED_MAX: f64 = 0.5;
/// So many failures are no chance.
pub(super) const LEAST: u64 = 10;

/// Kinds of requests, with their classes.
const ALL: [(&str, &[Class]); 6] = [
    ("PUT", &[Class::Put]),
    ("POST", &[Class::Post]),
    ("HEAD", &[Class::Head]),
    ("conditional", &[Class::Ims200, Class::Ims304]),
    ("no-cache", &[Class::Reload]),
    ("range", &[Class::Range]),
];

/// A device that refuses, say, all uploads does not serve the load, however few these are.
pub(super) fn kinds(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|_| facts.client.is_some()) else { return };
    let is_told = |finding: &super::VerdictFinding| {
        finding.rule == "errors" && finding.weight != FindingSeverity::Warning
    };
    if found.all.iter().any(is_told) {
        return;
    }
    let block = &headline.evidence().block;
    for (kind, classes) in ALL {
        let (failed, succeeded) = count(block, classes);
        if failed >= LEAST && failed as f64 > FAILED_MAX * (failed + succeeded) as f64 {
            let text = format!(
                "{failed} of {} {kind} requests failed in phase {}",
                failed + succeeded,
                headline.phase
            );
            found.slow_as(KINDS, "did not serve all kinds of requests", text);
        }
    }
}

/// How many transactions of these classes failed, and how many succeeded.
fn count(block: &Block, classes: &[Class]) -> (u64, u64) {
    let failed = classes.iter().map(|class| block.failed_class(*class)).sum();
    (failed, classes.iter().map(|class| block.class(*class).size.count()).sum())
}
