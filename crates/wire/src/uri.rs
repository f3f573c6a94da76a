//! Splits absolute URLs, and resolves references in replies (RFC 3986).
//!
//! Fragments are dropped everywhere, because they are never sent.

/// The parts of an absolute URL with an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlParts<'a> {
    /// Scheme as written, for example `http`.
    pub scheme: &'a [u8],
    /// The text between `//` and the path: host, possibly port and user information. May be empty.
    pub authority: &'a [u8],
    /// Path and query: starts with `/` or `?`, or is empty.
    pub path: &'a [u8],
}

/// Splits an absolute URL; `None` if it is not `scheme://authority...`.
pub fn split(url: &[u8]) -> Option<UrlParts<'_>> {
    if url.starts_with(b"/") {
        // Links in pages are seldom absolute.
        return None;
    }
    let uri = Reference::new(url);
    let (scheme, authority) = (uri.scheme?, uri.authority?);
    let at = scheme.len() + 3 + authority.len();
    let end = memchr::memchr(b'#', url).unwrap_or(url.len());
    Some(UrlParts { scheme, authority, path: &url[at..end] })
}

/// Host (without the brackets of an IPv6 address) and port of an authority; user information is skipped. `None`
/// if there is no host, or a port that is not 0 to 65535; an empty port counts as none.
pub fn host_port(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let at = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let text = &authority[at..];
    let (host, port) = if let Some(inner) = text.strip_prefix(b"[") {
        let end = memchr::memchr(b']', inner)?;
        let rest = &inner[end + 1..];
        (&inner[..end], if rest.is_empty() { rest } else { rest.strip_prefix(b":")? })
    } else {
        let colon = memchr::memchr(b':', text).unwrap_or(text.len());
        (&text[..colon], text.get(colon + 1..).unwrap_or_default())
    };
    if host.is_empty() {
        return None;
    }
    let port = match port {
        [] => None,
        digits => Some(u16::try_from(crate::body::parse_decimal(digits)?).ok()?),
    };
    Some((host, port))
}

/// The default port of a scheme: 80, 443, 21; `None` for other schemes.
pub fn default_port(scheme: &[u8]) -> Option<u16> {
    [("http", 80), ("https", 443), ("ftp", 21)]
        .into_iter()
        .find_map(|(name, port)| scheme.eq_ignore_ascii_case(name.as_bytes()).then_some(port))
}

/// Appends the URL of `reference` in a document at `base`. Returns false without appending if `base` is not an
/// absolute URL, or the reference is empty or contains blanks or control characters (those around it are
/// ignored).
///
/// The algorithm is that of RFC 3986, section 5.2 (strict). Bytes that are not ASCII are percent-encoded.
pub fn resolve(base: &[u8], reference: &[u8], out: &mut Vec<u8>) -> bool {
    let reference = reference.trim_ascii();
    let from = Reference::new(base);
    let Some(base_scheme) = from.scheme else { return false };
    if reference.is_empty() || [base, reference].iter().any(|url| url.iter().any(is_blank_or_control)) {
        return false;
    }
    let to = Reference::new(reference);
    let (scheme, authority, query);
    let mut path = Vec::new();
    if to.scheme.is_some() || to.authority.is_some() {
        (scheme, authority, query) = (to.scheme.unwrap_or(base_scheme), to.authority, to.query);
        remove_dots(to.path, &mut path);
    } else {
        (scheme, authority) = (base_scheme, from.authority);
        if to.path.is_empty() {
            path.extend_from_slice(from.path);
            query = to.query.or(from.query);
        } else {
            query = to.query;
            remove_dots(&merge(&from, to.path), &mut path);
        }
    }
    append(out, scheme);
    out.push(b':');
    if let Some(authority) = authority {
        out.extend_from_slice(b"//");
        append(out, authority);
    } else if path.starts_with(b"//") {
        // Without this dot the path would be parsed as an authority.
        out.extend_from_slice(b"/.");
    }
    append(out, &path);
    if let Some(query) = query {
        out.push(b'?');
        append(out, query);
    }
    true
}

fn is_blank_or_control(byte: &u8) -> bool {
    *byte <= b' ' || *byte == 0x7f
}

fn append(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            out.push(b'%');
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789ABCDEF"[usize::from(digit)]));
        }
    }
}

/// The parts of a reference (RFC 3986, appendix B), without the fragment.
#[derive(Clone, Copy, Debug)]
struct Reference<'a> {
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: &'a [u8],
    query: Option<&'a [u8]>,
}

