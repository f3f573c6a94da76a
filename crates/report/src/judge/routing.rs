//! Whether requests came to the servers that robots meant, and under their names.

use std::net::SocketAddr;

use polygraph_stats::ErrorKind;
use polygraph_stats::evidence::fact;

use super::replies::WRONG_MAX;
use super::roles::{acts_as_servers, has_role, unreached};
use super::{Findings, LimitingParty};
use crate::facts::RunFacts;

pub(super) const MISROUTED: &str = "misrouted";
pub(super) const HOST: &str = "host";
pub(super) const IDLE: &str = "idle server";
/// What a device did that mixed up servers.
const MIXED_UP: &str = "sent requests to the wrong servers";

/// How many of the requests that arrived at servers were noted as this, and how many arrived; `None` without logs of both sides.
fn noted(facts: &RunFacts, kind: ErrorKind) -> Option<(u64, u64)> {
    facts.client.as_ref()?;
    let total = facts.server.as_ref()?.total.as_ref()?;
    Some((total.block.errors[kind], total.ended_count()))
}

/// A server that robots named in a request that arrived at another one.
fn meant(facts: &RunFacts) -> Option<&str> {
    let examples =
        facts.server.as_ref()?.samples.iter().filter(|example| example.kind == ErrorKind::Misrouted);
    let mut facts = examples.flat_map(|example| &example.facts);
    facts.find(|(name, _)| name == fact::SERVER).map(|(_, server)| server.as_str())
}

/// Servers of the test have the same objects, so a reply from the wrong one looks right. A balancer may choose the server. A surrogate
/// may have a pool of servers, which have addresses; what has a name is a site.
pub(super) fn misrouted(facts: &RunFacts, found: &mut Findings) {
    let Some((count, of)) = noted(facts, ErrorKind::Misrouted) else { return };
    if count == 0 || has_role(facts, "balancer") {
        return;
    }
    let meant = meant(facts);
    let example = meant.map_or_else(String::new, |server| format!(" ({server}, for example)"));
    let text =
        format!("{count} of {of} requests arrived at another server than the one that robots named{example}");
    let few = count as f64 <= WRONG_MAX * of as f64;
    let is_pool =
        has_role(facts, "surrogate") && meant.is_none_or(|server| server.parse::<SocketAddr>().is_ok());
    let looked_up = facts.client.as_ref().and_then(|client| client.total.as_ref());
    let looked_up = looked_up.is_some_and(|total| total.block.dns.lookups > 0);
    match facts.tested.is_device() {
        _ if few => found.warn(MISROUTED, text),
        true if is_pool => {
            found.warn(
                MISROUTED,
                format!("{text}: that is right only if the device may choose any of the servers"),
            );
        }
        true => {
            let remedy = "the device has to send them where the URL or `Host` says; if it may choose any of the servers, call it \
                          --balancer, or give them one name (AddrMap)";
            found.failed_as(MISROUTED, MIXED_UP, format!("{text}: {remedy}"));
        }
        false if looked_up => {
            let reason = "the name server gave the address of another server";
            found.invalid(MISROUTED, LimitingParty::NameServer, format!("{text}: {reason}"));
        }
        false => found.warn(MISROUTED, text),
    }
}

/// Reverse proxies are often set up so, but a site with several hosts then goes wrong.
pub(super) fn host(facts: &RunFacts, found: &mut Findings) {
    let Some((count, of)) = noted(facts, ErrorKind::HostChanged) else { return };
    if facts.tested.is_device() && count as f64 > WRONG_MAX * of as f64 {
        let text = format!(
            "the device changed the host of {count} of {of} requests that arrived at servers: a server with several hosts could not tell \
             them apart, and would make links and redirects to the wrong one"
        );
        found.warn(HOST, text);
    }
}

/// A balancer that has lost a server, or never knew it, works as usual at a low rate.
pub(super) fn idle(facts: &RunFacts, found: &mut Findings) {
    // A proxy asks the servers that robots name; of a server that ended, another rule tells.
    let unreached = unreached(facts).filter(|_| acts_as_servers(facts) && facts.origin_gone.is_none());
    if let Some((idle, all)) = unreached {
        let text = format!(
            "no request arrived at {}, and {all} at the other servers: the device does not know all servers, takes some for broken, or is never asked for them",
            idle.join(", ")
        );
        found.warn(IDLE, text);
    }
}
