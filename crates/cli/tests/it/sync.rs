//! Tests of several processes, which agree about phases through the servers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polygraph_stats::{Class, EndReason, Interval, ReadLog, Record};
use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Done, Running, Sandbox, free_port};

/// Two servers and two clients behind a caching proxy.
struct Bench {
    sandbox: Sandbox,
    _proxy: Running,
    processes: HashMap<&'static str, Running>,
}

impl Bench {
    /// Starts all of them. The phases of one client are half as long again as those of the other.
    fn start(phases: usize, length: f64, options: &str) -> Bench {
        let sandbox = Sandbox::new();
        let mut proxy = sandbox.start("proxy --listen 127.102.0.9:0");
        let proxy_port = proxy.port("proxy at");
        let servers = [1, 2].map(|number| format!("'127.102.0.{number}:{}'", free_port()));
        let schedule: Vec<String> = (0..phases).map(|number| format!("P{number}")).collect();
        let workload = |length: f64, used: &str| {
            let phase = |name: &String| {
                format!("Phase {name} = {{ name = \"{name}\"; goal.duration = {length}sec; }};\n")
            };
            format!(
                "ObjLifeCycle L = {{ length = const(2year); variance = 0%; with_lmt = 100%; expires = [nmt + const(0sec)]; }};\n\
                 Content C = {{ size = exp(1KB); cachable = 80%; obj_life_cycle = L; }};\n\
                 Server A = {{ kind = \"A\"; contents = [C]; direct_access = contents; addresses = [{}];\n\
                   pconn_use_lmt = const(50); }};\n\
                 Server B = A;\n\
                 B.addresses = [{}];\n\
                 Robot R = {{ kind = \"R\"; origins = A.addresses + B.addresses; recurrence = 60%;\n\
                   pop_model = {{ pop_distr = popUnif(); }}; req_rate = 10/sec; pconn_use_lmt = const(50);\n\
                   addresses = ['127.102.1.1-4']; }};\n\
                 {} schedule({}); use({used});\n",
                servers[0],
                servers[1],
                schedule.iter().map(phase).collect::<String>(),
                schedule.join(", "),
            )
        };
        let mut processes = HashMap::new();
        for (name, used, number) in [("server1", "A", 11), ("server2", "B", 12)] {
            sandbox.write(&format!("{name}.pg"), &workload(length, used));
            let words = format!(
                "server --config {name}.pg --log {name}.log --verb_lvl 10 --local_rng_seed {number} {options}"
            );
            let mut server = sandbox.start(&words);
            server.wait_for("listening at");
            processes.insert(name, server);
        }
        for (name, length, number) in [("client1", length, 1), ("client2", length * 1.5, 2)] {
            sandbox.write(&format!("{name}.pg"), &workload(length, "A, B, R"));
            let words = format!(
                "client --config {name}.pg --log {name}.log --verb_lvl 10 --proxy 127.102.0.9:{proxy_port} \
                 --loops 2 --local_rng_seed {number} {options}"
            );
            processes.insert(name, sandbox.start(&words));
        }
        Bench { sandbox, _proxy: proxy, processes }
    }

    fn process(&mut self, name: &str) -> &mut Running {
        self.processes.get_mut(name).unwrap()
    }

