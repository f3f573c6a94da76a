//! Exit codes (docs/exit-codes.md).

use std::process::ExitCode;

use polygraph_engine::RunOutcome;
use polygraph_report::VerdictOutcome;
use polygraph_runner::{Failure, FailureKind, RunResult};
pub use polygraph_stats::exit_code::{FAILED, INTERRUPTED, OK};

/// What commands return.
pub type Done = Result<ExitCode, Failure>;

/// The command line is wrong.
pub const USAGE: u8 = 2;
/// Something needed on this machine is missing or in use.
pub const SETUP: u8 = 3;
/// A log cannot be read, or does not contain the requested data.
pub const DATA: u8 = 4;
/// The run is valid, but does not meet a condition of `--expect`.
pub const EXPECTATION: u8 = 10;
/// `doctor`: nothing blocks a run on this host, but results would be distorted.
pub const DISTORTED: u8 = 11;
/// A condition of `--fail_on` is met.
pub const REGRESSION: u8 = 14;
/// Runs cannot be compared: their workloads differ, or one of them is INVALID.
pub const NOT_COMPARABLE: u8 = 15;
/// A condition of `--fail_on` would be met by a change that may be noise.
pub const UNDECIDED: u8 = 16;

/// The exit code of a failure.
pub fn of_failure(failure: &Failure) -> ExitCode {
    ExitCode::from(match failure.kind {
        FailureKind::Usage => USAGE,
        FailureKind::Setup => SETUP,
        FailureKind::Data => DATA,
        FailureKind::Verdict => FAILED,
    })
}

/// The exit code of a run with a verdict.
pub fn of_run(result: &RunResult) -> ExitCode {
    ExitCode::from(match result.facts.verdict.outcome {
        _ if result.interrupted => INTERRUPTED,
        VerdictOutcome::Valid if result.expectations_met => OK,
        VerdictOutcome::Valid => EXPECTATION,
        _ => FAILED,
    })
}

/// The exit code of one side without the other, which knows only how it ended.
pub fn of_side(outcome: &RunOutcome) -> ExitCode {
    ExitCode::from(outcome.reason.exit_code())
}
