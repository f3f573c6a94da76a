//! Cases of queues, buffers and memory.

use super::hosts::{GB, planned};
use super::{Case, case};
use polygraph_doctor::Impact::{Blocks, Distorts, Note};
use polygraph_doctor::PlannedLoad;
use polygraph_doctor::facts::IdleSample;

pub(super) fn cases() -> Vec<Case> {
    let any = PlannedLoad::default;
    let client = |load| PlannedLoad { servers: false, ..load };
    vec![
        case(
            "listen_queue",
            |f| f.queues.listen = Some(128),
            any(),
            Distorts,
            &["128 connections", "net.core.somaxconn=4096"],
        ),
        case("listen_queue", |f| f.queues.listen = Some(2048), any(), Note, &["2,048"]),
        case(
            "listen_queue",
            |f| f.queues.listen = Some(128),
            planned(5000.0, 10),
            Distorts,
            &["holds 0.03 s of 5,000"],
        ),
        case("listen_queue", |f| f.queues.listen = Some(128), planned(1000.0, 10), None, &[]),
        case("listen_queue", |f| f.queues.listen = Some(128), client(planned(5000.0, 10)), None, &[]),
        case(
            "listen_overflows",
            |f| f.queues.listen_overflows = Some(1234),
            any(),
            Note,
            &["1,234 connections"],
        ),
        case("syn_queue", |f| f.queues.syn = Some(256), any(), Note, &["256", "SYN cookies"]),
        case(
            "syn_queue",
            |f| (f.queues.syn, f.queues.syn_cookies) = (Some(256), Some(false)),
            planned(5000.0, 10),
            Distorts,
            &["dropped", "tcp_max_syn_backlog=4096"],
        ),
        case(
            "syn_queue",
            |f| (f.queues.syn, f.queues.syn_cookies) = (Some(256), Some(false)),
            planned(1000.0, 10),
            None,
            &[],
        ),
        case(
            "packet_queue",
            |f| f.queues.packet_drops = Some(9),
            any(),
            Note,
            &["9 packets", "1,000 packets", "netdev_max_backlog=10000"],
        ),
        case(
            "packet_queue",
            |f| f.idle.as_mut().unwrap().packet_drops = 3,
            any(),
            Distorts,
            &["3 packets", "during this check"],
        ),
        case(
            "retransmissions",
            |f| f.queues.retransmitted = Some(2_000),
            any(),
            Note,
            &["2,000 of 1,000,000", "0.2 %"],
        ),
        case(
            "retransmissions",
            |f| (f.queues.segments, f.queues.retransmitted) = (Some(100), Some(50)),
            any(),
            None,
            &[],
        ),
        case(
            "neighbours",
            |_| (),
            PlannedLoad { neighbours: 5000, ..planned(10.0, 10) },
            Distorts,
            &["1,024 hosts", "5,000 addresses", "ipv4.neigh.default.gc_thresh3=16384 && sysctl"],
        ),
        case("neighbours", |_| (), PlannedLoad { neighbours: 1000, ..planned(10.0, 10) }, None, &[]),
        case(
            "socket_buffers",
            |f| f.buffers.send = Some(128 << 10),
            any(),
            Distorts,
            &["128 KB to send", "6.6 Mbit/s", "tcp_rmem", "tcp_wmem"],
        ),
        case("socket_buffers", |f| f.buffers.receive = Some(512 << 10), any(), Note, &["26.2 Mbit/s"]),
        case(
            "socket_buffers",
            |f| f.buffers.window_scaling = Some(false),
            any(),
            Distorts,
            &["64 KB", "6.6 Mbit/s", "tcp_window_scaling=1"],
        ),
        case(
            "socket_memory",
            |f| f.buffers.pressure = Some(16 << 20),
            planned(10.0, 1000),
            Distorts,
            &["31 MB", "tcp_mem"],
        ),
        case("socket_memory", |f| f.buffers.pressure = Some(64 << 20), planned(10.0, 1000), None, &[]),
        case(
            "conntrack",
            |f| (f.conntrack.count, f.conntrack.limit) = (Some(10), Some(65_536)),
            any(),
            Note,
            &["10 connections", "NOTRACK"],
        ),
        case(
            "conntrack",
            |f| (f.conntrack.count, f.conntrack.limit) = (Some(10), Some(65_536)),
            planned(1000.0, 10),
            Blocks,
            &["120,020", "120 s", "nf_conntrack_max=262144"],
        ),
        case(
            "conntrack",
            |f| {
                (f.conntrack.count, f.conntrack.limit, f.conntrack.time_wait_s) =
                    (Some(10), Some(65_536), Some(10))
            },
            planned(1000.0, 10),
            None,
            &[],
        ),
        case(
            "conntrack",
            |f| (f.conntrack.count, f.conntrack.limit) = (Some(60_000), Some(65_536)),
            any(),
            Distorts,
            &["60,000"],
        ),
        case(
            "conntrack",
            |f| (f.conntrack.count, f.conntrack.limit) = (Some(0), Some(65_536)),
            planned(10_000.0, 10),
            None,
            &[],
        ),
        case("memory", |f| f.memory.available = Some(100 << 20), any(), Distorts, &["100 MB", "16 GB"]),
        case("memory", |f| f.memory.available = Some(400 << 20), any(), Note, &["400 MB"]),
        case("memory", |f| f.memory.available = Some(GB), planned(10.0, 100_000), Blocks, &["4.6 GB"]),
        case("memory", |f| f.memory.available = Some(GB), planned(10.0, 1000), None, &[]),
        case(
            "memory_limit",
            |f| (f.memory.group_limit, f.memory.group_used) = (Some(GB), Some(GB - 1)),
            any(),
            Blocks,
            &["control group", "1.0 GB"],
        ),
        case(
            "memory_limit",
            |f| (f.memory.group_limit, f.memory.group_used) = (Some(8 * GB), Some(GB)),
            any(),
            None,
            &[],
        ),
        case("swap", |f| f.memory.swap_used = Some(GB), any(), Note, &["1.0 GB", "swapoff"]),
        case(
            "swap",
            |f| {
                (f.memory.swap_used, f.idle) =
                    (Some(GB), Some(IdleSample { swapped_in: 7, ..IdleSample::default() }))
            },
            any(),
            Distorts,
            &["7 pages"],
        ),
        case(
            "huge_pages",
            |f| {
                (f.memory.huge_pages, f.memory.huge_page_defrag) =
                    (Some("always".into()), Some("always".into()))
            },
            any(),
            Note,
            &["echo madvise | tee /sys/kernel/mm"],
        ),
    ]
}
