//! Cases of processors, interfaces and clocks.

use super::hosts::{card, loopback, planned};
use super::{Case, case};
use polygraph_doctor::Impact::{Blocks, Distorts, Note};
use polygraph_doctor::PlannedLoad;
use polygraph_doctor::facts::{IdleSample, UringRefusal};

pub(super) fn cases() -> Vec<Case> {
    let any = PlannedLoad::default;
    let client = |load| PlannedLoad { servers: false, ..load };
    vec![
        case("processors", |f| f.processors.allowed = Some(1), any(), Note, &["1 processor "]),
        case(
            "processors",
            |_| (),
            planned(70_000.0, 10),
            Distorts,
            &["60,000 requests/s", "70,000 are planned"],
        ),
        case("processors", |_| (), client(planned(70_000.0, 10)), None, &[]),
        case(
            "processor_quota",
            |f| (f.processors.quota, f.processors.throttled) = (Some(1.5), Some(12)),
            any(),
            Distorts,
            &["1.50 of 4", "12 times", "CPUQuota"],
        ),
        case("processor_quota", |f| f.processors.quota = Some(4.0), any(), None, &[]),
        case(
            "processor_mask",
            |f| f.processors.allowed = Some(2),
            any(),
            Note,
            &["2 of 4", "taskset -c 0-3"],
        ),
        case(
            "io_uring",
            |f| {
                f.uring_refusal =
                    Some(UringRefusal { reason: "it is off".into(), remedy: "sysctl -w".into() })
            },
            any(),
            Note,
            &["it is off", "epoll", "sysctl -w"],
        ),
        case("io_uring", |_| (), any(), None, &[]),
        case(
            "frequency",
            |f| {
                f.processors.governors = vec!["powersave".into()];
                f.processors.governor_files = vec!["/sys/x/scaling_governor".into()];
            },
            any(),
            Distorts,
            &["powersave", "echo performance | tee /sys/x/scaling_governor"],
        ),
        case("turbo", |f| f.processors.turbo = Some(true), any(), Note, &["boost"]),
        case("virtual_machine", |f| f.processors.virtual_machine = true, any(), Note, &["virtual machine"]),
        case("steal", |f| f.processors.steal = Some(0.05), any(), Distorts, &["5.0 %", "since the start"]),
        case(
            "steal",
            |f| f.idle.as_mut().unwrap().steal = 0.01,
            any(),
            Note,
            &["1.0 %", "during this check"],
        ),
        case(
            "other_processes",
            |f| {
                f.idle = Some(IdleSample {
                    busy: 1.0,
                    processes: vec![("rustc".into(), 0.9)],
                    ..IdleSample::default()
                })
            },
            any(),
            Distorts,
            &["1.00 of 4", "rustc 0.90", "25 %"],
        ),
        case("other_processes", |f| f.idle.as_mut().unwrap().busy = 0.2, any(), Note, &["5.0 %"]),
        case(
            "link_speed",
            |f| f.interfaces[0].speed = Some(100),
            any(),
            Note,
            &["eth0 carries 100 Mbit/s", "854 replies"],
        ),
        case(
            "link_speed",
            |f| f.interfaces[0].speed = Some(100),
            planned(1000.0, 10),
            Blocks,
            &["117 Mbit/s"],
        ),
        case(
            "link_speed",
            |f| f.interfaces[0].speed = Some(100),
            planned(700.0, 10),
            Distorts,
            &["82 Mbit/s"],
        ),
        case("link_speed", |f| f.interfaces[0].speed = Some(100), loopback(1000.0, 10), None, &[]),
        case(
            "link_duplex",
            |f| f.interfaces[0].half_duplex = true,
            any(),
            Distorts,
            &["half duplex", "ethtool -s eth0"],
        ),
        case(
            "link_errors",
            |f| f.interfaces[0].errors = 100,
            any(),
            Distorts,
            &["100 of 1,000,000", "0.0100 %"],
        ),
        case("link_errors", |f| f.interfaces[0].errors = 1, any(), Note, &["ip -s -s link show eth0"]),
        case(
            "link_drops",
            |f| f.interfaces[0].drops = 100,
            any(),
            Distorts,
            &["ring 512 of 4096", "ethtool -G eth0 rx 4096"],
        ),
        case(
            "link_drops",
            |f| (f.interfaces[0].drops, f.interfaces[0].ring) = (1, None),
            any(),
            Note,
            &["ethtool -L"],
        ),
        case(
            "link_offloads",
            |f| f.interfaces[0].offloads_off = vec!["tso".into(), "gro".into()],
            any(),
            Note,
            &["without tso, gro", "ethtool -K eth0 tso on gro on"],
        ),
        case(
            "link_offloads",
            |f| f.interfaces[0].offloads_off = vec!["tso".into()],
            loopback(1.0, 1),
            None,
            &[],
        ),
        case(
            "link_mtu",
            |f| f.interfaces[0].mtu = Some(1400),
            any(),
            Note,
            &["1400 bytes", "7.1 %", "mtu 1500"],
        ),
        case(
            "link_mtu",
            |f| {
                f.interfaces.push(card("eth1"));
                f.interfaces[1].mtu = Some(9000);
            },
            any(),
            Note,
            &["eth1 has packets of 9000", "cut packets", "ip link set eth0 mtu 9000"],
        ),
        case(
            "time_sync",
            |f| f.clock.synchronised = Some(false),
            any(),
            Note,
            &["unsynchronised", "timedatectl"],
        ),
        case(
            "time_sync",
            |f| f.clock.synchronised = Some(false),
            client(planned(1.0, 1)),
            Distorts,
            &["drift"],
        ),
        case("time_sync", |f| f.clock.error_us = Some(2_000_000), any(), Note, &["2.00 s"]),
        case(
            "clock_source",
            |f| (f.clock.source, f.clock.read_ns) = (Some("hpet".into()), Some(1500.0)),
            planned(5000.0, 1),
            Distorts,
            &["1500 ns", "hpet", "7.5 %"],
        ),
        case(
            "clock_source",
            |f| (f.clock.source, f.clock.read_ns) = (Some("hpet".into()), Some(1500.0)),
            planned(50.0, 1),
            Note,
            &["0.1 %"],
        ),
        case(
            "clock_source",
            |f| (f.clock.source, f.clock.read_ns) = (Some("acpi_pm".into()), None),
            any(),
            Distorts,
            &["acpi_pm"],
        ),
    ]
}
