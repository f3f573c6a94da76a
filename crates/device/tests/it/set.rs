//! Each device of the set: starting, hits and misses by its own log, flushing, restarting, stopping.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use polygraph_device::{AccessCounts, Device, Params, PlainCounts};

use crate::bench::{BODY, Bench, WHOLE};

/// What a device keeps over a restart.
enum Store {
    Nothing,
    Memory,
    Disk,
}

/// Hits, misses and requests of neither kind.
fn kinds(counts: &AccessCounts) -> [u64; 3] {
    assert_eq!(counts.requests, counts.hits + counts.misses + counts.other, "{counts:?}");
    assert_eq!(counts.unreadable, 0, "{counts:?}");
    [counts.hits, counts.misses, counts.other]
}

fn try_out(name: &str, params: Params, store: &Store) {
    let mut bench = Bench::start(name, params);
    assert!(bench.device.is_up());
    let stores = !matches!(store, Store::Nothing);
    // The second GET of a cachable object is a hit, if there is a store; no GET of an uncachable one is.
    assert_eq!(bench.get(&["/a", "/a", "/uncachable", "/uncachable"]), if stores { 3 } else { 4 }, "{name}");
    assert_eq!(bench.get(&["/a"]), u64::from(!stores), "{name}: over another connection");
    bench.device.flush().unwrap();
    assert_eq!(bench.get(&["/a"]), 1, "{name} is empty after a flush");
    let address = bench.device.address();
    bench.device.restart().unwrap();
    assert_eq!(bench.device.address(), address);
    let kept = bench.get(&["/a"]) == 0;
    assert_eq!(kept, matches!(store, Store::Disk), "{name}: what a restart keeps");

    let usage = bench.device.usage();
    let builtin = bench.device.pid().is_none();
    // The kernel counts in ticks of 10 ms, which a few requests may not take.
    assert!((0.0..60.0).contains(&usage.cpu_seconds), "{name}: {usage:?}");
    assert!(builtin || usage.resident_bytes > 1 << 20 && usage.processes >= 1, "{name}: {usage:?}");
    let work: Option<PathBuf> = bench.device.work_directory().map(Into::into);

    let end = bench.device.halt();
    assert_eq!((end.early, end.killed), (None, false), "{name}");
    assert!(!bench.device.is_up());
    TcpListener::bind(address).unwrap_or_else(|e| panic!("{name} still listens: {e}"));
    let after = bench.device.usage();
    assert!(after.cpu_seconds >= usage.cpu_seconds && after.processes == 0, "{name}: {usage:?}, {after:?}");
    let counts = bench.device.counts().unwrap();
    let expected = match store {
        Store::Nothing => [0, 0, 7],
        Store::Memory => [2, 5, 0],
        Store::Disk => [3, 4, 0],
    };
    assert_eq!(kinds(&counts), expected, "{name}");
    let (least, most) = (7 * BODY as u64, 7 * (BODY as u64 + 1000));
    assert!((least..most).contains(&counts.bytes), "{name}: {counts:?}");

    let kept = tempfile::tempdir().unwrap();
    let place = kept.path().join("device");
    bench.device.keep(&place).unwrap();
    for (file, text) in bench.device.configs() {
        assert_eq!(&std::fs::read_to_string(place.join(file)).unwrap(), text, "{name}");
    }
    // Squid's service name, under which it makes shared memory.
    let command = bench.device.command();
    let service = command.iter().skip_while(|word| *word != "-n").nth(1).filter(|_| name == "squid");
    assert_eq!(service.map(|service| segments(service)), service.map(|_| Vec::new()), "{name}");
    drop(bench);
    assert!(work.is_none_or(|work| !work.exists()), "{name} leaves its work directory");
}

/// Segments of shared memory whose names begin so.
fn segments(start: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(start)).collect()
}

fn disk(megabytes: u64) -> Params {
    Params { disk: Some(megabytes << 20), ..Params::default() }
}

fn with(params: Params, name: &str, value: &str) -> Params {
    Params { options: [(name.to_owned(), value.to_owned())].into(), ..params }
}

#[test]
fn builtin() {
    try_out("builtin", Params::default(), &Store::Memory);
}

#[test]
fn builtin_surrogate() {
    try_out("builtin-surrogate", Params::default(), &Store::Memory);
}

#[test]
fn squid_in_memory() {
    try_out("squid", Params::default(), &Store::Memory);
}

#[test]
fn squid_on_disk() {
    try_out("squid", disk(64), &Store::Disk);
}

#[test]
fn squid_with_workers_that_share_memory() {
    let params = Params { workers: Some(2), ..with(disk(64), "store_type", "rock") };
    let mut bench = Bench::start("squid", params);
    // What one worker gets reaches the common store, and the other worker, a moment later.
    let is_hit = |bench: &mut Bench| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        bench.get(&["/a"]) == 0
    };
    assert!((0..100).any(|_| is_hit(&mut bench)), "what is stored is found");
    assert!(bench.device.usage().processes > 2, "{:?}", bench.device.usage());
    let end = bench.device.halt();
    assert_eq!((end.early, end.killed), (None, false));
    let counts = bench.device.counts().unwrap();
    assert!(counts.hits >= 1 && counts.unreadable == 0, "{counts:?}");
    let command = bench.device.command();
    let service = command.iter().skip_while(|word| *word != "-n").nth(1).unwrap();
    assert_eq!(segments(service), Vec::<String>::new());
}

