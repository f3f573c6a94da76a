//! Whole connections, over a link with a virtual clock.

use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_sim::VirtualLink;
use polygraph_stats::{Block, Class, CloseKind, ErrorKind, Recorder};
use polygraph_traffic::content::Content;
use polygraph_traffic::headers::{HeaderChoice, HeaderRule};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{AbortCoords, Distr, Fingerprint, PopModel, Seed, Selector, UniqId};
use polygraph_wire::{checksum, date};

use crate::origin::Origin;
use crate::server::Server;
use crate::settings::{Cookies, OriginConfig, Redirects, ServerSpec};
use crate::testing::{EPOCH, PATH, TestClient, classic, config_of, connection, link};

/// A server and what it counts.
struct Bench {
    link: VirtualLink,
    origin: Rc<Origin<VirtualLink>>,
    recorder: Recorder,
}

impl Bench {
    fn new(config: OriginConfig) -> Bench {
        let (link, recorder) = (link(), Recorder::new());
        let origin = Origin::new(link.clone(), Arc::new(config), 0, recorder.clone());
        Bench { link, origin, recorder }
    }

    /// A client of the server, which accepts at once.
    fn connect(&self) -> TestClient {
        let names = vec!["www:80".to_owned()];
        let server = ServerSpec { profile: 0, number: 1, address: "10.0.0.1:80".into(), names };
        let (client, conn) = connection(&self.link);
        self.link.spawn(Server::new(&self.origin, server).serve(conn));
        client
    }

    fn run(&self, until: Nanos) {
        self.link.run(until);
    }

    fn block(&self) -> Block {
        self.recorder.with(|block| block.clone())
    }

    /// What one request on a fresh connection gets.
    fn ask(&self, request: impl AsRef<[u8]>) -> String {
        String::from_utf8_lossy(&self.ask_bytes(request)).into_owned()
    }

    fn ask_bytes(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        let client = self.connect();
        client.send(request);
        self.run(self.link.now());
        client.close();
        self.run(self.link.now() + Nanos::new(1));
        client.take()
    }

