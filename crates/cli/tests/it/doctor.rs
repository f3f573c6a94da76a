//! The doctor on real hosts: network namespaces with something wrong in each, limits of shells, killed processes.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use polygraph_netsetup::Ledger;
use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Done, Running, Sandbox};

const PROGRAM: &str = env!("CARGO_BIN_EXE_polygraph");

/// A network namespace, which is its own host to the doctor. It is removed when this is dropped.
struct Host(String);

impl Host {
    fn new() -> Host {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pg{}doc{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        shell(&format!("ip netns add {name}"));
        Host(name)
    }

    /// A namespace with working loopback.
    fn up() -> Host {
        let host = Host::new();
        host.shell("ip link set lo up");
        host
    }

    /// Runs a command of the shell in the namespace, and returns what it prints.
    fn shell(&self, command: &str) -> String {
        shell(&format!("ip netns exec {} sh -c '{command}'", self.0))
    }

    fn start(&self, sandbox: &Sandbox, words: &str) -> Running {
        sandbox.start_program("ip", &format!("netns exec {} {words}", self.0))
    }

    fn doctor(&self, sandbox: &Sandbox, words: &str) -> Done {
        self.start(sandbox, &format!("{PROGRAM} doctor {words}")).finish()
    }

    /// Names of checks that find something, and how much each matters.
    fn findings(&self, sandbox: &Sandbox, words: &str) -> Vec<(String, String)> {
        let done = self.doctor(sandbox, &format!("--json {words}"));
        let all: Value = serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {done:?}"));
        let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let findings = all["findings"].as_array().unwrap();
        findings.iter().map(|finding| (word(finding, "check"), word(finding, "impact"))).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn shell(command: &str) -> String {
    let Output { status, stdout, stderr } = Command::new("sh").args(["-c", command]).output().unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(
        status.success(),
        "`{command}` failed ({:?}): {errors}; these tests need root, iproute2 and iptables (devices/install.sh)",
        status.signal()
    );
    String::from_utf8_lossy(&stdout).trim().to_owned()
}

fn has(findings: &[(String, String)], check: &str, impact: &str) -> bool {
    findings.iter().any(|found| *found == (check.to_owned(), impact.to_owned()))
}

#[test]
fn a_low_limit_of_files_is_found() {
    let sandbox = Sandbox::new();
    for (limit, code, words) in
        [(64, 11, "DISTORTS [descriptors] a process may open 64 files"), (30, 1, "BLOCKS [descriptors]")]
    {
        sandbox.write(
            "limited.sh",
            &format!("ulimit -n {limit}\nexec {PROGRAM} doctor --quick --req_rate 50/sec\n"),
        );
        let done = sandbox.start_program("/bin/sh", "limited.sh").finish();
        assert!(done.code() == Some(code) && done.out.contains(words), "{done:?}");
        assert!(done.out.contains("remedy: ulimit -n 65536"), "{}", done.out);
    }
}

#[test]
fn settings_are_found_fixed_and_taken_back() {
    let (sandbox, host) = (Sandbox::new(), Host::up());
    let read = || host.shell("cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_tw_reuse");
    host.shell("echo 64 > /proc/sys/net/core/somaxconn; echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse");
    host.shell("echo 50000 50999 > /proc/sys/net/ipv4/ip_local_port_range");
    let load = "--quick --req_rate 5000/sec";
    let before = host.findings(&sandbox, load);
    for check in ["listen_queue", "time_wait_reuse", "port_range"] {
        assert!(has(&before, check, "distorts"), "{check}: {before:?}");
    }
    let done = host.doctor(&sandbox, &format!("{load} --fix"));
    assert!(done.out.contains("fixed: sysctl -w net.core.somaxconn=4096"), "{done:?}");
    assert_eq!(read(), "4096\n1");
    let after = host.findings(&sandbox, load);
    assert!(
        !after.iter().any(|(check, _)| ["listen_queue", "time_wait_reuse"].contains(&check.as_str())),
        "{after:?}"
    );
    assert!(has(&after, "kept_changes", "note"), "{after:?}");
    let done = host.doctor(&sandbox, "--undo");
    assert!(done.code() == Some(0) && done.out.contains("undone: /proc/sys/net/core/somaxconn"), "{done:?}");
    assert_eq!(read(), "64\n0");
    assert_eq!(host.doctor(&sandbox, "--undo").out, "nothing to undo\n");
}

#[test]
fn what_changes_packets_is_found() {
    let (sandbox, host) = (Sandbox::new(), Host::up());
    host.shell(
        "ip link add pgv0 type veth peer name pgv1; ip link set pgv0 up mtu 1400; ip link set pgv1 up",
    );
    host.shell("for i in $(seq 1 20); do ip addr add 10.78.0.$i/32 dev pgv0; done");
    host.shell("ip route add local 10.77.0.0/16 dev lo; ip -6 route add local fd00:77::/64 dev lo");
    host.shell("tc qdisc add dev pgv0 root tbf rate 10mbit burst 10kb latency 50ms");
    host.shell("iptables-legacy -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT");
    host.shell("ping -c 1 -w 5 127.0.0.1");
    let done = host.doctor(&sandbox, "--quick");
    for words in [
        "all addresses of 10.77.0.0/16, fd00:77::/64",
        "20 addresses",
        "tbf on pgv0",
        "firewall rules",
        "nf_conntrack",
    ] {
        assert!(done.out.contains(words), "{words}: {done:?}");
    }
}

/// Set for a process that changes a setting and waits to be killed.
const HOLDS_CHANGES: &str = "POLYGRAPH_TEST_HOLDS_CHANGES";

/// The process that is killed is this test once more.
#[test]
fn changes_of_a_killed_process_are_found_and_undone() {
    const NAME: &str = "doctor::changes_of_a_killed_process_are_found_and_undone";
    if std::env::var_os(HOLDS_CHANGES).is_some() {
        let mut changes = Ledger::of_system().unwrap().begin("a test of the doctor").unwrap();
        changes.set(Path::new("/proc/sys/net/core/somaxconn"), "77").unwrap();
        println!("changed");
        return std::thread::sleep(Duration::from_secs(120));
    }
    let (sandbox, host) = (Sandbox::new(), Host::up());
    let read = || host.shell("cat /proc/sys/net/core/somaxconn");
    let before = read();
    let is_found = || has(&host.findings(&sandbox, "--quick"), "abandoned_changes", "distorts");
    let this = std::env::current_exe().unwrap();
    let words = format!("env {HOLDS_CHANGES}=1 {} --exact {NAME} --nocapture", this.display());
    // Every command that changes the network undoes such changes first, so a test beside this one may be faster.
    let undone_by_the_doctor = || {
        let mut holder = host.start(&sandbox, &words);
        holder.wait_for("changed");
        assert_eq!(read(), "77");
        assert!(!is_found(), "in use");
        holder.signal(Signal::KILL);
        assert_eq!(holder.finish().killed_by(), Some(Signal::KILL));
        let found = is_found();
        let done = host.doctor(&sandbox, "--quick --fix");
        assert_eq!(read(), before);
        assert!(!is_found());
        host.doctor(&sandbox, "--undo");
        found && done.out.contains("fixed: undone: /proc/sys/net/core/somaxconn")
    };
    assert!((0..10).any(|_| undone_by_the_doctor()));
}

#[test]
fn devices_of_killed_runs_are_found_and_removed() {
    let sandbox = Sandbox::new();
    let directory = sandbox.path().join("polygraph-squid-dead");
    std::fs::create_dir(&directory).unwrap();
    sandbox.write("polygraph-squid-dead.owner", &format!("{}\n", directory.display()));
    let here = sandbox.path().display();
    let done = sandbox.start_program("env", &format!("TMPDIR={here} {PROGRAM} doctor --quick")).finish();
    assert!(done.code() == Some(11) && done.out.contains("[abandoned_devices]"), "{done:?}");
    let host = Host::up();
    let done = host.start(&sandbox, &format!("env TMPDIR={here} {PROGRAM} doctor --quick --fix")).finish();
    assert!(done.out.contains("fixed: removed: ") && !directory.exists(), "{done:?}");
    host.doctor(&sandbox, "--undo");
}

#[test]
fn the_ceiling_is_measured_over_loopback() {
    let (sandbox, host) = (Sandbox::new(), Host::new());
    // Loopback is down in a new namespace.
    let done = host.doctor(&sandbox, "--measure 1s");
    assert!(done.code() == Some(1) && done.out.contains("BLOCKS [loopback_failures]"), "{done:?}");
    host.shell("ip link set lo up");
    let done = host.doctor(&sandbox, "--measure 2s --req_rate 10/sec --json");
    let all: Value = serde_json::from_str(&done.out).unwrap();
    let ceiling = &all["facts"]["ceiling"];
    let (new, persistent) =
        (ceiling["new_connections"].as_f64().unwrap(), ceiling["persistent"].as_f64().unwrap());
    assert!(new > 100.0 && persistent > 100.0, "{ceiling}");
    assert_eq!(ceiling["failed"], 0, "{ceiling}");
    assert_eq!(all["planned"]["rate"], 10.0);
    let finding =
        all["findings"].as_array().unwrap().iter().find(|found| found["check"] == "ceiling").unwrap();
    assert_eq!(finding["impact"], "note", "{finding}");
}

#[test]
fn runs_refuse_what_cannot_work_and_warn_of_what_distorts() {
    let (sandbox, host) = (Sandbox::new(), Host::up());
    let run = |words: &str| host.start(&sandbox, &format!("{PROGRAM} {words}")).finish();
    let words = "run --no_proxy --req_rate 200/sec --xact_think none --goal 2s --predict no";
    host.shell("echo 50000 50099 > /proc/sys/net/ipv4/ip_local_port_range");
    let done = run(words);
    let warnings: Vec<&str> = done.err.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(warnings.len(), 1, "{done:?}");
    assert!(
        warnings[0].contains("100 local ports") && warnings[0].contains("200 are planned"),
        "{warnings:?}"
    );
    assert!(done.out.contains("VALID"), "the run took place: {done:?}");
    host.shell("echo 50000-50099 > /proc/sys/net/ipv4/ip_local_reserved_ports");
    let fixed = format!("{words} --origin_port 8080");
    for words in [fixed.as_str(), "client --origin 127.0.0.1:8080 --req_rate 200/sec --goal 1s"] {
        let done = run(words);
        assert_eq!(done.code(), Some(3), "{words}: {done:?}");
        assert!(done.err.contains("0 local ports") && done.err.contains("ip_local_port_range"), "{done:?}");
    }
    assert!(!sandbox.path().join("runs").join("client.log").exists());
}

#[test]
fn a_planned_load_comes_from_a_workload_or_from_options() {
    let sandbox = Sandbox::new();
    let planned = |words: &str| -> Value {
        let done = sandbox.polygraph(&format!("doctor --quick --json {words}"));
        serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {done:?}"))
    };
    assert_eq!(planned("")["planned"], Value::Null);
    let load = &planned("--req_rate 5000/sec --robots 10000 --pconn_use_lmt 2")["planned"];
    assert_eq!((&load["rate"], &load["connection_rate"]), (&5000.0.into(), &2500.0.into()));
    assert_eq!(load["connections"], 20_000, "two for each robot are more than 5,000/s for 3 s");
    assert_eq!((&load["on_loopback"], &load["robots"]), (&true.into(), &true.into()));
    let text = "
        Content C = { size = const(4KB); };
        Server S = { contents = [ C ]; direct_access = contents; addresses = ['10.9.1.1:80']; };
        Robot R = { origins = S.addresses; req_rate = 20/sec; addresses = ['10.9.0.1-5']; };
        Phase meas = { name = \"meas\"; goal.duration = 5sec; };
        schedule(meas);
        use(S, R);
    ";
    sandbox.write("plan.pg", text);
    let load = &planned("--config plan.pg --side client")["planned"];
    assert_eq!((&load["rate"], &load["sources"], &load["targets"]), (&100.0.into(), &5.into(), &1.into()));
    assert_eq!((&load["on_loopback"], &load["servers"]), (&false.into(), &false.into()));
    assert_eq!((&load["bytes_per_s"], &load["duration_s"]), (&409_600.0.into(), &5.0.into()));
    let load = &planned("--config plan.pg --side server")["planned"];
    assert_eq!((&load["neighbours"], &load["listening"][0]), (&5.into(), &80.into()));
}
