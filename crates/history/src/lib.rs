//! The index of a directory of runs: what `polygraph runs` lists.
//!
//! ```text
//! result directories --Entry::of--> index (.runs.sqlite beside them) --Filter--> lists
//! ```
//!
//! The directories are the truth, the index only remembers what is in them, because reading the logs of a hundred runs
//! takes long. So it may be lost, damaged or stale at any time: [`Index::refresh`] reads what is new or changed and
//! forgets what is gone, and a file that is no index is replaced. Runs add themselves when they end, several at a time if
//! need be; what goes wrong then is for [`Index::refresh`] to mend.

mod entry;
mod filter;
mod index;

use std::path::Path;

use polygraph_report::run_dir::Run;

pub use entry::{Entry, Standing};
pub use filter::Filter;
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

impl IndexError {
    /// Another file has taken the place of the index since it was opened.
    fn is_replaced(&self) -> bool {
        let IndexError::Database(error) = self else { return false };
        // The file itself, or the journal that belonged to it.
        let gone = [rusqlite::ffi::SQLITE_READONLY_DBMOVED, rusqlite::ffi::SQLITE_IOERR_DELETE_NOENT];
        error.sqlite_error().is_some_and(|error| gone.contains(&error.extended_code))
    }
}

/// Replacements of the index that a run to be remembered outlasts.
const REPLACEMENTS: usize = 20;

/// Adds a run that has just ended to the index beside its result directory.
///
/// # Errors
/// If the index cannot be written. Nothing is lost: the next list reads the run itself.
pub fn record(run: &Run) -> Result<(), IndexError> {
    let directory =
        run.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entry = Entry::of(run);
    let add = || Index::open(directory)?.add(&entry);
    // Somebody may put another index in its place while it is open; then that one takes the run.
    for _ in 0..REPLACEMENTS {
        match add() {
            Err(error) if error.is_replaced() => {}
            done => return done,
        }
    }
    add()
}

#[cfg(test)]
mod tests;
