//! OCSP responses that nginx staples to its certificate. OpenSSL is the responder.

use std::collections::HashMap;
use std::process::Command;

use crate::peers::wait_for_listener;
use crate::sandbox::{Sandbox, free_port};

/// Runs a program in the folder to its end. Returns what it printed.
fn output(sandbox: &Sandbox, program: &str, words: &str) -> String {
    let mut command = Command::new(program);
    let done = command.args(words.split_whitespace()).current_dir(sandbox.path()).output();
    let done = done.unwrap_or_else(|e| panic!("{program}: {e}; devices/install.sh installs it"));
    assert!(done.status.success(), "{program} {words}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Runs robots against nginx, whose certificate has this state at its authority. The response is as old as `age` says, and for one
/// day. Returns the figures, and what the log and `lx` say.
fn run(state: &str, age: &str) -> (HashMap<String, f64>, String) {
    let sandbox = Sandbox::new();
    let made = sandbox.polygraph("certs --key_type ECDSA-P256 --name 127.0.0.1");
    assert_eq!(made.code(), Some(0), "{made:?}");
    let serial = output(&sandbox, "openssl", "x509 -in certs/all.pem -noout -serial");
    let serial = serial.trim().trim_start_matches("serial=");
    sandbox.write("index.txt", &format!("{state}\t{serial}\tunknown\t/CN=127.0.0.1\n"));
    output(&sandbox, "openssl", "ocsp -issuer certs/ca.crt -cert certs/all.pem -reqout request.der");
    let answer = "ocsp -index index.txt -CA certs/ca.crt -rsigner certs/ca.pem -rkey certs/ca.pem -ndays 1 -reqin request.der -respout response.der";
    match age {
        "" => output(&sandbox, "openssl", answer),
        age => output(&sandbox, "faketime", &format!("-f {age} openssl {answer}")),
    };
    let (device, server) = (free_port(), free_port());
    let at = |name: &str| sandbox.path().join(name).display().to_string();
    sandbox.write(
        "nginx.conf",
        &format!(
            "daemon off;
             user root;
             pid {pid};
             error_log stderr;
             events {{ }}
             http {{
                 access_log off;
                 client_body_temp_path {temp};
                 proxy_temp_path {temp};
                 server {{
                     listen 127.0.0.1:{device} ssl;
                     ssl_certificate {certificate};
                     ssl_certificate_key {certificate};
                     ssl_stapling on;
                     ssl_stapling_file {response};
                     location / {{ proxy_pass http://127.0.0.1:{server}; proxy_set_header Host $http_host; }}
                 }}
             }}
            ",
            pid = at("nginx.pid"),
            temp = at("temp"),
            certificate = at("certs/all.pem"),
            response = at("response.der"),
        ),
    );
    let _nginx = sandbox.start_program("nginx", &format!("-e stderr -c {}", at("nginx.conf")));
    wait_for_listener(device);
    sandbox.write(
        "staples.pg",
        &format!(
            "SslWrap W = {{ root_certificate = \"certs/ca.crt\"; verify_peer_certificate = yes; }};
             Content C = {{ size = exp(2KB); cachable = 80%; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{server}']; }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 5]; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(5); ssl_wraps = [ W ]; }};
             Phase p = {{ name = \"p\"; goal.duration = 3sec; }};
             schedule(p);
             use(S, R);"
        ),
    );
    let words = format!("--surrogate 127.0.0.1:{device} --device_tls yes --preflight no");
    let done = sandbox.polygraph(&format!("run --config staples.pg {words}"));
    assert_ne!(done.code(), Some(2), "{done:?}");
    let log = sandbox.result().join("client.log");
    let (figures, _) = sandbox.lx("", &log);
    assert!(figures["ok_xact.count"] > 100.0 && figures["err_xact.count"] == 0.0, "{done:?}");
    assert_eq!(figures["ssl.stapled.count"], figures["ssl.handshake.full.count"], "{done:?}");
    let told = |command: &str| sandbox.polygraph(&format!("{command} {}", log.display())).out;
    (figures, told("lr") + &told("lx"))
}

const CLASSES: [&str; 3] = ["staple_revoked", "staple_outdated", "staple_unusable"];

#[test]
fn robots_read_stapled_responses() {
    let good = "V\t401231235959Z\t";
    let revoked = "R\t401231235959Z\t260101000000Z";
    for (state, age, class, says) in [
        (good, "", None, "good, next update 20"),
        (revoked, "", Some("staple_revoked"), "revoked, next update 20"),
        (good, "-30d", Some("staple_outdated"), "outdated, next update 20"),
    ] {
        let (figures, told) = run(state, age);
        assert!(told.contains(says), "{says}: {told}");
        for each in CLASSES {
            let count = figures[&format!("errors.{each}.count")];
            let expected = if class == Some(each) { figures["ssl.stapled.count"] } else { 0.0 };
            assert_eq!(count, expected, "{each} with {says}: {told}");
        }
    }
}
