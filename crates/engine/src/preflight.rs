//! The check before a test: one connection to the first peer of the robots, with the layers that robots will add to it, and one
//! request to a server and back.
//!
//! Nothing else runs yet, so each exchange has an event loop of its own, or blocks. If the servers of the test are on this machine, a
//! [`Responder`] answers for them until they listen.

mod exchange;
mod http2;
mod login;
mod responder;

use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polygraph_stats::ErrorKind;
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::settings::ClientTls;
use polygraph_wire::preflight;
use polygraph_wire::preflight::PreflightReply;
use polygraph_wire::socks::{Destination, SocksError};
use socket2::{Domain, Protocol, Socket, Type};

use exchange::Question;
pub use responder::{Responder, ResponderPlace};

/// How long a temporary failure is tried again, for example while a device is starting.
const AGAIN: Duration = Duration::from_millis(900);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(150);
/// The size in bytes from which a reply without a complete head is not HTTP.
const MAX_REPLY: usize = 64 * 1024;

/// The TLS of robots with the peer of a [`Probe`].
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeTls {
    /// Their settings.
    pub settings: Arc<ClientTls>,
    /// The name for which the certificate of the peer must be valid.
    pub name: String,
    /// The application protocol that the peer must choose, if there is one.
    pub protocol: Option<&'static str>,
}

/// A user of the robots, with whom the check logs in if the peer demands it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbeUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// The request of a preflight check.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The address to connect to.
    pub to: SocketAddr,
    /// The local address; `None`: the system chooses.
    pub from: Option<IpAddr>,
    /// The server of the request, as URLs name it.
    pub authority: String,
    /// Whether the peer at `to` is a proxy, so that the URL is absolute.
    pub absolute: bool,
    /// If the peer is a SOCKS proxy: where it connects to. Everything below is about the peer there.
    pub socks: Option<Destination>,
    /// If robots use TLS with the peer itself.
    pub tls: Option<ProbeTls>,
    /// If robots use TLS with the server, in a tunnel that the peer opens.
    pub tunnel: Option<ProbeTls>,
    /// Whether robots speak HTTP/2 with the peer itself, without TLS.
    pub http2: bool,
    /// Whether robots speak HTTP/3 with the peer itself, with the TLS of `tls`.
    pub http3: bool,
    /// A user of the robots, if they have any.
    pub user: Option<ProbeUser>,
}

/// A step of a probe on an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// The dialogue with a SOCKS proxy.
    Socks,
    /// The TLS handshake with the peer.
    Tls,
    /// The QUIC handshake with the peer.
    Quic,
    /// The question for a tunnel.
    Tunnel,
    /// The TLS handshake with the server, in a tunnel.
    ServerTls,
    /// The request, and its reply.
    Request,
}

/// Why no reply came.
#[derive(Debug)]
pub enum ProbeError {
    /// Nothing listens at the address.
    Refused,
    /// The address cannot be reached, or not from the local address.
    Unreachable(io::Error),
    /// No connection was established in time.
    NoConnection,
    /// The peer accepted the connection but did not answer this step in time.
    Silent(ProbeStep),
    /// The peer closed or reset the connection without an answer to this step.
    Closed(ProbeStep),
    /// The SOCKS proxy opened no connection.
    NoSocks(SocksError),
    /// The proxy opened no tunnel. The reply has its status and challenges.
    NoTunnel(PreflightReply),
    /// What the proxy answered to the question for a tunnel is not HTTP/1.
    TunnelNotHttp(String),
    /// The reply is not HTTP/1; these are its first bytes.
    NotHttp(Vec<u8>),
    /// The peer does not start HTTP/2 as servers do; these are its first bytes.
    NotHttp2(Vec<u8>),
    /// The QUIC connection failed in this class.
    Quic(ErrorKind, io::Error),
    /// The TLS handshake of this step failed.
    Tls(ProbeStep, TlsFailure),
    /// The peer refuses this user.
    UserRefused(String),
    /// The peer demands a user, and robots have none.
    UserDemanded,
}

impl ProbeError {
    /// Whether no device or server was reached at all.
    pub fn is_absence(&self) -> bool {
        matches!(self, ProbeError::Refused | ProbeError::Unreachable(_) | ProbeError::NoConnection)
    }

    /// Whether the peer demanded a certificate and got none: `certificate_required` (RFC 8446, section 6.2).
    pub fn is_demand_for_certificate(&self) -> bool {
        matches!(self, ProbeError::Tls(_, failure) if failure.alert == Some(116))
    }

    /// Whether the peer showed the certificate of an authority as its own.
    pub fn is_authority_certificate(&self) -> bool {
        matches!(self, ProbeError::Tls(_, failure) if failure.kind == FailureKind::AuthorityCertificate)
    }
}

