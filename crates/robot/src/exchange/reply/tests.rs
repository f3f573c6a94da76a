use super::*;

#[derive(Default)]
struct Count(u64);

impl ContentSink for Count {
    fn begin(&mut self, _: &ReplyMeta) {}
    fn take(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// Feeds `text` cut into pieces of `step` bytes, then the end of the connection if `close`. Returns the metadata
/// of a complete reply and what was left over.
fn read(text: &str, step: usize, close: bool) -> Result<Option<(Box<ReplyMeta>, usize)>, Box<Violation>> {
    let mut reader = ReplyReader::new(false, false);
    let mut content = Count::default();
    for piece in text.as_bytes().chunks(step) {
        if let Progress::Complete { rest } = reader.feed(piece, &mut content)? {
            assert_eq!(Some(content.0), reader.meta().map(|meta| meta.body_bytes));
            return Ok(Some((reader.take_meta(), rest)));
        }
    }
    if close && let Progress::Complete { rest } = reader.feed(b"", &mut content)? {
        return Ok(Some((reader.take_meta(), rest)));
    }
    Ok(None)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: private, no-cache\r\n\r\nhello";

#[test]
fn pieces_do_not_matter() {
    for step in 1..OK.len() + 1 {
        let (meta, rest) = read(OK, step, false).unwrap().unwrap();
        assert_eq!((meta.status, meta.may_be_stored, meta.keep_alive), (200, false, true));
        assert_eq!((meta.body_bytes, meta.size(), rest), (5, OK.len() as u64, 0));
    }
    let two = OK.repeat(2);
    let (meta, rest) = read(&two, two.len(), false).unwrap().unwrap();
    assert_eq!((meta.size(), rest), (OK.len() as u64, OK.len()));
}

#[test]
fn endings() {
    #[track_caller]
    fn check(text: &str, expected: Result<Option<u64>, ErrorKind>) {
        let read = read(text, 7, true);
        let bytes = read.map(|meta| meta.map(|(f, _)| f.body_bytes));
        assert_eq!(bytes.map_err(|violation| violation.kind), expected, "{text}");
    }
    check("", Err(ErrorKind::NoReply));
    check("HTTP/1.1 20", Err(ErrorKind::HeadShort));
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Err(ErrorKind::BodyShort));
    check("SSH-2.0-OpenSSH\r\n\r\n", Err(ErrorKind::BadHead));
    check("HTTP/1.0 200 OK\r\n\r\nhello", Ok(Some(5)));
    check("HTTP/1.1 204 No Content\r\n\r\n", Ok(Some(0)));
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", Ok(Some(3)));
}

#[test]
fn reading_stops_at_an_awaited_continue() {
    let mut reader = ReplyReader::new(false, true);
    let mut content = Count::default();
    let text = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}");
    let progress = reader.feed(text.as_bytes(), &mut content);
    assert_eq!(progress, Ok(Progress::Continue { rest: OK.len() }), "{text}");
    reader.stop_awaiting();
    assert_eq!(reader.feed(OK.as_bytes(), &mut content), Ok(Progress::Complete { rest: 0 }));
    assert_eq!(reader.take_meta().size(), text.len() as u64);
    let mut refused = ReplyReader::new(false, true);
    let text = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(refused.feed(text.as_bytes(), &mut content), Ok(Progress::Complete { rest: 0 }));
    assert_eq!(refused.take_meta().status, 417);
}

#[test]
fn a_late_continue_passes() {
    let mut reader = ReplyReader::new(false, true);
    reader.stop_awaiting();
    let text = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}");
    let progress = reader.feed(text.as_bytes(), &mut Count::default());
    assert_eq!(progress, Ok(Progress::Complete { rest: 0 }));
    assert_eq!(reader.take_meta().status, 200);
}

