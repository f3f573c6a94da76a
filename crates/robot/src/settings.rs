//! The settings of the robots of one loop.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_multiplex::Http2Settings;
use polygraph_stats::{HttpVersion, StatusScope};
use polygraph_tls::settings::{CertificateFault, ClientTls};
use polygraph_traffic::headers::HeaderRule;
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, Oid, RequestKind, Seed, Selector, UniqId};
use serde::{Deserialize, Serialize};

use crate::share::RobotShare;

/// How a robot decides when to send a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Open loop: a Poisson stream with a constant mean rate, not slowed by replies.
    Open {
        /// Requests per second and robot.
        rate: f64,
    },
    /// Open loop with inter-arrival times of any distribution, in seconds.
    InterArrival(Distr),
    /// Closed loop ("best effort"): the next request follows when all earlier transactions have ended.
    Closed {
        /// Pause before the next request, in seconds.
        think: Option<Distr>,
    },
    /// The robot starts no requests itself.
    Passive,
}

/// A server as robots see it: a name in URLs, and its addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The authority in URLs, `host:port`.
    pub authority: String,
    /// Addresses that robots without a proxy connect to, one of them each time: the actual servers behind the name, or the device
    /// that acts as the servers. Empty if the name must be resolved.
    pub addresses: Vec<SocketAddr>,
    /// The addresses that a name server should give for the name; empty if robots do not ask, or the workload does not say.
    pub behind: Vec<IpAddr>,
    /// Position in [`Field::direct`] of the content types that can be requested.
    pub direct: usize,
    /// Whether robots use TLS to it, so that its URLs begin with `https`.
    pub tls: bool,
    /// If it shows a bad certificate on purpose.
    pub bad_certificate: Option<BadCertificate>,
}

/// The bad certificate that a server shows on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadCertificate {
    /// What is wrong with it.
    pub fault: CertificateFault,
    /// Whether a device acts as the server, so that robots see the certificate of the device instead.
    pub is_hidden: bool,
}

impl Server {
    /// The scheme of URLs, with what separates it from the host.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https://" } else { "http://" }
    }

    /// The authority as clients write it: without the default port of the scheme.
    pub fn host(&self) -> &str {
        let default = if self.tls { ":443" } else { ":80" };
        self.authority.strip_suffix(default).unwrap_or(&self.authority)
    }
}

/// The source of object sizes. Robots always compare bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verify {
    /// Sizes come from the catalog.
    Full,
    /// Sizes come from each reply (`X-Contents`), because this side does not know them. A size that the reply does not carry is
    /// not verified.
    Bytes,
}

/// The rules by which robots choose objects (docs/compat.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rules {
    /// The rules of this program: every offered hit can be a hit.
    #[default]
    Device,
    /// The rules of Web Polygraph 4.9, for comparison with its results.
    V4_9,
}

impl Rules {
    /// Whether requests that fill no cache, such as validations, are only for known objects.
    pub fn spares_new_objects(self) -> bool {
        self == Rules::Device
    }

    /// Whether a repeat goes to another server if its server has no known object.
    pub fn moves_repeats(self) -> bool {
        self == Rules::Device
    }

    /// Whether a robot starts in the middle of a page instead of before its first page.
    pub fn begins_within_pages(self) -> bool {
        self == Rules::Device
    }
}

/// The settings that the robots of a test share. It is equal on all loops, and its catalog is equal on both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Visible servers.
    pub servers: Vec<Server>,
    /// Content types that robots can request directly from a server, that is, all except those that occur only inside
    /// others.
    pub direct: Vec<Selector<ContentKind>>,
    /// Object properties as the servers have them.
    pub catalog: Catalog,
    /// Generation 1.x: the client marks this share of objects as cachable by their kind, see [`Catalog::classic`].
    /// Otherwise the content type is chosen first and determines cachability.
    pub marks_cachable: Option<f64>,
    /// The rules by which robots choose objects.
    pub rules: Rules,
    /// Seconds until the reply to a request for a page can be expected, if no cache has it.
    pub page_delay: f64,
    /// Age in seconds at which a new object may be requested again, see [`polygraph_traffic::World`].
    pub settle: f64,
    /// How bodies are verified.
    pub verify: Verify,
    /// Whether processes share their worlds through the servers.
    pub share_worlds: bool,
    /// Whether servers answer with redirects. If they do not, a redirect is not theirs, whatever marks it carries.
    pub redirects: bool,
    /// What servers say of the freshness of objects.
    pub freshness: ToldFreshness,
    /// Groups of addresses that may replace each other.
    pub substitutes: Vec<Vec<SocketAddr>>,
}

