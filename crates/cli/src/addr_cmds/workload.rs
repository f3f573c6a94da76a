//! Options that name a workload file, and what address tools want from it.

use std::error::Error;
use std::io::{self, Write};

use clap::Args;
use polygraph_addr::{Addr, AgentGroup, Placement, SidePlan};
use polygraph_pgl::render::Style;
use polygraph_pgl::types::{Agent, BenchSide};
use polygraph_pgl::{DiskLoader, Options, Workload, compile};

/// A workload file and how to read it.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// The workload; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long = "cfg_dirs", alias = "cfg-dirs", value_name = "DIRS", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
    /// Give a top-level name or field a value: NAME=VALUE in PGL notation
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("a setting is NAME=VALUE, such as TheBench.peak_req_rate=100/sec".to_owned()),
    }
}

/// The zone, the addresses and the names of an address map.
pub struct Map {
    pub zone: String,
    pub addresses: Vec<Addr>,
    pub names: Vec<Addr>,
}

impl WorkloadArgs {
    /// Compiles the workload; findings go to standard error.
    pub fn load(&self) -> Result<Workload, Box<dyn Error>> {
        let file = self.config.as_deref().ok_or("no workload: give --config FILE")?;
        let options = Options {
            search_path: self.cfg_dirs.clone(),
            settings: self.settings.clone(),
            ..Options::default()
        };
        let compilation = compile(file, &DiskLoader, &options);
        io::stderr().write_all(compilation.render(Style::Plain).as_bytes())?;
        compilation.workload.ok_or_else(|| format!("{file} does not compile").into())
    }

    /// The one address map of the workload.
    pub fn map(&self) -> Result<Map, Box<dyn Error>> {
        let workload = self.load()?;
        let [map] = &workload.addr_maps[..] else {
            let count = workload.addr_maps.len();
            return Err(
                format!("zone files are made from one address map, and the workload uses {count}").into()
            );
        };
        let zone = map.zone.clone().ok_or("the address map has no zone: set its field `zone`")?;
        let names = map.names.iter().map(|name| name.addr.clone()).collect();
        Ok(Map { zone, addresses: map.addresses.clone(), names })
    }

    /// The agents of the workload on the machines of its bench.
    pub fn placement(&self) -> Result<Placement, Box<dyn Error>> {
        let workload = self.load()?;
        let bench = workload.bench.as_ref().ok_or("the workload uses no bench: add one with use()")?;
        let clients = side(bench.client_side.as_deref(), workload.robots.iter().map(|robot| &robot.agent));
        let servers = side(bench.server_side.as_deref(), workload.servers.iter().map(|server| &server.agent));
        for (name, side) in [("client_side", &clients), ("server_side", &servers)] {
            if side.hosts.is_empty() {
                writeln!(
                    io::stderr(),
                    "warning: {name}.hosts of the bench is not set, so its machines are left out"
                )?;
            }
        }
        Ok(Placement::new(clients, servers)?)
    }
}

fn side<'a>(bench: Option<&BenchSide>, agents: impl Iterator<Item = &'a Agent>) -> SidePlan {
    let group = |agent: &Agent| AgentGroup {
        kind: agent.kind.clone().unwrap_or_else(|| "-".to_owned()),
        addresses: agent.addresses.0.clone(),
    };
    SidePlan {
        hosts: bench.map(|side| side.hosts.clone()).unwrap_or_default(),
        aliases: bench.map(|side| side.addresses.0.clone()).unwrap_or_default(),
        groups: agents.map(group).collect(),
    }
}
