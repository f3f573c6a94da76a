//! `polygraph`: one program with subcommands, which also answers to the classic program names.
//!
//! | folder or file | contents |
//! |---|---|
//! | `cmd/` | the commands |
//! | `options/` | options that commands share, how their values are read, and what they become |
//! | `settings/` | default values of options, from files and the environment |
//! | `output/` | everything that is printed |
//! | `legacy/` | classic program names, misprints of old documents, options of the original that do not exist here |
//! | `help.rs` | the layout of `--help` |
//! | `lazy.rs` | options of a command, made when it is used |
//! | `extras/` | man pages and completions of shells |
//! | `exit.rs` | exit codes |

#![allow(clippy::disallowed_methods, reason = "commands start programs and show real time")]

mod cmd;
#[cfg(test)]
mod documented_options_tests;
mod exit;
#[cfg(feature = "manual")]
mod extras;
mod help;
mod lazy;
mod legacy;
mod options;
#[cfg(test)]
mod options_page;
mod output;
mod settings;

use std::io;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
#[cfg(feature = "mimalloc")]
use polygraph_allocator as _;
use polygraph_engine::limits;
use polygraph_runner::{Failure, host_check};

use crate::exit::Done;
use crate::lazy::Lazy;

use crate::legacy::{command_line, programs, unsupported_options};
use crate::options::ConsoleOptions;
use crate::options::common::{given_command_line, keep_command_line};
use crate::options::console::color_choice;
use crate::output::colors;
use crate::settings::Settings;

/// The version of the program. A build from a clone says so; if `make` has built it, with the commit.
const VERSION: &str = env!("POLYGRAPH_VERSION");

/// Features of Cargo that users may miss, and what they are for.
const FEATURES: [(&str, &str, bool); 4] = [
    ("tls", "TLS and HTTP/3", cfg!(feature = "tls")),
    ("kerberos", "Kerberos", cfg!(feature = "kerberos")),
    ("parquet", "export to Parquet", cfg!(feature = "parquet")),
    ("fleet", "fleets over NATS", cfg!(feature = "fleet")),
];

/// The version, and below it what this build lacks.
fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let missing = FEATURES.iter().filter(|(.., is_built)| !is_built);
        let missing: Vec<_> = missing.map(|(feature, what, _)| format!("{what} ({feature})")).collect();
        match missing.is_empty() {
            true => VERSION.to_owned(),
            false => format!("{VERSION}\nbuilt without these features: {}", missing.join(", ")),
        }
    });
    &TEXT
}

