//! Addresses that `aka` adds to interfaces of a host in a network namespace.

use rustix::process::Signal;

use crate::network::TwoHosts;
use crate::sandbox::{Done, Sandbox};

/// A host with an interface `cable`.
struct AkaHost {
    hosts: TwoHosts,
    sandbox: Sandbox,
}

impl AkaHost {
    fn new() -> AkaHost {
        AkaHost { hosts: TwoHosts::new(), sandbox: Sandbox::new() }
    }

    fn polygraph(&self, words: &str) -> Done {
        self.hosts.polygraph(0, &self.sandbox, words)
    }

    /// The output of `aka`, which must succeed.
    fn aka(&self, words: &str) -> String {
        let done = self.polygraph(&format!("aka {words}"));
        assert_eq!(done.code(), Some(0), "{words}: {done:?}");
        done.out
    }

    /// How many addresses an interface has.
    fn count(&self, interface: &str) -> usize {
        self.hosts.on(0, || {
            let mut netlink = polygraph_netsetup::Netlink::open().unwrap();
            let index = netlink.interface(interface).unwrap().index;
            let all = netlink.addresses().unwrap().into_iter();
            all.filter(|found| found.interface == index && !is_link_local(found.prefix.address)).count()
        })
    }

    /// The lines of `net status` about this host. Other tests have their own hosts.
    fn status(&self) -> String {
        let all = self.polygraph("net status").out;
        let name = self.hosts.name(0);
        all.lines().filter(|line| line.ends_with(name)).flat_map(|line| [line, "\n"]).collect()
    }
}

impl Drop for AkaHost {
    fn drop(&mut self) {
        // The records of these tests go before the namespace does.
        self.polygraph("aka cable --remove");
        self.polygraph("aka lo --remove");
    }
}

