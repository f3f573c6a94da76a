//! The look before the leap: whether robots reach the device, and requests through it the servers and back.

mod advice;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use polygraph_dns::{DomainName, Query, QueryType};
use polygraph_engine::preflight::{Probe, ProbeError, Responder};
use polygraph_plan::{Test, values};
use polygraph_robot::{Profile, Server};
use polygraph_wire::preflight::PreflightReply;

use crate::{Failure, console};
use advice::{Case, Target};

/// Longest time that is waited for an answer, unless told otherwise: more than any device needs that is well, and servers
/// do not think before they answer this.
const PATIENCE: Duration = Duration::from_secs(5);
/// A name server has this long.
const NAME_PATIENCE: Duration = Duration::from_secs(2);
/// No more proxies than this are looked at, and no more servers are stood in for.
const MOST: usize = 256;

/// How long answers are waited for; `None`: nothing is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preflight(pub Option<Duration>);

impl Default for Preflight {
    fn default() -> Preflight {
        Preflight(Some(PATIENCE))
    }
}

/// Options of commands that look before they leap.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(rename_all = "snake_case", next_help_heading = "Run")]
pub struct PreflightOptions {
    /// Before the test, send one request through the device to a server and back, and wait so long for it: a test whose
    /// device is not there or does not answer does not begin (docs/exit-codes.md). Nobody counts the request; `no`: do not
    /// look
    #[arg(long, value_name = "TIME|no", default_value = "5s", value_parser = patience)]
    pub preflight: Preflight,
}

fn patience(text: &str) -> Result<Preflight, String> {
    match text.to_ascii_lowercase().as_str() {
        "no" | "none" | "off" | "0" => Ok(Preflight(None)),
        "yes" | "on" => Ok(Preflight::default()),
        _ => match values::time(text)? {
            seconds if (0.01..=600.0).contains(&seconds) => {
                Ok(Preflight(Some(Duration::from_secs_f64(seconds))))
            }
            _ => Err(format!("`{text}` is no time to wait for an answer: 10ms to 10min, or no")),
        },
    }
}

/// What is known about the servers of a test.
#[derive(Clone, Copy, Debug)]
pub enum Servers<'a> {
    /// They are on this machine and do not listen yet, at these addresses in the order of the test.
    Here(&'a [SocketAddr]),
    /// They are elsewhere, and may be older or of another make.
    Elsewhere,
}

/// What there is to look at.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// How long answers are waited for.
    pub preflight: Preflight,
    /// The servers.
    pub servers: Servers<'a>,
    /// Robots without a proxy connect to a device that poses as the servers.
    pub surrogate: bool,
    /// Anybody may answer: any reply that is no error will do.
    pub strangers: bool,
}

/// A probe and what its answer means.
#[derive(Debug)]
struct Route {
    probe: Probe,
    target: Target,
    /// Robots answer questions for a password.
    credentials: bool,
}

/// Looks whether the robots of a test will be answered; returns the number of requests that went out to devices.
///
/// # Errors
/// If somebody is not there (exit code 3), or is there and does not do what devices are for (exit code 1).
pub fn look(test: &Test, look: Look<'_>) -> Result<u64, Failure> {
    let Preflight(Some(patience)) = look.preflight else { return Ok(0) };
    let routes = routes(test, &look)?;
    let responder = match look.servers {
        Servers::Here(places) => {
            Some(Responder::start(&stand_ins(test, places, &routes)).map_err(Failure::setup)?)
        }
        Servers::Elsewhere => None,
    };
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mut requests = 0;
    for (number, route) in routes.iter().enumerate() {
        // No two probes have the same URL, so that no cache has an answer.
        let token = format!("{moment:016x}{:08x}{number:04x}", std::process::id());
        let found = route.probe.send(&token, patience);
        requests += if route.target == Target::Origin { 0 } else { found.requests };
        let arrived = responder.as_ref().map(|responder| responder.has_seen(&token));
        let case = Case { target: route.target, probe: &route.probe, patience, arrived };
        judge(&case, found.reply, route.credentials, look.strangers)?;
    }
    Ok(requests)
}

/// Whether the test may begin with this answer.
fn judge(
    case: &Case<'_>,
    reply: Result<PreflightReply, ProbeError>,
    credentials: bool,
    strangers: bool,
) -> Result<(), Failure> {
    match reply {
        Ok(seen) if seen.ours => Ok(()),
        Ok(seen) if credentials && [401, 407].contains(&seen.status) => Ok(()),
        Ok(seen) if strangers && seen.status < 400 => Ok(()),
        Ok(seen) if case.arrived.is_none() && !advice::is_refusal(seen.status) => {
            console::warn(&case.stranger(&seen));
            Ok(())
        }
        Ok(seen) => Err(case.failure(&case.status(&seen))),
        Err(trouble) if trouble.is_absence() => {
            Err(Failure::setup(anyhow::anyhow!("{}", case.trouble(&trouble))))
        }
        Err(trouble) => Err(case.failure(&case.trouble(&trouble))),
    }
}

