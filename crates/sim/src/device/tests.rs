//! A device between a client and an origin that are made of functions.

use std::cell::RefCell;

use polygraph_link::Conn;
use polygraph_traffic::{Content, ContentKind, Distr, Oid, Seed, UniqId};
use polygraph_wire::date;

use super::*;
use crate::conn::VirtualConn;

const EPOCH: u64 = 1_795_219_200;
const DEVICE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 3128);

/// A loop with a device and one origin behind every address, and what the origin was asked.
struct Bench {
    link: VirtualLink,
    device: Device,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Bench {
    /// `reply`: head and body to a request at a time of day.
    fn new(model: Model, reply: impl Fn(&str, u64) -> String + 'static) -> Bench {
        let link = VirtualLink::new(EPOCH);
        let catalog =
            Catalog { seed: Seed(1), contents: vec![Content::plain("x", Distr::Const(50_000.0), 1.0)] };
        let hosts = [("www.tst".to_owned(), vec![IpAddr::from([10, 0, 0, 1])])];
        let asked = Rc::new(RefCell::new(Vec::new()));
        let (seen, reply, origin) = (Rc::clone(&asked), Rc::new(reply), link.clone());
        link.listen_anywhere(move |mut conn, _| {
            let (seen, reply, link) = (Rc::clone(&seen), Rc::clone(&reply), origin.clone());
            origin.spawn(async move {
                let mut received = Vec::new();
                loop {
                    match conn.take().await {
                        Ok(piece) if !piece.is_empty() => received.extend(piece),
                        _ => return,
                    }
                    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
                        continue;
                    };
                    let head: Vec<u8> = received.drain(..end + 4).collect();
                    let head = String::from_utf8(head).unwrap();
                    let text = reply(&head, link.unix_seconds() as u64);
                    seen.borrow_mut().push(head);
                    conn.send_at(link.now(), text.clone().into_bytes());
                    if text.contains("Connection: close") {
                        return;
                    }
                }
            });
        });
        let servers = [("Site.tst:8080".to_owned(), SocketAddr::from(([10, 0, 0, 2], 9001)))];
        let device = Device::start(&link, &[DEVICE], model, catalog, &hosts, &servers);
        Bench { link, device, asked }
    }

    fn connect(&self) -> VirtualConn {
        self.link.connect(None, DEVICE).unwrap()
    }

    /// Head and body of the reply to a request without a body.
    fn ask(&self, request: &str) -> (String, Vec<u8>) {
        let mut conn = self.connect();
        self.ask_on(&mut conn, request)
    }

    fn ask_on(&self, conn: &mut VirtualConn, request: &str) -> (String, Vec<u8>) {
        conn.send_at(self.link.now(), request.replace('\n', "\r\n").into_bytes());
        self.link.run(self.link.now() + SECOND / 2);
        let reply = conn.take_arrived();
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(reply.len());
        let body = reply.get(end + 4..).unwrap_or_default().to_vec();
        (String::from_utf8_lossy(&reply[..end]).into_owned(), body)
    }

    fn asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.link.end();
    }
}

fn get(path: &str, fields: &str) -> String {
    format!("GET http://www.tst{path} HTTP/1.1\nHost: www.tst\n{fields}\n")
}

/// A reply of `size` bytes with these fields; `304` to conditions.
fn page(size: usize, fields: &'static str) -> impl Fn(&str, u64) -> String {
    move |request, now| {
        let date = date::format(now);
        match request.contains("If-None-Match: \"tag\"") {
            true => format!("HTTP/1.1 304 Not Modified\r\nDate: {date}\r\n{fields}\r\n"),
            false => {
                let body = "x".repeat(size);
                format!("HTTP/1.1 200 OK\r\nDate: {date}\r\n{fields}Content-Length: {size}\r\n\r\n{body}")
            }
        }
    }
}

