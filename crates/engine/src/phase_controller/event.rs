//! What the phase controller decides or reports. Events become records in the logs of all sides, and lines on the
//! console.

use polygraph_link::Nanos;
use polygraph_stats::{ErrorKind, Record};

/// A decision or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// A phase starts.
    PhaseStarts {
        /// The number of the phase.
        phase: usize,
        /// When it starts.
        at: Nanos,
    },
    /// A phase ends. The event is logged when all loops have delivered their statistics up to the end.
    PhaseEnds {
        /// The number of the phase.
        phase: usize,
        /// When it ends.
        at: Nanos,
        /// Whether the phase met its goal, or had none.
        complete: bool,
    },
    /// An error of the workload; the robots' side counts it.
    WorkloadError {
        /// When it occurred.
        at: Nanos,
        /// The class of the error.
        kind: ErrorKind,
        /// What happened.
        detail: String,
    },
    /// A message for the user.
    Message {
        /// When it was written.
        at: Nanos,
        /// The message level, see [`Record::Comment`].
        level: u8,
        /// The text.
        text: String,
    },
}

impl ControlEvent {
    /// A message for the user.
    pub fn message(at: Nanos, level: u8, text: impl Into<String>) -> ControlEvent {
        ControlEvent::Message { at, level, text: text.into() }
    }

    /// The record of the event in the log of a run that started at `start`.
    pub fn record(&self, start: Nanos) -> Record {
        let since = |at: Nanos| at.saturating_sub(start);
        match *self {
            ControlEvent::PhaseStarts { phase, at } => {
                Record::PhaseBegin { at_ns: since(at).as_u64(), phase: phase as u32 }
            }
            ControlEvent::PhaseEnds { phase, at, complete } => {
                Record::PhaseEnd { at_ns: since(at).as_u64(), phase: phase as u32, complete }
            }
            ControlEvent::WorkloadError { at, ref detail, .. } => {
                Record::Comment { at_ns: since(at).as_u64(), level: 0, text: format!("error: {detail}") }
            }
            ControlEvent::Message { at, level, ref text } => {
                Record::Comment { at_ns: since(at).as_u64(), level, text: text.clone() }
            }
        }
    }
}
