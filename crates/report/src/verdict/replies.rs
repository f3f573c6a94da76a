//! What the device answered: failed transactions and wrong replies.

use polygraph_stats::error::Nature;
use polygraph_stats::{EndReason, ErrorKind, Side};

use super::blame::{Blame, failed_by};
use super::{Findings, Party};
use crate::fold::RunFacts;
use crate::{correctness, text};

/// Share of failed transactions that is allowed in the primary phase (the rule of the 1999 bake-off).
pub(super) const ERRORS_MAX: f64 = 0.03;
/// Share of wrong replies that is allowed in the primary phase.
pub(super) const WRONG_MAX: f64 = 0.001;

pub(super) fn errors(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let scope = &headline.scope;
    let ended = scope.ended_count() as f64;
    let said = failed_by(scope, Blame::Device);
    let both = said + failed_by(scope, Blame::Slow);
    if both <= ERRORS_MAX * ended {
        return;
    }
    let text = format!(
        "{:.2} % of the transactions failed in phase {} ({both:.0} of {ended:.0}), {:.0} % are allowed",
        100.0 * both / ended,
        headline.phase,
        100.0 * ERRORS_MAX
    );
    if said > ERRORS_MAX * ended {
        found.failed("errors", text);
    } else {
        found.add_slow_device("errors", text);
    }
}

pub(super) fn error_goal(facts: &RunFacts, found: &mut Findings) {
    let Some(client) = &facts.client else { return };
    for process in &client.processes {
        let Some(EndReason::ErrorGoal { phase }) = &process.end else { continue };
        let text = format!("the run was given up in phase {phase}: too many transactions failed");
        let scope = client.phase(phase).and_then(|phase| phase.scope.as_ref());
        let by_bench = scope.is_some_and(|scope| {
            let others = failed_by(scope, Blame::Device) + failed_by(scope, Blame::Slow);
            failed_by(scope, Blame::Bench) > others
        });
        let independent = scope
            .is_some_and(|scope| failed_by(scope, Blame::Device) > ERRORS_MAX * scope.ended_count() as f64);
        if by_bench {
            found.invalid(
                "error goal",
                Party::Host,
                format!("{text}, most of them by faults of the local system"),
            );
        } else if independent {
            found.failed("error goal", text);
        } else {
            found.add_slow_device("error goal", text);
        }
    }
}

/// Content that is not what the server made for the request: once is too often, whenever it was.
pub(super) fn content(facts: &RunFacts, found: &mut Findings) {
    for finding in correctness::of_run(facts).findings {
        if finding.kind.nature() == Nature::Content {
            let whom = match finding.side {
                Side::Client => "robots",
                Side::Server => "servers",
            };
            let times = text::times(finding.count);
            let text = format!("wrong content delivered to {whom} {times}: {}", finding.kind.text());
            found.failed("content", text);
        }
    }
}

pub(super) fn correctness(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let server = facts.client.as_ref().and(facts.server.as_ref()).and_then(|side| side.total.as_ref());
    for scope in std::iter::once(&headline.scope).chain(server) {
        let ended = scope.ended_count() as f64;
        let wrong = |kind: ErrorKind| correctness::concerns(kind) && kind.nature() != Nature::Content;
        for (kind, count) in scope.block.errors.iter().filter(|(kind, _)| wrong(*kind)) {
            let text = format!("{}: {count} of {ended:.0} transactions", kind.text());
            let few = count as f64 <= WRONG_MAX * ended;
            match kind {
                _ if few => found.warn("correctness", text),
                // Nobody can be blamed for a hit on what others had asked for.
                ErrorKind::FalseHit => found.warn("correctness", text),
                // A bench that does not read may be why a message was cut.
                ErrorKind::BodyShort => found.add_slow_device("correctness", text),
                _ => found.failed("correctness", text),
            }
        }
    }
}
