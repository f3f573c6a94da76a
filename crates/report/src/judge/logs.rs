//! Whether the logs are complete and come from one run.

use std::collections::BTreeSet;

use polygraph_stats::record::settings::SERVERS;
use polygraph_stats::{EndReason, ErrorKind};

use super::blame::{self, Blame, ERRORS_MAX, failed_by, relayed};
use super::{FAILURES, FindingSeverity, Findings, LimitingParty};
use crate::facts::{PhaseEnd, PhaseFacts, ProcessFacts, RunFacts, SideFacts};
use crate::failover::{self, Failover};
use crate::mixed::{self, MIXED};
use crate::verdict::{Tested, VerdictFinding};

/// Name of the rule about logs of one side only.
const ONE_SIDE: &str = "one side";
/// Name of the rule about servers that robots did not ask.
const ELSEWHERE: &str = "elsewhere";
/// Largest share of the primary phase that may have no statistics.
pub(super) const LOST_MAX: f64 = 0.02;
/// Seconds of the primary phase that may have no statistics, even in a short phase: one and a half intervals.
pub(super) const LOST_LEAST_S: f64 = 1.5;

pub(super) fn interrupted(facts: &RunFacts, found: &mut Findings) {
    facts.client.iter().flat_map(|side| &side.processes).for_each(|process| client(process, found));
    // A signal or an idle time-out stops servers when the robots are done; they need to run only until the end of the primary
    // phase.
    let needed_s = facts.headline.as_ref().map_or(0.0, |headline| headline.end_s);
    for process in facts.server.iter().flat_map(|side| &side.processes) {
        let client = facts.client.as_ref().filter(|client| client.went_on_after(process.last_s));
        server(process, needed_s, client.map(|client| failover::of_end(client, process)), found);
    }
}

/// Who made it impossible to continue, which a process of the other side may have seen, and how.
fn could_not_continue(process: &ProcessFacts) -> Option<(LimitingParty, String)> {
    Some(match process.end.as_ref()? {
        EndReason::Fatal { side: Some(side), why } => {
            (LimitingParty::from(*side), format!("the {} could not continue: {why}", side.name()))
        }
        EndReason::Fatal { side: None, why } => {
            (LimitingParty::Test, format!("the test did not begin: {why}"))
        }
        EndReason::NoEnd(why) => {
            (LimitingParty::Test, format!("as it is planned, the test would not end: {why}"))
        }
        EndReason::Finished | EndReason::ErrorGoal { .. } | EndReason::Interrupted | EndReason::Idle => {
            return None;
        }
    })
}

fn client(process: &ProcessFacts, found: &mut Findings) {
    for missing in &process.missing {
        found.invalid("interrupted", LimitingParty::Client, format!("the record is incomplete: {missing}"));
    }
    let (party, text) = match &process.end {
        Some(EndReason::Interrupted) => {
            (LimitingParty::Test, format!("the client was interrupted {:.1} s into the run", process.last_s))
        }
        Some(EndReason::Idle) => {
            (LimitingParty::Client, "the client ended because there was no more traffic".to_owned())
        }
        _ => match could_not_continue(process) {
            Some(found) => found,
            None => return,
        },
    };
    found.invalid("interrupted", party, text);
}

/// `went_on`: what robots saw, if they received replies after the end of the server as before.
fn server(process: &ProcessFacts, needed_s: f64, went_on: Option<Failover>, found: &mut Findings) {
    let lived = process.lived_until(needed_s);
    let others = went_on.map(|failover| {
        format!(
            "but requests succeeded as before: they were for other servers, or the clocks of the hosts differ; {}",
            failover.effect()
        )
    });
    for missing in &process.missing {
        let text = format!("the record of an origin server is incomplete: {missing}");
        match (lived, &others) {
            (true, _) => found.warn("interrupted", text),
            // A balancer that takes the other servers instead does what it is there for.
            (false, Some(others)) => found.warn("interrupted", format!("{text}, {others}")),
            (false, None) => found.invalid("interrupted", LimitingParty::Server, text),
        }
    }
    if let Some((party, text)) = could_not_continue(process) {
        return found.invalid("interrupted", party, text);
    }
    let early = format!("{:.1} s into the run; the measurement ended at {needed_s:.1} s", process.last_s);
    match &process.end {
        Some(EndReason::Interrupted) if !lived => {
            let text = format!("an origin server was stopped {early}");
            match &others {
                Some(others) => found.warn("interrupted", format!("{text}, {others}")),
                None => found.invalid("interrupted", LimitingParty::Server, text),
            }
        }
        // Robots whose requests are all hits need no server.
        Some(EndReason::Idle) if !lived => {
            found.warn("interrupted", format!("an origin server had no traffic and ended {early}"));
        }
        _ => {}
    }
}

