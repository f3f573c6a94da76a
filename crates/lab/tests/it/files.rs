//! Lab files: what they say, and what is wrong with them.

use std::path::Path;

use polygraph_addr::{Addr, AddrRange};
use polygraph_lab::{AgentPlaces, Lab, LabFile};
use polygraph_plan::{BenchNeeds, HostNeeds};

/// A small lab file.
pub const SMALL: &str = r#"
[networks.lan]
subnet = "10.55.0.0/24"
[clients]
addresses = "10.55.0.1"
[servers]
addresses = "10.55.0.2"
"#;

/// The lab of a text, or why there is none.
pub fn lab(text: &str, needs: Option<&BenchNeeds>) -> Result<Lab, String> {
    let file = LabFile::parse(text, Path::new("/labs/small.toml"))?;
    Lab::new(&file, "small", needs, false).map_err(|error| error.to_string())
}

/// A host whose agents have these addresses.
pub fn host(own: Option<&str>, agents: &str) -> HostNeeds {
    let agents: Vec<Addr> = AddrRange::parse_list(agents).unwrap().iter().flatten().collect();
    HostNeeds { address: own.map(|ip| ip.parse().unwrap()), agents }
}

#[test]
fn shipped_files_are_right() {
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs")).unwrap() {
        let file = LabFile::read(&file.unwrap().path()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!file.summary.is_empty(), "{}", file.path.display());
        assert!(file.workload_path().is_none_or(|path| path.is_file()), "{}", file.path.display());
        file.name().unwrap();
    }
}

