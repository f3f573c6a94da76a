//! Whether a process of the bench stalled: it was stopped, swapped out or starved of processor time. Whatever waited for it,
//! waited for the bench and not for the device.

use polygraph_stats::EndReason;

use super::{Findings, LimitingParty, apart};
use crate::facts::{PhaseFacts, ProcessFacts, RunFacts, SideFacts};
use crate::scope::Scope;

/// Longest stall, in seconds, that a process may have in the judged time.
pub(super) const LONGEST_S: f64 = 1.0;
/// Largest share of the judged time for which a process may be stalled in total.
pub(super) const SHARE_MAX: f64 = 0.02;
/// Total stall time, in seconds, that is allowed in a short run,
pub(super) const LEAST_S: f64 = 0.5;
/// unless it is a larger share of the judged time: even a short run must not be one that a process of the bench slept through.
pub(super) const SHORT_SHARE_MAX: f64 = 0.05;
/// Stalls with a total of less than this many seconds, or of less than this share of the judged time, cause no warning.
const TOLD_S: f64 = 0.25;
const TOLD_SHARE: f64 = 0.005;
/// Lateness in milliseconds that is always allowed for 99 % of the think times.
pub(super) const THINK_LATE_MS: f64 = 10.0;
/// Lateness in milliseconds of a reply that makes devices give up, and perhaps do without the server for a while; their time limits are
/// seconds.
const GIVE_UP_MS: f64 = 500.0;

/// The stalls of a process within a part of the run.
#[derive(Clone, Copy, Default)]
struct StallSums {
    sum_s: f64,
    longest_s: f64,
    /// When the longest stall began.
    at_s: f64,
}

impl StallSums {
    fn of(process: &ProcessFacts, windows: &[(f64, f64)]) -> StallSums {
        let mut still = StallSums::default();
        for &(begin, end) in &process.stalls {
            for &(from, to) in windows {
                let seconds = (end.min(to) - begin.max(from)).max(0.0);
                still.sum_s += seconds;
                if seconds > still.longest_s {
                    (still.longest_s, still.at_s) = (seconds, begin.max(from));
                }
            }
        }
        still
    }

    /// Whether the stalls invalidate figures that cover `whole_s` seconds.
    fn is_too_long(&self, whole_s: f64) -> bool {
        self.longest_s > LONGEST_S
            || self.sum_s > LEAST_S.clamp(SHARE_MAX * whole_s, SHORT_SHARE_MAX * whole_s)
    }
}

/// The most affected process of a side: a process with a stall that is too long comes before one that only has a larger total.
fn worst(all: impl Iterator<Item = StallSums>, whole_s: f64) -> Option<StallSums> {
    all.max_by(|a, b| a.is_too_long(whole_s).cmp(&b.is_too_long(whole_s)).then(a.sum_s.total_cmp(&b.sum_s)))
}

pub(super) fn stalls(facts: &RunFacts, found: &mut Findings) {
    let windows = judged(facts);
    let whole_s: f64 = windows.iter().map(|(from, to)| to - from).sum();
    for side in facts.sides() {
        let all = side.processes.iter().map(|process| StallSums::of(process, &windows));
        let Some(worst) = worst(all, whole_s) else { continue };
        let text = format!(
            "the {} stalled for {:.1} s at a stretch, {:.1} s into the run, and for {:.1} s in total ({:.1} % of the measured \
             time): it was stopped, or had no processor or memory",
            side.side.name(),
            worst.longest_s,
            worst.at_s,
            worst.sum_s,
            100.0 * worst.sum_s / whole_s
        );
        if worst.is_too_long(whole_s) {
            found.invalid("stalls", side.side.into(), text);
        } else if worst.sum_s > TOLD_S.max(TOLD_SHARE * whole_s) {
            found.warn("stalls", text);
        }
    }
}

/// Start and end of the judged time: the phases of the headline figures, and the phase in which the run ended as failed.
pub(super) fn judged(facts: &RunFacts) -> Vec<(f64, f64)> {
    let side = facts.main_side();
    let given_up = |phase: &PhaseFacts| {
        let wanted =
            |end: &EndReason| matches!(end, EndReason::ErrorGoal { phase: name } if *name == phase.name);
        side.processes.iter().filter_map(|process| process.end.as_ref()).any(wanted)
    };
    let headline: Vec<&str> = facts.headline.iter().flat_map(|headline| headline.phase.split('|')).collect();
    let phases =
        side.phases.iter().filter(|phase| headline.contains(&phase.name.as_str()) || given_up(phase));
    phases.filter_map(|phase| Some((phase.begin_s?, phase.end_s?))).collect()
}

/// Think times that ended later than drawn: the server, not the device, caused this part of the response times.
pub(super) fn late_servers(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.server.as_ref().and_then(measured) else { return };
    let Some(late_ms) = total.block.late_us.quantile(0.99).map(|us| us as f64 * 1e-3) else { return };
    let allowed_ms = allowed_ms(total);
    if late_ms > allowed_ms {
        let (late_ms, allowed_ms) = apart(late_ms, allowed_ms, 1);
        let text = format!(
            "servers answered late: 1 % of their think times ended more than {late_ms} ms late; the limit is {allowed_ms} ms"
        );
        found.invalid("late", LimitingParty::Server, text);
    }
}

/// Lateness in milliseconds that is allowed for 99 % of the think times of servers.
fn allowed_ms(total: &Scope) -> f64 {
    let mean_ms = total.rptm_us().mean().map_or(0.0, |us| us * 1e-3);
    THINK_LATE_MS.max(super::generator::LATE_SHARE * mean_ms)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stretch_counts_more_than_many_short_ones() {
        let once = StallSums { sum_s: 1.4, longest_s: 1.4, at_s: 5.0 };
        let often = StallSums { sum_s: 2.0, longest_s: 0.2, at_s: 7.0 };
        // 2 % of 20 minutes are 24 s: many short ones do no harm.
        assert_eq!(worst([once, often].into_iter(), 1200.0).map(|still| still.at_s), Some(5.0));
        // Of 50 s they are 1 s, so both do, and the larger sum is reported.
        assert_eq!(worst([once, often].into_iter(), 50.0).map(|still| still.at_s), Some(7.0));
    }

    #[test]
    fn short_runs_may_stand_still_for_a_larger_share() {
        let still = |sum_s| StallSums { sum_s, longest_s: 0.1, at_s: 5.0 };
        // 5 % of a run of 5 s, half a second of one of 20 s, and 2 % of one of a minute.
        for (whole_s, most_s) in [(5.0, 0.25), (20.0, 0.5), (60.0, 1.2)] {
            assert!(
                !still(most_s - 0.01).is_too_long(whole_s) && still(most_s + 0.01).is_too_long(whole_s),
                "{whole_s} s"
            );
        }
    }
}
