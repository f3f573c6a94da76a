//! A test as the engine runs it, made from options of the command line or from a workload.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polygraph_origin::settings::ServerProfile;
use polygraph_robot::settings::Socks;
use polygraph_robot::{Field, Load, Profile, RobotShare, Server};
use polygraph_stats::{HttpVersion, Side};
use polygraph_traffic::{Distr, Selector};

use crate::accounts::Accounts;
use crate::bench_needs::BenchNeeds;
use crate::phases::Schedule;

/// A test that the engine can run.
#[derive(Clone, Debug)]
pub struct Test {
    /// Name of the workload, for example `PolyMix-1`.
    pub name: String,
    /// Kinds of robots; empty if another program is the client side.
    pub robots: Vec<Arc<Profile>>,
    /// What all robots share: the visible servers, and the contents, which servers share too.
    pub field: Arc<Field>,
    /// Kinds of servers.
    pub servers: Vec<ServerGroup>,
    /// The test is one of generation 1.x: its replies carry the marks of that generation, and its contents are
    /// not distinguished.
    pub classic: bool,
    /// The accounts that robots log in with, and that servers know.
    pub accounts: Accounts,
    /// The phases.
    pub schedule: Schedule,
    /// Seconds over which the load rises at the start.
    pub launch_window: f64,
    /// The hosts that the test needs, with the addresses of their agents; the reason if agents cannot be shared among hosts.
    pub needs: Result<BenchNeeds, String>,
    /// Names of visible servers with the addresses behind them, for a name server.
    pub names: Vec<(String, Vec<IpAddr>)>,
    /// The workload's text as it was compiled; empty for tests that options describe.
    pub text: String,
    /// Notes for the user: parts of the workload that have no effect on the wire here.
    pub notes: Vec<String>,
    /// Whether robots use TLS to the device that acts as the servers, or to the proxy; `None`: to a device that acts as the
    /// servers if these have TLS, and not to a proxy.
    pub device_tls: Option<bool>,
    /// The agents of the test that this process runs.
    pub share: TestShare,
}

/// The numbers, in the whole test, of the agents that a process runs; `None` if it runs all agents of the side.
#[derive(Clone, Debug, Default)]
pub struct TestShare {
    /// The numbers of robots.
    pub robots: Option<Arc<RobotShare>>,
    /// The numbers of servers.
    pub servers: Option<Vec<u64>>,
}

/// Servers of one kind.
#[derive(Clone, Debug)]
pub struct ServerGroup {
    /// The behaviour of the servers.
    pub farm: ServerProfile,
    /// The addresses and names of the servers.
    pub sites: Vec<Endpoint>,
}

impl ServerGroup {
    /// The kinds of content that the servers have.
    fn kinds(&self) -> BTreeSet<u8> {
        self.farm.contents.items().iter().map(|kind| kind.0).collect()
    }
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address to listen at; port 0 means a free one.
    pub listen: SocketAddr,
    /// The names, as `host:port`, by which robots know the server; empty if it accepts any name.
    pub names: Vec<String>,
}

/// The robots of a profile, for messages: those of a test without a workload file have no name of their own.
fn called(profile: &Profile) -> String {
    match profile.name.as_str() {
        "robots" => "the robots".to_owned(),
        name => format!("the robots {name}"),
    }
}

impl Test {
    /// Number of robots.
    pub fn robot_count(&self) -> usize {
        self.robots.iter().map(|profile| profile.count).sum()
    }

    /// Leaves out the robots and servers of other hosts: those whose addresses are not of this one. A robot without an address
    /// and a server at any address are of every host.
    pub fn keep_local(&mut self, is_local: impl Fn(IpAddr) -> bool) {
        self.keep_robots(&is_local);
        self.keep_servers(|listen| listen.ip().is_unspecified() || is_local(listen.ip()));
    }

    fn keep_robots(&mut self, is_chosen: impl Fn(IpAddr) -> bool) {
        let (robots, share) = RobotShare::divide(&self.robots, is_chosen);
        self.robots = robots;
        self.share.robots = Some(Arc::new(share));
    }

