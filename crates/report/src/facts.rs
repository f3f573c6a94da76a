//! The facts of a run: the data from which verdict, reports and tables are made.

use polygraph_stats::{ClockAhead, EndReason, ErrorKind, Header, PlannedLoad, Side};

use crate::scope::Scope;
use crate::series::SeriesPoint;
use crate::usage::{DeviceEnd, UsageSample};
use crate::verdict::{Tested, Verdict};

/// How a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseEnd {
    /// The goal of the phase was met.
    Complete,
    /// The phase ended before its goal was met.
    CutShort,
    /// The log ends during the phase.
    Unended,
    /// The phase never started.
    NotReached,
}

impl PhaseEnd {
    /// The state in words.
    pub fn text(self) -> &'static str {
        match self {
            PhaseEnd::Complete => "complete",
            PhaseEnd::CutShort => "cut short",
            PhaseEnd::Unended => "log ended in this phase",
            PhaseEnd::NotReached => "not reached",
        }
    }
}

/// A phase as all processes of one side saw it.
#[derive(Clone, Debug)]
pub struct PhaseFacts {
    /// Name, for example `meas`.
    pub name: String,
    /// Whether results are taken from this phase.
    pub primary: bool,
    /// Planned duration in seconds, if it has one.
    pub goal_duration_s: Option<f64>,
    /// Planned number of transactions of all processes together, if it has one.
    pub goal_xactions: Option<u64>,
    /// Planned load; `None` if the phase was not planned.
    pub load: Option<PlannedLoad>,
    /// Start of the phase, in seconds since the start of the run; `None` if it did not start.
    pub begin_s: Option<f64>,
    /// End of its last interval, in seconds since the start of the run.
    pub end_s: Option<f64>,
    /// Seconds of the phase without statistics although the phase continued: the maximum over all processes.
    pub lost_s: f64,
    /// How the phase ended: the worst end in any process.
    pub end: PhaseEnd,
    /// Statistics of the phase; `None` if nothing was counted.
    pub scope: Option<Scope>,
    /// Statistics of the part of the phase in which all origin servers are known to have been running; `None` if, as
    /// far as is known, they were always running.
    pub sound: Option<Scope>,
}

impl PhaseFacts {
    /// Whether the load changes as planned.
    pub fn is_ramp(&self) -> bool {
        self.load.is_some_and(|load| !load.is_steady())
    }

    /// The mean of the planned load as a share of the full rate; `None` if the plan does not tell it.
    pub fn mean_load(&self) -> Option<f64> {
        // A ramp over transactions is slow at first.
        self.load.filter(|load| load.is_steady() || self.goal_duration_s.is_some()).map(|load| load.mean)
    }

    /// Statistics of the time in which the origin servers were running; `None` if nothing was counted.
    pub fn evidence(&self) -> Option<&Scope> {
        self.sound.as_ref().or(self.scope.as_ref()).filter(|_| self.scope.is_some())
    }
}

/// The facts of one process.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// Name of its log.
    pub log: String,
    /// Header of the log, which describes the run.
    pub header: Header,
    /// Why the process ended; `None` if the log was not closed.
    pub end: Option<EndReason>,
    /// Number of unfinished transactions at the end.
    pub unfinished: Option<u64>,
    /// Start of the process in seconds since the start of the run.
    pub begin_s: f64,
    /// Time of the last record in seconds since the start of the run.
    pub last_s: f64,
    /// Longest interval in seconds.
    pub interval_s: f64,
    /// When the intervals of the log were, in their order.
    pub intervals: Vec<IntervalTime>,
    /// Missing parts of the log, in sentences.
    pub missing: Vec<String>,
    /// Number of successful transactions.
    pub succeeded: u64,
    /// Number of started transactions.
    pub started: u64,
    /// How the clocks of servers differ from that of the robots of this process.
    pub clock: ClockAhead,
    /// Stalls of the process, in seconds since the start of the run.
    pub stalls: Vec<(f64, f64)>,
}

/// When an interval was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalTime {
    /// Index of its phase in the plan.
    pub phase: u32,
    /// Start of the interval, in nanoseconds since the start of the process.
    pub begin_ns: u64,
    /// End of the interval, in nanoseconds since the start of the process.
    pub end_ns: u64,
}

/// An example of an error.
#[derive(Clone, Debug)]
pub struct ErrorExample {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Its class.
    pub kind: ErrorKind,
    /// What was found, in one line.
    pub detail: String,
    /// Facts of both sides by name.
    pub facts: Vec<(String, String)>,
}

/// So many transactions must end after a time to show that they went on.
const WENT_ON_LEAST: f64 = 50.0;
/// Largest share of failed transactions, if they went on.
const WENT_ON_FAILED: f64 = 0.03;
/// Largest share of the transactions that began but did not end, if they went on.
const WENT_ON_GAP: f64 = 0.1;

/// The facts of one side.
#[derive(Clone, Debug)]
pub struct SideFacts {
    /// The side.
    pub side: Side,
    /// Processes of the side; never empty.
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

    /// Whether transactions went on after this second of the run as if nothing had happened: they ended as often as they began, and
    /// few of them failed. A server that ended at this time was not asked any more, or its clock is not that of this side.
    pub fn went_on_after(&self, at_s: f64) -> bool {
        let later = || self.series.iter().filter(|point| point.at_s > at_s);
        let count = |name| later().filter_map(|point| Some(point.get(name)? * point.seconds)).sum::<f64>();
        let (begun, ended) = (count("baseline.req.rate"), count("baseline.rep.rate"));
        let failed: f64 = later().filter_map(|point| point.get("err_xact.count")).sum();
        ended >= WENT_ON_LEAST && failed <= WENT_ON_FAILED * ended && begun - ended <= WENT_ON_GAP * begun
    }

