//! Hosts made of files: what `/proc` and `/sys` say becomes facts.

use std::fs;
use std::path::Path;

use polygraph_doctor::facts::HostFacts;
use polygraph_doctor::{Depth, read_host};

/// Writes files below a directory.
fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn read(files: &[(&str, &str)]) -> HostFacts {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    read_host(root.path(), root.path(), Depth::Thorough)
}

const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:8235 0100007F:A45A 06 00000000:00000000 03:00000B72 00000000     0        0 0 3
   1: 0100007F:8235 0100007F:A45B 06 00000000:00000000 03:00000B72 00000000     0        0 0 3
   2: 0100007F:C000 0100007F:0050 06 00000000:00000000 03:00000B72 00000000     0        0 0 3
   3: 0100007F:C001 0100007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 7 1
   4: 0100007F:0050 0100007F:C002 06 00000000:00000000 03:00000B72 00000000     0        0 0 3
";

#[test]
fn ports_queues_and_buffers() {
    let facts = read(&[
        ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        ("/proc/sys/net/ipv4/ip_local_reserved_ports", "8080,33000-33009,60990-65000\n"),
        ("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
        ("/proc/sys/net/ipv4/tcp_timestamps", "1\n"),
        ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "262144\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
        ("/proc/sys/net/ipv4/tcp_mem", "100\t200\t300\n"),
        ("/proc/sys/net/core/somaxconn", "4096\n"),
        ("/proc/sys/net/netfilter/nf_conntrack_count", "17\n"),
        ("/proc/sys/net/netfilter/nf_conntrack_max", "65536\n"),
        (
            "/proc/net/sockstat",
            "sockets: used 20\nTCP: inuse 1 orphan 0 tw 2495 alloc 1 mem 184\nUDP: inuse 0 mem 9\n",
        ),
        ("/proc/net/tcp", TCP),
        (
            "/proc/net/netstat",
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: ListenOverflows\nIpExt: 9\n",
        ),
        ("/proc/net/snmp", "Ip: Forwarding\nIp: 1\nTcp: OutSegs RetransSegs\nTcp: 5000 7\n"),
        ("/proc/net/softnet_stat", "0000000f 00000010 00000000\n0000133e 00000001 00000000\n"),
    ]);
    // 10 and 10 of the reserved ports are in the range; three distinct local ports are in TIME_WAIT, one of them not.
    assert_eq!((facts.ports.range, facts.ports.reserved), (Some((32768, 60999)), 20));
    assert_eq!((facts.ports.time_wait, facts.ports.time_wait_ports), (Some(2495), Some(2)));
    assert_eq!((facts.ports.time_wait_reuse, facts.ports.timestamps), (Some(2), Some(true)));
    assert_eq!((facts.queues.listen, facts.queues.listen_overflows), (Some(4096), Some(22)));
    assert_eq!((facts.queues.segments, facts.queues.retransmitted), (Some(5000), Some(7)));
    assert_eq!(facts.queues.packet_drops, Some(17));
    assert_eq!((facts.buffers.receive, facts.buffers.send), (Some(6_291_456), Some(4_194_304)));
    assert_eq!((facts.buffers.used, facts.buffers.pressure), (Some(184 * 4096), Some(200 * 4096)));
    assert_eq!((facts.conntrack.count, facts.conntrack.limit), (Some(17), Some(65_536)));
}

#[test]
fn memory_and_processors_of_control_groups_of_version_2() {
    let facts = read(&[
        ("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:  600 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "[always] defer never\n"),
        ("/proc/self/cgroup", "0::/a.slice/b.service\n"),
        ("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n"),
        ("/sys/fs/cgroup/a.slice/b.service/memory.current", "5000\n"),
        ("/sys/fs/cgroup/a.slice/memory.max", "8000\n"),
        ("/sys/fs/cgroup/a.slice/memory.current", "7000\n"),
        ("/sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 2500\n"),
        ("/sys/fs/cgroup/a.slice/b.service/cpu.max", "150000 100000\n"),
        ("/sys/fs/cgroup/a.slice/b.service/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\n"),
        ("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n"),
        ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\nprocessor\t: 1\n"),
        ("/sys/devices/system/cpu/online", "0-3,8\n"),
        ("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ("/proc/stat", "cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1 1 1\n"),
    ]);
    let m = &facts.memory;
    assert_eq!((m.total, m.available, m.swap_used), (Some(1_024_000), Some(614_400), Some(30 * 1024)));
    assert_eq!((m.group_limit, m.group_used), (Some(8000), Some(4500)));
    assert_eq!((m.huge_pages.as_deref(), m.huge_page_defrag.as_deref()), (Some("madvise"), Some("always")));
    let p = &facts.processors;
    assert_eq!((p.online, p.allowed, p.quota, p.throttled), (Some(5), Some(2), Some(1.5), Some(4)));
    assert_eq!((p.governors.len(), p.governor_files.len(), p.turbo), (1, 2, Some(true)));
    assert!(p.virtual_machine && (p.steal.unwrap() - 0.1).abs() < 1e-9, "{p:?}");
}

#[test]
fn control_groups_of_version_1() {
    let facts = read(&[
        ("/proc/self/cgroup", "4:memory:/box\n2:cpuacct,cpu:/box\n0::/\n"),
        ("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096\n"),
        ("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1000\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"),
        ("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n"),
        ("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n"),
        ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ]);
    assert_eq!((facts.memory.group_limit, facts.memory.group_used), (Some(4096), Some(1000)));
    assert_eq!(facts.processors.quota, Some(0.5));
}

#[test]
fn interfaces_that_are_up() {
    let facts = read(&[
        ("/sys/class/net/lo/operstate", "unknown\n"),
        ("/sys/class/net/lo/carrier", "1\n"),
        ("/sys/class/net/eth0/operstate", "up\n"),
        ("/sys/class/net/eth0/device/vendor", "x\n"),
        ("/sys/class/net/eth0/speed", "1000\n"),
        ("/sys/class/net/eth0/duplex", "half\n"),
        ("/sys/class/net/eth0/mtu", "1500\n"),
        ("/sys/class/net/eth0/statistics/rx_packets", "100\n"),
        ("/sys/class/net/eth0/statistics/tx_packets", "50\n"),
        ("/sys/class/net/eth0/statistics/rx_crc_errors", "3\n"),
        ("/sys/class/net/eth0/statistics/rx_missed_errors", "4\n"),
        ("/sys/class/net/eth1/operstate", "down\n"),
        ("/sys/class/net/veth0/operstate", "up\n"),
        ("/sys/class/net/veth0/speed", "-1\n"),
    ]);
    let names: Vec<&str> = facts.interfaces.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["eth0", "veth0"]);
    let card = &facts.interfaces[0];
    assert!(card.half_duplex && !card.is_virtual && facts.interfaces[1].is_virtual);
    assert_eq!((card.speed, card.packets, card.errors, card.drops), (Some(1000), 150, 3, 4));
    assert_eq!(facts.interfaces[1].speed, None);
}

/// Routes to a single local address, to a network of local addresses, to a neighbouring network, and to nowhere.
const ROUTES6: &str = "\
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
fd000007000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 80000001       lo
fd000008000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

#[test]
fn addresses_names_and_leftovers() {
    let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.0\n        /16 host LOCAL\nLocal:\n     |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 127.0.0.0\n        /8 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n";
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("/proc/net/fib_trie", trie),
            (
                "/proc/net/if_inet6",
                "00000000000000000000000000000001 01 80 10 80       lo\nfd000000000000000000000000000001 02 40 00 80     eth0\nfe800000000000000000000000000001 02 40 20 80     eth0\n",
            ),
            ("/proc/net/ipv6_route", ROUTES6),
            ("/etc/resolv.conf", "# a comment\nnameserver 10.0.0.53\nsearch tst\nnameserver ::1\n"),
            (
                "/etc/hosts",
                "127.0.0.1 localhost me # localhost too\n::1 ip6-localhost localhost\n10.0.0.1 other\n",
            ),
            ("/tmp/polygraph-squid-dead/cache", "x"),
        ],
    );
    // A killed run leaves the lock on its ownership file, which lists its directories.
    let directory = root.path().join("tmp/polygraph-squid-dead");
    fs::write(root.path().join("tmp/polygraph-squid-dead.owner"), format!("{}\n", directory.display()))
        .unwrap();
    let facts = read_host(root.path(), root.path(), Depth::Thorough);
    assert_eq!(
        (facts.leftovers.addresses, facts.leftovers.local_networks.as_slice()),
        (2, &["10.1.0.0/16", "fd00:7::/64"].map(str::to_owned)[..])
    );
    assert_eq!(facts.names.servers, ["10.0.0.53", "::1"]);
    assert_eq!(facts.names.localhost, ["127.0.0.1", "::1"]);
    assert_eq!(facts.leftovers.device_directories, [directory]);
}

