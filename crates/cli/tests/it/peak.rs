//! `polygraph peak` against a device of known capacity, stopped and resumed.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::sandbox::{ATTEMPTS, Done, Sandbox, free_port, quiet};

/// Requests per second that the device serves.
const CAPACITY: f64 = 1000.0;

/// The lines of steps, without the reasons below them.
fn steps(out: &str) -> Vec<&str> {
    out.lines()
        .filter(|line| line.split_whitespace().next().is_some_and(|n| n.parse::<u32>().is_ok()))
        .collect()
}

/// The directory of the search.
fn directory(sandbox: &Sandbox) -> PathBuf {
    let found = std::fs::read_dir(sandbox.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    found.into_iter().find(|path| path.join("peak.json").is_file()).expect("a search")
}

/// The name of this directory.
fn name(sandbox: &Sandbox) -> String {
    directory(sandbox).file_name().unwrap().to_str().unwrap().to_owned()
}

/// Whether the search ended because the bench was the limit: the machine was busy with other work, and the search says
/// nothing about the device. [`ATTEMPTS`] has the probability that this happens every time.
fn bench_was_limit(done: &Done) -> bool {
    done.out.contains("the bench was the limit")
}

/// A search that is killed in its third run and then resumed: its output before and after.
fn search() -> (Sandbox, Done, Done) {
    let sandbox = Sandbox::new();
    let mut first = sandbox.start(&format!(
        "peak --device builtin --device_opt service_rate={CAPACITY}/sec --device_opt listen=127.0.0.1:{} \
         --from 600/sec --precision 8p --confirm 1 --max_runs 20 --max_rptm 1x+60ms \
         --xact_think 10ms --rep_sz 2KB --goal 3s --cool_phase none --loops 1",
        free_port()
    ));
    first.wait_for("step 3");
    first.signal(Signal::KILL);
    let killed = first.finish();
    assert_eq!(killed.killed_by(), Some(Signal::KILL));
    let listed = sandbox.polygraph("runs");
    let resume = format!("if it was interrupted: polygraph peak --resume runs/{}", name(&sandbox));
    assert!(listed.out.contains(&resume) && listed.out.contains("SEARCHING"), "{listed:?}");
    let done = sandbox.polygraph(&format!("peak --resume {}", directory(&sandbox).display()));
    (sandbox, killed, done)
}

/// In 3 s of Poisson arrivals at 1000 per second, the rate that is really offered deviates by 1.8 % (one standard
/// deviation); the end of the search repeats its bracket, which must contain the capacity within three of them.
#[test]
fn a_search_finds_the_capacity_and_goes_on_after_a_kill() {
    let _quiet = quiet();
    let (sandbox, killed, done) = (0..ATTEMPTS)
        .map(|_| search())
        .find(|(_, _, done)| !bench_was_limit(done))
        .expect("a search on a machine that is not too busy");
    let directory = directory(&sandbox);
    assert_eq!(done.code(), Some(0), "{done:?}");
    // Runs from before the kill are listed again, and not repeated.
    assert_eq!(steps(&killed.out).len(), 2, "{killed:?}");
    assert_eq!(steps(&done.out)[..2], steps(&killed.out)[..], "{done:?}");
    let line =
        done.out.lines().find(|line| line.starts_with("FOUND: peak ")).unwrap_or_else(|| panic!("{done:?}"));
    let rate_after = |word: &str| -> f64 {
        let rest = line.split_once(word).unwrap_or_else(|| panic!("{line}")).1;
        rest.split('/').next().unwrap().parse().unwrap_or_else(|_| panic!("{line}"))
    };
    let (held, failed) = (rate_after("sustained "), rate_after("failed at "));
    assert!(held > CAPACITY * 0.85 && held < CAPACITY * 1.055, "{line}");
    assert!(failed > CAPACITY * 0.945 && failed <= held / 0.92 + 1e-9, "{line}");
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    let result = line.strip_prefix("FOUND: ").unwrap();
    assert!(page.contains("id=\"fig-knee\"") && page.contains(result), "the page of the search");
    assert!(!page.contains(line), "the banner of the page has the word already");
    // The list of runs has the search with its result, and the runs of the search are a separate list.
    let listed = sandbox.polygraph("runs --verdict found");
    let opened =
        format!("    report: runs/{0}/report.html; its runs: polygraph runs runs/{0}", name(&sandbox));
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(lines.len() == 4 && lines[1].contains("  FOUND  "), "{listed:?}");
    assert_eq!(lines[2..], [&format!("    {result}"), &opened], "{listed:?}");
    let steps_listed = sandbox.polygraph(&format!("runs runs/{}", name(&sandbox)));
    assert!(steps_listed.out.contains("step-01-"), "{steps_listed:?}");
    // Each step is a run like any other, and has a report.
    let state: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(directory.join("peak.json")).unwrap()).unwrap();
    let runs = state["steps"].as_array().unwrap();
    assert_eq!(runs.len(), steps(&done.out).len());
    for run in runs {
        let name = run["directory"].as_str().unwrap();
        assert!(directory.join(name).join("report.html").is_file(), "{name}");
    }
    // Once it is over, there is nothing left to do.
    let again = sandbox.polygraph(&format!("peak --resume {}", directory.display()));
    assert_eq!((again.code(), steps(&again.out).len()), (Some(0), runs.len()), "{again:?}");
    assert!(again.out.contains(line), "{again:?}");
}