fn is_link_local(ip: std::net::IpAddr) -> bool {
    matches!(ip, std::net::IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[test]
fn addresses_are_added_replaced_shown_and_removed() {
    let host = AkaHost::new();
    let own = host.count("cable");
    assert_eq!(host.aka("cable 10.16.1-4.1-209"), "cable: 836 addresses added\n");
    assert_eq!(host.count("cable"), own + 836);
    // The other host reaches them.
    host.hosts.ip(1, "route add 10.16.0.0/16 via 10.77.0.1");
    let listening = host.hosts.on(0, || std::net::TcpListener::bind("10.16.4.209:0").unwrap());
    let place = listening.local_addr().unwrap();
    host.hosts.on(1, || std::net::TcpStream::connect(place).unwrap());
    assert_eq!(host.aka("cable 10.16.1-4.1-209"), "cable: 0 addresses added, 836 addresses there already\n");
    // A second call gives the interface other addresses, as the original does.
    let moved = host.aka("cable 10.16.4-5.1-209/16 [fd16::1-ff]");
    assert_eq!(moved, "cable: 836 addresses removed, 673 addresses added\n");
    assert_eq!(host.count("cable"), own + 418 + 255);
    assert_eq!(host.aka("cable 10.99.0.1 --keep"), "cable: 1 address added\n");
    let shown = host.aka("--list cable");
    for part in [
        "cable: 10.77.0.1/24",
        "cable added by aka: 10.16.4-5.1-209/16, 10.99.0.1/32, [fd16::1-ff]/128 (674)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let part = host.aka("cable [fd16::1-ff] 10.99.0.1 10.77.0.1 --remove");
    assert!(part.starts_with("cable: 256 addresses removed\ncable: 1 address stay"), "{part}");
    assert_eq!(host.count("cable"), own + 418);
    assert!(host.status().contains("aka cable (kept)"), "{}", host.status());
    assert_eq!(host.aka("cable"), "cable: 418 addresses removed\n");
    assert_eq!(host.count("cable"), own);
    assert_eq!(host.status(), "");
}

#[test]
fn thousands_of_addresses_in_one_batch() {
    let host = AkaHost::new();
    let own = host.count("cable");
    assert_eq!(host.aka("cable 10.16.1-20.1-250/16"), "cable: 5,000 addresses added\n");
    assert_eq!(host.count("cable"), own + 5000);
    assert_eq!(host.aka("cable --remove"), "cable: 5,000 addresses removed\n");
    assert_eq!(host.count("cable"), own);
}

#[test]
fn the_classic_name_and_loopback() {
    let host = AkaHost::new();
    host.sandbox.link("aka");
    let own = host.count("lo");
    // `lo0` is the name of the loopback interface in older documents.
    let done = host.hosts.run(0, &host.sandbox, "./aka lo0 10.101.0-3.1-250/22");
    assert_eq!((done.code(), done.out.as_str()), (Some(0), "lo: 1,000 addresses added\n"), "{done:?}");
    assert_eq!(host.count("lo"), own + 1000);
    let done = host.hosts.run(0, &host.sandbox, "./aka lo0");
    assert_eq!((done.code(), done.out.as_str()), (Some(0), "lo: 1,000 addresses removed\n"), "{done:?}");
}

#[test]
fn what_cannot_be_added_is_refused_and_nothing_is_left() {
    let host = AkaHost::new();
    let done = host.hosts.run(0, &host.sandbox, "sysctl -q -w net.ipv6.conf.lo.disable_ipv6=1");
    assert_eq!(done.code(), Some(0), "{done:?}");
    for (words, code, part) in [
        ("nowhere 10.16.1.1", 3, "there is no network interface nowhere on this host; there are lo, cable"),
        ("cable 10.16.1.1:80", 2, "no port"),
        ("cable w1.bench.tst", 2, "this is a name"),
        ("10.16.1.1", 2, "name the interface"),
        ("cable 10.16.1.1-2 255.255.255.255", 2, "no host can have this address"),
        // The interface takes no IPv6 addresses, and those of IPv4 before it go again.
        ("lo 10.16.1.1-2 [fd16::1]", 3, "adding address fd16::1/128"),
        ("cable --list 10.16.1.1", 2, "--list shows whole interfaces"),
    ] {
        let counts = || ["cable", "lo"].map(|interface| host.count(interface));
        let own = counts();
        let done = host.polygraph(&format!("aka {words}"));
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(part), "{words}: {done:?}");
        assert_eq!(counts(), own, "{words}");
    }
    assert_eq!(host.status(), "");
}

#[test]
fn kept_addresses_go_with_clean_all_only() {
    let host = AkaHost::new();
    let own = host.count("cable");
    host.aka("cable 10.16.1.1-250");
    host.polygraph("net clean");
    assert_eq!(host.count("cable"), own + 250);
    // `clean --all` would undo changes of other tests, too: what it does is what `undo` of the record does.
    host.hosts.on(0, || {
        let here = polygraph_netsetup::Namespace::current().unwrap();
        let ledger = polygraph_netsetup::Ledger::of_system().unwrap();
        let ours = ledger.records().unwrap().into_iter().filter(|record| record.namespace == here);
        let undone: Vec<String> = ours.flat_map(|record| record.undo().done).collect();
        assert_eq!(undone, ["250 addresses of cable, 10.16.1.1/32 to 10.16.1.250/32"]);
    });
    assert_eq!(host.count("cable"), own);
}

#[test]
fn a_killed_aka_leaves_nothing_that_clean_does_not_remove() {
    let host = AkaHost::new();
    let own = host.count("cable");
    // How much it has done by then differs; everything is removed in any case.
    for attempt in 0..6 {
        let running = host.hosts.start(0, &host.sandbox, "aka cable 10.16.1-160.1-250");
        std::thread::sleep(std::time::Duration::from_millis(20 * attempt));
        running.signal(Signal::KILL);
        let done = running.finish();
        if done.code() == Some(0) {
            host.aka("cable --remove");
        }
        // Another test may start a command that cleans up before this one does.
        let cleaned = host.polygraph("net clean");
        assert_eq!((cleaned.code(), host.count("cable")), (Some(0), own), "{cleaned:?}");
    }
}
