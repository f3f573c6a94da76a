//! Sources of records: a log in memory, or a file that is folded while it is read, so that long runs need no more
//! memory than short ones.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

use polygraph_stats::log::{damaged, not_closed, unknown_records};
use polygraph_stats::{Header, LogFile, LogFileReader, NextRecord, Record, Side};

use crate::log::Log;
use crate::usage::{DeviceEnd, UsageSample, end_in, usage_in};

/// A log whose records can be read several times: in memory ([`Log`]) or on disk ([`LogFile`]).
pub trait LogSource: Debug + Send + Sync {
    /// Name for people, usually the path.
    fn name(&self) -> &str;

    /// The description of the run.
    fn header(&self) -> &Header;

    /// When the last interval ends, in nanoseconds since the start of the process.
    fn extent_ns(&self) -> u64;

    /// The records after the header, from the first one.
    fn records(&self) -> RecordSource<'_>;

    /// The resources that the device used over time, if the log is in a result directory that has them.
    fn device_usage(&self) -> Vec<UsageSample> {
        Vec::new()
    }

    /// How the device ended by itself, if the log is in a result directory that tells.
    fn device_end(&self) -> Option<DeviceEnd> {
        None
    }

    /// The name of a phase; a log without a plan has one phase `dflt`.
    fn phase_name(&self, phase: u32) -> &str {
        phase_name(self.header(), phase)
    }
}

impl LogSource for Log {
    fn name(&self) -> &str {
        &self.name
    }

    fn header(&self) -> &Header {
        &self.log.header
    }

    fn extent_ns(&self) -> u64 {
        self.log.intervals().map(|interval| interval.end_ns).max().unwrap_or(0)
    }

    fn records(&self) -> RecordSource<'_> {
        RecordSource {
            name: &self.name,
            missing: self.log.missing.clone(),
            kind: Kind::Memory(self.log.records.iter()),
        }
    }
}

impl LogSource for LogFile {
    fn name(&self) -> &str {
        LogFile::name(self)
    }

    fn header(&self) -> &Header {
        LogFile::header(self)
    }

    fn extent_ns(&self) -> u64 {
        LogFile::extent_ns(self)
    }

    fn records(&self) -> RecordSource<'_> {
        let (missing, kind) = match self.reader() {
            Ok(reader) => (Vec::new(), Kind::File(Box::new(OpenFile::new(reader)))),
            Err(error) => (vec![error.to_string()], Kind::Memory([].iter())),
        };
        RecordSource { name: self.name(), missing, kind }
    }

    fn device_usage(&self) -> Vec<UsageSample> {
        Path::new(self.name()).parent().map(usage_in).unwrap_or_default()
    }

    fn device_end(&self) -> Option<DeviceEnd> {
        Path::new(self.name()).parent().and_then(end_in)
    }
}

impl<S: LogSource + ?Sized> LogSource for &S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn header(&self) -> &Header {
        (**self).header()
    }

    fn extent_ns(&self) -> u64 {
        (**self).extent_ns()
    }

    fn records(&self) -> RecordSource<'_> {
        (**self).records()
    }

    fn device_usage(&self) -> Vec<UsageSample> {
        (**self).device_usage()
    }

    fn device_end(&self) -> Option<DeviceEnd> {
        (**self).device_end()
    }
}

impl<S: LogSource + ?Sized> LogSource for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn header(&self) -> &Header {
        (**self).header()
    }

    fn extent_ns(&self) -> u64 {
        (**self).extent_ns()
    }

    fn records(&self) -> RecordSource<'_> {
        (**self).records()
    }

    fn device_usage(&self) -> Vec<UsageSample> {
        (**self).device_usage()
    }

    fn device_end(&self) -> Option<DeviceEnd> {
        (**self).device_end()
    }
}

/// The name of a phase in a log with this header.
pub(crate) fn phase_name(header: &Header, phase: u32) -> &str {
    header.phases.get(phase as usize).map_or("dflt", |plan| &plan.name)
}

/// The logs of one side.
pub(crate) fn of_side<S: LogSource>(logs: &[S], side: Side) -> Vec<&S> {
    logs.iter().filter(|log| log.header().side == side).collect()
}

/// Seconds between the start of the run and the start of a log.
pub(crate) fn offset_s(header: &Header, start_unix_ns: u64) -> f64 {
    header.start_unix_ns.saturating_sub(start_unix_ns) as f64 * 1e-9
}

/// Iterates over the records of one log. Of a file, it holds one record at a time.
#[derive(Debug)]
pub struct RecordSource<'a> {
    name: &'a str,
    missing: Vec<String>,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Memory(std::slice::Iter<'a, Record>),
    File(Box<OpenFile>),
}

/// A file that is being read.
#[derive(Debug)]
struct OpenFile {
    reader: LogFileReader,
    last_ns: u64,
    unknown: u64,
    closed: bool,
    done: bool,
}

impl RecordSource<'_> {
    /// Missing or damaged parts, in sentences; known only after the last record.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
}

impl<'a> Iterator for RecordSource<'a> {
    type Item = Cow<'a, Record>;

    fn next(&mut self) -> Option<Cow<'a, Record>> {
        match &mut self.kind {
            Kind::Memory(records) => records.next().map(Cow::Borrowed),
            Kind::File(file) => file.next(self.name, &mut self.missing).map(|record| Cow::Owned(*record)),
        }
    }
}

impl OpenFile {
    fn new(reader: LogFileReader) -> OpenFile {
        OpenFile { reader, last_ns: 0, unknown: 0, closed: false, done: false }
    }

    fn next(&mut self, name: &str, missing: &mut Vec<String>) -> Option<Box<Record>> {
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
                NextRecord::Unknown => {
                    self.unknown += 1;
                    continue;
                }
                NextRecord::End => {}
                NextRecord::Damaged { at } => missing.push(damaged(name, at)),
            }
            if self.unknown > 0 {
                missing.push(unknown_records(name, self.unknown));
            }
            if !self.closed {
                missing.push(not_closed(name, self.last_ns));
            }
            self.done = true;
        }
        None
    }
}
