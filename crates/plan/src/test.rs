//! A test as the engine runs it, whatever it was made from: options of the command line or a workload.

use std::net::{IpAddr, SocketAddr};

use polygraph_traffic::{Distr, Popularity};

use crate::phases::Schedule;

/// A test.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Name of the workload, for example `PolyMix-1`.
    pub name: String,
    /// The client side.
    pub robots: Robots,
    /// The server side.
    pub servers: Servers,
    /// What replies carry.
    pub content: Content,
    /// Version of HTTP messages: 0 for 1.0, 1 for 1.1.
    pub http_minor: u8,
    /// The phases.
    pub schedule: Schedule,
}

/// When robots send.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// A Poisson stream of all robots together, in requests per second.
    Open(f64),
    /// Each robot after its previous transaction and a pause in seconds.
    BestEffort(Option<Distr>),
}

/// All robots; they differ in nothing but their addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Robots {
    /// How many.
    pub count: usize,
    /// Their addresses in turn; empty: the system chooses.
    pub addresses: Vec<IpAddr>,
    /// When they send.
    pub rate: Rate,
    /// The load rises over so many seconds.
    pub launch_window: f64,
    /// Share of requests that ask for an object again.
    pub recurrence: f64,
    /// Which object is asked for again.
    pub popularity: Popularity,
    /// Age in seconds from which on an object may be asked for again.
    pub settle: f64,
    /// Requests per connection.
    pub requests_per_connection: Distr,
    /// Lifetime of transactions in seconds.
    pub lifetime: Option<f64>,
    /// The proxy, `host:port`.
    pub proxy: Option<String>,
    /// The servers that robots ask, `host:port` as in URLs.
    pub origins: Vec<String>,
}

impl Robots {
    /// The robots of a test whose client side is somebody else's business.
    pub fn none() -> Robots {
        Robots {
            count: 0,
            addresses: Vec::new(),
            rate: Rate::BestEffort(None),
            launch_window: 0.0,
            recurrence: 0.0,
            popularity: Popularity::Unif,
            settle: 0.0,
            requests_per_connection: Distr::Const(1.0),
            lifetime: None,
            proxy: None,
            origins: Vec::new(),
        }
    }
}

/// All servers; they differ in nothing but their addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Servers {
    /// Where they listen.
    pub listen: Vec<SocketAddr>,
    /// Delay in seconds before the first byte of a reply.
    pub think: Option<Distr>,
    /// Requests per connection.
    pub requests_per_connection: Distr,
    /// An idle connection is closed after so many seconds.
    pub idle_timeout: Option<f64>,
}

/// The one content type.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Reply sizes in bytes; `None` if this side does not know them.
    pub size: Option<Distr>,
    /// Share of cachable objects.
    pub cachable: f64,
}

/// A device gets so many seconds more than the servers think before it must have an object.
const SETTLE_MARGIN: f64 = 0.25;

/// The age in seconds from which on objects may be asked for again: what nearly all replies of servers with this
/// think time need to arrive.
pub fn settle_time(think: Option<&Distr>) -> f64 {
    think.map_or(0.0, Distr::high) + SETTLE_MARGIN
}
