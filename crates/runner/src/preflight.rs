//! The check before a test: whether robots reach the device, and whether requests through it reach the servers and return.

mod advice;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polygraph_dns::{DomainName, Query, QueryType};
use polygraph_engine::preflight::{Probe, ProbeError, ProbeTls, ProbeUser, Responder, ResponderPlace};
use polygraph_plan::Test;
use polygraph_robot::settings::Socks;
use polygraph_robot::{Profile, Server};
use polygraph_stats::HttpVersion;
use polygraph_wire::preflight::PreflightReply;
use polygraph_wire::socks::Destination;
use polygraph_wire::uri;

use self::advice::{ProbeCase, ProbeTarget};
use crate::{Failure, Notice, Notify};

/// Default time that the check waits for an answer. Origin servers answer probes without think time, so a working
/// device needs less.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a name server.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);
/// At most this many proxies are checked, and at most this many servers get a temporary responder.
const MAX_PLACES: usize = 256;

/// The location of the servers of a test.
#[derive(Clone, Copy, Debug)]
pub enum OriginPlaces<'a> {
    /// The servers are on this machine. They do not listen yet, but will listen at these addresses, in the order of the test.
    Here(&'a [SocketAddr]),
    /// The servers are elsewhere. They may be older versions or other programs.
    Elsewhere,
}

/// Settings of the check.
#[derive(Clone, Copy, Debug)]
pub struct PreflightCheck<'a> {
    /// How long to wait for an answer; `None`: nothing is checked.
    pub timeout: Option<Duration>,
    /// The servers.
    pub origins: OriginPlaces<'a>,
    /// Whether robots without a proxy connect to a device that acts as the servers.
    pub surrogate: bool,
    /// Whether replies without the marks of this program are also accepted, unless their status is an error.
    pub accepts_foreign_replies: bool,
}

/// A probe, and its acceptable answers.
#[derive(Debug)]
struct ProbeRoute {
    probe: Probe,
    target: ProbeTarget,
    /// Whether robots have credentials, so that a reply that demands them is acceptable.
    credentials: bool,
    /// Whether the server shows a bad certificate on purpose, so that nobody has to pass anything on.
    may_refuse: bool,
}

impl ProbeRoute {
    /// Whether this answer refuses a bad certificate; if content arrives instead, the test finds that.
    fn is_refused(&self, reply: &Result<PreflightReply, ProbeError>) -> bool {
        use ProbeError as E;
        self.may_refuse
            && matches!(reply, Ok(_) | Err(E::NoTunnel(_) | E::Tls(..) | E::Closed(_) | E::Quic(..)))
    }
}

