//! What clients may speak besides HTTP/1.1 to a forward proxy: HTTP/2, and requests to a surrogate.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use polygraph_link::{Conn, Link, send_all};
use polygraph_multiplex::{ClientConnection, Http2Settings};

use crate::support::{Act, Client, Origin, Proxy, advance, link, proxy, proxy_with, reply, request};

const HOUR: &str = "Cache-Control: public, max-age=3600";

/// The replies to requests that are sent at the same time on one HTTP/2 connection, in the order of their ends.
fn ask_all(proxy: &Proxy, requests: &[String]) -> Vec<String> {
    let conn = link().connect(None, proxy.local_addr()).expect("the proxy accepts");
    let connection = ClientConnection::start(&link(), conn, "http", &Http2Settings::default());
    let replies = Rc::<RefCell<Vec<String>>>::default();
    for request in requests {
        let (mut stream, request, replies) = (connection.open_stream(), request.clone(), Rc::clone(&replies));
        link().spawn(async move {
            send_all(&mut stream, request.as_bytes()).await.expect("the stream takes the request");
            let mut reply = Vec::new();
            while let Ok(1..) = stream
                .recv(|data| {
                    reply.extend_from_slice(data);
                    data.len()
                })
                .await
            {}
            replies.borrow_mut().push(String::from_utf8(reply).expect("text"));
        });
    }
    advance(Duration::from_secs(5));
    replies.take()
}

#[test]
fn streams_are_answered_at_the_same_time_and_from_one_store() {
    let (proxy, origin) = (
        proxy(),
        Origin::start(|seen| {
            let wait = if seen.path() == "/slow" { Duration::from_secs(2) } else { Duration::ZERO };
            vec![Act::Wait(wait), Act::Send(reply(&[HOUR], seen.path()).into())]
        }),
    );
    let get =
        |path: &str| request("GET", &origin.url(path), &[]).replace("ignored", &origin.address.to_string());
    let replies = ask_all(&proxy, &[get("/slow"), get("/a"), get("/b")]);
    assert_eq!(replies.len(), 3, "{replies:?}");
    assert!(replies.iter().all(|reply| reply.starts_with("HTTP/1.1 200")), "{replies:?}");
    assert!(replies[2].ends_with("/slow"), "{replies:?}");
    // HTTP/1.1 and HTTP/2 have one store.
    let hit = Client::of(&proxy).ask(origin.get("/a", &[]));
    assert_eq!((hit.status, hit.text(), hit.field("Age").is_some()), (200, "/a", true));
    let again = ask_all(&proxy, &[get("/b")]);
    assert!(again[0].contains("age: ") && again[0].ends_with("/b"), "{again:?}");
    let seen = proxy.snapshot();
    assert_eq!((seen.requests, seen.hits, seen.misses, seen.http2), (5, 2, 3, 2));
    assert_eq!(origin.seen().len(), 3);
}

#[test]
fn a_broken_connection_of_http2_counts() {
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f");
    let _ = client.read_to_end();
    assert_eq!((proxy.snapshot().http2, proxy.snapshot().bad_requests), (1, 1));
}

#[test]
fn a_surrogate_takes_paths_and_uses_its_origins_in_turn() {
    let origins = [Origin::with(reply(&[HOUR], "one")), Origin::with(reply(&[HOUR], "two"))];
    let addresses = origins.iter().map(|origin| origin.address).collect();
    let proxy = proxy_with(|config| config.origins = addresses);
    let mut client = Client::of(&proxy);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: www.example:81\r\n\r\n");
    assert_eq!(client.ask(get("/a")).text(), "one");
    assert_eq!(client.ask(get("/b")).text(), "two");
    let hit = client.ask("GET https://WWW.example:81/a HTTP/1.1\r\nHost: www.example:81\r\n\r\n");
    assert_eq!((hit.text(), hit.field("Age").is_some()), ("one", true));
    assert_eq!(origins[0].seen()[0].field("Host"), Some("www.example:81"));
    assert_eq!(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 400);
    assert_eq!(Client::of(&proxy).ask("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").status, 405);
}
