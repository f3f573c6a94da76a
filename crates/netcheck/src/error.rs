//! What keeps a check from measuring.

use std::fmt::Display;
use std::io;

/// The result of a check.
pub type CheckResult<T> = std::result::Result<T, Error>;

/// Why a check has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process may not do what the check needs.
    #[error("{what} needs root: run the command with sudo, or give the program the capability {capability}")]
    Privilege {
        /// What was asked for.
        what: &'static str,
        /// The capability of Linux that allows it.
        capability: &'static str,
    },
    /// What was asked for does not fit together.
    #[error("{0}")]
    Request(String),
    /// This host cannot do what the check needs.
    #[error("{what}: {error}")]
    Host {
        /// What was tried.
        what: String,
        /// What the system says.
        error: io::Error,
    },
    /// The other side does not do what the check needs.
    #[error("{0}")]
    Peer(String),
}

impl Error {
    /// An obstacle on this host.
    pub fn host(what: impl Display, error: io::Error) -> Error {
        Error::Host { what: what.to_string(), error }
    }
}
