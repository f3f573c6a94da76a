//! The fewest networks that have given addresses.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::prefix::IpPrefix;

/// The fewest networks with exactly these addresses.
pub fn cover(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<IpPrefix> {
    let mut all: Vec<IpAddr> = addresses.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    let mut found: Vec<IpPrefix> = Vec::new();
    for ip in all {
        let mut next = IpPrefix::host(ip);
        // Two halves of a network are the network.
        while let Some(last) = found.last()
            && next.length > 0
            && last.length == next.length
            && let whole = IpPrefix::around(last.address, next.length - 1)
            && whole.address == last.address
            && whole.contains(next.address)
        {
            found.pop();
            next = whole;
        }
        found.push(next);
    }
    found
}

/// The networks of addresses that each name the length of their network. If one does not: the fewest networks with
/// exactly these addresses.
pub fn networks(addresses: &[(IpAddr, Option<u8>)]) -> Vec<IpPrefix> {
    let named: Option<Vec<IpPrefix>> =
        addresses.iter().map(|(ip, length)| Some(IpPrefix::around(*ip, (*length)?))).collect();
    match named {
        Some(mut networks) => {
            networks.sort_unstable();
            networks.dedup();
            networks
        }
        None => cover(addresses.iter().map(|(ip, _)| *ip)),
    }
}

/// Makes sure that no network is behind two hosts: each host is given with the networks and the addresses behind it. If
/// hosts have a network in common, theirs become the fewest networks with exactly their addresses.
pub fn separate(hosts: &mut [(&mut Vec<IpPrefix>, &[IpAddr])]) {
    let mut owners: HashMap<IpPrefix, usize> = HashMap::new();
    for network in hosts.iter().flat_map(|(networks, _)| networks.iter()) {
        *owners.entry(*network).or_default() += 1;
    }
    for (networks, addresses) in hosts {
        if networks.iter().any(|network| owners[network] > 1) {
            **networks = cover(addresses.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn text(networks: &[IpPrefix]) -> String {
        networks.iter().map(IpPrefix::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The addresses 10.0.THIRD.LAST for all of these numbers.
    fn list(thirds: std::ops::RangeInclusive<u8>, lasts: std::ops::RangeInclusive<u8>) -> Vec<IpAddr> {
        let all = thirds
            .flat_map(|third| lasts.clone().map(move |last| IpAddr::V4(Ipv4Addr::new(10, 0, third, last))));
        all.collect()
    }

    #[test]
    fn covers_have_the_addresses_and_no_others() {
        let six: Vec<IpAddr> = (0..4).map(|n| format!("fd00::{n}").parse().unwrap()).collect();
        let mut turned = list(0..=0, 6..=7);
        turned.reverse();
        for (addresses, expected) in [
            (Vec::new(), ""),
            (list(0..=0, 1..=1), "10.0.0.1/32"),
            (list(0..=0, 0..=255), "10.0.0.0/24"),
            (list(0..=3, 0..=255), "10.0.0.0/22"),
            (list(0..=0, 1..=6), "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32"),
            (turned, "10.0.0.6/31"),
            (six, "fd00::/126"),
        ] {
            assert_eq!(text(&cover(addresses)), expected);
        }
        let scattered = list(0..=2, 1..=209);
        let found = cover(scattered.clone());
        let count: u64 = found.iter().map(|prefix| 1 << (32 - prefix.length)).sum();
        assert_eq!(count, scattered.len() as u64);
        assert!(scattered.iter().all(|ip| found.iter().any(|prefix| prefix.contains(*ip))));
    }

    #[test]
    fn networks_are_those_that_addresses_name() {
        let with = |length: Option<u8>| -> Vec<(IpAddr, Option<u8>)> {
            list(0..=7, 1..=250).into_iter().map(|ip| (ip, length)).collect()
        };
        assert_eq!(text(&networks(&with(Some(22)))), "10.0.0.0/22 10.0.4.0/22");
        assert_eq!(text(&networks(&with(Some(99)))), text(&networks(&with(Some(32)))));
        assert_eq!(networks(&with(None)), cover(list(0..=7, 1..=250)));
        let mut mixed = with(Some(22));
        mixed[0].1 = None;
        assert_eq!(networks(&mixed), cover(list(0..=7, 1..=250)));
    }

    #[test]
    fn hosts_share_no_network() {
        let halves = [list(0..=0, 0..=127), list(0..=0, 128..=255), list(1..=1, 0..=255)];
        let mut behind: Vec<Vec<IpPrefix>> = ["10.0.0.0/24", "10.0.0.0/24", "10.0.1.0/24"]
            .iter()
            .map(|text| vec![text.parse().unwrap()])
            .collect();
        let mut hosts: Vec<_> = behind.iter_mut().zip(&halves).map(|(nets, all)| (nets, &all[..])).collect();
        separate(&mut hosts);
        let found: Vec<String> = behind.iter().map(|networks| text(networks)).collect();
        assert_eq!(found, ["10.0.0.0/25", "10.0.0.128/25", "10.0.1.0/24"]);
    }
}
