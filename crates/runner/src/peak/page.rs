//! The HTML page of a search.

use polygraph_plan::peak::{PeakResult, Vote};
use polygraph_report::html::peak_page::{PeakReport, PeakRun, PeakStatus, html as page};
use polygraph_report::text as format;

use super::state::SearchState;
use super::text::{conclusion, next_step, status};

/// The page of a search; without a finding the search continues.
pub fn html(state: &SearchState, finding: Option<&PeakResult>) -> String {
    let seconds: f64 = state.steps.iter().map(|step| step.seconds).sum();
    let held = finding.and_then(|finding| finding.held);
    let runs = state.steps.iter().map(|step| PeakRun {
        rate: step.rate,
        why: step.why.clone(),
        held: match step.vote {
            Vote::Held => Some(true),
            Vote::Failed => Some(false),
            Vote::Void => None,
        },
        reasons: step.reasons.clone(),
        measured: step.measured.clone(),
        directory: step.directory.clone(),
    });
    page(&PeakReport {
        title: format!("Peak: {}", state.what()),
        subtitle: format!("{} runs in {}", state.steps.len(), format::duration(seconds.round())),
        conclusion: match finding {
            Some(finding) => conclusion(state, finding),
            None => {
                let left = state.search.remaining(&state.trials());
                format!("the search continues; about {left} runs remain")
            }
        },
        status: finding.map_or(PeakStatus::Searching, status),
        next: finding.and_then(next_step),
        held,
        failed: finding.and_then(|finding| finding.failed),
        criteria: state.criteria,
        low: state.low().cloned(),
        runs: runs.collect(),
        command: format::command(&state.command),
    })
}