impl Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Refused => f.write_str("the connection was refused"),
            ProbeError::Unreachable(error) => write!(f, "{error}"),
            ProbeError::NoConnection => f.write_str("no connection in time"),
            ProbeError::Silent(_) => f.write_str("no answer in time"),
            ProbeError::Closed(_) => f.write_str("the connection was closed without an answer"),
            ProbeError::NoSocks(error) => write!(f, "the SOCKS proxy opened no connection: {error}"),
            ProbeError::NoTunnel(seen) => write!(f, "the proxy answered CONNECT with {}", seen.status),
            ProbeError::TunnelNotHttp(_) => f.write_str("the answer to CONNECT is not HTTP/1"),
            ProbeError::NotHttp(_) => f.write_str("the answer is not HTTP/1"),
            ProbeError::NotHttp2(_) => f.write_str("the answer is not HTTP/2"),
            ProbeError::Quic(_, error) => write!(f, "the QUIC connection failed: {error}"),
            ProbeError::Tls(_, failure) => write!(f, "the TLS handshake failed: {failure}"),
            ProbeError::UserRefused(name) => write!(f, "the user {name} is refused"),
            ProbeError::UserDemanded => f.write_str("a user is demanded"),
        }
    }
}

/// The result of a probe.
#[derive(Debug)]
pub struct ProbeResult {
    /// The reply, or why there is none.
    pub reply: Result<PreflightReply, ProbeError>,
    /// The number of requests that were sent.
    pub requests: u64,
}

impl Probe {
    /// A request to the server at this address, without anything between them and without TLS.
    pub fn plain(to: SocketAddr) -> Probe {
        Probe {
            to,
            from: None,
            authority: to.to_string(),
            absolute: false,
            socks: None,
            tls: None,
            tunnel: None,
            http2: false,
            http3: false,
            user: None,
        }
    }

