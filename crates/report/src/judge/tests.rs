//! The rules on logs of made-up runs; here those of healthy ones, and the page of all rules.

mod bench;
mod device;
mod logs;
mod starved;
mod wire;

use polygraph_stats::stall::Stall;
use polygraph_stats::{EndReason, ErrorKind, KindLimits, PlannedLoad, Record, RobotLimits, Side};

use super::*;
use crate::fold::fold;
use crate::testlog::{Run, read, with_bins};

/// Judges the logs of `run`; wants that outcome, and that the rules say so (warnings in brackets).
fn check(run: &Run, outcome: VerdictOutcome, rules: &[&str]) {
    check_logs(&run.logs(), outcome, rules);
}

fn check_logs(logs: &[crate::Log], outcome: VerdictOutcome, rules: &[&str]) {
    let verdict = fold(logs).unwrap().verdict;
    let mut got: Vec<String> =
        verdict
            .findings
            .iter()
            .map(|f| {
                if f.weight == FindingSeverity::Warning { format!("({})", f.rule) } else { f.rule.to_owned() }
            })
            .collect();
    got.sort();
    let mut want: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    want.sort();
    assert_eq!((verdict.outcome, got), (outcome, want), "{verdict:#?}");
    let reduced: Vec<_> = logs.iter().map(|log| with_bins(log, BINS)).collect();
    assert_eq!(fold(&reduced).unwrap().verdict, verdict, "rules need more bins than they say");
}

