//! The log file: a signature, then frames, each of which can be read independently.
//!
//! ```text
//! file  = "polygraph log" LF version(u8) LF frame*
//! frame = length(u32 LE, of the payload) crc32(u32 LE, of the payload) payload(postcard record)
//! ```
//!
//! Frames are written immediately, so a killed process loses at most the counts since its last interval. The reader
//! uses all complete frames, and reports what is missing.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use crate::bin_set::BinSet;
use crate::record::{EndReason, Header, Interval, Record};

const SIGNATURE: &[u8] = b"polygraph log\n";
/// Version of the record format. A reader accepts only logs of its own version.
pub const VERSION: u8 = 9;

/// The formats of released versions (docs/log-formats.md).
pub const RELEASED: &[(u8, &str)] = &[(4, "0.2.0"), (5, "0.3.0")];

/// The releases with a format, for messages.
fn releases(format: u8) -> String {
    let names: Vec<&str> =
        RELEASED.iter().filter(|(known, _)| *known == format).map(|(_, name)| *name).collect();
    match (names.is_empty(), format > VERSION) {
        (true, true) => " of a later version".to_owned(),
        (true, false) => String::new(),
        (false, _) => format!(" of polygraph {}", names.join(" and ")),
    }
}
/// Maximum size of a frame; larger frames are invalid.
pub(crate) const MAX_FRAME: usize = 64 << 20;
/// Number of bytes before the first frame.
pub(crate) const SIGNATURE_SIZE: usize = SIGNATURE.len() + 2;

/// Why a log is unreadable.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file does not start with the signature of a log.
    #[error("{path} is not a polygraph log")]
    Foreign {
        /// The file.
        path: String,
    },
    /// The file has no bytes.
    #[error("{path} is empty: the process ended before it could write anything, or the disk was full")]
    Empty {
        /// The file.
        path: String,
    },
    /// The log has another format version.
    #[error("{path} has log format {found}{}, this program reads format {VERSION}: read it with the release that wrote it", releases(*found))]
    Version {
        /// The file.
        path: String,
        /// Version of the file.
        found: u8,
    },
    /// There is no complete header.
    #[error("{path} has no readable header: the process ended before it could write one")]
    NoHeader {
        /// The file.
        path: String,
    },
}

/// Whether a file starts as logs do, of whatever format. Other programs have files called `*.log`, too.
pub fn has_signature(path: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *SIGNATURE
}

/// Appends records to a log.
#[derive(Debug)]
pub struct LogWriter<W> {
    out: W,
    frame: Vec<u8>,
}

impl LogWriter<File> {
    /// Creates (or empties) the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn create(path: &Path) -> io::Result<Self> {
        LogWriter::new(File::create(path)?)
    }
}

impl<W: Write> LogWriter<W> {
    /// Starts a log on `out`, which should not buffer.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(SIGNATURE)?;
        out.write_all(&[VERSION, b'\n'])?;
        Ok(LogWriter { out, frame: Vec::new() })
    }

    /// Appends a record; it has been passed to the operating system when the call returns.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        self.frame.clear();
        self.frame.extend_from_slice(&[0; 8]);
        let frame = postcard::to_extend(record, std::mem::take(&mut self.frame)).map_err(io::Error::other)?;
        self.frame = frame;
        let payload = &self.frame[8..];
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let crc = crc32fast::hash(payload);
        self.frame[..4].copy_from_slice(&length.to_le_bytes());
        self.frame[4..8].copy_from_slice(&crc.to_le_bytes());
        self.out.write_all(&self.frame)
    }
}

/// The result of reading a frame.
#[derive(Debug)]
pub enum NextRecord {
    /// A complete record.
    Record(Box<Record>),
    /// A complete record of a kind that this version does not know; later records may be known.
    Unknown,
    /// The end of the file, right after a frame.
    End,
    /// The file ends inside a frame, or the frame is damaged; nothing after it can be trusted.
    Damaged {
        /// Position of the frame in the file.
        at: u64,
    },
}

/// Reads records one after the other. Holds one frame at a time.
#[derive(Debug)]
pub struct LogReader<R> {
    input: R,
    at: u64,
    /// The payload of the current frame.
    payload: Vec<u8>,
    /// The bins that records have.
    bins: BinSet,
}

impl LogReader<BufReader<File>> {
    /// Opens the log at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a log of this version.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| LogError::Io { path: name.clone(), source })?;
        LogReader::new(BufReader::with_capacity(1 << 20, file), &name)
    }
}

