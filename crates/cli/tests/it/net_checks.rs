//! Throughput, echo times, names and clocks between two hosts.

use polygraph_dns::{NameServer, NameServerConfig, Zone};
use rustix::process::Signal;

use crate::network::TwoHosts;
use crate::sandbox::{Done, Sandbox};

/// What all numbers behind a name in JSON are.
fn numbers(done: &Done, name: &str) -> Vec<f64> {
    let lines = done.out.lines().filter_map(|line| line.trim().strip_prefix(&format!("\"{name}\": ")));
    lines.filter_map(|rest| rest.trim_end_matches(',').parse().ok()).collect()
}

#[test]
fn throughput_in_both_directions_of_a_limited_cable() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    // 50 Mbit/s from the client, 20 Mbit/s from the server.
    for (host, rate) in [(0, 50), (1, 20)] {
        hosts.limit(host, rate);
    }
    let mut server = hosts.start(1, &sandbox, "net throughput --listen 10.77.0.2:5000");
    server.wait_for("throughput tests are served");
    let words = "net throughput --to 10.77.0.2 --streams 2 --duration 2s --json";
    let done = hosts.polygraph(0, &sandbox, words);
    assert_eq!(done.code(), Some(0), "{done:?}");
    let (sent, received) = (numbers(&done, "sent_bits_per_s"), numbers(&done, "received_bits_per_s"));
    assert_eq!((sent.len(), received.len()), (3, 3), "two streams and the total: {done:?}");
    // Headers take some percent, and a bucket lets a little more through at the start.
    let (total_sent, total_received) = (*sent.last().unwrap(), *received.last().unwrap());
    assert!((3e6..60e6).contains(&sent[0].max(total_sent)), "{done:?}");
    assert!((1e6..26e6).contains(&received[0].max(total_received)), "{done:?}");
    let done = hosts.polygraph(
        0,
        &sandbox,
        "net throughput --to 10.77.0.2 --direction send --duration 1s --least 1000",
    );
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("FAILS:") && done.out.contains("own measurement"), "{done:?}");
    let done = server.stop();
    assert!(done.out.contains("2 tests served"), "{done:?}");
    let done = hosts.polygraph(0, &sandbox, "net throughput --to 10.77.0.2 --duration 1s");
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("does not accept a connection"), "{done:?}");
}

/// Servers that are killed, hang or are not there, hosts without a route, and addresses of other hosts.
#[test]
fn what_keeps_throughput_from_being_measured() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    let test = |words: &str| hosts.polygraph(0, &sandbox, &format!("net throughput --duration 1s {words}"));
    let start = || {
        let mut server = hosts.start(1, &sandbox, "net throughput --listen");
        server.wait_for("throughput tests are served");
        server
    };
    let server = start();
    let done = test("--to fd77::2 --from fd77::1 --direction send");
    assert!(done.code() == Some(0) && done.out.contains("processors of fd77::2"), "{done:?}");
    // One of two hosts is not there. The result of the other one is printed.
    let done = test("--to 10.77.0.2,10.78.0.1 --direction send --json");
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("there is no route to 10.78.0.1"), "{done:?}");
    let (tested, all) = (numbers(&done, "sent_bits_per_s"), done.out.matches("\"host\": \"10.").count());
    assert_eq!(
        (tested.len(), all),
        (2, 2),
        "a stream and the total of one host, a fault of the other: {done:?}"
    );
    server.signal(Signal::STOP);
    let done = test("--to 10.77.0.2 --with own");
    assert!(done.code() == Some(1) && done.out.contains("then says nothing for 5 s"), "{done:?}");
    server.signal(Signal::KILL);
    assert_eq!(server.finish().killed_by(), Some(Signal::KILL));
    let done = test("--to 10.77.0.2");
    assert!(done.code() == Some(1) && done.out.contains("nothing listens there"), "{done:?}");
    // A server that is killed in the middle, and one that has lost a client goes on.
    let server = start();
    let client = hosts.start(0, &sandbox, "net throughput --to 10.77.0.2 --duration 1hr");
    hosts.wait_for_connections(1, 5000, 2);
    client.signal(Signal::KILL);
    assert_eq!(client.finish().killed_by(), Some(Signal::KILL));
    let done = test("--to 10.77.0.2 --direction receive");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let client = hosts.start(0, &sandbox, "net throughput --to 10.77.0.2 --duration 1hr");
    hosts.wait_for_connections(1, 5000, 2);
    server.signal(Signal::KILL);
    let done = client.finish();
    assert!(done.code() == Some(1) && done.out.contains("broke off"), "{done:?}");
    for (words, code, text) in [
        ("--to 10.77.0.2 --from 10.77.0.77", 3, "10.77.0.77 is not an address of this host"),
        ("--to 10.77.0.2 --from fd77::1", 2, "no address of --from is of the same family"),
        ("--to 10.77.0.2 --least x", 2, "not a rate in Mbit/s"),
        ("--to 10.77.0.2 --least=-1", 2, "not a rate in Mbit/s"),
        ("", 2, "--to"),
        ("--to absent.invalid", 3, "cannot resolve absent.invalid"),
    ] {
        let done = test(words);
        assert!(done.code() == Some(code) && done.err.contains(text), "{words}: {done:?}");
    }
}

