//! The published and computed check values of all address schemes.

use polygraph_addr::{
    Addr, AddrRange, AddrScheme, Allocation, BenchRole, BenchSpec, SchemeError, SideSpec, ddiv, join, sdiv,
    xceil,
};

const K2: Option<i64> = Some(2);

fn pool(text: &str) -> Vec<AddrRange> {
    text.split(' ').map(|text| AddrRange::parse(text).unwrap()).collect()
}

fn allocate(scheme: AddrScheme, role: BenchRole, bench: &BenchSpec) -> Allocation {
    scheme.allocate(role, bench).unwrap_or_else(|error| panic!("{error}"))
}

/// The share of each host without interface, port and subnet, and with `a.b.` cut off the addresses.
fn hosts(allocation: &Allocation) -> String {
    let short = |range: &AddrRange| {
        let bare = AddrRange { interface: None, port: None, subnet: None, ..range.clone() };
        bare.to_string().splitn(3, '.').last().unwrap_or_default().to_owned()
    };
    let share = |ranges: &Vec<AddrRange>| ranges.iter().map(short).collect::<Vec<_>>().join(", ");
    allocation.shares.iter().map(share).collect::<Vec<_>>().join(" / ")
}

fn polymix3(rate: f64) -> BenchSpec {
    let side = |mask: &str| SideSpec {
        max_host_load: Some(400.0),
        max_agent_load: Some(0.4),
        addr_mask: Some(Addr::parse(mask).unwrap()),
        ..SideSpec::default()
    };
    BenchSpec {
        peak_req_rate: Some(rate),
        client_side: side("10.16.0.0"),
        server_side: side("10.16.0.0:80"),
        ..BenchSpec::default()
    }
}

fn polymix4(rate: f64) -> BenchSpec {
    let side = |space: &str| SideSpec {
        max_host_load: Some(500.0),
        addr_space: pool(space),
        hosts: pool("172.16.101.191-192:80"),
        ..SideSpec::default()
    };
    let client_side = SideSpec { max_agent_load: Some(0.4), ..side("lo0::10.101.0-123.1-250/22") };
    let server_side = side("lo0::10.101.128-251.1-250:80/22");
    BenchSpec { peak_req_rate: Some(rate), client_side, server_side, ..BenchSpec::default() }
}

#[test]
fn quotients_are_rounded_up_robustly() {
    assert_eq!(xceil(700.0, 0.7), 1000);
    assert_eq!(xceil(1.0, 3.0), 1);
    assert_eq!(xceil(0.0, 3.0), 0);
    assert_eq!(xceil(1.0, 0.0), u64::MAX);
    assert_eq!(xceil(f64::NAN, 1.0), 0);
    assert_eq!(sdiv(3, 750.2), 753);
    assert_eq!(ddiv(3, 1000.0, 0.4), 2502);
}

#[test]
fn polymix3_table() {
    #[track_caller]
    fn check(rate: f64, hosts: u64, robots: (u64, u64), servers: (u64, u64)) {
        let bench = polymix3(rate);
        for (role, (thirds, fourths), base) in
            [(BenchRole::Robots, robots, 0), (BenchRole::Servers, servers, 128)]
        {
            let found = allocate(AddrScheme::PolyMix3, role, &bench);
            assert_eq!((found.hosts(), found.agents()), (hosts, thirds * fourths), "{role} at {rate}/sec");
            let addresses = join(&found.addresses(), " ");
            let third = if thirds == 1 { "1".into() } else { format!("{}-{}", base + 1, base + thirds) };
            let port = if role == BenchRole::Servers { ":80" } else { "" };
            assert_eq!(addresses, format!("10.16.{third}.1-{fourths}{port}"));
        }
    }
    check(10.0, 1, (1, 25), (3, 168));
    check(100.0, 1, (1, 250), (3, 175));
    check(400.0, 1, (4, 250), (3, 200));
    check(401.0, 2, (6, 168), (4, 151));
    check(500.0, 2, (6, 209), (4, 157));
    check(700.0, 2, (8, 219), (4, 169));
    check(800.0, 2, (8, 250), (4, 175));
    check(1000.0, 3, (12, 209), (6, 126));
    check(1200.0, 3, (12, 250), (6, 134));
    check(1500.0, 4, (16, 235), (4, 219));
    check(4000.0, 10, (40, 250), (10, 150));
}

