//! The look before the test: what is not there or does not answer is said at once, with what to do, and nobody counts the
//! request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use crate::peers::wait_for_listener;
use crate::sandbox::{Done, Sandbox, free_port};

/// Somebody who reads a request and answers with this, whatever it is; `None`: never.
fn stranger(answer: Option<&'static str>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            match answer {
                Some(text) => drop(stream.write_all(text.as_bytes())),
                None => kept.push(stream),
            }
        }
    });
    port
}

#[track_caller]
fn refused(sandbox: &Sandbox, done: &Done, code: i32, texts: &[&str]) {
    assert_eq!(done.code(), Some(code), "{done:?}");
    let said = if code == 1 { &done.out } else { &done.err };
    for text in texts {
        assert!(said.contains(text), "{text}: {done:?}");
    }
    assert!(!sandbox.path().join("runs").exists(), "a test that did not begin has no result directory");
}

#[test]
fn nobody_there() {
    let sandbox = Sandbox::new();
    let port = free_port();
    for words in [
        format!("run --proxy 127.0.0.1:{port} --goal 100s"),
        format!("run --proxy http://127.0.0.1:{port}/ --goal 100s"),
        format!("client --proxy 127.0.0.1:{port} --goal 100s --log c.log"),
        format!("client --origin 127.0.0.1:{port} --goal 100s --log c.log"),
    ] {
        let done = sandbox.polygraph(&words);
        refused(
            &sandbox,
            &done,
            3,
            &["nothing listens at 127.0.0.1", "connection refused", "is this its port?"],
        );
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
        assert!(!sandbox.path().join("c.log").exists());
    }
    let done = sandbox.polygraph("run --proxy no-such-host.invalid:3128");
    refused(&sandbox, &done, 3, &["cannot resolve no-such-host.invalid"]);
    for (scheme, text) in [("https", "plain HTTP"), ("socks5", "socks5")] {
        let done = sandbox.polygraph(&format!("run --proxy {scheme}://127.0.0.1:3128"));
        refused(&sandbox, &done, 2, &[text]);
    }
}

