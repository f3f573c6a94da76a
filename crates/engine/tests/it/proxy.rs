//! The built-in proxy on sockets: threads, listening, names, start and stop.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use polygraph_cache::ProxyConfig;
use polygraph_engine::proxy::ProxyServer;

use super::engine;

const REPLY: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 5\r\n\r\n";

/// An origin that answers one request per connection with a head, then, after `pause`, with `body`, and closes. Tells of
/// each request.
fn origin(pause: Duration, body: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || answer(stream, pause, body, |head| drop(seen.send(head))));
        }
    });
    (address, requests)
}

fn answer(mut stream: TcpStream, pause: Duration, body: &str, seen: impl FnOnce(String)) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    seen(String::from_utf8(head).unwrap());
    let _ = stream.write_all(REPLY.as_bytes());
    std::thread::sleep(pause);
    let _ = stream.write_all(body.as_bytes());
}

fn proxy(loops: usize) -> ProxyServer {
    ProxyServer::start(ProxyConfig { loops, cache_bytes: 8 << 20, ..ProxyConfig::default() }, engine())
        .unwrap()
}

/// A connection to the proxy with a request for `url` on it.
fn request(proxy: &ProxyServer, url: &str) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
        .write_all(format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    stream
}

fn read(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn two_event_loops_share_a_store() {
    let ((address, requests), proxy) = (origin(Duration::ZERO, "hello"), proxy(2));
    for n in 0..50 {
        let text = read(request(&proxy, &format!("http://{address}/a")));
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nhello"), "{text}");
        assert_eq!(text.contains("\r\nAge: "), n > 0, "{text}");
    }
    assert_eq!(requests.try_iter().count(), 1);
    let figures = proxy.snapshot();
    assert_eq!((figures.requests, figures.hits, figures.accepted), (50, 49, 50));
}

#[test]
fn the_resolver_finds_names_that_are_not_configured() {
    let ((address, requests), proxy) = (origin(Duration::ZERO, "hello"), proxy(1));
    let authority = format!("LocalHost:{}", address.port());
    assert!(read(request(&proxy, &format!("http://{authority}/a"))).ends_with("hello"));
    assert!(requests.recv().unwrap().contains(&format!("\r\nHost: {authority}\r\n")));
    let text = read(request(&proxy, "http://does-not-exist.invalid/"));
    assert!(text.starts_with("HTTP/1.1 502 "), "{text}");
}

#[test]
fn a_reply_that_breaks_off_ends_with_a_reset() {
    let ((address, _requests), proxy) = (origin(Duration::ZERO, "he"), proxy(1));
    let mut stream = request(&proxy, &format!("http://{address}/a"));
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.snapshot().aborted, 1);
}

#[test]
fn a_stop_lets_transactions_end_and_figures_stay() {
    let ((address, requests), mut proxy) = (origin(Duration::from_millis(300), "hello"), proxy(2));
    let busy = request(&proxy, &format!("http://{address}/a"));
    let idle = TcpStream::connect(proxy.local_addr()).unwrap();
    requests.recv().unwrap();
    proxy.stop();
    assert!(read(busy).ends_with("hello"));
    assert_eq!(read(idle), "");
    assert!(TcpStream::connect(proxy.local_addr()).is_err());
    assert_eq!((proxy.snapshot().misses, proxy.snapshot().client_connections), (1, 0));
    let cpu = proxy.cpu_seconds();
    assert!(cpu > 0.0 && cpu < 5.0, "{cpu}");
    proxy.stop();
}

#[test]
fn settings_and_ports_that_cannot_be_used_are_errors() {
    let taken = proxy(2);
    let error = |change: fn(&mut ProxyConfig)| {
        let mut config = ProxyConfig::default();
        change(&mut config);
        ProxyServer::start(config, engine()).map(|_| ()).expect_err("an error").kind()
    };
    assert_eq!(error(|config| config.loops = 0), ErrorKind::InvalidInput);
    assert_eq!(error(|config| config.max_connections = 0), ErrorKind::InvalidInput);
    assert_eq!(error(|config| config.service.changes = vec![(Duration::ZERO, 0.0)]), ErrorKind::InvalidInput);
    for loops in [1, 2] {
        let config = ProxyConfig { listen: taken.local_addr(), loops, ..ProxyConfig::default() };
        let kind = ProxyServer::start(config, engine()).map(|_| ()).expect_err("an error").kind();
        assert_eq!(kind, ErrorKind::AddrInUse);
    }
}
