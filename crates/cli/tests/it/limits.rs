//! Limits of the bench are not the device's: descriptors, and processes that stand still.

use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{Done, Running, Sandbox, engines, free_port};

/// Runs `polygraph` with shell commands before it, like `ulimit`.
fn after(sandbox: &Sandbox, commands: &str, words: &str) -> Done {
    let program = env!("CARGO_BIN_EXE_polygraph");
    sandbox.write("limited.sh", &format!("{commands}\nexec {program} {words}\n"));
    sandbox.start_program("/bin/sh", "limited.sh").finish()
}

#[test]
fn a_limit_of_descriptors_is_no_fault_of_the_device() {
    for engine in engines() {
        let sandbox = Sandbox::new();
        // 50 requests a second that take 3 s need 150 connections; 64 descriptors allow 33.
        let words =
            format!("run --no_proxy --req_rate 50/sec --robots 1 --goal 5s --predict no --engine {engine}");
        let done = after(&sandbox, "ulimit -n 64", &words);
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.out.contains("INVALID (host): ") && done.out.contains("descriptors"), "{}", done.out);
        assert!(
            done.err.contains("a process may open 64 files") && done.err.contains("ulimit"),
            "{}",
            done.err
        );
        let lr = sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out;
        assert!(lr.contains("file descriptors allow"), "the log says where the limit came from: {lr}");
        assert!(lr.contains(&format!("engine: {engine}")), "{lr}");
    }
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
fn measuring(start: impl Fn(&str) -> Running) -> (Running, Running) {
    let mut server = start("server --listen 127.0.0.1:0 --xact_think 20ms --log srv.log");
    let port = server.port("listening at");
    let mut client = start(&format!(
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
        let (client, server) = measuring(|words| sandbox.start(words));
        freeze(if whom == "client" { &client } else { &server });
        assert_eq!(client.finish().code(), Some(0));
        server.stop();
        assert_eq!(sandbox.polygraph("report clt.log srv.log").code(), Some(0));
        let report = sandbox.read("report.html");
        assert!(report.contains(&format!("INVALID ({whom})")), "{whom} is not named");
        assert!(report.contains(&format!("the {whom} stalled for 1.")), "{whom}: no reason");
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
    assert!(done.out.contains("INVALID (client)") && done.out.contains("stalled for 1."), "{}", done.out);
}

#[test]
fn a_dead_device_ends_a_phase_that_waits_for_a_fill() {
    let sandbox = Sandbox::new();
    let text = "
        Content C = { size = const(4KB); };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:PORT']; };
        Robot R = { origins = S.addresses; req_rate = 20/sec; addresses = ['127.0.0.1']; };
        Phase fill = { name = \"fill\"; goal.fill_size = 100MB; };
        Phase meas = { name = \"meas\"; goal.duration = 5sec; };
        schedule(fill, meas);
        use(S, R);
    ";
    sandbox.write("fill.pg", &text.replace("PORT", &free_port().to_string()));
    let words =
        "run --config fill.pg --proxy 127.0.0.1:1 --preflight no --predict no --fail_tout 3s --verb_lvl 1";
    let done = sandbox.polygraph(words);
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("FAILED") && done.out.contains("nothing has succeeded for 3."), "{}", done.out);
    assert!(done.err.contains(" fill "), "the console says how far the test is: {}", done.err);
}

#[test]
fn addresses_of_others_are_refused_before_the_start() {
    let sandbox = Sandbox::new();
    // An address that is nobody's (RFC 5737).
    for words in [
        "client --local_addrs 127.0.0.1,192.0.2.7 --goal 1s",
        "run --no_proxy --local_addrs 192.0.2.7 --goal 1s",
        "run --no_proxy --origin_address 192.0.2.7 --goal 1s",
        "server --listen 192.0.2.7:8080",
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(3), "{words}: {done:?}");
        assert!(
            done.err.contains("192.0.2.7") && done.err.contains("not an address of this host"),
            "{done:?}"
        );
    }
}

#[test]
fn a_verdict_needs_no_report() {
    let sandbox = Sandbox::new();
    let mut run = sandbox
        .start("run --no_proxy --req_rate 200/sec --xact_think none --goal 3s --verb_lvl 2 --predict no");
    run.wait_for("i-warm");
    let result = sandbox.result();
    std::fs::create_dir(result.join("report.html")).unwrap();
    // Nor the manifest, which has what is needed for the report.
    std::fs::remove_file(result.join("manifest.json")).unwrap();
    std::fs::create_dir(result.join("manifest.json")).unwrap();
    let done = run.finish();
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.out.contains("VALID") && done.out.contains("response time"), "{}", done.out);
    assert!(done.err.contains("cannot write") && done.err.contains("manifest.json"), "{}", done.err);
    let left = std::fs::read_dir(&result).unwrap().map(|entry| entry.unwrap().file_name());
    let stumps: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with(".part")).collect();
    assert!(stumps.is_empty(), "{stumps:?}");
}