#[test]
fn somebody_who_does_not_do_the_work_of_a_device() {
    let sandbox = Sandbox::new();
    for (answer, texts) in [
        (None, ["did not answer", "did not arrive at the origin server"]),
        (Some(""), ["closes them without answering", "did not arrive"]),
        (Some("SSH-2.0-OpenSSH_9.6\r\n"), ["does not answer in HTTP/1", "SSH server"]),
        (
            Some("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            ["answered 400", "use --device_tls yes"],
        ),
        (Some("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), ["answered 403", "access rule"]),
        (
            Some("HTTP/1.1 502 Bad Gateway\r\nServer: box\r\nContent-Length: 0\r\n\r\n"),
            ["(box) answered 502", "cannot reach"],
        ),
        (
            Some("HTTP/1.1 302 Found\r\nLocation: http://portal/\r\nContent-Length: 0\r\n\r\n"),
            ["302", "http://portal/"],
        ),
        (Some("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), ["answered 200", "passing it on"]),
        (Some("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"), ["407", "credentials"]),
    ] {
        let port = stranger(answer);
        let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} --preflight 400ms --goal 100s"));
        refused(
            &sandbox,
            &done,
            1,
            &[&["FAILED (device): the proxy at", "Nothing was measured"][..], &texts].concat(),
        );
    }
    // A proxy that demands credentials does what it is there for.
    let port = stranger(Some(
        "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
    ));
    let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} --preflight 400ms --goal 100s"));
    refused(&sandbox, &done, 3, &["error: the proxy at", "answered 407", "--credentials NAME:PASSWORD"]);
}

#[test]
fn a_proxy_that_is_the_server_is_no_device() {
    let sandbox = Sandbox::new();
    let port = free_port();
    let there = format!("127.0.0.1:{port}");
    let servers = format!("--origin_port {port} --goal 1s");
    for (words, kind) in [
        (format!("run --proxy {there} {servers}"), "proxy"),
        (format!("run --proxy {there} {servers} --preflight no"), "proxy"),
        (format!("run --surrogate {there} {servers}"), "surrogate"),
        (format!("run --balancer {there} {servers}"), "load balancer"),
        (format!("run --balancer localhost:{port} {servers}"), "load balancer"),
        (format!("run --balancer {there} {servers} --origin_address 0.0.0.0"), "load balancer"),
        (format!("run --socks_proxy {there} {servers}"), "SOCKS proxy"),
        (format!("client --proxy {there} --origin {there} --goal 1s"), "proxy"),
    ] {
        let done = sandbox.polygraph(&words);
        let texts = [&format!("the {kind}'s address"), "is the address of the origin server", "--no_proxy"];
        refused(&sandbox, &done, 2, &texts);
    }
    let text = "Content c = { size = const(1KB); }; Server S = { contents = [ c ]; direct_access = contents; addresses = ['ADDRESS']; };
        Robot R = { origins = S.addresses; req_rate = 9/sec; addresses = ['127.0.0.1']; };
        Phase p = { name = \"p\"; goal.duration = 1sec; }; schedule(p); use(S, R);";
    sandbox.write("agents.pg", &text.replace("ADDRESS", &there));
    for command in ["run", "client"] {
        let done = sandbox.polygraph(&format!("{command} --config agents.pg --balancer {there}"));
        refused(&sandbox, &done, 2, &["the load balancer's address", "is the address of the origin server"]);
    }
}

/// Any server of this program answers for any object, so a test with servers of another one would go well.
#[test]
fn a_server_of_another_test_is_found() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --log srv.log");
    let port = server.port("listening at");
    let mut device = sandbox.start(&format!("proxy --port 0 --loops 1 --origin 127.0.0.1:{port}"));
    let behind = device.port("at");
    for (role, port, who) in [
        ("balancer", port, "name the device, if this is the address of a server"),
        ("surrogate", behind, "let the device pass requests on to those of this test"),
        ("proxy", port, "end it, or let the device"),
    ] {
        let done = sandbox.polygraph(&format!("run --{role} 127.0.0.1:{port} --goal 100s"));
        let seen = format!("at 127.0.0.1:{port} answered 200");
        let texts =
            [&seen, "polygraph server (X-Polygraph-Preflight)", "did not arrive at the servers of", who];
        refused(&sandbox, &done, 3, &texts);
    }
}

#[test]
fn surrogates_and_workloads_with_proxies_of_their_own_are_looked_at() {
    let sandbox = Sandbox::new();
    let (server, nobody) = (free_port(), free_port());
    let workload = |proxies: &str| {
        format!(
            "Content c = {{ size = const(1KB); }};\nServer S = {{ contents = [ c ]; direct_access = contents;\n\
             addresses = ['127.0.0.1:{server}']; }};\nRobot R = {{ origins = S.addresses; req_rate = 50/sec; {proxies} \
             addresses = ['127.0.0.1']; }};\nPhase p = {{ name = \"p\"; goal.duration = 1sec; log_stats = true; }};\n\
             schedule(p); use(S, R);\n"
        )
    };
    sandbox.write("plain.pg", &workload(""));
    sandbox.write("own.pg", &workload(&format!("http_proxies = ['127.0.0.1:{nobody}'];")));
    let done = sandbox.polygraph("run --config own.pg");
    refused(&sandbox, &done, 3, &["is the proxy running", "connection refused"]);
    let done = sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{nobody} --config plain.pg"));
    refused(&sandbox, &done, 3, &["is the device running", "connection refused"]);
    let done = sandbox.polygraph("run --no_proxy --config plain.pg");
    assert!(done.code().is_some_and(|code| code < 2) && sandbox.path().join("runs").exists(), "{done:?}");
}

/// What both logs and the device count of a client's run, with or without a look before it.
fn counts(look: &str) -> (f64, f64, f64) {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --xact_think const:100ms --log srv.log");
    let port = server.port("listening at");
    // One that gets no further than the look does not begin the test of the server either.
    let stuck = sandbox
        .polygraph(&format!("client --proxy 127.0.0.1:{} --origin 127.0.0.1:{port} --goal 9s", free_port()));
    assert_eq!(stuck.code(), Some(3), "{stuck:?}");
    let done = sandbox.polygraph(&format!("client --origin 127.0.0.1:{port} {look} --goal 20 --log clt.log"));
    assert_eq!(done.code(), Some(0), "{done:?}");
    server.stop();
    let (client, _) = sandbox.lx("", "clt.log");
    let (server, _) = sandbox.lx("--side srv", "srv.log");
    (client["xact.started"], server["xact.started"], server["conn.open.started"])
}

#[test]
fn nobody_counts_the_look() {
    let (client, server, connections) = counts("");
    assert_eq!((server, connections), (client, client));
    assert_eq!(counts("--preflight no").1, client);
}

/// A handshake that cannot succeed ends the test before its start, with the class of its failure.
#[test]
fn a_failed_handshake_is_named() {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name other.test");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let run = "run --device builtin-surrogate --device_tls yes --goal 5s";
    let done = sandbox.polygraph(&format!("{run} --device_opt cert=certs/all.pem --trust_ca certs/ca.crt"));
    let says = |text: &str| done.out.contains(text);
    assert!(done.code() == Some(1) && says("FAILED (device)") && says("c215, certificate_name"), "{done:?}");
    let plain = sandbox.polygraph(run);
    assert!(plain.code() == Some(1) && plain.out.contains("c213, not_tls"), "{plain:?}");
    assert!(!sandbox.path().join("runs").exists(), "{plain:?}");
}

/// The request travels as those of the robots will, so a device that reaches no server is found whatever it speaks.
#[test]
fn a_missing_server_is_found_through_tls_and_http_2() {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let words = "--preflight 400ms --xact_think none --goal 1s --cool_phase none --predict no --loops 1";
    for (cert, tls) in [("", ""), ("--cert certs/all.pem", "--device_tls yes --trust_ca certs/ca.crt")] {
        for version in ["1.1", "2"] {
            let (origin, other) = (free_port(), free_port());
            let mut device =
                sandbox.start(&format!("proxy --port 0 --loops 1 --origin 127.0.0.1:{origin} {cert}"));
            let port = device.port("at");
            let run = |origin: u16, out: &str| {
                sandbox.polygraph(&format!(
                    "run --surrogate 127.0.0.1:{port} {tls} --http_version {version} --origin_port {origin} {words} {out}"
                ))
            };
            let missed = run(other, "");
            refused(
                &sandbox,
                &missed,
                1,
                &["FAILED (device): the device at", "answered 502", "--origin_port"],
            );
            let found = run(origin, "--req_rate 50/sec --runs found");
            assert!(found.out.contains("errors         0 of"), "{version} {tls}: {found:?}");
        }
    }
}

/// A device that waits for a server does not make the check wait.
#[test]
fn a_device_that_does_not_answer_through_tls_and_http_2() {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    for (cert, tls) in [("", ""), ("--cert certs/all.pem", "--device_tls yes --trust_ca certs/ca.crt")] {
        for version in ["1.1", "2"] {
            let mut device = sandbox
                .start(&format!("proxy --port 0 --loops 1 --origin 127.0.0.1:{} {cert}", stranger(None)));
            let done = sandbox.polygraph(&format!(
                "run --surrogate 127.0.0.1:{} {tls} --http_version {version} --origin_port {} --preflight 400ms --goal 1s --loops 1",
                device.port("at"),
                free_port()
            ));
            refused(&sandbox, &done, 1, &["FAILED (device): the device at", "did not answer a request"]);
        }
    }
}

/// Settings of TLS that nobody needs are pointed out.
#[test]
fn robots_whose_servers_have_no_tls_are_told() {
    let sandbox = Sandbox::new();
    let port = free_port();
    let server = free_port();
    sandbox.write(
        "tls.pg",
        &format!(
            "SslWrap W;\nContent c = {{ size = const(1KB); }};\nServer S = {{ contents = [ c ]; addresses = ['127.0.0.1:{server}']; }};\n\
             Robot R = {{ origins = S.addresses; req_rate = 5/sec; addresses = ['127.0.0.1']; ssl_wraps = [ W ]; }};\n\
             Phase p = {{ name = \"p\"; goal.duration = 1sec; }};\nschedule(p); use(S, R);\n"
        ),
    );
    for (words, told) in [
        ("tls.pg", true),
        ("tls.pg --device_tls no", false),
        ("tls.pg --device_tls yes", false),
        // Without a workload file, robots and servers have the same.
        ("--tls yes", false),
        ("--tls no --device_tls yes", false),
    ] {
        let done = sandbox.polygraph(&format!("run {words} --surrogate 127.0.0.1:{port}"));
        refused(&sandbox, &done, 3, &["nothing listens"]);
        assert_eq!(done.err.contains("add --device_tls yes"), told, "{words}: {done:?}");
    }
}

/// Robots that speak only HTTP/2 need a peer that does, and robots of a SOCKS proxy that proxy.
#[test]
fn peers_that_do_not_speak_what_robots_speak() {
    let sandbox = Sandbox::new();
    let port = stranger(Some("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
    let done = sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} --http_version 2 --goal 100s"));
    refused(&sandbox, &done, 1, &["FAILED (device)", "does not speak HTTP/2", "but HTTP/1", "http2=on"]);
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let port = proxy.port("proxy at");
    let words =
        "--req_rate 100/sec --robots 10 --xact_think none --goal 1s --cool_phase none --predict no --loops 1";
    let done =
        sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} --http_version 2 {words} --runs two"));
    assert!(done.out.contains("phase"), "it speaks HTTP/2: {done:?}");
    let port = free_port();
    let done = sandbox.polygraph(&format!("run --socks_proxy 127.0.0.1:{port} --goal 100s"));
    refused(&sandbox, &done, 3, &["nothing listens at 127.0.0.1", "is the SOCKS proxy running"]);
}

#[test]
fn users_that_the_proxy_refuses_stop_the_test() {
    for scheme in ["basic", "digest", "digest-sha256"] {
        let sandbox = Sandbox::new();
        let mut proxy =
            sandbox.start(&format!("proxy --listen 127.0.0.1:0 --auth {scheme} --user joe:secret"));
        let port = proxy.port("proxy at");
        let words = "--req_rate 50/sec --xact_think none --goal 1s --cool_phase none --predict no";
        let run = |user: &str| {
            sandbox.polygraph(&format!("run --proxy 127.0.0.1:{port} --credentials {user} {words}"))
        };
        let wrong = run("joe:wrong");
        refused(
            &sandbox,
            &wrong,
            3,
            &[&format!("127.0.0.1:{port} refuses the user joe: name or password wrong")],
        );
        // Those that it knows are served, and so is the check.
        let right = run("joe:secret");
        assert!(right.out.contains("errors         0 of"), "{scheme}: {right:?}");
    }
}

#[test]
fn users_that_the_socks_proxy_refuses_or_misses_stop_the_test() {
    let sandbox = Sandbox::new();
    let port = free_port();
    let _socks = sandbox.start_program("microsocks", &format!("-i 127.0.0.1 -p {port} -u joe -P secret"));
    wait_for_listener(port);
    let words = "--no_proxy --req_rate 50/sec --xact_think none --goal 1s --cool_phase none --predict no";
    let run = |user: &str| sandbox.polygraph(&format!("run --socks_proxy 127.0.0.1:{port} {user} {words}"));
    let nobody = run("");
    refused(
        &sandbox,
        &nobody,
        3,
        &["the SOCKS proxy at", "demands a user name and a password, and robots have none"],
    );
    let wrong = run("--credentials joe:wrong");
    refused(&sandbox, &wrong, 3, &["the SOCKS proxy at", "refuses the user joe: name or password wrong"]);
    let right = run("--credentials joe:secret");
    assert!(right.out.contains("errors         0 of"), "{right:?}");
}

/// Somebody who answers the first messages of each connection with these, and then says nothing.
fn silent_after(answers: &'static [&'static [u8]]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            for answer in answers {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer);
            }
            kept.push(stream);
        }
    });
    port
}

