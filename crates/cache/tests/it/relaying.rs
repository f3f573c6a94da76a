//! How messages are passed on: framing, versions, fields, bodies of requests, failing origins.

use std::time::Duration;

use polygraph_link::{Link, send_all};

use crate::support::{
    Act, Client, Origin, advance, elapsed, link, new_address, proxy, proxy_with, reply, request,
};

const HOUR: &str = "Cache-Control: max-age=3600";

fn send(text: &str) -> Act {
    Act::Send(text.as_bytes().to_vec())
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn chunks_are_relayed_and_stored_as_one_body() {
    let origin = Origin::start(|_| {
        vec![
            send(CHUNKED),
            send("5;ext\r\nhello\r\n"),
            Act::Wait(Duration::from_millis(30)),
            send("1\r\n \r\n5\r\nwo"),
            Act::Wait(Duration::from_millis(30)),
            send("rld\r\n0\r\nTrailer: x\r\n\r\n"),
        ]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let miss = client.ask(origin.get("/a", &[]));
    assert_eq!((miss.text(), miss.complete), ("hello world", true));
    assert_eq!(miss.field("Transfer-Encoding"), Some("chunked"));
    let hit = client.ask(origin.get("/a", &[]));
    assert_eq!((hit.text(), hit.field("Content-Length")), ("hello world", Some("11")));
    assert_eq!(hit.field("Transfer-Encoding"), None);
    // The connection to the origin survived the chunks.
    client.ask(origin.get("/b", &[]));
    assert_eq!((origin.seen().len(), origin.connections()), (2, 1));
}

#[test]
fn http_1_0_clients_get_no_chunks_and_no_surprises() {
    let origin = Origin::start(|_| vec![send(CHUNKED), send("5\r\nhello\r\n0\r\n\r\n")]);
    let proxy = proxy();
    let get = |fields: &str| format!("GET {} HTTP/1.0\r\n{fields}\r\n", origin.url("/a"));
    let mut client = Client::of(&proxy);
    let miss = client.ask(get("Connection: keep-alive\r\n"));
    assert_eq!((miss.text(), miss.field("Connection")), ("hello", Some("close")));
    assert_eq!(miss.field("Transfer-Encoding"), None);
    assert!(client.is_at_end());
    // The length of a stored reply is known, so the connection can persist if the client wants that.
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        let hit = client.ask(get("Connection: keep-alive\r\n"));
        assert_eq!((hit.text(), hit.field("Connection")), ("hello", Some("keep-alive")));
    }
    let last = client.ask(get(""));
    assert_eq!((last.text(), last.field("Connection")), ("hello", Some("close")));
    assert!(client.is_at_end());
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn replies_that_end_with_the_connection_are_relayed_and_stored() {
    let origin = Origin::start(|_| {
        let head = "HTTP/1.0 200 OK\r\nLast-Modified: Wed, 18 Feb 1998 17:53:58 GMT\r\n\r\n";
        vec![send(head), send("hel"), Act::Wait(Duration::from_millis(20)), send("lo"), Act::Close]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let miss = client.ask(origin.get("/a", &[]));
    assert_eq!((miss.text(), miss.complete), ("hello", true));
    assert!(miss.head.starts_with("HTTP/1.1 200 OK\r\n"), "{}", miss.head);
    assert!(miss.head.contains("Via: 1.0 polygraph-"), "{}", miss.head);
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "hello");
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn hop_by_hop_fields_stay_on_their_hop() {
    let fields = [HOUR, "Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "X-End: 1"];
    let (proxy, origin) = (proxy(), Origin::with(reply(&fields, "hello")));
    let mut client = Client::of(&proxy);
    let sent =
        ["Connection: X-Mine", "X-Mine: 1", "Proxy-Connection: keep-alive", "TE: trailers", "X-Far: 1"];
    for _ in 0..2 {
        let got = client.ask(origin.get("/a", &sent));
        assert_eq!(
            (got.field("X-Hop"), got.field("Keep-Alive"), got.field("X-End")),
            (None, None, Some("1"))
        );
    }
    let seen = &origin.seen()[0];
    assert_eq!((seen.field("X-Mine"), seen.field("Proxy-Connection"), seen.field("TE")), (None, None, None));
    assert_eq!(seen.field("X-Far"), Some("1"));
    assert_eq!(seen.field("Host"), Some(&*origin.address.to_string()));
    assert!(seen.field("Via").is_some_and(|via| via.starts_with("1.1 polygraph-")));
    assert!(seen.head.starts_with("GET /a HTTP/1.1\r\n"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start(|seen| vec![Act::Send(reply(&[HOUR], seen.path()).into())]);
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    client.send([origin.get("/a", &[]), origin.get("/b", &[]), origin.get("/a", &[])].concat());
    let bodies: Vec<_> = (0..3).map(|_| client.read().text().to_owned()).collect();
    assert_eq!(bodies, ["/a", "/b", "/a"]);
    assert_eq!(origin.seen().len(), 2);
}

#[test]
fn request_bodies_are_passed_on() {
    let origin = Origin::start(|seen| vec![Act::Send(reply(&[], &seen.body.len().to_string()).into())]);
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let url = origin.url("/a");
    client.send(request("POST", &url, &["Content-Length: 100000"]));
    client.send([b'x'; 100_000]);
    assert_eq!(client.read().text(), "100000");
    client.send(request("POST", &url, &["Transfer-Encoding: chunked"]));
    client.send("5\r\nhello\r\n");
    client.send("6\r\n world\r\n0\r\n\r\n");
    assert_eq!(client.read().text(), "11");
    client.send(request("PUT", &url, &["Content-Length: 5", "Expect: 100-continue"]));
    assert_eq!(client.read().status, 100);
    client.send("hello");
    assert_eq!(client.read().text(), "5");
    let seen = origin.seen();
    assert_eq!(seen[0].field("Content-Length"), Some("100000"));
    assert_eq!(
        (seen[1].field("Transfer-Encoding"), seen[1].body.as_slice()),
        (Some("chunked"), &b"hello world"[..])
    );
    assert_eq!(seen[2].body, b"hello");
}

#[test]
fn an_early_final_reply_ends_the_request() {
    let (address, link) = (new_address(), link());
    let origin = link.clone();
    link.listen(address, move |mut conn, _| {
        origin.spawn(async move {
            conn.take().await.expect("a request");
            let reply = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
            send_all(&mut conn, reply).await.expect("sent");
            while conn.take().await.is_ok_and(|piece| !piece.is_empty()) {}
        });
    });
    let url = format!("http://{address}/a");
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    client.send(request("POST", &url, &["Content-Length: 1000000"]));
    let got = client.read();
    assert_eq!((got.status, got.text(), got.field("Connection")), (413, "no", Some("close")));
}

#[test]
fn a_body_cut_short_is_neither_completed_nor_stored() {
    let length = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 10\r\n\r\nhello";
    let chunked = format!("{CHUNKED}5\r\nhello\r\n");
    for text in [length.to_owned(), chunked] {
        let text = text.clone();
        let origin = Origin::start(move |_| vec![send(&text), Act::Close]);
        let proxy = proxy();
        for n in 1..=2 {
            let got = Client::of(&proxy).ask(origin.get("/a", &[]));
            assert!(!got.complete, "{got:?}");
            assert_eq!((origin.seen().len(), proxy.snapshot().stored), (n, 0));
        }
        assert_eq!(proxy.snapshot().aborted, 2);
    }
}

#[test]
fn failing_origins_are_named_and_the_client_connection_survives() {
    let refusing = new_address();
    let proxy = proxy_with(|config| config.io_timeout = Duration::from_millis(300));
    let mut client = Client::of(&proxy);
    let mut check = |url: String, status: u16| {
        let got = client.ask(request("GET", &url, &[]));
        assert_eq!((got.status, got.complete), (status, true), "{url}");
        assert!(got.field("Via").is_some() && got.text().ends_with(".\n"), "{got:?}");
    };
    check(format!("http://{refusing}/"), 502);
    check("http://does-not-exist.invalid/".to_owned(), 502);
    let closing = Origin::start(|_| vec![Act::Close]);
    check(closing.url("/"), 502);
    assert_eq!(closing.seen().len(), 1);
    check(Origin::with("SSH-2.0-OpenSSH\r\n").url("/"), 502);
    check(Origin::with("HTTP/1.1 101 Switching Protocols\r\n\r\n").url("/"), 502);
    check(Origin::with("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").url("/"), 502);
    check(Origin::with("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n").url("/"), 502);
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(70_000));
    check(Origin::with(endless).url("/"), 502);
    check(Origin::start(|_| vec![Act::Wait(Duration::from_secs(2))]).url("/"), 504);
    assert_eq!(proxy.snapshot().origin_errors, 9);
}

#[test]
fn a_slow_origin_is_relayed_as_it_speaks() {
    let origin = Origin::start(|_| {
        let pause = || Act::Wait(Duration::from_millis(200));
        vec![pause(), send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), pause(), send("b")]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let start = elapsed();
    client.send(origin.get("/a", &[]));
    // The head and the first byte do not wait for the second.
    assert!(client.more());
    let head_after = (elapsed() - start).as_millis();
    assert_eq!(client.read().text(), "ab");
    let all_after = (elapsed() - start).as_millis();
    assert!(
        (200..=201).contains(&head_after) && (400..=401).contains(&all_after),
        "{head_after} {all_after}"
    );
}

#[test]
fn a_reused_connection_that_was_closed_is_replaced() {
    // The origin closes after each reply without saying so.
    let origin = Origin::start(|_| vec![Act::Send(reply(&[], "hello").into()), Act::Close]);
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    for _ in 0..50 {
        assert_eq!(client.ask(origin.get("/a", &[])).text(), "hello");
    }
    assert_eq!(origin.connections(), 50);
}

#[test]
fn idle_origin_connections_are_reused_and_closed_when_idle() {
    let origin = Origin::with(reply(&[], "hello"));
    let proxy = proxy_with(|config| config.idle_timeout = Duration::from_millis(1500));
    for _ in 0..5 {
        Client::of(&proxy).ask(origin.get("/a", &[]));
    }
    assert_eq!((origin.connections(), proxy.snapshot().origin_connections), (1, 1));
    advance(Duration::from_millis(2600));
    assert_eq!(proxy.snapshot().origin_connections, 0);
}

#[test]
fn configured_names_and_servers_are_found() {
    let (origin, other) = (Origin::with(reply(&[HOUR], "hello")), Origin::with(reply(&[HOUR], "other")));
    let proxy = proxy_with(|config| {
        config.hosts = vec![("a.tst".into(), new_address().ip()), ("A.tst".into(), origin.address.ip())];
        config.servers = vec![("B.tst:8080".into(), other.address)];
    });
    let mut client = Client::of(&proxy);
    // The first address of the name refuses.
    assert_eq!(client.ask(request("GET", "http://A.Tst/a", &[])).text(), "hello");
    assert_eq!(origin.seen()[0].field("Host"), Some("A.Tst"));
    assert_eq!(client.ask(request("GET", "http://b.TST:8080/a", &[])).text(), "other");
    assert_eq!(client.ask(request("GET", "http://b.tst/a", &[])).status, 502);
}

#[test]
fn tunnels_pass_bytes_in_both_directions() {
    let (echo, link) = (new_address(), link());
    let spawning = link.clone();
    link.listen(echo, move |mut conn, _| {
        spawning.spawn(async move {
            while let Ok(piece) = conn.take().await
                && !piece.is_empty()
            {
                send_all(&mut conn, &piece).await.unwrap();
            }
        });
    });
    let proxy = proxy_with(|config| config.idle_timeout = Duration::from_secs(5));
    let mut client = Client::of(&proxy);
    // The first bytes may follow the request at once.
    client.send(format!("CONNECT {echo} HTTP/1.1\r\nHost: {echo}\r\n\r\nhello"));
    advance(Duration::from_secs(1));
    let big = "x".repeat(600_000);
    client.send(&big[..200_000]);
    advance(Duration::from_secs(1));
    let received = String::from_utf8(client.read_to_end()).unwrap();
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.starts_with("hello") && body.len() == 5 + 200_000, "{}", body.len());
    assert_eq!((proxy.snapshot().tunnels, proxy.snapshot().rejected), (1, 0));
}

#[test]
fn a_tunnel_to_nowhere_is_refused() {
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let nowhere = new_address();
    let reply = client.ask(format!("CONNECT {nowhere} HTTP/1.1\r\nHost: {nowhere}\r\n\r\n"));
    assert!([502, 504].contains(&reply.status), "{reply:?}");
    assert_eq!(proxy.snapshot().tunnels, 0);
}
