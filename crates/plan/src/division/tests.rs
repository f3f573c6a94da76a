//! Divisions by example, and what holds for all of them.

use std::net::SocketAddr;

use polygraph_addr::expand;
use polygraph_kerberos::service::ServiceKey;
use polygraph_pgl::{MemoryLoader, Options, compile};
use polygraph_traffic::Seed;
use polygraph_traffic::files::Files;
use proptest::prelude::*;
use serde::Deserialize;

use polygraph_tls::settings::{Identity, KeyKind};

use super::*;
use crate::lower::{Environment, lower};

/// An environment in which workloads find nothing.
struct Nothing;

impl Environment for Nothing {
    fn content_db(&self, _: &str) -> Result<Files, String> {
        Err("none".to_owned())
    }
    fn document_root(&self, _: &str) -> Result<Files, String> {
        Err("none".to_owned())
    }
    fn text_db(&self, _: &str) -> Result<Files, String> {
        Err("none".to_owned())
    }
    fn trace(&self, _: &str) -> Result<Vec<String>, String> {
        Err("none".to_owned())
    }
    fn resolve(&self, _: &str, _: u16) -> Result<SocketAddr, String> {
        Err("none".to_owned())
    }
    fn tls(&self) -> Result<(), String> {
        Err("none".to_owned())
    }
    fn kerberos(&self) -> Result<(), String> {
        Err("none".to_owned())
    }
    fn keytab(&self, _: &str) -> Result<Vec<ServiceKey>, String> {
        Err("none".to_owned())
    }
    fn pem(&self, _: &str) -> Result<String, String> {
        Err("none".to_owned())
    }
    fn runs_servers(&self) -> bool {
        true
    }
    fn authority(&self, _: Option<&str>) -> Result<Identity, String> {
        Err("none".to_owned())
    }
    fn private_key(&self, _: Option<&str>, _: KeyKind) -> Result<Vec<u8>, String> {
        Err("none".to_owned())
    }
}