/// What the replies of servers say of the freshness of objects that may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToldFreshness {
    /// The workload configures fields about it, so robots cannot know.
    Configured,
    /// `Expires` as the life cycle wants it.
    LifeCycle,
    /// The same, and a `max-age` of a year for objects without a life cycle (generation 1.x).
    Classic,
}

impl Field {
    /// The kind of a request for this object if `kind` was drawn: nobody can validate what has no life cycle.
    pub fn kind_for(&self, kind: RequestKind, oid: &Oid) -> RequestKind {
        let lives = || self.catalog.content(oid.kind).is_some_and(|content| content.life.is_some());
        match kind {
            RequestKind::Ims200 | RequestKind::Ims304 if !lives() => RequestKind::Basic,
            kind => kind,
        }
    }
}

/// When a robot's request body waits for `100 Continue`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expect {
    /// The robot never waits.
    Never,
    /// The robot waits with this probability (0 to 1).
    Prob(f64),
    /// The robot waits from this body size on, in bytes.
    From(u64),
}

/// Alternation of busy and idle periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// A busy period ends after this many seconds.
    pub busy_s: Option<f64>,
    /// A busy period ends after this many transactions.
    pub busy_xacts: Option<u64>,
    /// A busy period ends after this many bytes of cachable misses.
    pub busy_fill: Option<u64>,
    /// Length of idle periods in seconds.
    pub idle: Distr,
}

/// Resolution of names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers in order of preference.
    pub servers: Vec<SocketAddr>,
    /// How long robots wait for an answer from each of them, in nanoseconds.
    pub timeout: Nanos,
    /// Whether robots query IPv6 addresses.
    pub v6: bool,
    /// Maximum number of answers that are kept; 0 for none.
    pub cache: usize,
    /// Group whose robots share their answers; `None`: each robot has its own.
    pub sharing_group: Option<String>,
}

/// SOCKS proxies of robots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Socks {
    /// The proxies, which robots take in turn.
    pub proxies: Vec<SocketAddr>,
    /// Share of robots that connect through them (0 to 1); drawn once for each robot.
    pub share: f64,
    /// Share of those robots that use their HTTP proxy through the SOCKS proxy (0 to 1); the others connect to servers. Drawn once for
    /// each robot.
    pub chained: f64,
    /// Whether the SOCKS proxies get names and resolve them; otherwise they get addresses.
    pub names: bool,
}

/// Kerberos of robots: how they get tickets for proxies and servers that demand the scheme `Negotiate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kerberos {
    /// The realm of users and services.
    pub realm: String,
    /// KDCs that are asked over UDP, in this order.
    pub udp: Vec<SocketAddr>,
    /// KDCs that are asked over TCP, in this order, after those over UDP.
    pub tcp: Vec<SocketAddr>,
    /// How long robots wait for a reply of each of them.
    pub timeout: Nanos,
    /// The principal of proxies; `None`: `HTTP/` and the host of the proxy.
    pub service: Option<String>,
}

