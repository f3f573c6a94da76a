use super::*;
use crate::fold::fold;
use crate::log::Log;
use crate::source::LogSource;
use crate::testlog::{Run as Plan, with_bins};
use crate::threshold::{Condition, check_comparison};

fn run(plan: &Plan) -> WholeRun {
    of_logs(plan.logs())
}

fn of_logs(logs: Vec<Log>) -> WholeRun {
    let facts = fold(&logs).unwrap();
    let logs = logs.into_iter().map(|log| Box::new(log) as Box<dyn LogSource>).collect();
    WholeRun { run: Run { path: "somewhere".into(), facts, manifest: None }, logs, bins: BinSet::ALL }
}

fn group(name: &str, plans: &[Plan]) -> RunGroup {
    RunGroup { name: name.into(), runs: plans.iter().map(run).collect() }
}

/// A short run without think time, through a device that needs 100 ms for hits and 120 ms for the rest.
fn plan(seed: u64, slower: f64) -> Plan {
    Plan {
        seed,
        means: [0.1 * slower, 0.12 * slower],
        spread: 0.15,
        phases: [2.0, 15.0, 1.0],
        wander: Some((0.01, 2.0)),
        ..Plan::default()
    }
}

fn found(comparison: &Comparison<'_>) -> Vec<(String, ChangeJudgement)> {
    comparison.found().map(|(_, row, _, change)| (row.figure.name.clone(), change.judgement)).collect()
}

fn conditions(texts: &[&str]) -> Vec<Condition> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn figures_whose_bins_were_not_read_are_refused() {
    let mut groups = [group("a", &[plan(1, 1.0)]), group("b", &[plan(2, 1.0)])];
    groups[1].runs[0].bins = BinSet::RESPONSE_TIMES | BinSet::LATENESS;
    assert!(compare(&groups, CompareOptions::default()).is_ok());
    for (figure, refused) in [("rep.size.mean", true), ("hit.size.mean", false), ("hit.size.p95", true)] {
        let options = CompareOptions { objects: vec![figure.into()], ..CompareOptions::default() };
        assert_eq!(compare(&groups, options).is_err(), refused, "{figure}");
        assert_ne!(
            groups[1].runs[0].bins.contains(needed_bins(&[figure.into()]).unwrap()),
            refused,
            "{figure}"
        );
    }
    let options = CompareOptions { objects: vec!["hit.size.p95".into()], ..CompareOptions::default() };
    let error = compare(&groups, options).unwrap_err();
    assert_eq!(error.to_string(), "the histogram of figure hit.size.p95 was not read from run `somewhere`");
}

/// A comparison has the same result, whether the logs were read with all bins or with only those that it needs.
#[test]
fn needed_bins_suffice() {
    let plans = [plan(1, 1.0), plan(2, 1.3)];
    let bins = needed_bins(&[]).unwrap() | crate::judge::BINS | crate::series::bins();
    assert_eq!(bins, BinSet::RESPONSE_TIMES | BinSet::LATENESS);
    let text = |read: &dyn Fn(&Log) -> Log| {
        let run = |plan: &Plan| of_logs(plan.logs().iter().map(read).collect());
        let group = |(name, plan)| RunGroup { name: String::from(name), runs: vec![run(plan)] };
        let groups: Vec<_> = ["a", "b"].into_iter().zip(&plans).map(group).collect();
        let comparison = compare(&groups, CompareOptions::default()).unwrap();
        (super::text(&comparison, false), page(&comparison))
    };
    assert_eq!(text(&|log| with_bins(log, BinSet::ALL)), text(&|log| with_bins(log, bins)));
}

/// Runs of the same device with different random numbers: there is nothing to be found, in any of all figures. And a
/// single interval with 90 % confidence misses the truth, which is no difference, in a tenth of the cases.
#[test]
fn false_alarms_are_as_rare_as_intervals_say() {
    let (mut alarms, mut single) = (Vec::new(), 0);
    for pair in 0..40 {
        let groups = [group("a", &[plan(1000 + pair, 1.0)]), group("b", &[plan(5000 + pair, 1.0)])];
        let comparison =
            compare(&groups, CompareOptions { delta: 0.0, ..CompareOptions::default() }).unwrap();
        let found = found(&comparison);
        if !found.is_empty() {
            alarms.push((pair, found));
        }
        let difference = mean_rptm(&comparison).difference.unwrap();
        single += u32::from(difference.by.abs() > difference.plus_minus(0.9).unwrap());
    }
    // At most 2 are expected; more than 5 of 40 come with a probability of 1 %.
    assert!(alarms.len() <= 5, "{} of 40: {alarms:#?}", alarms.len());
    // Four are expected; more than 9 come with a probability of 1 %. Intervals err on the wide side.
    assert!((1..=9).contains(&single), "{single}");
}