#[derive(Parser)]
#[command(
    name = "polygraph",
    version = VERSION,
    long_version = long_version(),
    propagate_version = true,
    about = "Performance benchmark for proxies and other HTTP intermediaries: it simulates clients (robots) on one side of a \
    device and origin servers on the other",
    after_help = "Start with `polygraph try`: it runs everything on this machine and writes a report after 20 seconds.\n\
                  Links with classic names (polyclt, polysrv, lx, lr, pmix3-ips ...) to this program work like the originals."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    console: ConsoleOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Run a first test: origin servers, the built-in caching proxy and robots on this machine, then a report
    Try(Lazy<cmd::try_run::Args>),
    /// Run a test with both sides on this machine and a device in between
    Run(Lazy<cmd::run::Args>),
    /// Simulate a test in virtual time, much faster than real time: shows what to expect of a workload and a cache
    Simulate(Lazy<cmd::simulate::Args>),
    /// Find the highest rate that a device sustains
    Peak(Lazy<cmd::peak::Args>),
    /// Kill a device during a test, restart it, and measure the outage that robots see
    Downtime(Lazy<cmd::downtime::Args>),
    /// Check this host for everything that would spoil a run, and fix what can be fixed safely
    Doctor(Lazy<cmd::doctor::Args>),
    /// List the devices that `run --device` can start, and which of them are on this machine
    Devices(Lazy<cmd::devices::Args>),
    /// Run robots (classic name: polyclt)
    Client(Lazy<cmd::client::Args>),
    /// Run origin servers (classic name: polysrv)
    Server(Lazy<cmd::server::Args>),
    /// Run the built-in caching proxy
    Proxy(Lazy<cmd::proxy::Args>),
    /// Run a name server with the names of a workload
    Dns(Lazy<cmd::dns::Args>),
    /// Print figures of logs (classic name: lx)
    Lx(Lazy<cmd::logs::LxArgs>),
    /// Print figures over time (classic name: ltrace)
    Ltrace(Lazy<cmd::logs::LtraceArgs>),
    /// Print a log as text (classic name: lr)
    Lr(Lazy<cmd::logs::LrArgs>),
    /// Compare two outputs of lx (classic name: cmp-lx)
    CmpLx(Lazy<cmd::logs::CmpLxArgs>),
    /// Export logs as tables for other programs: Parquet, CSV, JSON lines
    Export(Lazy<cmd::export::Args>),
    /// Write the HTML report of a result directory or of logs
    Report(Lazy<cmd::logs::ReportArgs>),
    /// Compare runs: what differs, and whether chance explains the difference
    Compare(Lazy<cmd::compare::Args>),
    /// List the runs of a directory with their verdicts and main figures
    Runs(Lazy<cmd::runs::Args>),
    /// Run a series of tests of several devices under the same rules, and write the report that compares them
    Bakeoff(Lazy<cmd::bakeoff::Args>),
    /// Run the classic sequence of a bake-off with one device (classic name: bb)
    Bb(Lazy<cmd::bb::Args>),
    /// Import published results, to compare them with new results
    Import(Lazy<cmd::import::Args>),
    /// Give the logs of a test a name for `make_report` (classic name: label_results)
    LabelResults(Lazy<cmd::labels::LabelArgs>),
    /// Write the report of named logs (classic name: make_report)
    MakeReport(Lazy<cmd::labels::MakeArgs>),
    /// List, show and copy the workloads, devices, bake-off plans and labs that are built into the program
    Workloads(Lazy<cmd::workloads::Args>),
    /// Compile a workload, and show what it would do (classic name: pgl-test)
    #[command(visible_alias = "pgl-test")]
    Check(Lazy<cmd::check::Args>),
    /// List the accounts that robots of a workload log in with, for a device: htpasswd, LDIF or plain text
    Accounts(Lazy<cmd::accounts::Args>),
    /// Make an authority and certificates for all names and addresses of a workload
    Certs(Lazy<cmd::certs::Args>),
    /// Explain a finding of `check` by its identifier
    Explain(Lazy<cmd::explain::Args>),
    /// Format workload files
    Fmt(Lazy<cmd::fmt::Args>),
    /// Serve an editor over standard input and output (language server protocol)
    Lsp(Lazy<cmd::lsp::Args>),
    /// Prepare and check the network of this host
    Net(Lazy<cmd::net::Args>),
    /// Add addresses to an interface, which stay after the command (classic name: aka)
    Aka(Lazy<cmd::aka::Args>),
    /// Build a bench of clients, servers and a device on this machine, each in a network namespace, and run tests in it
    Lab(Lazy<cmd::lab::Args>),
    /// Measure how long a device stays in TIME_WAIT, as `net msl_test` does (classic name: msl_test)
    #[command(name = "msl_test")]
    MslTest(Lazy<cmd::net::msl_test::Args>),
    /// Measure the throughput of all links between clients and servers (classic name: polyprobe)
    Polyprobe(Lazy<cmd::polyprobe::Args>),
    /// Wait on this host for runs of a fleet, and carry out this host's part of them
    Agent(Lazy<cmd::agent::Args>),
    /// List and check the agents of a fleet, fetch their logs, end their processes
    Fleet(Lazy<cmd::fleet::Args>),
    /// Watch running tests live, on the terminal or as a web page (classic name: polymon)
    Mon(Lazy<cmd::mon::Args>),
    /// Receive status notifications by UDP, and forward them to monitors by TCP (classic name: udp2tcpd)
    #[command(name = "udp2tcpd")]
    Udp2tcpd(Lazy<cmd::udp2tcpd::Args>),
    /// Show default values of options, and where they come from
    Config(Lazy<cmd::config::Args>),
    /// Write man pages and shell completions below a directory, as `make install` does
    Extras(Lazy<cmd::extras::Args>),
    #[command(flatten)]
    Addresses(cmd::addresses::AddrCommand),
    /// The classic names of this program, for `make install`
    #[command(hide = true, name = "installed-names")]
    ClassicNames,
    /// A worker process of a run, which the run starts
    #[command(hide = true, name = polygraph_engine::relay::WORKER)]
    Worker,
}

