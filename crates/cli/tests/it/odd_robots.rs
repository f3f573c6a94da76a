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
            "Content C = {{ size = exp(1KB); cachable = 80%;
                 obj_life_cycle = {{ length = const(2year); with_lmt = 100%; expires = [ nmt + const(0sec) ]; }}; }};
             Server S = {{ contents = [ C ]; addresses = ['127.0.0.1:{}']; pconn_use_lmt = const(20); {server} }};
             Robot R = {{ origins = S.addresses; addresses = ['127.0.0.1' ** 5]; req_rate = 20/sec; recurrence = 50%;
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
    assert_ne!(done.code(), Some(2), "{done:?}");
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
    write_workload(&sandbox, robot, "");
    let (done, figures) = run(&sandbox, &format!("--preflight no --proxy 127.0.0.1:{port}"));
    (sandbox, done, figures)
}

#[test]
fn robots_with_credentials_pass() {
    for scheme in ["basic", "digest", "digest-sha256"] {
        let robot = "credentials = [ \"joe:secret\", \"ann:x:y\" ]; custom_stats_scope = [ \"4xx\" ];";
        let (_sandbox, done, figures) = with_proxy(scheme, robot);
        assert_eq!(figures["errors.count"], 0.0, "{scheme}: {done:?}");
        // Each of the five robots is asked with its first requests, some perhaps while the first is still on its way,
        // and then answers without being asked.
        let asked = figures["auth.ing.rptm.count"];
        assert!((5.0..100.0).contains(&asked), "{scheme}: {asked} times asked: {done:?}");
        // Challenges are parts of transactions, and counted by themselves; some of the last are not answered any more.
        let family = if scheme == "basic" { "basic" } else { "digest" };
        assert_eq!(figures[&format!("auth.ing.{family}.size.count")], asked);
        assert_eq!(figures["rep_status_code.407.size.count"], asked);
        assert_eq!(figures["custom.rep.size.sum"], figures["auth.ing.size.sum"]);
        let compound = figures[&format!("compound.auth.{family}.rptm.count")];
        assert!(compound <= asked && asked - compound <= 5.0, "{scheme}: {compound} of {asked}");
        let ended = figures["ok_xact.count"];
        assert_eq!(figures["compound.not.rptm.count"] + compound, ended);
        assert_eq!(figures["auth.ed.rptm.count"] + figures["auth.none.rptm.count"], ended);
        assert_eq!(figures["baseline.exchanges.max"], 2.0);
        assert_eq!(figures["xact.finished"], ended);
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
    // Without any credentials, the test is wrong, not the device.
    for (robot, name, word) in [
        ("", "407 for a robot without credentials", "INVALID"),
        ("credentials = [ \"joe:other\" ];", "407 in spite of credentials", "FAILED"),
    ] {
        let (sandbox, done, figures) = with_proxy("digest", robot);
        assert!(figures["errors.count"] > 50.0 && figures["basic.rptm.count"] == 0.0, "{name}: {done:?}");
        assert_eq!(done.verdict(), word, "{done:?}");
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
        "interests = [ \"foreign\": 40%, \"public\" ]; foreign_trace = \"trace.urls\";",
        "",
    );
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}: {}", errors(&sandbox));
    let heads = seen.lock().unwrap();
    // 40 % of 100/s in 4 s, five standard deviations.
    assert!((heads.len() as f64 - 160.0).abs() < 5.0 * 160f64.sqrt(), "{}", heads.len());
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
         cookies_keep_lmt = const(2.0);",
        "cookie_set_prob = 30%; cookie_set_count = const(1.0); cookie_value_size = const(20Byte);",
    );
    let (done, figures) = run(&sandbox, "--no_proxy");
    assert_eq!(figures["errors.count"], 0.0, "{done:?}: {}", errors(&sandbox));
    // Half of the time there is nobody: 100/s for 4 s make about 200 requests, not 400.
    let replies = figures["rep.rptm.count"];
    assert!(replies > 125.0 && replies < 275.0, "{replies}: {done:?}");
    let cookies: Vec<(&String, &f64)> =
        figures.iter().filter(|(name, _)| name.starts_with("cookies")).collect();
    for name in ["cookies.recv.count", "cookies.sent.count"] {
        assert!(figures.get(name).is_some_and(|count| *count > 20.0), "{name}: {cookies:?}");
    }
}

#[test]
fn objects_that_an_earlier_run_left_are_false_hits() {
    let sandbox = Sandbox::new();
    let mut proxy = sandbox.start("proxy --listen 127.0.0.1:0");
    let proxy = proxy.port("proxy at");
    let common = format!(
        "run --proxy 127.0.0.1:{proxy} --origin_port {} --unique_world no --loops 1 --rep_sz exp:1KB --xact_think none \
         --cool_phase none --req_rate 100/sec",
        free_port()
    );
    let run = |name: &str, words: &str| {
        let done = sandbox.polygraph(&format!("{common} --runs {name} {words}"));
        assert!(sandbox.path().join(name).is_dir(), "{done:?}");
        let log = sandbox.result_in(name).join("client.log");
        (sandbox.lx("", &log).0, sandbox.polygraph(&format!("lr {}", log.display())).out)
    };
    let (first, _) = run("first", "--dhr 0p --goal 3s");
    assert_eq!(first["hit.rptm.count"], 0.0);
    // The same objects once more, but under other transaction ids, because repeats come between them.
    for (name, words, told) in [("told", "--ign_false_hits no", true), ("ignored", "", false)] {
        let (figures, messages) = run(name, &format!("--dhr 40p --goal 2s {words}"));
        assert!(figures["false_hit.size.count"] > 20.0, "{name}: {}", figures["false_hit.size.count"]);
        // False hits are reported or not, but no transaction fails because of them.
        assert_eq!(figures["errors.false_hit.count"] > 0.0, told, "{name}: {messages}");
        assert_eq!(figures["err_xact.count"], 0.0, "{name}: {messages}");
    }
}

#[test]
fn replies_of_others_can_be_accepted() {
    let port = serve(|mut stream, _| {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let _ = stream.write_all(text.as_bytes());
    });
    for (words, accepted) in
        [("", false), ("--accept_foreign_msgs yes", true), ("--accept_foreign_msgs no", false)]
    {
        let sandbox = Sandbox::new();
        let done = sandbox
            .polygraph(&format!("client --origin 127.0.0.1:{port} --goal 20 --log log --verb_lvl 1 {words}"));
        let (figures, _) = sandbox.lx("", "log");
        let (failed, messages) = (figures["errors.count"], sandbox.polygraph("lr log").out);
        assert_eq!(failed == 0.0, accepted, "{words}: {done:?}: {messages}");
        assert_eq!(messages.contains("error:"), !accepted, "{words}: {messages}");
    }
}

#[test]
fn servers_can_answer_any_url() {
    let sandbox = Sandbox::new();
    for (words, status) in [
        ("", "404"),
        ("--ign_urls yes", "200"),
        ("--accept_foreign_msgs yes", "200"),
        ("--ign_urls no", "404"),
    ] {
        let mut server = sandbox.start(&format!("server --listen 127.0.0.1:0 --rep_sz exp:1KB {words}"));
        let port = server.port("listening at");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET /any/thing HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{words}: {line}");
    }
}
