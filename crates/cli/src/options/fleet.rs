//! Options for the connection to NATS, and for runs with a fleet.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use polygraph_fleet::{AgentName, BusOptions, FleetError, LostPolicy};
use polygraph_runner::Failure;

use super::Optional;
use super::values::{duration, key_value, optional_time};

/// How a process proves to NATS who it is.
#[derive(Args, Clone, Debug, Default)]
#[command(rename_all = "snake_case", next_help_heading = "NATS")]
pub struct NatsOptions {
    /// File with the credentials for NATS (.creds)
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,
    /// File with certificates of authorities (PEM): the connection to NATS uses TLS, and the server must have a certificate of one of
    /// them
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Certificate of this client for NATS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Use NATS on another host without credentials. Whoever reaches it can start processes on all agents
    #[arg(long)]
    pub anonymous: bool,
}

impl NatsOptions {
    /// The connection to these servers.
    pub fn bus(&self, url: &str, client: &str) -> BusOptions {
        let NatsOptions { creds, tls_ca, tls_cert, tls_key, anonymous } = self.clone();
        let (url, client) = (url.to_owned(), client.to_owned());
        BusOptions { url, creds, tls_ca, tls_cert, tls_key, anonymous, client }
    }
}

/// How a run uses a fleet.
#[derive(Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    next_help_heading = "Fleet",
    mut_arg("creds", |arg| arg.requires("fleet")),
    mut_arg("tls_ca", |arg| arg.requires("fleet")),
    mut_arg("tls_cert", |arg| arg.requires("fleet")),
    mut_arg("tls_key", |arg| arg.requires("fleet")),
    mut_arg("anonymous", |arg| arg.requires("fleet")),
)]
pub struct FleetOptions {
    /// Run robots and servers on the agents of this NATS (`polygraph agent`): nats://HOST:PORT, several separated by commas; or on the hosts
    /// of a list, by ssh: ssh:HOSTS.toml (docs/fleet.md)
    #[arg(long, value_name = "URL", requires = "config")]
    pub fleet: Option<String>,
    /// Use only these agents. Default: all that answer within a second and have addresses of the workload
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "fleet", value_parser = agent_name)]
    pub agents: Vec<AgentName>,
    /// Time from the start of the first process to the first phase: within it, all processes must be ready
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "fleet", value_parser = duration)]
    pub start_in: Duration,
    /// Refuse agents whose clocks differ from that of this host by more than this; `none`: accept any difference
    #[arg(long, value_name = "TIME", default_value = "5ms", requires = "fleet", value_parser = optional_time)]
    pub clock_limit: Optional<f64>,
    /// What happens if an agent or process is lost. `fail`: the others end, and the run has failed; `degrade`: the others go on
    #[arg(long, value_name = "fail|degrade", default_value = "fail", requires = "fleet", value_parser = policy)]
    pub lost: LostPolicy,
    /// An agent that says nothing for this time is lost
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "fleet", value_parser = duration)]
    pub lost_after: Duration,
    /// Only show what each agent would do
    #[arg(long, requires = "fleet", action = ArgAction::SetTrue)]
    pub dry_run: bool,
    /// An option of `polygraph client` for the clients, without dashes; repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "fleet", value_parser = key_value)]
    pub client_opt: Vec<(String, String)>,
    /// An option of `polygraph server` for the servers, without dashes; repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "fleet", value_parser = key_value)]
    pub server_opt: Vec<(String, String)>,
    #[command(flatten)]
    pub nats: NatsOptions,
}

/// Reads the name of an agent.
pub fn agent_name(text: &str) -> Result<AgentName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn policy(text: &str) -> Result<LostPolicy, String> {
    match text {
        "fail" => Ok(LostPolicy::Fail),
        "degrade" => Ok(LostPolicy::Degrade),
        _ => Err("write fail or degrade".to_owned()),
    }
}

/// What a fleet could not do, as the failure of a command.
pub fn failure(error: FleetError) -> Failure {
    match error {
        FleetError::Usage(_) => Failure::usage(error),
        _ => Failure::setup(error),
    }
}
