//! Kerberos with a real KDC (MIT), which `devices/install.sh` installs: robots against Squid, servers against curl, and what robots say
//! when there are no tickets.

use std::collections::HashMap;
use std::process::Command;

use crate::kdc::{Kdc, REALM, wrap};
use crate::peers::squid_that_asks;
use crate::sandbox::{Done, Running, Sandbox, free_port};

/// What makes a robot use the KDC of the declaration `K`.
const ROBOT: &str = "credentials = [ \"joe:secret\" ]; kerberos_wrap = K;";

/// A workload of 5 robots that send 20 requests per second each. `before` declares what they use. Returns the port of the server.
fn write_workload(sandbox: &Sandbox, before: &str, robot: &str, server: &str) -> u16 {
    let port = free_port();
    sandbox.write(
        "kerberos.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%;
                 obj_life_cycle = {{ length = const(2year); with_lmt = 100%; expires = [ nmt + const(0sec) ]; }}; }};
             {before}
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{port}']; pconn_use_lmt = const(20); {server} }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 5]; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(20); {robot} }};
             Phase p = {{ name = \"p\"; goal.duration = 4sec; }};
             schedule(p);
             use(S, R);"
        ),
    );
    port
}

fn run(sandbox: &Sandbox, words: &str) -> (Done, HashMap<String, f64>) {
    let done = sandbox.polygraph(&format!("run --config kerberos.pg --preflight no {words}"));
    assert_ne!(done.code(), Some(2), "{done:?}");
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done, figures)
}

/// Kinds of errors with examples, as the log tells them.
fn told(sandbox: &Sandbox) -> String {
    sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out
}

/// All transactions are those of robots with tickets: one login and one ticket for each robot.
fn check_tickets(done: &Done, figures: &HashMap<String, f64>) {
    assert_eq!(figures["err_xact.count"], 0.0, "{done:?}");
    let ended = figures["ok_xact.count"];
    assert!(ended > 200.0 && figures["auth.ed.kerberos.rptm.count"] == ended, "{done:?}");
    assert_eq!((figures["kerberos.login.count"], figures["kerberos.ticket.count"]), (5.0, 5.0), "{done:?}");
    assert_eq!(figures["kerberos.failed.count"], 0.0, "{done:?}");
    // The first request of each robot has no ticket, and perhaps those that were on their way meanwhile.
    let steps = figures["auth.ing.kerberos.rptm.count"];
    assert!((5.0..50.0).contains(&steps), "{steps} steps: {done:?}");
    assert_eq!(figures["baseline.exchanges.max"], 2.0);
}

/// Squid that demands tickets for the service in this keytab.
fn squid(sandbox: &Sandbox, kdc: &Kdc, keytab: &str) -> (Running, u16) {
    let helper = format!(
        "/usr/bin/env KRB5_CONFIG={} /usr/lib/squid/negotiate_kerberos_auth -k {} -s GSS_C_NO_NAME -c {}",
        kdc.path("krb5.conf"),
        kdc.path(keytab),
        kdc.path("")
    );
    let lines = [
        format!("auth_param negotiate program {helper}"),
        "auth_param negotiate children 8 startup=2 idle=1".to_owned(),
        "auth_param negotiate keep_alive on".to_owned(),
    ];
    // Squid gives up its rights; the keytab must be readable for it.
    for name in [keytab, "krb5.conf"] {
        open_to_all(kdc.path(name).as_ref(), 0o644);
    }
    open_to_all(kdc.path("").as_ref(), 0o777);
    squid_that_asks(sandbox, &lines)
}

