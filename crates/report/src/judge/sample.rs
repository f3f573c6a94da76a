//! Whether enough was measured.

use super::{Findings, LimitingParty, overload};
use crate::facts::RunFacts;
use crate::text::{counted, duration};

/// With fewer ended transactions in the primary phase, figures are meaningless.
pub const MIN: u64 = 100;
/// With fewer ended transactions in the primary phase, figures are imprecise.
pub(super) const FEW: u64 = 1000;

pub(super) fn samples(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let (ended, phase) = (headline.scope.ended_count(), &headline.phase);
    let text = format!("only {} ended in phase {phase}", counted(ended, "transaction"));
    if ended < MIN {
        let text =
            format!("{text}; the minimum is {MIN}: make the phase longer (its goal), or raise the rate");
        found.invalid("samples", LimitingParty::Test, text);
    } else if ended < FEW {
        let text = format!("{text}: means are imprecise, and high percentiles are a matter of chance");
        found.warn("samples", text);
    }
}

/// Name of the rule about phases that are not much longer than their transactions.
pub(super) const SHORT: &str = "short";
/// Largest share of the transactions that ended in a primary phase that may have started before it,
pub(super) const BEFORE_MAX: f64 = 0.5;
/// and the largest without a warning.
pub(super) const BEFORE_TOLD: f64 = 0.2;

/// Of transactions that started before a phase, the load and the state of caches were those of the phases before it.
pub(super) fn short(facts: &RunFacts, found: &mut Findings) {
    for (phase, begin_s, end_s) in overload::primary(facts) {
        let Some(scope) = &phase.scope else { continue };
        let xacts = &scope.block.xacts;
        let before = (xacts.last + xacts.left).saturating_sub(xacts.entered).min(xacts.left);
        let share = before as f64 / xacts.left.max(1) as f64;
        if share <= BEFORE_TOLD {
            continue;
        }
        let mean_s = scope.rptm_us().mean().map_or(0.0, |us| us * 1e-6);
        let text = format!(
            "phase {} lasted {}, and its transactions took {} on average: {before} of the {} that ended in it may have started before it \
             ({:.0} %)",
            phase.name,
            duration(end_s - begin_s),
            duration(mean_s),
            xacts.left,
            100.0 * share,
        );
        const REMEDY: &str = "make the phase longer (its goal, or --scale)";
        if share > BEFORE_MAX {
            let text = format!("{text}; the limit is {:.0} %: {REMEDY}", 100.0 * BEFORE_MAX);
            found.invalid(SHORT, LimitingParty::Test, text);
        } else {
            found.warn(
                SHORT,
                format!("{text}, so the figures are partly those of the phases before: {REMEDY}"),
            );
        }
    }
}
