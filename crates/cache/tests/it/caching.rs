//! What is stored, for how long, and how it is given out.

use std::time::Duration;

use crate::support::{Act, Client, Origin, advance, proxy, reply, request};

const HOUR: &str = "Cache-Control: public, max-age=3600";

#[test]
fn a_second_request_is_answered_from_the_store() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&[HOUR, "X-Any: kept"], "hello")));
    let mut client = Client::of(&proxy);
    let miss = client.ask(origin.get("/a", &[]));
    assert_eq!((miss.status, miss.text(), miss.field("Age")), (200, "hello", None));
    let mut client = Client::of(&proxy);
    let hit = client.ask(origin.get("/a", &[]));
    assert_eq!((hit.status, hit.text(), hit.field("Age")), (200, "hello", Some("0")));
    assert_eq!((hit.field("X-Any"), hit.field("Content-Length")), (Some("kept"), Some("5")));
    assert!(hit.field("Via").is_some_and(|via| via.starts_with("1.1 polygraph-")), "{}", hit.head);
    assert!(hit.field("Date").is_some());
    assert_eq!(origin.seen().len(), 1);
    let figures = proxy.snapshot();
    assert_eq!((figures.requests, figures.hits, figures.misses, figures.stored), (2, 1, 1, 1));
    assert_eq!((figures.store_objects, figures.accepted), (1, 2));
    assert!(figures.store_bytes > 200 && figures.bytes_out > figures.bytes_in, "{figures:?}");
}

#[test]
fn equivalent_urls_are_the_same_object_and_others_are_not() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&[HOUR], "hello")));
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    client.ask(request("GET", &format!("HTTP://{}/a#part", origin.address), &[]));
    assert_eq!(origin.seen().len(), 1);
    client.ask(origin.get("/A", &[]));
    client.ask(origin.get("/a?", &[]));
    assert_eq!(origin.seen().len(), 3);
}

#[test]
fn replies_that_may_not_be_stored_are_not() {
    for fields in [
        &["Cache-Control: private, max-age=60"][..],
        &["Cache-Control: private,no-cache", "Pragma: no-cache"],
        &["Cache-Control: no-store"],
        &["Pragma: no-cache", "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT"],
        &["Vary: *", HOUR],
        &[],
    ] {
        let (proxy, origin) = (proxy(), Origin::with(reply(fields, "hello")));
        let mut client = Client::of(&proxy);
        for _ in 0..3 {
            assert_eq!(client.ask(origin.get("/a", &[])).text(), "hello");
        }
        assert_eq!(origin.seen().len(), 3, "{fields:?}");
        assert_eq!(proxy.snapshot().stored, 0, "{fields:?}");
    }
}

#[test]
fn a_stored_reply_ages_and_expires() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&["Cache-Control: max-age=62", "Age: 60"], "hello")));
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(origin.get("/a", &[])).field("Age"), Some("60"));
    advance(Duration::from_millis(1100));
    assert_eq!(client.ask(origin.get("/a", &[])).field("Age"), Some("61"));
    assert_eq!(origin.seen().len(), 1);
    advance(Duration::from_millis(1000));
    assert_eq!(client.ask(origin.get("/a", &[])).field("Age"), Some("60"));
    assert_eq!(origin.seen().len(), 2);
}

#[test]
fn requests_can_ask_for_more_than_fresh() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&[HOUR, "Age: 100"], "hello")));
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    let mut expected = 1;
    for (field, asks) in [
        ("Cache-Control: max-age=1000", false),
        ("Cache-Control: max-age=10", true),
        ("Cache-Control: no-cache", true),
        ("Pragma: no-cache", true),
        ("Cache-Control: min-fresh=3550", true),
        ("Cache-Control: only-if-cached", false),
        ("Cache-Control: no-store", false),
    ] {
        assert_eq!(client.ask(origin.get("/a", &[field])).status, 200, "{field}");
        expected += usize::from(asks);
        assert_eq!(origin.seen().len(), expected, "{field}");
    }
    assert_eq!(client.ask(origin.get("/b", &["Cache-Control: only-if-cached"])).status, 504);
    client.ask(origin.get("/c", &["Cache-Control: no-store"]));
    client.ask(origin.get("/c", &[]));
    assert_eq!(origin.seen().len(), expected + 2);
}

