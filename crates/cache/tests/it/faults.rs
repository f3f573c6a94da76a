//! A proxy with a configured fault commits exactly that fault.

use polygraph_link::Nanos;
use std::time::Duration;

use polygraph_cache::{Fault, Identity, ProxyConfig, Shared};

use crate::support::{Act, Client, Origin, Proxy, Reply, advance, proxy_with, reply};

const HOUR: &str = "Cache-Control: public, max-age=3600";

fn faulty(faults: &[(Fault, f64)]) -> Proxy {
    proxy_with(|config| config.faults = faults.to_vec())
}

fn always(fault: Fault) -> Proxy {
    faulty(&[(fault, 1.0)])
}

/// Two objects, `/a` and `/b`, that are stored and then asked for again with `fields`.
fn again(fault: Fault, origin: &Origin, fields: &[&str]) -> (Reply, Proxy) {
    let proxy = always(fault);
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(origin.get("/a", &[])).status, 200);
    assert_eq!(client.ask(origin.get("/b", &[])).status, 200);
    let again = client.ask(origin.get("/a", fields));
    (again, proxy)
}

fn two_objects() -> Origin {
    Origin::start(|seen| {
        let text = if seen.path() == "/a" { "the first" } else { "the second one" };
        vec![Act::Send(reply(&[HOUR, &format!("X-Path: {}", seen.path())], text).into())]
    })
}

#[test]
fn bodies_of_hits_are_spoiled() {
    #[track_caller]
    fn check(fault: Fault, path: &str, body: &str, length: &str, complete: bool) {
        let (hit, proxy) = again(fault, &two_objects(), &[]);
        assert_eq!(hit.field("X-Path"), Some(path), "{fault:?}");
        assert_eq!((hit.text(), hit.field("Content-Length")), (body, Some(length)), "{fault:?}");
        assert_eq!(hit.complete, complete, "{fault:?}");
        let figures = proxy.snapshot();
        assert_eq!((figures.faults, figures.hits, figures.misses), (1, 1, 2), "{fault:?}");
    }
    check(Fault::SwapBodies, "/a", "the second one", "14", true);
    check(Fault::SwapReplies, "/b", "the second one", "14", true);
    check(Fault::Cut, "/a", "the ", "9", false);
    check(Fault::Shorten, "/a", "the ", "4", true);
    check(Fault::Lengthen, "/a", "the firstand more", "17", true);
}

#[test]
fn a_body_is_altered_in_one_bit_and_the_stored_one_stays() {
    let (hit, proxy) = again(Fault::Alter, &two_objects(), &[]);
    let bits: u32 = hit.body.iter().zip(b"the first").map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!((hit.body.len(), bits), (9, 1));
    drop(proxy);
}

