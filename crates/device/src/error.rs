//! Why a device cannot be used.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a device of the set nor a directory with a `device.toml`.
    #[error("there is no device `{name}`: name one of {known}, or a directory with a device.toml")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Devices of the set.
        known: String,
    },
    /// A description that does not say what it must.
    #[error("{path}: {problem}")]
    Description {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A template that cannot be rendered, or that refuses what it was given.
    #[error("{device}, {template}: {problem}")]
    Template {
        /// The device.
        device: String,
        /// The template, or the part of the description.
        template: String,
        /// What is wrong.
        problem: String,
    },
    /// A setting that the device cannot have.
    #[error("{device}: {problem}")]
    Setting {
        /// The device.
        device: String,
        /// What is wrong with which setting.
        problem: String,
    },
    /// The program is not on this machine.
    #[error("{device}: the program `{program}` is not on this machine; {remedy}")]
    Missing {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// What to do.
        remedy: String,
    },
    /// The account that the program must run under is missing.
    #[error("{device}: this machine has no user `{user}`, under whom it must run when it is started by root")]
    User {
        /// The device.
        device: String,
        /// The user.
        user: String,
    },
    /// Somebody else listens where the device should.
    #[error("{device} cannot listen at {address}: {source}")]
    Address {
        /// The device.
        device: String,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A program of the device failed, or did not become ready.
    #[error("{device}: {problem}{messages}")]
    Failed {
        /// The device.
        device: String,
        /// What happened.
        problem: String,
        /// Its last lines, each on a line of its own, or nothing.
        messages: String,
    },
    /// The system refused something.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// With which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The system gave no process.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` on operations with a file.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { action, path, source }
    }
}

/// What operations on devices return.
pub type Result<T> = std::result::Result<T, Error>;
