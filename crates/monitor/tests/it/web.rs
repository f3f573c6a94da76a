//! The page and its events, as a browser asks for them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polygraph_monitor::watched::ProcessKey;
use polygraph_monitor::{FeedEvent, WebView};
use serde_json::Value;

use crate::messages::bench;

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn tell(view: &WebView, second: u64) {
    for message in bench(second) {
        view.take(FeedEvent::Statistics(Box::new(message)), Instant::now());
    }
}

fn ask(address: SocketAddr, path: &str, host: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

fn get(address: SocketAddr, path: &str, host: &str) -> String {
    let mut text = String::new();
    ask(address, path, host).read_to_string(&mut text).unwrap();
    text
}

fn start(token: Option<&str>) -> (Arc<WebView>, SocketAddr) {
    let view = WebView::new(token.map(str::to_owned));
    let address = view.serve(([127, 0, 0, 1], 0).into()).unwrap();
    (view, address)
}

/// Name and data of the next event with this name.
fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>, name: &str) -> Value {
    let wanted = format!("event: {name}");
    // Parts of a chunked body begin with their lengths.
    let is_wanted = |line: &std::io::Result<String>| line.as_ref().unwrap().ends_with(&wanted);
    assert!(lines.any(|line| is_wanted(&line)), "no event {name}");
    let line = lines.next().unwrap().unwrap();
    serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap()
}

#[test]
fn events_begin_with_the_history_and_go_on() {
    let (view, address) = start(None);
    (1..=5).for_each(|second| tell(&view, second));
    let mut lines = BufReader::new(ask(address, "/events", "localhost")).lines();
    let history = next(&mut lines, "history");
    let first = &history[0];
    assert_eq!((history.as_array().unwrap().len(), first["points"].as_array().unwrap().len()), (3, 5));
    assert_eq!(
        (first["key"]["host"].as_str(), first["latest"]["phase"]["name"].as_str()),
        (Some("clt1"), Some("meas"))
    );
    tell(&view, 6);
    let message = next(&mut lines, "statistics");
    assert_eq!((message["host"].as_str(), message["elapsed_s"].as_f64()), (Some("clt1"), Some(6.0)));
    view.take(
        FeedEvent::Lost(vec![ProcessKey { host: "clt1".into(), pid: 100, side: "client" }]),
        Instant::now(),
    );
    assert_eq!(next(&mut lines, "lost")[0]["pid"], 100);
    view.take(FeedEvent::Problem("a \"problem\"\nin two lines".into()), Instant::now());
    assert_eq!(next(&mut lines, "problem"), "a \"problem\"\nin two lines");
    let table = get(address, "/state.json", "localhost");
    let table: Value = serde_json::from_str(table.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((table[0]["host"].as_str(), table[0]["state"].as_str()), (Some("clt1"), Some("lost")));
}

#[test]
fn the_page_asks_nobody_else() {
    let (_view, address) = start(None);
    let page = get(address, "/", "127.0.0.1");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    for path in ["/", "/monitor.js", "/monitor.css"] {
        let text = get(address, path, "127.0.0.1");
        assert!(text.starts_with("HTTP/1.1 200"), "{path}");
        let links = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http://") && !links.contains("https://"), "{path} names another host");
    }
    assert!(get(address, "/other", "127.0.0.1").starts_with("HTTP/1.1 404"));
}

#[test]
fn strangers_see_nothing() {
    let (view, address) = start(None);
    tell(&view, 1);
    // A page from elsewhere under a name that leads here.
    let rebound = get(address, "/state.json", "evil.example:80");
    assert!(rebound.starts_with("HTTP/1.1 403") && !rebound.contains("clt1"), "{rebound}");
    let (view, address) = start(Some("0123456789abcdef"));
    tell(&view, 1);
    for path in ["/events", "/state.json", "/state.json?token=0123456789abcdeF", "/events?token="] {
        let refused = get(address, path, "10.0.0.9");
        assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("clt1"), "{path}: {refused}");
    }
    let allowed = get(address, "/state.json?token=0123456789abcdef", "10.0.0.9");
    assert!(allowed.starts_with("HTTP/1.1 200") && allowed.contains("clt1"), "{allowed}");
    assert!(get(address, "/", "10.0.0.9").starts_with("HTTP/1.1 200"), "the page itself is no secret");
}
