//! Turns log records into text for people: `lx`, `lr`, the verdict, the HTML report.
//!
//! ```text
//! logs --fold--> RunFacts (phases, series, headline, verdict) --> summary text, HTML report
//!   \--lx--> figures by name   \--ltrace--> over time   \--lr--> readable dump
//! ```
//!
//! Every number is a [`figures::Figure`] with one name and one definition, computed from a [`Scope`]: a folded
//! [`polygraph_stats::Block`] with its duration. This crate does not know how the numbers were measured.
//!
//! # Decisions
//!
//! * **One table of figures** ([`figures`]): name, unit, definition and computation. `lx`, `ltrace`, CSV, JSON, exports and the page of figures come from it.
//! * **Logs are folded as they are read**: the intervals of all logs of a side come in order of time, so only one window of the series is in memory. No command
//!   holds a whole log (`bench/WHOLE_RUNS.md`).
//! * **Pages are data**: static SVG for everybody; a script adds zoom, values and switches where scripts run.

mod clocks;
pub mod cmp_lx;
pub mod compare;
pub mod console;
pub mod correctness;
pub mod device;
pub mod downtime;
pub mod facts;
pub mod failover;
pub mod figures;
pub mod fleet;
pub mod fold;
mod gather;
pub mod headline_spread;
pub mod html;
pub mod judge;
pub mod junit;
pub mod log;
pub mod lr;
pub mod ltrace;
pub mod lx;
pub mod misses;
mod mixed;
pub mod names;
mod parallel;
pub mod peak;
pub mod popularity;
pub mod prediction;
pub mod run_dir;
pub mod scope;
pub mod series;
pub mod side_summary;
pub mod so_far;
pub mod source;
pub mod spread;
pub mod summary;
pub mod text;
pub mod threshold;
mod usage;
pub mod verdict;
mod whole;

pub use facts::RunFacts;
pub use fold::{fold, fold_files, fold_in_turn};
pub use html::{Extras, html, write_html, write_report, write_report_with};
pub use judge::CONTENTS_MARK;
pub use log::Log;
pub use lr::lr;
pub use ltrace::ltrace;
pub use lx::lx;
pub use mixed::mixed;
pub use scope::Scope;
pub use source::LogSource;
pub use summary::summary_text;
pub use verdict::{Verdict, VerdictOutcome};
pub use whole::{write_whole, write_whole_with};

#[cfg(test)]
mod testlog;
#[cfg(test)]
mod tests;
