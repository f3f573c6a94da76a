//! Servers that show bad certificates on purpose: devices and robots that refuse them, and those that do not.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sandbox::{Done, Sandbox, free_port};

/// A workload with a server for each of these faults, and one without if `with_good`. The servers are ports of `localhost`, because Squid
/// takes an address in a tunnel for a name. Robots trust the authority in `certs` if they `check`.
pub fn workload(faults: &[&str], with_good: bool, check: bool) -> String {
    let root = if check { "root_certificate = \"certs/ca.crt\";" } else { "" };
    let mut wraps = format!(
        "SslWrap Robots = {{ {root} }};
         SslWrap Wrap = {{ root_certificate = \"certs/ca.pem\"; key_types = [ \"ECDSA-P256\" ]; }};\n"
    );
    let content =
        |name: &str| format!("Content {name} = {{ kind = \"{name}\"; size = exp(4KB); cachable = 0%; }};\n");
    let mut text = content("B");
    let mut names = Vec::new();
    let mut server = |name: &str, content: &str, wrap: &str| {
        let port = free_port();
        names.push(format!("Map{name}.names"));
        text += &format!(
            "Server {name} = {{ kind = \"{name}\"; contents = [ {content} ]; direct_access = contents; addresses = [ '127.0.0.1:{port}' ];
                 pconn_use_lmt = const(5); ssl_wraps = [ {wrap} ]; }};
             AddrMap Map{name} = {{ names = [ 'localhost:{port}' ]; addresses = {name}.addresses; }};
             use({name}, Map{name});\n"
        );
    };
    if with_good {
        wraps += &content("C");
        server("Good", "C", "Wrap");
    }
    for (number, fault) in faults.iter().enumerate() {
        let wrap = format!("Wrap{number}");
        server(&format!("Bad{number}"), "B", &wrap);
        wraps += &format!("SslWrap {wrap} = Wrap; {wrap}.certificate_fault = \"{fault}\";\n");
    }
    wraps
        + &text
        + &format!(
        "Robot R = {{ origins = [ {} ]; addresses = [ '127.0.0.1' ** 5 ]; req_rate = 20/sec; recurrence = 50%;
             pop_model.pop_distr = popUnif(); pconn_use_lmt = const(5); ssl_wraps = [ Robots ]; }};
         Phase run = {{ name = \"run\"; goal.duration = 4sec; primary = true; }};
         schedule(run);
         use(R);\n",
        names.join(", ")
    )
}

/// Makes an authority and a certificate for `localhost` in `certs`.
pub fn make_certificates(sandbox: &Sandbox) {
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name localhost");
    assert_eq!(made.code(), Some(0), "{made:?}");
}

/// Runs a workload, whose verdict is not yet known.
pub fn start(sandbox: &Sandbox, text: &str, words: &str) -> Done {
    make_certificates(sandbox);
    sandbox.write("bad.pg", text);
    sandbox.polygraph(&format!("run --config bad.pg --loops 1 {words}"))
}

/// All faults.
pub const FAULTS: [&str; 5] = ["expired", "not_yet_valid", "wrong_name", "unknown_authority", "self_signed"];

fn run(text: &str, words: &str) -> (Sandbox, Done, [HashMap<String, f64>; 2]) {
    let sandbox = Sandbox::new();
    let done = start(&sandbox, text, words);
    assert_ne!(done.code(), Some(2), "{done:?}");
    let of = |side: &str| sandbox.lx("", sandbox.result().join(format!("{side}.log"))).0;
    let figures = [of("client"), of("server")];
    (sandbox, done, figures)
}

#[test]
fn squid_refuses_what_it_is_told_to_check() {
    let device = "--device squid-bump --device_opt ca=certs/ca.pem --trust_ca certs/ca.crt";
    let text = workload(&FAULTS, true, false);
    let (_, done, [client, server]) =
        run(&text, &format!("{device} --device_opt origin_ca=certs/ca.crt --verb_lvl 2"));
    let refused = client["ssl.refusal.rptm.count"];
    assert_eq!(client["errors.count"], 0.0, "{done:?}");
    // Five of six servers have a bad certificate.
    assert!(refused > 150.0 && refused < client["ok_xact.count"], "{refused}: {done:?}");
    assert_eq!(client["baseline.rptm.count"] + refused, client["ok_xact.count"], "{done:?}");
    assert!(client["verified.count"] > 10.0, "{done:?}");
    assert!(server["ssl.refusal.handshakes.count"] > 10.0, "{server:?}");
    assert_eq!(server["errors.tls_refused.count"], 0.0, "{server:?}");
    assert!(done.out.contains("bad ones refused"), "{done:?}");
    assert!(done.out.contains("1; 5 with bad certificates"), "they get nothing, as they must: {done:?}");
    assert!(done.out.contains("no prediction: simulations have no TLS"), "{done:?}");
    let (_, done, [client, _]) = run(&text, &format!("{device} --verb_lvl 2"));
    assert_eq!((done.code(), client["ssl.refusal.rptm.count"]), (Some(1), 0.0), "{done:?}");
    assert!(client["errors.bad_certificate_accepted.count"] > 150.0, "{done:?}");
    for fault in FAULTS {
        assert!(done.out.contains(&format!("{fault} (")), "{fault}: {done:?}");
    }
}