impl<R: Read> LogReader<R> {
    /// Reads the signature of a log from `input`; `name` is for messages.
    ///
    /// # Errors
    /// If `input` is not a log of this version.
    pub fn new(mut input: R, name: &str) -> Result<Self, LogError> {
        let mut start = [0; SIGNATURE_SIZE];
        let read = read_up_to(&mut input, &mut start)
            .map_err(|source| LogError::Io { path: name.to_owned(), source })?;
        if read == 0 {
            return Err(LogError::Empty { path: name.to_owned() });
        }
        if read < start.len() || !start.starts_with(SIGNATURE) {
            return Err(LogError::Foreign { path: name.to_owned() });
        }
        let found = start[SIGNATURE.len()];
        if found != VERSION {
            return Err(LogError::Version { path: name.to_owned(), found });
        }
        Ok(LogReader { input, at: start.len() as u64, payload: Vec::new(), bins: BinSet::ALL })
    }

    /// The same reader, whose records have only the bins in `wanted`.
    #[must_use]
    pub fn with_bins(self, wanted: BinSet) -> LogReader<R> {
        LogReader { bins: wanted, ..self }
    }

    /// The next record, the end, or the place where the log is damaged.
    pub fn next_record(&mut self) -> NextRecord {
        let damaged = NextRecord::Damaged { at: self.at };
        let mut head = [0; 8];
        match read_up_to(&mut self.input, &mut head) {
            Ok(0) => return NextRecord::End,
            Ok(8) => {}
            _ => return damaged,
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if length > MAX_FRAME {
            return damaged;
        }
        if self.payload.len() < length {
            self.payload.resize(length, 0);
        }
        let payload = &mut self.payload[..length];
        match read_up_to(&mut self.input, payload) {
            Ok(read) if read == length && crc32fast::hash(payload) == crc => {}
            _ => return damaged,
        }
        self.at += 8 + length as u64;
        let Ok(mut record) = postcard::from_bytes(payload) else { return NextRecord::Unknown };
        if let Record::Interval(interval) = &mut record {
            interval.block.keep_bins(self.bins);
        }
        NextRecord::Record(Box::new(record))
    }
}

/// Reads until `buf` is full or the input ends; returns the number of bytes.
pub(crate) fn read_up_to(input: &mut impl Read, mut buf: &mut [u8]) -> io::Result<usize> {
    let mut total = 0;
    while !buf.is_empty() {
        match input.read(buf) {
            Ok(0) => break,
            Ok(n) => {
                total += n;
                buf = &mut buf[n..];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(total)
}

/// A log in memory, with a list of missing parts.
#[derive(Debug)]
pub struct ReadLog {
    /// The description of the run.
    pub header: Header,
    /// All records after the header, in order, up to the first damage.
    pub records: Vec<Record>,
    /// Missing or damaged parts, in sentences for people; empty for a complete log.
    pub missing: Vec<String>,
}

impl ReadLog {
    /// Reads the log at `path`.
    ///
    /// # Errors
    /// If the log is unreadable. A damaged or unfinished log is not an error, see [`ReadLog::missing`].
    pub fn open(path: &Path) -> Result<ReadLog, LogError> {
        let name = path.display().to_string();
        ReadLog::read(LogReader::open(path)?, &name)
    }

    /// Reads everything from `reader`; `name` is for messages.
    ///
    /// # Errors
    /// If there is no complete header.
    pub fn read<R: Read>(mut reader: LogReader<R>, name: &str) -> Result<ReadLog, LogError> {
        let header = ReadLog::header(&mut reader, name)?;
        let mut log = ReadLog { header, records: Vec::new(), missing: Vec::new() };
        let mut unknown = 0;
        loop {
            match reader.next_record() {
                NextRecord::Record(record) => log.records.push(*record),
                NextRecord::Unknown => unknown += 1,
                NextRecord::End => break,
                NextRecord::Damaged { at } => {
                    log.missing.push(damaged(name, at));
                    break;
                }
            }
        }
        if unknown > 0 {
            log.missing.push(unknown_records(name, unknown));
        }
        if log.end().is_none() {
            let last_ns = log.intervals().last().map_or(0, |interval| interval.end_ns);
            log.missing.push(not_closed(name, last_ns));
        }
        Ok(log)
    }

    /// Reads the header, the first record; `name` is for messages. Phases of the same name get distinct names.
    ///
    /// # Errors
    /// If there is no complete header.
    pub fn header<R: Read>(reader: &mut LogReader<R>, name: &str) -> Result<Header, LogError> {
        if let NextRecord::Record(record) = reader.next_record()
            && let Record::Header(header) = *record
        {
            return Ok(header.with_distinct_phases());
        }
        Err(LogError::NoHeader { path: name.to_owned() })
    }

    /// The intervals in order.
    pub fn intervals(&self) -> impl Iterator<Item = &Interval> {
        self.records.iter().filter_map(|record| match record {
            Record::Interval(interval) => Some(&**interval),
            _ => None,
        })
    }

    /// Why the run ended and how many transactions were unfinished; `None` if the log was not closed.
    pub fn end(&self) -> Option<(&EndReason, u64)> {
        self.records.iter().rev().find_map(|record| match record {
            Record::End { reason, unfinished, .. } => Some((reason, *unfinished)),
            _ => None,
        })
    }
}

/// The message about a log that is damaged at a byte.
pub fn damaged(name: &str, at: u64) -> String {
    format!("{name} is damaged or cut off at byte {at}")
}

/// The message about records of kinds that this version does not know.
pub fn unknown_records(name: &str, count: u64) -> String {
    format!("{name} has {count} records of a later version, which are left out")
}

/// The message about a log that was not closed.
pub fn not_closed(name: &str, last_ns: u64) -> String {
    let last = last_ns as f64 * 1e-9;
    format!(
        "{name} was not closed: the process still runs, was killed, or had no space left on its disk; it ends {last:.1} s into the run"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::Block;
    use crate::class::Class;
    use crate::error::{ErrorCounts, ErrorKind};
    use crate::record::{KindLimits, PlannedLoad, PlannedPhase, Side};
    use crate::stall::Stall;
    use crate::xacts::Xact;

    fn header() -> Record {
        Record::Header(Box::new(Header {
            side: Side::Client,
            version: "0".into(),
            label: String::new(),
            start_unix_ns: 1,
            pid: 1,
            environment: vec![("kernel".into(), "6".into())],
            command: vec!["polyclt".into()],
            settings: vec![],
            workload: "PolyMix-1".into(),
            loops: 1,
            phases: vec![],
            offered_rate: Some(10.0),
            offered_dhr: Some(0.55),
            limits: Default::default(),
            contents: vec![],
            workload_text: String::new(),
        }))
    }

    fn interval(second: u64) -> Record {
        let mut block = Block::new();
        block.class_mut(Class::Hit).rptm_us.record(second * 100);
        Record::Interval(Box::new(Interval {
            phase: 0,
            begin_ns: second * 1_000_000_000,
            end_ns: (second + 1) * 1_000_000_000,
            cpu_ns: 5,
            busiest_loop_ns: 5,
            throttled_ns: 6,
            rss_bytes: 1,
            clock_step_ns: -3,
            block,
        }))
    }

    /// One record of each kind, with something in every field of the block.
    fn every_record() -> Vec<Record> {
        let mut block = crate::block::tests::full();
        // A new class of errors needs no new version: logs name classes by number.
        block.errors = ErrorCounts::default();
        block.foreign.failed = ErrorCounts::default();
        block.count_error(ErrorKind::Reset);
        let Record::Interval(mut counted) = interval(0) else { unreachable!("an interval") };
        counted.block = block;
        let Record::Header(mut described) = header() else { unreachable!("a header") };
        described.phases.push(PlannedPhase {
            name: "meas".into(),
            primary: true,
            log_stats: true,
            duration_s: Some(1.0),
            xactions: Some(2),
            fill_bytes: Some(3),
            errors: Some(0.5),
            load: PlannedLoad { beg: 0.1, end: 0.5, mean: 0.3 },
        });
        described.limits.kinds.push(KindLimits {
            robots: 1,
            rate: Some(2.0),
            lifetime_s: Some(3.0),
            open_connections: Some(4),
        });
        vec![
            Record::Header(described),
            Record::PhaseBegin { at_ns: 1, phase: 0 },
            Record::Interval(counted),
            Record::PhaseEnd { at_ns: 2, phase: 0, complete: true },
            Record::Comment { at_ns: 3, level: 1, text: "text".into() },
            Record::ErrorSample { at_ns: 4, kind: ErrorKind::Reset, detail: "d".into(), facts: Vec::new() },
            Record::End { at_ns: 5, reason: EndReason::Finished, unfinished: 1 },
            Record::End { at_ns: 5, reason: EndReason::NoEnd("why".into()), unfinished: 1 },
            Record::End { at_ns: 5, reason: EndReason::fatal(Side::Server, "why"), unfinished: 1 },
            Record::Xacts { sample: "s".into(), xacts: vec![xact()] },
            Record::Stall(Stall { begin_ns: 1, end_ns: 2, loops: 1 }),
        ]
    }

    fn xact() -> Xact {
        Xact {
            ended_ns: 9,
            lifetime_us: 1,
            queued_us: Some(1),
            id: "id".into(),
            connection: 1,
            object: "/".into(),
            size: 9,
            status: 200,
            robot: Some(1),
            server: Some(1),
            ims: Some(1),
        }
    }

    /// Postcard writes fields without names, so a reader takes a log of other fields for garbage.
    #[test]
    fn the_version_tells_what_records_are_made_of() {
        let records = every_record();
        let bytes = postcard::to_stdvec(&records).unwrap();
        assert_eq!(
            (VERSION, crc32fast::hash(&bytes)),
            (9, 2_879_901_324),
            "the encoding of log records has changed: if a field was added, removed or moved, raise VERSION in \
             crates/stats/src/log.rs, so that no program takes an old log for a new one; then put the version and \
             the new fingerprint here. (If only the test data changed, put only the new fingerprint here.)"
        );
    }

    /// A header, five intervals of a second, and the end.
    pub(crate) fn log() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = LogWriter::new(&mut bytes).unwrap();
        writer.write(&header()).unwrap();
        (0..5).for_each(|s| writer.write(&interval(s)).unwrap());
        writer.write(&Record::End { at_ns: 5, reason: EndReason::Finished, unfinished: 2 }).unwrap();
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<ReadLog, LogError> {
        ReadLog::read(LogReader::new(bytes, "x.log")?, "x.log")
    }

    #[test]
    fn a_whole_log_is_read_back() {
        let log = read(&log()).unwrap();
        assert_eq!(log.records[..5], (0..5).map(interval).collect::<Vec<_>>());
        assert_eq!(log.end(), Some((&EndReason::Finished, 2)));
        assert!(log.missing.is_empty());
    }

    #[test]
    fn a_log_cut_anywhere_gives_its_whole_part() {
        let bytes = log();
        let mut seen = 0;
        for cut in 0..bytes.len() {
            if let Ok(log) = read(&bytes[..cut]) {
                assert!(log.records.len() >= seen);
                seen = log.records.len();
                assert!(!log.missing.is_empty(), "cut at {cut}");
            }
        }
        assert_eq!(seen, 5);
    }

    #[test]
    fn records_of_later_versions_are_skipped() {
        let mut bytes = Vec::new();
        let mut writer = LogWriter::new(&mut bytes).unwrap();
        writer.write(&header()).unwrap();
        let payload = [200, 1, 7];
        let frame = [&3u32.to_le_bytes()[..], &crc32fast::hash(&payload).to_le_bytes(), &payload].concat();
        writer.out.write_all(&frame).unwrap();
        writer.write(&interval(0)).unwrap();
        let log = read(&bytes).unwrap();
        assert_eq!((log.records.len(), log.missing.len()), (1, 2), "{:?}", log.missing);
        assert!(log.missing[0].contains("1 records of a later version"));
    }

    #[test]
    fn damage_is_noticed() {
        let mut bytes = log();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let log = read(&bytes).unwrap();
        assert!(log.records.len() < 6);
        assert!(log.missing[0].contains("damaged"), "{:?}", log.missing);
    }

    #[test]
    fn foreign_files_and_versions_are_refused() {
        assert!(matches!(read(b"GIF89a..............."), Err(LogError::Foreign { .. })));
        assert!(matches!(read(b""), Err(LogError::Empty { .. })));
        assert!(matches!(read(b"GIF"), Err(LogError::Foreign { .. })));
        let mut bytes = log();
        bytes[SIGNATURE.len()] = 99;
        assert!(matches!(read(&bytes), Err(LogError::Version { found: 99, .. })));
    }

    #[test]
    fn random_damage_never_panics() {
        // Every byte set to each of three values: lengths, checksums and payloads all get hit.
        let bytes = log();
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
        }
    }
}
