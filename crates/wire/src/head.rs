//! Views of request and reply heads. Fields are read in place, without copies and without checks of their
//! values.

pub(crate) mod block;
mod index;
mod plain;

use std::mem::MaybeUninit;

pub use block::{is_lower_case_name, is_target, is_value};
pub use httparse::Header;
pub use index::HeadIndex;

/// The largest number of header fields in a head.
pub const MAX_HEADERS: usize = 100;

/// Memory for the header fields of a head.
type Headers<'b> = [MaybeUninit<Header<'b>>; MAX_HEADERS];

const NO_HEADERS: Headers<'static> = [const { MaybeUninit::uninit() }; MAX_HEADERS];

/// The start of a field line with this name, which must be constant: the name, a colon and a space.
#[macro_export]
macro_rules! field_start {
    ($name:expr) => {{
        const NAME: &str = $name;
        const START: &[u8; NAME.len() + 2] = &$crate::head::start_of_line(NAME);
        START
    }};
}

/// See [`field_start!`](crate::field_start).
#[doc(hidden)]
pub const fn start_of_line<const LEN: usize>(name: &str) -> [u8; LEN] {
    let mut start = [b' '; LEN];
    let (text, end) = start.split_at_mut(name.len());
    text.copy_from_slice(name.as_bytes());
    end[0] = b':';
    start
}

/// True if the name of a field is `wanted`, ignoring case. If `wanted` is a constant, only a few instructions are left: multiplexed protocols
/// have names in lower case, so a comparison without regard to case must be as fast as one with it.
#[inline(always)]
pub fn is_named(name: &str, wanted: &str) -> bool {
    is_same_name(name.as_bytes(), wanted.as_bytes())
}

/// True if two names are the same, ignoring the case of ASCII letters: `eq_ignore_ascii_case` for eight bytes at a time. The second one
/// decides where letters may be, so it should be the constant one.
#[inline(always)]
pub fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (Some(last_of_one), Some(last_of_other)) = (one.last_chunk(), other.last_chunk()) else {
        return match (both_ends(one), both_ends(other)) {
            (Some(one), Some(other)) => is_same_word(one, other),
            _ => one.eq_ignore_ascii_case(other),
        };
    };
    let (words, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    // The last eight bytes may overlap those before.
    is_same_word(*last_of_one, *last_of_other)
        && words.iter().zip(others).all(|(one, other)| is_same_word(*one, *other))
}

/// The first four bytes and the last four, which together are all of at most eight.
#[inline(always)]
fn both_ends(bytes: &[u8]) -> Option<[u8; 8]> {
    let ([a, b, c, d], [e, f, g, h]) = (*bytes.first_chunk()?, *bytes.last_chunk()?);
    Some([a, b, c, d, e, f, g, h])
}

/// Whether eight bytes are the same, ignoring the case of ASCII letters.
#[inline(always)]
fn is_same_word(one: [u8; 8], other: [u8; 8]) -> bool {
    let (one, other) = (u64::from_le_bytes(one), u64::from_le_bytes(other));
    let cases = cases(other);
    one | cases == other | cases
}

/// The bits of eight bytes that are the case of an ASCII letter.
#[inline(always)]
const fn cases(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    // In lower case, letters are `a` to `z`. Sums in the low seven bits of each byte do not carry into the next: their highest bits tell
    // which bytes are not below `a`, and which are above `z`.
    let low = (word | (0x20 * EACH)) & (0x7f * EACH);
    let from_a = low + (0x80 - b'a' as u64) * EACH;
    let above_z = low + (0x7f - b'z' as u64) * EACH;
    (!word & from_a & !above_z & (0x80 * EACH)) >> 2
}

/// Bytes as text, if they are UTF-8.
#[inline]
pub fn text(bytes: &[u8]) -> Option<&str> {
    match is_target(bytes) {
        // SAFETY: ASCII is UTF-8.
        true => Some(unsafe { std::str::from_utf8_unchecked(bytes) }),
        false => std::str::from_utf8(bytes).ok(),
    }
}

/// Appends the line of a field. Both must be what a field can have.
#[inline]
pub fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let parts = [name, b": ", value, b"\r\n"];
    let len = parts.iter().map(|part| part.len()).sum();
    // One look at the room for all parts, and no zeros where they will be.
    out.reserve(len);
    let mut room = &mut out.spare_capacity_mut()[..len];
    for part in parts {
        let (now, later) = room.split_at_mut(part.len());
        now.write_copy_of_slice(part);
        room = later;
    }
    // SAFETY: the parts have this length together, and were written.
    unsafe { out.set_len(out.len() + len) };
}