/// The profile of a kind of robots: one `Robot` of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Label of the profile in logs.
    pub name: String,
    /// Number of robots.
    pub count: usize,
    /// Local addresses; robot `i` uses number `i` modulo their count. Empty: the system chooses.
    pub addresses: Vec<IpAddr>,
    /// When requests are sent.
    pub load: Load,
    /// Which objects the robot requests.
    pub behavior: Behavior,
    /// Visible servers by position in [`Field::servers`].
    pub origins: Selector<usize>,
    /// The proxies under test, which robots take in turn: all connections go there, and requests carry absolute URLs. Empty:
    /// robots connect to the servers.
    pub proxies: Vec<SocketAddr>,
    /// The hosts of [`Profile::proxies`], in the same order, as the user names them.
    pub proxy_names: Vec<String>,
    /// Those of [`Profile::proxies`] to which robots use TLS.
    pub secure_proxies: Vec<SocketAddr>,
    /// The settings of TLS, of which each robot draws one; empty if robots cannot use it.
    pub tls: Selector<Arc<ClientTls>>,
    /// SOCKS proxies, if robots use any.
    pub socks: Option<Socks>,
    /// Kerberos, if robots use it instead of NTLM in `Negotiate`.
    pub kerberos: Option<Kerberos>,
    /// Share of embedded objects that are requested (0 to 1).
    pub embed_recur: f64,
    /// Tags and attributes of links to embedded objects, for example `<embed src>`.
    pub container_tags: Vec<String>,
    /// Versions of HTTP, drawn once for each robot.
    pub http_version: Selector<HttpVersion>,
    /// Whether robots send requests over HTTP/3 to where servers say that they speak it (`Alt-Svc`).
    pub follow_alt_svc: bool,
    /// What robots announce on HTTP/2 connections.
    pub http2: Http2Settings,
    /// Requests per connection; draws are truncated, to at least 1.
    pub requests_per_connection: Distr,
    /// Idle connections are closed after this many nanoseconds.
    pub idle_timeout: Option<Nanos>,
    /// Maximum number of open connections of a robot.
    pub open_limit: Option<usize>,
    /// Maximum number of transactions of a robot that wait for a connection.
    pub wait_limit: Option<usize>,
    /// Maximum number of requests in flight on a connection; drawn for each connection.
    pub pipeline: Option<Distr>,
    /// Probability of using an idle connection to a substitute instead of a new one.
    pub minimize_new_conn: f64,
    /// Number of embedded objects that a robot remembers and does not request again.
    pub private_cache: usize,
    /// Whether every request uses a URL that was never used before.
    pub unique_urls: bool,
    /// Transactions that take longer than this many seconds fail.
    pub lifetime: Option<Distr>,
    /// Probability of aborting a request in its body (0 to 1).
    pub abort_prob: f64,
    /// Contents of POST requests.
    pub post: Selector<ContentKind>,
    /// Contents of PUT requests.
    pub upload: Selector<ContentKind>,
    /// Probability of sending an earlier request body again (0 to 1).
    pub body_recurrence: f64,
    /// Which request bodies wait for `100 Continue`.
    pub expect: Expect,
    /// Additional header fields of requests.
    pub headers: Vec<HeaderRule>,
    /// Value of `Accept-Encoding`; `None`: the field is not sent.
    pub accept_encoding: Option<String>,
    /// Busy and idle periods.
    pub session: Option<Session>,
    /// `user:password` items, which robots take in turn.
    pub credentials: Vec<String>,
    /// Probability of an intentionally wrong password (0 to 1).
    pub auth_error: f64,
    /// Share (0 to 1) of Negotiate handshakes in SPNEGO; the others send NTLM without this frame.
    pub spnego: f64,
    /// Probability that a robot keeps cookies (0 to 1).
    pub cookie_sender: f64,
    /// Cookies kept for each server; drawn once for each robot and rounded up.
    pub cookies_keep: Distr,
    /// Share of requests that go to URLs of [`Profile::trace`] (0 to 1).
    pub foreign: f64,
    /// Foreign URLs.
    pub trace: Arc<Vec<String>>,
    /// Markup from servers whose `Server` field starts with one of these texts is searched for any URI; `*` stands for all.
    pub raw_uri_thrower: Option<String>,
    /// Resolution of names.
    pub dns: Option<Dns>,
    /// Replies with one of these statuses are also counted separately, whether the transaction succeeded or failed.
    pub custom_scope: StatusScope,
}

impl Profile {
    /// Whether a robot of this kind speaks HTTP/3.
    pub fn speaks_http3(&self) -> bool {
        self.http_version.items().contains(&HttpVersion::Http3)
    }

    /// Whether no robot of this kind speaks HTTP/1.
    pub fn speaks_only_http2(&self) -> bool {
        let versions = self.http_version.items();
        !versions.is_empty() && versions.iter().all(|version| version.is_multiplexed())
    }

    /// Whether robots of this kind use URLs of the trace of `other`.
    pub fn follows_trace_of(&self, other: &Profile) -> bool {
        self.foreign > 0.0 && self.has_trace_of(other)
    }

    /// Whether both kinds name the same trace.
    pub fn has_trace_of(&self, other: &Profile) -> bool {
        Arc::ptr_eq(&self.trace, &other.trace) || self.trace == other.trace
    }

