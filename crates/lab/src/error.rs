//! What can go wrong with labs.

use std::io;
use std::path::{Path, PathBuf};

/// The result of work on a lab.
pub type Result<T> = std::result::Result<T, LabError>;

/// Why a lab cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The lab file, or its combination with the workload, makes no sense.
    #[error("{}: {problem}", path.display())]
    Description {
        /// The lab file.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
    /// There is a lab of this name already.
    #[error("the lab {0} is up already: `polygraph lab down {0}` removes it, `--name` makes another one")]
    AlreadyUp(String),
    /// There is no lab of this name.
    #[error("there is no lab {name}; {known}")]
    NotUp {
        /// The name.
        name: String,
        /// The names of the labs that are up.
        known: String,
    },
    /// The lab has no host of this name.
    #[error("the lab {lab} has no host {host}; its hosts are {known}")]
    NoHost {
        /// The lab.
        lab: String,
        /// The host.
        host: String,
        /// The hosts that it has.
        known: String,
    },
    /// The file of a lab that is up cannot be understood.
    #[error("{} cannot be understood: {problem}; `polygraph net clean --all` removes the lab", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The kernel does not put a cable into service.
    #[error("a cable of {namespace} stays down: {cable}; see `ip -n {namespace} link` for its state")]
    CableDown {
        /// The network namespace.
        namespace: String,
        /// What `ip` says about the cable.
        cable: String,
    },
    /// The network of this host cannot be changed.
    #[error(transparent)]
    Network(#[from] polygraph_netsetup::Error),
}

impl LabError {
    /// An error of a file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> LabError + use<> {
        let path = path.to_owned();
        move |error| LabError::File { path, error }
    }
}
