//! Limits of the bench are not the device's: descriptors, and processes that stand still.

use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{Done, Running, Sandbox};

/// Runs `polygraph` with shell commands before it, like `ulimit`.
fn after(sandbox: &Sandbox, commands: &str, words: &str) -> Done {
    let program = env!("CARGO_BIN_EXE_polygraph");
    sandbox.write("limited.sh", &format!("{commands}\nexec {program} {words}\n"));
    sandbox.start_program("/bin/sh", "limited.sh").finish()
}

#[test]
fn a_limit_of_descriptors_is_no_fault_of_the_device() {
    let sandbox = Sandbox::new();
    // 50 requests a second that take 3 s need 150 connections; one process has 17 for its robots.
    let done =
        after(&sandbox, "ulimit -n 64", "run --no_proxy --req_rate 50/sec --robots 1 --goal 5s --predict no");
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("INVALID (host): ") && done.out.contains("descriptors"), "{}", done.out);
    assert!(done.err.contains("a process may open 64 files") && done.err.contains("ulimit"), "{}", done.err);
    let lr = sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out;
    assert!(lr.contains("file descriptors allow"), "the log says where the limit came from: {lr}");
}

#[test]
fn a_limit_that_the_user_sets_is_part_of_the_test() {
    let sandbox = Sandbox::new();
    let done =
        sandbox.polygraph("run --no_proxy --req_rate 50/sec --open_conn_lmt 17 --goal 5s --predict no");
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(
        done.out.contains("INVALID (test)") && done.out.contains("too many waiting transactions"),
        "{}",
        done.out
    );
}

/// A client and a server that have begun to measure.
fn measuring(sandbox: &Sandbox) -> (Running, Running) {
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --xact_think 20ms --log srv.log");
    let port = server.port("listening at");
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{port} --req_rate 100/sec --goal 8s --verb_lvl 2 --log clt.log"
    ));
    client.wait_for("i-meas");
    (client, server)
}

/// Stops a process for longer than is allowed.
fn freeze(process: &Running) {
    process.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1600));
    process.signal(Signal::CONT);
}

#[test]
fn a_frozen_process_is_named() {
    for (whom, what) in [("client", "clt.log"), ("server", "srv.log")] {
        let sandbox = Sandbox::new();
        let (client, server) = measuring(&sandbox);
        freeze(if whom == "client" { &client } else { &server });
        assert_eq!(client.finish().code(), Some(0));
        server.stop();
        assert_eq!(sandbox.polygraph("report clt.log srv.log").code(), Some(0));
        let report = sandbox.read("report.html");
        assert!(report.contains(&format!("INVALID ({whom})")), "{whom} is not named");
        assert!(report.contains(&format!("the {whom} stood still for 1.")), "{whom}: no reason");
        let (all, remarks) = sandbox.lx("", what);
        assert!(all["errors.late_timers.count"] >= 1.0, "{whom}: {all:?}");
        assert_eq!(remarks, "", "the log is complete");
    }
}

#[test]
fn a_frozen_run_is_invalid() {
    let sandbox = Sandbox::new();
    let mut run = sandbox
        .start("run --no-proxy --req_rate 100/sec --xact_think 20ms --goal 8s --verb_lvl 2 --predict no");
    run.wait_for("i-meas");
    freeze(&run);
    let done = run.finish();
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("INVALID (client)") && done.out.contains("stood still for 1."), "{}", done.out);
}
