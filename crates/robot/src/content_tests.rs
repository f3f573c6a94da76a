//! What robots make of the content of replies, and where its links lead them.

use polygraph_link::Nanos;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use polygraph_stats::{Block, ErrorKind};
use polygraph_traffic::content::{BodySource, Encodings, Injected, Injection};
use polygraph_traffic::files::{File, Files};
use polygraph_traffic::ranges::{Extent, RangeRule};
use polygraph_traffic::{
    Catalog, Content, ContentKind, Distr, Fingerprint, IdSource, Method, RequestKind, Seed, Selector,
};
use polygraph_wire::checksum::{self, ContentMd5};

use crate::group_tests::{errors, pages, run, settings};
use crate::request::generator::{Factors, RequestGenerator};
use crate::settings::{Settings, Verify};
use crate::testing::{Answer, Ask, TestLink, object, reply, with_life};

/// Requests for pages, and for what is embedded in them.
fn pages_and_parts(link: &TestLink) -> (usize, usize) {
    let (parts, pages): (Vec<Ask>, Vec<Ask>) =
        link.asked().into_iter().partition(|ask| ask.oid().is_embedded());
    (pages.len(), parts.len())
}

#[test]
fn links_in_compressed_pages_are_followed() {
    // Much less than the decoder's window, and much more.
    for size in [2_000.0, 300_000.0] {
        let mut catalog = pages();
        catalog.contents[0].size = Some(Distr::Const(size));
        catalog.contents[0].encodings = Encodings { identity: false, gzip: true };
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask: &Ask| {
                if ask.oid().is_embedded() {
                    return Answer::Reply(object(&catalog, ask, ""), Nanos::ZERO);
                }
                let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
                coder.write_all(&catalog.body(&ask.oid(), b"").to_vec()).unwrap();
                let fields = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
                Answer::Reply(reply(ask, "200 OK", fields, &coder.finish().unwrap()), Nanos::ZERO)
            }
        });
        let block = run(&link, settings(catalog, |robot| robot.accept_encoding = Some("gzip".into())), 10);
        assert_eq!(errors(&block), []);
        let (pages, parts) = pages_and_parts(&link);
        assert!(pages > 5 && parts == 4 * pages, "{parts} parts of {pages} pages of {size} bytes");
    }
}

#[test]
fn ranges_of_content_that_quotes_its_url_are_as_they_have_to_be() {
    let injection = Some(Injection { prob: 1.0, what: Injected::RequestUri });
    let text = Content { injection, ..Content::plain("text", Distr::Const(1000.0), 1.0) };
    let catalog = Catalog { seed: Seed(3), contents: vec![text] };
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask: &Ask| {
            let url = format!("http://{}{}", ask.field("Host").unwrap(), ask.path());
            let body = catalog.body(&ask.oid(), url.as_bytes()).to_vec();
            assert!(body.ends_with(url.as_bytes()));
            Answer::Reply(
                match ask.field("Range") {
                    Some(_) => {
                        let fields = "Content-Range: bytes 900-999/1000\r\n";
                        reply(ask, "206 Partial Content", fields, &body[900..])
                    }
                    None => reply(ask, "200 OK", "", &body),
                },
                Nanos::ZERO,
            )
        }
    });
    let settings = settings(catalog, |robot| {
        robot.behavior.kinds = Selector::even(vec![RequestKind::Range, RequestKind::Basic]);
        robot.behavior.ranges = Selector::only(RangeRule::Suffix(Extent::Absolute(100)));
    });
    assert_eq!(errors(&run(&link, settings, 20)), []);
    assert!(link.asked().iter().any(|ask| ask.field("Range").is_some()));
}

