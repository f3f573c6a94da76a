//! Explains the answer to a probe, and names the remedy.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use polygraph_engine::preflight::{Probe, ProbeError, ProbeStep};
use polygraph_robot::failure::socks_class;
use polygraph_stats::ErrorKind;
use polygraph_tls::failure::FailureKind;
use polygraph_wire::preflight::{FIELD, PreflightReply};

use crate::Failure;

/// How long a server may take to refuse a connection.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);

/// The receiver of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    /// A proxy.
    Proxy,
    /// A SOCKS proxy.
    SocksProxy,
    /// A device that acts as the servers.
    Surrogate,
    /// A server, without a device in between.
    Origin,
}

/// A probe with facts other than its answer.
#[derive(Clone, Copy, Debug)]
pub struct ProbeCase<'a> {
    pub target: ProbeTarget,
    pub probe: &'a Probe,
    pub timeout: Duration,
    /// Whether the probe arrived at a server; `None`: unknown, because servers are elsewhere.
    pub arrived: Option<bool>,
}

/// Whether a status means that the device, or a server behind it, refuses such requests.
pub fn is_refusal(status: u16) -> bool {
    status >= 500 || [400, 401, 403, 407].contains(&status)
}

impl ProbeCase<'_> {
    fn kind(&self) -> &'static str {
        match self.target {
            ProbeTarget::Proxy => "the proxy",
            ProbeTarget::SocksProxy => "the SOCKS proxy",
            ProbeTarget::Surrogate => "the device",
            ProbeTarget::Origin => "the origin server",
        }
    }

    fn who(&self) -> String {
        format!("{} at {}", self.kind(), self.probe.to)
    }

    /// A wrong answer of a device is a verdict on the device; a wrong answer of a server only prevents the test.
    pub fn failure(&self, text: &str) -> Failure {
        match self.target {
            ProbeTarget::Origin => Failure::setup(anyhow::anyhow!("{text}")),
            _ => {
                let stop = if text.ends_with('?') { "" } else { "." };
                Failure::verdict(format!(
                    "FAILED (device): {text}{stop} Nothing was measured (--preflight no skips this check)"
                ))
            }
        }
    }

    /// Why a device could not answer, if it is the server that is missing: from here, too, it refuses connections.
    pub fn missing_server(&self, seen: &PreflightReply) -> Option<Failure> {
        let authority = &self.probe.authority;
        let is_open = self.arrived.is_none() && seen.misses_server();
        let address: SocketAddr = authority.parse().ok().filter(|_| is_open)?;
        let refused = TcpStream::connect_timeout(&address, REFUSAL_PATIENCE).err()?;
        (refused.kind() == io::ErrorKind::ConnectionRefused).then(|| {
            Failure::setup(anyhow::anyhow!(
                "nothing listens at {authority} (connection refused), and {} answered {}: is the origin server running, and is \
                 this its port? Start it first with `polygraph server`",
                self.who(),
                seen.status
            ))
        })
    }

    /// Why there was no answer, and the remedy.
    pub fn trouble(&self, trouble: &ProbeError) -> String {
        let (kind, who, to, authority) = (self.kind(), self.who(), self.probe.to, &self.probe.authority);
        let time = self.timeout.as_secs_f64();
        match trouble {
            ProbeError::Refused => {
                let start = match self.target {
                    ProbeTarget::Origin => " Start it first with `polygraph server`",
                    _ => "",
                };
                if self.probe.http3 {
                    return format!(
                        "nothing listens on UDP port {} of {} (ICMP port unreachable): is {kind} running, and does it speak HTTP/3 at this \
                         port?{start}",
                        to.port(),
                        to.ip()
                    );
                }
                format!(
                    "nothing listens at {to} (connection refused): is {kind} running, and is this its port?{start}"
                )
            }
            ProbeError::Unreachable(error) => {
                let from = self.probe.from.map_or_else(String::new, |from| format!(" from {from}"));
                format!(
                    "{who} cannot be reached{from}: {error}; check the address, the local addresses and the routes"
                )
            }
            ProbeError::NoConnection => format!(
                "{who} does not accept a connection within {time} s: is the address right, and is there a firewall in between?"
            ),
            // Nothing accepts QUIC before its handshake, so it may be that nothing listens.
            ProbeError::Silent(step @ ProbeStep::Quic) => {
                format!("{who} did not answer {} within {time} s{}", self.asked(*step), self.lost_at(*step))
            }
            ProbeError::Silent(step) => {
                format!(
                    "{who} accepts connections, but did not answer {} within {time} s{}",
                    self.asked(*step),
                    self.lost_at(*step)
                )
            }
            ProbeError::Closed(step) => format!(
                "{who} accepts connections, but closes them without answering {}{}",
                self.asked(*step),
                self.lost_at(*step)
            ),
            ProbeError::NoSocks(error) => {
                let class = socks_class(error);
                format!(
                    "{who} opened no connection to {} ({}, {}): {error}. {}",
                    self.destination(),
                    class.number(),
                    class.name(),
                    class.hint().trim_end_matches('.')
                )
            }
            ProbeError::NoTunnel(seen) => self.status(seen),
            ProbeError::TunnelNotHttp(start) => format!(
                "{who} does not answer CONNECT in HTTP/1 ({}, {}), but with `{start}`: is this the port of a proxy?",
                ErrorKind::TunnelBroken.number(),
                ErrorKind::TunnelBroken.name()
            ),
            ProbeError::NotHttp(data) => format!("{who} does not answer in HTTP/1{}", what_it_is(data)),
            ProbeError::NotHttp2(data) => format!(
                "{who} does not speak HTTP/2 without TLS (prior knowledge){}. Turn HTTP/2 on in its configuration (`--device_opt \
                 http2=on`, if `polygraph devices` lists that), or let robots speak another --http_version",
                what_it_is_instead(data)
            ),
            ProbeError::UserRefused(name) => format!(
                "{who} refuses the user {name}: name or password wrong. Give robots users that it knows (--credentials, or `credentials` \
                 in a workload file; `polygraph accounts FILE` lists them for the device), or skip this check with --preflight no"
            ),
            ProbeError::UserDemanded => format!(
                "{who} demands a user name and a password, and robots have none: give them some with --credentials NAME:PASSWORD, or \
                 `credentials` in a workload file, let it accept clients without, or skip this check with --preflight no"
            ),
            ProbeError::Quic(class, error) => format!(
                "the QUIC handshake with {who} fails ({}, {}): {error}. {}",
                class.number(),
                class.name(),
                class.hint().trim_end_matches('.')
            ),
            ProbeError::Tls(step, failure) => {
                let class = failure.kind.class();
                let remedy = match failure.kind {
                    _ if trouble.is_demand_for_certificate() => {
                        ". It demands a certificate, and robots have none: give them one (`client_certificate` of `ssl_wraps`), or let it \
                         accept clients without"
                    }
                    FailureKind::NotTls if *step == ProbeStep::Tls && self.target != ProbeTarget::Origin => {
                        ". Give it a certificate (`--device_opt cert=FILE`, if `polygraph devices` lists that), or name its port for TLS"
                    }
                    _ => "",
                };
                let peer = match (step, &self.probe.socks) {
                    (ProbeStep::ServerTls, _) => {
                        format!("the origin server at {authority}, in a tunnel of {who},")
                    }
                    (_, Some(to)) => format!("{to}, through {who},"),
                    _ => who,
                };
                format!(
                    "the TLS handshake with {peer} fails ({}, {}): {failure}. {}{remedy}",
                    class.number(),
                    class.name(),
                    class.hint().trim_end_matches('.')
                )
            }
        }
    }

    /// What got no answer.
    fn asked(&self, step: ProbeStep) -> String {
        let authority = &self.probe.authority;
        let class = |kind: ErrorKind| format!("({}, {})", kind.number(), kind.name());
        match step {
            ProbeStep::Socks => {
                format!("a request of SOCKS version 5 for a connection to {}", self.destination())
            }
            ProbeStep::Tls => "the TLS handshake".into(),
            ProbeStep::Quic => format!("the QUIC handshake over UDP {}", class(ErrorKind::QuicNoAnswer)),
            ProbeStep::Tunnel => format!("CONNECT {authority}"),
            ProbeStep::ServerTls => format!("the TLS handshake in its tunnel to {authority}"),
            ProbeStep::Request => format!("a request for {authority}"),
        }
    }

    /// Where a SOCKS proxy was to connect to.
    fn destination(&self) -> String {
        self.probe.socks.as_ref().map_or_else(|| self.probe.authority.clone(), ToString::to_string)
    }

    /// Where the request or the reply was lost.
    fn lost_at(&self, step: ProbeStep) -> String {
        let authority = &self.probe.authority;
        match step {
            ProbeStep::Socks => {
                return format!(
                    "; is this its port for SOCKS version 5, and can it reach {}?",
                    self.destination()
                );
            }
            ProbeStep::Tls => return "; is this its port for TLS?".into(),
            ProbeStep::Quic => {
                return "; is it running, does it speak HTTP/3 at this port, and is there a firewall that drops UDP?".into();
            }
            ProbeStep::Tunnel => {
                return format!("; is this the port of a proxy, and can it reach {authority}?");
            }
            ProbeStep::ServerTls => {
                return format!("; does the tunnel lead to the origin server, and does {authority} use TLS?");
            }
            ProbeStep::Request => {}
        }
        // What has carried out a handshake or opened a connection listens at the right port.
        let probe = self.probe;
        let is_plain = probe.tls.is_none() && probe.tunnel.is_none() && probe.socks.is_none();
        match (self.target, self.arrived) {
            (ProbeTarget::Origin, _) if is_plain => {
                "; is this the port of a server that speaks plain HTTP?".into()
            }
            (ProbeTarget::Origin, _) => "; see its log".into(),
            (_, Some(true)) => {
                "; the request arrived at the origin server, but the reply did not come back".into()
            }
            (_, Some(false)) => {
                let port = if is_plain {
                    ", is it waiting for a name server, and is this its port for plain HTTP?"
                } else {
                    ", or is it waiting for a name server?"
                };
                format!(
                    "; the request did not arrive at the origin server: can the device reach {authority} (--origin_address){port}"
                )
            }
            (_, None) if is_plain => format!(
                "; is this its port for plain HTTP, and can it reach the origin server at {authority}?"
            ),
            (_, None) => format!("; can it reach the origin server at {authority}?"),
        }
    }

    /// Explains a reply that did not come from a server of this program.
    pub fn status(&self, seen: &PreflightReply) -> String {
        let PreflightReply { status, location, server, .. } = seen;
        let (who, authority) = (self.who(), &self.probe.authority);
        let name = server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
        let unhealthy = match self.target {
            ProbeTarget::Surrogate => format!(
                ", or it checks the health of its servers and has not found them healthy within {} s (let it check them more often, \
                 or wait longer: --preflight 30s)",
                self.timeout.as_secs_f64()
            ),
            _ => String::new(),
        };
        let why = match status {
            300..=399 => {
                let to = location.as_deref().unwrap_or("nowhere");
                format!("a redirect to {to}; is it a block page, a login portal, or a rule that redirects to https?")
            }
            400 if self.probe.tls.is_none() && self.probe.tunnel.is_none() && self.probe.socks.is_none() => format!(
                "TLS ports answer requests without TLS like this{}. If this is one, use --device_tls yes; else see its log",
                if self.target == ProbeTarget::Proxy { ", and so do web servers that are no proxies" } else { "" }
            ),
            401 | 407 => "it demands a user name and a password: give the robots some with --credentials NAME:PASSWORD, or `credentials` in a \
            workload file, or allow this host without a password".into(),
            403 => format!(
                "an access rule refuses it: allow this host as a client and {authority} with its port as a destination (in Squid: acl, \
                 http_access, Safe_ports); proxies also answer like this when a request loops back to them"
            ),
            404 | 405 | 501 | 200..=299 => format!(
                "it answered the request instead of passing it on to {authority}; is this the port of a proxy, and does it pass on \
                 requests for objects that it does not have?"
            ),
            508 => format!("the request loops back to it: what is its route to {authority}?"),
            502..=504 if self.arrived.is_none() => format!(
                "it cannot reach the origin server at {authority}{unhealthy}; is the server running, and is this an address that the device \
                 reaches, without a firewall in between?"
            ),
            502..=504 if self.arrived == Some(false) => format!(
                "it cannot reach the origin server at {authority}{unhealthy}; the address must be one that the device reaches \
                 (--origin_address) on a port that it allows (--origin_port), without a firewall in between"
            ),
            _ => "see its log".into(),
        };
        let asked = match (&self.probe.tunnel, seen.ours) {
            (Some(_), false) => format!(
                "CONNECT {authority} ({}, {})",
                ErrorKind::TunnelRefused.number(),
                ErrorKind::TunnelRefused.name()
            ),
            _ => format!("a request for {authority}"),
        };
        format!("{who}{name} answered {status} to {asked}: {why}")
    }

    /// Explains the reply of a server of this program at which nothing arrived that this test knows of.
    pub fn other_server(&self, seen: &PreflightReply) -> String {
        let PreflightReply { status, server, .. } = seen;
        let (who, authority) = (self.who(), &self.probe.authority);
        let name = server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
        let remedy = match self.target {
            ProbeTarget::Origin => "end it, or let the servers of this test listen elsewhere",
            ProbeTarget::Surrogate if self.probe.tls.is_none() => {
                "name the device, if this is the address of a server; else end that server, or let the device pass requests on to \
                 those of this test (--origin_address, --origin_port)"
            }
            _ => {
                "end it, or let the device pass requests on to the servers of this test (--origin_address, --origin_port)"
            }
        };
        format!(
            "{who}{name} answered {status} to a request for {authority} with the marks of a polygraph server ({FIELD}), but the request did \
             not arrive at the servers of this test: is a server left over from another test? Nothing would be known of what it does: \
             {remedy}"
        )
    }

    /// A warning about a reply that may be acceptable.
    pub fn foreign_reply(&self, seen: &PreflightReply) -> String {
        format!(
            "{}; the test starts anyway, because other servers do not know this request",
            self.status(seen)
        )
    }
}

