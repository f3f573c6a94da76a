//! Whether the device kept up in a phase that is too short for its levels to settle.

use super::blame::ERRORS_MAX;
use super::chance::allowance;
use super::overload::{SETTLING_S, limited, mean, points, primary, seconds, total};
use super::{Findings, LimitingParty};
use crate::facts::{PhaseFacts, RunFacts};
use crate::scope::Scope;

/// Name of the rule.
pub(super) const UNFINISHED: &str = "unfinished";
/// Largest share of what started in a phase that may have had no reply at its end.
pub(super) const OPEN_MAX: f64 = 1.0 / 3.0;
/// So much more often may transactions end in the second half of a phase than in the first if what they wait for is the limit: while
/// replies only take long, more and more arrive.
const FLAT: f64 = 1.25;
/// Replies of a device that falls behind take at least so many times as long in the second half as in the first: without a queue at the
/// start, three times as long.
const LONGER: f64 = 1.5;

/// A phase in which transactions started that did not end.
struct Phase<'a> {
    facts: &'a RunFacts,
    phase: &'a PhaseFacts,
    scope: &'a Scope,
    begin_s: f64,
    end_s: f64,
    begun: f64,
    /// By how much the number of open transactions grew.
    gap: f64,
}

/// In a phase that ends while levels still rise to their steady values, `following` proves nothing. But the figures of a phase in which
/// many requests got no reply are not those of a device that answers all, whoever is to blame.
pub(super) fn unfinished(facts: &RunFacts, found: &mut Findings) {
    for (phase, begin_s, end_s) in primary(facts) {
        let Some(scope) = &phase.scope else { continue };
        let xacts = &scope.block.xacts;
        let begun = xacts.entered as f64;
        let phase = Phase { facts, phase, scope, begin_s, end_s, begun, gap: begun - xacts.left as f64 };
        if (begin_s + end_s) / 2.0 < SETTLING_S {
            phase.judge(found);
        }
    }
}

impl Phase<'_> {
    fn judge(&self, found: &mut Findings) {
        let open = OPEN_MAX * self.begun;
        let (falls_behind, thinking) = (self.falls_behind(), self.thinking());
        if self.gap <= open && !falls_behind {
            return;
        }
        let text = format!(
            "{:.0} transactions ended in phase {}, and {:.0} started ({:.0} % fewer)",
            self.begun - self.gap,
            self.phase.name,
            self.begun,
            100.0 * self.gap / self.begun
        );
        let too_short = "the phase is too short to tell who was the limit: measure longer (--goal)";
        match (limited(self.facts, self.scope, &self.phase.name, self.gap), thinking) {
            (Some((party, why)), _) => found.invalid(UNFINISHED, party, format!("{text}{why}")),
            (None, _) if falls_behind => {
                let waited = self.waited();
                let text = format!(
                    "{text}, no faster at its end than at its start, and {waited:.0} requests had waited for a second or longer: the device \
                     cannot keep up"
                );
                found.add_slow_device(UNFINISHED, text);
            }
            (None, Some(thinking)) if self.gap - thinking <= open => {
                let text = format!("{text}: servers were still working on {thinking:.0}, so {too_short}");
                found.invalid(UNFINISHED, LimitingParty::Test, text);
            }
            (None, _) => found.invalid(UNFINISHED, LimitingParty::Test, format!("{text}: {too_short}")),
        }
    }

    /// What servers were working on when the phase ended. Without their logs it is not known.
    fn thinking(&self) -> Option<f64> {
        let server = self.facts.server.as_ref()?.phase(&self.phase.name)?.scope.as_ref()?;
        Some(server.block.xacts.last as f64)
    }

    /// Only what robots have sent can be at the device: they may wait for names, tickets and connections as well.
    fn waited(&self) -> f64 {
        self.scope.block.unanswered.older_than(0.0).map_or(0, |(_, count)| count) as f64
    }

    /// Whether more and more requests waited at the device, which answered no more of them than at the start. If robots ask as much as the
    /// device can answer, that cannot be told.
    fn falls_behind(&self) -> bool {
        let is_steady = self.facts.main_side().offered_rate().is_some() && !self.phase.is_ramp();
        let Some(thinking) = self.thinking().filter(|_| is_steady) else { return false };
        let at_device = self.waited() - thinking > ERRORS_MAX * self.begun;
        let is_most = self.gap - thinking > OPEN_MAX * self.begun;
        let is_sure = self.gap - thinking > allowance(self.begun, 1.0) && self.take_longer();
        at_device && (is_most || is_sure) && self.is_flat()
    }

    /// The two halves of the phase.
    fn halves<T>(&self, of: impl Fn(&[&crate::series::SeriesPoint]) -> T) -> Option<[T; 2]> {
        let points = points(self.facts, self.begin_s, self.end_s);
        let half = points.len() / 2;
        (half > 0).then(|| [of(&points[..half]), of(&points[points.len() - half..])])
    }

    /// Whether transactions ended about as often in the first half as in the second.
    fn is_flat(&self) -> bool {
        let rates = self.halves(|points| total(points, "baseline.rep.rate") / seconds(points));
        rates.is_some_and(|[first, second]| second <= FLAT * first)
    }

    /// Whether replies took longer and longer.
    fn take_longer(&self) -> bool {
        let means = self.halves(|points| mean(points, "baseline.rptm.mean"));
        means.is_some_and(|[first, second]| second >= LONGER * first)
    }
}
