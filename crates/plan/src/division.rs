//! The division of a test over hosts: which robots and servers each host runs.
//!
//! [`divide`] is a pure function: equal tests and hosts give equal divisions, on any machine. Each address of a side belongs to
//! exactly one host. Hosts receive load in proportion to their weights, and remainders go where they change the load per weight
//! least; of equal hosts, the first ones. Addresses stay in the order of the workload, so the share of a host is few ranges.
//!
//! The unit that cannot be divided is an address: all robots of an address are on one host. An address of a server includes its
//! port, so several processes can serve the same IP address.
//!
//! * this file: hosts, shares, errors, and the steps of the division.
//! * `apportionment`: how many units each host takes.
//! * `text`: the table for people.

mod apportionment;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use polygraph_addr::{Addr, AddrRange, compact, join};
use polygraph_robot::Profile;
use polygraph_stats::Side;
use serde::{Serialize, Serializer};

use self::apportionment::{LoadUnit, apportion};
use crate::test::{Test, rate};

/// A host that can run robots, servers or both.
#[derive(Clone, Debug, PartialEq)]
pub struct TestHost {
    /// The name of the host; no two hosts have the same one.
    pub name: String,
    /// True if the host may run robots.
    pub client: bool,
    /// True if the host may run servers.
    pub server: bool,
    /// The addresses that the host has. `None`: it can be given any.
    pub addresses: Option<BTreeSet<IpAddr>>,
    /// The strength of the host in comparison to others: one with weight 2 receives twice the load of one with weight 1.
    pub weight: f64,
    /// Number of processors that the host uses. `None`: all that it has.
    pub cores: Option<u32>,
}

/// What each host of a test does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Division {
    /// The hosts, in the order in which they were given.
    pub hosts: Vec<HostShare>,
}

/// What one host of a test does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostShare {
    /// The name of the host.
    pub host: String,
    /// Its robots, if it has any.
    pub client: Option<SideShare>,
    /// Its servers, if it has any.
    pub server: Option<SideShare>,
}

/// The robots or the servers of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideShare {
    /// The addresses in the order of the workload, without ports for robots, with ports for servers. They are what `--only_addrs`
    /// takes.
    #[serde(serialize_with = "as_ranges")]
    pub addresses: Vec<Addr>,
    /// Number of robots or servers.
    pub agents: usize,
    /// Requests per second at the busiest moment of the test: those that robots send, or those that servers receive if a device
    /// answers none. `None` if that depends on replies.
    pub rate: Option<f64>,
    /// Number of event loops. `None`: the command finds the number by itself.
    pub loops: Option<u32>,
}

