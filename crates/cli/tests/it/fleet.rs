//! Tests of runs with a fleet: agents on loopback addresses, and real servers of NATS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polygraph_stats::{ReadLog, Record};
use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Done, Running, Sandbox, free_port, valid};

/// The program of Debian's package `nats-server`, which `devices/install.sh` installs.
const NATS: &str = "nats-server";
const AGENTS: [&str; 4] = ["clt1", "clt2", "srv1", "srv2"];

/// A server of NATS, which can be killed and started again.
struct Nats {
    port: u16,
    words: String,
    server: Option<Running>,
}

impl Nats {
    fn start(sandbox: &Sandbox, name: &str, more: &str) -> Nats {
        let port = free_port();
        let words = format!("-a 127.0.0.1 -p {port} -js -sd nats-{name} -n {name} {more}");
        let mut nats = Nats { port, words, server: None };
        nats.restart(sandbox);
        nats
    }

    fn restart(&mut self, sandbox: &Sandbox) {
        let mut server = sandbox.start_program(NATS, &self.words);
        server.wait_for("Server is ready");
        self.server = Some(server);
    }

    fn kill(&mut self) {
        let server = self.server.take().unwrap();
        server.signal(Signal::KILL);
        server.finish();
    }
}

/// Four agents and a workload with a phase of some seconds.
struct Bench {
    sandbox: Sandbox,
    agents: Vec<Running>,
    url: String,
}

impl Bench {
    fn start(sandbox: Sandbox, url: String, seconds: u32) -> Bench {
        let ports = [1, 2].map(|_| free_port());
        // Tests share the loopback network, so the addresses are theirs alone by their ports.
        let text = format!(
            "#include \"content.pg\"\n\
             Server S = {{ contents = [C]; direct_access = contents;\n\
               addresses = ['127.104.0.1:{}', '127.104.0.2:{}']; }};\n\
             Robot R = {{ origins = S.addresses; recurrence = 50%; pop_model = {{ pop_distr = popUnif(); }};\n\
               req_rate = 10/sec; addresses = ['127.104.1.1-4']; }};\n\
             Phase P = {{ name = \"p\"; goal.duration = {seconds}sec; }};\n\
             schedule(P); use(S, R);\n",
            ports[0], ports[1]
        );
        sandbox.write("shared.pg", &text);
        std::fs::create_dir(sandbox.path().join("include")).unwrap();
        sandbox.write("include/content.pg", "Content C = { size = const(1KB); cachable = 100%; };\n");
        let mut bench = Bench { sandbox, agents: Vec::new(), url };
        for name in AGENTS {
            let agent = bench.agent(name);
            bench.agents.push(agent);
        }
        bench
    }

    fn agent(&self, name: &str) -> Running {
        let role = if name.starts_with("clt") { "client" } else { "server" };
        let words = format!("agent --nats {} --name {name} --roles {role} --logs agent-{name}", self.url);
        let mut agent = self.sandbox.start(&words);
        agent.wait_for("ready for runs");
        agent
    }

    fn run(&self, options: &str) -> Running {
        self.sandbox.start(&format!(
            "run shared.pg --fleet {} --agents {} --no_proxy {} --out result {options}",
            self.url,
            AGENTS.join(","),
            if options.contains("--start_in") { "" } else { "--start_in 12s" }
        ))
    }

    fn result(&self) -> PathBuf {
        self.sandbox.path().join("result")
    }

