//! `polygraph`: one binary, its subcommands, and the classic names by `argv[0]`.

mod addr_cmds;
mod cmd;
mod console;
mod content_files;
mod device;
mod facts;
mod jobs;
mod later;
mod names;
mod options;
mod outside;
mod pgl_cmds;
mod power;
mod processes;
mod repair;
mod service;
mod source;
mod working_set;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Exit codes (docs/exit-codes.md).
pub mod exit {
    /// All is well.
    pub const OK: u8 = 0;
    /// The run failed or is not valid.
    pub const FAILED: u8 = 1;
    /// The command line is wrong.
    pub const USAGE: u8 = 2;
    /// Something needed on this machine is missing or in use.
    pub const SETUP: u8 = 3;
    /// A log cannot be read, or has not what was asked for.
    pub const DATA: u8 = 4;
    /// Stopped by the user; what was measured is kept.
    pub const INTERRUPTED: u8 = 130;
}

#[derive(Parser)]
#[command(
    name = "polygraph",
    version,
    about = "Measures HTTP intermediaries: simulates robots on one side of a device and origin servers on the other",
    after_help = "Start with `polygraph try`: everything on this machine, 40 seconds, a report at the end.\n\
                  Classic names (polyclt, polysrv, lx, lr, pmix3-ips ...) work as links to this program."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A first run: origins, the built-in caching proxy and robots on this machine, then a report
    Try(cmd::try_run::Args),
    /// Both sides on this machine against a device you name
    Run(cmd::run::Args),
    /// The highest rate at which a device holds
    Peak(cmd::peak::PeakArgs),
    /// Kills the device in the middle of a test, starts it again, and says when robots had it back
    Downtime(cmd::downtime::Args),
    /// Devices that `run --device` can start, and what is on this machine
    Devices(cmd::devices::Args),
    /// Robots (classic name: polyclt)
    Client(cmd::client::Args),
    /// Origin servers (classic name: polysrv)
    Server(cmd::server::Args),
    /// The built-in caching proxy
    Proxy(cmd::proxy::Args),
    /// A name server for the names of a workload
    Dns(cmd::dns::Args),
    /// Statistics of logs (classic name: lx)
    Lx(cmd::logs::LxArgs),
    /// A log as text (classic name: lr)
    Lr(cmd::logs::LrArgs),
    /// An HTML report of logs or of a result directory
    Report(cmd::logs::ReportArgs),
    /// The classic names of this program, for `make install`
    #[command(hide = true, name = "installed-names")]
    ClassicNames,
    /// A part of a run whose sides need several processes; started by the others, not by people
    #[command(hide = true, name = polygraph_engine::relay::WORKER)]
    Worker,
    #[command(flatten)]
    Addresses(addr_cmds::AddrCommand),
    #[command(flatten)]
    Workloads(pgl_cmds::PglCommand),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let (words, repairs) = repair::command_line(words, &Cli::command());
    for repair in &repairs {
        console::warn(&format!("understood {} as {}", repair.was, repair.is));
    }
    let matches = match Cli::command().try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            if error.kind() == clap::error::ErrorKind::UnknownArgument
                && words.get(1).is_some_and(|command| ["client", "server", "run"].contains(&command.as_str()))
                && let Some(text) = later::explain(&words)
            {
                return console::failure(&Failure::usage(text));
            }
            return console::usage(&error);
        }
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return console::usage(&error),
    };
    let done = match cli.command {
        Command::Try(args) => cmd::try_run::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Peak(args) => cmd::peak::run(args),
        Command::Downtime(args) => cmd::downtime::run(args),
        Command::Devices(args) => cmd::devices::run(args),
        Command::Client(args) => cmd::client::run(args),
        Command::Server(args) => cmd::server::run(args),
        Command::Proxy(args) => cmd::proxy::run(args),
        Command::Dns(args) => cmd::dns::run(args),
        Command::Lx(args) => cmd::logs::lx(args),
        Command::Lr(args) => cmd::logs::lr(args),
        Command::Report(args) => cmd::logs::report(args),
        Command::ClassicNames => {
            repair::CLASSIC.iter().for_each(|(name, _)| console::print(&format!("{name}\n")));
            Ok(ExitCode::SUCCESS)
        }
        Command::Worker => Ok(match polygraph_engine::process::work() {
            Ok(()) => ExitCode::SUCCESS,
            // The coordinator says why.
            Err(_) => ExitCode::from(exit::FAILED),
        }),
        Command::Addresses(command) => Ok(command.run()),
        Command::Workloads(command) => Ok(command.run()),
    };
    done.unwrap_or_else(|failure| console::failure(&failure))
}

/// Why a command could not be carried out, with the exit code that says so.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// A wrong command line that only shows when options are looked at together.
    pub fn usage(message: impl std::fmt::Display) -> Failure {
        Failure { code: exit::USAGE, error: anyhow::anyhow!("{message}") }
    }

    /// Something that is missing or in use on this machine.
    pub fn setup(error: impl Into<anyhow::Error>) -> Failure {
        Failure { code: exit::SETUP, error: error.into() }
    }

    /// A log that cannot be used.
    pub fn data(error: impl Into<anyhow::Error>) -> Failure {
        Failure { code: exit::DATA, error: error.into() }
    }
}

/// What commands return.
pub type Done = Result<ExitCode, Failure>;
