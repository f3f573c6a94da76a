//! Options for what the user expects of a single run.

use std::path::PathBuf;

use clap::Args;
use polygraph_report::threshold::{Condition, ConditionError};
use polygraph_runner::Expectations;

/// What the user expects of a run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Expectations")]
pub struct ExpectOptions {
    /// Exit with code 10 unless this condition is met; repeatable. Examples: 'dhr>=54%', 'rptm.p95<2s', 'err_pct<=1%',
    /// 'rptm@top2<3s'
    #[arg(long, value_name = "CONDITION", value_parser = value)]
    expect: Vec<Condition>,
    /// Write the verdict and the conditions as JUnit XML, which CI servers show as tests
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl From<ExpectOptions> for Expectations {
    fn from(options: ExpectOptions) -> Expectations {
        Expectations { conditions: options.expect, junit: options.junit }
    }
}

/// Reads any condition.
fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|e: ConditionError| e.to_string())
}

/// Reads a condition of a comparison.
pub fn compared(text: &str) -> Result<Condition, String> {
    let condition = condition(text)?;
    if condition.is_of_servers() {
        return Err(format!(
            "{} is counted by servers, and comparisons have what robots counted: hold each run against it with `polygraph report --expect`",
            condition.figure.name
        ));
    }
    Ok(condition)
}

/// Reads a condition on a value; a single run has no changes.
fn value(text: &str) -> Result<Condition, String> {
    let condition = condition(text)?;
    if condition.is_change() {
        return Err("a change (+ or -) needs another run: see `polygraph compare --fail_on`".into());
    }
    Ok(condition)
}
