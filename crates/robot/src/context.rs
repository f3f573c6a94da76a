//! The context that all parts of a robot group share: the event loop, the recorder, the settings, and the generator of
//! requests.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, Nanos, nanos};
use polygraph_stats::{HttpVersion, Recorder};
use polygraph_traffic::groups::PhaseStatus;
use polygraph_traffic::{Fingerprint, IdSource, Random, Stream};
use polygraph_wire::markup::LinkTags;
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use crate::connections::hop::Hop;
use crate::divide;
use crate::exchange::digests::KnownDigests;
use crate::exchange::links::LinkFilter;
use crate::exchange::reply::ReplyMeta;
use crate::request::Request;
use crate::request::auth::{AuthSource, CredentialCycle};
use crate::request::generator::RequestGenerator;
use crate::robot::draw_http_version;
use crate::settings::{Profile, Settings};

/// Data prepared once for each profile.
#[derive(Debug)]
pub struct ProfileContext {
    /// The links to embedded objects that robots with this profile follow, if they follow any.
    pub links: Option<Rc<LinkFilter>>,
    /// Whether robots with this profile accept compressed content.
    pub accepts_gzip: bool,
    /// The order in which robots with this profile take credentials.
    pub credentials: CredentialCycle,
    /// Number of the profile's first robot in the whole test.
    first_number: usize,
    /// Position of the profile's first robot among those of this process.
    first_position: usize,
}

impl ProfileContext {
    fn new(
        profile: &Profile,
        settings: &Settings,
        first_number: usize,
        first_position: usize,
    ) -> ProfileContext {
        let filter = || {
            let tags = LinkTags::parse(&profile.container_tags).unwrap_or_default();
            Rc::new(LinkFilter::new(tags, profile.raw_uri_thrower.clone()))
        };
        ProfileContext {
            links: (profile.embed_recur > 0.0).then(filter),
            accepts_gzip: profile.accept_encoding.as_deref().is_some_and(accepts_gzip),
            credentials: CredentialCycle::new(
                settings.seed,
                profile.credentials.len(),
                settings.all_robots(),
            ),
            first_number,
            first_position,
        }
    }
}

/// The constant properties of a robot. They are read at every step, so they are separate from the robot's state.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Position of the robot's profile.
    profile: u32,
    /// Number of the robot among all of its profile in the whole test.
    number: u32,
    /// The version of HTTP that the robot speaks.
    http_version: HttpVersion,
    /// How the robot uses SOCKS proxies.
    socks: UseOfSocks,
}

/// How a robot uses SOCKS proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseOfSocks {
    Never,
    /// For connections to servers.
    ToServers,
    /// For connections to its HTTP proxy.
    ToProxy,
}

impl UseOfSocks {
    /// Draws how the robot with this number in the whole test uses them.
    fn draw(settings: &Settings, profile: usize, number: usize) -> UseOfSocks {
        let Some(socks) = &settings.profiles[profile].socks else { return UseOfSocks::Never };
        let mut choices = settings.seed.stream("socks", number as u64);
        let (uses, chained) = (choices.event(socks.share), choices.event(socks.chained));
        match (uses, chained) {
            (false, _) => UseOfSocks::Never,
            (true, false) => UseOfSocks::ToServers,
            (true, true) => UseOfSocks::ToProxy,
        }
    }
}

/// The context that all parts of a robot group share.
#[derive(Debug)]
pub struct GroupContext<L> {
    /// The event loop.
    pub link: L,
    /// The recorder of the event loop.
    pub recorder: Recorder,
    /// The settings of the group.
    pub settings: Settings,
    /// The contents that robots expect of servers.
    pub contents: Fingerprint,
    /// The generator of requests.
    pub generator: RefCell<RequestGenerator>,
    /// Random draws that depend on replies and thus on time, like the length of connections. They are apart from the robots'
    /// own streams so that the sequence of a robot's requests does not depend on replies.
    pub reply_rng: RefCell<Stream>,
    /// The phase status that requests carry.
    pub phase_status: Cell<PhaseStatus>,
    /// A buffer for the head of the request that is being sent.
    pub head_buffer: RefCell<Vec<u8>>,
    /// Digests of objects that were requested.
    pub known_digests: RefCell<KnownDigests>,
    /// The facts of judged replies, whose memory the next replies use.
    pub spare_replies: RefCell<Vec<Box<ReplyMeta>>>,
    /// Hosts of foreign URLs that need their own connections.
    foreign_hosts: RefCell<ForeignHosts>,
    profiles: Vec<ProfileContext>,
    members: Vec<Member>,
}