/// The digest of an object that is requested again is known, so it is not computed again, but still compared.
#[test]
fn digests_of_known_objects_are_compared() {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("c", Distr::Const(1000.0), 1.0)] };
    for (name, altered) in [("same", false), ("digest", false), ("body", true)] {
        let seen = std::cell::RefCell::new(std::collections::HashSet::new());
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask: &Ask| {
                let mut body = catalog.body(&ask.oid(), b"").to_vec();
                let mut digest = ContentMd5::default();
                digest.update(&body);
                let mut digest = checksum::text(digest.finish());
                let is_repeated = !seen.borrow_mut().insert(ask.oid());
                if is_repeated && name == "digest" {
                    digest[3] ^= 1;
                }
                if is_repeated && altered {
                    body[500] ^= 1;
                }
                let field = format!("Content-MD5: {}\r\n", String::from_utf8_lossy(&digest));
                Answer::Reply(reply(ask, "200 OK", &field, &body), Nanos::ZERO)
            }
        });
        let block = run(&link, settings(catalog.clone(), |robot| robot.behavior.recurrence = 0.7), 100);
        let asked: Vec<_> = link.asked().iter().map(Ask::oid).collect();
        let objects: std::collections::HashSet<_> = asked.iter().collect();
        let repeats = (asked.len() - objects.len()) as u64;
        assert!(repeats > 30, "{repeats}");
        let expected = match name {
            "same" => None,
            "digest" => Some((ErrorKind::WrongDigest, repeats)),
            _ => Some((ErrorKind::AlteredBody, repeats)),
        };
        assert_eq!(errors(&block), expected.as_slice(), "{name}");
        // Of the bodies that are right.
        let failed = if altered { repeats } else { 0 };
        assert_eq!(block.verified.digests, asked.len() as u64 - failed, "{name}");
    }
}

/// A device that changes the coding of bodies and leaves the digest of the original delivers the right content. A device that cuts
/// bodies whose size robots do not know does not.
#[test]
fn digests_of_other_bytes_than_arrived() {
    let text = Content {
        encodings: Encodings { identity: true, gzip: true },
        ..Content::plain("text", Distr::Const(1000.0), 1.0)
    };
    let catalog = Catalog { seed: Seed(3), contents: vec![text] };
    let found = |verify, sent: fn(Vec<u8>) -> (&'static str, Vec<u8>)| {
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask: &Ask| {
                let original = catalog.body(&ask.oid(), b"").to_vec();
                let mut digest = ContentMd5::default();
                digest.update(&original);
                let digest = checksum::text(digest.finish());
                let (coding, body) = sent(original);
                let fields = format!("{coding}Content-MD5: {}\r\n", String::from_utf8_lossy(&digest));
                Answer::Reply(reply(ask, "200 OK", &fields, &body), Nanos::ZERO)
            }
        });
        let mut settings = settings(catalog.clone(), |robot| robot.accept_encoding = Some("gzip".into()));
        Arc::make_mut(&mut settings.field).verify = verify;
        let kinds: Vec<_> = errors(&run(&link, settings, 10)).into_iter().map(|(kind, _)| kind).collect();
        kinds
    };
    let compressed = |body: Vec<u8>| {
        let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
        coder.write_all(&body).unwrap();
        ("Content-Encoding: gzip\r\n", coder.finish().unwrap())
    };
    assert_eq!(found(Verify::Full, compressed), [ErrorKind::WrongDigest]);
    let cut = |body: Vec<u8>| ("", body[..500].to_vec());
    assert_eq!(found(Verify::Full, cut), [ErrorKind::WrongSize]);
    assert_eq!(found(Verify::Bytes, cut), [ErrorKind::AlteredBody]);
}

/// Replies to HEAD announce the length of the object, another one, or none.
#[test]
fn the_length_in_a_reply_to_head_is_that_of_the_object() {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("c", Distr::Const(1000.0), 0.8)] };
    for (field, wrong) in [("Content-Length: 1000\r\n", false), ("", false), ("Content-Length: 7\r\n", true)]
    {
        let link = TestLink::new(move |ask: &Ask| {
            let whole = String::from_utf8(reply(ask, "200 OK", field, b"")).unwrap();
            Answer::Reply(whole.replace("Content-Length: 0\r\n", "").into_bytes(), Nanos::ZERO)
        });
        let settings =
            settings(catalog.clone(), |robot| robot.behavior.methods = Selector::only(Method::Head));
        let found = errors(&run(&link, settings, 5));
        assert_eq!(found.iter().any(|(kind, _)| *kind == ErrorKind::HeadLength), wrong, "{field}: {found:?}");
        assert!(link.asked().iter().all(|ask| ask.head.starts_with("HEAD ")));
    }
}

fn files(of: &[(&str, &str)]) -> BodySource {
    let file = |(name, text): &(&str, &str)| File { name: (*name).into(), bytes: text.as_bytes().into() };
    BodySource::Root(Arc::new(Files(of.iter().map(file).collect())))
}

