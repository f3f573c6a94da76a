use super::*;

/// 2026-01-01 00:00:00 GMT.
const NOW: u64 = 1_767_225_600_000;
const DATE: &str = "Date: Thu, 01 Jan 2026 00:00:00 GMT";

/// Parses lines of `Name: value` and hands the fields to `then`.
fn with_fields<R>(lines: &[&str], then: impl FnOnce(&[Header<'_>]) -> R) -> R {
    let head = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
    let head = if lines.is_empty() { "GET / HTTP/1.1\r\n\r\n".to_owned() } else { head };
    polygraph_wire::parse_request(head.as_bytes(), |request| then(request.headers))
        .expect("a well-formed head")
        .expect("a complete head")
}

#[test]
fn what_may_be_stored() {
    #[track_caller]
    fn check(method: &str, request: &[&str], status: u16, reply: &[&str], expected: bool) {
        let got = with_fields(request, |request| {
            with_fields(reply, |reply| {
                let request = RequestFacts::read(request, NOW).for_reply(method);
                may_store(&request, status, &ReplyFacts::read(reply, NOW), NOW)
            })
        });
        assert_eq!(got, expected, "{method} {request:?} -> {status} {reply:?}");
    }
    let lives = "Cache-Control: max-age=60";
    check("GET", &[], 200, &[lives], true);
    check("HEAD", &[], 200, &[lives], false);
    check("POST", &[], 200, &[lives], false);
    check("GET", &[], 200, &[], false);
    check("GET", &[], 200, &["ETag: \"a\""], true);
    check("GET", &[], 200, &["Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT"], true);
    check("GET", &[], 200, &["Expires: Thu, 01 Jan 2026 00:01:00 GMT"], true);
    check("GET", &[], 200, &["Expires: Thu, 01 Jan 2026 00:00:00 GMT"], false);
    check("GET", &[], 200, &["Expires: 0"], false);
    // Refusals of the reply.
    check("GET", &[], 200, &["Cache-Control: private, max-age=60"], false);
    check("GET", &[], 200, &["Cache-Control: no-cache, max-age=60"], false);
    check("GET", &[], 200, &["Cache-Control: no-store, max-age=60"], false);
    check("GET", &[], 200, &["Cache-Control: private=\"x\", max-age=60"], false);
    check("GET", &[], 200, &[lives, "Cache-Control: no-store"], false);
    check("GET", &[], 200, &["Expires: Thu, 01 Jan 2026 00:01:00 GMT", "Pragma: no-cache"], false);
    check("GET", &[], 200, &[lives, "Pragma: no-cache"], true);
    // Refusals of the request.
    check("GET", &["Cache-Control: no-store"], 200, &[lives], false);
    check("GET", &["Cache-Control: no-cache"], 200, &[lives], true);
    // Authorization (RFC 9111, section 3.5).
    check("GET", &["Authorization: Basic eDp5"], 200, &[lives], false);
    check("GET", &["Authorization: Basic eDp5"], 200, &["Cache-Control: public, max-age=60"], true);
    check("GET", &["Authorization: Basic eDp5"], 200, &["Cache-Control: s-maxage=60"], true);
    check("GET", &["Authorization: Basic eDp5"], 200, &["Cache-Control: must-revalidate, max-age=6"], true);
    // Vary.
    check("GET", &[], 200, &[lives, "Vary: Accept"], true);
    check("GET", &[], 200, &[lives, "Vary: Accept, *"], false);
    // Statuses.
    for (status, expected) in [
        (203, true),
        (204, true),
        (206, false),
        (301, true),
        (302, true),
        (304, false),
        (404, true),
        (500, true),
        (100, false),
    ] {
        check("GET", &[], status, &[lives], expected);
    }
    check("GET", &[], 302, &["Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT"], false);
    check("GET", &[], 404, &["Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT"], true);
}

#[test]
fn how_long_a_reply_is_fresh() {
    #[track_caller]
    fn check(reply: &[&str], expected_seconds: u64) {
        let got = with_fields(reply, |reply| lifetime_ms(200, &ReplyFacts::read(reply, NOW), NOW));
        assert_eq!(got, expected_seconds * 1000, "{reply:?}");
    }
    check(&["Cache-Control: max-age=60"], 60);
    check(&["Cache-Control: max-age=60, s-maxage=5"], 5);
    check(&["Cache-Control: max-age=60", "Expires: Thu, 01 Jan 2026 01:00:00 GMT"], 60);
    check(&["Expires: Thu, 01 Jan 2026 01:00:00 GMT"], 3600);
    check(&["Date: Wed, 31 Dec 2025 23:00:00 GMT", "Expires: Thu, 01 Jan 2026 01:00:00 GMT"], 7200);
    check(&[DATE, "Expires: Wed, 31 Dec 2025 23:00:00 GMT"], 0);
    check(&["Expires: never"], 0);
    check(&["Expires: Thu, 01 Jan 2026 01:00:00 GMT", "Expires: 0"], 0);
    // Obsolete date forms must be understood (RFC 9110, section 5.6.7).
    check(&["Expires: Thursday, 01-Jan-26 01:00:00 GMT"], 3600);
    check(&["Expires: Thu Jan  1 01:00:00 2026"], 3600);
    // A tenth of the age since the last modification, at most a day.
    check(&[DATE, "Last-Modified: Wed, 31 Dec 2025 23:50:00 GMT"], 60);
    check(&["Last-Modified: Wed, 31 Dec 2025 23:50:00 GMT"], 60);
    check(&[DATE, "Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT"], 86_400);
    check(&[DATE, "Last-Modified: Thu, 01 Jan 2026 00:10:00 GMT"], 0);
    check(&["Cache-Control: public"], 0);
}

#[test]
fn how_old_a_reply_is() {
    #[track_caller]
    fn check(reply: &[&str], delay_ms: u64, after_ms: u64, expected_ms: u64) {
        let got = with_fields(reply, |reply| {
            Freshness::new(200, &ReplyFacts::read(reply, NOW), NOW - delay_ms, NOW).age_ms(NOW + after_ms)
        });
        assert_eq!(got, expected_ms, "{reply:?}, {delay_ms} ms, {after_ms} ms");
    }
    check(&[DATE], 0, 0, 0);
    check(&[], 300, 1500, 1800);
    check(&["Date: Wed, 31 Dec 2025 23:59:50 GMT"], 300, 0, 10_000);
    check(&[DATE, "Age: 20"], 300, 1000, 21_300);
    check(&["Date: Wed, 31 Dec 2025 23:59:50 GMT", "Age: 5"], 0, 0, 10_000);
    check(&["Date: Thu, 01 Jan 2026 00:10:00 GMT"], 0, 0, 0);
    check(&["Age: -5"], 0, 0, 0);
}

#[test]
fn whether_a_stored_reply_may_be_used() {
    #[track_caller]
    fn check(reply: &str, age_ms: u64, request: &[&str], expected: Reuse) {
        let got = with_fields(&[reply], |reply| {
            with_fields(request, |request| {
                let freshness = Freshness::new(200, &ReplyFacts::read(reply, NOW), NOW, NOW);
                freshness.reuse(&RequestFacts::read(request, NOW).control, NOW + age_ms)
            })
        });
        assert_eq!(got, expected, "{reply} at {age_ms} ms for {request:?}");
    }
    use Reuse::{Fresh, Validate};
    let minute = "Cache-Control: max-age=60";
    check(minute, 0, &[], Fresh);
    check(minute, 59_999, &[], Fresh);
    check(minute, 60_000, &[], Validate);
    check("Cache-Control: max-age=0", 0, &[], Validate);
    check(minute, 1, &["Cache-Control: no-cache"], Validate);
    check(minute, 1, &["Pragma: no-cache"], Validate);
    check(minute, 1, &["Pragma: no-cache", "Cache-Control: max-age=60"], Fresh);
    check(minute, 0, &["Cache-Control: max-age=0"], Validate);
    check(minute, 10_000, &["Cache-Control: max-age=10"], Fresh);
    check(minute, 10_001, &["Cache-Control: max-age=10"], Validate);
    check(minute, 10_000, &["Cache-Control: min-fresh=49"], Fresh);
    check(minute, 10_000, &["Cache-Control: min-fresh=50"], Validate);
    check(minute, 69_000, &["Cache-Control: max-stale=10"], Fresh);
    check(minute, 71_000, &["Cache-Control: max-stale=10"], Validate);
    check(minute, 1_000_000, &["Cache-Control: max-stale"], Fresh);
    for strict in ["must-revalidate, max-age=60", "proxy-revalidate, max-age=60", "s-maxage=60"] {
        check(&format!("Cache-Control: {strict}"), 69_000, &["Cache-Control: max-stale=10"], Validate);
    }
}

#[test]
fn whether_the_client_has_it_already() {
    #[track_caller]
    fn check(request: &[&str], etag: Option<&str>, modified: Option<u64>, expected: bool) {
        let got = with_fields(request, |request| {
            let facts = RequestFacts::read(request, NOW);
            {
                let etag = etag.map(|etag| etag.as_bytes().into());
                Validators { etag, last_modified: modified, date: NOW / 1000 }.not_modified(&facts)
            }
        });
        assert_eq!(got, expected, "{request:?} against {etag:?}, {modified:?}");
    }
    let at = NOW / 1000;
    let since = "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT";
    check(&[], Some("\"a\""), Some(at), false);
    check(&[since], None, Some(at), true);
    check(&[since], None, Some(at - 1), true);
    check(&[since], None, Some(at + 1), false);
    check(&[since], None, None, true);
    check(&["If-Modified-Since: yesterday"], None, Some(1), false);
    check(&["If-None-Match: \"a\""], Some("\"a\""), None, true);
    check(&["If-None-Match: \"b\", W/\"a\""], Some("\"a\""), None, true);
    check(&["If-None-Match: \"a\""], Some("W/\"a\""), None, true);
    check(&["If-None-Match: \"b\""], Some("\"a\""), None, false);
    check(&["If-None-Match: \"a\""], None, None, false);
    check(&["If-None-Match: *"], None, None, true);
    // The tag has precedence over the date.
    check(&["If-None-Match: \"b\"", since], Some("\"a\""), Some(at - 1), false);
}
