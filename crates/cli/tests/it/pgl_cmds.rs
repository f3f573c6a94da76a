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

#[test]
fn files_without_end_are_not_formatted() {
    let refused = |path: &str, words: &str| {
        let output = polygraph(&["fmt", path]);
        let err = text(&output.stderr);
        assert!(!output.status.success() && err.contains(words), "{path}: {err}");
    };
    refused("/dev/zero", "/dev/zero: not a plain file");
    let place = tempfile::tempdir().unwrap();
    let large = place.path().join("large.pg");
    std::fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    refused(large.to_str().unwrap(), "large.pg: more than 67108864 bytes");
}
