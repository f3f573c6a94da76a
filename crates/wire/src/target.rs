//! The value of `X-Target`: the server that a client means, or the one that replied, as `host:port`.

use std::fmt;
use std::net::SocketAddr;

use crate::head::is_target;

/// The number of bytes that are kept of a value.
const KEPT: usize = 61;

/// A host and a port, stored without allocation so that every message can keep one.
///
/// Of values longer than 61 bytes only the start and the length are kept; no address is that long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TargetMark {
    text: [u8; KEPT],
    /// Length of the value as sent.
    len: u16,
}

impl TargetMark {
    /// Reads `host:port`, where the host is any visible ASCII text and the port is 0 to 65535; `None` if the
    /// value is anything else.
    pub fn parse(value: &[u8]) -> Option<TargetMark> {
        let value = value.trim_ascii();
        // At most five digits follow it.
        let colon = value.iter().rposition(|&b| b == b':')?;
        let (host, port) = (&value[..colon], &value[colon + 1..]);
        if host.is_empty() || !is_target(host) {
            return None;
        }
        u16::try_from(crate::body::parse_decimal(port)?).ok()?;
        let mut text = [0; KEPT];
        let kept = value.len().min(KEPT);
        text[..kept].copy_from_slice(&value[..kept]);
        Some(TargetMark { text, len: u16::try_from(value.len()).ok()? })
    }

    /// Whether it is what would be read from `value`; false if that is not known without reading it.
    pub(crate) fn is(&self, value: &[u8]) -> bool {
        self.kept() == value && value.len() == usize::from(self.len)
    }

    fn kept(&self) -> &[u8] {
        &self.text[..usize::from(self.len).min(KEPT)]
    }

    /// The value as sent, or its start if it was too long.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.kept()).unwrap_or_default()
    }

    /// The value as sent; `None` if only its start is kept.
    pub fn whole(&self) -> Option<&str> {
        (usize::from(self.len) <= KEPT).then(|| self.as_str())
    }

    /// The address, if the host is an IP address: `10.0.0.1:80`, `[::1]:80`.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.whole()?.parse().ok()
    }
}

impl fmt::Debug for TargetMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets_by_example() {
        #[track_caller]
        fn check(value: &str, text: Option<&str>, addr: Option<&str>) {
            let target = TargetMark::parse(value.as_bytes());
            assert_eq!(target.as_ref().map(TargetMark::as_str), text, "{value}");
            assert_eq!(target.and_then(|t| t.addr()), addr.map(|a| a.parse().unwrap()), "{value}");
        }
        check("10.0.0.1:80", Some("10.0.0.1:80"), Some("10.0.0.1:80"));
        check(" [::1]:8080 ", Some("[::1]:8080"), Some("[::1]:8080"));
        check("www.example.com:80", Some("www.example.com:80"), None);
        for bad in ["", ":80", "host", "host:", "host:x", "host:65536", "ho st:80", "h\u{e9}:80"] {
            check(bad, None, None);
        }
        let long = format!("{}.example.com:80", "x".repeat(60));
        check(&long, Some(&long[..KEPT]), None);
        let whole = |value: &str| TargetMark::parse(value.as_bytes()).unwrap().whole().map(str::to_owned);
        assert_eq!((whole("www:80").as_deref(), whole(&long)), (Some("www:80"), None));
        assert_ne!(TargetMark::parse(long.as_bytes()), TargetMark::parse(format!("{long}80").as_bytes()));
        assert_eq!(TargetMark::parse(format!("{}:80", "x".repeat(70_000)).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn addresses_round_trip(addr: SocketAddr) {
            // Flow information and scope are not part of the text.
            let addr = SocketAddr::new(addr.ip(), addr.port());
            prop_assert_eq!(TargetMark::parse(addr.to_string().as_bytes()).unwrap().addr(), Some(addr));
        }

        #[test]
        fn random_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = TargetMark::parse(&value).map(|target| target.addr());
        }
    }
}
