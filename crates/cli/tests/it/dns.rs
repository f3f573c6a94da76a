//! The name server as a user starts it.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use polygraph_dns::{DnsError, DomainName, Query, QueryType};
use rustix::process::Signal;

use crate::sandbox::Sandbox;

fn ask(port: u16, name: &str) -> Result<Vec<IpAddr>, DnsError> {
    let query = Query::new(77, DomainName::parse(name).unwrap(), QueryType::A);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send(&query.message()).unwrap();
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).unwrap();
    query.read(&buffer[..length])
}

#[test]
fn the_names_of_polymix_4_are_served_until_ctrl_c() {
    let workloads = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let sandbox = Sandbox::new();
    let mut dns = sandbox.start(&format!(
        "dns --listen 127.0.0.1:0 --verb_lvl 2 --extra www.example.com=10.0.0.5,10.0.0.6 --extra *.dyn.bench.tst=10.0.0.7 \
         --config {workloads}/polymix-4.pg --cfg_dirs {workloads}/include --set TheBench.peak_req_rate=800/sec \
         --set FillRate=400/sec --set ProxyCacheSize=1GB --set DnsServers=['172.16.101.100:53'] \
         --set TheBench.client_side.hosts=['172.16.101.61-62'] --set TheBench.server_side.hosts=['172.16.101.191-192']"
    ));
    // 700 servers, and the two extra names.
    let port = dns.port("702 names at");
    assert_eq!(ask(port, "w1001.h1128o1101s1010.bench.tst"), Ok(vec![[10, 101, 128, 1].into()]));
    assert_eq!(ask(port, "W1100.h1133o1101s1010.bench.tst"), Ok(vec![[10, 101, 133, 100].into()]));
    assert_eq!(ask(port, "w7.dyn.bench.tst"), Ok(vec![[10, 0, 0, 7].into()]));
    assert_eq!(ask(port, "www.example.com"), Ok(vec![[10, 0, 0, 5].into(), [10, 0, 0, 6].into()]));
    assert_eq!(ask(port, "www.example.com"), Ok(vec![[10, 0, 0, 6].into(), [10, 0, 0, 5].into()]));
    assert_eq!(ask(port, "w1.bench.tst"), Err(DnsError::NoName));
    assert_eq!(ask(port, "example.org"), Err(DnsError::Refused));
    dns.wait_for("7 queries, ");
    dns.signal(Signal::INT);
    let done = dns.finish();
    assert_eq!(done.code(), Some(0), "{done:?}");
    let counts: Vec<Vec<&str>> = done.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        counts,
        [vec!["queries", "7"], vec!["answered", "5"], vec!["no", "such", "name", "1"], vec!["refused", "1"]]
    );
}

#[test]
fn mistakes() {
    let sandbox = Sandbox::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = format!("dns --extra a.b=10.0.0.1 --listen {}", taken.local_addr().unwrap());
    for (words, code, text) in [
        ("dns", 2, "there are no names to serve"),
        ("dns --extra a.b", 2, "write a name and its addresses"),
        ("dns --extra a..b=10.0.0.1", 2, "'a..b' is not a domain name"),
        ("dns --extra a.b=10.0.0.1 --zone ..", 2, "is not a domain name"),
        ("dns --extra a.b=10.0.0.1 --ttl 99999day", 2, "too long for a time to live"),
        ("dns --config no-such.pg", 4, "no-such.pg does not compile"),
        (&taken, 3, "cannot start a name server at 127.0.0.1:"),
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!((done.code(), &*done.out), (Some(code), ""), "{words}: {done:?}");
        assert!(done.err.contains(text), "{words}: {done:?}");
    }
    let done =
        sandbox.polygraph("dns --extra a.b=10.0.0.1 --listen 127.0.0.1:0 --duration 100msec --verb_lvl 0");
    assert_eq!((done.code(), &*done.out, &*done.err), (Some(0), "queries                       0\n", ""));
}