#[test]
fn broken_messages_are_called_by_their_names() {
    #[track_caller]
    fn check(fields: &str, body: &str, kind: ErrorKind, detail: &str) {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
        for step in [7, text.len()] {
            let violation = read(&text, step, true).unwrap_err();
            assert_eq!((violation.kind, &*violation.detail), (kind, detail));
        }
    }
    let length = "bad Content-Length (`Content-Length: 5`, `Content-Length: 6`)";
    check("Content-Length: 5\r\nContent-Length: 6\r\n", "hello", ErrorKind::BadLength, length);
    let length = "bad Content-Length (`Content-Length: -5`)";
    check("Content-Length: -5\r\n", "hello", ErrorKind::BadLength, length);
    let coding = "unsupported transfer coding (`Transfer-Encoding: br`)";
    check("Transfer-Encoding: br\r\n", "", ErrorKind::BadCoding, coding);
    let chunked = "Transfer-Encoding: chunked\r\n";
    check(chunked, "zz\r\n", ErrorKind::ChunkSize, "bad chunk size");
    check(chunked, "-5\r\n", ErrorKind::ChunkNegative, "negative chunk size");
    check(chunked, "3\r\nabcX", ErrorKind::ChunkEnd, "bad end of a chunk");
    let long = format!("3;{}", "x".repeat(20_000));
    check(chunked, &long, ErrorKind::ChunkTokenLong, "endless chunk extension or trailer");
    let many = "more than 100 header fields: `HTTP/1.1 200 OK`";
    check(&"A: b\r\n".repeat(500), "", ErrorKind::HeadTooLarge, many);
    let bad = "not an HTTP/1 head: `HTTP/1.1 200 OK`";
    check("no colon\r\n", "", ErrorKind::BadHead, bad);
}

#[test]
fn the_status_of_a_broken_message_is_known() {
    let large = format!("HTTP/1.1 203 X\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "y".repeat(MAX_HEAD));
    for (text, status, kind) in [
        ("HTTP/1.1 201 X\r\nContent-Length: x\r\n\r\n", 201, ErrorKind::BadLength),
        ("HTTP/1.1 100 Continue\r\n\r\n", 100, ErrorKind::UnexpectedContinue),
        ("HTTP/1.1 101 Switching\r\n\r\n", 101, ErrorKind::UnexpectedInterim),
        // Also when it comes at once.
        (&large, 203, ErrorKind::HeadTooLarge),
    ] {
        let mut reader = ReplyReader::new(false, false);
        let violation = reader.feed(text.as_bytes(), &mut Count::default()).unwrap_err();
        assert_eq!(violation.kind, kind);
        assert_eq!(reader.meta().map(|meta| meta.status), Some(status));
    }
}

#[test]
fn interim_replies_that_ask_for_nothing_are_passed_over() {
    let text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(read(text, 7, false).unwrap().unwrap().0.status, 200);
}

#[test]
fn lengths_beside_chunks_and_trailers_are_noted() {
    #[track_caller]
    fn check(fields: &str, end: &str, expected: (bool, bool)) {
        let text = format!(
            "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n{end}\r\n"
        );
        let rare = read(&text, 5, false).unwrap().unwrap().0.rare.unwrap_or_default();
        assert_eq!((rare.length_ignored, rare.trailer), expected);
    }
    check("", "", (false, false));
    check("Content-Length: 9\r\n", "", (true, false));
    check("", "A: b\r\n", (false, true));
}

#[test]
fn replies_without_a_length_end_nowhere_if_the_connection_stays_open() {
    for (text, expected) in [
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\n\r\n", false),
        (OK, false),
    ] {
        let mut reader = ReplyReader::new(false, false);
        reader.feed(text.as_bytes(), &mut Count::default()).unwrap();
        assert_eq!(reader.is_endless(), expected, "{text}");
    }
}

#[test]
fn fields_by_example() {
    let head = "HTTP/1.1 206 Partial\r\nContent-Length: 2\r\nContent-Range: bytes 3-4/10\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nLast-Modified: Sun, 06 Nov 1994 08:49:00 GMT\r\nAge: 7\r\n\
        Content-Encoding: gzip\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nLocation: /x\r\n\r\nab";
    let (meta, _) = read(head, 9, false).unwrap().unwrap();
    assert_eq!((meta.status, meta.date, meta.age), (206, Some(784_111_777), Some(7)));
    assert_eq!(meta.last_modified, Some(784_111_740));
    assert_eq!(meta.coding, Coding::Gzip);
    let rare = meta.rare.unwrap();
    assert_eq!((rare.cookies.len(), rare.location.as_deref()), (2, Some(&b"/x"[..])));
    assert!(rare.range.is_some() && !rare.bad_range);
}

#[test]
fn endless_heads_are_refused() {
    let text = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD + 10));
    assert_eq!(read(&text, 1000, false).unwrap_err().kind, ErrorKind::HeadTooLarge);
}

#[test]
fn types_of_markup() {
    for (value, expected) in [
        ("text/html", true),
        ("Text/HTML; charset=utf-8", true),
        ("text/css", true),
        ("text/plain", false),
        ("image/png", false),
        ("application/xhtml+xml", true),
    ] {
        assert_eq!(MediaType::of(value.as_bytes()) == MediaType::Markup, expected, "{value}");
    }
}
