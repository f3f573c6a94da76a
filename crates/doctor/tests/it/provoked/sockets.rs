//! Cases of file descriptors and ports.

use super::hosts::{loopback, planned};
use super::{Case, case};
use polygraph_doctor::Impact::{Blocks, Distorts, Note};
use polygraph_doctor::PlannedLoad;

pub(super) fn cases() -> Vec<Case> {
    let any = PlannedLoad::default;
    let client = |load| PlannedLoad { servers: false, ..load };
    let server = |load| PlannedLoad { robots: false, ..load };
    vec![
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(30),
            any(),
            Blocks,
            &["only 30 files", "at least 40", "ulimit -n"],
        ),
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(64),
            any(),
            Distorts,
            &["64 files", "16 open connections"],
        ),
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(64),
            loopback(50.0, 150),
            Distorts,
            &["a process may open 64 files", "about 150", "ulimit"],
        ),
        case("descriptors", |f| f.descriptors.hard = Some(20_000), any(), Note, &["9,682 open"]),
        case("descriptors", |f| f.descriptors.hard = Some(1024), loopback(50.0, 150), None, &[]),
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(1024),
            client(loopback(50.0, 600)),
            Distorts,
            &["963 open"],
        ),
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(1024),
            PlannedLoad { processes: 4, ..loopback(50.0, 600) },
            None,
            &[],
        ),
        case(
            "descriptors",
            |f| f.descriptors.hard = Some(64),
            PlannedLoad { connection_limit: Some(10), ..loopback(50.0, 150) },
            None,
            &[],
        ),
        case(
            "soft_descriptors",
            |f| f.descriptors.soft = Some(1024),
            any(),
            Note,
            &["1024", "65,536", "ulimit -Sn hard"],
        ),
        case("soft_descriptors", |f| f.descriptors.soft = Some(4096), any(), None, &[]),
        case(
            "system_files",
            |f| f.descriptors.system_used = Some(1_999_990),
            any(),
            Blocks,
            &["10 more", "fs.file-max"],
        ),
        case(
            "system_files",
            |f| f.descriptors.system_used = Some(1_980_000),
            planned(1.0, 30_000),
            Blocks,
            &["20,000 more"],
        ),
        case(
            "system_files",
            |f| f.descriptors.system_used = Some(1_900_000),
            planned(1.0, 30_000),
            Distorts,
            &["100,000 more"],
        ),
        case(
            "system_files",
            |f| f.descriptors.system_limit = Some(u64::MAX >> 1),
            planned(1.0, 30_000),
            None,
            &[],
        ),
        // 28,232 ports for 60 s are 470.5 connections per second.
        case(
            "port_range",
            |f| f.ports.range = Some((32_768, 60_999)),
            any(),
            Note,
            &[
                "28,232 local ports",
                "471 new connections/s",
                "TIME_WAIT of 60 s",
                "ip_local_port_range='10240 65535'",
            ],
        ),
        case(
            "port_range",
            |f| f.ports.range = Some((50_000, 50_999)),
            any(),
            Distorts,
            &["1,000 local ports", "17 new connections/s"],
        ),
        case(
            "port_range",
            |f| f.ports.range = Some((32_768, 60_999)),
            planned(30_000.0, 100),
            Distorts,
            &["28,232 new connections/s", "TIME_WAIT of 1 s", "30,000 are planned", "10240 65535"],
        ),
        case("port_range", |f| f.ports.range = Some((32_768, 60_999)), planned(28_000.0, 100), None, &[]),
        case(
            "port_range",
            |_| (),
            planned(100.0, 60_000),
            Distorts,
            &["60,000 connections open", "more addresses"],
        ),
        case("port_range", |_| (), PlannedLoad { sources: 2, ..planned(100.0, 60_000) }, None, &[]),
        case(
            "port_range",
            |_| (),
            PlannedLoad { ports: Some((1024, 30_000)), ..planned(500.0, 100) },
            Distorts,
            &["28,977 local ports (--ports 1024:30000)", "483 new", "500 are planned"],
        ),
        case("port_range", |f| f.ports.reserved = 55_296, any(), Blocks, &["0 local ports"]),
        case(
            "port_range",
            |f| f.ports.range = Some((50_000, 50_999)),
            server(planned(5000.0, 100)),
            None,
            &[],
        ),
        case(
            "time_wait_reuse",
            |f| f.ports.time_wait_reuse = Some(0),
            any(),
            Note,
            &["never", "tcp_tw_reuse=1", "922 new connections/s"],
        ),
        case("time_wait_reuse", |f| f.ports.time_wait_reuse = Some(2), any(), None, &[]),
        case(
            "time_wait_reuse",
            |f| f.ports.time_wait_reuse = Some(2),
            planned(1000.0, 100),
            Distorts,
            &["on loopback only", "922 new", "1,000 are planned"],
        ),
        case("time_wait_reuse", |f| f.ports.time_wait_reuse = Some(2), loopback(1000.0, 100), None, &[]),
        case("time_wait_reuse", |f| f.ports.time_wait_reuse = Some(2), planned(900.0, 100), None, &[]),
        case(
            "time_wait_reuse",
            |f| f.ports.timestamps = Some(false),
            planned(1000.0, 100),
            Distorts,
            &["timestamps are off", "tcp_timestamps=1 && sysctl"],
        ),
        case(
            "time_wait",
            |f| f.ports.time_wait_ports = Some(30_000),
            any(),
            Distorts,
            &["30,000 of 55,296", "54 %", "sleep 60"],
        ),
        case("time_wait", |f| f.ports.time_wait_ports = Some(8_000), any(), Note, &["14 %"]),
        case("time_wait", |f| f.ports.time_wait_ports = Some(5_000), any(), None, &[]),
        case(
            "time_wait_limit",
            |_| (),
            planned(5000.0, 100),
            Note,
            &["262,144", "300,000 are expected", "tcp_max_tw_buckets=1048576"],
        ),
        case(
            "time_wait_limit",
            |_| (),
            PlannedLoad { duration_s: Some(30.0), ..planned(5000.0, 100) },
            None,
            &[],
        ),
        case("time_wait_limit", |f| f.ports.time_wait = Some(262_000), any(), Note, &["262,000 are"]),
        case(
            "listening_ports",
            |_| (),
            PlannedLoad { listening: vec![80, 20_000], ..any() },
            Note,
            &["such as 20000", "ip_local_reserved_ports=20000"],
        ),
        case("listening_ports", |_| (), PlannedLoad { listening: vec![80, 8080], ..any() }, None, &[]),
    ]
}