    /// Waits for the end of all that are not `gone`.
    fn finish(&mut self, gone: &str) -> HashMap<&'static str, Done> {
        let all = std::mem::take(&mut self.processes);
        all.into_iter()
            .filter(|(name, _)| *name != gone)
            .map(|(name, process)| (name, process.finish()))
            .collect()
    }

    fn log(&self, name: &str) -> ReadLog {
        let path: PathBuf = self.sandbox.path().join(format!("{name}.log"));
        ReadLog::open(&path).unwrap()
    }

    /// The times of day in seconds at which a process began its phases.
    fn begins(&self, name: &str) -> Vec<f64> {
        let log = self.log(name);
        let begin = |record: &Record| match record {
            Record::PhaseBegin { at_ns, .. } => Some((log.header.start_unix_ns + at_ns) as f64 * 1e-9),
            _ => None,
        };
        log.records.iter().filter_map(begin).collect()
    }

    /// The verdict on all logs: the outcome, and who was the limit.
    fn verdict(&self) -> [String; 2] {
        let logs = "client1.log client2.log server1.log server2.log";
        let report = self.sandbox.polygraph(&format!("report --json {logs}"));
        let verdict: Value = serde_json::from_str(&report.out).unwrap_or_else(|e| panic!("{e}: {report:?}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&verdict["outcome"]), text(&verdict["findings"][0]["limit"])]
    }

    /// How the log of a process ends.
    fn end(&self, name: &str) -> EndReason {
        self.log(name).end().unwrap().0.clone()
    }

    /// The id by which others know a process.
    fn group(&self, name: &str) -> String {
        let settings = self.log(name).header.settings;
        settings.into_iter().find(|(name, _)| name == "process group").unwrap().1
    }
}

const ALL: [&str; 4] = ["server1", "server2", "client1", "client2"];

#[test]
fn all_processes_are_in_the_same_phase_also_when_one_is_stopped_for_five_seconds() {
    let mut bench = Bench::start(10, 1.2, "");
    bench.process("client1").wait_for("p-P2");
    bench.process("client1").signal(Signal::STOP);
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(5));
    let nap = stopped.elapsed().as_secs_f64();
    bench.process("client1").signal(Signal::CONT);
    bench.process("server1").wait_for("p-P5");
    bench.process("server1").signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(5));
    bench.process("server1").signal(Signal::CONT);
    for (name, done) in bench.finish("") {
        assert_eq!(done.code(), Some(0), "{name}: {done:?}");
        assert_eq!(bench.end(name), EndReason::Finished);
    }
    let begins = ALL.map(|name| bench.begins(name));
    assert!(begins.iter().all(|begins| begins.len() == 10), "{begins:?}");
    let least = |phase: usize| begins.iter().map(|begins| begins[phase]).fold(f64::INFINITY, f64::min);
    let most = |phase: usize| begins.iter().map(|begins| begins[phase]).fold(0.0, f64::max);
    // Nobody starts a phase before everybody has started the one before: whoever did not wait for a process that is
    // stopped would be several phases ahead of it.
    let lengths: Vec<f64> = (1..9).map(|phase| least(phase + 1) - most(phase)).collect();
    assert!(lengths.iter().all(|length| *length > 0.0), "{lengths:?}");
    // Each of the two stops is seen. It makes a phase long, or, if it came after the process agreed to the next
    // phase and before it started that phase, it makes the process start late.
    let late: Vec<f64> = (1..10).map(|phase| most(phase) - least(phase)).collect();
    let stops = lengths.iter().chain(&late).filter(|time| **time > nap - 2.0).count();
    assert!(stops >= 2, "lengths {lengths:?}, late by {late:?}");
    // The clients went on asking while they waited.
    let log = bench.log("client1");
    let intervals: Vec<&Interval> = log.intervals().collect();
    let replies: u64 = intervals.iter().map(|interval| interval.block.ok_count()).sum();
    assert!(replies > 40 * 10, "{replies}");
    // What comes out of the cache tells nothing of phases.
    let hits: u64 = intervals.iter().map(|interval| interval.block.class(Class::Hit).rptm_us.count()).sum();
    assert!(hits > replies / 10, "{hits} of {replies}");
    assert_eq!(intervals.iter().map(|interval| interval.block.failed_count()).sum::<u64>(), 0);
}

#[test]
fn a_killed_client_ends_the_test_and_is_named() {
    let mut bench = Bench::start(10, 1.2, "--sync_tout 8sec");
    bench.process("client2").wait_for("p-P1");
    bench.process("client2").signal(Signal::KILL);
    let done = bench.finish("client2");
    let missing = format!("the client process {} has sent no status for 8 s", bench.group("client2"));
    for name in ["server1", "server2"] {
        assert!(done[name].out.contains(&missing), "{name}: {:?}", done[name]);
        assert_eq!(done[name].code(), Some(1));
    }
    let EndReason::Fatal { why, .. } = bench.end("client1") else { panic!("{:?}", bench.end("client1")) };
    assert!(why.starts_with(&missing), "{why}");
    assert_eq!(done["client1"].code(), Some(1));
    assert!(bench.begins("client1").len() < 10);
    assert_eq!(bench.verdict(), ["INVALID", "client"]);
}

#[test]
fn a_killed_server_ends_the_test_and_is_named() {
    let mut bench = Bench::start(10, 1.2, "--sync_tout 8sec --idle_tout 5sec");
    bench.process("server2").wait_for("p-P1");
    bench.process("server2").signal(Signal::KILL);
    let done = bench.finish("server2");
    let missing = format!("the server process {} has sent no status for 8 s", bench.group("server2"));
    for name in ["client1", "client2"] {
        assert!(done[name].out.contains(&missing), "{name}: {:?}", done[name]);
        assert_eq!(done[name].code(), Some(1));
    }
    // The other one has nobody left to serve.
    assert_eq!((bench.end("server1"), done["server1"].code()), (EndReason::Idle, Some(0)));
    assert_eq!(bench.verdict(), ["INVALID", "server"]);
}