    fn log(&self, name: &str) -> ReadLog {
        ReadLog::open(&self.result().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn description(&self) -> Value {
        let text = std::fs::read(self.result().join("manifest.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["fleet"].clone()
    }

    /// Waits until robots have made requests: the size of a log grows.
    fn wait_for_load(&self) {
        let is_log = |path: &Path| path.extension().is_some_and(|end| end == "log");
        let begin = std::time::Instant::now();
        let directory = self.sandbox.path().join("agent-clt2");
        loop {
            let runs = std::fs::read_dir(&directory).unwrap().flatten();
            let mut files =
                runs.flat_map(|run| std::fs::read_dir(run.path()).into_iter().flatten().flatten());
            let grows =
                files.any(|file| is_log(&file.path()) && file.metadata().is_ok_and(|it| it.len() > 3000));
            if grows {
                return;
            }
            assert!(begin.elapsed() < crate::sandbox::PATIENCE, "no load");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a monitor of the fleet shows, as soon as all four processes are there.
    fn wait_for_monitor(&self) -> Vec<Value> {
        let begin = std::time::Instant::now();
        loop {
            let done = self.sandbox.polygraph(&format!("mon --once --json --fleet {}", self.url));
            let mut found: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
            let rows: Vec<Value> = serde_json::from_value(found["processes"].take()).unwrap();
            if rows.len() == AGENTS.len() {
                return rows;
            }
            assert!(begin.elapsed() < crate::sandbox::PATIENCE, "{rows:?}");
        }
    }

    /// The logs of all agents agree about the load, and it began at the same time everywhere.
    fn check_logs(&self) {
        let logs: Vec<ReadLog> = ["clt1-client.log", "clt2-client.log", "srv1-server.log", "srv2-server.log"]
            .map(|name| self.log(name))
            .into();
        let begin = |log: &ReadLog| {
            let begin = |record: &Record| match record {
                Record::PhaseBegin { at_ns, .. } => Some(log.header.start_unix_ns + at_ns),
                _ => None,
            };
            log.records.iter().find_map(begin).unwrap()
        };
        let start = self.description()["start_unix_ns"].as_u64().unwrap();
        for log in &logs {
            assert!(begin(log).abs_diff(start) < 5_000_000, "{} {start}", begin(log));
        }
        let count = |log: &ReadLog| log.intervals().map(|interval| interval.block.ok_count()).sum::<u64>();
        let counts: Vec<u64> = logs.iter().map(count).collect();
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        // Replies that robots did not wait for any longer are in the logs of the servers only. Servers leave the last phase by their
        // own clocks, so a few of the last replies may be in the logs of the clients only.
        let unfinished: u64 = logs[..2].iter().map(|log| log.end().unwrap().1).sum();
        let (requests, replies) = (counts[0] + counts[1], counts[2] + counts[3]);
        assert!(
            (requests - requests / 50..=requests + unfinished).contains(&replies),
            "{counts:?} {unfinished}"
        );
    }
}

fn one_server() -> (Sandbox, Nats) {
    let sandbox = Sandbox::new();
    let nats = Nats::start(&sandbox, "one", "");
    (sandbox, nats)
}

fn url(nats: &Nats) -> String {
    format!("nats://127.0.0.1:{}", nats.port)
}

/// A run is over, and either VALID or INVALID because this machine is busy with other tests.
fn is_over(done: &Done) {
    assert!(matches!(done.code(), Some(0 | 1)), "{done:?}");
    assert!(["VALID", "INVALID"].contains(&done.verdict()), "{done:?}");
}

#[test]
fn a_run_with_four_agents_is_one_result() {
    let (sandbox, done) = valid(|| {
        let (sandbox, nats) = one_server();
        let bench = Bench::start(sandbox, url(&nats), 10);
        let mut run = bench.run("");
        run.wait_for("all begin in");
        bench.wait_for_monitor();
        let done = run.finish();
        bench.check_logs();
        let description = bench.description();
        assert_eq!(description["agents"].as_array().unwrap().len(), 4);
        assert_eq!(
            (description["lost"].as_array(), description["missing_logs"].as_array()),
            (Some(&vec![]), Some(&vec![]))
        );
        // The robots of each agent are those that were announced.
        for (name, addresses) in [("clt1", "127.104.1.1-2"), ("clt2", "127.104.1.3-4")] {
            let row = done.err.lines().find(|line| line.trim_start().starts_with(&format!("{name}  client")));
            assert!(row.is_some_and(|row| row.ends_with(addresses)), "{done:?}");
        }
        let Bench { sandbox, agents, .. } = bench;
        for agent in agents {
            let done = agent.stop();
            assert_eq!(done.code(), Some(0), "{done:?}");
        }
        (sandbox, done)
    });
    assert!(done.err.contains("4 logs collected"), "{done:?}");
    assert!(sandbox.path().join("result/report.html").exists());
}

#[test]
fn a_killed_agent_fails_the_run_and_its_log_is_fetched_when_it_is_back() {
    kill_an_agent("fail");
}

#[test]
fn a_run_goes_on_without_a_killed_agent_and_its_log_is_fetched_when_it_is_back() {
    kill_an_agent("degrade");
}

fn kill_an_agent(policy: &str) {
    let (sandbox, nats) = one_server();
    let mut bench = Bench::start(sandbox, url(&nats), 20);
    let mut run = bench.run(&format!("--lost {policy} --lost_after 8s"));
    run.wait_for("all begin in");
    bench.wait_for_load();
    // Its process goes on without it.
    bench.agents[1].signal(Signal::KILL);
    let warning = run.wait_for("the agent has said nothing for 8 s");
    assert!(warning.contains("clt2") && warning.contains(&format!("--lost {policy}")), "{warning}");
    let done = run.finish();
    if policy == "fail" {
        assert_eq!(done.code(), Some(1), "{done:?}");
    } else {
        is_over(&done);
    }
    assert!(done.out.contains("LOST during the run:\n  clt2: the agent has said nothing"), "{done:?}");
    assert!(done.out.contains("the logs of clt2 are missing here"), "{done:?}");
    let description = bench.description();
    assert_eq!(description["missing_logs"], serde_json::json!(["clt2"]));
    assert!(!bench.result().join("clt2-client.log").exists());
    // It comes back, looks after the process that it left, and has its log.
    bench.agents[1] = bench.agent("clt2");
    let running = format!("fleet logs --fleet {}", bench.url);
    let begin = std::time::Instant::now();
    while !bench
        .sandbox
        .polygraph(&running)
        .out
        .lines()
        .any(|line| line.starts_with("clt2") && line.contains("client ended"))
    {
        assert!(begin.elapsed() < crate::sandbox::PATIENCE, "the client of clt2 does not end");
    }
    let fetched = bench.sandbox.polygraph(&format!("fleet logs result --fleet {}", bench.url));
    assert!(fetched.err.contains("1 log collected"), "{fetched:?}");
    assert_eq!(bench.description()["missing_logs"], serde_json::json!([]));
    if policy == "degrade" {
        bench.check_logs();
    } else {
        assert!(bench.log("clt2-client.log").intervals().count() > 0);
    }
}

#[test]
fn nats_may_be_restarted_during_the_load() {
    let (sandbox, mut nats) = one_server();
    let bench = Bench::start(sandbox, url(&nats), 12);
    let mut run = bench.run("");
    run.wait_for("all begin in");
    bench.wait_for_load();
    nats.kill();
    run.wait_for("the connection to NATS is lost; the load goes on");
    nats.restart(&bench.sandbox);
    run.wait_for("the connection to NATS is back");
    let done = run.finish();
    is_over(&done);
    assert!(!done.out.contains("LOST"), "{done:?}");
    bench.check_logs();
}

/// A cluster of three servers.
fn three_servers() -> (Sandbox, Vec<Nats>) {
    let sandbox = Sandbox::new();
    let routes = [1, 2, 3].map(|_| free_port());
    let list: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let mut servers: Vec<Nats> = Vec::new();
    for (number, route) in routes.iter().enumerate() {
        let port = free_port();
        let words = format!(
            "-a 127.0.0.1 -p {port} -js -sd nats-{number} -n n{number} --cluster_name c --cluster nats://127.0.0.1:{route} --routes {}",
            list.join(",")
        );
        let server = sandbox.start_program(NATS, &words);
        servers.push(Nats { port, words, server: Some(server) });
    }
    for nats in &mut servers {
        nats.server.as_mut().unwrap().wait_for("Server is ready");
    }
    // Files can be stored when the cluster has a leader, which each server reports or is.
    for nats in &mut servers {
        nats.server.as_mut().unwrap().wait_for("metadata leader");
    }
    (sandbox, servers)
}

fn urls(servers: &[Nats]) -> String {
    servers.iter().map(url).collect::<Vec<_>>().join(",")
}

/// A server is lost while files are shipped, or between two steps of the start: the run begins at its time all the same.
#[test]
fn one_of_three_servers_may_be_killed_during_the_start() {
    for (step, killed) in [("what each agent does", 0), ("shipped to 4 agents", 1), ("listen after", 2)] {
        let (sandbox, mut servers) = three_servers();
        let bench = Bench::start(sandbox, urls(&servers), 5);
        let mut run = bench.run("--start_in 20s");
        run.wait_for(step);
        servers[killed].kill();
        let done = run.finish();
        is_over(&done);
        assert!(!done.out.contains("LOST"), "{step}: {done:?}");
        bench.check_logs();
    }
}

/// Without more than half of the servers, nobody stores files.
#[test]
fn a_start_without_most_servers_names_those_that_are_lost() {
    let (sandbox, mut servers) = three_servers();
    let bench = Bench::start(sandbox, urls(&servers), 5);
    let mut run = bench.run("");
    run.wait_for("what each agent does");
    servers[1].kill();
    servers[2].kill();
    let done = run.finish();
    assert_eq!(done.code(), Some(3), "{done:?}");
    let [second, third] = [&servers[1], &servers[2]].map(|nats| nats.port);
    let lost = format!("2 of 3 servers of NATS cannot be reached (127.0.0.1:{second}, 127.0.0.1:{third})");
    assert!(done.err.contains(&format!("{lost}, and a cluster stores files only")), "{done:?}");
    assert!(done.err.contains("is shipped again, because of NATS"), "{done:?}");
}

#[test]
fn one_of_three_servers_may_be_killed() {
    let (sandbox, mut servers) = three_servers();
    let bench = Bench::start(sandbox, urls(&servers), 12);
    let mut run = bench.run("");
    run.wait_for("all begin in");
    bench.wait_for_load();
    servers[0].kill();
    let done = run.finish();
    is_over(&done);
    assert!(!done.out.contains("LOST"), "{done:?}");
    // The logs come at once, from the servers that are left.
    assert!(!format!("{done:?}").contains("is asked for again"), "{done:?}");
    bench.check_logs();
}

/// An agent of another version, as far as its inventory goes.
fn foreign_agent(port: u16) {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    socket.write_all(b"CONNECT {\"verbose\":false}\r\nSUB polygraph.agents 1\r\nPING\r\n").unwrap();
    while !line.starts_with("PONG") {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    std::thread::spawn(move || {
        let inventory = r#"{"protocol":1,"body":{"inventory":{"name":"old","instance":7,"host":"h","version":"0.0.1","client":true,
            "server":true,"weight":1.0,"cores":1,"memory":1,"disk_free":1,"busy":null}}}"#;
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["MSG", _, _, reply, length] = words[..] {
                let mut payload = vec![0; length.parse::<usize>().unwrap() + 2];
                reader.read_exact(&mut payload).unwrap();
                write!(socket, "PUB {reply} {}\r\n{inventory}\r\n", inventory.len()).unwrap();
            } else if words == ["PING"] {
                socket.write_all(b"PONG\r\n").unwrap();
            }
            line.clear();
        }
    });
}

#[test]
fn agents_that_cannot_work_together_are_refused() {
    let (sandbox, nats) = one_server();
    let bench = Bench::start(sandbox, url(&nats), 5);
    foreign_agent(nats.port);
    let done = bench
        .sandbox
        .polygraph(&format!("run shared.pg --fleet {} --no_proxy --agents clt1,old,srv1,srv2", bench.url));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("old has version 0.0.1, and this program is"), "{done:?}");
    // A second agent with a name that there is.
    let second = bench.sandbox.start(&format!("agent --nats {} --name clt1 --logs agent-second", bench.url));
    let mut second = second;
    second.wait_for("ready for runs");
    let done = bench.sandbox.polygraph(&format!("fleet ls --agents clt1 --wait 10s --fleet {}", bench.url));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("two agents have the name clt1"), "{done:?}");
    drop(second);
    let done =
        bench.sandbox.polygraph(&format!("fleet ls --agents missing --wait 500ms --fleet {}", bench.url));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("the agent missing does not answer"), "{done:?}");
    // Options that an agent sets itself.
    let done = bench.sandbox.polygraph(&format!(
        "run shared.pg --fleet {} --no_proxy --agents {} --client_opt log=/tmp/x",
        bench.url,
        AGENTS.join(",")
    ));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("the option --log belongs to the agent"), "{done:?}");
}

