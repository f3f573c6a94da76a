//! Processes that are watched while they run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{PATIENCE, Sandbox, free_port};

/// Bytes of a forwarded notification (docs/monitor.md, "Status notifications").
const FORWARDED: usize = 144;

/// A monitor of notifications, connected to a dispatcher.
fn attach(port: u16) -> TcpStream {
    let monitor = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    monitor.set_read_timeout(Some(PATIENCE)).unwrap();
    monitor
}

fn int(message: &[u8; FORWARDED], at: usize) -> i32 {
    i32::from_be_bytes(message[at..at + 4].try_into().unwrap())
}

fn long(message: &[u8; FORWARDED], at: usize) -> i64 {
    i64::from_be_bytes(message[at..at + 8].try_into().unwrap())
}

/// The label, the side, and the number of successful transactions so far.
fn next(monitor: &mut TcpStream) -> (String, i32, i64) {
    let mut message = [0; FORWARDED];
    monitor.read_exact(&mut message).unwrap();
    assert_eq!([int(&message, 0), int(&message, 4)], [1, 124]);
    let label = String::from_utf8_lossy(&message[8..24]).trim_end_matches('\0').to_owned();
    (label, int(&message, 120), long(&message, 96))
}

#[test]
fn notifications_of_both_sides_reach_all_monitors() {
    let sandbox = Sandbox::new();
    let port = free_port();
    sandbox.link("udp2tcpd");
    let program = sandbox.path().join("udp2tcpd");
    let mut dispatcher =
        sandbox.start_program(program.to_str().unwrap(), &format!("--foreground --listen 127.0.0.1 {port}"));
    dispatcher.wait_for("forwarding notifications");
    let mut monitors = [attach(port), attach(port)];
    let run = sandbox.start(&format!(
        "run --no_proxy --req_rate 50/sec --goal 4s --cool_phase none --xact_think none --label seen --notify 127.0.0.1:{port}"
    ));
    for monitor in &mut monitors {
        let (mut sides, mut most) = ([false; 2], 0);
        // Messages of one side after the other, until both sides have counted something.
        while sides != [true; 2] || most == 0 {
            let (label, side, ok) = next(monitor);
            assert_eq!(label, "seen");
            sides[usize::try_from(side - 1).unwrap()] = true;
            most = most.max(ok);
        }
    }
    let done = run.finish();
    assert!(done.out.contains("VALID"), "{done:?}");
    let busy = sandbox.polygraph(&format!("udp2tcpd --listen 127.0.0.1 {port}"));
    assert!(busy.code() == Some(3) && busy.err.contains("cannot listen on port"), "{busy:?}");
    let started = sandbox.polygraph("udp2tcpd 99999");
    assert_eq!(started.code(), Some(2), "{started:?}");
}

#[test]
fn the_dispatcher_continues_in_the_background() {
    let sandbox = Sandbox::new();
    let port = free_port();
    let started = sandbox.polygraph(&format!("udp2tcpd --listen 127.0.0.1 {port}"));
    assert_eq!(started.code(), Some(0), "{started:?}");
    let id = started.out.trim().rsplit_once("process ").unwrap().1.parse().unwrap();
    let pid = rustix::process::Pid::from_raw(id).unwrap();
    attach(port);
    assert_eq!(rustix::process::getsid(Some(pid)), Ok(pid), "it has left the session of the terminal");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[test]
fn notifications_need_an_address() {
    let sandbox = Sandbox::new();
    for (receiver, code, text) in
        [("nowhere", 2, "has no port"), ("no.such.host.invalid:18256", 3, "cannot send notifications")]
    {
        let done = sandbox.polygraph(&format!("run --no_proxy --goal 1s --notify {receiver}"));
        assert!(done.code() == Some(code) && done.err.contains(text), "{done:?}");
    }
}

/// A long run, which its test stops earlier. Its label keeps it apart from those of other tests.
fn long_run(sandbox: &Sandbox, label: &str, more: &str) -> crate::sandbox::Running {
    sandbox.start(&format!(
        "run --no_proxy --req_rate 50/sec --goal 10min --cool_phase none --xact_think none --label {label} {more}"
    ))
}

/// Words that make `mon` see the processes of the sandbox and no others.
fn only_label(words: &str) -> String {
    format!("mon --filter watched {words}")
}

/// Repeats `mon --once` until it shows what is wanted.
fn until_seen(sandbox: &Sandbox, words: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let done = sandbox.polygraph(&only_label(&format!("--once --json --wait 300ms {words}")));
        // 4: nobody publishes yet.
        assert!(matches!(done.code(), Some(0 | 4)), "{done:?}");
        let mut found: Value = serde_json::from_str(&done.out).unwrap_or_default();
        let found = found["processes"].take();
        if wanted(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "{found:#}");
    }
}

