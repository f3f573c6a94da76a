//! `polygraph agent`: waits on this host for runs of a fleet.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polygraph_addr::AddrRange;
use polygraph_engine::signals::StopSignals;
use polygraph_fleet::agent::{self, AgentEvent, host_name};
use polygraph_fleet::bus::STDIO;
use polygraph_fleet::{AgentName, AgentOptions, block_on};
use polygraph_runner::{Failure, addresses};

use super::fleet::version;
use crate::exit::Done;
use crate::options::NatsOptions;
use crate::options::fleet::{agent_name, failure};
use crate::options::live::runtime_directory;
use crate::output;

/// Options of `agent`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "The agent runs until Ctrl-C, which ends its processes in order. They go on if the agent is killed or NATS is gone. Examples:\n  \
        polygraph agent --nats nats://10.0.0.9:4222 --creds agent.creds --roles client\n  \
        polygraph agent --nats nats://127.0.0.1:4222 --name clt1 --logs /var/lib/polygraph"
)]
pub struct Args {
    /// Servers of NATS, separated by commas: nats://HOST:PORT, tls://HOST:PORT
    #[arg(long, value_name = "URL", required_unless_present = "stdio")]
    nats: Option<String>,
    /// Serve the controller that has started this agent with ssh, on standard input and output. The agent ends with the connection, and
    /// its processes go on
    #[arg(long, conflicts_with = "nats")]
    stdio: bool,
    /// What this host runs: client (robots), server (origin servers), or both
    #[arg(long, value_name = "client,server", value_delimiter = ',', default_value = "client,server", value_parser = ["client", "server"])]
    roles: Vec<String>,
    /// Name of the agent. Default: the name of the host up to the first dot
    #[arg(long, value_name = "NAME", value_parser = agent_name)]
    name: Option<AgentName>,
    /// Directory for logs and other files of runs, which stay there
    #[arg(long, value_name = "DIR", default_value = "polygraph-agent")]
    logs: PathBuf,
    /// Strength of this host: one with weight 2 gets twice the load of one with weight 1
    #[arg(long, value_name = "N", default_value = "1", value_parser = weight)]
    weight: f64,
    /// Addresses that processes here can use besides those that the host has now, for example because they add them; repeatable
    #[arg(long, value_name = "RANGE", value_parser = range)]
    addrs: Vec<AddrRange>,
    /// Accept workloads that may run commands (`run --allow_exec`)
    #[arg(long)]
    allow_exec: bool,
    #[command(flatten)]
    nats_options: NatsOptions,
}

fn weight(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0);
    number.ok_or_else(|| "write a positive number".to_owned())
}

fn range(text: &str) -> Result<AddrRange, String> {
    AddrRange::parse(text).map_err(|error| error.to_string())
}

/// Serves until Ctrl-C.
pub fn run(args: Args) -> Done {
    let name = args.name.unwrap_or_else(|| AgentName::of_host(&host_name()));
    let has = |role: &str| args.roles.iter().any(|known| known == role);
    let url = args.nats.unwrap_or_else(|| STDIO.to_owned());
    let options = AgentOptions {
        bus: args.nats_options.bus(&url, &format!("polygraph agent {name}")),
        client: has("client"),
        server: has("server"),
        weight: args.weight,
        logs: args.logs,
        addresses: args.addrs,
        allow_exec: args.allow_exec,
        live: runtime_directory(),
        program: std::env::current_exe().map_err(Failure::setup)?,
        version: version(),
        is_local: addresses::is_local,
        name,
    };
    if !args.stdio {
        output::note(&format!("agent {} waits for NATS at {}", options.name, shown(&url)));
    }
    block_on(async {
        let mut signals = StopSignals::new().map_err(Failure::setup)?;
        let stop = Box::pin(async move { signals.recv().await });
        agent::serve(options, stop, tell).await.map_err(failure)
    })
    .map_err(Failure::setup)??;
    Ok(ExitCode::SUCCESS)
}

/// Addresses without passwords.
fn shown(url: &str) -> String {
    let plain = |address: &str| match address.rsplit_once('@') {
        Some((_, place)) => place.to_owned(),
        None => address.to_owned(),
    };
    url.split(',').map(plain).collect::<Vec<_>>().join(",")
}

fn tell(event: AgentEvent) {
    match event {
        AgentEvent::Connected(peer) => output::note(&format!("connected to {peer}, ready for runs")),
        AgentEvent::Disconnected => output::warn("the connection is lost; processes go on"),
        AgentEvent::Note(text) => output::note(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("nats://u:secret@10.0.0.1:4222, tls://b"), "10.0.0.1:4222, tls://b");
    }
}
