//! What a search knows so far: a file that is written after every run, so that the search goes on after a kill.

use std::path::{Path, PathBuf};

use polygraph_plan::peak::{Search, SearchStep, Trial, Vote};
use polygraph_report::peak::{PeakCriteria, RateMeasurement};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The file in the directory of a search.
const FILE: &str = "peak.json";

/// A search.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// The program that began it.
    pub version: String,
    /// The command line that began it, word by word.
    pub command: Vec<String>,
    /// Where it was given.
    pub directory: PathBuf,
    /// How rates are chosen.
    pub search: Search,
    /// When a rate holds.
    pub criteria: PeakCriteria,
    /// The runs.
    pub steps: Vec<Step>,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The device and the workload.
    pub what: String,
    /// Its rate, requests per second.
    pub rate: f64,
    /// Why this rate, in a word.
    pub why: String,
    /// What it says of the rate.
    pub vote: Vote,
    /// What speaks against the device or the bench, in sentences.
    pub reasons: Vec<String>,
    /// The figures.
    pub measured: RateMeasurement,
    /// How long it took in all, in seconds.
    pub seconds: f64,
    /// Name of its result directory within that of the search.
    pub directory: String,
}

impl State {
    /// Reads the state of the search in a directory.
    ///
    /// # Errors
    /// If there is none.
    pub fn load(directory: &Path) -> Result<State, Failure> {
        let path = directory.join(FILE);
        let wrong =
            |e: &dyn std::fmt::Display| Failure::data(anyhow::anyhow!("cannot read {}: {e}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
        serde_json::from_str(&text).map_err(|e| wrong(&e))
    }

    /// Writes the state: all of it, or it stays as it was.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), Failure> {
        let path = directory.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(Failure::setup)?;
        polygraph_report::write_whole(&path, text + "\n")
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
    }

    /// What was searched with.
    pub fn what(&self) -> &str {
        self.steps.first().map_or("nothing", |step| step.what.as_str())
    }

    /// The runs as the search sees them.
    pub fn trials(&self) -> Vec<Trial> {
        self.steps.iter().map(|step| Trial { rate: step.rate, vote: step.vote }).collect()
    }

    /// What to do next.
    pub fn next(&self) -> SearchStep {
        self.search.next(&self.trials())
    }

    /// Seconds to the end, if those runs that are expected take as long as the last ones did.
    pub fn remaining_s(&self) -> Option<f64> {
        let recent = self.steps.iter().rev().take(3);
        let (count, sum) = recent.fold((0.0, 0.0), |(count, sum), step| (count + 1.0, sum + step.seconds));
        (count > 0.0).then(|| self.search.remaining(&self.trials()) as f64 * sum / count)
    }

    /// Figures at low load: of the lowest rate that held.
    pub fn low(&self) -> Option<&RateMeasurement> {
        let held = self.steps.iter().filter(|step| step.vote == Vote::Held);
        held.min_by(|a, b| a.rate.total_cmp(&b.rate)).map(|step| &step.measured)
    }

    /// How many of the runs at a rate ended with this vote, and how many counted.
    pub fn votes(&self, rate: f64, vote: Vote) -> (usize, usize) {
        let at = |wanted: fn(Vote, Vote) -> bool| {
            self.steps.iter().filter(|step| step.rate == rate && wanted(step.vote, vote)).count()
        };
        (at(|one, wanted| one == wanted), at(|one, _| one != Vote::Void))
    }
}
