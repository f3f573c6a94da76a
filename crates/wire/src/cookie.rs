//! Cookies (RFC 6265): what replies set, and what requests return.

use crate::date;

/// The largest total length of name and value in bytes; larger cookies are ignored and not written (RFC 6265,
/// section 6.1).
pub const MAX_COOKIE: usize = 4096;
/// The largest length of attribute values in bytes; attributes with larger ones are ignored.
const MAX_ATTRIBUTE: usize = 1024;

/// How long a cookie lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until the end of the user's session.
    Session,
    /// Until this moment, in seconds since 1970. A moment in the past removes the cookie.
    Until(u64),
}

/// What a `Set-Cookie` field sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetCookie<'a> {
    /// The name, not empty.
    pub name: &'a [u8],
    /// The value as sent, with its quotes if it has any, because requests return it unchanged.
    pub value: &'a [u8],
    /// From `Max-Age`, else from `Expires`, else the session; `Discard` (RFC 2965) means the session, too.
    pub lifetime: Lifetime,
}

impl<'a> SetCookie<'a> {
    /// Reads the value of a `Set-Cookie` field (RFC 6265, section 5.2) that arrived at `now`, in seconds since
    /// 1970. `None` if it sets no cookie: no name, control characters, or too long.
    ///
    /// A quoted value extends to its closing quote, as in RFC 2965; without a closing quote it ends at the next
    /// semicolon.
    pub fn parse(field: &'a [u8], now: u64) -> Option<SetCookie<'a>> {
        if field.iter().any(|&b| b != b'\t' && b.is_ascii_control()) {
            return None;
        }
        let equals = memchr::memchr2(b'=', b';', field).filter(|&at| field[at] == b'=')?;
        let name = field[..equals].trim_ascii();
        let (value, attributes) = split_value(&field[equals + 1..]);
        if name.is_empty() || name.len() + value.len() > MAX_COOKIE {
            return None;
        }
        Some(SetCookie { name, value, lifetime: lifetime(attributes, now) })
    }

    /// Appends `name=value`, and `; Max-Age=` unless the cookie lives for the session. Returns false without
    /// appending for cookies that [`SetCookie::parse`] would not read back unchanged.
    pub fn write(&self, now: u64, out: &mut Vec<u8>) -> bool {
        if !is_name(self.name) || !is_value(self.value) || self.name.len() + self.value.len() > MAX_COOKIE {
            return false;
        }
        write_pair(self.name, self.value, out);
        if let Lifetime::Until(moment) = self.lifetime {
            out.extend_from_slice(b"; Max-Age=");
            crate::decimal::write(out, moment.saturating_sub(now));
        }
        true
    }
}

/// `name=value` at the start of a field, up to the end of the value, and the attributes after it.
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let quoted = text.strip_prefix(b"\"").and_then(|inner| memchr::memchr(b'"', inner)).map(|at| at + 2);
    let from = quoted.unwrap_or(0);
    let end = memchr::memchr(b';', &text[from..]).map_or(text.len(), |at| from + at);
    (text[..end].trim_ascii(), text.get(end + 1..).unwrap_or_default())
}

fn lifetime(attributes: &[u8], now: u64) -> Lifetime {
    let (mut max_age, mut expires, mut discard) = (None, None, false);
    for attribute in attributes.split(|&b| b == b';') {
        let equals = memchr::memchr(b'=', attribute).unwrap_or(attribute.len());
        let name = attribute[..equals].trim_ascii();
        let value = attribute.get(equals + 1..).unwrap_or_default().trim_ascii();
        if value.len() > MAX_ATTRIBUTE {
            continue;
        }
        // If an attribute occurs twice, the last one counts.
        if name.eq_ignore_ascii_case(b"max-age") {
            max_age = end_of_age(value, now).or(max_age);
        } else if name.eq_ignore_ascii_case(b"expires") {
            expires = date::parse_cookie(value).or(expires);
        } else if name.eq_ignore_ascii_case(b"discard") {
            discard = true;
        }
    }
    match max_age.or(expires) {
        Some(moment) if !discard => Lifetime::Until(moment),
        _ => Lifetime::Session,
    }
}

/// When a `Max-Age` expires: 0 and less expire at once.
fn end_of_age(value: &[u8], now: u64) -> Option<u64> {
    let value = match value {
        [b'"', inner @ .., b'"'] => inner,
        plain => plain,
    };
    match value.strip_prefix(b"-") {
        Some(digits) => crate::decimal::parse_saturating(digits).map(|_| 0),
        None => crate::decimal::parse_saturating(value)
            .map(|age| if age == 0 { 0 } else { now.saturating_add(age) }),
    }
}

/// Appends `name=value` of a `Cookie` field.
pub fn write_pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(b'=');
    out.extend_from_slice(value);
}

/// Appends a `Cookie` line with its end, `Cookie: a=b; c=d`; nothing if there are no cookies.
pub fn write_line<'a>(cookies: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    let mut cookies = cookies.into_iter();
    let Some((name, value)) = cookies.next() else { return };
    out.extend_from_slice(b"Cookie: ");
    write_pair(name, value, out);
    for (name, value) in cookies {
        out.extend_from_slice(b"; ");
        write_pair(name, value, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Names and values of a `Cookie` field; values keep their quotes. Pairs without a name are ignored.
pub fn pairs(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = field;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let Some(at) = memchr::memchr2(b'=', b';', rest) else {
                rest = b"";
                break;
            };
            let name = rest[..at].trim_ascii();
            let is_pair = rest[at] == b'=';
            rest = &rest[at + 1..];
            if is_pair {
                let (value, after) = split_value(rest);
                rest = after;
                if !name.is_empty() {
                    return Some((name, value));
                }
            }
        }
        None
    })
}

