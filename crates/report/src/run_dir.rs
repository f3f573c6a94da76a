//! A run on disk: a result directory, or a log alone.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use polygraph_stats::log::{LogError, has_signature};
use polygraph_stats::{BinSet, LogFile};
use serde_json::Value;

use crate::facts::RunFacts;
use crate::fold::{FileError, FoldError, fold, fold_files};
use crate::judge;
use crate::parallel;
use crate::series;
use crate::source::LogSource;
pub use crate::usage::MANIFEST;
use crate::verdict::Tested;

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The directory cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The directory.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The directory has no logs.
    #[error(
        "there are no logs in {path}: name the directory of a run, or its logs; `polygraph runs` lists runs"
    )]
    NoLogs {
        /// The directory.
        path: String,
    },
    /// A log is unreadable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The logs cannot be folded.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// Logs that are folded while they are read cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A run.
#[derive(Debug)]
pub struct Run {
    /// Path of the run.
    pub path: PathBuf,
    /// Facts from the logs of all processes of both sides.
    pub facts: RunFacts,
    /// `manifest.json` of the directory, if there is one that can be read.
    pub manifest: Option<Value>,
}

/// A run with its logs, for callers that need every interval. Neither facts nor logs have other bins than `bins`.
#[derive(Debug)]
pub struct WholeRun {
    /// The run.
    pub run: Run,
    /// Logs of the run.
    pub logs: Vec<Box<dyn LogSource>>,
    /// The histograms whose bins were read. Always sufficient for the verdict and the series.
    pub bins: BinSet,
}

impl Deref for WholeRun {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

impl WholeRun {
    /// Reads the run at `path`: a result directory with its logs and its manifest, or a single log. Of its histograms, the bins
    /// of those in `wanted` are read, and those that verdict and series need.
    ///
    /// # Errors
    /// If there is no log, or a log is unreadable.
    pub fn open(path: &Path, wanted: BinSet) -> Result<WholeRun, RunError> {
        let bins = wanted | judge::BINS | series::bins();
        let open = |path: &PathBuf| -> Result<Box<dyn LogSource>, LogError> {
            Ok(Box::new(LogFile::open(path)?.with_bins(bins)))
        };
        let logs = logs_at(path)?.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(WholeRun { run: Run::of(path, fold(&logs)?), logs, bins })
    }
}

impl WholeRun {
    /// Reads all these runs, as many at a time as the host has processors.
    ///
    /// # Errors
    /// As [`WholeRun::open`], for the first of them that cannot be read.
    pub fn open_all(paths: &[&Path], wanted: BinSet) -> Result<Vec<WholeRun>, RunError> {
        parallel::map(paths, |path| WholeRun::open(path, wanted)).into_iter().collect()
    }
}

impl Run {
    /// Folds the run at `path` while it is read: a result directory with its logs and its manifest, or a single log.
    ///
    /// # Errors
    /// If there is no log, or a log is unreadable.
    pub fn open(path: &Path) -> Result<Run, RunError> {
        Ok(Run::of(path, fold_files(&logs_at(path)?)?))
    }

    /// The run at `path` with these facts.
    pub fn of(path: &Path, facts: RunFacts) -> Run {
        let manifest = std::fs::read(path.join(MANIFEST)).ok();
        Run {
            path: path.to_owned(),
            facts,
            manifest: manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        }
    }

    /// Name for people: the last part of the path.
    pub fn name(&self) -> String {
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // `.` and `..` have names, too.
        last(&self.path)
            .or_else(|| last(&self.path.canonicalize().ok()?))
            .unwrap_or_else(|| self.path.display().to_string())
    }

    /// The options that the user gave a device which the program started.
    pub fn device_options(&self) -> Vec<(String, String)> {
        let options = self.manifest.as_ref().and_then(|manifest| manifest["device"]["options"].as_object());
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        options.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The device under test: its name and version if the program started it, or else the proxy's address.
    pub fn device(&self) -> Option<String> {
        let device = self.manifest.as_ref().map(|manifest| &manifest["device"]);
        let text = |name: &str| device.and_then(|device| device[name].as_str());
        let started = text("name").map(|name| match text("version") {
            Some(version) if !version.is_empty() => format!("{name} {version}"),
            _ => name.to_owned(),
        });
        started.or_else(|| {
            let settings = &self.facts.main_side().header().settings;
            let setting = |is_wanted: fn(&str) -> bool| {
                settings.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| value.as_str())
            };
            let proxy = setting(|name| name == "proxy" || name.ends_with(": proxy"));
            Some(match (setting(|name| name == "device"), proxy?, &self.facts.tested) {
                (Some("surrogate"), ..) => "a surrogate".to_owned(),
                (Some("balancer"), ..) => "a load balancer".to_owned(),
                (.., Tested::Servers(at)) => format!("the server at {at}"),
                (_, "none", _) => "no proxy".to_owned(),
                (_, proxy, _) => proxy.to_owned(),
            })
        })
    }
}

/// The logs of a run: those of a result directory, or the log itself.
fn logs_at(path: &Path) -> Result<Vec<PathBuf>, RunError> {
    if path.is_dir() { logs_in(path) } else { Ok(vec![path.to_owned()]) }
}

/// The logs in a result directory, in the order of their names. In a directory without a manifest, which nobody made for a run,
/// other files called `*.log` are none.
///
/// # Errors
/// If there are no logs.
pub fn logs_in(directory: &Path) -> Result<Vec<PathBuf>, RunError> {
    let path = || directory.display().to_string();
    let entries = std::fs::read_dir(directory).map_err(|source| RunError::Io { path: path(), source })?;
    let mut logs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    if !directory.join(MANIFEST).is_file() {
        logs.retain(|path| has_signature(path));
    }
    logs.sort();
    if logs.is_empty() {
        return Err(RunError::NoLogs { path: path() });
    }
    Ok(logs)
}