#[test]
fn processes_are_found_on_this_host_and_elsewhere() {
    let sandbox = Sandbox::new();
    let port = free_port();
    let run = long_run(&sandbox, "watched", &format!("--live 127.0.0.1:{port}"));
    let pid = u64::from(run.pid().as_raw_nonzero().get().unsigned_abs());
    let both = |rows: &Value| {
        let of_run = |row: &&Value| {
            row["pid"].as_u64() == Some(pid)
                && row["total"]["ok"].as_f64() > Some(150.0)
                && row["rate"].as_f64() > Some(20.0)
        };
        rows.as_array().is_some_and(|rows| rows.iter().filter(of_run).count() == 2)
    };
    let rows = until_seen(&sandbox, "", both);
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["side"] == "client" && row["pid"].as_u64() == Some(pid))
        .unwrap();
    assert_eq!(
        (row["label"].as_str(), row["state"].as_str(), row["phase"].as_str()),
        (Some("watched"), Some("running"), Some("warm"))
    );
    assert!(row["dhr"].as_f64().is_some() && row["verdict"].is_string(), "{row:#}");
    // The same process, by its port; it appears once.
    until_seen(&sandbox, &format!("--attach 127.0.0.1:{port}"), both);
    let table = sandbox.polygraph(&only_label("--once --side client"));
    assert!(
        table.out.contains("verdict so far")
            && table.out.contains("running")
            && !table.out.contains("server"),
        "{table:?}"
    );
    let mut stream = sandbox.start(&only_label("--json --side client"));
    let line = stream.wait_for("\"label\":\"watched\"");
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["format"], 1);
    drop(stream);
    run.signal(Signal::TERM);
    run.finish();
    let nobody = sandbox.polygraph(&format!("mon --once --wait 300ms --filter {pid}:nothing"));
    assert!(nobody.code() == Some(4) && nobody.err.contains("no process publishes"), "{nobody:?}");
}

#[test]
fn try_and_downtime_are_watched_like_runs() {
    for words in ["try", "downtime --device builtin --req_rate 20/sec"] {
        let sandbox = Sandbox::new();
        let run = sandbox.start(words);
        let pid = run.pid().as_raw_nonzero().get();
        let deadline = Instant::now() + PATIENCE;
        let runs = |found: Value| {
            found["processes"].as_array().is_some_and(|rows| rows.iter().any(|row| row["state"] == "running"))
        };
        while !runs(
            serde_json::from_str(&sandbox.polygraph(&format!("mon --once --json --filter {pid}")).out)
                .unwrap_or_default(),
        ) {
            assert!(Instant::now() < deadline, "{words}");
        }
        run.signal(Signal::TERM);
        run.finish();
    }
}

#[test]
fn metrics_are_served_while_a_run_lasts() {
    let sandbox = Sandbox::new();
    let mut run = long_run(&sandbox, "measured", "--live no --metrics 127.0.0.1:0");
    let line = run.wait_for("metrics at http://");
    let address = line.split("http://").nth(1).unwrap().trim_end_matches("/metrics").to_owned();
    let deadline = Instant::now() + PATIENCE;
    let page = loop {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let sides = ["client", "server"].map(|side| format!("polygraph_open_connections{{side=\"{side}\"}}"));
        if sides.iter().all(|sample| page.contains(sample)) {
            break page;
        }
        assert!(Instant::now() < deadline, "{page}");
    };
    assert!(page.contains("label=\"measured\"") && page.ends_with("# EOF\n"), "{page}");
    run.stop();
    let busy = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = busy.local_addr().unwrap().port();
    for option in ["metrics", "live"] {
        let done = sandbox.polygraph(&format!("run --no_proxy --goal 1s --{option} 127.0.0.1:{port}"));
        assert!(done.code() == Some(3) && done.err.contains("cannot listen at"), "{done:?}");
    }
}

