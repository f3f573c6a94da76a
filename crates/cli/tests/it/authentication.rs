//! Schemes that authenticate connections: NTLM and Negotiate, of robots, of the built-in proxy and of servers, with curl, Squid and
//! pyspnego as independent peers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

use crate::peers::{squid_that_asks, wait_for_listener};
use crate::sandbox::{Done, Running, Sandbox, free_port};

const USERS: &str = "credentials = [ \"DOM\\\\joe:secret\" ];";

/// A workload of 5 robots that send 20 requests per second each. Returns the port of the server.
fn write_workload(sandbox: &Sandbox, robot: &str, server: &str) -> u16 {
    let port = free_port();
    sandbox.write(
        "auth.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%; }};
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
    let done = sandbox.polygraph(&format!("run --config auth.pg {words}"));
    assert_ne!(done.code(), Some(2), "{done:?}");
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done, figures)
}

/// All transactions are those of known users, whose connections a scheme authenticates.
fn check_handshakes(done: &Done, figures: &HashMap<String, f64>, scheme: &str) {
    assert_eq!(figures["errors.count"], 0.0, "{scheme}: {done:?}");
    let of = |name: &str| figures[&format!("{name}.{scheme}.rptm.count")];
    // Each connection of 20 requests has a handshake, in which the first message is refused with a challenge. The first request
    // of a robot has no credentials at all.
    let (steps, through, ended) = (of("auth.ing"), of("auth.ed"), figures["ok_xact.count"]);
    assert!(ended > 200.0 && through == ended, "{scheme}: {through} of {ended}: {done:?}");
    assert!(steps > ended / 40.0 && steps < ended * 2.0, "{scheme}: {steps} steps: {done:?}");
    assert!(of("compound.auth") > 10.0 && of("compound.auth") <= steps, "{scheme}: {done:?}");
    // No credentials; the first message; the last message.
    assert_eq!(figures["baseline.exchanges.max"], 3.0, "{scheme}");
}

fn proxy(sandbox: &Sandbox, options: &str) -> (Running, u16) {
    let mut proxy = sandbox.start(&format!("proxy --listen 127.0.0.1:0 {options}"));
    let port = proxy.port("proxy at");
    (proxy, port)
}

#[test]
fn robots_shake_hands_with_a_proxy() {
    for (scheme, more) in [("ntlm", ""), ("negotiate", ""), ("negotiate", "spnego_auth_ratio = 50%;")] {
        let sandbox = Sandbox::new();
        let (_proxy, port) = proxy(&sandbox, &format!("--auth {scheme} --user joe:secret"));
        write_workload(&sandbox, &format!("{USERS} {more}"), "");
        let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
        check_handshakes(&done, &figures, scheme);
    }
}

#[test]
fn robots_shake_hands_with_servers() {
    for scheme in ["ntlm", "negotiate"] {
        let sandbox = Sandbox::new();
        write_workload(&sandbox, USERS, &format!("auth_schemes = [ \"{scheme}\" ];"));
        let (done, figures) = run(&sandbox, "--no_proxy");
        check_handshakes(&done, &figures, scheme);
        let (server, _) = sandbox.lx("", sandbox.result().join("server.log"));
        assert_eq!(server["errors.count"], 0.0, "{done:?}");
        assert!(server["rep_status_code.401.size.count"] >= figures["auth.ing.rptm.count"], "{done:?}");
    }
}

#[test]
fn servers_demand_each_scheme() {
    for (scheme, family) in [("basic", "basic"), ("digest", "digest"), ("digest-sha256", "digest")] {
        let sandbox = Sandbox::new();
        write_workload(&sandbox, USERS, &format!("auth_schemes = [ \"{scheme}\" ];"));
        let (done, figures) = run(&sandbox, "--no_proxy");
        assert_eq!(figures["errors.count"], 0.0, "{scheme}: {done:?}");
        let through = figures[&format!("auth.ed.{family}.rptm.count")];
        assert!(through > 200.0 && through == figures["ok_xact.count"], "{scheme}: {done:?}");
    }
}

#[test]
fn wrong_passwords_fail_as_expected() {
    for (robot, server, words) in [
        (USERS, "auth_schemes = [ \"ntlm\" ];", "--no_proxy"),
        (USERS, "auth_schemes = [ \"negotiate\" ];", "--no_proxy"),
    ] {
        let sandbox = Sandbox::new();
        write_workload(&sandbox, &format!("{robot} auth_error = 100%;"), server);
        let (done, figures) = run(&sandbox, words);
        assert_eq!(figures["errors.count"], 0.0, "{server}: {done:?}");
        assert!(figures["auth.ing.rptm.count"] > 100.0, "{server}: {done:?}");
        assert_eq!(figures["basic.rptm.count"], 0.0, "{server}: {done:?}");
    }
}