/// Why bytes cannot be the head of an HTTP/1 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The first line or a field line breaks the grammar.
    #[error("not an HTTP/1 head")]
    Malformed,
    /// More than [`MAX_HEADERS`] fields.
    #[error("more than {MAX_HEADERS} header fields")]
    TooManyHeaders,
}

impl From<httparse::Error> for HeadError {
    fn from(error: httparse::Error) -> HeadError {
        match error {
            httparse::Error::TooManyHeaders => HeadError::TooManyHeaders,
            _ => HeadError::Malformed,
        }
    }
}

/// A complete request head.
#[derive(Debug, PartialEq)]
pub struct RequestHead<'h, 'b> {
    /// Method as sent, for example `GET`.
    pub method: &'b str,
    /// Request target as sent: absolute URL, path, or authority.
    pub target: &'b str,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// Header fields in order.
    pub headers: &'h [Header<'b>],
    /// Bytes of the head including the empty line.
    pub len: usize,
}

/// A complete reply head.
#[derive(Debug, PartialEq)]
pub struct ReplyHead<'h, 'b> {
    /// Status code.
    pub status: u16,
    /// Reason phrase as sent.
    pub reason: &'b str,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// Header fields in order.
    pub headers: &'h [Header<'b>],
    /// Bytes of the head including the empty line.
    pub len: usize,
}

/// Reads a request head at the start of `buf` and passes it to `then`; `Ok(None)` if more bytes are needed.
///
/// # Errors
/// If no continuation could make the bytes a head.
pub fn parse_request<R>(
    buf: &[u8],
    then: impl FnOnce(&RequestHead<'_, '_>) -> R,
) -> Result<Option<R>, HeadError> {
    // The memory of both is uninitialized, which costs nothing.
    let (mut plain, mut any) = (NO_HEADERS, NO_HEADERS);
    let head = match plain::request(buf, &mut plain) {
        Some(head) => Some(head),
        None => any_request(buf, &mut any)?,
    };
    Ok(head.as_ref().map(then))
}

#[cold]
fn any_request<'h, 'b>(
    buf: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Result<Option<RequestHead<'h, 'b>>, HeadError> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(buf, headers)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(len) => {
            let (Some(method), Some(target), Some(minor_version)) =
                (request.method, request.path, request.version)
            else {
                return Err(HeadError::Malformed);
            };
            Ok(Some(RequestHead { method, target, minor_version, headers: request.headers, len }))
        }
    }
}

/// Reads a reply head at the start of `buf` and passes it to `then`; `Ok(None)` if more bytes are needed.
///
/// # Errors
/// If no continuation could make the bytes a head.
pub fn parse_reply<R>(
    buf: &[u8],
    then: impl FnOnce(&ReplyHead<'_, '_>) -> R,
) -> Result<Option<R>, HeadError> {
    parse_reply_of(buf, &HeadIndex::NONE, then)
}

/// As [`parse_reply`] for a head with this index, if it is complete.
///
/// # Errors
/// As [`parse_reply`].
#[inline]
pub fn parse_reply_of<R>(
    buf: &[u8],
    index: &HeadIndex,
    then: impl FnOnce(&ReplyHead<'_, '_>) -> R,
) -> Result<Option<R>, HeadError> {
    // The memory of all three is uninitialized, which costs nothing.
    let (mut known, mut plain, mut any) = (NO_HEADERS, NO_HEADERS, NO_HEADERS);
    let head = match plain::reply(buf, index, &mut known, &mut plain) {
        Some(head) => Some(head),
        None => any_reply(buf, &mut any)?,
    };
    Ok(head.as_ref().map(then))
}

#[cold]
fn any_reply<'h, 'b>(
    buf: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Result<Option<ReplyHead<'h, 'b>>, HeadError> {
    let mut reply = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut reply, buf, headers)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(len) => {
            let (Some(status), Some(minor_version)) = (reply.code, reply.version) else {
                return Err(HeadError::Malformed);
            };
            let reason = reply.reason.unwrap_or("");
            Ok(Some(ReplyHead { status, reason, minor_version, headers: reply.headers, len }))
        }
    }
}

