//! A run on disk: a result directory, or a log alone.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fold::{FoldError, Log, RunFacts, fold};

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
    #[error("there are no logs in {path}")]
    NoLogs {
        /// The directory.
        path: String,
    },
    /// A log cannot be used.
    #[error(transparent)]
    Log(#[from] polygraph_stats::log::LogError),
    /// The logs do not make a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// A run with its logs.
#[derive(Debug)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// Its logs, all processes of both sides.
    pub logs: Vec<Log>,
    /// What the logs say.
    pub facts: RunFacts,
    /// `manifest.json` of the directory, if there is one that can be read.
    pub manifest: Option<Value>,
}

impl Run {
    /// Reads the run at `path`: a result directory with its logs and its manifest, or a single log.
    ///
    /// # Errors
    /// If there is no log, or one cannot be used at all.
    pub fn open(path: &Path) -> Result<Run, RunError> {
        let paths = if path.is_dir() { logs_in(path)? } else { vec![path.to_owned()] };
        let manifest = std::fs::read(path.join(MANIFEST)).ok();
        let mut run = Run::of_logs(&paths)?;
        run.path = path.to_owned();
        run.manifest = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(run)
    }

    /// Reads logs of one run.
    ///
    /// # Errors
    /// If one cannot be used at all.
    pub fn of_logs(paths: &[PathBuf]) -> Result<Run, RunError> {
        let logs = paths.iter().map(|path| Log::open(path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Run {
            path: paths.first().cloned().unwrap_or_default(),
            facts: fold(&logs)?,
            logs,
            manifest: None,
        })
    }

    /// Its name for people: the last part of its path.
    pub fn name(&self) -> String {
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // `.` and `..` have names, too.
        last(&self.path)
            .or_else(|| last(&self.path.canonicalize().ok()?))
            .unwrap_or_else(|| self.path.display().to_string())
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
            let proxy = settings.iter().find(|(name, _)| name == "proxy" || name.ends_with(": proxy"));
            proxy.map(|(_, value)| if value == "none" { "no proxy".to_owned() } else { value.clone() })
        })
    }
}

/// Name of the file that says what a result directory holds.
pub const MANIFEST: &str = "manifest.json";

/// The logs in a result directory, in the order of their names.
///
/// # Errors
/// If there are none.
pub fn logs_in(directory: &Path) -> Result<Vec<PathBuf>, RunError> {
    let path = || directory.display().to_string();
    let entries = std::fs::read_dir(directory).map_err(|source| RunError::Io { path: path(), source })?;
    let mut logs: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    if logs.is_empty() {
        return Err(RunError::NoLogs { path: path() });
    }
    Ok(logs)
}
