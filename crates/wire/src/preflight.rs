//! The preflight request: sent before a test, through the device; our servers answer it at once and never count
//! it.
//!
//! Its path carries a token, and the reply repeats the token in a field and in its body. Even if a device drops
//! unknown fields, one of the two arrives.

use crate::head::parse_reply;

/// The start of the paths of preflight requests; the token follows.
pub const PATH: &str = "/polygraph-preflight/";
/// The field of replies that repeats the token.
pub const FIELD: &str = "X-Polygraph-Preflight";
/// The method of preflight requests.
pub const METHOD: &str = "GET";
/// The largest length of a token in bytes.
pub const MAX_TOKEN: usize = 32;

/// The target of a preflight request. With `absolute` it is an absolute URL, as proxies need.
pub fn target(authority: &str, token: &str, absolute: bool) -> String {
    let before = if absolute { format!("http://{authority}") } else { String::new() };
    format!("{before}{PATH}{token}")
}

/// A preflight request for a [`target`]. `proof` is empty, or a field line that proves who asks.
pub fn request(authority: &str, target: &str, proof: &str) -> Vec<u8> {
    format!(
        "{METHOD} {target} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: polygraph-preflight\r\nAccept: */*\r\n\
         Cache-Control: no-cache\r\n{proof}Connection: close\r\n\r\n"
    )
    .into_bytes()
}

/// The token, if `data` starts with the request line of a preflight request.
pub fn token(data: &[u8]) -> Option<&str> {
    // Every request to a server is looked at, so most are ruled out by their first bytes.
    let target = data.strip_prefix(b"GET ")?;
    let (host, path) = match target.strip_prefix(b"http://") {
        Some(rest) => rest.split_at(memchr::memchr(b'/', rest)?),
        None => target.split_at(0),
    };
    // Only this path itself counts, not one that quotes it.
    let rest = path.strip_prefix(PATH.as_bytes())?;
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\r')).unwrap_or(rest.len());
    let token = std::str::from_utf8(&rest[..end]).ok()?;
    let good = (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    (good && host.iter().all(u8::is_ascii_graphic)).then_some(token)
}

/// The reply to a preflight request. Caches must not store it.
pub fn reply(token: &str) -> Vec<u8> {
    let body = format!("{token}\n");
    format!(
        "HTTP/1.1 200 OK\r\n{FIELD}: {token}\r\nCache-Control: no-store\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The reply to a preflight request, as far as it has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightReply {
    /// Status code of the reply.
    pub status: u16,
    /// The token is there: one of our servers sent the reply.
    pub ours: bool,
    /// The target of a redirection.
    pub location: Option<String>,
    /// The value of `Server`.
    pub server: Option<String>,
    /// The fields with challenges, if the status is 401 or 407.
    pub challenges: Vec<String>,
}

impl PreflightReply {
    /// Whether a device says that it reaches no server (RFC 9110, sections 15.6.3 to 15.6.5).
    pub fn misses_server(&self) -> bool {
        !self.ours && matches!(self.status, 502..=504)
    }
}

/// Reads the start of a reply; `Ok(None)` if the head is not complete.
///
/// # Errors
/// If the bytes are not a reply of HTTP/1.
pub fn read(data: &[u8], token: &str) -> Result<Option<PreflightReply>, crate::HeadError> {
    let text =
        |value: &[u8]| String::from_utf8_lossy(value).chars().filter(|c| !c.is_control()).take(100).collect();
    let has = |part: &[u8]| part.windows(token.len()).any(|window| window == token.as_bytes());
    parse_reply(data, |head| {
        let value = |name: &str| {
            head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
        };
        // An error page of a device may quote the URL, and the token with it, so only the body of a successful
        // reply counts.
        let in_body = head.status == 200
            && data.get(head.len..).is_some_and(|body| body.trim_ascii() == token.as_bytes());
        let asks = match head.status {
            401 => "WWW-Authenticate",
            407 => "Proxy-Authenticate",
            _ => "",
        };
        let challenges = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(asks));
        PreflightReply {
            challenges: challenges.map(|field| String::from_utf8_lossy(field.value).into_owned()).collect(),
            status: head.status,
            ours: value(FIELD).is_some_and(has) || in_body,
            location: value("Location").map(text),
            server: value("Server").map(text),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for absolute in [true, false] {
            let request = request("10.0.0.1:80", &target("10.0.0.1:80", "12ab", absolute), "");
            assert_eq!(token(&request), Some("12ab"));
        }
        let seen = read(&reply("12ab"), "12ab").unwrap().unwrap();
        assert_eq!((seen.status, seen.ours), (200, true));
        assert!(!read(&reply("12ab"), "12ac").unwrap().unwrap().ours);
        let stripped = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n12ab\n";
        assert!(read(stripped, "12ab").unwrap().unwrap().ours);
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nServer:", "12ab").unwrap(), None);
        assert!(read(b"SSH-2.0-OpenSSH\r\n", "12ab").is_err());
    }

    #[test]
    fn others_are_not_taken_for_it() {
        for line in [
            "GET /polygraph-preflight/ HTTP/1.1\r\n",
            "GET /polygraph-preflight/xyz HTTP/1.1\r\n",
            "POST /polygraph-preflight/12 HTTP/1.1\r\n",
            "GET /a/polygraph-preflight/12 HTTP/1.1\r\n",
            "GET http://h/a/polygraph-preflight/12 HTTP/1.1\r\n",
            "GET /polygraph-preflight/0123456789abcdef0123456789abcdef0 HTTP/1.1\r\n",
            "GET http://h/polygraph-preflight/12/3 HTTP/1.1\r\n",
            "GET http://h \r\n/polygraph-preflight/12 HTTP/1.1\r\n",
            "GET http://h",
            "",
        ] {
            assert_eq!(token(line.as_bytes()), None, "{line}");
        }
        let asking = b"HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nproxy-authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: Basic\r\n\r\n";
        assert_eq!(read(asking, "12ab").unwrap().unwrap().challenges, ["NTLM", "Basic realm=\"x\""]);
        let page = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\n\r\n12ab\n";
        assert!(!read(page, "12ab").unwrap().unwrap().ours);
        let redirect = b"HTTP/1.1 302 Found\r\nLocation: https://login/\r\nServer: portal\r\n\r\n";
        let seen = read(redirect, "12ab").unwrap().unwrap();
        assert_eq!(
            (seen.location.as_deref(), seen.server.as_deref()),
            (Some("https://login/"), Some("portal"))
        );
    }
}
