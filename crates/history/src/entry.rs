//! The entry of a run or a peak search in the index.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polygraph_report::peak::{PeakStatus, SEARCH_FILE, SearchSummary};
use polygraph_report::run_dir::{MANIFEST, Run, logs_in};
use polygraph_report::{VerdictOutcome, names};
use serde_json::{Value, json};

/// The state of a run or a peak search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// The run has a verdict.
    Judged(VerdictOutcome),
    /// This is a peak search.
    Search(PeakStatus),
    /// The log of the run is still being written.
    Running,
    /// The logs of the run are unreadable.
    Unreadable,
}

impl RunStatus {
    /// `VALID`, `FAILED`, `INVALID`, `RUNNING` or `UNREADABLE`; for a search, how it ended, such as `FOUND`.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Judged(outcome) => outcome.word(),
            RunStatus::Search(status) => status.word(),
            RunStatus::Running => "RUNNING",
            RunStatus::Unreadable => "UNREADABLE",
        }
    }

    /// The state with this name, in upper or lower case.
    pub fn from_word(word: &str) -> Option<RunStatus> {
        let all = [
            RunStatus::Judged(VerdictOutcome::Valid),
            RunStatus::Judged(VerdictOutcome::Failed),
            RunStatus::Judged(VerdictOutcome::Invalid),
            RunStatus::Running,
            RunStatus::Unreadable,
        ];
        let searches = PeakStatus::ALL.map(RunStatus::Search);
        all.into_iter().chain(searches).find(|standing| standing.word().eq_ignore_ascii_case(word))
    }
}

/// The figures of an entry: name in the index and in JSON, and name of the figure.
pub(crate) const FIGURES: [(&str, &str); 10] = [
    ("offered_rate", "baseline.req.rate"),
    ("rate", "ok_xact.rate"),
    ("rptm_mean_ms", "baseline.rptm.mean"),
    ("rptm_p95_ms", "baseline.rptm.p95"),
    ("rptm_p99_ms", "baseline.rptm.p99"),
    ("dhr_percent", "hit.ratio.obj"),
    ("bhr_percent", "hit.ratio.byte"),
    ("errors_percent", "err_xact.ratio"),
    ("failed_rate", "err_xact.rate"),
    ("seconds", "duration"),
];

/// A log that was not closed belongs to a run in progress if it was written to within this time.
const RECENT: Duration = Duration::from_secs(30);

/// The entry of a run or a peak search in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedRun {
    /// Name of the result directory.
    pub name: String,
    /// Start of the run, in seconds since 1970.
    pub begin_s: i64,
    /// Label; may be empty.
    pub label: String,
    /// Name of the workload.
    pub workload: String,
    /// The device, as far as it is known; may be empty.
    pub device: String,
    /// Version of the program.
    pub version: String,
    /// Verdict or state.
    pub standing: RunStatus,
    /// The limiting party, for example `server`; empty if there is none.
    pub limit: String,
    /// The first reason of the verdict, or the result of a search; empty if there is none.
    pub reason: String,
    /// Headline figures in the order of the index; `None` where undefined. Those of a search are figures of its last run at the
    /// peak.
    figures: [Option<f64>; FIGURES.len()],
    /// Size and modification time of the files when the entry was made.
    pub(crate) stamp: Stamp,
}

/// A stamp that changes when files of a run change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: i64,
    pub(crate) modified_ns: i64,
}

impl Stamp {
    /// The stamp of the logs and the manifest in a directory, or of the file of a search; `None` if the directory contains
    /// neither.
    pub(crate) fn of(directory: &Path) -> Option<Stamp> {
        let mut files = logs_in(directory).unwrap_or_default();
        if files.is_empty() {
            files.push(Some(directory.join(SEARCH_FILE)).filter(|file| file.is_file())?);
        }
        files.push(directory.join(MANIFEST));
        let mut stamp = Stamp::default();
        for file in files.iter().filter_map(|path| path.metadata().ok()) {
            let age = file
                .modified()
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .unwrap_or_default();
            stamp.bytes = stamp.bytes.saturating_add(i64::try_from(file.len()).unwrap_or(i64::MAX));
            stamp.modified_ns = stamp.modified_ns.max(i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
        }
        Some(stamp)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the age of a file is measured by the clock of its file system"
    )]
    fn age(self) -> Duration {
        let modified = Duration::from_nanos(u64::try_from(self.modified_ns).unwrap_or(0));
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(modified)
    }
}

impl IndexedRun {
    /// Makes the entry of a run.
    pub fn of(run: &Run) -> IndexedRun {
        IndexedRun::with(run, Stamp::of(&run.path).unwrap_or_default())
    }