fn mean_rptm<'a>(comparison: &'a Comparison<'_>) -> &'a FigureChange {
    &row(comparison, "baseline.rptm.mean").changes[0]
}

fn row<'a>(comparison: &'a Comparison<'_>, name: &str) -> &'a ComparedFigure {
    comparison.parts[0].rows.iter().find(|row| row.figure.name == name).unwrap()
}

/// A device that is 5 % slower, with the same seeds and with others.
#[test]
fn five_percent_are_found() {
    let mut missed = Vec::new();
    for pair in 0..20 {
        let other_seed = if pair % 2 == 0 { 0 } else { 5000 };
        let groups = [group("a", &[plan(pair, 1.0)]), group("b", &[plan(pair + other_seed, 1.05)])];
        let comparison = compare(&groups, CompareOptions::default()).unwrap();
        let row =
            comparison.parts[0].rows.iter().find(|row| row.figure.name == "baseline.rptm.mean").unwrap();
        let change = &row.changes[0];
        let size = change.percent.unwrap();
        if change.judgement != ChangeJudgement::Worse || (size - 5.0).abs() > 2.0 {
            missed.push((pair, change.clone()));
        }
        let fails = check_comparison(&comparison, &conditions(&["rptm>+2%", "rptm>+20%", "rptm<-2%"]));
        assert_eq!(fails.iter().map(|c| c.holds).collect::<Vec<_>>()[1..], [Some(false), Some(false)]);
    }
    assert!(missed.len() <= 1, "{missed:#?}");
}

/// A table says of the row of a condition what the condition says, however many other rows there are.
#[test]
fn a_condition_and_its_row_agree() {
    let conditions = conditions(&["rptm>+0%"]);
    let mut undecided_alone = 0;
    for pair in 0..20 {
        let groups = [group("a", &[plan(pair, 1.0)]), group("b", &[plan(pair + 5000, 1.015)])];
        let judged = |asked| {
            let options = CompareOptions { delta: 0.0, asked, ..CompareOptions::default() };
            let comparison = compare(&groups, options).unwrap();
            (mean_rptm(&comparison).judgement, check_comparison(&comparison, &conditions)[0].holds)
        };
        let (judgement, holds) = judged(Condition::asked(&conditions));
        assert_eq!(
            judgement == ChangeJudgement::Worse,
            holds == Some(true),
            "{pair}: {judgement:?}, {holds:?}"
        );
        let (judgement, holds) = judged(Vec::new());
        undecided_alone += u32::from(judgement == ChangeJudgement::Noise && holds == Some(true));
    }
    // Among all rows, intervals are wider: some of these would contradict the condition.
    assert!(undecided_alone > 0);
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let groups = [group("a", &[plan(1, 1.0)]), group("b", &[plan(1, 1.0)])];
    let comparison = compare(&groups, CompareOptions { delta: 0.0, ..CompareOptions::default() }).unwrap();
    assert_eq!((found(&comparison), comparison.refused()), (vec![], false));
    assert!(comparison.differs.is_empty(), "{:?}", comparison.differs);
    let shown = text(&comparison, true);
    assert!(shown.contains("no figure differs") && shown.contains("No difference"), "{shown}");
}

#[test]
fn many_groups_have_a_best_one() {
    let groups = [
        group("linux/ufs", &[plan(1, 1.2)]),
        group("linux/aufs", &[plan(1, 1.0)]),
        group("bsd/ufs", &[plan(2, 1.3)]),
        group("bsd/aufs", &[plan(2, 1.0)]),
    ];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    assert_eq!(row(&comparison, "baseline.rptm.mean").best, [1, 3]);
    let shown = text(&comparison, false);
    let matrix = shown.split("response time, mean (baseline.rptm.mean), ms\n").nth(1).unwrap();
    let head: Vec<&str> = matrix.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["ufs", "aufs"]);
    for line in matrix.lines().skip(1).take(2) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert!(!cells[1].ends_with('*') && cells[2].ends_with('*'), "{line}");
    }
}

/// Three runs, each in another mood: 4 % up or down, which no single run can know.
fn moody(seeds: [u64; 3], by: f64) -> RunGroup {
    let plans: Vec<Plan> =
        seeds.iter().zip([0.96, 1.0, 1.04]).map(|(seed, mood)| plan(*seed, mood * by)).collect();
    group(if by > 1.0 { "b" } else { "a" }, &plans)
}

