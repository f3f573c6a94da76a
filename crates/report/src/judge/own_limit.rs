//! Limits of the test's own robots that no device could have kept.

use polygraph_stats::{Block, ErrorKind};

use super::blame;
use super::replies::ERRORS_MAX;
use crate::facts::RunFacts;
use crate::figures::error_count;
use crate::scope::Scope;

/// Share of the connections that robots may have open. If requests for which servers think occupy more, the think times are why robots
/// ran out of connections.
pub(super) const OCCUPIED_MAX: f64 = 0.8;

/// If most failures of these phases were due to a limit of the robots that the servers' think times exceed even without a device: the
/// reason, as the end of a sentence.
pub(super) fn own_limit(facts: &RunFacts, scope: &Scope, phases: &str) -> Option<String> {
    match blame::most(scope)? {
        ErrorKind::TooManyOpen => connections_occupied(facts, phases),
        ErrorKind::Timeout => think_times_outlive(facts, scope),
        _ => None,
    }
}

/// By Little's law, servers think for as many requests at a time as there are requests per second times the mean think time.
fn connections_occupied(facts: &RunFacts, phases: &str) -> Option<String> {
    // Without a device, there is nobody else who could occupy connections.
    let nobody_else = (!facts.device).then(String::new);
    let occupied = || {
        let limit = limit(facts, |limits| limits.open_connections, |a, b| a + b)? as f64;
        let scopes: Vec<&Scope> =
            phases.split('|').filter_map(|name| facts.server.as_ref()?.phase(name)?.scope.as_ref()).collect();
        let think_s: f64 = scopes.iter().map(|scope| 1e-6 * scope.block.think_us.sum()).sum();
        let busy = think_s / scopes.iter().map(|scope| scope.seconds).sum::<f64>();
        (busy > OCCUPIED_MAX * limit).then(|| {
            format!(": on average, servers were thinking about {busy:.1} requests, and robots may have {limit} connections open")
        })
    };
    occupied().or(nobody_else)
}

/// Whether so many think times were longer than robots wait that the other failures are few enough.
fn think_times_outlive(facts: &RunFacts, scope: &Scope) -> Option<String> {
    let lifetime_s = limit(facts, |limits| limits.lifetime_s, f64::max)?;
    let think_us = &facts.server.as_ref()?.total.as_ref()?.block.think_us;
    let longer = 1.0 - think_us.share_up_to((1e6 * lifetime_s) as u64)?;
    let ended = |block: &Block| (block.ok_count() + block.failed_count()) as f64;
    let of_all = scope.ended_count() as f64 / ended(&facts.client.as_ref()?.total.as_ref()?.block);
    let doomed = longer * think_us.count() as f64 * of_all;
    let failed = error_count(&scope.block, ErrorKind::Timeout);
    (failed - doomed <= ERRORS_MAX * scope.ended_count() as f64).then(|| {
        format!(
            ": robots wait for {lifetime_s} s, and {:.0} % of the servers' think times are longer",
            100.0 * longer
        )
    })
}

/// A limit of the robots of all processes; `None` if one of them has none.
fn limit<T>(
    facts: &RunFacts,
    of: impl Fn(&polygraph_stats::RobotLimits) -> Option<T>,
    add: impl Fn(T, T) -> T,
) -> Option<T> {
    let limits: Option<Vec<T>> =
        facts.client.as_ref()?.processes.iter().map(|process| of(&process.header.limits)).collect();
    limits?.into_iter().reduce(add)
}