#[test]
fn what_is_kept_and_for_how_long_is_as_rfc_9111_says() {
    let fresh = "Cache-Control: max-age=60\r\n";
    let tagged = "Cache-Control: max-age=60\r\nETag: \"tag\"\r\n";
    // Fields of the reply; the second request, so many seconds later; its status, and requests at the origin.
    let rows = [
        (fresh, get("/a", ""), 10, "200", 1),
        (fresh, get("/b", ""), 10, "200", 2),
        (fresh, get("/a", "Cache-Control: no-cache\n"), 10, "200", 2),
        (fresh, get("/a", "").replace("GET", "HEAD"), 10, "200", 1),
        (fresh, get("/a", "Range: bytes=0-5\n"), 10, "200", 2),
        (fresh, get("/a", "If-Modified-Since: Sat, 21 Nov 2026 00:10:00 GMT\n"), 10, "304", 1),
        (fresh, get("/a", ""), 61, "200", 2),
        (tagged, get("/a", ""), 61, "200", 2),
        (tagged, get("/a", "If-None-Match: \"tag\"\n"), 10, "304", 1),
        ("Cache-Control: private,no-cache\r\n", get("/a", ""), 1, "200", 2),
        ("Cache-Control: no-store\r\n", get("/a", ""), 1, "200", 2),
        ("Vary: Accept\r\nCache-Control: max-age=60\r\n", get("/a", ""), 1, "200", 1),
        ("Vary: Accept\r\nCache-Control: max-age=60\r\n", get("/a", "Accept: b\n"), 1, "200", 2),
        (fresh, "GET /a HTTP/1.1\nHost: www.tst\n\n".to_owned(), 1, "400", 1),
        (fresh, get("/c", "Cache-Control: only-if-cached\n"), 1, "504", 1),
        (fresh, get("/a", "").replace("www.tst", "nowhere.tst"), 1, "502", 1),
        // No address is known for the name alone, but for the server that is called so.
        (fresh, get("/a", "").replace("www.tst", "site.tst:8080"), 1, "200", 2),
    ];
    for (fields, second, seconds, status, asked) in rows {
        let bench = Bench::new(Model::instant(Cache::Lru(1 << 20)), page(1000, fields));
        let (first, body) = bench.ask(&get("/a", ""));
        assert!(first.starts_with("HTTP/1.1 200 ") && body.len() == 1000, "{first}");
        bench.link.run(seconds * SECOND);
        let (head, body) = bench.ask(&second);
        assert!(head.contains(&format!(" {status} ")), "{fields}{second}{head}");
        assert_eq!(bench.asked(), asked, "{fields}{second}{head}");
        let whole = status == "200" && !second.starts_with("HEAD");
        assert!(!whole || body.len() == 1000, "{second}{head}");
        let kept = asked == 1 && status != "400" && !status.starts_with('5');
        assert_eq!(head.contains("\r\nAge: "), kept || fields == tagged, "{second}{head}");
        assert_eq!(bench.device.snapshot().hits, u64::from(kept));
    }
}

#[test]
fn a_url_whose_replies_begin_to_vary_is_forgotten_as_a_whole() {
    let bench = Bench::new(Model::instant(Cache::Ideal), |request, now| {
        let vary = if request.contains("no-cache") { "Vary: Accept\r\n" } else { "" };
        page(10, "Cache-Control: max-age=60\r\n")(request, now).replacen("Cache", &format!("{vary}Cache"), 1)
    });
    bench.ask(&get("/a", ""));
    // The new reply replaces the old one, which would have answered the same request.
    bench.ask(&get("/a", "Cache-Control: no-cache\n"));
    assert_eq!(bench.device.snapshot().store_objects, 1);
    bench.ask(&get("/a", "Accept: x\nCache-Control: no-cache\n"));
    assert_eq!(bench.device.snapshot().store_objects, 2);
    bench.ask(&get("/a", "").replace("GET", "DELETE"));
    assert_eq!(bench.device.snapshot().store_objects, 0);
}