#[test]
fn authorized_replies_are_stored_only_if_they_say_so() {
    let origin = Origin::start(|seen| {
        let control = if seen.path() == "/public" { HOUR } else { "Cache-Control: max-age=60" };
        vec![Act::Send(reply(&[control], "hello").into())]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    for path in ["/public", "/other", "/public", "/other"] {
        client.ask(origin.get(path, &["Authorization: Basic eDp5"]));
    }
    assert_eq!(origin.seen().len(), 3);
    assert_eq!(origin.seen()[0].field("Authorization"), Some("Basic eDp5"));
}

#[test]
fn variants_are_kept_apart() {
    let origin = Origin::start(|seen| {
        let body = seen.field("Accept-Language").unwrap_or("none").to_owned();
        vec![Act::Send(reply(&[HOUR, "Vary: Accept-Language"], &body).into())]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        assert_eq!(client.ask(origin.get("/a", &["Accept-Language: de"])).text(), "de");
        assert_eq!(client.ask(origin.get("/a", &["Accept-Language: en"])).text(), "en");
        assert_eq!(client.ask(origin.get("/a", &[])).text(), "none");
    }
    assert_eq!(origin.seen().len(), 3);
    assert_eq!(proxy.snapshot().store_objects, 3);
}

#[test]
fn a_stale_reply_is_confirmed_by_its_validators() {
    let origin = Origin::start(|seen| {
        let confirmed = seen.field("If-None-Match") == Some("\"v1\"")
            && seen.field("If-Modified-Since") == Some("Wed, 18 Feb 1998 17:53:58 GMT");
        vec![Act::Send(if confirmed {
            b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nX-Round: second\r\n\r\n".to_vec()
        } else {
            let fields = [
                "Cache-Control: max-age=0",
                "ETag: \"v1\"",
                "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT",
                "X-Round: first",
            ];
            reply(&fields, "hello").into()
        })]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(origin.get("/a", &[])).field("X-Round"), Some("first"));
    let confirmed = client.ask(origin.get("/a", &[]));
    assert_eq!((confirmed.status, confirmed.text()), (200, "hello"));
    assert_eq!(confirmed.field("X-Round"), Some("second"));
    // The 304 made it fresh again.
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "hello");
    assert_eq!(origin.seen().len(), 2);
    let figures = proxy.snapshot();
    assert_eq!((figures.misses, figures.validations, figures.validated, figures.hits), (1, 1, 1, 1));
    assert_eq!(figures.store_objects, 1);
    // A reload with the client's own condition: ours goes to the origin, the client's is answered here.
    let fields = ["Cache-Control: no-cache", "If-None-Match: \"v1\""];
    let reload = client.ask(origin.get("/a", &fields));
    assert_eq!((reload.status, reload.field("ETag")), (304, Some("\"v1\"")));
    assert_eq!(origin.seen().len(), 3);
}

#[test]
fn a_changed_reply_replaces_the_stale_one() {
    let origin = Origin::start(|seen| {
        let (tag, body) = match seen.field("If-None-Match") {
            None => ("ETag: \"v1\"", "old"),
            Some(_) => ("ETag: \"v2\"", "new"),
        };
        vec![Act::Send(reply(&["Cache-Control: max-age=0", tag], body).into())]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "old");
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "new");
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "new");
    assert_eq!(origin.seen()[2].field("If-None-Match"), Some("\"v2\""));
    assert_eq!(proxy.snapshot().store_objects, 1);
}

#[test]
fn a_304_about_something_else_is_not_believed() {
    let origin = Origin::start(|seen| {
        vec![Act::Send(match seen.field("If-None-Match") {
            Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n".to_vec(),
            None => reply(&["Cache-Control: max-age=0", "ETag: \"v1\""], "hello").into(),
        })]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    let second = client.ask(origin.get("/a", &[]));
    assert_eq!((second.status, second.text()), (200, "hello"));
    assert_eq!(origin.seen().len(), 3);
}

#[test]
fn conditions_of_clients_are_answered_from_the_store() {
    let fields = [HOUR, "ETag: \"a\"", "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT", "Content-Type: x/y"];
    let (proxy, origin) = (proxy(), Origin::with(reply(&fields, "hello")));
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    for (field, status) in [
        ("If-None-Match: \"a\"", 304),
        ("If-None-Match: \"b\"", 200),
        ("If-Modified-Since: Wed, 18 Feb 1998 17:53:58 GMT", 304),
        ("If-Modified-Since: Wed, 18 Feb 1998 17:53:57 GMT", 200),
    ] {
        let got = client.ask(origin.get("/a", &[field]));
        assert_eq!(got.status, status, "{field}");
        assert_eq!(got.field("Content-Type").is_some(), status == 200, "{field}");
        assert_eq!(got.field("ETag"), Some("\"a\""));
    }
    assert_eq!((origin.seen().len(), proxy.snapshot().hits), (1, 4));
}

#[test]
fn conditions_without_a_stored_reply_are_for_the_origin() {
    let (proxy, origin) = (proxy(), Origin::with("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"));
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        assert_eq!(client.ask(origin.get("/a", &["If-None-Match: \"a\""])).status, 304);
    }
    assert_eq!(origin.seen()[1].field("If-None-Match"), Some("\"a\""));
}

#[test]
fn head_is_answered_from_a_stored_get() {
    let (proxy, origin) = (proxy(), Origin::with(reply(&[HOUR], "hello")));
    let mut client = Client::of(&proxy);
    client.ask(origin.get("/a", &[]));
    client.send(request("HEAD", &origin.url("/a"), &[]));
    let head = client.try_read(true).expect("a reply");
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("5")));
    // Nothing but the head came: the next reply follows at once.
    assert_eq!(client.ask(origin.get("/a", &[])).text(), "hello");
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn ranges_are_for_the_origin_and_parts_are_not_stored() {
    let part = "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nContent-Range: bytes 0-1/5\r\n\
                Content-Length: 2\r\n\r\nhe";
    let (proxy, origin) = (proxy(), Origin::with(part));
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        let got = client.ask(origin.get("/a", &["Range: bytes=0-1"]));
        assert_eq!((got.status, got.text()), (206, "he"));
    }
    assert_eq!(origin.seen()[1].field("Range"), Some("bytes=0-1"));
    assert_eq!(proxy.snapshot().stored, 0);
}

#[test]
fn unsafe_requests_invalidate_if_they_succeed() {
    let origin = Origin::start(|seen| {
        let failed = seen.head.starts_with("PUT");
        vec![Act::Send(if failed {
            b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec()
        } else {
            reply(&[HOUR], "hello").into()
        })]
    });
    let proxy = proxy();
    let mut client = Client::of(&proxy);
    let asked = |client: &mut Client, method: &str| {
        client.ask(request(method, &origin.url("/a"), &["Content-Length: 0"]));
        origin.seen().len()
    };
    assert_eq!(asked(&mut client, "GET"), 1);
    assert_eq!(asked(&mut client, "PUT"), 2);
    assert_eq!(asked(&mut client, "GET"), 2);
    assert_eq!(asked(&mut client, "POST"), 3);
    assert_eq!(asked(&mut client, "GET"), 4);
}

#[test]
fn a_reply_is_stored_before_its_client_has_all_of_it() {
    // Many clients, one after the other, each asking right after the one before has its reply.
    let (proxy, origin) = (proxy(), Origin::with(reply(&[HOUR], &"x".repeat(50_000))));
    for n in 1..=50 {
        for _ in 0..2 {
            Client::of(&proxy).ask(origin.get(&format!("/{n}"), &[]));
        }
        assert_eq!(proxy.snapshot().hits, n);
    }
}
