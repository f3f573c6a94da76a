//! The name server of the robots: one that the run starts, or an existing one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use polygraph_dns::{NameServer, NameServerConfig, Zone};
use polygraph_plan::Test;
use serde_json::json;

use crate::{Failure, Notice, Notify};

/// The choice of the robots' name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameServerChoice {
    /// A name server that the run starts, which knows only the names of the workload.
    BuiltIn,
    /// The name server at this address.
    At(SocketAddr),
}

/// The name server of a run.
#[derive(Debug)]
pub struct RunNameServer {
    address: SocketAddr,
    built_in: Option<NameServer>,
}

impl RunNameServer {
    /// Starts the built-in name server if it is chosen, and makes all robots that look up names use the chosen one.
    ///
    /// # Errors
    /// If no robot looks up names, or the server cannot be started.
    pub fn start(
        choice: NameServerChoice,
        test: &mut Test,
        notify: Notify,
    ) -> Result<RunNameServer, Failure> {
        let looks_up =
            |profile: &polygraph_robot::Profile| profile.dns.is_some() && profile.proxies.is_empty();
        if !test.robots.iter().any(|profile| looks_up(profile)) {
            return Err(Failure::usage(
                "--dns: no robot of the workload looks up names; give robots a dns_resolver and no proxy",
            ));
        }
        let (address, built_in) = match choice {
            NameServerChoice::At(address) => (address, None),
            NameServerChoice::BuiltIn => {
                let server = start_built_in(test)?;
                (server.local_addrs()[0], Some(server))
            }
        };
        for profile in &mut test.robots {
            if let Some(dns) = &mut Arc::make_mut(profile).dns {
                dns.servers = vec![address];
            }
        }
        if built_in.is_some() {
            let names = polygraph_report::text::counted(test.names.len() as u64, "name");
            notify(Notice::Note(format!("name server with {names} at {address}")));
        }
        Ok(RunNameServer { address, built_in })
    }

    /// The part of the manifest about it, at the end of the run.
    pub fn manifest(&self) -> serde_json::Value {
        match self.built_in.as_ref().map(NameServer::snapshot) {
            None => json!({ "address": self.address.to_string() }),
            Some(counts) => json!({
                "address": self.address.to_string(),
                "queries": counts.queries(),
                "answered": counts.answered,
                "no_such_name": counts.no_name,
                "refused": counts.refused,
            }),
        }
    }
}

/// The names of a test, for name servers.
///
/// # Errors
/// If a name is not a domain name.
pub fn zone(test: &Test) -> Result<Zone, Failure> {
    let mut zone = Zone::default();
    for (name, addresses) in &test.names {
        zone.add(name, addresses).map_err(Failure::usage)?;
    }
    Ok(zone)
}

/// Starts a name server with the names of a test, at an address that its robots can reach.
fn start_built_in(test: &Test) -> Result<NameServer, Failure> {
    let zone = zone(test)?;
    // A robot with an IPv6 address cannot query a server with an IPv4 address.
    let from = test.robots.iter().find_map(|profile| profile.addresses.first());
    let host = match from {
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let config = NameServerConfig { listen: vec![SocketAddr::new(host, 0)], ..NameServerConfig::local(zone) };
    NameServer::start(config).map_err(|e| Failure::setup(anyhow::anyhow!("cannot start a name server: {e}")))
}