#[test]
fn what_follows_a_body_is_not_announced() {
    let origin = two_objects();
    let (hit, proxy) = again(Fault::Overrun, &origin, &[]);
    assert_eq!(hit.text(), "the first");
    let mut client = Client::of(&proxy);
    client.send(origin.get("/a", &["Connection: close"]));
    let bytes = client.read_to_end();
    assert!(bytes.ends_with(b"the firstand more"), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn stored_replies_are_used_although_they_must_not_be() {
    #[track_caller]
    fn check(fault: Fault, reply_fields: &[&str], second: &[&str], expected: bool) {
        let fields: Vec<String> = reply_fields.iter().map(|&field| field.to_owned()).collect();
        let origin = Origin::start(move |_| {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            vec![Act::Send(reply(&fields, "hello").into())]
        });
        let proxy = always(fault);
        let mut client = Client::of(&proxy);
        client.ask(origin.get("/a", &["Accept: x"]));
        advance(Duration::from_millis(1100));
        assert_eq!(client.ask(origin.get("/a", second)).text(), "hello");
        assert_eq!((origin.seen().len() == 1, proxy.snapshot().hits == 1), (expected, expected), "{fault:?}");
    }
    let short = "Cache-Control: max-age=1";
    check(Fault::Stale, &[short], &[], true);
    check(Fault::IgnoreReload, &[short], &[], false);
    check(Fault::IgnoreReload, &[HOUR], &["Cache-Control: no-cache"], true);
    check(Fault::Stale, &[HOUR], &["Cache-Control: no-cache"], false);
    check(Fault::StorePrivate, &["Cache-Control: private,no-cache"], &[], true);
    check(Fault::Stale, &["Cache-Control: private,no-cache"], &[], false);
    check(Fault::ForgetVary, &[HOUR, "Vary: Accept"], &["Accept: y"], true);
    check(Fault::Stale, &[HOUR, "Vary: Accept"], &["Accept: y"], false);
}

#[test]
fn conditions_do_not_matter() {
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::with(reply(&[HOUR, modified], "hello"));
    let earlier = "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT";
    assert_eq!(again(Fault::FalseNotModified, &origin, &[earlier]).0.status, 304);
    assert_eq!(again(Fault::FalseNotModified, &origin, &[]).0.status, 200);
    assert_eq!(again(Fault::Stale, &origin, &[earlier]).0.status, 200);
}

#[test]
fn ranges_are_wrong() {
    #[track_caller]
    fn check(fault: Fault, wanted: &str, range: &str, body: &str) {
        let origin = Origin::with(reply(&[HOUR], "0123456789"));
        let (part, _) = again(fault, &origin, &[&format!("Range: bytes={wanted}")]);
        assert_eq!((part.status, part.text()), (206, body), "{fault:?} {wanted}");
        assert_eq!(part.field("Content-Range"), Some(&*format!("bytes {range}/10")), "{fault:?} {wanted}");
    }
    check(Fault::WrongRange, "2-4", "5-7", "567");
    check(Fault::WrongRange, "-3", "4-6", "456");
    check(Fault::ShiftRange, "2-4", "2-4", "567");
    check(Fault::ShiftRange, "-3", "7-9", "456");
    // There is nothing else, so the origin is asked.
    let origin = Origin::with(reply(&[HOUR], "0123456789"));
    let (whole, proxy) = again(Fault::WrongRange, &origin, &["Range: bytes=0-9"]);
    assert_eq!((whole.status, proxy.snapshot().faults), (200, 0));
}

#[test]
fn heads_are_spoiled_for_clients_and_for_the_store() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
    let origin = Origin::with(reply(&[HOUR, date, "X-Any: a", "Y: x-b"], "hello"));
    let proxy = always(Fault::StripMarks);
    for _ in 0..2 {
        let reply = Client::of(&proxy).ask(origin.get("/a", &[]));
        assert_eq!((reply.field("X-Any"), reply.field("Y"), reply.text()), (None, Some("x-b"), "hello"));
    }
    let proxy = always(Fault::WrongDate);
    let reply = Client::of(&proxy).ask(origin.get("/a", &[]));
    assert_eq!(reply.field("Date"), Some("Sun, 06 Nov 1994 09:49:37 GMT"));
    assert_eq!(reply.field("X-Any"), Some("a"));
    let proxy = always(Fault::WrongDate);
    let reply = Client::of(&proxy).ask(origin.get("/a", &[]));
    assert_eq!(reply.field("Date"), Some("Sun, 06 Nov 1994 09:49:37 GMT"));
    assert_eq!(reply.field("X-Any"), Some("a"));
}

#[test]
fn only_digests_that_are_there_are_replaced() {
    let origin = Origin::with(reply(&[HOUR], "hello"));
    let proxy = always(Fault::WrongDigest);
    let bare = Client::of(&proxy).ask(origin.get("/a", &[]));
    assert_eq!((bare.field("Content-MD5"), proxy.snapshot().faults), (None, 0));
    let origin = Origin::with(reply(&[HOUR, "Content-MD5: XUFAKrxLKna5cZ2REBfFkg=="], "hello"));
    for _ in 0..2 {
        let reply = Client::of(&proxy).ask(origin.get("/b", &[]));
        assert_eq!((reply.field("Content-MD5"), reply.text()), (Some("1B2M2Y8AsgTpgAmY7PhCfg=="), "hello"));
    }
    assert_eq!(proxy.snapshot().faults, 1, "the second reply comes from the store");
}

#[test]
fn shares_are_kept_and_repeat() {
    let run = || {
        let proxy = proxy_with(|config| {
            config.loops = 1;
            config.faults = vec![(Fault::Shorten, 0.2)];
        });
        let origin = two_objects();
        let mut client = Client::of(&proxy);
        let lengths: Vec<usize> = (0..1000).map(|_| client.ask(origin.get("/a", &[])).body.len()).collect();
        assert_eq!(lengths.iter().filter(|&&length| length == 4).count() as u64, proxy.snapshot().faults);
        lengths
    };
    let lengths = run();
    // 200 of 999 hits, five standard deviations of 12.6.
    let faults = lengths.iter().filter(|&&length| length == 4).count();
    assert!(faults.abs_diff(200) < 63, "{faults}");
    assert_eq!(lengths, run());
}

#[test]
fn names_are_read_and_shares_are_checked() {
    for &fault in Fault::ALL {
        assert_eq!(fault.name().parse(), Ok(fault));
    }
    assert!("nothing".parse::<Fault>().unwrap_err().contains("swap-bodies"));
    let config = ProxyConfig { faults: vec![(Fault::Stale, 1.5)], ..ProxyConfig::default() };
    assert!(Shared::new(config, Identity::unique(), Nanos::ZERO, None).is_err());
}

#[test]
fn the_documentation_has_all_faults() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/correctness.md");
    let page = std::fs::read_to_string(path).unwrap();
    for fault in Fault::ALL {
        let row = format!("| `{}` | {} |", fault.name(), fault.text());
        assert!(page.contains(&row), "{row}");
    }
}
