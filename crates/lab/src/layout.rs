//! The hosts and networks of a lab, made of a lab file and the needs of a workload's bench.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use polygraph_addr::Addr;
use polygraph_netsetup::{IpPrefix, networks, separate};
use polygraph_plan::{BenchNeeds, HostNeeds};
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::file::{AgentPlaces, HostsFile, LabFile, addresses, check_name};

/// The port of a device if nothing names one.
const DEVICE_PORT: u16 = 8080;

/// What a host is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabRole {
    /// It runs robots.
    Client,
    /// It runs origin servers.
    Server,
    /// The device under test runs there.
    Device,
    /// Someone watches the others from there.
    Monitor,
    /// It forwards packets between networks.
    Router,
}

impl LabRole {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            LabRole::Client => "client",
            LabRole::Server => "server",
            LabRole::Device => "device",
            LabRole::Monitor => "monitor",
            LabRole::Router => "router",
        }
    }
}

/// A network: a switch to which hosts are connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabNetwork {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub subnet: IpPrefix,
    /// The rate of its links, in the notation of tc(8).
    pub rate: Option<String>,
    /// The largest packet in bytes.
    pub mtu: Option<u32>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabHost {
    /// Its name, for example `clt1`.
    pub name: String,
    /// What it is there for.
    pub role: LabRole,
    /// Its own addresses; interface `ethN` has the Nth one.
    pub addresses: Vec<IpAddr>,
    /// How it gets the addresses of its agents.
    pub places: AgentPlaces,
    /// The addresses of its agents other than its own.
    pub agents: Vec<IpAddr>,
    /// The networks of these addresses that other hosts reach through this host.
    pub routed: Vec<IpPrefix>,
    /// Delay and loss of its packets: the words of `polygraph net wan`; empty if there are none.
    pub wan: Vec<String>,
}

/// The workload of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabWorkload {
    /// The file.
    pub config: PathBuf,
    /// Directories for the files that it includes.
    pub cfg_dirs: Vec<String>,
    /// Values of names in it.
    pub set: Vec<(String, String)>,
    /// Whether it may run commands.
    pub allow_exec: bool,
}

/// A lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// The lab file.
    pub file: PathBuf,
    /// Its networks.
    pub networks: Vec<LabNetwork>,
    /// Its hosts.
    pub hosts: Vec<LabHost>,
    /// Where the device accepts requests.
    pub device: Option<SocketAddr>,
    /// The device to start unless the user names another one, with its parameters.
    pub default_device: Option<(String, BTreeMap<String, String>)>,
    /// The workload from which the addresses come.
    pub workload: Option<LabWorkload>,
    /// Whether hosts have their own addresses only: agents, routes, delay and loss are left to the user.
    pub bare: bool,
}

impl Lab {
    /// The lab of a file. `needs` are those of the workload, if there is one.
    ///
    /// # Errors
    /// If file and workload do not fit together.
    pub fn new(file: &LabFile, name: &str, needs: Option<&BenchNeeds>, bare: bool) -> Result<Lab> {
        build(file, name, needs, bare)
            .map_err(|problem| LabError::Description { path: file.path.clone(), problem })
    }

    /// The name of a host's network namespace.
    pub fn namespace(&self, host: &str) -> String {
        format!("{}{host}", namespace_prefix(&self.name))
    }

    /// The host of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn host(&self, name: &str) -> Result<&LabHost> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| LabError::NoHost {
            lab: self.name.clone(),
            host: name.to_owned(),
            known: self.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The hosts with this role.
    pub fn with_role(&self, role: LabRole) -> impl Iterator<Item = &LabHost> {
        self.hosts.iter().filter(move |host| host.role == role)
    }

    /// The network of an address of a host.
    pub fn network(&self, ip: IpAddr) -> Option<&LabNetwork> {
        self.networks.iter().find(|network| network.subnet.contains(ip))
    }
}

/// The start of the names of a lab's namespaces.
pub(crate) fn namespace_prefix(lab: &str) -> String {
    format!("pglab-{lab}-")
}

type Checked<T> = std::result::Result<T, String>;