    fn with(run: &Run, stamp: Stamp) -> IndexedRun {
        let facts = &run.facts;
        let header = facts.main_side().header();
        let scope = facts.headline.as_ref().map(|headline| &headline.scope);
        let closed = facts.main_side().processes.iter().all(|process| process.end.is_some());
        let running = !closed && stamp.age() < RECENT;
        IndexedRun {
            name: run.name(),
            begin_s: i64::try_from(facts.start_unix_ns / 1_000_000_000).unwrap_or(i64::MAX),
            label: header.label.clone(),
            workload: header.workload.clone(),
            device: run.device().unwrap_or_default(),
            version: header.version.clone(),
            standing: if running { RunStatus::Running } else { RunStatus::Judged(facts.verdict.outcome) },
            limit: match facts.verdict.limit {
                Some(party) if !running => party.name().to_owned(),
                _ => String::new(),
            },
            reason: match facts.verdict.findings.first() {
                Some(finding) if !running => finding.text.clone(),
                _ => String::new(),
            },
            figures: FIGURES.map(|(_, name)| names::find(name).ok()?.of(scope?)),
            stamp,
        }
    }

    /// Reads the run or the search in `directory`, which had this stamp before. An unreadable one has an entry, too.
    pub(crate) fn read(directory: &Path, stamp: Stamp) -> IndexedRun {
        if logs_in(directory).is_err() && directory.join(SEARCH_FILE).is_file() {
            return match SearchSummary::read(directory) {
                Ok(search) => IndexedRun::of_search(directory, search, stamp),
                Err(error) => IndexedRun::bare(directory, stamp, error.to_string()),
            };
        }
        match Run::open(directory) {
            Ok(run) => IndexedRun::with(&run, stamp),
            Err(error) => IndexedRun::bare(directory, stamp, error.to_string()),
        }
    }

    /// The entry of a search. What its runs have in common comes from the last one, and figures from the last one at the peak.
    fn of_search(directory: &Path, search: SearchSummary, stamp: Stamp) -> IndexedRun {
        let bare = IndexedRun::bare(directory, stamp, search.text);
        let run_name = search.peak_run.as_ref().or(search.last_run.as_ref());
        let run = run_name.and_then(|name| Run::open(&directory.join(name)).ok());
        let run = run.map_or_else(|| bare.clone(), |run| IndexedRun::with(&run, stamp));
        IndexedRun {
            begin_s: search.begin_s.unwrap_or(run.begin_s),
            standing: RunStatus::Search(search.status),
            workload: run.workload,
            device: run.device,
            version: run.version,
            figures: if search.peak_run.is_some() { run.figures } else { bare.figures },
            ..bare
        }
    }

    /// An entry of which nothing is known but its name, its age and a reason.
    fn bare(directory: &Path, stamp: Stamp, reason: String) -> IndexedRun {
        IndexedRun {
            name: directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()),
            begin_s: stamp.modified_ns / 1_000_000_000,
            label: String::new(),
            workload: String::new(),
            device: String::new(),
            version: String::new(),
            standing: RunStatus::Unreadable,
            limit: String::new(),
            reason,
            figures: [None; FIGURES.len()],
            stamp,
        }
    }

    /// The verdict with the limiting party, for example `INVALID (server)`.
    pub fn verdict(&self) -> String {
        let limit = if self.limit.is_empty() { String::new() } else { format!(" ({})", self.limit) };
        format!("{}{limit}", self.standing.word())
    }

    /// One of the figures by its name in the index, for example `rptm_mean_ms`.
    pub fn figure(&self, name: &str) -> Option<f64> {
        FIGURES.iter().position(|(known, _)| *known == name).and_then(|index| self.figures[index])
    }

    pub(crate) fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<IndexedRun> {
        let word: String = row.get("verdict")?;
        let mut figures = [None; FIGURES.len()];
        for (figure, (name, _)) in figures.iter_mut().zip(FIGURES) {
            *figure = row.get(name)?;
        }
        Ok(IndexedRun {
            name: row.get("name")?,
            begin_s: row.get("begin_s")?,
            label: row.get("label")?,
            workload: row.get("workload")?,
            device: row.get("device")?,
            version: row.get("version")?,
            standing: RunStatus::from_word(&word).unwrap_or(RunStatus::Unreadable),
            limit: row.get("limited_by")?,
            reason: row.get("reason")?,
            figures,
            stamp: Stamp { bytes: row.get("bytes")?, modified_ns: row.get("modified_ns")? },
        })
    }

    /// The entry as JSON; undefined figures are null.
    pub fn json(&self) -> Value {
        let mut all = json!({
            "name": self.name,
            "kind": match self.standing {
                RunStatus::Search(_) => "peak search",
                _ => "run",
            },
            "begin": jiff::Timestamp::from_second(self.begin_s).map(|time| time.to_string()).ok(),
            "label": self.label,
            "workload": self.workload,
            "device": self.device,
            "version": self.version,
            "verdict": self.standing.word(),
            "limit": Some(&self.limit).filter(|limit| !limit.is_empty()),
            "reason": self.reason,
        });
        for ((name, _), value) in FIGURES.iter().zip(self.figures) {
            all[*name] = json!(value);
        }
        all
    }
}
