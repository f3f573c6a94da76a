//! `polygraph net wan` between two network namespaces that a pair of veth devices joins. The tests need root, `ip`,
//! `ping`, and a firewall that sends packets into queues; without them they fail and say so.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::sandbox::{Done, PATIENCE, Sandbox};

const CLIENT: &str = "10.16.1.1";
const SERVER: &str = "10.16.128.1";
const CLIENT_V6: &str = "2001:db8:16::1";
const SERVER_V6: &str = "2001:db8:16:8000::1";

/// Two hosts with a wire between them.
struct TwoHosts {
    client: String,
    server: String,
    sandbox: Sandbox,
}

fn system(words: &str) -> Output {
    let mut list = words.split_whitespace();
    let program = list.next().unwrap();
    Command::new(program).args(list).output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn must(words: &str) -> String {
    let output = system(words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "`{words}` failed; these tests need root and iproute2, iptables, ping: {error}"
    );
    String::from_utf8(output.stdout).unwrap()
}

impl TwoHosts {
    fn new() -> TwoHosts {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = |side: &str| format!("pg{}w{}{side}", std::process::id(), NEXT.load(Ordering::Relaxed));
        let (client, server) = (name("c"), name("s"));
        NEXT.fetch_add(1, Ordering::Relaxed);
        let hosts = TwoHosts { client, server, sandbox: Sandbox::new() };
        let TwoHosts { client, server, .. } = &hosts;
        must(&format!("ip netns add {client}"));
        must(&format!("ip netns add {server}"));
        must(&format!("ip link add wire netns {client} type veth peer name wire netns {server}"));
        for (host, v4, v6) in [(client, CLIENT, CLIENT_V6), (server, SERVER, SERVER_V6)] {
            must(&format!("ip -n {host} address add {v4}/16 dev wire"));
            must(&format!("ip -n {host} address add {v6}/48 dev wire nodad"));
            must(&format!("ip -n {host} link set lo up"));
            must(&format!("ip -n {host} link set wire up"));
        }
        hosts
    }

    /// Runs a `polygraph net` command on the server.
    fn net(&self, words: &str) -> Done {
        let program = env!("CARGO_BIN_EXE_polygraph");
        let words = format!("netns exec {} {program} net {words}", self.server);
        self.sandbox.start_program("ip", &words).finish()
    }

    fn set_up(&self, options: &str) -> String {
        let done = self.net(&format!("wan --backend nfqueue --match 10.16.0.0/16 {options}"));
        assert_eq!(done.code(), Some(0), "{done:?}");
        done.out
    }

    /// The figures of the only emulation: those of both directions, `in` first.
    fn status(&self) -> Value {
        let done = self.net("wan status --json");
        assert_eq!(done.code(), Some(0), "{done:?}");
        let mut found: Value = serde_json::from_str(&done.out).unwrap();
        let list = &mut found["emulations"];
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
        list[0].take()
    }

    /// Waits until no packet is on its way, and returns the figures.
    fn settled(&self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status()["status"].take();
            let pipes = status["pipes"].as_array().unwrap();
            if pipes.iter().all(|pipe| pipe["held"] == 0) {
                return status;
            }
            assert!(Instant::now() < deadline, "{status}");
        }
    }

    fn process(&self) -> Pid {
        Pid::from_raw(self.status()["means"]["nfqueue"]["pid"].as_i64().unwrap() as i32).unwrap()
    }

    fn queue_rules(&self) -> usize {
        let tools = ["iptables", "iptables-legacy", "ip6tables", "ip6tables-legacy"];
        let count = |tool: &str| must(&format!("ip netns exec {} {tool} -t mangle -S", self.server));
        tools.iter().map(|tool| count(tool).matches("NFQUEUE").count()).sum()
    }

    /// Round trips in milliseconds.
    fn ping(&self, address: &str, count: u32) -> Vec<f64> {
        let text = must(&format!("ip netns exec {} ping -c {count} -i 0.02 -W 30 {address}", self.client));
        let times =
            text.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok());
        let times: Vec<f64> = times.collect();
        assert_eq!(times.len(), count as usize, "{text}");
        times
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        // A process in a namespace keeps it alive.
        let off = self.net("wan off");
        for host in [&self.client, &self.server] {
            system(&format!("ip netns del {host}"));
        }
        assert!(thread::panicking() || off.code() == Some(0), "{off:?}");
    }
}

/// Does `work` in a thread that has entered a namespace.
fn inside<T: Send + 'static>(
    namespace: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let path = format!("/run/netns/{namespace}");
    thread::spawn(move || {
        let file = std::fs::File::open(&path).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    })
}

