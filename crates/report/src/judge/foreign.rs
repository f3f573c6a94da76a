//! Whether servers outside of the test failed, which robots visit if the workload has foreign URLs.

use polygraph_stats::evidence::fact;

use super::blame::{Blame, ERRORS_MAX, WARNED_LEAST, ended_foreign, failed_by, most_of};
use super::{Findings, LimitingParty};
use crate::facts::RunFacts;
use crate::scope::Scope;

pub(super) const FOREIGN: &str = "foreign";
/// Foreign servers that messages name.
const NAMED: usize = 3;

/// No log says what a foreign server sent, so its failures are no evidence against the device; but figures with many of them are no
/// figures of the device either.
pub(super) fn foreign(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let scope = &headline.scope;
    let (failed, ended) = (failed_by(scope, Blame::Foreign), ended_foreign(&scope.block));
    let Some(most) = most_of(scope, &[Blame::Foreign]) else { return };
    let text = format!(
        "{failed:.0} of {ended:.0} transactions with {} failed (most often: {}): these servers, which are none of the test, or the \
         device before them",
        servers(facts),
        most.text()
    );
    if failed > ERRORS_MAX * scope.ended_count() as f64 {
        let share = (failed, scope.ended_count() as f64);
        found.explain(FOREIGN, LimitingParty::ForeignServer, text, share);
    } else if failed > ERRORS_MAX * ended && failed >= WARNED_LEAST {
        found.warn(FOREIGN, text);
    }
}

/// The foreign servers, as the examples of failures name them.
pub(super) fn servers(facts: &RunFacts) -> String {
    let samples = facts.client.iter().flat_map(|client| &client.samples).filter(|sample| sample.kind.fails());
    let facts = samples.flat_map(|sample| &sample.facts);
    let mut names: Vec<&str> =
        facts.filter(|(name, _)| name == fact::FOREIGN_SERVER).map(|(_, value)| value.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(NAMED);
    match names[..] {
        [] => "foreign servers".to_owned(),
        _ => format!("foreign servers ({})", names.join(", ")),
    }
}

/// If transactions with foreign servers that have not ended are more than half of those that piled up: whose fault it is, and the reason
/// as the end of a sentence.
pub(super) fn piled_up(facts: &RunFacts, scope: &Scope, gap: f64) -> Option<(LimitingParty, String)> {
    let waiting = scope.block.foreign.started as f64 - ended_foreign(&scope.block);
    (waiting > gap / 2.0).then(|| {
        let text = format!(": {waiting:.0} transactions with {} had no answer", servers(facts));
        (LimitingParty::ForeignServer, text)
    })
}
