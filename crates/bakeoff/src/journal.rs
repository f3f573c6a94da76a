//! The journal of a bake-off on disk: one event per line, appended and synced, so that a series can be killed at any
//! time and resumed later. The state of the bake-off is a fold of the events.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::entry::AttemptStatus;
use crate::figures::MainFigures;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A system call failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The journal.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process uses the journal.
    #[error("another process is already working on {0}: wait until it has finished, or stop it")]
    Busy(PathBuf),
    /// A line is invalid.
    #[error("{path}, line {line}: {problem}; move the directory away to start again")]
    Line {
        /// The journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Why a cache counts as full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fullness {
    /// The space that it occupies no longer grew when objects were added.
    Observed,
    /// It received twice its size; the space that it occupies cannot be observed from here.
    Sent,
    /// It was still growing at the limit of time or data.
    Growing,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JournalEvent {
    /// The first event of a device: its configuration, which all of its runs must share.
    Enrolled {
        /// The device.
        device: String,
        /// See [`crate::plan::Contestant::configuration`].
        configuration: String,
    },
    /// All results of a device were deleted, and it starts again.
    Dropped {
        /// The device.
        device: String,
    },
    /// Network throughput of the bench.
    Network {
        /// Million bits per second.
        mbit_s: f64,
        /// Length of the measurement.
        seconds: f64,
    },
    /// A run without a proxy ended.
    NoProxy {
        /// Requests per second.
        rate: f64,
        /// Its result directory, relative to that of the bake-off.
        run: String,
        /// The outcome of the run.
        status: AttemptStatus,
        /// The reason for the outcome.
        reason: String,
    },
    /// A device was started, with an empty cache unless it runs elsewhere.
    Up {
        /// The device.
        device: String,
        /// Facts that the device reports: names and values.
        facts: Vec<(String, String)>,
        /// Results of checks: names and values.
        checks: Vec<(String, String)>,
    },
    /// A cache was filled.
    Filled {
        /// The device.
        device: String,
        /// Bytes sent to the device.
        bytes: u64,
        /// Duration in seconds.
        seconds: f64,
        /// Whether it is full.
        fullness: Fullness,
        /// Growth of the occupied space during the last part in bytes, if it can be observed.
        growth: Option<i64>,
        /// Bytes of the last part.
        last: u64,
    },
    /// A run started. A run without a recorded end does not count.
    Begin {
        /// The device.
        device: String,
        /// Requests per second.
        rate: f64,
        /// Number of the run at this rate, from 1.
        attempt: u32,
    },
    /// A run ended.
    End {
        /// The device.
        device: String,
        /// Requests per second.
        rate: f64,
        /// Number of the run at this rate, from 1.
        attempt: u32,
        /// Its result directory, relative to that of the bake-off.
        run: String,
        /// The outcome of the run.
        status: AttemptStatus,
        /// The reason for the outcome.
        reason: String,
        /// Processor time of the device, in seconds, if it ran on this machine.
        cpu_s: Option<f64>,
        /// The figures, if its logs contain any.
        #[serde(default)]
        figures: Option<MainFigures>,
    },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The event.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// The open journal of a bake-off in progress.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<JournalEntry>,
}

impl Journal {
    /// Opens or creates a journal. An incomplete last line is removed.
    ///
    /// # Errors
    /// If the file cannot be used, or another process uses it.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let io = |action| move |source| JournalError::Io { action, path: path.to_owned(), source };
        let mut options = File::options();
        let mut file =
            options.create(true).truncate(false).read(true).write(true).open(path).map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io("read"))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(io("mend"))?;
        file.seek(SeekFrom::End(0)).map_err(io("read"))?;
        let entries = parse(&bytes[..whole], path)?;
        Ok(Journal { path: path.to_owned(), file, entries })
    }

    /// The events in order.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.entries
    }

    /// Appends an event and syncs the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, unix_s: u64, event: JournalEvent) -> Result<(), JournalError> {
        let entry = JournalEntry { unix_s, event };
        let line = serde_json::to_string(&entry).map_err(|e| JournalError::Line {
            path: self.path.clone(),
            line: self.entries.len() + 1,
            problem: e.to_string(),
        })?;
        let io = |source| JournalError::Io { action: "write", path: self.path.clone(), source };
        self.file.write_all((line + "\n").as_bytes()).map_err(io)?;
        self.file.sync_data().map_err(io)?;
        self.entries.push(entry);
        Ok(())
    }
}

/// The events in a journal, for reports; an incomplete last line is ignored.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<Vec<JournalEntry>, JournalError> {
    let bytes = std::fs::read(path).map_err(|source| JournalError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    parse(&bytes[..whole], path)
}

fn parse(bytes: &[u8], path: &Path) -> Result<Vec<JournalEntry>, JournalError> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|e| JournalError::Line {
                path: path.to_owned(),
                line: index + 1,
                problem: e.to_string(),
            })
        })
        .collect()
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedRun {
    /// Requests per second.
    pub rate: f64,
    /// Number of the run at this rate, from 1.
    pub attempt: u32,
    /// Its result directory.
    pub run: String,
    /// The outcome of the run.
    pub status: AttemptStatus,
    /// The reason for the outcome.
    pub reason: String,
    /// Processor time of the device in seconds.
    pub cpu_s: Option<f64>,
    /// The figures noted at its end.
    pub figures: Option<MainFigures>,
}

/// The state of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceProgress {
    /// Its configuration, once it has been started.
    pub configuration: Option<String>,
    /// Its runs in order.
    pub ended: Vec<EndedRun>,
    /// Facts that it reported at its last start.
    pub facts: Vec<(String, String)>,
    /// Results of the checks at its last start.
    pub checks: Vec<(String, String)>,
    /// All fills of its cache.
    pub fills: Vec<CacheFill>,
}

