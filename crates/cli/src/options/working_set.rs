//! Options of working sets.

use std::path::PathBuf;

use clap::Args;
use polygraph_runner::working_set::WorkingSetFiles;
use polygraph_runner::{Failure, RunSettings};

use crate::output::notify;

/// Tests that continue with the objects of other tests.
#[derive(Args, Clone, Debug, Default)]
#[command(rename_all = "snake_case", next_help_heading = "Working set")]
pub struct WorkingSetOptions {
    /// At the end, store all objects that may be requested again, and the seeds
    #[arg(long, value_name = "FILE")]
    pub store_working_set: Option<PathBuf>,
    /// Continue with the objects that an earlier test has stored, and with its seeds
    #[arg(long, value_name = "FILE")]
    pub load_working_set: Option<PathBuf>,
}

impl WorkingSetOptions {
    /// Opens the files; see [`WorkingSetFiles::open`].
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn open(&self, settings: &mut RunSettings) -> Result<WorkingSetFiles, Failure> {
        let (load, store) = (self.load_working_set.as_deref(), self.store_working_set.as_deref());
        WorkingSetFiles::open(load, store, settings, notify)
    }
}