/// Reads field lines up to and including the empty line at the start of `buf`, such as those of a trailer, and passes
/// them to `then`; `Ok(None)` if more bytes are needed.
///
/// # Errors
/// If no continuation could make the bytes field lines.
pub fn parse_fields<R>(buf: &[u8], then: impl FnOnce(&[Header<'_>]) -> R) -> Result<Option<R>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    match httparse::parse_headers(buf, &mut headers)? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete((_, fields)) => Ok(Some(then(fields))),
    }
}

/// The items of a comma-separated `list`.
pub fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// True if the comma-separated `list` has the token `wanted` (parameters are not part of a token).
pub fn has_token(list: &[u8], wanted: &str) -> bool {
    // Most values are shorter than the token.
    list.len() >= wanted.len() && items(list).any(|item| item.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Whether the connection stays open after this message: HTTP/1.1 unless `close`, HTTP/1.0 only with
/// `keep-alive` (RFC 9112, section 9.3). A `Proxy-Connection` before any `Connection` counts like one, since
/// some old peers send nothing else.
pub fn keeps_alive(minor_version: u8, headers: &[Header<'_>]) -> bool {
    let mut persistence = Persistence::default();
    for header in headers {
        if is_named(header.name, "Connection") {
            persistence.see(header.value);
        } else if is_named(header.name, "Proxy-Connection") {
            persistence.see_fallback(header.value);
        }
    }
    persistence.keeps_alive(minor_version)
}

/// The header fields that decide [`keeps_alive()`], for callers that see header fields one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Persistence {
    verdict: Option<bool>,
}

impl Persistence {
    /// Takes the value of a `Connection`.
    pub fn see(&mut self, value: &[u8]) {
        // Most senders name one of two options, and nothing else.
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.verdict.get_or_insert(true);
        } else if has_token(value, "close") {
            self.verdict = Some(false);
        } else if self.verdict.is_none() && has_token(value, "keep-alive") {
            self.verdict = Some(true);
        }
    }

    /// Takes the value of a `Proxy-Connection`.
    pub fn see_fallback(&mut self, value: &[u8]) {
        if self.verdict.is_none() {
            self.see(value);
        }
    }

    /// Whether the connection stays open.
    pub fn keeps_alive(&self, minor_version: u8) -> bool {
        self.verdict.unwrap_or(minor_version >= 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bytes that differ in one bit from letters, and bytes at the ends of their ranges, are among them.
        #[test]
        fn names_are_the_same_in_any_case(
            one in prop::collection::vec(prop::sample::select(&b"azAZmM@[`{-_09\r\x00\x7f\xc1\xe1\xff"[..]), 0..40),
            changed in prop::option::of((any::<prop::sample::Index>(), 0u32..8)),
            capitals: bool,
        ) {
            let mut other = if capitals { one.to_ascii_uppercase() } else { one.to_ascii_lowercase() };
            if let Some((at, bit)) = changed.filter(|_| !other.is_empty()) {
                let at = at.index(other.len());
                other[at] ^= 1 << bit;
            }
            prop_assert_eq!(is_same_name(&one, &other), one.eq_ignore_ascii_case(&other));
            prop_assert!(!is_same_name(&one, &[&other[..], b"x"].concat()));
        }
    }

    #[test]
    fn heads_may_arrive_in_pieces() {
        let head = b"GET http://h:1/x HTTP/1.1\r\nHost: h:1\r\n\r\nbody";
        for cut in 0..head.len() - 4 {
            assert_eq!(parse_request(&head[..cut], |_| ()), Ok(None), "cut at {cut}");
        }
        let seen = parse_request(head, |r| (r.method.to_owned(), r.target.to_owned(), r.len));
        assert_eq!(seen, Ok(Some(("GET".into(), "http://h:1/x".into(), head.len() - 4))));
    }

    #[test]
    fn connection_persistence() {
        #[track_caller]
        fn check(head: &str, expected: bool) {
            let alive = parse_reply(head.as_bytes(), |r| keeps_alive(r.minor_version, r.headers));
            assert_eq!(alive, Ok(Some(expected)), "{head}");
        }
        check("HTTP/1.1 200 OK\r\n\r\n", true);
        check("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n", false);
        check("HTTP/1.0 200 OK\r\n\r\n", false);
        check("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n", true);
        check("HTTP/1.0 200 OK\r\nProxy-Connection: Keep-Alive\r\n\r\n", true);
        check("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nProxy-Connection: close\r\n\r\n", true);
        check("HTTP/1.1 200 OK\r\nConnection: te\r\nproxy-connection: close\r\n\r\n", false);
        check("HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", false);
        check("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nCONNECTION: close\r\n\r\n", false);
        check("HTTP/1.1 200\r\n\r\n", true);
    }

    #[test]
    fn garbage_is_an_error_not_a_panic() {
        assert_eq!(parse_reply(b"\x16\x03\x01\x02\x00", |_| ()), Err(HeadError::Malformed));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(parse_request(many.as_bytes(), |_| ()), Err(HeadError::TooManyHeaders));
    }
}
