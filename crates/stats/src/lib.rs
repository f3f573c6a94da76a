//! Measured data: counters, histograms, intervals, and the log to which they are written.
//!
//! Every loop of a run fills its own [`Block`], which is taken at the ends of intervals and phases. Blocks of the
//! same interval are merged into one [`Interval`] record of the process's log. Everything that people read is
//! computed from log records; phases are folds of intervals, so nothing is lost if a process is killed.
//!
//! Units: times in microseconds in histograms and in nanoseconds since the start of the run in records, sizes in
//! bytes. An undefined value (such as the mean of no values) is `None`, never zero.
//!
//! # Decisions
//!
//! * **Histograms have two forms**: an array of counters while they are filled, a list of used bins when they are read from a log, so that the report of a
//!   long run fits in memory. Sums are exact, percentiles within 0.1 %. Breakdowns keep one digit (6 %): 2 KB instead of 94 KB, and a tenth of the log.
//! * **Bins that nobody needs are dropped while a log is read** ([`BinSet`]): `compare` would spend most of its time on adding them up. What was not read is
//!   undefined, never zero.
//! * **One class per transaction** ([`Class`]). Rare properties are counted separately and subtracted from the total, so
//!   that common transactions need no additional work.
//! * **Blocks fold by a macro that names every field**: a forgotten field does not compile. Blocks are stored by position, so a new field needs a new log version.
//! * **Errors have numbers** ([`ErrorKind`]): one table gives every class its name, side, effect, nature and advice. Logs hold the numbers.

mod bin_set;
pub mod block;
pub mod class;
mod clock_ahead;
pub mod counts;
pub mod dump;
pub mod error;
pub mod evidence;
mod fold;
pub mod foreign;
pub mod histogram;
pub mod http_version;
pub mod in_flight;
pub mod kerberos;
pub mod level;
pub mod log;
mod log_file;
pub mod miss_cause;
mod packed_block;
pub mod record;
pub mod recorder;
pub mod servers;
pub mod socks;
pub mod stall;
pub mod status;
pub mod streams;
pub mod summary_stats;
pub mod tls;
mod unanswered;
mod version;
pub mod window;
pub mod xacts;

pub use bin_set::BinSet;
pub use block::{Block, Finished};
pub use class::{Class, ClassStats};
pub use clock_ahead::ClockAhead;
pub use counts::{AuthScheme, Breakdown, CloseKind, CountAndBytes, KindStats, VerificationStats};
pub use dump::{DumpPlan, MessageParts};
pub use error::{ErrorCounts, ErrorKind};
pub use evidence::{ErrorSample, Evidence};
pub use histogram::{CoarseHistogram, Histogram};
pub use http_version::HttpVersion;
pub use in_flight::TransactionHandle;
pub use level::Level;
pub use log::{LogReader, LogWriter, NextRecord, ReadLog};
pub use log_file::{LogFile, LogFileReader};
pub use miss_cause::MissCause;
pub use packed_block::PackedBlock;
pub use polygraph_link::Nanos;
pub use record::{
    EndReason, Header, Interval, KindLimits, PlannedLoad, PlannedPhase, Record, RobotLimits, Side, exit_code,
};
pub use recorder::{Recorder, Totals};
pub use servers::{ByServer, ServerStats};
pub use status::StatusScope;
pub use summary_stats::{SummaryStats, TimeAndSize};
pub use unanswered::{AGES_S, Unanswered};
pub use version::{set_version, version};
pub use window::{LevelDelta, Window};
pub use xacts::{TransactionSample, Xact};
