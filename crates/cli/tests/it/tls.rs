//! Tests with TLS between robots and servers, and what is said of certificates that are wrong.

use std::collections::HashMap;

use crate::sandbox::{Done, Sandbox, free_port};

/// A workload whose robots and servers have wraps with these fields.
fn write_workload(sandbox: &Sandbox, robot: &str, server: &str) {
    sandbox.write(
        "tls.pg",
        &format!(
            "SslWrap Clt = {{ {robot} }};
             SslWrap Srv = {{ {server} }};
             Content C = {{ size = exp(8KB); cachable = 80%; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; pconn_use_lmt = const(5); ssl_wraps = [ Srv ]; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 5]; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(5); ssl_wraps = [ Clt ]; }};
             Phase p = {{ name = \"p\"; goal.duration = 4sec; }};
             schedule(p);
             use(S, R);",
            free_port()
        ),
    );
}

fn run(sandbox: &Sandbox, words: &str) -> (Done, HashMap<String, f64>) {
    let done = sandbox.polygraph(&format!("run --config tls.pg {words}"));
    assert_ne!(done.code(), Some(2), "{done:?}");
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done, figures)
}

#[test]
fn sessions_are_new_or_resumed_and_bodies_are_compared() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "session_resumption = 60%;", "key_types = [ \"ECDSA-P256\" ];");
    let (done, figures) = run(&sandbox, "");
    assert_eq!(figures["errors.tls_not_resumed.count"], 0.0, "{done:?}");
    let (new, reused) = (figures["ssl.sessions.measured.new"], figures["ssl.sessions.measured.reused"]);
    assert!(new > 15.0 && reused > 15.0, "{new} {reused} {done:?}");
    assert_eq!(figures["ssl.sessions.offered.reused"], reused);
    assert_eq!(figures["ssl.rptm.count"], figures["ok_xact.count"]);
    assert!(figures["ssl.rptm.sum"] > figures["ssl.ready_rptm.sum"], "{done:?}");
    assert!(figures["verified.size.sum"] > 100_000.0, "{done:?}");
    let (at_server, text) = sandbox.lx("", sandbox.result().join("server.log"));
    assert_eq!(at_server["ssl.sessions.measured.reused"], reused, "{text}");
}

#[test]
fn early_data_are_accepted() {
    for version in ["1.1", "2"] {
        let sandbox = Sandbox::new();
        let fields = "protocols = [ \"TLSv1.3\" ]; early_data = yes;";
        write_workload(
            &sandbox,
            &format!("{fields} session_resumption = 100%;"),
            &format!("{fields} key_types = [ \"ECDSA-P256\" ];"),
        );
        let workload = sandbox.read(sandbox.path().join("tls.pg"));
        let versions =
            format!("R.http_versions = [ \"{version}\" ]; S.http_versions = [ \"{version}\" ]; use(S, R);");
        sandbox.write("tls.pg", &workload.replace("use(S, R);", &versions));
        let (done, figures) = run(&sandbox, "");
        // Each event loop has its own cache, so a session may be unknown where a connection arrives.
        assert_eq!(figures["errors.count"], figures["errors.tls_not_resumed.count"], "{version}: {done:?}");
        let early = figures["ssl.handshake.early.count"];
        assert!(early > 5.0, "{version}: {early} {done:?}");
        // Servers know of the handshakes, too, except for those of the last connections of the five robots.
        let (at_server, _) = sandbox.lx("", sandbox.result().join("server.log"));
        let missing = early - at_server["ssl.handshake.early.count"];
        assert!((0.0..=5.0).contains(&missing), "{version}: {early}, {missing} missing: {done:?}");
    }
}

/// Runs with a bad certificate. Each transaction must fail with this class, and this party is the limit.
#[track_caller]
fn is_refused(class: &str, limit: &str, robot: &str, server: &str, prepare: &[&str], says: &str) {
    let sandbox = Sandbox::new();
    for words in prepare {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(0), "{done:?}");
    }
    write_workload(&sandbox, robot, server);
    let checked = sandbox.polygraph("run --config tls.pg");
    assert_eq!(checked.code(), Some(3), "{class}: {checked:?}");
    assert!(checked.err.contains(&format!(", {class})")), "{class}: {checked:?}");
    let (done, figures) = run(&sandbox, "--preflight no");
    assert_eq!((done.code(), figures["ok_xact.count"]), (Some(1), 0.0), "{class}: {done:?}");
    let (failed, count) = (figures["err_xact.count"], figures[&format!("errors.{class}.count")]);
    assert!(count > 10.0 && count == failed, "{class}: {count} of {failed}: {done:?}");
    let manifest = sandbox.read(sandbox.result().join("manifest.json"));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    // A busy machine may make the client late as well, which is no reason to blame anyone else for the errors.
    let findings = manifest["verdict"]["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["rule"] == "errors");
    assert_eq!(finding.unwrap()["limit"], limit, "{class}: {}", manifest["verdict"]);
    let errors = sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out;
    assert!(errors.contains(says), "{class}: {says}: {errors}");
}

const VERIFY: &str = "root_certificate = \"certs/ca.crt\";";

