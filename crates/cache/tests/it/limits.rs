//! Limits and refusals, the service model, start and stop.

use std::time::Duration;

use polygraph_cache::ServiceModel;
use polygraph_traffic::Distr;

use crate::support::{Act, Client, Origin, advance, elapsed, proxy, proxy_with, reply, request};

const HOUR: &str = "Cache-Control: max-age=3600";

#[test]
fn memory_stays_within_its_limit_and_the_latest_objects_stay() {
    const LIMIT: u64 = 1 << 20;
    let origin = Origin::with(reply(&[HOUR], &"x".repeat(10_000)));
    let proxy = proxy_with(|config| config.cache_bytes = LIMIT);
    let mut client = Client::of(&proxy);
    for n in 0..300 {
        client.ask(origin.get(&format!("/{n}"), &[]));
        assert!(proxy.snapshot().store_bytes <= LIMIT);
    }
    let figures = proxy.snapshot();
    assert_eq!((figures.stored, figures.store_objects + figures.evicted), (300, 300));
    // A hundred fit at 10,000 bytes; the overhead costs a few.
    assert!((95..=104).contains(&figures.store_objects), "{figures:?}");
    let kept = figures.store_objects;
    for n in (300 - kept..300).rev() {
        client.ask(origin.get(&format!("/{n}"), &[]));
    }
    assert_eq!(proxy.snapshot().hits, kept);
    client.ask(origin.get("/0", &[]));
    assert_eq!(proxy.snapshot().hits, kept);
}

#[test]
fn objects_too_large_are_relayed_but_not_stored() {
    let large = "x".repeat(200_000);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\n{HOUR}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    for text in [reply(&[HOUR], &large), chunked] {
        let origin = Origin::with(text);
        let proxy = proxy_with(|config| config.cache_bytes = 1 << 20);
        for _ in 0..2 {
            let got = Client::of(&proxy).ask(origin.get("/a", &[]));
            assert!(got.complete && got.body.len() == 200_000);
        }
        assert_eq!((origin.seen().len(), proxy.snapshot().store_objects), (2, 0));
    }
}

#[test]
fn five_hundred_clients_at_once() {
    let origin = Origin::start(|seen| {
        vec![Act::Wait(Duration::from_millis(100)), Act::Send(reply(&[HOUR], seen.path()).into())]
    });
    let proxy = proxy();
    let mut clients: Vec<_> = (0..500).map(|_| Client::of(&proxy)).collect();
    for round in 1..=2 {
        for (n, client) in clients.iter_mut().enumerate() {
            client.send(origin.get(&format!("/{n}"), &[]));
        }
        for (n, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.read().text(), format!("/{n}"), "round {round}");
        }
    }
    let figures = proxy.snapshot();
    assert_eq!((figures.hits, figures.misses, figures.client_connections), (500, 500, 500));
    drop(clients);
    advance(Duration::from_millis(1));
    assert_eq!(proxy.snapshot().client_connections, 0);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = proxy_with(|config| config.max_connections = 3);
    let mut clients: Vec<_> = (0..3).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(origin.get("/a", &[])).status, 200);
    }
    let mut refused = Client::of(&proxy);
    let got = refused.ask(origin.get("/a", &[]));
    assert_eq!((got.status, got.field("Connection")), (503, Some("close")));
    assert!(refused.is_at_end());
    assert_eq!((proxy.snapshot().refused, proxy.snapshot().client_connections), (1, 3));
    // Those inside are still served, and a place that becomes free is given away.
    assert_eq!(clients[0].ask(origin.get("/a", &[])).status, 200);
    clients.pop();
    advance(Duration::from_millis(1));
    assert_eq!(Client::of(&proxy).ask(origin.get("/a", &[])).status, 200);
}

#[test]
fn what_is_not_a_proxy_request_is_refused() {
    let proxy = proxy_with(|config| config.head_timeout = Duration::from_millis(300));
    let many = format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(101));
    let long = format!("GET http://a/{} HTTP/1.1\r\n", "x".repeat(70_000));
    let chunked_1_0 = "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (text, status) in [
        ("\x16\x03\x01\x02\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET http://u:p@a/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (chunked_1_0, 400),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
        ("CONNECT b@a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 400),
        ("GET https://a/ HTTP/1.1\r\n\r\n", 501),
        (&many, 431),
        (&long, 431),
        ("GET http://a/ HT", 408),
        ("SSH-2.0-x", 408),
    ] {
        let mut client = Client::of(&proxy);
        let got = client.ask(text);
        assert_eq!(got.status, status, "{}", &text[..text.len().min(60)]);
        assert!(got.field("Via").is_some() && got.complete);
    }
    assert_eq!(proxy.snapshot().bad_requests, 5);
}

#[test]
fn a_request_that_comes_back_is_a_loop() {
    let proxy = proxy();
    let url = format!("http://{}/a", proxy.local_addr());
    let got = Client::of(&proxy).ask(request("GET", &url, &[]));
    // The inner proxy request has the target in origin form, so the proxy refuses it as not for a proxy.
    assert_eq!(got.status, 400);
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let via = Client::of(&proxy).ask(origin.get("/a", &[])).field("Via").map(str::to_owned).expect("a Via");
    let got = Client::of(&proxy).ask(origin.get("/a", &[&format!("Via: {via}")]));
    assert_eq!(got.status, 508);
}

