//! The commands about workload files, run as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

use crate::sandbox::Sandbox;

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
    for wanted in ["robots   2,500 on 1,250 addresses", "servers  750", "1000.00/sec", "top1", "4hour"] {
        assert!(out.contains(wanted), "{wanted} is missing in\n{out}");
    }
    // 10 hours and 20 minutes, and twice 54 GB at 500 requests per second.
    assert!(out.contains("~18:33:30\n"), "{out}");
    assert!(out.contains("offered, by simulation of one in 9"), "{out}");
}

/// A figure of a phase as `check --json` expects it.
fn offered(value: &serde_json::Value, phase: &str, figure: &str) -> f64 {
    let phases = value["preview"]["phases"].as_array().unwrap_or_else(|| panic!("{value}"));
    let phase = phases.iter().find(|it| it["name"] == phase).unwrap_or_else(|| panic!("{value}"));
    phase[figure].as_f64().unwrap_or_else(|| panic!("{figure}: {phase}"))
}

/// What is offered is not what a cache may store.
#[test]
fn hits_that_no_cache_can_have_are_offered_and_missed() {
    let sandbox = Sandbox::new();
    let workload = |content: &str| {
        format!(
            "Content C = {{ size = const(1KB); {content} }};\nServer S = {{ contents = [ C ]; direct_access = contents; \
             addresses = ['127.0.0.1:9281-9283']; }};\nRobot R = {{ origins = S.addresses; req_rate = 50/sec; recurrence = 50%; \
             pop_model.pop_distr = popUnif(); interests = [ \"public\" ]; addresses = ['127.0.0.1']; }};\n\
             Phase P = {{ name = \"meas\"; goal.duration = 1min; }}; schedule(P); use(S, R);"
        )
    };
    let life = "cachable = 80%; obj_life_cycle = { length = const(7day); with_lmt = 100%; expires = [ nmt + const(0sec) ]; };";
    for (content, is_stored) in [("cachable = 80%;", false), (life, true)] {
        sandbox.write("w.pg", &workload(content));
        let done = sandbox.polygraph("check w.pg --json");
        let value: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let figure = |name: &str| offered(&value, "meas", name);
        assert!(figure("dhr") > 30.0, "{value}");
        assert_eq!(figure("ideal_dhr") > 30.0, is_stored, "{value}");
    }
    assert!(sandbox.polygraph("check w.pg").out.contains("     BHR     hits "));
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
    assert!(simple.contains("offered: not simulated, because the rate of best-effort robots"), "{simple}");
    let steered = plan("rptmstat-1.pg", &["PeakRate=100/sec"]);
    assert!(steered.contains("offered: not simulated, because its load depends on replies"), "{steered}");
    let crowd = plan("polymix-1.pg", &["ReqRate=50/sec", "RobotAddrs=['10.0-3.0-250.1-250']"]);
    assert!(crowd.contains("offered: not simulated, because there are too many robots"), "{crowd}");
}

#[test]
fn check_as_json() {
    let args: Vec<&str> = POLYMIX_4.iter().copied().chain(["--json"]).collect();
    let output = polygraph(&args);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["schema"], &value["ok"]), (&1.into(), &true.into()));
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

const AGENTS: &str = "Content C = { size = exp(1KB); };\nServer S = { contents = [ C ]; addresses = ['127.0.0.1:9090']; };\n\
                      Robot R = { origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 1/sec; };\n";

