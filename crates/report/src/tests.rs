//! `fold`, `lx`, `lr` and the summary on synthetic logs.

use std::path::Path;

use polygraph_stats::{Block, EndReason, ErrorKind, Finished, Record};

use crate::console::{ConsoleForm, ConsoleLine, ConsoleSpan};
use crate::facts::PhaseEnd;

use crate::fold::fold;
use crate::lr::LrOptions;
use crate::lx::select::PAPER;
use crate::lx::{LxError, LxOptions, LxSide, list_figures, lx_json};
use crate::scope::Scope;
use crate::testlog::Run;
use crate::{Log, lr, lx, summary_text};

fn short() -> Run {
    Run { phases: [1.0, 3.0, 1.0], ..Run::default() }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn options(phases: &[&str], objects: &[&str]) -> LxOptions {
    LxOptions { phases: strings(phases), objects: strings(objects), ..LxOptions::default() }
}

fn extract(run: &Run, phases: &[&str], objects: &[&str]) -> String {
    lx(&run.logs(), &options(phases, objects)).unwrap()
}

fn lr_text(logs: &[Log], options: LrOptions) -> String {
    let mut text = Vec::new();
    let missing = lr(logs, options, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    missing.iter().for_each(|missing| assert!(text.contains(missing), "{missing}"));
    text
}

/// A device on the same machine answers in a fraction of a millisecond.
#[test]
fn lr_tells_fast_replies_apart() {
    let column = |us: u64| {
        let mut intervals = short().client().log.records.into_iter().filter_map(|record| match record {
            Record::Interval(interval) => Some(interval),
            _ => None,
        });
        let mut interval = intervals.next().unwrap();
        interval.block = Block::new();
        interval.block.finish(&Finished { rptm_us: us, size: 1000, ..Finished::default() });
        let scope = Scope::of_interval(*interval);
        let line = ConsoleLine {
            span: ConsoleSpan::Interval,
            phase: "meas",
            at_s: 1.0,
            start_unix_ns: 0,
            ok_so_far: 1,
            scope: &scope,
        };
        let text = line.text(ConsoleForm::V4);
        let columns: Vec<&str> = text.split_whitespace().collect();
        assert_eq!((columns.len(), columns[0]), (8, "000.0167|"), "{text}");
        columns[4].to_owned()
    };
    assert_eq!(
        [412, 980, 1_234, 12_345, 123_456, 1_234_567].map(column),
        ["0.412", "0.980", "1.23", "12.3", "123", "1235"]
    );
}

fn one(run: &Run, phases: &[&str], object: &str) -> f64 {
    let text = extract(run, phases, &[object]);
    text.trim_end().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn phases_fold_from_intervals() {
    let facts = fold(&Run::default().logs()).unwrap();
    let client = facts.client.as_ref().unwrap();
    let phases: Vec<_> = client.phases.iter().map(|p| (p.name.as_str(), p.primary, p.end)).collect();
    let complete = PhaseEnd::Complete;
    assert_eq!(phases, [("warm", false, complete), ("meas", true, complete), ("cool", false, complete)]);
    let headline = facts.headline.as_ref().unwrap();
    assert_eq!((headline.phase.as_str(), headline.begin_s, headline.end_s), ("meas", 4.0, 34.0));
    let sum: u64 = client.phases.iter().map(|p| p.scope.as_ref().unwrap().block.ok_count()).sum();
    assert_eq!(sum, client.total.as_ref().unwrap().block.ok_count());
    assert_eq!(client.series.len(), 36);
    let from_series: f64 =
        client.series.iter().map(|p| p.get("baseline.req.rate").unwrap() * p.seconds).sum();
    assert_eq!(from_series.round() as u64, client.total.as_ref().unwrap().block.xacts.entered);
}

#[test]
fn clients_of_one_run_merge_per_phase() {
    let (a, b) = (Run::default(), Run { seed: 2, ..Run::default() });
    let both = fold(&[a.client(), b.client()]).unwrap();
    let each = [fold(&[a.client()]).unwrap(), fold(&[b.client()]).unwrap()];
    let scope = &both.headline.as_ref().unwrap().scope;
    assert_eq!((scope.seconds, scope.logs), (30.0, 2));
    let sum: u64 = each.iter().map(|facts| facts.headline.as_ref().unwrap().scope.block.ok_count()).sum();
    assert_eq!(scope.block.ok_count(), sum);
    assert_eq!(both.client.as_ref().unwrap().offered_rate(), Some(200.0));
}

#[test]
fn long_runs_are_aggregated_not_dropped() {
    let run = Run { rate: 2.0, phases: [100.0, 1500.0, 0.0], ..Run::default() };
    let facts = fold(&[run.client()]).unwrap();
    let client = facts.client.as_ref().unwrap();
    assert!(client.series.len() <= crate::series::MAX_POINTS, "{}", client.series.len());
    let counted: f64 = client.series.iter().map(|p| p.get("baseline.req.rate").unwrap() * p.seconds).sum();
    assert_eq!(counted.round() as u64, client.total.as_ref().unwrap().block.xacts.entered);
}

#[test]
fn the_table_of_the_paper() {
    insta::assert_snapshot!(extract(&Run::default(), &["meas"], &PAPER));
}

#[test]
fn all_figures_of_the_primary_phase() {
    let run = Run { error: Some((300, ErrorKind::Timeout)), ..Run::default() };
    // Percentiles and what is empty would fill pages.
    let text = extract(&run, &["meas"], &["all"]);
    let told = |line: &&str| {
        line.split_once(": ").is_some_and(|(name, value)| {
            !["0", "0.00", "-1", "-1.00"].contains(&value) && !name.contains(".p") && !name.contains("_dev")
        })
    };
    insta::assert_snapshot!(text.lines().filter(told).collect::<Vec<_>>().join("\n"));
    assert!(text.ends_with(&extract(&run, &["meas"], &["err_pct"])), "the paper's table comes last");
}

#[test]
fn lists_are_printed_if_they_have_rows() {
    let run = Run { error: Some((300, ErrorKind::Timeout)), rich: true, ..Run::default() };
    let lists = ["name", "errors.tbl", "conn_close.categories", "page.parts.hist", "dns.rptm.hist", "icp"];
    insta::assert_snapshot!(extract(&run, &["meas"], &lists));
    assert_eq!(extract(&short(), &["meas"], &["page.parts.hist"]), "", "there are no pages");
    assert_eq!(extract(&run, &["warm", "meas"], &["name"]), "name: warm|meas\n");
    let json = lx_json(&run.logs(), &options(&["meas"], &lists)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["lists"]["name"][0], "meas");
    assert_eq!(json["lists"]["errors.tbl"][0]["error"], "(c57) transaction lifetime exceeded");
    assert!((json["lists"]["dns.rptm.hist"][0]["min"].as_f64().unwrap() - 0.7).abs() < 1e-9);
}

#[test]
fn goals_are_combined_like_phases() {
    let goals = |phases: &[&str]| extract(&Run::default(), phases, &["primary", "goal"]);
    let meas = "primary: 1\ngoal.duration: 30.00\ngoal.xactions: -1\ngoal.fill.size: -1.00\ngoal.errors.ratio: 30.00\ngoal.errors.count: -1\n";
    assert_eq!(goals(&["meas"]), meas);
    assert_eq!(goals(&["warm", "meas"]), meas.replace("30.00\ngoal.x", "34.00\ngoal.x"));
}

#[test]
fn statuses_have_figures() {
    let run = Run { rich: true, error: Some((300, ErrorKind::BadStatus)), ..Run::default() };
    let of = |object| one(&run, &["meas"], object);
    let (all, ok) = (of("baseline.rptm.count"), of("rep_status_code.200.rptm.count"));
    let unusual = of("rep_status_code.304.rptm.count");
    assert_eq!((ok + unusual, unusual), (all, of("ims.sc304.rptm.count")));
    assert_eq!(of("rep_status_code.503.rptm.count"), of("errors.bad_status.count"));
    assert_eq!(of("custom.rep.size.count"), of("errors.bad_status.count"));
}

#[test]
fn csv_has_all_digits() {
    let run = short();
    let objects = options(&["meas"], &["baseline.rptm.mean", "err_cnt", "goal.xactions"]);
    let csv = crate::lx::extract(&run.logs(), &objects).unwrap().csv();
    let json: serde_json::Value = serde_json::from_str(&lx_json(&run.logs(), &objects).unwrap()).unwrap();
    let mean = json["figures"]["baseline.rptm.mean"].as_f64().unwrap();
    assert_eq!(csv, format!("name,unit,value\nerr_cnt,,0\ngoal.xactions,,\nbaseline.rptm.mean,ms,{mean}\n"));
}

#[test]
fn figures_of_a_rich_workload() {
    let run = Run { rich: true, ..Run::default() };
    let objects = [
        "missed",
        "false_hit",
        "hit.age.p50",
        "url",
        "ims.sc304.size",
        "reload.rptm.mean",
        "abort.size.count",
        "auth.ing.size.count",
        "rep.size.count",
        "baseline.rep.size.count",
        "embedded",
        "page.parts",
        "cont_type.html",
        "cont_type.image.hit.ratio.obj",
        "wait.level.mean",
        "conn.reused",
        "conn_close.idle_foreign",
        "dns",
        "cookies.sent.mean",
        "cookies.updated",
        "100_continue.mean",
        "baseline.req.size.mean",
        "verified",
    ];
    let text = extract(&run, &["meas"], &objects);
    let is_told = |line: &&str| line.contains(": ") && !line.contains(".p") && !line.contains("_dev");
    insta::assert_snapshot!(text.lines().filter(is_told).collect::<Vec<_>>().join("\n"));
    let server = LxOptions { side: LxSide::Server, ..options(&[], &["proxy_validation.useless.rptm.mean"]) };
    assert_eq!(lx(&run.logs(), &server).unwrap(), "proxy_validation.useless.rptm.mean: 0.40\n");
}

#[test]
fn json_of_all_tells_of_correctness_and_missed_hits() {
    let run = Run { rich: true, error: Some((100, ErrorKind::WrongObject)), ..short() };
    let json: serde_json::Value =
        serde_json::from_str(&lx_json(&run.logs(), &options(&[], &[])).unwrap()).unwrap();
    let finding = &json["correctness"]["findings"][0];
    assert_eq!((&finding["number"], &finding["side"]), (&"c201".into(), &"client".into()));
    assert_eq!(finding["examples"][0]["facts"][2], serde_json::json!(["server", "10.0.0.1:80"]));
    assert!(json["missed_hits"][1].as_str().unwrap().starts_with("The cache is too small"), "{json:#}");
    assert!(json["figures"]["cont_type.html.size.count"].as_f64().unwrap() > 10.0);
    let one = lx_json(&run.logs(), &options(&[], &["err_cnt"])).unwrap();
    assert!(!one.contains("correctness"));
}

#[test]
fn undefined_is_minus_one_in_text_and_null_in_json() {
    // The server knows no offered hits of a perfect cache, and in one second no transaction ends.
    let run = Run { rate: 1.0, phases: [0.1, 0.1, 0.1], ..Run::default() };
    assert_eq!(extract(&run, &[], &["resp_tm_mean", "err_cnt"]), "resp_tm_mean: -1.00\nerr_cnt: 0\n");
    let json = lx_json(&run.logs(), &options(&[], &["resp_tm_mean"])).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["figures"]["resp_tm_mean"],
        serde_json::Value::Null
    );
}

#[test]
fn values_without_names() {
    let with = LxOptions { values_only: true, ..options(&["meas"], &["log_cnt", "err_pct"]) };
    assert_eq!(lx(&Run::default().logs(), &with).unwrap(), "1\n0.00\n");
}

#[test]
fn objects_match_whole_parts() {
    let names = |objects: &[&str]| -> Vec<String> {
        let text = extract(&short(), &[], objects);
        text.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect()
    };
    assert_eq!(names(&["hit.ratio"]), ["hit.ratio.obj", "hit.ratio.byte"]);
    assert_eq!(names(&["rptm_mean"]), ["rptm_mean:hit", "rptm_mean:miss"]);
    assert!(names(&["rep"]).iter().all(|name| name.starts_with("rep.")), "rep_rate is another name");
}

#[test]
fn what_does_not_exist_is_named() {
    let error = |options: &LxOptions| lx(&[short().client()], options).unwrap_err();
    insta::assert_snapshot!(
        [
            error(&options(&["measure"], &[])),
            error(&options(&[], &["resp_time_mean"])),
            error(&options(&[], &["zzz"])),
            error(&LxOptions { side: LxSide::Server, ..LxOptions::default() }),
        ]
        .map(|error| error.to_string())
        .join("\n")
    );
    assert!(matches!(lx::<Log>(&[], &LxOptions::default()), Err(LxError::Fold(_))));
}

/// `lx` adds up any logs, but says if they are not those of one run, as the verdict does.
#[test]
fn lx_warns_of_logs_of_different_runs() {
    let warnings = |logs: &[Log]| -> Vec<String> {
        let found = crate::lx::extract(logs, &options(&[], &["dhr"])).unwrap();
        found.mixed().map(str::to_owned).collect()
    };
    assert_eq!(warnings(&short().logs()), [] as [&str; 0]);
    let mut later = short().client();
    later.log.header.start_unix_ns += 100_000_000_000;
    let mixed = warnings(&[short().client(), later]);
    assert!(mixed.len() == 1 && mixed[0].starts_with("the logs come from several runs"), "{mixed:?}");
    let mut other = short().server();
    other.log.header.version = "0.2.0".into();
    let mixed = warnings(&[short().client(), other]);
    assert!(mixed.len() == 1 && mixed[0].contains("versions of the program differ"), "{mixed:?}");
}

#[test]
fn sides() {
    let logs = short().logs();
    let count = |side| lx(&logs, &LxOptions { side, ..options(&[], &["ok_xact.count"]) }).unwrap();
    assert_eq!(count(LxSide::All), count(LxSide::Client));
    assert_ne!(count(LxSide::Client), count(LxSide::Server));
}

#[test]
fn phases_concatenate() {
    let run = Run::default();
    assert_eq!(one(&run, &["warm", "meas"], "duration"), 34.0);
    let started = |phases: &[&str]| one(&run, phases, "xact.started");
    assert_eq!(started(&["warm"]) + started(&["meas"]), started(&["warm", "meas"]));
}

#[test]
fn the_list_defines_everything() {
    let list = list_figures(&[]).unwrap();
    assert!(list.lines().count() > 150);
    insta::assert_snapshot!(list_figures(&strings(&["req_rate", "conn.ttl", "errors.timeout"])).unwrap());
}

#[test]
fn lr_of_a_whole_log() {
    let run = Run { error: Some((100, ErrorKind::BadStatus)), ..short() };
    insta::assert_snapshot!(lr_text(&[run.client()], LrOptions::default()));
}

#[test]
fn lr_of_a_killed_log_in_the_old_form() {
    let run = Run { end: None, stop_at: Some(2.5), ..short() };
    let options = LrOptions { form: ConsoleForm::V1, ..LrOptions::default() };
    insta::assert_snapshot!(lr_text(&run.logs(), options));
}

#[test]
fn summaries() {
    let place = Path::new("runs/test/report.html");
    // Servers know of more requests, because robots of rich logs miss some of the hits.
    let summary = |run: Run| {
        let server = Run { rate: if run.rich { 1.2 } else { 1.0 } * run.rate, ..run.clone() }.server();
        summary_text(&fold(&[run.client(), server]).unwrap(), &[("report", place)])
    };
    let overload = Run { capacity: 40.0, open_limit: 400, ..Run::default() };
    let killed = Run { end: Some(EndReason::Interrupted), stop_at: Some(2.0), ..Run::default() };
    let wrong = Run { rich: true, error: Some((300, ErrorKind::AlteredBody)), ..Run::default() };
    let runs = [Run::default(), overload, killed, wrong];
    insta::assert_snapshot!(runs.map(summary).join("\n"));
}

/// They have not failed yet, so the count of errors does not have them.
#[test]
fn the_summary_counts_requests_that_nobody_answered() {
    for (unanswered, says) in [
        ((0, 0), ""),
        ((140, 200), ""),
        ((200, 200), "; 67 requests had no answer when the phase ended"),
        ((300, 200), "; 167 requests had no answer when the phase ended"),
    ] {
        let facts = fold(&Run { unanswered, ..Run::default() }.logs()).unwrap();
        let text = summary_text(&facts, &[]);
        let line = text.lines().find(|line| line.starts_with("errors")).unwrap();
        assert!(line.ends_with(&format!(" transactions, 0.00 %{says}")), "{line}");
    }
}
