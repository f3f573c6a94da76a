//! What replies say of the objects that they deliver.

use super::*;

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
