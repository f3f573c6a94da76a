//! What is measured: counters, histograms, intervals, and the log they are written to.
//!
//! Every loop of a run fills its own [`Block`] and hands it over at interval edges and phase ends. Blocks of
//! the same interval are merged into one [`Interval`] record of the process's log. Everything a person reads
//! is computed from log records; phases are folds of intervals, so nothing is lost if a process is killed.
//!
//! Units: times in microseconds in histograms and in nanoseconds since the start of the run in records,
//! sizes in bytes. An undefined value (a mean of nothing) is `None`, never zero.

pub mod aggr;
pub mod block;
pub mod class;
pub mod counts;
pub mod dump;
pub mod error;
mod fold;
pub mod hist;
pub mod level;
pub mod log;
pub mod miss;
pub mod record;
pub mod recorder;
pub mod sample;
pub mod stall;
pub mod status;
pub mod unfinished;
pub mod window;
pub mod xacts;

pub use aggr::{Aggr, TmSz};
pub use block::{Block, Finished};
pub use class::{Class, ClassStats};
pub use counts::{AuthScheme, Breakdown, CloseKind, KindStats, Tally, Verified};
pub use dump::{DumpPlan, Parts};
pub use error::{ErrorCounts, ErrorKind};
pub use hist::{Coarse, Hist};
pub use level::Level;
pub use log::{LogReader, LogWriter, ReadLog, Readable};
pub use miss::MissCause;
pub use record::{EndReason, Header, Interval, PhasePlan, Record, Side};
pub use recorder::{Recorder, Totals};
pub use sample::{Evidence, Sample};
pub use status::StatusScope;
pub use unfinished::Ticket;
pub use window::{Flow, Window};
pub use xacts::{Taken, Xact};
