//! The matrix of protocols in `docs/protocols.md`: each cell that is supported runs for a few seconds, in which no transaction may
//! fail, all replies are verified, and the device must have counted the same requests and hits as the robots. The table is written
//! from the list here.

use std::collections::HashMap;

use serde_json::Value;

use crate::sandbox::{Done, Sandbox, free_port};

/// What one side of a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    /// HTTP/1.1 without TLS.
    H1,
    /// HTTP/1.1 over TLS.
    H1s,
    /// HTTP/2 without TLS, with prior knowledge.
    H2c,
    /// HTTP/2 over TLS.
    H2,
    /// HTTP/3, always with TLS.
    H3,
}
use Leg::{H1, H1s, H2, H2c, H3};

impl Leg {
    fn version(self) -> &'static str {
        match self {
            H1 | H1s => "1.1",
            H2c | H2 => "2",
            H3 => "3",
        }
    }

    fn is_secure(self) -> bool {
        matches!(self, H1s | H2 | H3)
    }

    /// The name in the table.
    fn name(self) -> String {
        self.version().to_owned() + if self.is_secure() { ", TLS" } else { "" }
    }
}

/// How requests get from robots to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Forward,
    /// Through tunnels, in which a proxy sees nothing.
    Connect,
    /// Through tunnels that end at the proxy.
    Intercepted,
    /// A surrogate or load balancer.
    Surrogate,
}
use Way::{Connect, Direct, Forward, Intercepted, Surrogate};

impl Way {
    /// The name in the table.
    fn name(self) -> &'static str {
        match self {
            Direct => "direct",
            Forward => "forward proxy",
            Connect => "tunnel (CONNECT)",
            Intercepted => "intercepted tunnel",
            Surrogate => "surrogate",
        }
    }
}

/// A cell of the matrix: the device, the protocols on both sides of it, and the options that make it so.
struct Cell {
    device: &'static str,
    way: Way,
    robots: Leg,
    servers: Leg,
    /// Options of the device.
    own: &'static str,
}

const fn cell(device: &'static str, way: Way, robots: Leg, servers: Leg, own: &'static str) -> Cell {
    Cell { device, way, robots, servers, own }
}

