//! Where the device is: between robots and servers, so never at the address of a server. A test of a server that poses as its own
//! device would be VALID, and nothing would have been measured.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use polygraph_device::DeviceRole;
use polygraph_plan::Test;

use crate::Failure;
use crate::addresses::is_local;

/// Checks that no device of the robots is at an address where servers of the test listen. `role` is that of the device that the
/// user names, if any: one that acts as the servers has their place in the test already.
///
/// # Errors
/// If there would be no device between robots and servers.
pub fn check(test: &Test, role: Option<DeviceRole>, listening: &[SocketAddr]) -> Result<(), Failure> {
    let robots = || test.robots.iter().filter(|profile| profile.count > 0);
    let proxies: BTreeSet<SocketAddr> =
        robots().flat_map(|profile| profile.proxies.iter().copied()).collect();
    let socks: BTreeSet<SocketAddr> = robots()
        .filter_map(|profile| profile.socks.as_ref())
        .flat_map(|socks| socks.proxies.clone())
        .collect();
    let reverse: BTreeSet<SocketAddr> = match role {
        Some(role) if role.acts_as_servers() => {
            test.field.servers.iter().flat_map(|server| server.addresses.iter().copied()).collect()
        }
        _ => BTreeSet::new(),
    };
    // URLs name the servers that clients do not start. The name of a device that acts as a server may well be its own address.
    let named: BTreeSet<SocketAddr> =
        test.field.servers.iter().filter_map(|server| server.authority.parse().ok()).collect();
    let of_reverse = if role == Some(DeviceRole::Balancer) { "load balancer" } else { "surrogate" };
    for (kind, devices, named) in [
        ("proxy", proxies, named),
        ("SOCKS proxy", socks, BTreeSet::new()),
        (of_reverse, reverse, BTreeSet::new()),
    ] {
        for device in devices {
            let place = listening.iter().chain(&named).find(|place| is_at(device, **place));
            if let Some(place) = place {
                return Err(Failure::usage(same_place(kind, device, *place)));
            }
        }
    }
    Ok(())
}

/// The addresses at which servers of a workload will listen, for processes that do not start them. Which hosts have a server that
/// listens at all of their addresses is unknown there.
pub fn named_places(test: &Test) -> Vec<SocketAddr> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    sites.map(|site| site.listen).filter(|place| !place.ip().is_unspecified()).collect()
}

/// Whether a connection to `device` arrives at a server that listens at `place`.
fn is_at(device: SocketAddr, place: SocketAddr) -> bool {
    // Connections to no address in particular stay on this host.
    let ip = match device.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let place_ip = place.ip().to_canonical();
    // A socket for all IPv6 addresses has those of IPv4, too.
    let has_family = place_ip.is_ipv6() || ip.is_ipv4();
    device.port() == place.port()
        && (ip == place_ip || place_ip.is_unspecified() && has_family && is_local(ip))
}

fn same_place(kind: &str, device: SocketAddr, place: SocketAddr) -> String {
    let also = if device == place { String::new() } else { format!(" at {place}") };
    format!(
        "the {kind}'s address {device} is the address of the origin server{also}: there would be no device between robots and servers. \
         Name the address of the device, or test without one (`run --no_proxy`, or a client without the option)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_somewhere_else() {
        for (device, place, same) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            // Listening everywhere, at addresses of this host alone.
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.0.0.1:80", "[::]:80", true),
            ("127.0.0.1:80", "0.0.0.0:81", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("192.0.2.7:80", "0.0.0.0:80", false),
            // Connecting to anywhere.
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.0.0.2:80", false),
            ("[::]:80", "[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
        ] {
            assert_eq!(is_at(device.parse().unwrap(), place.parse().unwrap()), same, "{device} {place}");
        }
    }
}
