//! Checks of local ports and connections in TIME_WAIT.

use crate::facts::{HostFacts, PortFacts};
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{count, percent, rate, whole};

/// Seconds that a connection stays in TIME_WAIT on Linux.
const TIME_WAIT_S: f64 = 60.0;
/// The range that replaces a smaller one. Ports below it are left to servers and devices.
const WIDE: (u16, u16) = (10_240, 65_535);
/// Fewer ports than this are worth a note if the load is unknown.
const MANY_PORTS: u64 = 50_000;
/// Fewer ports than this spoil many tests.
const FEW_PORTS: u64 = 10_000;

fn size((low, high): (u16, u16)) -> u64 {
    u64::from(high.saturating_sub(low)) + 1
}

/// Ports for each pair of addresses, with a description of where they come from.
fn ports(facts: &PortFacts, load: &PlannedLoad) -> Option<(u64, String)> {
    if let Some((low, high)) = load.ports {
        return Some((size((low, high)), format!("--ports {low}:{high}")));
    }
    let (low, high) = facts.range?;
    let usable = size((low, high)).saturating_sub(facts.reserved);
    Some((usable, format!("{low} to {high}")))
}

/// Whether a port in TIME_WAIT can be used again early, and after how many seconds.
fn reuse(facts: &PortFacts, load: &PlannedLoad) -> Option<f64> {
    let allowed = match facts.time_wait_reuse? {
        0 => false,
        1 => true,
        _ => load.on_loopback,
    };
    // A socket that is bound to a port of its own choice cannot take one in TIME_WAIT.
    let is_possible = allowed && facts.timestamps != Some(false) && load.ports.is_none();
    is_possible.then(|| facts.reuse_delay_ms.unwrap_or(1000).max(1) as f64 / 1000.0)
}

fn widen(facts: &PortFacts) -> Remedy {
    // A range that is wide already is left alone: more addresses help.
    if facts.range.is_some_and(|range| size(range) < size(WIDE)) {
        Remedy::sysctl("net.ipv4.ip_local_port_range", format!("{} {}", WIDE.0, WIDE.1))
    } else {
        more_addresses()
    }
}

fn more_addresses() -> Remedy {
    Remedy::manual("give robots more addresses (`addresses` of Robot, --local_addrs): each has all ports")
}

/// The range of local ports.
pub(crate) fn range(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (ports, origin) = ports(&facts.ports, load)?;
    if !load.robots {
        return None;
    }
    let pairs = load.pairs() as u64;
    let all = ports.saturating_mul(pairs);
    let held = reuse(&facts.ports, load).unwrap_or(TIME_WAIT_S);
    let between =
        if pairs > 1 { format!(" for each of {} pairs of addresses", whole(pairs)) } else { String::new() };
    let found = format!("{} local ports ({origin}){between}", whole(ports));
    let mend = |needed: u64| match load.ports {
        Some(_) => Remedy::manual("--ports LOW:HIGH with a wider range"),
        None if needed > size(WIDE) * pairs => more_addresses(),
        None => widen(&facts.ports),
    };
    if ports == 0 {
        let effect = "no connection can be opened without a port of its own";
        return Some(HostFinding::new(Impact::Blocks, found, effect, widen(&facts.ports)));
    }
    if load.connections as u64 > all {
        let effect = format!(
            "the test is expected to have {} connections open: those above {} fail",
            count(load.connections),
            whole(all)
        );
        return Some(HostFinding::new(Impact::Distorts, found, effect, mend(load.connections as u64)));
    }
    let most = all as f64 / held;
    let limit =
        format!("{} new connections/s if robots close first, with TIME_WAIT of {held:.0} s", rate(most));
    match load.connection_rate {
        // Without reuse of ports that is the first thing to change.
        Some(planned) if planned > most => {
            let reused = all as f64 / facts.ports.reuse_delay_ms.unwrap_or(1000).max(1) as f64 * 1000.0;
            let suffices = held == TIME_WAIT_S && load.ports.is_none() && planned <= reused;
            (!suffices).then(|| {
                let effect = format!("allows {limit}; {} are planned", rate(planned));
                HostFinding::new(Impact::Distorts, found, effect, mend((planned * held) as u64))
            })
        }
        Some(_) => None,
        None if load.is_known() => None,
        None => {
            let impact = match ports {
                ..FEW_PORTS => Impact::Distorts,
                FEW_PORTS..MANY_PORTS => Impact::Note,
                _ => return None,
            };
            let most = all as f64 / TIME_WAIT_S;
            let effect = format!(
                "allows {} new connections/s per pair of addresses if robots close first, with TIME_WAIT of 60 s",
                rate(most)
            );
            Some(HostFinding::new(impact, found, effect, mend(0)))
        }
    }
}

