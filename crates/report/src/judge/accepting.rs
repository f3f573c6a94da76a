//! Whether connections were accepted: those of the device by the servers, and those of the robots by the device.

use polygraph_stats::block::SLOW_SETUP;

use super::generator::RESOURCES_MAX;
use super::{FAILURES, FindingSeverity, Findings, LimitingParty, stalls, unused};
use crate::facts::RunFacts;

/// Name of the rule about connections that servers refused.
pub(super) const REFUSED: &str = "refused";
/// Name of the rule about connections that servers let wait.
pub(super) const LISTEN_QUEUE: &str = "listen queue";

/// Servers refused connections for lack of file descriptors: the bench caused the failures that follow.
pub(super) fn refused(facts: &RunFacts, found: &mut Findings) {
    let (refused, ended) = count(facts, "errors.no_descriptor.count");
    if refused > RESOURCES_MAX * ended {
        let held = unused::count(facts).map_or_else(String::new, |unused| {
            format!("; {unused} of the connections that the device holds have carried no request, so it may be the device that opens too many")
        });
        let text = format!(
            "servers refused {refused:.0} connections for lack of file descriptors: raise the limit (ulimit -Hn), or use \
             more processes (--workers){held}"
        );
        found.invalid(REFUSED, LimitingParty::Host, text);
    }
}

/// Connections found the listen queue of a server full. TCP tries again after a second, and a device that waits for it seems slow.
pub(super) fn listen_queue(facts: &RunFacts, found: &mut Findings) {
    let (full, ended) = count(facts, "errors.queue_full.count");
    if full == 0.0 {
        return;
    }
    let text = format!(
        "the listen queue of a server was full {full:.0} times, and whoever connects then waits a second or longer, or is refused over HTTP/3: \
         raise the limit (sysctl net.core.somaxconn), or use more loops or processes for servers (--loops, --workers)"
    );
    match full > RESOURCES_MAX * ended {
        true => found.invalid(LISTEN_QUEUE, LimitingParty::Server, text),
        false => found.warn(LISTEN_QUEUE, text),
    }
}

/// Connections of robots waited about as long as TCP does before it tries again. A slow network or a device that is slow with TLS also
/// needs that long, but not for the quickest of its connections.
pub(super) fn connecting(facts: &RunFacts, found: &mut Findings) {
    const QUICK_US: u64 = SLOW_SETUP.as_micros() / 2;
    let Some(headline) = &facts.headline else { return };
    let block = &headline.scope.block;
    let (slow, all) = (block.slow_setups as f64, block.conn_setup_us.count() as f64);
    if slow <= RESOURCES_MAX * all || block.conn_setup_us.min().is_none_or(|quickest| quickest > QUICK_US) {
        return;
    }
    let peer = if facts.tested.is_device() { "the device" } else { "a server" };
    let tls = if block.tls.offered > 0 { ", or a handshake of TLS took so long" } else { "" };
    found.warn(
        "connecting",
        format!(
            "{slow:.0} of {all:.0} new connections of robots took about a second or longer, after which TCP tries again: the \
             listen queue of {peer} was full (its own limit, or net.core.somaxconn; `nstat -az TcpExtListenOverflows` on \
             its host counts it), or packets were lost{tls}"
        ),
    );
}

/// Errors of the servers in the judged part of the run, and their replies in it.
fn count(facts: &RunFacts, errors: &str) -> (f64, f64) {
    let Some(server) = &facts.server else { return (0.0, 0.0) };
    let judged = stalls::judged(facts);
    let points = server
        .series
        .iter()
        .filter(|point| judged.iter().any(|&(begin_s, end_s)| point.at_s >= begin_s && point.at_s <= end_s));
    points.fold((0.0, 0.0), |(count, ended), point| {
        let replies = point.get("baseline.rep.rate").unwrap_or(0.0) * point.seconds;
        (count + point.get(errors).unwrap_or(0.0), ended + replies)
    })
}

impl Findings {
    /// Errors of a device are no evidence against it if its origin servers do not accept its connections; wrong content is.
    pub(super) fn excuse_for_accepting(&mut self) {
        let cause = self.all.iter().find_map(|found| match (found.rule, found.weight) {
            (REFUSED, FindingSeverity::Invalid) => {
                Some(("its servers refused connections", LimitingParty::Host))
            }
            (LISTEN_QUEUE, FindingSeverity::Invalid) => {
                Some(("connections found the listen queues of its servers full", LimitingParty::Server))
            }
            _ => None,
        });
        let Some((deed, party)) = cause else { return };
        for finding in self.all.iter_mut().filter(|finding| FAILURES.contains(&finding.rule)) {
            if finding.weight == FindingSeverity::Failed {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(&format!(" (the bench may be the cause: {deed})"));
            } else if finding.party == Some(LimitingParty::Server) {
                // The server failed because its host lacks descriptors.
                finding.party = Some(party);
            }
        }
    }
}