/// A fill of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheFill {
    /// Bytes sent to the device.
    pub bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Whether the cache is full.
    pub fullness: Fullness,
    /// Growth over the last part in bytes.
    pub growth: Option<i64>,
    /// Bytes of the last part.
    pub last: u64,
}

/// The state of a bake-off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BakeoffProgress {
    /// Throughput of the bench in million bits per second, and the length of the measurement in seconds.
    pub network: Option<(f64, f64)>,
    /// Runs without a proxy: rate, result directory, outcome and reason.
    pub no_proxy: Vec<(f64, String, AttemptStatus, String)>,
    /// Devices by name.
    pub devices: std::collections::BTreeMap<String, DeviceProgress>,
}

impl BakeoffProgress {
    /// Folds events.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> BakeoffProgress {
        let mut progress = BakeoffProgress::default();
        entries.into_iter().for_each(|entry| progress.apply(&entry.event));
        progress
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &JournalEvent) {
        match event.clone() {
            JournalEvent::Network { mbit_s, seconds } => self.network = Some((mbit_s, seconds)),
            JournalEvent::NoProxy { rate, run, status, reason } => {
                self.no_proxy.push((rate, run, status, reason))
            }
            JournalEvent::Dropped { device } => drop(self.devices.remove(&device)),
            JournalEvent::Enrolled { device, configuration } => {
                self.device(device).configuration = Some(configuration);
            }
            JournalEvent::Up { device, facts, checks } => {
                let standing = self.device(device);
                (standing.facts, standing.checks) = (facts, checks);
            }
            JournalEvent::Filled { device, bytes, seconds, fullness, growth, last } => {
                self.device(device).fills.push(CacheFill { bytes, seconds, fullness, growth, last });
            }
            JournalEvent::Begin { .. } => {}
            JournalEvent::End { device, rate, attempt, run, status, reason, cpu_s, figures } => {
                self.device(device).ended.push(EndedRun {
                    rate,
                    attempt,
                    run,
                    status,
                    reason,
                    cpu_s,
                    figures,
                });
            }
        }
    }

    fn device(&mut self, name: String) -> &mut DeviceProgress {
        self.devices.entry(name).or_default()
    }
}

impl DeviceProgress {
    /// Number of finished runs at a rate.
    pub fn at(&self, rate: f64) -> impl Iterator<Item = &EndedRun> {
        self.ended.iter().filter(move |ended| ended.rate == rate)
    }

    /// Number of passed runs at a rate.
    pub fn passed(&self, rate: f64) -> usize {
        self.at(rate).filter(|ended| ended.status == AttemptStatus::Passed).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rate: f64, status: AttemptStatus) -> JournalEvent {
        JournalEvent::End {
            device: "a".into(),
            rate,
            attempt: 1,
            run: "a/run".into(),
            status,
            reason: String::new(),
            cpu_s: Some(0.5),
            figures: Some(MainFigures {
                mean_s: Some(1.5),
                percentiles_s: vec![0.1, 0.2],
                ..MainFigures::default()
            }),
        }
    }

    fn all() -> Vec<JournalEvent> {
        vec![
            JournalEvent::Network { mbit_s: 900.5, seconds: 10.0 },
            JournalEvent::NoProxy {
                rate: 100.0,
                run: "n".into(),
                status: AttemptStatus::Passed,
                reason: "fine".into(),
            },
            JournalEvent::Enrolled { device: "a".into(), configuration: "c".into() },
            JournalEvent::Up {
                device: "a".into(),
                facts: vec![("x".into(), "y".into())],
                checks: Vec::new(),
            },
            JournalEvent::Filled {
                device: "a".into(),
                bytes: 1 << 40,
                seconds: 1.5,
                fullness: Fullness::Observed,
                growth: Some(-5),
                last: 100,
            },
            JournalEvent::Begin { device: "a".into(), rate: 12.5, attempt: 1 },
            end(12.5, AttemptStatus::Failed),
        ]
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        for (index, event) in all().into_iter().enumerate() {
            journal.note(index as u64, event).unwrap();
        }
        let written = journal.entries().to_vec();
        assert!(matches!(Journal::open(&path), Err(JournalError::Busy(_))));
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().entries(), written);
        assert_eq!(read(&path).unwrap(), written);
        let progress = BakeoffProgress::of(&written);
        assert_eq!(progress.network, Some((900.5, 10.0)));
        let a = &progress.devices["a"];
        assert_eq!((a.passed(12.5), a.at(12.5).count(), a.fills.len()), (0, 1, 1));
    }

    /// Wherever a journal is cut, what was whole stays, and it can be gone on with.
    #[test]
    fn any_cut_is_survived() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        all().into_iter().for_each(|event| journal.note(7, event).unwrap());
        let written = journal.entries().to_vec();
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        for cut in (0..=bytes.len()).step_by(5) {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(read(&path).unwrap(), written[..whole], "cut at {cut}");
            let mut journal = Journal::open(&path).unwrap();
            assert_eq!(journal.entries(), &written[..whole], "cut at {cut}");
            journal.note(8, end(1.0, AttemptStatus::Passed)).unwrap();
            drop(journal);
            assert_eq!(read(&path).unwrap().len(), whole + 1, "cut at {cut}");
        }
    }

    #[test]
    fn damage_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        std::fs::write(&path, "{\"unix_s\":1,\"event\":\"dropped\",\"device\":\"a\"}\nnonsense\n").unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn a_dropped_device_begins_anew() {
        let mut progress = BakeoffProgress::default();
        all().iter().for_each(|event| progress.apply(event));
        progress.apply(&JournalEvent::Dropped { device: "a".into() });
        assert!(progress.devices.is_empty() && progress.network.is_some());
    }
}
