//! The servers as robots see them: names, the addresses behind them, and what robots can request there.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use polygraph_addr::{Addr, Host};
use polygraph_pgl::Workload;
use polygraph_pgl::types::{AddrMap, HTTP_PORT, VisibleName};
use polygraph_robot::Server;
use polygraph_robot::settings::BadCertificate;
use polygraph_tls::settings::CertificateFault;
use polygraph_traffic::{ContentKind, Selector};

use super::contents::kind;
use super::{Lowering, sockets, tls};
use crate::predict;

/// Host and port as written in workloads.
type HostPort = (Host, Option<u16>);

/// The visible servers of a workload (`docs/reference/language.md`, "Address maps"), in the order in which
/// robots refer to them.
pub struct VisibleServers<'a> {
    workload: &'a Workload,
    /// The addresses behind each name. A server address has itself behind it.
    behind: HashMap<HostPort, Vec<SocketAddr>>,
    /// The index of the server group at each address.
    groups: HashMap<SocketAddr, usize>,
    /// The names that lead to a server address.
    names: HashMap<SocketAddr, Vec<String>>,
    /// Positions of visible servers by name, and whether robots resolve that name.
    known: HashMap<(HostPort, bool), usize>,
    servers: Vec<Server>,
    direct: Vec<Selector<ContentKind>>,
}

