//! The addresses of robots and servers on this host: those that are missing are added for the time of a run.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;

use polygraph_addr::Addr;
use polygraph_netsetup::{
    Changes, Error, IpPrefix, Ledger, MAX_INTERFACE_ADDRESSES, Netlink, Route, RouteKind, SYSTEM_DIRECTORY,
    Undone, cover, networks,
};
use polygraph_plan::{BenchNeeds, HostNeeds, Test};
use polygraph_stats::Side;

use crate::{Failure, Notice, Notify};

/// The loopback interface.
const LOOPBACK: &str = "lo";
/// Networks that are named one by one in a message.
const NAMED_NETWORKS: usize = 2;

/// How a run gets addresses that its host does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressMode {
    /// As the workload says: AnyIP if it places addresses on the loopback interface, aliases if it names another one, and
    /// nothing if it names none.
    #[default]
    Auto,
    /// Each address is added to an interface: the one that the workload names, or loopback.
    Alias,
    /// Whole networks become local by one route each, which stands for any number of addresses.
    Anyip,
    /// Nothing is added.
    None,
}

/// Addresses that were added to this host for a run. They go when this is dropped.
#[derive(Debug)]
pub struct AddedAddresses {
    changes: Option<Changes>,
    notify: Notify,
}

impl AddedAddresses {
    /// Adds the missing addresses of the agents that these sides of a test have on this host, and says so. What a killed
    /// process left behind is removed first. `only`: the agents that this process runs have these addresses.
    ///
    /// # Errors
    /// If addresses have to be added and this process may not do that, or the kernel refuses.
    pub fn of_test(
        test: &Test,
        sides: &[Side],
        mode: AddressMode,
        only: Option<&[Addr]>,
        notify: Notify,
    ) -> Result<AddedAddresses, Failure> {
        let mut added = AddedAddresses { changes: None, notify };
        if mode == AddressMode::None {
            return Ok(added);
        }
        clean_up(notify);
        let agents = match &test.needs {
            Ok(needs) => match only {
                Some(only) => Ok(chosen(needs, sides, only)),
                None => on_this_host(needs, sides),
            },
            Err(why) => Err(why.clone()),
        };
        let agents = match agents {
            Ok(agents) => agents,
            Err(_) if mode == AddressMode::Auto => return Ok(added),
            Err(why) => return Err(Failure::usage(format!("no addresses can be added: {why}"))),
        };
        let plan = AddressPlan::new(&agents, mode)?;
        if plan.is_empty() || agents.iter().filter_map(|addr| addr.host.ip()).all(is_local) {
            return Ok(added);
        }
        let who = match sides {
            [Side::Client] => "robots",
            [Side::Server] => "servers",
            _ => "robots and servers",
        };
        let mut changes = Ledger::of_system()
            .and_then(|ledger| ledger.begin(&format!("addresses of {who}")))
            .map_err(|error| refused(error, who, &agents))?;
        let texts = plan.carry_out(&mut changes).map_err(|error| refused(error, who, &agents))?;
        texts.iter().for_each(|text| notify(Notice::Note(format!("addresses of {who}: {text}"))));
        added.changes = Some(changes);
        Ok(added)
    }
}

impl Drop for AddedAddresses {
    fn drop(&mut self) {
        if let Some(changes) = self.changes.take() {
            say_failures(&changes.undo(), self.notify);
        }
    }
}

/// Undoes what killed processes left behind. Only root can, and others have nothing to undo.
fn clean_up(notify: Notify) {
    if !Path::new(SYSTEM_DIRECTORY).is_dir() {
        return;
    }
    if let Ok(undone) = Ledger::of_system().and_then(|ledger| ledger.undo_abandoned()) {
        for change in &undone.done {
            notify(Notice::Note(format!("removed what a killed process had left: {change}")));
        }
        say_failures(&undone, notify);
    }
}

fn say_failures(undone: &Undone, notify: Notify) {
    for (change, error) in &undone.failed {
        notify(Notice::Warning(format!("not removed: {change}: {error}; `polygraph net clean` tries again")));
    }
}

fn refused(error: Error, who: &str, agents: &[Addr]) -> Failure {
    match error {
        Error::NotRoot { .. } => {
            let first = agents.iter().filter_map(|addr| addr.host.ip()).find(|ip| !is_local(*ip));
            let such = first.map_or_else(String::new, |ip| format!(" such as {ip}"));
            Failure::setup(anyhow::anyhow!(
                "this host does not have the addresses of {who}{such}, and adding them needs root: run the program with sudo, or add them \
                 beforehand (`sudo polygraph aka`)"
            ))
        }
        error @ Error::NoInterface { .. } => Failure::setup(anyhow::anyhow!(
            "the addresses of {who} cannot be added: {error}. Change the interface in the workload, or add --addresses anyip"
        )),
        error => Failure::setup(error),
    }
}

