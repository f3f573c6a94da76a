//! The commands about workload files, run as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

fn polygraph(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    Command::new(env!("CARGO_BIN_EXE_polygraph")).args(args).current_dir(root).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const POLYMIX_4: &[&str] = &[
    "check",
    "polymix-4.pg",
    "--cfg_dirs",
    "include",
    "--set",
    "TheBench.peak_req_rate=1000/sec",
    "--set",
    "FillRate=500/sec",
    "--set",
    "ProxyCacheSize=54GB",
    "--set",
    "DnsServers=['172.16.101.100:53']",
];

#[test]
fn check_shows_the_plan() {
    let output = polygraph(POLYMIX_4);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    for wanted in ["robots   2500 on 1250 addresses", "servers  750", "1000.00/sec", "top1", "4hour"] {
        assert!(out.contains(wanted), "{wanted} is missing in\n{out}");
    }
    // 10 hours and 20 minutes, and twice 54 GB at 500 requests per second.
    assert!(out.contains("~18:33:30\n"), "{out}");
    assert!(out.contains("offered, by a simulation of a sample, one in 9"), "{out}");
}

/// A figure of a phase as `check --json` expects it.
fn offered(value: &serde_json::Value, phase: &str, figure: &str) -> f64 {
    let phases = value["preview"]["phases"].as_array().unwrap_or_else(|| panic!("{value}"));
    let phase = phases.iter().find(|it| it["name"] == phase).unwrap_or_else(|| panic!("{value}"));
    phase[figure].as_f64().unwrap_or_else(|| panic!("{figure}: {phase}"))
}

#[test]
fn what_is_offered_is_simulated_and_not_just_the_product_of_settings() {
    let check = |more: &[&str]| {
        let args: Vec<&str> = POLYMIX_4.iter().chain(&["--json"]).chain(more).copied().collect();
        serde_json::from_slice::<serde_json::Value>(&polygraph(&args).stdout).expect("JSON")
    };
    let value = check(&[]);
    // Of a plateau about 16,000 requests are simulated: the DHR scatters by a point, the BHR by 2. The settings alone say 55 and
    // 54.8; the preference for small objects takes the rest.
    for phase in ["top1", "top2"] {
        let (dhr, bhr) = (offered(&value, phase, "dhr"), offered(&value, phase, "bhr"));
        assert!((dhr - 53.0).abs() < 4.0 && (bhr - 43.0).abs() < 6.0, "{phase}: {dhr} and {bhr}");
        // The limit on uses has a mean of 14.85.
        let uses = offered(&value, phase, "conn_use");
        assert!((11.0..14.5).contains(&uses), "{phase}: {uses}");
    }
    assert!(offered(&value, "fill", "dhr") < 8.0);
    assert_eq!(check(&["--no_simulation"])["preview"], serde_json::Value::Null);
    // Goals are those of two machines; as one that has it all they are met half as fast.
    let whole = value["plan"]["phases"][1]["expected_secs"].as_f64().expect("a length");
    let short =
        check(&["--scale", "1/100"])["plan"]["phases"][1]["expected_secs"].as_f64().expect("a length");
    assert!((whole / short - 100.0).abs() < 0.1, "{whole} and {short}");
}

#[test]
fn what_cannot_be_simulated_is_planned_all_the_same() {
    let plan = |file: &str, settings: &[&str]| {
        let sets = settings.iter().flat_map(|setting| ["--set", setting]);
        text(&polygraph(&["check", file].into_iter().chain(sets).collect::<Vec<_>>()).stdout)
    };
    let simple = plan("simple.pg", &["phRun.goal.duration=30sec"]);
    assert!(simple.contains("offered: not simulated: how fast best-effort robots are"), "{simple}");
    let steered = plan("rptmstat-1.pg", &["PeakRate=100/sec"]);
    assert!(steered.contains("offered: not simulated: its load follows replies"), "{steered}");
    let crowd = plan("polymix-1.pg", &["ReqRate=50/sec", "RobotAddrs=['10.0-3.0-250.1-250']"]);
    assert!(crowd.contains("offered: not simulated: there are too many robots"), "{crowd}");
}

#[test]
fn check_as_json() {
    let args: Vec<&str> = POLYMIX_4.iter().copied().chain(["--json"]).collect();
    let output = polygraph(&args);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["ok"], true);
    assert_eq!(value["plan"]["robots"]["agents"], 2500);
    assert_eq!(value["plan"]["phases"].as_array().map(Vec::len), Some(10));
}

#[test]
fn check_names_what_is_missing_and_fails() {
    let output = polygraph(&["check", "polymix-4.pg", "--cfg_dirs", "include"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--set TheBench.peak_req_rate=100/sec"));
    let output = polygraph(&["pgl-test", "polymix-4.pg", "--cfg_dirs", "include", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["ok"], &value["plan"]), (&serde_json::json!(false), &serde_json::Value::Null));
    assert!(value["diagnostics"].as_array().is_some_and(|list| !list.is_empty()));
}

#[test]
fn prints_come_as_script_output() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("p.pg");
    std::fs::write(&path, "print(10/sec + 5/min, \" x\");\n").expect("writable");
    let output = polygraph(&["check", path.to_str().expect("text")]);
    assert!(text(&output.stdout).starts_with("script output: 10.0833/sec x\n"), "{}", text(&output.stdout));
}

#[test]
fn explain_tells_and_refuses() {
    let output = polygraph(&["explain", "e0402"]);
    assert!(text(&output.stdout).starts_with("E0402: "));
    assert_eq!(polygraph(&["explain", "E9999"]).status.code(), Some(2));
}

#[test]
fn fmt_checks_and_rewrites() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("p.pg");
    std::fs::write(&path, "int  x=5;").expect("writable");
    let name = path.to_str().expect("text");
    assert_eq!(polygraph(&["fmt", "--check", name]).status.code(), Some(1));
    assert_eq!(polygraph(&["fmt", name]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).expect("text"), "int x = 5;\n");
    assert_eq!(polygraph(&["fmt", "--check", name]).status.code(), Some(0));
}