/// A server of files and of other objects.
fn file_server(catalog: &Catalog) -> TestLink {
    let catalog = catalog.clone();
    let kinds = || (0..2).map(ContentKind::of_index);
    TestLink::new(move |ask: &Ask| match catalog.file_at(ask.path().as_bytes(), kinds()) {
        Some(oid) => {
            let body = catalog.body(&oid, b"").to_vec();
            Answer::Reply(
                reply(ask, "200 OK", "Cache-Control: public\r\nContent-Type: text/html\r\n", &body),
                Nanos::ZERO,
            )
        }
        None => Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), Nanos::ZERO),
    })
}

#[test]
fn files_embedded_in_pages_are_asked_for() {
    let mut catalog = pages();
    let image = &mut catalog.contents[1];
    (image.size, image.source) = (None, files(&[("a.gif", "a"), ("b.gif", "b"), ("c/d.gif", "d")]));
    let link = file_server(&catalog);
    let block = run(&link, settings(catalog, |_| {}), 10);
    assert_eq!(errors(&block), []);
    let (parts, pages): (Vec<Ask>, Vec<Ask>) =
        link.asked().into_iter().partition(|ask| ask.path().ends_with(".gif"));
    assert!(pages.len() > 5 && parts.len() == 4 * pages.len(), "{} of {}", parts.len(), pages.len());
}

#[test]
fn files_that_embed_each_other_in_circles_are_asked_for_once() {
    let index = "<embed src='sub/b.html?v=1#x'><embed src=\"http://10.0.0.1/c.css\"><embed src=missing>";
    let inner =
        "<embed src=../index.html><embed src='/c.css'><embed src='b.html'><embed src='//10.9.9.9/c.css'>";
    let source = files(&[("c.css", "p { }"), ("index.html", index), ("sub/b.html", inner)]);
    let root = Content { source, size: None, ..Content::plain("root", Distr::Const(1.0), 1.0) };
    let catalog = Catalog { seed: Seed(3), contents: vec![root] };
    let link = file_server(&catalog);
    let block = run(&link, settings(catalog, |robot| robot.origins = Selector::only(0)), 20);
    let count = |path: &str| link.asked().iter().filter(|ask| ask.path() == path).count() as u64;
    let [css, index, inner] = ["/c.css", "/index.html", "/sub/b.html"].map(count);
    assert_eq!(link.asked().len() as u64, css + index + inner);
    assert_eq!(errors(&block), [(ErrorKind::ForeignLink, inner), (ErrorKind::ForeignTag, index)]);
    // Who asks for one of the two pages gets the other and the style sheet.
    assert!(index == inner && css > index && index > 10, "{css} {index} {inner}");
}