/// Why a test cannot be divided.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DivisionError {
    /// Two hosts have the same name.
    #[error("two hosts have the name {0}: names must differ")]
    NameTwice(String),
    /// A host may run neither robots nor servers.
    #[error("the host {0} has no role: it must be a client, a server or both")]
    NoRole(String),
    /// The weight of a host is not a positive number.
    #[error("the weight of the host {0} is {1}: it must be a positive number")]
    BadWeight(String, f64),
    /// No host may run this side.
    #[error("no host may run {0}")]
    NoHost(&'static str),
    /// A host has none of the addresses of its roles.
    #[error("the host {0} has none of the addresses of {1} in the workload")]
    OwnsNothing(String, &'static str),
    /// No host of the side has these addresses.
    #[error("{count} addresses of {who} belong to no host: {ranges}")]
    NobodyOwns {
        /// Robots or servers.
        who: &'static str,
        /// Number of addresses.
        count: usize,
        /// The addresses as ranges.
        ranges: String,
    },
    /// Robots without addresses cannot be told apart.
    #[error("the robots `{0}` have no addresses, so hosts cannot share them: set the field `addresses`")]
    NoAddresses(String),
}

impl SideShare {
    /// The addresses as ranges, separated by commas.
    pub fn ranges(&self) -> String {
        join(&self.address_ranges(), ",")
    }

    /// The addresses as the shortest list of ranges, for `--only_addrs`.
    pub fn address_ranges(&self) -> Vec<AddrRange> {
        compact(self.addresses.iter().cloned())
    }
}

impl HostShare {
    /// The robots or servers of the host.
    pub fn side(&self, side: Side) -> Option<&SideShare> {
        match side {
            Side::Client => self.client.as_ref(),
            Side::Server => self.server.as_ref(),
        }
    }
}

/// Divides the robots and servers of a test over hosts.
///
/// Sides are divided independently of each other. A host that has both roles and weight 1 is as strong for robots as a host that
/// only runs robots. Where hosts own addresses, those that fewer hosts have are given out first, so that the others can balance the
/// load. A host receives nothing if there are more hosts than addresses, or if it is much weaker than the others.
///
/// # Errors
/// If the list of hosts contradicts itself, an address belongs to no host, or a host has addresses but none of the workload.
pub fn divide(test: &Test, hosts: &[TestHost]) -> Result<Division, DivisionError> {
    check(hosts)?;
    let robots = robots(test)?;
    let servers = servers(test);
    for host in hosts {
        let owns_one = |may: bool, places: &[Place]| may && places.iter().any(|place| owns(host, place));
        if host.addresses.is_some() && !owns_one(host.client, &robots) && !owns_one(host.server, &servers) {
            return Err(DivisionError::OwnsNothing(host.name.clone(), roles(host)));
        }
    }
    let clients = divide_side(&robots, hosts, Side::Client)?;
    let servers = divide_side(&servers, hosts, Side::Server)?;
    let shares = hosts.iter().zip(clients).zip(servers);
    let share = |((host, client), server): ((&TestHost, Option<SideShare>), Option<SideShare>)| {
        let mut share = HostShare { host: host.name.clone(), client, server };
        set_loops(&mut share, host.cores);
        share
    };
    Ok(Division { hosts: shares.map(share).collect() })
}

/// An address with all agents there.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    address: Addr,
    ip: IpAddr,
    agents: usize,
    rate: Option<f64>,
}

fn check(hosts: &[TestHost]) -> Result<(), DivisionError> {
    let mut names = BTreeSet::new();
    for host in hosts {
        if !names.insert(&host.name) {
            return Err(DivisionError::NameTwice(host.name.clone()));
        }
        if !host.client && !host.server {
            return Err(DivisionError::NoRole(host.name.clone()));
        }
        if !(host.weight.is_finite() && host.weight > 0.0) {
            return Err(DivisionError::BadWeight(host.name.clone(), host.weight));
        }
    }
    Ok(())
}

/// The addresses of robots, in the order in which the workload uses them.
fn robots(test: &Test) -> Result<Vec<Place>, DivisionError> {
    let busiest = test.busiest_load();
    let mut places = AddressList::default();
    for profile in test.robots.iter().filter(|profile| profile.count > 0) {
        if profile.addresses.is_empty() {
            return Err(DivisionError::NoAddresses(profile.name.clone()));
        }
        let each = rate_of_one(profile).map(|rate| rate * busiest);
        for ip in profile.addresses.iter().cycle().take(profile.count) {
            places.add(Addr::from(*ip), *ip, each);
        }
    }
    Ok(places.list)
}

fn rate_of_one(profile: &Profile) -> Option<f64> {
    Some(rate(profile)? / profile.count as f64)
}

/// The addresses of servers, in the order of the workload. Each of them is expected to receive the same share of the requests.
fn servers(test: &Test) -> Vec<Place> {
    let each = test.peak_rate().map(|rate| rate / test.server_count() as f64);
    let mut places = AddressList::default();
    for site in test.servers.iter().flat_map(|servers| &servers.sites) {
        let (ip, port) = (site.listen.ip(), site.listen.port());
        places.add(Addr::from(ip).with_port(Some(port)), ip, each);
    }
    places.list
}

/// Addresses that are collected one agent at a time.
#[derive(Default)]
struct AddressList {
    list: Vec<Place>,
    index: BTreeMap<(IpAddr, Option<u16>), usize>,
}