#[test]
fn traffic_server() {
    // It writes its directory of the store once a minute: what came later is lost with the process.
    try_out("trafficserver", disk(128), &Store::Memory);
}

#[test]
fn varnish_in_memory() {
    try_out("varnish", Params::default(), &Store::Memory);
}

#[test]
fn varnish_in_a_file() {
    // The file is a swap space: what it held is lost with the process.
    try_out("varnish", disk(64), &Store::Memory);
}

#[test]
fn nginx_with_a_cache() {
    try_out("nginx", Params { workers: Some(2), ..Params::default() }, &Store::Disk);
}

#[test]
fn nginx_as_a_forward_proxy() {
    try_out("nginx-forward", disk(16), &Store::Disk);
}

#[test]
fn nginx_without_a_cache() {
    try_out("nginx", with(Params::default(), "cache", "off"), &Store::Nothing);
}

#[test]
fn haproxy() {
    try_out("haproxy", Params::default(), &Store::Nothing);
}

#[test]
fn haproxy_uses_all_origins_in_turn() {
    let bench = Bench::start("haproxy", Params::default());
    assert_eq!(bench.get(&["/a", "/b", "/c", "/d", "/e", "/f"]), 6);
    assert_eq!(bench.origins.each_ref().map(|origin| origin.requests()), [3, 3]);
}

#[test]
fn forward_proxies_know_names_from_the_hosts_file() {
    for name in ["squid", "trafficserver", "builtin"] {
        let hosts = vec![("www.bench.tst".to_owned(), Ipv4Addr::LOCALHOST.into())];
        assert!(Device::find(name).unwrap().takes_hosts());
        let bench = Bench::start(name, Params { hosts, ..Params::default() });
        let authority = format!("www.bench.tst:{}", bench.origins[0].address.port());
        assert_eq!(bench.get_from(&authority, &["/a", "/a"]), 1, "{name}");
    }
}

#[test]
fn reloads_go_to_the_origin_and_neither_they_nor_parts_are_plain() {
    for name in ["squid", "trafficserver", "varnish", "nginx"] {
        let mut bench = Bench::start(name, Params::default());
        assert_eq!([bench.get(&["/a", "/a"]), bench.reload("/a"), bench.get(&["/a"])], [1, 1, 0], "{name}");
        // nginx makes no parts of what comes without `Accept-Ranges`.
        let part = if name == "nginx" { WHOLE } else { (206, 10) };
        assert_eq!(bench.part("/a", part), 0, "{name}");
        bench.device.halt();
        let counts = bench.device.counts().unwrap();
        assert_eq!((counts.requests, counts.hits), (5, 3), "{name}: {counts:?}");
        assert_eq!(counts.plain, Some(PlainCounts { requests: 3, hits: 2 }), "{name}");
    }
    for name in ["varnish", "nginx"] {
        let bench = Bench::start(name, with(Params::default(), "reload", "ignore"));
        assert_eq!([bench.get(&["/a"]), bench.reload("/a")], [1, 0], "{name}");
    }
}

#[test]
fn haproxy_chooses_groups_by_endings() {
    let bench = Bench::start("haproxy", with(Params::default(), "endings", ".html,.png"));
    bench.get(&["/a.html", "/b.html", "/c.html", "/d.png"]);
    assert_eq!(bench.origins.each_ref().map(|origin| origin.requests()), [3, 1]);
}

#[test]
fn haproxy_in_front_of_proxies() {
    let proxies = [0, 1].map(|_| Device::find("builtin").unwrap().start(&Params::default()).unwrap());
    let list = proxies.each_ref().map(|proxy| proxy.address().to_string()).join(",");
    let bench = Bench::start("haproxy-proxies", with(Params::default(), "proxies", &list));
    let paths = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"];
    assert_eq!([bench.get(&paths), bench.get(&paths)], [8, 0]);
    // An object has one proxy, but not all objects have the same.
    let counts = proxies.each_ref().map(|proxy| proxy.counts().unwrap());
    assert_eq!(counts[0].hits + counts[1].hits, 8);
    assert!(counts.iter().all(|counts| counts.requests > 0), "{counts:?}");
}

#[test]
fn the_store_can_be_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    // As a user's file system would be: readable by the account that root's devices become.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let params = Params { disk_directory: Some(place.path().into()), ..disk(64) };
    let bench = Bench::start("nginx", params);
    assert_eq!(bench.get(&["/a", "/a"]), 1);
    let store = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    assert!(std::fs::read_dir(&store).unwrap().next().is_some(), "nothing is stored in {}", store.display());
    drop(bench);
    assert!(!store.exists(), "{} stays", store.display());
}

/// Root's devices become another user, and listen at ports of root all the same.
#[test]
fn ports_of_root() {
    let port = (600..1023).find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    // Ordinary users cannot do this, with or without the program.
    let Some(port) = port else { return };
    for name in ["squid", "trafficserver", "varnish", "nginx", "haproxy"] {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let bench = Bench::start(name, Params { listen, ..Params::default() });
        assert_eq!(bench.device.address(), listen);
        assert_eq!(bench.get(&["/a"]), 1, "{name}");
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", bench.device.pid().unwrap())).unwrap();
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
        let root = rustix::process::geteuid().is_root();
        assert!(!root || !uid.split_whitespace().any(|id| id == "0"), "{name} runs as root");
    }
}