    fn keep_servers(&mut self, is_chosen: impl Fn(SocketAddr) -> bool) {
        let (mut number, mut numbers) = (0, Vec::new());
        for site in self.servers.iter().flat_map(|servers| &servers.sites) {
            numbers.extend(is_chosen(site.listen).then_some(number));
            number += 1;
        }
        self.servers.iter_mut().for_each(|servers| servers.sites.retain(|site| is_chosen(site.listen)));
        self.share.servers = Some(numbers);
    }

    /// Leaves out all robots or servers of a side that `is_chosen` rejects. It gets the address of a robot, or the address and
    /// port at which a server listens.
    ///
    /// # Errors
    /// If robots have no addresses by which to choose them, or nothing is left.
    pub fn keep_chosen(
        &mut self,
        side: Side,
        is_chosen: impl Fn(IpAddr, Option<u16>) -> bool,
    ) -> Result<(), String> {
        let (left, who) = match side {
            Side::Client => {
                if self.robots.iter().any(|profile| profile.addresses.is_empty()) {
                    return Err("robots without addresses cannot be chosen by address".to_owned());
                }
                self.keep_robots(|ip| is_chosen(ip, None));
                (self.robot_count(), "robot")
            }
            Side::Server => {
                self.keep_servers(|listen| is_chosen(listen.ip(), Some(listen.port())));
                (self.server_count(), "server")
            }
        };
        if left == 0 { Err(format!("no {who} of the workload has one of these addresses")) } else { Ok(()) }
    }

    /// Number of servers.
    pub fn server_count(&self) -> usize {
        self.servers.iter().map(|servers| servers.sites.len()).sum()
    }

    /// Requests per second of all robots at full load; `None` if some robots wait for replies.
    pub fn full_rate(&self) -> Option<f64> {
        self.robots.iter().map(|profile| rate(profile)).sum()
    }

    /// Requests per second at the busiest moment of the schedule; `None` if that depends on replies.
    pub fn peak_rate(&self) -> Option<f64> {
        Some(self.full_rate()? * self.busiest_load())
    }

    /// The load at the busiest moment of the schedule, as a multiple of the full rate.
    pub fn busiest_load(&self) -> f64 {
        let busiest = self.schedule.phases.iter().map(|phase| {
            let factors = phase.factors;
            (factors.populus.beg * factors.load.beg).max(factors.populus.end * factors.load.end)
        });
        busiest.fold(0.0, f64::max)
    }

    /// Gives these server addresses to robots that have none.
    pub fn serve_at(&mut self, addresses: &[SocketAddr]) {
        if !self.field.servers.is_empty() {
            return;
        }
        let tls = self.servers.iter().any(|servers| !servers.farm.tls.is_empty());
        let server = |address: &SocketAddr| Server {
            authority: address.to_string(),
            addresses: vec![*address],
            behind: Vec::new(),
            bad_certificate: None,
            direct: 0,
            tls,
        };
        Arc::make_mut(&mut self.field).servers = addresses.iter().map(server).collect();
        for profile in &mut self.robots {
            Arc::make_mut(profile).origins = Selector::even((0..addresses.len()).collect());
        }
    }

    /// Checks that robots that speak HTTP/3 can do so.
    ///
    /// # Errors
    /// If they use proxies or visit servers without TLS.
    pub fn check_http3(&self) -> Result<(), String> {
        let may_speak = |profile: &&Arc<Profile>| profile.speaks_http3() || profile.follow_alt_svc;
        for profile in self.robots.iter().filter(may_speak) {
            let does = if profile.speaks_http3() { "speak HTTP/3" } else { "follow Alt-Svc to HTTP/3" };
            let why = |what: &str| Err(format!("{} {does}, but {what}", called(profile)));
            if profile.socks.is_some() {
                return why(
                    "use SOCKS proxies, which carry no UDP here: leave out the proxies, or \"3\" of `http_versions`",
                );
            }
            if !profile.proxies.is_empty() {
                return why(
                    "use a forward proxy: HTTP/3 is possible directly and to surrogates (--surrogate) only",
                );
            }
            let servers = profile.origins.items().iter().filter_map(|&place| self.field.servers.get(place));
            if let Some(plain) = servers.into_iter().find(|server| !server.tls) {
                return why(&format!("{} has no TLS (`ssl_wraps`, or --device_tls no)", plain.authority));
            }
        }
        Ok(())
    }

