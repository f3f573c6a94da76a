//! Who is to blame for a failed transaction.

use polygraph_stats::ErrorKind;
use polygraph_stats::error::Nature;

use crate::figures::error_count;
use crate::scope::Scope;

/// Who is to blame for a failed transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// The device, by what it said.
    Device,
    /// The device if the bench was quick enough.
    Slow,
    /// The bench.
    Bench,
}

fn blame(kind: ErrorKind) -> Blame {
    match kind.nature() {
        Nature::Content | Nature::Caching | Nature::Message | Nature::Access => Blame::Device,
        Nature::Slow => Blame::Slow,
        Nature::Bench => Blame::Bench,
    }
}

/// Failed transactions by who is to blame.
pub(super) fn failed_by(scope: &Scope, who: Blame) -> f64 {
    ErrorKind::all()
        .filter(|kind| kind.fails() && blame(*kind) == who)
        .map(|kind| error_count(&scope.block, kind))
        .sum()
}