    /// Robots with default behaviour: basic requests, one per connection.
    pub fn plain(name: &str, count: usize, load: Load, behavior: Behavior) -> Profile {
        Profile {
            name: name.to_owned(),
            count,
            addresses: Vec::new(),
            load,
            behavior,
            origins: Selector::default(),
            proxies: Vec::new(),
            proxy_names: Vec::new(),
            secure_proxies: Vec::new(),
            tls: Selector::default(),
            socks: None,
            kerberos: None,
            embed_recur: 0.0,
            container_tags: vec!["<embed src>".to_owned()],
            http_version: Selector::only(HttpVersion::Http11),
            follow_alt_svc: false,
            http2: Http2Settings::default(),
            requests_per_connection: Distr::Const(1.0),
            idle_timeout: None,
            open_limit: None,
            wait_limit: None,
            pipeline: None,
            minimize_new_conn: 0.0,
            private_cache: 0,
            unique_urls: false,
            lifetime: None,
            abort_prob: 0.0,
            post: Selector::default(),
            upload: Selector::default(),
            body_recurrence: 0.0,
            expect: Expect::Never,
            headers: Vec::new(),
            accept_encoding: None,
            session: None,
            credentials: Vec::new(),
            auth_error: 0.0,
            spnego: 1.0,
            cookie_sender: 1.0,
            cookies_keep: Distr::Const(4.0),
            foreign: 0.0,
            trace: Arc::default(),
            raw_uri_thrower: None,
            dns: None,
            custom_scope: StatusScope::default(),
        }
    }
}

/// The errors in replies that the user tolerates: none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Whether robots accept replies without our marks and replies that a device generated itself.
    pub foreign_replies: bool,
    /// Whether robots accept hits that were not offered. Only for tests in which others may have requested the same objects.
    pub false_hits: bool,
    /// Whether robots accept unreadable markup.
    pub bad_tags: bool,
}

/// The robots of one loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Position of this loop's first robot among those of this process.
    pub first_robot: usize,
    /// Number of robots of this loop, at least 1.
    pub robots: usize,
    /// Kinds of robots of this process. Robots are numbered consecutively through all kinds.
    pub profiles: Vec<Arc<Profile>>,
    /// The numbers that these robots have in the whole test; `None`: this process runs all robots.
    pub share: Option<Arc<RobotShare>>,
    /// The settings that all robots share.
    pub field: Arc<Field>,
    /// The load, or the number of active robots, rises linearly over this many seconds.
    pub launch_window: f64,
    /// Maximum number of open connections of this loop; a request that needs one more fails.
    pub open_limit: usize,
    /// Whether the limit comes from the host's file descriptors and is not a part of the test.
    pub limited_by_host: bool,
    /// Seed of the robots' own choices.
    pub seed: Seed,
    /// Id of the process, in every request.
    pub group: UniqId,
    /// Whether the process agrees on phases with the other processes of the test, through the servers.
    pub share_phases: bool,
    /// The errors that are tolerated.
    pub tolerance: Tolerance,
    /// Whether others may have requested the objects of this test before, so that a device may have copies of new objects.
    pub others_fill: bool,
}

impl Settings {
    /// Number of robots of the whole test.
    pub fn all_robots(&self) -> usize {
        let here = || self.profiles.iter().map(|profile| profile.count).sum();
        self.share.as_ref().map_or_else(here, |share| share.all())
    }

    /// The number of a robot in the whole test, with which the seed determines its choices. `position` counts the robots of all
    /// loops of this process.
    pub fn number(&self, position: usize) -> usize {
        self.share.as_ref().map_or(position, |share| share.number(position))
    }

    /// The number, in the whole test, of this loop's first robot.
    pub fn first_number(&self) -> usize {
        self.number(self.first_robot)
    }

    /// The position of the first robot of a kind among those of this process.
    pub fn first_position(&self, kind: usize) -> usize {
        self.profiles[..kind].iter().map(|profile| profile.count).sum()
    }

    /// The kind of the robot at `position` among those of this process, counted over all loops.
    pub fn kind(&self, position: usize) -> usize {
        let mut rest = position;
        for (index, profile) in self.profiles.iter().enumerate() {
            if rest < profile.count {
                return index;
            }
            rest -= profile.count;
        }
        0
    }
}