/// At 50 requests per second, a run of 2 s has 90 measured transactions, too few for a verdict. The search makes such runs
/// longer instead of lowering the rate, and does not report `--most` as the peak.
#[test]
fn runs_are_made_long_enough_and_a_peak_beyond_the_most_is_not_found() {
    let search = || {
        let sandbox = Sandbox::new();
        let done = sandbox.polygraph(
            "peak --device builtin --from 50/sec --most 50/sec --goal 2s --confirm 0 --max_runs 9 --xact_think 20ms \
             --out runs/mine --rep_sz 2KB --cool_phase none --loops 1 --max_rptm none",
        );
        (sandbox, done)
    };
    let (sandbox, done) = (0..ATTEMPTS)
        .map(|_| search())
        .find(|(_, done)| !bench_was_limit(done))
        .expect("a search on a machine that is not too busy");
    assert!(done.err.contains("--goal is too short") && done.err.contains("continues for 4 s"), "{done:?}");
    let directory = sandbox.path().join("runs/mine");
    let state: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(directory.join("peak.json")).unwrap()).unwrap();
    for run in state["steps"].as_array().unwrap() {
        // 180 are expected.
        assert!(run["measured"]["ended"].as_u64().unwrap() >= 100 && run["rate"] == 50.0, "{run}");
    }
    assert!(done.out.contains("NOT REACHED: peak at least 50/s, sustained 50/s in "), "{done:?}");
    assert!(done.out.contains("; the search was limited by --most\n"), "{done:?}");
    assert!(done.out.contains("next           the peak is higher: raise --most"), "{done:?}");
    let listed: serde_json::Value = serde_json::from_str(&sandbox.polygraph("runs --json").out).unwrap();
    let listed = &listed["runs"][0];
    assert_eq!((&listed["kind"], &listed["verdict"]), (&"peak search".into(), &"NOT REACHED".into()));
    assert!(listed["rate"].as_f64().is_some_and(|rate| (40.0..60.0).contains(&rate)), "{listed}");
    assert_eq!(listed["workload"], "modified PolyMix-1");
    let page = std::fs::read_to_string(directory.join("report.html")).unwrap();
    assert!(page.contains("NOT REACHED") && !page.contains(">FOUND"), "what was not tried is not found");
    assert!(page.contains("<h1>Peak: Built-in proxy under modified PolyMix-1</h1>"), "a title");
}

#[test]
fn searches_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("w.pg", "");
    for (words, text) in [
        ("peak --device builtin --config w.pg --set ReqRate=5/sec", "--set NAME={rate}"),
        ("peak --device builtin --req_rate none", "robots without a rate have no peak"),
        ("peak --device builtin --from 50/sec --most 20/sec", "--most is below"),
        ("peak --device builtin --precision 90p", "is not a precision"),
        ("peak --device builtin --max_rptm fast", "--max_rptm"),
        ("peak --resume w.pg --from 5/sec", "cannot be used with"),
        ("peak --device builtin --from 50/sec --out .", "the directory is not empty"),
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(2), "{words}: {done:?}");
        assert!(done.err.contains(text), "{words}: {done:?}");
    }
    let done = sandbox.polygraph("peak --resume nowhere");
    assert_eq!(done.code(), Some(4), "{done:?}");
    assert!(!sandbox.path().join("runs").exists());
}
