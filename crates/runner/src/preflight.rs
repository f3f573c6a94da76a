//! The check before a test: whether robots reach the device, and whether requests through it reach the servers and return.

mod advice;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polygraph_dns::{DomainName, Query, QueryType};
use polygraph_engine::preflight::{Probe, ProbeError, ProbeTls, ProbeUser, Responder};
use polygraph_plan::Test;
use polygraph_robot::{Profile, Server};
use polygraph_wire::preflight::PreflightReply;
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
        let found = route.probe.send(&token, timeout);
        requests += if route.target == ProbeTarget::Origin { 0 } else { found.requests };
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
        Ok(seen) if seen.ours => Ok(()),
        Ok(seen) if credentials && [401, 407].contains(&seen.status) => Ok(()),
        Ok(seen) if accepts_foreign && seen.status < 400 => Ok(()),
        Ok(seen) if case.arrived.is_none() && !advice::is_refusal(seen.status) => {
            notify(Notice::Warning(case.foreign_reply(&seen)));
            Ok(())
        }
        Ok(seen) => Err(case.missing_server(&seen).unwrap_or_else(|| case.failure(&case.status(&seen)))),
        // Robots of the test have wrong credentials, so the device is not to blame.
        Err(trouble)
            if trouble.is_absence()
                || matches!(trouble, ProbeError::UserRefused(_) | ProbeError::UserDemanded) =>
        {
            Err(Failure::setup(anyhow::anyhow!("{}", case.trouble(&trouble))))
        }
        Err(trouble) => Err(case.failure(&case.trouble(&trouble))),
    }
}