fn build(file: &LabFile, name: &str, needs: Option<&BenchNeeds>, bare: bool) -> Checked<Lab> {
    check_name(name)?;
    let networks: Vec<LabNetwork> = file
        .networks
        .iter()
        .map(|(name, network)| LabNetwork {
            name: name.clone(),
            subnet: network.subnet,
            rate: network.rate.clone(),
            mtu: network.mtu,
        })
        .collect();
    check_overlap(&networks)?;
    let mut hosts = Vec::new();
    let sides = [
        (LabRole::Client, "clients", "clt", &file.clients, needs.map(|needs| &needs.clients)),
        (LabRole::Server, "servers", "srv", &file.servers, needs.map(|needs| &needs.servers)),
    ];
    for (role, section, word, described, needed) in sides {
        hosts.extend(side(role, section, word, described.as_ref(), needed.map(Vec::as_slice), bare)?);
    }
    for (role, described) in [(LabRole::Client, &file.clients), (LabRole::Server, &file.servers)] {
        let described = described.as_ref().filter(|described| described.has_wan() && !bare);
        for host in hosts.iter_mut().filter(|host| host.role == role) {
            host.wan = described.map_or_else(Vec::new, |described| wan(described, host, &networks));
        }
    }
    let device = device(file, needs)?;
    let single = |name: &str, role, addresses| LabHost {
        name: name.to_owned(),
        role,
        addresses,
        places: AgentPlaces::None,
        agents: Vec::new(),
        routed: Vec::new(),
        wan: Vec::new(),
    };
    hosts.extend(device.map(|address| single("device", LabRole::Device, vec![address.ip()])));
    if let Some(monitor) = &file.monitor {
        hosts.push(single("monitor", LabRole::Monitor, one("monitor", &monitor.address)?));
    }
    if let Some(router) = &file.router {
        let all = addresses(&router.addresses).map_err(|problem| format!("router: {problem}"))?;
        hosts.push(single("router", LabRole::Router, all));
    }
    check_addresses(&networks, &hosts)?;
    separate(&mut hosts.iter_mut().map(|host| (&mut host.routed, &host.agents[..])).collect::<Vec<_>>());
    check_families(&hosts)?;
    for host in &mut hosts {
        // Neighbours on the same switch need no routes.
        let near: Vec<IpPrefix> = networks.iter().map(|network| network.subnet).collect();
        if host.places == AgentPlaces::Aliases {
            host.routed.retain(|prefix| !near.iter().any(|subnet| subnet.contains(prefix.address)));
        }
    }
    Ok(Lab {
        name: name.to_owned(),
        summary: file.summary.clone(),
        file: file.path.clone(),
        networks,
        hosts,
        device,
        default_device: file
            .device
            .as_ref()
            .and_then(|device| Some((device.device.clone()?, device.options.clone()))),
        workload: None,
        bare,
    })
}

/// The hosts of clients or servers.
fn side(
    role: LabRole,
    section: &str,
    word: &str,
    described: Option<&HostsFile>,
    needed: Option<&[HostNeeds]>,
    bare: bool,
) -> Checked<Vec<LabHost>> {
    let Some(described) = described else {
        return match needed.map_or(0, <[HostNeeds]>::len) {
            0 => Ok(Vec::new()),
            count => {
                Err(format!("the workload needs {count} {section}: add [{section}] with their addresses"))
            }
        };
    };
    let listed =
        addresses(&described.addresses).map_err(|problem| format!("{section}.addresses: {problem}"))?;
    let plain: Vec<HostNeeds> = listed.iter().map(|_| HostNeeds::default()).collect();
    let needed = needed.unwrap_or(&plain);
    let mut hosts = Vec::new();
    for (index, need) in needed.iter().enumerate() {
        let own = need.address.or(listed.get(index).copied()).ok_or_else(|| {
            format!(
                "the workload needs {} {section}, and {section}.addresses has {}: add addresses, or lower the rate",
                needed.len(),
                listed.len()
            )
        })?;
        hosts.push(host(role, format!("{word}{}", index + 1), own, need, described, bare));
    }
    if hosts.is_empty() {
        return Err(format!(
            "there are no {section}: set {section}.addresses, for example \"10.16.0.61-62\""
        ));
    }
    Ok(hosts)
}

fn host(
    role: LabRole,
    name: String,
    own: IpAddr,
    need: &HostNeeds,
    described: &HostsFile,
    bare: bool,
) -> LabHost {
    let on_loopback = |addr: &Addr| addr.interface.as_ref().is_some_and(|name| name.starts_with("lo"));
    let others: Vec<(&Addr, IpAddr)> = need
        .agents
        .iter()
        .filter_map(|addr| Some((addr, addr.host.ip()?)))
        .filter(|(_, ip)| *ip != own)
        .collect();
    let by_workload = if others.iter().any(|(addr, _)| on_loopback(addr)) {
        AgentPlaces::Anyip
    } else {
        AgentPlaces::Aliases
    };
    let agents: Vec<IpAddr> = others.iter().map(|(_, ip)| *ip).collect();
    let with_subnets: Vec<(IpAddr, Option<u8>)> =
        others.iter().map(|(addr, ip)| (*ip, addr.subnet)).collect();
    LabHost {
        name,
        role,
        addresses: vec![own],
        places: if bare { AgentPlaces::None } else { described.agents.unwrap_or(by_workload) },
        agents,
        routed: networks(&with_subnets),
        wan: Vec::new(),
    }
}

