//! Generation 4 (PolyMix-4, WebAxe-4, SrvLB-4): each machine owns whole subnets of an address space.

use std::net::IpAddr;

use crate::bench::{MAX_AGENTS, RequiredSettings, check_limit};
use crate::{
    Addr, AddrRange, Allocation, BenchRole, BenchSpec, SchemeError, SchemeWarning, compact, count, ddiv,
    sdiv, xceil,
};

/// Robots, or the proxies of a proxy side.
pub(crate) fn agents(
    scheme: &'static str,
    role: BenchRole,
    bench: &BenchSpec,
    agents_per_addr: Option<i64>,
) -> Result<Allocation, SchemeError> {
    let (side, side_name) = (bench.side(role), role.side_name());
    let mut wants = RequiredSettings::new(scheme, role);
    let rate = wants.positive("peak_req_rate", bench.peak_req_rate);
    let host_load = wants.positive(&format!("{side_name}.max_host_load"), side.max_host_load);
    let agent_load = wants.positive(&format!("{side_name}.max_agent_load"), side.max_agent_load);
    let pool = wants.list(&format!("{side_name}.addr_space"), &side.addr_space);
    let k = wants.count("agents_per_addr", agents_per_addr);
    wants.check()?;

    let hosts = xceil(rate, host_load);
    let agents = sdiv(hosts.saturating_mul(k), ddiv(hosts, rate, agent_load) as f64);
    check_limit(role, agents)?;
    check_capacity(role, agents, hosts, k, host_load / agent_load)?;
    let mut allocation = distribute(side_name, pool, hosts, agents / hosts / k)?;
    allocation.agents_per_addr = k;
    allocation.warnings.extend(mask_warning(scheme, role, bench));
    Ok(allocation)
}

/// Servers of PolyMix-4: one per address; their number is 500 and a tenth of the robots.
pub(crate) fn polymix4_servers(
    scheme: &'static str,
    bench: &BenchSpec,
    agents_per_addr: Option<i64>,
) -> Result<Allocation, SchemeError> {
    let (role, side_name) = (BenchRole::Servers, BenchRole::Servers.side_name());
    let side = bench.side(role);
    let mut wants = RequiredSettings::new(scheme, role);
    let rate = wants.positive("peak_req_rate", bench.peak_req_rate);
    let host_load = wants.positive(&format!("{side_name}.max_host_load"), side.max_host_load);
    let pool = wants.list(&format!("{side_name}.addr_space"), &side.addr_space);
    let client = &bench.client_side;
    let client_load = wants.positive("client_side.max_host_load", client.max_host_load);
    let robot_load = wants.positive("client_side.max_agent_load", client.max_agent_load);
    let k = wants.count("agents_per_addr", agents_per_addr);
    wants.check()?;

    let client_hosts = xceil(rate, client_load);
    let robots = sdiv(client_hosts.saturating_mul(k), ddiv(client_hosts, rate, robot_load) as f64);
    let hosts = xceil(rate, host_load);
    let servers = sdiv(hosts, (500.5 + 0.1 * robots as f64).trunc());
    check_limit(role, servers)?;
    let mut allocation = distribute(side_name, pool, hosts, servers / hosts)?;
    if side.max_agent_load.is_some() {
        allocation.warnings.push(SchemeWarning::AgentLoadIgnored { scheme, side: side_name });
    }
    allocation.warnings.extend(mask_warning(scheme, role, bench));
    Ok(allocation)
}

/// Servers of WebAxe-4 and SrvLB-4: the machines themselves.
pub(crate) fn real_servers(scheme: &'static str, bench: &BenchSpec) -> Result<Allocation, SchemeError> {
    let (role, side_name) = (BenchRole::Servers, BenchRole::Servers.side_name());
    let side = bench.side(role);
    let mut wants = RequiredSettings::new(scheme, role);
    wants.list(&format!("{side_name}.hosts"), &side.hosts);
    wants.check()?;
    check_limit(role, count(&side.hosts))?;
    let shares = side.hosts.iter().flatten().map(|host| vec![AddrRange::from(host)]).collect();
    let mut warnings = Vec::new();
    if !side.addr_space.is_empty() {
        warnings.push(SchemeWarning::PoolIgnored { scheme, side: side_name });
    }
    warnings.extend(mask_warning(scheme, role, bench));
    Ok(Allocation { shares, agents_per_addr: 1, warnings })
}

