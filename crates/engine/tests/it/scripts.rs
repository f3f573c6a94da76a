//! Phase scripts in virtual time, with real robots and servers: every call, and every member of a sample.

use std::collections::HashMap;

use polygraph_pgl::types::stat_completions;
use polygraph_pgl::{MemoryLoader, Options, compile};
use polygraph_plan::{Goal, Phase, SamplePlan, Schedule, Script};
use polygraph_robot::{Load, Profile};
use polygraph_stats::{EndReason, ErrorKind, ReadLog, Record, Xact};
use polygraph_traffic::{Behavior, Catalog, Content, Distr, Seed};

use crate::support::{Bench, Run};

/// A phase of so many seconds, or less, with this script.
pub fn scripted(globals: &str, script: &str, seconds: f64) -> Schedule {
    let agents = "Robot R; R.addresses = ['127.0.0.1']; R.origins = ['127.0.0.1:80']; Server S; \
                  Content c = { size = const(1KB); }; S.addresses = ['127.0.0.1:80']; S.contents = [c]; \
                  S.direct_access = [c]; use(S, R);";
    let text = format!("{agents} {globals} Phase p = {{ script = {{ {script} }}; }}; schedule(p);");
    let compilation = compile("s.pg", &MemoryLoader::default().with("s.pg", text), &Options::default());
    let workload = compilation.workload.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
    let script = workload.phases[0].script.map(|id| Script::new(&workload.scripts, id));
    let goal = Goal { duration: Some(seconds), ..Goal::default() };
    let phase = Phase { name: "scripted".into(), log_stats: true, goal, script, ..Phase::default() };
    Schedule { phases: vec![phase], working_set: None }
}

/// The comments of a log.
pub fn comments(log: &ReadLog) -> Vec<&str> {
    let comments = log.records.iter().filter_map(|record| match record {
        Record::Comment { text, .. } => Some(text.as_str()),
        _ => None,
    });
    comments.collect()
}

/// What a script has printed.
fn printed(run: &Run) -> Vec<&str> {
    comments(&run.logs[0]).into_iter().filter_map(|line| line.strip_prefix("script output: ")).collect()
}

/// Ten robots on two loops with 2 requests per second each, half of them for known objects of 1,000 bytes, and three
/// requests per connection; servers think for `think` seconds.
fn simulate(schedule: Schedule, think: f64) -> Run {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Const(1000.0), 1.0)] };
    let behavior = Behavior { recurrence: 0.5, ..Behavior::default() };
    let mut profile = Profile::plain("robots", 10, Load::Open { rate: 2.0 }, behavior);
    profile.requests_per_connection = Distr::Const(3.0);
    let mut bench = Bench::new(catalog, vec![profile]);
    bench.farm.think = Some(Distr::Const(think));
    bench.farm.requests_per_connection = Distr::Const(100.0);
    bench.settle = 0.2;
    bench.loops = 2;
    bench.open_limit = 20_000;
    bench.schedule = schedule;
    bench.simulate()
}