/// Whether ports in TIME_WAIT are used again.
pub(crate) fn time_wait_reuse(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let setting = facts.ports.time_wait_reuse?;
    if !load.robots || load.ports.is_some() || reuse(&facts.ports, load).is_some() {
        return None;
    }
    let (ports, _) = ports(&facts.ports, load)?;
    let most = ports as f64 * load.pairs() as f64 / TIME_WAIT_S;
    let impact = match load.connection_rate {
        Some(planned) if planned > most => Impact::Distorts,
        Some(_) => return None,
        None if load.is_known() || setting == 2 => return None,
        None => Impact::Note,
    };
    let planned = load.connection_rate.map(|planned| format!("; {} are planned", rate(planned)));
    let found = match facts.ports.timestamps {
        Some(false) => {
            "TCP timestamps are off (tcp_timestamps=0), so ports in TIME_WAIT cannot be used again".to_owned()
        }
        _ => format!(
            "ports in TIME_WAIT are used again {}",
            match setting {
                0 => "never (tcp_tw_reuse=0)",
                _ => "on loopback only (tcp_tw_reuse=2)",
            }
        ),
    };
    let effect = format!(
        "{} ports allow {} new connections/s if robots close first{}",
        whole(ports.saturating_mul(load.pairs() as u64)),
        rate(most),
        planned.unwrap_or_default()
    );
    let finding = match facts.ports.timestamps {
        Some(false) => {
            let timestamps = Remedy::sysctl("net.ipv4.tcp_timestamps", 1);
            let both = timestamps.and(Remedy::sysctl("net.ipv4.tcp_tw_reuse", 1));
            HostFinding::new(impact, found, effect, both)
        }
        _ => HostFinding::new(impact, found, effect, Remedy::sysctl("net.ipv4.tcp_tw_reuse", 1)),
    };
    Some(finding)
}

/// Ports that earlier runs left in TIME_WAIT.
pub(crate) fn in_time_wait(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let held = facts.ports.time_wait_ports?;
    let (ports, _) = ports(&facts.ports, &PlannedLoad { ports: None, ..load.clone() })?;
    let share = held as f64 / ports.max(1) as f64;
    let impact = match share {
        share if share > 0.5 => Impact::Distorts,
        share if share > 0.1 => Impact::Note,
        _ => return None,
    };
    Some(HostFinding::new(
        impact,
        format!("{} of {} local ports have a connection in TIME_WAIT", whole(held), whole(ports)),
        format!("{} of the ports are not free for connections between the same addresses", percent(share)),
        Remedy::manual("sleep 60"),
    ))
}

/// How many connections may be in TIME_WAIT.
pub(crate) fn time_wait_limit(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let limit = facts.ports.time_wait_limit?;
    let now = facts.ports.time_wait.unwrap_or(0);
    let planned =
        load.connection_rate.map(|rate| rate * TIME_WAIT_S.min(load.duration_s.unwrap_or(f64::MAX)));
    let expected = planned.unwrap_or(now as f64);
    (expected > limit as f64 || now as f64 > 0.9 * limit as f64).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("{} connections may be in TIME_WAIT, {} are", whole(limit), whole(now)),
            format!(
                "about {} are expected; those above the limit are closed early, so late packets may reach new connections",
                whole(expected as u64)
            ),
            Remedy::sysctl("net.ipv4.tcp_max_tw_buckets", (expected.max(limit as f64) as u64 * 2).next_power_of_two()),
        )
    })
}

/// Ports of servers that outgoing connections may take.
pub(crate) fn listening(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (low, high) = facts.ports.range?;
    // The setting also lists ports outside of the range; whoever has set it knows what it is for.
    let within: Vec<String> = load
        .listening
        .iter()
        .filter(|port| (low..=high).contains(port) && facts.ports.reserved == 0)
        .map(u16::to_string)
        .collect();
    let first = within.first()?.clone();
    Some(HostFinding::new(
        Impact::Note,
        format!("{} ports of servers are local ports, such as {first} ({low} to {high})", within.len()),
        "an outgoing connection may have such a port when a server starts, which then cannot listen",
        Remedy::sysctl("net.ipv4.ip_local_reserved_ports", within.join(",")),
    ))
}
