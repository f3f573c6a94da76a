//! Why a fleet could not do something.

use std::path::PathBuf;

use crate::names::AgentName;
use crate::protocol::DecodeError;

/// Why a fleet could not do something.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The program lacks the client of NATS.
    #[error(
        "this program was built without the client of NATS: build it with `cargo build --release --features fleet`, use a released one, or \
         start agents with ssh (docs/fleet.md)"
    )]
    NotBuilt,
    /// Options contradict each other, or the workload cannot be divided.
    #[error("{0}")]
    Usage(String),
    /// The server of NATS cannot be reached, or refuses something.
    #[error("NATS: {0}")]
    Nats(String),
    /// A connection over ssh does not do what it should.
    #[error("ssh: {0}")]
    Ssh(String),
    /// An agent did not answer.
    #[error("the agent {agent} does not answer ({what})")]
    Silent {
        /// The agent.
        agent: AgentName,
        /// What it was asked.
        what: &'static str,
    },
    /// No agent of this name is connected to NATS.
    #[error("the agent {agent} is not there ({what})")]
    Absent {
        /// The agent.
        agent: AgentName,
        /// What it was to be asked.
        what: &'static str,
    },
    /// An agent refused a request.
    #[error("{agent}: {reason}")]
    Refused {
        /// The agent.
        agent: AgentName,
        /// Why it refused.
        reason: String,
    },
    /// Agents cannot work together, or are not ready.
    #[error("{}", .0.join("\n"))]
    Unfit(Vec<String>),
    /// A message is not one of this protocol.
    #[error(transparent)]
    Message(#[from] DecodeError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The system refused something.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl FleetError {
    /// Adds the name of a file to the error of the system.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> FleetError {
        let path = path.into();
        move |source| FleetError::File { path, source }
    }
}

/// The result of what fleets do.
pub type Result<T> = std::result::Result<T, FleetError>;
