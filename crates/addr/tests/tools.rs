//! What the address tools print.

use polygraph_addr::{AddrRange, IpTable, WebAxeLoads, ZoneFiles, expand, zone_files};

#[test]
fn polymix3_example_of_the_how_to() {
    let expected = "        bench:        16
        req.rate:   1000/sec (actual:  1003.20/sec)
        PCs:           3pairs
        robots:     2508 ( 836/machine)
        servers:     756 ( 252/machine)

        rbt_ips:      10.16.1-12.1-209
            1st machine:      10.16.1-4.1-209
            2nd machine:      10.16.5-8.1-209
            3rd machine:     10.16.9-12.1-209
        srv_ips:   10.16.129-134.1-126
            1st machine:  10.16.129-130.1-126
            2nd machine:  10.16.131-132.1-126
            3rd machine:  10.16.133-134.1-126
";
    let table = IpTable::polymix3(16, 1000.0).unwrap();
    assert_eq!(table.polymix_text(true), expected);
    let per_machine = |line: &&str| !line.contains("machine:");
    let short: String = expected.split_inclusive('\n').filter(per_machine).collect();
    assert_eq!(table.polymix_text(false), short);
}

#[test]
fn one_machine_or_one_side() {
    #[track_caller]
    fn check(table: &IpTable, id: &str, ranges: &str) {
        let found = table.ranges(id).unwrap_or_else(|error| error.to_string());
        assert_eq!(found, ranges, "{id}");
    }
    let polymix = IpTable::polymix3(16, 1000.0).unwrap();
    check(&polymix, "clt2", "10.16.5-8.1-209");
    check(&polymix, "srv3", "10.16.133-134.1-126");
    check(&polymix, "clts", "10.16.1-12.1-209");
    check(&polymix, "srvs", "10.16.129-134.1-126");
    check(&polymix, "clt4", "there is no clt4: this side needs only 3 machines for the rate");
    check(&polymix, "clt0", "there is no clt0: this side needs only 3 machines for the rate");
    check(
        &polymix,
        "pc1",
        "'pc1' is not a machine; write clt1, srv1 and so on, or clts or srvs for all of a side",
    );
    let webaxe = IpTable::webaxe4(13, 1000.0, WebAxeLoads::default()).unwrap();
    check(&webaxe, "clt2", "10.13.4-5.1-250;10.13.6.1-125");
    check(&webaxe, "srvs", "10.13.128.1;10.13.132.1");
}

#[test]
fn webaxe4_table() {
    let table = IpTable::webaxe4(101, 1000.0, WebAxeLoads::default()).unwrap();
    let expected = "\
bench: 101
peak_req_rate: 1000/sec

client_side:
    max_host_load:      500/sec
    max_agent_load:     0.4/sec
    subnet:             /22, 1000 addresses
    hosts:              2
    agents:             2500 (1250 per host, 2 per address)
    1st host:           10.101.0-1.1-250;10.101.2.1-125
    2nd host:           10.101.4-5.1-250;10.101.6.1-125

server_side:
    max_host_load:      500/sec
    max_agent_load:     500/sec
    subnet:             /22, 1000 addresses
    hosts:              2
    agents:             2 (1 per host)
    1st host:           10.101.128.1
    2nd host:           10.101.132.1
";
    assert_eq!(table.webaxe_text(), expected);
    assert_eq!(
        table.routes(None).unwrap(),
        "10.101.0.0/22\n10.101.4.0/22\n10.101.128.0/22\n10.101.132.0/22\n"
    );
    assert_eq!(table.routes(Some("clt2")).unwrap(), "10.101.4.0/22\n");
}

#[test]
fn webaxe4_loads_change_the_subnets() {
    let loads =
        WebAxeLoads { client_host: 2000.0, server_host: 250.0, server_agent: 0.5, ..WebAxeLoads::default() };
    let table = IpTable::webaxe4(7, 3000.0, loads).unwrap();
    assert_eq!(table.ranges("clt2").unwrap(), "10.7.8-14.1-250;10.7.15.1-125");
    assert_eq!(table.routes(Some("clts")).unwrap(), "10.7.0.0/21\n10.7.8.0/21\n");
    assert_eq!(table.ranges("srv12").unwrap(), "10.7.172-173.1-250");
    assert!(IpTable::webaxe4(7, 3000.0, WebAxeLoads { client_agent: 0.0, ..loads }).is_err());
}

fn zone(zone: &str, addresses: &str, names: &str) -> Result<ZoneFiles, String> {
    let list = |text| expand(&AddrRange::parse_list(text).unwrap(), 1000).unwrap();
    zone_files(zone, &list(addresses), &list(names)).map_err(|error| error.to_string())
}