#[test]
fn repeats_widen_intervals() {
    let single = [group("a", &[plan(1, 1.0)]), group("b", &[plan(2, 1.04)])];
    assert!(!found(&compare(&single, CompareOptions::default()).unwrap()).is_empty());
    let groups = [moody([1, 2, 3], 1.0), moody([4, 5, 6], 1.04)];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    assert_eq!(found(&comparison), vec![]);
    let groups = [moody([1, 2, 3], 1.0), moody([4, 5, 6], 2.0)];
    assert!(
        found(&compare(&groups, CompareOptions::default()).unwrap())
            .contains(&("baseline.rptm.mean".into(), ChangeJudgement::Worse))
    );
}

#[test]
fn changes_that_may_be_noise_are_not_decided() {
    let short = |slower| Plan { phases: [1.0, 3.0, 1.0], ..plan(1, slower) };
    let too_short = [group("a", &[short(1.0)]), group("b", &[short(1.5)])];
    let noisy = [moody([1, 2, 3], 1.0), moody([4, 5, 6], 1.04)];
    for (groups, condition, holds, told) in [
        (&noisy, "rptm>+1%", None, "; this comparison can only see changes above "),
        (&noisy, "rptm>+0.1ms", None, " ms"),
        // What does not exceed a condition passes, however noisy it is.
        (&noisy, "rptm>+20%", Some(false), " % ± "),
        (&noisy, "rptm<-1%", Some(false), " % ± "),
        // Whoever demands an improvement does not have it if nothing has changed.
        (&noisy, "rptm>-5%", Some(true), " % ± "),
        (&noisy, "rptm>1ms", Some(true), "b: "),
        (&too_short, "rptm>+1%", None, "; the phase is too short to tell changes from noise"),
        (&too_short, "rptm>+90%", Some(false), "%"),
    ] {
        let comparison = compare(groups, CompareOptions::default()).unwrap();
        let checked = check_comparison(&comparison, &conditions(&[condition])).remove(0);
        assert!(checked.holds == holds && checked.found.contains(told), "{condition}: {checked:?}");
    }
}

/// Figures that are displayed, and differences that are too small to be, say nothing about a condition; other conditions do.
#[test]
fn conditions_are_judged_together_and_by_nothing_else() {
    let groups = [group("a", &[plan(1, 1.0)]), group("b", &[plan(2, 1.04)])];
    let found = |objects: &[&str], delta: f64, texts: &[&str]| {
        let (objects, texts) = (objects.iter().map(|name| (*name).to_owned()).collect(), conditions(texts));
        let options =
            CompareOptions { objects, delta, asked: Condition::asked(&texts), ..CompareOptions::default() };
        check_comparison(&compare(&groups, options).unwrap(), &texts).remove(0)
    };
    let (alone, two) = (&["rptm>+2%"][..], &["rptm>+2%", "rptm.p95>+2%"][..]);
    let one = found(&["baseline.rptm"], 0.01, alone);
    assert_eq!(one.holds, Some(true), "{one:?}");
    for (objects, delta) in [(&[][..], 0.01), (&["all"][..], 0.01), (&["baseline.rptm"], 0.5)] {
        assert_eq!(found(objects, delta, alone), one, "{objects:?}");
    }
    assert_ne!(found(&[], 0.01, two).found, one.found);
    assert_eq!(found(&[], 0.01, &["rptm>+2%", "rptm.p95>1ms"]), one, "a value has no interval");
}

