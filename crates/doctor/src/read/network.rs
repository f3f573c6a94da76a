//! Settings and counters of the kernel's network: ports, queues, buffers, tracked connections.

use polygraph_engine::kernel_counters::counter;

use crate::facts::{BufferFacts, ConntrackFacts, PortFacts, QueueFacts};
use crate::parse;

use super::host_files::HostFiles;

const SETTINGS: &str = "/proc/sys/net";
/// Bytes of a page, in which the kernel counts the memory of sockets.
const PAGE: u64 = 4096;

fn ipv4(files: &HostFiles, name: &str) -> Option<u64> {
    files.value_at(&format!("{SETTINGS}/ipv4/{name}"), 0)
}

/// A switch that is on unless it is 0.
fn switch(files: &HostFiles, name: &str) -> Option<bool> {
    ipv4(files, name).map(|value| value != 0)
}

/// Local ports and connections in TIME_WAIT.
pub(super) fn ports(files: &HostFiles) -> PortFacts {
    let file = format!("{SETTINGS}/ipv4/ip_local_port_range");
    let range = files.value_at(&file, 0).zip(files.value_at(&file, 1));
    let reserved = files.text(&format!("{SETTINGS}/ipv4/ip_local_reserved_ports"));
    PortFacts {
        range,
        reserved: range.map_or(0, |range| parse::ports_in_range(&reserved, range)),
        time_wait_reuse: ipv4(files, "tcp_tw_reuse"),
        reuse_delay_ms: ipv4(files, "tcp_tw_reuse_delay"),
        timestamps: switch(files, "tcp_timestamps"),
        time_wait: parse::socket_count(&files.text("/proc/net/sockstat"), "TCP", "tw"),
        time_wait_limit: ipv4(files, "tcp_max_tw_buckets"),
        time_wait_ports: None,
    }
}

/// The number of local ports with a connection in TIME_WAIT.
pub(super) fn time_wait_ports(files: &HostFiles, range: Option<(u16, u16)>) -> Option<u64> {
    let range = range?;
    let mut ports = parse::time_wait_ports(&files.known_text("/proc/net/tcp")?, range);
    ports.extend(parse::time_wait_ports(&files.text("/proc/net/tcp6"), range));
    Some(ports.len() as u64)
}

/// Queues in which connections and packets wait.
pub(super) fn queues(files: &HostFiles) -> QueueFacts {
    let core = |name: &str| files.value(&format!("{SETTINGS}/core/{name}"));
    let (netstat, snmp) = (files.text("/proc/net/netstat"), files.text("/proc/net/snmp"));
    QueueFacts {
        listen: core("somaxconn"),
        listen_overflows: counter(&netstat, "TcpExt", "ListenOverflows"),
        syn: ipv4(files, "tcp_max_syn_backlog"),
        syn_cookies: switch(files, "tcp_syncookies"),
        packets: core("netdev_max_backlog"),
        packet_drops: packet_drops(files),
        segments: counter(&snmp, "Tcp", "OutSegs"),
        retransmitted: counter(&snmp, "Tcp", "RetransSegs"),
        neighbours: ipv4(files, "neigh/default/gc_thresh3"),
    }
}

/// Packets that were dropped because a processor had too many.
pub(super) fn packet_drops(files: &HostFiles) -> Option<u64> {
    files.known_text("/proc/net/softnet_stat").map(|text| parse::softnet_drops(&text))
}

/// Memory of sockets.
pub(super) fn buffers(files: &HostFiles) -> BufferFacts {
    let most = |name: &str| files.value_at(&format!("{SETTINGS}/ipv4/{name}"), 2);
    let pages = |pages: u64| pages.saturating_mul(PAGE);
    BufferFacts {
        receive: most("tcp_rmem"),
        send: most("tcp_wmem"),
        window_scaling: switch(files, "tcp_window_scaling"),
        used: parse::socket_count(&files.text("/proc/net/sockstat"), "TCP", "mem").map(pages),
        pressure: files.value_at(&format!("{SETTINGS}/ipv4/tcp_mem"), 1).map(pages),
    }
}

/// The kernel's table of tracked connections.
pub(super) fn conntrack(files: &HostFiles) -> ConntrackFacts {
    let value = |name: &str| files.value(&format!("{SETTINGS}/netfilter/nf_conntrack_{name}"));
    ConntrackFacts { count: value("count"), limit: value("max"), time_wait_s: value("tcp_timeout_time_wait") }
}
