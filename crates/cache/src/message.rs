//! The heads this proxy writes: requests to origins, replies to clients, replies of its own.

use std::io::Write as _;

use polygraph_wire::date;
use polygraph_wire::head::{Header, ReplyHead, RequestHead, has_token};

use crate::policy::Validators;
use crate::target::Target;

/// Heads larger than this are refused, of requests and of replies.
pub const MAX_HEAD: usize = 64 * 1024;

/// Fields that concern one connection only, named by `Connection` or known to (RFC 9110, section 7.6.1).
/// `Trailer` is among them because trailers are not passed on.
struct HopByHop<'b>(Vec<&'b [u8]>);

impl<'b> HopByHop<'b> {
    fn named_by(headers: &[Header<'b>]) -> HopByHop<'b> {
        let plain =
            |value: &[u8]| value.eq_ignore_ascii_case(b"close") || value.eq_ignore_ascii_case(b"keep-alive");
        let connection = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
        HopByHop(connection.map(|header| header.value).filter(|value| !plain(value)).collect())
    }

    fn contains(&self, name: &str) -> bool {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let known = match name.len() {
            2 => is("te"),
            7 => is("upgrade") || is("trailer"),
            10 => is("connection") || is("keep-alive"),
            16 => is("proxy-connection"),
            17 => is("transfer-encoding"),
            18 => is("proxy-authenticate"),
            19 => is("proxy-authorization"),
            _ => false,
        };
        known || self.0.iter().any(|list| has_token(list, name))
    }
}

/// How a request's body is framed towards the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOut {
    /// There is none; a `Content-Length: 0` of the client is passed on.
    None,
    /// As long as the client says.
    Length,
    /// In chunks of our own.
    Chunked,
}

/// Appends the head of the request as the origin receives it. Validators of a stored reply replace the client's
/// own conditions (RFC 9111, section 4.3.1).
pub fn write_request(
    out: &mut Vec<u8>,
    request: &RequestHead<'_, '_>,
    target: &Target<'_>,
    body: BodyOut,
    validators: Option<&Validators>,
    name: &str,
) {
    out.extend_from_slice(request.method.as_bytes());
    out.push(b' ');
    target.write_path(out);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(target.authority.as_bytes());
    out.extend_from_slice(b"\r\n");
    let hop_by_hop = HopByHop::named_by(request.headers);
    for header in request.headers {
        let is = |wanted: &str| header.name.eq_ignore_ascii_case(wanted);
        let replaced = is("host")
            || is("content-length") && body == BodyOut::Chunked
            || validators.is_some() && (is("if-none-match") || is("if-modified-since"));
        if is("max-forwards") && matches!(request.method, "OPTIONS" | "TRACE") {
            let left = polygraph_wire::body::parse_decimal(header.value.trim_ascii()).unwrap_or(1);
            field(out, header.name, left.saturating_sub(1).to_string().as_bytes());
        } else if !replaced && !hop_by_hop.contains(header.name) {
            field(out, header.name, header.value);
        }
    }
    if body == BodyOut::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if let Some(validators) = validators {
        if let Some(etag) = &validators.etag {
            field(out, "If-None-Match", etag);
        }
        if let Some(modified) = validators.last_modified {
            field(out, "If-Modified-Since", date::format(modified).as_bytes());
        }
    }
    write_via(out, request.minor_version, name);
    out.extend_from_slice(b"\r\n");
}

/// Appends status line and end-to-end fields of an origin's reply, with `Via` and a `Date` (`now`, in seconds
/// since 1970, where the origin sent none). `Age` and, unless `keep_length`, `Content-Length` are left out:
/// they are written when it is known what they must be.
pub fn write_reply(out: &mut Vec<u8>, reply: &ReplyHead<'_, '_>, keep_length: bool, now: u64, name: &str) {
    let _ = write!(out, "HTTP/1.1 {} {}\r\n", reply.status, reply.reason);
    let hop_by_hop = HopByHop::named_by(reply.headers);
    let mut dated = false;
    for header in reply.headers {
        let is = |wanted: &str| header.name.eq_ignore_ascii_case(wanted);
        dated |= is("date");
        if is("age") || (is("content-length") && !keep_length) || hop_by_hop.contains(header.name) {
            continue;
        }
        field(out, header.name, header.value);
    }
    if !dated {
        field(out, "Date", date::format(now).as_bytes());
    }
    write_via(out, reply.minor_version, name);
}

/// The head of a stored reply after the origin said `304` (RFC 9111, section 3.2): `fresh`, written by
/// [`write_reply`], replaces fields of the same name, except those that describe the stored content.
pub fn merge_heads(stored: &[u8], fresh: &[u8]) -> Vec<u8> {
    let about_content = |name: &[u8]| {
        [&b"content-length"[..], b"content-encoding", b"content-range"]
            .iter()
            .any(|n| name.eq_ignore_ascii_case(n))
    };
    let mut merged = Vec::with_capacity(stored.len() + fresh.len());
    let mut lines = stored.split_inclusive(|&b| b == b'\n');
    merged.extend_from_slice(lines.next().unwrap_or_default());
    for line in lines {
        let name = line_name(line);
        let replaced = fresh_lines(fresh).any(|line| line_name(line).eq_ignore_ascii_case(name));
        if about_content(name) || !replaced {
            merged.extend_from_slice(line);
        }
    }
    for line in fresh_lines(fresh).filter(|line| !about_content(line_name(line))) {
        merged.extend_from_slice(line);
    }
    merged
}

/// Appends the head of a `304` in place of a stored reply: everything but what describes the content.
pub fn write_not_modified(out: &mut Vec<u8>, stored: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
    for line in fresh_lines(stored) {
        let name = line_name(line).to_ascii_lowercase();
        if !name.starts_with(b"content-") || name == b"content-location" {
            out.extend_from_slice(line);
        }
    }
}

fn fresh_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split_inclusive(|&b| b == b'\n').skip(1)
}

