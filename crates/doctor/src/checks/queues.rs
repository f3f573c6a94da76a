//! Checks of the kernel's queues, socket buffers and table of tracked connections.

use polygraph_engine::listen::BACKLOG;

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{bytes, percent, rate, whole};

/// Seconds for which a server may be busy with other work while connections wait to be accepted.
const ACCEPT_PAUSE_S: f64 = 0.1;
/// A round trip of a bench with delays in seconds, for which a connection is half open.
const ROUND_TRIP_S: f64 = 0.2;
/// Connections that a short queue holds.
const SHORT: u64 = 1024;
/// Bytes that a buffer should hold at least, and should hold for fast connections with delay.
const SMALL_BUFFER: u64 = 256 << 10;
const LARGE_BUFFER: u64 = 1 << 20;
/// The round trip of a bench with 40 ms of delay in each direction, in seconds.
const LONG_TRIP_S: f64 = 0.08;
/// Bytes in the buffers of a socket that is in use, on average.
const BUFFERED: u64 = 16 << 10;
/// Seconds for which a closed connection stays in the table of tracked connections, unless the host says otherwise.
const TRACKED_S: f64 = 120.0;

/// Connections that may wait for a listening socket.
pub(crate) fn listen(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let queue = facts.queues.listen?;
    let wanted = BACKLOG as u64;
    if !load.servers || queue >= wanted {
        return None;
    }
    let burst = load.connection_rate.map(|rate| rate * ACCEPT_PAUSE_S);
    let impact = match burst {
        Some(burst) if burst > queue as f64 => Impact::Distorts,
        Some(_) => return None,
        None if queue < SHORT => Impact::Distorts,
        None => Impact::Note,
    };
    let effect = match load.connection_rate {
        Some(planned) => format!(
            "holds {:.2} s of {} new connections/s; a client whose connection finds no room tries again after 1 s",
            queue as f64 / planned.max(1e-9),
            rate(planned)
        ),
        None => {
            "a client whose connection finds no room tries again after 1 s, which the figures show".to_owned()
        }
    };
    let found = format!(
        "{} connections may wait for a server (somaxconn); servers ask for {}",
        whole(queue),
        whole(wanted)
    );
    Some(HostFinding::new(impact, found, effect, Remedy::sysctl("net.core.somaxconn", wanted)))
}

/// Connections that found no room in a queue.
pub(crate) fn listen_overflows(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let lost = facts.queues.listen_overflows.filter(|&lost| lost > 0)?;
    Some(HostFinding::new(
        Impact::Note,
        format!(
            "{} connections found the queue of a listening socket full since the start of the system",
            whole(lost)
        ),
        "each waited at least 1 s; if the number grows during a run, a server or device accepts too slowly",
        Remedy::manual("nstat -az TcpExtListenOverflows"),
    ))
}

/// Connections that may be half open.
pub(crate) fn syn(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let queue = facts.queues.syn?;
    let wanted = load.connection_rate.map(|rate| rate * ROUND_TRIP_S);
    let impact = match (wanted, facts.queues.syn_cookies) {
        (Some(wanted), _) if wanted <= queue as f64 => return None,
        (Some(_), Some(false)) => Impact::Distorts,
        (None, _) if queue >= SHORT => return None,
        _ => Impact::Note,
    };
    let effect = match facts.queues.syn_cookies {
        Some(false) => "further connections are dropped and tried again after 1 s",
        _ => "further connections get SYN cookies, which lose TCP options and cost processor time",
    };
    let value = (wanted.unwrap_or(0.0) as u64).next_power_of_two().max(4096);
    let found = format!("{} connections may be half open (tcp_max_syn_backlog)", whole(queue));
    Some(HostFinding::new(impact, found, effect, Remedy::sysctl("net.ipv4.tcp_max_syn_backlog", value)))
}

/// Packets that were dropped because a processor had too many.
pub(crate) fn packets(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let now = facts.idle.as_ref().map_or(0, |idle| idle.packet_drops)
        + facts.ceiling.as_ref().map_or(0, |ceiling| ceiling.packet_drops);
    let ever = facts.queues.packet_drops.unwrap_or(0);
    let (impact, found) = match (now, ever) {
        (0, 0) => return None,
        (0, ever) => (
            Impact::Note,
            format!(
                "{} packets found the queue of a processor full since the start of the system",
                whole(ever)
            ),
        ),
        (now, _) => (
            Impact::Distorts,
            format!("{} packets found the queue of a processor full during this check", whole(now)),
        ),
    };
    let wanted = facts.queues.packets.unwrap_or(1000).max(1000).saturating_mul(10);
    let effect = format!(
        "each is sent again after 200 ms or more; the queue holds {} packets (netdev_max_backlog)",
        facts.queues.packets.map_or("an unknown number of".to_owned(), whole)
    );
    Some(HostFinding::new(impact, found, effect, Remedy::sysctl("net.core.netdev_max_backlog", wanted)))
}