/// Waits until a process is gone, or has closed its files and waits for its parent.
fn wait_for_end(process: Pid) {
    let path = format!("/proc/{}/stat", process.as_raw_nonzero());
    let deadline = Instant::now() + PATIENCE;
    while std::fs::read_to_string(&path).is_ok_and(|text| !text.contains(") Z ")) {
        assert!(Instant::now() < deadline, "the process goes on");
        thread::sleep(Duration::from_millis(10));
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Sends packets from the client to the server, never more than 200 that have not arrived, apart from those that get
/// lost. Returns how many arrived.
fn send_datagrams(hosts: &TwoHosts, count: usize, size: usize) -> usize {
    let receiver = inside(&hosts.server, || UdpSocket::bind((SERVER, 9000)).unwrap()).join().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let sender = inside(&hosts.client, || UdpSocket::bind((CLIENT, 0)).unwrap()).join().unwrap();
    let mut buffer = [0; 2048];
    let mut arrived = 0;
    let mut receive = |wait: bool| {
        receiver.set_nonblocking(!wait).unwrap();
        while receiver.recv(&mut buffer).is_ok() {
            arrived += 1;
        }
        arrived
    };
    for sent in 0..count {
        sender.send_to(&vec![0; size], (SERVER, 9000)).unwrap();
        if sent % 100 == 99 {
            receive(false);
            // The buffer of the receiver is the scarcest one.
            thread::sleep(Duration::from_millis(2));
        }
    }
    receive(true)
}

#[test]
fn a_delay_in_both_directions() {
    let hosts = TwoHosts::new();
    let told = hosts.set_up("--delay 40ms");
    assert!(told.contains("in   delay 40ms, loss 0 %") && told.contains("out  delay 40ms"), "{told}");
    let times = hosts.ping(SERVER, 20);
    // A busy machine makes round trips longer, never shorter.
    assert!(times.iter().all(|ms| *ms >= 80.0), "{times:?}");
    let status = hosts.settled();
    for pipe in status["pipes"].as_array().unwrap() {
        assert!(number(&pipe["packets"]) >= 20, "{status}");
        assert_eq!(pipe["packets"], pipe["delivered"], "{status}");
        assert!(pipe["excess"]["p50_us"].as_f64().unwrap() > 0.0, "{status}");
    }
    let shown = hosts.net("wan status").out;
    assert!(shown.contains("held longer than intended: mean"), "{shown}");
    // Other networks are left alone. The first packet waits until the neighbours know each other.
    hosts.ping(SERVER_V6, 1);
    let times = hosts.ping(SERVER_V6, 5);
    assert!(times.iter().any(|ms| *ms < 80.0), "{times:?}");
    assert_eq!(hosts.queue_rules(), 4);
    let done = hosts.net("wan off");
    assert!(done.code() == Some(0) && done.out.contains("removed: firewall rule"), "{done:?}");
    assert_eq!(hosts.queue_rules(), 0);
    assert!(hosts.ping(SERVER, 5).iter().any(|ms| *ms < 80.0));
    assert_eq!(hosts.net("wan status").out, "nothing is emulated\n");
    assert_eq!(hosts.net("wan off").out, "nothing is emulated\n");
}

#[test]
fn directions_and_networks_of_ipv6() {
    let hosts = TwoHosts::new();
    let done = hosts.net(&format!(
        "wan --backend nfqueue --match {SERVER_V6} --peer {CLIENT_V6} --delay_in 10ms --delay_out 50ms --jitter_out unif:0ms,10ms"
    ));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let times = hosts.ping(SERVER_V6, 10);
    assert!(times.iter().all(|ms| *ms >= 60.0), "{times:?}");
    assert!(hosts.ping(SERVER, 5).iter().any(|ms| *ms < 60.0));
    // One direction alone is not the other one.
    hosts.net("wan off");
    hosts.set_up("--delay 30ms --direction in");
    assert!(hosts.ping(SERVER, 5).iter().all(|ms| *ms >= 30.0));
    let status = hosts.settled();
    assert_eq!(status["pipes"].as_array().unwrap().len(), 1);
    assert_eq!(status["pipes"][0]["direction"], "in");
}

#[test]
fn losses_have_their_share_and_are_counted() {
    let hosts = TwoHosts::new();
    hosts.set_up("--loss_in 5% --delay_in 5ms --direction in");
    let sent = 20_000;
    let arrived = send_datagrams(&hosts, sent, 100) as u64;
    let status = hosts.settled();
    let pipe = &status["pipes"][0];
    // The neighbours find each other by packets of ARP, which are not concerned.
    assert_eq!(number(&pipe["packets"]), sent as u64, "{status}");
    assert_eq!(number(&pipe["lost"]) + number(&pipe["delivered"]), sent as u64, "{status}");
    assert_eq!((number(&pipe["missed"]), number(&status["errors"])), (0, 0), "{status}");
    assert!(arrived <= number(&pipe["delivered"]), "{arrived} of {status}");
    // 1000 are expected to get lost, with a standard deviation of 31.
    let lost = number(&pipe["lost"]) as f64;
    assert!((lost - 1000.0).abs() < 5.0 * 31.0, "{lost}");
}

#[test]
fn a_link_with_little_bandwidth_takes_its_time_and_overflows() {
    let hosts = TwoHosts::new();
    // 1222 bytes and their headers take 10 ms.
    hosts.set_up("--bandwidth 1Mbit/s --queue 20 --direction in");
    let begin = Instant::now();
    let arrived = send_datagrams(&hosts, 100, 1222) as u64;
    let took = begin.elapsed();
    let status = hosts.settled();
    let pipe = &status["pipes"][0];
    assert_eq!(number(&pipe["packets"]), 100, "{status}");
    assert_eq!(number(&pipe["delivered"]) + number(&pipe["overflowed"]), 100, "{status}");
    assert_eq!(number(&pipe["delivered"]), arrived, "{status}");
    assert!(arrived >= 20 && took >= Duration::from_millis(10 * arrived), "{arrived} in {took:?}");
}

/// Lets the server send as many bytes to the client, over TCP, and checks every one of them.
fn send_flow(hosts: &TwoHosts, address: &str, size: usize) {
    let address: IpAddr = address.parse().unwrap();
    let listener = inside(&hosts.server, move || TcpListener::bind((address, 9001)).unwrap()).join().unwrap();
    let byte = |at: usize| (at / 7 % 251) as u8;
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&(0..size).map(byte).collect::<Vec<u8>>()).unwrap();
    });
    let mut stream =
        inside(&hosts.client, move || TcpStream::connect((address, 9001)).unwrap()).join().unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    server.join().unwrap();
    assert!(received.len() == size && received.iter().enumerate().all(|(at, found)| *found == byte(at)));
}

