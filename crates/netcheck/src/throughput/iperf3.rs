//! The same test with the program iperf3, between hosts that have it.

use std::io;
use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use super::{Direction, ThroughputTest};
use crate::error::{CheckResult, Error};

/// The port on which iperf3 listens.
pub const PORT: u16 = 5201;

/// What iperf3 reports about one direction of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Iperf3Direction {
    /// The rate of each stream in bits per second, measured at the receiver.
    pub streams: Vec<f64>,
    /// The rate of all streams together.
    pub total: f64,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
}

/// What iperf3 reports about a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Iperf3Result {
    /// From this host to the server.
    pub sent: Option<Iperf3Direction>,
    /// From the server to this host.
    pub received: Option<Iperf3Direction>,
    /// The shares of a processor that iperf3 used at this host and at the server.
    pub cpu: [f64; 2],
    /// The version of the program here.
    pub version: String,
}

/// Whether the program is installed.
pub fn is_installed() -> bool {
    Command::new("iperf3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Carries out a test.
///
/// # Errors
/// If the program is missing, cannot do what was asked for, or fails.
pub fn measure(test: &ThroughputTest) -> CheckResult<Iperf3Result> {
    let mut command = Command::new("iperf3");
    let (ip, port) = (test.server.ip().to_string(), test.server.port().to_string());
    let (streams, seconds) = (test.streams.to_string(), test.duration.as_secs().max(1).to_string());
    command.args(["--json", "--client", &ip, "--port", &port, "--parallel", &streams, "--time", &seconds]);
    match test.direction {
        Direction::Both => drop(command.arg("--bidir")),
        Direction::Receive => drop(command.arg("--reverse")),
        Direction::Send => {}
    }
    match &test.sources[..] {
        [] => {}
        [source] => drop(command.args(["--bind", &source.to_string()])),
        _ => {
            let text = "iperf3 uses one source address: write one with --from, or leave out --with iperf3";
            return Err(Error::Request(text.to_owned()));
        }
    }
    let output = command.output().map_err(missing)?;
    read(&String::from_utf8_lossy(&output.stdout), test.direction).map_err(Error::Peer)
}

fn missing(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::host(
            "iperf3 is not installed: install the package iperf3, or leave out --with iperf3",
            error,
        ),
        _ => Error::host("cannot run iperf3", error),
    }
}

/// The command that serves tests of iperf3 at an address.
pub fn server(address: SocketAddr) -> Command {
    let mut command = Command::new("iperf3");
    command.args(["--server", "--forceflush", "--port", &address.port().to_string()]);
    if !address.ip().is_unspecified() {
        command.args(["--bind", &address.ip().to_string()]);
    }
    command
}

/// Reads the report of iperf3.
///
/// # Errors
/// If iperf3 reports an error, or the report is not one of a TCP test.
pub fn read(report: &str, direction: Direction) -> Result<Iperf3Result, String> {
    let report: Value = serde_json::from_str(report)
        .map_err(|error| format!("the report of iperf3 is not understood: {error}"))?;
    if let Some(error) = report["error"].as_str() {
        return Err(format!("iperf3: {error}"));
    }
    let end = &report["end"];
    let streams = end["streams"].as_array().ok_or("the report of iperf3 has no streams")?;
    // In a test of both directions, those of the server have the word `sender` of the server: false.
    let of = |from_client: bool, sum: &str| {
        let is_of = |stream: &&Value| {
            stream["sender"]["sender"].as_bool().unwrap_or(direction.client_sends()) == from_client
        };
        let rate = |value: &Value| value["bits_per_second"].as_f64().unwrap_or(0.0);
        let own = || streams.iter().filter(is_of);
        Iperf3Direction {
            streams: own().map(|stream| rate(&stream["receiver"])).collect(),
            total: rate(&end[format!("sum_received{sum}")]),
            retransmissions: end[format!("sum_sent{sum}")]["retransmits"].as_u64().unwrap_or(0),
        }
    };
    let reverse = if direction == Direction::Both { "_bidir_reverse" } else { "" };
    let share = |name: &str| end["cpu_utilization_percent"][name].as_f64().unwrap_or(0.0) / 100.0;
    Ok(Iperf3Result {
        sent: direction.client_sends().then(|| of(true, "")),
        received: direction.server_sends().then(|| of(false, reverse)),
        cpu: [share("host_total"), share("remote_total")],
        version: report["start"]["version"].as_str().unwrap_or("iperf3").to_owned(),
    })
}
