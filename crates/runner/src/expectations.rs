//! The user's expectations of a run (`--expect`), and whether the run met them.

use std::fmt::Write as _;
use std::path::PathBuf;

use polygraph_plan::Schedule;
use polygraph_report::threshold::{Checked, Condition, check_run};
use polygraph_report::{RunFacts, junit};

use crate::{Failure, FailureKind, write_file};

/// The user's expectations of a run.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// Conditions on figures of the run.
    pub conditions: Vec<Condition>,
    /// The JUnit file for the verdict and the conditions.
    pub junit: Option<PathBuf>,
}

/// The results of checking expectations.
#[derive(Debug, Default)]
pub struct ExpectationResults(Vec<Checked>);

impl Expectations {
    /// Checks, before a test starts, that it has the phases that conditions name.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_phases(&self, schedule: &Schedule) -> Result<(), Failure> {
        let phases: Vec<String> = schedule.phases.iter().map(|phase| phase.name.clone()).collect();
        let check = |condition: &Condition| condition.check_phase(&phases);
        self.conditions
            .iter()
            .try_for_each(check)
            .map_err(|error| Failure::usage(format!("--expect: {error}")))
    }

    /// Checks the conditions on the figures of a run.
    pub fn check(&self, facts: &RunFacts) -> ExpectationResults {
        ExpectationResults(check_run(facts, &self.conditions))
    }

    /// Writes the JUnit file, if the user requested one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn publish(&self, facts: &RunFacts, results: &ExpectationResults) -> Result<(), Failure> {
        let Some(path) = &self.junit else { return Ok(()) };
        write_file(path, junit::of_run(facts, &results.0))
    }

    /// Writes the JUnit file of a run that could not start, if the user requested one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn publish_failure(&self, failure: &Failure) -> Result<(), Failure> {
        let Some(path) = &self.junit else { return Ok(()) };
        write_file(path, junit::of_failure(&failure.to_string(), failure.kind == FailureKind::Verdict))
    }
}

impl ExpectationResults {
    /// Lines for the console; empty if nothing was expected.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for checked in &self.0 {
            let word = if checked.holds == Some(true) { "met" } else { "NOT MET" };
            let _ = writeln!(out, "{:<14} {}: {word} ({})", "expected", checked.condition, checked.found);
        }
        out
    }

    /// The part of the manifest about expectations; `None` if there were none.
    pub fn json(&self) -> Option<serde_json::Value> {
        (!self.0.is_empty()).then(|| self.0.iter().map(Checked::json).collect())
    }

    /// Whether all conditions were met.
    pub fn all_met(&self) -> bool {
        self.0.iter().all(|checked| checked.holds == Some(true))
    }
}
