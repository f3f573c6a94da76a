//! What the controller has to tell: the records that go to the logs of all sides, and to the console from there.

use polygraph_link::Nanos;
use polygraph_stats::{ErrorKind, Record};

/// Something that was decided or has to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// A phase begins.
    PhaseBegins {
        /// Its number.
        phase: usize,
        /// When.
        at: Nanos,
    },
    /// A phase ends. It is logged when all loops have delivered what they counted until then.
    PhaseEnds {
        /// Its number.
        phase: usize,
        /// When.
        at: Nanos,
        /// It met its goal, or had none.
        complete: bool,
    },
    /// The workload itself is at fault; the robots' side counts the error.
    Erred {
        /// When.
        at: Nanos,
        /// Class of the error.
        kind: ErrorKind,
        /// What happened.
        detail: String,
    },
    /// A line for people.
    Said {
        /// When.
        at: Nanos,
        /// Message level, see [`Record::Comment`].
        level: u8,
        /// The line.
        text: String,
    },
}

impl ControlEvent {
    /// A line for people.
    pub fn said(at: Nanos, level: u8, text: impl Into<String>) -> ControlEvent {
        ControlEvent::Said { at, level, text: text.into() }
    }

    /// The event as a record of a log of a run that started at `start`.
    pub fn record(&self, start: Nanos) -> Record {
        let since = |at: Nanos| at.saturating_sub(start);
        match *self {
            ControlEvent::PhaseBegins { phase, at } => {
                Record::PhaseBegin { at_ns: since(at), phase: phase as u32 }
            }
            ControlEvent::PhaseEnds { phase, at, complete } => {
                Record::PhaseEnd { at_ns: since(at), phase: phase as u32, complete }
            }
            ControlEvent::Erred { at, ref detail, .. } => {
                Record::Comment { at_ns: since(at), level: 0, text: format!("error: {detail}") }
            }
            ControlEvent::Said { at, level, ref text } => {
                Record::Comment { at_ns: since(at), level, text: text.clone() }
            }
        }
    }
}