/// TCP counts what the kernel holds against the socket; packets that go out must not count.
#[test]
fn a_flow_of_tcp_arrives_unchanged_and_is_not_throttled() {
    const SIZE: usize = 8 << 20;
    let hosts = TwoHosts::new();
    hosts.set_up(&format!("--match {SERVER_V6} --delay_out 20ms --direction out"));
    let mut before = 0;
    for address in [SERVER, SERVER_V6] {
        send_flow(&hosts, address, SIZE);
        let status = hosts.settled();
        let packets = number(&status["pipes"][0]["packets"]);
        // Packets are as long as on the wire: 8 MB in packets of 1448 bytes.
        assert!(packets - before >= (SIZE / 1448) as u64, "{status}");
        assert_eq!(number(&status["errors"]), 0, "{status}");
        before = packets;
    }
}

#[test]
fn each_direction_has_its_own_bandwidth_and_loss() {
    let hosts = TwoHosts::new();
    let told = hosts
        .set_up("--bandwidth_out 20Mbit/s --bandwidth_in 5Mbit/s --queue 64KB --loss_out 1% --delay_in 5ms");
    assert!(told.contains("in   delay 5ms, loss 0 %, bandwidth 5 Mbit/s"), "{told}");
    assert!(told.contains("out  delay 0ms, loss 1 %, bandwidth 20 Mbit/s"), "{told}");
    let begin = Instant::now();
    send_flow(&hosts, SERVER, 2 << 20);
    // 2 MB take 0.84 s at 20 Mbit/s, without the headers; TCP sends again what gets lost.
    assert!(begin.elapsed() >= Duration::from_millis(838), "{:?}", begin.elapsed());
    let status = hosts.settled();
    let [inbound, outbound] = &status["pipes"].as_array().unwrap()[..] else { panic!("{status}") };
    assert_eq!((inbound["direction"].as_str(), number(&inbound["lost"])), (Some("in"), 0), "{status}");
    assert!(number(&outbound["packets"]) >= (2 << 20) / 1448, "{status}");
    // Of 1448 packets or more, 14 are expected to get lost; none with a probability of 10^-6.
    assert!(number(&outbound["lost"]) > 0, "{status}");
}

