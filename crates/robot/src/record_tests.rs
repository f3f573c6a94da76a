//! What robots say of replies that are not as they have to be.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_stats::ErrorKind;
use polygraph_stats::evidence::fact;
use polygraph_traffic::content::Encodings;
use polygraph_traffic::ranges::{DrawnExtent, Extent, RangeRule};
use polygraph_traffic::{Catalog, Content, Distr, RequestKind, Seed, Selector};

use crate::group_tests::{errors, pages, run, run_with_examples, settings};
use crate::settings::{Profile, Settings};
use crate::testing::{Answer, Ask, TestLink, object, reply};

/// Objects of 300 bytes.
fn small(cachable: f64) -> Catalog {
    Catalog { seed: Seed(3), contents: vec![Content::plain("text", Distr::Const(300.0), cachable)] }
}

fn from_to(first: u64, last: u64) -> impl Fn(&mut Profile) {
    move |robot| {
        let rule = RangeRule::From { first: Extent::Absolute(first), last: Some(Extent::Absolute(last)) };
        robot.behavior.ranges = Selector::only(rule);
        robot.behavior.kinds = Selector::only(RequestKind::Range);
    }
}

/// What is found if all replies have this status, these fields, and no length but this body, of which `{}` is the
/// object's bytes 10 to 14.
fn found(
    catalog: &Catalog,
    change: impl FnOnce(&mut Profile),
    head: (&str, &str),
    body: &str,
) -> Vec<ErrorKind> {
    let link = TestLink::new({
        let (catalog, status, body) = (catalog.clone(), head.0.to_owned(), body.to_owned());
        let fields = head.1.to_owned();
        move |ask: &Ask| {
            let whole = catalog.body(&ask.oid(), b"").to_vec();
            let body = body.replace("{}", std::str::from_utf8(&whole[10..15]).unwrap());
            let head = String::from_utf8(reply(ask, &status, &fields, b"")).unwrap();
            let head = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
            let end = if body.is_empty() { "" } else { "0\r\n\r\n" };
            Answer::Reply(format!("{head}{:x}\r\n{body}\r\n{end}", body.len()).into(), Nanos::ZERO)
        }
    });
    let block = run(&link, settings(catalog.clone(), change), 10);
    let (asked, errors) = (link.asked().len() as u64, errors(&block));
    assert!(asked > 10 && errors.iter().all(|(_, count)| *count == asked), "{errors:?} of {asked}");
    errors.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn parts_are_what_was_asked_for_and_as_long_as_they_say() {
    let check =
        |fields: &str, body: &str| found(&small(1.0), from_to(10, 14), ("206 Partial Content", fields), body);
    let range = "Content-Range: bytes 10-14/300\r\n";
    for good in [range, "Content-Range: bytes 10-14/*\r\n"] {
        assert_eq!(check(good, "{}"), [], "{good}");
    }
    let coded = format!("Content-Encoding: gzip\r\n{range}");
    for (fields, body) in [
        (range, "{}!"),
        (range, ""),
        (&*coded, "1234"),
        ("", "{}"),
        ("Content-Range: octets 10-14/300\r\n", "{}"),
        ("Content-Encoding: gzip\r\n", "{}"),
    ] {
        let accept = |robot: &mut Profile| {
            from_to(10, 14)(robot);
            robot.accept_encoding = Some("gzip".into());
        };
        let kinds = found(&small(1.0), accept, ("206 Partial Content", fields), body);
        assert_eq!(kinds, [ErrorKind::BadRange], "{body} after {fields}");
    }
    let parts = "Content-Type: multipart/byteranges; boundary=B\r\n";
    let part = |size| format!("--B\r\nContent-Range: bytes 10-14/{size}\r\n\r\n{{}}\r\n--B--\r\n");
    assert_eq!(check(parts, &part(300)), []);
    assert_eq!(check(parts, &part(301)), [ErrorKind::BadInstanceLength]);
    assert_eq!(check("Content-Range: bytes 10-14/301\r\n", "{}"), [ErrorKind::BadInstanceLength]);
    let whole = found(&small(1.0), |_| {}, ("206 Partial Content", range), "{}");
    assert_eq!(whole, [ErrorKind::UnexpectedRange], "no ranges were asked for");
}

#[test]
fn only_ranges_that_an_object_does_not_have_are_refused() {
    let head = ("416 Range Not Satisfiable", "");
    assert_eq!(found(&small(1.0), from_to(10, 14), head, ""), [ErrorKind::BadStatus]);
    assert_eq!(found(&small(1.0), from_to(299, 400), head, ""), [ErrorKind::BadStatus]);
    assert_eq!(found(&small(1.0), from_to(300, 400), head, ""), []);
    let several = |robot: &mut Profile| {
        let length = DrawnExtent::Absolute(Distr::Const(10.0));
        from_to(0, 0)(robot);
        robot.behavior.ranges =
            Selector::only(RangeRule::Many { count: Distr::Const(3.0), length, first: None });
    };
    assert_eq!(found(&small(1.0), several, head, ""), [], "they may be too many for a server");
    let mut coded = small(1.0);
    coded.contents[0].encodings = Encodings { identity: true, gzip: true };
    let accept = |robot: &mut Profile| {
        from_to(250, 260)(robot);
        robot.accept_encoding = Some("gzip".into());
    };
    assert_eq!(found(&coded, accept, head, ""), [], "only the server knows how long compressed objects are");
}

#[test]
fn private_replies_that_are_kept_are_leaks_whoever_asked_for_them_how() {
    let catalog = small(0.0);
    let kept = TestLink::new({
        let (catalog, store) = (catalog.clone(), RefCell::new(HashMap::new()));
        move |ask: &Ask| {
            let mut store = store.borrow_mut();
            let first = store.entry(ask.path().to_owned()).or_insert_with(|| object(&catalog, ask, ""));
            Answer::Reply(first.clone(), Nanos::ZERO)
        }
    });
    let of_others = TestLink::new({
        let catalog = catalog.clone();
        move |ask: &Ask| {
            let own = String::from_utf8(object(&catalog, ask, "")).unwrap();
            let other = "X-Xact: 00000001.00000000:00000004 00000001.00000000:00000006 0\r\nOld: ";
            Answer::Reply(own.replace("X-Xact: ", other).into(), Nanos::ZERO)
        }
    });
    for (link, maker) in [(kept, "robot 1"), (of_others, "a robot of another loop")] {
        let reload = |robot: &mut Profile| {
            robot.behavior.kinds = Selector::only(RequestKind::Reload);
            robot.behavior.recurrence = 0.8;
        };
        let settings = Settings { first_robot: 10, robots: 3, ..settings(catalog.clone(), reload) };
        let (block, examples) = run_with_examples(&link, settings, 20);
        assert!(block.errors[ErrorKind::PrivateLeak] > 100, "{maker}: {:?}", errors(&block));
        let leaks = examples.iter().filter(|example| example.kind == ErrorKind::PrivateLeak);
        for evidence in leaks.map(|example| &example.evidence) {
            let made = format!("a reply that was generated for {maker}");
            let robot = evidence.facts.iter().find(|(name, _)| name == fact::ROBOT).unwrap();
            let came = format!("was delivered to robot {}", robot.1);
            assert!(evidence.detail.starts_with(&made) && evidence.detail.ends_with(&came), "{evidence:?}");
        }
    }
}

#[test]
fn the_evidence_of_an_unexpected_redirect_tells_marked_ones_from_others() {
    for marked in [true, false] {
        let link = TestLink::new(move |ask| {
            let text = "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n";
            let bytes = if marked { reply(ask, "302 Found", "Location: /x\r\n", b"") } else { text.into() };
            Answer::Reply(bytes, Nanos::ZERO)
        });
        let mut settings = settings(pages(), |_| {});
        Arc::get_mut(&mut settings.field).unwrap().redirects = !marked;
        let (block, examples) = run_with_examples(&link, settings, 10);
        assert_eq!(errors(&block), [(ErrorKind::UnmarkedRedirect, block.failed_count())]);
        let why = if marked { "although our servers send no redirects" } else { "without X- headers" };
        let detail = &examples[0].evidence.detail;
        assert_eq!(**detail, format!("status 302 to /x, {why}"));
    }
}

#[test]
fn a_page_of_the_device_in_place_of_an_object_is_foreign() {
    let page = Rc::<str>::from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsorry");
    let link = TestLink::new(move |_| Answer::Reply(page.as_bytes().into(), Nanos::ZERO));
    let (block, examples) = run_with_examples(&link, settings(pages(), |_| {}), 10);
    let asked = link.asked().len() as u64;
    assert_eq!(errors(&block), [(ErrorKind::ForeignReply, asked), (ErrorKind::AlteredBody, asked)]);
    assert_eq!(block.failed_count(), asked);
    let foreign = examples.iter().find(|example| example.kind == ErrorKind::ForeignReply).unwrap();
    let seen = foreign.evidence.facts.iter().find(|(name, _)| name == fact::SEEN).unwrap();
    assert!(seen.1.contains("sorry"), "{seen:?}");
}
