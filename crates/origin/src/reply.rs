//! The head of a reply, as PolyMix-1 has it.

use polygraph_traffic::{Body, Catalog, Oid, UniqId};
use polygraph_wire::date;
use polygraph_wire::marks::{X_TARGET, X_XACT, Xact};

use crate::request::{Method, Request};

/// `Last-Modified` of every object: Wed, 18 Feb 1998 17:53:58 GMT. Some caches store nothing without it.
pub const LAST_MODIFIED: u64 = 887_824_438;

/// Cachable replies are fresh for a year.
const CACHABLE: &[u8] = b"Cache-Control: public,max-age=31536000\r\n";
const UNCACHABLE: &[u8] = b"Cache-Control: private,no-cache\r\nPragma: no-cache\r\n";

/// What kind of answer a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object.
    Full,
    /// 304: the client's copy is current.
    NotModified,
    /// 404: the URL is not ours.
    NotFound,
    /// 405: only GET and HEAD are served.
    MethodNotAllowed,
}

/// Decides the answer.
pub fn answer(request: &Request) -> Answer {
    match (request.method, request.oid) {
        (Method::Other, _) => Answer::MethodNotAllowed,
        (_, None) => Answer::NotFound,
        _ if request.if_modified_since.is_some_and(|since| since >= LAST_MODIFIED) => Answer::NotModified,
        _ => Answer::Full,
    }
}

/// Writes heads of replies; everything that is the same in all of them is made once.
#[derive(Clone, Debug)]
pub struct ReplyWriter {
    last_modified: Vec<u8>,
    target: Vec<u8>,
    group: UniqId,
    minor_version: u8,
}

impl ReplyWriter {
    /// A writer of HTTP/1.`minor_version` for the server at `address`, whose process has the id `group`.
    pub fn new(address: &str, group: UniqId, minor_version: u8) -> ReplyWriter {
        ReplyWriter {
            last_modified: format!("Last-Modified: {}\r\n", date::format(LAST_MODIFIED)).into_bytes(),
            target: format!("{X_TARGET}: {address}\r\n").into_bytes(),
            group,
            minor_version,
        }
    }

    /// Appends the head of the reply to `request` and returns the body to send after it.
    ///
    /// `now` is the time of day; `last` announces that the connection is closed afterwards.
    pub fn write(
        &self,
        request: &Request,
        catalog: &Catalog,
        now: &[u8; 29],
        last: bool,
        out: &mut Vec<u8>,
    ) -> Body {
        let (status, object): (&[u8], Option<Oid>) = match answer(request) {
            Answer::Full => (b" 200 OK\r\n", request.oid),
            Answer::NotModified => (b" 304 Not Modified\r\n", request.oid),
            Answer::NotFound => (b" 404 Not Found\r\n", None),
            Answer::MethodNotAllowed => (b" 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n", None),
        };
        out.extend_from_slice(if self.minor_version == 0 { b"HTTP/1.0" } else { b"HTTP/1.1" });
        out.extend_from_slice(status);
        let mut body = Body::empty();
        if let Some(oid) = object {
            body = catalog.body(&oid, b"");
            out.extend_from_slice(if catalog.cachable(&oid) { CACHABLE } else { UNCACHABLE });
            out.extend_from_slice(&self.last_modified);
        }
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(now);
        if last {
            out.extend_from_slice(b"\r\nConnection: close");
        } else if self.minor_version == 0 || request.minor_version == 0 {
            out.extend_from_slice(b"\r\nConnection: keep-alive");
        }
        if answer(request) != Answer::NotModified {
            out.extend_from_slice(b"\r\nContent-Length: ");
            write_decimal(body.len(), out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.target);
        if let Some(xact) = request.xact {
            out.extend_from_slice(X_XACT.as_bytes());
            out.extend_from_slice(b": ");
            Xact { group: self.group, id: xact.id.mutant(), flags: 0 }.write(out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if request.method == Method::Head || answer(request) != Answer::Full { Body::empty() } else { body }
    }
}

fn write_decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::{Distr, Seed};
    use polygraph_wire::{Framing, body, parse_reply};

    fn reply(head: &str) -> (String, u64, Framing) {
        let (request, _) = crate::request::read(head.as_bytes()).unwrap().unwrap();
        let properties = Catalog::classic(Seed(1), Distr::Const(1234.0));
        let writer = ReplyWriter::new("127.0.0.1:80", UniqId::default(), 1);
        let mut out = Vec::new();
        let body = writer.write(&request, &properties, b"Sun, 06 Nov 1994 08:49:37 GMT", false, &mut out);
        let to_head = head.starts_with("HEAD");
        let framing = parse_reply(&out, |r| body::reply_framing(r, to_head)).unwrap().unwrap().unwrap();
        (String::from_utf8(out).unwrap(), body.len(), framing)
    }

    const CACHABLE_PATH: &str = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4";

    #[test]
    fn cachable_and_uncachable_objects() {
        let (head, body, framing) = reply(&format!("GET {CACHABLE_PATH} HTTP/1.1\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nCache-Control: public,max-age=31536000\r\n"), "{head}");
        assert!(head.contains("Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT\r\n"), "{head}");
        assert_eq!((body, framing), (1234, Framing::Length(1234)));
        let (head, ..) = reply(&format!("GET {} HTTP/1.1\r\n\r\n", CACHABLE_PATH.replace("t03", "t04")));
        assert!(head.contains("Cache-Control: private,no-cache\r\nPragma: no-cache\r\n"), "{head}");
    }

    #[test]
    fn other_answers() {
        #[track_caller]
        fn check(request: &str, status: &str, body: u64) {
            let (head, len, framing) = reply(request);
            assert!(head.starts_with(status), "{head}");
            assert_eq!((len, framing), (body, Framing::Length(body)));
        }
        let get = format!("GET {CACHABLE_PATH} HTTP/1.1\r\n");
        let since = "If-Modified-Since: Wed, 18 Feb 1998 17:53:58 GMT\r\n\r\n";
        check(&format!("{get}{since}"), "HTTP/1.1 304", 0);
        check(&format!("{get}{}", since.replace("1998", "1997")), "HTTP/1.1 200", 1234);
        check(&format!("HEAD {CACHABLE_PATH} HTTP/1.1\r\n\r\n"), "HTTP/1.1 200", 0);
        check("GET /index.html HTTP/1.1\r\n\r\n", "HTTP/1.1 404", 0);
        check(&format!("POST {CACHABLE_PATH} HTTP/1.1\r\n\r\n"), "HTTP/1.1 405", 0);
    }
}