/// The words of `polygraph net wan` for a host.
fn wan(described: &HostsFile, host: &LabHost, networks: &[LabNetwork]) -> Vec<String> {
    let own = networks.iter().map(|network| network.subnet);
    let own = own.filter(|subnet| host.addresses.iter().any(|ip| subnet.contains(*ip)));
    let matching: Vec<IpPrefix> = match described.matching {
        Some(prefix) => vec![prefix],
        None => {
            let subnets: Vec<IpPrefix> = own.collect();
            let apart = |prefix: &&IpPrefix| !subnets.iter().any(|subnet| subnet.contains(prefix.address));
            subnets.iter().chain(host.routed.iter().filter(apart)).copied().collect()
        }
    };
    let matching = matching.iter().map(IpPrefix::to_string).collect::<Vec<_>>().join(",");
    let options = [
        ("--delay", described.delay.clone()),
        ("--loss", described.loss.clone()),
        ("--match", Some(matching)),
    ];
    let given = options.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
    given.flatten().collect()
}

fn device(file: &LabFile, needs: Option<&BenchNeeds>) -> Checked<Option<SocketAddr>> {
    let named = needs.and_then(|needs| needs.device);
    let Some(device) = &file.device else {
        return match named {
            None => Ok(None),
            Some(address) => {
                Err(format!("the workload has a device at {address}: add an empty section [device]"))
            }
        };
    };
    let own = device.address.as_ref().map(|text| one("device", text)).transpose()?;
    let ip = match (named, own) {
        (Some(named), _) => named.ip(),
        (None, Some(own)) => own[0],
        (None, None) => {
            return Err("device: there is no address; write for example address = \"10.16.0.1\"".to_owned());
        }
    };
    let port = named.map(|named| named.port()).or(device.port).unwrap_or(DEVICE_PORT);
    Ok(Some(SocketAddr::new(ip, port)))
}

fn one(section: &str, text: &str) -> Checked<Vec<IpAddr>> {
    match addresses(text) {
        Ok(all) if all.len() == 1 => Ok(all),
        Ok(all) => Err(format!("{section}.address: one address is expected, and `{text}` are {}", all.len())),
        Err(problem) => Err(format!("{section}.address: {problem}")),
    }
}

/// Checks that other hosts can have routes to all agents.
fn check_families(hosts: &[LabHost]) -> Checked<()> {
    for host in hosts {
        let foreign =
            |prefix: &&IpPrefix| host.addresses.iter().all(|own| own.is_ipv4() != prefix.address.is_ipv4());
        if let Some(prefix) = host.routed.iter().find(foreign) {
            let (agents, own) = if prefix.address.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
            return Err(format!(
                "{}: its agents have {agents} addresses such as {prefix}, and the host has an {own} address: give both the same family",
                host.name
            ));
        }
    }
    Ok(())
}

fn check_overlap(networks: &[LabNetwork]) -> Checked<()> {
    for (index, network) in networks.iter().enumerate() {
        let overlaps = |other: &&LabNetwork| {
            other.subnet.contains(network.subnet.address) || network.subnet.contains(other.subnet.address)
        };
        if let Some(other) = networks[..index].iter().find(overlaps) {
            return Err(format!("networks {} and {} have addresses in common", other.name, network.name));
        }
    }
    Ok(())
}

fn check_addresses(networks: &[LabNetwork], hosts: &[LabHost]) -> Checked<()> {
    let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
    let known = || {
        let all = networks.iter().map(|network| format!("{} ({})", network.name, network.subnet));
        all.collect::<Vec<_>>().join(", ")
    };
    for host in hosts {
        for ip in host.addresses.iter().chain(&host.agents) {
            if ip.is_loopback() {
                return Err(format!(
                    "{} would have the address {ip}, which other hosts cannot reach: give the agents of the workload addresses of \
                     the lab, for example with --set",
                    host.name
                ));
            }
            if let Some(other) = owners.insert(*ip, &host.name) {
                return Err(format!("{other} and {} have the same address {ip}", host.name));
            }
        }
        for ip in &host.addresses {
            if !networks.iter().any(|network| network.subnet.contains(*ip)) {
                return Err(format!(
                    "{}: its address {ip} is in none of the networks {}: change the subnet or the address",
                    host.name,
                    known()
                ));
            }
        }
    }
    Ok(())
}
