//! Alternative services in `Alt-Svc` (RFC 7838, section 3).

/// How long an alternative is fresh if the field does not say it, in seconds.
const DEFAULT_MAX_AGE: u64 = 24 * 3600;

/// What a value of `Alt-Svc` says about a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AltSvc {
    /// The value offers this alternative.
    Offered(Alternative),
    /// There is no alternative with the protocol, or no longer one.
    Nothing,
}

/// An alternative service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The host as the field names it, with brackets around an IPv6 address; empty: the host of the origin.
    pub host: String,
    /// The port, at least 1.
    pub port: u16,
    /// For how many seconds the alternative is fresh.
    pub max_age: u64,
}

impl AltSvc {
    /// Reads a value. Of several alternatives with `protocol`, the first one counts: the server prefers it. Alternatives that cannot be
    /// read are left out.
    pub fn parse(value: &[u8], protocol: &str) -> AltSvc {
        let offered = split(value, b',').find_map(|item| alternative(item, protocol));
        offered.map_or(AltSvc::Nothing, AltSvc::Offered)
    }
}

/// The parts of a text between separators outside quoted strings, without the space around them.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(move |&byte| {
        if escaped {
            escaped = false;
        } else if quoted && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            quoted = !quoted;
        }
        byte == separator && !quoted
    });
    parts.map(<[u8]>::trim_ascii)
}

fn alternative(item: &[u8], protocol: &str) -> Option<Alternative> {
    let mut parts = split(item, b';');
    let (name, authority) = pair(parts.next()?)?;
    if name != protocol.as_bytes() {
        return None;
    }
    let authority = std::str::from_utf8(authority.strip_prefix(b"\"")?.strip_suffix(b"\"")?).ok()?;
    let (host, port) = authority.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    if host.contains(['\\', '"', ' ']) {
        return None;
    }
    let mut max_age = DEFAULT_MAX_AGE;
    for (name, value) in parts.filter_map(pair) {
        if name.eq_ignore_ascii_case(b"ma") {
            let digits =
                value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            max_age = std::str::from_utf8(digits).ok()?.parse().ok()?;
        }
    }
    Some(Alternative { host: host.to_owned(), port, max_age })
}

/// A name and its value.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h3(value: &str) -> Option<(String, u16, u64)> {
        match AltSvc::parse(value.as_bytes(), "h3") {
            AltSvc::Offered(Alternative { host, port, max_age }) => Some((host, port, max_age)),
            AltSvc::Nothing => None,
        }
    }

    #[test]
    fn offers_are_read() {
        assert_eq!(h3("h3=\":443\""), Some((String::new(), 443, 86_400)));
        assert_eq!(h3("h3=\":8443\"; ma=60; persist=1"), Some((String::new(), 8443, 60)));
        assert_eq!(
            h3("h2=\"a:1\",h3 = \"alt.example.com:9\";MA=\"5\""),
            Some(("alt.example.com".into(), 9, 5))
        );
        assert_eq!(h3("h3=\"[::1]:7\", h3=\":8\""), Some(("[::1]".into(), 7, 86_400)));
        // The separators of the first one are in a quoted string.
        assert_eq!(h3("w=\"x,h3=:1;\", h3=\":2\""), Some((String::new(), 2, 86_400)));
    }

    #[test]
    fn what_is_no_offer_of_the_protocol_is_nothing() {
        for value in [
            "clear",
            "",
            "h3",
            "h3=",
            "h3=:443",
            "h3=\"443\"",
            "h3=\":0\"",
            "h3=\":65536\"",
            "h3-29=\":443\"",
            "H3=\":443\"",
            "h3=\":443\"; ma=x",
            "h3=\"a\\b:1\"",
            "h3=\":1",
            ",,;;==\"\"",
            "h2=\":443\"",
        ] {
            assert_eq!(h3(value), None, "{value}");
        }
    }
}