#[test]
fn connections_go_on_and_are_used_again() {
    let bench = Bench::new(Model::instant(Cache::Ideal), page(10, "Cache-Control: no-store\r\n"));
    let mut conn = bench.connect();
    for n in 1..=3 {
        let (head, _) = bench.ask_on(&mut conn, &get("/a", ""));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(bench.asked(), n);
    }
    assert!(!conn.is_disturbed());
    // Idle for longer than it may be.
    bench.link.run(bench.link.now() + 61 * SECOND);
    assert!(conn.is_ended());
    // Somebody who wants no more.
    let mut conn = bench.connect();
    let (head, _) = bench.ask_on(&mut conn, &get("/a", "Connection: close\n"));
    assert!(head.ends_with("Connection: close") && conn.is_ended(), "{head}");
}

#[test]
fn replies_that_break_off_stay_broken() {
    let reply = |_: &str, _: u64| {
        "HTTP/1.1 200 OK\r\nCache-Control: public,max-age=60\r\nContent-Length: 100\r\nConnection: close\r\n\r\nxyz"
            .to_owned()
    };
    let bench = Bench::new(Model::instant(Cache::Ideal), reply);
    for _ in 0..2 {
        let mut conn = bench.connect();
        let (head, body) = bench.ask_on(&mut conn, &get("/a", ""));
        assert!(head.contains("Content-Length: 100") && body == b"xyz" && conn.is_ended(), "{head}");
    }
    assert_eq!((bench.asked(), bench.device.snapshot().store_objects), (2, 0));
}

#[test]
fn known_contents_are_made() {
    let (id, mix) = (1, 2);
    let oid = Oid { world: UniqId { time: id, mix, counter: 3 }, kind: ContentKind::FIRST, name: 5 };
    let catalog = Catalog { seed: Seed(1), contents: vec![Content::plain("x", Distr::Const(50_000.0), 1.0)] };
    let mut path = Vec::new();
    catalog.write_path(&oid, &mut path);
    let generator = content::generator(catalog.clone());
    let bytes = catalog.body(&oid, b"").to_vec();
    let content = generator(&path).expect("an object of the catalog");
    assert_eq!((content.size(), content.body().to_vec()), (bytes.len() as u64, bytes));
    assert!(generator(b"/else").is_none());
}

#[test]
fn a_small_cache_is_full_and_says_when() {
    let bench = Bench::new(Model::instant(Cache::Fifo(50_000)), page(5_000, "Cache-Control: max-age=60\r\n"));
    for n in 0..20 {
        bench.ask(&get(&format!("/{n}"), ""));
    }
    let figures = bench.device.snapshot();
    assert!(figures.store_bytes <= 50_000 && figures.store_objects + figures.evicted == 20, "{figures:?}");
    assert!(figures.full_at.is_some_and(|at| at > 3 * SECOND && at < 5 * SECOND), "{figures:?}");
    // The last are there, the first are not.
    let before = bench.asked();
    bench.ask(&get("/19", ""));
    assert_eq!(bench.asked(), before);
    bench.ask(&get("/0", ""));
    assert_eq!(bench.asked(), before + 1);
    // More than an eighth of the cache is too much for it.
    let bench = Bench::new(Model::instant(Cache::Lru(50_000)), page(7_000, "Cache-Control: max-age=60\r\n"));
    bench.ask(&get("/a", ""));
    assert_eq!(bench.device.snapshot().store_objects, 0);
}

#[test]
fn requests_queue_and_take_their_time() {
    let model = Model { hit: SECOND / 10, miss: SECOND / 5, rate: Some(2.0), ..Model::instant(Cache::Ideal) };
    let bench = Bench::new(model, page(10, "Cache-Control: max-age=600\r\n"));
    let mut conns: Vec<VirtualConn> = (0..4).map(|_| bench.connect()).collect();
    for conn in &mut conns {
        conn.send_at(Nanos::ZERO, get("/a", "").replace('\n', "\r\n").into_bytes());
    }
    let mut arrived = Vec::new();
    for step in 1..=30 {
        bench.link.run(step * SECOND / 10);
        for (number, conn) in conns.iter_mut().enumerate() {
            if !conn.take_arrived().is_empty() {
                arrived.push((number, step));
            }
        }
    }
    // Every half second one is through the queue; a fifth for the miss, a tenth for hits.
    assert_eq!(arrived, [(0, 7), (1, 11), (2, 16), (3, 21)]);
}
