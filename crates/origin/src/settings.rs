//! What origin servers are told.
//!
//! Thousands of servers differ in nothing but their addresses, so what they have in common is stored once:
//!
//! ```text
//!  OriginConfig ── what all servers of a process share: content types, seeds, rules for odd requests
//!   └─ ServerProfile ── servers of one configuration: think time, limits, cookies, ...
//!       └─ ServerSpec ── an address
//! ```

use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_stats::StatusScope;
use polygraph_traffic::headers::HeaderRule;
use polygraph_traffic::{Catalog, ContentKind, Distr, PopModel, Seed, Selector, UniqId};

/// What all servers of a process have in common.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OriginConfig {
    /// Content types, equal to those of the robots.
    pub catalog: Arc<Catalog>,
    /// Configurations of servers.
    pub profiles: Vec<ServerProfile>,
    /// Seed of the servers' own choices.
    pub seed: Seed,
    /// Id of the process, in every reply.
    pub group: UniqId,
    /// Cachable content without a life cycle is marked as generation 1.x did it: fresh for a year, and last
    /// modified on a fixed day. Otherwise it has no times at all.
    pub classic: bool,
    /// URLs that are not ours get a random object instead of an error.
    pub ignore_urls: bool,
    /// The same, and it is no error if neither side's marks are in a message.
    pub accept_foreign_msgs: bool,
    /// Tell robots about the worlds of other robots.
    pub share_worlds: bool,
}

/// Servers that differ in nothing but their addresses.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ServerProfile {
    /// Label.
    pub name: String,
    /// The content types that are served, with their planned shares of all replies.
    pub contents: Selector<ContentKind>,
    /// Delay in seconds before the first byte of a reply, drawn for each request.
    pub think: Option<Distr>,
    /// Version of replies, drawn once for each server: 0 for HTTP/1.0, 1 for HTTP/1.1; empty: 1.1.
    pub http_minors: Selector<u8>,
    /// Requests per connection; draws of the distribution are truncated, to at least 1.
    pub requests_per_connection: Distr,
    /// A connection without a transaction is closed after so many nanoseconds.
    pub idle_timeout: Option<Nanos>,
    /// Limit in seconds of the time from a request to the end of its reply, drawn for each request.
    pub lifetime: Option<Distr>,
    /// Share of replies with a body that are cut on purpose (0 to 1).
    pub abort_prob: f64,
    /// Redirection of requests to other objects.
    pub redirects: Option<Redirects>,
    /// Cookies.
    pub cookies: Option<Cookies>,
    /// Share of requests with `Expect: 100-continue` that may go on (0 to 1); the others get 417.
    pub continue_prob: f64,
    /// Further header fields of replies.
    pub headers: Vec<HeaderRule>,
    /// Replies with one of these statuses are counted apart.
    pub custom_scope: StatusScope,
}

impl ServerProfile {
    /// Servers of the content types `contents` that answer at once, over HTTP/1.1, one request per connection.
    pub fn plain(name: &str, contents: Vec<ContentKind>) -> ServerProfile {
        ServerProfile {
            name: name.to_owned(),
            contents: Selector::even(contents),
            think: None,
            http_minors: Selector::default(),
            requests_per_connection: Distr::Const(1.0),
            idle_timeout: None,
            lifetime: None,
            abort_prob: 0.0,
            redirects: None,
            cookies: None,
            continue_prob: 1.0,
            headers: Vec::new(),
            custom_scope: StatusScope::default(),
        }
    }
}

/// Redirection of requests: status 302 to an object that somebody has asked for already.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Redirects {
    /// Share of replies (0 to 1) while the factor for special messages is 1.
    pub share: f64,
    /// Which object.
    pub popularity: PopModel,
}

/// Cookies that replies set. Whether and which is a property of the object.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cookies {
    /// Share of servers that set any (0 to 1).
    pub senders: f64,
    /// Share of objects that set any (0 to 1).
    pub prob: f64,
    /// How many; draws are rounded up, to at least 1.
    pub count: Distr,
    /// Size of each value in bytes.
    pub size: Distr,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerSpec {
    /// Its configuration: position in [`OriginConfig::profiles`].
    pub profile: usize,
    /// Its number among all servers of the test, for choices that it makes once and for all.
    pub number: u64,
    /// Own address as `host:port`, in every reply.
    pub address: String,
    /// The names, as `host:port`, by which clients know it; a host that begins with `*.` stands for all names
    /// that end so. Empty: any name.
    pub names: Vec<String>,
}