#[test]
fn max_forwards_ends_here() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&[], "hello")));
    let mut client = Client::of(&proxy);
    let got = client.ask(request("OPTIONS", &origin.url("/"), &["Max-Forwards: 0"]));
    assert_eq!((got.status, origin.seen().len()), (200, 0));
    client.ask(request("OPTIONS", &origin.url("/"), &["Max-Forwards: 1"]));
    assert_eq!(origin.seen()[0].field("Max-Forwards"), Some("0"));
}

#[test]
fn idle_clients_are_closed() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = proxy_with(|config| config.idle_timeout = Duration::from_millis(200));
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    let start = elapsed();
    assert!(client.is_at_end());
    let idle = (elapsed() - start).as_millis();
    assert!((199..=201).contains(&idle), "{idle} ms");
}

#[test]
fn a_service_rate_limits_throughput() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = proxy_with(|config| config.service.work = Some(ServiceModel::rate(100.0)));
    let mut clients: Vec<_> = (0..40).map(|_| Client::of(&proxy)).collect();
    let start = elapsed();
    for client in &mut clients {
        client.send(origin.get("/a", &[]));
    }
    for client in &mut clients {
        assert_eq!(client.read().status, 200);
    }
    // 40 transactions leave a queue of 100 per second after 0.4 s, however many connections there are.
    let seconds = (elapsed() - start).as_secs_f64();
    assert!((0.4..0.402).contains(&seconds), "{seconds}");
}

#[test]
fn a_service_time_delays_each_transaction_but_not_in_a_row() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = proxy_with(|config| config.service.latency = Some(Distr::Const(0.3)));
    let mut clients: Vec<_> = (0..20).map(|_| Client::of(&proxy)).collect();
    let start = elapsed();
    for client in &mut clients {
        client.send(origin.get("/a", &[]));
    }
    for client in &mut clients {
        assert_eq!(client.read().status, 200);
    }
    // In a row they would take 6 s.
    let seconds = (elapsed() - start).as_secs_f64();
    assert!((0.3..0.302).contains(&seconds), "{seconds}");
}

#[test]
fn misses_are_more_work_than_hits() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = proxy_with(|config| config.service.miss_work = Some(Distr::Const(0.2)));
    let mut client = Client::of(&proxy);
    let mut seconds = |path: &str| {
        let start = elapsed();
        assert_eq!(client.ask(origin.get(path, &[])).status, 200);
        (elapsed() - start).as_secs_f64()
    };
    let (miss, other, hit) = (seconds("/a"), seconds("/b"), seconds("/a"));
    assert!(miss >= 0.2 && other >= 0.2 && hit < 0.002, "{miss} {other} {hit}");
}

#[test]
fn a_stop_closes_connections_after_their_transaction() {
    let origin = Origin::start(|_| {
        vec![Act::Wait(Duration::from_millis(300)), Act::Send(reply(&[HOUR], "hello").into())]
    });
    let proxy = proxy();
    let mut busy = Client::of(&proxy);
    busy.send(origin.get("/a", &[]));
    advance(Duration::from_millis(100));
    proxy.stop();
    let last = busy.read();
    assert_eq!((last.text(), last.field("Connection")), ("hello", Some("close")));
    assert!(busy.is_at_end());
    drop(busy);
    advance(Duration::from_millis(1));
    assert_eq!((proxy.snapshot().misses, proxy.snapshot().client_connections), (1, 0));
}

#[test]
fn a_cache_of_no_size_is_a_plain_proxy() {
    let (origin, proxy) =
        (Origin::with(reply(&[HOUR], "hello")), proxy_with(|config| config.cache_bytes = 0));
    for _ in 0..2 {
        assert_eq!(Client::of(&proxy).ask(origin.get("/a", &[])).text(), "hello");
    }
    assert_eq!((origin.seen().len(), proxy.snapshot().stored), (2, 0));
}

/// Who sends both may mean to smuggle a request: chunks count, and nothing behind them is taken for a request (RFC 9112,
/// section 6.3).
#[test]
fn a_length_beside_chunks_ends_the_connection() {
    let origin = Origin::with(reply(&[], "good"));
    let proxy = proxy();
    let fields = ["Content-Length: 3", "Transfer-Encoding: chunked"];
    let mut client = Client::of(&proxy);
    let got = client.ask(request("POST", &origin.url("/a"), &fields) + "0\r\n\r\n");
    assert!(got.status == 200 && got.head.contains("Connection: close"), "{got:?}");
    // The same of an origin: its connection is not used again.
    let both = format!("HTTP/1.1 200 OK\r\n{}\r\n{}\r\n\r\n3\r\nabc\r\n0\r\n\r\n", fields[0], fields[1]);
    let origin = Origin::with(both);
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        assert_eq!(client.ask(origin.get("/a", &[])).text(), "abc");
    }
    assert_eq!(origin.connections(), 2);
}