    #[track_caller]
    fn assert_errors(&self, expected: &[(ErrorKind, u64)]) {
        assert_eq!(self.block().errors.iter().collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn assert_classes(&self, expected: &[(Class, u64)]) {
        let block = self.block();
        let found: Vec<_> = Class::ALL
            .into_iter()
            .map(|class| (class, block.class(class).size.count()))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(block.xacts.last, 0, "all transactions have ended");
    }
}

fn persistent(mut config: OriginConfig) -> OriginConfig {
    config.profiles[0].requests_per_connection = Distr::Const(1000.0);
    config.profiles[0].idle_timeout = Some(15 * SECOND);
    config
}

const MARKS: &str = "X-Target: www:80\r\nX-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 0\r\n";

fn get(fields: &str) -> String {
    format!("GET {PATH} HTTP/1.1\r\nHost: www\r\n{MARKS}{fields}\r\n")
}

fn split(reply: &str) -> (&str, &str) {
    reply.split_once("\r\n\r\n").unwrap()
}

fn field<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let head = split(reply).0;
    head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn classic_replies_are_what_they_always_were() {
    let bench = Bench::new(persistent(classic(20.0)));
    let marks = "X-Target: 10.0.0.1:80\r\n\
        X-Xact: 00000007.00000007:00000008 00000001.00000abc:7ffffffb 0\r\n\r\n";
    let times = "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n";
    let reply = bench.ask(get(""));
    let cachable = "Cache-Control: public,max-age=31536000\r\n";
    assert_eq!(
        split(&reply).0.to_owned() + "\r\n\r\n",
        format!(
            "HTTP/1.1 200 OK\r\n{cachable}{times}Content-Length: 20\r\nX-Contents: deb1f63b4389 20\r\n{marks}"
        )
    );
    assert_eq!(split(&reply).1.len(), 20);
    let reply = bench.ask(get("Connection: close\r\n").replace("t03", "t04"));
    let uncachable = "Cache-Control: private,no-cache\r\nPragma: no-cache\r\n";
    assert!(
        reply.starts_with(&format!(
            "HTTP/1.1 200 OK\r\n{uncachable}{times}Connection: close\r\nContent-Length: 20\r\nX-Contents: deb1f63b4389 20\r\n\
             {marks}"
        )),
        "{reply}"
    );
    let validation = get("If-Modified-Since: Wed, 18 Feb 1998 17:53:58 GMT\r\n").replace(" 0\r\n", " 1\r\n");
    let reply = bench.ask(validation);
    assert_eq!(reply, format!("HTTP/1.1 304 Not Modified\r\n{cachable}{times}{marks}"));
    let reply = bench.ask(get("If-Modified-Since: Wed, 18 Feb 1998 17:53:57 GMT\r\n"));
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"));
    bench.assert_classes(&[(Class::Miss, 1), (Class::Uncachable, 1), (Class::Ims200, 1), (Class::Ims304, 1)]);
    bench.assert_errors(&[]);
}

#[test]
fn requests_follow_each_other_on_a_connection() {
    let bench = Bench::new(persistent(classic(100.0)));
    let client = bench.connect();
    client.send(get(""));
    bench.run(SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n") && !client.is_closed());
    client.send("\r\n\r\n");
    client.send(get(""));
    bench.run(SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n"));
    // Two and a half requests at once, then the other half.
    let text = get("").repeat(3);
    let (begin, end) = text.split_at(text.len() - 40);
    client.send(begin);
    bench.run(2 * SECOND);
    assert_eq!(client.text().matches("HTTP/1.1 200 OK\r\n").count(), 2);
    end.bytes().for_each(|byte| client.send([byte]));
    bench.run(3 * SECOND);
    assert_eq!(client.text().matches("HTTP/1.1 200 OK\r\n").count(), 1);
    client.close();
    bench.run(4 * SECOND);
    assert!(client.is_closed());
    bench.assert_classes(&[(Class::Miss, 5)]);
    bench.assert_errors(&[]);
    let block = bench.block();
    let closes = &block.closes[CloseKind::IdleForeign as usize];
    assert_eq!((closes.count(), closes.uses.sum()), (1, 5.0));
    // The connection was idle after its last reply, until its end.
    assert_eq!((block.idle.entered, block.idle.left, block.idle.last), (5, 5, 0));
}

#[test]
fn connections_end_by_limit_by_idling_and_by_wish() {
    let mut config = persistent(classic(100.0));
    config.profiles[0].requests_per_connection = Distr::Const(2.9);
    let bench = Bench::new(config);
    let client = bench.connect();
    client.send(get("").repeat(3));
    bench.run(SECOND);
    assert!(client.is_closed());
    assert_eq!(client.text().matches("Connection: close").count(), 1);
    let client = bench.connect();
    client.send(get(""));
    bench.run(15 * SECOND);
    assert!(!client.is_closed());
    bench.run(16 * SECOND);
    assert!(client.is_closed());
    let client = bench.connect();
    client.send(get("").replace("HTTP/1.1", "HTTP/1.0"));
    bench.run(17 * SECOND);
    assert!(client.is_closed() && client.text().contains("\r\nConnection: close\r\n"));
    let block = bench.block();
    let closes =
        |kind: CloseKind| (block.closes[kind as usize].count(), block.closes[kind as usize].uses.sum());
    assert_eq!(closes(CloseKind::Busy), (2, 3.0));
    assert_eq!(closes(CloseKind::IdleLocal), (1, 1.0));
    bench.assert_classes(&[(Class::Miss, 4)]);
}

#[test]
fn transactions_are_not_idle_however_slow_the_client_is() {
    const PAUSE: Nanos = Nanos::from_millis(1);
    let mut config = persistent(classic(3000.0));
    config.profiles[0].idle_timeout = Some(PAUSE / 2);
    let bench = Bench::new(config);
    let client = bench.connect();
    client.narrow(100);
    let request = get("Content-Length: 3\r\n").replace("GET", "PUT") + "abc";
    let (head, body) = request.split_at(request.len() - 2);
    let (begin, rest) = head.split_at(20);
    for piece in [begin, rest, body] {
        client.send(piece);
        bench.run(bench.link.now() + PAUSE);
    }
    bench.run(10 * SECOND);
    assert_eq!(split(&client.text()).1.len(), 3000);
    assert!(client.is_closed());
    bench.assert_classes(&[(Class::Put, 1)]);
    bench.assert_errors(&[]);
    assert_eq!(bench.block().closes[CloseKind::IdleLocal as usize].count(), 1);
}

#[test]
fn a_look_before_the_test_is_answered_and_not_counted() {
    let mut config = config_of(vec![Content::plain("page", Distr::Const(10.0), 1.0)]);
    config.profiles[0].think = Some(Distr::Const(3.0));
    let bench = Bench::new(config);
    let before = bench.block();
    let request = polygraph_wire::preflight::request("www:80", "/polygraph-preflight/12ab", "");
    // Servers that think do not think about this.
    let reply = bench.ask(request);
    let seen = polygraph_wire::preflight::read(reply.as_bytes(), "12ab").unwrap().unwrap();
    assert!(seen.ours, "{reply}");
    let after = bench.block();
    assert_eq!((after.conns.entered, after.conns.last, after.established.entered), (0, 0, 0));
    assert_eq!((after.xacts.entered, after.reads.count(), after.writes.count()), (0, 0, 0));
    assert_eq!(after.errors.iter().count(), before.errors.iter().count());
}

#[test]
fn servers_of_version_1_0_say_that_they_stay() {
    let mut config = persistent(classic(10.0));
    config.profiles[0].http_minors = Selector::only(0);
    let bench = Bench::new(config);
    let reply = bench.ask(get(""));
    assert!(reply.starts_with("HTTP/1.0 200 OK\r\n") && reply.contains("\r\nConnection: keep-alive\r\n"));
    // That they close goes without saying.
    let reply = bench.ask(get("Connection: close\r\n"));
    assert!(reply.starts_with("HTTP/1.0 200 OK\r\n") && field(&reply, "Connection").is_none(), "{reply}");
}

/// Whoever sends a byte of a head now and then would hold a descriptor for ever.
#[test]
fn heads_that_never_end_are_given_up() {
    let mut config = persistent(classic(10.0));
    config.profiles[0].idle_timeout = None;
    let bench = Bench::new(config);
    let (slow, silent, good) = (bench.connect(), bench.connect(), bench.connect());
    good.send(get(""));
    let head = get("");
    for (second, piece) in head.as_bytes().chunks(2).take(30).enumerate() {
        slow.send(piece);
        bench.run((second + 1) as u64 * SECOND);
        assert_eq!(slow.is_closed(), second + 1 == 30, "after {} s", second + 1);
    }
    assert!(slow.text().starts_with("HTTP/1.1 408 "), "{}", slow.text());
    bench.assert_errors(&[(ErrorKind::Timeout, 1)]);
    // Devices may connect ahead, and keep what they have used for as long as servers let them.
    bench.run(299 * SECOND);
    assert!(!silent.is_closed() && !good.is_closed());
    bench.run(301 * SECOND);
    assert!(silent.is_closed() && !good.is_closed());
    bench.run(10_000 * SECOND);
    assert!(!good.is_closed());
    bench.assert_errors(&[(ErrorKind::Timeout, 1)]);
}

#[test]
fn noise_is_no_transaction() {
    let bench = Bench::new(persistent(classic(10.0)));
    for noise in ["", "\x16\x03\x01\x02", "\r\n\r\n", "SSH-2.0-x\r\n", "hello\r\n\r\n"] {
        let client = bench.connect();
        client.send(noise);
        bench.run(bench.link.now());
        client.reset();
        bench.run(bench.link.now() + SECOND);
        assert!(client.is_closed(), "{noise:?}");
    }
    bench.assert_errors(&[]);
    bench.assert_classes(&[]);
    // What begins like a request must be one.
    assert!(bench.ask("GET /\r\nnonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    bench.ask("GET / HTTP/1.1\r\nHos");
    assert!(bench.ask(format!("GET /{} HTTP/1.1\r\n", "x".repeat(40_000))).starts_with("HTTP/1.1 431"));
    bench.assert_errors(&[(ErrorKind::HeadShort, 1), (ErrorKind::BadHead, 1), (ErrorKind::HeadTooLarge, 1)]);
    assert_eq!(bench.recorder.totals().started, 3);
}

#[test]
fn faulty_requests_fail() {
    for (request, status, kind) in [
        ("GET /x HTTP/1.1\r\nHost: www\r\n\r\n".to_owned(), 404, ErrorKind::ForeignRequest),
        (get("").replace("t03", "t07"), 404, ErrorKind::Misdirected),
        (get("").replace("Host: www\r\n", ""), 400, ErrorKind::NoHost),
        (get("Host: www\r\n"), 400, ErrorKind::BadHead),
        (get("").replace("GET", "DELETE"), 405, ErrorKind::ForeignRequest),
        (get("").replace("GET", "POST"), 411, ErrorKind::NoRequestLength),
        (get("Content-Length: 3\r\n") + "abc", 400, ErrorKind::ForbiddenLength),
        (get("Transfer-Encoding: chunked\r\n") + "1\r\na", 400, ErrorKind::ForbiddenLength),
        (get("Transfer-Encoding: chunked\r\n").replace("GET", "PUT") + "zz\r\n", 400, ErrorKind::BadCoding),
        (
            get("Content-Length: 3\r\nContent-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n").replace("GET", "PUT")
                + "abc",
            400,
            ErrorKind::AlteredBody,
        ),
        (get("Content-Length: 3\r\n").replace("GET", "PUT") + "ab", 0, ErrorKind::BodyShort),
        (
            get("Content-Length: 3\r\nX-Upload: 3 352441c3\r\n").replace("GET", "PUT") + "abC",
            400,
            ErrorKind::AlteredBody,
        ),
        (
            get("Content-Length: 0\r\nX-Upload: 3 352441c2\r\n").replace("GET", "PUT"),
            400,
            ErrorKind::AlteredBody,
        ),
    ] {
        let bench = Bench::new(persistent(classic(10.0)));
        let reply = bench.ask(&request);
        match status {
            0 => assert_eq!(reply, ""),
            status => assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{reply}"),
        }
        assert!(reply.is_empty() || field(&reply, "Connection") == Some("close"), "{reply}");
        bench.assert_errors(&[(kind, 1)]);
        bench.assert_classes(&[]);
        let totals = bench.recorder.totals();
        assert_eq!((totals.started, totals.ok, totals.failed), (1, 0, 1), "{request}");
    }
}

#[test]
fn odd_requests_are_noted_and_served() {
    let bench = Bench::new(persistent(classic(10.0)));
    for request in [
        get("").replace("www", "elsewhere"),
        get("").replace("X-Target: www:80\r\n", ""),
        "GET /healthz HTTP/1.0\r\n\r\n".into(),
        format!("GET http://www{PATH} HTTP/1.1\r\nHost: other\r\n{MARKS}\r\n"),
        format!("GET /pg/embed/nothing HTTP/1.1\r\nHost: www\r\n{MARKS}\r\n"),
    ] {
        assert!(bench.ask(&request).starts_with("HTTP/1.1 200 OK\r\n"), "{request}");
    }
    bench.assert_errors(&[
        (ErrorKind::UnknownHost, 1),
        (ErrorKind::NoTarget, 1),
        (ErrorKind::UnknownEmbedded, 1),
    ]);
    assert_eq!((bench.recorder.totals().ok, bench.origin.health_checks()), (5, 1));
    let bench = Bench::new(OriginConfig { ignore_urls: true, ..persistent(classic(10.0)) });
    assert!(bench.ask("GET /any HTTP/1.1\r\nHost: any\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    bench.assert_errors(&[]);
}

#[test]
fn methods_and_kinds_have_their_classes() {
    let bench = Bench::new(persistent(classic(10.0)));
    let upload = get("Content-Length: 3\r\nContent-MD5: kAFQmDzST7DWlj99KOF/cg==\r\n") + "abc";
    let chunked =
        get("Transfer-Encoding: chunked\r\n").replace("GET", "PUT") + "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    for (request, body) in [
        (upload.replace("GET", "POST"), 10),
        (chunked, 10),
        (get("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", 10),
        (get("").replace("GET", "HEAD"), 0),
        (get("Cache-Control: no-cache\r\n"), 10),
        (get("Range: bytes=2-4\r\n"), 3),
    ] {
        let reply = bench.ask(&request);
        assert_eq!(split(&reply).1.len(), body, "{request}{reply}");
    }
    bench.assert_classes(&[
        (Class::Miss, 1),
        (Class::Reload, 1),
        (Class::Range, 1),
        (Class::Head, 1),
        (Class::Post, 1),
        (Class::Put, 1),
    ]);
    bench.assert_errors(&[]);
    // An upload may come in pieces, and the next request right behind it.
    let client = bench.connect();
    (upload.replace("GET", "PUT") + &get("")).as_bytes().chunks(7).for_each(|piece| client.send(piece));
    bench.run(SECOND);
    assert_eq!(client.text().matches("HTTP/1.1 200 OK\r\n").count(), 2);
}

#[test]
fn validations_by_the_device_are_told_apart() {
    let bench = Bench::new(persistent(classic(10.0)));
    let since = |year: u32| get(&format!("If-Modified-Since: Wed, 18 Feb {year} 17:53:58 GMT\r\n"));
    let by_client = |text: String| text.replace(" 0\r\n", " 1\r\n");
    [since(1998), since(1999), since(1997), by_client(since(1998)), by_client(since(1997))]
        .into_iter()
        .for_each(|request| drop(bench.ask(request)));
    bench.assert_classes(&[(Class::Ims200, 2), (Class::Ims304, 3)]);
    let validations = bench.block().validations;
    assert_eq!((validations.useless.size.count(), validations.useful.size.count()), (2, 1));
}

/// A cache that follows RFC 9111, section 4.3.4, would store the mark of the confirmation, and the copy would look like a miss.
#[test]
fn a_confirmed_copy_keeps_its_mark() {
    let bench = Bench::new(persistent(classic(10.0)));
    let since =
        |year: u32, more: &str| get(&format!("If-Modified-Since: Wed, 18 Feb {year} 17:53:58 GMT\r\n{more}"));
    let by_robot = |request: String| request.replace(" 0\r\n", " 1\r\n");
    for (request, status, marked) in [
        (since(1998, ""), "304", false),
        (by_robot(since(1998, "")), "304", true),
        (since(1998, "Cache-Control: no-cache\r\n"), "304", true),
        (since(1997, ""), "200", true),
    ] {
        let reply = bench.ask(&request);
        assert_eq!(reply.split(' ').nth(1), Some(status), "{request}");
        assert_eq!(field(&reply, "X-Xact").is_some(), marked, "{request}{reply}");
        assert!(field(&reply, "X-Target").is_some());
    }
}

#[test]
fn clients_may_wait_before_they_send_a_body() {
    let mut config = persistent(classic(10.0));
    let request = get("Content-Length: 3\r\nExpect: 100-continue\r\n").replace("GET", "POST");
    let bench = Bench::new(config.clone());
    let client = bench.connect();
    client.send(&request);
    bench.run(SECOND);
    assert_eq!(client.text(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    bench.run(2 * SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n") && !client.is_closed());
    // Who does not wait needs no permission.
    client.send(format!("{request}abc"));
    bench.run(3 * SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK\r\n"));
    bench.assert_classes(&[(Class::Post, 2)]);

    config.profiles[0].continue_prob = 0.0;
    let bench = Bench::new(config);
    let client = bench.connect();
    client.send(&request);
    bench.run(SECOND);
    assert!(client.text().starts_with("HTTP/1.1 417 Expectation Failed\r\n") && client.is_closed());
    assert!(bench.ask(get("Expect: miracles\r\n")).starts_with("HTTP/1.1 417"));
    bench.assert_errors(&[]);
}

#[test]
fn replies_are_cut_where_their_coordinates_say() {
    let mut config = persistent(classic(1000.0));
    config.profiles[0].abort_prob = 0.5;
    let bench = Bench::new(config);
    let (mut cut, runs) = (0, 2_000);
    for _ in 0..runs {
        let client = bench.connect();
        client.send(get("") + &get("").replace("GET", "HEAD"));
        bench.run(bench.link.now());
        let reply = client.text();
        let coords: Vec<i64> =
            field(&reply, "X-Abort").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
        let coords = AbortCoords { whether: coords[0], place: coords[1] };
        match coords.cut(1000) {
            Some(place) => {
                assert_eq!(split(&reply).1.len() as u64, place);
                assert!(client.is_closed());
                cut += 1;
            }
            None => {
                assert!(split(split(&reply).1).0.len() > 1000 && !client.is_closed());
                client.close();
            }
        }
    }
    bench.run(bench.link.now() + Nanos::new(1));
    // Five standard deviations.
    assert!((f64::from(cut) - 1000.0).abs() < 5.0 * (f64::from(runs) * 0.25).sqrt(), "{cut}");
    let whole = (runs - cut) as u64;
    bench.assert_classes(&[(Class::Miss, whole), (Class::Abort, cut as u64), (Class::Head, whole)]);
    bench.assert_errors(&[]);
}

#[test]
fn requests_may_be_cut_on_purpose() {
    let bench = Bench::new(persistent(classic(10.0)));
    let coords = AbortCoords::draw(1.0, &mut Seed(1).stream("abort", 0));
    let cut = coords.cut(1000).unwrap() as usize;
    let head = get(&format!("Content-Length: 1000\r\nX-Abort: {} {}\r\n", coords.whether, coords.place))
        .replace("GET", "PUT");
    for (bytes, reset) in [(cut, false), (cut, true), (cut / 2, true), (cut + 1, false)] {
        let client = bench.connect();
        client.send(format!("{head}{}", "x".repeat(bytes)));
        if reset {
            client.reset()
        } else {
            client.close()
        }
        bench.run(bench.link.now() + Nanos::new(1));
        assert!(client.is_closed());
    }
    bench.assert_classes(&[(Class::Abort, 3)]);
    bench.assert_errors(&[(ErrorKind::BodyShort, 1)]);
}

#[test]
fn thinking_delays_and_lifetimes_end() {
    let mut config = persistent(classic(50.0));
    config.profiles[0].think = Some(Distr::Const(2.0));
    let bench = Bench::new(config.clone());
    let client = bench.connect();
    client.send(get(""));
    bench.run(2 * SECOND - Nanos::new(1));
    assert_eq!(client.text(), "");
    bench.run(2 * SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK"));
    client.close();
    bench.run(3 * SECOND);
    assert_eq!(bench.block().class(Class::Miss).rptm_us.mean(), Some(2_000_000.0));

    for (lifetime, room, bytes) in [(1.0, 1000, 0), (2.05, 100, 150), (3.0, 100, 1000)] {
        config.profiles[0].lifetime = Some(Distr::Const(lifetime));
        let bench = Bench::new(config.clone());
        let client = bench.connect();
        client.narrow(room);
        client.send(get(""));
        bench.run(10 * SECOND);
        let received = client.take().len();
        if bytes < 1000 {
            assert!(received <= bytes && client.is_closed(), "{lifetime}: {received}");
            bench.assert_errors(&[(ErrorKind::Timeout, 1)]);
        } else {
            bench.assert_errors(&[]);
        }
    }
    // Uploads that never end.
    let bench = Bench::new(config);
    let client = bench.connect();
    client.send(get("Content-Length: 9\r\n").replace("GET", "PUT"));
    bench.run(10 * SECOND);
    bench.assert_errors(&[(ErrorKind::Timeout, 1)]);
}

#[test]
fn slow_clients_get_every_byte() {
    let bench = Bench::new(persistent(classic(3000.0)));
    let client = bench.connect();
    client.narrow(100);
    client.send(get(""));
    bench.run(10 * SECOND);
    let slow = client.text();
    let fast = bench.ask(get(""));
    assert_eq!(split(&slow).1, split(&fast).1);
    assert_eq!(split(&slow).1.len(), 3000);
}

fn living() -> OriginConfig {
    let life = LifeCycle {
        length: Distr::Const(86_400.0),
        variance: 0.1,
        with_lmt: 1.0,
        expires: Selector::only(Expiry { base: ExpiryBase::Now, gap: Distr::Const(60.0) }),
    };
    let page = Content {
        life: Some(life.clone()),
        mime_type: Some("text/html".into()),
        checksum: 1.0,
        ..Content::plain("page", Distr::Const(1000.0), 1.0)
    };
    let hidden = Content { life: Some(LifeCycle { with_lmt: 0.0, ..life }), ..page.clone() };
    let private = Content { cachable: 0.0, checksum: 0.0, ..page.clone() };
    let mut gzip = Content { life: None, ..page.clone() };
    gzip.encodings.gzip = true;
    let only_gzip = Content {
        encodings: polygraph_traffic::content::Encodings { identity: false, gzip: true },
        ..gzip.clone()
    };
    persistent(config_of(vec![page, hidden, private, gzip, only_gzip]))
}

fn of_kind(kind: usize, fields: &str) -> String {
    get(fields).replace("t03", &format!("t{:02x}", kind + 3))
}

/// Whatever way a body goes, the mark has the size of the object. Without an object there is only the fingerprint.
#[test]
fn replies_tell_what_contents_the_server_has() {
    let bench = Bench::new(living());
    let mut fingerprint = Vec::new();
    Fingerprint::of(&bench.origin.config.catalog).write(&mut fingerprint);
    let fingerprint = String::from_utf8(fingerprint).unwrap();
    let whole = format!("{fingerprint} 1000");
    for fields in ["", "Range: bytes=5-9\r\n", "Range: bytes=5-9,20-29\r\n", "Range: bytes=5000-\r\n"] {
        assert_eq!(field(&bench.ask(of_kind(0, fields)), "X-Contents"), Some(&*whole), "{fields}");
    }
    let head = bench.ask(of_kind(0, "").replace("GET", "HEAD"));
    assert_eq!(field(&head, "X-Contents"), Some(&*whole));
    let coded = bench.ask_bytes(of_kind(3, "Accept-Encoding: gzip\r\n"));
    let coded = String::from_utf8_lossy(&coded).into_owned();
    let size = bench.origin.config.catalog.contents[3].size.as_ref().unwrap().mean();
    assert_eq!(field(&coded, "Content-Encoding"), Some("gzip"));
    assert_eq!(field(&coded, "X-Contents"), Some(&*format!("{fingerprint} {size}")));
    let lost = bench.ask("GET /x HTTP/1.1\r\nHost: www\r\n\r\n");
    assert_eq!(field(&lost, "X-Contents"), Some(&*fingerprint));
    // Stores put the fields of 304 into what they have.
    let same = bench.ask(of_kind(0, &format!("If-Modified-Since: {}\r\n", date::format(EPOCH))));
    assert!(same.starts_with("HTTP/1.1 304") && field(&same, "X-Contents").is_none(), "{same}");
}

#[test]
fn life_cycles_show_in_heads() {
    let bench = Bench::new(living());
    let oid = polygraph_wire::url::parse(PATH.as_bytes()).unwrap();
    let lmt = bench.origin.config.catalog.times(&oid, EPOCH as i64).unwrap().lmt as u64;
    let modified = date::format(lmt);
    let reply = bench.ask(of_kind(0, ""));
    let body = split(&reply).1;
    let mut md5 = checksum::ContentMd5::default();
    md5.update(body.as_bytes());
    let digest = String::from_utf8(checksum::text(md5.finish()).to_vec()).unwrap();
    assert_eq!(
        split(&reply).0,
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: public\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n\
             Expires: Sat, 21 Nov 2026 00:01:00 GMT\r\nLast-Modified: {modified}\r\nContent-MD5: {digest}\r\n\
             Content-Length: 1000\r\nContent-Type: text/html\r\nX-Contents: c8295ac5d392 1000\r\nX-Target: 10.0.0.1:80\r\n\
             X-Xact: 00000007.00000007:00000008 00000001.00000abc:7ffffffb 0"
        )
    );
    let hidden = bench.ask(of_kind(1, ""));
    assert!(field(&hidden, "Last-Modified").is_none() && field(&hidden, "Expires").is_some(), "{hidden}");
    let private = bench.ask(of_kind(2, ""));
    assert_eq!(field(&private, "Cache-Control"), Some("private,no-cache"));
    assert_eq!(field(&private, "Pragma"), Some("no-cache"));
    assert!(field(&private, "Last-Modified").is_none() && field(&private, "Expires").is_none(), "{private}");

    // Hidden or not, the last modification decides.
    for (kind, seconds, status) in
        [(0, lmt, 304), (0, lmt - 1, 200), (0, lmt + 1, 304), (1, lmt, 304), (1, lmt - 1, 200)]
    {
        let since = format!("If-Modified-Since: {}\r\n", date::format(seconds));
        let reply = bench.ask(of_kind(kind, &since));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{kind} {seconds} of {lmt}: {reply}");
        assert_eq!(field(&reply, "Content-Length").is_some(), status == 200);
        assert!(field(&reply, "Expires").is_some());
    }
    // Without a life cycle nothing is ever unmodified.
    let since = format!("If-Modified-Since: {}\r\n", date::format(EPOCH));
    assert!(bench.ask(of_kind(3, &since)).starts_with("HTTP/1.1 200"));
    bench.assert_errors(&[]);
}

#[test]
fn codings_are_negotiated() {
    let bench = Bench::new(living());
    let plain = bench.ask(of_kind(3, ""));
    assert_eq!((field(&plain, "Vary"), field(&plain, "Content-Encoding")), (Some("Accept-Encoding"), None));
    let reply = bench.ask_bytes(of_kind(3, "Accept-Encoding: deflate, gzip\r\n"));
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = format!("{}\r\n\r\n", std::str::from_utf8(&reply[..end]).unwrap());
    assert_eq!(field(&head, "Content-Encoding"), Some("gzip"));
    assert_eq!(field(&head, "Content-Length"), Some((reply.len() - end - 4).to_string().as_str()));
    let mut md5 = checksum::ContentMd5::default();
    md5.update(&reply[end + 4..]);
    let digest = String::from_utf8(checksum::text(md5.finish()).to_vec()).unwrap();
    assert_eq!(field(&head, "Content-MD5"), Some(digest.as_str()));
    let mut body = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&reply[end + 4..]);
    std::io::Read::read_to_string(&mut decoder, &mut body).unwrap();
    assert_eq!(body, split(&plain).1);
    let two_fields = "Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n";
    assert_eq!(
        bench.ask_bytes(of_kind(3, two_fields)),
        bench.ask_bytes(of_kind(3, "Accept-Encoding: gzip\r\n"))
    );
    let reply = bench.ask(of_kind(4, "Accept-Encoding: identity\r\n"));
    assert!(reply.starts_with("HTTP/1.1 406 Not Acceptable\r\n"), "{reply}");
    bench.assert_errors(&[(ErrorKind::NotAcceptable, 1)]);
}

#[test]
fn ranges_are_served() {
    let bench = Bench::new(living());
    let whole = bench.ask(get(""));
    let (head, body) = split(&whole);
    let modified = field(&whole, "Last-Modified").unwrap();
    assert!(head.contains("Content-MD5"));
    for (range, status, content_range, expected) in [
        ("bytes=0-9", 206, Some("bytes 0-9/1000"), &body[..10]),
        ("bytes=990-2000", 206, Some("bytes 990-999/1000"), &body[990..]),
        ("bytes=-5", 206, Some("bytes 995-999/1000"), &body[995..]),
        ("bytes=5-6,2000-3000", 206, Some("bytes 5-6/1000"), &body[5..7]),
        ("bytes=1000-", 416, Some("bytes */1000"), ""),
        ("bytes=5-4", 200, None, body),
        ("lines=1-2", 200, None, body),
    ] {
        let reply = bench.ask(get(&format!("Range: {range}\r\n")));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{range}: {reply}");
        assert_eq!((field(&reply, "Content-Range"), split(&reply).1), (content_range, expected), "{range}");
        assert_eq!(field(&reply, "Content-Length"), Some(expected.len().to_string().as_str()), "{range}");
        assert_eq!(field(&reply, "Content-MD5").is_some(), status == 200, "{range}");
    }
    let reply = bench.ask(get("Range: bytes=0-4,500-503\r\n"));
    let part = |range: &str, text: &str| {
        format!(
            "\r\n--THIS_STRING_SEPARATES\r\nContent-Type: text/html\r\nContent-Range: bytes {range}/1000\r\n\r\n{text}"
        )
    };
    let expected =
        part("0-4", &body[..5]) + &part("500-503", &body[500..504]) + "\r\n--THIS_STRING_SEPARATES--\r\n";
    assert_eq!(split(&reply).1, &expected);
    assert_eq!(field(&reply, "Content-Length"), Some(expected.len().to_string().as_str()));
    assert_eq!(field(&reply, "Content-Type"), Some("multipart/byteranges; boundary=THIS_STRING_SEPARATES"));
    // Conditional ranges.
    for (condition, status) in [(modified, 206), ("Sat, 01 Jan 2000 00:00:00 GMT", 200), ("\"tag\"", 200)] {
        let reply = bench.ask(get(&format!("Range: bytes=0-4\r\nIf-Range: {condition}\r\n")));
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{condition}: {reply}");
    }
    bench.assert_errors(&[]);
}

#[test]
fn known_objects_are_targets_of_redirects() {
    let mut config = persistent(classic(10.0));
    config.profiles[0].redirects = Some(Redirects { share: 1.0, popularity: PopModel::default() });
    let bench = Bench::new(config);
    let site_of = |bench: &Bench| {
        let client = bench.connect();
        client.send(get(""));
        bench.run(bench.link.now());
        (client.text(), client)
    };
    let (reply, client) = site_of(&bench);
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    bench.assert_errors(&[(ErrorKind::NoRedirect, 1)]);
    let world = "12345678.00abcdef:0000002a";
    client.send(get(&format!("X-Loc-World: {world} t3 -1/1 1\r\n")));
    bench.run(SECOND);
    client.take();
    client.send(get(""));
    bench.run(SECOND);
    let reply = client.text();
    let location = format!("http://www/w{world}/t03/_0000000000000001");
    assert!(reply.starts_with("HTTP/1.1 302 Found\r\n"), "{reply}");
    assert_eq!(field(&reply, "Location"), Some(location.as_str()));
    assert!(split(&reply).1.contains(&location));
    assert_eq!(field(&reply, "Content-Length"), Some(split(&reply).1.len().to_string().as_str()));
    bench.origin.set_special(0.0);
    client.send(get(""));
    bench.run(SECOND);
    assert!(client.text().starts_with("HTTP/1.1 200 OK"));
    client.close();
    bench.run(2 * SECOND);
    assert_eq!(bench.block().class(Class::RepToRedir).size.count(), 1);
}

#[test]
fn robots_hear_of_each_others_worlds() {
    let bench = Bench::new(OriginConfig { share_worlds: true, ..persistent(classic(10.0)) });
    let client = bench.connect();
    let say = |own: &str, quoted: &str| {
        let worlds = [("Loc", own), ("Rem", quoted)].map(|(name, world)| {
            if world.is_empty() { String::new() } else { format!("X-{name}-World: {world}\r\n") }
        });
        client.send(get(&worlds.concat()));
        bench.run(bench.link.now() + Nanos::new(1));
        field(&client.text(), "X-Rem-World").map(str::to_owned)
    };
    let (a, b) = ("00000001.00000001:00000002 t3 -1/10 5", "00000002.00000002:00000002 t3 -1/20 10");
    assert_eq!(say(a, ""), None);
    assert_eq!(say(b, b), Some(a.to_owned()));
    assert_eq!(say("", &b.replace("20", "19")), Some(b.to_owned()));
    assert_eq!(say("", &b.replace("00000002.", "00000003.")), None);
}

#[test]
fn clients_hear_how_far_the_slowest_of_them_is() {
    use polygraph_traffic::groups::PhaseStatus;
    let bench = Bench::new(persistent(classic(10.0)));
    let client = bench.connect();
    let group = |number: u32| UniqId { time: number, mix: 0, counter: 2 };
    let say = |number: u32, position: &str| {
        let xact = format!("X-Xact: {} 00000001.00000abc:00000004 0", group(number));
        client.send(get(&format!("{xact}\r\nX-Phase-Sync-Pos: {position}\r\n")));
        bench.run(bench.link.now() + SECOND);
        let reply = client.text();
        ["X-Phase-Sync-Pos", "X-Phase-Sync-Gone"].map(|name| field(&reply, name).map(str::to_owned))
    };
    let only = |position: &str| [Some(position.to_owned()), None];
    let standing = PhaseStatus { position: 9, least: 9, ..PhaseStatus::default() };
    bench.origin.set_phase_status(standing);
    assert_eq!(say(1, "5"), only("5"));
    assert_eq!(say(2, "4"), only("4"));
    // A request that was overtaken by a later one.
    assert_eq!(say(1, "3"), only("4"));
    assert_eq!(say(2, "6"), only("5"));
    bench.origin.set_phase_status(PhaseStatus { least: 2, gone: Some(group(3)), ..standing });
    assert_eq!(say(1, "6"), [Some("2".to_owned()), Some(group(3).to_string())]);
    assert_eq!(say(1, "six"), [None, None]);
    // Who does not say who it is does not take part.
    client.send(get("X-Phase-Sync-Pos: 1\r\n").replace("X-Xact:", "X-Other:"));
    bench.run(bench.link.now() + SECOND);
    assert_eq!(field(&client.text(), "X-Phase-Sync-Pos"), None);
    let heard: Vec<_> = bench.origin.clients().iter().map(|word| (word.group, word.position)).collect();
    assert_eq!(heard, [(group(1), 6), (group(2), 6)]);
}

#[test]
fn cookies_belong_to_objects() {
    let mut config = persistent(classic(10.0));
    let cookies = Cookies { senders: 1.0, prob: 0.5, count: Distr::Const(2.0), size: Distr::Const(8.0) };
    config.profiles[0].cookies = Some(cookies.clone());
    let bench = Bench::new(config.clone());
    let names = 1..=400;
    let mut setting = 0;
    for name in names.clone() {
        let request = get("").replace("_00000000000001f4", &format!("_{name:016x}"));
        let cookies = |reply: String| {
            let lines: Vec<String> =
                reply.lines().filter(|line| line.starts_with("Set-Cookie: ")).map(str::to_owned).collect();
            lines
        };
        let set = cookies(bench.ask(&request));
        assert_eq!(set, cookies(bench.ask(&request)));
        if let [first, second] = &set[..] {
            assert!(first.starts_with("Set-Cookie: sess0=\"") && second.starts_with("Set-Cookie: sess1=\""));
            assert_eq!(first.len(), "Set-Cookie: sess0=\"\"".len() + 8, "{first}");
            setting += 1;
        } else {
            assert!(set.is_empty());
        }
    }
    // Binomial with deviation 10; five deviations.
    assert!((150..=250).contains(&setting), "{setting}");
    assert_eq!(bench.block().cookies.sent.count(), 2 * setting as u64);
    config.profiles[0].cookies = Some(Cookies { senders: 0.0, prob: 1.0, ..cookies });
    assert!(!Bench::new(config).ask(get("")).contains("Set-Cookie"));
}

#[test]
fn configured_fields_win() {
    let rule = |prob, name: &str, value: &str| HeaderRule {
        prob,
        what: HeaderChoice::One { name: name.into(), value: value.into() },
    };
    let mut config = living();
    config.profiles[0].headers = vec![rule(1.0, "Expires", "0"), rule(0.5, "X-Half", "yes")];
    let bench = Bench::new(config);
    let (mut halves, runs) = (0, 1_000);
    for _ in 0..runs {
        let reply = bench.ask(get(""));
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\nExpires: 0\r\n"), "{reply}");
        assert_eq!(reply.matches("\r\nExpires: ").count(), 1);
        halves += u32::from(field(&reply, "X-Half") == Some("yes"));
    }
    // Five standard deviations.
    assert!((f64::from(halves) - 500.0).abs() < 5.0 * (f64::from(runs) * 0.25).sqrt(), "{halves}");
}

#[test]
fn whatever_the_status_servers_send_their_fields() {
    let mut config = persistent(classic(10.0));
    config.profiles[0].headers = vec![HeaderRule {
        prob: 1.0,
        what: HeaderChoice::One { name: "Server".into(), value: "polyorigin".into() },
    }];
    config.profiles[0].redirects = Some(Redirects { share: 1.0, popularity: PopModel::default() });
    let bench = Bench::new(config);
    let client = bench.connect();
    let mut replies = vec![];
    for world in ["X-Loc-World: 12345678.00abcdef:0000002a t3 -1/1 1\r\n", ""] {
        client.send(get(world));
        bench.run(bench.link.now());
        replies.push(client.text());
    }
    for request in [
        get("").replace("t03", "t07"),
        get("").replace("GET", "DELETE"),
        get("Range: bytes=2-4\r\n"),
        get("Range: bytes=10-\r\n"),
        get("Expect: miracles\r\n"),
    ] {
        replies.push(bench.ask(request));
    }
    let statuses: Vec<&str> = replies.iter().map(|reply| &reply["HTTP/1.1 ".len()..][..3]).collect();
    assert_eq!(statuses, ["200", "302", "404", "405", "206", "416", "417"]);
    for reply in &replies {
        assert_eq!(reply.matches("\r\nServer: polyorigin\r\n").count(), 1, "{reply}");
    }
}

#[test]
fn settings_travel_to_other_processes() {
    let mut config = living();
    config.profiles[0].redirects = Some(Redirects { share: 0.1, popularity: PopModel::default() });
    config.profiles[0].http_minors = Selector::weighted([(0, 0.3), (1, 0.7)]);
    let bytes = postcard::to_stdvec(&config).unwrap();
    assert_eq!(postcard::from_bytes::<OriginConfig>(&bytes).unwrap(), config);
}

#[test]
fn thousands_of_servers_are_cheap() {
    let config = Arc::new(persistent(classic(10.0)));
    let origin = Origin::new(link(), Arc::clone(&config), 0, Recorder::new());
    let server = |number: u64| ServerSpec {
        profile: 0,
        number,
        address: format!("10.{}.{}.1:80", number / 256, number % 256),
        names: Vec::new(),
    };
    let servers: Vec<_> = (0..5_000).map(|number| Server::new(&origin, server(number))).collect();
    assert!(size_of_val(&*servers[0]) < 400, "{}", size_of_val(&*servers[0]));
}