#[test]
fn polymix3_bench_16_at_1000_per_second() {
    let bench = polymix3(1000.0);
    let robots = allocate(AddrScheme::PolyMix3, BenchRole::Robots, &bench);
    let servers = allocate(AddrScheme::PolyMix3, BenchRole::Servers, &bench);
    assert_eq!((robots.hosts(), robots.agents(), robots.agents_on(0)), (3, 2508, 836));
    assert_eq!((servers.hosts(), servers.agents(), servers.agents_on(2)), (3, 756, 252));
    assert_eq!(hosts(&robots), "1-4.1-209 / 5-8.1-209 / 9-12.1-209");
    assert_eq!(hosts(&servers), "129-130.1-126 / 131-132.1-126 / 133-134.1-126");
    assert_eq!(join(&robots.addresses(), " "), "10.16.1-12.1-209");
    assert_eq!(join(&servers.addresses(), " "), "10.16.129-134.1-126:80");
    assert_eq!(bench.client_host_count(), Ok(3));
}

#[test]
fn polymix4_table() {
    #[track_caller]
    fn check(rate: f64, count: u64, robots: (u64, &str), servers: (u64, &str)) {
        let scheme = AddrScheme::PolyMix4 { agents_per_addr: K2 };
        for (role, (agents, shares)) in [(BenchRole::Robots, robots), (BenchRole::Servers, servers)] {
            let found = allocate(scheme, role, &polymix4(rate));
            assert_eq!((found.hosts(), found.agents()), (count, agents), "{role} at {rate}/sec");
            assert_eq!(hosts(&found), shares, "{role} at {rate}/sec");
            assert_eq!(found.warnings, []);
        }
    }
    check(1.0, 1, (4, "0.1-2"), (500, "128-129.1-250"));
    check(10.0, 1, (26, "0.1-13"), (503, "128-129.1-250, 130.1-3"));
    check(100.0, 1, (250, "0.1-125"), (525, "128-129.1-250, 130.1-25"));
    check(500.0, 1, (1250, "0-1.1-250, 2.1-125"), (625, "128-129.1-250, 130.1-125"));
    check(
        501.0,
        2,
        (1256, "0.1-250, 1.1-64 / 4.1-250, 5.1-64"),
        (626, "128.1-250, 129.1-63 / 132.1-250, 133.1-63"),
    );
    check(800.0, 2, (2000, "0-1.1-250 / 4-5.1-250"), (700, "128.1-250, 129.1-100 / 132.1-250, 133.1-100"));
    check(
        1000.0,
        2,
        (2500, "0-1.1-250, 2.1-125 / 4-5.1-250, 6.1-125"),
        (750, "128.1-250, 129.1-125 / 132.1-250, 133.1-125"),
    );
    check(
        1500.0,
        3,
        (3750, "0-1.1-250, 2.1-125 / 4-5.1-250, 6.1-125 / 8-9.1-250, 10.1-125"),
        (876, "128.1-250, 129.1-42 / 132.1-250, 133.1-42 / 136.1-250, 137.1-42"),
    );
    check(
        2000.0,
        4,
        (5000, "0-1.1-250, 2.1-125 / 4-5.1-250, 6.1-125 / 8-9.1-250, 10.1-125 / 12-13.1-250, 14.1-125"),
        (1000, "128.1-250 / 132.1-250 / 136.1-250 / 140.1-250"),
    );
    let big = polymix4(5000.0);
    let (robots, servers) =
        (allocate(scheme4(), BenchRole::Robots, &big), allocate(scheme4(), BenchRole::Servers, &big));
    assert_eq!((robots.hosts(), robots.agents()), (10, 12500));
    assert_eq!(join(&robots.shares[9], " "), "lo0::10.101.36-37.1-250/22 lo0::10.101.38.1-125/22");
    assert_eq!((servers.agents(), servers.agents_on(9)), (1750, 175));
}

fn scheme4() -> AddrScheme {
    AddrScheme::PolyMix4 { agents_per_addr: K2 }
}

#[test]
fn polymix4_servers_without_explicit_subnet_use_23() {
    let mut bench = polymix4(1000.0);
    bench.server_side.addr_space = pool("lo0::10.101.128-251.1-250:80");
    let servers = allocate(scheme4(), BenchRole::Servers, &bench);
    assert_eq!(hosts(&servers), "128.1-250, 129.1-125 / 130.1-250, 131.1-125");
    assert_eq!(join(&servers.shares[0], " "), "lo0::10.101.128.1-250:80/23 lo0::10.101.129.1-125:80/23");
}

