//! What a robot knows about alternative services: where origins say that they speak HTTP/3, how long that is fresh, and what has failed
//! (RFC 7838, section 2).

use std::net::IpAddr;
use std::num::NonZeroU16;

use polygraph_link::{Nanos, SECOND};
use polygraph_wire::alt_svc::{AltSvc, Alternative};
use rustc_hash::FxHashMap;

use crate::connections::hop::Hop;

/// The name of HTTP/3 among protocols (RFC 9114, section 3.1).
const HTTP3: &str = "h3";

/// For how long a robot leaves an alternative alone that has failed. Until then, the origin goes on announcing it.
const PAUSE: Nanos = Nanos::from_secs(300);

/// What a robot knows about the alternatives of origins, by their peers.
#[derive(Debug, Default)]
pub struct Alternatives(FxHashMap<Hop, Known>);

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    port: Option<NonZeroU16>,
    /// When the announcement is out of date.
    until: Nanos,
    /// Until when the alternative is left alone.
    broken_until: Nanos,
    /// Whether the robot has used it since it was announced first, or again after it was out of date.
    used: bool,
}

impl Alternatives {
    /// The port of the alternative for requests to `hop` at `now`, and whether it is used for the first time.
    pub fn find(&mut self, hop: Hop, now: Nanos) -> Option<(NonZeroU16, bool)> {
        let known = self.0.get_mut(&hop)?;
        if known.until <= now {
            (known.port, known.used) = (None, false);
        }
        let port = known.port.filter(|_| known.broken_until <= now)?;
        Some((port, !std::mem::replace(&mut known.used, true)))
    }

    /// Remembers what a reply from `hop` announces.
    pub fn learn(&mut self, hop: Hop, announced: Option<(NonZeroU16, u64)>, now: Nanos) {
        let known = self.0.entry(hop).or_default();
        let Some((port, max_age)) = announced else {
            (known.port, known.used) = (None, false);
            return;
        };
        let is_same = known.port == Some(port) && known.until > now;
        (known.used, known.port) = (known.used && is_same, Some(port));
        known.until = now.saturating_add(SECOND.saturating_mul(max_age));
    }

    /// Leaves the alternative for requests to `hop` alone for a while. Returns whether it was not left alone before.
    pub fn give_up(&mut self, hop: Hop, now: Nanos) -> bool {
        let known = self.0.entry(hop).or_default();
        if known.broken_until > now {
            return false;
        }
        (known.broken_until, known.used) = (now + PAUSE, false);
        true
    }
}

/// The port of an alternative that the robot can use. Its host must be that of the origin, by name or by address: the robot knows no
/// address of others.
///
/// # Errors
/// If the host is another one.
pub fn usable(value: &[u8], address: IpAddr, origin: &str) -> Result<Option<(NonZeroU16, u64)>, String> {
    let Alternative { host, port, max_age } = match AltSvc::parse(value, HTTP3) {
        AltSvc::Nothing => return Ok(None),
        AltSvc::Offered(alternative) => alternative,
    };
    let bare = host.trim_matches(['[', ']']);
    let is_here = host.is_empty() || bare.eq_ignore_ascii_case(origin) || bare.parse() == Ok(address);
    match NonZeroU16::new(port).filter(|_| is_here) {
        Some(port) => Ok(Some((port, max_age))),
        None => Err(format!("the alternative {host}:{port} is not at the host {origin}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop() -> Hop {
        Hop { server: Some(0), ..Hop::from(std::net::SocketAddr::from(([192, 0, 2, 1], 443))) }
    }

    #[test]
    fn announcements_are_used_as_long_as_they_are_fresh() {
        let (mut known, at) = (Alternatives::default(), Nanos::from_secs);
        let port = NonZeroU16::new(8443).unwrap();
        assert_eq!(known.find(hop(), at(0)), None);
        known.learn(hop(), Some((port, 60)), at(0));
        assert_eq!(known.find(hop(), at(1)), Some((port, true)));
        // It is renewed without being new.
        known.learn(hop(), Some((port, 60)), at(30));
        assert_eq!(known.find(hop(), at(89)), Some((port, false)));
        assert_eq!(known.find(hop(), at(90)), None);
        // `clear`.
        known.learn(hop(), Some((port, 60)), at(100));
        known.learn(hop(), None, at(101));
        assert_eq!(known.find(hop(), at(102)), None);
        known.learn(hop(), Some((port, u64::MAX)), at(103));
        assert_eq!(known.find(hop(), at(1_000_000)), Some((port, true)));
    }

    #[test]
    fn what_has_failed_is_left_alone_for_a_while() {
        let (mut known, at) = (Alternatives::default(), Nanos::from_secs);
        let port = NonZeroU16::new(8443).unwrap();
        known.learn(hop(), Some((port, 3600)), at(0));
        assert!(known.find(hop(), at(1)).is_some());
        assert!(known.give_up(hop(), at(1)));
        assert!(!known.give_up(hop(), at(2)));
        // Another announcement does not change that.
        known.learn(hop(), Some((port, 3600)), at(3));
        assert_eq!(known.find(hop(), at(300)), None);
        assert_eq!(known.find(hop(), at(301)), Some((port, true)));
    }

    #[test]
    fn only_the_host_of_the_origin_is_usable() {
        let (ip, port) = (hop().address.ip(), NonZeroU16::new(8443).unwrap());
        for host in ["", "www.example.com", "WWW.example.com", "192.0.2.1"] {
            let value = format!("h3=\"{host}:8443\"; ma=5");
            assert_eq!(usable(value.as_bytes(), ip, "www.example.com"), Ok(Some((port, 5))), "{host}");
        }
        let elsewhere = usable(b"h3=\"example.com:8443\"", ip, "www.example.com");
        assert!(elsewhere.unwrap_err().contains("example.com:8443 is not at the host www.example.com"));
        let v6 = "2001:db8::1".parse().unwrap();
        assert_eq!(usable(b"h3=\"[2001:db8::1]:8443\"; ma=5", v6, "x"), Ok(Some((port, 5))));
        assert_eq!(usable(b"clear", ip, "x"), Ok(None));
    }
}
