//! Standard workloads through real devices, with hours shortened to seconds. Where the think time of servers is seconds,
//! it is shortened to a tenth, because robots request an object again only after its first reply can have arrived.
//!
//! The tests compare counts, and those of WebAxe also response times. Each run is repeated until it is VALID, so a bench
//! that was late does not spoil either.

use std::collections::HashMap;

use crate::sandbox::{Sandbox, free_port, valid};

/// The results of a run.
struct Run {
    /// Standard output of the program.
    out: String,
    /// Figures of the client's log.
    client: HashMap<String, f64>,
    /// Counts of the device's own log and of the robots.
    device: Counts,
}

/// Counts over the whole run; hits are those of plain requests.
struct Counts {
    requests: f64,
    hits: f64,
    robots_requests: f64,
    robots_hits: f64,
}

/// Runs a workload at 60 requests per second through a device. `PORT` in the settings is the servers' port.
fn run(workload: &str, scale: u32, device: &str, settings: &[&str]) -> Run {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let (sandbox, done) = valid(|| {
        let port = free_port().to_string();
        let settings: Vec<String> =
            settings.iter().map(|setting| format!("--set {}", setting.replace("PORT", &port))).collect();
        let words = format!(
            "run --device {device} --config {directory}/{workload}.pg --scale 1/{scale} {}",
            settings.join(" ")
        );
        let sandbox = Sandbox::new();
        if device.contains("certs/") {
            let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name site.bench.tst");
            assert_eq!(made.code(), Some(0), "{made:?}");
        }
        let done = sandbox.polygraph(&words);
        (sandbox, done)
    });
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let device = counts(&done.out);
    Run { out: done.out, client, device }
}

/// The numbers in the line about the device.
fn counts(out: &str) -> Counts {
    let line = out.lines().find(|line| line.starts_with("device ")).unwrap_or_else(|| panic!("{out}"));
    let (_, text) = line.split_once("its log has ").unwrap();
    let text = text.replace(',', "");
    let numbers: Vec<f64> =
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    match numbers[..] {
        [requests, robots_requests, hits, _, robots_hits, _] => {
            Counts { requests, hits, robots_requests, robots_hits }
        }
        [hits, requests, robots_hits, robots_requests] => {
            Counts { requests, hits, robots_requests, robots_hits }
        }
        _ => panic!("{line}"),
    }
}

impl Run {
    /// Checks that there are no errors, and that the device counted the same as the robots.
    fn agrees(&self) {
        let Run { out, client, device } = self;
        assert_eq!([client["errors.count"], client["err_cnt"]], [0.0, 0.0], "{out}");
        assert!(out.contains("No correctness error in"), "{out}");
        let started = device.robots_requests;
        assert!(started > 250.0 && client["ok_xact.count"] > 250.0, "{out}");
        // Some transactions are in progress when the robots stop; the device stops before it has logged all of them.
        let allowed = (0.01 * started).max(10.0);
        for (device, robots) in [(device.requests, device.robots_requests), (device.hits, device.robots_hits)]
        {
            assert!((device - robots).abs() <= allowed, "{out}");
        }
    }

    /// Checks that the device caches: its hit ratio is the offered one, which is at least `least` percent.
    fn stores(&self, least: f64) {
        let (offered, measured) = (self.client["req_dhr"], self.client["rep_dhr"]);
        assert!(offered >= least && (offered - measured).abs() <= 3.0, "{offered} % offered: {}", self.out);
    }
}

#[test]
fn polymix_4_through_squid() {
    let run = run(
        "polymix-4",
        800,
        "squid",
        &[
            "TheBench.client_side.addr_space=['127.110.0-123.1-250']",
            "TheBench.server_side.addr_space=['127.110.128-251.1-250:PORT']",
            "TheBench.peak_req_rate=60/sec",
            "FillRate=60/sec",
            "ProxyCacheSize=1GB",
            "DnsServers=[]",
            "S.xact_think=norm(0.25sec,0.1sec)",
        ],
    );
    run.agrees();
    run.stores(15.0);
    // The run had pages, conditional requests and reloads.
    for class in ["page.rptm.count", "ims.rptm.count", "reload.rptm.count"] {
        assert!(run.client[class] > 0.0, "{class}: {}", run.out);
    }
}

#[test]
fn polymix_3_through_traffic_server() {
    let run = run(
        "polymix-3",
        2700,
        "trafficserver",
        &[
            "TheBench.client_side.addr_mask='127.111.0.0'",
            "TheBench.server_side.addr_mask='127.111.0.0:PORT'",
            "TheBench.peak_req_rate=60/sec",
            "FillRate=60/sec",
            "ProxyCacheSize=1GB",
            "S.xact_think=norm(0.25sec,0.1sec)",
        ],
    );
    run.agrees();
    run.stores(15.0);
    assert!(run.client["reload.rptm.count"] > 0.0, "{}", run.out);
}

