//! What is wrong with what was found before a test, and what to do about it.

use std::time::Duration;

use polygraph_engine::preflight::{Probe, ProbeError};
use polygraph_wire::preflight::PreflightReply;

use crate::Failure;

/// Whom a probe is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A proxy.
    Proxy,
    /// A device that poses as the servers.
    Surrogate,
    /// A server, without any device.
    Origin,
}

/// A probe, and what is known besides its answer.
#[derive(Debug)]
pub struct Case<'a> {
    pub target: Target,
    pub probe: &'a Probe,
    pub patience: Duration,
    /// Whether it came to a server; `None`: nobody here knows.
    pub arrived: Option<bool>,
}

/// Whether a status says that the device, or whoever is behind it, does not serve such requests.
pub fn is_refusal(status: u16) -> bool {
    status >= 500 || [400, 401, 403, 407].contains(&status)
}

impl Case<'_> {
    fn kind(&self) -> &'static str {
        match self.target {
            Target::Proxy => "the proxy",
            Target::Surrogate => "the device",
            Target::Origin => "the origin server",
        }
    }

    fn who(&self) -> String {
        format!("{} at {}", self.kind(), self.probe.to)
    }

    /// What a device did not do is its failure; whatever else is wrong keeps the test from beginning.
    pub fn failure(&self, text: &str) -> Failure {
        match self.target {
            Target::Origin => Failure::setup(anyhow::anyhow!("{text}")),
            _ => {
                let stop = if text.ends_with('?') { "" } else { "." };
                Failure::verdict(format!(
                    "FAILED (device): {text}{stop} Nothing was measured (--preflight no skips this look)"
                ))
            }
        }
    }

    /// What kept an answer from coming.
    pub fn trouble(&self, trouble: &ProbeError) -> String {
        let (kind, who, to, authority) = (self.kind(), self.who(), self.probe.to, &self.probe.authority);
        let time = self.patience.as_secs_f64();
        match trouble {
            ProbeError::Refused => {
                let start = match self.target {
                    Target::Origin => " Start it first, with `polygraph server`",
                    _ => "",
                };
                format!(
                    "nothing listens at {to} (connection refused): is {kind} running, and is this its port?{start}"
                )
            }
            ProbeError::Unreachable(error) => {
                let from = self.probe.from.map_or_else(String::new, |from| format!(" from {from}"));
                format!(
                    "{who} cannot be reached{from}: {error}; look at the address, the local addresses and the routes"
                )
            }
            ProbeError::NoConnection => format!(
                "{who} does not take a connection within {time} s: is the address right, and is there a firewall on the way?"
            ),
            ProbeError::Silent => format!(
                "{who} takes connections, but did not answer a request for {authority} in {time} s{}",
                self.way()
            ),
            ProbeError::Closed => {
                format!(
                    "{who} takes connections, but closes them without an answer to a request for {authority}{}",
                    self.way()
                )
            }
            ProbeError::NotHttp(data) => format!("{who} does not answer in HTTP/1{}", begins(data)),
        }
    }

    /// Where the request or the reply got lost.
    fn way(&self) -> String {
        let authority = &self.probe.authority;
        match (self.target, self.arrived) {
            (Target::Origin, _) => "; is this the port of a server that speaks plain HTTP?".into(),
            (_, Some(true)) => {
                "; the request came to the origin server, but its reply did not come back".into()
            }
            (_, Some(false)) => format!(
                "; the request did not come to the origin server: can the device reach {authority} (--origin_address), does it \
                 wait for a name server, and is this its port for plain HTTP?"
            ),
            (_, None) => format!(
                "; is this its port for plain HTTP, and can it reach the origin server at {authority}?"
            ),
        }
    }

    /// What a reply says that did not come from a server of ours.
    pub fn status(&self, seen: &PreflightReply) -> String {
        let PreflightReply { status, location, server, .. } = seen;
        let (who, authority) = (self.who(), &self.probe.authority);
        let name = server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
        let why = match status {
            300..=399 => {
                let to = location.as_deref().unwrap_or("nowhere");
                format!("a redirection to {to}; is it a block page, a login portal, or a rule that leads to https?")
            }
            400 if self.target == Target::Proxy => {
                "is it a proxy for plain HTTP, and is this the proxy's port? Web servers and ports for TLS answer so".into()
            }
            401 | 407 => "it asks for a user and a password: give the robots `credentials` in a workload, or let this host in".into(),
            403 => format!(
                "an access rule refuses it: allow this host as a client and {authority} with its port as a destination (in Squid: acl, \
                 http_access, Safe_ports); proxies also answer so when requests come back to themselves in a loop"
            ),
            404 | 405 | 501 | 200..=299 => format!(
                "it answered by itself instead of asking {authority}; is this the port of a proxy, and does it pass on what it does \
                 not know?"
            ),
            508 => format!("requests come back to it in a loop: which way does it take to {authority}?"),
            502..=504 if self.arrived != Some(true) => format!(
                "it cannot reach the origin server at {authority}; the address must be one that the device reaches \
                 (--origin_address), and no firewall in between"
            ),
            _ => "its own messages will say why".into(),
        };
        format!("{who}{name} answered {status} to a request for {authority}: {why}")
    }

    /// A remark about a reply that may be all right.
    pub fn stranger(&self, seen: &PreflightReply) -> String {
        format!(
            "{}; the test goes on, for servers of another make do not know this request",
            self.status(seen)
        )
    }
}

/// How something begins that is not HTTP, and what it may be.
fn begins(data: &[u8]) -> String {
    match data {
        [0x15 | 0x16, 3, ..] => " but in TLS: robots speak plain HTTP, so name a port without TLS".into(),
        [b'S', b'S', b'H', b'-', ..] => ": this is the port of an SSH server".into(),
        [0, 0, _, 4, ..] => " but in HTTP/2".into(),
        [] => String::new(),
        _ => {
            let text = String::from_utf8_lossy(&data[..data.len().min(40)]);
            format!(": its answer begins with {text:?}; is this the right port?")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_says_what_to_do() {
        let probe = Probe {
            to: "10.0.0.1:3128".parse().unwrap(),
            from: None,
            authority: "10.0.0.2:80".into(),
            absolute: true,
        };
        let case = Case {
            target: Target::Proxy,
            probe: &probe,
            patience: Duration::from_secs(5),
            arrived: Some(false),
        };
        let seen = |status| PreflightReply {
            status,
            ours: false,
            location: Some("https://login/".into()),
            server: None,
        };
        for (status, text) in [
            (302, "https://login/"),
            (400, "the proxy's port"),
            (403, "access rule"),
            (407, "credentials"),
            (404, "answered by itself"),
            (502, "cannot reach the origin"),
            (508, "loop"),
            (500, "its own messages"),
        ] {
            assert!(case.status(&seen(status)).contains(text), "{status}: {}", case.status(&seen(status)));
        }
        for (trouble, text) in [
            (ProbeError::Refused, "is the proxy running"),
            (ProbeError::NoConnection, "firewall"),
            (ProbeError::Silent, "did not come to the origin server"),
            (ProbeError::Closed, "without an answer"),
            (ProbeError::NotHttp(b"SSH-2.0".to_vec()), "SSH server"),
            (ProbeError::NotHttp(vec![0x15, 3, 1, 0]), "TLS"),
            (ProbeError::NotHttp(b"220 mail".to_vec()), "220 mail"),
        ] {
            assert!(case.trouble(&trouble).contains(text), "{}", case.trouble(&trouble));
        }
    }
}
