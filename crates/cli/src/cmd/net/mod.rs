//! `polygraph net`: the network of this host as a part of the bench. One file per subcommand.

mod changes;
mod clock;
mod dns;
pub mod msl_test;
mod ping;
mod routes;
mod throughput;
mod throughput_text;
mod wan;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use polygraph_addr::AddrRange;
use polygraph_netcheck::Error as CheckError;
use polygraph_netsetup::Error;
use polygraph_runner::Failure;
use polygraph_text::counted;

use crate::exit::Done;
use crate::options::values::{AddressList, addresses};

/// Options of `net`.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case")]
pub struct Args {
    #[command(subcommand)]
    command: NetCommand,
}

#[derive(Subcommand, Debug)]
enum NetCommand {
    /// Measure the throughput of TCP between hosts, in both directions
    Throughput(throughput::Args),
    /// Measure echo times between many addresses
    Ping(ping::Args),
    /// Check that a name server knows the names of a workload
    Dns(dns::Args),
    /// Compare the clocks of hosts
    Clock(clock::Args),
    /// Measure how long a device stays in TIME_WAIT (also: `polygraph msl_test`, classic name: msl_test)
    #[command(name = "msl_test")]
    MslTest(msl_test::Args),
    /// Show what this program has changed on this host
    Status(changes::StatusArgs),
    /// Undo changes that killed processes left behind
    Clean(changes::CleanArgs),
    /// Show, add or remove routes to the robots behind the client hosts of a workload (WebAxe-4)
    Routes(routes::RoutesArgs),
    /// Delay and lose packets of some networks, as on a long path
    Wan(Box<wan::WanArgs>),
    /// Hold packets for `net wan`, which starts this process
    #[command(name = "wan_process", hide = true)]
    WanProcess,
}

/// Carries out the subcommand.
pub fn run(args: Args) -> Done {
    match args.command {
        NetCommand::Throughput(args) => throughput::run(&args),
        NetCommand::Ping(args) => ping::run(&args),
        NetCommand::Dns(args) => dns::run(&args),
        NetCommand::Clock(args) => clock::run(&args),
        NetCommand::MslTest(args) => msl_test::run(&args),
        NetCommand::Status(args) => changes::status(&args),
        NetCommand::Clean(args) => changes::clean(&args),
        NetCommand::Routes(args) => routes::run(&args),
        NetCommand::Wan(args) => wan::run(&args),
        NetCommand::WanProcess => wan::serve(),
    }
}

/// An obstacle on this host as the failure of a command.
pub(in crate::cmd) fn failure(error: Error) -> Failure {
    Failure::setup(error)
}

/// What keeps a check from measuring, as the failure of a command. A peer that does not do its part is a result.
pub(super) fn check_failure(error: CheckError) -> Failure {
    match error {
        CheckError::Request(text) => Failure::usage(text),
        CheckError::Peer(text) => Failure::verdict(format!("not measured: {text}")),
        error => Failure::setup(error),
    }
}

/// Success, as commands return it.
pub(in crate::cmd) fn done() -> Done {
    Ok(ExitCode::SUCCESS)
}

/// Addresses in the range syntax. A single IPv6 address needs no brackets here, because an address has no port.
fn bench_addresses(text: &str) -> Result<AddressList, String> {
    let separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
    let mut bracketed = Vec::new();
    for part in text.split(separator).filter(|part| !part.is_empty()) {
        let is_plain = part.parse::<Ipv6Addr>().is_ok();
        let part = if is_plain { format!("[{part}]") } else { part.to_owned() };
        if AddrRange::parse(&part).is_ok_and(|range| range.port.is_some()) {
            return Err(format!("`{part}` has a port: write only the address"));
        }
        bracketed.push(part);
    }
    addresses(&bracketed.join(","))
}

/// A host with a port, the given one unless the text has one.
fn with_port(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            host.to_owned()
        }
        Err(_) => format!("{host}:{port}"),
    }
}

/// Where a server listens: an address, a port, or both. Without an address it is any.
fn listen_address<const PORT: u16>(text: &str) -> Result<SocketAddr, String> {
    let ip = |text: &str| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT));
    let port = |text: &str| text.parse().ok().map(|port: u16| (Ipv6Addr::UNSPECIFIED, port).into());
    let found = text.parse().ok().or_else(|| ip(text)).or_else(|| port(text));
    found.ok_or_else(|| format!("`{text}` is no place to listen: write for example 10.16.129.1:{PORT}"))
}

/// Why a server cannot listen.
pub(super) fn listening(address: SocketAddr, error: io::Error) -> Failure {
    let hint = polygraph_runner::jobs::listen_hint(&error);
    Failure::setup(anyhow::anyhow!("cannot listen at {address}: {error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_ports() {
        let count = |text: &str| bench_addresses(text).map(|list| list.0.len());
        assert_eq!(count("10.0.0.1-3, fd00::1,[fd00::5-6]"), Ok(6));
        assert!(count("10.0.0.1:80").unwrap_err().contains("has a port"));
        assert!(count("[fd00::1]:80").unwrap_err().contains("has a port"));
        assert!(count("lab").unwrap_err().contains("is a name"));
        assert!(count("fd00::1-5").is_err() && count("10.0.0").is_err());
    }

    #[test]
    fn hosts_and_places_to_listen() {
        for (host, expected) in [
            ("10.0.0.1", "10.0.0.1:5000"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("fd00::1", "[fd00::1]:5000"),
            ("[fd00::1]:80", "[fd00::1]:80"),
            ("lab", "lab:5000"),
            ("lab:80", "lab:80"),
        ] {
            assert_eq!(with_port(host, 5000), expected);
        }
        let listen = |text: &str| listen_address::<5000>(text).map(|address| address.to_string()).ok();
        for (text, expected) in [
            ("10.0.0.1", Some("10.0.0.1:5000")),
            ("10.0.0.1:0", Some("10.0.0.1:0")),
            ("80", Some("[::]:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("lab", None),
        ] {
            assert_eq!(listen(text).as_deref(), expected, "{text}");
        }
    }
}
