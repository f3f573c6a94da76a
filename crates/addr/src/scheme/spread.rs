//! `SpreadAs`: all configured machines get an equal slice of the address space.

use crate::bench::{RequiredSettings, check_limit};
use crate::scheme::generation4::check_capacity;
use crate::{Allocation, BenchRole, BenchSpec, SchemeError, SchemeWarning, compact, count, sdiv, xceil};

pub(crate) fn allocate(
    role: BenchRole,
    bench: &BenchSpec,
    agents_per_addr: Option<i64>,
) -> Result<Allocation, SchemeError> {
    let (side, side_name) = (bench.side(role), role.side_name());
    let mut wants = RequiredSettings::new("SpreadAs", role);
    let rate = wants.positive("peak_req_rate", bench.peak_req_rate);
    let agent_load = wants.positive(&format!("{side_name}.max_agent_load"), side.max_agent_load);
    let hosts = count(wants.list(&format!("{side_name}.hosts"), &side.hosts));
    let pool = wants.list(&format!("{side_name}.addr_space"), &side.addr_space);
    let k = match role {
        BenchRole::Robots => wants.count("agents_per_addr", agents_per_addr),
        _ => 1,
    };
    wants.check()?;

    let agents = sdiv(hosts.saturating_mul(k), xceil(rate, agent_load) as f64);
    check_limit(role, agents)?;
    let (pool_size, need) = (count(pool), agents / k);
    if need > pool_size {
        return Err(SchemeError::PoolTooSmall { side: side_name, pool: pool_size, need });
    }
    let mut warnings = Vec::new();
    if let Some(limit) = side.max_host_load {
        let per_host = rate / hosts as f64;
        if per_host > limit {
            let (rate, limit) = (per_host.round() as u64, limit.round() as u64);
            warnings.push(SchemeWarning::HostOverloaded { side: side_name, hosts, rate, limit });
        }
        check_capacity(role, agents, hosts, k, limit / agent_load)?;
    }

    let (slice, per_host) = (pool_size / hosts, need / hosts);
    let shares: Vec<_> = (0..hosts).map(|host| compact(slice_of(pool, host * slice, per_host))).collect();
    let name = shares.iter().flatten().flatten().find(|addr| addr.host.ip().is_none());
    if let Some(addr) = name {
        return Err(SchemeError::NameInPool { side: side_name, name: addr.host.to_string() });
    }
    Ok(Allocation { shares, agents_per_addr: k, warnings })
}

/// `len` addresses of the pool from position `from` on.
fn slice_of(pool: &[crate::AddrRange], from: u64, len: u64) -> impl Iterator<Item = crate::Addr> + '_ {
    let mut skip = from;
    let starts = pool.iter().map(move |range| {
        let here = skip.min(range.len());
        skip -= here;
        (range, here)
    });
    let members = starts.flat_map(|(range, here)| (here..range.len()).filter_map(|index| range.get(index)));
    members.take(len as usize)
}
