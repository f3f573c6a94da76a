//! The settings of the robots of one loop.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_stats::StatusScope;
use polygraph_traffic::headers::HeaderRule;
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, Seed, Selector, UniqId};
use serde::{Deserialize, Serialize};

/// How a robot decides when to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Open loop: a Poisson stream with a constant mean rate, not slowed by replies.
    Open {
        /// Requests per second and robot.
        rate: f64,
    },
    /// Open loop with gaps of any distribution, in seconds.
    InterArrival(Distr),
    /// Closed loop ("best effort"): the next request follows when everything before has ended.
    Closed {
        /// Pause before the next request, in seconds.
        think: Option<Distr>,
    },
    /// The robot has no load of its own.
    Passive,
}

/// A server as robots see it: a name in URLs, and where to find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The authority in URLs, `host:port`.
    pub authority: String,
    /// Where robots without a proxy connect to, one of these each time: the actual servers behind the name, or
    /// the device that poses as them. Empty if the name must be resolved.
    pub addresses: Vec<SocketAddr>,
    /// Position in [`Field::direct`] of the content types that can be requested.
    pub direct: usize,
}

/// How robots know the sizes of objects. They compare bytes in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verify {
    /// From the catalog.
    Full,
    /// From each reply (`X-Contents`), because this side does not know them. A size that the reply does not carry is not verified.
    Bytes,
}

/// The rules by which robots choose objects (docs/compat.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rules {
    /// An offered hit can be a hit.
    #[default]
    Device,
    /// The rules of Web Polygraph 4.9, for comparison with its results.
    V4_9,
}

impl Rules {
    /// Requests that fill no cache, like validations, are for known objects only.
    pub fn spares_new_objects(self) -> bool {
        self == Rules::Device
    }

    /// A repeat for which its server has no object goes to another one.
    pub fn moves_repeats(self) -> bool {
        self == Rules::Device
    }

    /// At its start a robot is somewhere in a page, instead of before its first one.
    pub fn begins_within_pages(self) -> bool {
        self == Rules::Device
    }
}

/// What the robots of a test have in common. Equal on all loops, and its catalog equal on both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Visible servers.
    pub servers: Vec<Server>,
    /// What can be asked for at a server: content types, not counting those found only inside others.
    pub direct: Vec<Selector<ContentKind>>,
    /// Object properties as the servers have them.
    pub catalog: Catalog,
    /// Generation 1.x: the client marks this share of objects as cachable by their kind, see
    /// [`Catalog::classic`]. Otherwise the content type is chosen first and says what is cachable.
    pub marks_cachable: Option<f64>,
    /// By which rules objects are chosen.
    pub rules: Rules,
    /// Seconds until the reply to a request for a page can be expected, if no cache has it.
    pub page_delay: f64,
    /// Age in seconds at which a new object may be asked for again, see [`polygraph_traffic::World`].
    pub settle: f64,
    /// How bodies are verified.
    pub verify: Verify,
    /// Tell servers about worlds and learn of others' worlds from them.
    pub share_worlds: bool,
    /// Servers answer with redirects; where they do not, a redirect is not theirs, whatever marks it carries.
    pub redirects: bool,
    /// Groups of addresses that may stand in for each other.
    pub substitutes: Vec<Vec<SocketAddr>>,
}

/// When a robot's request body waits for `100 Continue`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expect {
    /// The robot never waits.
    Never,
    /// The robot waits with this probability (0 to 1).
    Prob(f64),
    /// From this body size on, in bytes.
    From(u64),
}

/// Alternation of busy and idle periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// A busy period ends after so many seconds.
    pub busy_s: Option<f64>,
    /// A busy period ends after so many transactions.
    pub busy_xacts: Option<u64>,
    /// A busy period ends after so many bytes of cachable misses.
    pub busy_fill: Option<u64>,
    /// Length of idle periods in seconds.
    pub idle: Distr,
}

/// Resolution of names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dns {
    /// Name servers in request of preference.
    pub servers: Vec<SocketAddr>,
    /// How long each of them is waited for, in nanoseconds.
    pub timeout: Nanos,
    /// Ask for IPv6 addresses.
    pub v6: bool,
    /// AuthAnswers that are kept; 0 for none.
    pub cache: usize,
    /// Robots of the same group share their answers; `None`: each has its own.
    pub sharing_group: Option<String>,
}

