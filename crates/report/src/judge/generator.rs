//! Whether the load generator was fast enough and had enough resources.

use super::blame::{Blame, failed_by};
use super::{Findings, LimitingParty, apart};
use crate::clocks::ahead_s;
use crate::facts::{Headline, RunFacts, SideFacts};

/// Largest share of the primary phase that the busiest event loop may be working.
pub(super) const BUSY_MAX: f64 = 0.90;
/// Lateness in milliseconds that is always allowed for 99 % of the starts.
pub(super) const LATE_LEAST_MS: f64 = 10.0;
/// Lateness that is allowed as a share of the mean response time.
pub(super) const LATE_SHARE: f64 = 0.05;
/// Largest step, in milliseconds, that the time-of-day clock may make.
pub(super) const CLOCK_STEP_MAX_MS: f64 = 100.0;
/// Largest share of transactions that may fail for lack of local resources.
pub(super) const RESOURCES_MAX: f64 = 0.001;

pub(super) fn saturated(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let client = facts.client.as_ref().map(|_| (LimitingParty::Client, headline.scope.busiest_share));
    let server = facts.server.as_ref().map(|side| (LimitingParty::Server, busiest_during(side, headline)));
    for (who, share) in client.into_iter().chain(server) {
        if let Some(share) = share.filter(|&share| share > BUSY_MAX) {
            let (share, limit) = apart(100.0 * share, 100.0 * BUSY_MAX, 0);
            let text = format!(
                "the load generator was saturated: the busiest {} loop was working {share} % of the time; the limit is {limit} %",
                who.name()
            );
            found.invalid("saturated", who, text);
        }
    }
}

/// Share of the time that the busiest loop of a side was working during the phases of the headline figures, even if that side has
/// other phases.
fn busiest_during(side: &SideFacts, headline: &Headline) -> Option<f64> {
    let shares: Vec<(f64, f64)> = side
        .series
        .iter()
        .filter(|point| point.at_s >= headline.begin_s && point.at_s <= headline.end_s)
        .filter_map(|point| Some((point.get("cpu.busiest.share")? / 100.0, point.seconds)))
        .collect();
    let seconds: f64 = shares.iter().map(|(_, seconds)| seconds).sum();
    (seconds > 0.0).then(|| shares.iter().map(|(share, seconds)| share * seconds).sum::<f64>() / seconds)
}

pub(super) fn late(facts: &RunFacts, found: &mut Findings) {
    let Some(Headline { scope, .. }) = &facts.headline else { return };
    let Some(late_ms) = scope.block.late_us.quantile(0.99).map(|us| us as f64 * 1e-3) else { return };
    let mean_ms = scope.rptm_us().mean().map_or(0.0, |us| us * 1e-3);
    let allowed_ms = LATE_LEAST_MS.max(LATE_SHARE * mean_ms);
    if late_ms > allowed_ms {
        let (late_ms, allowed_ms) = apart(late_ms, allowed_ms, 1);
        let text = format!(
            "requests started late: 1 % of them by more than {late_ms} ms; the limit is {allowed_ms} ms"
        );
        found.invalid("late", LimitingParty::Client, text);
    }
}

/// Every interval records how far the time-of-day clock moved relative to the monotonic clock.
pub(super) fn clock(facts: &RunFacts, found: &mut Findings) {
    for client in facts.client.iter().flat_map(|client| &client.processes) {
        if let Some(ahead_s) = ahead_s(facts, client) {
            let text = format!(
                "the clock of the servers is {} s {} that of {}: times in this log are corrected by that; synchronize the clocks of the hosts",
                ahead_s.abs(),
                if ahead_s > 0 { "ahead of" } else { "behind" },
                client.log
            );
            found.warn("clock", text);
        }
    }
    for side in facts.sides() {
        let step_ms = side.total.as_ref().map_or(0.0, |total| total.clock_step_ns as f64 * 1e-6);
        if step_ms.abs() > CLOCK_STEP_MAX_MS {
            let who = side.side.name();
            let text = format!("the clock of the {who} host jumped by {step_ms:.0} ms during the run");
            found.invalid("clock", LimitingParty::Host, text);
        }
    }
}

pub(super) fn resources(facts: &RunFacts, found: &mut Findings) {
    let Some(Headline { scope, .. }) = &facts.headline else { return };
    let (failed, ended) = (failed_by(scope, Blame::Bench), scope.ended_count() as f64);
    if failed > RESOURCES_MAX * ended {
        let text = format!(
            "{failed:.0} transactions failed for lack of local ports or file descriptors, or because of other faults of the \
             local system"
        );
        found.explain("resources", LimitingParty::Host, text, (failed, ended));
    }
}
