//! Whether the servers had to refuse connections of the device.

use super::generator::RESOURCES_MAX;
use super::{FAILURES, FindingSeverity, Findings, LimitingParty, stalls};
use crate::facts::RunFacts;

/// Name of the rule.
pub(super) const REFUSED: &str = "refused";
/// Servers refused connections for lack of file descriptors: the bench caused the failures that follow.
pub(super) fn refused(facts: &RunFacts, found: &mut Findings) {
    let Some(server) = &facts.server else { return };
    let judged = stalls::judged(facts);
    let points = server
        .series
        .iter()
        .filter(|point| judged.iter().any(|&(begin_s, end_s)| point.at_s >= begin_s && point.at_s <= end_s));
    let (mut refused, mut ended) = (0.0, 0.0);
    for point in points {
        refused += point.get("errors.no_descriptor.count").unwrap_or(0.0);
        ended += point.get("baseline.rep.rate").unwrap_or(0.0) * point.seconds;
    }
    if refused > RESOURCES_MAX * ended {
        let text = format!(
            "servers refused {refused:.0} connections for lack of file descriptors: raise the limit (ulimit -Hn), or use \
             more processes (--workers)"
        );
        found.invalid(REFUSED, LimitingParty::Host, text);
    }
}

impl Findings {
    /// Errors of a device are no evidence against it if its origin servers refuse connections; wrong content is.
    pub(super) fn excuse_for_descriptors(&mut self) {
        let refused = self.all.iter().any(|found| found.rule == REFUSED);
        for finding in self.all.iter_mut().filter(|_| refused) {
            if finding.weight == FindingSeverity::Failed && FAILURES.contains(&finding.rule) {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(" (the bench may be the cause: its servers refused connections)");
            } else if finding.party == Some(LimitingParty::Server) && FAILURES.contains(&finding.rule) {
                // The server failed because its host lacks descriptors.
                finding.party = Some(LimitingParty::Host);
            }
        }
    }
}
