//! What a request asks for.

use polygraph_traffic::Oid;
use polygraph_wire::body::{self, BodyReader};
use polygraph_wire::marks::{Marks, Xact};
use polygraph_wire::{date, head, url};

/// Heads larger than this are refused.
pub const MAX_HEAD: usize = 32 * 1024;

/// A moment (January 2027) that tells the century of two-digit years.
const CENTURY: u64 = 1_800_000_000;

/// Methods an origin server tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// Anything else: refused.
    Other,
}

/// The facts of a request that matter to an origin server.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// The object, or `None` if the URL is not ours.
    pub oid: Option<Oid>,
    /// The transaction mark.
    pub xact: Option<Xact>,
    /// `If-Modified-Since`, in seconds since 1970.
    pub if_modified_since: Option<u64>,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// The client leaves the connection open.
    pub keep_alive: bool,
    /// Follows the body, if there is one.
    pub body: BodyReader,
    /// Start of the request line, kept only for requests that will be refused.
    pub sample: Option<String>,
}

/// Why bytes are not an acceptable request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not an HTTP/1 request head, or contradictory framing.
    Malformed,
    /// The head is too large.
    TooLarge,
}

/// Reads a request head at the start of `data`: the request and the length of its head, or `None` if more
/// bytes are needed.
///
/// # Errors
/// If the bytes are not an acceptable request.
pub fn read(data: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let parsed = head::parse_request(data, |request| {
        let framing = body::request_framing(request).map_err(|_| Refusal::Malformed)?;
        let method = match request.method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        };
        let oid = url::parse(request.target.as_bytes());
        let (mut marks, mut if_modified_since) = (Marks::default(), None);
        for header in request.headers {
            if !marks.see(header) && header.name.eq_ignore_ascii_case("If-Modified-Since") {
                if_modified_since = date::parse_any(header.value, CENTURY);
            }
        }
        let acceptable = oid.is_some() && method != Method::Other;
        let sample = (!acceptable)
            .then(|| format!("{} {}", request.method, request.target).chars().take(200).collect::<String>());
        Ok(Request {
            method,
            oid,
            xact: marks.xact,
            if_modified_since,
            minor_version: request.minor_version,
            keep_alive: head::keeps_alive(request.minor_version, request.headers),
            body: BodyReader::new(framing),
            sample,
        })
        .map(|facts| (facts, request.len))
    });
    match parsed {
        Ok(Some(read)) => read.map(Some),
        Ok(None) if data.len() > MAX_HEAD => Err(Refusal::TooLarge),
        Ok(None) => Ok(None),
        Err(_) => Err(Refusal::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_by_example() {
        let text = b"GET /w12345678.00abcdef:0000002a/t03/_00000000000001f4 HTTP/1.1\r\nHost: a\r\n\
            X-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 0\r\nConnection: close\r\n\r\n";
        let (request, len) = read(text).unwrap().unwrap();
        assert_eq!((request.method, request.keep_alive, len), (Method::Get, false, text.len()));
        assert_eq!(request.oid.map(|oid| oid.name), Some(500));
        assert_eq!(request.xact.map(|xact| xact.id.counter), Some(4));
        assert!(request.sample.is_none());
        let (request, _) = read(b"DELETE /x HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert_eq!((request.method, request.keep_alive), (Method::Other, false));
        assert_eq!(request.sample.as_deref(), Some("DELETE /x"));
        assert_eq!(read(b"nonsense\r\n\r\n").err(), Some(Refusal::Malformed));
        assert!(matches!(read(b"GET / HT"), Ok(None)));
        assert_eq!(read(&[b'a'; MAX_HEAD + 1]).err(), Some(Refusal::TooLarge));
    }
}