/// What curl prints: the status of the last reply, and the number of requests.
fn curl(options: &str, port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}/any");
    let words = "-s -o /dev/null -w %{http_code}/%{num_connects} --max-time 60";
    let output = Command::new("curl").args(words.split(' ')).args(options.split(' ')).arg(url).output();
    String::from_utf8(output.expect("curl runs").stdout).unwrap()
}

/// A server that demands these schemes.
fn server(sandbox: &Sandbox, schemes: &str) -> (Running, u16) {
    let port = write_workload(sandbox, USERS, &format!("auth_schemes = [ {schemes} ];"));
    let text = sandbox.read("auth.pg").replace("= 4sec", "= 10min");
    sandbox.write("auth.pg", &text);
    let mut server = sandbox.start("server --config auth.pg --ign_urls yes --accept_foreign_msgs yes");
    server.wait_for(&port.to_string());
    (server, port)
}

#[test]
fn curl_shakes_hands_with_the_proxy_and_with_servers() {
    let sandbox = Sandbox::new();
    let (_server, port) = server(&sandbox, "\"ntlm\", \"basic\"");
    assert_eq!(curl("--ntlm -u DOM\\joe:secret", port), "200/1");
    assert_eq!(curl("--ntlm -u DOM\\joe:other", port), "401/1");
    assert_eq!(curl("--anyauth -u DOM\\joe:secret", port), "200/1");
    assert_eq!(curl("--basic -u DOM\\joe:secret", port), "200/1");
    assert_eq!(curl("-H X-None:1", port), "401/1");
    let (_proxy, through) = proxy(&sandbox, "--auth ntlm,digest --user joe:secret");
    let via = format!("-x 127.0.0.1:{through} --basic -u DOM\\joe:secret --proxy-user joe:");
    assert_eq!(curl(&format!("{via}secret --proxy-ntlm"), port), "200/1");
    assert_eq!(curl(&format!("{via}secret --proxy-digest"), port), "200/1");
    assert_eq!(curl(&format!("{via}other --proxy-ntlm"), port), "407/1");
}

/// Python with the packages of the tests, which `make python` installs.
fn python() -> PathBuf {
    let target = option_env!("CARGO_TARGET_TMPDIR").map_or_else(|| "target/tmp".into(), PathBuf::from);
    target.with_file_name("python").join("bin/python")
}

fn peer() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/ntlm.py")
}

fn python_get(words: &[&str], port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}/any");
    let output =
        Command::new(python()).args([peer(), "get", &url]).args(words).output().expect("make python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn another_implementation_shakes_hands_with_the_proxy_and_with_servers() {
    let sandbox = Sandbox::new();
    let (_server, port) = server(&sandbox, "\"ntlm\", \"negotiate\"");
    for scheme in ["ntlm", "negotiate"] {
        // Without credentials, the two messages, and again on the same connection.
        assert_eq!(python_get(&[scheme, "DOM\\joe", "secret"], port), "401 401 200 200", "{scheme}");
        assert_eq!(python_get(&[scheme, "DOM\\joe", "other"], port), "401 401 401 401", "{scheme}");
    }
    let (_open, open_port) = server(&Sandbox::new(), "");
    let (_proxy, through) = proxy(&sandbox, "--auth ntlm,negotiate --user DOM\\joe:secret");
    let through = format!("127.0.0.1:{through}");
    for scheme in ["ntlm", "negotiate"] {
        let get = |password| python_get(&[scheme, "DOM\\joe", password, &through], open_port);
        assert_eq!(get("secret"), "407 407 200 200", "{scheme}");
        assert_eq!(get("other"), "407 407 407 407", "{scheme}");
    }
}

/// Squid with a helper that verifies the users of the robots, and what does the work of the helper.
fn squid(sandbox: &Sandbox, scheme: &str) -> ([Running; 2], u16) {
    let behind = free_port();
    sandbox.write("users", "DOM:joe:secret\n");
    let words = format!("{} serve {behind} {scheme} users", peer());
    let verifier = sandbox.start_program(python().to_str().expect("a path in UTF-8"), &words);
    wait_for_listener(behind);
    let helper = peer().replace("ntlm.py", "helper.sh");
    let lines = [
        format!("auth_param {scheme} program /bin/bash {helper} {behind}"),
        format!("auth_param {scheme} children 8 startup=2 idle=1"),
        format!("auth_param {scheme} keep_alive on"),
    ];
    let (squid, port) = squid_that_asks(sandbox, &lines);
    ([verifier, squid], port)
}

#[test]
fn robots_shake_hands_with_squid() {
    for scheme in ["ntlm", "negotiate"] {
        let sandbox = Sandbox::new();
        let (_squid, port) = squid(&sandbox, scheme);
        write_workload(&sandbox, USERS, "");
        let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
        check_handshakes(&done, &figures, scheme);
    }
}

