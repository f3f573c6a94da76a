//! Generation 3 (PolyMix-2, PolyMix-3, WebAxe-3): each machine owns whole third octets under a mask.

use crate::bench::RequiredSettings;
use crate::{
    AddrRange, Allocation, BenchRole, BenchSpec, Host, HostRange, NumberRange, SchemeError, ddiv, sdiv, xceil,
};

/// The third octet before the first one of the servers; that of robots is 0.
const SERVER_BASE: u64 = 128;

pub(crate) fn allocate(role: BenchRole, bench: &BenchSpec) -> Result<Allocation, SchemeError> {
    let (side, side_name) = (bench.side(role), role.side_name());
    let mut wants = RequiredSettings::new("PolyMix3As", role);
    let rate = wants.positive("peak_req_rate", bench.peak_req_rate);
    let host_load = wants.positive(&format!("{side_name}.max_host_load"), side.max_host_load);
    // The number of servers follows from that of the robots too, but with the load of the server side.
    let agent_load = wants.positive(&format!("{side_name}.max_agent_load"), side.max_agent_load);
    let mask = match &side.addr_mask {
        Some(mask) => mask.clone(),
        None => {
            wants.list(&format!("{side_name}.addr_mask"), &[]);
            std::net::IpAddr::from([0; 4]).into()
        }
    };
    wants.check()?;
    let Host::V4(ip) = mask.host else {
        return Err(SchemeError::BadMask { side: side_name, mask: mask.to_string() });
    };

    let hosts = xceil(rate, host_load);
    let robots = ddiv(hosts, rate, agent_load);
    let (agents, base, room) = match role {
        BenchRole::Servers => (sdiv(hosts, 0.1 * robots as f64 + 500.0), SERVER_BASE, 255 - SERVER_BASE),
        _ => (robots, 0, SERVER_BASE),
    };
    let thirds = ddiv(hosts, agents as f64, 250.0);
    let fourths = xceil(agents as f64, thirds as f64);
    if thirds > room {
        return Err(SchemeError::MaskTooSmall { role, agents, octets: thirds, room });
    }

    let [a, b, ..] = ip.octets();
    let per_host = thirds / hosts;
    let shares = (0..hosts).map(|host| {
        let first = base + host * per_host + 1;
        let third = NumberRange { lo: first as u32, hi: (first + per_host - 1) as u32 };
        let fourth = NumberRange { lo: 1, hi: fourths as u32 };
        vec![AddrRange {
            interface: mask.interface.clone(),
            host: HostRange::V4([NumberRange::one(a.into()), NumberRange::one(b.into()), third, fourth]),
            port: mask.port.map(|port| NumberRange::one(port.into())),
            subnet: mask.subnet,
        }]
    });
    Ok(Allocation { shares: shares.collect(), agents_per_addr: 1, warnings: Vec::new() })
}
