//! The names of a workload's servers: a name server of the run's own, or one that is there already.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use polygraph_dns::{NameServer, NameServerConfig, Zone};
use polygraph_plan::Test;
use serde_json::json;

use crate::options::{host_port, resolve};
use crate::{Failure, console};

/// Who answers the robots' questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameService {
    /// A name server that the run starts, which knows the names of the workload and no others.
    Own,
    /// The one at this `host:port`.
    At(String),
}

/// Reads `auto` or `host:port`.
///
/// # Errors
/// If it is neither.
pub fn name_service(text: &str) -> Result<NameService, String> {
    match text {
        "auto" => Ok(NameService::Own),
        _ => host_port(text).map(NameService::At).map_err(|_| {
            format!("`{text}` is no name server: write auto, or host:port, for example 127.0.0.1:5353")
        }),
    }
}

/// The name server of a run.
#[derive(Debug)]
pub struct Names {
    address: SocketAddr,
    own: Option<NameServer>,
}

impl Names {
    /// Starts a name server, if the run is to have its own, and leads all robots that look names up there.
    ///
    /// # Errors
    /// If no robot looks anything up, or the server cannot be started.
    pub fn start(service: &NameService, test: &mut Test) -> Result<Names, Failure> {
        let asks = |profile: &polygraph_robot::Profile| profile.dns.is_some() && profile.proxies.is_empty();
        if !test.robots.iter().any(|profile| asks(profile)) {
            return Err(Failure::usage(
                "--dns: no robot of the workload asks a name server; give them a dns_resolver and no proxy",
            ));
        }
        let (address, own) = match service {
            NameService::At(place) => (resolve(place)?, None),
            NameService::Own => {
                let server = own_server(test)?;
                (server.local_addrs()[0], Some(server))
            }
        };
        for profile in &mut test.robots {
            if let Some(dns) = &mut Arc::make_mut(profile).dns {
                dns.servers = vec![address];
            }
        }
        if own.is_some() {
            console::note(&format!("{} names at {address}", test.names.len()));
        }
        Ok(Names { address, own })
    }

    /// What the manifest says at the end.
    pub fn manifest(&self) -> serde_json::Value {
        match self.own.as_ref().map(NameServer::snapshot) {
            None => json!({ "address": self.address.to_string() }),
            Some(seen) => json!({
                "address": self.address.to_string(),
                "queries": seen.queries(),
                "answered": seen.answered,
                "no_such_name": seen.no_name,
                "refused": seen.refused,
            }),
        }
    }
}

/// A name server with the names of a test, where its robots can ask it.
fn own_server(test: &Test) -> Result<NameServer, Failure> {
    let mut zone = Zone::default();
    for (name, addresses) in &test.names {
        zone.add(name, addresses).map_err(Failure::usage)?;
    }
    // Whoever sends from an IPv6 address gets no answer from an IPv4 one.
    let from = test.robots.iter().find_map(|profile| profile.addresses.first());
    let host = match from {
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let config = NameServerConfig { listen: vec![SocketAddr::new(host, 0)], ..NameServerConfig::local(zone) };
    NameServer::start(config).map_err(|e| Failure::setup(anyhow::anyhow!("cannot start a name server: {e}")))
}