/// A proxy that forwards a request of HTTP/1 on each connection, and knows no other protocol.
fn old_proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 4096];
            let Ok(length) = stream.read(&mut head) else { continue };
            let text = String::from_utf8_lossy(&head[..length]).into_owned();
            let host = text.strip_prefix("GET http://").and_then(|rest| rest.split('/').next());
            let Some(mut server) = host.and_then(|host| TcpStream::connect(host).ok()) else {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
                continue;
            };
            let mut reply = Vec::new();
            let _ = server.write_all(text.as_bytes());
            let _ = server.read_to_end(&mut reply);
            let _ = stream.write_all(&reply);
        }
    });
    port
}

/// A workload whose robots and servers have these further fields.
fn write_workload(sandbox: &Sandbox, both: &str, robot: &str) {
    sandbox.write(
        "w.pg",
        &format!(
            "SslWrap W;\nContent c = {{ size = const(1KB); }};\n\
             Server S = {{ contents = [ c ]; direct_access = contents; addresses = ['127.0.0.1:{}']; {both} }};\n\
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 50/sec; {both} {robot} }};\n\
             Phase p = {{ name = \"p\"; goal.duration = 1sec; log_stats = true; }};\nschedule(p); use(S, R);\n",
            free_port()
        ),
    );
}

