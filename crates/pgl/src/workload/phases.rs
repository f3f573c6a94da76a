//! Checks of the schedule.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::UsedRecord;
use crate::types::{Goal, Phase, Rec, StatsSample, fresh};
use crate::workload::{Checks, Workload};

/// Checks the phases. A program without phases gets one that never ends, and the result is true.
pub fn schedule(workload: &mut Workload, used: &[&UsedRecord], checks: &mut Checks<'_>) -> bool {
    if workload.phases.is_empty() {
        let mut lower = crate::types::Converter::new(0);
        let mut phase = Phase::from_record(&fresh(Rec::Phase), &mut lower);
        phase.name = Some("dflt".to_owned());
        workload.phases.push(phase);
        return !workload.robots.is_empty() || !workload.servers.is_empty();
    }
    let last = workload.phases.len() - 1;
    for (at, (phase, used)) in workload.phases.iter().zip(used).enumerate() {
        check(phase, used, checks);
        check_end(phase, used, at == last, checks);
        let name = phase.name.as_deref().unwrap_or("");
        let before = workload.phases[..at].iter().filter(|other| other.name.as_deref() == Some(name)).count();
        if before > 0 {
            let text = format!(
                "several phases are called \"{name}\": logs and reports call this one \"{name}-n{}\"",
                before + 1
            );
            let finding = checks.at(Code::PartAdvice, *used, "name", text);
            checks.push(finding.help("give each phase a name of its own"));
        }
    }
    false
}

/// Warns of a phase that nothing ends.
fn check_end(phase: &Phase, used: &UsedRecord, is_last: bool, checks: &mut Checks<'_>) {
    let goal = phase.goal.as_deref();
    let ends = is_positive(goal) || goal.is_some_and(|goal| goal.errors.is_some());
    if ends || phase.script.is_some() || used.record.is_bad("goal") || used.record.is_bad("script") {
        return;
    }
    let name = phase.name.as_deref().unwrap_or("");
    let after = if is_last { "" } else { ", and the phases after it never start" };
    let text = format!("phase \"{name}\" has no goal: it never ends{after}");
    let owner = used.name.as_ref().map_or(String::new(), |name| format!("{name}."));
    let finding = checks.at(Code::PartAdvice, used, "goal", text);
    checks.push(finding.help(format!("give it one, e.g. `{owner}goal.duration = 10min;`")));
}

/// The warning about a schedule without phases.
pub fn unscheduled() -> Diagnostic {
    let text = "no phase is scheduled: one endless phase named dflt will run";
    Diagnostic::new(Code::NoSchedule, None, text)
        .help("schedule one, e.g. `Phase p = { name = \"p1\"; goal.duration = 10min; }; schedule(p);`")
}

/// True if a goal has a positive part.
fn is_positive(goal: Option<&Goal>) -> bool {
    goal.is_some_and(|goal| goal.duration.is_some() || goal.xactions.is_some() || goal.fill_size.is_some())
}

fn check(phase: &Phase, used: &UsedRecord, checks: &mut Checks<'_>) {
    let name = phase.name.as_deref().unwrap_or("");
    let owner = used.name.as_ref().map_or(String::new(), |name| format!("{name}."));
    let factors = [
        ("populus_factor", phase.populus_factor_beg, phase.populus_factor_end),
        ("load_factor", phase.load_factor_beg, phase.load_factor_end),
        ("recur_factor", phase.recur_factor_beg, phase.recur_factor_end),
        ("special_msg_factor", phase.special_msg_factor_beg, phase.special_msg_factor_end),
    ];
    for (factor, beg, end) in factors {
        for (suffix, value) in [("beg", beg), ("end", end)] {
            let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) else { continue };
            let percent = crate::value::significant(value * 100.0, 6);
            let field = format!("{factor}_{suffix}");
            let text = format!("`{field}` of phase \"{name}\" is {percent}%; factors are from 0% to 100%");
            let finding = checks.at(Code::BadPhase, used, &field, text);
            checks.push(finding);
        }
        if let (Some(beg), Some(end)) = (beg, end)
            && beg != end
            && !is_positive(phase.goal.as_deref())
            && !used.record.is_bad("goal")
        {
            let text = format!(
                "`{factor}` of phase \"{name}\" varies, but the phase has no positive goal along which it could vary"
            );
            let finding = checks
                .at(Code::BadPhase, used, &format!("{factor}_end"), text)
                .help(format!(
                    "give the phase a goal: `{owner}goal.duration = 10min;`, `{owner}goal.xactions = 1000;` or `{owner}goal.fill_size = 1GB;`"
                ));
            checks.push(finding);
        }
    }
    if let Some(goal) = &phase.goal {
        let wrong = if goal.duration.is_some_and(|time| time.0 <= 0) {
            Some("the duration of the goal is not positive")
        } else if goal.xactions.is_some_and(|count| count <= 0) {
            Some("the number of transactions of the goal is not positive")
        } else if goal.fill_size.is_some_and(|size| size.0 <= 0) {
            Some("the fill size of the goal is not positive")
        } else if goal.errors.is_some_and(|errors| errors < 0.0) {
            Some("the errors of the goal are negative")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let finding = checks.at(Code::BadPhase, used, "goal", format!("{wrong} in phase \"{name}\""));
            checks.push(
                finding.help("write a positive number, or leave it out if something else ends the phase"),
            );
        }
    }
    rptmstat(phase, used, checks);
    let unplaced = phase.stats_samples.iter().filter(|sample| sample.start.is_none()).count();
    if unplaced > 1 {
        let text = "at most one sample of a phase has no start";
        let finding = checks.at(Code::BadPart, used, "stats_samples", text);
        checks.push(finding);
    }
    for sample in &phase.stats_samples {
        if sample.capacity.is_none_or(|count| count <= 0) {
            let text = "a sample needs a positive capacity";
            let finding = checks.at(Code::BadPart, used, "stats_samples", text);
            checks.push(finding);
        }
    }
}

fn rptmstat(phase: &Phase, used: &UsedRecord, checks: &mut Checks<'_>) {
    let Some(control) = &phase.rptmstat else { return };
    if used.record.is_bad("rptmstat") {
        return;
    }
    let wrong = if control.sample_dur.is_none_or(|time| time.0 <= 0) {
        "the controller needs a positive sample_dur"
    } else if control.load_delta.is_none_or(|delta| delta == 0.0) {
        "the controller needs a load_delta other than 0"
    } else {
        match (control.rptm_min, control.rptm_max) {
            (None, None) => "the controller needs rptm_min or rptm_max",
            (Some(min), Some(max)) if min > max => "rptm_min is above rptm_max",
            _ => return,
        }
    };
    let finding = checks.at(Code::BadPart, used, "rptmstat", wrong);
    checks.push(finding);
}

/// Checks a sample that was scheduled directly.
pub fn scheduled_sample(sample: &StatsSample, used: &UsedRecord, checks: &mut Checks<'_>) {
    if sample.start.is_none() && !used.record.is_bad("start") {
        let finding = checks.at(Code::BadPart, used, "start", "a scheduled sample needs a start");
        checks.push(finding);
    }
    if sample.capacity.is_none_or(|count| count <= 0) && !used.record.is_bad("capacity") {
        let finding =
            checks.at(Code::BadPart, used, "capacity", "a scheduled sample needs a positive capacity");
        checks.push(finding);
    }
}
