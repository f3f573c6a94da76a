//! Judges runs by the rules of a bake-off.

use polygraph_report::RunFacts;
use polygraph_report::verdict::FindingSeverity;

use crate::entry::AttemptStatus;

/// The rule of the verdict whose limit a plan can replace.
const ERRORS: &str = "errors";

/// Judges a run: its status, and the reason in one or two sentences. The rules are those of every run
/// (docs/verdict.md), except that the share of failed transactions may be up to `max_errors`.
pub fn judge(facts: &RunFacts, max_errors: f64) -> (AttemptStatus, String) {
    let share = facts.headline.as_ref().and_then(|headline| headline.scope.block.error_ratio());
    let texts = |weight: FindingSeverity| {
        let findings = facts.verdict.of_weight(weight).filter(|finding| finding.rule != ERRORS);
        findings.map(|finding| finding.text.clone()).collect::<Vec<_>>()
    };
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let mut failed = texts(FindingSeverity::Failed);
    if let Some(share) = share.filter(|share| *share > max_errors) {
        failed.insert(
            0,
            format!("{} of the transactions failed; the limit is {}", percent(share), percent(max_errors)),
        );
    }
    if !failed.is_empty() {
        return (AttemptStatus::Failed, failed.join("; "));
    }
    let invalid = texts(FindingSeverity::Invalid);
    match (invalid.is_empty(), share) {
        (false, _) => (AttemptStatus::Invalid, invalid.join("; ")),
        (true, None) => (AttemptStatus::Invalid, "nothing was measured".into()),
        (true, Some(share)) => {
            (AttemptStatus::Passed, format!("{} of the transactions failed", percent(share)))
        }
    }
}
