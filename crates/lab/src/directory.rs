//! The labs that are up, one file each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::layout::Lab;

/// The directory of the whole system: empty after a boot, as the network is.
const SYSTEM_DIRECTORY: &str = "/run/polygraph/labs";
/// The suffix of its files.
const SUFFIX: &str = "json";

/// The directory with the labs that are up.
#[derive(Clone, Debug)]
pub struct LabDirectory {
    path: PathBuf,
}

/// What is known about a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabState {
    /// The lab.
    pub lab: Lab,
    /// Whether all of it was made.
    pub complete: bool,
}

impl LabDirectory {
    /// The directory of this system.
    pub fn of_system() -> LabDirectory {
        LabDirectory { path: PathBuf::from(SYSTEM_DIRECTORY) }
    }

    /// Another directory.
    pub fn at(path: &Path) -> LabDirectory {
        LabDirectory { path: path.to_owned() }
    }

    /// The file of a lab.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.{SUFFIX}"))
    }

    /// The names of the labs that are up.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let name = |path: PathBuf| {
            let is_lab = path.extension().is_some_and(|suffix| suffix == SUFFIX);
            is_lab.then(|| Some(path.file_stem()?.to_str()?.to_owned())).flatten()
        };
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.path())).collect();
        names.sort();
        names
    }

    /// The lab of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, name: &str) -> Result<LabState> {
        let path = self.file(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(self.not_up(name)),
            Err(error) => return Err(LabError::File { path, error }),
        };
        serde_json::from_str(&text).map_err(|error| LabError::State { path, problem: error.to_string() })
    }

    /// Writes the file of a lab.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, state: &LabState) -> Result<()> {
        let path = self.file(&state.lab.name);
        fs::create_dir_all(&self.path).map_err(LabError::file(&self.path))?;
        let text = serde_json::to_string_pretty(state)
            .map_err(|error| LabError::State { path: path.clone(), problem: error.to_string() })?;
        fs::write(&path, text).map_err(LabError::file(&path))
    }

    fn not_up(&self, name: &str) -> LabError {
        let known = match &self.names()[..] {
            [] => "no lab is up: `polygraph lab up LAB.toml` makes one".to_owned(),
            names => format!("up are {}", names.join(", ")),
        };
        LabError::NotUp { name: name.to_owned(), known }
    }
}