/// Segments that were sent again.
pub(crate) fn retransmissions(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (sent, again) = facts.queues.segments.zip(facts.queues.retransmitted)?;
    let share = again as f64 / sent.max(1) as f64;
    // A few segments say nothing.
    (sent > 10_000 && share > 0.001).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("{} of {} TCP segments were sent again ({})", whole(again), whole(sent), percent(share)),
            "packets were lost somewhere since the start of the system; each costs 200 ms or more",
            Remedy::manual(
                "nstat -az TcpRetransSegs before and after a run; polygraph net throughput finds the way",
            ),
        )
    })
}

/// Hosts of connected networks whose hardware addresses the kernel remembers.
pub(crate) fn neighbours(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let most = facts.queues.neighbours?;
    let needed = load.neighbours as u64;
    (needed > most).then(|| {
        let value = (needed * 2).next_power_of_two();
        HostFinding::new(
            Impact::Distorts,
            format!("the kernel remembers the hardware addresses of {} hosts (gc_thresh3)", whole(most)),
            format!("the test uses {} addresses outside of this host: if no router is in between, packets to others are dropped", whole(needed)),
            Remedy::sysctl("net.ipv4.neigh.default.gc_thresh3", value)
                .and(Remedy::sysctl("net.ipv6.neigh.default.gc_thresh3", value)),
        )
    })
}

/// The most that a socket buffers.
pub(crate) fn buffers(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    if facts.buffers.window_scaling == Some(false) {
        return Some(HostFinding::new(
            Impact::Distorts,
            "TCP windows are at most 64 KB (tcp_window_scaling=0)",
            format!(
                "a connection with a round trip of 80 ms carries {:.1} Mbit/s",
                65_535.0 * 8.0 / LONG_TRIP_S / 1e6
            ),
            Remedy::sysctl("net.ipv4.tcp_window_scaling", 1),
        ));
    }
    let (receive, send) = facts.buffers.receive.zip(facts.buffers.send)?;
    let least = receive.min(send);
    let impact = match least {
        ..SMALL_BUFFER => Impact::Distorts,
        SMALL_BUFFER..LARGE_BUFFER => Impact::Note,
        _ => return None,
    };
    // Half of a buffer is for the kernel's own data about packets.
    let carried = least as f64 / 2.0 * 8.0 / LONG_TRIP_S / 1e6;
    Some(HostFinding::new(
        impact,
        format!("a socket buffers at most {} received and {} to send", bytes(receive), bytes(send)),
        format!("a connection with a round trip of 80 ms carries {carried:.1} Mbit/s"),
        Remedy::sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")
            .and(Remedy::sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304")),
    ))
}

/// Memory of all sockets.
pub(crate) fn socket_memory(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let pressure = facts.buffers.pressure?;
    let used = facts.buffers.used.unwrap_or(0);
    let needed =
        (load.connections as u64).saturating_mul(load.ends_on_host() as u64).saturating_mul(BUFFERED);
    (used.saturating_add(needed) > pressure).then(|| {
        HostFinding::new(
            Impact::Distorts,
            format!(
                "TCP sockets use {}, and share {} without pressure (tcp_mem)",
                bytes(used),
                bytes(pressure)
            ),
            format!(
                "the connections of the test may need {}; above the limit the kernel shrinks windows",
                bytes(needed)
            ),
            Remedy::manual("sysctl -w net.ipv4.tcp_mem='LOW PRESSURE HIGH' in pages of 4 KB"),
        )
    })
}

/// The kernel's table of tracked connections.
pub(crate) fn conntrack(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (now, limit) = facts.conntrack.count.filter(|&count| count > 0).zip(facts.conntrack.limit)?;
    let held = facts.conntrack.time_wait_s.map_or(TRACKED_S, |seconds| seconds as f64);
    let planned = load.connection_rate.unwrap_or(0.0) * held.min(load.duration_s.unwrap_or(f64::MAX));
    let expected = now.saturating_add(load.connections as u64).saturating_add(planned as u64);
    let found =
        format!("the kernel tracks {} connections of at most {} (nf_conntrack)", whole(now), whole(limit));
    let (impact, effect) = if expected > limit {
        let effect = format!(
            "the test needs about {}, since closed connections stay for {held:.0} s: packets of others are dropped",
            whole(expected)
        );
        (Impact::Blocks, effect)
    } else if now as f64 > 0.8 * limit as f64 {
        (Impact::Distorts, "packets of connections that find no room are dropped".to_owned())
    } else if !load.is_known() {
        (Impact::Note, "every packet is looked up in the table, which costs processor time".to_owned())
    } else {
        return None;
    };
    let value = (expected.max(limit).saturating_mul(2)).next_power_of_two();
    let untracked =
        Remedy::manual("iptables -t raw -A PREROUTING -j NOTRACK; iptables -t raw -A OUTPUT -j NOTRACK");
    Some(match impact {
        Impact::Note => HostFinding::new(impact, found, effect, untracked),
        _ => HostFinding::new(impact, found, effect, Remedy::sysctl("net.netfilter.nf_conntrack_max", value))
            .or(untracked),
    })
}
