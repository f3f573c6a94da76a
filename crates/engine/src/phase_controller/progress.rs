//! How far a phase is on the way to its goal, the factors that follow from that, and the factors that the next phase
//! inherits.

use polygraph_link::{Nanos, nanos};
use polygraph_plan::PositiveGoal;
use polygraph_text as text;

use super::{ControlEvent, CurrentPhase, Observations, PhaseController};
use crate::pacing::least_progress;

/// How often the progress of a phase is reported.
const REPORT: Nanos = Nanos::from_secs(300);

impl PhaseController {
    /// The share of its goal (0 to 1) that `phase` has reached after `length`.
    pub(super) fn progress_at(&self, phase: usize, length: Nanos) -> f64 {
        match self.plan.schedule.phases[phase].goal.along() {
            Some(PositiveGoal::Time(seconds)) => (length.as_f64() / nanos(seconds).as_f64()).clamp(0.0, 1.0),
            Some(PositiveGoal::Xactions(_) | PositiveGoal::Fill(_)) => {
                least_progress(self.plan.timeline.progress(phase))
            }
            None => 0.0,
        }
    }

    /// Passes the factors in force at the end of `phase` on to the next phase, unless that sets factors itself.
    pub(super) fn hand_on(&self, phase: usize, progress: f64) {
        if let Some(next) = self.plan.schedule.phases.get(phase + 1) {
            let levels = self.plan.timeline.factors(phase).at(progress);
            self.plan.timeline.set_factors(phase + 1, next.factors.after(&levels, &next.inherited));
        }
    }

    /// Publishes the progress of the current phase if its factors depend on it.
    pub(super) fn publish_progress(&self, current: &CurrentPhase, observed: &Observations) {
        let along = self.phase_of(current).goal.along();
        if !matches!(along, Some(PositiveGoal::Time(_)) | None)
            && let Some(share) = self.progress_of(current, observed)
        {
            self.plan.timeline.set_progress(current.phase, share);
        }
    }

    /// The share of its goal (0 to 1) that the current phase has reached; `None` without a goal.
    pub(super) fn progress_of(&self, current: &CurrentPhase, observed: &Observations) -> Option<f64> {
        let done = observed.counts - current.before;
        let share = match self.phase_of(current).goal.along()? {
            PositiveGoal::Time(seconds) => {
                observed.now.saturating_sub(current.begin).as_f64() / nanos(seconds).as_f64()
            }
            PositiveGoal::Xactions(goal) => done.ended() as f64 / goal as f64,
            PositiveGoal::Fill(goal) => done.fill_bytes as f64 / goal as f64,
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// Reports the progress of the current phase from time to time.
    pub(super) fn report(
        &mut self,
        current: &CurrentPhase,
        observed: &Observations,
        events: &mut Vec<ControlEvent>,
    ) {
        if observed.now < self.reported + REPORT {
            return;
        }
        self.reported = observed.now;
        let done = observed.counts - current.before;
        let share = self.progress_of(current, observed);
        let goal = share.map_or("no goal".to_owned(), |share| format!("{:.0} % of its goal", share * 100.0));
        let frozen = self.plan.timeline.frozen_from().is_some_and(|at| at <= observed.now);
        let set = if frozen { "frozen" } else { "growing" };
        let text = format!(
            "phase {}: {goal}, {}, {} filled; working set {set}",
            self.phase_of(current).name,
            text::counted(done.ended(), "transaction"),
            text::bytes(Some(done.fill_bytes as f64))
        );
        events.push(ControlEvent::message(observed.now, 7, text));
    }
}
