//! The HTML report: one file, offline, readable without scripts, on paper and in the dark.
//!
//! ```text
//! RunFacts --sections, tables, charts--> page::Page --> one HTML file
//! ```
//!
//! [`page`], [`table`] and [`chart`] know nothing of runs: other reports are made of them too.
//!
//! The first screen answers: which device, can I trust it, what did it do, how fast, how many hits; and of a run that is
//! not valid first what went wrong. All headline figures come from the primary phase, which is named. Nothing is shown that was not measured.

pub mod chart;
mod charts;
mod distributions;
mod extras;
mod first;
mod glossary;
pub mod knee;
pub mod page;
pub mod popularity;
mod sections;
pub mod table;
mod tables;
mod view;
mod wire;

use std::io;
use std::path::{Path, PathBuf};

use crate::facts::RunFacts;

use crate::fold::{FileError, fold_files};
use crate::whole::write_whole;
use page::Page;

pub use extras::Extras;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The logs cannot be folded.
    #[error(transparent)]
    Fold(#[from] FileError),
    /// The report cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// Reads the logs of one run, writes its report to `out` and returns the facts it was made from.
///
/// # Errors
/// If a log cannot be used at all, or the report cannot be written. Logs that are incomplete are no error; the
/// report says what is missing.
pub fn write_report(logs: &[PathBuf], out: &Path) -> Result<RunFacts, ReportError> {
    write_report_with(logs, out, &Extras::default())
}

/// The same with extras.
///
/// # Errors
/// As of [`write_report`].
pub fn write_report_with(logs: &[PathBuf], out: &Path, extras: &Extras) -> Result<RunFacts, ReportError> {
    let facts = fold_files(logs)?;
    write_html(&facts, out, extras)?;
    Ok(facts)
}

/// Writes the report of a run whose logs have been folded.
///
/// # Errors
/// If it cannot be written.
pub fn write_html(facts: &RunFacts, out: &Path, extras: &Extras) -> Result<(), ReportError> {
    write_whole(out, html_with(facts, extras))
        .map_err(|source| ReportError::Write { path: out.display().to_string(), source })
}

/// The device and the workload of a run, as its report is called.
pub fn title(facts: &RunFacts, extras: &Extras) -> String {
    first::title(facts, extras)
}

/// The report of a run.
pub fn html(facts: &RunFacts) -> String {
    html_with(facts, &Extras::default())
}

/// The report of a run with extras.
pub fn html_with(facts: &RunFacts, extras: &Extras) -> String {
    let title = first::title(facts, extras);
    let page = Page {
        subtitle: first::subtitle(facts),
        facts: first::device(facts, extras),
        banner: Some(first::banner(facts)),
        tiles: first::tiles(facts),
        lead: first::lead(facts),
        first: first::rest(facts),
        sections: sections::all(facts, extras),
        footer: format!(
            "{title} · {} · polygraph {}. A dash (–) stands for a value that is undefined. Times in tables are \
             rounded; the logs hold all values.",
            first::subtitle(facts),
            facts.main_side().header().version
        ),
        title,
    };
    page.html()
}

#[cfg(test)]
mod tests;
