//! Folds the logs of one run into the facts that verdict, reports and tables are made of.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use polygraph_stats::log::LogError;
use polygraph_stats::{EndReason, ErrorKind, Header, LogReader, ReadLog, Side};

use crate::gather;
use crate::scope::Scope;
use crate::series::{self, SeriesPoint};
use crate::source::RecordSource;
use crate::verdict::{self, Verdict};

/// A log and where it came from.
#[derive(Debug)]
pub struct Log {
    /// Name for people, usually the path.
    pub name: String,
    /// What could be read.
    pub log: ReadLog,
}

impl Log {
    /// Reads the log at `path`.
    ///
    /// # Errors
    /// If nothing of it can be used; see [`ReadLog::open`].
    pub fn open(path: &Path) -> Result<Log, LogError> {
        Ok(Log { name: path.display().to_string(), log: ReadLog::open(path)? })
    }

    /// Reads a log from `input`; `name` is for people.
    ///
    /// # Errors
    /// If nothing of it can be used; see [`ReadLog::read`].
    pub fn read(name: &str, input: impl Read) -> Result<Log, LogError> {
        let log = ReadLog::read(LogReader::new(BufReader::new(input), name)?, name)?;
        Ok(Log { name: name.to_owned(), log })
    }

    /// Reads only the header of the log at `path`.
    ///
    /// # Errors
    /// If it is no log, or has no whole header.
    pub fn header(path: &Path) -> Result<Header, LogError> {
        ReadLog::header(&mut LogReader::open(path)?, &path.display().to_string())
    }

    /// The name of a phase; a log without a plan has one phase `dflt`.
    pub fn phase_name(&self, phase: u32) -> &str {
        self.log.header.phases.get(phase as usize).map_or("dflt", |plan| &plan.name)
    }
}

/// Why logs cannot be folded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// No log at all.
    #[error("no log given")]
    NoLogs,
}

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
    /// The run over time, in windows of equal length; see [`series`].
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
    /// What was counted while the origin servers were there: all that can be held against a device.
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

/// Folds the logs of one run. Processes of the same side are taken as concurrent: their phases of the same
/// name are merged.
///
/// # Errors
/// Without logs.
pub fn fold(logs: &[Log]) -> Result<RunFacts, FoldError> {
    fold_sources(logs.iter().map(RecordSource::memory).collect())
}

/// Why files cannot be folded.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A log cannot be used at all.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The logs do not make a run.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// Folds the logs at `paths` as they are read, which takes little memory however long the run was.
///
/// # Errors
/// If a log cannot be used at all, or there is none.
pub fn fold_files(paths: &[PathBuf]) -> Result<RunFacts, FileError> {
    let sources = paths.iter().map(|path| RecordSource::open(path)).collect::<Result<_, _>>()?;
    Ok(fold_sources(sources)?)
}

fn fold_sources(sources: Vec<RecordSource<'_>>) -> Result<RunFacts, FoldError> {
    let starts = sources.iter().map(|source| source.header().start_unix_ns);
    let start_unix_ns = starts.min().ok_or(FoldError::NoLogs)?;
    let end_s = |source: &RecordSource<'_>| {
        let behind_ns = source.header().start_unix_ns - start_unix_ns;
        (behind_ns + source.extent_ns()) as f64 * 1e-9
    };
    let window_s = series::window_s(sources.iter().map(end_s).fold(0.0, f64::max));
    let (clients, servers): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|source: &RecordSource<'_>| source.header().side == Side::Client);
    let robots_end_s = clients.iter().map(end_s).reduce(f64::max);
    let server = gather::side(servers, Side::Server, start_unix_ns, window_s, None);
    let origin_gone = server.as_ref().zip(robots_end_s).and_then(|(side, end_s)| first_gone(side, end_s));
    let sound_until_s = origin_gone.as_ref().map(|gone| gone.at_s - CLOCKS_APART_S);
    let client = gather::side(clients, Side::Client, start_unix_ns, window_s, sound_until_s);
    let headline = client.as_ref().or(server.as_ref()).and_then(headline);
    let device = !client.as_ref().is_some_and(|client| asked_directly(client, server.as_ref()));
    let mut facts = RunFacts {
        start_unix_ns,
        client,
        server,
        headline,
        origin_gone,
        device,
        verdict: Verdict::default(),
    };
    facts.verdict = verdict::judge(&facts);
    Ok(facts)
}