#[test]
fn each_bad_certificate_has_its_class_and_its_party() {
    let own = "certificates = [ \"certs/all.pem\" ];";
    let made = "certs --key_type ECDSA-P256 --name";
    let name = format!("{made} other.test");
    is_refused("certificate_name", "server", VERIFY, own, &[&name], "other.test");
    let expired = format!("{made} 127.0.0.1 --expired");
    is_refused("certificate_dates", "server", VERIFY, own, &[&expired], "expired");
    let (here, there) = (format!("{made} 127.0.0.1"), format!("{made} 127.0.0.1 --out others"));
    let others = "root_certificate = \"others/ca.crt\";";
    is_refused("certificate_issuer", "server", others, own, &[&here, &there], "certificate");
    let [one, other] = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
    let only = |name: &str| format!("ciphers = [ \"{name}\" ];");
    let server = format!("{} key_types = [ \"ECDSA-P256\" ];", only(other));
    is_refused("tls_nothing_in_common", "test", &only(one), &server, &[], "handshake_failure");
    let client = "root_certificate = \"certs/ca.pem\"; verify_peer_certificate = yes;";
    is_refused("tls_refused", "test", VERIFY, client, &[&here], "certificate_required");
}

#[test]
fn certificates_of_a_workload_are_accepted() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "", "");
    let done = sandbox.polygraph("certs tls.pg --key_type Ed25519");
    assert!(done.code() == Some(0) && done.out.contains("1 certificate\n"), "{done:?}");
    write_workload(&sandbox, VERIFY, "root_certificate = \"certs/ca.pem\"; rsa_key_sizes = [ 2048bit ];");
    let (done, figures) = run(&sandbox, "");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    let report = sandbox
        .polygraph(&format!("lx --objects ssl.issuer.tbl {}", sandbox.result().join("client.log").display()));
    assert!(report.out.contains("Polygraph CA"), "{report:?}");
}

/// A server that is no part of the test, and a workload whose robots request its URLs.
#[test]
fn foreign_urls_may_be_https() {
    let sandbox = Sandbox::new();
    let port = free_port();
    sandbox.write(
        "foreign.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%; }}; SslWrap W;
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{port}']; ssl_wraps = [ W ]; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; ssl_wraps = [ W ]; }};
             Phase p = {{ name = \"p\"; goal.duration = 10min; }}; schedule(p); use(S, R);"
        ),
    );
    let mut other = sandbox.start("server --config foreign.pg --ign_urls yes --accept_foreign_msgs yes");
    other.wait_for(&port.to_string());
    sandbox.write("trace", &format!("https://127.0.0.1:{port}/a/b\nhttps://127.0.0.1:{port}/c?d\n"));
    let here = free_port();
    sandbox.write(
        "tls.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%; }}; SslWrap W;
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{here}']; pconn_use_lmt = const(20); ssl_wraps = [ W ]; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 5]; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(20); ssl_wraps = [ W ];
                 interests = [ \"foreign\": 50%, \"public\" ]; foreign_trace = \"trace\"; }};
             Phase p = {{ name = \"p\"; goal.duration = 4sec; }}; schedule(p); use(S, R);"
        ),
    );
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let through = format!("--proxy 127.0.0.1:{}", proxy.port("proxy at"));
    for (way, out) in [("--no_proxy", "direct"), (through.as_str(), "tunnel")] {
        let done = sandbox.polygraph(&format!("run --config tls.pg --preflight no {way} --out {out}"));
        let (figures, _) = sandbox.lx("", sandbox.path().join(out).join("client.log"));
        let ended = figures["ok_xact.count"];
        assert_eq!(figures["err_xact.count"], 0.0, "{out}: {done:?}");
        // Foreign requests use TLS, too, and through a proxy, they use its tunnels.
        assert!(ended > 200.0 && figures["ssl.rptm.count"] == ended, "{out}: {done:?}");
        assert_eq!(
            figures["tunneled.rptm.count"],
            if out == "tunnel" { ended } else { 0.0 },
            "{out}: {done:?}"
        );
        assert!(figures["oid_gen.new_foreign.count"] > 50.0, "{out}: {done:?}");
    }
    let text = sandbox
        .read("tls.pg")
        .replace("pconn_use_lmt = const(20); ssl_wraps = [ W ];\n                 interests", "interests");
    sandbox.write("tls.pg", &text);
    let done = sandbox.polygraph("check tls.pg");
    assert!(format!("{done:?}").contains("ssl_wraps"), "{done:?}");
}

/// A handshake takes longer than it takes until the next requests start: at this rate, ten in a millisecond. One connection has
/// room for all of them.
#[test]
fn requests_wait_for_a_connection_that_is_being_set_up() {
    for version in ["2", "3"] {
        let sandbox = Sandbox::new();
        let text = format!(
            "SslWrap W = {{ key_types = [ \"RSA\" ]; }};
             Content C = {{ size = const(1KB); cachable = 80%; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; ssl_wraps = [ W ];
                 http_versions = [ \"2\", \"3\" ]; h2_streams = 1000; pconn_use_lmt = const(100000); }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; ssl_wraps = [ W ]; req_rate = 10000/sec;
                 http_versions = [ \"{version}\" ]; h2_streams = 1000; pconn_use_lmt = const(100000); }};
             Phase p = {{ name = \"p\"; goal.xactions = 800; }};
             schedule(p);
             use(S, R);",
            free_port()
        );
        sandbox.write("tls.pg", &text);
        let (done, figures) = run(&sandbox, "--loops 1 --predict no");
        assert_eq!(figures["errors.count"], 0.0, "{done:?}");
        assert_eq!(figures["conn.open.started"], 1.0, "HTTP/{version}: {done:?}");
        assert!(figures["wait.started"] > 0.0, "HTTP/{version}: {done:?}");
    }
}
