//! The phases of a test in order.

use polygraph_stats::PlannedPhase;
use serde::{Deserialize, Serialize};

use crate::factor::{Factor, Factors, Inheritance};
use crate::goal::{Goal, scaled};
use crate::rptmstat::Rptmstat;
use crate::script::Script;

/// A part of the test with its own goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name in logs and reports.
    pub name: String,
    /// Results are taken from this phase.
    pub primary: bool,
    /// The statistics of the phase are part of those of the whole run.
    pub log_stats: bool,
    /// The goal that ends the phase.
    pub goal: Goal,
    /// How much of the configured behaviour applies. Inherited values are filled in as if the phase before
    /// ended at its planned values.
    pub factors: Factors,
    /// Which of these values the phase inherits from the actual end of the phase before it.
    pub inherited: Inheritance,
    /// A met goal does not end the phase while the working set fills (`docs/reference/models.md`, "End of a
    /// phase").
    pub wait_wss_freeze: bool,
    /// The response-time controller, if the phase has one.
    pub rptmstat: Option<Rptmstat>,
    /// Samples of single transactions. Those of the whole run are in the first phase.
    pub samples: Vec<SamplePlan>,
    /// Code that the client side runs when the phase starts. Only the phase controller has it; it is not sent
    /// to other processes.
    #[serde(skip)]
    pub script: Option<Script>,
    /// The phase ends together with that of the other processes of the test (`docs/reference/models.md`, "End
    /// of a phase").
    pub synchronize: bool,
}

/// Transactions to be recorded one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplePlan {
    /// Name of the sample.
    pub name: String,
    /// Seconds from the start of its phase, or of the run, to the start of the sample.
    pub start: f64,
    /// `start` counts from the start of the run.
    pub of_run: bool,
    /// Number of transactions.
    pub capacity: u64,
}

/// When the working set stops growing (`docs/reference/models.md`, "Working set limits").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum WorkingSetLimit {
    /// This many seconds after the start of the run.
    After(f64),
    /// When this many objects have been filled since the start of the run.
    Fill(u64),
    /// When this many objects have been filled since the start of the current phase, as in Web Polygraph 4.9.
    FillOfPhase(u64),
}

/// The phases of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// In order, at least one.
    pub phases: Vec<Phase>,
    /// When the working set freezes; `None` if it grows to the end.
    pub working_set: Option<WorkingSetLimit>,
}

/// Loads that differ by less than this share count as equal when the primary phase is chosen.
const EQUAL_LOADS: f64 = 0.01;

/// The share of a run of generation 1.x that is warm-up, as in PolyMix-1.
pub const WARM_SHARE: f64 = 0.1;

impl Schedule {
    /// The phases of a run of generation 1.x with the given goal: `warm` for a tenth of it, `meas` for the
    /// rest, then `cool` for `cool` seconds, if any. Without a positive goal there is only an endless `meas`.
    pub fn classic(goal: Goal, cool: Option<f64>) -> Schedule {
        let phase = |name: &str, primary, goal| Phase {
            name: name.into(),
            primary,
            log_stats: true,
            goal,
            ..Phase::default()
        };
        let mut phases = Vec::new();
        if goal.is_endless() {
            phases.push(phase("meas", true, goal));
        } else {
            phases.push(phase("warm", false, goal.part(WARM_SHARE)));
            phases.push(phase("meas", true, goal.part(1.0 - WARM_SHARE)));
        }
        if let Some(seconds) = cool.filter(|&seconds| seconds > 0.0) {
            let goal = Goal { duration: Some(seconds), ..Goal::default() };
            let factors = Factors { load: Factor { beg: 1.0, end: 0.0 }, ..Factors::ONE };
            phases.push(Phase { factors, ..phase("cool", false, goal) });
        }
        Schedule { phases, working_set: None }
    }

    /// Marks the primary phase, if none is marked: the last of the logged phases whose load is within 1 % of
    /// the highest (`docs/reference/workloads.md`, "Baseline phase").
    pub fn choose_primary(&mut self) {
        let logged = || self.phases.iter().filter(|phase| phase.log_stats);
        let highest = logged().map(|phase| phase.factors.mean_load()).fold(0.0, f64::max);
        if highest == 0.0 || self.phases.iter().any(|phase| phase.primary) {
            return;
        }
        let is_top =
            |phase: &Phase| phase.log_stats && phase.factors.mean_load() >= highest * (1.0 - EQUAL_LOADS);
        if let Some(last) = self.phases.iter_mut().rfind(|phase| is_top(phase)) {
            last.primary = true;
        }
    }

