//! From the state of a search to its page.

use polygraph_plan::peak::{PeakResult, SearchEnd, Vote};
use polygraph_report::html::peak_page::{PeakReport, PeakRun, PeakStatus, html as page};
use polygraph_report::text;

use super::state::State;
use super::{conclusion, next_step};

/// The page of a search; without a finding it goes on.
pub fn html(state: &State, finding: Option<&PeakResult>) -> String {
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
        subtitle: format!("{} runs in {}", state.steps.len(), text::duration(seconds.round())),
        conclusion: match finding {
            Some(finding) => conclusion(state, finding),
            None => {
                let left = state.search.remaining(&state.trials());
                format!("the search goes on; about {left} runs are to come")
            }
        },
        status: finding.map_or(PeakStatus::Searching, |finding| match finding.end {
            SearchEnd::Found => PeakStatus::Found,
            SearchEnd::Most => PeakStatus::NotReached,
            SearchEnd::BenchLimit if finding.held.is_some() => PeakStatus::BenchLimit,
            SearchEnd::BenchLimit | SearchEnd::Nothing => PeakStatus::Nothing,
            SearchEnd::OutOfRuns => PeakStatus::OutOfRuns,
        }),
        next: finding.and_then(next_step),
        held,
        failed: finding.and_then(|finding| finding.failed),
        criteria: state.criteria,
        low: state.low().cloned(),
        runs: runs.collect(),
        command: text::command(&state.command),
    })
}
