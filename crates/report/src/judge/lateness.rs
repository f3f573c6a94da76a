//! Whether servers answered when their think times said, and what they excuse if they did not.

use super::generator::LATE_SHARE;
use super::{Findings, LimitingParty, apart};
use crate::facts::{RunFacts, SideFacts};
use crate::scope::Scope;

/// Lateness in milliseconds that is always allowed for 99 % of the think times.
pub(super) const THINK_LATE_MS: f64 = 10.0;
/// Lateness in milliseconds of a reply that makes devices give up, and perhaps do without the server for a while; their time limits are
/// seconds.
pub(super) const GIVE_UP_MS: f64 = 500.0;
/// Servers whose lateness is a smaller share of the time for which transactions were open are not why these took so long.
pub(super) const EXCUSE_SHARE: f64 = 0.1;

/// Think times that ended later than drawn: the server, not the device, caused this part of the response times.
pub(super) fn late_servers(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.server.as_ref().and_then(measured) else { return };
    let Some(late_ms) = late_ms(total) else { return };
    let allowed_ms = allowed_ms(total);
    if late_ms > allowed_ms {
        found.late_enough = open_ms(facts).is_none_or(|open_ms| late_ms >= EXCUSE_SHARE * open_ms);
        let (late_ms, allowed_ms) = apart(late_ms, allowed_ms, 1);
        let text = format!(
            "servers answered late: 1 % of their think times ended more than {late_ms} ms late; the limit is {allowed_ms} ms"
        );
        found.invalid("late", LimitingParty::Server, text);
    }
}

/// What 99 % of the think times did not exceed, in milliseconds.
fn late_ms(total: &Scope) -> Option<f64> {
    Some(total.block.late_us.quantile(0.99)? as f64 * 1e-3)
}

/// Lateness in milliseconds that is allowed for 99 % of the think times of servers.
fn allowed_ms(total: &Scope) -> f64 {
    let mean_ms = total.rptm_us().mean().map_or(0.0, |us| us * 1e-3);
    THINK_LATE_MS.max(LATE_SHARE * mean_ms)
}

/// How long transactions of robots were open in the measured time, on average, in milliseconds, whether they succeeded or not: their mean
/// number divided by their rate (J. D. C. Little, *A Proof for the Queuing Formula L = λW*, 1961).
fn open_ms(facts: &RunFacts) -> Option<f64> {
    let scope = &facts.headline.as_ref()?.scope;
    let xacts = &scope.block.xacts;
    let level = xacts.mean(scope.seconds)?;
    (xacts.entered > 0).then(|| 1e3 * level * scope.seconds / xacts.entered as f64)
}

/// The largest number of failures for which a device may say that a server does not answer, because servers answered late: one for each
/// late reply, or any number if a reply was so late that the device may have given the server up.
pub(super) fn late_replies(facts: &RunFacts) -> f64 {
    let Some(total) = facts.server.as_ref().and_then(measured) else { return f64::INFINITY };
    let late = &total.block.late_us;
    if late.max().is_some_and(|us| us as f64 * 1e-3 >= GIVE_UP_MS) {
        return f64::INFINITY;
    }
    let in_time = late.share_up_to((allowed_ms(total) * 1e3) as u64).unwrap_or(1.0);
    (1.0 - in_time) * late.count() as f64
}

/// What servers counted in their primary phases, or in all phases if they have no primary phase.
fn measured(server: &SideFacts) -> Option<&Scope> {
    let primary = server.phases.iter().find(|phase| phase.primary && phase.scope.is_some());
    primary.and_then(|phase| phase.scope.as_ref()).or(server.total.as_ref())
}
