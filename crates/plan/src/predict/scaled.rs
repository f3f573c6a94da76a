//! A workload made shorter or longer.

use polygraph_pgl::Workload;
use polygraph_pgl::types::{Size, Time};

/// The workload with all phases and the working set `factor` times as long, as
/// [`Schedule::scaled`](crate::Schedule::scaled) makes them.
pub fn scaled(mut workload: Workload, factor: f64) -> Workload {
    let count = |count: i64| ((count as f64 * factor).round() as i64).max(1);
    let time = |time: Time| Time((time.0 as f64 * factor).round() as i64);
    for goal in workload.phases.iter_mut().filter_map(|phase| phase.goal.as_deref_mut()) {
        goal.duration = goal.duration.map(time);
        goal.xactions = goal.xactions.map(|xactions| count(i64::from(xactions)) as i32);
        goal.fill_size = goal.fill_size.map(|size| Size(count(size.0)));
    }
    workload.working_set_length = workload.working_set_length.map(time);
    workload.working_set_cap = workload.working_set_cap.map(|cap| count(i64::from(cap)) as u32);
    workload
}