#[test]
fn nothing_is_left_of_a_killed_process() {
    let hosts = TwoHosts::new();
    hosts.set_up("--delay 40ms");
    let control = hosts.status()["means"]["nfqueue"]["control"].as_str().unwrap().to_owned();
    let process = hosts.process();
    kill_process(process, Signal::KILL).unwrap();
    wait_for_end(process);
    // Packets pass: a rule whose queue nobody reads does nothing. The ones that were held are dropped, and so is what arrives before
    // the kernel has taken down the queue of the process.
    let passes =
        || system(&format!("ip netns exec {} ping -c 1 -W 1 {SERVER}", hosts.client)).status.success();
    assert!((0..20).any(|_| passes()));
    assert!(hosts.ping(SERVER, 5).iter().any(|ms| *ms < 80.0));
    let done = hosts.net("clean");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert_eq!(hosts.queue_rules(), 0);
    assert!(!Path::new(&control).exists() && !Path::new(&control).with_extension("json").exists());
    // The next start does the same.
    hosts.set_up("--delay 40ms");
    kill_process(hosts.process(), Signal::KILL).unwrap();
    hosts.set_up("--delay 10ms");
    assert_eq!(hosts.queue_rules(), 4);
    assert!(hosts.ping(SERVER, 5).iter().all(|ms| *ms >= 20.0));
}

#[test]
fn files_are_removed_also_if_the_namespace_is_gone() {
    let hosts = TwoHosts::new();
    hosts.set_up("--delay 40ms");
    let control = hosts.status()["means"]["nfqueue"]["control"].as_str().unwrap().to_owned();
    let description = Path::new(&control).with_extension("json");
    let process = hosts.process();
    kill_process(process, Signal::KILL).unwrap();
    wait_for_end(process);
    must(&format!("ip netns del {}", hosts.server));
    assert_eq!(hosts.sandbox.polygraph("net clean").code(), Some(0));
    assert!(!Path::new(&control).exists() && !description.exists());
    // The end of the test expects both hosts.
    must(&format!("ip netns add {}", hosts.server));
}

#[test]
fn in_the_foreground_everything_ends_with_the_command() {
    let hosts = TwoHosts::new();
    let start = || {
        let words = format!(
            "netns exec {} {} net wan --foreground --backend nfqueue --match 10.16.0.0/16 --delay 20ms",
            hosts.server,
            env!("CARGO_BIN_EXE_polygraph")
        );
        let mut running = hosts.sandbox.start_program("ip", &words);
        running.wait_for("out  delay 20ms");
        running
    };
    let running = start();
    assert!(hosts.ping(SERVER, 3).iter().all(|ms| *ms >= 40.0));
    let done = running.stop();
    assert!(done.code() == Some(0) && done.out.contains("3 delivered"), "{done:?}");
    assert_eq!(hosts.queue_rules(), 0);
    // Killed, it takes its process with it.
    let running = start();
    let process = hosts.process();
    running.signal(Signal::KILL);
    running.finish();
    wait_for_end(process);
    assert_eq!(hosts.net("clean").code(), Some(0));
    assert_eq!(hosts.queue_rules(), 0);
}

#[test]
fn commands_are_printed_and_reasons_given() {
    let hosts = TwoHosts::new();
    let done = hosts.net("wan --match 10.16.0.0/16 --pipe domesticSrv --dry_run");
    assert_eq!(done.code(), Some(0), "{done:?}");
    // Only a kernel without netem needs the queues.
    match done.out.contains("netem") {
        true => assert!(
            done.out.contains("netem limit 100000 delay 100000us 30000us distribution normal"),
            "{done:?}"
        ),
        false => {
            assert!(done.err.contains("packets are held in user space: netem cannot be used"), "{done:?}");
            assert!(done.out.contains("--queue-num") || done.out.contains("queue num"), "{done:?}");
        }
    }
    assert_eq!(hosts.queue_rules(), 0, "nothing was changed");
    let wrong = |words: &str, code: i32, expected: &str| {
        let done = hosts.net(&format!("wan {words}"));
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(expected), "{words}: {done:?}");
    };
    wrong("--match 10.16.0.0/16", 2, "there is nothing to emulate");
    wrong("--delay 40ms", 2, "--match");
    wrong("--match 10.16.0.0/16 --loss 200%", 2, "not a share");
    wrong("--match 10.16.0.0/16 --peer ::1 --delay 40ms", 2, "different IP versions");
    wrong("--match 10.16.0.0/16 --delay 4ms --seed 1 --backend netem", 3, "a seed is given");
    wrong("--match 10.17.0.0/16 --delay 4ms --backend netem", 3, "netem cannot be used");
    wrong(
        "--match 10.17.0.0/16 --delay 4ms --backend nfqueue --interface wire",
        3,
        "only netem works on single",
    );
    wrong("--match 10.17.0.0/16 --delay 4ms --interface absent", 3, "no network interface absent");
    wrong("--match 10.17.0.0/16 --delay 4ms --queue 10", 2, "--queue has no effect");
    wrong("--match 10.17.0.0/16 --delay 4ms --direction in --loss_out 1%", 2, "--loss_out has no effect");
    wrong("--match 10.17.0.0/16 --delay 4ms --direction out --delay_in 1ms", 2, "--delay_in has no effect");
    wrong("--match 10.17.0.0/33 --delay 4ms", 2, "no address with a prefix length");
    wrong("status --match 10.17.0.0/16", 2, "unexpected argument");
    assert_eq!(hosts.queue_rules(), 0, "nothing was changed");
}

