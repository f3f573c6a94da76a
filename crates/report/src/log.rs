//! A log in memory.

use std::io::{BufReader, Read};
use std::path::Path;

use polygraph_stats::log::LogError;
use polygraph_stats::{Header, LogReader, ReadLog, Side};

/// A log and its origin.
#[derive(Debug)]
pub struct Log {
    /// Name for people, usually the path.
    pub name: String,
    /// The readable part of the log.
    pub log: ReadLog,
}

impl Log {
    /// Reads the log at `path`.
    ///
    /// # Errors
    /// If the log is unreadable; see [`ReadLog::open`].
    pub fn open(path: &Path) -> Result<Log, LogError> {
        Ok(Log { name: path.display().to_string(), log: ReadLog::open(path)? })
    }

    /// Reads a log from `input`; `name` is for people.
    ///
    /// # Errors
    /// If the log is unreadable; see [`ReadLog::read`].
    pub fn read(name: &str, input: impl Read) -> Result<Log, LogError> {
        let log = ReadLog::read(LogReader::new(BufReader::new(input), name)?, name)?;
        Ok(Log { name: name.to_owned(), log })
    }

    /// Reads only the header of the log at `path`.
    ///
    /// # Errors
    /// If the file is not a log, or its header is incomplete.
    pub fn header(path: &Path) -> Result<Header, LogError> {
        ReadLog::header(&mut LogReader::open(path)?, &path.display().to_string())
    }

    /// The name of a phase; a log without a plan has one phase `dflt`.
    pub fn phase_name(&self, phase: u32) -> &str {
        self.log.header.phases.get(phase as usize).map_or("dflt", |plan| &plan.name)
    }
}

/// The logs of one side.
pub(crate) fn of_side(logs: &[Log], side: Side) -> Vec<&Log> {
    logs.iter().filter(|log| log.log.header.side == side).collect()
}

/// Seconds between the start of the run and the start of a log.
pub(crate) fn offset_s(log: &Log, start_unix_ns: u64) -> f64 {
    log.log.header.start_unix_ns.saturating_sub(start_unix_ns) as f64 * 1e-9
}