/// Whether agents of this host can use an address: it is one of this host, or in a network that is local (`ip route add
/// local`). Only binding to an address shows whether it is.
pub fn is_local(address: IpAddr) -> bool {
    let unusable = |kind| matches!(kind, ErrorKind::AddrNotAvailable | ErrorKind::Unsupported);
    !UdpSocket::bind((address, 0)).is_err_and(|error| unusable(error.kind()))
}

/// Leaves the robots or servers of other hosts out of a test, and says how many it has here. If none of the addresses is of
/// this host, the test stays as it is: starting its agents shows why.
pub fn keep_local(test: &mut Test, side: Side, notify: Notify) {
    let count = |test: &Test| match side {
        Side::Client => test.robot_count(),
        Side::Server => test.server_count(),
    };
    let all = count(test);
    let mut here = test.clone();
    here.keep_local(is_local);
    let local = count(&here);
    if (1..all).contains(&local) {
        let who = if side == Side::Client { "robots" } else { "servers" };
        notify(Notice::Note(format!(
            "this host runs {local} of {all} {who}: the others have addresses of other hosts"
        )));
        match side {
            Side::Client => (test.robots, test.share.robots) = (here.robots, here.share.robots),
            Side::Server => (test.servers, test.share.servers) = (here.servers, here.share.servers),
        }
    }
}

/// Leaves all robots or servers out of a test that have none of these addresses, and says how many are left. An address
/// without a port stands for all servers there.
///
/// # Errors
/// If an address belongs to no robot or server of the workload, or robots have no addresses.
pub fn keep_only(test: &mut Test, side: Side, only: &[Addr], notify: Notify) -> Result<(), Failure> {
    let count = |test: &Test| match side {
        Side::Client => test.robot_count(),
        Side::Server => test.server_count(),
    };
    let all = count(test);
    let listed: HashSet<(IpAddr, Option<u16>)> = only.iter().filter_map(listed).collect();
    let unknown = unknown_addresses(test, side, only);
    if let Some(first) = unknown.first() {
        return Err(Failure::usage(format!(
            "--only_addrs: no agent of this side has the address {first} ({} unknown in all)",
            unknown.len()
        )));
    }
    let is_chosen = |ip: IpAddr, port: Option<u16>| {
        listed.contains(&(ip, None)) || port.is_some() && listed.contains(&(ip, port))
    };
    test.keep_chosen(side, is_chosen).map_err(|why| Failure::usage(format!("--only_addrs: {why}")))?;
    let who = if side == Side::Client { "robots" } else { "servers" };
    notify(Notice::Note(format!("this process runs {} of {all} {who}, as --only_addrs says", count(test))));
    Ok(())
}

fn listed(addr: &Addr) -> Option<(IpAddr, Option<u16>)> {
    Some((addr.host.ip()?, addr.port))
}

/// The addresses of a list that belong to no agent of a side.
fn unknown_addresses<'a>(test: &Test, side: Side, only: &'a [Addr]) -> Vec<&'a Addr> {
    let mut known: HashSet<(IpAddr, Option<u16>)> = HashSet::new();
    match side {
        Side::Client => {
            known.extend(test.robots.iter().flat_map(|profile| &profile.addresses).map(|ip| (*ip, None)))
        }
        Side::Server => {
            for listen in test.servers.iter().flat_map(|servers| &servers.sites).map(|site| site.listen) {
                known.extend([(listen.ip(), None), (listen.ip(), Some(listen.port()))]);
            }
        }
    }
    only.iter().filter(|addr| !listed(addr).is_some_and(|listed| known.contains(&listed))).collect()
}

/// The addresses of the chosen agents, with the interfaces that the workload names for them.
fn chosen(needs: &BenchNeeds, sides: &[Side], only: &[Addr]) -> Vec<Addr> {
    let listed: HashSet<IpAddr> = only.iter().filter_map(|addr| addr.host.ip()).collect();
    let hosts = sides.iter().flat_map(|side| match side {
        Side::Client => &needs.clients,
        Side::Server => &needs.servers,
    });
    let agents = hosts.flat_map(|host| &host.agents);
    agents.filter(|addr| addr.host.ip().is_some_and(|ip| listed.contains(&ip))).cloned().collect()
}

