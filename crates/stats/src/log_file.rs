//! A log on disk that is read as often as necessary, and never held in memory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::bin_set::BinSet;
use crate::log::{LogError, LogReader, MAX_FRAME, ReadLog, SIGNATURE_SIZE};
use crate::record::Header;

/// The number of [`Record::Interval`](crate::Record::Interval) in frames.
const INTERVAL: u32 = 2;
/// Maximum number of bytes of its number and its first three fields.
const INTERVAL_START: usize = 1 + 5 + 10 + 10;
/// Size of the buffer of a reader in bytes. A frame of a busy process is about as large.
const BUFFER: usize = 64 << 10;

/// A log on disk whose header has been read. All readers share one descriptor.
#[derive(Debug)]
pub struct LogFile {
    name: String,
    header: Header,
    file: Arc<File>,
    extent_ns: u64,
    bins: BinSet,
}

/// Reads a file from a place on, independently of other readers of the same file.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<File>,
    at: u64,
}

impl Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reader of the records of a [`LogFile`].
pub type LogFileReader = LogReader<BufReader<FileReader>>;

impl LogFile {
    /// Opens the log at `path`. What can be read only once, such as a pipe, is copied to a temporary file.
    ///
    /// # Errors
    /// If the file cannot be read, is not a log of this version, or has no complete header.
    pub fn open(path: &Path) -> Result<LogFile, LogError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| LogError::Io { path: name.clone(), source })?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return LogFile::copy(file, &name);
        }
        LogFile::of(file, &name)
    }

    /// Copies `input`, which can be read only once, to a temporary file without a name; `name` is for messages.
    ///
    /// # Errors
    /// If `input` cannot be copied, is not a log of this version, or has no complete header.
    pub fn copy(mut input: impl Read, name: &str) -> Result<LogFile, LogError> {
        let copied = tempfile::tempfile().and_then(|mut file| {
            io::copy(&mut input, &mut file)?;
            Ok(file)
        });
        LogFile::of(copied.map_err(|source| LogError::Io { path: name.to_owned(), source })?, name)
    }

    fn of(file: File, name: &str) -> Result<LogFile, LogError> {
        let file = Arc::new(file);
        let mut reader = reader(&file, name)?;
        let header = ReadLog::header(&mut reader, name)?;
        let extent_ns = extent(&file).map_err(|source| LogError::Io { path: name.to_owned(), source })?;
        Ok(LogFile { name: name.to_owned(), header, file, extent_ns, bins: BinSet::ALL })
    }

    /// The same log, of which readers return only the bins in `wanted`, which is much faster.
    #[must_use]
    pub fn with_bins(self, wanted: BinSet) -> LogFile {
        LogFile { bins: wanted, ..self }
    }

    /// Name for people, usually the path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description of the run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The length of the run in nanoseconds, which is the end of its last interval. Frames were skipped, not read, to
    /// find it, so this is fast but does not detect damaged frames.
    pub fn extent_ns(&self) -> u64 {
        self.extent_ns
    }

    /// A reader of the records after the header.
    ///
    /// # Errors
    /// If the file can no longer be read.
    pub fn reader(&self) -> Result<LogFileReader, LogError> {
        let mut reader = reader(&self.file, &self.name)?;
        ReadLog::header(&mut reader, &self.name)?;
        Ok(reader.with_bins(self.bins))
    }
}

fn reader(file: &Arc<File>, name: &str) -> Result<LogFileReader, LogError> {
    let input = FileReader { file: Arc::clone(file), at: 0 };
    LogReader::new(BufReader::with_capacity(BUFFER, input), name)
}

/// The end of the last interval in nanoseconds. Reads only the start of each frame.
fn extent(file: &Arc<File>) -> io::Result<u64> {
    let (mut at, mut last) = (SIGNATURE_SIZE as u64, 0);
    let size = file.metadata()?.len();
    loop {
        let mut start = [0; 8 + INTERVAL_START];
        let read = crate::log::read_up_to(&mut FileReader { file: Arc::clone(file), at }, &mut start)?;
        let Some(head) = start.first_chunk::<4>().filter(|_| read >= 8) else { return Ok(last) };
        let length = u32::from_le_bytes(*head) as usize;
        // The enum's number, then the first fields of an interval: phase, begin, end.
        let fields = postcard::take_from_bytes::<(u32, u32, u64, u64)>(&start[8..read.min(8 + length)]);
        if let Ok(((INTERVAL, _, _, end_ns), _)) = fields {
            last = last.max(end_ns);
        }
        at += (8 + length) as u64;
        if length > MAX_FRAME || at > size {
            return Ok(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::log::NextRecord;
    use crate::log::tests::{log, read};
    use crate::record::Record;

    fn file(bytes: &[u8]) -> Result<LogFile, LogError> {
        LogFile::copy(bytes, "x.log")
    }

    #[test]
    fn the_extent_is_found_without_reading() {
        let bytes = log();
        assert_eq!(file(&bytes).unwrap().extent_ns(), 5_000_000_000);
        for cut in SIGNATURE_SIZE..bytes.len() {
            let whole = read(&bytes[..cut]).ok();
            let last = whole.as_ref().and_then(|log| log.intervals().last().map(|i| i.end_ns)).unwrap_or(0);
            match file(&bytes[..cut]) {
                // An interval whose frame is cut off may count already.
                Ok(found) => {
                    assert!((last..=last + 1_000_000_000).contains(&found.extent_ns()), "cut at {cut}")
                }
                Err(_) => assert!(whole.is_none(), "cut at {cut}"),
            }
        }
    }

    #[test]
    fn bins_that_nobody_needs_are_left_out() {
        let bins = |wanted| {
            let mut reader = file(&log()).unwrap().with_bins(wanted).reader().unwrap();
            let NextRecord::Record(record) = reader.next_record() else { panic!("a record") };
            let Record::Interval(interval) = *record else { panic!("an interval") };
            let times = &interval.block.class(Class::Hit).rptm_us;
            (times.count(), times.has_bins())
        };
        assert_eq!(bins(BinSet::ALL), (1, true));
        assert_eq!(bins(BinSet::RESPONSE_TIMES | BinSet::LATENESS), (1, true));
        assert_eq!(bins(BinSet::LATENESS), (1, false));
    }

    #[test]
    fn a_log_is_read_as_often_as_necessary() {
        let file = file(&log()).unwrap();
        let (mut one, mut two) = (file.reader().unwrap(), file.reader().unwrap());
        let mut read = 0;
        loop {
            match (one.next_record(), two.next_record()) {
                (NextRecord::Record(one), NextRecord::Record(two)) => assert_eq!(one, two),
                (NextRecord::End, NextRecord::End) => break,
                other => panic!("{other:?}"),
            }
            read += 1;
        }
        assert_eq!(read, 6);
    }
}
