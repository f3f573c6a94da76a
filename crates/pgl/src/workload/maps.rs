//! Address maps and the names under which servers are known.

use std::collections::BTreeSet;

use polygraph_addr::{Addr, Host};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::UsedRecord;
use crate::types::{AddrMap, HTTP_PORT, Robot, VisibleName};
use crate::value::Value;
use crate::workload::{Checks, Workload, is_addr};

impl AddrMap {
    /// Names with the addresses behind them: a single name has all of them, otherwise each name has one, in
    /// turn. The `zone` of a map concerns name servers only.
    pub fn pairs(&self) -> impl Iterator<Item = (&VisibleName, &[Addr])> {
        let count = self.addresses.len().max(1);
        self.names.iter().enumerate().map(move |(index, name)| match self.names.len() {
            1 => (name, &self.addresses[..]),
            _ => (name, self.addresses.get(index % count).map_or(&[][..], std::slice::from_ref)),
        })
    }
}

/// Adds a used map, or skips it with a warning. `known` has the names of the maps before.
pub fn add(
    map: AddrMap,
    used: &UsedRecord,
    known: &mut FxHashSet<HostPort>,
    workload: &mut Workload,
    checks: &mut Checks<'_>,
) {
    let lacks = match (map.names.is_empty(), map.addresses.is_empty()) {
        (false, false) => None,
        (true, _) => Some("names"),
        (_, true) => Some("addresses"),
    };
    if let Some(lacks) = lacks {
        let text = format!("the map has no {lacks} and is ignored");
        checks.push(Diagnostic::new(Code::UselessUse, used.span, text));
        return;
    }
    let (names, addresses) = (map.names.len(), map.addresses.len());
    if names != 1 && names < addresses {
        let text = format!("the map has {names} names for {addresses} addresses");
        let finding = checks
            .at(Code::BadMap, used, "names", text)
            .note("a map must have one name for many addresses, or at least as many names as addresses");
        checks.push(finding);
    }
    if let Some(addr) = map.addresses.iter().find(|addr| addr.host.ip().is_none()) {
        let text = format!("names must map to IP addresses, but {} is a name", addr.host);
        let finding = checks.at(Code::BadMap, used, "addresses", text);
        checks.push(finding);
    }
    let key = |name: &VisibleName| (name.addr.host.clone(), name.addr.port);
    if let Some(name) = map.names.iter().find(|name| known.contains(&key(name))) {
        let text = format!("{} is in two maps", name.addr);
        let finding = checks.at(Code::BadMap, used, "names", text);
        checks.push(finding);
    }
    known.extend(map.names.iter().map(key));
    workload.addr_maps.push(map);
}

/// Host and port as written in workloads.
pub(super) type HostPort = (Host, Option<u16>);

/// The servers that robots can send requests to.
pub(crate) struct VisibleServers {
    /// Addresses of servers, and names in address maps, each with an index in `behind`.
    pub(super) names: FxHashMap<HostPort, usize>,
    /// The groups of servers that can answer, by index in the workload.
    pub(super) behind: Vec<Vec<usize>>,
    /// Variables with servers.
    pub(super) variables: Vec<String>,
    /// False if an error hides further servers.
    pub(super) complete: bool,
}

impl VisibleServers {
    /// The indices in `behind` of the robot's origins, each once.
    pub(super) fn behind_origins(&self, robot: &Robot) -> BTreeSet<usize> {
        let key = |name: &VisibleName| (name.addr.host.clone(), name.addr.port);
        robot.origins.values().filter_map(|name| self.names.get(&key(name)).copied()).collect()
    }

    /// The groups of servers that a robot uses, by index in the workload.
    pub(super) fn servers_of(&self, robot: &Robot) -> impl Iterator<Item = usize> {
        self.behind_origins(robot).into_iter().flat_map(|at| self.behind[at].iter().copied())
    }
}

/// Checks server addresses and returns the names and addresses that robots can see.
pub fn visible(workload: &Workload, servers: &[&UsedRecord], checks: &mut Checks<'_>) -> VisibleServers {
    let count = workload.server_count();
    let mut addresses = FxHashMap::with_capacity_and_hasher(count, Default::default());
    let mut complete = true;
    for (position, (server, used)) in workload.servers.iter().zip(servers).enumerate() {
        let mut told = false;
        for addr in &server.agent.addresses.0 {
            let repeated = addresses.insert((addr.host.clone(), addr.port), position).is_some();
            let (text, help) = if addr.host.ip().is_none() {
                let text = format!("servers need IP addresses, but {} is a name", addr.host);
                (text, "write an IP with a port: `'127.0.0.1:9090'`; an AddrMap maps names to it".to_owned())
            } else if addr.port.is_none() {
                let with_port = Addr { port: Some(9090), ..addr.clone() };
                let help = "a server address has a port and is used only once";
                (format!("the server address {addr} has no port"), format!("write `'{with_port}'`: {help}"))
            } else if repeated {
                let text = format!("the server address {addr} is used twice");
                (
                    text,
                    "each server address, with its port, belongs to one server; use another port".to_owned(),
                )
            } else {
                continue;
            };
            complete = false;
            // One diagnostic about equal mistakes is enough; collecting visible servers continues.
            if std::mem::replace(&mut told, true) {
                continue;
            }
            let test = |value: &Value| is_addr(value, addr);
            let finding = checks.at_element(Code::BadServerAddress, *used, "addresses", text, &test);
            checks.push(finding.help(help));
        }
    }
    let mut behind: Vec<Vec<usize>> = (0..servers.len()).map(|position| vec![position]).collect();
    let mut positions: FxHashMap<Vec<usize>, usize> = FxHashMap::default();
    let mut named = Vec::new();
    for map in &workload.addr_maps {
        for (name, all) in map.pairs() {
            let port = |addr: &Addr| addr.port.or(name.addr.port).unwrap_or(HTTP_PORT);
            let found = all.iter().filter_map(|addr| addresses.get(&(addr.host.clone(), Some(port(addr)))));
            let found: Vec<usize> = found.copied().collect::<BTreeSet<_>>().into_iter().collect();
            let position = match &found[..] {
                [server] => *server,
                _ => *positions.entry(found).or_insert_with_key(|found| {
                    behind.push(found.clone());
                    behind.len() - 1
                }),
            };
            named.push(((name.addr.host.clone(), name.addr.port), position));
        }
    }
    // A server's address stands for that server alone, and names in maps come first.
    let mut names = addresses;
    names.extend(named);
    let variables = servers.iter().filter_map(|used| used.name.clone()).collect();
    VisibleServers { names, behind, variables, complete }
}
