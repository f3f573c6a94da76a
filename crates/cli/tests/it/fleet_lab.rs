//! Fleets in labs: each agent on its own host, with links that can be cut.

use std::process::Command;
use std::time::{Duration, Instant};

use polygraph_stats::{EndReason, ReadLog};
use serde_json::Value;

use crate::sandbox::{ATTEMPTS, PATIENCE, Running, Sandbox, quiet};

/// How long the short form of the example may take.
const EXAMPLE_PATIENCE: Duration = Duration::from_secs(900);
const MONITOR: &str = "10.57.0.100";
const AGENTS: [(&str, &str); 3] = [("clt1", "client"), ("clt2", "client"), ("srv1", "server")];

/// Two clients, a server and a monitor with NATS, on one switch.
const LAB: &str = "
    [networks.lan]
    subnet = \"10.57.0.0/24\"
    [clients]
    addresses = \"10.57.0.1-2\"
    [servers]
    addresses = \"10.57.0.11\"
    [monitor]
    address = \"10.57.0.100\"
";
const WORKLOAD: &str = "
    Content C = { size = const(2KB); cachable = 100%; };
    Server S = { contents = [ C ]; direct_access = contents; addresses = ['10.57.0.11:80']; };
    Robot R = { origins = S.addresses; recurrence = 50%; pop_model.pop_distr = popUnif(); req_rate = 20/sec;
        addresses = ['10.57.0.1-2']; };
    Phase P = { name = \"p\"; goal.duration = 40sec; };
    schedule(P);
    use(S, R);
";

/// A lab of a test with its agents. It is taken down when this is dropped, also on panic.
struct FleetLab {
    sandbox: Sandbox,
    name: String,
    running: Vec<Running>,
}

impl FleetLab {
    fn up() -> FleetLab {
        let (sandbox, name) = (Sandbox::new(), format!("pg{}fleet", std::process::id()));
        sandbox.write(&format!("{name}.toml"), LAB);
        sandbox.write("small.pg", WORKLOAD);
        let mut lab = FleetLab { sandbox, name, running: Vec::new() };
        let done = lab.sandbox.polygraph(&format!("lab up {}.toml", lab.name));
        assert_eq!(done.code(), Some(0), "labs need root and iproute2: {done:?}");
        lab.start(
            "monitor",
            &format!("nats-server -a {MONITOR} -js -sd nats --user u --pass p"),
            "Server is ready",
        );
        let program = env!("CARGO_BIN_EXE_polygraph");
        for (host, role) in AGENTS {
            let words = format!(
                "{program} agent --nats {} --name {host} --roles {role} --logs agent-{host}",
                FleetLab::url()
            );
            lab.start(host, &words, "ready for runs");
        }
        lab
    }

    fn url() -> String {
        format!("nats://u:p@{MONITOR}")
    }

    fn start(&mut self, host: &str, words: &str, expected: &str) {
        let mut running = self.on(host, words);
        running.wait_for(expected);
        self.running.push(running);
    }

    fn on(&self, host: &str, words: &str) -> Running {
        self.sandbox.start(&format!("lab exec {} {host} -- {words}", self.name))
    }

    /// Cuts or mends the link of a host.
    fn link(&self, host: &str, state: &str) {
        let namespace = format!("pglab-{}-{host}", self.name);
        let words = ["-n", &namespace, "link", "set", "eth0", state];
        assert!(Command::new("ip").args(words).status().unwrap().success());
    }

    fn log(&self, name: &str) -> ReadLog {
        let path = self.sandbox.path().join("result").join(name);
        ReadLog::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for FleetLab {
    fn drop(&mut self) {
        self.running.clear();
        self.sandbox.polygraph(&format!("lab down {}", self.name));
    }
}

#[test]
fn a_link_that_is_cut_for_ten_seconds_costs_no_log_record() {
    let lab = FleetLab::up();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let mut run = lab.on(
        "monitor",
        &format!(
            "{program} run small.pg --fleet {} --agents clt1,clt2,srv1 --no_proxy --start_in 15s --lost degrade --lost_after 4s --out result",
            FleetLab::url()
        ),
    );
    run.wait_for("p        ");
    lab.link("clt2", "down");
    let lost = run.wait_for("the agent has said nothing for 4 s");
    assert!(lost.contains("clt2") && lost.contains("the run goes on without it"), "{lost}");
    // Ten seconds in all; nothing is judged by them.
    std::thread::sleep(Duration::from_secs(6));
    lab.link("clt2", "up");
    run.wait_for("clt2 is back");
    let done = run.finish_within(2 * PATIENCE);
    assert!(matches!(done.code(), Some(0 | 1)), "{done:?}");
    for part in [
        "3 logs collected",
        "incidents during the run:",
        "clt2 is back",
        "LOST during the run:\n  clt2: the agent has said",
    ] {
        assert!(done.out.contains(part) || done.err.contains(part), "{part}: {done:?}");
    }
    let manifest: Value = serde_json::from_str(&lab.sandbox.read("result/manifest.json")).unwrap();
    assert_eq!(manifest["fleet"]["missing_logs"], serde_json::json!([]));
    let incidents = manifest["fleet"]["incidents"].as_array().unwrap();
    assert!(
        incidents.iter().any(|it| it["text"].as_str().unwrap().contains("clt2 is back")),
        "{incidents:?}"
    );
    let report = lab.sandbox.read("result/report.html");
    assert!(report.contains("What the fleet has lost") && report.contains("clt2 is back"));
    // The robots of clt2 went on in the dark: their log is whole, with the errors of that time in it.
    let logs = ["clt1-client.log", "clt2-client.log", "srv1-server.log"].map(|name| lab.log(name));
    for log in &logs {
        assert!(log.missing.is_empty(), "{:?}", log.missing);
        assert_eq!(*log.end().unwrap().0, EndReason::Finished);
    }
    let ended = |log: &ReadLog| log.intervals().map(|it| it.block.ok_count()).sum::<u64>();
    assert!(ended(&logs[1]) > 0 && ended(&logs[0]) > ended(&logs[1]), "the cut cost clt2 transactions");
}

#[test]
fn the_example_measures_with_a_fleet_what_a_single_host_measures() {
    let _quiet = quiet();
    let script = format!("{}/../../examples/fleet.sh", env!("CARGO_MANIFEST_DIR"));
    for attempt in 1..=ATTEMPTS {
        let (sandbox, name) = (Sandbox::new(), format!("pg{}example", std::process::id()));
        let program = env!("CARGO_BIN_EXE_polygraph");
        let words = format!(
            "POLYGRAPH={program} NAME={name} RUNS=runs RATE=320 SCALE=1/960 CACHE=32MB START_IN=25s sh {script}"
        );
        let begin = Instant::now();
        let done = sandbox.start_program("env", &words).finish_within(EXAMPLE_PATIENCE);
        let busy = ["started late", "was saturated"].iter().any(|why| done.out.contains(why));
        if busy && attempt < ATTEMPTS {
            continue;
        }
        assert_eq!(done.code(), Some(0), "{:?} {done:?}", begin.elapsed());
        let all = format!("{}{}", done.out, done.err);
        for part in ["clients of 4 agents started", "8 logs collected", "correctness    No correctness error"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let (fleet, single) = (format!("runs/{name}-fleet"), format!("runs/{name}-single"));
        let manifest: Value = serde_json::from_str(&sandbox.read(format!("{fleet}/manifest.json"))).unwrap();
        let agents = manifest["fleet"]["agents"].as_array().unwrap();
        assert_eq!((agents.len(), &manifest["fleet"]["lost"]), (8, &serde_json::json!([])));
        check_starts(&sandbox, &fleet, manifest["fleet"]["start_unix_ns"].as_u64().unwrap());
        // Requests of a Poisson process: four standard deviations of the difference of two counts.
        let count = |logs: &str| {
            let (figures, _) = sandbox.lx("--objects ok_xact.count --phases top1,top2", logs);
            figures["ok_xact.count"]
        };
        let clients: Vec<String> = (1..=4).map(|number| format!("{fleet}/clt{number}-client.log")).collect();
        let (of_fleet, of_single) = (count(&clients.join(" ")), count(&format!("{single}/client.log")));
        let tolerance = 4.0 * (of_fleet + of_single).sqrt() + 2.0 * f64::from(320);
        assert!((of_fleet - of_single).abs() < tolerance, "{of_fleet} {of_single} ± {tolerance}");
        return;
    }
}

/// All processes began within 5 ms of the time that was agreed on, by their clocks.
fn check_starts(sandbox: &Sandbox, directory: &str, start: u64) {
    let entries = std::fs::read_dir(sandbox.path().join(directory)).unwrap().flatten();
    let logs =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log"));
    let mut count = 0;
    for path in logs {
        let log = ReadLog::open(&path).unwrap();
        assert!(log.missing.is_empty(), "{}: {:?}", path.display(), log.missing);
        let begin = log.records.iter().find_map(|record| match record {
            polygraph_stats::Record::PhaseBegin { at_ns, .. } => Some(log.header.start_unix_ns + at_ns),
            _ => None,
        });
        assert!(begin.unwrap().abs_diff(start) < 5_000_000, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 8);
}
