//! Old copies that a device used while a server stood still. A cache that does not reach the server may do so (RFC 9111, section 4.2.4).

use polygraph_stats::ErrorKind;

use super::lateness::GIVE_UP_MS;
use super::stalls;
use crate::facts::{RunFacts, SideFacts};

/// How long, in seconds, a device may do without a server after that one has stood still: many ask a server again only after ten seconds.
pub(super) const RECOVERY_S: f64 = 10.0;

/// What robots counted in the judged time while all servers were running.
pub(super) struct Connected {
    /// Errors of the kind.
    pub count: f64,
    /// All replies of that time.
    pub ended: f64,
}

/// How often robots counted an error of this kind while all servers were running; `None` if none stood still for long enough that a device
/// gives it up, or if no rule allows the error meanwhile.
pub(super) fn connected(facts: &RunFacts, kind: ErrorKind) -> Option<Connected> {
    let errors = match kind {
        ErrorKind::Stale => "errors.stale.count",
        ErrorKind::Expired => "errors.expired.count",
        ErrorKind::FalseNotModified => "errors.false_not_modified.count",
        _ => return None,
    };
    let (client, gaps) = (facts.client.as_ref()?, disconnections(facts.server.as_ref()?));
    let gone_s = facts.origin_gone.as_ref().map_or(f64::INFINITY, |gone| gone.at_s);
    let judged = stalls::judged(facts);
    let points = client.series.iter().filter(|point| {
        // The intervals of a point have their middles in its window.
        let (begin_s, end_s) = (point.at_s - point.seconds, point.at_s + point.seconds);
        judged.iter().any(|(from, to)| (from..=to).contains(&&point.at_s))
            && end_s < gone_s
            && !gaps.iter().any(|(from, to)| begin_s < *to && end_s > *from)
    });
    let connected = points.fold(Connected { count: 0.0, ended: 0.0 }, |sum, point| Connected {
        count: sum.count + point.get(errors).unwrap_or(0.0),
        ended: sum.ended + point.get("baseline.rep.rate").unwrap_or(0.0) * point.seconds,
    });
    (!gaps.is_empty()).then_some(connected)
}

/// When a device may have been unable to reach a server that runs, in seconds since the start of the run.
fn disconnections(server: &SideFacts) -> Vec<(f64, f64)> {
    let stalls = server.processes.iter().flat_map(|process| &process.stalls);
    let long = stalls.filter(|(begin, end)| 1e3 * (end - begin) >= GIVE_UP_MS);
    long.map(|(begin, end)| (*begin, end + RECOVERY_S)).collect()
}