fn webaxe_4(device: &str) {
    let run = run(
        "webaxe-4",
        2400,
        device,
        &[
            "TheBench.client_side.addr_space=['127.112.0-123.1-250']",
            "TheBench.server_side.hosts=['127.112.191.1-2:PORT']",
            "TheBench.proxy_side.hosts=['site.bench.tst:PORT']",
            "TheBench.peak_req_rate=60/sec",
            "FillRate=60/sec",
            "ProxyCacheSize=1GB",
            "WSS=100MB",
        ],
    );
    run.agrees();
    run.stores(25.0);
    assert!(run.client["reload.rptm.count"] > 0.0, "{}", run.out);
    // Hits need no server; misses wait for one that thinks.
    assert!(run.client["hit.rptm.mean"] < 150.0 && run.client["miss.rptm.mean"] > 250.0, "{}", run.out);
}

#[test]
fn polymix_4_tls_through_squid() {
    let settings = [
        "TheBench.client_side.addr_space=['127.113.0-123.1-250']",
        "TheBench.server_side.addr_space=['127.113.128-251.1-250:PORT']",
        "TheBench.peak_req_rate=60/sec",
        "FillRate=60/sec",
        "ProxyCacheSize=1GB",
        "DnsServers=[]",
        "S.xact_think=norm(0.25sec,0.1sec)",
    ];
    // Squid sees the requests in the tunnels with its own authority, which is the only one that robots trust.
    let device = "squid-bump --device_opt ca=certs/ca.pem --trust_ca certs/ca.crt";
    let run = run("polymix-4-tls", 800, device, &settings);
    run.agrees();
    run.stores(15.0);
    assert_eq!(run.client["tunneled.rptm.count"], run.client["ok_xact.count"], "{}", run.out);
    assert_eq!(run.client["ssl.rptm.count"], run.client["ok_xact.count"], "{}", run.out);
    assert!(run.client["ssl.handshake.resumed.count"] > 0.0, "{}", run.out);
}

#[test]
fn webaxe_4_tls_through_nginx() {
    let run = run(
        "webaxe-4-tls",
        2400,
        "nginx --device_opt cert=certs/all.pem --device_opt origin_tls=yes",
        &[
            "TheBench.client_side.addr_space=['127.114.0-123.1-250']",
            "TheBench.server_side.hosts=['127.114.191.1-2:PORT']",
            "TheBench.proxy_side.hosts=['site.bench.tst:PORT']",
            "TheBench.peak_req_rate=60/sec",
            "FillRate=60/sec",
            "ProxyCacheSize=1GB",
            "WSS=100MB",
        ],
    );
    run.agrees();
    run.stores(25.0);
    assert_eq!(run.client["ssl.rptm.count"], run.client["ok_xact.count"], "{}", run.out);
    assert!(run.client["ssl.handshake.resumed.count"] > 0.0, "{}", run.out);
}

#[test]
fn webaxe_4_through_varnish() {
    webaxe_4("varnish");
}

#[test]
fn webaxe_4_through_nginx() {
    webaxe_4("nginx");
}

#[test]
fn polymix_2026_through_nginx() {
    let run = run(
        "polymix-2026",
        1200,
        "nginx --device_opt http2=on --device_opt cert=certs/all.pem --device_opt origin_tls=yes",
        &[
            "TheBench.client_side.addr_space=['127.115.0-123.1-250']",
            "TheBench.server_side.hosts=['127.115.191.1-2:PORT']",
            "TheBench.proxy_side.hosts=['site.bench.tst:PORT']",
            "TheBench.peak_req_rate=60/sec",
            "FillRate=60/sec",
            "ProxyCacheSize=600MB",
            "WSS=20MB",
        ],
    );
    run.agrees();
    run.stores(25.0);
    // Nearly all robots speak HTTP/2, and all use TLS.
    assert!(run.client["version.2.size.count"] > 0.8 * run.client["ok_xact.count"], "{}", run.out);
    assert_eq!(run.client["ssl.rptm.count"], run.client["ok_xact.count"], "{}", run.out);
}

/// The settings of a test of balancers with servers at these addresses.
fn balanced(workload: &str, device: &str, servers: &str) -> Run {
    let servers = format!("TheBench.server_side.hosts=['{servers}:PORT']");
    run(
        workload,
        900,
        device,
        &[
            "TheBench.client_side.hosts=['127.0.0.1']",
            "TheBench.client_side.addr_space=['127.113.1-250.1-250']",
            "TheBench.client_side.max_host_load=56/sec",
            &servers,
            "TheBench.proxy_side.hosts=['site.bench.tst:PORT']",
        ],
    )
}

#[test]
fn srvlb_l4_4_through_haproxy() {
    let run = balanced("srvlb-l4-4", "haproxy", "127.113.251.1-2");
    run.agrees();
    assert_eq!(run.device.hits, 0.0, "{}", run.out);
}

#[test]
fn srvlb_l7_4_through_haproxy_with_groups_of_servers() {
    // A server refuses requests for objects of another group, so without errors every request reached its group.
    let run = balanced("srvlb-l7-4", "haproxy --device_opt endings=.html,.png,.jpg", "127.114.251.1-6");
    run.agrees();
    assert_eq!(run.device.hits, 0.0, "{}", run.out);
}