/// The profile of robots: what one `Robot` of a workload says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Label of the profile in logs.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Local addresses; robot `i` uses number `i` modulo their count. Empty: the system chooses.
    pub addresses: Vec<IpAddr>,
    /// When requests are sent.
    pub load: Load,
    /// Which objects the robot requests.
    pub behavior: Behavior,
    /// Visible servers by position in [`Field::servers`].
    pub origins: Selector<usize>,
    /// The proxies under test, dealt to robots in turn: all connections go there, and requests carry absolute
    /// URLs. Empty: robots connect to the servers.
    pub proxies: Vec<SocketAddr>,
    /// Share of embedded objects that are requested (0 to 1).
    pub embed_recur: f64,
    /// Tags and attributes of links to embedded objects, for example `<embed src>`.
    pub container_tags: Vec<String>,
    /// Versions of HTTP, drawn once for each robot: 0 for 1.0, 1 for 1.1.
    pub http_minor: Selector<u8>,
    /// Requests per connection; draws are truncated, to at least 1.
    pub requests_per_connection: Distr,
    /// Idle connections are closed after so many nanoseconds.
    pub idle_timeout: Option<Nanos>,
    /// Open connections of a robot, at most.
    pub open_limit: Option<usize>,
    /// Transactions of a robot that wait for a connection, at most.
    pub wait_limit: Option<usize>,
    /// Requests in flight on a connection, at most; drawn for each connection.
    pub pipeline: Option<Distr>,
    /// Probability of using an idle connection to a substitute instead of a new one.
    pub minimize_new_conn: f64,
    /// Embedded objects that a robot remembers and does not ask for again.
    pub private_cache: usize,
    /// Every request uses a URL that was never used.
    pub unique_urls: bool,
    /// Transactions that take longer than so many seconds fail.
    pub lifetime: Option<Distr>,
    /// Probability of cutting a request body (0 to 1).
    pub abort_prob: f64,
    /// Contents of POST requests.
    pub post: Selector<ContentKind>,
    /// Contents of PUT requests.
    pub upload: Selector<ContentKind>,
    /// Probability of sending an earlier request body again (0 to 1).
    pub body_recurrence: f64,
    /// Which request bodies wait for `100 Continue`.
    pub expect: Expect,
    /// Further header fields of requests.
    pub headers: Vec<HeaderRule>,
    /// Value of `Accept-Encoding`; `None`: the field is not sent.
    pub accept_encoding: Option<String>,
    /// Busy and idle periods.
    pub session: Option<Session>,
    /// `user:password` items, which robots take in turn.
    pub credentials: Vec<String>,
    /// Probability of a spoiled password (0 to 1).
    pub auth_error: f64,
    /// Probability that a robot keeps cookies (0 to 1).
    pub cookie_sender: f64,
    /// Cookies kept for each server; drawn once for each robot and rounded up.
    pub cookies_keep: Distr,
    /// Share of requests that go to URLs of [`Profile::trace`] (0 to 1).
    pub foreign: f64,
    /// Foreign URLs.
    pub trace: Arc<Vec<String>>,
    /// Markup from servers whose `Server` field begins so is searched for any URI; `*` stands for all.
    pub raw_uri_thrower: Option<String>,
    /// Resolution of names.
    pub dns: Option<Dns>,
    /// Replies with one of these statuses are counted apart, whatever became of the transaction.
    pub custom_scope: StatusScope,
}

impl Profile {
    /// Robots that do nothing special: basic requests on one-request connections.
    pub fn plain(name: &str, count: usize, load: Load, behavior: Behavior) -> Profile {
        Profile {
            name: name.to_owned(),
            count,
            addresses: Vec::new(),
            load,
            behavior,
            origins: Selector::default(),
            proxies: Vec::new(),
            embed_recur: 0.0,
            container_tags: vec!["<embed src>".to_owned()],
            http_minor: Selector::only(1),
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
    /// Replies without any marks of ours, and those that a device made itself.
    pub foreign_replies: bool,
    /// Hits that were not offered. Only where others may have asked for the same objects.
    pub false_hits: bool,
    /// Markup that cannot be read.
    pub bad_tags: bool,
}

/// The robots of one loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Number of this loop's first robot; together with the seed it decides a robot's choices.
    pub first_robot: usize,
    /// Number of robots of this loop, at least 1.
    pub robots: usize,
    /// Kinds of robots. Robots are numbered through all of them in request.
    pub profiles: Vec<Arc<Profile>>,
    /// What all robots have in common.
    pub field: Arc<Field>,
    /// The load, or the number of active robots, rises linearly over so many seconds.
    pub launch_window: f64,
    /// Open connections of this loop; a request that would need more fails.
    pub open_limit: usize,
    /// The limit is what the host's file descriptors allow, and no part of the test.
    pub limited_by_host: bool,
    /// Seed of the robots' own choices.
    pub seed: Seed,
    /// Id of the process, in every request.
    pub group: UniqId,
    /// Agree with the other processes of the test, through the servers, about phases.
    pub share_phases: bool,
    /// The errors that are tolerated.
    pub tolerance: Tolerance,
    /// Others may have asked for the objects of this test before, so that a device may know new ones.
    pub others_fill: bool,
}

impl Settings {
    /// Number of robots on all loops.
    pub fn all_robots(&self) -> usize {
        self.profiles.iter().map(|profile| profile.count).sum()
    }

    /// The kind of robot number `number` (counted over all loops), and its number among its kind.
    pub fn member(&self, number: usize) -> (usize, usize) {
        let mut rest = number;
        for (index, profile) in self.profiles.iter().enumerate() {
            if rest < profile.count {
                return (index, rest);
            }
            rest -= profile.count;
        }
        (0, 0)
    }
}