#[test]
fn nats_elsewhere_needs_credentials() {
    let sandbox = Sandbox::new();
    for words in [
        "agent --nats nats://192.0.2.1:4222",
        "fleet ls --fleet 192.0.2.1",
        "fleet stop --fleet nats://127.0.0.1,nats://bench.example",
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(2), "{done:?}");
        assert!(done.err.contains("is another host") && done.err.contains("--creds FILE"), "{done:?}");
    }
    let done = sandbox.polygraph("run --no_proxy --fleet nats://127.0.0.1 --verb_lvl 1");
    assert_eq!(done.code(), Some(2), "{done:?}");
}

#[test]
fn the_agents_can_be_listed_and_checked() {
    let (sandbox, nats) = one_server();
    let bench = Bench::start(sandbox, url(&nats), 5);
    let named = format!("--agents {} --wait 10s --fleet {}", AGENTS.join(","), bench.url);
    let done = bench.sandbox.polygraph(&format!("fleet ls --json {named}"));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let all: Value = serde_json::from_str(&done.out).unwrap();
    let all = all["agents"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, AGENTS);
    assert!(all.iter().all(|agent| agent["clock_offset_s"].as_f64().unwrap().abs() < 1.0), "{all:?}");
    let done = bench.sandbox.polygraph(&format!("fleet exec-check --config shared.pg {named}"));
    assert_eq!(done.err.matches("the workload compiles").count(), 4, "{done:?}");
    let done = bench.sandbox.polygraph(&format!("fleet stop {named}"));
    assert_eq!((done.code(), done.err.matches("were asked to end").count()), (Some(0), 4), "{done:?}");
    let done = bench.sandbox.polygraph(&format!(
        "run shared.pg --fleet {} --agents {} --no_proxy --dry_run",
        bench.url,
        AGENTS.join(",")
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(done.err.contains("127.104.1.3-4"), "{done:?}");
    assert!(!bench.sandbox.path().join("runs").exists());
    let done = bench.sandbox.polygraph(&format!("fleet doctor {named}"));
    assert!(AGENTS.iter().all(|name| done.out.contains(&format!("== {name}"))), "{done:?}");
}

/// The permissions of the documentation suffice.
#[test]
fn users_of_nats_need_few_permissions() {
    let sandbox = Sandbox::new();
    let agent = r#"publish: ["polygraph.state.*", "polygraph.joined.*", "polygraph.live.*", "_INBOX.>", "$JS.API.>", "$O.>"], subscribe: ["polygraph.agents", "polygraph.agent.*", "polygraph.history", "_INBOX.>"]"#;
    let run = r#"publish: ["polygraph.agents", "polygraph.agent.*", "$JS.API.>", "$O.>"], subscribe: ["polygraph.state.*", "polygraph.joined.*", "_INBOX.>"]"#;
    sandbox.write(
        "users.conf",
        &format!(
            "authorization {{ users: [ {{ user: agent, password: \"a:b\", permissions: {{ {agent} }} }}\n\
             {{ user: run, password: r, permissions: {{ {run} }} }} ] }}\n"
        ),
    );
    let nats = Nats::start(&sandbox, "users", "-c users.conf");
    let bench = Bench::start(sandbox, format!("nats://agent:a:b@127.0.0.1:{}", nats.port), 5);
    let named = |user: &str| {
        format!("--agents {} --wait 10s --fleet nats://{user}@127.0.0.1:{}", AGENTS.join(","), nats.port)
    };
    let done = bench.sandbox.polygraph(&format!("fleet exec-check --config shared.pg {}", named("run:r")));
    assert_eq!(done.err.matches("the workload compiles").count(), 4, "{done:?}");
    let done = bench.sandbox.polygraph(&format!("fleet ls {}", named("run:wrong")));
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("authorization violation"), "{done:?}");
}
