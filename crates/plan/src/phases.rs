//! The phases of a test in order.

use polygraph_stats::PhasePlan;

use crate::goal::Goal;

/// How much of the load is launched in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseLoad {
    /// All of it.
    Full,
    /// Falling linearly to nothing over the duration of the phase.
    Falling,
}

/// A stretch of the test with a goal of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Name in logs and reports.
    pub name: String,
    /// Results are taken from this phase.
    pub primary: bool,
    /// Its statistics count when results of the whole run are asked for.
    pub log_stats: bool,
    /// When it ends.
    pub goal: Goal,
    /// The load.
    pub load: PhaseLoad,
}

/// The phases of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// In order, at least one.
    pub phases: Vec<Phase>,
}

/// Share of a 1.x run that only warms things up (reference: PolyMix-1).
const WARM_SHARE: f64 = 0.1;

impl Schedule {
    /// The phases of a 1.x run with the given goal: `warm` for a tenth of it, `meas` for the rest, then
    /// `cool` for `cool` seconds, if any. Without a positive goal there is only an endless `meas`.
    pub fn classic(goal: Goal, cool: Option<f64>) -> Schedule {
        let phase = |name: &str, primary, goal, load| Phase {
            name: name.into(),
            primary,
            log_stats: true,
            goal,
            load,
        };
        let mut phases = Vec::new();
        if goal.is_endless() {
            phases.push(phase("meas", true, goal, PhaseLoad::Full));
        } else {
            phases.push(phase("warm", false, goal.part(WARM_SHARE), PhaseLoad::Full));
            phases.push(phase("meas", true, goal.part(1.0 - WARM_SHARE), PhaseLoad::Full));
        }
        if let Some(seconds) = cool.filter(|&seconds| seconds > 0.0) {
            let goal = Goal { duration: Some(seconds), ..Goal::default() };
            phases.push(phase("cool", false, goal, PhaseLoad::Falling));
        }
        Schedule { phases }
    }

    /// What a log says about the phases.
    pub fn plans(&self) -> Vec<PhasePlan> {
        self.phases
            .iter()
            .map(|phase| PhasePlan {
                name: phase.name.clone(),
                primary: phase.primary,
                log_stats: phase.log_stats,
                duration_s: phase.goal.duration,
                xactions: phase.goal.xactions,
            })
            .collect()
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
        let goal = Goal { duration: Some(3600.0), xactions: None, errors: Some(0.3) };
        let schedule = Schedule::classic(goal, Some(60.0));
        let names: Vec<_> = schedule.phases.iter().map(|p| (p.name.as_str(), p.goal.duration)).collect();
        assert_eq!(names, [("warm", Some(360.0)), ("meas", Some(3240.0)), ("cool", Some(60.0))]);
        assert_eq!(schedule.duration(), Some(3660.0));
        assert_eq!(Schedule::classic(Goal::default(), None).phases.len(), 1);
    }
}
