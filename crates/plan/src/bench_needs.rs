//! How many hosts the bench of a workload needs, and which addresses each of them has.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use polygraph_addr::{Addr, xceil};
use polygraph_pgl::Workload;
use polygraph_pgl::types::{Agent, BenchSide};

/// The hosts that a workload needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchNeeds {
    /// The hosts of robots.
    pub clients: Vec<HostNeeds>,
    /// The hosts of servers.
    pub servers: Vec<HostNeeds>,
    /// The address of the device, if the workload names one.
    pub device: Option<SocketAddr>,
}

/// One host that a workload needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNeeds {
    /// Its own address, if the workload names it.
    pub address: Option<IpAddr>,
    /// The addresses of its agents.
    pub agents: Vec<Addr>,
}

impl BenchNeeds {
    /// One host with robots at these addresses.
    pub fn of_one_client(agents: Vec<Addr>) -> BenchNeeds {
        BenchNeeds { clients: vec![HostNeeds { address: None, agents }], ..BenchNeeds::default() }
    }

    /// The hosts that a workload needs.
    ///
    /// # Errors
    /// If agents cannot be shared among hosts, or have names instead of addresses.
    pub fn of(workload: &Workload) -> Result<BenchNeeds, String> {
        let bench = workload.bench.as_ref();
        let peak = workload.peak_req_rate;
        let proxies = bench.and_then(|bench| bench.proxy_side.as_deref());
        let device = proxies.and_then(|side| side.hosts.first());
        let clients = bench.and_then(|bench| bench.client_side.as_deref());
        let servers = bench.and_then(|bench| bench.server_side.as_deref());
        let (robots, sites) = (
            workload.robots.iter().map(|robot| &robot.agent),
            workload.servers.iter().map(|server| &server.agent),
        );
        Ok(BenchNeeds {
            clients: side("client_side", clients, robots, peak)?,
            servers: side("server_side", servers, sites, peak)?,
            device: device.and_then(|addr| Some(SocketAddr::new(addr.host.ip()?, addr.port?))),
        })
    }
}

/// The hosts of one side, which share its addresses in order.
fn side<'a>(
    name: &str,
    bench: Option<&BenchSide>,
    agents: impl Iterator<Item = &'a Agent>,
    peak: Option<f64>,
) -> Result<Vec<HostNeeds>, String> {
    let listed = bench.map(|side| side.addresses.0.clone()).unwrap_or_default();
    let of_agents = agents.flat_map(|agent| agent.addresses.0.iter().cloned());
    let all: Vec<Addr> = if listed.is_empty() { of_agents.collect() } else { listed };
    let mut seen = HashSet::new();
    let unique: Vec<Addr> =
        all.into_iter().filter(|addr| addr.host.ip().is_some() && seen.insert(addr.host.clone())).collect();
    let own = hosts(name, bench)?;
    let load = bench.and_then(|side| side.max_host_load).map(|load| load.0);
    let count = match own.len() {
        0 => peak.zip(load).map_or(1, |(peak, load)| xceil(peak, load).max(1)),
        listed => listed as u64,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if !unique.len().is_multiple_of(count) {
        return Err(format!(
            "{} addresses of agents do not divide evenly among {count} hosts of {name}: change {name}.hosts, \
             max_host_load or the request rate",
            unique.len()
        ));
    }
    let share = unique.len() / count;
    let host = |index: usize| HostNeeds {
        address: own.get(index).copied(),
        agents: unique[index * share..(index + 1) * share].to_vec(),
    };
    Ok((0..count).map(host).collect())
}

/// The addresses of the hosts of a side.
fn hosts(name: &str, bench: Option<&BenchSide>) -> Result<Vec<IpAddr>, String> {
    let mut found = Vec::new();
    for addr in bench.iter().flat_map(|side| &side.hosts) {
        let ip = addr.host.ip().ok_or_else(|| {
            format!("{name}.hosts has the name {addr}, and hosts of a lab need IP addresses")
        })?;
        // A host that is listed several times runs several workers.
        if !found.contains(&ip) {
            found.push(ip);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use polygraph_pgl::{Compilation, Options, compile};

    use super::*;

    fn needs(workload: &str, settings: &[(&str, &str)]) -> Result<BenchNeeds, String> {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = Options { settings, ..Options::default() };
        let Compilation { workload: found, .. } = compile(workload, &polygraph_pgl::DiskLoader, &options);
        BenchNeeds::of(&found.expect("the workload is correct"))
    }

    fn workload(name: &str) -> String {
        format!("{}/../../workloads/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn polymix_3_has_the_shares_of_the_address_table() {
        let settings = [
            ("TheBench.client_side.addr_mask", "'10.16.0.0'"),
            ("TheBench.server_side.addr_mask", "'10.16.0.0:80'"),
            ("TheBench.peak_req_rate", "1000/sec"),
            ("FillRate", "500/sec"),
            ("ProxyCacheSize", "1GB"),
        ];
        let needs = needs(&workload("polymix-3.pg"), &settings).unwrap();
        let text = |hosts: &[HostNeeds]| -> Vec<String> {
            let bare = |host: &HostNeeds| {
                let agents = host.agents.iter().map(|addr| Addr::new(addr.host.clone()));
                polygraph_addr::join(&polygraph_addr::compact(agents), ";")
            };
            hosts.iter().map(bare).collect()
        };
        // The table of the how-to.
        assert_eq!(text(&needs.clients), ["10.16.1-4.1-209", "10.16.5-8.1-209", "10.16.9-12.1-209"]);
        assert_eq!(
            text(&needs.servers),
            ["10.16.129-130.1-126", "10.16.131-132.1-126", "10.16.133-134.1-126"]
        );
        assert_eq!(needs.device, None);
    }

    #[test]
    fn webaxe_4_names_hosts_and_the_device() {
        let settings = [
            ("TheBench.client_side.addr_space", "['lo0::10.101.0-123.1-250/22']"),
            ("TheBench.client_side.hosts", "['172.16.101.61-62']"),
            ("TheBench.server_side.hosts", "['172.16.101.191-192:80']"),
            ("TheBench.proxy_side.hosts", "['172.16.101.32:80']"),
            ("TheBench.peak_req_rate", "1000/sec"),
            ("FillRate", "750/sec"),
            ("ProxyCacheSize", "1GB"),
            ("WSS", "1GB"),
        ];
        let needs = needs(&workload("webaxe-4.pg"), &settings).unwrap();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(needs.device, Some("172.16.101.32:80".parse().unwrap()));
        let own: Vec<_> =
            needs.clients.iter().chain(&needs.servers).filter_map(|host| host.address).collect();
        assert_eq!(own, ["172.16.101.61", "172.16.101.62", "172.16.101.191", "172.16.101.192"].map(ip));
        let first: Vec<_> = needs.clients.iter().map(|host| host.agents[0].to_string()).collect();
        assert_eq!(first, ["lo0::10.101.0.1/22", "lo0::10.101.4.1/22"]);
        assert!(needs.servers.iter().all(|host| host.agents.len() == 1));
    }
}
