//! The target of a proxied request, its origin and its canonical form.

use polygraph_wire::RequestHead;

/// The parts of an absolute URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Host and port as sent, for the `Host` field.
    pub authority: &'a str,
    /// Name or address, without the brackets of an IPv6 address.
    pub host: &'a str,
    /// Port, 80 if the URL names none.
    pub port: u16,
    /// The part after the authority, without a fragment; may lack the leading slash.
    rest: &'a str,
}

/// What a proxy is for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A forward proxy: targets are absolute URLs (RFC 9112, section 3.2.2).
    Forward,
    /// It acts for the origins: targets are in origin form, and `Host` names the origin. TLS ends here, so the URL may be `https`.
    Surrogate,
}

/// Why this proxy does not accept a request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// The target is not an absolute URL, as in a request to an origin.
    NotAbsolute,
    /// A request to a surrogate without `Host`.
    NoHost,
    /// The scheme is not `http`.
    Scheme,
    /// The authority is empty, has user information (RFC 9110, section 4.2.4) or a bad port.
    Authority,
}

impl<'a> Target<'a> {
    /// The target of a request to a proxy with this role.
    ///
    /// # Errors
    /// If the request has no such target.
    pub fn of(head: &RequestHead<'_, 'a>, role: Role) -> Result<Target<'a>, TargetError> {
        if role == Role::Forward {
            return Target::parse(head.target, "http");
        }
        if !head.target.starts_with('/') {
            let secure = head.target.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("https"));
            return Target::parse(head.target, if secure { "https" } else { "http" });
        }
        let host = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
        let authority =
            host.and_then(|host| std::str::from_utf8(host.value).ok()).ok_or(TargetError::NoHost)?;
        Target::at(authority, head.target)
    }
    /// Parses a request target.
    ///
    /// # Errors
    /// If it is not an absolute URL with the scheme `known`.
    fn parse(target: &'a str, known: &str) -> Result<Target<'a>, TargetError> {
        let (scheme, rest) = target.split_at(end_at(target, |b| b == b':'));
        let rest = rest.strip_prefix("://").ok_or(TargetError::NotAbsolute)?;
        if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Err(TargetError::NotAbsolute);
        }
        if !scheme.eq_ignore_ascii_case(known) {
            return Err(TargetError::Scheme);
        }
        let (authority, rest) = rest.split_at(end_at(rest, |b| matches!(b, b'/' | b'?' | b'#')));
        Target::at(authority, rest)
    }

    /// What follows the authority is `rest`.
    fn at(authority: &'a str, rest: &'a str) -> Result<Target<'a>, TargetError> {
        let (host, port) = split_port(authority).ok_or(TargetError::Authority)?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        Ok(Target { authority, host, port, rest })
    }

    /// Appends the target in origin form, for the request line to the origin.
    pub fn write_path(&self, out: &mut Vec<u8>) {
        if !self.rest.starts_with('/') {
            out.push(b'/');
        }
        out.extend_from_slice(self.rest.as_bytes());
    }

    /// Appends the canonical URL, which is equal for equivalent targets (RFC 9110, section 4.2.3): lower-case host
    /// and explicit port. Paths are not changed.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        out.extend(self.host.bytes().map(|b| b.to_ascii_lowercase()));
        let mut digits = [b'0'; 6];
        digits[0] = b':';
        let mut port = self.port;
        for digit in digits[1..].iter_mut().rev() {
            *digit += (port % 10) as u8;
            port /= 10;
        }
        out.extend_from_slice(&digits);
        self.write_path(out);
    }
}

/// The path of the URL with this key, see [`Target::write_key`].
pub fn path_of_key(key: &[u8]) -> &[u8] {
    &key[key.iter().position(|&b| b == b'/').unwrap_or(key.len())..]
}

/// The position of the first ASCII character that `ends` a part at the start of `text`; the length of the text if there is none.
fn end_at(text: &str, ends: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|b| b.is_ascii() && ends(b)).unwrap_or(text.len())
}

/// Host and port of an authority; port 80 if it names none.
pub fn split_port(authority: &str) -> Option<(&str, u16)> {
    if authority.contains('@') {
        return None;
    }
    let (host, rest) = if let Some(bracketed) = authority.strip_prefix('[') {
        bracketed.split_once(']')?
    } else {
        authority.split_at(end_at(authority, |b| b == b':'))
    };
    let port = match rest {
        "" | ":" => 80,
        _ => {
            let digits = rest.strip_prefix(':')?.as_bytes();
            u16::try_from(polygraph_wire::body::parse_decimal(digits)?).ok().filter(|&port| port > 0)?
        }
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets_by_example() {
        #[track_caller]
        fn check(target: &str, expected: Result<(&str, u16, &str, &str), TargetError>) {
            let (mut path, mut key) = (Vec::new(), Vec::new());
            let got = Target::parse(target, "http").map(|target| {
                target.write_path(&mut path);
                target.write_key(&mut key);
                (target.host, target.port)
            });
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
            let (path, key) = (text(path), text(key));
            assert_eq!(got.map(|(host, port)| (host, port, &path[..], &key[..])), expected, "{target}");
        }
        check("http://a.b/c?d", Ok(("a.b", 80, "/c?d", "a.b:00080/c?d")));
        check("HTTP://A.b:8080/C#d", Ok(("A.b", 8080, "/C", "a.b:08080/C")));
        check("http://a", Ok(("a", 80, "/", "a:00080/")));
        check("http://a:?x", Ok(("a", 80, "/?x", "a:00080/?x")));
        check("http://[::1]:81/", Ok(("::1", 81, "/", "::1:00081/")));
        check("/path", Err(TargetError::NotAbsolute));
        check("*", Err(TargetError::NotAbsolute));
        check("/x?u=http://a/", Err(TargetError::NotAbsolute));
        check("ftp://a/", Err(TargetError::Scheme));
        for bad in ["http://", "http:///x", "http://u@a/", "http://a:0/", "http://a:65536/", "http://[::1/"] {
            check(bad, Err(TargetError::Authority));
        }
    }

    proptest! {
        #[test]
        fn random_text_never_panics(target in "(http://)?[ -~é]{0,30}") {
            if let Ok(target) = Target::parse(&target, "http") {
                target.write_key(&mut Vec::new());
            }
        }
    }
}
