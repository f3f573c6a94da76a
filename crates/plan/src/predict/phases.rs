//! The schedule with all factors resolved.

use polygraph_pgl::Workload;
use polygraph_pgl::types::{Goal, Phase};
use polygraph_text as text;
use serde::Serialize;

use crate::factor::Factor;

/// A phase of the schedule.
#[derive(Debug, Clone, Serialize)]
pub struct PhasePrediction {
    /// Name of the phase.
    pub name: String,
    /// Seconds from the start of the test, if the lengths of all phases before are known.
    pub start_secs: Option<f64>,
    /// Length in seconds, if the phase ends by time.
    pub duration_secs: Option<f64>,
    /// Expected length in seconds: the given length, or the time until enough is counted.
    pub expected_secs: Option<f64>,
    /// The goal in words.
    pub goal: String,
    /// Share of robots alive.
    pub populus: Factor,
    /// Factor of the request rate.
    pub load: Factor,
    /// Factor of the recurrence.
    pub recur: Factor,
    /// Factor of special requests and replies.
    pub special_msg: Factor,
    /// Requests per second offered at the start and at the end.
    pub req_rate: Option<Factor>,
    /// Whether its statistics are logged.
    pub logged: bool,
    /// Whether it has a script.
    pub script: bool,
}

/// All phases of a workload whose robots offer `rate` requests per second with all factors at 1.
pub fn plan(workload: &Workload, rate: Option<f64>) -> Vec<PhasePrediction> {
    let (mut populus, mut load, mut recur, mut special) =
        (Factor::ONE, Factor::ONE, Factor::ONE, Factor::ONE);
    let mut plans = Vec::with_capacity(workload.phases.len());
    for phase in &workload.phases {
        populus = populus.next(phase.populus_factor_beg, phase.populus_factor_end);
        load = load.next(phase.load_factor_beg, phase.load_factor_end);
        recur = recur.next(phase.recur_factor_beg, phase.recur_factor_end);
        special = special.next(phase.special_msg_factor_beg, phase.special_msg_factor_end);
        let duration_secs = duration(phase);
        plans.push(PhasePrediction {
            name: phase.name.clone().unwrap_or_default(),
            start_secs: None,
            duration_secs,
            expected_secs: duration_secs,
            goal: ends(phase),
            populus,
            load,
            recur,
            special_msg: special,
            req_rate: rate.map(|rate| Factor {
                beg: rate * populus.beg * load.beg,
                end: rate * populus.end * load.end,
            }),
            logged: phase.log_stats,
            script: phase.script.is_some(),
        });
    }
    plans
}

/// The length of a phase that ends by time alone.
fn duration(phase: &Phase) -> Option<f64> {
    let goal = phase.goal.as_deref()?;
    let other = goal.xactions.is_some() || goal.fill_size.is_some() || phase.wait_wss_freeze;
    goal.duration.filter(|_| !other).map(|time| time.secs())
}

/// What ends a phase, in words.
fn ends(phase: &Phase) -> String {
    let text = phase.goal.as_deref().map_or_else(|| "never".to_owned(), goal);
    if phase.wait_wss_freeze { text + ", frozen set" } else { text }
}

/// A goal in words.
fn goal(goal: &Goal) -> String {
    let mut parts = Vec::new();
    if let Some(time) = goal.duration {
        parts.push(polygraph_pgl::value::show_time(time.0));
    }
    if let Some(count) = goal.xactions {
        parts.push(text::counted(count.unsigned_abs().into(), "transaction"));
    }
    if let Some(size) = goal.fill_size {
        parts.push(format!("fill of {}", polygraph_pgl::value::show_size(size.0 as f64)));
    }
    match goal.errors {
        Some(ratio) if ratio < 1.0 => parts.push(format!("{} errors", text::percent(ratio, 3))),
        Some(count) => parts.push(text::counted(count as u64, "error")),
        None => {}
    }
    parts.join(" or ")
}