/// A test with these addresses; each robot sends eight requests per second, and the phase halves that.
fn test(robots: &str, servers: &str) -> Test {
    let text = format!(
        "Content C = {{ size = const(13KB); cachable = 80%; }};\n\
         Server S = {{ contents = [ C ]; addresses = [ {servers} ]; }};\n\
         Robot R = {{ origins = S.addresses; req_rate = 8/sec; addresses = [ {robots} ]; }};\n\
         Phase P = {{ name = \"p\"; goal.duration = 1min; load_factor_beg = 50%; load_factor_end = 50%; }};\n\
         schedule(P); use(S, R);\n"
    );
    let compiled = compile("t.pg", &MemoryLoader::default().with("t.pg", text.as_str()), &Options::default());
    let workload = compiled.workload.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    lower(&workload, "t", Seed(1), &Nothing).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Hosts as tests write them.
#[derive(Deserialize)]
struct Hosts {
    host: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    name: String,
    roles: Vec<String>,
    addresses: Option<Vec<String>>,
    weight: Option<f64>,
    cores: Option<u32>,
}

fn hosts(list: &str) -> Vec<TestHost> {
    let host = |host: Host| {
        let range = |range: &String| AddrRange::parse(range).unwrap();
        let addresses = |ranges: Vec<String>| {
            let all = expand(&ranges.iter().map(range).collect::<Vec<_>>(), 1000).unwrap();
            all.iter().map(|address| address.host.ip().unwrap()).collect()
        };
        TestHost {
            name: host.name,
            client: host.roles.iter().any(|role| role == "client"),
            server: host.roles.iter().any(|role| role == "server"),
            addresses: host.addresses.map(addresses),
            weight: host.weight.unwrap_or(1.0),
            cores: host.cores,
        }
    };
    toml::from_str::<Hosts>(list).unwrap().host.into_iter().map(host).collect()
}

fn table(test: &Test, list: &str) -> String {
    divide(test, &hosts(list)).unwrap_or_else(|error| panic!("{error}")).to_string()
}

#[test]
fn three_client_hosts_and_two_server_hosts_share_a_test() {
    let test = test("'10.0.0.1-10'", "'10.1.0.1-5:80'");
    let list = "\
        host = [\n\
          { name = 'c1', roles = ['client'], cores = 4 },\n\
          { name = 'c2', roles = ['client'] },\n\
          { name = 'strong', roles = ['client'], weight = 3.0 },\n\
          { name = 's1', roles = ['server'], cores = 2 },\n\
          { name = 's2', roles = ['server'] },\n\
        ]";
    let expected = "  host    side    agents  requests/sec  loops  addresses
  c1      client       2          8.00      1  10.0.0.1-2
  c2      client       2          8.00      -  10.0.0.3-4
  strong  client       6         24.00      -  10.0.0.5-10
  s1      server       3         24.00      2  10.1.0.1-3:80
  s2      server       2         16.00      -  10.1.0.4-5:80
";
    assert_eq!(table(&test, list), expected);
}

#[test]
fn hosts_keep_the_addresses_that_they_have() {
    let test = test("'10.0.0.1-4'", "'10.1.0.1:80'");
    // `a` can run all robots, `b` only the first two, so `a` leaves them to `b`.
    let list = "\
        host = [\n\
          { name = 'a', roles = ['client', 'server'], addresses = ['10.0.0.1-9', '10.1.0.1'], cores = 3 },\n\
          { name = 'b', roles = ['client'], addresses = ['10.0.0.1-2'] },\n\
          { name = 'idle', roles = ['server'] },\n\
        ]";
    let expected = "  host  side    agents  requests/sec  loops  addresses
  a     client       2          8.00      1  10.0.0.3-4
  a     server       1         16.00      1  10.1.0.1:80
  b     client       2          8.00      -  10.0.0.1-2
  idle  -            0             -      -  none: the other hosts take all of them
";
    assert_eq!(table(&test, list), expected);
}

#[test]
fn robots_of_one_address_stay_together_and_servers_of_one_address_do_not() {
    let test = test("'10.0.0.1-2' ** 3", "'10.1.0.1:80', '10.1.0.1:81'");
    let list = "host = [\n\
        { name = 'a', roles = ['client', 'server'] }, { name = 'b', roles = ['client', 'server'] } ]";
    let division = divide(&test, &hosts(list)).unwrap();
    let shares = division.hosts.iter().map(|share| {
        let (client, server) = (share.client.as_ref().unwrap(), share.server.as_ref().unwrap());
        (client.agents, client.ranges(), server.agents, server.ranges())
    });
    let expected = [
        (3, "10.0.0.1".to_owned(), 1, "10.1.0.1:80".to_owned()),
        (3, "10.0.0.2".to_owned(), 1, "10.1.0.1:81".to_owned()),
    ];
    assert_eq!(shares.collect::<Vec<_>>(), expected);
}

#[test]
fn contradictions_are_errors() {
    let test = test("'10.0.0.1-4'", "'10.1.0.1:80'");
    let rows = [
        ("{ name = 'a', roles = ['client'] }", "no host may run servers"),
        (
            "{ name = 'a', roles = ['client', 'server'] }, { name = 'a', roles = ['client'] }",
            "two hosts have the name a",
        ),
        ("{ name = 'a', roles = [] }", "the host a has no role"),
        ("{ name = 'a', roles = ['client', 'server'], weight = 0.0 }", "the weight of the host a is 0"),
        (
            "{ name = 'a', roles = ['client', 'server'] }, { name = 'b', roles = ['server'], addresses = ['10.0.0.1'] }",
            "the host b has none of the addresses of servers",
        ),
        (
            "{ name = 'a', roles = ['client', 'server'], addresses = ['10.1.0.1', '10.0.0.3'] }",
            "3 addresses of robots belong to no host: 10.0.0.1-2,10.0.0.4",
        ),
    ];
    for (list, expected) in rows {
        let error = divide(&test, &hosts(&format!("host = [ {list} ]"))).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn robots_share_loops_while_one_carries_them() {
    let rows = [
        (Some(0.0), 1),
        (Some(2_999.0), 1),
        (Some(3_001.0), 2),
        (Some(9_000.0), 3),
        (Some(1e6), 4),
        (None, 4),
    ];
    for (rate, loops) in rows {
        assert_eq!(client_loops(rate, 4), loops, "{rate:?}");
    }
}

/// Addresses with one to three robots each, and hosts of different weights that have some of the addresses.
fn benches() -> impl Strategy<Value = (Vec<Place>, Vec<TestHost>)> {
    let places = prop::collection::vec((1_usize..4, prop::option::weighted(0.9, 0.5_f64..3.0)), 1..60);
    let own = prop::option::of(prop::collection::btree_set(0_u8..60, 0..60));
    let hosts = prop::collection::vec((0.1_f64..8.0, own), 1..9);
    (places, hosts).prop_map(|(places, hosts)| {
        let ip = |at: u8| IpAddr::from([10, 0, 0, at]);
        let place = |(at, (agents, rate)): (usize, (usize, Option<f64>))| {
            let ip = ip(at as u8);
            Place { address: ip.into(), ip, agents, rate: rate.map(|rate| rate * agents as f64) }
        };
        let host = |(at, (weight, own)): (usize, (f64, Option<BTreeSet<u8>>))| TestHost {
            name: format!("h{at}"),
            client: true,
            server: false,
            addresses: own.map(|own| own.into_iter().map(ip).collect()),
            weight,
            cores: None,
        };
        (
            places.into_iter().enumerate().map(place).collect(),
            hosts.into_iter().enumerate().map(host).collect(),
        )
    })
}

proptest! {
    #[test]
    fn each_address_is_on_one_host_that_has_it((places, hosts) in benches()) {
        let has_host = |place: &Place| hosts.iter().any(|host| owns(host, place));
        let lost = places.iter().filter(|place| !has_host(place)).count();
        match divide_side(&places, &hosts, Side::Client) {
            Ok(shares) => {
                prop_assert_eq!(lost, 0);
                let mut owners: BTreeMap<&Addr, usize> = BTreeMap::new();
                for (at, share) in shares.iter().enumerate() {
                    for address in share.iter().flat_map(|share| &share.addresses) {
                        prop_assert_eq!(owners.insert(address, at), None, "twice: {}", address);
                    }
                    let inside = |place: &&Place| owners.get(&place.address) == Some(&at);
                    let agents: usize = places.iter().filter(inside).map(|place| place.agents).sum();
                    prop_assert_eq!(share.as_ref().map_or(0, |share| share.agents), agents);
                }
                for place in &places {
                    prop_assert!(owns(&hosts[owners[&place.address]], place));
                }
            }
            Err(DivisionError::NobodyOwns { count, .. }) => prop_assert_eq!(count, lost),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn no_host_would_rather_give_an_address_to_another(count in 1_usize..400, weights in prop::collection::vec(0.1_f64..8.0, 1..12)) {
        let hosts: Vec<usize> = (0..weights.len()).collect();
        let units = vec![LoadUnit { load: 0.4, hosts: hosts.clone() }; count];
        let owners = apportion(&units, &weights);
        let counts: Vec<usize> = hosts.iter().map(|host| owners.iter().filter(|owner| *owner == host).count()).collect();
        for (a, b) in hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))).filter(|(a, _)| counts[*a] > 0) {
            // The divisor property of the method of Sainte-Laguë, which is what fair means here.
            let (given, kept) = ((counts[a] as f64 - 0.5) / weights[a], (counts[b] as f64 + 0.5) / weights[b]);
            prop_assert!(given <= kept * (1.0 + 1e-9), "{counts:?} {weights:?}");
        }
        // Neighbours stay together: each host has one range.
        prop_assert!(owners.is_sorted());
    }

    #[test]
    fn equal_hosts_differ_by_one_address_and_the_first_have_more(count in 0_usize..400, hosts in 1_usize..12) {
        let units = vec![LoadUnit { load: 1.0, hosts: (0..hosts).collect() }; count];
        let owners = apportion(&units, &vec![1.0; hosts]);
        for host in 0..hosts {
            let expected = count / hosts + usize::from(host < count % hosts);
            prop_assert_eq!(owners.iter().filter(|owner| **owner == host).count(), expected);
        }
    }

    #[test]
    fn the_order_of_hosts_decides_nothing_but_ties((places, hosts) in benches()) {
        // Weights are drawn, so that ties have probability 0; equal inputs give equal results, and reversed ones the same shares.
        let reversed: Vec<TestHost> = hosts.iter().rev().cloned().collect();
        let load = |shares: Vec<Option<SideShare>>| -> Vec<usize> {
            shares.into_iter().map(|share| share.map_or(0, |share| share.addresses.len())).collect()
        };
        let once = divide_side(&places, &hosts, Side::Client);
        prop_assert_eq!(&once, &divide_side(&places, &hosts, Side::Client));
        if let (Ok(once), Ok(back)) = (once, divide_side(&places, &reversed, Side::Client)) {
            let (once, mut back) = (load(once), load(back));
            back.reverse();
            prop_assert_eq!(once, back);
        }
    }
}