#[test]
fn a_healthy_run_is_valid() {
    check(&Run::default(), VerdictOutcome::Valid, &[]);
    check(&Run { rate: 50.0, seed: 2, ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn healthy_runs_of_many_seeds_and_rates_are_valid() {
    for seed in 10..30 {
        let rate = 40.0 + 10.0 * (seed % 7) as f64;
        check(&Run { rate, seed, ..Run::default() }, VerdictOutcome::Valid, &[]);
    }
}

#[test]
fn pages_make_healthy_runs_uneven() {
    for seed in 10..40 {
        let rate = 60.0 + 10.0 * (seed % 5) as f64;
        check(&Run { rate, seed, page: 14, ..Run::default() }, VerdictOutcome::Valid, &[]);
    }
}

/// A few hundred transactions in large pages: what a burst at the end makes of them is chance.
#[test]
fn short_phases_of_few_pages_are_no_overload() {
    for seed in 100..300 {
        let phases = [5.0, 6.0, 1.0];
        let run = Run { rate: 60.0, seed, page: 14, phases, means: [0.05, 0.05], ..Run::default() };
        let verdict = fold(&run.logs()).unwrap().verdict;
        let wrong = |f: &&VerdictFinding| ["following", "growing", "offered"].contains(&f.rule);
        assert!(verdict.findings.iter().find(wrong).is_none(), "seed {seed}: {verdict:#?}");
    }
}

#[test]
fn pages_do_not_hide_what_is_wrong() {
    let pages = Run { page: 14, ..Run::default() };
    check(&Run { started_share: 0.6, ..pages.clone() }, VerdictOutcome::Invalid, &["offered"]);
    let verdict = fold(&Run { capacity: 75.0, ..pages }.logs()).unwrap().verdict;
    assert_eq!(verdict.outcome, VerdictOutcome::Failed, "{verdict:#?}");
}

/// Parts that cannot be asked for yet are no fault of the bench, launches that were left out are, whatever the device.
#[test]
fn pages_that_are_waited_for() {
    let pages = Run { page: 14, parts_wait: true, rate: 400.0, ..Run::default() };
    check(&Run { phases: [20.0, 40.0, 2.0], ..pages.clone() }, VerdictOutcome::Valid, &[]);
    // Without a warm-up, the parts of the pages of the first five seconds come late.
    let cold = Run { phases: [0.0, 40.0, 0.0], means: [5.0, 5.0], ..pages.clone() };
    check(&cold, VerdictOutcome::Valid, &["(offered)", "(trend)"]);
    let slow = Run { means: [20.0, 20.0], ..pages.clone() };
    check(&slow, VerdictOutcome::Failed, &["(offered)", "following", "growing"]);
    let dead = Run { means: [60.0, 60.0], spread: 0.0, ..pages };
    check(&dead, VerdictOutcome::Failed, &["(offered)", "following", "growing", "samples"]);
    for run in [cold, slow] {
        let verdict = fold(&Run { started_share: 0.6, ..run }.logs()).unwrap().verdict;
        assert!(
            verdict.findings.iter().any(|f| (f.rule, f.weight) == ("offered", FindingSeverity::Invalid)),
            "{verdict:#?}"
        );
    }
}

#[test]
fn a_phase_without_warm_up_does_not_look_like_overload() {
    check(&Run { phases: [0.0, 30.0, 0.0], ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn ordinary_runs_have_no_trend() {
    // Response times that wander by a tenth for seconds, in phases of a minute and of an hour.
    for (seed, seconds, rate) in (0..30).map(|i| (i, 60.0, 40.0)).chain((30..33).map(|i| (i, 3600.0, 8.0))) {
        let run = Run { seed, rate, phases: [4.0, seconds, 2.0], wander: Some((0.1, 3.0)), ..Run::default() };
        check(&run, VerdictOutcome::Valid, &[]);
    }
}

/// The verdict on these logs, with the rule that decides.
fn verdict(logs: &[crate::Log]) -> (String, &'static str, String) {
    let verdict = fold(logs).unwrap().verdict;
    let rule = verdict.findings.first().map_or("", |finding| finding.rule);
    (verdict.word(), rule, verdict.meaning())
}

#[test]
fn what_explains_all_failures_comes_before_side_issues() {
    let refused = |every| Run {
        error: Some((every, ErrorKind::CertificateName)),
        server_error: Some((200, ErrorKind::TlsRefused)),
        late_us: 400_000,
        stalls: [Some((10.0, 15.0)), None],
        ..Run::default()
    };
    let first = |run: &Run| {
        let verdict = fold(&run.logs()).unwrap().verdict;
        let rules: Vec<_> = verdict.findings.iter().map(|finding| finding.rule).collect();
        assert!(["errors", "late", "stalls"].iter().all(|rule| rules.contains(rule)), "{verdict:#?}");
        (rules[0], verdict.limit)
    };
    assert_eq!(first(&refused(1)), ("errors", Some(LimitingParty::Server)));
    assert_eq!(first(&refused(4)), ("stalls", Some(LimitingParty::Client)));
}

#[test]
fn values_differ_from_their_limits() {
    for (value, limit, decimals, wanted) in [
        (35.24, 10.0, 1, ("35.2", "10")),
        (10.004, 10.0, 1, ("10.004", "10")),
        (12.26, 12.251, 1, ("12.26", "12.25")),
        (90.2, 90.0, 0, ("90.2", "90")),
        (100.0, 90.0, 0, ("100", "90")),
        (3.0, 3.0, 2, ("3.00", "3")),
    ] {
        let (value, limit) = apart(value, limit, decimals);
        assert_eq!((value.as_str(), limit.as_str()), wanted);
    }
    // The mean response time is far below 200 ms, so 10 ms are allowed.
    let late = Run { late_us: 10_020, means: [0.05, 0.05], ..Run::default() };
    let finding = fold(&late.logs()).unwrap().verdict.findings.remove(0);
    let [_, told] = finding.text.split("more than ").collect::<Vec<_>>()[..] else { panic!("{finding:?}") };
    let numbers: Vec<f64> = told.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(finding.rule == "late" && numbers[0] > numbers[1], "{finding:?}");
}

/// The rules as the table of the documentation.
fn table() -> String {
    let row = |rule: &Rule| {
        let says = match rule.says {
            FindingSeverity::Warning => "warning".to_owned(),
            weight => weight.word().to_uppercase(),
        };
        format!("| `{}` | {} | {says} |\n", rule.name, rule.looks_at)
    };
    let rows: String = rules().iter().map(row).collect();
    format!("| rule | condition | result |\n|---|---|---|\n{rows}")
}

#[test]
fn every_rule_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdict.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (page.find("| rule |").unwrap(), page.find("\n\n## Examples").unwrap());
    let now = format!("{}{}{}", &page[..begin], table().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/verdict.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-report --lib every_rule_is_documented`"
        );
    }
}

#[test]
fn a_load_that_changes_as_planned_is_no_overload() {
    let ramp = |beg, end| PlannedLoad { beg, end, mean: (beg + end) / 2.0 };
    let half = PlannedLoad { beg: 0.5, end: 0.5, mean: 0.5 };
    let slow = Run { rate: 150.0, means: [1.0, 1.0], phases: [2.0, 20.0, 2.0], ..Run::default() };
    for seed in 50..60 {
        let run = Run { seed, ..slow.clone() };
        for meas in [ramp(0.1, 1.0), ramp(1.0, 0.1)] {
            let loads =
                [PlannedLoad { beg: meas.beg, end: meas.beg, mean: meas.beg }, meas, PlannedLoad::FULL];
            check(&Run { loads, ..run.clone() }, VerdictOutcome::Valid, &[]);
        }
        check(&Run { loads: [half, half, half], ..run.clone() }, VerdictOutcome::Valid, &[]);
        // The plan is not offered, or the device has a limit.
        let loads = [ramp(0.1, 0.1), ramp(0.1, 1.0), PlannedLoad::FULL];
        let fewer = Run { loads, started_share: 0.6, ..run.clone() };
        check(&fewer, VerdictOutcome::Invalid, &["(samples)", "offered"]);
        let verdict = fold(&Run { loads, capacity: 70.0, ..run }.logs()).unwrap().verdict;
        assert_eq!(verdict.outcome, VerdictOutcome::Failed, "{verdict:#?}");
    }
}
