//! Exchanges that go wrong, against a server made of a function.

use polygraph_link::Nanos;
use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_link::SECOND;
use polygraph_stats::{Block, ErrorKind};
use polygraph_traffic::{Catalog, Content, ContentKind, Distr, Method, RequestKind, Selector};

use crate::group_tests::{errors, run, settings};
use crate::settings::{Dns, Expect, Profile};
use crate::testing::{Answer, Ask, TestLink, object, reply, with_life};

/// Objects that are never asked for again.
fn plain() -> Catalog {
    let content = |name: &str| Content::plain(name, Distr::Const(500.0), 0.0);
    Catalog { seed: polygraph_traffic::Seed(3), contents: vec![content("plain"), content("form")] }
}

/// Robots of this kind, for ten seconds, and a server that answers so.
fn run_against(change: fn(&mut Profile), answer: fn(&Catalog, &Ask) -> Answer) -> Block {
    let catalog = plain();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| answer(&catalog, ask)
    });
    run(&link, settings(catalog, change), 10)
}

/// The object, without a length.
fn unframed(catalog: &Catalog, ask: &Ask, fields: &str) -> Vec<u8> {
    let mut reply = object(catalog, ask, fields);
    let name = b"Content-Length";
    let at = reply.windows(name.len()).position(|bytes| bytes == name).unwrap();
    reply[at] = b'X';
    reply
}

#[test]
fn looking_up_names_takes_no_longer_than_transactions_may() {
    let catalog = plain();
    let link = TestLink::new(|_| Answer::Close);
    let server = SocketAddr::from(([10, 0, 0, 9], 53));
    link.answer_at(server, |_| None);
    let mut settings = settings(catalog, |robot| {
        robot.lifetime = Some(Distr::Const(1.0));
        robot.dns = Some(Dns {
            servers: vec![server],
            timeout: 5 * SECOND,
            v6: false,
            cache: 0,
            sharing_group: None,
        });
    });
    let field = Arc::get_mut(&mut settings.field).unwrap();
    for server in &mut field.servers {
        server.addresses.clear();
        server.authority = "w1.bench.tst:80".into();
    }
    let block = run(&link, settings, 10);
    let failed = block.xacts.entered;
    assert!(failed > 50);
    assert_eq!(errors(&block), [(ErrorKind::DnsTimeout, failed)]);
}

#[test]
fn a_continue_that_comes_after_the_body_is_sent_does_no_harm() {
    let posts = |robot: &mut Profile| {
        robot.behavior.methods = Selector::only(Method::Post);
        robot.post = Selector::only(ContentKind::of_index(1));
        robot.expect = Expect::Prob(1.0);
    };
    // The body is read first, so robots run out of patience.
    let block = run_against(posts, |catalog, ask| {
        let reply = object(catalog, ask, "");
        Answer::Reply([b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), reply].concat(), Nanos::ZERO)
    });
    assert_eq!(errors(&block), []);
    assert!(block.ok_count() > 50);
}

/// Servers answer uploads with the object. Anything else would be a good reply that nobody can verify.
#[test]
fn uploads_are_answered_as_servers_do() {
    let catalog = with_life(plain());
    let refused = "417 Expectation Failed";
    let found = |status: &'static str, marked: bool, change: fn(&mut Profile), tolerant: bool| {
        let link = TestLink::new(move |ask| {
            let reply = String::from_utf8(reply(ask, status, "", b"")).unwrap();
            Answer::Reply(if marked { reply } else { reply.replace("X-Xact", "X-Other") }.into(), Nanos::ZERO)
        });
        let mut settings = settings(catalog.clone(), |robot| {
            (robot.post, robot.upload) =
                (Selector::only(ContentKind::of_index(1)), Selector::only(ContentKind::of_index(1)));
            change(robot);
        });
        settings.tolerance.foreign_replies = tolerant;
        let block = run(&link, settings, 10);
        assert!(block.xacts.entered > 50);
        let all = |(kind, count)| (count == block.xacts.entered).then_some(kind);
        errors(&block).into_iter().map(|error| all(error).unwrap()).collect::<Vec<_>>()
    };
    let posts: fn(&mut Profile) = |robot| robot.behavior.methods = Selector::only(Method::Post);
    let puts: fn(&mut Profile) = |robot| robot.behavior.kinds = Selector::only(RequestKind::Upload);
    for uploads in [posts, puts] {
        for status in ["201 Created", "204 No Content", refused] {
            assert_eq!(found(status, true, uploads, false), [ErrorKind::BadStatus], "{status}");
        }
        // Who gets one of the first two believes that the upload has arrived.
        for status in ["201 Created", "204 No Content"] {
            let kinds = [ErrorKind::ForeignReply, ErrorKind::BadStatus];
            assert_eq!(found(status, false, uploads, false), kinds, "{status}");
        }
        assert_eq!(found(refused, false, uploads, false), [ErrorKind::BadStatus]);
    }
    // Other servers answer as they like, but expectations concern only those who have some.
    let elsewhere: fn(&mut Profile) = |robot| {
        robot.behavior.methods = Selector::only(Method::Post);
        robot.foreign = 1.0;
        robot.trace = Arc::new(vec!["http://10.7.7.7/x".into()]);
    };
    for status in ["201 Created", "204 No Content"] {
        assert_eq!(found(status, false, posts, true), [], "{status}");
        assert_eq!(found(status, false, elsewhere, false), [], "{status}");
    }
    assert_eq!(found(refused, false, elsewhere, false), [ErrorKind::BadStatus]);
    let expects: fn(&mut Profile) = |robot| {
        robot.behavior.methods = Selector::only(Method::Post);
        robot.expect = Expect::Prob(1.0);
    };
    assert_eq!(found(refused, true, expects, false), []);
    assert_eq!(found(refused, false, expects, false), [ErrorKind::ForeignReply]);
}

#[test]
fn a_reply_without_a_length_is_no_reply_if_the_connection_stays_open() {
    let keeps = |catalog: &Catalog, ask: &Ask| {
        Answer::Reply(unframed(catalog, ask, "Connection: keep-alive\r\n"), Nanos::ZERO)
    };
    let block = run_against(|_| {}, keeps);
    let failed = block.xacts.entered;
    assert!(failed > 50);
    assert_eq!(errors(&block), [(ErrorKind::NoLength, failed)]);
    // Also when the transaction ends before.
    let block = run_against(|robot| robot.lifetime = Some(Distr::Const(1.0)), keeps);
    assert_eq!(errors(&block), [(ErrorKind::NoLength, block.xacts.entered)]);
    // Half of it comes when everybody else would have given up.
    let block = run_against(
        |_| {},
        |catalog, ask| {
            let mut reply = object(catalog, ask, "");
            let half = reply.split_off(reply.len() - 200);
            Answer::Twice(reply, half, 7 * SECOND)
        },
    );
    assert_eq!(errors(&block), []);
}

#[test]
fn bytes_behind_a_reply_are_noted_also_when_they_come_later() {
    let block = run_against(
        |_| {},
        |catalog, ask| {
            let tail = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec();
            Answer::Twice(object(catalog, ask, ""), tail, SECOND / 1000)
        },
    );
    let [(ErrorKind::LateBytes, count)] = errors(&block)[..] else { panic!("{:?}", errors(&block)) };
    // All but those that came when the next request was due already.
    assert!(count * 10 > block.ok_count() * 9, "{count} of {}", block.ok_count());
}
