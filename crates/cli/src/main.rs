//! `polygraph`: one binary, its subcommands, and the classic names by `argv[0]`.

#![allow(clippy::disallowed_methods, reason = "commands start programs and show real time")]

mod accounts;
mod addr_cmds;
mod bench;
mod cmd;
mod console;
mod content_files;
mod device;
#[cfg(test)]
mod documented;
mod dump;
mod ending;
mod environment;
mod expect;
mod facts;
mod forecast;
mod help;
mod jobs;
mod junit;
mod later;
mod names;
mod options;
mod outcome_json;
mod pgl_cmds;
mod power;
mod preflight;
mod preview;
mod processes;
mod repair;
mod result;
mod service;
mod simulation;
mod source;
mod working_set;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use polygraph_engine::limits;

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
    /// The run is good, but does not reach what `--expect` asks for.
    pub const EXPECTATION: u8 = 10;
    /// A condition of `--fail_on` holds.
    pub const REGRESSION: u8 = 14;
    /// Runs cannot be compared: other workloads, or one that is INVALID.
    pub const NOT_COMPARABLE: u8 = 15;
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
    /// A whole test in virtual time, in a fraction of its time: what to expect of a workload and of a cache
    Simulate(cmd::simulate::Args),
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
    /// Statistics over time (classic name: ltrace)
    Ltrace(cmd::logs::LtraceArgs),
    /// A log as text (classic name: lr)
    Lr(cmd::logs::LrArgs),
    /// What differs between two outputs of lx (classic name: cmp-lx)
    CmpLx(cmd::logs::CmpLxArgs),
    /// Logs as tables for other programs: Parquet, CSV, JSON lines
    Export(cmd::export::Args),
    /// An HTML report of logs or of a result directory
    Report(cmd::logs::ReportArgs),
    /// Runs side by side: what differs, and whether chance explains it
    Compare(cmd::compare::Args),
    /// The runs of a directory with their verdicts and main figures
    Runs(cmd::runs::Args),
    /// A series of runs of several devices under the same rules, and the report that compares them
    Bakeoff(cmd::bakeoff::Args),
    /// The classic sequence of a bake-off with one device (classic name: bb)
    Bb(cmd::bb::Args),
    /// Published results, to show them beside one's own
    Import(cmd::import::Args),
    /// Give logs of a test a name for `make_report` (classic name: label_results)
    LabelResults(cmd::labels::LabelArgs),
    /// A report of labelled logs (classic name: make_report)
    MakeReport(cmd::labels::MakeArgs),
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
    let known = Cli::command();
    if let Some(text) = repair::unknown_name(&words, &known) {
        return console::failure(&Failure::usage(text));
    }
    let (words, repairs) = repair::command_line(words, &known);
    for repair in &repairs {
        console::warn(&format!("understood {} as {}", repair.was, repair.is));
    }
    let matches = match help::dress(known).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            if error.kind() == clap::error::ErrorKind::UnknownArgument
                && words.get(1).is_some_and(|command| ["client", "server", "run"].contains(&command.as_str()))
                && let Some(text) = later::explain(&words)
            {
                return console::failure(&Failure::usage(text));
            }
            return console::usage(&error, &words);
        }
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return console::usage(&error, &words),
    };
    let needs_loops = matches!(
        cli.command,
        Command::Try(_)
            | Command::Run(_)
            | Command::Peak(_)
            | Command::Downtime(_)
            | Command::Client(_)
            | Command::Server(_)
            | Command::Proxy(_)
            | Command::Dns(_)
            | Command::Bakeoff(_)
    );
    let descriptors = limits::raise_descriptor_limit();
    if needs_loops && descriptors < limits::LEAST_DESCRIPTORS {
        let text = format!(
            "a process may open no more than {descriptors} files here, and needs {} to begin with: raise the limit (ulimit -n)",
            limits::LEAST_DESCRIPTORS
        );
        return console::failure(&Failure::setup(anyhow::anyhow!(text)));
    }
    let done = match cli.command {
        Command::Try(args) => cmd::try_run::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Simulate(args) => cmd::simulate::run(args),
        Command::Peak(args) => cmd::peak::run(args),
        Command::Downtime(args) => cmd::downtime::run(args),
        Command::Devices(args) => cmd::devices::run(args),
        Command::Client(args) => cmd::client::run(args),
        Command::Server(args) => cmd::server::run(args),
        Command::Proxy(args) => cmd::proxy::run(args),
        Command::Dns(args) => cmd::dns::run(args),
        Command::Lx(args) => cmd::logs::lx(args),
        Command::Ltrace(args) => cmd::logs::ltrace(args),
        Command::Lr(args) => cmd::logs::lr(args),
        Command::CmpLx(args) => cmd::logs::cmp_lx(args),
        Command::Export(args) => cmd::export::run(args),
        Command::Report(args) => cmd::logs::report(args),
        Command::Compare(args) => cmd::compare::run(args),
        Command::Runs(args) => cmd::runs::run(args),
        Command::Bakeoff(args) => cmd::bakeoff::run(args),
        Command::Bb(args) => cmd::bb::run(args),
        Command::Import(args) => cmd::import::run(args),
        Command::LabelResults(args) => cmd::labels::label_results(args),
        Command::MakeReport(args) => cmd::labels::make_report(args),
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
    /// It is a verdict: a result, not an error.
    verdict: bool,
}

impl Failure {
    fn new(code: u8, error: anyhow::Error) -> Failure {
        Failure { code, error, verdict: false }
    }

    /// A verdict on a device that could not be measured at all.
    pub fn verdict(text: impl std::fmt::Display) -> Failure {
        Failure { verdict: true, ..Failure::new(exit::FAILED, anyhow::anyhow!("{text}")) }
    }

    /// The exit code that says so.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// A wrong command line that only shows when options are looked at together.
    pub fn usage(message: impl std::fmt::Display) -> Failure {
        Failure::new(exit::USAGE, anyhow::anyhow!("{message}"))
    }

    /// Something that is missing or in use on this machine.
    pub fn setup(error: impl Into<anyhow::Error>) -> Failure {
        Failure::new(exit::SETUP, error.into())
    }

    /// A log that cannot be used.
    pub fn data(error: impl Into<anyhow::Error>) -> Failure {
        Failure::new(exit::DATA, error.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

/// What commands return.
pub type Done = Result<ExitCode, Failure>;
