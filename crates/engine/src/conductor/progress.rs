//! How far a phase is on the way to its goal, which factors follow, and what is in force when it ends.

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::Along;

use super::{Conductor, Current, Event, Seen};
use crate::pacing::least_progress;

/// How often is told how far a phase is.
const REPORT: Nanos = 300 * SECOND;

impl Conductor {
    /// Share of its goal that `phase` has reached after `length`.
    pub(super) fn progress_at(&self, phase: usize, length: Nanos) -> f64 {
        match self.score.schedule.phases[phase].goal.along() {
            Some(Along::Time(seconds)) => (length as f64 / nanos(seconds) as f64).clamp(0.0, 1.0),
            Some(Along::Xactions(_) | Along::Fill(_)) => least_progress(self.score.timeline.progress(phase)),
            None => 0.0,
        }
    }

    /// The phase after `phase` begins with what is in force when this one ends, where it gives nothing else.
    pub(super) fn hand_on(&self, phase: usize, progress: f64) {
        if let Some(next) = self.score.schedule.phases.get(phase + 1) {
            let levels = self.score.timeline.factors(phase).at(progress);
            self.score.timeline.set_factors(phase + 1, next.factors.after(&levels, &next.inherited));
        }
    }

    /// Publishes how far the current phase is, if its factors follow that.
    pub(super) fn publish_progress(&self, current: &Current, seen: &Seen) {
        let along = self.plan(current).goal.along();
        if !matches!(along, Some(Along::Time(_)) | None)
            && let Some(share) = self.progress_of(current, seen)
        {
            self.score.timeline.set_progress(current.phase, share);
        }
    }

    /// Share of its goal that the current phase has reached (0 to 1); `None` without a goal.
    pub(super) fn progress_of(&self, current: &Current, seen: &Seen) -> Option<f64> {
        let done = seen.counts - current.before;
        let share = match self.plan(current).goal.along()? {
            Along::Time(seconds) => seen.now.saturating_sub(current.begin) as f64 / nanos(seconds) as f64,
            Along::Xactions(goal) => done.ended() as f64 / goal as f64,
            Along::Fill(goal) => done.fill_bytes as f64 / goal as f64,
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// Tells now and then how far the current phase is.
    pub(super) fn report(&mut self, current: &Current, seen: &Seen, events: &mut Vec<Event>) {
        if seen.now < self.reported + REPORT {
            return;
        }
        self.reported = seen.now;
        let done = seen.counts - current.before;
        let share = self.progress_of(current, seen);
        let goal = share.map_or("no goal".to_owned(), |share| format!("{:.0} % of its goal", share * 100.0));
        let frozen = self.score.timeline.frozen_from().is_some_and(|at| at <= seen.now);
        let set = if frozen { "frozen" } else { "growing" };
        let text = format!(
            "phase {}: {goal}, {} transactions, {} bytes filled; working set {set}",
            self.plan(current).name,
            done.ended(),
            done.fill_bytes
        );
        events.push(Event::said(seen.now, 7, text));
    }
}
