//! The index of a directory of runs: what `polygraph runs` lists.
//!
//! ```text
//! result directories --Entry::of--> index (.runs.sqlite beside them) --Filter--> lists
//! ```
//!
//! The result directories are authoritative; the index only caches their contents, because reading the logs of a
//! hundred runs takes long. The index may be lost, damaged or stale at any time: [`Index::refresh`] reads new and
//! changed runs and deletes the entries of removed ones, and a file that is not an index is replaced. Runs add
//! themselves when they end, possibly several at the same time; if that fails, the next [`Index::refresh`] adds them.

mod entry;
mod filter;
mod index;

use std::path::Path;

use polygraph_report::run_dir::Run;

pub use entry::{IndexedRun, RunStatus};
pub use filter::RunFilter;
pub use index::{FILE, Index};

/// Why the index of a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The directory of runs cannot be read.
    #[error("cannot read {path}: {source}")]
    Directory {
        /// The directory.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The index cannot be read or written.
    #[error("the index of runs cannot be used: {0}")]
    Database(#[from] rusqlite::Error),
    /// A file of the index cannot be replaced.
    #[error("cannot replace {path}: {source}")]
    Replace {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// Adds a run that has just ended to the index beside its result directory.
///
/// # Errors
/// If the index cannot be written. The run is not lost, because the next list reads it.
pub fn record(run: &Run) -> Result<(), IndexError> {
    let directory =
        run.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entry = IndexedRun::of(run);
    Index::open(directory)?.add(&entry)
}

#[cfg(test)]
mod tests;
