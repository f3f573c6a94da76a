//! Robots that follow `Alt-Svc`: with servers of the test, with a device that announces HTTP/3 by itself, and where nothing is behind
//! the announcement.

use std::collections::HashMap;

use crate::peers::wait_for_listener;
use crate::sandbox::{Sandbox, free_port};

/// Robots that follow `Alt-Svc`, four of them for 20 transactions per second each. What the servers may announce is at port `other`.
fn workload(version: &str, server: &str, port: u16, other: u16) -> String {
    format!(
        r#"
        MimeHeader Announced = {{ name = "Alt-Svc"; value = "h3=\":{other}\""; }};
        SslWrap Wrap = {{ session_resumption = 50%; }};
        Content C = {{ kind = "c"; size = const(3KB); cachable = 80%; }};
        Server S = {{ kind = "s"; contents = [ C ]; direct_access = contents; addresses = [ '127.0.0.1:{port}' ];
            ssl_wraps = [ Wrap ]; pconn_use_lmt = const(1000); {server} }};
        Robot R = {{ kind = "r"; origins = S.addresses; addresses = [ '127.0.0.1' ] ** 4; ssl_wraps = [ Wrap ];
            req_rate = 20/sec; recurrence = 0%; http_versions = [ "{version}" ]; follow_alt_svc = true;
            pconn_use_lmt = const(1000); }};
        Phase load = {{ name = "load"; goal.duration = 4sec; }};
        schedule(load);
        use(S, R);
        "#
    )
}

/// A server that announces HTTP/3 where something else may be.
const ELSEWHERE: &str = r#"http_versions = [ "1.1", "2" ]; http_headers = [ Announced ];"#;
/// A server that announces its own HTTP/3.
const ITSELF: &str = r#"http_versions = [ "1.1", "2", "3" ]; alt_svc = 1hour;"#;

/// Runs a test in which nothing may fail. Returns the figures of both sides.
fn run(sandbox: &Sandbox, server: &str, options: &str) -> [HashMap<String, f64>; 2] {
    run_workload(sandbox, &workload("2", server, free_port(), free_port()), options)
}

/// The same with this workload.
fn run_workload(sandbox: &Sandbox, text: &str, options: &str) -> [HashMap<String, f64>; 2] {
    sandbox.write("alt.pg", text);
    let done = sandbox.polygraph(&format!("run alt.pg {options}"));
    assert!(matches!(done.code(), Some(0 | 1)) && done.out.contains("logs  "), "{options}: {done:?}");
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let (server, _) = sandbox.lx("--side srv", sandbox.result().join("server.log"));
    let ok = client["ok_xact.count"];
    assert!(ok > 100.0 && client["err_cnt"] == 0.0, "{ok} transactions: {done:?}");
    assert_eq!((client["verified.count"], client["verified.due.count"]), (ok, ok), "{done:?}");
    let counts = ["1.1", "2", "3"].map(|version| client[&format!("version.{version}.size.count")]);
    assert_eq!(counts.iter().sum::<f64>(), ok, "{done:?}");
    [client, server]
}

#[test]
fn robots_go_where_the_server_says() {
    let sandbox = Sandbox::new();
    let [client, server] = run(&sandbox, ITSELF, "--no_proxy");
    assert_eq!((client["alt_svc.switch.count"], client["alt_svc.broken.count"]), (4.0, 0.0));
    // Each robot learns it from its first replies.
    let [over2, over3] = [2, 3].map(|version| client[&format!("version.{version}.size.count")]);
    assert!(over3 > over2 && over2 >= 4.0, "{over2} and {over3}");
    assert_eq!(server["version.3.size.count"], over3);
}

