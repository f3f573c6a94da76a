//! `polygraph net throughput`: how much TCP carries between hosts, in both directions.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use polygraph_netcheck::Error as CheckError;
use polygraph_netcheck::throughput::client::{find_server, measure};
use polygraph_netcheck::throughput::iperf3::{self, Iperf3Result};
use polygraph_netcheck::throughput::protocol::MOST_STREAMS;
use polygraph_netcheck::throughput::{Direction, PORT, ThroughputResult, ThroughputServer, ThroughputTest};
use polygraph_runner::Failure;
use serde_json::json;

use super::throughput_text::{self, Measured};
use super::{bench_addresses, check_failure, counted, done, listen_address, listening, with_port};
use crate::exit::{Done, FAILED};
use crate::options::values::{AddressList, duration, resolve, whole};
use crate::output;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `net throughput`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    group = clap::ArgGroup::new("side").args(["listen", "to"]).required(true),
    after_help = "Examples:\n  \
        polygraph net throughput --listen                                 on a server host\n  \
        polygraph net throughput --to 10.16.129.1                         on a client host: both directions, 30 s\n  \
        polygraph net throughput --to 10.16.129.1,10.16.129.2 --streams 4 --duration 5min\n  \
        polygraph net throughput --to 10.16.129.1 --direction send --least 90\n  \
        polygraph net throughput --to 10.16.129.1 --with iperf3           where `iperf3 -s` runs\n\n\
        Rates are in Mbit/s = 10^6 bits per second of TCP data, counted by the receiver. The exit code is 1 if a stream breaks, \
        or if a direction carries less than --least."
)]
pub struct Args {
    /// Serve tests of other hosts, until Ctrl-C. Default: all addresses, port 5000 (with iperf3: 5201)
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, value_parser = listen_address::<PORT>,
          conflicts_with = "to")]
    listen: Option<Option<SocketAddr>>,
    /// Hosts that serve tests, separated by commas; several are tested at once. The default port is 5000
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    to: Vec<String>,
    /// Addresses of this host, as ranges; streams use them in turn. Default: the one from which routes lead to the host
    #[arg(long, value_name = "RANGES", value_parser = bench_addresses, conflicts_with = "listen")]
    from: Option<AddressList>,
    /// Number of streams to each host
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=MOST_STREAMS), conflicts_with = "listen")]
    streams: u32,
    /// How long both sides send; with --listen: when the server stops
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Which sides send: this host, the other one, or both at once
    #[arg(long, value_name = "both|send|receive", default_value = "both", conflicts_with = "listen")]
    direction: DirectionWord,
    /// What measures. `auto`: the own measurement; iperf3, if it is installed and the other host runs only that
    #[arg(long, value_name = "auto|own|iperf3", default_value = "auto")]
    with: Tool,
    /// The least that each direction must carry to each host, in Mbit/s
    #[arg(long, value_name = "MBIT/S", value_parser = megabits, conflicts_with = "listen")]
    least: Option<f64>,
    /// Print JSON
    #[arg(long, conflicts_with = "listen")]
    json: bool,
}

/// A rate in Mbit/s.
fn megabits(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("`{text}` is not a rate in Mbit/s: write a number above 0, for example 90"))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DirectionWord {
    Both,
    Send,
    Receive,
}