fn line_name(line: &[u8]) -> &[u8] {
    &line[..line.iter().position(|&b| b == b':').unwrap_or(0)]
}

/// Appends what ends a head towards a client: its `Age`, how the connection goes on, and the empty line.
pub fn write_end(out: &mut impl std::io::Write, age: Option<u64>, client_minor: u8, keep: bool) {
    // Writing into memory of sufficient size does not fail.
    if let Some(age) = age {
        let _ = write!(out, "Age: {age}\r\n");
    }
    let _ = out.write_all(match (keep, client_minor) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, 0) => b"Connection: keep-alive\r\n\r\n",
        (true, _) => b"\r\n",
    });
}

/// A reply of the proxy itself: a status with a sentence.
#[derive(Clone, Copy, Debug)]
pub struct OwnReply<'a> {
    /// Status code.
    pub status: u16,
    text: &'a str,
    challenge: Option<&'a [u8]>,
}

impl<'a> OwnReply<'a> {
    /// A reply without further fields.
    pub fn new(status: u16, text: &'a str) -> OwnReply<'a> {
        OwnReply { status, text, challenge: None }
    }

    /// A `407` with this value of `Proxy-Authenticate`.
    pub fn challenge(text: &'a str, challenge: &'a [u8]) -> OwnReply<'a> {
        OwnReply { status: 407, text, challenge: Some(challenge) }
    }

    /// Head and body. `now`: the time of day in seconds since 1970; `name`: that of the proxy.
    pub fn bytes(&self, client_minor: u8, keep: bool, now: u64, name: &str) -> Vec<u8> {
        let OwnReply { status, text, challenge } = *self;
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            508 => "Loop Detected",
            _ => "Error",
        };
        let mut out = Vec::with_capacity(256 + text.len());
        let date = date::format(now);
        let length = text.len() + 1;
        let _ = write!(
            out,
            "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\nVia: 1.1 {name}\r\nCache-Control: no-store\r\n\
             Content-Type: text/plain\r\nContent-Length: {length}\r\n"
        );
        if let Some(challenge) = challenge {
            field(&mut out, "Proxy-Authenticate", challenge);
        }
        write_end(&mut out, None, client_minor, keep);
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
        out
    }
}

