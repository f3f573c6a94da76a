//! Robots that look names up.

use crate::sandbox::{Sandbox, free_port};

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");

#[test]
fn polymix_4_runs_with_names_that_robots_look_up() {
    let sandbox = Sandbox::new();
    let words = format!(
        "run --no_proxy --dns auto --config {WORKLOADS}/polymix-4.pg --scale 1/1500 \
         --set TheBench.client_side.addr_space=['127.103.0-123.1-250'] \
         --set TheBench.server_side.addr_space=['127.103.128-251.1-250:{}'] \
         --set TheBench.peak_req_rate=20/sec --set FillRate=20/sec --set ProxyCacheSize=300MB \
         --set DnsServers=['127.0.0.1:53']",
        free_port()
    );
    let done = sandbox.polygraph(&words);
    let result = sandbox.result();
    let (figures, _) = sandbox.lx("", result.join("client.log"));
    let (lookups, replies) = (figures["dns.lookup.count"], figures["rep.rptm.count"]);
    assert!(lookups > 50.0 && figures["dns.rptm.count"] > 50.0, "{lookups} look-ups: {done:?}");
    assert!(replies > 200.0, "{replies}: {done:?}");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    let manifest: serde_json::Value =
        serde_json::from_str(&sandbox.read(result.join("manifest.json"))).unwrap();
    assert_eq!(manifest["dns"]["queries"], manifest["dns"]["answered"], "{}", manifest["dns"]);
    assert!(manifest["dns"]["queries"].as_f64() >= Some(figures["dns.rptm.count"]), "{}", manifest["dns"]);
    let report = sandbox.read(result.join("report.html"));
    assert!(report.contains("names looked up"), "DNS is in the report");
}

#[test]
fn a_name_server_for_nobody_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "plain.pg",
        &format!(
            "Content C = {{ size = const(1KB); }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 1/sec; }};
             use(S, R);",
            free_port()
        ),
    );
    for (words, text) in [
        ("run --no_proxy --config plain.pg --dns auto", "no robot of the workload looks up names"),
        ("run --no_proxy --config plain.pg --dns nobody", "`nobody` is not a name server"),
        ("run --proxy 127.0.0.1:1 --config plain.pg --dns auto", "cannot be used with"),
    ] {
        let done = sandbox.polygraph(words);
        assert!(done.code() == Some(2) && done.err.contains(text), "{words}: {done:?}");
    }
}
