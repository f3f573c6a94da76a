//! Robots behind SOCKS proxies: microsocks and Dante, which `devices/install.sh` installs.

use std::collections::HashMap;

use crate::peers::wait_for_listener;
use crate::sandbox::{Done, Running, Sandbox, free_port};

/// A workload of 10 robots that send 20 requests per second each for 4 seconds.
fn write_workload(sandbox: &Sandbox, robot: &str) -> u16 {
    let port = free_port();
    sandbox.write(
        "socks.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%;
                 obj_life_cycle = {{ length = const(2year); with_lmt = 100%; expires = [ nmt + const(0sec) ]; }}; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{port}']; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 10]; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(8); {robot} }};
             Phase p = {{ name = \"p\"; goal.duration = 4sec; }};
             schedule(p);
             use(S, R);"
        ),
    );
    port
}

fn run(sandbox: &Sandbox, words: &str) -> (Done, HashMap<String, f64>) {
    let done = sandbox.polygraph(&format!("run --config socks.pg {words}"));
    assert_ne!(done.code(), Some(2), "{done:?}");
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done, figures)
}

/// Kinds of errors and how many there were, as the log tells them.
fn errors(sandbox: &Sandbox) -> String {
    sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out
}

fn microsocks(sandbox: &Sandbox, options: &str) -> (Running, u16) {
    let port = free_port();
    let running = sandbox.start_program("microsocks", &format!("-i 127.0.0.1 -p {port} {options}"));
    wait_for_listener(port);
    (running, port)
}

/// Dante with this rule for connections.
fn dante(sandbox: &Sandbox, rule: &str) -> (Running, u16) {
    let port = free_port();
    let lines = [
        "logoutput: stderr",
        &format!("internal: 127.0.0.1 port = {port}"),
        "external: lo",
        "clientmethod: none",
        "socksmethod: none",
        "user.privileged: root",
        "user.unprivileged: nobody",
        "client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }",
        &format!("socks {rule} {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}"),
    ];
    sandbox.write("danted.conf", &(lines.join("\n") + "\n"));
    let running = sandbox.start_program("danted", "-f danted.conf -N 2");
    wait_for_listener(port);
    (running, port)
}

#[test]
fn robots_reach_servers_through_socks_proxies() {
    type Start = fn(&Sandbox) -> (Running, u16);
    let proxies: [(&str, Start); 2] =
        [("microsocks", |sandbox| microsocks(sandbox, "")), ("dante", |sandbox| dante(sandbox, "pass"))];
    for (name, start) in proxies {
        let sandbox = Sandbox::new();
        let (_proxy, port) = start(&sandbox);
        write_workload(&sandbox, "");
        let (done, figures) = run(&sandbox, &format!("--socks_proxy 127.0.0.1:{port}"));
        assert_eq!(figures["errors.count"], 0.0, "{name}: {done:?}");
        assert!(matches!(done.verdict(), "VALID" | "INVALID"), "{name}: {done:?}");
        assert!(done.out.contains("predicted   (no device)"), "SOCKS proxies store nothing: {done:?}");
        assert!(!done.out.contains("missed hits"), "{done:?}");
        let ended = figures["ok_xact.count"];
        assert!(ended > 400.0 && figures["socks.size.count"] == ended, "{name}: {done:?}");
        // At most 8 requests on each connection, and each connection is opened through the proxy.
        assert!(figures["socks.open.count"] >= ended / 8.0, "{name}: {done:?}");
        assert_eq!((figures["socks.hit.size.count"], figures["socks.refused.count"]), (0.0, 0.0), "{name}");
    }
}

#[test]
fn socks_proxies_lead_to_http_proxies() {
    let sandbox = Sandbox::new();
    let (_proxy, socks) = microsocks(&sandbox, "");
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let port = proxy.port("proxy at");
    write_workload(&sandbox, "");
    let words = format!("--proxy 127.0.0.1:{port} --socks_proxy 127.0.0.1:{socks}");
    let (done, figures) = run(&sandbox, &words);
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    let hits = figures["hit.rptm.count"];
    assert!(hits > 50.0 && figures["socks.hit.size.count"] == hits, "{done:?}");
}