    /// Checks that robots can know what to expect of servers that show bad certificates on purpose.
    ///
    /// # Errors
    /// If robots meet such a certificate themselves and do not check it, or a device that acts as the servers may choose between
    /// servers with and without a fault.
    pub fn check_bad_certificates(&self) -> Result<(), String> {
        for profile in self.robots.iter().filter(|profile| profile.count > 0) {
            let visited = profile.origins.items().iter().filter_map(|&place| self.field.servers.get(place));
            let bad = |server: &&Server| server.bad_certificate.is_some_and(|bad| !bad.is_hidden);
            if let Some(server) = visited.into_iter().find(bad)
                && profile.tls.items().iter().any(|settings| !settings.verify)
            {
                return Err(format!(
                    "robots meet the certificate of {}, which has a `certificate_fault`, themselves if there is no device or it opens no \
                     tunnels, but {} check no certificates, so nothing can be expected: name the authorities that they trust, \
                     with --trust_ca FILE or `root_certificate` in their `ssl_wraps`",
                    server.authority,
                    called(profile)
                ));
            }
        }
        if !self.field.servers.iter().any(|server| server.bad_certificate.is_some_and(|bad| bad.is_hidden)) {
            return Ok(());
        }
        let mut known: HashMap<BTreeSet<u8>, &ServerGroup> = HashMap::new();
        for servers in &self.servers {
            let first = *known.entry(servers.kinds()).or_insert(servers);
            if first.farm.certificate_fault() != servers.farm.certificate_fault() {
                return Err(format!(
                    "the servers {} and {} have the same contents but not the same `certificate_fault`, so robots cannot know which of them \
                     the device will ask: give them different contents",
                    first.farm.name, servers.farm.name
                ));
            }
        }
        Ok(())
    }

    /// Sends all robots through proxies, in turn: requests carry absolute URLs.
    pub fn through_proxies(&mut self, proxies: &[SocketAddr]) {
        for profile in &mut self.robots {
            let profile = Arc::make_mut(profile);
            profile.proxies = proxies.to_vec();
            profile.proxy_names = proxies.iter().map(|proxy| proxy.ip().to_string()).collect();
            if self.device_tls == Some(true) {
                profile.secure_proxies = proxies.to_vec();
            }
        }
    }

    /// Says how the user names the host of the robots' only proxy.
    pub fn name_proxy(&mut self, host: &str) {
        for profile in &mut self.robots {
            Arc::make_mut(profile).proxy_names = vec![host.to_owned()];
        }
    }

    /// Sends all robots through SOCKS proxies, in turn; to their HTTP proxy if they have one. The proxies get `names` and resolve them,
    /// or they get addresses.
    pub fn through_socks(&mut self, proxies: &[SocketAddr], names: bool) {
        for profile in &mut self.robots {
            let profile = Arc::make_mut(profile);
            let chained = if profile.proxies.is_empty() { 0.0 } else { 1.0 };
            profile.socks = Some(Socks { proxies: proxies.to_vec(), share: 1.0, chained, names });
        }
    }

    /// Lets robots connect to where their SOCKS proxies would connect, and use NTLM instead of Kerberos, for simulations, which have
    /// neither SOCKS proxies nor KDCs. If only some robots of a
    /// kind use their HTTP proxy, then all do.
    pub fn without_socks(&mut self) {
        for profile in &mut self.robots {
            if profile.kerberos.is_some() {
                Arc::make_mut(profile).kerberos = None;
            }
            if let Some(socks) = &profile.socks {
                let never_uses_proxies = socks.share == 1.0 && socks.chained == 0.0;
                let profile = Arc::make_mut(profile);
                profile.socks = None;
                if never_uses_proxies {
                    profile.proxies.clear();
                }
            }
        }
    }

    /// Whether robots reach servers through SOCKS proxies alone, which store nothing.
    pub fn uses_socks_alone(&self) -> bool {
        let alone = |profile: &Arc<Profile>| {
            let socks = profile.socks.as_ref().filter(|socks| socks.share == 1.0);
            socks.is_some_and(|socks| socks.chained == 0.0 || profile.proxies.is_empty())
        };
        !self.robots.is_empty() && self.robots.iter().all(alone)
    }