fn mask_warning(scheme: &'static str, role: BenchRole, bench: &BenchSpec) -> Option<SchemeWarning> {
    bench.side(role).addr_mask.as_ref()?;
    Some(SchemeWarning::MaskIgnored { scheme, side: role.side_name() })
}

/// Checks that the agents do not exceed the capacity of the hosts. `load_ratio` is the load of a host over the
/// load of an agent.
pub(crate) fn check_capacity(
    role: BenchRole,
    agents: u64,
    hosts: u64,
    k: u64,
    load_ratio: f64,
) -> Result<(), SchemeError> {
    let per_host = k.saturating_mul(xceil(xceil(load_ratio, 1.0) as f64, k as f64));
    match agents > per_host.saturating_mul(hosts) {
        true => Err(SchemeError::HostCapacity { role, agents, hosts, per_host }),
        false => Ok(()),
    }
}

/// Gives each host the next `per_host` addresses of the pool, and continues behind the subnet of the last one.
fn distribute(
    side: &'static str,
    pool: &[AddrRange],
    hosts: u64,
    per_host: u64,
) -> Result<Allocation, SchemeError> {
    let pool_size = count(pool);
    let need = hosts.saturating_mul(per_host);
    if need > pool_size {
        return Err(SchemeError::PoolTooSmall { side, pool: pool_size, need });
    }

    let host_bits = per_host.next_power_of_two().trailing_zeros() as u8;
    let mut allocation = Allocation { agents_per_addr: 1, ..Allocation::default() };
    let mut skip_subnet: Option<u8> = None;
    let mut members = pool.iter().flatten().peekable();
    for host in 0..hosts {
        let mut share = Vec::new();
        let mut last = None;
        for mut addr in members.by_ref().take(per_host as usize) {
            let ip = pool_ip(side, &addr)?;
            let computed = width(ip).saturating_sub(host_bits);
            let skip = *skip_subnet.get_or_insert(computed);
            match addr.subnet {
                Some(given) if given > computed => {
                    let warning = SchemeWarning::SubnetTooSmall { side, given, needed: computed };
                    if !allocation.warnings.contains(&warning) {
                        allocation.warnings.push(warning);
                    }
                }
                Some(given) => skip_subnet = Some(skip.min(given)),
                None => addr.subnet = Some(computed),
            }
            last = Some(ip);
            share.push(addr);
        }
        let subnet = skip_subnet.unwrap_or_default();
        if (share.len() as u64) < per_host {
            return Err(SchemeError::PoolExhausted { side, served: host, hosts, subnet });
        }
        allocation.shares.push(compact(share));
        if host + 1 < hosts
            && let Some(last) = last
        {
            let inside = |addr: &Addr| addr.host.ip().is_some_and(|ip| same_subnet(ip, last, subnet));
            let skipped = (0..MAX_AGENTS).take_while(|_| members.next_if(inside).is_some()).count() as u64;
            if skipped == MAX_AGENTS {
                return Err(SchemeError::PoolExhausted { side, served: host + 1, hosts, subnet });
            }
        }
    }
    Ok(allocation)
}

fn pool_ip(side: &'static str, addr: &Addr) -> Result<IpAddr, SchemeError> {
    addr.host.ip().ok_or_else(|| SchemeError::NameInPool { side, name: addr.host.to_string() })
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn same_subnet(a: IpAddr, b: IpAddr, subnet: u8) -> bool {
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
        IpAddr::V6(ip) => u128::from(ip),
    };
    a.is_ipv4() == b.is_ipv4() && (bits(a) ^ bits(b)).leading_zeros() >= u32::from(subnet)
}