#[test]
fn check_looks_for_the_files_that_a_workload_names() {
    let dir = tempfile::tempdir().unwrap();
    let (file, texts) = (dir.path().join("a.pg"), dir.path().join("here.txt"));
    std::fs::write(&texts, "a line\n").unwrap();
    let here = texts.display();
    let more = format!(
        "C = {{ content_db = \"/no/such.cdb\"; }};\nContent D = {{ size = exp(1KB); infect_prob = 1%; inject_gap = exp(1KB); \
         inject_db = \"{here}\"; }};\nContent E = {{ document_root = \"nowhere\"; }};\nS.contents = [ C, D, E ];\n\
         R = {{ interests = [ \"foreign\" ]; foreign_trace = \"{here}\"; }};\nuse(S, R);\n"
    );
    std::fs::write(&file, format!("{AGENTS}{more}")).unwrap();
    let output = polygraph(&["check", file.to_str().unwrap()]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    for wanted in ["`/no/such.cdb`", "`nowhere`", "the trace", "a.pg:4:20"] {
        assert!(err.contains(wanted), "{wanted} is missing in\n{err}");
    }
    assert_eq!(err.matches("W1303").count(), 3, "{err}");
    assert!(!err.contains("the texts"), "{err}");
}

#[test]
fn check_of_nothing_has_no_negative_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pg");
    for program in ["int x = 5;", "Robot R = { addresses = ['127.0.0.1']; req_rate = 0/sec; }; use(R);"] {
        std::fs::write(&file, program).unwrap();
        for more in [&[][..], &["--json"]] {
            let out = text(&polygraph(&[&["check", file.to_str().unwrap()], more].concat()).stdout);
            assert!(out.contains('0') && !out.contains("-0"), "{out}");
        }
    }
}

#[test]
fn fmt_keeps_comments_in_other_encodings() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pg");
    std::fs::write(&file, b"int  x=1; // caf\xe9\n").unwrap();
    let output = polygraph(&["fmt", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&file).unwrap(), b"int x = 1; // caf\xe9\n");
}

/// Squid's own program for files of htpasswd, where it is installed.
const NCSA: &str = "/usr/lib/squid/basic_ncsa_auth";

#[test]
fn accounts_are_good_for_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pg");
    let with = format!("{AGENTS}R.credentials = credentials(3, \"lab\") + [\"joe:secret\"];\nuse(S, R);\n");
    std::fs::write(&file, with).unwrap();
    let file = file.to_str().unwrap();
    let plain = polygraph(&["accounts", file, "--format", "plain", "--clear"]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    assert!(text(&plain.stderr).contains("4 accounts"), "{}", text(&plain.stderr));
    let pairs = text(&plain.stdout);
    assert!(pairs.ends_with("joe:secret\n") && pairs.starts_with("user0_"), "{pairs}");

    let hashed = text(&polygraph(&["accounts", file]).stdout);
    assert!(hashed.contains("joe:$apr1$") && !hashed.contains("secret"), "{hashed}");
    assert_eq!(hashed, text(&polygraph(&["accounts", file]).stdout), "the same list each time");
    let other = text(&polygraph(&["accounts", file, "--global_rng_seed", "2"]).stdout);
    assert_ne!(hashed.lines().next(), other.lines().next(), "made accounts depend on the seed");
    let ldif = text(&polygraph(&["accounts", file, "--format", "ldif", "--base", "dc=x"]).stdout);
    assert!(ldif.contains("dn: uid=joe,dc=x\n") && ldif.contains("userPassword: {SMD5}"), "{ldif}");
    assert_eq!(polygraph(&["accounts", file, "--clear"]).status.code(), Some(2));

    // `check` says that these are not the accounts of Polygraph 4.
    let told = text(&polygraph(&["check", file]).stderr);
    assert!(told.contains("N0711") && told.contains("polygraph accounts"), "{told}");

    if Path::new(NCSA).exists() {
        let passwd = dir.path().join("passwd");
        std::fs::write(&passwd, &hashed).unwrap();
        let asked: String = pairs.lines().map(|pair| pair.replacen(':', " ", 1) + "\n").collect();
        let questions = dir.path().join("questions");
        std::fs::write(&questions, asked + "joe wrong\n").unwrap();
        let input = std::fs::File::open(&questions).unwrap();
        let answers = Command::new(NCSA).arg(&passwd).stdin(input).output().unwrap();
        let answers = text(&answers.stdout);
        let good: Vec<bool> = answers.lines().map(|line| line.starts_with("OK")).collect();
        assert_eq!(good, [true, true, true, true, false], "{answers}");
    }
}

#[test]
fn files_without_end_are_not_formatted() {
    let refused = |path: &str, words: &str| {
        let output = polygraph(&["fmt", path]);
        let err = text(&output.stderr);
        assert!(!output.status.success() && err.contains(words), "{path}: {err}");
    };
    refused("/dev/zero", "/dev/zero: not a regular file");
    let place = tempfile::tempdir().unwrap();
    let large = place.path().join("large.pg");
    std::fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    refused(large.to_str().unwrap(), "large.pg: longer than 67108864 bytes");
}