#[test]
fn agents_on_one_address_come_round_after_round() {
    let robots = allocate(scheme4(), BenchRole::Robots, &polymix4(1.0));
    let order: Vec<String> = robots.agent_addresses().map(|addr| addr.host.to_string()).collect();
    assert_eq!(order, ["10.101.0.1", "10.101.0.2", "10.101.0.1", "10.101.0.2"]);
}

#[test]
fn webaxe4() {
    let mut bench = polymix4(1000.0);
    let scheme = AddrScheme::WebAxe4 { agents_per_addr: K2 };
    let robots = allocate(scheme, BenchRole::Robots, &bench);
    assert_eq!((robots.hosts(), robots.agents()), (2, 2500));
    assert_eq!(hosts(&robots), "0-1.1-250, 2.1-125 / 4-5.1-250, 6.1-125");
    let servers = allocate(scheme, BenchRole::Servers, &bench);
    assert_eq!(join(&servers.addresses(), " "), "172.16.101.191-192:80");
    assert_eq!(
        servers.warnings[0].to_string(),
        "WebAxe4As uses server_side.hosts as addresses and ignores server_side.addr_space"
    );
    bench.server_side.hosts.clear();
    let error = scheme.allocate(BenchRole::Servers, &bench).unwrap_err();
    assert_eq!(error.to_string(), "WebAxe4As needs server_side.hosts to compute the addresses of servers");
}

#[test]
fn small_complete_program() {
    let bench = BenchSpec {
        peak_req_rate: Some(120.0),
        client_side: SideSpec {
            hosts: pool("192.168.7.11-12"),
            addr_space: pool("eth1::172.20.0-3.1-254/22"),
            max_host_load: Some(200.0),
            max_agent_load: Some(0.5),
            ..SideSpec::default()
        },
        ..BenchSpec::default()
    };
    let robots = allocate(AddrScheme::WebAxe4 { agents_per_addr: Some(3) }, BenchRole::Robots, &bench);
    assert_eq!((robots.hosts(), robots.agents()), (1, 240));
    assert_eq!(join(&robots.addresses(), " "), "eth1::172.20.0.1-80/22");
}

#[test]
fn srvlb4() {
    let bench = BenchSpec {
        peak_req_rate: Some(7000.0),
        client_side: SideSpec {
            max_host_load: Some(700.0),
            max_agent_load: Some(0.7),
            addr_space: pool("lo0::10.45.1-250.1-250"),
            ..SideSpec::default()
        },
        ..BenchSpec::default()
    };
    let scheme = AddrScheme::SrvLb4 { agents_per_addr: Some(1) };
    let robots = allocate(scheme, BenchRole::Robots, &bench);
    assert_eq!((robots.hosts(), robots.agents(), robots.agents_on(0)), (10, 10000, 1000));
    assert_eq!(join(&robots.shares[0], " "), "lo0::10.45.1-4.1-250/22");
    assert_eq!(join(&robots.shares[1], " "), "lo0::10.45.8-11.1-250/22");
    assert_eq!(join(&robots.shares[9], " "), "lo0::10.45.40-43.1-250/22");
    let error = scheme.allocate(BenchRole::Proxies, &bench).unwrap_err();
    assert_eq!(error, SchemeError::NoProxies { scheme: "SrvLb4As" });
}

#[test]
fn explicit_subnets_decide_where_the_next_host_starts() {
    fn bench(space: &str) -> BenchSpec {
        let client_side = SideSpec {
            max_host_load: Some(500.0),
            max_agent_load: Some(0.7),
            addr_space: pool(space),
            ..SideSpec::default()
        };
        BenchSpec { peak_req_rate: Some(700.0), client_side, ..BenchSpec::default() }
    }
    let none = allocate(scheme4(), BenchRole::Robots, &bench("10.101.0-123.1-250"));
    assert_eq!(none.agents(), 1000);
    assert_eq!(join(&none.addresses(), " "), "10.101.0-1.1-250/24");
    let narrow = allocate(scheme4(), BenchRole::Robots, &bench("10.101.0-123.1-250/32"));
    assert_eq!(join(&narrow.addresses(), " "), "10.101.0-1.1-250/32");
    assert_eq!(
        narrow.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["a host of client_side has addresses for a /24, but addr_space has /32"]
    );
    let wide = scheme4().allocate(BenchRole::Robots, &bench("10.101.0-123.1-250/16")).unwrap_err();
    assert_eq!(
        wide.to_string(),
        "client_side.addr_space has room for 1 of 2 hosts: each host takes whole /16 subnets; use a larger space \
         or smaller subnets"
    );
}

