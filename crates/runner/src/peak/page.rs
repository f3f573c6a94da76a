//! The HTML page of a search.

use polygraph_plan::peak::Vote;
use polygraph_report::html::peak_page::{PeakReport, PeakRun, html as page};
use polygraph_report::text as format;

use super::state::SearchState;
use super::text::{next_step, result, status};

/// The page of a search, complete or not.
pub fn html(state: &SearchState) -> String {
    let seconds: f64 = state.steps.iter().map(|step| step.seconds).sum();
    let finding = state.finding();
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
        subtitle: format!(
            "{} in {}",
            format::counted(state.steps.len() as u64, "run"),
            format::duration(seconds.round())
        ),
        conclusion: result(state),
        status: status(state),
        next: finding.as_ref().and_then(next_step),
        held: finding.and_then(|finding| finding.held),
        failed: finding.and_then(|finding| finding.failed),
        criteria: state.criteria,
        low: state.low().cloned(),
        runs: runs.collect(),
        command: format::command(&state.command),
    })
}