    /// The schedule made shorter or longer. Durations, transactions, fills and the limit of the working set are
    /// multiplied by `factor` (positive), counts at least 1. Error goals, factors and names do not change.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Schedule {
        let sample = |sample: &SamplePlan| SamplePlan { start: sample.start * factor, ..sample.clone() };
        let phases = self.phases.iter().map(|phase| Phase {
            goal: phase.goal.part(factor),
            samples: phase.samples.iter().map(sample).collect(),
            ..phase.clone()
        });
        let working_set = self.working_set.map(|limit| match limit {
            WorkingSetLimit::After(seconds) => WorkingSetLimit::After(seconds * factor),
            WorkingSetLimit::Fill(count) => WorkingSetLimit::Fill(scaled(count, factor)),
            WorkingSetLimit::FillOfPhase(count) => WorkingSetLimit::FillOfPhase(scaled(count, factor)),
        });
        Schedule { phases: phases.collect(), working_set }
    }

    /// All samples of single transactions in the order of their numbers.
    pub fn samples(&self) -> impl Iterator<Item = &SamplePlan> {
        self.phases.iter().flat_map(|phase| &phase.samples)
    }

    /// True if processes of the test agree about its phases.
    pub fn is_agreed(&self) -> bool {
        self.phases.iter().any(|phase| phase.synchronize)
    }

    /// The phases as a log describes them.
    pub fn plans(&self) -> Vec<PlannedPhase> {
        self.phases
            .iter()
            .map(|phase| PlannedPhase {
                name: phase.name.clone(),
                primary: phase.primary,
                log_stats: phase.log_stats,
                duration_s: phase.goal.duration,
                xactions: phase.goal.xactions,
                fill_bytes: phase.goal.fill_size,
                errors: phase.goal.errors,
                load: phase.factors.planned_load(),
            })
            .collect()
    }

    /// True if the load of a primary phase depends on measurements, so that it is not known in advance.
    pub fn is_steered(&self) -> bool {
        self.phases.iter().any(|phase| phase.primary && (phase.script.is_some() || phase.rptmstat.is_some()))
    }

    /// Total duration in seconds, if all phases have one.
    pub fn duration(&self) -> Option<f64> {
        self.phases.iter().map(|phase| phase.goal.duration).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_six_minutes_of_warm_up_and_54_of_measurement() {
        let goal = Goal { duration: Some(3600.0), errors: Some(0.3), ..Goal::default() };
        let schedule = Schedule::classic(goal, Some(60.0));
        let names: Vec<_> = schedule.phases.iter().map(|p| (p.name.as_str(), p.goal.duration)).collect();
        assert_eq!(names, [("warm", Some(360.0)), ("meas", Some(3240.0)), ("cool", Some(60.0))]);
        assert_eq!(schedule.duration(), Some(3660.0));
        assert_eq!(Schedule::classic(Goal::default(), None).phases.len(), 1);
    }

    #[test]
    fn without_a_mark_the_last_of_the_busiest_logged_phases_is_primary() {
        // Load at both ends, whether the phase is logged; then the phase that is chosen.
        type Row = (f64, f64, bool);
        let rows: [(&[Row], Option<usize>); 6] = [
            (
                &[(0.0, 0.5, true), (0.5, 0.5, true), (1.0, 1.0, true), (1.0, 1.0, true), (1.0, 0.0, true)],
                Some(3),
            ),
            (&[(1.0, 1.0, true), (0.995, 0.995, true), (0.98, 0.98, true)], Some(1)),
            (&[(1.0, 1.0, false), (0.1, 0.1, true)], Some(1)),
            (&[(0.1, 0.1, true), (0.1, 1.0, true)], Some(1)),
            (&[(1.0, 1.0, false)], None),
            (&[(0.0, 0.0, true)], None),
        ];
        for (phases, primary) in rows {
            let phase = |&(beg, end, log_stats): &Row| Phase {
                log_stats,
                factors: Factors { load: Factor { beg, end }, ..Factors::ONE },
                ..Phase::default()
            };
            let mut schedule = Schedule { phases: phases.iter().map(phase).collect(), working_set: None };
            schedule.choose_primary();
            let marked: Vec<usize> = (0..phases.len()).filter(|&at| schedule.phases[at].primary).collect();
            assert_eq!(marked, Vec::from_iter(primary), "{phases:?}");
        }
        let marked = Phase { primary: true, ..Phase::default() };
        let busy = Phase { log_stats: true, ..Phase::default() };
        let mut schedule = Schedule { phases: vec![marked, busy], working_set: None };
        schedule.choose_primary();
        assert!(!schedule.phases[1].primary, "a mark is not overruled");
    }

    #[test]
    fn scaling_changes_lengths_alone() {
        let goal =
            Goal { duration: Some(600.0), xactions: Some(30), fill_size: Some(1 << 30), errors: Some(0.3) };
        let phase = Phase { name: "fill".into(), goal, wait_wss_freeze: true, ..Phase::default() };
        let schedule = |working_set| Schedule { phases: vec![phase.clone()], working_set: Some(working_set) };
        let short = schedule(WorkingSetLimit::Fill(5_000)).scaled(0.01);
        let goal =
            Goal { duration: Some(6.0), xactions: Some(1), fill_size: Some(10_737_418), errors: Some(0.3) };
        assert_eq!(short.phases, [Phase { goal, ..phase.clone() }]);
        assert_eq!(short.working_set, Some(WorkingSetLimit::Fill(50)));
        let shorter = schedule(WorkingSetLimit::Fill(5)).scaled(0.01).working_set;
        assert_eq!(shorter, Some(WorkingSetLimit::Fill(1)));
        let time = schedule(WorkingSetLimit::After(4.0)).scaled(2.5).working_set;
        assert_eq!(time, Some(WorkingSetLimit::After(10.0)));
    }
}