#[test]
fn other_workloads_seeds_and_hosts_are_told() {
    let weights = |change: &dyn Fn(&mut Vec<Log>)| {
        let mut other = plan(1, 1.0).logs();
        change(&mut other);
        let groups = [group("a", &[plan(1, 1.0)]), RunGroup { name: "b".into(), runs: vec![of_logs(other)] }];
        let comparison = compare(&groups, CompareOptions::default()).unwrap();
        comparison
            .differs
            .iter()
            .map(|differs| (differs.weight, differs.text(), differs.diff.clone()))
            .collect::<Vec<_>>()
    };
    let header = |change: fn(&mut polygraph_stats::Header)| {
        weights(&move |logs: &mut Vec<Log>| logs.iter_mut().for_each(|log| change(&mut log.log.header)))
    };
    let set = |pairs: &mut Vec<(String, String)>, name: &str, value: &str| {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name.into(), value.into()));
    };
    assert_eq!(weights(&|_| {}), vec![]);
    let first = |all: Vec<(DifferenceSeverity, String, Option<String>)>| {
        (all[0].0, all[0].1.clone(), all[0].2.clone())
    };
    let (weight, text, _) = first(header(|header| header.workload = "PolyMix-4".into()));
    assert_eq!(
        (weight, text.as_str()),
        (DifferenceSeverity::Refuse, "workload: PolyMix-4 instead of PolyMix-1 (b)")
    );
    let (weight, _, diff) = first(header(|header| header.workload_text = "R.dhr = 55%;\n".into()));
    assert_eq!((weight, diff), (DifferenceSeverity::Refuse, None));
    assert_eq!(header(|header| header.workload_text = "// only a comment\n\n".into()), vec![]);
    let all =
        weights(&|logs| logs.iter_mut().for_each(|log| set(&mut log.log.header.settings, "local seed", "9")));
    assert!(
        all.iter().all(|found| found.0 == DifferenceSeverity::Warn) && all[0].1.contains("`local seed`: 9"),
        "{all:?}"
    );
    let all = weights(&|logs| {
        logs.iter_mut().for_each(|log| set(&mut log.log.header.environment, "kernel", "6.9"))
    });
    assert!(all.iter().all(|found| found.0 == DifferenceSeverity::Warn) && all.len() == 2, "{all:?}");
    let all =
        weights(&|logs| logs.iter_mut().for_each(|log| set(&mut log.log.header.settings, "dhr", "40%")));
    assert_eq!(all[0].0, DifferenceSeverity::Refuse);
    let all = weights(&|logs| {
        logs.iter_mut().for_each(|log| set(&mut log.log.header.settings, "proxy", "10.0.0.1:80"))
    });
    assert!(all.iter().all(|found| found.0 == DifferenceSeverity::Note), "{all:?}");
}

#[test]
fn other_options_of_a_device_are_told() {
    let with = |name: &str, options: serde_json::Value| {
        let mut run = of_logs(plan(1, 1.0).logs());
        run.run.manifest = Some(serde_json::json!({ "device": { "name": "squid", "options": options } }));
        RunGroup { name: name.into(), runs: vec![run] }
    };
    let groups = [
        with("a", serde_json::json!({ "mem": "16MB" })),
        with("b", serde_json::json!({ "mem": "4MB", "tls": "on" })),
    ];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    let told: Vec<_> = comparison.differs.iter().map(|differs| (differs.weight, differs.text())).collect();
    assert_eq!(
        told,
        [
            (DifferenceSeverity::Note, "device option `mem`: 4MB instead of 16MB (b)".to_owned()),
            (DifferenceSeverity::Note, "device option `tls`: on instead of none (b)".to_owned()),
        ]
    );
}

#[test]
fn texts_of_workloads_are_compared_line_by_line() {
    let with = |text: &str| Plan { workload_text: text.into(), ..plan(1, 1.0) };
    let groups = [
        group("a", &[with("Robot R = {\n  recurrence = 55%;\n};\nuse(R);\n")]),
        group("b", &[with("Robot R = {\n  recurrence = 72%;\n};\nuse(R);\n")]),
    ];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    assert!(comparison.refused());
    let shown = text(&comparison, false);
    assert!(shown.contains("    -  recurrence = 55%;\n    +  recurrence = 72%;\n"), "{shown}");
}

#[test]
fn invalid_runs_are_not_compared() {
    let late = Plan { late_us: 200_000, ..plan(1, 1.0) };
    let groups = [group("a", &[plan(1, 1.0)]), group("b", &[late])];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    assert!(comparison.refused());
    // A run that cannot be trusted is never the best.
    assert!(comparison.parts[0].rows.iter().all(|row| !row.best.contains(&1)));
}

#[test]
fn phases_by_name_and_all_of_them() {
    let groups = [group("a", &[plan(1, 1.0)]), group("b", &[plan(2, 1.0)])];
    let of = |phases: &[&str]| {
        let phases = phases.iter().map(|name| (*name).to_owned()).collect();
        let comparison = compare(&groups, CompareOptions { phases, ..CompareOptions::default() });
        comparison.map(|c| c.parts.iter().map(|part| part.phase.clone()).collect::<Vec<_>>())
    };
    assert_eq!(of(&[]).unwrap(), ["meas"]);
    assert_eq!(of(&["all"]).unwrap(), ["warm", "meas", "cool"]);
    assert_eq!(of(&["warm", "meas"]).unwrap(), ["warm", "meas"]);
    assert!(matches!(of(&["top1"]), Err(CompareError::NoSuchPhase { .. })));
}