/// The addresses of the agents on this host. An error says why they are not known.
fn on_this_host(needs: &BenchNeeds, sides: &[Side]) -> Result<Vec<Addr>, String> {
    let mut all = Vec::new();
    for side in sides {
        let (hosts, name) = match side {
            Side::Client => (&needs.clients, "client_side"),
            Side::Server => (&needs.servers, "server_side"),
        };
        let alone = sides.len() > 1;
        let is_this = |host: &&HostNeeds| alone || host.address.map_or(hosts.len() == 1, is_local);
        let ours: Vec<&HostNeeds> = hosts.iter().filter(is_this).collect();
        if ours.is_empty() && !hosts.is_empty() {
            return Err(match hosts.iter().all(|host| host.address.is_none()) {
                true => format!(
                    "the workload needs {} hosts, and its {name}.hosts does not say which one this is",
                    hosts.len()
                ),
                false => format!("this host has none of the addresses of {name}.hosts"),
            });
        }
        all.extend(ours.into_iter().flat_map(|host| host.agents.iter().cloned()));
    }
    Ok(all)
}

/// What is added to get the addresses of agents.
#[derive(Debug, Default, PartialEq, Eq)]
struct AddressPlan {
    /// Addresses that become local by routes, with the lengths of their networks.
    anyip: Vec<(IpAddr, Option<u8>)>,
    /// Addresses of interfaces, in order.
    aliases: BTreeMap<String, Vec<IpPrefix>>,
    mode: AddressMode,
}

impl AddressPlan {
    fn new(agents: &[Addr], mode: AddressMode) -> Result<AddressPlan, Failure> {
        let mut plan = AddressPlan { mode, ..AddressPlan::default() };
        for (addr, ip) in agents.iter().filter_map(|addr| Some((addr, addr.host.ip()?))) {
            // Everything in 127/8 is local already.
            if ip.is_loopback() || ip.is_unspecified() {
                continue;
            }
            let named = addr.interface.as_deref();
            let on_loopback = named.is_some_and(is_loopback);
            // A prefix length makes the whole network local on the loopback interface; here only the address should be.
            let alone = IpPrefix::host(ip);
            match (mode, named) {
                (AddressMode::None, _) | (AddressMode::Auto, None) => {}
                (AddressMode::Anyip, _) if ip.is_ipv6() => {
                    return Err(Failure::usage(format!(
                        "AnyIP is for IPv4, because the system lets programs use only those IPv6 addresses that an interface has: {ip} needs \
                         --addresses alias"
                    )));
                }
                (AddressMode::Auto, Some(_)) if on_loopback && ip.is_ipv4() => {
                    plan.anyip.push((ip, addr.subnet))
                }
                (AddressMode::Anyip, _) => plan.anyip.push((ip, addr.subnet)),
                (_, Some(name)) if !on_loopback => {
                    let prefix = IpPrefix { length: addr.subnet.unwrap_or(alone.length), ..alone };
                    plan.aliases.entry(name.to_owned()).or_default().push(prefix);
                }
                _ => plan.aliases.entry(LOOPBACK.to_owned()).or_default().push(alone),
            }
        }
        let most = plan.aliases.values().map(Vec::len).max().unwrap_or(0);
        if most > MAX_INTERFACE_ADDRESSES {
            return Err(Failure::usage(format!(
                "an interface would get {most} addresses, and {MAX_INTERFACE_ADDRESSES} is the limit: place them on the loopback interface \
                 (lo::...) or add --addresses anyip"
            )));
        }
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.anyip.is_empty() && self.aliases.is_empty()
    }

    /// Adds the addresses, and says what was done and why.
    fn carry_out(&self, changes: &mut Changes) -> Result<Vec<String>, Error> {
        let mut texts = Vec::new();
        if !self.anyip.is_empty() {
            let local = local_networks(&self.anyip)?;
            let route = |network: &IpPrefix| Route {
                network: *network,
                kind: RouteKind::Local { interface: LOOPBACK.to_owned() },
            };
            let routes: Vec<Route> = local.iter().map(route).collect();
            if changes.add_routes(&routes)? > 0 {
                texts.push(format!(
                    "{} by AnyIP, {}, because {}",
                    self.anyip.len(),
                    described(&routes),
                    self.reason("the workload places them on the loopback interface")
                ));
            }
        }
        for (interface, addresses) in &self.aliases {
            let count = changes.add_addresses(interface, addresses)?;
            if count > 0 {
                let why = match interface == LOOPBACK {
                    true => "AnyIP does not work with IPv6",
                    false => "the workload names this interface",
                };
                texts.push(format!("{count} aliases of {interface}, because {}", self.reason(why)));
            }
        }
        Ok(texts)
    }

    fn reason<'a>(&self, automatic: &'a str) -> &'a str {
        if self.mode == AddressMode::Auto { automatic } else { "--addresses says so" }
    }
}

fn is_loopback(interface: &str) -> bool {
    // The name in older documents is `lo0`.
    interface == LOOPBACK || interface == "lo0"
}

fn described(routes: &[Route]) -> String {
    match routes.len() {
        0..=NAMED_NETWORKS => routes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        many => format!("{many} routes such as {}", routes[0]),
    }
}