/// Squid with one of its own helpers. Those for Basic and Digest read the users of a file.
pub fn squid_with_users(sandbox: &Sandbox, scheme: &str) -> (Running, u16) {
    use std::os::unix::fs::PermissionsExt as _;
    let (helper, users) = match scheme {
        "basic" => {
            let made =
                Command::new("openssl").args(["passwd", "-apr1", "secret"]).output().expect("openssl runs");
            ("basic_ncsa_auth", format!("joe:{}", String::from_utf8(made.stdout).unwrap()))
        }
        "digest" => ("digest_file_auth", "joe:secret\n".to_owned()),
        _ => {
            let lines = ["program /usr/lib/squid/ntlm_fake_auth", "children 4 startup=1 idle=1"];
            return squid_that_asks(sandbox, &lines.map(|line| format!("auth_param ntlm {line}")));
        }
    };
    sandbox.write("users", &users);
    // Squid gives up its rights.
    for (name, mode) in [(".", 0o755), ("users", 0o644)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(sandbox.path().join(name), permissions).unwrap();
    }
    let users = sandbox.path().join("users");
    let lines = [
        format!("auth_param {scheme} program /usr/lib/squid/{helper} {}", users.display()),
        format!("auth_param {scheme} children 4 startup=1 idle=1"),
        format!("auth_param {scheme} realm bench"),
    ];
    squid_that_asks(sandbox, &lines)
}

/// A workload with TLS, for robots that need a tunnel.
fn write_tunneled(sandbox: &Sandbox, robot: &str) {
    write_workload(sandbox, &format!("{robot} ssl_wraps = [ W ];"), "ssl_wraps = [ W ];");
    sandbox.write("auth.pg", &format!("SslWrap W;\n{}", sandbox.read("auth.pg")));
}

/// All transactions went through tunnels that a proxy opened for known users.
fn check_tunnels(done: &Done, figures: &HashMap<String, f64>, scheme: &str) {
    assert_eq!(figures["err_xact.count"], 0.0, "{scheme}: {done:?}");
    let ended = figures["ok_xact.count"];
    assert!(ended > 200.0 && figures["tunneled.rptm.count"] == ended, "{scheme}: {done:?}");
    assert_eq!(figures[&format!("auth.ed.{scheme}.rptm.count")], ended, "{scheme}: {done:?}");
    assert!(figures[&format!("auth.ing.{scheme}.rptm.count")] >= 5.0, "{scheme}: {done:?}");
    assert!(figures["connect.rptm.count"] >= ended / 20.0, "{scheme}: {done:?}");
}

#[test]
fn tunnels_open_for_known_robots() {
    let joe = "credentials = [ \"joe:secret\" ];";
    // The helper for NTLM accepts any password. Its challenge has no list of names, and a domain at a place outside of the message.
    for scheme in ["basic", "digest", "ntlm"] {
        let sandbox = Sandbox::new();
        let (_squid, port) = squid_with_users(&sandbox, scheme);
        write_tunneled(&sandbox, joe);
        let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
        check_tunnels(&done, &figures, scheme);
    }
    let sandbox = Sandbox::new();
    let (_squid, port) = squid(&sandbox, "ntlm");
    write_tunneled(&sandbox, USERS);
    let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
    check_tunnels(&done, &figures, "ntlm");
    for scheme in ["negotiate", "digest-sha256"] {
        let sandbox = Sandbox::new();
        let (_proxy, port) = proxy(&sandbox, &format!("--auth {scheme} --user joe:secret"));
        write_tunneled(&sandbox, joe);
        let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
        check_tunnels(&done, &figures, scheme.trim_end_matches("-sha256"));
    }
}

#[test]
fn tunnels_stay_closed_for_others() {
    for (robot, name) in [("", "proxy_credentials"), ("credentials = [ \"joe:other\" ];", "proxy_auth_again")]
    {
        let sandbox = Sandbox::new();
        let (_proxy, port) = proxy(&sandbox, "--auth ntlm,basic --user joe:secret");
        write_tunneled(&sandbox, robot);
        let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
        assert!(figures[&format!("errors.{name}.count")] > 50.0, "{name}: {done:?}");
        assert_eq!(figures["ok_xact.count"], 0.0, "{name}: {done:?}");
    }
    let sandbox = Sandbox::new();
    let (_proxy, port) = proxy(&sandbox, "--auth basic --user joe:secret");
    write_tunneled(&sandbox, "credentials = [ \"joe:secret\" ]; auth_error = 100%;");
    let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
    assert_eq!(figures["err_xact.count"], 0.0, "{done:?}");
    assert!(figures["auth.ing.rptm.count"] > 50.0 && figures["basic.rptm.count"] == 0.0, "{done:?}");
}