#[test]
fn names_must_differ_and_two_are_needed() {
    let one = [group("a", &[plan(1, 1.0)])];
    assert_eq!(compare(&one, CompareOptions::default()).unwrap_err(), CompareError::TooFew);
    let same = [group("a", &[plan(1, 1.0)]), group("a", &[plan(1, 1.0)])];
    assert_eq!(compare(&same, CompareOptions::default()).unwrap_err(), CompareError::SameName("a".into()));
}

#[test]
fn what_is_not_decided_has_a_direction_and_a_number_of_runs() {
    let groups = [
        group("old", &[plan(1, 1.0), plan(2, 1.05), plan(3, 0.95)]),
        group("new", &[plan(4, 1.03), plan(5, 1.08), plan(6, 0.98)]),
    ];
    let conditions = conditions(&["rptm>+1%"]);
    let options = CompareOptions { asked: Condition::asked(&conditions), ..CompareOptions::default() };
    let comparison = compare(&groups, options).unwrap();
    let checked = check_comparison(&comparison, &conditions).remove(0);
    assert_eq!((checked.holds, checked.place.as_str()), (None, "new"), "{}", checked.found);
    // Repeats have a deviation of about 5 %, and differ by 3 %: Student's t of 22 runs each is 2.02.
    let told = checked.found.split_once("if the change is real, about ").unwrap().1;
    let runs: usize = told.split(' ').next().unwrap().parse().unwrap();
    assert!((15..40).contains(&runs), "{}", checked.found);
    for part in ["new: ", ", a trend for the worse; this comparison can only see changes above "] {
        assert!(checked.found.contains(part), "{}", checked.found);
    }
    let tests = crate::junit::of_comparison(&comparison, &[checked]);
    assert!(tests.contains("<error message=\"not decided: new: "), "{tests}");
    assert!(!tests.contains("<failure"), "conditions say what is too much: {tests}");
}

#[test]
fn too_short_a_phase_gives_no_interval() {
    let short = |slower| Plan { phases: [1.0, 3.0, 1.0], ..plan(1, slower) };
    let groups = [group("a", &[short(1.0)]), group("b", &[short(1.5)])];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    let change = mean_rptm(&comparison);
    assert_eq!((change.plus_minus, change.judgement), (None, ChangeJudgement::Unknown));
    let shown = text(&comparison, false);
    assert!(shown.contains("cannot be judged") || shown.contains("Undecided"), "{shown}");
}

#[test]
fn forms_of_a_comparison() {
    let groups = [group("old", &[plan(1, 1.0)]), group("new|er", &[plan(1, 1.1)])];
    let comparison = compare(&groups, CompareOptions::default()).unwrap();
    let table = markdown(&comparison, true);
    let short = markdown(&comparison, false);
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("| ")).count();
    let differing = comparison.found().count();
    // A head and a rule.
    assert_eq!(rows(&short), differing + 2, "{short}");
    let omitted = comparison.parts[0].rows.len() - differing;
    assert!(
        omitted > 0
            && short.contains(&format!("No other figure differs significantly: {omitted} rows left out")),
        "{short}"
    );
    assert!(short.contains("(baseline.rptm.mean)") && !short.contains("(hit.ratio.obj)"), "{short}");
    assert!(table.contains("(hit.ratio.obj)") && !table.contains("left out"), "{table}");
    assert!(table.contains("| figure | unit | old | new\\|er | difference | ± | verdict |"), "{table}");
    let json = json(&comparison);
    assert_eq!(
        (&json["comparable"], &json["parts"][0]["figures"][0]["name"]),
        (&true.into(), &"baseline.req.rate".into())
    );
    let figures = json["parts"][0]["figures"].as_array().unwrap();
    let mean = figures.iter().find(|figure| figure["name"] == "baseline.rptm.mean").unwrap();
    let percent = mean["changes"][0]["percent"].as_f64().unwrap();
    assert!((percent - 10.0).abs() < 1.0, "{percent}");
    let line = table.lines().find(|line| line.contains("baseline.rptm.mean")).unwrap();
    assert!(line.starts_with("| response time, mean (baseline.rptm.mean) | ms |"), "{line}");
    assert_eq!(line.matches(" % |").count(), 2, "the difference and its interval have their units: {line}");
    let page = page(&comparison);
    assert!(page.contains("new|er against old") && page.contains("REGRESSIONS"));
    assert!(page.contains("id=\"cmp-rptm\"") && page.contains("class=\"worse\""), "{page}");
    assert_eq!(mean["changes"][0]["verdict"], "worse");
    assert!(mean["changes"][0]["plus_minus"].as_f64().unwrap() > 0.0);
}
