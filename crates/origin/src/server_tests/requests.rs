//! What servers make of requests, and how they count them.

use polygraph_traffic::life::CLASSIC_MAX_AGE;

use super::*;

#[test]
fn classic_replies_are_what_they_always_were() {
    let bench = Bench::new(persistent(classic(20.0)));
    let marks = "X-Target: 10.0.0.1:80\r\n\
        X-Xact: 00000007.00000007:00000008 00000001.00000abc:7ffffffb 0\r\n\r\n";
    let times = "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n";
    let reply = bench.ask(get(""));
    // Robots compare the lifetime with what arrives.
    let cachable = format!("Cache-Control: public,max-age={CLASSIC_MAX_AGE}\r\n");
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
    let all_names = ["other:8080", "www:80"].map(String::from).to_vec();
    let bench = Bench::new(OriginConfig { all_names, ..persistent(classic(10.0)) });
    for request in [
        get("").replace("www", "elsewhere"),
        // The device sends a request for another server here, as it is or with this host.
        get("").replace("www:80", "other:8080"),
        get("").replace("www", "other:8080").replace(":8080:80", ":8080"),
        // It replaces the host, or adds a port.
        get("").replace("Host: www", "Host: backend"),
        get("").replace("Host: www", "Host: www:8080"),
        // The default port may be there, and case does not matter.
        get("").replace("Host: www", "Host: WWW:80"),
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
        (ErrorKind::Misrouted, 2),
        (ErrorKind::HostChanged, 2),
    ]);
    assert_eq!((bench.recorder.totals().ok, bench.origin.health_checks()), (10, 1));
    let bench = Bench::new(OriginConfig { ignore_urls: true, ..persistent(classic(10.0)) });
    assert!(bench.ask("GET /any HTTP/1.1\r\nHost: any\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    bench.assert_errors(&[]);
}

/// The chunks count, and nothing is read from the connection after them.
#[test]
fn requests_with_a_length_beside_chunks_are_noted() {
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    for request in [get(both), get(both).replace("GET", "PUT")] {
        let bench = Bench::new(persistent(classic(10.0)));
        let reply = bench.ask(format!("{request}0\r\n\r\n{}", get("")));
        assert_eq!(reply.matches("HTTP/1.1 200 OK\r\n").count(), 1, "{reply}");
        assert_eq!(field(&reply, "Connection"), Some("close"), "{reply}");
        bench.assert_errors(&[(ErrorKind::LengthIgnored, 1)]);
    }
}

/// Robots mark all requests. Health checks and foreign requests are none of theirs.
#[test]
fn requests_for_objects_without_a_mark_are_counted() {
    let bench = Bench::new(persistent(classic(10.0)));
    let bare = |request: &str| {
        let lines = request.split_inclusive("\r\n").filter(|line| !line.starts_with("X-Xact:"));
        lines.collect::<String>()
    };
    for request in [
        get(""),
        bare(&get("")),
        bare(&get("").replace("GET", "HEAD")),
        "GET /healthz HTTP/1.0\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: www\r\n\r\n".to_owned(),
    ] {
        bench.ask(&request);
    }
    assert_eq!(bench.recorder.with(|block| (block.unmarked, block.xacts.entered)), (2, 5));
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
