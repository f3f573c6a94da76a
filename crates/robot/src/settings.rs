//! What the robots of one loop are told.

use std::net::{IpAddr, SocketAddr};

use polygraph_link::Nanos;
use polygraph_traffic::{Distr, Popularity, Properties, Seed, UniqId};
use serde::{Deserialize, Serialize};

/// How the robots decide when to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Open loop: every robot is a Poisson stream with a constant mean rate, not slowed by replies.
    Open {
        /// Requests per second and robot.
        rate: f64,
    },
    /// Closed loop ("best effort"): every robot sends its next request when the previous one has ended.
    Closed {
        /// Pause between the end of a transaction and the next request, in seconds.
        think: Option<Distr>,
    },
}

/// An origin server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// As it stands in URLs, `host:port`.
    pub authority: String,
    /// Where it is; of no meaning through a proxy.
    pub address: SocketAddr,
}

/// The robots of one loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Number of this loop's first robot; together with the seed it decides a robot's choices.
    pub first_robot: usize,
    /// Number of robots, at least 1.
    pub robots: usize,
    /// Number of robots on all loops: the launch window is spread over them.
    pub all_robots: usize,
    /// Local addresses; robot `i` uses number `i` modulo their count. Empty: the system chooses.
    pub addresses: Vec<IpAddr>,
    /// The proxy under test: all connections go to it, and requests carry absolute URLs. `None`: robots connect
    /// to the origin servers.
    pub proxy: Option<SocketAddr>,
    /// The origin servers, at least one; every request goes to one of them, all alike.
    pub origins: Vec<Origin>,
    /// Version of requests: 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub http_minor: u8,
    /// When requests are sent.
    pub load: Load,
    /// The load, or the number of active robots, rises linearly over so many seconds.
    pub launch_window: f64,
    /// Share of requests that ask for an object again.
    pub recurrence: f64,
    /// Share of objects that are cachable.
    pub cachable: f64,
    /// Which known object is asked for again.
    pub popularity: Popularity,
    /// Age in seconds at which a new object may be asked for again, see [`polygraph_traffic::World`].
    pub settle: f64,
    /// Requests per connection; draws of the distribution are truncated, to at least 1.
    pub requests_per_connection: Distr,
    /// Transactions that take longer than so many nanoseconds fail.
    pub lifetime: Option<Nanos>,
    /// Open connections of this loop; a request that would need more fails.
    pub open_limit: usize,
    /// Seed of the robots' own choices.
    pub seed: Seed,
    /// Object properties as the servers have them.
    pub properties: Properties,
    /// Fail transactions whose reply has not the size that [`Settings::properties`] says. Off if the client
    /// was not told the servers' sizes.
    pub verify_size: bool,
    /// Id of the process, in every request.
    pub group: UniqId,
}