const CELLS: &[Cell] = &[
    cell("none", Direct, H1, H1, ""),
    cell("none", Direct, H1s, H1s, ""),
    cell("none", Direct, H2c, H2c, ""),
    cell("none", Direct, H2, H2, ""),
    cell("none", Direct, H3, H3, ""),
    cell("builtin", Forward, H1, H1, ""),
    cell("builtin", Forward, H1s, H1, "cert"),
    cell("builtin", Forward, H2c, H1, ""),
    cell("builtin", Forward, H2, H1, "cert"),
    cell("builtin", Connect, H1s, H1s, ""),
    cell("builtin", Connect, H2, H2, ""),
    cell("builtin-surrogate", Surrogate, H1, H1, ""),
    cell("builtin-surrogate", Surrogate, H1s, H1, "cert"),
    cell("builtin-surrogate", Surrogate, H2c, H1, ""),
    cell("builtin-surrogate", Surrogate, H2, H1, "cert"),
    cell("squid", Forward, H1, H1, ""),
    cell("squid", Forward, H1s, H1, "cert"),
    cell("squid", Connect, H1s, H1s, ""),
    cell("squid", Connect, H2, H2, ""),
    cell("squid-bump", Intercepted, H1s, H1s, "ca"),
    cell("trafficserver", Forward, H1, H1, ""),
    cell("trafficserver", Connect, H1s, H1s, ""),
    cell("trafficserver", Connect, H2, H2, ""),
    cell("trafficserver-surrogate", Surrogate, H1, H1, ""),
    cell("trafficserver-surrogate", Surrogate, H1, H1s, "origin_tls=yes"),
    cell("trafficserver-surrogate", Surrogate, H1s, H1, "cert"),
    cell("trafficserver-surrogate", Surrogate, H1s, H1s, "cert origin_tls=yes"),
    cell("trafficserver-surrogate", Surrogate, H2c, H1, "http2=on"),
    cell("trafficserver-surrogate", Surrogate, H2, H1, "http2=on cert"),
    cell("trafficserver-surrogate", Surrogate, H2, H1s, "http2=on cert origin_tls=yes"),
    cell("nginx-forward", Forward, H1, H1, ""),
    cell("nginx", Surrogate, H1, H1, ""),
    cell("nginx", Surrogate, H1, H1s, "origin_tls=yes"),
    cell("nginx", Surrogate, H1s, H1, "cert"),
    cell("nginx", Surrogate, H1s, H1s, "cert origin_tls=yes"),
    cell("nginx", Surrogate, H2c, H1, "http2=on"),
    cell("nginx", Surrogate, H2, H1, "http2=on cert"),
    cell("nginx", Surrogate, H2, H1s, "http2=on cert origin_tls=yes"),
    cell("varnish", Surrogate, H1, H1, ""),
    cell("varnish", Surrogate, H1s, H1, "cert"),
    cell("varnish", Surrogate, H2c, H1, "http2=on"),
    cell("varnish", Surrogate, H2, H1, "http2=on cert"),
    cell("haproxy", Surrogate, H1, H1, ""),
    cell("haproxy", Surrogate, H1, H2c, "http2=backend"),
    cell("haproxy", Surrogate, H1, H2, "http2=backend origin_tls=yes"),
    cell("haproxy", Surrogate, H1s, H1, "cert"),
    cell("haproxy", Surrogate, H1s, H1s, "cert origin_tls=yes"),
    cell("haproxy", Surrogate, H2c, H1, "http2=frontend"),
    cell("haproxy", Surrogate, H2c, H2c, "http2=both"),
    cell("haproxy", Surrogate, H2, H1, "http2=frontend cert"),
    cell("haproxy", Surrogate, H2, H1s, "http2=frontend cert origin_tls=yes"),
    cell("haproxy", Surrogate, H2, H2, "http2=both cert origin_tls=yes"),
    cell("caddy", Surrogate, H1, H1, ""),
    cell("caddy", Surrogate, H1, H2c, "http2=backend"),
    cell("caddy", Surrogate, H1, H2, "http2=backend origin_tls=yes"),
    cell("caddy", Surrogate, H1s, H1, "cert"),
    cell("caddy", Surrogate, H1s, H1s, "cert origin_tls=yes"),
    cell("caddy", Surrogate, H2c, H1, "http2=frontend"),
    cell("caddy", Surrogate, H2c, H2c, "http2=both"),
    cell("caddy", Surrogate, H2, H1, "http2=frontend cert"),
    cell("caddy", Surrogate, H2, H1s, "http2=frontend cert origin_tls=yes"),
    cell("caddy", Surrogate, H2, H2, "http2=both cert origin_tls=yes"),
    cell("caddy", Surrogate, H3, H1, "http3=on cert"),
    cell("caddy", Surrogate, H3, H1s, "http3=on cert origin_tls=yes"),
    cell("caddy", Surrogate, H3, H2c, "http2=backend http3=on cert"),
    cell("caddy", Surrogate, H3, H2, "http2=backend http3=on cert origin_tls=yes"),
];

impl Cell {
    /// The options of `run`, with certificates in the directory `certs`.
    fn options(&self) -> String {
        let Cell { device, way, robots, servers, own } = self;
        let mut words = match *device {
            "none" => "--no_proxy".to_owned(),
            device => format!("--device {device}"),
        };
        for option in own.split_whitespace() {
            let value = match option {
                "cert" => "cert=certs/all.pem",
                "ca" => "ca=certs/ca.pem",
                other => other,
            };
            words += &format!(" --device_opt {value}");
        }
        if *way == Intercepted {
            // The authority of the device is the only one that robots trust.
            words += " --trust_ca certs/ca.crt --config my.pg";
        } else if servers.is_secure() {
            words += " --tls yes";
        } else if *robots == H3 {
            // The default is `yes` with HTTP/3.
            words += " --tls no";
        }
        // The default is what the servers have, and no TLS to proxies.
        match (*way, robots.is_secure(), servers.is_secure()) {
            (Surrogate | Forward, true, false) => words += " --device_tls yes",
            (Surrogate, false, true) => words += " --device_tls no",
            _ => {}
        }
        if robots.version() != "1.1" {
            words += &format!(" --http_version {}", robots.version());
        }
        words
    }
}

fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols.md")
}

fn table() -> String {
    let mut table =
        "| device | way | robots | servers | options of `polygraph run` |\n|---|---|---|---|---|\n"
            .to_owned();
    for cell in CELLS {
        let [robots, servers] = [cell.robots, cell.servers].map(Leg::name);
        let (device, way) = (cell.device, cell.way.name());
        table += &format!("| {device} | {way} | {robots} | {servers} | `{}` |\n", cell.options());
    }
    table
}

#[test]
fn the_matrix_is_documented() {
    let (begin, end) = ("<!-- matrix -->\n", "<!-- end of the matrix -->\n");
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(end).expect("the place of the table ends");
    let expected = format!("{before}{begin}{}{end}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), expected).unwrap();
    } else {
        assert!(
            text == expected,
            "docs/protocols.md is stale: UPDATE_DOCS=1 cargo test -p polygraph --test it the_matrix_is_documented"
        );
    }
}

/// What was measured in a cell.
struct Measured {
    /// The options, for messages.
    what: String,
    done: Done,
    client: HashMap<String, f64>,
    server: HashMap<String, f64>,
    /// The part of the manifest about the device.
    device: Value,
}

/// A server with a name. Squid puts the host of the tunnel into its certificates as a DNS name, which is wrong for an address.
const NAMED: &str = "
    SslWrap W;
    Content C = { size = exp(8KB); cachable = 80%;
        obj_life_cycle = { length = const(2year); with_lmt = 100%; expires = [ nmt + const(0sec) ]; }; };
    Server S = { contents = [ C ]; addresses = ['127.0.0.1:PORT']; ssl_wraps = [ W ]; xact_think = const(50msec);
        pconn_use_lmt = const(1000); };
    AddrMap M = { names = ['localhost:PORT']; addresses = S.addresses; };
    Robot R = { origins = M.names; addresses = ['127.0.0.1' ** 10]; req_rate = 6/sec; recurrence = 60%;
        pop_model.pop_distr = popUnif(); pconn_use_lmt = const(1000); ssl_wraps = [ W ]; };
    Phase p = { name = \"p\"; goal.duration = 5sec; };
    schedule(p);
    use(S, M, R);
";

/// Runs a cell and checks what each side saw.
fn check(cell: &Cell) {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let options = cell.options();
    let load = match cell.way {
        Intercepted => {
            sandbox.write("my.pg", &NAMED.replace("PORT", &free_port().to_string()));
            ""
        }
        _ => "--pconn_use_lmt 1000 --req_rate 60/sec --xact_think 50ms --goal 5s --cool_phase 1s",
    };
    let done = sandbox.polygraph(&format!("run {options} {load}"));
    assert!(matches!(done.code(), Some(0 | 1)) && done.out.contains("logs  "), "{options}: {done:?}");
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let (server, _) = sandbox.lx("--side srv", sandbox.result().join("server.log"));
    let manifest: Value =
        serde_json::from_str(&sandbox.read(sandbox.result().join("manifest.json"))).unwrap();
    let measured = Measured {
        what: format!("{} {options}", cell.way.name()),
        done,
        client,
        server,
        device: manifest["device"].clone(),
    };
    measured.check_verdict(&manifest["verdict"]);
    measured.check_transactions();
    measured.check_protocols(cell);
    if cell.device != "none" {
        measured.check_device(cell);
    }
}

impl Measured {
    /// The run is VALID. A busy machine may make the bench late, which spoils the verdict and no count; nobody else is the limit.
    fn check_verdict(&self, verdict: &Value) {
        const LATE: [&str; 5] = ["late", "gaps", "stalls", "saturated", "offered"];
        let findings = verdict["findings"].as_array().unwrap_or_else(|| panic!("{verdict:#}")).iter();
        let mut grave = findings.filter(|finding| finding["weight"] != "warning").peekable();
        assert_eq!(verdict["outcome"] == "VALID", grave.peek().is_none(), "{}: {verdict:#}", self.what);
        let is_late = |finding: &Value| {
            let [rule, limit] = ["rule", "limit"].map(|name| finding[name].as_str().unwrap_or_default());
            LATE.contains(&rule) && ["client", "server", "host"].contains(&limit)
        };
        assert!(grave.all(is_late), "{}: {verdict:#}", self.what);
    }

    /// Nothing failed, and every reply was verified.
    fn check_transactions(&self) {
        let Measured { what, done, client, server, .. } = self;
        assert_eq!((client["err_cnt"], server["err_cnt"]), (0.0, 0.0), "{what}: {done:?}");
        let ok = client["ok_xact.count"];
        assert!(ok > 150.0, "{what}, {ok} transactions: {done:?}");
        assert_eq!((client["verified.count"], client["verified.due.count"]), (ok, ok), "{what}: {done:?}");
        assert_eq!(client["verified.uncompared.size.sum"], 0.0, "{what}: {done:?}");
    }

    /// Each side used its version and TLS in all transactions, and tunnels if it should.
    fn check_protocols(&self, cell: &Cell) {
        let Measured { what, done, client, server, .. } = self;
        for (figures, leg) in [(client, cell.robots), (server, cell.servers)] {
            let ok = figures["ok_xact.count"];
            assert_eq!(figures[&format!("version.{}.size.count", leg.version())], ok, "{what}: {done:?}");
            let handshakes = figures["ssl.handshake.full.count"] + figures["ssl.handshake.resumed.count"];
            assert_eq!(handshakes > 0.0, leg.is_secure(), "{what}, {handshakes} handshakes: {done:?}");
        }
        let ok = client["ok_xact.count"];
        assert_eq!(client["streams.concurrent.count"] > 0.0, cell.robots.version() != "1.1", "{what}");
        let through_tls = if cell.robots.is_secure() { ok } else { 0.0 };
        assert_eq!(client["ssl.rptm.count"], through_tls, "{what}: {done:?}");
        let tunneled = if matches!(cell.way, Connect | Intercepted) { ok } else { 0.0 };
        assert_eq!(client["tunneled.rptm.count"], tunneled, "{what}: {done:?}");
    }

    /// The device's log has the same requests and hits.
    fn check_device(&self, cell: &Cell) {
        let Measured { what, done, client, device, .. } = self;
        let logged =
            |name: &str| device["result"]["log"][name].as_f64().unwrap_or_else(|| panic!("{device:#}"));
        let (started, hits) = (client["xact.started"], client["hit.rptm.count"]);
        // A proxy sees nothing but the requests for tunnels.
        let seen = if cell.way == Connect { client["connect.rptm.count"] } else { started };
        // A transaction or two may be under way at the end.
        let allowed = (0.005 * seen).max(2.0);
        assert!((logged("requests") - seen).abs() <= allowed, "{what}, {seen} requests: {done:?} {device:#}");
        assert!((logged("hits") - hits).abs() <= allowed, "{what}, {hits} hits: {done:?} {device:#}");
        assert_eq!(logged("unreadable_lines"), 0.0, "{what}: {device:#}");
        let stores = cell.way != Connect && !matches!(cell.device, "haproxy" | "caddy");
        assert_eq!(hits > 0.2 * started, stores, "{what}, {hits} hits of {started}: {done:?}");
    }
}

/// Runs all cells of a device, two at a time: they mostly wait.
fn check_all(device: &str) {
    let cells: Vec<&Cell> = CELLS.iter().filter(|cell| cell.device == device).collect();
    assert!(!cells.is_empty());
    for pair in cells.chunks(2) {
        std::thread::scope(|scope| pair.iter().for_each(|cell| drop(scope.spawn(|| check(cell)))));
    }
}

#[test]
fn robots_and_servers_without_a_device() {
    check_all("none");
}

#[test]
fn the_builtin_proxy() {
    check_all("builtin");
    check_all("builtin-surrogate");
}

#[test]
fn squid() {
    check_all("squid");
}

#[test]
fn squid_that_intercepts() {
    check_all("squid-bump");
}

#[test]
fn traffic_server() {
    check_all("trafficserver");
    check_all("trafficserver-surrogate");
}

#[test]
fn nginx() {
    check_all("nginx");
    check_all("nginx-forward");
}

#[test]
fn varnish_behind_hitch() {
    check_all("varnish");
}

#[test]
fn haproxy() {
    check_all("haproxy");
}

#[test]
fn caddy() {
    check_all("caddy");
}
