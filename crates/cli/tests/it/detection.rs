//! The workload for correctness, through the built-in proxy with and without faults.

use crate::sandbox::{Sandbox, free_port, quiet};

/// Runs it; gives the output of the run and what `lx` says about errors.
fn run(faults: &str) -> (String, Option<i32>, Vec<(String, f64)>) {
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
    let errors = figures.into_iter().filter(|(name, _)| name.starts_with("errors"));
    (done.out.clone() + &done.err, done.code(), errors.collect())
}

#[test]
fn nothing_is_found_in_a_proxy_that_is_right() {
    let _quiet = quiet();
    let (said, _, errors) = run("");
    assert!(errors.iter().all(|(_, value)| *value <= 0.0), "{errors:?} {said}");
}

#[test]
fn faults_are_named_in_the_verdict() {
    let _quiet = quiet();
    let (said, code, errors) = run("--fault alter=5% --fault store-private=30% --fault stale --fault cut=5%");
    assert_eq!(code, Some(1), "{said}");
    for name in ["altered_body", "private_leak", "expired", "body_short"] {
        assert!(said.contains(name), "{name}: {errors:?} {said}");
    }
}