#[test]
fn socks_proxies_resolve_names() {
    type Start = fn(&Sandbox) -> (Running, u16);
    let proxies: [(&str, Start); 2] =
        [("microsocks", |sandbox| microsocks(sandbox, "")), ("dante", |sandbox| dante(sandbox, "pass"))];
    for (name, start) in proxies {
        let sandbox = Sandbox::new();
        let (_proxy, socks) = start(&sandbox);
        let port =
            write_workload(&sandbox, &format!("socks_proxies = ['127.0.0.1:{socks}']; socks_names = true;"));
        let map = format!("AddrMap M = {{ names = [ 'localhost:{port}' ]; addresses = S.addresses; }};");
        let text = sandbox
            .read("socks.pg")
            .replace("use(S, R);", &format!("{map} use(M); R.origins = M.names; use(S, R);"));
        sandbox.write("socks.pg", &text);
        let (done, figures) = run(&sandbox, "--no_proxy --preflight no");
        assert_eq!(figures["err_xact.count"], 0.0, "{name}: {done:?}");
        let ended = figures["ok_xact.count"];
        assert!(ended > 400.0 && figures["socks.size.count"] == ended, "{name}: {done:?}");
        assert!(figures["socks.open.count"] >= ended / 8.0, "{name}: {done:?}");
        // Nobody has this name.
        sandbox.write("socks.pg", &text.replace("localhost:", "unknown.invalid:"));
        let (figures, told) = {
            let runs = "--no_proxy --preflight no --out unknown";
            sandbox.polygraph(&format!("run --config socks.pg {runs}"));
            let log = sandbox.path().join("unknown/client.log");
            (sandbox.lx("", &log).0, sandbox.polygraph(&format!("lr {}", log.display())).out)
        };
        assert!(figures["errors.count"] > 5.0 && figures["ok_xact.count"] == 0.0, "{name}: {told}");
        assert!(told.contains("unknown.invalid"), "{name}: {told}");
    }
}

#[test]
fn socks_proxies_resolve_the_names_of_http_proxies() {
    let sandbox = Sandbox::new();
    let (mut socks, at) = microsocks(&sandbox, "");
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let port = proxy.port("proxy at");
    write_workload(&sandbox, "");
    let words = format!("--proxy localhost:{port} --socks_proxy 127.0.0.1:{at} --socks_names yes");
    let (done, figures) = run(&sandbox, &words);
    assert_eq!(figures["err_xact.count"], 0.0, "{done:?}");
    assert!(figures["hit.rptm.count"] > 50.0, "{done:?}");
    socks.wait_for(&format!("connected to localhost:{port}"));
}

#[test]
fn a_share_of_the_robots_uses_socks_proxies() {
    let sandbox = Sandbox::new();
    let (_proxy, port) = microsocks(&sandbox, "");
    write_workload(&sandbox, &format!("socks_proxies = ['127.0.0.1:{port}']; socks_prob = 50%;"));
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    let (all, some) = (figures["ok_xact.count"], figures["socks.size.count"]);
    // Robots draw once, and all of them send as many requests: a whole number of tenths.
    assert!(some > all * 0.08 && some < all * 0.92, "{some} of {all}: {done:?}");
}

