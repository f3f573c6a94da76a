//! Commands that compute the addresses of a bench: `pmix2-ips`, `pmix3-ips`, `webaxe4-ips`, `pgl2ips`, `dns-cfg`.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use polygraph_addr::{Addr, AddrRange, IpTable, PlacementScope, WebAxeLoads, expand, zone_files};
use polygraph_plan::bench_addresses::{AddressMap, address_map, placement};

use crate::lazy::Lazy;
use crate::options::workload::AddressWorkloadOptions;

/// A range with more names than this is probably a typing error.
const MAX_NAMES: u64 = 1 << 20;

/// Commands that compute the addresses of a bench.
#[derive(Debug, Subcommand)]
pub enum AddrCommand {
    /// Show the addresses of a PolyMix-2 bench
    #[command(name = "pmix2-ips", after_help = PMIX2_EXAMPLES)]
    Pmix2Ips(Lazy<PmixArgs>),
    /// Show the addresses of a PolyMix-3 bench, machine by machine
    #[command(name = "pmix3-ips", after_help = PMIX3_EXAMPLES)]
    Pmix3Ips(Lazy<PmixArgs>),
    /// Show the addresses or routes of a WebAxe-4 bench, machine by machine
    #[command(name = "webaxe4-ips", after_help = WEBAXE_EXAMPLES)]
    Webaxe4Ips(Lazy<WebaxeArgs>),
    /// Show the agents of a workload on each machine
    #[command(name = "pgl2ips", after_help = PGL2IPS_EXAMPLES)]
    Pgl2Ips(Lazy<Pgl2IpsArgs>),
    /// Write DNS zone files for an address map, and print the name server's configuration
    #[command(name = "dns-cfg", after_help = DNS_EXAMPLES)]
    DnsCfg(Lazy<DnsArgs>),
}

const PMIX2_EXAMPLES: &str = "\
Examples:
  polygraph pmix2-ips 16 1000         everything about bench 16 at 1000 requests/sec
  polygraph pmix2-ips 16 1000 clt2    addresses of the second client machine
  polygraph pmix2-ips 16 1000 srvs    addresses of all servers";

const PMIX3_EXAMPLES: &str = "\
Examples:
  polygraph pmix3-ips 16 1000         everything about bench 16 at 1000 requests/sec
  polygraph pmix3-ips 16 1000 clt2    addresses of the second client machine
  polygraph pmix3-ips 16 1000 srvs    addresses of all servers";

const WEBAXE_EXAMPLES: &str = "\
Examples:
  polygraph webaxe4-ips 101 1000                 everything about bench 101 at 1000 requests/sec
  polygraph webaxe4-ips 101 1000 clt2            addresses of the second client machine
  polygraph webaxe4-ips --route 101 1000 clts    networks of all client machines";

const PGL2IPS_EXAMPLES: &str = "\
Examples:
  polygraph pgl2ips --config polymix-4
  polygraph pgl2ips --config my.pg --host polyclt2                     one machine
  polygraph pgl2ips --config my.pg --host 172.16.101.62 --agent robot1 one kind of agents there
  polygraph pgl2ips --config my.pg --var polyclt2.ips                  one value";

const DNS_EXAMPLES: &str = "\
Examples:
  polygraph dns-cfg --config polymix-4
  polygraph dns-cfg --zone bench.tst --addresses '10.16.129-130.1-126' --names 'w[1-252].bench.tst'";

/// Options of `pmix2-ips` and `pmix3-ips`.
#[derive(Debug, Args)]
pub struct PmixArgs {
    /// Bench ID: the network is 10.BENCH.0.0
    bench: u8,
    /// Peak request rate in requests per second
    #[arg(value_parser = rate)]
    rate: f64,
    /// Show only these addresses: cltN, srvN, clts, srvs
    id: Option<String>,
}

/// Options of `webaxe4-ips`.
#[derive(Debug, Args)]
pub struct WebaxeArgs {
    /// Show networks as NET/SUBNET instead of addresses
    #[arg(long)]
    route: bool,
    /// Maximum load of a client machine in requests per second
    #[arg(long = "client_side.max_host_load", value_name = "N", value_parser = rate, default_value = "500")]
    client_host: f64,
    /// Maximum load of a server machine in requests per second
    #[arg(long = "server_side.max_host_load", value_name = "N", value_parser = rate, default_value = "500")]
    server_host: f64,
    /// Load of a robot in requests per second
    #[arg(long = "client_side.max_agent_load", value_name = "N", value_parser = rate, default_value = "0.4")]
    client_agent: f64,
    /// Maximum load of a server in requests per second
    #[arg(long = "server_side.max_agent_load", value_name = "N", value_parser = rate, default_value = "500")]
    server_agent: f64,
    /// Bench ID: robots have addresses in 10.BENCH.0-123, servers in 10.BENCH.128-251
    bench: u8,
    /// Peak request rate in requests per second
    #[arg(value_parser = rate)]
    rate: f64,
    /// Show only these addresses: cltN, srvN, clts, srvs
    id: Option<String>,
}