impl From<DirectionWord> for Direction {
    fn from(word: DirectionWord) -> Direction {
        match word {
            DirectionWord::Both => Direction::Both,
            DirectionWord::Send => Direction::Send,
            DirectionWord::Receive => Direction::Receive,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    Auto,
    Own,
    Iperf3,
}

/// Serves or measures.
pub fn run(args: &Args) -> Done {
    match args.listen {
        Some(listen) => serve(args, listen),
        None => test(args),
    }
}

fn serve(args: &Args, listen: Option<SocketAddr>) -> Done {
    let default = |port: u16| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    if args.with == Tool::Iperf3 {
        if args.duration.is_some() {
            return Err(Failure::usage("iperf3 serves until Ctrl-C: leave out --duration"));
        }
        // The program takes the place of this one.
        let error = iperf3::server(listen.unwrap_or_else(|| default(iperf3::PORT))).exec();
        return Err(Failure::setup(anyhow::anyhow!(
            "cannot run iperf3: {error}; install the package iperf3"
        )));
    }
    let address = listen.unwrap_or_else(|| default(PORT));
    let server = ThroughputServer::start(address).map_err(|error| listening(address, error))?;
    output::note(&format!("throughput tests are served at {}; Ctrl-C stops the server", server.address()));
    polygraph_engine::signals::wait(args.duration).map_err(Failure::setup)?;
    output::print(&format!("{} served\n", counted(server.finished(), "test")));
    done()
}

fn test(args: &Args) -> Done {
    let sources: Vec<IpAddr> = args.from.clone().map(|list| list.0).unwrap_or_default();
    let mut tests = Vec::new();
    for host in &args.to {
        let (server, is_iperf3) = server_of(host, args.with)?;
        let of_family = |ip: &&IpAddr| ip.is_ipv4() == server.is_ipv4();
        let sources: Vec<IpAddr> = sources.iter().filter(of_family).copied().collect();
        if args.from.is_some() && sources.is_empty() {
            return Err(Failure::usage(format!("no address of --from is of the same family as {server}")));
        }
        let test = ThroughputTest {
            server,
            sources,
            streams: args.streams,
            duration: args.duration.unwrap_or(Duration::from_secs(30)),
            direction: args.direction.into(),
            patience: PATIENCE,
        };
        tests.push((host.clone(), test, is_iperf3));
    }
    let measure = |test: &ThroughputTest, is_iperf3: bool| match is_iperf3 {
        true => iperf3::measure(test).map(|found: Iperf3Result| Measured::Iperf3(found)),
        false => measure(test).map(|found: ThroughputResult| Measured::Own(Box::new(found))),
    };
    let results: Vec<Result<Measured, CheckError>> = thread::scope(|scope| {
        let threads: Vec<_> =
            tests.iter().map(|(_, test, is_iperf3)| scope.spawn(move || measure(test, *is_iperf3))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let (mut good, mut values, mut failures) = (true, Vec::new(), Vec::new());
    for ((host, test, _), result) in tests.iter().zip(results) {
        match result {
            Ok(found) => {
                let faults = found.faults(host, args.least);
                good &= faults.is_empty();
                if args.json {
                    values.push(throughput_text::json_of(host, test, &found, &faults));
                } else {
                    output::print(&throughput_text::text_of(host, test, &found, &faults));
                }
            }
            Err(error) => {
                values.push(throughput_text::json_of_failure(host, test, &error));
                failures.push((host, error));
            }
        }
    }
    if args.json {
        output::print_json(&json!({ "hosts": values }));
    }
    let last = failures.pop();
    for (host, error) in &failures {
        output::warn(&format!("{host}: {error}"));
    }
    match last {
        Some((_, error)) => Err(check_failure(error)),
        None if good => done(),
        None => Ok(ExitCode::from(FAILED)),
    }
}

/// Where a host serves tests, and whether iperf3 does.
fn server_of(host: &str, with: Tool) -> Result<(SocketAddr, bool), Failure> {
    let own = || resolve(&with_port(host, PORT));
    let other = || resolve(&with_port(host, iperf3::PORT));
    match with {
        Tool::Own => Ok((own()?, false)),
        Tool::Iperf3 => Ok((other()?, true)),
        Tool::Auto => {
            let (own, other) = (own()?, other()?);
            // With its own port, a host has the same address for both.
            match find_server(own, PATIENCE) {
                Some(true) => Ok((own, false)),
                None if own == other => Ok((own, false)),
                _ if iperf3::is_installed() && find_server(other, PATIENCE).is_some() => Ok((other, true)),
                _ => Ok((own, false)),
            }
        }
    }
}
