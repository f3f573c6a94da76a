//! Whether logs come from one run: the rule `mixed` of the verdict. Tools that merge logs without a verdict warn of the same.

use polygraph_stats::{Header, Side};

use crate::facts::{ProcessFacts, RunFacts, SideFacts, names_device};
use crate::text::duration;

/// Name of the rule about logs of several runs.
pub(crate) const MIXED: &str = "mixed";
/// Processes of one run start within this many seconds.
pub(crate) const STARTS_APART_S: u64 = 300;
/// Clients whose logs end within so many seconds have measured for the same time.
const ENDS_APART_S: f64 = 1.0;

/// What a log says about the run that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOfRun<'a> {
    /// Name of the log.
    pub(crate) log: &'a str,
    /// Description of the process.
    pub(crate) header: &'a Header,
    /// Start of the process, in seconds since the start of the run.
    pub(crate) begin_s: f64,
    /// Time of the last interval, in seconds since the start of the run.
    pub(crate) last_s: f64,
    /// Whether the log was closed.
    pub(crate) closed: bool,
}

impl<'a> From<&'a ProcessFacts> for LogOfRun<'a> {
    fn from(process: &'a ProcessFacts) -> LogOfRun<'a> {
        LogOfRun {
            log: &process.log,
            header: &process.header,
            begin_s: process.begin_s,
            last_s: process.last_s,
            closed: process.end.is_some(),
        }
    }
}

impl LogOfRun<'_> {
    fn is_client(&self) -> bool {
        self.header.side == Side::Client
    }
}

/// A reason to doubt that logs come from one run.
#[derive(Debug)]
pub(crate) struct Mixture {
    /// The reason, a sentence.
    pub(crate) text: String,
    /// Whether it is certain that the figures of these logs together are those of no run.
    pub(crate) certain: bool,
}

/// Why the logs of these sides do not, or may not, come from one run, in sentences.
pub fn mixed(sides: &[SideFacts]) -> Vec<String> {
    let processes = sides.iter().flat_map(|side| &side.processes);
    sentences(&processes.map(LogOfRun::from).collect::<Vec<_>>())
}

/// The same of the logs of a run, with their certainty.
pub(crate) fn of_run(facts: &RunFacts) -> Vec<Mixture> {
    let processes = facts.sides().flat_map(|side| &side.processes);
    mixtures(&processes.map(LogOfRun::from).collect::<Vec<_>>())
}

/// Why these logs do not, or may not, come from one run, in sentences.
pub(crate) fn sentences(logs: &[LogOfRun<'_>]) -> Vec<String> {
    mixtures(logs).into_iter().map(|mixture| mixture.text).collect()
}

/// Why these logs do not, or may not, come from one run. Most reasons are doubts, because clocks of hosts may differ and servers may have
/// started long before.
fn mixtures(logs: &[LogOfRun<'_>]) -> Vec<Mixture> {
    let certain = |text| Mixture { text, certain: true };
    let doubt = |text| Mixture { text, certain: false };
    if let Some(text) = clients_apart(logs).or_else(|| goals_apart(logs)) {
        return vec![certain(text)];
    }
    // Servers whose options are on a command line cannot know what the workload is.
    let named: Vec<&Header> =
        logs.iter().map(|log| log.header).filter(|header| header.workload != "command line").collect();
    [
        differ("versions of the program", logs.iter().map(|log| &*log.header.version)).map(doubt),
        differ("workloads", named.iter().map(|header| &*header.workload)).map(doubt),
        texts_differ(&named).map(doubt),
        proxies_differ(logs).map(certain),
        starts_apart(logs).map(doubt),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn differ<'a>(what: &str, values: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut values: Vec<&str> = values.collect();
    values.sort_unstable();
    values.dedup();
    let list = || values.join(", ");
    (values.len() > 1).then(|| format!("the logs may not come from one run: {what} differ ({})", list()))
}

fn texts_differ(named: &[&Header]) -> Option<String> {
    let differ = named
        .windows(2)
        .any(|pair| pair[0].workload == pair[1].workload && pair[0].workload_text != pair[1].workload_text);
    differ.then(|| {
        "the text of the workload differs between processes: settings or files changed between their starts".to_owned()
    })
}

/// Whether the options of some robots name a device, and those of others none.
fn proxies_differ(logs: &[LogOfRun<'_>]) -> Option<String> {
    let (through, direct): (Vec<&LogOfRun<'_>>, Vec<&LogOfRun<'_>>) = logs
        .iter()
        .filter(|log| log.is_client() && log.header.workload_text.is_empty())
        .filter(|log| log.header.setting("proxy").is_some())
        .partition(|log| names_device(log.header));
    let (through, direct) = (through.first()?.log, direct.first()?.log);
    Some(format!(
        "robots of {through} used a proxy, and those of {direct} used none (--proxy): their figures together are those of no device"
    ))
}

fn starts_apart(logs: &[LogOfRun<'_>]) -> Option<String> {
    let starts = || logs.iter().map(|log| log.header.start_unix_ns);
    let apart_s = (starts().max()? - starts().min()?) / 1_000_000_000;
    (apart_s > STARTS_APART_S).then(|| {
        format!("the logs may not come from one run: the first process started {apart_s} s before the last")
    })
}

/// Whether a client had ended before another one started: together, their figures are those of no run.
fn clients_apart(logs: &[LogOfRun<'_>]) -> Option<String> {
    // One that was killed at the start may have been replaced.
    let clients = || logs.iter().filter(|log| log.is_client() && log.closed);
    let ended_first = clients().min_by(|a, b| a.last_s.total_cmp(&b.last_s))?;
    let began_last = clients().max_by(|a, b| a.begin_s.total_cmp(&b.begin_s))?;
    (began_last.begin_s > ended_first.last_s).then(|| {
        format!(
            "the logs come from several runs: the client of {} had ended before that of {} started (or the clocks of their hosts \
             differ); look at one run at a time, and compare runs with `polygraph compare`",
            ended_first.log, began_last.log
        )
    })
}

/// Whether clients have other plans for the length of a primary phase than others: in its last part, some robots were missing.
fn goals_apart(logs: &[LogOfRun<'_>]) -> Option<String> {
    let goals = |log: &LogOfRun<'_>| -> Vec<(String, Option<f64>)> {
        let primary = log.header.phases.iter().filter(|phase| phase.primary);
        primary.map(|phase| (phase.name.clone(), phase.duration_s)).collect()
    };
    let text = |log: &LogOfRun<'_>| {
        let phases = goals(log);
        let text = |(name, duration_s): &(String, Option<f64>)| match duration_s {
            Some(duration_s) => format!("{name} for {}", duration(*duration_s)),
            None => format!("{name} without a time"),
        };
        format!("{} ({})", phases.iter().map(text).collect::<Vec<_>>().join(", "), log.log)
    };
    // Clients that synchronize their phases end them together, whatever each of them plans.
    let apart = |a: &LogOfRun<'_>, b: &LogOfRun<'_>| (a.last_s - b.last_s).abs() > ENDS_APART_S;
    let clients: Vec<&LogOfRun<'_>> = logs.iter().filter(|log| log.is_client()).collect();
    let (first, other) = clients
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(a, b)| goals(a) != goals(b) && apart(a, b) && a.closed && b.closed)?;
    Some(format!(
        "clients measured for different times, so that the load was not the same throughout: {} and {}; start all with the same --goal and \
         phases",
        text(first),
        text(other)
    ))
}
