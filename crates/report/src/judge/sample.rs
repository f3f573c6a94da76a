//! Whether enough was measured.

use super::{Findings, LimitingParty};
use crate::facts::RunFacts;

/// Fewer ended transactions in the primary phase say nothing.
pub const MIN: u64 = 100;
/// Fewer ended transactions in the primary phase say little.
pub(super) const FEW: u64 = 1000;

pub(super) fn samples(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let (ended, phase) = (headline.scope.ended_count(), &headline.phase);
    let text = format!("only {ended} transactions ended in phase {phase}");
    if ended < MIN {
        found.invalid("samples", LimitingParty::Test, format!("{text}, {MIN} are the least"));
    } else if ended < FEW {
        let text = format!("{text}: means are rough, high percentiles are chance");
        found.warn("samples", text);
    }
}
