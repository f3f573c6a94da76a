//! Checks of network interfaces. Each finding names all interfaces that it concerns.

use crate::facts::{HostFacts, InterfaceFacts};
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{percent, whole};

/// Bytes of heads, acknowledgements and frames for each byte of replies.
const OVERHEAD: f64 = 1.1;
/// The size of packets on Ethernet.
const ETHERNET: u64 = 1500;
/// Megabits per second of a common card.
const COMMON: u64 = 1000;

/// The texts about interfaces that a check objects to, joined; `None` if it objects to none.
fn texts(facts: &HostFacts, objection: impl Fn(&InterfaceFacts) -> Option<String>) -> Option<String> {
    let found: Vec<String> = facts
        .interfaces
        .iter()
        .filter_map(|interface| Some(format!("{} {}", interface.name, objection(interface)?)))
        .collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn names<'a>(facts: &'a HostFacts, wanted: impl Fn(&InterfaceFacts) -> bool + 'a) -> Vec<&'a str> {
    facts.interfaces.iter().filter(|i| wanted(i)).map(|i| i.name.as_str()).collect()
}

/// The speed of cards.
pub(crate) fn speed(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let fastest = facts.interfaces.iter().filter(|i| !i.is_virtual).filter_map(|i| i.speed).max()?;
    let needed = load.bytes_per_s.map(|bytes| bytes * 8.0 * OVERHEAD / 1e6);
    let found = texts(facts, |i| {
        i.speed.filter(|_| !i.is_virtual).map(|speed| format!("carries {} Mbit/s", whole(speed)))
    })?;
    let (impact, effect) = match needed {
        Some(_) if load.on_loopback => return None,
        Some(needed) if needed > fastest as f64 => {
            (Impact::Blocks, format!("replies of the test need {needed:.0} Mbit/s"))
        }
        Some(needed) if needed > 0.7 * fastest as f64 => (
            Impact::Distorts,
            format!("replies of the test need {needed:.0} Mbit/s, so packets wait for the card"),
        ),
        Some(_) => return None,
        None if fastest < COMMON && !load.is_known() => (
            Impact::Note,
            format!(
                "{:.0} replies of 13 KB per second fill it",
                fastest as f64 * 1e6 / 8.0 / OVERHEAD / 13_312.0
            ),
        ),
        None => return None,
    };
    let remedy = Remedy::manual("a faster card, or more hosts with a share of the robots each");
    Some(HostFinding::new(impact, found, effect, remedy))
}

/// Cards that send and receive in turn.
pub(crate) fn duplex(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let found = texts(facts, |i| i.half_duplex.then(|| "runs at half duplex".to_owned()))?;
    let first = names(facts, |i| i.half_duplex)[0].to_owned();
    Some(HostFinding::new(
        Impact::Distorts,
        found,
        "requests and replies collide and are sent again; the other end of the cable usually has another setting",
        Remedy::manual(format!("ethtool -s {first} autoneg on")),
    ))
}

/// Damaged or lost packets.
pub(crate) fn errors(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let share = |i: &InterfaceFacts| i.errors as f64 / i.packets.max(1) as f64;
    let found = texts(facts, |i| {
        (i.errors > 0).then(|| format!("damaged or lost {} of {} packets", whole(i.errors), whole(i.packets)))
    })?;
    let worst = facts.interfaces.iter().map(share).fold(0.0, f64::max);
    let impact = if worst > 1e-5 { Impact::Distorts } else { Impact::Note };
    let first = names(facts, |i| i.errors > 0)[0].to_owned();
    Some(HostFinding::new(
        impact,
        found,
        format!("{} of the packets: each costs a retransmission of 200 ms or more", percent(worst)),
        Remedy::manual(format!("change the cable or the port of the switch; ip -s -s link show {first}")),
    ))
}

/// Packets that found no room in the card.
pub(crate) fn drops(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let found = texts(facts, |i| {
        let ring = i.ring.map(|(now, most)| format!(" (receive ring {now} of {most})")).unwrap_or_default();
        (i.drops > 0)
            .then(|| format!("had no room for {} of {} packets{ring}", whole(i.drops), whole(i.packets)))
    })?;
    let worst = facts.interfaces.iter().map(|i| i.drops as f64 / i.packets.max(1) as f64).fold(0.0, f64::max);
    let impact = if worst > 1e-5 { Impact::Distorts } else { Impact::Note };
    let effect = format!("{} of the packets: each costs a retransmission of 200 ms or more", percent(worst));
    let larger = facts.interfaces.iter().find_map(|i| {
        let (now, most) = i.ring.filter(|_| i.drops > 0)?;
        (now < most).then(|| format!("ethtool -G {} rx {most}", i.name))
    });
    let remedy =
        larger.unwrap_or_else(|| "spread interrupts over processors (ethtool -L, rps_cpus)".to_owned());
    Some(HostFinding::new(impact, found, effect, Remedy::manual(remedy)))
}

/// Offloads that are off.
pub(crate) fn offloads(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let is_slow = |i: &InterfaceFacts| !i.is_virtual && !i.offloads_off.is_empty();
    let found = texts(facts, |i| is_slow(i).then(|| format!("works without {}", i.offloads_off.join(", "))))?;
    if load.is_known() && load.on_loopback {
        return None;
    }
    let first = facts.interfaces.iter().find(|i| is_slow(i))?;
    let words: Vec<String> = first.offloads_off.iter().map(|name| format!("{name} on")).collect();
    Some(HostFinding::new(
        Impact::Note,
        found,
        "the processor cuts and checks packets itself, which takes several times as long for large replies",
        Remedy::manual(format!("ethtool -K {} {}", first.name, words.join(" "))),
    ))
}

/// The size of packets.
pub(crate) fn mtu(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    if load.is_known() && load.on_loopback {
        return None;
    }
    let sizes: Vec<u64> = facts.interfaces.iter().filter(|i| !i.is_virtual).filter_map(|i| i.mtu).collect();
    let (least, most) = sizes.iter().min().zip(sizes.iter().max())?;
    if *least >= ETHERNET && least == most {
        return None;
    }
    let found =
        texts(facts, |i| i.mtu.filter(|_| !i.is_virtual).map(|mtu| format!("has packets of {mtu} bytes")))?;
    let effect = if least == most {
        format!(
            "smaller than the {ETHERNET} bytes of Ethernet: {} more packets for the same replies",
            percent(ETHERNET as f64 / (*least).max(1) as f64 - 1.0)
        )
    } else {
        "a device with cards of different sizes must cut packets or drop them".to_owned()
    };
    let first = facts.interfaces.iter().find(|i| !i.is_virtual && i.mtu == Some(*least))?;
    let remedy = Remedy::manual(format!("ip link set {} mtu {}", first.name, most.max(&ETHERNET)));
    Some(HostFinding::new(Impact::Note, found, effect, remedy))
}