/// The records after those that every zone has.
fn records(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.contains("\tNS\t")).skip(1).collect()
}

#[test]
fn zone_files_of_a_small_map() {
    let files = zone("bench.tst", "10.16.129-130.1-2:80", "w[1-4].bench.tst:80").unwrap();
    assert_eq!((&*files.forward_name, &*files.reverse_name), ("bench.tst", "bench.tst.rev"));
    assert_eq!(
        files.forward,
        "$TTL 3600\n$ORIGIN bench.tst.\n@\tIN\tSOA\tns.bench.tst. hostmaster.bench.tst. (\n\t1\t; serial\n\
         \t10800\t; refresh\n\t1801\t; retry\n\t3600000\t; expire\n\t259200\t; minimum\n)\n\
         @\tIN\tNS\tns.bench.tst.\nns\tIN\tA\t172.16.101.100\nw1\tIN\tA\t10.16.129.1\nw2\tIN\tA\t10.16.129.2\n\
         w3\tIN\tA\t10.16.130.1\nw4\tIN\tA\t10.16.130.2\n"
    );
    assert_eq!(
        records(&files.reverse),
        [
            "1.129\tIN\tPTR\tw1.bench.tst.",
            "2.129\tIN\tPTR\tw2.bench.tst.",
            "1.130\tIN\tPTR\tw3.bench.tst.",
            "2.130\tIN\tPTR\tw4.bench.tst."
        ]
    );
    assert!(files.reverse.starts_with("$TTL 3600\n$ORIGIN 16.10.IN-ADDR.ARPA.\n@\tIN\tSOA\tns.bench.tst."));
    assert_eq!(
        files.config,
        "options {\n\tdirectory \"/etc/namedb\";\n\trecursion no;\n};\n\n\
         zone \"16.10.IN-ADDR.ARPA\" {\n\ttype master;\n\tfile \"bench.tst.rev\";\n};\n\n\
         zone \"bench.tst\" {\n\ttype master;\n\tfile \"bench.tst\";\n};\n"
    );
    assert_eq!(files.warnings, [""; 0]);
}

#[test]
fn zone_file_specials() {
    let files = zone(".", "10.0.0.1-3", "*.x.org my_host.y.org").unwrap();
    assert_eq!((&*files.forward_name, &*files.reverse_name), ("root", "root.rev"));
    assert_eq!(
        records(&files.forward),
        [
            "ns\tIN\tA\t172.16.101.100",
            "*.x.org\tIN\tA\t10.0.0.1",
            "; error: a host name has no underscore: my_host.y.org\tIN\tA\t10.0.0.2"
        ]
    );
    assert_eq!(records(&files.reverse)[0], "1\tIN\tPTR\tw000000.x.org.");
    assert_eq!(
        files.warnings,
        [
            "1 of 3 addresses have no name and are omitted",
            "my_host.y.org is written as a comment: host names have no underscore"
        ]
    );
    let round_robin = zone("t", "10.0.0.1-2", "a.t b.t c.t t").unwrap();
    assert_eq!(records(&round_robin.forward)[3..], ["c\tIN\tA\t10.0.0.1", "@\tIN\tA\t10.0.0.2"]);
    let v6 = zone("t", "[fe80::1]", "a.t").unwrap();
    assert_eq!(records(&v6.forward)[1], "a\tIN\tAAAA\tfe80::1");
    assert_eq!(records(&v6.reverse), ["1\tIN\tPTR\ta.t."]);
    assert!(v6.config.contains(".8.E.F.IP6.ARPA") || v6.config.contains(".8.e.f.IP6.ARPA"));
}

#[test]
fn maps_without_zone_files() {
    #[track_caller]
    fn check(zone_name: &str, addresses: &str, names: &str, message: &str) {
        assert_eq!(zone(zone_name, addresses, names), Err(message.to_owned()));
    }
    check(
        "a b",
        "10.0.0.1",
        "x.y",
        "'a b' is not a zone; write a domain such as bench.tst, or '.' for the root",
    );
    check("bench.tst", "10.0.0.1", "w.xbench.tst", "the name w.xbench.tst is not in the zone bench.tst");
    check("bench.tst", "", "w.bench.tst", "the map has no addresses");
    check(
        "bench.tst",
        "10.0.0.1",
        "10.0.0.2",
        "the map has no names: DNS has nothing to answer for IP addresses",
    );
    check("bench.tst", "10.0.0.1", "", "the map has no names: DNS has nothing to answer for IP addresses");
    check("t", "x.org", "a.t", "x.org is a name; a name server needs its IP address");
    check("t", "10.0.0.1 [::1]", "a.t", "the map has IPv4 and IPv6 addresses; make one zone file for each");
}
