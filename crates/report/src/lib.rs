//! From log records to what people read: `lx`, `lr`, the verdict, the HTML report.
//!
//! ```text
//! logs --fold--> RunFacts (phases, series, headline, verdict) --> summary text, HTML report
//!   \--lx--> figures by name      \--lr--> readable dump
//! ```
//!
//! Every number is a [`figures::Figure`] with one name and one definition, computed from a [`Scope`]: a folded
//! [`polygraph_stats::Block`] with its duration. Nothing here knows how the numbers came to be.

pub mod console;
pub mod correctness;
pub mod downtime;
pub mod figures;
pub mod fold;
pub mod html;
pub mod lr;
pub mod lx;
pub mod misses;
pub mod peak;
pub mod scope;
pub mod series;
pub mod summary;
pub mod text;
pub mod verdict;

pub use fold::{Log, RunFacts, fold};
pub use html::{html, write_report};
pub use lr::lr;
pub use lx::lx;
pub use scope::Scope;
pub use summary::summary_text;
pub use verdict::{Outcome, Verdict};

#[cfg(test)]
mod testlog;
#[cfg(test)]
mod tests;