#[test]
fn every_call_does_what_it_says() {
    let globals = "Goal minute = { duration = 1min; }; Goal two = { duration = 2min; }; int n = 0;";
    let script = "
        print(\"begun at \", currentLoadFactor(), \" \", currentPopulusFactor());
        every minute do {
            StatSample s = currentSample();
            StatSample p = currentPhase();
            n = n + 1;
            print(s.baseline.rep.rate, \" \", s.populus.level.last, \" \", p.duration, \" \", s.duration);
            if (n == 1) then { setLoadFactorTo(50%); }
            if (n == 2) then { changeLoadFactorBy(60%); }
            if (n == 3) then { setPopulusFactorTo(50%); }
            if (n == 4) then { changePopulusFactorBy(100%); setLoadFactorTo(1); setSamplingGoalTo(two); }
            if (n == 5) then {
                printV(3, \"ends at \", currentLoadFactor(), \" \", currentPopulusFactor());
                reachedPositiveGoal(\"all was tried\");
            }
        }";
    let run = simulate(scripted(globals, script, 3600.0), 0.1);
    assert_eq!(run.outcome.reason, EndReason::Finished);
    let lines = printed(&run);
    assert_eq!((lines[0], lines[6], lines.len()), ("begun at 1 1", "ends at 1 1", 7));
    // Replies per second of each robot, minutes of the sample, and minutes of the phase so far.
    let steps = [(2.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.6, 1.0, 3.0), (1.6, 1.0, 4.0), (2.0, 2.0, 6.0)];
    for ((each, minutes, so_far), line) in steps.into_iter().zip(&lines[1..6]) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| -> f64 { words[at].parse().unwrap() };
        let (rate, robots) = (number(0), number(1));
        assert!(if so_far == 4.0 { (3.0..8.0).contains(&robots) } else { robots == 10.0 }, "{line}");
        // Five standard deviations of a Poisson count.
        let wanted = each * robots;
        assert!((rate - wanted).abs() < 5.0 * f64::sqrt(wanted / (60.0 * minutes)), "{line}: not {wanted}");
        assert_eq!(words[2], format!("{so_far}min"), "{line}");
        assert_eq!(words[3], format!("{minutes}min"), "{line}");
    }
    let told = comments(&run.logs[0]);
    for line in [
        "fyi: load factor 100 % -> 50 %",
        "fyi: load factor 50 % -> 80 %",
        "fyi: populus factor 100 % -> 50 %",
        "fyi: populus factor 50 % -> 100 %",
        "fyi: the script ends the phase: all was tried",
    ] {
        assert!(told.contains(&line), "{line}: {told:?}");
    }
    let levels: Vec<u8> = run.logs[0]
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Comment { level, text, .. } if text.starts_with("script output: ") => Some(*level),
            _ => None,
        })
        .collect();
    assert_eq!(levels, [5, 5, 5, 5, 5, 5, 3]);
    let end = run.logs[0].intervals().last().unwrap().end_ns as f64 * 1e-9;
    assert!((end - 360.0).abs() < 0.3, "{end}");
}

/// All members of a sample of ten minutes.
fn members(think: f64) -> HashMap<String, String> {
    let prints: String =
        stat_completions().iter().map(|path| format!("print(\"{path}=\", s.{path});\n")).collect();
    let script = format!("every sample do {{ StatSample s = currentSample(); {prints} }}");
    let run = simulate(scripted("Goal sample = { duration = 10min; };", &script, 601.0), think);
    assert_eq!(run.outcome.reason, EndReason::Finished);
    let pairs = printed(&run).into_iter().filter_map(|line| line.split_once('='));
    let members: HashMap<String, String> =
        pairs.map(|(path, value)| (path.to_owned(), value.to_owned())).collect();
    assert_eq!(members.len(), stat_completions().len());
    assert_eq!(run.client.errors.sum(|kind| kind == ErrorKind::Script), 0);
    members
}

/// A count, share or level.
fn number(members: &HashMap<String, String>, path: &str) -> f64 {
    members[path].parse().unwrap_or_else(|e| panic!("{path} = {}: {e}", members[path]))
}

#[test]
fn every_member_of_a_sample_has_its_value() {
    let members = members(0.1);
    let count = number(&members, "ok_xact.count");
    assert!((count - 12_000.0).abs() < 5.0 * f64::sqrt(12_000.0), "{count}");
    let near = |path: &str, wanted: f64, tolerance: f64| {
        let value = number(&members, path);
        assert!((value - wanted).abs() <= tolerance, "{path}: {value}, not {wanted}");
    };
    // What is counted in more than one way.
    for path in ["rep.rptm", "rep.size", "basic.rptm", "fill.size", "baseline.rptm", "auth.none.rptm"] {
        near(&format!("{path}.count"), count, 0.0);
    }
    for path in ["real.miss.size", "cachable.yes.rptm", "auth.none.size"] {
        near(&format!("{path}.count"), count, 0.0);
    }
    let offered = number(&members, "offered.hit.rptm.count");
    near("offered.miss.size.count", count - offered, 0.0);
    near("offered.ratio.obj", offered / count, 1e-5);
    near("offered.ratio.byte", offered / count, 1e-2);
    near("offered.ratio.obj", 0.5, 0.03);
    near("real.ratio.obj", 0.0, 0.0);
    near("cachable.ratio.obj", 1.0, 0.0);
    near("err_xact.ratio", 0.0, 0.0);
    near("baseline.rep.rate", count / 600.0, 0.01);
    near("baseline.req.rate", count / 600.0, 0.1);
    // Little's law: as many are unfinished as come in the time that one takes.
    let live = number(&members, "live.rep.rptm.count");
    near("xact.level.mean", count / 600.0 * 0.1, 0.02);
    near("xact.level.last", live, 0.0);
    near("projected.rep.rptm.count", count + live, 0.0);
    near("xact.finished", count, 0.0);
    near("xact.started", count + live, 10.0);
    near("populus.level.last", 10.0, 0.0);
    near("populus.level.mean", 10.0, 0.0);
    near("wait.level.mean", 0.0, 0.0);
    // All connections stand, and those that are not idle carry a transaction.
    near("conn.estb.level.mean", number(&members, "conn.open.level.mean"), 1e-3);
    let busy = number(&members, "conn.open.level.mean") - number(&members, "conn.idle.level.mean");
    assert!((busy - number(&members, "xact.level.mean")).abs() < 0.02, "{busy}");
    near("conn.use.mean", 3.0, 0.0);
    near("conn.use.std_dev", 0.0, 0.0);
    near("conn.use.count", count / 3.0, 40.0);
    near("conn.ttl.count", number(&members, "conn.open.finished"), 0.0);
    // Quantities have their units, and nothing but thinking takes time.
    for (path, value) in [
        ("duration", "10min"),
        ("rep.rptm.mean", "100msec"),
        ("rep.rptm.min", "100msec"),
        ("baseline.rptm.max", "100msec"),
        ("fill.rptm.std_dev", "0sec"),
        ("offered.hit.rptm.mean", "100msec"),
        ("projected.rep.rptm.max", "100msec"),
    ] {
        assert_eq!(members[path], value, "{path}");
    }
    assert!(members["rep.size.mean"].ends_with("KB") && members["conn.ttl.mean"].ends_with("sec"));
    // What never happens is counted as nothing, and its means and ratios are undefined.
    let silent = [
        "redired_req",
        "rep_to_redir",
        "ims",
        "reload",
        "range",
        "head",
        "post",
        "put",
        "abort",
        "page",
        "auth.ing",
        "auth.ed",
        "tunneled",
        "custom.rep",
        "custom.live.rep",
        "custom.projected.rep",
        "real.hit",
        "cachable.no",
    ];
    for group in silent {
        for (leaf, value) in [("count", "0"), ("sum", ""), ("mean", "undefined"), ("max", "undefined")] {
            for kind in ["rptm", "size"] {
                let got = &members[&format!("{group}.{kind}.{leaf}")];
                assert!(
                    got == value || value.is_empty() && got.starts_with('0'),
                    "{group}.{kind}.{leaf}: {got}"
                );
            }
        }
    }
    for group in ["socks", "ssl", "ftp", "connect", "authenticating"] {
        assert_eq!(members[&format!("{group}.xact.ratio.obj")], "undefined", "{group}");
        for leaf in
            ["xact.started", "xact.level.last", "conn.finished", "err_xact.count", "xact.hit.size.count"]
        {
            near(&format!("{group}.{leaf}"), 0.0, 0.0);
        }
    }
}

#[test]
fn a_device_that_hangs_is_noticed_although_no_reply_comes() {
    let members = members(3600.0);
    let live = number(&members, "live.rep.rptm.count");
    assert!((live - 12_000.0).abs() < 5.0 * f64::sqrt(12_000.0), "{live}");
    assert_eq!(number(&members, "xact.level.last"), live);
    assert_eq!(number(&members, "projected.rep.size.count"), live);
    assert_eq!((members["rep.rptm.count"].as_str(), members["rep.rptm.mean"].as_str()), ("0", "undefined"));
    assert_eq!(members["live.rep.size.max"], "0Byte", "no byte has come");
    // They have come evenly over ten minutes.
    let mean =
        members["projected.rep.rptm.mean"].strip_suffix("min").and_then(|mean| mean.parse::<f64>().ok());
    assert!(mean.is_some_and(|mean| (mean - 5.0).abs() < 0.2), "{}", members["projected.rep.rptm.mean"]);
    assert!(members["live.rep.rptm.max"].starts_with("9.9"), "{}", members["live.rep.rptm.max"]);
}

#[test]
fn samples_of_single_transactions_are_taken_on_both_sides() {
    let sample =
        |name: &str, start, of_run, capacity| SamplePlan { name: name.into(), start, of_run, capacity };
    let mut schedule = Bench::only(Goal { duration: Some(60.0), ..Goal::default() });
    schedule.phases[0].samples =
        vec![sample("middle", 30.0, false, 40), sample("begin", 0.0, true, 7), sample("late", 99.0, true, 5)];
    let result = simulate(schedule, 0.1);
    for (log, is_client) in result.logs.iter().zip([true, false]) {
        let of = |name: &str| -> Vec<&Xact> {
            let xacts = log.records.iter().filter_map(|record| match record {
                Record::Xacts { sample, xacts } if sample == name => Some(xacts),
                _ => None,
            });
            xacts.flatten().collect()
        };
        assert_eq!([of("middle").len(), of("begin").len(), of("late").len()], [40, 7, 0]);
        for xact in of("middle") {
            let begun = xact.ended_ns / 1000 - xact.lifetime_us;
            assert!((29_900_000..34_000_000).contains(&begun), "{xact:?}");
            assert!(xact.size > 100 && xact.status == 200 && xact.connection > 0, "{xact:?}");
            assert!(!xact.id.is_empty() && xact.object.starts_with('/'), "{xact:?}");
            assert_eq!((xact.robot.is_some(), xact.queued_us.is_some()), (is_client, is_client));
            assert_eq!((xact.server, xact.lifetime_us), (Some(0), 100_000));
        }
        let lines = comments(log);
        for line in [
            "fyi: sample `begin` of 7 transactions begins",
            "fyi: sample `middle` is complete",
            "fyi: sample `late` has 0 of 5 transactions",
        ] {
            assert!(lines.contains(&line), "{line}: {lines:?}");
        }
    }
}