/// Checks that the robots of a test will receive answers. Returns the number of requests that devices received.
///
/// # Errors
/// [`FailureKind::Setup`](crate::FailureKind) if something does not answer at all, and
/// [`FailureKind::Verdict`](crate::FailureKind) if a device answers but does not pass the request on.
pub fn check(test: &Test, check: PreflightCheck<'_>, notify: Notify) -> Result<u64, Failure> {
    let Some(timeout) = check.timeout else { return Ok(0) };
    let routes = routes(test, &check)?;
    let responder = match check.origins {
        OriginPlaces::Here(places) => {
            Some(Responder::start(&responder_places(test, places, &routes)).map_err(Failure::setup)?)
        }
        OriginPlaces::Elsewhere => None,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mut requests = 0;
    for (number, route) in routes.iter().enumerate() {
        // Probes have different URLs, so that no cache has an answer.
        let token = format!("{now:016x}{:08x}{number:04x}", std::process::id());
        let found = route.probe.send(&token, timeout, |reply| route.is_refused(reply));
        requests += if route.target == ProbeTarget::Origin { 0 } else { found.requests };
        if route.is_refused(&found.reply) {
            continue;
        }
        let arrived = responder.as_ref().map(|responder| responder.has_seen(&token));
        let case = ProbeCase { target: route.target, probe: &route.probe, timeout, arrived };
        judge(&case, found.reply, route.credentials, check.accepts_foreign_replies, notify)?;
    }
    Ok(requests)
}

/// Decides whether the test may start after this answer.
fn judge(
    case: &ProbeCase<'_>,
    reply: Result<PreflightReply, ProbeError>,
    credentials: bool,
    accepts_foreign: bool,
    notify: Notify,
) -> Result<(), Failure> {
    match reply {
        Ok(seen) if seen.ours && case.arrived != Some(false) => Ok(()),
        Ok(seen) if credentials && [401, 407].contains(&seen.status) => Ok(()),
        Err(ProbeError::NoTunnel(seen)) if credentials && seen.status == 407 => Ok(()),
        Ok(seen) if accepts_foreign && seen.status < 400 => Ok(()),
        // Nobody else knows this request, and servers of another test would answer those of the robots, too.
        Ok(seen) if seen.ours => Err(Failure::setup(anyhow::anyhow!("{}", case.other_server(&seen)))),
        Ok(seen) if case.arrived.is_none() && !advice::is_refusal(seen.status) => {
            notify(Notice::Warning(case.foreign_reply(&seen)));
            Ok(())
        }
        // The same, for robots without any.
        Ok(seen) | Err(ProbeError::NoTunnel(seen)) if seen.status == 407 && !seen.challenges.is_empty() => {
            Err(Failure::setup(anyhow::anyhow!("{}", case.status(&seen))))
        }
        Ok(seen) | Err(ProbeError::NoTunnel(seen)) => {
            Err(case.missing_server(&seen).unwrap_or_else(|| case.failure(&case.status(&seen))))
        }
        // Robots of the test have wrong credentials or none, or a certificate was made wrong, so the device is not to blame.
        Err(trouble)
            if trouble.is_absence()
                || matches!(trouble, ProbeError::UserRefused(_) | ProbeError::UserDemanded)
                || trouble.is_demand_for_certificate()
                || trouble.is_authority_certificate() =>
        {
            Err(Failure::setup(anyhow::anyhow!("{}", case.trouble(&trouble))))
        }
        Err(trouble) => Err(case.failure(&case.trouble(&trouble))),
    }
}

/// A probe for each route of the robots: through every proxy, and to a server of each kind of robots without a proxy.
fn routes(test: &Test, check: &PreflightCheck<'_>) -> Result<Vec<ProbeRoute>, Failure> {
    let mut routes = Vec::new();
    for profile in test.robots.iter().filter(|profile| profile.count > 0) {
        let visited = || profile.origins.items().iter().filter_map(|&at| test.field.servers.get(at));
        let Some(server) = visited().find(|server| server.bad_certificate.is_none()).or(visited().next())
        else {
            continue;
        };
        for mut route in routes_of(profile, server, check)? {
            route.may_refuse = server.bad_certificate.is_some();
            // Kinds of robots that differ only in their own addresses share a probe.
            let probe = &route.probe;
            let is_same = |known: &ProbeRoute| Probe { from: probe.from, ..known.probe.clone() } == *probe;
            if routes.len() < MAX_PLACES && !routes.iter().any(is_same) {
                routes.push(route);
            }
        }
    }
    Ok(routes)
}

/// The routes of one kind of robots to a server.
fn routes_of(
    profile: &Profile,
    server: &Server,
    check: &PreflightCheck<'_>,
) -> Result<Vec<ProbeRoute>, Failure> {
    let user = first_user(profile);
    let route = |to: SocketAddr, target, version| {
        let is_tunnel = target == ProbeTarget::Proxy && server.tls;
        let is_secure = profile.secure_proxies.contains(&to) && target == ProbeTarget::Proxy;
        let protocol = match version {
            SpokenVersion::Http1 => None,
            SpokenVersion::Http2 => Some("h2"),
            SpokenVersion::Http3 => Some("h3"),
        };
        let tls = |name, protocol| {
            let settings = Arc::clone(profile.tls.items().first()?);
            Some(ProbeTls { settings, name, protocol })
        };
        let with_server = || tls(host_of(&server.authority), protocol).filter(|_| server.tls);
        // In a tunnel, HTTP/2 is a matter between robots and servers.
        let with_proxy = || tls(to.ip().to_string(), protocol.filter(|_| !is_tunnel)).filter(|_| is_secure);
        let (tls, tunnel) = match target {
            ProbeTarget::Proxy => (with_proxy(), with_server().filter(|_| is_tunnel)),
            _ => (with_server(), None),
        };
        let probe = Probe {
            from: profile.addresses.first().copied().filter(|from| from.is_ipv4() == to.is_ipv4()),
            authority: server.authority.clone(),
            absolute: target == ProbeTarget::Proxy,
            http2: version == SpokenVersion::Http2 && tls.is_none() && tunnel.is_none(),
            http3: version == SpokenVersion::Http3,
            tls,
            tunnel,
            user: user.clone().filter(|_| target != ProbeTarget::Origin),
            ..Probe::plain(to)
        };
        ProbeRoute { probe, target, credentials: !profile.credentials.is_empty(), may_refuse: false }
    };
    let direct = if check.surrogate { ProbeTarget::Surrogate } else { ProbeTarget::Origin };
    let socks = profile.socks.as_ref().filter(|socks| socks.share > 0.0);
    let is_chained = socks.is_none_or(|socks| socks.share < 1.0 || socks.chained > 0.0);
    let mut peers: Vec<(SocketAddr, ProbeTarget)> = Vec::new();
    if is_chained {
        peers.extend(profile.proxies.iter().take(MAX_PLACES).map(|proxy| (*proxy, ProbeTarget::Proxy)));
    }
    if profile.proxies.is_empty() || socks.is_some_and(|socks| socks.chained < 1.0) {
        let known = server.addresses.first().copied();
        let found = known.map_or_else(|| look_up(profile, &server.authority), |address| Ok(Some(address)))?;
        peers.extend(found.map(|to| (to, direct)));
    }
    let mut routes = Vec::new();
    for version in spoken_versions(profile) {
        let all: Vec<ProbeRoute> = peers.iter().map(|(to, target)| route(*to, *target, version)).collect();
        let Some(socks) = socks else {
            routes.extend(all);
            continue;
        };
        // All SOCKS proxies are checked with the first peer of each kind.
        for target in [ProbeTarget::Proxy, direct] {
            let first = all.iter().find(|route| route.target == target);
            let through = first.into_iter().flat_map(|first| through_socks(profile, socks, first));
            routes.extend(through.take(MAX_PLACES));
        }
        let is_direct = |route: &ProbeRoute| match route.target {
            ProbeTarget::Proxy => true,
            _ => profile.proxies.is_empty(),
        };
        routes.extend(all.into_iter().filter(|route| socks.share < 1.0 && is_direct(route)));
    }
    Ok(routes)
}

/// What robots of a test speak, as far as their connections differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SpokenVersion {
    Http1,
    Http2,
    Http3,
}