impl Command {
    /// Whether the command runs event loops, which need file descriptors.
    fn needs_loops(&self) -> bool {
        use Command::{Bakeoff, Client, Dns, Downtime, Lab, Peak, Proxy, Run, Server, Try};
        matches!(
            self,
            Try(_)
                | Run(_)
                | Peak(_)
                | Downtime(_)
                | Client(_)
                | Server(_)
                | Proxy(_)
                | Dns(_)
                | Bakeoff(_)
                | Lab(_)
        )
    }

    fn run(self, settings: &Settings) -> Done {
        match self {
            Command::Try(Lazy(args)) => cmd::try_run::run(args),
            Command::Run(Lazy(args)) => cmd::run::run(args),
            Command::Simulate(Lazy(args)) => cmd::simulate::run(args),
            Command::Peak(Lazy(args)) => cmd::peak::run(args),
            Command::Downtime(Lazy(args)) => cmd::downtime::run(args),
            Command::Doctor(Lazy(args)) => cmd::doctor::run(args),
            Command::Devices(Lazy(args)) => cmd::devices::run(args),
            Command::Client(Lazy(args)) => cmd::client::run(args),
            Command::Server(Lazy(args)) => cmd::server::run(args),
            Command::Proxy(Lazy(args)) => cmd::proxy::run(args),
            Command::Dns(Lazy(args)) => cmd::dns::run(args),
            Command::Lx(Lazy(args)) => cmd::logs::lx(args),
            Command::Ltrace(Lazy(args)) => cmd::logs::ltrace(args),
            Command::Lr(Lazy(args)) => cmd::logs::lr(args),
            Command::CmpLx(Lazy(args)) => cmd::logs::cmp_lx(args),
            Command::Export(Lazy(args)) => cmd::export::run(args),
            Command::Report(Lazy(args)) => cmd::logs::report(args),
            Command::Compare(Lazy(args)) => cmd::compare::run(args),
            Command::Runs(Lazy(args)) => cmd::runs::run(args),
            Command::Bakeoff(Lazy(args)) => cmd::bakeoff::run(args),
            Command::Bb(Lazy(args)) => cmd::bb::run(args),
            Command::Import(Lazy(args)) => cmd::import::run(args),
            Command::LabelResults(Lazy(args)) => cmd::labels::label_results(args),
            Command::MakeReport(Lazy(args)) => cmd::labels::make_report(args),
            Command::Workloads(Lazy(args)) => cmd::workloads::run(&args),
            Command::Check(Lazy(args)) => Ok(workload_command(cmd::check::run(&args))),
            Command::Accounts(Lazy(args)) => Ok(workload_command(cmd::accounts::run(&args))),
            Command::Certs(Lazy(args)) => cmd::certs::run(&args),
            Command::Explain(Lazy(args)) => Ok(workload_command(cmd::explain::run(&args))),
            Command::Fmt(Lazy(args)) => Ok(workload_command(cmd::fmt::run(&args))),
            Command::Lsp(Lazy(args)) => Ok(workload_command(cmd::lsp::run(args))),
            Command::Net(Lazy(args)) => cmd::net::run(args),
            Command::Aka(Lazy(args)) => cmd::aka::run(&args),
            Command::Lab(Lazy(args)) => cmd::lab::run(args),
            Command::MslTest(Lazy(args)) => cmd::net::msl_test::run(&args),
            Command::Polyprobe(Lazy(args)) => cmd::polyprobe::run(&args),
            Command::Agent(Lazy(args)) => cmd::agent::run(args),
            Command::Fleet(Lazy(args)) => cmd::fleet::run(args),
            Command::Mon(Lazy(args)) => cmd::mon::run(&args),
            Command::Udp2tcpd(Lazy(args)) => cmd::udp2tcpd::run(&args),
            Command::Config(Lazy(args)) => cmd::config::run(&args, settings),
            Command::Extras(Lazy(args)) => cmd::extras::run(&args),
            Command::Addresses(command) => Ok(command.run()),
            Command::ClassicNames => {
                programs::CLASSIC.iter().for_each(|(name, _)| output::print(&format!("{name}\n")));
                Ok(ExitCode::SUCCESS)
            }
            Command::Worker => Ok(match polygraph_engine::process::work() {
                Ok(()) => ExitCode::SUCCESS,
                // The coordinator reports the error.
                Err(_) => ExitCode::from(exit::FAILED),
            }),
        }
    }
}

