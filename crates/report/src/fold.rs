//! Folds the logs of one run into the facts from which verdict, reports and tables are made.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::PathBuf;

use polygraph_stats::log::LogError;
use polygraph_stats::record::environment;
use polygraph_stats::{EndReason, LogFile, Record, Side};

use crate::facts::{Headline, OriginGone, PhaseFacts, ProcessFacts, RunFacts, SideFacts};
use crate::judge::{ERRORS_MAX, answered_otherwise, judge};
use crate::scope::Scope;
use crate::series;
use crate::source::{LogSource, of_side};
use crate::verdict::{Tested, Verdict};
use crate::{clocks, gather};

/// Why logs cannot be folded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// There are no logs.
    #[error("no log given")]
    NoLogs,
}

/// Folds the logs of one run. Processes of the same side count as concurrent: their phases with the same name are
/// merged.
///
/// # Errors
/// If there are no logs.
pub fn fold<S: LogSource>(logs: &[S]) -> Result<RunFacts, FoldError> {
    let facts = fold_as_they_are(logs)?;
    match clocks::corrected(&facts, logs) {
        Some(corrected) => fold_as_they_are(&corrected),
        None => Ok(facts),
    }
}

/// Folds logs whose times are those of one clock.
fn fold_as_they_are<S: LogSource>(logs: &[S]) -> Result<RunFacts, FoldError> {
    let start_unix_ns = start_of(logs).ok_or(FoldError::NoLogs)?;
    let end_s = |log: &S| {
        let behind_ns = log.header().start_unix_ns.saturating_sub(start_unix_ns);
        (behind_ns + log.extent_ns()) as f64 * 1e-9
    };
    let window_s = series::window_s(logs.iter().map(end_s).fold(0.0, f64::max));
    let robots_end_s = of_side(logs, Side::Client).into_iter().map(end_s).reduce(f64::max);
    let side = |side, sound_until_s| gather::side(logs, side, start_unix_ns, window_s, sound_until_s);
    // Each side is read by its own thread: a long run is folded in little more than half the time.
    let (server, client) = std::thread::scope(|scope| {
        let server = robots_end_s.map(|_| scope.spawn(|| side(Side::Server, None)));
        let client = side(Side::Client, None);
        let server = server.map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (server.unwrap_or_else(|| side(Side::Server, None)), client)
    });
    let origin_gone =
        server.as_ref().zip(robots_end_s).and_then(|(side, end_s)| first_gone(side, client.as_ref(), end_s));
    let client = match &origin_gone {
        // It is only now known until when the statistics of the robots are sound.
        Some(gone) => side(Side::Client, Some(gone.at_s - CLOCKS_APART_S)),
        None => client,
    };
    let headline = client.as_ref().or(server.as_ref()).and_then(headline);
    let tested = tested(client.as_ref(), server.as_ref());
    let mut facts = RunFacts {
        start_unix_ns,
        client,
        server,
        headline,
        origin_gone,
        tested,
        device_usage: logs
            .iter()
            .map(LogSource::device_usage)
            .find(|usage| !usage.is_empty())
            .unwrap_or_default(),
        device_end: logs.iter().find_map(LogSource::device_end),
        verdict: Verdict::default(),
    };
    facts.verdict = judge(&facts);
    Ok(facts)
}

/// When the first process started, in nanoseconds since 1970. One that left no statistics may have waited for long.
fn start_of<S: LogSource>(logs: &[S]) -> Option<u64> {
    let starts = |all: bool| {
        logs.iter().filter(move |log| all || log.extent_ns() > 0).map(|log| log.header().start_unix_ns)
    };
    starts(false).min().or(starts(true).min())
}

