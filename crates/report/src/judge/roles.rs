//! What the device is to robots, and which servers requests reach through it.

use crate::facts::RunFacts;
use crate::headline_spread;

/// If so many requests arrived at each server on average, it is no chance that none arrived at one of them.
pub(super) const SHARE_LEAST: u64 = 30;

/// Whether robots took the device for this.
pub(super) fn has_role(facts: &RunFacts, role: &str) -> bool {
    let mut clients = facts.client.iter().flat_map(|client| &client.processes);
    clients.any(|client| client.setting("device") == Some(role))
}

/// Whether the device stands for the servers, so that robots do not know of it.
pub(super) fn acts_as_servers(facts: &RunFacts) -> bool {
    has_role(facts, "balancer") || has_role(facts, "surrogate")
}

/// Whether there is a device that may be a proxy of the robots. Only such a one may demand credentials for itself, with 407 (RFC 9110,
/// section 15.5.8).
pub(super) fn may_be_proxy(facts: &RunFacts) -> bool {
    facts.tested.is_device() && !acts_as_servers(facts)
}

/// The addresses of servers at which no request arrived in the measured phases, which is no chance, and how many arrived at the others;
/// `None` if there are none.
pub(super) fn unreached(facts: &RunFacts) -> Option<(Vec<String>, u64)> {
    let spread = headline_spread::spread(facts)?;
    let all: u64 = spread.asked().map(|server| server.stats.requests).sum();
    let idle = spread.asked().filter(|server| server.stats.requests == 0);
    let idle: Vec<String> = idle.map(|server| server.address.clone()).collect();
    (!idle.is_empty() && all >= SHARE_LEAST * spread.asked().count() as u64).then_some((idle, all))
}
