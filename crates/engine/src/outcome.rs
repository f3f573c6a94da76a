//! How a run ended, or why it could not start.

use std::io;

use polygraph_stats::{EndReason, Totals};
use polygraph_traffic::store::SavedShare;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The reason for the end.
    pub reason: EndReason,
    /// Transactions of the client side, or of the server side if there is no client.
    pub totals: Totals,
    /// The working set by loop, if it was requested and all loops delivered their share.
    pub shares: Option<Vec<SavedShare>>,
}

/// Why a test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log cannot be written.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// The path of the log.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A loop cannot be started.
    #[error("an event loop cannot be started: {0}")]
    Loop(io::Error),
}
