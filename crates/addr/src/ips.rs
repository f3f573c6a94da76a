//! Address tables that people read before they set up a bench: what `pmix2-ips`, `pmix3-ips` and `webaxe4-ips` print.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use crate::{
    Addr, AddrRange, AddrScheme, Allocation, BenchRole, BenchSpec, HostRange, NumberRange, SchemeError,
    SchemeWarning, SideSpec, join,
};

/// A name on the command line that no machine has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Neither `clts`, `srvs`, `cltN` nor `srvN`.
    #[error("'{0}' is not a machine; write clt1, srv1 and so on, or clts or srvs for all of a side")]
    Unknown(String),
    /// A number beyond the last machine.
    #[error("there is no {id}: this side needs only {hosts} machines for the rate")]
    NoSuchHost {
        /// The name as written.
        id: String,
        /// The number of machines.
        hosts: u64,
    },
}

/// The addresses of both sides of a bench.
#[derive(Clone, Debug, PartialEq)]
pub struct IpTable {
    bench_id: u8,
    rate: f64,
    clients: AgentTable,
    servers: AgentTable,
}

#[derive(Clone, Debug, PartialEq)]
struct AgentTable {
    host_load: f64,
    agent_load: f64,
    allocation: Allocation,
}

/// The loads that `webaxe4-ips` computes with, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebAxeLoads {
    /// The load of one client machine.
    pub client_host: f64,
    /// The load of one robot.
    pub client_agent: f64,
    /// The load of one server machine.
    pub server_host: f64,
    /// The load of one server.
    pub server_agent: f64,
}

impl Default for WebAxeLoads {
    fn default() -> Self {
        WebAxeLoads { client_host: 500.0, client_agent: 0.4, server_host: 500.0, server_agent: 500.0 }
    }
}

impl IpTable {
    /// The table of PolyMix-2 and PolyMix-3: network 10.BENCH, 400 requests/sec per machine, 0.4 per robot.
    ///
    /// # Errors
    /// If the scheme cannot distribute the agents.
    pub fn polymix3(bench_id: u8, rate: f64) -> Result<Self, SchemeError> {
        let (host_load, agent_load) = (400.0, 0.4);
        let side = SideSpec {
            max_host_load: Some(host_load),
            max_agent_load: Some(agent_load),
            addr_mask: Some(IpAddr::from([10, bench_id, 0, 0]).into()),
            ..SideSpec::default()
        };
        let bench = BenchSpec {
            peak_req_rate: Some(rate),
            client_side: side.clone(),
            server_side: side,
            ..BenchSpec::default()
        };
        let table_side = |role| {
            let allocation = AddrScheme::PolyMix3.allocate(role, &bench)?;
            Ok(AgentTable { host_load, agent_load, allocation })
        };
        Ok(IpTable {
            bench_id,
            rate,
            clients: table_side(BenchRole::Robots)?,
            servers: table_side(BenchRole::Servers)?,
        })
    }

    /// The table of WebAxe-4: robots in 10.BENCH.0-123, two per address, and servers in 10.BENCH.128-251.
    ///
    /// Each machine owns a /22 as in the workload, or more where the loads need more addresses. The workload
    /// itself uses the real addresses of machines for servers; the server half of the table is for set-ups with
    /// aliases.
    ///
    /// # Errors
    /// If the scheme cannot distribute the agents.
    pub fn webaxe4(bench_id: u8, rate: f64, loads: WebAxeLoads) -> Result<Self, SchemeError> {
        let clients = webaxe_side(bench_id, BenchRole::Robots, rate, loads.client_host, loads.client_agent)?;
        let servers = webaxe_side(bench_id, BenchRole::Servers, rate, loads.server_host, loads.server_agent)?;
        Ok(IpTable { bench_id, rate, clients, servers })
    }

    /// The overview of a generation 3 bench, with one line per machine if asked.
    pub fn polymix_text(&self, per_machine: bool) -> String {
        let (robots, servers) = (&self.clients.allocation, &self.servers.allocation);
        let actual = robots.agents() as f64 * self.clients.agent_load;
        let mut out = String::new();
        let mut line = |label: &str, value: String, rest: String| {
            let _ = writeln!(out, "{:8}{label:<10}{value:>6}{rest}", "");
        };
        line("bench:", self.bench_id.to_string(), String::new());
        line("req.rate:", self.rate.to_string(), format!("/sec (actual: {actual:8.2}/sec)"));
        line("PCs:", robots.hosts().to_string(), "pairs".to_owned());
        line("robots:", robots.agents().to_string(), format!(" ({:4}/machine)", robots.agents_on(0)));
        line("servers:", servers.agents().to_string(), format!(" ({:4}/machine)", servers.agents_on(0)));
        out.push('\n');
        for (label, allocation) in [("rbt_ips:", robots), ("srv_ips:", servers)] {
            let _ = writeln!(out, "{:8}{label:<10}{:>20}", "", join(&allocation.addresses(), ";"));
            for (i, share) in allocation.shares.iter().enumerate().filter(|_| per_machine) {
                let _ = writeln!(out, "{:12}{} machine:{:>21}", "", ordinal(i + 1), join(share, ";"));
            }
        }
        out
    }

