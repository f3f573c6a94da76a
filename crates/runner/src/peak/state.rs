//! The state of a search.

use std::path::PathBuf;

use polygraph_plan::peak::{PeakResult, Search, SearchStep, Trial, Vote};
use polygraph_report::peak::{PeakCriteria, RateMeasurement};
use serde::{Deserialize, Serialize};

/// The state of a search.
#[derive(Debug, Serialize, Deserialize)]
pub struct SearchState {
    /// Version of the program that started the search.
    pub version: String,
    /// Start of the search, in seconds since 1970; version 0.3.0 did not write it.
    pub begin_s: Option<i64>,
    /// The command line of the search, word by word.
    pub command: Vec<String>,
    /// The working directory of that command line.
    pub directory: PathBuf,
    /// The rules that choose rates.
    pub search: Search,
    /// The criteria for a sustained rate.
    pub criteria: PeakCriteria,
    /// The runs.
    pub steps: Vec<SearchRun>,
}

/// A run of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchRun {
    /// The device and the workload.
    pub what: String,
    /// Rate in requests per second.
    pub rate: f64,
    /// Why the search chose the rate, in one word.
    pub why: String,
    /// Result of the run for its rate.
    pub vote: Vote,
    /// Unmet criteria or faults of the bench, in sentences.
    pub reasons: Vec<String>,
    /// The figures.
    pub measured: RateMeasurement,
    /// Duration in seconds, including start and report.
    pub seconds: f64,
    /// Name of its result directory within that of the search.
    pub directory: String,
}

impl SearchState {
    /// The result of the search; `None` if it continues.
    pub fn finding(&self) -> Option<PeakResult> {
        match self.next() {
            SearchStep::Done(finding) => Some(finding),
            SearchStep::Run(..) => None,
        }
    }

    /// The device and the workload.
    pub fn what(&self) -> &str {
        self.steps.first().map_or("nothing", |step| step.what.as_str())
    }

    /// The runs as the rules of the search see them.
    pub fn trials(&self) -> Vec<Trial> {
        self.steps.iter().map(|step| Trial { rate: step.rate, vote: step.vote }).collect()
    }

    /// The next step.
    pub fn next(&self) -> SearchStep {
        self.search.next(&self.trials())
    }

    /// Estimated seconds to the end, if the remaining runs take as long as the last three.
    pub fn remaining_s(&self) -> Option<f64> {
        let recent = self.steps.iter().rev().take(3);
        let (count, sum) = recent.fold((0.0, 0.0), |(count, sum), step| (count + 1.0, sum + step.seconds));
        (count > 0.0).then(|| self.search.remaining(&self.trials()) as f64 * sum / count)
    }

    /// Figures at low load: those of the lowest sustained rate.
    pub fn low(&self) -> Option<&RateMeasurement> {
        let held = self.steps.iter().filter(|step| step.vote == Vote::Held);
        held.min_by(|a, b| a.rate.total_cmp(&b.rate)).map(|step| &step.measured)
    }

    /// The number of runs at a rate with this vote, and of all runs at this rate that count.
    pub fn votes(&self, rate: f64, vote: Vote) -> (usize, usize) {
        let at = |wanted: fn(Vote, Vote) -> bool| {
            self.steps.iter().filter(|step| step.rate == rate && wanted(step.vote, vote)).count()
        };
        (at(|one, wanted| one == wanted), at(|one, _| one != Vote::Void))
    }
}
