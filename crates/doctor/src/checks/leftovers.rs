//! Checks of what earlier runs left behind, and of what else changes packets on their way.

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::whole;

/// Addresses that a host has for its own purposes at most.
const USUAL_ADDRESSES: u64 = 16;
/// Rules from which each packet's way through them counts.
const MANY_RULES: u64 = 100;

/// Changes by processes of this program that were killed.
pub(crate) fn abandoned(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let left = &facts.leftovers.abandoned;
    (!left.is_empty()).then(|| {
        HostFinding::new(
            Impact::Distorts,
            format!(
                "{} killed processes of this program left changes to the network: {}",
                left.len(),
                left.join(", ")
            ),
            "packets may take other ways, wait or be lost",
            Remedy::clean("polygraph net clean"),
        )
    })
}

/// Changes that are there to stay.
pub(crate) fn kept(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let left = &facts.leftovers.kept;
    (!left.is_empty()).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("changes to the network that are there to stay: {}", left.join(", ")),
            "right if this test needs them",
            Remedy::manual("polygraph net clean --all"),
        )
        .or(Remedy::manual("polygraph doctor --undo, if only settings are to be restored"))
    })
}

/// Directories of devices whose runs were killed.
pub(crate) fn devices(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let left = &facts.leftovers.device_directories;
    let first = left.first()?;
    Some(HostFinding::new(
        Impact::Distorts,
        format!("killed runs left {} directories of devices, such as {}", left.len(), first.display()),
        "their devices may still run and use processors, ports and disk space",
        Remedy::clean("polygraph doctor --fix"),
    ))
}

/// Addresses and networks of addresses.
pub(crate) fn addresses(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (addresses, networks) = (facts.leftovers.addresses, &facts.leftovers.local_networks);
    (addresses > USUAL_ADDRESSES || !networks.is_empty()).then(|| {
        let networks = if networks.is_empty() {
            String::new()
        } else {
            format!("{}all addresses of {}", if addresses > 0 { ", and " } else { "" }, networks.join(", "))
        };
        HostFinding::new(
            Impact::Note,
            format!("this host has {} addresses{networks}", whole(addresses)),
            "right if this test needs them; otherwise packets to other hosts with these addresses never leave",
            Remedy::manual("polygraph net status; ip addr show; ip route show table local type local"),
        )
    })
}

/// Firewall rules.
pub(crate) fn firewall(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let rules = facts.leftovers.firewall_rules.filter(|&rules| rules > 0)?;
    let impact = if rules > MANY_RULES { Impact::Distorts } else { Impact::Note };
    Some(HostFinding::new(
        impact,
        format!("{} firewall rules", whole(rules)),
        "each packet passes the rules of its chain in turn, and a rule may drop or redirect those of the test",
        Remedy::manual("nft list ruleset; iptables-legacy-save"),
    ))
}

/// Queueing disciplines that delay, limit or lose packets.
pub(crate) fn shaping(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let found = &facts.leftovers.shaping;
    (!found.is_empty()).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("packets are delayed, limited or redirected: {}", found.join(", ")),
            "right if this test is with a wide area network; otherwise response times contain the delay",
            Remedy::manual("polygraph net status; tc qdisc show; tc qdisc del dev DEVICE root"),
        )
    })
}
