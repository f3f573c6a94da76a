//! The file of a search, which is written after every run, so that the search can be resumed after a kill.

use std::path::Path;

use polygraph_plan::peak::Vote;
use polygraph_report::peak::{SEARCH_FILE, SearchSummary};
use serde_json::json;

use super::state::SearchState;
use super::text::{result, status};
use crate::{Failure, write_file};

impl SearchState {
    /// Reads the state of the search in a directory.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load(directory: &Path) -> Result<SearchState, Failure> {
        let path = directory.join(SEARCH_FILE);
        let wrong =
            |e: &dyn std::fmt::Display| Failure::data(anyhow::anyhow!("cannot read {}: {e}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
        serde_json::from_str(&text).map_err(|e| wrong(&e))
    }

    /// Writes the complete state, with its summary.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), Failure> {
        let mut all = serde_json::to_value(self).map_err(Failure::setup)?;
        all["summary"] = json!(self.summary());
        write_file(&directory.join(SEARCH_FILE), format!("{all:#}\n"))
    }

    /// What lists of runs show of the search.
    fn summary(&self) -> SearchSummary {
        let finding = self.finding();
        let held = finding.and_then(|finding| finding.held);
        let peak_run =
            self.steps.iter().rev().find(|step| Some(step.rate) == held && step.vote == Vote::Held);
        SearchSummary {
            begin_s: self.begin_s,
            status: status(self),
            text: result(self),
            peak_run: peak_run.map(|step| step.directory.clone()),
            last_run: self.steps.last().map(|step| step.directory.clone()),
        }
    }
}