fn spoken_versions(profile: &Profile) -> BTreeSet<SpokenVersion> {
    let all = profile.http_version.items().iter().map(|version| match version {
        HttpVersion::Http3 => SpokenVersion::Http3,
        version if version.is_multiplexed() => SpokenVersion::Http2,
        _ => SpokenVersion::Http1,
    });
    all.collect()
}

/// A route through each of the SOCKS proxies.
fn through_socks<'a>(
    profile: &'a Profile,
    socks: &'a Socks,
    inner: &'a ProbeRoute,
) -> impl Iterator<Item = ProbeRoute> + 'a {
    let names = |to: SocketAddr| {
        let name = match inner.target {
            ProbeTarget::Proxy => profile.proxy_names.first().cloned().unwrap_or_else(|| to.ip().to_string()),
            _ => host_of(&inner.probe.authority),
        };
        match name.parse::<IpAddr>() {
            Ok(ip) => Destination::Address(SocketAddr::new(ip, to.port())),
            Err(_) => Destination::Name(name, to.port()),
        }
    };
    socks.proxies.iter().map(move |proxy| {
        let inner_to = inner.probe.to;
        let to = if socks.names { names(inner_to) } else { Destination::Address(inner_to) };
        let from = profile.addresses.first().copied().filter(|from| from.is_ipv4() == proxy.is_ipv4());
        // Robots log in to the SOCKS proxy, whatever is behind it.
        let user = first_user(profile);
        let probe = Probe { to: *proxy, from, socks: Some(to), user, ..inner.probe.clone() };
        ProbeRoute { probe, target: ProbeTarget::SocksProxy, ..*inner }
    })
}

/// One user suffices to find out whether the device knows the users of the test.
fn first_user(profile: &Profile) -> Option<ProbeUser> {
    profile.credentials.first().map(|user| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        ProbeUser { name: name.to_owned(), password: password.to_owned() }
    })
}

/// The host in an authority, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> String {
    let host = uri::host_port(authority.as_bytes()).and_then(|(host, _)| std::str::from_utf8(host).ok());
    host.unwrap_or(authority).to_owned()
}

