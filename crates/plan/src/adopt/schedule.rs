//! Phases and the limit of the working set.

use polygraph_pgl::Workload;
use polygraph_pgl::types::{Phase as PglPhase, Rptmstat as PglRptmstat};

use super::{Findings, only_defaults};
use crate::factor::{Factors, Inheritance, Inherited};
use crate::goal::Goal;
use crate::phases::{Phase, Schedule, WorkingSetLimit};
use crate::predict;
use crate::rptmstat::Rptmstat;

/// The schedule of a workload.
pub fn schedule(workload: &Workload, found: &mut Findings<'_>) -> Schedule {
    let mut is_first = true;
    let phases = workload.phases.iter().zip(predict::phase_plans(workload)).map(|(phase, plan)| {
        let default = PglPhase::default();
        only_defaults!(found, "Phase", phase, default, [script]);
        if !phase.stats_samples.is_empty() {
            found.note("samples of single transactions (`StatsSample`) are not taken");
        }
        Phase {
            name: plan.name,
            primary: phase.primary,
            log_stats: phase.log_stats,
            goal: goal(phase),
            factors: Factors {
                populus: plan.populus,
                load: plan.load,
                recur: plan.recur,
                special_msg: plan.special_msg,
            },
            // There is nothing before the first phase.
            inherited: if std::mem::take(&mut is_first) { Inheritance::default() } else { inherited(phase) },
            wait_wss_freeze: phase.wait_wss_freeze,
            rptmstat: phase.rptmstat.as_deref().and_then(rptmstat),
            synchronize: phase.synchronize,
        }
    });
    let phases = phases.collect();
    let after = workload.working_set_length.map(|time| WorkingSetLimit::After(time.secs()));
    let fill = workload.working_set_cap.map(|count| WorkingSetLimit::Fill(u64::from(count)));
    let mut schedule = Schedule { phases, working_set: after.or(fill) };
    schedule.choose_primary();
    schedule
}

/// The thermostat; the language has checked that it is complete.
fn rptmstat(control: &PglRptmstat) -> Option<Rptmstat> {
    Some(Rptmstat {
        sample_dur: control.sample_dur?.secs(),
        load_delta: control.load_delta?,
        rptm_min: control.rptm_min.map(|time| time.secs()),
        rptm_max: control.rptm_max.map(|time| time.secs()),
    })
}

fn inherited(phase: &PglPhase) -> Inheritance {
    Inheritance {
        populus: Inherited::of(phase.populus_factor_beg, phase.populus_factor_end),
        load: Inherited::of(phase.load_factor_beg, phase.load_factor_end),
        recur: Inherited::of(phase.recur_factor_beg, phase.recur_factor_end),
        special_msg: Inherited::of(phase.special_msg_factor_beg, phase.special_msg_factor_end),
    }
}

fn goal(phase: &PglPhase) -> Goal {
    let Some(goal) = &phase.goal else { return Goal::default() };
    let positive = |count: i64| u64::try_from(count).ok().filter(|&count| count > 0);
    Goal {
        duration: goal.duration.map(|time| time.secs()),
        xactions: goal.xactions.and_then(|count| positive(count.into())),
        fill_size: goal.fill_size.and_then(|size| positive(size.0)),
        errors: goal.errors,
    }
}
