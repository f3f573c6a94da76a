//! `polygraph`: one binary, its subcommands, and the classic names by `argv[0]`.

mod addr_cmds;
mod pgl_cmds;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "polygraph", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Addr(addr_cmds::AddrCommand),
    #[command(flatten)]
    Pgl(pgl_cmds::PglCommand),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Addr(command) => command.run(),
        Command::Pgl(command) => command.run(),
    }
}