/// The firewall is the first one of which both the program and the kernel's part are there.
#[test]
fn every_firewall_is_tried() {
    let hosts = TwoHosts::new();
    let with_programs = |programs: &[&str]| {
        let place = hosts.sandbox.path().join(format!("programs{}", programs.len()));
        std::fs::create_dir(&place).unwrap();
        for program in programs {
            let found = must(&format!("which {program}"));
            std::os::unix::fs::symlink(found.trim(), place.join(program)).unwrap();
        }
        let words = format!(
            "netns exec {} env PATH={} {} net wan --backend nfqueue --match 10.16.0.0/16,{SERVER_V6} --delay 20ms",
            hosts.server,
            place.display(),
            env!("CARGO_BIN_EXE_polygraph")
        );
        hosts.sandbox.start_program("ip", &words).finish()
    };
    let done = with_programs(&["ip"]);
    assert_eq!(done.code(), Some(3), "{done:?}");
    for program in ["nft", "iptables", "iptables-legacy"] {
        assert!(
            done.err.contains(&format!("the program `{program}` is needed and not installed")),
            "{done:?}"
        );
    }
    assert_eq!(hosts.net("wan status").out, "nothing is emulated\n");
    let done = with_programs(&["ip", "iptables-legacy", "ip6tables-legacy"]);
    assert!(done.code() == Some(0) && done.out.contains("with rules of iptables-legacy"), "{done:?}");
    assert!(hosts.ping(SERVER, 3).iter().chain(&hosts.ping(SERVER_V6, 3)).all(|ms| *ms >= 40.0));
    assert_eq!(hosts.queue_rules(), 8);
}

#[test]
fn without_rights_there_is_a_reason() {
    let hosts = TwoHosts::new();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let words = format!(
        "netns exec {} setpriv --bounding-set -net_admin --inh-caps -net_admin {program} net wan --backend nfqueue --delay 1ms --match 10.0.0.0/8",
        hosts.server
    );
    let done = hosts.sandbox.start_program("ip", &words).finish();
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("CAP_NET_ADMIN") && done.err.contains("needs root"), "{done:?}");
    assert_eq!(hosts.queue_rules(), 0);
    // Someone who is not root. The program must be readable to everyone for this.
    let program = hosts.sandbox.path().join("polygraph");
    std::fs::copy(env!("CARGO_BIN_EXE_polygraph"), &program).unwrap();
    let open = |path: &Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    open(hosts.sandbox.path());
    open(&program);
    hosts.set_up("--delay 1ms");
    for words in ["--match 10.0.0.0/8 --delay 1ms", "status", "off"] {
        let words = format!(
            "netns exec {} setpriv --reuid 65534 --clear-groups {} net wan {words}",
            hosts.server,
            program.display()
        );
        let done = hosts.sandbox.start_program("ip", &words).finish();
        assert!(done.code() == Some(3) && done.err.contains("needs root"), "{words}: {done:?}");
    }
}

/// The process must not keep the terminal, or the pipes, of the command that started it.
#[test]
fn the_command_returns_and_closes_its_output() {
    let hosts = TwoHosts::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = Command::new("ip")
        .args(["netns", "exec", &hosts.server, env!("CARGO_BIN_EXE_polygraph"), "net", "wan"])
        .args(["--backend", "nfqueue", "--match", "10.16.0.0/16", "--delay", "1ms"])
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    drop(child);
    let mut text = String::new();
    match reader.read_to_string(&mut text) {
        Ok(_) => assert!(text.contains("by process"), "{text}"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
    }
}