impl AddressList {
    fn add(&mut self, address: Addr, ip: IpAddr, rate: Option<f64>) {
        let next = self.list.len();
        let at = *self.index.entry((ip, address.port)).or_insert(next);
        if at == next {
            self.list.push(Place { address, ip, agents: 0, rate: Some(0.0) });
        }
        let place = &mut self.list[at];
        place.agents += 1;
        place.rate = place.rate.zip(rate).map(|(sum, more)| sum + more);
    }
}

fn owns(host: &TestHost, place: &Place) -> bool {
    host.addresses.as_ref().is_none_or(|addresses| addresses.contains(&place.ip))
}

fn roles(host: &TestHost) -> &'static str {
    match (host.client, host.server) {
        (true, true) => "robots and servers",
        (true, false) => who(Side::Client),
        _ => who(Side::Server),
    }
}

fn who(side: Side) -> &'static str {
    match side {
        Side::Client => "robots",
        Side::Server => "servers",
    }
}

/// The share of each host in the agents of a side.
fn divide_side(
    places: &[Place],
    hosts: &[TestHost],
    side: Side,
) -> Result<Vec<Option<SideShare>>, DivisionError> {
    let may = |host: &TestHost| if side == Side::Client { host.client } else { host.server };
    if !places.is_empty() && !hosts.iter().any(may) {
        return Err(DivisionError::NoHost(who(side)));
    }
    // The rates are the load, unless some robots have none that is known before the test.
    let by_rate = places.iter().all(|place| place.rate.is_some_and(|rate| rate > 0.0));
    let unit = |place: &Place| LoadUnit {
        load: place.rate.filter(|_| by_rate).unwrap_or(place.agents as f64),
        hosts: (0..hosts.len()).filter(|at| may(&hosts[*at]) && owns(&hosts[*at], place)).collect(),
    };
    let units: Vec<LoadUnit> = places.iter().map(unit).collect();
    let lost: Vec<&Place> =
        places.iter().zip(&units).filter(|(_, unit)| unit.hosts.is_empty()).map(|it| it.0).collect();
    if !lost.is_empty() {
        let ranges = join(&compact(lost.iter().map(|place| place.address.clone())), ",");
        return Err(DivisionError::NobodyOwns { who: who(side), count: lost.len(), ranges });
    }
    let weights: Vec<f64> = hosts.iter().map(|host| host.weight).collect();
    let mut shares: Vec<Option<SideShare>> = vec![None; hosts.len()];
    for (place, host) in places.iter().zip(apportion(&units, &weights)) {
        let share = shares[host].get_or_insert_with(|| SideShare {
            addresses: Vec::new(),
            agents: 0,
            rate: Some(0.0),
            loops: None,
        });
        share.addresses.push(place.address.clone());
        share.agents += place.agents;
        share.rate = share.rate.zip(place.rate).map(|(sum, more)| sum + more);
    }
    Ok(shares)
}

/// Sets the numbers of event loops on a host with this many processors: both sides of a host share them.
fn set_loops(share: &mut HostShare, cores: Option<u32>) {
    let Some(cores) = cores else { return };
    let both = share.client.is_some() && share.server.is_some();
    let (of_client, of_server) = if both { (cores.div_ceil(2), cores / 2) } else { (cores, cores) };
    if let Some(client) = &mut share.client {
        let needed = client_loops(client.rate, of_client.max(1) as usize).min(client.agents);
        client.loops = Some(u32::try_from(needed).unwrap_or(of_client).max(1));
    }
    if let Some(server) = &mut share.server {
        server.loops = Some(of_server.max(1));
    }
}

/// Requests per second that one loop of robots can easily send.
const EASY_RATE: f64 = 3_000.0;

/// Loops that robots need at this rate, no more than there are processors. Only robots of the same loop share their
/// objects, so fewer loops are better: in a short test with few requests, each loop would have few objects to repeat.
pub fn client_loops(peak_rate: Option<f64>, processors: usize) -> usize {
    peak_rate.map_or(processors, |rate| ((rate / EASY_RATE).ceil() as usize).clamp(1, processors))
}

fn as_ranges<S: Serializer>(addresses: &[Addr], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(compact(addresses.iter().cloned()).iter().map(AddrRange::to_string))
}