#[test]
fn an_announcement_has_an_end() {
    let sandbox = Sandbox::new();
    let [client, _] = run(&sandbox, r#"http_versions = [ "2", "3" ]; alt_svc = 1sec;"#, "--no_proxy");
    // Replies over HTTP/3 renew it, so it does not end while the robot is busy.
    assert!(client["alt_svc.switch.count"] >= 4.0);
    let sandbox = Sandbox::new();
    let [client, _] = run(&sandbox, r#"http_versions = [ "2", "3" ]; alt_svc = 0sec;"#, "--no_proxy");
    assert_eq!((client["alt_svc.switch.count"], client["version.3.size.count"]), (0.0, 0.0));
}

#[test]
fn robots_return_from_where_nobody_answers() {
    let sandbox = Sandbox::new();
    // Nobody listens at the port.
    let [client, _] = run(&sandbox, ELSEWHERE, "--no_proxy");
    assert_eq!((client["alt_svc.switch.count"], client["alt_svc.broken.count"]), (4.0, 4.0));
    assert_eq!((client["errors.alt_svc_broken.count"], client["version.3.size.count"]), (4.0, 0.0));
}

#[test]
fn robots_of_http_1_1_go_there_too() {
    let sandbox = Sandbox::new();
    let [client, server] =
        run_workload(&sandbox, &workload("1.1", ITSELF, free_port(), free_port()), "--no_proxy");
    assert_eq!((client["alt_svc.switch.count"], client["alt_svc.broken.count"]), (4.0, 0.0));
    let [over1, over3] = ["1.1", "3"].map(|version| client[&format!("version.{version}.size.count")]);
    assert!(over3 > over1 && over1 >= 4.0, "{over1} and {over3}");
    assert_eq!(server["version.3.size.count"], over3);
}

#[test]
fn robots_do_not_wait_long_for_an_answer() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for version in ["1.1", "2"] {
        let sandbox = Sandbox::new();
        let text = workload(version, ELSEWHERE, free_port(), port).replace("= 4sec", "= 9sec");
        let [client, _] = run_workload(&sandbox, &text, "--no_proxy");
        // The first request there opens the connection, for which the others wait or which they open, too.
        assert_eq!((client["alt_svc.switch.count"], client["alt_svc.broken.count"]), (4.0, 4.0), "{version}");
        assert_eq!((client["errors.alt_svc_broken.count"], client["version.3.size.count"]), (4.0, 0.0));
        // The time that a request lost there is a part of its response time.
        let longest = client[&format!("version.{version}.rptm.max")];
        assert!(longest >= 5000.0, "HTTP/{version}: {longest} ms");
        let told = sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out;
        assert!(told.contains("over UDP in 5 s"), "{told}");
    }
}

#[test]
fn robots_return_from_where_their_origin_is_not_served() {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let port = free_port();
    sandbox.write(
        "Caddyfile",
        &format!(
            "{{\n admin off\n auto_https off\n}}\nhttps://:{port} {{\n tls certs/all.pem certs/all.pem\n respond \"\" 421\n}}\n"
        ),
    );
    let home = sandbox.path().display();
    let env = format!("HOME={home} XDG_DATA_HOME={home} XDG_CONFIG_HOME={home}");
    let _caddy =
        sandbox.start_program("env", &format!("{env} caddy run --config Caddyfile --adapter caddyfile"));
    wait_for_listener(port);
    let [client, _] = run_workload(&sandbox, &workload("2", ELSEWHERE, free_port(), port), "--no_proxy");
    let sent_back = client["streams.misdirected.count"];
    // The requests that a robot sends there before the first reply are sent back, too.
    assert!((4.0..40.0).contains(&sent_back), "{sent_back}");
    assert_eq!((client["alt_svc.switch.count"], client["version.3.size.count"]), (4.0, 0.0));
    assert_eq!(client["errors.misdirected_reply.count"], sent_back);
}

#[test]
fn caddy_announces_it_by_itself() {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let device =
        "--device caddy --device_opt http2=frontend --device_opt http3=on --device_opt cert=certs/all.pem";
    let options = format!("{device} --device_opt origin_tls=yes");
    let [client, server] = run(&sandbox, "", &options);
    assert_eq!((client["alt_svc.switch.count"], client["alt_svc.broken.count"]), (4.0, 0.0));
    let [over2, over3] = [2, 3].map(|version| client[&format!("version.{version}.size.count")]);
    assert!(over3 > over2 && over2 >= 4.0, "{over2} and {over3}");
    assert_eq!(server["version.3.size.count"], 0.0);
}