pub(super) fn one_side(facts: &RunFacts, found: &mut Findings) {
    match (&facts.client, &facts.server) {
        // If the servers are what is tested, it does not matter why they failed.
        (Some(client), None)
            if !matches!(facts.tested, Tested::Servers(_)) && is_device_or_server(client) =>
        {
            let text = "too many transactions failed, and no server log shows whether the origin servers were running: the device or \
            the servers may have failed; add the server's log";
            found.invalid(ONE_SIDE, LimitingParty::Test, text.to_owned());
        }
        (Some(client), Some(server)) => {
            let Some((here, planned)) = servers(client, server).filter(|(here, planned)| here < planned)
            else {
                return;
            };
            let text = format!("only {here} of the {planned} servers of the workload have logs");
            match is_device_or_server(client) {
                true => {
                    let text = format!(
                        "{text}, and too many transactions failed: were the other servers running? Add their logs"
                    );
                    found.invalid(ONE_SIDE, LimitingParty::Test, text);
                }
                false => found.warn(ONE_SIDE, text),
            }
        }
        (Some(_), None) => {
            let text = "there is no server log: the report shows only the client side".to_owned();
            found.warn(ONE_SIDE, text);
        }
        (None, Some(_)) => {
            let text = "there is no client log: how the device served its clients is unknown".to_owned();
            found.invalid(ONE_SIDE, LimitingParty::Test, text);
        }
        _ => {}
    }
}

/// How many servers have logs, and how many the workload of the robots has; `None` if that is unknown.
pub(super) fn servers(client: &SideFacts, server: &SideFacts) -> Option<(usize, usize)> {
    let number = |process: &ProcessFacts| process.setting(SERVERS)?.parse::<usize>().ok();
    let here: Option<usize> = server.processes.iter().map(number).sum();
    Some((here?, client.processes.iter().filter_map(number).max()?))
}

/// No request arrived at the servers, and robots had other ports than those at which the servers listen. Addresses may differ:
/// servers may listen at all of a host, or behind a device that translates them.
pub(super) fn elsewhere(facts: &RunFacts, found: &mut Findings) {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return };
    // What all processes that options describe have, if each has it.
    let setting = |side: &SideFacts, name: &str| {
        let described = side.processes.iter().filter(|process| process.header.workload_text.is_empty());
        let mut all: Vec<&str> = described.map(|process| process.setting(name)).collect::<Option<_>>()?;
        all.sort_unstable();
        all.dedup();
        (!all.is_empty()).then(|| all.join(", "))
    };
    let (Some(asked), Some(listened)) = (setting(client, "origins"), setting(server, "addresses")) else {
        return;
    };
    let arrived = server.total.as_ref().map_or(0, |total| total.block.xacts.entered);
    if arrived == 0
        && ports(&asked).is_some_and(|asked| ports(&listened).is_some_and(|all| all.is_disjoint(&asked)))
    {
        let text = format!(
            "robots requested objects of {asked} (--origin), but the servers listened at {listened}, where no request arrived"
        );
        return found.invalid(ELSEWHERE, LimitingParty::Test, text);
    }
    // Some clients asked elsewhere: all their requests failed, and others asked where the servers are.
    let is_there = |process: &ProcessFacts| {
        let asked = process.setting("origins").and_then(ports)?;
        Some(!ports(&listened)?.is_disjoint(&asked))
    };
    let lost = |process: &&ProcessFacts| process.succeeded == 0 && is_there(process) == Some(false);
    let others =
        client.processes.iter().any(|process| process.succeeded > 0 && is_there(process) == Some(true));
    if let Some(process) = client.processes.iter().filter(|_| others).find(lost) {
        let text = format!(
            "the robots of {} requested objects of {} (--origin), and had no success; the servers listened at {listened}",
            process.log,
            process.setting("origins").unwrap_or_default()
        );
        found.invalid(ELSEWHERE, LimitingParty::Test, text);
    }
}