/// The exit code of a command that writes directly to standard output. A closed pipe is not an error.
fn workload_command(done: io::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("polygraph: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    polygraph_stats::set_version(VERSION);
    let words = given_command_line();
    let color = color_choice(&words);
    colors::choose(color);
    let mut program = Cli::command().color(color);
    if let Some(text) = programs::unknown_name(&words, &program) {
        return output::failure(&Failure::usage(text));
    }
    let (words, corrections) = command_line::modernize(words, &program);
    for correction in &corrections {
        output::warn(&format!("understood {} as {}", correction.was, correction.is));
    }
    let settings = match settings::load(&program, settings::variables()) {
        Ok(settings) => settings,
        Err(failure) => return output::failure(&failure),
    };
    let applied = settings::apply(&words, &program, &settings);
    let parsed = match program.try_get_matches_from_mut(&applied.words) {
        // The list of commands is only laid out to be shown.
        Err(error) if asks_for_help(&error) => help::dress(program).try_get_matches_from(&applied.words),
        parsed => parsed,
    };
    let parsed = parsed.and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let code = rejected(&error, &words);
            let origins = settings::origins_in(&error.to_string(), &applied.used);
            origins.iter().for_each(|origin| output::note(&format!("note: {origin}")));
            return code;
        }
    };
    if cli.console.quiet {
        output::be_quiet();
    }
    colors::choose(cli.console.color);
    if !applied.used.is_empty() {
        let used = applied.used.iter().map(|setting| format!("{} ({})", setting.words(), setting.origin));
        output::note(&format!("settings: {}", used.collect::<Vec<_>>().join(", ")));
        keep_command_line(applied.words);
    }
    // The doctor shows the limits as they are.
    if !matches!(cli.command, Command::Doctor(_)) {
        limits::raise_descriptor_limit();
    }
    if cli.command.needs_loops()
        && let Err(failure) = host_check::check_descriptors()
    {
        return output::failure(&failure);
    }
    cli.command.run(&settings).unwrap_or_else(|failure| output::failure(&failure))
}

fn asks_for_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Prints why a command line cannot be used, or the requested help.
fn rejected(error: &clap::Error, words: &[String]) -> ExitCode {
    if error.kind() == clap::error::ErrorKind::UnknownArgument
        && words.get(1).is_some_and(|command| ["client", "server", "run", "peak"].contains(&command.as_str()))
        && let Some(text) = unsupported_options::explain(words)
    {
        return output::failure(&Failure::usage(text));
    }
    output::usage(error, words)
}