/// A probe for each route of the robots: through every proxy, and to a server of each kind of robots without a proxy.
fn routes(test: &Test, check: &PreflightCheck<'_>) -> Result<Vec<ProbeRoute>, Failure> {
    let (mut routes, mut known) = (Vec::new(), BTreeSet::new());
    // What stands in for the servers has no TLS, so a device that uses TLS to them gets no answer from it.
    let servers_use_tls = matches!(check.origins, OriginPlaces::Here(_))
        && test.servers.iter().any(|servers| !servers.farm.tls.is_empty());
    for profile in test.robots.iter().filter(|profile| profile.count > 0) {
        let visited = || profile.origins.items().iter().filter_map(|&at| test.field.servers.get(at));
        let Some(server) = visited().find(|server| server.bad_certificate.is_none()).or(visited().next())
        else {
            continue;
        };
        for mut route in routes_of(profile, server, check)? {
            // Nobody has to accept a bad certificate.
            let is_bad = server.bad_certificate.is_some();
            if is_bad && route.target == ProbeTarget::Origin {
                route.probe.tls = None;
            }
            route.probe.connects_only |= servers_use_tls || is_bad;
            let key = (route.probe.to, route.probe.authority.clone(), route.probe.user.clone());
            if routes.len() < MAX_PLACES && known.insert(key) {
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
    // One user suffices to find out whether the device knows the users of the test.
    let user = profile.credentials.first().map(|user| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        ProbeUser { name: name.to_owned(), password: password.to_owned() }
    });
    let route = |to: SocketAddr, target| {
        let tls = tls_with(profile, server, to, target, check);
        let is_tunnel = target == ProbeTarget::Proxy && server.tls;
        let is_secure = server.tls || profile.secure_proxies.contains(&to);
        let probe = Probe {
            to,
            from: profile.addresses.first().copied().filter(|from| from.is_ipv4() == to.is_ipv4()),
            authority: server.authority.clone(),
            absolute: target == ProbeTarget::Proxy,
            connects_only: is_tunnel || profile.speaks_http3() || (is_secure && tls.is_none()),
            tls,
            http2: profile.speaks_only_http2() && !profile.speaks_http3() && !is_secure,
            socks: target == ProbeTarget::SocksProxy,
            user: user.clone().filter(|_| target != ProbeTarget::Origin),
        };
        ProbeRoute { probe, target, credentials: !profile.credentials.is_empty() }
    };
    if let Some(socks) = profile.socks.as_ref().filter(|socks| socks.share == 1.0) {
        // The servers and proxies can be reached only from the SOCKS proxies, which have no plain HTTP.
        let connect = |proxy: &SocketAddr| {
            let ProbeRoute { probe, .. } = route(*proxy, ProbeTarget::SocksProxy);
            let probe = Probe { connects_only: true, tls: None, http2: false, ..probe };
            ProbeRoute { probe, target: ProbeTarget::SocksProxy, credentials: false }
        };
        return Ok(socks.proxies.iter().take(MAX_PLACES).map(connect).collect());
    }
    if let Some(same) = profile.proxies.iter().find(|proxy| is_server(**proxy, server, check)) {
        return Err(Failure::usage(format!(
            "the proxy's address {same} is the address of the origin server: there would be no device between robots and servers"
        )));
    }
    if !profile.proxies.is_empty() {
        return Ok(profile
            .proxies
            .iter()
            .take(MAX_PLACES)
            .map(|proxy| route(*proxy, ProbeTarget::Proxy))
            .collect());
    }
    let to = match server.addresses.first() {
        Some(address) => *address,
        None => match look_up(profile, &server.authority)? {
            Some(address) => address,
            None => return Ok(Vec::new()),
        },
    };
    Ok(vec![route(to, if check.surrogate { ProbeTarget::Surrogate } else { ProbeTarget::Origin })])
}

/// The TLS of robots with their peer, if the peer listens already. HTTP/3 has its own, over UDP.
fn tls_with(
    profile: &Profile,
    server: &Server,
    to: SocketAddr,
    target: ProbeTarget,
    check: &PreflightCheck<'_>,
) -> Option<ProbeTls> {
    let listens = target != ProbeTarget::Origin || matches!(check.origins, OriginPlaces::Elsewhere);
    let name = match target {
        ProbeTarget::SocksProxy => return None,
        ProbeTarget::Proxy => profile.secure_proxies.contains(&to).then(|| to.ip().to_string())?,
        ProbeTarget::Surrogate | ProbeTarget::Origin => server.tls.then(|| host_of(&server.authority))?,
    };
    if !listens || profile.speaks_http3() {
        return None;
    }
    // In a tunnel, HTTP/2 is a matter between robots and servers.
    let speaks_http2 = profile.speaks_only_http2() && !(target == ProbeTarget::Proxy && server.tls);
    let settings = Arc::clone(profile.tls.items().first()?);
    Some(ProbeTls { settings, name, protocol: speaks_http2.then_some("h2") })
}

/// The host in an authority, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> String {
    let host = uri::host_port(authority.as_bytes()).and_then(|(host, _)| std::str::from_utf8(host).ok());
    host.unwrap_or(authority).to_owned()
}

fn is_server(proxy: SocketAddr, server: &Server, check: &PreflightCheck<'_>) -> bool {
    let here = matches!(check.origins, OriginPlaces::Here(places) if places.contains(&proxy));
    here || server.authority.parse() == Ok(proxy)
}

/// The addresses of servers at which requests of these routes may arrive.
fn responder_places(test: &Test, places: &[SocketAddr], routes: &[ProbeRoute]) -> Vec<SocketAddr> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    let asked = |(place, names): (&SocketAddr, &[String])| {
        routes.iter().any(|ProbeRoute { probe, target, .. }| {
            let of_name = names.contains(&probe.authority) || probe.authority == place.to_string();
            *target == ProbeTarget::Surrogate || *place == probe.to || of_name
        })
    };
    let places = places.iter().zip(sites.map(|site| site.names.as_slice()));
    let asked: BTreeSet<SocketAddr> = places.filter(|place| asked(*place)).map(|(place, _)| *place).collect();
    asked.into_iter().take(MAX_PLACES).collect()
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