/// The ports in a list of addresses, if all have one.
fn ports(list: &str) -> Option<BTreeSet<u16>> {
    list.split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| part.rsplit_once(':')?.1.parse().ok())
        .collect()
}

/// Whether, without a server log, the origin servers explain the failures as well as a device does: no good reply ever arrived,
/// a gateway says that it cannot reach them, or no log names a device. A proxy that refuses connections is certainly not running.
fn is_device_or_server(client: &SideFacts) -> bool {
    let Some(total) = &client.total else { return false };
    let blamed = failed_by(total, Blame::Device) + failed_by(total, Blame::Slow);
    let named = client.processes.iter().all(|process| process.names_device());
    let refused = blame::most(total) == Some(ErrorKind::ConnectFailed);
    blamed > ERRORS_MAX * blame::ended(total)
        && (total.block.ok_count() == 0 || 2.0 * relayed(total) > blamed || !named)
        && !(named && refused)
}

/// Whether most failures are other answers than those of a device that cannot reach its servers.
pub(crate) fn answered_otherwise(client: &SideFacts) -> bool {
    client.total.as_ref().is_some_and(|total| {
        let said = failed_by(total, Blame::Device) - relayed(total);
        2.0 * said > total.block.failed_count() as f64
    })
}

impl Findings {
    /// Failures that origin servers could have caused are no evidence against a device; wrong content is.
    pub(super) fn excuse_for_missing_server_log(&mut self) {
        let unknown = |f: &VerdictFinding| {
            [ONE_SIDE, ELSEWHERE].contains(&f.rule) && f.weight == FindingSeverity::Invalid
        };
        let unknown = self.all.iter().any(unknown);
        for finding in self.all.iter_mut().filter(|_| unknown) {
            if finding.weight == FindingSeverity::Failed && FAILURES.contains(&finding.rule) {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(" (a missing origin server may be the cause)");
            }
        }
    }
}

pub(super) fn mixed(facts: &RunFacts, found: &mut Findings) {
    for mixture in mixed::of_run(facts) {
        match mixture.certain {
            true => found.invalid(MIXED, LimitingParty::Test, mixture.text),
            false => found.warn(MIXED, mixture.text),
        }
    }
}

fn primary(facts: &RunFacts) -> impl Iterator<Item = &PhaseFacts> {
    facts.main_side().phases.iter().filter(|phase| phase.primary)
}

fn measured_s(phase: &PhaseFacts) -> f64 {
    phase.scope.as_ref().map_or(0.0, |scope| scope.seconds)
}

pub(super) fn phase(facts: &RunFacts, found: &mut Findings) {
    if primary(facts).next().is_none() {
        let text = "the workload has no primary phase from which results could be taken".to_owned();
        return found.warn("phase", text);
    }
    for phase in primary(facts) {
        let name = &phase.name;
        let text = match phase.end {
            PhaseEnd::Complete => continue,
            PhaseEnd::CutShort | PhaseEnd::Unended
                if phase.goal_duration_s.is_some_and(|goal| measured_s(phase) > goal + LOST_LEAST_S) =>
            {
                format!(
                    "the primary phase {name} did not end when it should have: {:.1} s measured instead of {:.1} s",
                    measured_s(phase),
                    phase.goal_duration_s.unwrap_or_default()
                )
            }
            PhaseEnd::CutShort | PhaseEnd::Unended => {
                let goal = phase.goal_duration_s.map(|s| format!(" of {s:.1} s")).unwrap_or_default();
                format!("the primary phase {name} was cut short: {:.1} s{goal} measured", measured_s(phase))
            }
            PhaseEnd::NotReached => format!("the primary phase {name} was never reached"),
        };
        found.invalid("phase", LimitingParty::Test, text);
    }
}

pub(super) fn gaps(facts: &RunFacts, found: &mut Findings) {
    for phase in primary(facts) {
        if phase.lost_s > LOST_LEAST_S.max(LOST_MAX * (measured_s(phase) + phase.lost_s)) {
            let text = format!(
                "the bench stalled: {:.1} s of the primary phase {} have no statistics",
                phase.lost_s, phase.name
            );
            found.invalid("gaps", LimitingParty::Client, text);
        }
    }
}