#[test]
fn iperf3_is_used_where_only_iperf3_runs() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    hosts.limit(0, 50);
    let mut server = hosts.start(1, &sandbox, "net throughput --listen --with iperf3");
    server.wait_for("Server listening");
    let done = hosts.polygraph(0, &sandbox, "net throughput --to 10.77.0.2 --duration 1s");
    assert_eq!(done.code(), Some(0), "iperf3 must be installed: {done:?}");
    assert!(done.out.contains("iperf 3") && done.out.contains("iperf3 used"), "{done:?}");
    drop(server);
}

#[test]
fn polyprobe_by_the_same_line_on_both_machines() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    for host in [0, 1] {
        hosts.limit(host, 50);
    }
    hosts.ip(0, "address add 10.77.0.11/24 dev cable");
    sandbox.link("polyprobe");
    let line = "polyprobe --duration 1s --contact_tout 100ms --stats_exchange_tout 20s 10.77.0.1,10.77.0.11 10.77.0.2:8080";
    let server = hosts.start(1, &sandbox, line);
    let client = hosts.polygraph(0, &sandbox, line);
    let server = server.finish();
    assert_eq!((client.code(), server.code()), (Some(0), Some(0)), "{client:?} {server:?}");
    let rows: Vec<&str> = client.out.lines().filter(|line| line.contains("10.77.0.2:8080")).collect();
    assert_eq!(rows.len(), 2, "{client:?}");
    let total = client.out.lines().find(|line| line.contains("total")).unwrap();
    let rate: f64 = total.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((2.0..60.0).contains(&rate), "{client:?}");
    let done = sandbox.polygraph("polyprobe 10.78.0.1 10.78.0.2:80");
    assert_eq!(done.code(), Some(3), "{done:?}");
}

#[test]
fn echo_times_of_a_matrix() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    hosts.ip(0, "address add 10.77.0.11/24 dev cable");
    hosts.ip(1, "address add 10.77.0.12/24 dev cable");
    let ping = |options: &str| {
        hosts.polygraph(0, &sandbox, &format!("net ping --interval 20ms --timeout 500ms {options}"))
    };
    let done = ping("--from 10.77.0.1,10.77.0.11 --to 10.77.0.2,10.77.0.12 --count 10");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(done.out.contains("4 pairs, 0 fail; 40 requests, 0 lost"), "{done:?}");
    // A target that is not there, among some that are, and both families.
    let done = ping("--from 10.77.0.1,[fd77::1] --to 10.77.0.2,10.77.0.99,[fd77::2] --count 2 --json");
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert_eq!(numbers(&done, "received"), [2.0, 0.0, 2.0], "{done:?}");
    assert_eq!(numbers(&done, "failed"), [1.0], "{done:?}");
    // A limit that a cable of this machine cannot reach.
    let done = ping("--to 10.77.0.2 --min_rtt 78ms");
    assert!(done.out.contains("too short") && done.code() == Some(1), "{done:?}");
    // Without a port, IPv6 addresses need no brackets.
    let done = ping("--from fd77::1 --to fd77::2 --count 2");
    assert!(done.code() == Some(0) && done.out.contains("1 pair, 0 fail; 2 requests, 0 lost"), "{done:?}");
    let done = ping("--to 10.78.0.1 --count 2");
    assert!(done.code() == Some(1) && done.out.contains("FAILS: Network is unreachable"), "{done:?}");
    let done = ping("--to 10.77.0.2:80");
    assert!(done.code() == Some(2) && done.err.contains("has a port"), "{done:?}");
    let done = ping("--from 10.77.0.77 --to 10.77.0.2");
    assert!(
        done.err.contains("10.77.0.77 is not an address of this host") && done.code() == Some(3),
        "{done:?}"
    );
}

