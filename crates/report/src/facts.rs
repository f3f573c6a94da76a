//! The facts of a run: what verdict, reports and tables are made of.

use polygraph_stats::{EndReason, ErrorKind, Header, Side};

use crate::scope::Scope;
use crate::series::SeriesPoint;
use crate::verdict::Verdict;

/// How a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseEnd {
    /// Its goal was met.
    Complete,
    /// It was ended before its goal was met.
    CutShort,
    /// The log stops in it.
    Unended,
    /// It never began.
    NotReached,
}

impl PhaseEnd {
    /// The state in words.
    pub fn text(self) -> &'static str {
        match self {
            PhaseEnd::Complete => "complete",
            PhaseEnd::CutShort => "cut short",
            PhaseEnd::Unended => "log ends in it",
            PhaseEnd::NotReached => "not reached",
        }
    }
}

/// A phase as all processes of one side saw it.
#[derive(Clone, Debug)]
pub struct PhaseFacts {
    /// Name, for example `meas`.
    pub name: String,
    /// Results are taken from this phase.
    pub primary: bool,
    /// Planned duration in seconds, if it has one.
    pub goal_duration_s: Option<f64>,
    /// Planned number of transactions of all processes together, if it has one.
    pub goal_xactions: Option<u64>,
    /// When it began, in seconds since the start of the run; `None` if it did not.
    pub begin_s: Option<f64>,
    /// When its last interval ended, in seconds since the start of the run.
    pub end_s: Option<f64>,
    /// Seconds of it that no interval covers although it went on: the most that any process lost.
    pub lost_s: f64,
    /// How it ended: the worst that happened to it in any process.
    pub end: PhaseEnd,
    /// What was counted; `None` if nothing was.
    pub scope: Option<Scope>,
    /// The part of it that was counted while all origin servers are known to have been there; `None` if they were all
    /// the time, as far as is known.
    pub sound: Option<Scope>,
}

impl PhaseFacts {
    /// What was counted while the origin servers were there; `None` if nothing was counted at all.
    pub fn evidence(&self) -> Option<&Scope> {
        self.sound.as_ref().or(self.scope.as_ref()).filter(|_| self.scope.is_some())
    }
}

/// What is known of one process.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// Name of its log.
    pub log: String,
    /// What the run is.
    pub header: Header,
    /// Why it ended; `None` if the log was not closed.
    pub end: Option<EndReason>,
    /// Transactions still running at the end.
    pub unfinished: Option<u64>,
    /// Time of the last record in seconds since the start of the run.
    pub last_s: f64,
    /// Its longest interval in seconds.
    pub interval_s: f64,
    /// What is missing, in sentences.
    pub missing: Vec<String>,
    /// Times in which it stood still, in seconds since the start of the run.
    pub stalls: Vec<(f64, f64)>,
}

/// An example of an error.
#[derive(Clone, Debug)]
pub struct ErrorExample {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Its class.
    pub kind: ErrorKind,
    /// What was seen, in one line.
    pub detail: String,
    /// Facts of both sides by name.
    pub facts: Vec<(String, String)>,
}

/// Everything known of one side.
#[derive(Clone, Debug)]
pub struct SideFacts {
    /// Which side.
    pub side: Side,
    /// Its processes; never empty.
    pub processes: Vec<ProcessFacts>,
    /// The phases in the order of the plan.
    pub phases: Vec<PhaseFacts>,
    /// All phases together; `None` if nothing was counted.
    pub total: Option<Scope>,
    /// The run over time, in windows of equal length; see [`series`](crate::series).
    pub series: Vec<SeriesPoint>,
    /// The first examples of each class of errors.
    pub samples: Vec<ErrorExample>,
}

impl SideFacts {
    /// Header of the first process.
    pub fn header(&self) -> &Header {
        &self.processes[0].header
    }

    /// The phase with that name.
    pub fn phase(&self, name: &str) -> Option<&PhaseFacts> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Offered request rate of all processes together, per second.
    pub fn offered_rate(&self) -> Option<f64> {
        self.processes.iter().map(|process| process.header.offered_rate).sum()
    }
}

/// The phases that the headline figures come from.
#[derive(Clone, Debug)]
pub struct Headline {
    /// Their names, joined with `|`.
    pub phase: String,
    /// Why these.
    pub reason: &'static str,
    /// What was counted in them.
    pub scope: Scope,
    /// The part of it that was counted while all origin servers are known to have been there; see [`PhaseFacts::sound`].
    pub sound: Option<Scope>,
    /// Begin and end in seconds since the start of the run.
    pub begin_s: f64,
    /// See `begin_s`.
    pub end_s: f64,
    /// Whether these are phases that were planned to be measured.
    pub primary: bool,
}

impl Headline {
    /// What was counted while the origin servers were running: only this is evidence about a device.
    pub fn evidence(&self) -> &Scope {
        self.sound.as_ref().unwrap_or(&self.scope)
    }
}

/// An origin server of which nothing is known before the robots are done.
#[derive(Clone, Debug)]
pub struct OriginGone {
    /// Name of its log.
    pub log: String,
    /// The last that is known of it, in seconds since the start of the run.
    pub at_s: f64,
}

/// The facts of a run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Time of day of the earliest process start, in nanoseconds since 1970; all times count from it.
    pub start_unix_ns: u64,
    /// The robots' side, if it has logs.
    pub client: Option<SideFacts>,
    /// The origin servers' side, if it has logs.
    pub server: Option<SideFacts>,
    /// What headline figures come from; `None` if no phase counted anything.
    pub headline: Option<Headline>,
    /// The first origin server whose log ends before the robots are done.
    pub origin_gone: Option<OriginGone>,
    /// Robots went through a device, as far as is known: nothing says that they asked the origin servers themselves.
    pub device: bool,
    /// Can it be trusted?
    pub verdict: Verdict,
}

impl RunFacts {
    /// The side whose figures are the result: the clients', or the servers' if there is no other.
    pub fn main_side(&self) -> &SideFacts {
        self.client.as_ref().or(self.server.as_ref()).expect("fold refuses runs without logs")
    }

    /// Both sides that have logs.
    pub fn sides(&self) -> impl Iterator<Item = &SideFacts> {
        self.client.iter().chain(&self.server)
    }

    /// What is missing from the logs, in sentences.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.sides().flat_map(|side| &side.processes).flat_map(|process| &process.missing).map(String::as_str)
    }
}

/// Ends of intervals of two processes that end together are not further apart.
const ENDS_APART_S: f64 = 0.5;

impl ProcessFacts {
    /// The value of a setting in the header of its log.
    pub fn setting(&self, wanted: &str) -> Option<&str> {
        self.header.settings.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// Whether the robots of this process were sent to a device, as far as is known: nothing says that there is none.
    pub(crate) fn names_device(&self) -> bool {
        self.setting("device").or(self.setting("proxy")) != Some("none")
    }

    /// Whether the process was there at that moment, as far as its intervals tell.
    pub fn lived_until(&self, at_s: f64) -> bool {
        self.last_s + self.interval_s + ENDS_APART_S >= at_s
    }
}
