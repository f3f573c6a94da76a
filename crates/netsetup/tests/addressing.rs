//! Addresses and routes in a network namespace. Needs root.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use polygraph_netsetup::{
    Error, IpPrefix, Ledger, Namespace, Netlink, RecordedChanges, Route, RouteKind, State, run_program,
};

/// A network namespace with the interface `pg0`, which ends with this value.
struct Place {
    name: String,
    ledger: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pg{}-addressing-{number}", std::process::id());
        run_program(&["ip", "netns", "add", &name]).expect("these tests need root and the program ip");
        let place = Place { name, ledger: tempfile::tempdir().unwrap() };
        place.ip("link set lo up");
        place.ip("link add pg0 type bridge");
        place.ip("link set pg0 up");
        place
    }

    fn ip(&self, words: &str) -> String {
        let mut all = vec!["ip", "-n", &self.name];
        all.extend(words.split(' '));
        run_program(&all).unwrap()
    }

    fn ledger(&self) -> Ledger {
        Ledger::at(self.ledger.path()).unwrap()
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        Namespace::named(&self.name).unwrap().run(work).unwrap().unwrap()
    }

    /// The permanent addresses of an interface, sorted.
    fn addresses(&self, interface: &str) -> Vec<IpPrefix> {
        self.run(|| {
            let mut netlink = Netlink::open().unwrap();
            let index = netlink.interface(interface).unwrap().index;
            let all = netlink.addresses().unwrap().into_iter();
            let is_link_local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            let mut found: Vec<IpPrefix> = all
                .filter(|found| found.interface == index && !is_link_local(found.prefix.address))
                .map(|found| found.prefix)
                .collect();
            found.sort();
            found
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = run_program(&["ip", "netns", "del", &self.name]);
    }
}

fn prefixes(texts: &[&str]) -> Vec<IpPrefix> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// `count` addresses of both families, half each.
fn many(count: u32) -> Vec<IpPrefix> {
    let v4 = (0..count / 2).map(|n| (IpAddr::from(Ipv4Addr::from(0x0a10_0001 + n)), 16));
    let v6 =
        (0..count / 2).map(|n| (IpAddr::from(Ipv6Addr::from((0xfd00_u128 << 112) + 1 + u128::from(n))), 64));
    v4.chain(v6).map(|(address, length)| IpPrefix { address, length }).collect()
}

fn local(network: &str) -> Route {
    Route { network: network.parse().unwrap(), kind: RouteKind::Local { interface: "lo".to_owned() } }
}

fn via(network: &str, gateway: &str) -> Route {
    let gateway = Some(gateway.parse().unwrap());
    Route { network: network.parse().unwrap(), kind: RouteKind::Unicast { gateway, interface: None } }
}

fn local_routes() -> Vec<Route> {
    let mut routes = Netlink::open().unwrap().routes().unwrap();
    routes.retain(|route| matches!(route.kind, RouteKind::Local { .. }));
    routes
}

/// What a killed process leaves: changes that nobody undoes, and a ledger without a lock.
fn abandon(place: &Place, changes: polygraph_netsetup::Changes) {
    changes.keep().unwrap();
    for file in std::fs::read_dir(place.ledger.path()).unwrap().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        std::fs::write(file.path(), text.replace("\"Kept\"\n", "")).unwrap();
    }
}

#[test]
fn five_thousand_addresses_come_and_go_in_one_batch() {
    let place = Place::new();
    let wanted = many(5000);
    let mut changes = place.run(|| {
        let mut changes = place.ledger().begin("a test").unwrap();
        assert_eq!(changes.add_addresses("pg0", &wanted).unwrap(), 5000);
        // What is there already is not ours.
        assert_eq!(changes.add_addresses("pg0", &wanted[..10]).unwrap(), 0);
        changes
    });
    assert_eq!(changes.made().len(), 1);
    let mut sorted = wanted.clone();
    sorted.sort();
    assert_eq!(place.addresses("pg0"), sorted);
    let bound = place.run(|| wanted.iter().filter(|a| UdpSocket::bind((a.address, 0)).is_ok()).count());
    assert_eq!(bound, 5000, "all can be used at once");
    let more = place.run(|| changes.add_addresses("pg0", &prefixes(&["10.77.0.1/24"])).unwrap());
    assert_eq!(more, 1);
    let undone = changes.undo();
    assert_eq!((undone.done.len(), undone.failed.len()), (2, 0));
    assert_eq!(place.addresses("pg0"), []);
}

#[test]
fn the_addresses_of_the_host_stay() {
    let place = Place::new();
    // One before ours in the same network, and one behind, which the kernel would remove together with ours.
    place.ip("addr add 10.16.0.250/24 dev pg0");
    let mut changes = place.run(|| {
        let mut changes = place.ledger().begin("a test").unwrap();
        let wanted = prefixes(&["10.16.0.250/24", "10.16.0.1/24", "10.17.0.1/24", "10.17.0.2/24"]);
        assert_eq!(changes.add_addresses("pg0", &wanted).unwrap(), 3);
        changes
    });
    place.ip("addr add 10.17.0.250/24 dev pg0");
    let missing = place.run(|| changes.add_addresses("eth7", &prefixes(&["10.1.0.1"]))).unwrap_err();
    assert!(matches!(&missing, Error::NoInterface { known, .. } if known == &["lo", "pg0"]), "{missing}");
    drop(changes);
    assert_eq!(place.addresses("pg0"), prefixes(&["10.16.0.250/24", "10.17.0.250/24"]));
}

