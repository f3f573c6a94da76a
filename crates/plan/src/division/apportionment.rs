//! How many units each host takes.

use std::collections::BTreeMap;

/// What cannot be divided: an address with all agents there.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadUnit {
    /// Its load, which is positive.
    pub load: f64,
    /// The hosts that can take it, by position; at least one, in ascending order.
    pub hosts: Vec<usize>,
}

/// The host of each unit.
///
/// Units with the same load that the same hosts can take form a group. Each unit of a group goes to the host whose load per
/// weight is the smallest with half of the unit added (the method of Sainte-Laguë), the first one of several. Groups that fewer
/// hosts can take come first, then those with heavier units. Within its group, a host takes neighbouring units.
pub fn apportion(units: &[LoadUnit], weights: &[f64]) -> Vec<usize> {
    let mut groups: BTreeMap<(&[usize], u64), Vec<usize>> = BTreeMap::new();
    for (at, unit) in units.iter().enumerate() {
        groups.entry((&unit.hosts, unit.load.to_bits())).or_default().push(at);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // The bits of positive numbers have the order of the numbers.
    groups.sort_by_key(|((hosts, load), members)| (hosts.len(), std::cmp::Reverse(*load), members[0]));
    let mut loads = vec![0.0; weights.len()];
    let mut host_of = vec![0; units.len()];
    for ((hosts, load), members) in groups {
        let load = f64::from_bits(load);
        let mut counts = vec![0_usize; hosts.len()];
        for _ in &members {
            let burden = |at: usize| (loads[hosts[at]] + load / 2.0) / weights[hosts[at]];
            let best = (0..hosts.len()).min_by(|a, b| burden(*a).total_cmp(&burden(*b))).unwrap_or(0);
            counts[best] += 1;
            loads[hosts[best]] += load;
        }
        let owners = hosts.iter().zip(counts).flat_map(|(host, count)| std::iter::repeat_n(*host, count));
        members.iter().zip(owners).for_each(|(unit, host)| host_of[*unit] = host);
    }
    host_of
}