impl<'a> VisibleServers<'a> {
    /// Reads the address maps and the servers of a workload.
    pub fn new(workload: &'a Workload, found: &mut Lowering<'_>) -> VisibleServers<'a> {
        let mut behind: HashMap<HostPort, Vec<SocketAddr>> = HashMap::new();
        let mut groups = HashMap::new();
        let mut names: HashMap<SocketAddr, Vec<String>> = HashMap::new();
        for map in &workload.addr_maps {
            for (name, addresses) in map.pairs() {
                let addresses: Vec<SocketAddr> =
                    addresses.iter().filter_map(|addr| socket(addr, &name.addr)).collect();
                for address in &addresses {
                    names.entry(*address).or_default().push(authority(&name.addr));
                }
                behind.insert(key(&name.addr), addresses);
            }
        }
        for (group, server) in workload.servers.iter().enumerate() {
            let addresses = &server.agent.addresses.0;
            for (addr, socket) in addresses.iter().zip(sockets(addresses, "addresses", found)) {
                groups.insert(socket, group);
                behind.entry(key(addr)).or_insert_with(|| vec![socket]);
            }
        }
        let (known, servers, direct) = (HashMap::new(), Vec::new(), Vec::new());
        VisibleServers { workload, behind, groups, names, known, servers, direct }
    }

    /// The position of a visible server. `resolves` means that robots look up its name, if it has one.
    pub fn position(&mut self, name: &VisibleName, resolves: bool, found: &mut Lowering<'_>) -> usize {
        let key = key(&name.addr);
        let resolves = resolves && key.0.ip().is_none();
        if let Some(position) = self.known.get(&(key.clone(), resolves)) {
            return *position;
        }
        let behind = self.behind.get(&key).cloned().unwrap_or_default();
        let groups: Option<Vec<usize>> =
            behind.iter().map(|address| self.groups.get(address).copied()).collect();
        let tls = self.tls_of(groups.as_deref().unwrap_or_default(), name, found);
        let bad_certificate = self.bad_certificate(groups.as_deref().unwrap_or_default(), name, found);
        let direct = match groups {
            Some(groups) if !groups.is_empty() => self.direct(&groups),
            _ => {
                found.wrong(format!("the origin {} leads to no server of the workload", name.addr));
                0
            }
        };
        let port = name.addr.port.unwrap_or(HTTP_PORT);
        let (addresses, behind) = match key.0.ip() {
            // An address needs no map. With a device that poses as the servers, it is the device's address.
            Some(ip) => (vec![SocketAddr::new(ip, port)], Vec::new()),
            None if resolves => (Vec::new(), behind.iter().map(SocketAddr::ip).collect()),
            None => (behind, Vec::new()),
        };
        let position = self.servers.len();
        let authority = authority(&name.addr);
        self.servers.push(Server { authority, addresses, behind, direct, tls, bad_certificate });
        self.known.insert((key, resolves), position);
        position
    }

    /// Whether the visible server at this position has TLS.
    pub fn has_tls(&self, position: usize) -> bool {
        self.servers.get(position).is_some_and(|server| server.tls)
    }

    /// Whether a name with servers of these groups behind it has TLS.
    fn tls_of(&self, groups: &[usize], name: &VisibleName, found: &mut Lowering<'_>) -> bool {
        let secure = |group: &&usize| !self.workload.servers[**group].agent.ssl_wraps.is_empty();
        let count = groups.iter().filter(secure).count();
        if count > 0 && count < groups.len() {
            found.wrong(format!(
                "some of the servers behind {} have `ssl_wraps` and others have none",
                name.addr
            ));
        }
        count > 0
    }

    /// The bad certificate that servers of these groups, which are behind a name, show on purpose.
    fn bad_certificate(
        &self,
        groups: &[usize],
        name: &VisibleName,
        found: &mut Lowering<'_>,
    ) -> Option<BadCertificate> {
        let mut faults: Vec<Option<CertificateFault>> = groups
            .iter()
            .map(|group| tls::fault_of(&self.workload.servers[*group].agent, self.workload))
            .collect();
        faults.dedup();
        if faults.len() > 1 {
            found.wrong(format!(
                "the servers behind {} must have the same `certificate_fault`, because robots cannot know which of them answers",
                name.addr
            ));
        }
        let fault = faults.pop()??;
        Some(BadCertificate { fault, is_hidden: false })
    }

    /// The position of the content selector of a name with servers of these groups behind it.
    fn direct(&mut self, groups: &[usize]) -> usize {
        let each = 1.0 / groups.len() as f64;
        let mut shares: Vec<(ContentKind, f64)> = Vec::new();
        let mut counts: Vec<f64> = vec![0.0; self.workload.servers.len()];
        groups.iter().for_each(|group| counts[*group] += each);
        for (server, part) in self.workload.servers.iter().zip(counts) {
            for (content, share) in predict::direct(server) {
                let kind = kind(content);
                match shares.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, sum)) => *sum += part * share,
                    None => shares.push((kind, part * share)),
                }
            }
        }
        let direct = Selector::weighted(shares);
        self.direct.iter().position(|known| *known == direct).unwrap_or_else(|| {
            self.direct.push(direct);
            self.direct.len() - 1
        })
    }

    /// The names by which robots know the server at an address. A server that is in no map is known by its
    /// address, and so is one that robots request by its address.
    pub fn names_of(&self, address: SocketAddr) -> Vec<String> {
        let mut names = self.names.get(&address).cloned().unwrap_or_default();
        let own = address.to_string();
        let asked = self.known.contains_key(&((address.ip().into(), Some(address.port())), false));
        if (asked || names.is_empty()) && !names.contains(&own) {
            names.push(own);
        }
        names
    }

    /// The names of visible servers with the addresses behind them.
    pub fn names(&self) -> Vec<(String, Vec<IpAddr>)> {
        let mut positions: HashMap<String, usize> = HashMap::new();
        let mut names: Vec<(String, Vec<IpAddr>)> = Vec::new();
        let all = self.workload.addr_maps.iter().flat_map(AddrMap::pairs);
        for (name, addresses) in all.filter(|(name, _)| name.addr.host.ip().is_none()) {
            let host = name.addr.host.to_string();
            let position = *positions.entry(host.clone()).or_insert_with(|| {
                names.push((host, Vec::new()));
                names.len() - 1
            });
            for ip in addresses.iter().filter_map(|addr| addr.host.ip()) {
                if !names[position].1.contains(&ip) {
                    names[position].1.push(ip);
                }
            }
        }
        names
    }

    /// The visible servers that robots use, and what can be requested there.
    pub fn finish(self) -> (Vec<Server>, Vec<Selector<ContentKind>>) {
        (self.servers, self.direct)
    }
}

/// An address behind a name. The port of the name is the default.
fn socket(addr: &Addr, name: &Addr) -> Option<SocketAddr> {
    Some(SocketAddr::new(addr.host.ip()?, addr.port.or(name.port).unwrap_or(HTTP_PORT)))
}

/// A visible server as it appears in URLs.
fn authority(name: &Addr) -> String {
    format!("{}:{}", name.host, name.port.unwrap_or(HTTP_PORT))
}

/// The part of an address that robots see, without interface and subnet.
fn key(addr: &Addr) -> HostPort {
    (addr.host.clone(), addr.port)
}