/// The start of an answer that is not HTTP/2.
fn what_it_is_instead(data: &[u8]) -> String {
    match data {
        [b'H', b'T', b'T', b'P', b'/', ..] => ", but HTTP/1".into(),
        _ => what_it_is(data),
    }
}

/// The start of a reply that is not HTTP, and its probable protocol.
fn what_it_is(data: &[u8]) -> String {
    match data {
        [0x15 | 0x16, 3, ..] => " but in TLS: robots speak plain HTTP, so name a port without TLS".into(),
        [b'S', b'S', b'H', b'-', ..] => ": this is the port of an SSH server".into(),
        [0, 0, _, 4, ..] => " but in HTTP/2".into(),
        [] => String::new(),
        _ => {
            let text = String::from_utf8_lossy(&data[..data.len().min(40)]);
            format!(": its answer starts with {text:?}; is this the right port?")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use polygraph_tls::failure::TlsFailure;
    use polygraph_wire::socks::{Destination, ReplyCode, SocksError};

    #[test]
    fn every_case_says_what_to_do() {
        let to: SocketAddr = "10.0.0.1:3128".parse().unwrap();
        let probe = Probe { authority: "10.0.0.2:80".into(), absolute: true, ..Probe::plain(to) };
        let case = ProbeCase {
            target: ProbeTarget::Proxy,
            probe: &probe,
            timeout: Duration::from_secs(5),
            arrived: Some(false),
        };
        let seen = |status| PreflightReply {
            status,
            ours: false,
            location: Some("https://login/".into()),
            server: None,
            challenges: Vec::new(),
        };
        for (status, text) in [
            (302, "https://login/"),
            (400, "no proxies. If this is one, use --device_tls yes"),
            (403, "access rule"),
            (407, "credentials"),
            (404, "passing it on"),
            (502, "--origin_port"),
            (508, "loop"),
            (500, "see its log"),
        ] {
            assert!(case.status(&seen(status)).contains(text), "{status}: {}", case.status(&seen(status)));
        }
        for (trouble, text) in [
            (ProbeError::Refused, "is the proxy running"),
            (ProbeError::NoConnection, "firewall"),
            (ProbeError::Silent(ProbeStep::Request), "did not arrive at the origin server"),
            (ProbeError::Closed(ProbeStep::Request), "without answering"),
            (ProbeError::NotHttp(b"SSH-2.0".to_vec()), "SSH server"),
            (ProbeError::NotHttp(vec![0x15, 3, 1, 0]), "TLS"),
            (ProbeError::NotHttp(b"220 mail".to_vec()), "220 mail"),
            (
                ProbeError::Silent(ProbeStep::Socks),
                "SOCKS version 5 for a connection to 10.0.0.2:80 within 5 s",
            ),
            (ProbeError::Silent(ProbeStep::Tls), "the TLS handshake within 5 s; is this its port for TLS?"),
            (ProbeError::Silent(ProbeStep::Quic), "over UDP (c24"),
            (
                ProbeError::Closed(ProbeStep::Tunnel),
                "without answering CONNECT 10.0.0.2:80; is this the port of",
            ),
            (ProbeError::Silent(ProbeStep::ServerTls), "in its tunnel to 10.0.0.2:80 within"),
            (ProbeError::NoSocks(SocksError::Refused(ReplyCode(5))), "(c114, socks_connect)"),
            (ProbeError::TunnelNotHttp("SSH-2.0".into()), "(c222, tunnel_broken), but with `SSH-2.0`"),
            (ProbeError::UserRefused("joe".into()), "refuses the user joe: name or password wrong"),
            (ProbeError::UserDemanded, "demands a user name and a password, and robots have none"),
            (ProbeError::NotHttp2(b"HTTP/1.1 400 Bad Request".to_vec()), ", but HTTP/1. Turn HTTP/2 on"),
            (
                ProbeError::Tls(ProbeStep::Tls, TlsFailure::new(FailureKind::WrongName, "not for x")),
                "(c215, certificate_name): not for x",
            ),
            (
                ProbeError::Tls(ProbeStep::Tls, TlsFailure::new(FailureKind::NotTls, "no record")),
                "Give it a certificate (`--device_opt cert=FILE`",
            ),
        ] {
            assert!(case.trouble(&trouble).contains(text), "{}", case.trouble(&trouble));
        }
        // Nobody asks about plain HTTP after another protocol.
        let other =
            Probe { socks: Some("10.0.0.2:80".parse().map(Destination::Address).unwrap()), ..probe.clone() };
        for arrived in [Some(false), None] {
            let text =
                ProbeCase { arrived, probe: &other, ..case }.trouble(&ProbeError::Silent(ProbeStep::Request));
            assert!(!text.contains("plain HTTP"), "{text}");
        }
        // What a server of another test answers is no answer of a device.
        let other = PreflightReply { ours: true, server: Some("box".into()), ..seen(200) };
        let text = case.other_server(&other);
        assert!(text.contains("10.0.0.1:3128 (box) answered 200 to a request for 10.0.0.2:80"), "{text}");
        // Health checks are a matter of balancers.
        assert!(!case.status(&seen(503)).contains("health"));
        let balancer = ProbeCase { target: ProbeTarget::Surrogate, ..case };
        for arrived in [Some(false), None] {
            let text = ProbeCase { arrived, ..balancer }.status(&seen(503));
            assert!(text.contains("has not found them healthy within 5 s"), "{text}");
        }
        // Without the server's word, it may be the one that is missing.
        let case = ProbeCase { arrived: None, ..case };
        assert!(case.status(&seen(502)).contains("is the server running"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let probe = Probe { authority: authority.clone(), ..probe.clone() };
        let case = ProbeCase { probe: &probe, ..case };
        assert!(case.missing_server(&seen(502)).is_none());
        drop(listener);
        assert!(case.missing_server(&seen(404)).is_none());
        let failure = case.missing_server(&seen(502)).unwrap();
        assert!(failure.to_string().contains(&format!("nothing listens at {authority}")), "{failure}");
    }
}