#[test]
fn a_part_of_the_kept_addresses_is_removed() {
    let place = Place::new();
    let wanted = prefixes(&["10.16.0.1/24", "10.16.0.2/24", "fd00::1/64"]);
    place.run(|| {
        let mut changes = place.ledger().begin("aka pg0").unwrap();
        changes.add_addresses("pg0", &wanted).unwrap();
        changes.keep().unwrap();
    });
    let only = |place: &Place| <[RecordedChanges; 1]>::try_from(place.ledger().records().unwrap()).unwrap();
    let [mut record] = only(&place);
    assert_eq!(record.remove_addresses("pg0", |prefix| *prefix == wanted[0]).unwrap(), 1);
    assert_eq!(record.remove_addresses("lo", |_| true).unwrap(), 0);
    drop(record);
    assert_eq!(place.addresses("pg0"), wanted[1..]);
    let [mut record] = only(&place);
    assert_eq!((record.state, record.changes.len()), (State::Kept, 1));
    assert_eq!(record.remove_addresses("pg0", |_| true).unwrap(), 2);
    assert!(place.ledger().records().unwrap().is_empty());
    assert_eq!(place.addresses("pg0"), []);
}

#[test]
fn one_local_route_makes_a_network_of_addresses() {
    let place = Place::new();
    let bind = |address: &str| UdpSocket::bind((address.parse::<IpAddr>().unwrap(), 0)).is_ok();
    place.run(|| {
        assert!(!bind("10.200.3.4"));
        let mut changes = place.ledger().begin("a test").unwrap();
        assert_eq!(changes.add_routes(&[local("10.0.0.0/8")]).unwrap(), 1);
        assert_eq!(changes.add_routes(&[local("10.0.0.0/8")]).unwrap(), 0);
        assert!(bind("10.200.3.4") && bind("10.0.0.1") && !bind("11.0.0.1"));
        assert_eq!(local_routes(), [local("10.0.0.0/8")]);
        drop(changes);
        assert!(!bind("10.200.3.4"));
        assert_eq!(local_routes(), []);
    });
}

#[test]
fn routes_over_gateways() {
    let place = Place::new();
    place.ip("addr add 172.16.13.1/24 dev pg0");
    place.ip("addr add fd13::1/64 dev pg0 nodad");
    place.run(|| {
        let before = Netlink::open().unwrap().routes().unwrap();
        let mut changes = place.ledger().begin("a test").unwrap();
        let wanted: Vec<Route> = (0..31)
            .map(|pair| via(&format!("10.13.{}.0/22", 4 * pair), &format!("172.16.13.{}", 61 + pair)))
            .chain([via("fd00:1::/64", "fd13::2")])
            .collect();
        assert_eq!(changes.add_routes(&wanted).unwrap(), 32);
        let now = Netlink::open().unwrap().routes().unwrap();
        assert_eq!(now.len(), before.len() + 32);
        assert_eq!(changes.add_routes(&wanted).unwrap(), 0);
        let error = changes.add_routes(&[via("10.13.0.0/22", "172.16.13.99")]).unwrap_err().to_string();
        assert!(error.contains("10.13.0.0/22 via 172.16.13.99") && error.contains("exists"), "{error}");
        let error = changes.add_routes(&[via("10.14.0.0/22", "172.99.13.1")]).unwrap_err().to_string();
        assert!(error.contains("unreachable"), "{error}");
        assert_eq!(changes.undo().failed.len(), 0);
        let mut left = Netlink::open().unwrap().routes().unwrap();
        left.retain(|route| !before.contains(route));
        assert_eq!(left, []);
    });
}

#[test]
fn what_killed_processes_leave_is_undone() {
    let place = Place::new();
    place.run(|| {
        let mut changes = place.ledger().begin("client").unwrap();
        changes.add_addresses("pg0", &many(100)).unwrap();
        changes.add_routes(&[local("10.64.0.0/10")]).unwrap();
        abandon(&place, changes);
    });
    // Some of it is gone already, with or without its interface.
    place.ip("addr del 10.16.0.7/16 dev pg0");
    let undone = place.ledger().undo_abandoned().unwrap();
    assert_eq!((undone.done.len(), undone.failed.len()), (2, 0), "{undone:?}");
    assert_eq!(place.addresses("pg0"), []);
    assert_eq!(place.run(local_routes), []);

    place.run(|| {
        let mut changes = place.ledger().begin("client").unwrap();
        changes.add_addresses("pg0", &many(2)).unwrap();
        abandon(&place, changes);
    });
    place.ip("link del pg0");
    assert_eq!(place.ledger().undo_abandoned().unwrap().failed.len(), 0);
    assert!(place.ledger().records().unwrap().is_empty());
}