#[test]
fn socks_proxies_ask_for_passwords() {
    let with = |robot: &str| {
        let sandbox = Sandbox::new();
        let (_proxy, port) = microsocks(&sandbox, "-u joe -P secret");
        write_workload(&sandbox, &format!("socks_proxies = ['127.0.0.1:{port}']; {robot}"));
        let (done, figures) = run(&sandbox, "--no_proxy --preflight no");
        let told = errors(&sandbox);
        (done, figures, told)
    };
    let (done, figures, _) = with("credentials = [ \"joe:secret\" ];");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    assert_eq!(figures["auth.ed.socks.userpass.rptm.count"], figures["ok_xact.count"], "{done:?}");
    assert_eq!(figures["socks.password.count"], figures["socks.open.count"], "{done:?}");
    for (robot, name, verdict) in [
        ("credentials = [ \"joe:other\" ];", "SOCKS: name and password refused", "FAILED"),
        ("", "SOCKS: no method accepted", "INVALID"),
    ] {
        let (done, figures, told) = with(robot);
        assert!(figures["errors.count"] > 50.0 && figures["ok_xact.count"] == 0.0, "{name}: {done:?}");
        assert_eq!(done.verdict(), verdict, "{done:?}");
        assert!(told.contains(name), "{name}: {told}");
    }
    let (done, figures, _) = with("credentials = [ \"joe:secret\" ]; auth_error = 100%;");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    assert!(figures["auth.ing.rptm.count"] > 50.0, "{done:?}");
}

#[test]
fn a_refusing_or_dead_socks_proxy_is_the_one_to_blame() {
    let sandbox = Sandbox::new();
    let (_proxy, port) = dante(&sandbox, "block");
    write_workload(&sandbox, "");
    let (done, figures) = run(&sandbox, &format!("--socks_proxy 127.0.0.1:{port} --preflight no"));
    assert!(figures["socks.refused.count"] > 50.0, "{done:?}");
    assert_eq!(done.verdict(), "FAILED", "{done:?}");
    let told = errors(&sandbox);
    assert!(told.contains("SOCKS: connection not opened") && told.contains("reply code 2"), "{told}");

    let dead = free_port();
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "");
    let (done, _) = run(&sandbox, &format!("--socks_proxy 127.0.0.1:{dead} --preflight no"));
    assert_eq!(done.verdict(), "FAILED", "{done:?}");
    // An HTTP proxy is none: it waits for the end of a head that never comes.
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let port = proxy.port("proxy at");
    write_workload(&sandbox, "xact_lifetime = const(500ms);");
    let (done, _) = run(&sandbox, &format!("--socks_proxy 127.0.0.1:{port} --preflight no"));
    assert_eq!(done.verdict(), "FAILED", "{done:?}");
    let told = errors(&sandbox);
    assert!(told.contains("while waiting for the SOCKS proxy"), "{told}");
}

#[test]
fn scripts_see_transactions_through_socks_proxies() {
    let sandbox = Sandbox::new();
    let (_proxy, port) = microsocks(&sandbox, "");
    write_workload(&sandbox, &format!("socks_proxies = ['127.0.0.1:{port}']; socks_prob = 50%;"));
    let script = "script = { every Often do { StatSample s = currentSample();
        print(\"socks \", s.socks.xact.miss.rptm.count, \" of \", s.ok_xact.count, \" failed \", s.socks.err_xact.count); } };";
    let text = sandbox.read("socks.pg");
    let text = text.replace("= 4sec; };", &format!("= 4sec; {script} }};"));
    sandbox.write("socks.pg", &format!("Goal Often = {{ duration = 1sec; }};\n{text}"));
    let (done, figures) = run(&sandbox, "--no_proxy --preflight no");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}");
    let told = errors(&sandbox);
    let samples: Vec<[f64; 3]> = told
        .lines()
        .filter_map(|line| {
            let numbers: Vec<f64> =
                line.split_once("socks ")?.1.split(' ').filter_map(|word| word.parse().ok()).collect();
            numbers.try_into().ok()
        })
        .collect();
    assert!(samples.len() >= 2, "{told}");
    let [through, all, failed] =
        samples.iter().fold([0.0; 3], |sum, one| [0, 1, 2].map(|at| sum[at] + one[at]));
    let share = figures["socks.size.count"] / figures["ok_xact.count"];
    assert!(through > 100.0 && all > through && failed == 0.0, "{samples:?}");
    // The samples leave out the end of the phase.
    assert!((through / all - share).abs() < 0.15, "{through} of {all}, share {share}: {samples:?}");
}