/// The networks to make local for these addresses. Whole networks as the workload names them must not hide other hosts, so
/// if this host has another route into one, the networks have exactly the addresses.
fn local_networks(addresses: &[(IpAddr, Option<u8>)]) -> Result<Vec<IpPrefix>, Error> {
    let whole = networks(addresses);
    let mut netlink = Netlink::open()?;
    let elsewhere = |route: &Route| match &route.kind {
        RouteKind::Unicast { .. } if route.network.length > 0 => Some(route.network),
        _ => None,
    };
    let others: Vec<IpPrefix> = netlink.routes()?.iter().filter_map(elsewhere).collect();
    let hides = whole.iter().any(|network| others.iter().any(|other| network.overlaps(*other)));
    Ok(if hides { cover(addresses.iter().map(|(ip, _)| *ip)) } else { whole })
}

#[cfg(test)]
mod tests {
    use polygraph_addr::{AddrRange, expand};

    use super::*;

    fn agents(ranges: &str) -> Vec<Addr> {
        expand(&AddrRange::parse_list(ranges).unwrap(), 1 << 20).unwrap()
    }

    /// How many addresses become local by routes, and those of interfaces.
    fn plan(ranges: &str, mode: AddressMode) -> (usize, String) {
        let plan = AddressPlan::new(&agents(ranges), mode).unwrap();
        let aliases = plan.aliases.iter().map(|(name, all)| format!("{name}: {}..", all[0]));
        (plan.anyip.len(), aliases.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_workload_decides_how_addresses_are_added() {
        use AddressMode::{Alias, Anyip, Auto, None};
        let both = "lo0::10.101.0.1-9/22 eth0::10.1.0.1-9/16";
        for (ranges, mode, anyip, aliases) in [
            ("lo0::10.101.0-3.1-250/22", Auto, 1000, ""),
            ("lo::10.101.0.1", Auto, 1, ""),
            ("eth0::10.1.0.1-9/16", Auto, 0, "eth0: 10.1.0.1/16.."),
            ("eth0::10.1.0.1-9", Auto, 0, "eth0: 10.1.0.1/32.."),
            (both, Auto, 9, "eth0: 10.1.0.1/16.."),
            ("lo::[fd00::1-9]/64", Auto, 0, "lo: fd00::1/128.."),
            ("10.1.0.1-9/16 127.0.0.1 lo::127.1.0.1 0.0.0.0:80", Auto, 0, ""),
            (both, None, 0, ""),
            (both, Anyip, 18, ""),
            (both, Alias, 0, "eth0: 10.1.0.1/16.. lo: 10.101.0.1/32.."),
            ("10.1.0.1-9/16", Anyip, 9, ""),
            ("10.1.0.1-9/16", Alias, 0, "lo: 10.1.0.1/32.."),
        ] {
            assert_eq!(plan(ranges, mode), (anyip, aliases.to_owned()), "{ranges} {mode:?}");
        }
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        for (ranges, mode, part) in [
            ("lo::[fd00::1]", AddressMode::Anyip, "--addresses alias"),
            ("eth0::10.0-1.0-255.0-255", AddressMode::Auto, "131072 addresses"),
        ] {
            let error = AddressPlan::new(&agents(ranges), mode).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_host_has_the_agents_of_its_own_address() {
        let host = |own: Option<&str>, ranges: &str| HostNeeds {
            address: own.map(|ip| ip.parse().unwrap()),
            agents: agents(ranges),
        };
        let needs = |hosts: Vec<HostNeeds>| BenchNeeds { clients: hosts, ..BenchNeeds::default() };
        let of = |hosts: Vec<HostNeeds>, sides: &[Side]| {
            on_this_host(&needs(hosts), sides)
                .map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        let two = || vec![host(Some("198.51.100.1"), "10.1.0.1"), host(Some("127.0.0.1"), "10.2.0.1")];
        assert_eq!(of(two(), &[Side::Client]).as_deref(), Ok("10.2.0.1"));
        assert_eq!(of(two(), &[Side::Client, Side::Server]).as_deref(), Ok("10.1.0.1 10.2.0.1"));
        assert_eq!(of(two(), &[Side::Server]).as_deref(), Ok(""));
        assert_eq!(of(vec![host(None, "10.1.0.1")], &[Side::Client]).as_deref(), Ok("10.1.0.1"));
        let elsewhere =
            of(vec![host(Some("198.51.100.1"), "10.1.0.1"), host(Some("198.51.100.2"), "")], &[Side::Client]);
        assert!(elsewhere.unwrap_err().contains("none of the addresses of client_side.hosts"));
        let unknown = of(vec![host(None, "10.1.0.1"), host(None, "10.2.0.1")], &[Side::Client]);
        assert!(unknown.unwrap_err().contains("needs 2 hosts"));
    }
}
