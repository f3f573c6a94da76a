//! Runs whose sides are spread over worker processes: the same result, and an orderly end whatever dies.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Done, PATIENCE, Running, Sandbox, free_port, quiet, valid};

/// Five servers and ten robots; 200 requests a second. The load falls to nothing at the end, so that a request that is
/// late on a busy machine still comes to its end within the test.
fn workload(sandbox: &Sandbox) -> String {
    let text = "
        Content C = { size = exp(4KB); cachable = 80%; };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['127.20.0.1-5:PORT'];
            xact_think = const(20msec); };
        Robot R = { origins = S.addresses; recurrence = 50%; pop_model.pop_distr = popUnif();
            req_rate = 20/sec; addresses = ['127.21.0.1-10']; pconn_use_lmt = const(50); };
        Phase rise = { name = \"rise\"; goal.duration = 2sec; load_factor_beg = 10%; load_factor_end = 100%; };
        Phase top = { name = \"top\"; goal.duration = 4sec; };
        Phase fall = { name = \"fall\"; goal.duration = 2sec; load_factor_beg = 100%; load_factor_end = 0%; };
        schedule(rise, top, fall);
        working_set_cap(300);
        use(S, R);
    ";
    sandbox.write("w.pg", &text.replace("PORT", &free_port().to_string()));
    "run --no-proxy --config w.pg --loops 2".to_owned()
}

/// What both logs of a valid run in `workers` processes for each side say, and the client's log as text.
fn measured(workers: u32) -> (HashMap<String, f64>, HashMap<String, f64>, String) {
    let _quiet = quiet();
    let (sandbox, _) = valid(|| {
        let sandbox = Sandbox::new();
        let words = workload(&sandbox);
        let done = sandbox.polygraph(&format!("{words} --workers {workers}"));
        (sandbox, done)
    });
    let sides = ["client.log", "server.log"].map(|log| {
        let (figures, remarks) = sandbox.lx("", sandbox.result().join(log));
        assert_eq!(remarks, "", "{log} is complete");
        figures
    });
    let text = sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out;
    let [client, server] = sides;
    (client, server, text)
}

#[test]
fn worker_processes_measure_what_threads_measure() {
    let (threads, _, text) = measured(0);
    assert!(!text.contains("worker processes"), "{text}");
    // 200/s for 4 s, and 55 % and 50 % of that for 2 s each on the way up and down.
    let expected = 1_220.0;
    let started = threads["ok_xact.count"];
    assert!((started - expected).abs() < 5.0 * f64::sqrt(expected), "{started}");
    // As many processes as loops, and more.
    for workers in [2, 3] {
        let (client, server, text) = measured(workers);
        assert!(text.contains(&format!("worker processes: {workers}")), "{text}");
        assert!(
            text.contains("working set: fill started") && text.contains("working set frozen: "),
            "{text}"
        );
        let ok = client["ok_xact.count"];
        assert_eq!(client["errors.count"], 0.0);
        let apart = (ok - server["ok_xact.count"]).abs();
        assert!(apart <= 10.0, "client {ok}, server {}", server["ok_xact.count"]);
        if workers == 2 {
            // The same loops with the same seeds: only the 12 requests that are due in the last half second may be
            // too late.
            assert!((ok - started).abs() <= 12.0, "{ok} and {started}");
            // The working set freezes when 300 objects have been seen, and requests that are late then choose among
            // others. If a tenth of the 1,220 sizes, whose deviation is their mean, are drawn anew, the means differ by
            // sqrt(2 * 122) / 1,220, or 1.3 %: five times that.
            let (mean, of_threads) = (client["rep.size.mean"], threads["rep.size.mean"]);
            assert!((mean / of_threads - 1.0).abs() < 0.065, "{mean} and {of_threads}");
        } else {
            assert!((ok - expected).abs() < 5.0 * f64::sqrt(expected), "{ok}");
        }
        let (memory, of_threads) = (client["rss.size"], threads["rss.size"]);
        assert!(memory > 1.5 * of_threads, "memory of all processes is counted: {memory}, {of_threads}");
    }
}

/// The worker processes of a program.
fn workers_of(running: &Running) -> Vec<Pid> {
    let pid = running.pid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

/// A run in two processes for each side that has measured for a moment, and its workers, those of the servers first.
fn measuring(sandbox: &Sandbox) -> (Running, Vec<Pid>) {
    let words = workload(sandbox);
    let mut run = sandbox.start(&format!("{words} --workers 2 --verb_lvl 2"));
    run.wait_for("i-rise");
    let workers = workers_of(&run);
    assert_eq!(workers.len(), 4);
    (run, workers)
}

#[track_caller]
fn all_gone(workers: &[Pid]) {
    let deadline = Instant::now() + PATIENCE;
    let alive = |pid: &&Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        // A process that nobody waits for leaves its entry.
        stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
    };
    while workers.iter().any(|pid| alive(&pid)) {
        assert!(Instant::now() < deadline, "{:?} live on", workers.iter().find(alive));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Both logs were closed in order, with the same last words.
#[track_caller]
fn logs_end_with(sandbox: &Sandbox, words: &str) {
    for log in ["client.log", "server.log"] {
        let path = sandbox.result().join(log);
        let (_, remarks) = sandbox.lx("", &path);
        assert_eq!(remarks, "", "{log} is complete");
        let text = sandbox.polygraph(&format!("lr {}", path.display())).out;
        assert!(text.contains(words), "{log}: {text}");
    }
}

#[test]
fn a_worker_that_is_killed_ends_the_run_with_the_reason() {
    // The first is a server's, the last a client's.
    for (which, side) in [(0, "server"), (3, "client")] {
        let sandbox = Sandbox::new();
        let (run, workers) = measuring(&sandbox);
        let begin = Instant::now();
        kill_process(workers[which], Signal::KILL).unwrap();
        let done: Done = run.finish();
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        // Robots whose servers are gone fail, which may weigh more than that the bench broke.
        assert!(done.verdict() != "VALID" && done.code() == Some(1), "{done:?}");
        let why = format!(
            "worker process {} of the {side} was killed by signal 9",
            workers[which].as_raw_nonzero()
        );
        assert!(done.out.contains(&why), "{why}: {}", done.out);
        logs_end_with(&sandbox, &why);
        all_gone(&workers);
    }
}

#[test]
fn workers_die_with_their_coordinator() {
    let sandbox = Sandbox::new();
    let (run, workers) = measuring(&sandbox);
    run.signal(Signal::KILL);
    assert_eq!(run.finish().killed_by(), Some(Signal::KILL));
    all_gone(&workers);
    let (all, remarks) = sandbox.lx("", sandbox.result().join("client.log"));
    assert!(all["ok_xact.count"] > 0.0 && !remarks.is_empty(), "what was measured is kept");
}

#[test]
fn an_interrupt_from_the_terminal_is_the_coordinators_business() {
    let sandbox = Sandbox::new();
    let (run, workers) = measuring(&sandbox);
    // The terminal sends it to all of them.
    workers.iter().for_each(|&pid| kill_process(pid, Signal::INT).unwrap());
    run.signal(Signal::INT);
    let done = run.finish();
    assert_eq!((done.verdict(), done.code()), ("INVALID", Some(130)), "{done:?}");
    logs_end_with(&sandbox, "interrupted");
    all_gone(&workers);
}

#[test]
fn each_side_alone_can_have_workers() {
    let sandbox = Sandbox::new();
    // One address, so that the workers share it.
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --loops 2 --workers 2 --log srv.log");
    let port = server.port("listening at");
    let done = sandbox.polygraph(&format!(
        "client --origin 127.0.0.1:{port} --robots 8 --req_rate 200/sec --goal 4s --workers 2 --log clt.log"
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_eq!(server.stop().code(), Some(130));
    let [client, server] = ["clt.log", "srv.log"].map(|log| sandbox.lx("", log).0["ok_xact.count"]);
    assert!((client - server).abs() <= 10.0 && client > 500.0, "client {client}, server {server}");
}

/// Runs `polygraph` where a process may have no more than `descriptors` file descriptors.
fn limited(sandbox: &Sandbox, descriptors: u32, words: &str) -> Done {
    let program = env!("CARGO_BIN_EXE_polygraph");
    sandbox.write("limited.sh", &format!("ulimit -n {descriptors}\nexec {program} {words}\n"));
    sandbox.start_program("/bin/sh", "limited.sh").finish()
}

/// 200 servers and 100 robots.
fn write_many(sandbox: &Sandbox) {
    let text = "
        Content C = { size = const(1KB); cachable = 80%; };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['127.22.0.1-200:PORT']; };
        Robot R = { origins = S.addresses; req_rate = 3/sec; addresses = ['127.23.0.1-100'];
            pconn_use_lmt = const(4); };
        Phase top = { name = \"top\"; goal.duration = 3sec; };
        schedule(top);
        use(S, R);
    ";
    sandbox.write("many.pg", &text.replace("PORT", &free_port().to_string()));
}

#[test]
fn there_are_as_many_workers_as_the_descriptors_of_one_process_ask_for() {
    let sandbox = Sandbox::new();
    write_many(&sandbox);
    // 256 descriptors are good for 219 connections, of which 175 are planned with: 200 connections of robots
    // need two processes; the same and 200 addresses need three for the servers.
    let done = limited(&sandbox, 256, "run --no-proxy --config many.pg --loops 2");
    let result = sandbox.result();
    for (log, workers) in [("client.log", 2), ("server.log", 3)] {
        let text = sandbox.polygraph(&format!("lr {}", result.join(log).display())).out;
        assert!(text.contains(&format!("worker processes: {workers}\n")), "{log}: {text}");
    }
    let (all, _) = sandbox.lx("", result.join("client.log"));
    let expected = 900.0;
    assert!((all["ok_xact.count"] - expected).abs() < 5.0 * f64::sqrt(expected), "{done:?}");
}

#[test]
fn a_worker_that_cannot_start_says_why() {
    let sandbox = Sandbox::new();
    write_many(&sandbox);
    let done = limited(&sandbox, 100, "server --config many.pg --workers 1");
    assert_eq!(done.code(), Some(3), "{done:?}");
    for part in ["worker process ", "of the server: ", "Too many open files"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    // The last descriptor goes to an address or to an event loop.
    let what = ["cannot listen at 127.22.0.", "an event loop cannot be started"];
    assert!(what.iter().any(|what| done.err.contains(what)), "{}", done.err);
}