/// By so many seconds the clocks of two hosts may differ when one asks what was first.
const CLOCKS_APART_S: f64 = 1.0;
/// Ends of intervals of two processes that end together are not further apart.
const ENDS_APART_S: f64 = 0.5;

impl ProcessFacts {
    /// Whether the process was there at that moment, as far as its intervals tell.
    pub fn lived_until(&self, at_s: f64) -> bool {
        self.last_s + self.interval_s + ENDS_APART_S >= at_s
    }
}

/// The first server process of which nothing is known before the robots are done. A log that was closed in order ends
/// with the process; one that was not may have lost its last interval.
fn first_gone(servers: &SideFacts, robots_end_s: f64) -> Option<OriginGone> {
    let gone = servers.processes.iter().filter(|process| match process.end {
        Some(_) => !process.lived_until(robots_end_s),
        None => process.last_s < robots_end_s,
    });
    let first = gone.min_by(|a, b| a.last_s.total_cmp(&b.last_s))?;
    Some(OriginGone { log: first.log.clone(), at_s: first.last_s })
}

/// Whether robots and origin servers had nothing between them: the client says so, or its only target is where the
/// servers of the command line listen.
fn asked_directly(client: &SideFacts, server: Option<&SideFacts>) -> bool {
    let setting = |header: &Header, wanted: &str| {
        header.settings.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
    };
    client.processes.iter().all(|process| {
        let header = &process.header;
        if let Some(device) = setting(header, "device") {
            return device == "none";
        }
        let listening = server.and_then(|side| setting(side.header(), "addresses"));
        setting(header, "proxy").is_some_and(|proxy| proxy == "none")
            && header.workload_text.is_empty()
            && listening.is_some()
            && setting(header, "origins") == listening
    })
}

/// The logs of one side.
pub(crate) fn of_side(logs: &[Log], side: Side) -> Vec<&Log> {
    logs.iter().filter(|log| log.log.header.side == side).collect()
}

/// Seconds by which the time of a log lies behind that of the run.
pub(crate) fn offset_s(log: &Log, start_unix_ns: u64) -> f64 {
    log.log.header.start_unix_ns.saturating_sub(start_unix_ns) as f64 * 1e-9
}

/// The phases of logs of one side, merged by name, in the order of the plans.
pub(crate) fn fold_phases(logs: &[&Log], start_unix_ns: u64) -> Vec<PhaseFacts> {
    let Some(side) = logs.first().map(|log| log.log.header.side) else { return Vec::new() };
    let sources = logs.iter().map(|log| RecordSource::memory(log)).collect();
    gather::side(sources, side, start_unix_ns, f64::INFINITY, None).map_or_else(Vec::new, |side| side.phases)
}

/// Headline figures come from the primary phases. If none of them counted anything, the last phase with the
/// highest offered rate (within 1 %) stands in, and says so.
fn headline(side: &SideFacts) -> Option<Headline> {
    let primary: Vec<_> = side.phases.iter().filter(|phase| phase.primary && phase.scope.is_some()).collect();
    let (chosen, reason) = if primary.is_empty() {
        let offered = |phase: &PhaseFacts| {
            phase.scope.as_ref().and_then(|scope| scope.rate(scope.block.xacts.entered as f64)).unwrap_or(0.0)
        };
        let peak = side.phases.iter().map(offered).fold(0.0, f64::max);
        let busiest =
            side.phases.iter().rfind(|phase| phase.scope.is_some() && offered(phase) >= 0.99 * peak)?;
        (vec![busiest], "no primary phase was measured; this is the last one with the highest offered load")
    } else {
        (primary, "the phase that the workload measures")
    };
    Some(Headline {
        phase: chosen.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>().join("|"),
        reason,
        scope: Scope::sequential(chosen.iter().filter_map(|phase| phase.scope.as_ref()))?,
        sound: chosen.iter().any(|phase| phase.sound.is_some()).then(|| {
            Scope::sequential(chosen.iter().filter_map(|phase| phase.sound.as_ref())).unwrap_or_default()
        }),
        begin_s: chosen.iter().filter_map(|phase| phase.begin_s).reduce(f64::min)?,
        end_s: chosen.iter().filter_map(|phase| phase.end_s).reduce(f64::max)?,
        primary: chosen.iter().any(|phase| phase.primary),
    })
}