/// What robots do with a proxy that opens tunnels, the check does, too.
#[test]
fn tunnels_that_lead_nowhere() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "ssl_wraps = [ W ];", "");
    let run = |port: u16| sandbox.polygraph(&format!("run w.pg --proxy 127.0.0.1:{port} --preflight 400ms"));
    for (port, texts) in [
        (
            stranger(Some("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")),
            &["answered 403 to CONNECT 127.0.0.1", "(c221, tunnel_refused)", "access rule"][..],
        ),
        (
            stranger(Some("SSH-2.0-OpenSSH_9.6\r\n")),
            &["(c222, tunnel_broken)", "is this the port of a proxy?"],
        ),
        (stranger(Some("")), &["closes them without answering CONNECT 127.0.0.1"]),
        (stranger(None), &["did not answer CONNECT 127.0.0.1", "within 0.4 s"]),
        (
            silent_after(&[b"HTTP/1.1 200 OK\r\n\r\n"]),
            &["did not answer the TLS handshake in its tunnel to 127.0.0.1", "does the tunnel lead to"],
        ),
        (
            silent_after(&[b"HTTP/1.1 200 OK\r\n\r\n", b"220 mail.test ESMTP\r\n"]),
            &["the TLS handshake with the origin server at 127.0.0.1", "(c213, not_tls)"],
        ),
    ] {
        let done = run(port);
        refused(&sandbox, &done, 1, &[&["FAILED (device): ", "the proxy at"][..], texts].concat());
        assert!(!done.out.contains("plain HTTP"), "{done:?}");
    }
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0 --auth basic --user joe:secret");
    let port = proxy.port("proxy at");
    let done = run(port);
    refused(&sandbox, &done, 3, &["answered 407 to CONNECT", "--credentials NAME:PASSWORD"]);
    write_workload(&sandbox, "ssl_wraps = [ W ];", "credentials = [ \"joe:wrong\" ];");
    refused(&sandbox, &run(port), 3, &["refuses the user joe: name or password wrong"]);
    for version in ["1.1", "2"] {
        let both = format!("ssl_wraps = [ W ]; http_versions = [ \"{version}\" ];");
        write_workload(&sandbox, &both, "credentials = [ \"joe:secret\" ];");
        let done = run(port);
        assert!(done.out.contains("errors         0 of"), "{version}: {done:?}");
    }
}