#[test]
fn robots_without_a_device_in_between_refuse_the_certificates_themselves() {
    let (_, done, [client, server]) = run(&workload(&FAULTS, true, true), "--no_proxy");
    assert_eq!(client["errors.count"], 0.0, "{done:?}");
    let refused = client["ssl.refusal.rptm.count"];
    assert!(refused > 150.0 && client["verified.count"] > 10.0, "{refused}: {done:?}");
    assert_eq!(server["ssl.refusal.handshakes.count"], refused, "{done:?}");
    assert_eq!(server["errors.count"], 0.0, "{done:?}");
}

/// A gateway that answers requests by their number, and passes none of them on. Returns its port.
pub fn gateway(reply_to: fn(usize) -> String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let requests = Arc::clone(&requests);
            std::thread::spawn(move || answer_all(client, &requests, reply_to));
        }
    });
    port
}

fn answer_all(mut client: TcpStream, requests: &AtomicUsize, reply_to: fn(usize) -> String) {
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            let reply = reply_to(requests.fetch_add(1, Ordering::Relaxed));
            if client.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// A page of a gateway that says why there is no content.
pub fn block_page(_: usize) -> String {
    let text = "<html><title>Blocked</title><p>The certificate of this site is bad, so you do not see it.</p></html>";
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// A redirect to such a page.
pub fn block_redirect(_: usize) -> String {
    "HTTP/1.1 302 Found\r\nLocation: http://gateway.test/blocked\r\nContent-Length: 0\r\n\r\n".to_owned()
}

/// Such pages, but for every twentieth request, whose reply has a mark of the servers.
pub fn block_page_mostly(number: usize) -> String {
    let page = block_page(number);
    match number % 20 {
        19 => page.replacen("\r\n", "\r\nX-Target: localhost:1\r\n", 1),
        _ => page,
    }
}

/// The options of a run through such a gateway, which is a surrogate.
pub fn through(gateway: u16) -> String {
    format!("--surrogate 127.0.0.1:{gateway} --device_tls no")
}

#[test]
fn pages_and_redirects_of_a_gateway_are_refusals() {
    for reply_to in [block_page, block_redirect] {
        let words = through(gateway(reply_to));
        let (_, done, [client, server]) = run(&workload(&["expired"], false, false), &words);
        assert_eq!(client["errors.count"], 0.0, "{done:?}");
        assert_ne!(done.verdict(), "FAILED", "{done:?}");
        let refused = client["ssl.refusal.rptm.count"];
        assert!(refused > 100.0 && client["ssl.refusal.page.count"] == refused, "{refused}: {done:?}");
        assert!(done.out.contains("by a page or a redirect instead of an error"), "{done:?}");
        assert_eq!(server["xact.started"], 0.0, "{done:?}");
    }
}

/// The check before a test is content with one refusal: this proxy opens no tunnel, and answers later questions with nonsense.
#[test]
fn one_refusal_is_enough_before_the_test() {
    let proxy = gateway(|number| match number {
        0 => "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "SSH-2.0-OpenSSH_9.6\r\n".to_owned(),
    });
    let text = workload(&["expired"], false, true);
    let (_, done, [client, _]) = run(&text, &format!("--proxy 127.0.0.1:{proxy}"));
    assert!(client["ssl.refusal.rptm.count"] > 100.0, "{done:?}");
}

#[test]
fn what_nobody_could_notice_is_refused_at_the_start() {
    let sandbox = Sandbox::new();
    let done = start(&sandbox, &workload(&["expired"], true, false), "--no_proxy");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(format!("{done:?}").contains("the robots Robot check no certificates"), "{done:?}");
    // The device may ask either of two servers with the same contents.
    let same = workload(&["expired"], true, true).replace("contents = [ B ]", "contents = [ C ]");
    let done = start(&sandbox, &same, "--device nginx --device_opt origin_tls=yes --device_tls no");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(format!("{done:?}").contains("give them different contents"), "{done:?}");
}