#[test]
fn spread_table() {
    #[track_caller]
    fn check(rate: f64, agents: u64, shares: &str) {
        let mut bench = polymix4(rate);
        bench.client_side.hosts = pool("172.16.101.61-62");
        let robots = allocate(AddrScheme::Spread { agents_per_addr: K2 }, BenchRole::Robots, &bench);
        assert_eq!(robots.agents(), agents);
        assert_eq!(hosts(&robots), shares);
    }
    check(100.0, 252, "0.1-63 / 62.1-63");
    check(500.0, 1252, "0.1-250, 1.1-63 / 62.1-250, 63.1-63");
    check(1000.0, 2500, "0-1.1-250, 2.1-125 / 62-63.1-250, 64.1-125");
}

#[test]
fn spread_warns_of_hosts_that_work_too_hard() {
    let mut bench = polymix4(1100.0);
    bench.client_side.hosts = pool("172.16.101.61-62");
    bench.client_side.max_host_load = Some(500.0);
    let error = AddrScheme::Spread { agents_per_addr: K2 }.allocate(BenchRole::Robots, &bench).unwrap_err();
    assert_eq!(error.to_string(), "2752 robots do not fit on 2 hosts: one host takes 1250");
    bench.client_side.max_host_load = Some(549.9);
    let robots = allocate(AddrScheme::Spread { agents_per_addr: K2 }, BenchRole::Robots, &bench);
    assert_eq!(
        robots.warnings[0].to_string(),
        "each of 2 hosts of client_side gets 550 requests/sec, above its max_host_load of 550/sec"
    );
}

#[test]
fn one_message_names_everything_that_is_missing() {
    #[track_caller]
    fn check(scheme: AddrScheme, role: BenchRole, bench: &BenchSpec, message: &str) {
        assert_eq!(scheme.allocate(role, bench).unwrap_err().to_string(), message);
    }
    let empty = BenchSpec::default();
    check(
        AddrScheme::PolyMix3,
        BenchRole::Robots,
        &empty,
        "PolyMix3As needs peak_req_rate, client_side.max_host_load, client_side.max_agent_load, \
         client_side.addr_mask to compute the addresses of robots",
    );
    check(
        AddrScheme::WebAxe4 { agents_per_addr: None },
        BenchRole::Proxies,
        &empty,
        "WebAxe4As needs peak_req_rate, proxy_side.max_host_load, proxy_side.max_agent_load, \
         proxy_side.addr_space, agents_per_addr to compute the addresses of proxies",
    );
    let error = empty.client_host_count().unwrap_err();
    assert_eq!(
        error.to_string(),
        "clientHostCount needs peak_req_rate, client_side.max_host_load to count the client hosts"
    );
    let bench = polymix4(-1.0);
    check(scheme4(), BenchRole::Robots, &bench, "peak_req_rate must be positive, but it is -1");
    let bench = polymix4(40_000.0);
    check(
        scheme4(),
        BenchRole::Robots,
        &bench,
        "client_side.addr_space has 31000 addresses, but 50000 are needed",
    );
    let mut bench = polymix3(1000.0);
    bench.peak_req_rate = Some(20_000.0);
    check(
        AddrScheme::PolyMix3,
        BenchRole::Robots,
        &bench,
        "50000 robots need 200 third octets, but PolyMix3As has only 128 for them",
    );
    let mut bench = polymix4(1.0);
    bench.client_side.max_agent_load = Some(1e-9);
    check(
        scheme4(),
        BenchRole::Robots,
        &bench,
        "robots would be 1000000000 agents, but the limit is 16777216",
    );
    bench.client_side = SideSpec { addr_space: pool("w[1-99].x"), ..polymix4(1.0).client_side };
    check(
        scheme4(),
        BenchRole::Robots,
        &bench,
        "client_side.addr_space contains the name w1.x, but agents need IP addresses",
    );
}
