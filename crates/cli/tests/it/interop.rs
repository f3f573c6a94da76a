//! Our servers under the clients of others: curl, OpenSSL, h2load and Chromium. Each test compares what the client saw with what the
//! server counted.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::sandbox::{PATIENCE, Running, Sandbox};

/// Bytes in each object of the servers.
const SIZE: u64 = 20_000;

/// The path of an object, which has the same content on every server.
const PATH: &str = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4";

/// A server that answers every URL.
struct Server {
    sandbox: Sandbox,
    running: Running,
    port: u16,
}

impl Server {
    fn start(words: &str) -> Server {
        let sandbox = Sandbox::new();
        let mut running = sandbox.start(&format!(
            "server --listen 127.0.0.1:0 --log srv.log --ign_urls yes --accept_foreign_msgs yes --rep_sz {SIZE} \
             --pconn_use_lmt 100000 --goal 10min --stats_cycle 1s --verb_lvl 2 {words}"
        ));
        let port = running.port("listen");
        Server { sandbox, running, port }
    }

    /// Stops the server. Returns its figures.
    fn figures(mut self) -> HashMap<String, f64> {
        // The test begins soon after the first request.
        self.running.wait_for(" i-");
        let done = self.running.stop();
        assert!(done.code() == Some(130), "{done:?}");
        self.sandbox.lx("--side srv", "srv.log").0
    }
}

/// What a program prints that gets `input`, on both outputs.
fn output_of(program: &str, words: &str, input: &[u8]) -> (String, String) {
    let mut child = Command::new("timeout")
        .arg(PATIENCE.as_secs().to_string())
        .arg(program)
        .args(words.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start {program}: {e} (make devices)"));
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (out, err)
}

/// Requests of curl on one connection, one for each file. Returns versions, statuses, sizes, and numbers of new connections.
fn curl(options: &str, url: &str, count: usize) -> String {
    let sandbox = Sandbox::new();
    let files: Vec<_> = (0..count).map(|number| sandbox.path().join(number.to_string())).collect();
    let transfers: Vec<String> =
        files.iter().map(|file| format!("-o {} {url}{PATH}", file.display())).collect();
    let format = "%{http_version}/%{http_code}/%{size_download}/%{num_connects};";
    let (out, err) =
        output_of("curl", &format!("-s -S -k {options} -w {format} {}", transfers.join(" ")), b"");
    assert_eq!(err, "", "{options} {url}");
    let bodies: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(bodies.iter().all(|body| body.len() as u64 == SIZE && *body == bodies[0]), "{options} {url}");
    out
}

#[test]
fn curl_gets_the_same_object_over_every_protocol() {
    for (tls, options, version, count) in [
        (false, "--http1.1", "1.1", 3),
        (true, "--http1.1", "1.1", 3),
        (true, "--http1.1 --tls-max 1.2", "1.1", 3),
        // Some versions of curl cannot use such a connection again, whatever the server.
        (false, "--http2-prior-knowledge", "2", 1),
        (true, "--http2", "2", 3),
        (true, "--http2 --tlsv1.3", "2", 3),
    ] {
        let server = Server::start(if tls { "--tls yes" } else { "" });
        let url = format!("{}://127.0.0.1:{}", if tls { "https" } else { "http" }, server.port);
        let got = curl(options, &url, count);
        let opened = (0..count).map(|number| usize::from(number == 0));
        let expected: String = opened.map(|opened| format!("{version}/200/{SIZE}/{opened};")).collect();
        assert_eq!(got, expected, "{options} {url}");
        let (figures, count) = (server.figures(), count as f64);
        assert_eq!(figures[&format!("version.{version}.size.count")], count, "{options}");
        assert_eq!(figures["ssl.handshake.full.count"], f64::from(u8::from(tls)), "{options}");
        assert_eq!((figures["err_cnt"], figures["ok_xact.count"]), (0.0, count), "{options}");
    }
}

#[test]
fn openssl_shakes_hands_and_resumes_sessions() {
    let server = Server::start("--tls yes");
    let session = server.sandbox.path().join("session");
    let request = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let connect = |options: &str| {
        let words = format!("s_client -connect 127.0.0.1:{} -ign_eof {options}", server.port);
        output_of("openssl", &words, request).0
    };
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let file = session.display();
        let first = connect(&format!("{version} -alpn http/1.1 -sess_out {file}"));
        for text in [&format!("New, {name}, Cipher is"), "ALPN protocol: http/1.1", "HTTP/1.1 200 OK"] {
            assert!(first.contains(text), "{text}: {first}");
        }
        let second = connect(&format!("{version} -sess_in {file}"));
        assert!(
            second.contains(&format!("Reused, {name}")) && second.contains("HTTP/1.1 200 OK"),
            "{second}"
        );
        let chosen = connect(&format!("{version} -alpn h2,http/1.1"));
        // The request is not the preface of HTTP/2, which was chosen.
        assert!(chosen.contains("ALPN protocol: h2") && !chosen.contains("HTTP/1.1 "), "{chosen}");
    }
    let refused = connect("-tls1_1");
    assert!(!refused.contains("HTTP/1.1 "), "{refused}");
    let figures = server.figures();
    assert_eq!(figures["ssl.handshake.full.count"], 4.0);
    assert_eq!(figures["ssl.handshake.resumed.count"], 2.0);
    assert_eq!(figures["ok_xact.count"], 4.0);
    assert_eq!(figures["errors.bad_frame.count"], 2.0);
    assert_eq!(figures["errors.tls_nothing_in_common.count"] + figures["errors.tls_protocol.count"], 1.0);
}