    /// Sends the request and waits for the reply, for `patience` at most. Unless the reply is `settled`, temporary failures are tried
    /// again for almost a second. Replies that say that no server can be reached are tried again as long as the check may take: a
    /// balancer that checks the health of its servers finds them only at its next checks.
    pub fn send(
        &self,
        token: &str,
        patience: Duration,
        settled: impl Fn(&Result<PreflightReply, ProbeError>) -> bool,
    ) -> ProbeResult {
        let (begin, mut requests) = (Instant::now(), 0);
        loop {
            let reply = self.once(token, patience, &mut requests);
            let patience_again = match &reply {
                Ok(seen) if seen.ours => Duration::ZERO,
                reply if settled(reply) => Duration::ZERO,
                Ok(seen) | Err(ProbeError::NoTunnel(seen)) if seen.misses_server() => patience,
                Ok(seen) | Err(ProbeError::NoTunnel(seen)) if seen.status >= 500 => AGAIN.min(patience),
                Err(ProbeError::Refused | ProbeError::Closed(_)) => AGAIN.min(patience),
                _ => Duration::ZERO,
            };
            if begin.elapsed() >= patience_again {
                return ProbeResult { reply, requests };
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn once(
        &self,
        token: &str,
        patience: Duration,
        requests: &mut u64,
    ) -> Result<PreflightReply, ProbeError> {
        let target = preflight::target(&self.authority, token, self.absolute && self.tunnel.is_none());
        let mut ask = |proof: &str| {
            let (of_tunnel, of_request) = if self.tunnel.is_some() { (proof, "") } else { ("", proof) };
            let request = preflight::request(&self.authority, &target, of_request);
            self.ask(Question { request: &request, token, of_tunnel }, patience, requests)
        };
        let first = ask("");
        let (seen, method, uri) = match (&first, &self.tunnel) {
            (Ok(seen), None) => (seen, preflight::METHOD, &target),
            (Err(ProbeError::NoTunnel(seen)), _) => (seen, "CONNECT", &self.authority),
            _ => return first,
        };
        let proof = self.user.as_ref().and_then(|user| Some((user, login::proof(user, seen, method, uri)?)));
        let Some((user, proof)) = proof else { return first };
        match ask(&proof) {
            Ok(again) | Err(ProbeError::NoTunnel(again)) if again.status == seen.status => {
                Err(ProbeError::UserRefused(user.name.clone()))
            }
            again => again,
        }
    }

    /// Sends a request on a connection of its own, and reads the reply.
    fn ask(
        &self,
        question: Question<'_>,
        patience: Duration,
        requests: &mut u64,
    ) -> Result<PreflightReply, ProbeError> {
        if self.http3 {
            *requests += 1;
            return exchange::over_quic(self, question, patience);
        }
        if self.socks.is_none() && self.tls.is_none() && self.http2 {
            // A peer that does not speak HTTP/2 is recognized by how it begins.
            http2::begin(&mut self.connect(patience)?, Instant::now() + patience)?;
        }
        let stream = self.connect(patience)?;
        *requests += 1;
        exchange::carry_out(self, stream, question, patience)
    }

    fn connect(&self, patience: Duration) -> Result<TcpStream, ProbeError> {
        let connect = || {
            let socket = Socket::new(Domain::for_address(self.to), Type::STREAM, Some(Protocol::TCP))?;
            if let Some(from) = self.from {
                socket.bind(&SocketAddr::new(from, 0).into())?;
            }
            socket.connect_timeout(&self.to.into(), patience)?;
            Ok(socket.into())
        };
        connect().map_err(|e: io::Error| match e.kind() {
            io::ErrorKind::ConnectionRefused => ProbeError::Refused,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ProbeError::NoConnection,
            io::ErrorKind::ConnectionReset => ProbeError::Closed(ProbeStep::Request),
            _ => ProbeError::Unreachable(e),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn responder(address: SocketAddr) -> io::Result<Responder> {
        Responder::start(&[ResponderPlace { address, tls: None, http3: false }])
    }

    /// Whatever comes, the answer is this.
    fn says(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer);
            }
        });
        address
    }

    #[test]
    fn a_responder_answers_and_says_what_came() {
        let place = crate::listen::ReservedAddress::new("127.0.0.1:0".parse().unwrap()).unwrap();
        let responder = responder(place.address()).unwrap();
        assert!(!responder.has_seen("12ab"));
        let found = Probe::plain(place.address()).send("12ab", PATIENCE, |_| false);
        assert!(found.reply.unwrap().ours && found.requests == 1 && responder.has_seen("12ab"));
        drop(responder);
        // The address is free again for its server.
        crate::listen::listen(place.address()).unwrap();
    }

    /// What cannot reach a server may reach it later. More refusals than fit into the time of other temporary failures.
    #[test]
    fn a_balancer_may_find_its_servers_late() {
        let refusals = 3 + AGAIN.as_millis() / PAUSE.as_millis();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for (count, stream) in (0..).zip(listener.incoming()) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec();
                let _ = stream.write_all(&if count < refusals { refusal } else { preflight::reply("1") });
            }
        });
        let found = Probe::plain(address).send("1", PATIENCE, |_| false);
        assert!(found.reply.unwrap().ours && u128::from(found.requests) == refusals + 1);
        let found =
            Probe::plain(says(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
                .send("1", PATIENCE, |_| false);
        assert!(u128::from(found.requests) < refusals, "other errors do not go away");
        let refused = says(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
        let found = Probe::plain(refused).send(
            "1",
            PATIENCE,
            |reply| matches!(reply, Ok(seen) if seen.status == 503),
        );
        assert_eq!(found.requests, 1, "what may be so is not asked for again");
    }

    #[test]
    fn troubles_by_example() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(
            Probe::plain(closed).send("1", PATIENCE, |_| false).reply,
            Err(ProbeError::Refused)
        ));
        let found = Probe::plain(says(b"")).send("1", PATIENCE, |_| false);
        assert!(
            matches!(found.reply, Err(ProbeError::Closed(ProbeStep::Request))) && found.requests > 1,
            "tried again"
        );
        let found = Probe::plain(says(b"SSH-2.0-OpenSSH_9\r\n")).send("1", PATIENCE, |_| false);
        assert!(matches!(found.reply, Err(ProbeError::NotHttp(data)) if data.starts_with(b"SSH")));
        let found =
            Probe::plain(says(b"HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n"))
                .send("1", PATIENCE, |_| false);
        assert_eq!(found.reply.unwrap().location.as_deref(), Some("/login"));
        let two = |to| Probe { http2: true, ..Probe::plain(to) };
        let found = two(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")).send("1", PATIENCE, |_| false);
        assert!(matches!(found.reply, Err(ProbeError::NotHttp2(data)) if data.starts_with(b"HTTP/1.1 400")));
        let place = crate::listen::ReservedAddress::new("127.0.0.1:0".parse().unwrap()).unwrap();
        let responder = responder(place.address()).unwrap();
        assert!(two(place.address()).send("1", PATIENCE, |_| false).reply.is_ok());
        drop(responder);
        // It takes connections, into its backlog, and never looks at them.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let found =
            Probe::plain(silent.local_addr().unwrap()).send("1", Duration::from_millis(200), |_| false);
        assert!(matches!(found.reply, Err(ProbeError::Silent(ProbeStep::Request))) && found.requests == 1);
        let nowhere = Probe { from: Some("192.0.2.1".parse().unwrap()), ..Probe::plain(closed) };
        assert!(matches!(nowhere.send("1", PATIENCE, |_| false).reply, Err(ProbeError::Unreachable(_))));
    }
}
