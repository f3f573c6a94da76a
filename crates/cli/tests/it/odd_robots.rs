//! Robots that do more than ask our own servers: they prove who they are, keep cookies, come and go, and visit others.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::sandbox::{Done, Sandbox, free_port};

/// A workload of one kind of robots and servers with further fields of each.
fn write_workload(sandbox: &Sandbox, robot: &str, server: &str) {
    sandbox.write(
        "odd.pg",
        &format!(
            "Content C = {{ size = exp(1KB); cachable = 80%; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; pconn_use_lmt = const(20); {server} }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 20/sec; recurrence = 50%;
                 pop_model.pop_distr = popUnif(); pconn_use_lmt = const(20); {robot} }};
             Phase p = {{ name = \"p\"; goal.duration = 4sec; }};
             schedule(p);
             use(S, R);",
            free_port()
        ),
    );
}

fn run(sandbox: &Sandbox, words: &str) -> (Done, HashMap<String, f64>) {
    let done = sandbox.polygraph(&format!("run --config odd.pg {words}"));
    let (figures, _) = sandbox.lx("", sandbox.result().join("client.log"));
    (done, figures)
}

/// Kinds of errors and how many there were, as the log tells them.
fn errors(sandbox: &Sandbox) -> String {
    sandbox.polygraph(&format!("lr {}", sandbox.result().join("client.log").display())).out
}

fn with_proxy(scheme: &str, robot: &str) -> (Sandbox, Done, HashMap<String, f64>) {
    let sandbox = Sandbox::new();
    let users = "--user joe:secret --user ann:x:y";
    let mut proxy = sandbox.start(&format!("proxy --listen 127.0.0.1:0 --auth {scheme} {users}"));
    let port = proxy.port("proxy at");
    write_workload(&sandbox, &format!("addresses = ['127.0.0.1' ** 5]; {robot}"), "");
    let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
    (sandbox, done, figures)
}

#[test]
fn robots_with_credentials_pass() {
    for scheme in ["basic", "digest", "digest-sha256"] {
        let (_sandbox, done, figures) = with_proxy(scheme, "credentials = [ \"joe:secret\", \"ann:x:y\" ];");
        assert_eq!((done.verdict(), figures["errors.count"]), ("VALID", 0.0), "{scheme}: {done:?}");
        // Each of the five robots is asked once, and then answers without being asked.
        assert_eq!(figures["auth.ing.rptm.count"], 5.0, "{scheme}: {done:?}");
        assert!(figures["hit.rptm.count"] > 50.0, "{scheme}: {done:?}");
    }
}

#[test]
fn wrong_passwords_are_refused_and_that_is_no_error() {
    for scheme in ["basic", "digest"] {
        let (sandbox, done, figures) =
            with_proxy(scheme, "credentials = [ \"joe:secret\" ]; auth_error = 100%;");
        assert_eq!(figures["errors.count"], 0.0, "{scheme}: {}", errors(&sandbox));
        assert!(figures["auth.ing.rptm.count"] > 100.0, "{scheme}: {done:?}");
        assert_eq!(figures["hit.rptm.count"] + figures["miss.rptm.count"], 0.0, "{scheme}: {done:?}");
    }
}

#[test]
fn who_has_no_credentials_or_others_is_told_apart() {
    for (robot, name) in [
        ("", "407 for a robot without credentials"),
        ("credentials = [ \"joe:other\" ];", "407 again after success"),
    ] {
        let (sandbox, done, figures) = with_proxy("digest", robot);
        assert!(figures["errors.count"] > 50.0 && figures["rep.rptm.count"] == 0.0, "{name}: {done:?}");
        assert_eq!(done.verdict(), "INVALID", "{done:?}");
        let told = errors(&sandbox);
        assert!(told.contains(name), "{name}: {told}");
    }
}

#[test]
fn a_proxy_that_lets_wrong_passwords_pass_is_found() {
    // Asks everybody once, and then believes everything.
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let behind = proxy.port("proxy at");
    let port = serve(move |mut stream, head| {
        if !head.to_ascii_lowercase().contains("\r\nproxy-authorization: basic ") {
            let text = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return stream.write_all(text.as_bytes()).unwrap_or_default();
        }
        let Ok(mut next) = TcpStream::connect(("127.0.0.1", behind)) else { return };
        let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let _ =
            next.write_all(head.as_bytes()).and_then(|()| std::io::copy(&mut next, &mut stream).map(drop));
    });
    write_workload(&sandbox, "credentials = [ \"joe:secret\" ]; auth_error = 100%;", "");
    let (done, figures) = run(&sandbox, &format!("--proxy 127.0.0.1:{port}"));
    assert!(figures["errors.count"] > 0.0, "{done:?}");
    let told = errors(&sandbox);
    assert!(told.contains("proxy granted access despite invalid credentials"), "{told}");
}

/// A server that hands each request's head to `answer`, one per connection.
fn serve(answer: impl Fn(TcpStream, String) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut head = String::new();
                let mut reader = BufReader::new(&stream);
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|n| n > 0) {}
                answer(stream.try_clone().unwrap(), head);
            });
        }
    });
    port
}

#[test]
fn foreign_urls_are_visited_and_not_judged_as_ours() {
    let sandbox = Sandbox::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let foreign = serve(move |mut stream, head| {
        noted.lock().unwrap().push(head);
        let text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let _ = stream.write_all(text.as_bytes());
    });
    let urls: String =
        (0..3).map(|i| format!("http://127.0.0.1:{foreign}/page/{i}?x=${{url_number}}\n")).collect();
    sandbox.write("trace.urls", &urls);
    write_workload(
        &sandbox,
        "interests = [ \"foreign\": 40%, \"public\" ]; foreign_trace = \"trace.urls\"; req_rate = 50/sec;",
        "",
    );
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!((done.verdict(), figures["errors.count"]), ("VALID", 0.0), "{done:?}: {}", errors(&sandbox));
    let heads = seen.lock().unwrap();
    // 40 % of 50/s in 4 s, five standard deviations.
    assert!((heads.len() as f64 - 80.0).abs() < 5.0 * (80.0f64).sqrt(), "{}", heads.len());
    for i in 0..3 {
        let asked = heads.iter().filter(|head| head.starts_with(&format!("GET /page/{i}?x="))).count();
        assert!(asked > 10, "page {i}: {asked}");
    }
    assert!(heads.iter().all(|head| !head.contains("${")), "{:?}", heads.first());
}

#[test]
fn cookies_come_back_and_sessions_end() {
    let sandbox = Sandbox::new();
    write_workload(
        &sandbox,
        "session = { busy_period.duration = 1sec; idle_period_duration = const(1sec); };
         addresses = ['127.0.0.1' ** 10]; cookies_keep_lmt = const(2);",
        "cookie_set_prob = 30%; cookie_set_count = const(1); cookie_value_size = const(20Byte);",
    );
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!((done.verdict(), figures["errors.count"]), ("VALID", 0.0), "{done:?}: {}", errors(&sandbox));
    // Half of the time there is nobody: 200/s for 4 s make about 400 requests, not 800.
    let replies = figures["rep.rptm.count"];
    assert!(replies > 250.0 && replies < 550.0, "{replies}: {done:?}");
    let cookies: Vec<(&String, &f64)> =
        figures.iter().filter(|(name, _)| name.starts_with("cookies")).collect();
    for name in ["cookies.recv.count", "cookies.sent.count"] {
        assert!(figures.get(name).is_some_and(|count| *count > 20.0), "{name}: {cookies:?}");
    }
}
