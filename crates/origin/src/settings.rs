//! The configuration of origin servers.
//!
//! Thousands of servers differ only in their addresses, so common settings are stored once:
//!
//! ```text
//! OriginConfig ── what all servers of a process share: content types, seeds, rules for unusual requests
//!  └─ ServerProfile ── servers of one configuration: think time, limits, cookies, ...
//!      └─ ServerSpec ── an address
//! ```

use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_multiplex::Http2Settings;
use polygraph_stats::StatusScope;
use polygraph_tls::settings::{CertificateFault, ServerTls};
use polygraph_traffic::headers::HeaderRule;
use polygraph_traffic::{Catalog, ContentKind, Distr, PopModel, Seed, Selector, UniqId};
use polygraph_wire::auth::access::Access;

/// What all servers of a process have in common.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OriginConfig {
    /// The content types, equal to those of the robots.
    pub catalog: Arc<Catalog>,
    /// The profiles of servers.
    pub profiles: Vec<ServerProfile>,
    /// The seed of the servers' random choices.
    pub seed: Seed,
    /// The id of the process group, which every reply contains.
    pub group: UniqId,
    /// Whether cachable content without a life cycle gets the header fields of generation 1.x: fresh for a year, and
    /// last modified on a fixed day. Otherwise it has no such fields.
    pub classic: bool,
    /// Whether URLs outside the benchmark get a random object instead of an error.
    pub ignore_urls: bool,
    /// Whether URLs outside the benchmark get a random object, and messages without the header fields of the
    /// benchmark are no error.
    pub accept_foreign_msgs: bool,
    /// Whether replies tell robots about the worlds of other robots.
    pub share_worlds: bool,
    /// The names, as [`ServerSpec::names`], by which clients know the servers of the test, in other processes, too.
    pub all_names: Vec<String>,
}

/// The settings of servers that differ only in their addresses.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ServerProfile {
    /// The name for messages.
    pub name: String,
    /// The content types of the servers, with their planned shares of all replies.
    pub contents: Selector<ContentKind>,
    /// The think time in seconds before the first byte of a reply, drawn for each request.
    pub think: Option<Distr>,
    /// The HTTP version of replies, drawn once for each server: 0 for HTTP/1.0, 1 for HTTP/1.1. If empty, it is 1.1.
    pub http_minors: Selector<u8>,
    /// Whether the servers accept HTTP/1.
    pub accepts_http1: bool,
    /// What the servers announce on HTTP/2 connections, if they accept them.
    pub http2: Option<Http2Settings>,
    /// What the servers announce on HTTP/3 connections, if they accept them. That needs [`ServerProfile::tls`].
    pub http3: Option<Http2Settings>,
    /// For how many seconds the servers announce HTTP/3 in their replies (`Alt-Svc`), if they do. That needs
    /// [`ServerProfile::http3`].
    pub alt_svc: Option<u64>,
    /// Requests per connection. Drawn values are truncated, and at least 1.
    pub requests_per_connection: Distr,
    /// The time in nanoseconds after which an idle connection is closed.
    pub idle_timeout: Option<Nanos>,
    /// The lifetime in seconds of a transaction, from the request to the end of its reply, drawn for each request.
    pub lifetime: Option<Distr>,
    /// The share (0 to 1) of replies with a body that are cut on purpose.
    pub abort_prob: f64,
    /// Redirects to other objects.
    pub redirects: Option<Redirects>,
    /// The cookies that replies set.
    pub cookies: Option<Cookies>,
    /// The share (0 to 1) of requests with `Expect: 100-continue` that may continue; the others get status 417.
    pub continue_prob: f64,
    /// Access control; `None`: everybody gets objects.
    pub access: Option<Arc<Access>>,
    /// Additional header fields of replies.
    pub headers: Vec<HeaderRule>,
    /// The statuses that are also counted separately.
    pub custom_scope: StatusScope,
    /// The settings of TLS, of which each server draws one. If empty, the servers have no TLS; otherwise they have nothing else.
    pub tls: Selector<Arc<ServerTls>>,
}

impl ServerProfile {
    /// What is wrong with the certificates of all these servers on purpose.
    pub fn certificate_fault(&self) -> Option<CertificateFault> {
        self.tls.items().first()?.fault
    }

    /// A profile of servers with the content types `contents` that reply at once, over HTTP/1.1, one request per
    /// connection.
    pub fn plain(name: &str, contents: Vec<ContentKind>) -> ServerProfile {
        ServerProfile {
            name: name.to_owned(),
            contents: Selector::even(contents),
            think: None,
            http_minors: Selector::default(),
            accepts_http1: true,
            http2: None,
            http3: None,
            alt_svc: None,
            requests_per_connection: Distr::Const(1.0),
            idle_timeout: None,
            lifetime: None,
            abort_prob: 0.0,
            redirects: None,
            cookies: None,
            continue_prob: 1.0,
            access: None,
            headers: Vec::new(),
            custom_scope: StatusScope::default(),
            tls: Selector::default(),
        }
    }
}

/// Redirects of requests: status 302 and an object that a robot has already requested.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Redirects {
    /// The share (0 to 1) of redirected requests while the factor for special messages is 1.
    pub share: f64,
    /// The choice of the object.
    pub popularity: PopModel,
}

/// Cookies that replies set. The object determines whether a reply sets cookies, and which.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cookies {
    /// The share (0 to 1) of servers that set cookies.
    pub senders: f64,
    /// The share (0 to 1) of objects that set cookies.
    pub prob: f64,
    /// The number of cookies. Drawn values are rounded up, and at least 1.
    pub count: Distr,
    /// The size of each value in bytes.
    pub size: Distr,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerSpec {
    /// The position of its profile in [`OriginConfig::profiles`].
    pub profile: usize,
    /// The number of the server among all servers of the test, which seeds its fixed random choices.
    pub number: u64,
    /// The address of the server as `host:port`, which every reply contains.
    pub address: String,
    /// The names, as `host:port`, by which clients know the server. A host that starts with `*.` matches all names
    /// with this suffix. An empty list matches any name.
    pub names: Vec<String>,
}
