//! Phases and the limit of the working set.

use polygraph_pgl::types::{Phase as PglPhase, Rptmstat as PglRptmstat, StatsSample};
use polygraph_pgl::{Compat, Workload};

use crate::factor::{Factors, Inheritance, Inherited};
use crate::goal::{DEFAULT_ERRORS, Goal};
use crate::phases::{Phase, SamplePlan, Schedule, WorkingSetLimit};
use crate::predict;
use crate::rptmstat::Rptmstat;
use crate::script::Script;

/// The schedule of a workload, with its primary phase.
pub fn schedule(workload: &Workload) -> Schedule {
    let mut is_first = true;
    let phases = workload.phases.iter().zip(predict::phase_plans(workload)).map(|(phase, plan)| {
        let goal = phase.goal.as_deref().map(Goal::from).unwrap_or_default();
        // Errors must be able to end every phase.
        let goal = Goal { errors: goal.errors.or(Some(DEFAULT_ERRORS)), ..goal };
        Phase {
            samples: phase.stats_samples.iter().map(|wanted| sample(wanted, &plan.name, &goal)).collect(),
            name: plan.name,
            primary: phase.primary,
            log_stats: phase.log_stats,
            goal,
            factors: Factors {
                populus: plan.populus,
                load: plan.load,
                recur: plan.recur,
                special_msg: plan.special_msg,
            },
            // There is no phase before the first.
            inherited: if std::mem::take(&mut is_first) { Inheritance::default() } else { inherited(phase) },
            wait_wss_freeze: phase.wait_wss_freeze,
            rptmstat: phase.rptmstat.as_deref().and_then(rptmstat),
            script: phase.script.map(|id| Script::new(&workload.scripts, id)),
            synchronize: phase.synchronize,
        }
    });
    let mut phases: Vec<Phase> = phases.collect();
    if let Some(first) = phases.first_mut() {
        let of_run = |wanted| SamplePlan { of_run: true, ..sample(wanted, "", &Goal::default()) };
        first.samples.extend(workload.stats_samples.iter().map(of_run));
    }
    let after = workload.working_set_length.map(|time| WorkingSetLimit::After(time.secs()));
    let of_count = match workload.compat {
        None | Some(Compat::None) => WorkingSetLimit::Fill,
        Some(Compat::V4_9) => WorkingSetLimit::FillOfPhase,
    };
    let fill = workload.working_set_cap.map(|count| of_count(u64::from(count)));
    let mut schedule = Schedule { phases, working_set: after.or(fill) };
    schedule.choose_primary();
    schedule
}

/// The response-time controller. The checks of the language have refused incomplete ones.
fn rptmstat(control: &PglRptmstat) -> Option<Rptmstat> {
    Some(Rptmstat {
        sample_dur: control.sample_dur?.secs(),
        load_delta: control.load_delta?,
        rptm_min: control.rptm_min.map(|time| time.secs()),
        rptm_max: control.rptm_max.map(|time| time.secs()),
    })
}

/// A sample of transactions. By default it starts in the middle of the phase (at the start if the phase has no
/// duration) and has the phase's name.
fn sample(wanted: &StatsSample, phase: &str, goal: &Goal) -> SamplePlan {
    SamplePlan {
        name: wanted.name.clone().unwrap_or_else(|| phase.to_owned()),
        start: wanted.start.map_or(goal.duration.unwrap_or(0.0) / 2.0, |start| start.secs()),
        of_run: false,
        capacity: wanted.capacity.and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
    }
}

fn inherited(phase: &PglPhase) -> Inheritance {
    Inheritance {
        populus: Inherited::of(phase.populus_factor_beg, phase.populus_factor_end),
        load: Inherited::of(phase.load_factor_beg, phase.load_factor_end),
        recur: Inherited::of(phase.recur_factor_beg, phase.recur_factor_end),
        special_msg: Inherited::of(phase.special_msg_factor_beg, phase.special_msg_factor_end),
    }
}