#[test]
fn h2load_gets_every_reply() {
    for (tls, scheme) in [(true, "https"), (false, "http")] {
        let server = Server::start(if tls { "--tls yes" } else { "" });
        let words = format!("-n 3000 -c 10 -m 20 {scheme}://127.0.0.1:{}/x", server.port);
        let (out, err) = output_of("h2load", &words, b"");
        let succeeded = "3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout";
        assert!(out.contains(succeeded) && out.contains("3000 2xx"), "{words}: {out} {err}");
        let figures = server.figures();
        assert_eq!((figures["version.2.size.count"], figures["err_cnt"]), (3000.0, 0.0), "{scheme}");
        assert!(figures["streams.concurrent.max"] > 1.0, "{scheme}");
        assert_eq!(figures["ssl.handshake.full.count"], if tls { 10.0 } else { 0.0 });
    }
}

#[test]
fn chromium_loads_a_page_over_http2() {
    let server = Server::start("--tls yes");
    let profile = server.sandbox.path().join("profile");
    let words = format!(
        "--headless --no-sandbox --disable-gpu --disable-quic --disable-background-networking --ignore-certificate-errors \
         --user-data-dir={} --dump-dom https://127.0.0.1:{}/page",
        profile.display(),
        server.port
    );
    let (out, err) = output_of("chromium", &words, b"");
    assert!(out.len() as u64 >= SIZE / 2, "{out} {err}");
    let figures = server.figures();
    assert!(figures["version.2.size.count"] >= 1.0, "{out} {err}");
    assert_eq!(figures["version.2.size.count"], figures["ok_xact.count"]);
    assert_eq!(figures["err_cnt"], 0.0, "{err}");
}

#[test]
fn a_wrong_preface_ends_the_connection_in_http2() {
    let server = Server::start("");
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"INVALID CONNECTION PREFACE\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    // SETTINGS without content; GOAWAY with stream 0 and PROTOCOL_ERROR.
    assert_eq!(reply[..9], [0, 0, 0, 4, 0, 0, 0, 0, 0]);
    assert_eq!(reply[9..], [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(server.figures()["errors.bad_frame.count"], 1.0);
}