#[test]
fn each_request_decides_anew_what_it_takes_of_a_container() {
    for (method, kind) in [
        (Method::Get, RequestKind::Basic),
        (Method::Get, RequestKind::Ims304),
        (Method::Post, RequestKind::Basic),
    ] {
        let settings = settings(with_life(pages()), |robot| {
            robot.embed_recur = 0.5;
            robot.behavior.methods = Selector::only(method);
            robot.behavior.kinds = Selector::only(kind);
        });
        let mut generator = RequestGenerator::new(&settings, IdSource::reproducible(1, 1));
        let factors = Factors { recur: 0.0, special: 1.0 };
        let mut rng = settings.seed.stream("test", 0);
        let mut request = || generator.next(&settings, 0, factors, Nanos::ZERO, &mut rng);
        let mut taken = [0; 5];
        for request in (0..1000).map(|_| request()) {
            assert_eq!((request.method, request.kind), (method, kind));
            let count = (1..=4).filter(|&index| request.wants_embedded(index, 0.5)).count();
            taken[count] += 1;
        }
        // Binomial: 1, 4, 6, 4, 1 of 16; five standard errors.
        for (count, share) in [1.0, 4.0, 6.0, 4.0, 1.0].map(|ways| ways / 16.0).into_iter().enumerate() {
            let (expected, seen): (f64, f64) = (1000.0 * share, taken[count].into());
            assert!(
                (seen - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt(),
                "{method:?} {taken:?}"
            );
        }
    }
}

/// Robots of generation 1.x that were not told sizes.
fn untold() -> Settings {
    let mut settings = settings(Catalog::classic(Seed(5), Distr::Const(0.0)), |_| {});
    let field = Arc::make_mut(&mut settings.field);
    (field.verify, field.marks_cachable) = (Verify::Bytes, Some(0.8));
    settings
}

/// The contents of their servers, and the field that tells of them.
fn told(seed: u64, ask: &Ask) -> (Vec<u8>, String) {
    let catalog = Catalog::classic(Seed(seed), Distr::Exp { mean: 13_312.0 });
    let mut fingerprint = Vec::new();
    Fingerprint::of(&catalog).write(&mut fingerprint);
    let fingerprint = String::from_utf8(fingerprint).unwrap();
    let size = catalog.size(&ask.oid());
    (catalog.body(&ask.oid(), b"").to_vec(), format!("X-Contents: {fingerprint} {size}\r\n"))
}

/// What robots say of servers with `seed` whose device does this to bodies and to the field about contents.
fn untold_robots(seed: u64, device: fn(Vec<u8>, String) -> (Vec<u8>, String)) -> Block {
    let link = TestLink::new(move |ask: &Ask| {
        let (body, fields) = told(seed, ask);
        let (body, fields) = device(body, fields);
        let cachable = if ask.oid().kind == ContentKind::FIRST { "public" } else { "private,no-cache" };
        Answer::Reply(
            reply(ask, "200 OK", &format!("Cache-Control: {cachable}\r\n{fields}"), &body),
            Nanos::ZERO,
        )
    });
    run(&link, untold(), 20)
}

#[test]
fn bodies_are_compared_whole_by_robots_that_know_no_sizes() {
    let block = untold_robots(5, |body, fields| (body, fields));
    assert_eq!(errors(&block), []);
    let verified = block.verified;
    assert!(verified.replies > 100 && verified.bytes > 5000 * verified.replies, "{verified:?}");
    assert_eq!(verified.uncompared, 0);

    // The last byte, and one byte less.
    let altered = |mut body: Vec<u8>, fields| {
        *body.last_mut().unwrap() ^= 1;
        (body, fields)
    };
    let block = untold_robots(5, altered);
    assert_eq!((block.ok_count(), errors(&block).len(), errors(&block)[0].0), (0, 1, ErrorKind::AlteredBody));
    let shortened = |mut body: Vec<u8>, fields| {
        body.pop();
        (body, fields)
    };
    let block = untold_robots(5, shortened);
    assert_eq!((block.ok_count(), errors(&block)[0].0), (0, ErrorKind::WrongSize));
}

/// Servers of earlier versions, or a device that removes what it does not know.
#[test]
fn bodies_are_compared_also_where_nobody_tells_their_size() {
    let block = untold_robots(5, |body, _| (body, String::new()));
    assert_eq!(errors(&block), []);
    let verified = block.verified;
    assert!(verified.bytes > 5000 * verified.replies && verified.uncompared == 0, "{verified:?}");
    let altered = |mut body: Vec<u8>, _| {
        *body.last_mut().unwrap() ^= 1;
        (body, String::new())
    };
    assert_eq!(untold_robots(5, altered).ok_count(), 0);
}

#[test]
fn servers_with_other_contents_are_told_from_devices_that_alter_them() {
    let block = untold_robots(6, |body, fields| (body, fields));
    assert_eq!(errors(&block), [(ErrorKind::OtherContents, block.ok_count())]);
    assert!(block.verified.bytes == 0 && block.verified.uncompared > 5000 * block.ok_count());

    // Sizes make a difference only to robots that know some.
    let link = TestLink::new(|ask: &Ask| {
        let (body, fields) = told(5, ask);
        Answer::Reply(reply(ask, "200 OK", &format!("Cache-Control: public\r\n{fields}"), &body), Nanos::ZERO)
    });
    let sizes =
        |mean| Catalog { contents: vec![Content::plain("C", Distr::Exp { mean }, 1.0)], seed: Seed(5) };
    let other = run(&link, settings(sizes(10_000.0), |_| {}), 5);
    assert_eq!(errors(&other), [(ErrorKind::OtherContents, other.ok_count())]);

    // That there is no such object follows, and is no more the device's doing.
    let link = TestLink::new(|ask: &Ask| {
        Answer::Reply(reply(ask, "404 Not Found", &told(6, ask).1, b""), Nanos::ZERO)
    });
    let block = run(&link, untold(), 5);
    let count = block.failed_count();
    assert_eq!(errors(&block), [(ErrorKind::BadStatus, count), (ErrorKind::OtherContents, count)]);
}
