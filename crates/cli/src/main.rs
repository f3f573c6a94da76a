//! `polygraph`: one binary, its subcommands, and the classic names by `argv[0]`.

mod addr_cmds;

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
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Addr(command) => command.run(),
    }
}
