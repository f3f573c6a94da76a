//! A log in memory.

use std::io::{BufReader, Read};
use std::path::Path;

use polygraph_stats::log::LogError;
use polygraph_stats::{Header, LogReader, ReadLog};

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
}
