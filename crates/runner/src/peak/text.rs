//! The lines of a search on the console.

use polygraph_plan::peak::{PeakResult, SearchEnd, Vote};
use polygraph_report::peak::PeakStatus;
use polygraph_report::text as format;

use super::state::SearchState;

/// A rate in requests per second, with up to three decimal places, as options take it.
pub fn shown(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The heading of the table of steps.
pub fn heading() -> String {
    format!(
        "{:>4} {:<8} {:>10} {:<9} {:>10} {:>12} {:>12} {:>7} {:>7}\n",
        "step", "why", "rate/s", "device", "replies/s", "mean", "p95", "hits %", "errors %"
    )
}

/// The line of step `number`, counted from 1, with the reasons below it.
pub fn step_line(state: &SearchState, number: usize) -> String {
    let Some(step) = state.steps.get(number - 1) else { return String::new() };
    let run = &step.measured;
    let word = match step.vote {
        Vote::Held => "sustained",
        Vote::Failed => "failed",
        Vote::Void => "-",
    };
    let mut out = format!(
        "{number:>4} {:<8} {:>10} {word:<9} {:>10} {:>12} {:>12} {:>7} {:>7}\n",
        step.why,
        shown(step.rate),
        format::number(run.measured, 1),
        format::ms(run.mean_ms),
        format::ms(run.p95_ms),
        format::number(run.dhr, 1),
        format::number(run.errors, 2),
    );
    step.reasons.iter().for_each(|reason| out.push_str(&format!("     - {reason}\n")));
    out
}

/// Whether and how a search ended, as the console and the report call it.
pub fn status(state: &SearchState) -> PeakStatus {
    state.finding().as_ref().map_or(PeakStatus::Searching, status_of)
}

/// The result of a search, or how many runs remain, in a sentence.
pub fn result(state: &SearchState) -> String {
    match state.finding() {
        Some(finding) => result_of(state, &finding),
        None => {
            let left = state.search.remaining(&state.trials());
            let verb = if left == 1 { "remains" } else { "remain" };
            format!("the search continues; about {} {verb}", format::counted(left as u64, "run"))
        }
    }
}

/// How a search with this result ended.
pub fn status_of(finding: &PeakResult) -> PeakStatus {
    match finding.end {
        SearchEnd::Found => PeakStatus::Found,
        SearchEnd::Most => PeakStatus::NotReached,
        SearchEnd::BenchLimit if finding.held.is_some() => PeakStatus::BenchLimit,
        SearchEnd::BenchLimit | SearchEnd::Nothing => PeakStatus::Nothing,
        SearchEnd::OutOfRuns => PeakStatus::OutOfRuns,
    }
}

/// The last line on the console: how the search ended, and its result.
pub fn conclusion(state: &SearchState, finding: &PeakResult) -> String {
    format!("{}: {}", status_of(finding).word(), result_of(state, finding))
}

/// The result in a sentence: the peak, and the nearest rate that the device did not sustain.
fn result_of(state: &SearchState, finding: &PeakResult) -> String {
    let votes = |rate: f64, vote| {
        let (agreeing, counted) = state.votes(rate, vote);
        format!("{agreeing} of {}", format::counted(counted as u64, "run"))
    };
    let limit = finding.failed.map_or_else(String::new, shown);
    let Some(held) = finding.held else {
        return match finding.end {
            SearchEnd::BenchLimit => format!("the bench was the limit down to {limit}/s"),
            SearchEnd::OutOfRuns if finding.failed.is_none() => "no run counted".to_owned(),
            _ => format!("the device did not sustain any rate down to {limit}/s"),
        };
    };
    let sustained = format!("sustained {}/s in {}", shown(held), votes(held, Vote::Held));
    let failed = finding.failed.map_or_else(String::new, |rate| match state.votes(rate, Vote::Failed) {
        (_, 0) => format!(", the bench was the limit at {}/s", shown(rate)),
        _ => format!(", failed at {}/s in {}", shown(rate), votes(rate, Vote::Failed)),
    });
    let peak = format!("peak {}/s", shown(held));
    let at_least = format!("peak at least {}/s", shown(held));
    match finding.end {
        SearchEnd::Most => format!("{at_least}, {sustained}; the search was limited by --most"),
        SearchEnd::BenchLimit => format!("{at_least}, {sustained}; the bench was the limit at {limit}/s"),
        SearchEnd::OutOfRuns => {
            let peak = if finding.failed.is_some() { peak } else { at_least };
            format!("{peak} after {}, {sustained}{failed}", format::counted(state.steps.len() as u64, "run"))
        }
        SearchEnd::Found | SearchEnd::Nothing => format!("{peak}, {sustained}{failed}"),
    }
}

/// Advice after a search that did not find the peak.
pub fn next_step(finding: &PeakResult) -> Option<String> {
    let text = match finding.end {
        SearchEnd::Found => return None,
        SearchEnd::Most => "the peak is higher: raise --most, or leave it out",
        SearchEnd::BenchLimit if finding.held.is_some() => {
            "give the bench more processors than the device, or separate machines; then the peak may be higher"
        }
        SearchEnd::BenchLimit => {
            "the bench was the limit even at the lowest rate: see the report of a run for the reason"
        }
        SearchEnd::Nothing => {
            "see the reasons above; start with a lower rate (--from), or relax the limits that they name (--max_rptm, --max_errors ...)"
        }
        SearchEnd::OutOfRuns => {
            "allow more runs (--max_runs) or less precision (--precision); longer runs (--goal) vary less"
        }
    };
    Some(text.to_owned())
}