#[test]
fn changes_of_killed_processes_are_seen_and_looking_creates_nothing() {
    let root = tempfile::tempdir().unwrap();
    let facts = read_host(root.path(), root.path(), Depth::Thorough);
    assert!(facts.leftovers.abandoned.is_empty() && !root.path().join("run").exists());
    let records = polygraph_netsetup::Ledger::at(&root.path().join("run/polygraph/changes")).unwrap();
    let setting = root.path().join("setting");
    fs::write(&setting, "0").unwrap();
    let mut changes = records.begin("net wan").unwrap();
    changes.set(&setting, "1").unwrap();
    assert!(read_host(root.path(), root.path(), Depth::Thorough).leftovers.abandoned.is_empty(), "in use");
    changes.keep().unwrap();
    let facts = read_host(root.path(), root.path(), Depth::Thorough);
    assert_eq!(facts.leftovers.kept, ["net wan (1 change)"]);
}

/// The host that this test runs on: whatever it is, facts that every Linux has are read.
#[test]
fn this_host_is_read() {
    let place = tempfile::tempdir().unwrap();
    for depth in [Depth::Quick, Depth::Thorough] {
        let facts = read_host(Path::new("/"), place.path(), depth);
        assert!(facts.descriptors.hard.is_some() && facts.descriptors.system_limit.is_some());
        assert!(facts.ports.range.is_some() && facts.queues.listen.is_some());
        assert!(facts.memory.available.is_some_and(|bytes| bytes > 1 << 20));
        assert!(facts.processors.allowed.is_some_and(|count| count > 0));
        assert_eq!(facts.storage.writable, Some(true));
        assert!(facts.storage.free.is_some());
        assert_eq!(facts.clock.read_ns.is_some(), depth == Depth::Thorough);
    }
    let sample = polygraph_doctor::sample_idle(std::time::Duration::from_millis(50)).unwrap();
    assert!(sample.busy >= 0.0 && (0.0..=1.0).contains(&sample.steal));
}