/// A probe for each way that robots have: through every proxy, and to a server of each kind of robots without one.
fn routes(test: &Test, look: &Look<'_>) -> Result<Vec<Route>, Failure> {
    let (mut routes, mut known) = (Vec::new(), BTreeSet::new());
    for profile in test.robots.iter().filter(|profile| profile.count > 0) {
        let Some(server) = profile.origins.items().first().and_then(|&at| test.field.servers.get(at)) else {
            continue;
        };
        for route in ways(profile, server, look)? {
            if routes.len() < MOST && known.insert((route.probe.to, route.probe.authority.clone())) {
                routes.push(route);
            }
        }
    }
    Ok(routes)
}

/// The ways of one kind of robots to a server.
fn ways(profile: &Profile, server: &Server, look: &Look<'_>) -> Result<Vec<Route>, Failure> {
    let route = |to: SocketAddr, target| Route {
        probe: Probe {
            to,
            from: profile.addresses.first().copied().filter(|from| from.is_ipv4() == to.is_ipv4()),
            authority: server.authority.clone(),
            absolute: target == Target::Proxy,
        },
        target,
        credentials: !profile.credentials.is_empty(),
    };
    if let Some(same) = profile.proxies.iter().find(|proxy| is_server(**proxy, server, look)) {
        return Err(Failure::usage(format!(
            "the proxy's address {same} is that of the origin server itself: there would be no device in between"
        )));
    }
    if !profile.proxies.is_empty() {
        return Ok(profile.proxies.iter().take(MOST).map(|proxy| route(*proxy, Target::Proxy)).collect());
    }
    let to = match server.addresses.first() {
        Some(address) => *address,
        None => match look_up(profile, &server.authority)? {
            Some(address) => address,
            None => return Ok(Vec::new()),
        },
    };
    Ok(vec![route(to, if look.surrogate { Target::Surrogate } else { Target::Origin })])
}

fn is_server(proxy: SocketAddr, server: &Server, look: &Look<'_>) -> bool {
    let here = matches!(look.servers, Servers::Here(places) if places.contains(&proxy));
    here || server.authority.parse() == Ok(proxy)
}

/// The places where requests of these routes may arrive.
fn stand_ins(test: &Test, places: &[SocketAddr], routes: &[Route]) -> Vec<SocketAddr> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    let asked = |(place, names): (&SocketAddr, &[String])| {
        routes.iter().any(|Route { probe, target, .. }| {
            let of_name = names.contains(&probe.authority) || probe.authority == place.to_string();
            *target == Target::Surrogate || *place == probe.to || of_name
        })
    };
    let places = places.iter().zip(sites.map(|site| site.names.as_slice()));
    let asked: BTreeSet<SocketAddr> = places.filter(|place| asked(*place)).map(|(place, _)| *place).collect();
    asked.into_iter().take(MOST).collect()
}

/// The first address of a name, as the robot's name servers tell it. `None`: the robot asks nobody.
fn look_up(profile: &Profile, authority: &str) -> Result<Option<SocketAddr>, Failure> {
    let Some(dns) = &profile.dns else { return Ok(None) };
    let Some((host, port)) = authority.rsplit_once(':') else { return Ok(None) };
    let (Ok(name), Ok(port)) = (DomainName::parse(host), port.parse()) else { return Ok(None) };
    let kind = if dns.v6 { QueryType::Aaaa } else { QueryType::A };
    let mut why = Vec::new();
    for server in &dns.servers {
        match ask(*server, &Query::new(std::process::id() as u16, name.clone(), kind)) {
            Ok(ip) => return Ok(Some(SocketAddr::new(ip, port))),
            Err(problem) => why.push(format!("{server}: {problem}")),
        }
    }
    Err(Failure::setup(anyhow::anyhow!(
        "no name server tells the address of {host} ({}); is one running there, with the names of this workload? `polygraph dns \
         --config FILE` serves them, and so does `run --dns auto`",
        why.join("; ")
    )))
}

fn ask(server: SocketAddr, query: &Query) -> Result<IpAddr, String> {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut datagram = [0; 4096];
    let received = UdpSocket::bind(any)
        .and_then(|socket| {
            socket.set_read_timeout(Some(NAME_PATIENCE))?;
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
    use super::*;

    #[test]
    fn patience_by_example() {
        let seconds = |text: &str| patience(text).map(|found| found.0.map(|time| time.as_secs_f64()));
        assert_eq!(seconds("5s"), Ok(Some(5.0)));
        assert_eq!(seconds("250ms"), Ok(Some(0.25)));
        assert_eq!((seconds("no"), seconds("None"), seconds("yes")), (Ok(None), Ok(None), Ok(Some(5.0))));
        for wrong in ["", "maybe", "0s", "1hr", "5"] {
            assert!(patience(wrong).is_err(), "{wrong}");
        }
    }
}
