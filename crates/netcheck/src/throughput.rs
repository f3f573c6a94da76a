//! How much TCP carries between two hosts, in both directions at once.
//!
//! A client asks a server for a test over a control connection, opens the streams, and both sides send as fast as TCP
//! takes it. Octets are counted where they arrive. At the end the server reports what it saw. [`protocol`] describes the
//! messages, `stream` the two halves of a stream, `server` and [`client`] the two sides, `cpu` what the test cost this
//! host, [`iperf3`] the same test with that program.

pub mod client;
mod cpu;
pub mod iperf3;
pub mod protocol;
mod server;
mod stream;
mod tcp_info;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::client::{ThroughputResult, ThroughputTest};
pub use self::cpu::CpuUse;
pub use self::server::ThroughputServer;

/// The port on which servers listen, that of the how-tos.
pub const PORT: u16 = 5000;

/// Which sides send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Both sides at once.
    #[default]
    Both,
    /// The client sends.
    Send,
    /// The client receives.
    Receive,
}

impl Direction {
    /// Whether the client sends.
    pub fn client_sends(self) -> bool {
        self != Direction::Receive
    }

    /// Whether the server sends.
    pub fn server_sends(self) -> bool {
        self != Direction::Send
    }
}

/// What one side received over one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Octets of data.
    pub bytes: u64,
    /// When the first octet came, in seconds after the start of the test at this side.
    pub first_s: f64,
    /// When the end came, in seconds after the start.
    pub end_s: f64,
    /// Whether the other side ended the stream in order. Otherwise the stream broke or stood still.
    pub complete: bool,
}

impl Received {
    /// The rate in bits per second.
    pub fn rate(&self) -> f64 {
        rate(&[*self])
    }
}

/// The rate of several streams together in bits per second: all octets, over the time from the first one to the end.
pub fn rate(streams: &[Received]) -> f64 {
    let used = || streams.iter().filter(|stream| stream.bytes > 0);
    let first = used().map(|stream| stream.first_s).fold(f64::INFINITY, f64::min);
    let end = used().map(|stream| stream.end_s).fold(0.0, f64::max);
    let bits = 8.0 * used().map(|stream| stream.bytes as f64).sum::<f64>();
    if end > first { bits / (end - first) } else { 0.0 }
}

/// What one side sent over one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Octets that TCP took.
    pub bytes: u64,
    /// Segments that TCP sent again.
    pub retransmissions: u32,
    /// The round-trip time that TCP saw at the end, in seconds.
    pub round_trip_s: f64,
    /// Octets of data in a segment.
    pub segment: u32,
}

/// What one side saw of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideResult {
    /// What it received, stream by stream.
    pub received: Vec<Received>,
    /// What it sent, stream by stream.
    pub sent: Vec<Sent>,
    /// What the test cost this host.
    pub cpu: CpuUse,
}

/// How long a side waits for the last octets after the time of the test.
const GRACE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_from_the_first_octet_to_the_end() {
        let stream = |bytes, first_s, end_s| Received { bytes, first_s, end_s, complete: true };
        assert_eq!(stream(1_250_000, 1.0, 11.0).rate(), 1e6);
        // Streams that start late count over the whole time.
        assert_eq!(rate(&[stream(625_000, 0.0, 5.0), stream(625_000, 5.0, 10.0)]), 1e6);
        // A stream that never got an octet changes nothing.
        assert_eq!(rate(&[stream(1_250_000, 0.0, 10.0), stream(0, 0.0, 20.0)]), 1e6);
        assert_eq!((rate(&[]), stream(0, 0.0, 10.0).rate(), stream(9, 1.0, 1.0).rate()), (0.0, 0.0, 0.0));
    }
}
