//! Replies of evil devices, and what the verdict has to say of each.

use std::time::Duration;

use super::device::{Deed, Reply};
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
const ASTRAY: Want = Want::failed("errors", "the device led robots elsewhere");
const BROKEN: Want = Want::failed("errors", "the device sent broken messages");
const OFF: Want = Want::failed("errors", "the device broke connections off");
/// Of devices that let robots wait.
pub const SILENT: Want = Want::failed("errors", "the device did not answer");
const CONTENT: Want = Want::failed("content", "the device delivered wrong content");
const OWN: Want = Want::failed("correctness", "the device answered in place of the servers");

/// Replies that devices make themselves.
pub fn canned() -> Vec<Row> {
    let say = |name, deed, want| Row::evil(name, deed, want);
    let slow = Duration::from_millis(200);
    vec![
        say("200 with a page of its own", Deed::Say(OWN_PAGE), CONTENT),
        say("200 with nothing", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), CONTENT),
        say("204", Deed::Say(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), ERRORS),
        say("206 that nobody asked for", status!("206 Partial Content", "Content-Range: bytes 0-3/4"), BROKEN),
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
        say("407 with a challenge", status!("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"x\""), ERRORS),
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
        say("a status that nobody knows", status!("799 Whatever"), ERRORS),
        say("101 that nobody asked for", Deed::Say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), BROKEN),
        say("early hints without end", Deed::Repeat(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", Duration::from_millis(1)), BROKEN),
        say("a length that is no number", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4x\r\n\r\noops"), BROKEN),
        say("two lengths", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\noops"), BROKEN),
        say("a chunk size that is none", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\noops\r\n"), BROKEN),
        say("a chunk of negative size", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\noops\r\n"), BROKEN),
        say("a transfer coding that nobody knows", Deed::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\noops"), BROKEN),
        say("garbage", Deed::Say(b"\x00\x01\x02 what is this?\r\n\r\n"), BROKEN),
        say("the preface of HTTP/2", Deed::Say(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\x00\xff\xff\x00\x05\x00\x00\x40\x00"), BROKEN),
        say("a TLS alert", Deed::Say(b"\x15\x03\x01\x00\x02\x02\x46"), BROKEN),
        say("SSH", Deed::Say(b"SSH-2.0-OpenSSH_9.6\r\n"), BROKEN),
        say("a head without end", Deed::Repeat(b"HTTP/1.1 200 OK\r\n", b"X-Filler: 0123456789012345678901234567890123456789012345678901234567890123\r\n", Duration::ZERO), BROKEN),
        say("half a head, then silence", Deed::SayAndHold(b"HTTP/1.1 200 OK\r\nContent-Le"), SILENT),
        say("half a head, then the end", Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Le"), BROKEN),
        say("a head, then silence", Deed::SayAndHold(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"), SILENT),
        say("no answer at all", Deed::SayAndHold(b""), SILENT),
        say("a byte now and then", Deed::Repeat(b"HTTP/1.1 200 OK\r\nX-Filler: ", b"0", slow), SILENT),
        say("the end before any byte", Deed::Say(b""), OFF),
        say("a reset before the request", Deed::Reset { after_request: false }, OFF),
        say("a reset after the request", Deed::Reset { after_request: true }, OFF),
    ]
}

/// What devices make of the replies of origins.
pub fn spoiled() -> Vec<Row> {
    let make = |name, make: fn(Reply, u64) -> Vec<u8>, want| Row::evil(name, Deed::Relay(make), want);
    vec![
        make("nothing wrong", |reply, _| reply.bytes(), Want::VALID),
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
            "a body cut in the middle, with its new length",
            |reply, _| {
                let half = reply.body[..reply.body.len() / 2].to_vec();
                reply.body(half).bytes()
            },
            CONTENT,
        ),
        make("more bytes than announced", |reply, _| [reply.bytes(), b"and more".to_vec()].concat(), BROKEN),
        make(
            "a longer body, with its new length",
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
            "the body of the reply before",
            |reply, _| match reply.last.clone() {
                Some(last) => reply.body(last.body).bytes(),
                None => reply.bytes(),
            },
            CONTENT,
        ),
        make(
            "the reply before, head and body",
            |reply, _| reply.last.clone().map_or_else(|| reply.bytes(), |last| last.bytes()),
            CONTENT,
        ),
        make(
            "a page of its own under the marks of the servers",
            |reply, _| reply.body(b"<html>Please log in</html>".to_vec()).bytes(),
            CONTENT,
        ),
        make(
            "no marks",
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
        make(
            "redirects under the marks of the servers",
            |reply, _| reply.status("302 Found").with("Location", Some("http://127.0.0.1:9/login")).bytes(),
            ASTRAY,
        ),
        make(
            "gzip that nobody accepts",
            |reply, _| reply.with("Content-Encoding", Some("gzip")).bytes(),
            CONTENT,
        ),
        make(
            "a coding that nobody knows",
            |reply, _| reply.with("Content-Encoding", Some("zorch")).bytes(),
            CONTENT,
        ),
        make(
            "206 in place of 200",
            |reply, _| {
                let range = format!("bytes 0-{0}/{1}", reply.body.len() - 1, reply.body.len());
                reply.status("206 Partial Content").with("Content-Range", Some(&range)).bytes()
            },
            BROKEN,
        ),
        make(
            "a chunk that does not end where it says",
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
            "chunks without an end",
            |reply, _| {
                let body = [format!("{:x}\r\n", reply.body.len()).as_bytes(), &reply.body, b"\r\n"].concat();
                let head = reply.with("Content-Length", None).with("Transfer-Encoding", Some("chunked")).head;
                [head.into_bytes(), body].concat()
            },
            BROKEN,
        ),
        make(
            "a Date of years ago",
            |reply, _| reply.with("Date", Some("Fri, 01 Jan 2021 00:00:00 GMT")).bytes(),
            Want::failed("dates", "the device sent broken messages"),
        ),
        make(
            "every second reply is 503",
            |reply, number| match number % 2 {
                0 => reply.bytes(),
                _ => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_vec(),
            },
            ERRORS,
        ),
        make(
            "every second reply is a redirect",
            |reply, number| {
                match number % 2 {
            0 => reply.bytes(),
            _ => b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        }
            },
            ASTRAY,
        ),
        make(
            "every second reply is a redirect under the marks of the servers",
            |reply, number| match number % 2 {
                0 => reply.bytes(),
                _ => reply.status("302 Found").with("Location", Some("http://127.0.0.1:9/")).bytes(),
            },
            ASTRAY,
        ),
    ]
}
