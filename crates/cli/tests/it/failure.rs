//! When things go wrong: devices that cannot follow or are not there, processes that die, users who lose
//! patience, a machine that lacks something. Nothing crashes, no log is lost, and the exit code tells.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::sandbox::{Running, Sandbox, engines};

#[test]
fn overload_is_a_result() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --port 0 --loops 1 --service_rate 50/sec");
    let port = proxy.port("proxy at");
    let done = sandbox.polygraph(&format!(
        "run --proxy 127.0.0.1:{port} --req_rate 150/sec --open_conn_lmt 200 --xact_think norm:300ms,150ms --goal 20s"
    ));
    assert_eq!((done.verdict(), done.code()), ("FAILED", Some(1)), "{done:?}");
    let result = sandbox.result();
    check_report(&result.join("report.html"), "FAILED");
    let (all, remarks) = sandbox.lx("", result.join("client.log"));
    assert_eq!(remarks, "", "the log is complete");
    // The limit holds, and is what the device failed at: it got twice its capacity more than it can do.
    assert_eq!(all["conn.open.level.peak"], 200.0);
    assert!(all["errors.too_many_open.count"] > 0.0);
    let rate = all["ok_xact.rate"];
    assert!((35.0..=60.0).contains(&rate), "{rate}/s from a device that serves 50/s");
    proxy.stop();
}

#[test]
fn a_device_that_is_not_there_ends_the_run_by_its_error_goal() {
    let sandbox = Sandbox::new();
    let done = sandbox.polygraph("run --preflight no --proxy 127.0.0.1:1 --req_rate 1000/sec --goal 100s");
    assert_eq!((done.verdict(), done.code()), ("FAILED", Some(1)), "{done:?}");
    assert!(done.out.contains("too many transactions failed"), "{}", done.out);
    check_report(&sandbox.result().join("report.html"), "FAILED");
    let (all, _) = sandbox.lx("", sandbox.result().join("client.log"));
    assert!(all["errors.connect_failed.count"] >= 1000.0 && all["ok_xact.count"] == 0.0);
}

#[test]
fn origins_that_die_end_the_run_by_its_error_goal() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0");
    let origin = server.port("listening at");
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let port = proxy.port("proxy at");
    let mut client = sandbox.start(&format!(
        "client --proxy 127.0.0.1:{port} --origin 127.0.0.1:{origin} --req_rate 300/sec --goal -1:100sec:0.30 \
         --verb_lvl 2 --log c.log"
    ));
    client.wait_for("i-warm");
    server.signal(Signal::KILL);
    server.finish();
    let done = client.finish();
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("shutdown reason: "), "{done:?}");
    let (all, remarks) = sandbox.lx("", "c.log");
    assert_eq!(remarks, "");
    assert!(all["errors.bad_status.count"] > 100.0 && all["ok_xact.count"] > 100.0, "{all:?}");
}

/// A server and a client that have measured for a moment.
fn measuring(sandbox: &Sandbox, engine: &str) -> (Running, Running) {
    let server = "server --listen 127.0.0.1:0 --xact_think 100ms --log srv.log";
    let mut server = sandbox.start(&format!("{server} --engine {engine}"));
    let port = server.port("listening at");
    let mut client = sandbox.start(&format!(
        "client --origin 127.0.0.1:{port} --req_rate 200/sec --goal 30s --verb_lvl 2 --log clt.log --engine {engine}"
    ));
    client.wait_for("i-meas");
    (server, client)
}

#[test]
fn what_a_killed_client_has_measured_is_kept() {
    for engine in engines() {
        let sandbox = Sandbox::new();
        let (server, client) = measuring(&sandbox, engine);
        client.signal(Signal::KILL);
        assert_eq!(client.finish().killed_by(), Some(Signal::KILL));
        assert_eq!(server.stop().code(), Some(130));

        let (warm, remarks) = sandbox.lx("--phase warm", "clt.log");
        assert!(remarks.starts_with("warning: ") && remarks.contains("clt.log"), "{remarks}");
        // 3 s at 200/s: 600, sigma 24.
        assert!((warm["ok_xact.count"] - 600.0).abs() < 4.0 * 24.0 + 60.0, "{}", warm["ok_xact.count"]);
        let (meas, _) = sandbox.lx("--phase meas", "clt.log");
        assert!(meas["ok_xact.count"] > 0.0);
        let lr = sandbox.polygraph("lr clt.log");
        assert!(lr.code() == Some(0) && lr.out.contains("i-meas") && !lr.err.is_empty(), "{lr:?}");
        let report = sandbox.polygraph("report clt.log srv.log");
        assert_eq!(report.code(), Some(0), "{report:?}");
        check_report(&sandbox.path().join("report.html"), "the record is incomplete");
    }
}