    /// Offered request rate of all processes together, per second.
    pub fn offered_rate(&self) -> Option<f64> {
        self.processes.iter().map(|process| process.header.offered_rate).sum()
    }

    /// The mean rate per second that was planned for these phases; `None` if the plan does not tell it.
    pub fn planned_rate(&self, phases: &[&PhaseFacts]) -> Option<f64> {
        let full = self.offered_rate()?;
        let lengths = || phases.iter().filter_map(|phase| Some((*phase, phase.scope.as_ref()?.seconds)));
        let planned: Option<f64> =
            lengths().map(|(phase, seconds)| Some(full * phase.mean_load()? * seconds)).sum();
        let seconds: f64 = lengths().map(|(_, seconds)| seconds).sum();
        planned.filter(|_| seconds > 0.0).map(|planned| planned / seconds)
    }
}

/// The phases of the headline figures.
#[derive(Clone, Debug)]
pub struct Headline {
    /// Names of the phases, joined with `|`.
    pub phase: String,
    /// Why these phases were selected.
    pub reason: &'static str,
    /// Statistics of the phases.
    pub scope: Scope,
    /// Statistics of the time in which all origin servers are known to have been running; see [`PhaseFacts::sound`].
    pub sound: Option<Scope>,
    /// Start of the phases, in seconds since the start of the run.
    pub begin_s: f64,
    /// End of the phases, in seconds since the start of the run.
    pub end_s: f64,
    /// Whether these are primary phases of the workload.
    pub primary: bool,
    /// The mean rate per second that was planned for them; `None` if the plan does not tell it.
    pub planned_rate: Option<f64>,
}

impl Headline {
    /// Statistics of the time in which the origin servers were running: only these are evidence about a device.
    pub fn evidence(&self) -> &Scope {
        self.sound.as_ref().unwrap_or(&self.scope)
    }
}

/// An origin server whose log ends before the robots have finished.
#[derive(Clone, Debug)]
pub struct OriginGone {
    /// Name of its log.
    pub log: String,
    /// End of its log, in seconds since the start of the run.
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
    /// The phases of the headline figures; `None` if no phase has statistics.
    pub headline: Option<Headline>,
    /// The first origin server whose log ends before the robots have finished.
    pub origin_gone: Option<OriginGone>,
    /// What was tested, as far as is known.
    pub tested: Tested,
    /// The resources that the device used over time, if the program started it; in order.
    pub device_usage: Vec<UsageSample>,
    /// How the device ended by itself, if the program started it and it did.
    pub device_end: Option<DeviceEnd>,
    /// The verdict.
    pub verdict: Verdict,
}

impl RunFacts {
    /// The side whose figures are the result: the clients, or the servers if there are no client logs.
    pub fn main_side(&self) -> &SideFacts {
        self.client.as_ref().or(self.server.as_ref()).expect("fold refuses runs without logs")
    }

    /// Both sides that have logs.
    pub fn sides(&self) -> impl Iterator<Item = &SideFacts> {
        self.client.iter().chain(&self.server)
    }

    /// Missing parts of the logs, in sentences.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.sides().flat_map(|side| &side.processes).flat_map(|process| &process.missing).map(String::as_str)
    }
}

/// Whether robots used a device, as far as is known: the log with this header does not state that there is none.
pub(crate) fn names_device(header: &Header) -> bool {
    match header.setting("device").or(header.setting("proxy")) {
        Some("none") => header.setting("SOCKS proxy").is_some_and(|socks| socks != "none"),
        _ => true,
    }
}

/// Maximum distance, in seconds, between the last intervals of two processes that end together.
const ENDS_APART_S: f64 = 0.5;

impl ProcessFacts {
    /// The value of a setting in the header of its log.
    pub fn setting(&self, wanted: &str) -> Option<&str> {
        self.header.setting(wanted)
    }

    /// Whether the robots of this process used a device, as far as is known.
    pub(crate) fn names_device(&self) -> bool {
        names_device(&self.header)
    }

    /// Whether a cache may be between the robots of this process and the servers: balancers and SOCKS proxies have none.
    pub(crate) fn may_have_cache(&self) -> bool {
        match self.setting("device") {
            Some(device) => device != "none" && device != "balancer",
            None => {
                self.setting("proxy").is_some_and(|proxy| proxy != "none")
                    || self.setting("SOCKS proxy").is_none_or(|socks| socks == "none")
            }
        }
    }

    /// Whether replies say how long they are fresh: those of tests that options describe do, and those of contents with a life cycle.
    pub(crate) fn says_how_long_fresh(&self) -> bool {
        let text = &self.header.workload_text;
        text.is_empty() || text.contains("obj_life_cycle")
    }

    /// Whether the workload may set the `Date` of replies itself (`mime_headers`, `http_headers`).
    pub(crate) fn may_set_date(&self) -> bool {
        self.header.workload_text.to_ascii_lowercase().contains("\"date")
    }

    /// Whether the process was running at this time, according to its intervals.
    pub fn lived_until(&self, at_s: f64) -> bool {
        self.last_s + self.interval_s + ENDS_APART_S >= at_s
    }
}