#[test]
fn names_of_a_name_server() {
    let sandbox = Sandbox::new();
    let mut zone = Zone::default();
    zone.add_zone("bench.tst").unwrap();
    for i in 1..=40_u8 {
        zone.add(&format!("w{i}.bench.tst"), &[[10, 0, 0, i].into()]).unwrap();
    }
    let server =
        NameServer::start(NameServerConfig { listen: vec![([127, 0, 0, 1], 0).into()], ttl: 60, zone })
            .unwrap();
    let at = server.local_addrs()[0];
    let check = |options: &str| sandbox.polygraph(&format!("net dns --timeout 500ms {options}"));
    let done = check(&format!("--server {at} w1.bench.tst w2.bench.tst=10.0.0.2"));
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(
        done.out.contains("w1.bench.tst: 10.0.0.1 (") && done.out.contains("2 names, 0 fail"),
        "{done:?}"
    );
    let done = check(&format!("--server {at} w1.bench.tst=10.0.0.9 absent.bench.tst w3.bench.tst"));
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("w1.bench.tst: FAILS: has 10.0.0.1 instead of 10.0.0.9"), "{done:?}");
    assert!(
        done.out.contains("absent.bench.tst: FAILS: no such name") && done.out.contains("3 names, 2 fail"),
        "{done:?}"
    );
    // The names of a workload, of which this server knows 40.
    sandbox.write(
        "names.pg",
        "AddrMap M = { zone = \"bench.tst\"; addresses = ['10.0.0.1-41']; names = ['w[1-41].bench.tst']; };\nuse(M);\n",
    );
    let done = check(&format!("--server {at} --config names.pg --window 8"));
    assert!(done.out.contains("w41.bench.tst: FAILS") && done.out.contains("41 names, 1 fail"), "{done:?}");
    // Nobody answers there.
    let done = check("--server 127.0.0.1:9 w1.bench.tst");
    assert_eq!(done.code(), Some(1), "{done:?}");
    assert!(done.out.contains("nothing listens at the name server's port"), "{done:?}");
    assert!(done.out.contains("1 name, 1 fail"), "{done:?}");
}

#[test]
fn clocks_of_two_hosts() {
    let (hosts, sandbox) = (TwoHosts::new(), Sandbox::new());
    let mut server = hosts.start(1, &sandbox, "net clock --listen");
    server.wait_for("the time of this clock is at");
    let done = hosts.polygraph(0, &sandbox, "net clock --to 10.77.0.2,fd77::2 --interval 10ms --json");
    assert_eq!(done.code(), Some(0), "{done:?}");
    // Namespaces share the clock: the offset is 0 within the error.
    let (offsets, errors) = (numbers(&done, "offset_s"), numbers(&done, "error_s"));
    assert_eq!((offsets.len(), errors.len()), (2, 2), "{done:?}");
    assert!(offsets.iter().zip(&errors).all(|(offset, error)| offset.abs() <= error + 1e-6), "{done:?}");
    // A host to which no route leads does not hide the others.
    let done = hosts.polygraph(0, &sandbox, "net clock --to 10.78.0.1,10.77.0.2 --count 1");
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(
        done.out.contains("10.78.0.1: cannot send to") && done.out.contains(" this clock, +-"),
        "{done:?}"
    );
    let done = server.stop();
    assert!(done.out.contains("17 requests answered"), "{done:?}");
    let done =
        hosts.polygraph(0, &sandbox, "net clock --to 10.77.0.2 --count 2 --interval 10ms --timeout 200ms");
    assert!(done.out.contains("does not tell its time") && done.code() == Some(1), "{done:?}");
}
