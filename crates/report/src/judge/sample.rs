//! Whether enough was measured.

use super::{Findings, LimitingParty};
use crate::facts::RunFacts;
use crate::text::counted;

/// With fewer ended transactions in the primary phase, figures are meaningless.
pub const MIN: u64 = 100;
/// With fewer ended transactions in the primary phase, figures are imprecise.
pub(super) const FEW: u64 = 1000;

pub(super) fn samples(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let (ended, phase) = (headline.scope.ended_count(), &headline.phase);
    let text = format!("only {} ended in phase {phase}", counted(ended, "transaction"));
    if ended < MIN {
        found.invalid("samples", LimitingParty::Test, format!("{text}; the minimum is {MIN}"));
    } else if ended < FEW {
        let text = format!("{text}: means are imprecise, and high percentiles are a matter of chance");
        found.warn("samples", text);
    }
}