impl<'a> Reference<'a> {
    fn new(text: &'a [u8]) -> Reference<'a> {
        let (scheme, rest) = match scheme_len(text) {
            Some(colon) => (Some(&text[..colon]), &text[colon + 1..]),
            None => (None, text),
        };
        let (authority, rest) = match rest.strip_prefix(b"//") {
            Some(rest) => {
                let end = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        let end = memchr::memchr2(b'?', b'#', rest).unwrap_or(rest.len());
        let (path, rest) = rest.split_at(end);
        let query =
            rest.strip_prefix(b"?").map(|rest| &rest[..memchr::memchr(b'#', rest).unwrap_or(rest.len())]);
        Reference { scheme, authority, path, query }
    }
}

/// Length of the scheme that `text` begins with, if a colon follows it.
fn scheme_len(text: &[u8]) -> Option<usize> {
    let len = text.iter().position(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b))?;
    (text[0].is_ascii_alphabetic() && text[len] == b':').then_some(len)
}

/// The path of a relative reference, resolved against the base (RFC 3986, section 5.2.3).
fn merge(base: &Reference<'_>, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    if base.authority.is_some() && base.path.is_empty() {
        return [b"/", path].concat();
    }
    let directory = memchr::memrchr(b'/', base.path).map_or(0, |at| at + 1);
    [&base.path[..directory], path].concat()
}

/// Appends `path` without its segments `.` and `..` (RFC 3986, section 5.2.4).
fn remove_dots(path: &[u8], out: &mut Vec<u8>) {
    let rooted = path.starts_with(b"/");
    let mut segments = path.split(|&b| b == b'/');
    if rooted {
        segments.next();
    }
    let mut segments = segments.peekable();
    // The start of the kept segments; each is written with the slash before it.
    let start = out.len();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let dots = matches!(segment, b"." | b"..");
        if segment == b".." {
            out.truncate(memchr::memrchr(b'/', &out[start..]).map_or(start, |at| start + at));
        }
        if !dots || last {
            if rooted || out.len() > start {
                out.push(b'/');
            }
            out.extend_from_slice(if dots { b"" } else { segment });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(base: &str, reference: &str) -> Option<String> {
        let mut out = Vec::new();
        resolve(base.as_bytes(), reference.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    /// The examples of RFC 3986, sections 5.4.1 and 5.4.2, without their fragments.
    #[test]
    fn references_of_the_standard() {
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http:g", "http:g"),
        ] {
            assert_eq!(resolved("http://a/b/c/d;p?q", reference).as_deref(), Some(expected), "{reference}");
        }
    }

    #[test]
    fn references_of_the_wild() {
        #[track_caller]
        fn check(base: &str, reference: &str, expected: Option<&str>) {
            assert_eq!(resolved(base, reference).as_deref(), expected, "{base} {reference}");
        }
        check("http://a:8080", "x", Some("http://a:8080/x"));
        check("http://a:8080", "?x", Some("http://a:8080?x"));
        check("http://a", "\n /x\t", Some("http://a/x"));
        check("http://a/b//c", "../x", Some("http://a/b/x"));
        check("http://a/", "HTTPS://B:1/..//x", Some("HTTPS://B:1//x"));
        check("http://a/", "1x:y", Some("http://a/1x:y"));
        check("http://a/", "caf\u{e9}", Some("http://a/caf%C3%A9"));
        check("data:x", "/..//y", Some("data:/.//y"));
        check("http://a/", "", None);
        check("http://a/", "a b", None);
        check("http://a/", "a\0b", None);
        check("/a/", "b", None);
    }

    #[test]
    fn parts_by_example() {
        #[track_caller]
        fn check(url: &str, expected: Option<(&str, &str, &str)>) {
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            let parts = split(url.as_bytes()).map(|p| (text(p.scheme), text(p.authority), text(p.path)));
            assert_eq!(parts, expected, "{url}");
        }
        check("http://a/b?c#d", Some(("http", "a", "/b?c")));
        check("HTTPS://u:p@a:8?c", Some(("HTTPS", "u:p@a:8", "?c")));
        check("ftp://a", Some(("ftp", "a", "")));
        check("http:///b", Some(("http", "", "/b")));
        check("http://[::1]:80/b://c", Some(("http", "[::1]:80", "/b://c")));
        for bad in ["", "/a", "a:80", "http:/a", "//a/b", "1http://a/", "://a"] {
            check(bad, None);
        }
        assert_eq!(
            (default_port(b"HTTP"), default_port(b"ftp"), default_port(b"x")),
            (Some(80), Some(21), None)
        );
    }

    #[test]
    fn authorities_by_example() {
        #[track_caller]
        fn check(authority: &str, expected: Option<(&str, Option<u16>)>) {
            let got = host_port(authority.as_bytes());
            assert_eq!(got, expected.map(|(host, port)| (host.as_bytes(), port)), "{authority}");
        }
        check("a", Some(("a", None)));
        check("a:", Some(("a", None)));
        check("a:80", Some(("a", Some(80))));
        check("u:p@a:80", Some(("a", Some(80))));
        check("[::1]", Some(("::1", None)));
        check("[::1]:443", Some(("::1", Some(443))));
        for bad in ["", ":80", "a:x", "a:65536", "a:1:2", "[::1", "[::1]80", "[]"] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn what_is_resolved_stays_so(base in "http://[a-z]{1,5}(/[a-z]{0,3}){0,4}", reference in "[a-z./?:#]{1,20}") {
            let once = resolved(&base, &reference).unwrap();
            prop_assert_eq!(resolved("http://other/", &once), Some(once.clone()));
            if let Some(parts) = split(once.as_bytes()) {
                let path = parts.path.split(|&b| b == b'?').next().unwrap();
                prop_assert!(!path.split(|&b| b == b'/').any(|s| s == b"." || s == b".."), "{}", once);
            }
        }

        #[test]
        fn paths_go_together_again(host in "[a-z]{1,9}(:[1-9][0-9]{0,3})?", path in "(/[a-z0-9.?]{0,9}){0,4}") {
            let url = format!("http://{host}{path}");
            let parts = split(url.as_bytes()).unwrap();
            prop_assert_eq!((parts.authority, parts.path), (host.as_bytes(), path.as_bytes()));
            prop_assert!(host_port(parts.authority).is_some());
        }

        #[test]
        fn random_bytes_never_panic(
            base in prop::collection::vec(any::<u8>(), 0..40),
            reference in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = split(&base).map(|parts| host_port(parts.authority));
            let _ = resolve(&base, &reference, &mut Vec::new());
            let _ = resolve(b"http://a/b/c", &reference, &mut Vec::new());
        }
    }
}
