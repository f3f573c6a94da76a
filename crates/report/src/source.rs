//! Sources of records: a log in memory, or a file that is folded while it is read, so that the report of a long run
//! needs no more memory than that of a short one.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use polygraph_stats::log::{LogError, damaged, extent, not_closed};
use polygraph_stats::{Header, LogReader, NextRecord, ReadLog, Record};

use crate::log::Log;

/// Iterates over the records of one log.
pub(crate) enum RecordSource<'a> {
    /// A log in memory.
    Memory {
        /// The log.
        log: &'a Log,
        /// The next record.
        at: usize,
    },
    /// A file.
    File(Box<FileSource>),
}

/// A file that is being read.
pub(crate) struct FileSource {
    name: String,
    header: Header,
    reader: LogReader<BufReader<File>>,
    /// End of the last interval, in nanoseconds since the start of the process.
    extent_ns: u64,
    missing: Vec<String>,
    last_ns: u64,
    closed: bool,
    done: bool,
}

impl<'a> RecordSource<'a> {
    /// The records of a log in memory.
    pub fn memory(log: &'a Log) -> RecordSource<'a> {
        RecordSource::Memory { log, at: 0 }
    }

    /// The records of the log at `path`.
    ///
    /// # Errors
    /// If the log is unreadable.
    pub fn open(path: &Path) -> Result<RecordSource<'static>, LogError> {
        let name = path.display().to_string();
        let extent_ns = extent(path)?;
        let mut reader = LogReader::open(path)?;
        let header = ReadLog::header(&mut reader, &name)?;
        let source = FileSource {
            name,
            header,
            reader,
            extent_ns,
            missing: Vec::new(),
            last_ns: 0,
            closed: false,
            done: false,
        };
        Ok(RecordSource::File(Box::new(source)))
    }

    /// Name for people.
    pub fn name(&self) -> &str {
        match self {
            RecordSource::Memory { log, .. } => &log.name,
            RecordSource::File(file) => &file.name,
        }
    }

    /// Header of the log, which describes the run.
    pub fn header(&self) -> &Header {
        match self {
            RecordSource::Memory { log, .. } => &log.log.header,
            RecordSource::File(file) => &file.header,
        }
    }

    /// When the last interval ends, in nanoseconds since the start of the process.
    pub fn extent_ns(&self) -> u64 {
        match self {
            RecordSource::Memory { log, .. } => {
                log.log.intervals().map(|interval| interval.end_ns).max().unwrap_or(0)
            }
            RecordSource::File(file) => file.extent_ns,
        }
    }

    /// The next record.
    pub fn next(&mut self) -> Option<Cow<'a, Record>> {
        match self {
            RecordSource::Memory { log, at } => {
                let record = log.log.records.get(*at)?;
                *at += 1;
                Some(Cow::Borrowed(record))
            }
            RecordSource::File(file) => file.next().map(|record| Cow::Owned(*record)),
        }
    }

    /// Missing or damaged parts, in sentences; known only after the last record.
    pub fn missing(&self) -> Vec<String> {
        match self {
            RecordSource::Memory { log, .. } => log.log.missing.clone(),
            RecordSource::File(file) => file.missing.clone(),
        }
    }
}

impl FileSource {
    fn next(&mut self) -> Option<Box<Record>> {
        while !self.done {
            match self.reader.next_record() {
                NextRecord::Record(record) => {
                    match &*record {
                        Record::Interval(interval) => self.last_ns = interval.end_ns,
                        Record::End { .. } => self.closed = true,
                        _ => {}
                    }
                    return Some(record);
                }
                NextRecord::Unknown => continue,
                NextRecord::End => {}
                NextRecord::Damaged { at } => self.missing.push(damaged(&self.name, at)),
            }
            if !self.closed {
                self.missing.push(not_closed(&self.name, self.last_ns));
            }
            self.done = true;
        }
        None
    }
}