/// Foreign hosts by number, in the order in which robots met them.
#[derive(Debug, Default)]
struct ForeignHosts {
    numbers: FxHashMap<(String, bool), usize>,
    list: Vec<(String, bool)>,
}

impl ForeignHosts {
    /// The number of a host, with TLS or without.
    fn number(&mut self, authority: &str, tls: bool) -> usize {
        let list = &mut self.list;
        *self.numbers.entry((authority.to_owned(), tls)).or_insert_with(|| {
            list.push((authority.to_owned(), tls));
            list.len() - 1
        })
    }

    fn get(&self, number: usize) -> &(String, bool) {
        &self.list[number]
    }
}

/// Maximum number of judged exchanges and replies whose memory is kept, each.
const SPARES: usize = 64;

impl<L: Link> GroupContext<L> {
    /// The context of a group with these settings, whose ids come from `ids`.
    pub fn new(link: L, recorder: Recorder, settings: Settings, ids: IdSource) -> GroupContext<L> {
        let places = divide::places(&settings);
        let member = |robot: usize| {
            let position = settings.first_robot + robot;
            let profile = settings.kind(position);
            let number = settings.number(position) - places[profile].first;
            let http_version = draw_http_version(&settings, position).0;
            let socks = UseOfSocks::draw(&settings, profile, settings.number(position));
            Member { profile: profile as u32, number: number as u32, http_version, socks }
        };
        let profile = |(kind, profile): (usize, &Arc<Profile>)| {
            ProfileContext::new(profile, &settings, places[kind].first, settings.first_position(kind))
        };
        GroupContext {
            profiles: settings.profiles.iter().enumerate().map(profile).collect(),
            members: (0..settings.robots).map(member).collect(),
            contents: Fingerprint::of(&settings.field.catalog),
            generator: RefCell::new(RequestGenerator::new(&settings, ids)),
            reply_rng: RefCell::new(settings.seed.stream("connection", settings.first_number() as u64)),
            phase_status: Cell::default(),
            head_buffer: RefCell::default(),
            known_digests: RefCell::default(),
            spare_replies: RefCell::default(),
            foreign_hosts: RefCell::default(),
            link,
            recorder,
            settings,
        }
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.link.now()
    }

    /// The time of day in seconds since 1970, at least 0.
    pub fn unix_seconds(&self) -> u64 {
        u64::try_from(self.link.unix_seconds()).unwrap_or(0)
    }

    /// The view of robot number `robot` of this group.
    pub fn of(&self, robot: usize) -> RobotContext<'_, L> {
        RobotContext { group: self, robot }
    }

    /// The URL of a request.
    pub fn url(&self, request: &Request) -> String {
        if let Some(url) = &request.foreign {
            return url.to_string();
        }
        let server = &self.settings.field.servers[request.server];
        format!("{}{}{}", server.scheme(), server.host(), self.path(request))
    }

    /// The path in the URL of a request to a server of the test.
    pub fn path(&self, request: &Request) -> String {
        let mut path = Vec::new();
        self.settings.field.catalog.write_path(&request.oid, &mut path);
        String::from_utf8_lossy(&path).into_owned()
    }

    /// The position in the schedule of phases that requests carry, and whether this process waits for others there; `None` if
    /// processes of the test do not agree about phases.
    pub fn phase_position(&self) -> Option<(u64, bool)> {
        let status = self.phase_status.get();
        self.settings.share_phases.then_some((status.position, status.waits))
    }
}

