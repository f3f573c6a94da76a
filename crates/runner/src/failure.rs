//! Why a command or a run could not be carried out.

use std::fmt::Display;
use std::path::Path;

/// The kind of a failure, which determines the exit code (docs/exit-codes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The command line or the workload is wrong.
    Usage,
    /// Something needed on this machine is missing or in use.
    Setup,
    /// A file cannot be read, or does not contain the requested data.
    Data,
    /// A device that could not be measured at all. This is a result, not an error.
    Verdict,
}

/// Why a command or a run could not be carried out.
#[derive(Debug)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// Description of the failure.
    pub error: anyhow::Error,
    /// The summary of the run, if anything was measured before the failure.
    pub summary: Option<String>,
}

impl Failure {
    fn new(kind: FailureKind, error: anyhow::Error) -> Failure {
        Failure { kind, error, summary: None }
    }

    /// A verdict on a device that could not be measured at all.
    pub fn verdict(text: impl Display) -> Failure {
        Failure::new(FailureKind::Verdict, anyhow::anyhow!("{text}"))
    }

    /// A command line with contradicting options, or a workload that cannot be run.
    pub fn usage(text: impl Display) -> Failure {
        Failure::new(FailureKind::Usage, anyhow::anyhow!("{text}"))
    }

    /// Something that is missing or in use on this machine.
    pub fn setup(error: impl Into<anyhow::Error>) -> Failure {
        Failure::new(FailureKind::Setup, error.into())
    }

    /// A file that cannot be used.
    pub fn data(error: impl Into<anyhow::Error>) -> Failure {
        Failure::new(FailureKind::Data, error.into())
    }

    /// Adds the summary of what was measured before the failure.
    #[must_use]
    pub fn with_summary(self, summary: Option<String>) -> Failure {
        Failure { summary, ..self }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

/// Writes a file completely, or leaves an existing file unchanged.
///
/// # Errors
/// If the file cannot be written.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    polygraph_report::write_whole(path, content)
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

/// Creates a directory and its parents.
///
/// # Errors
/// If the directory cannot be created.
pub fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path)
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot make the directory {}: {e}", path.display())))
}
