//! Whether the servers had to turn the device away.

use polygraph_stats::ErrorKind;

use super::generator::RESOURCES_MAX;
use super::{FindingSeverity, Findings, LimitingParty};
use crate::facts::RunFacts;
use crate::figures::error_count;

/// Name of the rule.
pub(super) const REFUSED: &str = "refused";
/// What a device does that cannot reach its origins.
const FOLLOWS: [&str; 4] = ["errors", "error goal", "following", "growing"];

/// Servers refused connections for want of descriptors: what the device made of that is the bench's doing.
pub(super) fn refused(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.server.as_ref().and_then(|side| side.total.as_ref()) else { return };
    let refused = error_count(&total.block, ErrorKind::NoDescriptor);
    if refused > RESOURCES_MAX * total.ended_count() as f64 {
        let text = format!(
            "servers refused {refused:.0} connections for want of file descriptors: raise the limit (ulimit -Hn), or use \
             more processes (--workers)"
        );
        found.invalid(REFUSED, LimitingParty::Host, text);
    }
}

impl Findings {
    /// Errors of a device whose origins turn it away are no evidence against it; wrong content is.
    pub(super) fn excuse_for_descriptors(&mut self) {
        let refused = self.all.iter().any(|found| found.rule == REFUSED);
        for finding in self.all.iter_mut().filter(|_| refused) {
            if finding.weight == FindingSeverity::Failed && FOLLOWS.contains(&finding.rule) {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(" (perhaps the bench's doing, for its servers refused connections)");
            }
        }
    }
}