    /// Whether any server that robots visit has TLS.
    pub fn has_secure_servers(&self) -> bool {
        self.field.servers.iter().any(|server| server.tls)
    }

    /// Whether servers show bad certificates on purpose.
    pub fn shows_bad_certificates(&self) -> bool {
        self.field.servers.iter().any(|server| server.bad_certificate.is_some())
    }

    /// Whether robots use a proxy for servers with TLS, so that requests travel through tunnels (CONNECT).
    pub fn uses_tunnels(&self) -> bool {
        let is_tunneled = |profile: &Arc<Profile>| {
            let visited = profile.origins.items().iter().filter_map(|&place| self.field.servers.get(place));
            !profile.proxies.is_empty() && visited.into_iter().any(|server| server.tls)
        };
        self.robots.iter().any(is_tunneled)
    }

    /// Lets all sides do without TLS, for simulations, in which nobody listens in: requests that would travel through tunnels are
    /// visible to the proxy. HTTP/3 cannot do without it and becomes HTTP/2, which has the same streams.
    pub fn without_tls(&mut self) {
        self.device_tls = None;
        Arc::make_mut(&mut self.field).servers.iter_mut().for_each(|server| {
            (server.tls, server.bad_certificate) = (false, None);
        });
        for profile in &mut self.robots {
            let profile = Arc::make_mut(profile);
            profile.tls = Selector::default();
            profile.secure_proxies.clear();
            profile.http_version = profile.http_version.clone().map(|version| match version {
                HttpVersion::Http3 => HttpVersion::Http2,
                other => other,
            });
        }
        for ServerGroup { farm, .. } in &mut self.servers {
            farm.tls = Selector::default();
            farm.http2 = farm.http2.or(farm.http3.take());
            farm.http3 = None;
        }
    }

    /// Lets servers accept all versions of HTTP that robots may speak, for simulations without the device that translates for them.
    pub fn serve_all_versions(&mut self) {
        for ServerGroup { farm, .. } in &mut self.servers {
            farm.accepts_http1 = true;
            farm.http2.get_or_insert_default();
        }
    }

    /// Lets servers that accept the versions of all robots accept HTTP/1.1 as well, for simulations, whose devices send nothing else
    /// to servers.
    pub fn serve_http1(&mut self) {
        let spoken: Vec<HttpVersion> =
            self.robots.iter().flat_map(|profile| profile.http_version.items()).copied().collect();
        for ServerGroup { farm, .. } in &mut self.servers {
            let accepts = |version: &HttpVersion| match version.is_multiplexed() {
                true => farm.http2.is_some(),
                false => farm.accepts_http1,
            };
            farm.accepts_http1 |= spoken.iter().all(accepts);
        }
    }

    /// True if robots connect to servers that listen at these addresses: no device is between them, unless the
    /// network inserts one.
    pub fn is_direct(&self, listening: &[SocketAddr]) -> bool {
        let named: HashMap<&str, &Vec<IpAddr>> =
            self.names.iter().map(|(name, addresses)| (name.as_str(), addresses)).collect();
        let places: HashSet<SocketAddr> = listening.iter().copied().collect();
        let hosts: HashSet<IpAddr> = listening.iter().map(SocketAddr::ip).collect();
        let is_ours = |server: &Server| match server.addresses.is_empty() {
            false => server.addresses.iter().all(|address| places.contains(address)),
            true => {
                let name =
                    server.authority.rsplit_once(':').map_or(server.authority.as_str(), |(name, _)| name);
                named.get(name).is_some_and(|addresses| addresses.iter().all(|ip| hosts.contains(ip)))
            }
        };
        self.robots.iter().all(|profile| profile.proxies.is_empty() && profile.socks.is_none())
            && self.field.servers.iter().all(is_ours)
    }