#[test]
fn socks_proxies_that_lead_nowhere() {
    let sandbox = Sandbox::new();
    const METHOD: &[u8] = &[5, 0];
    for (answers, texts) in [
        (&[][..], &["did not answer a request of SOCKS version 5 for a connection to 127.0.0.1"][..]),
        (&[METHOD], &["did not answer a request of SOCKS version 5", "is this its port for SOCKS version 5"]),
        (
            &[METHOD, &[5, 5, 0, 1, 127, 0, 0, 1, 0, 80]],
            &["opened no connection to 127.0.0.1", "(c114, socks_connect)", "nothing listens there"],
        ),
        (&[b"HTTP/1.1 400 Bad Request\r\n\r\n"], &["(c108, socks_version)"]),
        (
            &[METHOD, &[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]],
            &["did not answer a request for 127.0.0.1", "did not arrive at the origin server"],
        ),
    ] {
        let done = sandbox.polygraph(&format!(
            "run --socks_proxy 127.0.0.1:{} --no_proxy --preflight 400ms --goal 100s",
            silent_after(answers)
        ));
        refused(&sandbox, &done, 1, &[&["FAILED (device): the SOCKS proxy at"][..], texts].concat());
        assert!(!done.out.contains("plain HTTP"), "{done:?}");
    }
}

