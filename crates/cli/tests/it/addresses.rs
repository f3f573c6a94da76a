//! Addresses that runs add to their host by themselves, and routes to them, in network namespaces.

use rustix::process::Signal;

use crate::network::TwoHosts;
use crate::sandbox::{Done, Sandbox};

/// Two hosts that this machine simulates, and a folder.
struct Bench {
    hosts: TwoHosts,
    sandbox: Sandbox,
}

impl Bench {
    fn new() -> Bench {
        Bench { hosts: TwoHosts::new(), sandbox: Sandbox::new() }
    }

    fn polygraph(&self, host: usize, words: &str) -> Done {
        self.hosts.polygraph(host, &self.sandbox, words)
    }

    /// The lines that `ip` prints on a host.
    fn ip(&self, host: usize, words: &str) -> Vec<String> {
        let done = self.hosts.run(host, &self.sandbox, &format!("ip {words}"));
        assert_eq!(done.code(), Some(0), "{done:?}");
        done.out.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// The networks that a route makes local on a host.
    fn local_networks(&self, host: usize) -> Vec<String> {
        let lines = self.ip(host, "route show table local type local proto static");
        lines.iter().map(|line| line.split(' ').nth(1).unwrap_or(line).to_owned()).collect()
    }

    /// The number of IPv4 addresses of an interface.
    fn address_count(&self, host: usize, interface: &str) -> usize {
        self.ip(host, &format!("-4 -oneline address show dev {interface}")).len()
    }

    /// Lets the kernel of a host collect the sources of connections to it.
    fn watch_sources(&self, host: usize) {
        let rules = "add table ip t\nadd set ip t seen { type ipv4_addr; flags dynamic; size 200000; }\n\
             add chain ip t c { type filter hook input priority 0; }\n\
             add rule ip t c tcp flags & (syn | ack) == syn add @seen { ip saddr }\n";
        self.sandbox.write("rules.nft", rules);
        let done = self.hosts.run(host, &self.sandbox, "nft -f rules.nft");
        assert_eq!(done.code(), Some(0), "these tests need nftables: {done:?}");
    }

    /// The sources of connections so far that are in a network.
    fn sources(&self, host: usize, start: &str) -> usize {
        let done = self.hosts.run(host, &self.sandbox, "nft -j list set ip t seen");
        let list: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let all = list["nftables"].as_array().unwrap().iter().find_map(|item| item["set"]["elem"].as_array());
        let is_inside = |ip: &&serde_json::Value| ip.as_str().unwrap().starts_with(start);
        all.map_or(0, |all| all.iter().filter(is_inside).count())
    }
}

/// A workload with these addresses, at a rate of each robot, for a time. A bench may follow.
fn workload(robots: &str, servers: &str, rate: &str, seconds: u32, more: &str) -> String {
    format!(
        "ObjLifeCycle L = {{ length = const(2year); variance = 0%; with_lmt = 100%; expires = [ nmt + const(0sec) ]; }};
         Content C = {{ size = const(1KB); cachable = 100%; obj_life_cycle = L; }};
         Server S = {{ contents = [ C ]; direct_access = contents; addresses = {servers}; }};
         Robot R = {{ origins = S.addresses; recurrence = 50%; pop_model.pop_distr = popUnif();
            req_rate = {rate}; addresses = {robots}; }};
         Phase P = {{ name = \"p\"; goal.duration = {seconds}sec; goal.errors = 20%; }};
         schedule(P);
         use(S, R);
         {more}"
    )
}

#[test]
fn spaces_on_loopback_become_local_for_the_time_of_a_run() {
    let bench = Bench::new();
    let text = workload("['lo0::10.60.0-3.1-250/22']", "['lo0::10.61.0.1-4:8080/24']", "0.4/sec", 5, "");
    bench.sandbox.write("any.pg", &text);
    bench.watch_sources(0);
    let mut run = bench.hosts.start(0, &bench.sandbox, "run --no_proxy --config any.pg --predict no");
    let said = run.wait_for("addresses of robots and servers");
    let routes = "local 10.60.0.0/22 dev lo and local 10.61.0.0/24 dev lo";
    assert!(
        said.contains(&format!("1004 by AnyIP, {routes}, because the workload places them on")),
        "{said}"
    );
    assert_eq!(bench.local_networks(0), ["10.60.0.0/22", "10.61.0.0/24"]);
    assert!(bench.polygraph(0, "net status").out.contains("addresses of robots and servers (in use)"));
    // What is in use stays.
    bench.polygraph(0, "net clean");
    assert_eq!(bench.local_networks(0).len(), 2);
    let done = run.finish();
    assert!(["VALID", "INVALID"].contains(&done.verdict()), "{done:?}");
    // 1000 robots make 2 requests each on average: 86 % of them make one at least.
    let sources = bench.sources(0, "10.60.");
    assert!((750..=1000).contains(&sources), "{sources}");
    assert_eq!(bench.local_networks(0), [] as [&str; 0]);
    // Addresses that exist already are left alone.
    bench.hosts.ip(0, "route add local 10.60.0.0/15 dev lo proto static");
    let again = bench.polygraph(0, "run --no_proxy --config any.pg --set P.goal.duration=1sec --predict no");
    assert!(!again.err.contains("AnyIP"), "{again:?}");
    assert_eq!(bench.local_networks(0), ["10.60.0.0/15"]);
}

#[test]
fn a_space_of_an_interface_becomes_its_addresses() {
    let bench = Bench::new();
    let (robots, servers) = ("['cable::10.77.0.101-150/24']", "['cable::10.77.0.201-204:8080/24']");
    bench.sandbox.write("alias.pg", &workload(robots, servers, "2/sec", 3, ""));
    bench.watch_sources(1);
    let [before, behind] = [0, 1].map(|host| bench.address_count(host, "cable"));
    let mut server = bench.hosts.start(1, &bench.sandbox, "server --config alias.pg --idle_tout 2s");
    let said = server.wait_for("addresses of servers");
    assert!(said.contains("4 aliases of cable, because the workload names this interface"), "{said}");
    server.wait_for("listening at");
    assert_eq!(bench.address_count(1, "cable"), behind + 4);
    let mut client = bench.hosts.start(0, &bench.sandbox, "client --config alias.pg");
    assert!(client.wait_for("addresses of robots").contains("50 aliases of cable"));
    assert_eq!(bench.address_count(0, "cable"), before + 50);
    let done = client.finish();
    assert_eq!(done.code(), Some(0), "{done:?}");
    let sources = bench.sources(1, "10.77.0.1");
    assert!((40..=51).contains(&sources), "robots connect from their own addresses: {sources}");
    server.finish();
    assert_eq!([0, 1].map(|host| bench.address_count(host, "cable")), [before, behind]);
}

#[test]
fn the_next_start_and_clean_remove_what_a_killed_run_left() {
    let bench = Bench::new();
    let robots = "['lo::10.60.0-3.1-250/22', 'cable::10.77.0.101-150/24']";
    bench.sandbox.write("long.pg", &workload(robots, "['lo::10.61.0.1:8080/24']", "0.1/sec", 60, ""));
    let before = bench.address_count(0, "cable");
    let start_and_kill = || {
        let mut run = bench.hosts.start(0, &bench.sandbox, "run --no_proxy --config long.pg --predict no");
        run.wait_for("50 aliases of cable");
        run.signal(Signal::KILL);
        assert_eq!(run.finish().killed_by(), Some(Signal::KILL));
    };
    start_and_kill();
    // Another test may start a command that cleans up before this one does.
    let cleaned = bench.polygraph(0, "net clean");
    assert_eq!(cleaned.code(), Some(0), "{cleaned:?}");
    assert_eq!((bench.local_networks(0).len(), bench.address_count(0, "cable")), (0, before), "{cleaned:?}");
    start_and_kill();
    let next = bench.polygraph(0, "client --origin 127.0.0.1:9 --preflight no --goal 1 --fail_tout 1s");
    assert_eq!((bench.local_networks(0).len(), bench.address_count(0, "cable")), (0, before), "{next:?}");
}

#[test]
fn the_user_chooses_how_addresses_are_added() {
    let bench = Bench::new();
    let run = |words: &str| {
        let fixed =
            "run --no_proxy --xact_think none --req_rate 50/sec --goal 1s --cool_phase none --predict no";
        bench.polygraph(0, &format!("{fixed} {words}"))
    };
    for (words, said) in [
        (
            "--local_addrs lo::10.62.0.1-9",
            "9 by AnyIP, 4 routes such as local 10.62.0.1/32 dev lo, because the",
        ),
        ("--local_addrs lo::10.62.0.0-255", "256 by AnyIP, local 10.62.0.0/24 dev lo, because the"),
        (
            "--local_addrs 10.62.0.1-9 --addresses anyip",
            "9 by AnyIP, 4 routes such as local 10.62.0.1/32 dev lo, because --addresses",
        ),
        ("--local_addrs 10.62.0.1-9 --addresses alias", "9 aliases of lo, because --addresses says so"),
        (
            "--local_addrs lo::[fd62::1-9] --origin_address ::1",
            "9 aliases of lo, because AnyIP does not work with IPv6",
        ),
        // The whole network would hide the other host.
        ("--local_addrs lo::10.77.0.101-104/24", "4 by AnyIP, 3 routes such as local 10.77.0.101/32 dev lo"),
    ] {
        let done = run(words);
        assert!([Some(0), Some(1)].contains(&done.code()), "{words}: {done:?}");
        assert!(done.err.contains(said), "{words}: {done:?}");
        assert_eq!((bench.local_networks(0).len(), bench.address_count(0, "lo")), (0, 1), "{words}");
    }
    for (words, code, part) in [
        (
            "--local_addrs 10.62.0.1-9",
            3,
            "let the program add it for the time of the run (--addresses anyip)",
        ),
        (
            "--local_addrs lo::10.62.0.1-9 --addresses none",
            3,
            "10.62.0.1, which is not an address of this host",
        ),
        ("--local_addrs fxp0::10.62.0.1-9", 3, "there is no network interface fxp0"),
        ("--local_addrs lo::[fd62::1] --addresses anyip", 2, "--addresses alias"),
        ("--local_addrs lo::10.62.0.1 --addresses some", 2, "none of auto, alias, anyip and none"),
    ] {
        let done = run(words);
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(part), "{words}: {done:?}");
    }
}

#[test]
fn without_root_only_missing_addresses_are_an_error() {
    let bench = Bench::new();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let unprivileged = |words: &str| {
        let drop = "setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all";
        bench.hosts.run(0, &bench.sandbox, &format!("{drop} {program} {words}"))
    };
    let client = "client --origin 127.0.0.1:9 --preflight no --goal 1 --fail_tout 1s --local_addrs";
    let refused = unprivileged(&format!("{client} lo::10.62.0.1-9/24"));
    assert_eq!(refused.code(), Some(3), "{refused:?}");
    assert!(refused.err.contains("such as 10.62.0.1, and adding them needs root"), "{refused:?}");
    let fine = unprivileged(&format!("{client} lo::127.9.0.1-250/8"));
    assert!(!fine.err.contains("root"), "{fine:?}");
    assert!([Some(0), Some(1)].contains(&fine.code()), "{fine:?}");
    let aka = unprivileged("aka lo 10.62.0.1");
    assert_eq!(aka.code(), Some(3), "{aka:?}");
    assert!(aka.err.contains("needs root"), "{aka:?}");
}

/// Robots of two client hosts, of which one is there, as in WebAxe-4.
fn mesh() -> String {
    let bench = "Bench B = { client_side = { addr_space = ['lo0::10.60.0-7.1-250/22']; hosts = ['10.77.0.1', '10.77.0.9']; };
         server_side = { hosts = ['10.77.0.2:8080']; }; peak_req_rate = 800/sec; }; use(B);";
    workload("['lo0::10.60.0-7.1-250/22']", "['10.77.0.2:8080']", "0.4/sec", 3, bench)
}

#[test]
fn a_mesh_of_routes_leads_to_the_robots_of_each_client_host() {
    let bench = Bench::new();
    bench.sandbox.write("mesh.pg", &mesh());
    let both = "#!/bin/sh\nset -e\nip route add 10.60.0.0/22 via 10.77.0.1\nip route add 10.60.4.0/22 via 10.77.0.9\n";
    for words in ["", "--script", "--host 10.77.0.2", "--host 10.77.0.100"] {
        let done = bench.polygraph(1, &format!("net routes --config mesh.pg {words}"));
        assert_eq!((done.code(), done.out.as_str()), (Some(0), both), "{words}: {done:?}");
    }
    let own = bench.polygraph(0, "net routes --config mesh.pg").out;
    assert_eq!(own, "#!/bin/sh\nset -e\nip route add 10.60.4.0/22 via 10.77.0.9\n");
    let gateways =
        || bench.ip(1, "route show via 10.77.0.1").len() + bench.ip(1, "route show via 10.77.0.9").len();
    let routes = |words: &str| {
        let done = bench.polygraph(1, &format!("net routes --config mesh.pg {words}"));
        assert_eq!(done.code(), Some(0), "{done:?}");
        (done.out, gateways())
    };
    assert_eq!(routes("--add"), ("2 routes added\n".to_owned(), 2));
    assert_eq!(routes("--add"), ("0 routes added, 2 routes there already\n".to_owned(), 2));
    // What is there to stay stays.
    bench.polygraph(1, "net clean");
    assert_eq!(gateways(), 2);
    // The robots of the host that is there reach the server, and its replies reach them.
    bench.watch_sources(1);
    let mut server = bench.hosts.start(1, &bench.sandbox, "server --config mesh.pg --idle_tout 2s");
    server.wait_for("listening at");
    let client = bench.polygraph(0, "client --config mesh.pg --log clt.log");
    assert_eq!(client.code(), Some(0), "{client:?}");
    assert!(client.err.contains("this host runs 1000 of 2000 robots"), "{client:?}");
    assert!(client.err.contains("1000 by AnyIP, local 10.60.0.0/22 dev lo"), "{client:?}");
    let (first, second) = (bench.sources(1, "10.60.0."), bench.sources(1, "10.60.4."));
    assert!(first > 100 && second == 0, "{first} {second}");
    server.finish();
    assert_eq!(routes("--remove"), ("2 routes removed\n".to_owned(), 0));
    assert_eq!(routes("--remove"), ("0 routes removed\n".to_owned(), 0));
}

#[test]
fn routes_need_a_bench_with_hosts() {
    let sandbox = Sandbox::new();
    sandbox.write("none.pg", &workload("['lo::10.60.0.1-9/24']", "['10.77.0.2:8080']", "1/sec", 1, ""));
    for (words, code, part) in [
        ("net routes", 2, "add --config FILE"),
        ("net routes --config none.pg", 2, "set client_side.hosts"),
        ("net routes --config none.pg --add --remove", 2, "cannot be used with"),
        ("net routes --config none.pg --host 10.0.0.1 --add", 2, "cannot be used with"),
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(part), "{words}: {done:?}");
    }
}

#[test]
fn a_hundred_thousand_addresses_take_two_routes() {
    let bench = Bench::new();
    // One request of each robot in a minute: the run shows that all addresses can be used and how they are made.
    let text = workload("['lo::10.60-61.0-199.1-250/16']", "['lo::10.62.0.1:8080/24']", "0.0167/sec", 2, "");
    bench.sandbox.write("many.pg", &text);
    bench.watch_sources(0);
    let mut run = bench.hosts.start(0, &bench.sandbox, "run --no_proxy --config many.pg --predict no");
    let said = run.wait_for("by AnyIP");
    assert!(said.contains("100001 by AnyIP, 3 routes such as local 10.60.0.0/16 dev lo"), "{said}");
    let done = run.finish();
    assert!([Some(0), Some(1)].contains(&done.code()), "{done:?}");
    assert!(bench.sources(0, "10.6") > 500, "robots have addresses of their own: {done:?}");
    assert!(bench.local_networks(0).is_empty());
}
