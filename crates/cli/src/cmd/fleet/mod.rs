//! `polygraph fleet`: the agents of a fleet. One file per subcommand; `run` is `polygraph run --fleet`.

mod ask;
mod exec_check;
mod logs;
mod result;
pub mod run;
mod workload;

use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand};
use polygraph_fleet::{AgentName, Fleet};
use polygraph_runner::Failure;

use crate::exit::Done;
use crate::options::NatsOptions;
use crate::options::fleet::{agent_name, failure};
use crate::options::values::duration;

/// Options of `fleet`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Runs are `polygraph run FILE.pg --fleet URL`. Examples:\n  \
        polygraph fleet ls --fleet nats://127.0.0.1:4222\n  \
        polygraph fleet exec-check --fleet nats://127.0.0.1:4222 --config polymix-4\n  \
        polygraph fleet logs runs/run-2026-11-23T12-00-00 --fleet nats://127.0.0.1:4222"
)]
pub struct Args {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand, Debug)]
enum FleetCommand {
    /// List the agents, with their hosts, clocks and runs
    Ls(ask::LsArgs),
    /// Check the hosts of all agents as `polygraph doctor --quick` does
    Doctor(ask::DoctorArgs),
    /// Ship a workload to all agents that would take part, and let their programs compile it; starts no load
    #[command(name = "exec-check")]
    ExecCheck(Box<exec_check::ExecCheckArgs>),
    /// Fetch logs that are missing in a result directory, and write its report again; or list the runs on the agents' disks
    Logs(logs::LogsArgs),
    /// End the processes of agents in order
    Stop(ask::StopArgs),
}

/// The fleet that a subcommand works with.
#[derive(ClapArgs, Clone, Debug)]
#[command(rename_all = "snake_case")]
struct FleetTarget {
    /// Servers of NATS, separated by commas; or ssh:HOSTS.toml
    #[arg(long, value_name = "URL")]
    fleet: String,
    /// Only these agents. Default: all that answer
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = agent_name)]
    agents: Vec<AgentName>,
    /// How long agents may take to answer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    wait: Duration,
    #[command(flatten)]
    nats: NatsOptions,
}

impl FleetTarget {
    async fn connect(&self) -> Result<Fleet, Failure> {
        Fleet::connect(&self.nats.bus(&self.fleet, "polygraph fleet")).await.map_err(failure)
    }
}

/// Carries out the subcommand.
pub fn run(args: Args) -> Done {
    let done = polygraph_fleet::block_on(async {
        match args.command {
            FleetCommand::Ls(args) => ask::ls(&args).await,
            FleetCommand::Doctor(args) => ask::doctor(&args).await,
            FleetCommand::ExecCheck(args) => exec_check::run(&args).await,
            FleetCommand::Logs(args) => logs::run(&args).await,
            FleetCommand::Stop(args) => ask::stop(&args).await,
        }
    });
    done.map_err(Failure::setup)?
}

/// The version of this program, with the formats on which processes of a run must agree.
pub fn version() -> String {
    format!("{} (log format {})", polygraph_stats::version(), polygraph_stats::log::VERSION)
}
