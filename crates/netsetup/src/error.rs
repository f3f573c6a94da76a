//! What can go wrong when the network of this host is changed.

use std::io;
use std::path::{Path, PathBuf};

/// The result of a change.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the network of this host was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the ledger, or of the kernel's settings.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A program that changes the network is not installed.
    #[error("the program `{program}` is needed and not installed: install the package {package}")]
    Missing {
        /// The program.
        program: String,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// A program that changes the network failed.
    #[error("`{command}` failed: {message}")]
    Program {
        /// The command line.
        command: String,
        /// What the program printed, without the line end.
        message: String,
    },
    /// The kernel refused a request.
    #[error("{what}: {error}")]
    System {
        /// What was asked for.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no interface of this name.
    #[error("there is no network interface {name} on this host; there are {}", known.join(", "))]
    NoInterface {
        /// The name.
        name: String,
        /// The names of the interfaces that exist.
        known: Vec<String>,
    },
    /// Recorded changes of a process that is still running.
    #[error("`{purpose}` is running and uses these changes: stop it first")]
    InUse {
        /// What the changes were made for.
        purpose: String,
    },
    /// The change needs rights that this process does not have.
    #[error("{what} needs root: run the command with sudo, or give the program the capability CAP_NET_ADMIN")]
    NotRoot {
        /// What was asked for.
        what: String,
    },
}

impl Error {
    /// An error of a file.
    pub fn file(path: &Path, error: io::Error) -> Error {
        Error::File { path: path.to_owned(), error }
    }
}
