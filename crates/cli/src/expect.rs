//! `--expect`: what a single run has to reach.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use polygraph_report::RunFacts;
use polygraph_report::threshold::{Checked, Condition, ConditionError, check_run};

use crate::{Failure, exit, junit};

/// Conditions on the figures of a run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Expectations")]
pub struct Expectations {
    /// Fail (exit code 10) unless this holds; repeatable: 'dhr>=54%', 'rptm.p95<2s', 'err_pct<=1%', 'rptm@top2<3s'
    #[arg(long, value_name = "CONDITION", value_parser = value)]
    expect: Vec<Condition>,
    /// Write verdict and expectations as JUnit XML, which CI servers show as tests
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Reads any condition.
pub fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|e: ConditionError| e.to_string())
}

/// Reads a condition on values: a single run has not changed.
fn value(text: &str) -> Result<Condition, String> {
    let condition = condition(text)?;
    if condition.is_change() {
        return Err("a change (+ or -) needs another run: see `polygraph compare --fail_on`".into());
    }
    Ok(condition)
}

/// How a run met what was expected of it.
#[derive(Debug, Default)]
pub struct Met(Vec<Checked>);

impl Expectations {
    /// Holds a run against the conditions.
    pub fn check(&self, facts: &RunFacts) -> Met {
        Met(check_run(facts, &self.expect))
    }

    /// Writes the file for CI servers, if it is wanted.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish(&self, facts: &RunFacts, met: &Met) -> Result<(), Failure> {
        self.junit.as_ref().map_or(Ok(()), |path| junit::write(path, facts, &met.0))
    }

    /// The same for a run that could not begin.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish_failure(&self, failure: &Failure) -> Result<(), Failure> {
        self.junit.as_ref().map_or(Ok(()), |path| junit::write_failure(path, failure))
    }
}

impl Met {
    /// Lines for the console; empty if nothing was expected.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for checked in &self.0 {
            let word = if checked.holds { "met" } else { "NOT MET" };
            let _ = writeln!(out, "{:<14} {}: {word} ({})", "expected", checked.condition, checked.found);
        }
        out
    }

    /// For a manifest; `None` if nothing was expected.
    pub fn json(&self) -> Option<serde_json::Value> {
        (!self.0.is_empty()).then(|| self.0.iter().map(Checked::json).collect())
    }

    /// The exit code, if something was not met.
    pub fn failure(&self) -> Option<ExitCode> {
        self.0.iter().any(|checked| !checked.holds).then(|| ExitCode::from(exit::EXPECTATION))
    }
}
