//! The workload for correctness, through the built-in proxy with and without faults.

use std::collections::HashMap;

use crate::sandbox::{Sandbox, free_port, quiet};

/// Runs it; gives what the run said, its exit code and the figures of the client's log.
fn run(faults: &str) -> (String, Option<i32>, HashMap<String, f64>) {
    let sandbox = Sandbox::new();
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/correctness.pg");
    let text = std::fs::read_to_string(workload).unwrap();
    sandbox.write("correctness.pg", &text.replace("9090", &free_port().to_string()));
    let mut proxy = sandbox.start(&format!("proxy --port 0 --loops 1 {faults}"));
    let port = proxy.port("proxy at 127.0.0.1:");
    let done = sandbox.polygraph(&format!(
        "run --config correctness.pg --proxy 127.0.0.1:{port} --set phMeas.goal.duration=10sec"
    ));
    proxy.stop();
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done.out.clone() + &done.err, done.code(), figures)
}

#[test]
fn nothing_is_found_in_a_proxy_that_is_right() {
    let _quiet = quiet();
    let (said, _, figures) = run("");
    assert_eq!((figures["errors.count"], figures["errors.correctness.count"]), (0.0, 0.0), "{said}");
    // 300/s for 10 s.
    assert!(figures["ok_xact.count"] > 2000.0, "{said}");
}

#[test]
fn faults_are_counted_and_named_in_the_verdict() {
    let _quiet = quiet();
    let (said, code, figures) =
        run("--fault alter=5% --fault store-private=30% --fault stale --fault cut=5%");
    assert_eq!(code, Some(1), "{said}");
    for name in ["altered_body", "private_leak", "uncachable_hit", "stale", "expired", "body_short"] {
        assert!(figures[&format!("errors.{name}.count")] >= 3.0, "{name}: {said}");
    }
    assert!(said.contains("FAILED") && said.contains("private reply given to another robot"), "{said}");
}

/// The two-machine command of the README: the client is not told what the server serves, and finds every altered byte.
#[test]
fn clients_that_were_told_no_sizes_compare_every_byte() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --goal 5min");
    let origin = server.port("listening at");
    let mut proxy = sandbox.start("proxy --port 0 --loops 1 --fault alter=20%");
    let port = proxy.port("proxy at");
    let client = |more: &str| {
        sandbox.polygraph(&format!(
            "client --proxy 127.0.0.1:{port} --origin 127.0.0.1:{origin} --robots 4 --dhr 50p --settle_time 0s \
             --goal 800 --log c.log {more}"
        ));
        let (all, _) = sandbox.lx("", "c.log");
        all
    };
    let found = client("");
    let count = |name: &str| found[name];
    // Each body has 13 KB on average.
    assert!(count("verified.size.sum") > 5_000.0 * count("verified.count"), "{found:?}");
    assert!(
        count("verified.uncompared.size.sum") == 0.0 && count("errors.altered_body.count") > 20.0,
        "{found:?}"
    );

    let found = client("--global_rng_seed 2");
    assert_eq!(found["errors.other_contents.count"], found["ok_xact.count"], "{found:?}");
    assert!(!found.contains_key("errors.altered_body.count") || found["errors.altered_body.count"] == 0.0);
    let report = sandbox.polygraph("report --out r.html c.log");
    let page = sandbox.read("r.html");
    assert!(
        page.contains("INVALID (") && page.contains("client and server disagree about the contents"),
        "{report:?}"
    );
    proxy.stop();
    server.stop();
}
