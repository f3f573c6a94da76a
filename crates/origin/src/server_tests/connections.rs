//! How long connections last, and what interrupts messages on them.

use super::*;

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
