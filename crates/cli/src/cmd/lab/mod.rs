//! `polygraph lab`: benches of network namespaces on this machine. One file per subcommand.

mod exec;
mod run;
mod status;
mod target;
mod up;

use clap::{Parser, Subcommand};
use polygraph_lab::LabError;
use polygraph_runner::Failure;

use crate::exit::Done;

/// Options of `lab`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Labs need root. Examples:\n  \
        polygraph lab up polymix-3 --set TheBench.peak_req_rate=20/sec\n  \
        polygraph lab run polymix-3 --no_proxy --scale 1/120\n  \
        polygraph lab run polymix-3 --device squid --device_opt mem=64MB --scale 1/120\n  \
        polygraph lab exec polymix-3 clt1 -- ping -c 3 10.16.129.1\n  \
        polygraph lab down polymix-3"
)]
pub struct Args {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand, Debug)]
enum LabCommand {
    /// Make the hosts of a lab, which stay until `lab down`
    Up(up::UpArgs),
    /// Run a test in a lab: servers, a device and clients on their hosts, then one report
    Run(Box<run::RunArgs>),
    /// Run a command on a host of a lab
    Exec(exec::ExecArgs),
    /// Show the labs that are up, with their hosts
    Status(status::StatusArgs),
    /// Remove a lab with all processes in it
    Down(status::DownArgs),
}

/// Carries out the subcommand.
pub fn run(args: Args) -> Done {
    match args.command {
        LabCommand::Up(args) => up::run(&args),
        LabCommand::Run(args) => run::run(*args),
        LabCommand::Exec(args) => exec::run(&args),
        LabCommand::Status(args) => status::status(&args),
        LabCommand::Down(args) => status::down(&args),
    }
}

/// An obstacle of a lab as the failure of a command.
fn failure(error: LabError) -> Failure {
    match error {
        LabError::Description { .. } | LabError::NotUp { .. } | LabError::NoHost { .. } => {
            Failure::usage(error)
        }
        LabError::State { .. } => Failure::data(error),
        LabError::File { .. }
        | LabError::AlreadyUp(_)
        | LabError::CableDown { .. }
        | LabError::Network(_) => Failure::setup(error),
    }
}

/// Checks the rights for labs, with a message that says what needs them.
fn require_root() -> Result<(), Failure> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Failure::setup(anyhow::anyhow!(
            "labs need root, because they consist of network namespaces: run the command with sudo"
        ))),
    }
}
