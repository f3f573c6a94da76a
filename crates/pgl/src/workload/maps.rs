//! Address maps and the names under which servers are known.

use polygraph_addr::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::Used;
use crate::types::AddrMap;
use crate::value::Value;
use crate::workload::{Checks, Visible, Workload, is_addr};

/// Takes a used map, or leaves it out with a warning.
pub fn add(map: AddrMap, used: &Used, workload: &mut Workload, checks: &mut Checks<'_>) {
    let lacks = match (map.names.is_empty(), map.addresses.is_empty()) {
        (false, false) => None,
        (true, _) => Some("names"),
        (_, true) => Some("addresses"),
    };
    if let Some(lacks) = lacks {
        let text = format!("the map has no {lacks} and is left out");
        checks.push(Diagnostic::new(Code::UselessUse, used.span, text));
        return;
    }
    let (names, addresses) = (map.names.len(), map.addresses.len());
    if names != 1 && names < addresses {
        let text = format!("the map has {names} names for {addresses} addresses");
        let finding = checks
            .at(Code::BadMap, used, "names", text)
            .note("a map has one name for many addresses, or at least as many names as addresses");
        checks.push(finding);
    }
    if let Some(addr) = map.addresses.iter().find(|addr| addr.host.ip().is_none()) {
        let text = format!("behind names are IP addresses, and {} is a name", addr.host);
        let finding = checks.at(Code::BadMap, used, "addresses", text);
        checks.push(finding);
    }
    let mut known: FxHashMap<_, ()> = FxHashMap::default();
    for other in &workload.addr_maps {
        known.extend(other.names.iter().map(|name| ((name.addr.host.clone(), name.addr.port), ())));
    }
    if let Some(name) =
        map.names.iter().find(|name| known.contains_key(&(name.addr.host.clone(), name.addr.port)))
    {
        let text = format!("{} is in two maps", name.addr);
        let finding = checks.at(Code::BadMap, used, "names", text);
        checks.push(finding);
    }
    workload.addr_maps.push(map);
}

/// Checks server addresses and gives the names and addresses that robots can see.
pub fn visible(workload: &Workload, servers: &[&Used], checks: &mut Checks<'_>) -> Visible {
    let mut names = FxHashSet::default();
    let mut complete = true;
    for (server, used) in workload.servers.iter().zip(servers) {
        let mut told = false;
        for addr in &server.agent.addresses.0 {
            let repeated = !names.insert((addr.host.clone(), addr.port));
            let (text, help) = if addr.host.ip().is_none() {
                let text = format!("servers live at IP addresses, and {} is a name", addr.host);
                (
                    text,
                    "write an IP with a port: `'127.0.0.1:9090'`; names lead to it by an AddrMap".to_owned(),
                )
            } else if addr.port.is_none() {
                let with_port = Addr { port: Some(9090), ..addr.clone() };
                let help = "a server address has a port, and each is used only once";
                (format!("the server address {addr} has no port"), format!("write `'{with_port}'`: {help}"))
            } else if repeated {
                let text = format!("the server address {addr} is used twice");
                (
                    text,
                    "each server address, with its port, stands for one server; use another port".to_owned(),
                )
            } else {
                continue;
            };
            complete = false;
            // One of many equal mistakes is enough; what robots see is collected nevertheless.
            if std::mem::replace(&mut told, true) {
                continue;
            }
            let test = |value: &Value| is_addr(value, addr);
            let finding = checks.at_element(Code::BadServerAddress, used, "addresses", text, &test);
            checks.push(finding.help(help));
        }
    }
    for map in &workload.addr_maps {
        names.extend(map.names.iter().map(|name| (name.addr.host.clone(), name.addr.port)));
    }
    Visible { names, servers: servers.iter().filter_map(|used| used.name.clone()).collect(), complete }
}