/// Who says nothing is asked about the protocol that was spoken.
#[test]
fn silence_during_handshakes() {
    let sandbox = Sandbox::new();
    let words = "--device_tls yes --preflight 400ms --goal 100s";
    let done = sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{} {words}", stranger(None)));
    refused(
        &sandbox,
        &done,
        1,
        &["did not answer the TLS handshake within 0.4 s; is this its port for TLS?"],
    );
    assert!(!done.out.contains("plain HTTP"), "{done:?}");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let done =
        sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{port} --http_version 3 --tls no {words}"));
    refused(&sandbox, &done, 1, &["did not answer the QUIC handshake over UDP", "quic_no_answer)"]);
    drop(silent);
    let done =
        sandbox.polygraph(&format!("run --surrogate 127.0.0.1:{port} --http_version 3 --tls no {words}"));
    let text = format!("nothing listens on UDP port {port} of 127.0.0.1 (ICMP port unreachable)");
    refused(&sandbox, &done, 3, &[&text, "does it speak HTTP/3 at this port?"]);
}

/// Each version that robots speak is tried, not only the first one.
#[test]
fn robots_of_several_versions() {
    let sandbox = Sandbox::new();
    let run = |versions: &str| {
        write_workload(&sandbox, "", &format!("http_versions = [ {versions} ];"));
        sandbox.polygraph(&format!("run w.pg --proxy 127.0.0.1:{} --preflight 2s", old_proxy()))
    };
    let done = run("\"1.1\", \"2\"");
    refused(&sandbox, &done, 1, &["FAILED (device)", "does not speak HTTP/2", "but HTTP/1"]);
    let done = run("\"1.1\"");
    assert!(sandbox.path().join("runs").exists(), "it speaks HTTP/1.1: {done:?}");
}

/// A server that speaks HTTP/3 answers the check without counting it.
#[test]
fn the_check_speaks_http_3() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "ssl_wraps = [ W ]; http_versions = [ \"3\" ];", "");
    let mut server = sandbox.start("server --config w.pg --log srv.log");
    server.wait_for("listening at");
    let done = sandbox.polygraph("client --config w.pg --log clt.log");
    assert_eq!(done.code(), Some(0), "{done:?}");
    assert!(!done.err.contains("warning: the origin server"), "{done:?}");
    server.stop();
    let (client, _) = sandbox.lx("", "clt.log");
    let (server, _) = sandbox.lx("--side srv", "srv.log");
    assert_eq!(server["xact.started"], client["xact.started"], "{done:?}");
}

/// Without a device, too, while the servers on this machine do not listen yet: the check finds that robots do not trust them.
#[test]
fn the_check_speaks_http_3_to_servers_here() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "http_versions = [ \"3\" ];", "ssl_wraps = [ Own ];");
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name localhost");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let text = sandbox.read("w.pg").replace("direct_access", "ssl_wraps = [ W ]; direct_access");
    let with = |own: &str| sandbox.write("w.pg", &format!("SslWrap Own = {{ {own} }};\n{text}"));
    with("root_certificate = \"certs/ca.crt\";");
    let done = sandbox.polygraph("run w.pg --no_proxy --preflight 2s");
    refused(
        &sandbox,
        &done,
        3,
        &["the TLS handshake with the origin server at 127.0.0.1", "certificate_issuer"],
    );
    with("");
    let done = sandbox.polygraph("run w.pg --no_proxy --preflight 2s");
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let (server, _) = sandbox.lx("", sandbox.result().join("server.log"));
    assert!(client["ok_xact.count"] > 20.0, "{done:?}");
    assert_eq!(server["xact.started"], client["xact.started"], "{done:?}");
}

/// Robots say it, too.
#[test]
fn robots_tell_a_closed_udp_port() {
    let sandbox = Sandbox::new();
    write_workload(&sandbox, "ssl_wraps = [ W ]; http_versions = [ \"3\" ];", "");
    let done = sandbox.polygraph("client --config w.pg --preflight no --log clt.log");
    let told = sandbox.polygraph("lr clt.log").out;
    assert!(told.contains("nothing listens on UDP port"), "{told} {done:?}");
}