/// Keeps the memory of `spare` for others, unless there is enough.
pub fn keep<T>(spares: &RefCell<Vec<Box<T>>>, spare: Box<T>) {
    let mut spares = spares.borrow_mut();
    if spares.len() < SPARES {
        spares.push(spare);
    }
}

/// The view of one robot.
#[derive(Debug)]
pub struct RobotContext<'a, L> {
    /// The context of the group.
    pub group: &'a GroupContext<L>,
    /// Number of the robot in this group.
    pub robot: usize,
}

impl<L> Clone for RobotContext<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for RobotContext<'_, L> {}

impl<L> Deref for RobotContext<'_, L> {
    type Target = GroupContext<L>;

    fn deref(&self) -> &GroupContext<L> {
        self.group
    }
}

impl<'a, L: Link> RobotContext<'a, L> {
    fn member(self) -> &'a Member {
        &self.group.members[self.robot]
    }

    /// Position of the robot's profile.
    pub fn profile_index(self) -> usize {
        self.member().profile as usize
    }

    /// The robot's profile.
    pub fn profile(self) -> &'a Profile {
        &self.group.settings.profiles[self.profile_index()]
    }

    /// The prepared data of the robot's profile.
    pub fn prepared(self) -> &'a ProfileContext {
        &self.group.profiles[self.profile_index()]
    }

    /// The version of HTTP that the robot speaks.
    pub fn http_version(self) -> HttpVersion {
        self.member().http_version
    }

    /// The version of HTTP that the robot speaks to `hop`: alternative services speak HTTP/3.
    pub fn version_to(self, hop: Hop) -> HttpVersion {
        if hop.alternative.is_some() { HttpVersion::Http3 } else { self.http_version() }
    }

    /// The minor version in the HTTP/1 form of messages.
    pub fn http_minor(self) -> u8 {
        self.http_version().minor()
    }

    /// Number of the robot in the whole test.
    pub fn number(self) -> usize {
        self.prepared().first_number + self.member().number as usize
    }

    /// The robot's own address, if it has one.
    pub fn address(self) -> Option<IpAddr> {
        let addresses = &self.profile().addresses;
        let here = self.group.settings.first_robot + self.robot - self.prepared().first_position;
        (!addresses.is_empty()).then(|| addresses[here % addresses.len()])
    }

    /// The robot's HTTP proxy, if it uses one.
    pub fn proxy(self) -> Option<SocketAddr> {
        match self.member().socks {
            UseOfSocks::ToServers => None,
            UseOfSocks::Never | UseOfSocks::ToProxy => self.dealt(&self.profile().proxies),
        }
    }

    /// The robot's SOCKS proxy, if it uses one.
    pub fn socks(self) -> Option<SocketAddr> {
        match self.member().socks {
            UseOfSocks::Never => None,
            UseOfSocks::ToServers | UseOfSocks::ToProxy => {
                self.profile().socks.as_ref().and_then(|socks| self.dealt(&socks.proxies))
            }
        }
    }

    /// The host of the robot's HTTP proxy as the user names it.
    pub fn proxy_name(self) -> String {
        let (names, proxies) = (&self.profile().proxy_names, &self.profile().proxies);
        // Both lists are dealt alike.
        match (names.len() == proxies.len() && !names.is_empty(), self.proxy()) {
            (true, Some(_)) => names[self.member().number as usize % names.len()].clone(),
            (false, Some(proxy)) => proxy.ip().to_string(),
            (_, None) => String::new(),
        }
    }

    /// The principal of a proxy or server in Kerberos.
    pub fn service(self, source: AuthSource) -> String {
        let named = self.profile().kerberos.as_ref().and_then(|kerberos| kerberos.service.clone());
        match source {
            AuthSource::Proxy => named.unwrap_or_else(|| format!("HTTP/{}", self.proxy_name())),
            AuthSource::Origin(server) => {
                let authority = &self.group.settings.field.servers[server].authority;
                let host =
                    uri::host_port(authority.as_bytes()).map_or(authority.as_bytes(), |(host, _)| host);
                format!("HTTP/{}", String::from_utf8_lossy(host))
            }
        }
    }

    /// Whether the robot's SOCKS proxy gets names instead of addresses.
    pub fn sends_names(self) -> bool {
        self.socks().is_some() && self.profile().socks.as_ref().is_some_and(|socks| socks.names)
    }

    /// The peer of requests to `host:port`, a host that is no server of the test.
    pub fn foreign_peer(self, authority: &str, tls: bool) -> u32 {
        let first = self.group.settings.field.servers.len();
        (first + self.group.foreign_hosts.borrow_mut().number(authority, tls)) as u32
    }

    /// The authority, `host:port`, of the peer with this number: a visible server or a foreign host.
    pub fn authority(self, peer: u32) -> String {
        let servers = &self.group.settings.field.servers;
        match servers.get(peer as usize) {
            Some(server) => server.authority.clone(),
            None => self.group.foreign_hosts.borrow().get(peer as usize - servers.len()).0.clone(),
        }
    }

    /// Whether TLS to the server at the end of the connection is a layer of connections to `hop`.
    pub fn has_tls(self, hop: Hop) -> bool {
        let servers = &self.group.settings.field.servers;
        hop.server.is_some_and(|peer| match servers.get(peer as usize) {
            Some(server) => server.tls,
            None => self.group.foreign_hosts.borrow().get(peer as usize - servers.len()).1,
        })
    }

    /// Whether requests to `hop` travel over TLS.
    pub fn is_secure(self, hop: Hop) -> bool {
        self.has_tls(hop) || self.profile().secure_proxies.contains(&hop.address)
    }

    /// Whether requests to `hop` travel through a tunnel of the proxy.
    pub fn is_tunneled(self, hop: Hop) -> bool {
        self.has_tls(hop) && self.proxy().is_some()
    }

    /// Whether the URL of a request is `https`.
    pub fn is_https(self, request: &Request) -> bool {
        match &request.foreign {
            None => self.group.settings.field.servers[request.server].tls,
            Some(url) => url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://")),
        }
    }

    /// Whether the robot's HTTP proxy sees the request. It does not see requests in its tunnels.
    pub fn is_via_proxy(self, request: &Request) -> bool {
        self.proxy().is_some() && !self.is_https(request)
    }

    /// The robot's item of those that are dealt to the robots of a profile in turn.
    fn dealt<T: Copy>(self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.member().number as usize % items.len()])
    }

    /// When a transaction that starts at `now` times out, if it can.
    pub fn draw_deadline(self, now: Nanos) -> Option<Nanos> {
        let lifetime = self.profile().lifetime.as_ref()?.sample(&mut *self.group.reply_rng.borrow_mut());
        Some(now + nanos(lifetime))
    }

    /// Whether the robot sends several requests on a connection before their replies arrive. The streams of a multiplexed
    /// connection make that unnecessary.
    pub fn pipelines(self) -> bool {
        self.profile().pipeline.is_some() && !self.http_version().is_multiplexed()
    }

    /// The largest number of requests in flight on a connection of the robot; drawn each time.
    pub fn draw_pipeline_depth(self) -> u32 {
        let depth = self.profile().pipeline.as_ref();
        let drawn = depth.map(|depth| depth.sample(&mut *self.group.reply_rng.borrow_mut()));
        drawn.unwrap_or(1.0).clamp(1.0, 1000.0) as u32
    }

    /// Whether something happens that has the probability `prob`, drawn from [`GroupContext::reply_rng`].
    pub fn draw_event(self, prob: f64) -> bool {
        self.group.reply_rng.borrow_mut().event(prob)
    }
}

/// Whether an entry of the `Accept-Encoding` value starts with `gzip` or `*`.
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|entry| entry.trim().starts_with("gzip") || entry.trim().starts_with('*'))
}
