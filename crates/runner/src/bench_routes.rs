//! Routes to agents that live behind the hosts of a bench: the full mesh of WebAxe-4.

use std::net::IpAddr;

use polygraph_netsetup::{IpPrefix, Route, RouteKind, networks, separate};
use polygraph_plan::{BenchNeeds, HostNeeds};

/// The routes that a host needs to reach the agents behind all other hosts of a bench, in the order of the hosts. Agents that
/// the workload places on another interface than loopback are on the same network as their host and need none.
///
/// # Errors
/// If the workload does not name its hosts, or a host has another address family than the agents behind it.
pub fn of_host(needs: &BenchNeeds, is_this_host: impl Fn(IpAddr) -> bool) -> Result<Vec<Route>, String> {
    let sides = [("client_side", &needs.clients), ("server_side", &needs.servers)];
    let mut behind: Vec<(IpAddr, Vec<IpAddr>, Vec<IpPrefix>)> = Vec::new();
    for (side, hosts) in sides {
        for host in hosts {
            let agents = agents_behind(host);
            if agents.is_empty() {
                continue;
            }
            let via = host.address.ok_or_else(|| {
                format!(
                    "the workload does not name the hosts of its agents: set {side}.hosts, for example to ['172.16.101.61-62']"
                )
            })?;
            if let Some((ip, _)) = agents.iter().find(|(ip, _)| ip.is_ipv4() != via.is_ipv4()) {
                return Err(format!(
                    "the agent {ip} of {side} is behind the host {via}: give both the same address family"
                ));
            }
            let addresses = agents.iter().map(|(ip, _)| *ip).collect();
            behind.push((via, addresses, networks(&agents)));
        }
    }
    separate(&mut behind.iter_mut().map(|(_, addresses, nets)| (nets, &addresses[..])).collect::<Vec<_>>());
    let others = behind.into_iter().filter(|(via, _, _)| !is_this_host(*via));
    let routes = others.flat_map(|(via, _, networks)| {
        networks.into_iter().map(move |network| Route {
            network,
            kind: RouteKind::Unicast { gateway: Some(via), interface: None },
        })
    });
    Ok(routes.collect())
}

/// The addresses of agents that other hosts reach through this one.
fn agents_behind(host: &HostNeeds) -> Vec<(IpAddr, Option<u8>)> {
    let on_link = |interface: &str| !interface.starts_with("lo");
    let agents = host.agents.iter().filter(|addr| !addr.interface.as_deref().is_some_and(on_link));
    agents
        .filter_map(|addr| Some((addr.host.ip()?, addr.subnet)))
        .filter(|(ip, _)| Some(*ip) != host.address && !ip.is_loopback())
        .collect()
}

/// Routes as a shell script that adds them.
pub fn script(routes: &[Route]) -> String {
    let lines = routes.iter().map(|route| {
        let family = if route.network.address.is_ipv6() { "ip -6" } else { "ip" };
        format!("{family} route add {route}\n")
    });
    format!("#!/bin/sh\nset -e\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use polygraph_addr::{AddrRange, expand};

    use super::*;

    fn host(own: Option<&str>, ranges: &str) -> HostNeeds {
        let ranges = AddrRange::parse_list(ranges).unwrap();
        HostNeeds { address: own.map(|ip| ip.parse().unwrap()), agents: expand(&ranges, 9999).unwrap() }
    }

    fn text(clients: Vec<HostNeeds>, servers: Vec<HostNeeds>, this: &str) -> Result<String, String> {
        let needs = BenchNeeds { clients, servers, device: None };
        let this: Option<IpAddr> = this.parse().ok();
        of_host(&needs, |ip| Some(ip) == this)
            .map(|routes| routes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn a_mesh_leads_to_the_robots_of_all_other_hosts() {
        let clients = || {
            vec![
                host(Some("172.16.13.61"), "lo0::10.13.0-3.1-250/22"),
                host(Some("172.16.13.62"), "lo0::10.13.4-7.1-250/22"),
            ]
        };
        let servers = || vec![host(Some("172.16.13.191"), "172.16.13.191:80")];
        // The script of the how-to has the same for all 31 clients.
        let all = "10.13.0.0/22 via 172.16.13.61; 10.13.4.0/22 via 172.16.13.62";
        for this in ["172.16.13.191", "172.16.13.32", "none of the bench"] {
            assert_eq!(text(clients(), servers(), this).as_deref(), Ok(all), "{this}");
        }
        let first = text(clients(), servers(), "172.16.13.61");
        assert_eq!(first.as_deref(), Ok("10.13.4.0/22 via 172.16.13.62"));
    }

    #[test]
    fn hosts_that_share_a_network_have_routes_to_their_own_addresses() {
        let clients =
            vec![host(Some("10.0.0.1"), "lo::10.1.0.0-7/16"), host(Some("10.0.0.2"), "lo::10.1.0.8-15/16")];
        let found = text(clients, Vec::new(), "");
        assert_eq!(found.as_deref(), Ok("10.1.0.0/29 via 10.0.0.1; 10.1.0.8/29 via 10.0.0.2"));
    }

    #[test]
    fn agents_on_the_network_of_their_host_need_no_route() {
        let clients =
            vec![host(None, "eth0::10.16.1.1-250/16"), host(Some("10.0.0.2"), "10.0.0.2 127.0.0.1")];
        assert_eq!(text(clients, Vec::new(), "").as_deref(), Ok(""));
    }

    #[test]
    fn hosts_without_addresses_and_mixed_families_are_refused() {
        let nameless = text(vec![host(None, "lo0::10.13.0.1/22")], Vec::new(), "").unwrap_err();
        assert!(nameless.contains("client_side.hosts"), "{nameless}");
        let mixed = text(Vec::new(), vec![host(Some("10.0.0.1"), "lo::[fd00::1]:80")], "").unwrap_err();
        assert!(mixed.contains("fd00::1") && mixed.contains("server_side"), "{mixed}");
    }

    #[test]
    fn scripts_add_routes() {
        let four = text(vec![host(Some("10.0.0.1"), "lo::10.1.0.1/24")], Vec::new(), "").unwrap();
        assert_eq!(four, "10.1.0.0/24 via 10.0.0.1");
        let needs = BenchNeeds {
            clients: vec![
                host(Some("10.0.0.1"), "lo::10.1.0.1/24"),
                host(Some("fd00::1"), "lo::[fd01::1]/64"),
            ],
            ..BenchNeeds::default()
        };
        assert_eq!(
            script(&of_host(&needs, |_| false).unwrap()),
            "#!/bin/sh\nset -e\nip route add 10.1.0.0/24 via 10.0.0.1\nip -6 route add fd01::/64 via fd00::1\n"
        );
    }
}
