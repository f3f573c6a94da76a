//! Replies of evil devices, and what the verdict has to say of each.

use std::time::Duration;

use super::device::{DEMAND, Deed, Reply};
use super::{Row, Want};

const OWN_PAGE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 39\r\nConnection: close\r\n\r\n\
    <html><body>Please log in</body></html>";

/// A reply without a body of interest.
macro_rules! status {
    ($line:literal) => {
        Deed::Say(
            concat!("HTTP/1.1 ", $line, "\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops").as_bytes(),
        )
    };
    ($line:literal, $field:literal) => {
        Deed::Say(
            concat!(
                "HTTP/1.1 ",
                $line,
                "\r\n",
                $field,
                "\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops"
            )
            .as_bytes(),
        )
    };
}

const ERRORS: Want = Want::failed("errors", "the device answered with errors");
const ASTRAY: Want = Want::failed("errors", "the device redirected robots elsewhere");
const BROKEN: Want = Want::failed("errors", "the device sent broken messages");
const OFF: Want = Want::failed("errors", "the device dropped connections");
/// Of devices that let robots wait.
const UNVERIFIABLE: Want =
    Want::failed("unverified", "the device delivered replies that robots cannot verify");
pub const SILENT: Want = Want::failed("errors", "the device did not answer");
const CONTENT: Want = Want::failed("content", "the device delivered wrong content");
const OWN: Want = Want::failed("correctness", "the device answered in place of the servers");

const UNANSWERED: Want = Want::failed("unanswered", "the device did not answer all requests");