/// A token (RFC 9110, section 5.6.2).
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

/// True for a value that can be read back: blanks and semicolons only inside quotes.
fn is_value(value: &[u8]) -> bool {
    match value {
        [b'"', inner @ .., b'"'] => inner.iter().all(|&b| b != b'"' && matches!(b, b' '..=b'~')),
        plain => plain.iter().all(|&b| b != b'"' && b != b';' && b.is_ascii_graphic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Lifetime::{Session, Until};
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn fields_by_example() {
        #[track_caller]
        fn check(field: &str, expected: Option<(&str, &str, Lifetime)>) {
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            let got =
                SetCookie::parse(field.as_bytes(), NOW).map(|c| (text(c.name), text(c.value), c.lifetime));
            assert_eq!(got, expected, "{field}");
        }
        check("a=b", Some(("a", "b", Session)));
        check(" a = b ; Path=/; HttpOnly", Some(("a", "b", Session)));
        check("a=", Some(("a", "", Session)));
        check("a=b=c", Some(("a", "b=c", Session)));
        check("sess0=\"x; y=z\"; Max-Age=5", Some(("sess0", "\"x; y=z\"", Until(NOW + 5))));
        check("a=\"open; max-age=\"7\"", Some(("a", "\"open; max-age=\"7\"", Session)));
        check("a=\"open; max-age=7", Some(("a", "\"open", Until(NOW + 7))));
        check("a=b; Max-Age=0", Some(("a", "b", Until(0))));
        check("a=b; max-age=-99999999999999999999", Some(("a", "b", Until(0))));
        check("a=b; max-age=99999999999999999999", Some(("a", "b", Until(u64::MAX))));
        check("a=b; max-age=5; max-age=6", Some(("a", "b", Until(NOW + 6))));
        check("a=b; max-age=5; max-age=x", Some(("a", "b", Until(NOW + 5))));
        check("a=b; expires=Sun, 06-Nov-1994 08:49:37 GMT", Some(("a", "b", Until(784_111_777))));
        check(
            "a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=9; secure",
            Some(("a", "b", Until(NOW + 9))),
        );
        check("a=b; Expires=soon", Some(("a", "b", Session)));
        check("a=b; Max-Age=9; Discard", Some(("a", "b", Session)));
        check(&format!("a=b; Max-Age={}9", "0".repeat(MAX_ATTRIBUTE)), Some(("a", "b", Session)));
        for bad in ["", "a", "=b", ";a=b", "a;x=b", "a=\u{1}"] {
            check(bad, None);
        }
        let longest = "x".repeat(MAX_COOKIE - 1);
        check(&format!("a={longest}"), Some(("a", &longest, Session)));
        check(&format!("a={longest}x"), None);
    }

    #[test]
    fn requests_by_example() {
        let mut line = Vec::new();
        write_line([], &mut line);
        assert!(line.is_empty());
        let cookies: [(&[u8], &[u8]); 3] = [(b"a", b"b"), (b"c", b"\"d; e\""), (b"f", b"")];
        write_line(cookies, &mut line);
        assert_eq!(line, b"Cookie: a=b; c=\"d; e\"; f=\r\n");
        assert!(pairs(&line[8..line.len() - 2]).eq(cookies));
        assert!(pairs(b"; x ;=y; a = b;").eq([(&b"a"[..], &b"b"[..])]));
    }

    #[test]
    fn what_cannot_be_read_back_is_not_written() {
        let mut out = Vec::new();
        for (name, value) in
            [("", "x"), ("a b", "x"), ("a", "x;y"), ("a", "\"x"), ("a", "\"x\"y\""), ("a", "\r")]
        {
            let cookie = SetCookie { name: name.as_bytes(), value: value.as_bytes(), lifetime: Session };
            assert!(!cookie.write(NOW, &mut out) && out.is_empty(), "{name}={value}");
        }
    }

    proptest! {
        #[test]
        fn round_trips(name in "[a-zA-Z0-9_]{1,20}", value in "[!#-:<-~]{0,40}|\"[ !#-~]{0,40}\"", age in prop::option::of(1u64..1 << 40)) {
            let lifetime = age.map_or(Session, |age| Until(NOW + age));
            let cookie = SetCookie { name: name.as_bytes(), value: value.as_bytes(), lifetime };
            let mut field = Vec::new();
            prop_assert!(cookie.write(NOW, &mut field));
            prop_assert_eq!(SetCookie::parse(&field, NOW), Some(cookie));
            let mut line = Vec::new();
            write_line([(cookie.name, cookie.value); 2], &mut line);
            let read: Vec<_> = pairs(&line[8..line.len() - 2]).collect();
            prop_assert_eq!(read, vec![(cookie.name, cookie.value); 2]);
        }

        #[test]
        fn random_text_never_panics(field in prop::collection::vec(any::<u8>(), 0..60), text in "[a=;\" ]{0,20}(max-age|expires)?[=\"; 0-9-]{0,20}") {
            let _ = SetCookie::parse(&field, NOW);
            let _ = SetCookie::parse(text.as_bytes(), NOW);
            prop_assert!(pairs(&field).chain(pairs(text.as_bytes())).count() < 100);
        }
    }
}