/// Options of `pgl2ips`.
#[derive(Debug, Args)]
pub struct Pgl2IpsArgs {
    #[command(flatten)]
    workload: AddressWorkloadOptions,
    /// Show only these agents: robotN, serverN, or their kind
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Show only this machine: polycltN, polysrvN, or its address
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Show one value: HOST.host, HOST.ips, HOST.agents, AGENT.kind, AGENT.ips, AGENT.agents
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
}

/// Options of `dns-cfg`.
#[derive(Debug, Args)]
pub struct DnsArgs {
    #[command(flatten)]
    workload: AddressWorkloadOptions,
    /// Zone: a domain, or "." for the root
    #[arg(long, alias = "domain", required_unless_present = "config", conflicts_with = "config")]
    zone: Option<String>,
    /// IP addresses of the names, as addresses or ranges
    #[arg(long, alias = "addrs", value_name = "RANGES", required_unless_present = "config",
          conflicts_with = "config", num_args = 1..)]
    addresses: Vec<String>,
    /// Names in the zone, as names or ranges
    #[arg(long, value_name = "RANGES", required_unless_present = "config", conflicts_with = "config", num_args = 1..)]
    names: Vec<String>,
    /// Directory for the zone files
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl AddrCommand {
    /// Runs the command. Errors go to standard error, with exit code 1.
    pub fn run(self) -> ExitCode {
        let done = match self {
            AddrCommand::Pmix2Ips(Lazy(args)) => args.text(false).and_then(show),
            AddrCommand::Pmix3Ips(Lazy(args)) => args.text(true).and_then(show),
            AddrCommand::Webaxe4Ips(Lazy(args)) => args.text().and_then(show),
            AddrCommand::Pgl2Ips(Lazy(args)) => args.text().and_then(show),
            AddrCommand::DnsCfg(Lazy(args)) => args.run(),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain("error", &error);
                ExitCode::FAILURE
            }
        }
    }
}

type AddressResult<T> = Result<T, Box<dyn Error>>;

impl PmixArgs {
    fn text(&self, per_machine: bool) -> AddressResult<String> {
        let table = IpTable::polymix3(self.bench, self.rate)?;
        Ok(match &self.id {
            Some(id) => table.ranges(id)? + "\n",
            None => table.polymix_text(per_machine),
        })
    }
}

impl WebaxeArgs {
    fn text(&self) -> AddressResult<String> {
        let loads = WebAxeLoads {
            client_host: self.client_host,
            client_agent: self.client_agent,
            server_host: self.server_host,
            server_agent: self.server_agent,
        };
        let table = IpTable::webaxe4(self.bench, self.rate, loads)?;
        Ok(match &self.id {
            id if self.route => table.routes(id.as_deref())?,
            Some(id) => table.ranges(id)? + "\n",
            None => table.webaxe_text(),
        })
    }
}

impl Pgl2IpsArgs {
    fn text(&self) -> AddressResult<String> {
        let workload = self.workload.load().map_err(|failure| failure.to_string())?;
        let (placement, warnings) = placement(&workload)?;
        warnings.iter().for_each(|warning| complain("warning", warning));
        let scope = PlacementScope { host: self.host.as_deref(), agent: self.agent.as_deref() };
        Ok(match &self.var {
            Some(name) => placement.variable(scope, name)? + "\n",
            None => placement.text(scope)?,
        })
    }
}

impl DnsArgs {
    fn run(&self) -> AddressResult<()> {
        let map = match &self.zone {
            Some(zone) => AddressMap {
                zone: zone.clone(),
                addresses: list(&self.addresses)?,
                names: list(&self.names)?,
            },
            None => address_map(&self.workload.load().map_err(|failure| failure.to_string())?)?,
        };
        let files = zone_files(&map.zone, &map.addresses, &map.names)?;
        for warning in &files.warnings {
            complain("warning", warning);
        }
        for (name, text) in [(&files.forward_name, &files.forward), (&files.reverse_name, &files.reverse)] {
            let path = self.dir.join(name);
            std::fs::write(&path, text)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        show(files.config)
    }
}

fn list(texts: &[String]) -> AddressResult<Vec<Addr>> {
    let mut ranges = Vec::new();
    for text in texts {
        ranges.extend(AddrRange::parse_list(text)?);
    }
    Ok(expand(&ranges, MAX_NAMES)?)
}

/// Reads a rate in requests per second, with or without `/sec`.
fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/sec").unwrap_or(text);
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("write a positive number of requests per second, for example 1000".to_owned()),
    }
}

fn show(text: String) -> AddressResult<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe (`| head`) is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

fn complain(kind: &str, message: &dyn std::fmt::Display) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "{kind}: {message}");
}