/// The addresses of servers at which requests of these routes may arrive.
fn responder_places(test: &Test, places: &[SocketAddr], routes: &[ProbeRoute]) -> Vec<ResponderPlace> {
    let sites = test.servers.iter().flat_map(|servers| {
        let farm = &servers.farm;
        servers.sites.iter().map(move |site| (site.names.as_slice(), farm))
    });
    let asked = |place: &SocketAddr, names: &[String]| {
        routes.iter().any(|ProbeRoute { probe, target, .. }| {
            let of_name = names.contains(&probe.authority) || probe.authority == place.to_string();
            matches!(target, ProbeTarget::Surrogate | ProbeTarget::SocksProxy)
                || *place == probe.to
                || of_name
        })
    };
    let places = places.iter().zip(sites).filter(|(place, (names, _))| asked(place, names));
    let asked: BTreeMap<SocketAddr, ResponderPlace> = places
        .map(|(place, (_, farm))| {
            let tls = farm.tls.items().first().cloned();
            (*place, ResponderPlace { address: *place, tls, http3: farm.http3.is_some() })
        })
        .collect();
    asked.into_values().take(MAX_PLACES).collect()
}

/// The first address of a name from the robot's name servers; `None` if the robot has no name servers.
fn look_up(profile: &Profile, authority: &str) -> Result<Option<SocketAddr>, Failure> {
    let Some(dns) = &profile.dns else { return Ok(None) };
    let Some((host, port)) = authority.rsplit_once(':') else { return Ok(None) };
    let (Ok(name), Ok(port)) = (DomainName::parse(host), port.parse()) else { return Ok(None) };
    let kind = if dns.v6 { QueryType::Aaaa } else { QueryType::A };
    let mut why = Vec::new();
    for server in &dns.servers {
        match query_name(*server, &Query::new(std::process::id() as u16, name.clone(), kind)) {
            Ok(ip) => return Ok(Some(SocketAddr::new(ip, port))),
            Err(problem) => why.push(format!("{server}: {problem}")),
        }
    }
    Err(Failure::setup(anyhow::anyhow!(
        "no name server knows the address of {host} ({}); is a name server with the names of this workload running there? \
         `polygraph dns --config FILE` serves them, and so does `run --dns auto`",
        why.join("; ")
    )))
}

fn query_name(server: SocketAddr, query: &Query) -> Result<IpAddr, String> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut datagram = [0; 4096];
    let received = UdpSocket::bind(any)
        .and_then(|socket| {
            socket.set_read_timeout(Some(NAME_TIMEOUT))?;
            socket.connect(server)?;
            socket.send(&query.message())?;
            socket.recv(&mut datagram)
        })
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer".to_owned(),
            std::io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            _ => e.to_string(),
        })?;
    let addresses = query.read(&datagram[..received]).map_err(|e| e.to_string())?;
    addresses.first().copied().ok_or_else(|| "no address".to_owned())
}

#[cfg(test)]
mod tests {
    use polygraph_engine::preflight::ProbeStep;
    use polygraph_tls::failure::{FailureKind as TlsKind, TlsFailure};

    use super::*;
    use crate::FailureKind;

    fn probe() -> Probe {
        Probe { absolute: true, ..Probe::plain("127.0.0.1:80".parse().unwrap()) }
    }

    #[test]
    fn whoever_made_a_wrong_certificate_is_told_before_the_device_is_blamed() {
        let probe = probe();
        for (kind, failure) in [
            (TlsKind::AuthorityCertificate, FailureKind::Setup),
            (TlsKind::UnknownAuthority, FailureKind::Verdict),
        ] {
            let case = ProbeCase {
                target: ProbeTarget::Proxy,
                probe: &probe,
                timeout: DEFAULT_TIMEOUT,
                arrived: None,
            };
            let trouble = ProbeError::Tls(ProbeStep::Tls, TlsFailure::new(kind, "its certificate"));
            let judged = judge(&case, Err(trouble), false, false, |_| ());
            assert_eq!(judged.err().map(|failure| failure.kind), Some(failure), "{kind:?}");
        }
    }

    /// Without knowledge of what arrived, marks are believed; with it, they must be those of this test.
    #[test]
    fn replies_of_servers_of_another_test_are_no_answer() {
        let probe = probe();
        let reply =
            polygraph_wire::preflight::read(&polygraph_wire::preflight::reply("1"), "1").unwrap().unwrap();
        for (arrived, accepts_foreign, failure) in [
            (Some(true), false, None),
            (None, false, None),
            (Some(false), false, Some(FailureKind::Setup)),
            (Some(false), true, None),
        ] {
            let case =
                ProbeCase { target: ProbeTarget::Proxy, probe: &probe, timeout: DEFAULT_TIMEOUT, arrived };
            let judged = judge(&case, Ok(reply.clone()), false, accepts_foreign, |_| ());
            assert_eq!(judged.err().map(|failure| failure.kind), failure, "{arrived:?} {accepts_foreign}");
        }
    }
}