/// Folds logs one after the other, phase by phase, without series and verdict. `each` sees all records with the number
/// of their log, in order.
pub fn fold_in_turn<S: LogSource>(logs: &[S], each: impl FnMut(usize, Cow<'_, Record>)) -> Vec<SideFacts> {
    gather::in_turn(logs, start_of(logs).unwrap_or(0), each)
}

/// Why files cannot be folded.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A log is unreadable.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The logs cannot be folded.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// Folds the logs at `paths` while they are read, which takes little memory even for long runs.
///
/// # Errors
/// If a log is unreadable, or there are no logs.
pub fn fold_files(paths: &[PathBuf]) -> Result<RunFacts, FileError> {
    let logs = paths.iter().map(|path| LogFile::open(path)).collect::<Result<Vec<_>, _>>()?;
    Ok(fold(&logs)?)
}

/// So many seconds before a server ended are looked at for failures that came before.
const FAILED_BEFORE_S: f64 = 5.0;
/// Maximum difference, in seconds, between the clocks of two hosts that is tolerated when events are ordered.
const CLOCKS_APART_S: f64 = 1.0;
/// The first server process whose log ends before the robots have finished. A log that was closed ends with the
/// process; a log that was not closed may lack its last interval.
fn first_gone(servers: &SideFacts, robots: Option<&SideFacts>, robots_end_s: f64) -> Option<OriginGone> {
    // Requests that went to other servers, or came from a store, did not need this one.
    let went_on = |process: &ProcessFacts| {
        robots.is_some_and(|robots| robots.went_on_after(process.last_s + CLOCKS_APART_S))
    };
    let gone = servers.processes.iter().filter(|process| match process.end {
        // A device that fails leaves its servers without traffic.
        Some(EndReason::Idle) if robots.is_some_and(|robots| failed_before(robots, process.last_s)) => false,
        // A device that answers by itself needs no server. Besides, the time at which this one ended may be that of another clock.
        Some(_) if process.started == 0 && robots.is_some_and(answered_otherwise) => false,
        Some(_) => !process.lived_until(robots_end_s) && !went_on(process),
        // The last interval of a process that was killed is missing.
        None => process.last_s < robots_end_s && !went_on(process),
    });
    let first = gone.min_by(|a, b| a.last_s.total_cmp(&b.last_s))?;
    Some(OriginGone { log: first.log.clone(), at_s: first.last_s })
}

/// Whether too many transactions already failed in the last seconds before `at_s`.
fn failed_before(robots: &SideFacts, at_s: f64) -> bool {
    let points =
        robots.series.iter().filter(|point| point.at_s <= at_s && point.at_s > at_s - FAILED_BEFORE_S);
    let (failed, ended) = points.fold((0.0, 0.0), |(failed, ended), point| {
        let ended_here = point.get("baseline.rep.rate").unwrap_or(0.0) * point.seconds;
        (failed + point.get("err_xact.count").unwrap_or(0.0), ended + ended_here)
    });
    failed > ERRORS_MAX * ended
}

/// What robots sent their requests to. Where no log tells of the servers and robots name no device, it is what answers at the address
/// of the servers.
fn tested(client: Option<&SideFacts>, server: Option<&SideFacts>) -> Tested {
    let Some(client) = client.filter(|client| asked_directly(client, server)) else { return Tested::Device };
    let asked: BTreeSet<&str> =
        client.processes.iter().filter_map(|process| process.setting("origins")).collect();
    let says_none = client.processes.iter().all(|process| process.setting("device").is_some());
    match server.is_some() || says_none {
        true => Tested::Bench,
        false => Tested::Servers(asked.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// Whether there was no device between robots and origin servers: the client's log states this, or its only target is
/// the address at which the servers of the command line listen, as far as logs tell where these are.
fn asked_directly(client: &SideFacts, server: Option<&SideFacts>) -> bool {
    client.processes.iter().all(|process| {
        if let Some(device) = process.setting("device") {
            return device == "none";
        }
        process.setting("proxy") == Some("none")
            && process.setting("SOCKS proxy").is_none_or(|socks| socks == "none")
            && process.header.workload_text.is_empty()
            && server.map_or(process.setting("origins").is_some(), |side| {
                asked_at_its_address(process, &side.processes[0])
            })
    })
}

/// Whether the robots of a client asked where the server listens. One that listens at all addresses of its host states the host's name.
fn asked_at_its_address(client: &ProcessFacts, server: &ProcessFacts) -> bool {
    let (Some(asked), Some(listening)) = (client.setting("origins"), server.setting("addresses")) else {
        return false;
    };
    let host = server.header.environment(environment::HOST);
    let is_here = host.is_some() && client.header.environment(environment::HOST) == host;
    let at_all = |port: u16| host.is_some_and(|host| listening == format!("{host}:{port}"));
    let of_loopback = |asked: SocketAddr| is_here && asked.ip().is_loopback() && at_all(asked.port());
    asked == listening || asked.parse().is_ok_and(of_loopback)
}

/// Headline figures come from the primary phases. If none of them counted anything, the last phase with the
/// highest offered rate (within 1 %) replaces them, and the result says so.
fn headline(side: &SideFacts) -> Option<Headline> {
    let primary: Vec<_> = side.phases.iter().filter(|phase| phase.primary && phase.scope.is_some()).collect();
    let (chosen, reason) = if primary.is_empty() {
        let offered = |phase: &PhaseFacts| {
            phase.scope.as_ref().and_then(|scope| scope.rate(scope.block.xacts.entered as f64)).unwrap_or(0.0)
        };
        let peak = side.phases.iter().map(offered).fold(0.0, f64::max);
        let busiest =
            side.phases.iter().rfind(|phase| phase.scope.is_some() && offered(phase) >= 0.99 * peak)?;
        (vec![busiest], "no primary phase was measured; this is the last phase with the highest offered load")
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
        planned_rate: side.planned_rate(&chosen),
    })
}
