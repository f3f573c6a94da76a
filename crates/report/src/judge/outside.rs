//! Faults outside the client, the device and the servers: in the name server, the KDC, the network or the clocks.

use polygraph_stats::ErrorKind;
use polygraph_stats::record::environment;

use super::blame::{BROKEN_MESSAGES, Blame, failed_by};
use super::generator::RESOURCES_MAX;
use super::replies::WRONG_MAX;
use super::{Findings, LimitingParty};
use crate::facts::{ProcessFacts, RunFacts, SideFacts};
use crate::text::percent;

/// Robots look up names only if no device does this for them.
pub(super) fn names(facts: &RunFacts, found: &mut Findings) {
    if let Some(text) = led_astray(facts) {
        found.invalid("names", LimitingParty::NameServer, text);
    } else if led_nowhere(facts) {
        let text = "robots reached nothing at the addresses that the name server gave, and the servers, which were running, \
        received no request";
        found.invalid("names", LimitingParty::NameServer, text.to_owned());
    }
    let reason = "the name server gave no usable answer";
    without(facts, found, Blame::Names, "names", LimitingParty::NameServer, reason);
}

/// Whether robots without a device failed as often as the name server gave them addresses that the workload does not put behind the
/// name. A device may have the name server give its own address.
fn led_astray(facts: &RunFacts) -> Option<String> {
    let scope = &facts.headline.as_ref().filter(|_| !facts.tested.is_device())?.scope;
    let (ended, astray) = (scope.ended_count() as f64, scope.block.dns.unplanned as f64);
    let failed = failed_by(scope, Blame::Slow) + failed_by(scope, Blame::Device);
    (astray > RESOURCES_MAX * ended && 2.0 * failed > astray).then(|| {
        format!(
            "{failed:.0} of {ended:.0} transactions failed, and for {astray:.0} requests the name server gave another address than those \
             of the workload (AddrMap)"
        )
    })
}

/// Whether robots that look up names and connect to the servers directly never reached them, although the servers were running.
fn led_nowhere(facts: &RunFacts) -> bool {
    let total = |side: &Option<SideFacts>| side.as_ref().and_then(|side| side.total.clone());
    let (Some(client), Some(servers)) = (total(&facts.client), &facts.server) else { return false };
    let looked_up = client.block.dns.lookups > 0 && client.block.ok_count() == 0;
    let nobody_there = failed_by(&client, Blame::Slow) > 0.0;
    let nothing_came = servers.total.as_ref().is_none_or(|total| total.block.xacts.entered == 0);
    !facts.tested.is_device() && facts.origin_gone.is_none() && looked_up && nobody_there && nothing_came
}

/// Robots ask a key distribution centre (KDC) for tickets if devices or servers demand Kerberos.
pub(super) fn tickets(facts: &RunFacts, found: &mut Findings) {
    let reason = "the KDC gave no usable ticket";
    without(facts, found, Blame::Tickets, "tickets", LimitingParty::Kdc, reason);
}

/// There was no route to the device or to a server.
pub(super) fn network(facts: &RunFacts, found: &mut Findings) {
    let reason = "there was no route to the address";
    without(facts, found, Blame::Network, "network", LimitingParty::Network, reason);
}

/// Servers date their replies, and a device must not change the date. The clocks of two hosts may differ; one host has only one
/// clock, so the device must have changed the date there.
pub(super) fn dates(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let ended = headline.scope.ended_count();
    missing_dates(facts, found, headline.scope.block.errors[ErrorKind::NoDate], ended);
    let count = headline.scope.block.errors[ErrorKind::ClockSkew];
    if count == 0 {
        return;
    }
    let text = format!("{}: {count} of {ended} transactions", ErrorKind::ClockSkew.text());
    let one_host = match (&facts.client, &facts.server) {
        (Some(client), Some(server)) => one_host(client, server),
        _ => false,
    };
    if count as f64 <= WRONG_MAX * ended as f64 {
        found.warn("dates", text);
    } else if one_host {
        let text = "the Date of first-hand replies is wrong by more than a minute, although robots and servers share a clock";
        found.failed_as("dates", BROKEN_MESSAGES, format!("{text}: {count} of {ended} transactions"));
    } else {
        let remedy = "synchronize the clocks of the bench, or check whether the device alters Date";
        found.invalid("dates", LimitingParty::Host, format!("{text}; {remedy}"));
    }
}

/// A server that has a clock dates its replies, and who passes on a reply without `Date` adds one (RFC 9110, section 6.6.1).
fn missing_dates(facts: &RunFacts, found: &mut Findings, count: u64, ended: u64) {
    let is_planned = facts.client.iter().flat_map(|side| &side.processes).any(ProcessFacts::may_set_date);
    if count as f64 > WRONG_MAX * ended as f64 && !is_planned {
        let who = if facts.tested.is_device() { "the device" } else { "somebody on the way" };
        let text = format!(
            "{count} replies in {ended} transactions ({}) came straight from servers, but without the Date that these send: {who} removed \
             it, although RFC 9110, section 6.6.1, has those who pass on replies add a missing one",
            percent(count as f64 / ended as f64, 1)
        );
        found.warn("dates", text);
    }
}

fn one_host(client: &SideFacts, server: &SideFacts) -> bool {
    let mut hosts = client
        .processes
        .iter()
        .chain(&server.processes)
        .map(|process| process.header.environment(environment::HOST));
    let first = hosts.next().flatten();
    first.is_some() && hosts.all(|host| host == first)
}

fn without(
    facts: &RunFacts,
    found: &mut Findings,
    who: Blame,
    rule: &'static str,
    party: LimitingParty,
    reason: &str,
) {
    let Some(headline) = &facts.headline else { return };
    let ended = headline.scope.ended_count() as f64;
    let failed = failed_by(&headline.scope, who);
    if failed == 0.0 {
        return;
    }
    let text = format!("{failed:.0} of {ended:.0} transactions failed because {reason}");
    match failed > RESOURCES_MAX * ended {
        true => found.explain(rule, party, text, (failed, ended)),
        false => found.warn(rule, text),
    }
}
