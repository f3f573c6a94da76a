//! What is measured: counters, histograms, intervals, and the log they are written to.
//!
//! Every loop of a run fills its own [`Block`] and hands it over at interval edges and phase ends. Blocks of
//! the same interval are merged into one [`Interval`] record of the process's log. Everything a person reads
//! is computed from log records; phases are folds of intervals, so nothing is lost if a process is killed.
//!
//! Units: times in microseconds in histograms and in nanoseconds since the start of the run in records,
//! sizes in bytes. An undefined value (a mean of nothing) is `None`, never zero.

pub mod block;
pub mod error;
pub mod hist;
pub mod level;
pub mod log;
pub mod record;
pub mod recorder;

pub use block::{Block, Class, ClassStats, Tally};
pub use error::ErrorKind;
pub use hist::Hist;
pub use level::Level;
pub use log::{LogReader, LogWriter, ReadLog, Readable};
pub use record::{EndReason, Header, Interval, PhasePlan, Record, Side};
pub use recorder::{Recorder, Sample, Totals};
