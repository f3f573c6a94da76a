//! What a workload says about the addresses of its bench: address maps, and agents on machines.

use polygraph_addr::{Addr, AgentGroup, Placement, SidePlan};
use polygraph_pgl::Workload;
use polygraph_pgl::types::{Agent, BenchSide};

/// The zone, the addresses and the names of an address map.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// The zone.
    pub zone: String,
    /// IP addresses.
    pub addresses: Vec<Addr>,
    /// Names in the zone; name i has address i.
    pub names: Vec<Addr>,
}

/// The only address map of a workload.
///
/// # Errors
/// If the workload has no address map, more than one, or one without a zone.
pub fn address_map(workload: &Workload) -> Result<AddressMap, String> {
    let [map] = &workload.addr_maps[..] else {
        let count = workload.addr_maps.len();
        return Err(format!("zone files need one address map, but the workload uses {count}"));
    };
    let zone = map.zone.clone().ok_or("the address map has no zone: set its field `zone`")?;
    let names = map.names.iter().map(|name| name.addr.clone()).collect();
    Ok(AddressMap { zone, addresses: map.addresses.clone(), names })
}

/// The agents of a workload on the machines of its bench, and warnings.
///
/// # Errors
/// If the workload has no bench, or its agents do not fit on the machines.
pub fn placement(workload: &Workload) -> Result<(Placement, Vec<String>), String> {
    let bench = workload.bench.as_ref().ok_or("the workload uses no bench: add one with use()")?;
    let clients = side(bench.client_side.as_deref(), workload.robots.iter().map(|robot| &robot.agent));
    let servers = side(bench.server_side.as_deref(), workload.servers.iter().map(|server| &server.agent));
    let sides = [("client_side", &clients), ("server_side", &servers)];
    let without = sides.into_iter().filter(|(_, side)| side.hosts.is_empty());
    let warnings = without
        .map(|(name, _)| format!("{name}.hosts of the bench is not set, so its machines are not listed"))
        .collect();
    Ok((Placement::new(clients, servers).map_err(|e| e.to_string())?, warnings))
}

fn side<'a>(bench: Option<&BenchSide>, agents: impl Iterator<Item = &'a Agent>) -> SidePlan {
    let group = |agent: &Agent| AgentGroup {
        kind: agent.kind.clone().unwrap_or_else(|| "-".to_owned()),
        addresses: agent.addresses.0.clone(),
    };
    SidePlan {
        hosts: bench.map(|side| side.hosts.clone()).unwrap_or_default(),
        aliases: bench.map(|side| side.addresses.0.clone()).unwrap_or_default(),
        groups: agents.map(group).collect(),
    }
}