#[test]
fn mistakes_name_the_place_and_the_remedy() {
    let changed = |from: &str, to: &str| SMALL.replace(from, to);
    let cases = [
        (changed("[clients]", "[client]"), "unknown field `client`"),
        (changed("subnet =", "net ="), "unknown field `net`"),
        (changed("10.55.0.0/24", "10.55.0.1/24"), "write for example 10.55.0.0/24"),
        (changed("10.55.0.0/24", "10.55.0.0"), "an address and no network: write for example 10.55.0.0/24"),
        (changed("networks.lan", "networks.Lan"), "small letters and digits"),
        (changed("networks.lan", "networks.alongname"), "1 to 8"),
        (
            changed("\"10.55.0.1\"", "\"10.55.1.1\""),
            "clt1: its address 10.55.1.1 is in none of the networks lan",
        ),
        (changed("\"10.55.0.1\"", "\"10.55.0.2\""), "clt1 and srv1 have the same address"),
        (changed("\"10.55.0.1\"", "\"\""), "clients.addresses"),
        (changed("\"10.55.0.1\"", "\"host.name\""), "write an IP address"),
        (changed("\"10.55.0.1\"", "\"10.55.0.1-\""), "clients.addresses"),
        (changed("\"10.55.0.1\"", "\"10.55.0-9.0-255\""), "more than 250"),
        (changed("[clients]", "[clients]\ndelay = \"40\""), "clients: delay: `40` is not a distribution"),
        (changed("[clients]", "[clients]\nloss = \"2\""), "clients: loss:"),
        (changed("[clients]", "[clients]\nmatch = \"10.0.0.0/8\""), "no effect without delay"),
        (changed("[clients]", "[clients]\nagents = \"some\""), "unknown variant `some`"),
        (changed("subnet", "rate = \"100\"\nsubnet"), "write for example 100mbit"),
        (changed("subnet", "mtu = 100\nsubnet"), "576 to 65535"),
        (format!("{SMALL}[networks.b]\nsubnet = \"10.55.0.0/16\"\n"), "addresses in common"),
        (format!("{SMALL}[device]\nport = 80\n"), "device: there is no address"),
        (format!("{SMALL}[device]\naddress = \"10.55.0.3-4\"\n"), "one address is expected"),
        ("[networks.lan]\nsubnet = \"10.0.0.0/8\"\n".to_owned(), "there are no hosts"),
        ("[clients]\n[networks]\n".to_owned(), "there is no network"),
        ("networks".to_owned(), "TOML parse error at line 1"),
    ];
    for (text, part) in cases {
        let error = lab(&text, None).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn names_of_labs_come_from_files() {
    let named = |path: &str| LabFile::parse(SMALL, Path::new(path)).unwrap().name();
    assert_eq!(named("/x/polymix-3.toml").unwrap(), "polymix-3");
    for path in ["/x/Big.toml", "/x/a b.toml", "/x/-a.toml", "/"] {
        let error = named(path).unwrap_err().to_string();
        assert!(error.contains("cannot be the name of a lab") && error.contains("--name"), "{error}");
    }
}

#[test]
fn workloads_decide_on_hosts() {
    let needs = BenchNeeds {
        clients: vec![host(None, "10.55.0.10-11"), host(None, "10.55.0.20-21")],
        servers: vec![host(Some("10.55.0.9"), "10.55.0.9:80")],
        device: None,
    };
    let error = lab(SMALL, Some(&needs)).unwrap_err();
    assert!(error.contains("the workload needs 2 clients, and clients.addresses has 1"), "{error}");
    let text = SMALL.replace("\"10.55.0.1\"", "\"10.55.0.1,10.55.0.3-5\"");
    let lab = lab(&text, Some(&needs)).unwrap();
    let shown: Vec<String> = lab
        .hosts
        .iter()
        .map(|host| format!("{} {:?} {:?} {:?}", host.name, host.addresses, host.agents, host.places))
        .collect();
    assert_eq!(
        shown,
        [
            "clt1 [10.55.0.1] [10.55.0.10, 10.55.0.11] Aliases",
            "clt2 [10.55.0.3] [10.55.0.20, 10.55.0.21] Aliases",
            // The server is the host itself.
            "srv1 [10.55.0.9] [] Aliases",
        ]
    );
    assert!(lab.hosts.iter().all(|host| host.routed.is_empty()), "all of them are on the same switch");
}

#[test]
fn agents_on_loopback_interfaces_are_local_networks() {
    let needs = BenchNeeds {
        clients: vec![host(None, "lo0::10.101.0-3.1-250/22"), host(None, "lo0::10.101.4-7.1-250/22")],
        servers: vec![host(None, "10.55.0.2:80")],
        device: None,
    };
    let text = SMALL.replace("\"10.55.0.1\"", "\"10.55.0.61-62\"");
    let lab = lab(&text, Some(&needs)).unwrap();
    assert!(lab.hosts[..2].iter().all(|host| host.places == AgentPlaces::Anyip && host.agents.len() == 1000));
    let routed: Vec<String> =
        lab.hosts.iter().flat_map(|host| &host.routed).map(ToString::to_string).collect();
    assert_eq!(routed, ["10.101.0.0/22", "10.101.4.0/22"]);
}

#[test]
fn loopback_addresses_and_missing_sections_are_refused() {
    let clients = |agents: &str| BenchNeeds {
        clients: vec![host(None, agents)],
        servers: vec![host(None, "10.55.0.2:80")],
        device: None,
    };
    let error = lab(SMALL, Some(&clients("127.16.1.1-9"))).unwrap_err();
    assert!(error.contains("other hosts cannot reach"), "{error}");
    let without = SMALL.replace("[clients]\naddresses = \"10.55.0.1\"\n", "");
    let error = lab(&without, Some(&clients("10.55.0.9"))).unwrap_err();
    assert!(error.contains("add [clients]"), "{error}");
    let needs = BenchNeeds { device: Some("10.55.0.7:80".parse().unwrap()), ..clients("10.55.0.9") };
    assert!(lab(SMALL, Some(&needs)).unwrap_err().contains("add an empty section [device]"));
    let lab = lab(&format!("{SMALL}[device]\n"), Some(&needs)).unwrap();
    assert_eq!(lab.device, needs.device);
}