/// The metrics of the dashboard exist.
#[test]
fn the_dashboard_asks_for_metrics_that_are_documented() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let dashboard = std::fs::read_to_string(format!("{root}/monitoring/grafana.json")).unwrap();
    let page = std::fs::read_to_string(format!("{root}/docs/monitor.md")).unwrap();
    serde_json::from_str::<Value>(&dashboard).unwrap();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = dashboard.match_indices("polygraph_").map(|(at, _)| {
        let rest = &dashboard[at..];
        &rest[..rest.find(|c| !is_name(c)).unwrap()]
    });
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn views_need_a_terminal_and_pages_elsewhere_a_token() {
    let sandbox = Sandbox::new();
    let done = sandbox.polygraph("mon");
    assert!(done.code() == Some(2) && done.err.contains("--once"), "{done:?}");
    let mut local = sandbox.start("mon --web 127.0.0.1:0");
    let line = local.wait_for("the monitor is at");
    assert!(line.contains("http://127.0.0.1:") && !line.contains("token"), "{line}");
    let mut open = sandbox.start("mon --web 0.0.0.0:0");
    let line = open.wait_for("the monitor is at");
    let token = line.split("?token=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(token.len(), 32, "{line}");
}

/// A terminal in tmux. It is closed when this is dropped.
struct Screen(String);

impl Screen {
    fn start(sandbox: &Sandbox, name: &str, program: &str) -> Screen {
        let screen = Screen(format!("{}-{name}", sandbox.path().display()));
        screen.tmux(&["new-session", "-d", "-s", name, "-x", "150", "-y", "40", program]);
        screen
    }

    fn tmux(&self, words: &[&str]) -> String {
        let socket = format!("{}.tmux", self.0);
        let done = Command::new("tmux")
            .args(["-f", "/dev/null", "-S", &socket])
            .args(words)
            .env_remove("TMUX")
            .output()
            .expect("tmux (make test-deps)");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen shows all of these texts and none of the others.
    fn wait_for(&self, texts: &[&str], none: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self.tmux(&["capture-pane", "-p"]);
            if texts.iter().all(|text| shown.contains(text)) && !none.iter().any(|text| shown.contains(text))
            {
                return shown;
            }
            assert!(Instant::now() < deadline, "no {texts:?}, or one of {none:?}:\n{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn the_terminal_view_follows_keys_and_processes() {
    let sandbox = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let screen = Screen::start(&sandbox, "mon", &format!("{program} mon --filter onscreen; read rest"));
    screen.wait_for(&["polygraph mon", "filter: onscreen", "? help"], &[]);
    let run = long_run(&sandbox, "onscreen", "");
    let pid = run.pid().as_raw_nonzero().get().to_string();
    screen.wait_for(&[&pid, "client", "server", "running", "warm", "replies/s", "VALID"], &[]);
    screen.keys(&["s"]);
    screen.wait_for(&["side: client", &pid], &["servers:"]);
    screen.keys(&["v", "v"]);
    screen.wait_for(&["all 1"], &[]);
    screen.keys(&["v", "Enter"]);
    screen.wait_for(&["busiest loop", "open connections", "verdict so far"], &[]);
    screen.keys(&["?"]);
    screen.wait_for(&["help", "filter by words"], &[]);
    screen.keys(&["?", "/", "x", "y", "z"]);
    screen.wait_for(&["filter: onscreenxyz", "no process passes the filter"], &[]);
    screen.keys(&["BSpace", "BSpace", "BSpace", "Enter"]);
    screen.wait_for(&[&pid], &["onscreenx"]);
    run.signal(Signal::TERM);
    run.finish();
    // The rows are those of this run; the line above the charts counts the processes of other tests too.
    screen.wait_for(&[&pid, "ended"], &[]);
    screen.keys(&["q"]);
    screen.wait_for(&[], &["polygraph mon"]);
}