fn open_to_all(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn robots_show_tickets_to_squid() {
    for (servers, datagram) in [("servers", 4096), ("servers_tcp", 4096), ("servers", 200)] {
        let sandbox = Sandbox::new();
        let kdc = Kdc::start(&sandbox, datagram);
        let (_squid, port) = squid(&sandbox, &kdc, "web.keytab");
        write_workload(&sandbox, &kdc.wrap(servers, ""), ROBOT, "");
        let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
        check_tickets(&done, &figures);
        // What does not fit a datagram is sent again over TCP.
        assert_eq!(figures["kerberos.too_big.count"] > 0.0, datagram == 200, "{servers}: {done:?}");
    }
}

#[test]
fn tunnels_open_for_robots_with_tickets() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let (_squid, port) = squid(&sandbox, &kdc, "web.keytab");
    let before = format!("SslWrap W; {}", kdc.wrap("servers", ""));
    write_workload(&sandbox, &before, &format!("{ROBOT} ssl_wraps = [ W ];"), "ssl_wraps = [ W ];");
    let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
    assert_eq!(figures["err_xact.count"], 0.0, "{done:?}");
    let ended = figures["ok_xact.count"];
    assert!(ended > 200.0 && figures["tunneled.rptm.count"] == ended, "{done:?}");
    assert_eq!(figures["auth.ed.kerberos.rptm.count"], ended, "{done:?}");
    assert_eq!((figures["kerberos.login.count"], figures["kerberos.ticket.count"]), (5.0, 5.0), "{done:?}");
    // The set-up of connections is a part of their first transactions.
    assert!(figures["connect.rptm.count"] >= ended / 20.0, "{done:?}");
    assert_eq!(figures["baseline.exchanges.max"], 1.0);
}

#[test]
fn robots_show_tickets_to_servers_and_the_built_in_proxy() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let server = format!("auth_schemes = [ \"negotiate\" ]; keytab = \"{}\";", kdc.path("web.keytab"));
    for more in ["", "spnego_auth_ratio = 50%;"] {
        let sandbox = Sandbox::new();
        write_workload(&sandbox, &kdc.wrap("servers", ""), &format!("{ROBOT} {more}"), &server);
        let (done, figures) = run(&sandbox, "--no_proxy");
        check_tickets(&done, &figures);
    }
    let mut proxy = sandbox
        .start(&format!("proxy --listen 127.0.0.1:0 --auth negotiate --keytab {}", kdc.path("web.keytab")));
    let port = proxy.port("proxy at");
    write_workload(&sandbox, &kdc.wrap("servers_udp", ""), ROBOT, "");
    let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
    check_tickets(&done, &figures);
}

#[test]
fn curl_shows_tickets_to_servers() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let server = format!("auth_schemes = [ \"negotiate\" ]; keytab = \"{}\";", kdc.path("web.keytab"));
    let port = write_workload(&sandbox, &kdc.wrap("servers", ""), ROBOT, &server);
    let text = sandbox.read("kerberos.pg").replace("= 4sec", "= 10min");
    sandbox.write("kerberos.pg", &text);
    let mut server = sandbox.start("server --config kerberos.pg --ign_urls yes --accept_foreign_msgs yes");
    server.wait_for(&port.to_string());
    let env = [("KRB5_CONFIG", kdc.path("krb5.conf")), ("KRB5CCNAME", format!("FILE:{}", kdc.path("cc")))];
    let curl = || {
        let url = format!("http://127.0.0.1:{port}/any");
        let words = "-s -o /dev/null -w %{http_code} --max-time 60 --negotiate -u :";
        let output = Command::new("curl").args(words.split(' ')).arg(url).envs(env.clone()).output();
        String::from_utf8(output.expect("curl runs").stdout).unwrap()
    };
    assert_eq!(curl(), "401", "there is no ticket yet");
    let kinit = format!("echo secret | kinit joe@{REALM}");
    let output = Command::new("sh").args(["-c", &kinit]).envs(env.clone()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(curl(), "200");
}

