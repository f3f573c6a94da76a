//! The HTML report: one file that needs no network, readable without scripts, in print and in dark mode.
//!
//! ```text
//! RunFacts --sections, tables, charts--> page::Page --> one HTML file
//! ```
//!
//! [`page`], [`table`] and [`chart`] do not depend on runs: other reports use them too.
//!
//! The first screen answers: which device was measured, whether the figures can be trusted, what load the device
//! sustained, how fast it was, and its hit ratio. The report of a run that is not valid starts with what went wrong. All
//! headline figures come from the primary phase, which the page names. The page shows nothing that was not measured.

pub mod chart;
mod charts;
mod distributions;
mod extras;
mod first_screen;
mod fleet;
mod glossary;
pub mod page;
pub mod peak_page;
pub mod popularity;
mod request_tables;
mod sections;
pub mod table;
mod tables;
mod view;

use std::io;
use std::path::{Path, PathBuf};

use crate::facts::RunFacts;

use crate::fold::{FileError, fold_files};
use crate::whole::write_whole;
use page::Page;

pub use extras::Extras;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The logs cannot be read and summed up.
    #[error(transparent)]
    Fold(#[from] FileError),
    /// The report cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Path of the report.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Reads the logs of one run, writes its report to `out` and returns the facts from which it was made.
///
/// # Errors
/// If a log is unreadable, or the report cannot be written. Incomplete logs are not an error; the report names the
/// missing parts.
pub fn write_report(logs: &[PathBuf], out: &Path) -> Result<RunFacts, ReportError> {
    write_report_with(logs, out, &Extras::default())
}

/// Like [`write_report`], with data beside the logs.
///
/// # Errors
/// The same as those of [`write_report`].
pub fn write_report_with(logs: &[PathBuf], out: &Path, extras: &Extras) -> Result<RunFacts, ReportError> {
    let facts = fold_files(logs)?;
    write_html(&facts, out, extras)?;
    Ok(facts)
}

/// Writes the report of a run whose facts are known.
///
/// # Errors
/// If the report cannot be written.
pub fn write_html(facts: &RunFacts, out: &Path, extras: &Extras) -> Result<(), ReportError> {
    write_whole(out, html_with(facts, extras))
        .map_err(|source| ReportError::Write { path: out.display().to_string(), source })
}

/// Title of a run's report: the device and the workload.
pub fn title(facts: &RunFacts, extras: &Extras) -> String {
    first_screen::title(facts, extras)
}

/// The report of a run from its logs alone, as HTML.
pub fn html(facts: &RunFacts) -> String {
    html_with(facts, &Extras::default())
}

/// The report of a run, with data beside the logs, as HTML.
pub fn html_with(facts: &RunFacts, extras: &Extras) -> String {
    let title = first_screen::title(facts, extras);
    let page = Page {
        subtitle: first_screen::subtitle(facts),
        facts: first_screen::facts(facts, extras),
        banner: Some(first_screen::banner(facts)),
        tiles: first_screen::tiles(facts),
        lead: first_screen::lead(facts),
        first: first_screen::rest(facts, extras),
        sections: sections::all(facts, extras),
        footer: format!(
            "{title} · {} · polygraph {}. A dash (–) marks an undefined value. Times in tables are \
             rounded; the logs have all values.",
            first_screen::subtitle(facts),
            facts.main_side().header().version
        ),
        title,
    };
    page.html()
}

#[cfg(test)]
mod tests;
