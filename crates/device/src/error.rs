//! Errors of devices.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is neither a device of the set nor a directory with a `device.toml`.
    #[error("there is no device `{name}`: name one of {known}, or a directory with a device.toml{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of the set.
        known: String,
        /// The name that was probably meant, as the end of the message; may be empty.
        hint: String,
    },
    /// The name is that of a device of the set and of a directory with a `device.toml`.
    #[error("{0}")]
    Ambiguous(String),
    /// A description is invalid.
    #[error("{path}: {problem}")]
    Description {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A template cannot be rendered, or rejects its parameters.
    #[error("{device}, {template}: {problem}")]
    Template {
        /// The device.
        device: String,
        /// The template, or the part of the description.
        template: String,
        /// What is wrong.
        problem: String,
    },
    /// The device does not support a setting.
    #[error("{device}: {problem}")]
    Setting {
        /// The device.
        device: String,
        /// What is wrong with the setting.
        problem: String,
    },
    /// The program is not installed.
    #[error("{device}: the program `{program}` is not on this machine; {remedy}")]
    Missing {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// How to install it.
        remedy: String,
    },
    /// The user that the program must run as does not exist.
    #[error(
        "{device}: this machine has no user `{user}`; when root starts the device, it must run as this user"
    )]
    User {
        /// The device.
        device: String,
        /// The user.
        user: String,
    },
    /// The device cannot listen on its address.
    #[error("{device} cannot listen at {address}: {source}")]
    Address {
        /// The device.
        device: String,
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A program of the device failed or did not become ready.
    #[error("{device}: {problem}{messages}")]
    Failed {
        /// The device.
        device: String,
        /// What happened.
        problem: String,
        /// The last lines of its output, each on its own line; may be empty.
        messages: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The system cannot start a process.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Converts the error of a file operation, for `map_err`.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { action, path, source }
    }
}

/// The result of operations on devices.
pub type Result<T> = std::result::Result<T, Error>;