#[test]
fn what_gives_no_ticket_is_named() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let server = format!("auth_schemes = [ \"negotiate\" ]; keytab = \"{}\";", kdc.path("web.keytab"));
    let of_kdc = kdc.wrap("servers", "");
    let elsewhere = wrap(free_port(), "servers", "");
    for (before, user, name, part) in [
        (of_kdc.as_str(), "joe:other", "kerberos_password", "KDC_ERR_PREAUTH_FAILED"),
        (of_kdc.as_str(), "nobody:secret", "kerberos_user", "login of nobody@BENCH.TEST"),
        (elsewhere.as_str(), "joe:secret", "kdc_all_failed", "over TCP"),
    ] {
        let sandbox = Sandbox::new();
        let robot = format!("credentials = [ \"{user}\" ]; kerberos_wrap = K;");
        write_workload(&sandbox, before, &robot, &server);
        let (done, figures) = run(&sandbox, "--no_proxy");
        assert!(figures[&format!("errors.{name}.count")] > 50.0, "{name}: {done:?}");
        assert!(
            figures["kerberos.failed.count"] > 0.0 && figures["ok_xact.count"] == 0.0,
            "{name}: {done:?}"
        );
        // On a busy host, the client may be a limit, too.
        assert!(done.out.contains("because the KDC gave no usable ticket"), "{name}: {done:?}");
        let told = told(&sandbox);
        assert!(told.contains(part), "{name}: {told}");
    }
    // A wrong password on purpose is refused as expected.
    let sandbox = Sandbox::new();
    write_workload(&sandbox, &of_kdc, &format!("{ROBOT} auth_error = 100%;"), &server);
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!(figures["err_xact.count"], 0.0, "{done:?}");
    assert!(figures["auth.ing.rptm.count"] > 50.0, "{done:?}");
}

#[test]
fn services_must_be_known_and_have_the_right_keys() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let keytab = format!("--auth negotiate --keytab {}", kdc.path("web.keytab"));
    let mut proxy = sandbox.start(&format!("proxy --listen 127.0.0.1:0 {keytab}"));
    let port = proxy.port("proxy at");
    for (service, name, reason) in [
        ("HTTP/unknown.test", "kerberos_service", "the KDC gave no usable ticket"),
        ("HTTP/changed.test", "kerberos_refused", "Kerberos: ticket refused"),
    ] {
        let sandbox = Sandbox::new();
        let wrap = kdc.wrap("servers", &format!("service = \"{service}\";"));
        write_workload(&sandbox, &wrap, ROBOT, "");
        let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
        assert!(figures[&format!("errors.{name}.count")] > 50.0, "{name}: {done:?}");
        assert!(done.out.contains(reason), "{name}: {done:?}");
        assert!(told(&sandbox).contains(service) || name == "kerberos_refused", "{name}: {}", told(&sandbox));
    }
}

#[test]
fn passwords_have_keys_of_each_kind() {
    let sandbox = Sandbox::new();
    let kdc = Kdc::start(&sandbox, 4096);
    let server = format!("auth_schemes = [ \"negotiate\" ]; keytab = \"{}\";", kdc.path("web.keytab"));
    let robot = "credentials = [ \"ann:other\" ]; kerberos_wrap = K;";
    write_workload(&sandbox, &kdc.wrap("servers", ""), robot, &server);
    let (done, figures) = run(&sandbox, "--no_proxy");
    check_tickets(&done, &figures);
}

#[test]
fn clocks_may_differ_a_little() {
    // KDC and service accept five minutes.
    for (clock, is_usable) in [("+2m", true), ("-2m", true), ("+1h", false), ("-1h", false)] {
        let sandbox = Sandbox::new();
        let kdc = Kdc::with_clock(&sandbox, clock);
        let server = format!("auth_schemes = [ \"negotiate\" ]; keytab = \"{}\";", kdc.path("web.keytab"));
        write_workload(&sandbox, &kdc.wrap("servers", ""), ROBOT, &server);
        let (done, figures) = run(&sandbox, "--no_proxy");
        if is_usable {
            check_tickets(&done, &figures);
            continue;
        }
        assert!(figures["errors.kerberos_clock.count"] > 50.0, "{clock}: {done:?}");
        assert!(figures["ok_xact.count"] == 0.0, "{clock}: {done:?}");
        assert!(done.out.contains("because the KDC gave no usable ticket"), "{clock}: {done:?}");
        assert!(told(&sandbox).contains("KRB_AP_ERR_SKEW"), "{clock}: {}", told(&sandbox));
    }
}