    /// Both sides of a generation 4 bench with their loads, subnets and the addresses of every machine.
    pub fn webaxe_text(&self) -> String {
        let mut out = format!("bench: {}\npeak_req_rate: {}/sec\n", self.bench_id, self.rate);
        for (name, side) in [("client_side", &self.clients), ("server_side", &self.servers)] {
            let allocation = &side.allocation;
            let subnet = side.subnet();
            let _ = writeln!(out, "\n{name}:");
            let mut line = |label: &str, value: String| {
                let _ = writeln!(out, "    {label:<20}{value}");
            };
            line("max_host_load:", format!("{}/sec", side.host_load));
            line("max_agent_load:", format!("{}/sec", side.agent_load));
            line("subnet:", format!("/{subnet}, {} addresses", usable(subnet)));
            line("hosts:", allocation.hosts().to_string());
            let sharing = match allocation.agents_per_addr {
                1 => String::new(),
                k => format!(", {k} per address"),
            };
            let per_host = allocation.agents_on(0);
            line("agents:", format!("{} ({per_host} per host{sharing})", allocation.agents()));
            for (i, share) in allocation.shares.iter().enumerate() {
                line(&format!("{} host:", ordinal(i + 1)), bare(share));
            }
        }
        out
    }

    /// One address range per machine for everything that `id` names (`clt2`, `srv1`, or `clts` and `srvs` for
    /// whole sides), without interface, port and subnet.
    ///
    /// # Errors
    /// If `id` names no side or machine of the table.
    pub fn ranges(&self, id: &str) -> Result<String, IdError> {
        let (side, host) = self.find(id)?;
        let allocation = &side.allocation;
        Ok(match host {
            Some(host) => bare(&allocation.shares[host]),
            None => bare(&allocation.addresses()),
        })
    }

    /// The network that each machine named by `id` (all machines without one) occupies, one `net/subnet` per
    /// line.
    ///
    /// # Errors
    /// If `id` names no side or machine of the table.
    pub fn routes(&self, id: Option<&str>) -> Result<String, IdError> {
        let route = |side: &AgentTable, host: usize| {
            let first = side.allocation.shares[host].first().and_then(|range| range.get(0));
            let subnet = side.subnet();
            first.map_or_else(String::new, |addr| format!("{}/{subnet}\n", network(&addr, subnet)))
        };
        let all =
            |side: &AgentTable| (0..side.allocation.shares.len()).map(|i| route(side, i)).collect::<String>();
        match id {
            None => Ok(all(&self.clients) + &all(&self.servers)),
            Some(id) => match self.find(id)? {
                (side, Some(host)) => Ok(route(side, host)),
                (side, None) => Ok(all(side)),
            },
        }
    }

    /// The side that a name means, and the machine unless the name means all of them.
    fn find(&self, id: &str) -> Result<(&AgentTable, Option<usize>), IdError> {
        let unknown = || IdError::Unknown(id.to_owned());
        let (side, rest) = match (id.strip_prefix("clt"), id.strip_prefix("srv")) {
            (Some(rest), _) => (&self.clients, rest),
            (_, Some(rest)) => (&self.servers, rest),
            _ => return Err(unknown()),
        };
        if rest == "s" {
            return Ok((side, None));
        }
        let number: usize = rest.parse().map_err(|_| unknown())?;
        match number.checked_sub(1).filter(|host| *host < side.allocation.shares.len()) {
            Some(host) => Ok((side, Some(host))),
            None => Err(IdError::NoSuchHost { id: id.to_owned(), hosts: side.allocation.hosts() }),
        }
    }
}

impl AgentTable {
    /// The prefix length of the network that one machine owns.
    fn subnet(&self) -> u8 {
        self.allocation.shares.iter().flatten().filter_map(|range| range.subnet).min().unwrap_or(32)
    }
}

fn webaxe_side(
    bench_id: u8,
    role: BenchRole,
    rate: f64,
    host_load: f64,
    agent_load: f64,
) -> Result<AgentTable, SchemeError> {
    let (first, last, agents_per_addr) = match role {
        BenchRole::Servers => (128, 251, Some(1)),
        _ => (0, 123, Some(2)),
    };
    let allocate = |subnet: u8| {
        let octets = [
            NumberRange::one(10),
            NumberRange::one(bench_id.into()),
            NumberRange { lo: first, hi: last },
            NumberRange { lo: 1, hi: 250 },
        ];
        let space =
            AddrRange { interface: None, host: HostRange::V4(octets), port: None, subnet: Some(subnet) };
        let side = SideSpec {
            max_host_load: Some(host_load),
            max_agent_load: Some(agent_load),
            addr_space: vec![space],
            ..SideSpec::default()
        };
        // Servers on aliases are distributed like robots, but from their own half of the network.
        let bench = BenchSpec { peak_req_rate: Some(rate), client_side: side, ..BenchSpec::default() };
        AddrScheme::WebAxe4 { agents_per_addr }.allocate(BenchRole::Robots, &bench)
    };
    let standard = allocate(22)?;
    let wider = standard.warnings.iter().find_map(|warning| match warning {
        SchemeWarning::SubnetTooSmall { needed, .. } => Some(*needed),
        _ => None,
    });
    let allocation = wider.map_or(Ok(standard), allocate)?;
    Ok(AgentTable { host_load, agent_load, allocation })
}

/// The ranges without interface, port and subnet.
fn bare(ranges: &[AddrRange]) -> String {
    let strip = |range: &AddrRange| AddrRange { interface: None, port: None, subnet: None, ..range.clone() };
    join(&crate::merge_all(ranges.iter().map(strip)), ";")
}

/// Addresses in a subnet when the fourth octet runs from 1 to 250.
fn usable(subnet: u8) -> u64 {
    match subnet {
        0..=24 => 250 << (24 - subnet),
        _ => 1 << (32 - subnet),
    }
}

fn network(addr: &Addr, subnet: u8) -> Ipv4Addr {
    match addr.host.ip() {
        Some(IpAddr::V4(ip)) => {
            Ipv4Addr::from(u32::from(ip) & u32::MAX.checked_shl(32 - u32::from(subnet)).unwrap_or(0))
        }
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

fn ordinal(n: usize) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}
