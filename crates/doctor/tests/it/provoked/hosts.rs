//! A sound host, and loads.

use std::path::PathBuf;

use polygraph_doctor::PlannedLoad;
use polygraph_doctor::facts::{CeilingMeasurement, HostFacts, IdleSample, InterfaceFacts};

pub const GB: u64 = 1 << 30;

/// A host on which nothing is wrong.
pub fn sound() -> HostFacts {
    let mut facts = HostFacts::default();
    let f = &mut facts.descriptors;
    (f.soft, f.hard, f.system_used, f.system_limit) =
        (Some(65_536), Some(65_536), Some(700), Some(2_000_000));
    let p = &mut facts.ports;
    (p.range, p.time_wait_reuse, p.reuse_delay_ms) = (Some((10_240, 65_535)), Some(1), Some(1000));
    (p.timestamps, p.time_wait, p.time_wait_limit, p.time_wait_ports) =
        (Some(true), Some(0), Some(262_144), Some(0));
    let q = &mut facts.queues;
    (q.listen, q.listen_overflows, q.syn, q.syn_cookies) = (Some(4096), Some(0), Some(4096), Some(true));
    (q.packets, q.packet_drops, q.segments, q.retransmitted) =
        (Some(1000), Some(0), Some(1_000_000), Some(10));
    q.neighbours = Some(1024);
    let b = &mut facts.buffers;
    (b.receive, b.send, b.window_scaling) = (Some(6 << 20), Some(4 << 20), Some(true));
    (b.used, b.pressure) = (Some(1 << 20), Some(GB));
    let m = &mut facts.memory;
    (m.total, m.available, m.swap_used) = (Some(16 * GB), Some(12 * GB), Some(0));
    (m.huge_pages, m.huge_page_defrag) = (Some("madvise".into()), Some("madvise".into()));
    let c = &mut facts.processors;
    (c.online, c.allowed, c.turbo, c.steal) = (Some(4), Some(4), Some(false), Some(0.0));
    c.governors = vec!["performance".into()];
    facts.interfaces = vec![card("eth0")];
    facts.clock.synchronised = Some(true);
    facts.clock.error_us = Some(300);
    (facts.clock.source, facts.clock.read_ns) = (Some("tsc".into()), Some(25.0));
    facts.leftovers.addresses = 2;
    facts.leftovers.firewall_rules = Some(0);
    let s = &mut facts.storage;
    (s.directory, s.writable, s.free, s.free_inodes) =
        (PathBuf::from("/data/runs"), Some(true), Some(100 * GB), Some(1_000_000));
    facts.names.servers = vec!["10.0.0.53".into()];
    facts.names.localhost = vec!["127.0.0.1".into()];
    facts.idle = Some(IdleSample { busy: 0.02, ..IdleSample::default() });
    facts
}

pub fn card(name: &str) -> InterfaceFacts {
    InterfaceFacts {
        name: name.into(),
        speed: Some(10_000),
        mtu: Some(1500),
        packets: 1_000_000,
        ring: Some((512, 4096)),
        ..InterfaceFacts::default()
    }
}

pub fn ceiling(new: f64, persistent: f64) -> Option<CeilingMeasurement> {
    Some(CeilingMeasurement {
        new_connections: new,
        persistent,
        new_per_processor: new / 4.0,
        persistent_per_processor: persistent / 4.0,
        reply_bytes: 13_312,
        engine: "epoll",
        ..CeilingMeasurement::default()
    })
}

/// A load of new connections over a network.
pub fn planned(rate: f64, connections: usize) -> PlannedLoad {
    PlannedLoad {
        rate: Some(rate),
        connection_rate: Some(rate),
        bytes_per_s: Some(rate * 13_312.0),
        duration_s: Some(3600.0),
        connections,
        ..PlannedLoad::default()
    }
}

pub fn loopback(rate: f64, connections: usize) -> PlannedLoad {
    PlannedLoad { on_loopback: true, ..planned(rate, connections) }
}
