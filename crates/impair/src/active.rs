//! Emulations that are set up on this host: one file each, so that other processes find them.

use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polygraph_netsetup::{Change, Changes, Namespace};
use serde::{Deserialize, Serialize};

use crate::emulation::Emulation;
use crate::error::WanError;
use crate::means::Means;
use crate::netem_host;
use crate::status::Status;

/// The directory of the files: empty after a boot, as the network is.
const DIRECTORY: &str = "/run/polygraph/wan";
/// How long a process may take to tell its status.
const PATIENCE: Duration = Duration::from_secs(5);

/// An emulation that is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveEmulation {
    /// What is emulated.
    pub emulation: Emulation,
    /// By what.
    pub means: Means,
    /// The namespace in which it is set up.
    pub namespace: Namespace,
}

/// What an emulation answers when it is asked for its status.
#[derive(Debug)]
pub enum StatusAnswer {
    /// It is at work.
    Working(Status),
    /// Packets pass as if there were no emulation, for this reason.
    Broken(String),
}

/// The files of one emulation.
#[derive(Clone, Debug)]
pub struct ActiveFiles {
    /// Where it is described.
    pub description: PathBuf,
    /// The socket at which its process tells its status.
    pub control: PathBuf,
}

impl ActiveFiles {
    /// Names for the files of an emulation that a process sets up.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn new(pid: i32) -> Result<ActiveFiles, WanError> {
        let directory = Path::new(DIRECTORY);
        fs::create_dir_all(directory).map_err(|error| WanError::records(DIRECTORY, error))?;
        let files = (0u32..).map(|number| {
            let name = |suffix: &str| directory.join(format!("{pid}-{number}.{suffix}"));
            ActiveFiles { description: name("json"), control: name("sock") }
        });
        // An emulation outlives the process that sets it up, whose id may come again.
        let free = files.into_iter().find(|files| !files.description.exists() && !files.control.exists());
        Ok(free.unwrap_or_else(|| unreachable!("a name is free")))
    }
}

impl ActiveEmulation {
    /// Lets others find the emulation.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn announce(&self, files: &ActiveFiles, changes: &mut Changes) -> Result<(), WanError> {
        let path = &files.description;
        let text = serde_json::to_string(self).map_err(io::Error::from);
        let written = changes
            .make(Change::File { path: path.clone() }, || Ok(text.and_then(|text| fs::write(path, text))))?;
        written.map_err(|error| WanError::system(path.display().to_string(), error))
    }

    /// The emulations of this namespace, the oldest first.
    ///
    /// # Errors
    /// If the directory or the namespace cannot be read. Files that are no descriptions are passed over.
    pub fn all_here() -> Result<Vec<ActiveEmulation>, WanError> {
        let here = Namespace::current()?;
        let files = match fs::read_dir(DIRECTORY) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(WanError::records(DIRECTORY, error)),
        };
        let read = |path: PathBuf| -> Option<(std::time::SystemTime, ActiveEmulation)> {
            path.extension().filter(|suffix| *suffix == "json")?;
            let changed = path.metadata().ok()?.modified().ok()?;
            Some((changed, serde_json::from_slice(&fs::read(path).ok()?).ok()?))
        };
        let mut found: Vec<_> = files
            .flatten()
            .filter_map(|file| read(file.path()))
            .filter(|(_, active)| active.namespace == here)
            .collect();
        found.sort_by_key(|(changed, _)| *changed);
        Ok(found.into_iter().map(|(_, active)| active).collect())
    }

    /// Asks for the status.
    pub fn status(&self) -> StatusAnswer {
        match &self.means {
            Means::Nfqueue { control, .. } => match ask(control) {
                Ok(status) => StatusAnswer::Working(status),
                Err(error) => StatusAnswer::Broken(format!(
                    "the process that holds packets does not answer ({error}), so packets pass without delay; `polygraph net wan off` removes the rules"
                )),
            },
            Means::Netem(setup) => match netem_host::status(setup) {
                Ok(status) => StatusAnswer::Working(status),
                Err(error) => StatusAnswer::Broken(error.to_string()),
            },
        }
    }
}

fn ask(control: &Path) -> io::Result<Status> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::from)
}