#[test]
fn a_lost_terminal_ends_in_order_and_nohup_goes_on() {
    let sandbox = Sandbox::new();
    // Whoever runs the tests may have had SIGHUP ignored.
    let heeding = |words: &str| {
        let program = env!("CARGO_BIN_EXE_polygraph");
        let script = words.split(' ').next().unwrap().to_owned() + ".sh";
        sandbox.write(&script, &format!("exec env --default-signal=HUP {program} {words}\n"));
        sandbox.start_program("/bin/sh", &script)
    };
    let (client, server) = measuring(heeding);
    client.signal(Signal::HUP);
    let done = client.finish();
    assert_eq!(done.code(), Some(130), "{done:?}");
    assert!(done.out.contains("shutdown reason: interrupted"), "{done:?}");
    server.signal(Signal::HUP);
    assert_eq!(server.finish().code(), Some(130));
    // With SIGHUP ignored from the start, as by nohup(1).
    let words = "client --preflight no --origin 127.0.0.1:1 --req_rate 1/sec --goal 2s --verb_lvl 2";
    sandbox.write("nohup.sh", &format!("trap '' HUP\nexec {} {words}\n", env!("CARGO_BIN_EXE_polygraph")));
    let mut client = sandbox.start_program("/bin/sh", "nohup.sh");
    client.wait_for("i-warm");
    client.signal(Signal::HUP);
    assert_eq!(client.finish().code(), Some(0));
}

#[test]
fn too_few_descriptors_are_an_error() {
    for descriptors in [8, 10, 16, 30] {
        for words in
            ["run --no_proxy --goal 1s", "client --goal 1s", "server --listen 127.0.0.1:0", "proxy --port 0"]
        {
            let sandbox = Sandbox::new();
            let done = after(&sandbox, &format!("ulimit -n {descriptors}"), words);
            assert_eq!(done.code(), Some(3), "{descriptors}, {words}: {done:?}");
            assert!(
                done.err.contains("raise the limit") && done.err.lines().count() == 1,
                "{words}: {}",
                done.err
            );
        }
    }
}

#[test]
fn nobody_has_to_read_what_is_printed() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let words = "run --no_proxy --req_rate 100/sec --xact_think none --goal 4s --verb_lvl 2 --predict no";
    // `head` reads a line and goes; standard error is closed from the beginning.
    let script = format!("{{ {program} {words} 2>&-; echo $? > code; }} | head -1\n");
    sandbox.write("pipe.sh", &script);
    sandbox.start_program("/bin/sh", "pipe.sh").finish();
    let code = sandbox.read("code");
    assert!(["0", "1"].contains(&code.trim()), "a panic is 101: {code}");
    assert!(sandbox.result().join("report.html").exists());
}

#[test]
fn a_test_without_robots_is_refused() {
    let sandbox = Sandbox::new();
    let text = "
        Content C = { size = const(4KB); };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:PORT']; };
        Robot R = { origins = S.addresses; req_rate = 20/sec; };
        Phase meas = { name = \"meas\"; goal.duration = 1sec; };
        schedule(meas);
        use(S, R);
    ";
    sandbox.write("half.pg", &text.replace("PORT", &free_port().to_string()));
    let done = sandbox.polygraph("run --config half.pg --no_proxy");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(done.err.contains("there are no robots"), "{}", done.err);
}