#[test]
fn the_first_interrupt_ends_in_order() {
    let sandbox = Sandbox::new();
    let (server, client) = measuring(&sandbox, "auto");
    client.signal(Signal::INT);
    let done = client.finish();
    assert_eq!(done.code(), Some(130), "{done:?}");
    assert!(done.out.contains("shutdown reason: interrupted"), "{done:?}");
    server.signal(Signal::INT);
    assert_eq!(server.finish().code(), Some(130));
    for log in ["clt.log", "srv.log"] {
        let (_, remarks) = sandbox.lx("", log);
        assert_eq!(remarks, "", "{log} is complete");
        assert!(sandbox.polygraph(&format!("lr {log}")).out.contains("interrupted"), "{log}");
    }
}

#[test]
fn an_interrupted_run_has_its_report() {
    let sandbox = Sandbox::new();
    let mut run =
        sandbox.start("run --no-proxy --req_rate 200/sec --xact_think 50ms --goal 30s --verb_lvl 2");
    run.wait_for("i-meas");
    run.signal(Signal::INT);
    let done = run.finish();
    assert_eq!((done.verdict(), done.code()), ("INVALID", Some(130)), "{done:?}");
    check_report(&sandbox.result().join("report.html"), "INVALID");
}

#[test]
fn the_second_interrupt_kills() {
    let sandbox = Sandbox::new();
    let (_server, mut client) = measuring(&sandbox, "auto");
    // The orderly end takes a tenth of a second at least, so one of these comes second.
    while !client.has_ended() {
        client.signal(Signal::INT);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(client.finish().killed_by(), Some(Signal::INT));
    let (warm, remarks) = sandbox.lx("--phase warm", "clt.log");
    assert!(warm["ok_xact.count"] > 0.0 && !remarks.is_empty());
}

#[test]
fn what_the_machine_lacks_is_said_before_anything_starts() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // One of our own servers shares its port among its event loops, but with nobody else.
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --loops 2");
    let shared = server.port("listening at");
    let mut proxy = sandbox.start("proxy --port 0 --loops 2");
    let proxied = proxy.port("proxy at");
    sandbox.write("file", "");

    #[track_caller]
    fn check(sandbox: &Sandbox, words: &str, messages: &[&str]) {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(3), "{words}: {done:?}");
        assert_eq!(done.err.lines().count(), 1, "{words}: {}", done.err);
        for message in messages {
            assert!(done.err.contains(message), "{words}: {}", done.err);
        }
    }
    for port in [port, shared, proxied] {
        check(&sandbox, &format!("server --listen 127.0.0.1:{port} --loops 2"), &["cannot listen", "in use"]);
        check(&sandbox, &format!("proxy --listen 127.0.0.1:{port} --loops 2"), &["cannot start", "in use"]);
        check(&sandbox, &format!("run --no-proxy --origin_port {port}"), &["cannot listen", "in use"]);
    }
    check(&sandbox, "client --goal 1s --log no/such/place.log", &["cannot write the log no/such/place.log"]);
    check(&sandbox, "server --listen 127.0.0.1:0 --log file/x.log", &["cannot write the log file/x.log"]);
    check(&sandbox, "run --no-proxy --runs file", &["cannot make the directory file"]);
    check(&sandbox, "client --origin no-such-host.invalid:80 --goal 1s", &["no-such-host.invalid:80"]);
    check(&sandbox, "client --open_conn_lmt 4000000000 --goal 1s", &["--open_conn_lmt", "ulimit"]);
}

/// A whole report that says `text`.
#[track_caller]
fn check_report(path: &Path, text: &str) {
    let report = std::fs::read_to_string(path).unwrap();
    assert!(report.contains(text), "{text} is not in {}", path.display());
    assert!(report.trim_end().ends_with("</html>"), "{} is not whole", path.display());
}

/// Connections above the servers' share of descriptors are closed at once, and counted; those that came first stay.
#[test]
fn servers_refuse_what_they_have_no_descriptors_for() {
    for engine in engines() {
        let sandbox = Sandbox::new();
        let program = env!("CARGO_BIN_EXE_polygraph");
        let server =
            format!("server --listen 127.0.0.1:0 --loops 1 --goal 5min --log s.log --engine {engine}");
        sandbox.write("start.sh", &format!("ulimit -n 80\nexec {program} {server}\n"));
        let mut server = sandbox.start_program("/bin/sh", "start.sh");
        let port = server.port("listening at");
        let connect = || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            // Handed over with its first bytes.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\n");
            stream
        };
        let mut streams: Vec<TcpStream> = (0..80).map(|_| connect()).collect();
        let is_closed = |stream: &mut TcpStream| match stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        let mut refused = 0;
        for _ in 0..100 {
            refused = streams.iter_mut().map(is_closed).filter(|closed| *closed).count();
            if refused > 15 {
                break;
            }
        }
        assert!((16..=75).contains(&refused), "{refused} of 80");
        assert!(!is_closed(&mut streams[0]) && is_closed(&mut streams[79]), "first come, first served");
        drop(streams);
        let done = server.stop();
        assert_eq!(done.code(), Some(130), "{done:?}");
        let (all, _) = sandbox.lx("--side srv", "s.log");
        assert!(all["errors.no_descriptor.count"] >= refused as f64, "{refused} refused, {all:?}");
    }
}
