//! Runs side by side, and their history.

use serde_json::Value;

use crate::sandbox::{Done, Running, Sandbox, free_port};

/// Starts a run of eight seconds without think time, so that the device's time is what counts.
fn start(sandbox: &Sandbox, label: &str, port: u16, more: &str) -> Running {
    sandbox.start(&format!(
        "run --proxy 127.0.0.1:{port} --xact_think none --loops 1 --goal 8s --cool_phase 1s --label {label} {more}"
    ))
}

fn directory(sandbox: &Sandbox, label: &str) -> String {
    let entries = std::fs::read_dir(sandbox.path().join("runs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    format!("runs/{}", names.into_iter().find(|name| name.starts_with(label)).unwrap())
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

/// The results of the tests in a file of JUnit XML, by name, as an XML parser that others wrote reads it.
fn junit(sandbox: &Sandbox, file: &str) -> Value {
    let script = "import json, sys, xml.etree.ElementTree as xml\n\
        cases = xml.parse(sys.argv[1]).getroot().iter('testcase')\n\
        print(json.dumps({case.get('name'): case[0].tag for case in cases}))\n";
    sandbox.write("junit.py", script);
    json(&sandbox.start_program("python3", &format!("junit.py {file}")).finish())
}

#[test]
fn a_device_that_needs_twice_the_time() {
    let sandbox = Sandbox::new();
    let mut quick = sandbox.start("proxy --port 0 --loops 1 --service_time norm:60ms,6ms");
    let mut slow = sandbox.start("proxy --port 0 --loops 1 --service_time norm:120ms,12ms");
    let (quick_port, slow_port) = (quick.port("proxy at"), slow.port("proxy at"));
    // `--anyway`, because a busy machine may start requests late, and the order of the runs is what matters here.
    let runs = [
        start(&sandbox, "one", quick_port, "--req_rate 100/sec --expect dhr>=1% --expect rptm<1s"),
        start(&sandbox, "two", quick_port, "--req_rate 100/sec --expect rptm<1ms"),
        start(&sandbox, "slow", slow_port, "--req_rate 100/sec"),
        start(&sandbox, "less", quick_port, "--req_rate 50/sec"),
    ];
    let done = runs.map(Running::finish);
    assert!(done[1].out.contains("rptm<1ms: NOT MET"), "{:?}", done[1]);
    if done[0].verdict() == "VALID" && done[1].verdict() == "VALID" {
        assert_eq!([done[0].code(), done[1].code()], [Some(0), Some(10)], "{done:?}");
    }
    let [one, two, slow_run, less] = ["one", "two", "slow", "less"].map(|label| directory(&sandbox, label));

    let same = sandbox.polygraph(&format!("compare --anyway --delta 20% --json {one} {two}"));
    assert_eq!((same.code(), &json(&same)["found"]), (Some(0), &0.into()), "{same:?}");

    // Nothing but what a busy machine does may speak against two runs of one command.
    let plain = sandbox.polygraph(&format!("compare --delta 20% {one} {two}"));
    let objections: Vec<&str> = plain
        .err
        .lines()
        .filter(|line| line.starts_with("not comparable:") && !line.contains("INVALID"))
        .collect();
    assert!(objections.is_empty() && matches!(plain.code(), Some(0 | 15)), "{plain:?}");

    let gate = "--fail_on rptm.p50>+50% --fail_on rptm.p50>+200%";
    let worse = sandbox
        .polygraph(&format!("compare --anyway {gate} --json --out page.html old={one} new={slow_run}"));
    assert_eq!(worse.code(), Some(14), "{worse:?}");
    let result = json(&worse);
    let holds: Vec<bool> = (0..2).map(|i| result["fail_on"][i]["holds"].as_bool().unwrap()).collect();
    assert_eq!(holds, [true, false], "{result:#}");
    let figures = result["parts"][0]["figures"].as_array().unwrap();
    // The median: a host that stands still for a moment makes means uncertain.
    let median = &figures.iter().find(|figure| figure["name"] == "baseline.rptm.p50").unwrap()["changes"][0];
    let percent = median["percent"].as_f64().unwrap();
    assert!(median["verdict"] == "worse" && (70.0..130.0).contains(&percent), "{median}");
    let short = sandbox
        .polygraph(&format!("compare --anyway {gate} --junit gate.xml --markdown old={one} new={slow_run}"));
    let full = sandbox
        .polygraph(&format!("compare --anyway --junit all.xml --markdown --full old={one} new={slow_run}"));
    assert!(short.out.contains("left out") && !full.out.contains("left out"), "{short:?} {full:?}");
    let tests = junit(&sandbox, "gate.xml");
    assert_eq!(tests["fail_on rptm.p50>+50%, new"], "failure", "{tests:#}");
    assert_eq!(tests["fail_on rptm.p50>+200%, new"], "system-out");
    assert_eq!(tests["baseline.rptm.p50 in meas, new"], "system-out", "conditions say what is too much");
    assert_eq!(junit(&sandbox, "all.xml")["baseline.rptm.p50 in meas, new"], "failure");
    let page = sandbox.read("page.html");
    assert!(page.contains("new against old") && page.contains("cmp-rptm") && !page.contains("src=\"http"));

    // Two names of one figure.
    let both = sandbox.polygraph(&format!("compare --anyway --fail_on err_pct>50% --json {one} {two}"));
    let shown = json(&both)["parts"][0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].to_string())
        .collect::<Vec<_>>();
    let shares = shown.iter().filter(|name| name.contains("err_pct") || name.contains("err_xact.ratio"));
    assert_eq!((both.code(), shares.count()), (Some(0), 1), "{shown:?}");

    let other = sandbox.polygraph(&format!("compare --junit refused.xml {one} {less}"));
    assert_eq!(junit(&sandbox, "refused.xml")["comparable"], "error");
    assert_eq!(other.code(), Some(15), "{other:?}");
    assert!(other.err.contains("`request rate`: 50/sec instead of 100/sec"), "{other:?}");
    let table = sandbox.polygraph(&format!("compare --anyway --markdown {one} {less}"));
    assert!(table.code() == Some(0) && table.out.contains("| figure | unit |"), "{table:?}");

    history(&sandbox);
    quick.stop();
    slow.stop();
}

/// What the runs have left in the index, and what is made of the directories alone.
fn history(sandbox: &Sandbox) {
    let remembered = json(&sandbox.polygraph("runs --json"));
    let labels: Vec<&str> =
        remembered["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    assert_eq!(labels.len(), 4, "{labels:?}");
    std::fs::remove_file(sandbox.path().join("runs/.runs.sqlite")).unwrap();
    assert_eq!(json(&sandbox.polygraph("runs --json")), remembered);
    assert_eq!(json(&sandbox.polygraph("runs --json --rebuild")), remembered);
    let slow = json(&sandbox.polygraph("runs --json --label slow --since 1hr"));
    assert_eq!(slow["runs"].as_array().unwrap().len(), 1);
    let table = sandbox.polygraph("runs --limit 2");
    assert!(table.out.starts_with("run ") && table.out.contains("modified PolyMix"), "{table:?}");
}

#[test]
fn what_cannot_be_compared_expected_or_listed() {
    let sandbox = Sandbox::new();
    for (words, code, text) in [
        ("compare one.log", 4, "one.log"),
        ("compare --fail_on rptm.p95>>5% a b", 2, "not a bound"),
        ("compare --fail_on dhr<-2% a b", 2, "percentage points"),
        ("compare --confidence 100% a b", 2, "is not a confidence level"),
        ("compare --fail_on servers.share.min<10% a b", 2, "polygraph report --expect"),
        ("run --no_proxy --expect rptm.p59<1s", 2, "did you mean"),
        ("run --no_proxy --expect rptm<+5%", 2, "compare --fail_on"),
        (
            "run --no_proxy --goal 100s --expect rptm@maes<1s",
            2,
            "no phase `maes`: did you mean meas?; the phases are warm, meas, cool",
        ),
        ("try --expect rptm@top1<1s", 2, "there is no phase `top1`; the phases are"),
        ("simulate simple --expect rptm@top1<1s", 2, "there is no phase `top1`; the phases are run"),
        ("runs", 4, "no test has been run here"),
        ("runs --since yesterday .", 2, "is not a time"),
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(text), "{words}: {done:?}");
    }
}

/// Only the logs of servers have their shares, while everything else that is expected is what robots saw.
#[test]
fn shares_of_servers_may_be_expected() {
    let sandbox = Sandbox::new();
    let ports = [1, 2].map(|_| crate::sandbox::free_port());
    sandbox.write(
        "two.pg",
        &format!(
            "Content C = {{ size = const(1KB); }};
             Server S = {{ contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:{}', '127.0.0.1:{}']; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 4]; req_rate = 20/sec; }};
             Phase p = {{ name = \"p\"; goal.duration = 3sec; }};
             schedule(p); use(S, R);",
            ports[0], ports[1]
        ),
    );
    let expect = "--expect servers.share.min>=10% --expect servers.share.max@p<80% --expect err_pct<1%";
    let done = sandbox.polygraph(&format!("run --config two.pg --no_proxy --loops 1 {expect}"));
    assert!(!done.out.contains("NOT MET"), "{done:?}");
    let run = sandbox.result().display().to_string();
    let met = sandbox.polygraph(&format!("report --expect servers.share.min>=10% {run}"));
    let unmet = sandbox.polygraph(&format!("report --expect servers.share.max<50% {run}"));
    assert!(
        !met.out.contains("NOT MET") && unmet.out.contains("servers.share.max<50%: NOT MET"),
        "{unmet:?}"
    );
    if done.verdict() == "VALID" {
        assert_eq!([done.code(), met.code(), unmet.code()], [Some(0), Some(0), Some(10)], "{unmet:?}");
    }
    let robots = sandbox.polygraph(&format!("report --expect servers.share.max<90% {run}/client.log"));
    assert!(robots.out.contains("only servers count it, and their logs are missing"), "{robots:?}");
}

/// Phases of three statistics intervals say nothing about noise, so that a change of any size may be some.
#[test]
fn a_change_that_may_be_noise_has_an_exit_code() {
    let sandbox = Sandbox::new();
    let workload = "
        Content C = { size = const(1KB); cachable = 80%; };
        Server S = { contents = [ C ]; addresses = [ '127.0.0.1:9090' ]; xact_think = norm(THINK, 0.1sec); };
        Robot R = { origins = S.addresses; addresses = [ '127.0.0.1' ]; req_rate = 200/sec; };
        Phase P = { name = \"p\"; goal.duration = 3sec; primary = true; };
        schedule(P); use(S, R);";
    for (name, think) in [("old", "0.4sec"), ("new", "0.6sec")] {
        sandbox.write(&format!("{name}.pg"), &workload.replace("THINK", think));
        sandbox.polygraph(&format!("simulate {name}.pg --stats_cycle 1s --out {name}"));
    }
    let compared = |words: &str| sandbox.polygraph(&format!("compare --anyway {words} old new"));
    let told = "not decided: rptm>+5% (new: ";
    let done = compared("--fail_on rptm>+5% --fail_on rptm>+500%");
    assert!(done.code() == Some(16) && done.out.contains(told), "{done:?}");
    assert!(done.out.contains("passed: rptm>+500% (new: "), "{done:?}");
    let holds = json(&compared("--json --fail_on rptm>+5%"))["fail_on"][0]["holds"].clone();
    assert_eq!(holds, Value::Null);
    // A regression comes first, and a change that exceeds no condition needs no decision.
    assert_eq!(compared("--fail_on rptm>+5% --fail_on rptm>1ms").code(), Some(14));
    assert_eq!(compared("--fail_on rptm>+500%").code(), Some(0));
}

/// No condition on a figure says that the device failed.
#[test]
fn a_run_that_failed_is_a_regression() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let run = |label: &str, port: u16| {
        sandbox.polygraph(&format!(
            "run --proxy 127.0.0.1:{port} --req_rate 150/sec --rep_sz exp:2KB --xact_think none --robots 10 --goal 2s \
             --cool_phase none --predict no --preflight no --loops 1 --label {label}"
        ));
        directory(&sandbox, label)
    };
    let (good, bad) = (run("good", proxy.port("proxy at")), run("bad", free_port()));
    // `--anyway`, because a busy machine may start requests late.
    let compared = |words: &str| sandbox.polygraph(&format!("compare --anyway {words}"));
    let gated = compared(&format!("--fail_on rep.rate>1000/s {good} {bad}"));
    assert_eq!(gated.code(), Some(14), "{gated:?}");
    let told = "FAILED: the device did not fail in the first run, but in";
    assert!(gated.out.contains(told) && gated.out.contains("passed: rep.rate>1000/s"), "{gated:?}");
    let words = format!("--json --fail_on rep.rate>1000/s {good} new={bad}");
    assert_eq!(json(&compared(&words))["newly_failed"], serde_json::json!(["new"]));
    for words in [format!("{good} {bad}"), format!("--fail_on rep.rate>1000/s {bad} {good}")] {
        assert_eq!(compared(&words).code(), Some(0), "{words}");
    }
}