/// Replies that devices make themselves.
pub fn canned() -> Vec<Row> {
    let say = |name, deed, want| Row::evil(name, deed, want);
    let slow = Duration::from_millis(200);
    vec![
        say("200 with a login page", Deed::Say(OWN_PAGE), CONTENT),
        say("200 with an empty body", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), CONTENT),
        say("nothing to every third request", Deed::Ignore(3), UNANSWERED),
        say("204", Deed::Say(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), ERRORS),
        say("206 to a request without a range", status!("206 Partial Content", "Content-Range: bytes 0-3/4"), BROKEN),
        say("300", status!("300 Multiple Choices", "Location: https://example.com/"), ASTRAY),
        say("301 to https", status!("301 Moved Permanently", "Location: https://127.0.0.1/"), ASTRAY),
        say("302 to a login page", status!("302 Found", "Location: http://127.0.0.1:9/login"), ASTRAY),
        say("302 without Location", status!("302 Found"), ASTRAY),
        say("303 to a block page", status!("303 See Other", "Location: http://127.0.0.1:9/blocked"), ASTRAY),
        say("304 to requests without a condition", Deed::Say(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"), ERRORS),
        say("307", status!("307 Temporary Redirect", "Location: http://127.0.0.1:9/"), ASTRAY),
        say("308", status!("308 Permanent Redirect", "Location: https://127.0.0.1/"), ASTRAY),
        say("400", status!("400 Bad Request"), ERRORS),
        say("401 with a challenge", status!("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\""), ERRORS),
        say("401 without a challenge", status!("401 Unauthorized"), ERRORS),
        say("403", status!("403 Forbidden"), ERRORS),
        say("404", status!("404 Not Found"), ERRORS),
        say("407 with a challenge", status!("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"x\""), Want::invalid("test", "errors")),
        say("407 without a challenge", status!("407 Proxy Authentication Required"), ERRORS),
        say("408", status!("408 Request Timeout"), ERRORS),
        say("421", status!("421 Misdirected Request"), ERRORS),
        say("429", status!("429 Too Many Requests"), ERRORS),
        say("451", status!("451 Unavailable For Legal Reasons"), ERRORS),
        say("500", status!("500 Internal Server Error"), ERRORS),
        say("502", status!("502 Bad Gateway"), ERRORS),
        say("503", status!("503 Service Unavailable"), ERRORS),
        say("504", status!("504 Gateway Timeout"), ERRORS),
        say("511", status!("511 Network Authentication Required"), ERRORS),
        say("an unknown status code", status!("799 Whatever"), ERRORS),
        say("101 to a request without an upgrade", Deed::Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), BROKEN),
        say("an endless stream of early hints", Deed::Repeat(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", Duration::from_millis(1)), BROKEN),
        say("a Content-Length that is not a number", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4x\r\n\r\noops"), BROKEN),
        say("two different Content-Length fields", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\noops"), BROKEN),
        say("an invalid chunk size", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\noops\r\n"), BROKEN),
        say("a negative chunk size", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\noops\r\n"), BROKEN),
        say("an unknown transfer coding", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\noops"), BROKEN),
        say("garbage", Deed::Say(b"\x00\x01\x02 what is this?\r\n\r\n"), BROKEN),
        say("the HTTP/2 preface of a server", Deed::Say(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\x00\xff\xff\x00\x05\x00\x00\x40\x00"), BROKEN),
        say("a TLS alert", Deed::Say(b"\x15\x03\x01\x00\x02\x02\x46"), BROKEN),
        say("an SSH banner", Deed::Say(b"SSH-2.0-OpenSSH_9.6\r\n"), BROKEN),
        say("an endless head", Deed::Repeat(b"HTTP/1.1 200 OK\r\n", b"X-Filler: 0123456789012345678901234567890123456789012345678901234567890123\r\n", Duration::ZERO), BROKEN),
        say("half a head, then silence", Deed::SayAndHold(b"HTTP/1.1 200 OK\r\nContent-Le"), SILENT),
        say("half a head, then a closed connection", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Le"), BROKEN),
        say("a head, then silence", Deed::SayAndHold(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"), SILENT),
        say("silence on an open connection", Deed::SayAndHold(b""), SILENT),
        say("a byte every 200 ms", Deed::Repeat(b"HTTP/1.1 200 OK\r\nX-Filler: ", b"0", slow), SILENT),
        say("a closed connection before any byte", Deed::Say(b""), OFF),
        say("a reset before the request", Deed::Reset { after_request: false }, OFF),
        say("a reset after the request", Deed::Reset { after_request: true }, OFF),
    ]
}

/// What devices make of the replies of origins.
pub fn spoiled() -> Vec<Row> {
    let make = |name, make: fn(Reply, u64) -> Vec<u8>, want| Row::evil(name, Deed::Relay(make), want);
    vec![
        make("correct replies", |reply, _| reply.bytes(), Want::VALID),
        make(
            "early hints before each reply",
            |reply, _| [b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(), reply.bytes()].concat(),
            Want::VALID,
        ),
        make(
            "a body cut in the middle",
            |reply, _| {
                let half = reply.head.len() + reply.body.len() / 2;
                reply.bytes()[..half].to_vec()
            },
            BROKEN,
        ),
        make(
            "a body cut in the middle, with a matching Content-Length",
            |reply, _| {
                let half = reply.body[..reply.body.len() / 2].to_vec();
                reply.body(half).bytes()
            },
            CONTENT,
        ),
        make("more bytes than announced", |reply, _| [reply.bytes(), b"and more".to_vec()].concat(), BROKEN),
        make(
            "a longer body with a matching Content-Length",
            |reply, _| {
                let longer = [&reply.body[..], b"and more"].concat();
                reply.body(longer).bytes()
            },
            CONTENT,
        ),
        make(
            "one altered byte",
            |mut reply, _| {
                if let Some(byte) = reply.body.last_mut() {
                    *byte ^= 1;
                }
                reply.bytes()
            },
            CONTENT,
        ),
        make(
            "another digest of the right body",
            |reply, _| reply.with("Content-MD5", Some("1B2M2Y8AsgTpgAmY7PhCfg==")).bytes(),
            Want::VALID.warning("digests"),
        ),
        make(
            "one altered byte and another digest",
            |mut reply, _| {
                if let Some(byte) = reply.body.last_mut() {
                    *byte ^= 1;
                }
                reply.with("Content-MD5", Some("1B2M2Y8AsgTpgAmY7PhCfg==")).bytes()
            },
            CONTENT,
        ),
        make(
            "the body of the previous reply",
            |reply, _| match reply.last.clone() {
                Some(last) => reply.body(last.body).bytes(),
                None => reply.bytes(),
            },
            CONTENT,
        ),
        make(
            "the previous reply, head and body",
            |reply, _| reply.last.clone().map_or_else(|| reply.bytes(), |last| last.bytes()),
            CONTENT,
        ),
        make(
            "a login page with the marks of the servers",
            |reply, _| reply.body(b"<html>Please log in</html>".to_vec()).bytes(),
            CONTENT,
        ),
        make(
            "replies without the marks of the servers",
            |reply, _| {
                let mut bare = reply;
                for name in
                    ["X-Target", "X-Xact", "X-Loc-World", "X-Rem-World", "X-Abort", "X-Phase-Sync-Pos"]
                {
                    bare = bare.with(name, None);
                }
                bare.bytes()
            },
            OWN,
        ),
        make("replies without `X-Xact`", |reply, _| reply.with("X-Xact", None).bytes(), UNVERIFIABLE),
        make(
            "redirects with the marks of the servers",
            |reply, _| reply.status("302 Found").with("Location", Some("http://127.0.0.1:9/login")).bytes(),
            ASTRAY,
        ),
        make(
            "a gzip coding that the request does not accept",
            |reply, _| reply.with("Content-Encoding", Some("gzip")).bytes(),
            CONTENT,
        ),
        make(
            "an unknown content coding",
            |reply, _| reply.with("Content-Encoding", Some("zorch")).bytes(),
            CONTENT,
        ),
        make(
            "206 instead of 200",
            |reply, _| {
                let range = format!("bytes 0-{0}/{1}", reply.body.len() - 1, reply.body.len());
                reply.status("206 Partial Content").with("Content-Range", Some(&range)).bytes()
            },
            BROKEN,
        ),
        make(
            "chunks with a Content-Length besides",
            |reply, _| {
                let body = [format!("{:x}\r\n", reply.body.len()).as_bytes(), &reply.body, b"\r\n0\r\n\r\n"]
                    .concat();
                let head = reply.with("Transfer-Encoding", Some("chunked")).head;
                [head.into_bytes(), body].concat()
            },
            Want::VALID.warning("framing"),
        ),
        make(
            "a chunk that is longer than its announced size",
            |reply, _| {
                let body =
                    [format!("{:x}\r\n", reply.body.len() - 1).as_bytes(), &reply.body, b"\r\n0\r\n\r\n"]
                        .concat();
                let head = reply.with("Content-Length", None).with("Transfer-Encoding", Some("chunked")).head;
                [head.into_bytes(), body].concat()
            },
            BROKEN,
        ),
        make(
            "chunked content without the last chunk",
            |reply, _| {
                let body = [format!("{:x}\r\n", reply.body.len()).as_bytes(), &reply.body, b"\r\n"].concat();
                let head = reply.with("Content-Length", None).with("Transfer-Encoding", Some("chunked")).head;
                [head.into_bytes(), body].concat()
            },
            BROKEN,
        ),
        make(
            "a Date that is years old",
            |reply, _| reply.with("Date", Some("Fri, 01 Jan 2021 00:00:00 GMT")).bytes(),
            Want::failed("dates", "the device sent broken messages"),
        ),
        make(
            "no Date in four of five replies",
            |reply, number| match number % 5 {
                0 => reply.bytes(),
                _ => reply.with("Date", None).bytes(),
            },
            Want::VALID.warning("dates"),
        ),
        make(
            "503 to every second request",
            |reply, number| match number % 2 {
                0 => reply.bytes(),
                _ => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_vec(),
            },
            ERRORS,
        ),
        make(
            "407 with a challenge to every tenth request",
            |reply, number| match number % 10 {
                0 => DEMAND.to_vec(),
                _ => reply.bytes(),
            },
            ERRORS,
        ),
        make(
            "a redirect to every second request",
            |reply, number| {
                match number % 2 {
            0 => reply.bytes(),
            _ => b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        }
            },
            ASTRAY,
        ),
        make(
            "a redirect with the marks of the servers to every second request",
            |reply, number| match number % 2 {
                0 => reply.bytes(),
                _ => reply.status("302 Found").with("Location", Some("http://127.0.0.1:9/")).bytes(),
            },
            ASTRAY,
        ),
    ]
}

/// A request without the mark of the robot that sent it.
fn without_mark(head: &str) -> String {
    head.split_inclusive("\r\n").filter(|line| !line.starts_with("X-Xact:")).collect()
}

/// What devices make of requests.
pub fn requests() -> Vec<Row> {
    vec![
        Row::through(
            "the device sends chunks with a Content-Length besides",
            Deed::Rewrite(|head| {
                let fields = "Content-Length: 5\r\nTransfer-Encoding: chunked";
                format!("{}\r\n{fields}\r\n\r\n0\r\n\r\n", head.trim_end())
            }),
            Want::VALID.warning("framing"),
        ),
        Row::through(
            "the device removes `X-Xact` from requests",
            Deed::Rewrite(without_mark),
            UNVERIFIABLE.warning("unmarked"),
        ),
        Row::through(
            "the device fetches each object by itself, too",
            Deed::AskBesides(without_mark),
            Want::VALID.warning("unmarked"),
        ),
    ]
}