    /// A description of a name that has servers with different contents behind it: a resolver picks one of them
    /// for any request, and most requests fail. A device with its own address may distinguish requests.
    pub fn misdirection(&self) -> Option<String> {
        let drawn = self.field.servers.iter().filter(|server| server.addresses.len() != 1);
        let drawn: HashSet<&str> = drawn.map(|server| server.authority.as_str()).collect();
        let mut known: HashMap<&str, &ServerGroup> = HashMap::new();
        for servers in &self.servers {
            let has = servers.kinds();
            let names = servers.sites.iter().flat_map(|site| &site.names).map(String::as_str);
            for name in names.filter(|name| drawn.contains(name)) {
                let first = *known.entry(name).or_insert(servers);
                if !std::ptr::eq(first, servers) && first.kinds() != has {
                    return Some(format!(
                        "behind {name} are servers with different contents, {} and {}: any of them is asked, and refuses what it does not have; \
                         give them different names, or run through a device that tells their requests apart (--surrogate, --device)",
                        first.farm.name, servers.farm.name
                    ));
                }
            }
        }
        None
    }

    /// Lets `device` pose as all visible servers: robots connect to it, and `Host` names the visible server.
    /// Surrogates and load balancers are tested this way.
    pub fn through_surrogate(&mut self, device: SocketAddr) {
        for profile in &mut self.robots {
            // The device's address is known; there is no name to resolve.
            Arc::make_mut(profile).dns = None;
        }
        for server in &mut Arc::make_mut(&mut self.field).servers {
            server.addresses = vec![device];
            if let Some(bad) = &mut server.bad_certificate {
                bad.is_hidden = true;
            }
            server.tls = self.device_tls.unwrap_or(server.tls);
        }
    }

    /// Lets a load balancer pose as all visible servers. It may send a request to any server that has the same contents as the one
    /// that `Host` names, so servers know each other's names.
    pub fn through_balancer(&mut self, balancer: SocketAddr) {
        self.through_surrogate(balancer);
        let mut names: HashMap<BTreeSet<u8>, BTreeSet<String>> = HashMap::new();
        for servers in &self.servers {
            let all = names.entry(servers.kinds()).or_default();
            all.extend(servers.sites.iter().flat_map(|site| site.names.iter().cloned()));
        }
        for servers in &mut self.servers {
            let all = &names[&servers.kinds()];
            // A server without names accepts any.
            for site in servers.sites.iter_mut().filter(|site| !site.names.is_empty()) {
                let others: Vec<String> =
                    all.iter().filter(|name| !site.names.contains(*name)).cloned().collect();
                site.names.extend(others);
            }
        }
    }

    /// Makes robots check certificates, against these authorities (in DER) besides those of the workload.
    ///
    /// # Errors
    /// If robots do not use TLS.
    pub fn trust(&mut self, authorities: &[Vec<u8>]) -> Result<(), String> {
        if self.robots.iter().all(|profile| profile.tls.is_empty()) {
            return Err("no robot of the workload has `ssl_wraps`".to_owned());
        }
        for profile in &mut self.robots {
            let profile = Arc::make_mut(profile);
            profile.tls = std::mem::take(&mut profile.tls).map(|mut tls| {
                let settings = Arc::make_mut(&mut tls);
                settings.verify = true;
                settings.roots.extend_from_slice(authorities);
                tls
            });
        }
        Ok(())
    }
}

/// Requests per second of all robots of a kind.
pub fn rate(profile: &Profile) -> Option<f64> {
    let each = match &profile.load {
        Load::Open { rate } => *rate,
        Load::InterArrival(gaps) => Some(gaps.mean()).filter(|mean| *mean > 0.0).map(f64::recip)?,
        Load::Closed { .. } => return None,
        Load::Passive => 0.0,
    };
    Some(each * profile.count as f64)
}

/// The allowance, in seconds beyond the think time, for a device to store an object.
const SETTLE_MARGIN: f64 = 0.25;

/// The age in seconds from which objects may be requested again: the time that nearly all replies of servers
/// with this think time need to arrive. Embedded objects are requested after their containers, so with them the
/// time is twice as long.
pub fn repeat_delay(think: Option<&Distr>, embedded: bool) -> f64 {
    let replies = if embedded { 2.0 } else { 1.0 };
    replies * think.map_or(0.0, Distr::high) + SETTLE_MARGIN
}
