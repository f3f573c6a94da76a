//! Tests of processes that share one workload file on one host (--only_addrs), and of a common start (--start_at).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polygraph_stats::{EndReason, ReadLog, Record};

use crate::sandbox::{Sandbox, free_port};

/// Two servers and four robots, in one workload file.
fn bench() -> (Sandbox, [String; 2]) {
    let sandbox = Sandbox::new();
    let servers = [1, 2].map(|number| format!("127.103.0.{number}:{}", free_port()));
    let [first, second] = &servers;
    let text = format!(
        "Content C = {{ size = const(1KB); cachable = 100%; }};\n\
         Server S = {{ contents = [C]; direct_access = contents; addresses = ['{first}', '{second}']; }};\n\
         Robot R = {{ origins = S.addresses; recurrence = 50%; pop_model = {{ pop_distr = popUnif(); }};\n\
           req_rate = 20/sec; addresses = ['127.103.1.1-4']; }};\n\
         Phase P = {{ name = \"p\"; goal.duration = 2sec; }};\n\
         schedule(P); use(S, R);\n"
    );
    sandbox.write("shared.pg", &text);
    (sandbox, servers)
}

/// The time of day at which the phase of a log began, in nanoseconds.
fn begin(log: &ReadLog) -> u64 {
    let begin = |record: &Record| match record {
        Record::PhaseBegin { at_ns, .. } => Some(log.header.start_unix_ns + at_ns),
        _ => None,
    };
    log.records.iter().find_map(begin).unwrap()
}

#[test]
fn two_servers_and_two_clients_share_a_workload_file_and_start_together() {
    let (sandbox, servers) = bench();
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(12);
    let at = format!("--start_at @{}", start.as_secs());
    let mut running = Vec::new();
    for (number, address) in servers.iter().enumerate() {
        let words = format!("server --config shared.pg --only_addrs {address} --log s{number}.log {at}");
        let mut server = sandbox.start(&words);
        let said = server.wait_for("listening at");
        assert!(said.contains(address.as_str()), "{said}");
        running.push(server);
    }
    for (number, addresses) in ["127.103.1.1-3", "127.103.1.4"].iter().enumerate() {
        let words = format!(
            "client --config shared.pg --only_addrs {addresses} --log c{number}.log --local_rng_seed 1{number} {at}"
        );
        running.push(sandbox.start(&words));
    }
    for process in running {
        let done = process.finish();
        assert_eq!(done.code(), Some(0), "{done:?}");
    }
    let log = |name: &str| ReadLog::open(&sandbox.path().join(name)).unwrap();
    let [s0, s1, c0, c1] = ["s0.log", "s1.log", "c0.log", "c1.log"].map(log);
    // The start is computed from the clocks, not observed, so that it may differ by their corrections only.
    for log in [&s0, &s1, &c0, &c1] {
        assert!(begin(log).abs_diff(start.as_secs() * 1_000_000_000) < 5_000_000, "{}", begin(log));
        assert_eq!(*log.end().unwrap().0, EndReason::Finished);
    }
    let count = |log: &ReadLog| log.intervals().map(|interval| interval.block.ok_count()).sum::<u64>();
    let (requests, replies) = (count(&c0) + count(&c1), count(&s0) + count(&s1));
    assert!(count(&s0) > 0 && count(&s1) > 0);
    assert!(count(&c0) > count(&c1), "three robots make more requests than one");
    // Replies that robots did not wait for any longer are in the logs of the servers only.
    let unfinished = [&c0, &c1].map(|log| log.end().unwrap().1).iter().sum::<u64>();
    assert!((requests..=requests + unfinished).contains(&replies), "{requests} + {unfinished}, {replies}");
}

#[test]
fn a_share_that_does_not_exist_and_a_start_that_has_passed_are_refused() {
    let (sandbox, servers) = bench();
    let done = sandbox.polygraph("client --config shared.pg --only_addrs 127.103.1.4-5");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(
        done.err.contains("no agent of this side has the address 127.103.1.5 (1 unknown in all)"),
        "{done:?}"
    );
    let late =
        format!("server --config shared.pg --only_addrs {} --start_at 2001-01-01T00:00:00Z", servers[0]);
    let done = sandbox.polygraph(&late);
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("the common start was missed"), "{done:?}");
    // No process is to blame for a time that has passed.
    let late = "client --config shared.pg --only_addrs 127.103.1.4 --log late.log --preflight no --start_at @978307200";
    let done = sandbox.polygraph(late);
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("INVALID (test)"), "{done:?}");
    let done = sandbox.polygraph("server --config shared.pg --start_at noon");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(done.err.contains("`noon` is not a time of day"), "{done:?}");
}
