//! Whether a process of the bench stalled: it was stopped, swapped out or starved of processor time. Whatever waited for it,
//! waited for the bench and not for the device.

use polygraph_stats::EndReason;

use super::Findings;
use crate::facts::{PhaseFacts, ProcessFacts, RunFacts};

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
