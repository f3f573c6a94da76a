//! Cases of leftovers, storage, names and the ceiling.

use super::hosts::{ceiling, planned};
use super::{Case, case};
use polygraph_doctor::Impact::{Blocks, Distorts, Note};
use polygraph_doctor::PlannedLoad;
use polygraph_doctor::facts::CeilingMeasurement;

pub(super) fn cases() -> Vec<Case> {
    let any = PlannedLoad::default;
    let client = |load| PlannedLoad { servers: false, ..load };
    vec![
        case(
            "abandoned_changes",
            |f| f.leftovers.abandoned = vec!["net wan (4 changes)".into()],
            any(),
            Distorts,
            &["net wan (4 changes)", "polygraph net clean"],
        ),
        case(
            "kept_changes",
            |f| f.leftovers.kept = vec!["aka eth0 (9 changes)".into()],
            any(),
            Note,
            &["aka eth0", "--all"],
        ),
        case(
            "abandoned_devices",
            |f| f.leftovers.device_directories = vec!["/tmp/polygraph-squid-1".into()],
            any(),
            Distorts,
            &["1 directories", "/tmp/polygraph-squid-1", "--fix"],
        ),
        case("addresses", |f| f.leftovers.addresses = 5002, any(), Note, &["5,002 addresses"]),
        case(
            "addresses",
            |f| f.leftovers.local_networks = vec!["10.1.0.0/16".into()],
            any(),
            Note,
            &["all addresses of 10.1.0.0/16"],
        ),
        case("firewall", |f| f.leftovers.firewall_rules = Some(3), any(), Note, &["3 firewall rules"]),
        case("firewall", |f| f.leftovers.firewall_rules = Some(3000), any(), Distorts, &["3,000"]),
        case(
            "shaping",
            |f| f.leftovers.shaping = vec!["netem on eth0".into()],
            any(),
            Note,
            &["netem on eth0"],
        ),
        case("disk_space", |f| f.storage.free = Some(1 << 20), any(), Blocks, &["/data/runs", "1.0 MB"]),
        case("disk_space", |f| f.storage.free = Some(500 << 20), any(), Note, &["500 MB"]),
        case("disk_space", |f| f.storage.free_inodes = Some(3), any(), Blocks, &["3 files"]),
        case("writable", |f| f.storage.writable = Some(false), any(), Blocks, &["/data/runs"]),
        case("storage_kind", |f| f.storage.kind = Some("tmpfs".into()), any(), Note, &["memory"]),
        case("storage_kind", |f| f.storage.kind = Some("nfs4".into()), any(), Note, &["network"]),
        case("names", |f| f.names.localhost.clear(), any(), Note, &["localhost"]),
        case("names", |f| f.names.servers.clear(), any(), Note, &["resolv.conf"]),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            any(),
            Note,
            &["10,000 requests/s", "the engine epoll", "2,500 and 10,000 for each processor", "up to 5,000"],
        ),
        case("ceiling", |f| f.ceiling = ceiling(400.0, 900.0), any(), Distorts, &["only tests of up to 200"]),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            planned(2000.0, 10),
            Note,
            &["take 20 %"],
        ),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            planned(8000.0, 10),
            Distorts,
            &["take 80 %"],
        ),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            planned(12_000.0, 10),
            Blocks,
            &["take 120 %"],
        ),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            client(planned(12_000.0, 10)),
            Distorts,
            &["take 60 %"],
        ),
        case(
            "ceiling",
            |f| f.ceiling = ceiling(10_000.0, 40_000.0),
            PlannedLoad { connection_rate: Some(0.0), ..planned(12_000.0, 10) },
            Note,
            &["take 30 %"],
        ),
        case(
            "loopback_failures",
            |f| f.ceiling = ceiling(1e4, 1e4).map(|c| CeilingMeasurement { failed: 5, ..c }),
            any(),
            Distorts,
            &["5 requests failed"],
        ),
        case(
            "loopback_failures",
            |f| f.ceiling = ceiling(0.0, 0.0),
            any(),
            Blocks,
            &["no request succeeded"],
        ),
        case(
            "loopback_failures",
            |f| f.ceiling_error = Some("cannot listen".into()),
            any(),
            Blocks,
            &["cannot listen", "ip link set lo up"],
        ),
    ]
}