/// True if a message with these fields passed the proxy called `name` before.
pub fn went_through(headers: &[Header<'_>], name: &str) -> bool {
    let passed = |value: &[u8]| {
        value.split(|&b| b == b',').any(|hop| {
            hop.trim_ascii()
                .split(|&b| b == b' ')
                .nth(1)
                .is_some_and(|by| by.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    headers.iter().any(|header| header.name.eq_ignore_ascii_case("via") && passed(header.value))
}

/// What surrounds a piece of content on the wire if it is a chunk: the line with its size, and its end.
pub struct ChunkFrame {
    size: [u8; 18],
    size_len: usize,
    after: &'static [u8],
}

impl ChunkFrame {
    /// For `len` bytes of content, `last` if no more follow; empty if the content is not `chunked`.
    pub fn new(chunked: bool, len: usize, last: bool) -> ChunkFrame {
        let mut frame = ChunkFrame { size: [0; 18], size_len: 0, after: b"" };
        if !chunked {
            return frame;
        }
        if len > 0 {
            let mut space = &mut frame.size[..];
            // Sixteen digits and a line end fit exactly.
            let _ = write!(space, "{len:x}\r\n");
            frame.size_len = 18 - space.len();
        }
        frame.after = match (len > 0, last) {
            (true, true) => b"\r\n0\r\n\r\n",
            (true, false) => b"\r\n",
            (false, true) => b"0\r\n\r\n",
            (false, false) => b"",
        };
        frame
    }

    /// What precedes the content.
    pub fn before(&self) -> &[u8] {
        &self.size[..self.size_len]
    }

    /// What follows the content.
    pub fn after(&self) -> &'static [u8] {
        self.after
    }
}

fn write_via(out: &mut Vec<u8>, minor_version: u8, name: &str) {
    let _ = write!(out, "Via: 1.{minor_version} {name}\r\n");
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("text")
    }

    fn request(head: &str, body: BodyOut) -> String {
        let mut out = Vec::new();
        polygraph_wire::parse_request(head.as_bytes(), |request| {
            let target = Target::parse(request.target).expect("an absolute target");
            write_request(&mut out, request, &target, body, None, "me");
        })
        .expect("a head")
        .expect("a complete head");
        text(out)
    }

    #[test]
    fn requests_lose_hop_by_hop_fields_and_gain_via() {
        let head = "GET http://a:8/b HTTP/1.0\r\nHost: other\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
                    Proxy-Connection: x\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                    Proxy-Authorization: secret\r\nVia: 1.0 first\r\nX-Kept: yes\r\n\r\n";
        let expected = "GET /b HTTP/1.1\r\nHost: a:8\r\nVia: 1.0 first\r\nX-Kept: yes\r\nVia: 1.0 me\r\n\r\n";
        assert_eq!(request(head, BodyOut::None), expected);
    }

    #[test]
    fn chunked_requests_have_no_length() {
        let head = "POST http://a/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let expected = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nVia: 1.1 me\r\n\r\n";
        assert_eq!(request(head, BodyOut::Chunked), expected);
    }

    #[test]
    fn max_forwards_counts_down() {
        let head = "OPTIONS http://a/ HTTP/1.1\r\nMax-Forwards: 3\r\n\r\n";
        assert!(request(head, BodyOut::None).contains("Max-Forwards: 2\r\n"));
    }

    #[test]
    fn replies_lose_hop_by_hop_fields_and_gain_via_and_date() {
        let head = "HTTP/1.0 200 Fine\r\nConnection: x-hop\r\nX-Hop: 1\r\nAge: 5\r\nContent-Length: 3\r\n\
                    Transfer-Encoding: chunked\r\nX-Kept: yes\r\n\r\n";
        let mut out = Vec::new();
        polygraph_wire::parse_reply(head.as_bytes(), |reply| write_reply(&mut out, reply, false, 0, "me"))
            .expect("a head")
            .expect("a complete head");
        let expected =
            "HTTP/1.1 200 Fine\r\nX-Kept: yes\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nVia: 1.0 me\r\n";
        assert_eq!(text(out), expected);
    }

    #[test]
    fn a_validation_updates_the_stored_head() {
        let stored = b"HTTP/1.1 200 OK\r\nDate: old\r\nX-A: 1\r\nETag: \"a\"\r\nContent-Length: 3\r\n";
        let fresh = b"HTTP/1.1 304 Not Modified\r\ndate: new\r\nX-B: 2\r\nContent-Length: 0\r\n";
        let expected =
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nETag: \"a\"\r\nContent-Length: 3\r\ndate: new\r\nX-B: 2\r\n";
        assert_eq!(text(merge_heads(stored, fresh)), expected);
    }

    #[test]
    fn a_304_has_no_fields_about_content() {
        let stored = b"HTTP/1.1 200 OK\r\nContent-Type: a\r\nContent-Location: b\r\nETag: \"c\"\r\nContent-Length: 3\r\n";
        let mut out = Vec::new();
        write_not_modified(&mut out, stored);
        assert_eq!(text(out), "HTTP/1.1 304 Not Modified\r\nContent-Location: b\r\nETag: \"c\"\r\n");
    }

    #[test]
    fn loops_are_seen() {
        #[track_caller]
        fn check(via: &str, expected: bool) {
            assert_eq!(
                went_through(&[Header { name: "Via", value: via.as_bytes() }], "me"),
                expected,
                "{via}"
            );
        }
        check("1.1 me", true);
        check("1.0 other, 1.1 ME (comment)", true);
        check("1.1 me2, 1.1 other (me)", false);
        check("me", false);
    }
}
