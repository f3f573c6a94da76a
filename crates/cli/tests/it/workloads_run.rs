//! Standard workloads through real devices, hours shortened to seconds. Servers think a tenth of their time where
//! that is seconds, for an object may be asked for again only when its first reply can have arrived.
//!
//! Counts are compared and not times, so these tests may run beside each other and on a busy machine.

use std::collections::HashMap;

use crate::sandbox::{Sandbox, free_port};

/// What a run has come to.
struct Run {
    /// What the program printed.
    out: String,
    /// Figures of the client's log.
    client: HashMap<String, f64>,
    /// The device's own counts beside those of the robots.
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
    let sandbox = Sandbox::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let port = free_port().to_string();
    let settings: Vec<String> =
        settings.iter().map(|setting| format!("--set {}", setting.replace("PORT", &port))).collect();
    let words = format!(
        "run --device {device} --config {directory}/{workload}.pg --scale 1/{scale} {}",
        settings.join(" ")
    );
    let done = sandbox.polygraph(&words);
    // A machine that is busy with other tests starts requests late: that spoils times and no counts.
    assert!(matches!(done.code(), Some(0 | 1)), "{done:?}");
    assert_ne!(done.verdict(), "FAILED", "{}", done.out);
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let device = counts(&done.out);
    Run { out: done.out, client, device }
}

/// The numbers in the line about the device.
fn counts(out: &str) -> Counts {
    let line = out.lines().find(|line| line.starts_with("device ")).unwrap_or_else(|| panic!("{out}"));
    let (_, text) = line.split_once("its log has ").unwrap();
    let numbers: Vec<f64> =
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    match numbers[..] {
        [requests, _, hits, robots_requests, _, robots_hits] => {
            Counts { requests, hits, robots_requests, robots_hits }
        }
        [hits, requests, robots_hits, robots_requests] => {
            Counts { requests, hits, robots_requests, robots_hits }
        }
        _ => panic!("{line}"),
    }
}

impl Run {
    /// No errors, and the device has counted what the robots have.
    fn agrees(&self) {
        let Run { out, client, device } = self;
        assert_eq!([client["errors.count"], client["err_cnt"]], [0.0, 0.0], "{out}");
        assert!(out.contains("No correctness error in"), "{out}");
        let started = device.robots_requests;
        assert!(started > 250.0 && client["ok_xact.count"] > 250.0, "{out}");
        // Some are under way when the robots leave; the device is stopped before it has written all of them down.
        let allowed = (0.01 * started).max(10.0);
        for (device, robots) in [(device.requests, device.robots_requests), (device.hits, device.robots_hits)]
        {
            assert!((device - robots).abs() <= allowed, "{out}");
        }
    }

    /// The device stores: its hit ratio is what the robots offered it, and at least `least` percent.
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
    // Names, pages, conditional requests, reloads and POST have all been in it.
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
    // Stored replies need no server, the others wait for one.
    assert!(run.client["hit.rptm.mean"] < 150.0 && run.client["miss.rptm.mean"] > 250.0, "{}", run.out);
}

#[test]
fn webaxe_4_through_varnish() {
    webaxe_4("varnish");
}

#[test]
fn webaxe_4_through_nginx() {
    webaxe_4("nginx");
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
    // A server asked for objects of another group refuses them, so no error means that all went to theirs.
    let run = balanced("srvlb-l7-4", "haproxy --device_opt endings=.html,.png,.jpg", "127.114.251.1-6");
    run.agrees();
    assert_eq!(run.device.hits, 0.0, "{}", run.out);
}
