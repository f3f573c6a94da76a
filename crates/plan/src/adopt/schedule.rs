//! Phases and the limit of the working set.

use polygraph_pgl::Workload;
use polygraph_pgl::types::Rptmstat as PglRptmstat;

use super::Findings;
use crate::factor::Factors;
use crate::goal::Goal;
use crate::phases::{Phase, Schedule, WorkingSetLimit};
use crate::predict;
use crate::rptmstat::Rptmstat;
use crate::script::Script;

/// The schedule of a workload.
pub fn schedule(workload: &Workload, found: &mut Findings<'_>) -> Schedule {
    let phases = workload.phases.iter().zip(predict::phase_plans(workload)).map(|(phase, plan)| {
        if !phase.stats_samples.is_empty() {
            found.note("samples of single transactions (`StatsSample`) are not taken");
        }
        Phase {
            name: plan.name,
            primary: phase.primary,
            log_stats: phase.log_stats,
            goal: phase.goal.as_deref().map(Goal::from).unwrap_or_default(),
            factors: Factors {
                populus: plan.populus,
                load: plan.load,
                recur: plan.recur,
                special_msg: plan.special_msg,
            },
            wait_wss_freeze: phase.wait_wss_freeze,
            rptmstat: phase.rptmstat.as_deref().and_then(rptmstat),
            script: phase.script.map(|id| Script::new(&workload.scripts, id)),
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
