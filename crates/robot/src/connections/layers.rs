//! The layers of a connection: the steps between a fresh connection and its first request (`docs/tls.md`).
//!
//! HTTP/3 has one step: the handshake of QUIC. With other versions they are, in this order: the SOCKS proxy, TLS to the HTTP proxy, a tunnel through the HTTP proxy ([`super::tunnels`]), TLS to the server.

use std::cell::RefCell;
use std::io;

use polygraph_link::{Conn, Link, Nanos, SECOND};
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_tls::handshake::{Peer, TlsPeer};
use polygraph_transport::Channel;
use polygraph_transport::http3::{self, HTTP3, Http3Client, StartError};
use polygraph_transport::tls::{self, ClientConfigs, RobotTls};
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use super::hop::Hop;
use super::socks::through_socks;
use super::tickets::Tickets;
use super::tunnels::{Asked, TunnelDialogue};
use crate::connections::counts;
use crate::context::RobotContext;
use crate::failure::{TransactionFailure, connect_error, stream_error, tls_failure};
use crate::request::auth::RobotIdentity;

/// The name of HTTP/2 over TLS among application protocols.
const HTTP2: &str = "h2";

/// How long a robot waits for the handshake of an HTTP/3 connection.
const ANSWER_LIMIT: Nanos = Nanos::from_secs(20);

/// How long it waits for that of an alternative, which should not keep it from the origin for long.
const ALTERNATIVE_LIMIT: Nanos = Nanos::from_secs(5);

/// When a connection was set up. The first transaction on the connection starts with the set-up.
#[derive(Clone, Copy, Debug)]
pub struct SetUp {
    /// When the connection was opened.
    pub started: Nanos,
    /// When it was ready for the first request.
    pub ended: Nanos,
}

/// The TLS of the robots of a group: settings that a robot draws once, and its sessions.
#[derive(Debug, Default)]
pub struct SecureRobots {
    configs: ClientConfigs,
    robots: FxHashMap<usize, RobotTls>,
}

impl SecureRobots {
    /// The TLS of the robot. It is drawn when the robot first needs it, from its own stream.
    fn of<L: Link>(&mut self, cx: RobotContext<'_, L>) -> Result<&mut RobotTls, TransactionFailure> {
        if !self.robots.contains_key(&cx.robot) {
            let (number, profile) = (cx.number(), cx.profile());
            let mut rng = cx.settings.seed.stream("tls", number as u64);
            let missing = || {
                TransactionFailure::new(
                    ErrorKind::Other,
                    "the URL is https, but the robot has no `ssl_wraps`",
                )
            };
            let wrap = profile.tls.draw_index(&mut rng).ok_or_else(missing)?;
            let settings = &profile.tls.items()[wrap];
            let key = cx.profile_index() << 16 | wrap;
            let made = self.configs.robot(key, settings, number, &mut rng);
            self.robots.insert(cx.robot, made.map_err(|failure| tls_failure(&failure, "in the settings"))?);
        }
        Ok(self.robots.get_mut(&cx.robot).expect("it was just inserted"))
    }
}

/// What robots of a group share while connections are set up.
#[derive(Debug, Default)]
pub struct SetUpState {
    /// Their TLS.
    pub tls: RefCell<SecureRobots>,
    /// How they get tickets.
    pub tickets: Tickets,
}

/// A connection that is ready for its first request.
#[derive(Debug)]
pub struct Layered<C: Conn> {
    /// The connection with its layers.
    pub conn: Channel<C>,
    /// The scheme by which a SOCKS proxy accepted the robot, or else the proxy that opened the tunnel.
    pub granted: Option<AuthScheme>,
}

/// Adds the layers that the first request to `hop` needs on a fresh connection of the robot, which is `who`.
///
/// # Errors
/// If a step fails, or is not complete at `deadline`.
pub async fn add_layers<L: Link>(
    cx: RobotContext<'_, L>,
    channel: Channel<L::Conn>,
    hop: Hop,
    who: RobotIdentity<'_>,
    state: &SetUpState,
    deadline: Option<Nanos>,
) -> Result<Layered<L::Conn>, TransactionFailure> {
    let mut layered = to_proxy(cx, channel, hop, who, state, deadline).await?;
    let Some(server) = hop.server.filter(|_| cx.has_tls(hop)) else { return Ok(layered) };
    let authority = cx.authority(server);
    if cx.is_tunneled(hop) {
        let mut dialogue = TunnelDialogue::new(&authority);
        loop {
            match dialogue.ask(cx, &mut layered.conn, who, &state.tickets).await? {
                Asked::Open(scheme) => {
                    layered.granted = layered.granted.or(scheme);
                    break;
                }
                Asked::Again => {}
                Asked::Reconnect => {
                    let peer = cx.socks().unwrap_or(hop.address);
                    let channel = Channel::Plain(cx.link.connect(cx.address(), peer)?);
                    layered = to_proxy(cx, channel, hop, who, state, deadline).await?;
                }
            }
        }
    }
    // The topmost layer of TLS says which protocol it carries (RFC 9113, section 3.2).
    let protocol = cx.http_version().is_multiplexed().then_some(HTTP2);
    let (peer, name) = ((hop.address, Some(server)), host_of(&authority));
    let conn = secure(cx, layered.conn, &state.tls, peer, name, protocol).await?;
    Ok(Layered { conn, ..layered })
}

/// Adds the layers up to the HTTP proxy: the SOCKS proxy, and TLS. Without these proxies, there are none.
async fn to_proxy<L: Link>(
    cx: RobotContext<'_, L>,
    mut channel: Channel<L::Conn>,
    hop: Hop,
    who: RobotIdentity<'_>,
    state: &SetUpState,
    deadline: Option<Nanos>,
) -> Result<Layered<L::Conn>, TransactionFailure> {
    channel.set_deadline(deadline);
    let with_password = match cx.socks() {
        Some(_) => {
            let account = who().map(|credentials| credentials.for_socks());
            through_socks(cx, &mut channel, hop, account).await?
        }
        None => false,
    };
    if cx.profile().secure_proxies.contains(&hop.address) {
        let name = hop.address.ip().to_string();
        let protocol = cx.http_version().is_multiplexed().then_some(HTTP2).filter(|_| !cx.has_tls(hop));
        channel = secure(cx, channel, &state.tls, (hop.address, None), &name, protocol).await?;
    }
    Ok(Layered { conn: channel, granted: with_password.then_some(AuthScheme::SocksPassword) })
}

/// Adds TLS to a peer with the name `name`, which must choose `protocol`, if there is one.
async fn secure<L: Link>(
    cx: RobotContext<'_, L>,
    channel: Channel<L::Conn>,
    robots: &RefCell<SecureRobots>,
    peer: Peer,
    name: &str,
    protocol: Option<&'static str>,
) -> Result<Channel<L::Conn>, TransactionFailure> {
    let started = cx.now();
    let mut secured = {
        let mut robots = robots.borrow_mut();
        let tls = robots.of(cx)?;
        let resume = cx.draw_event(tls.settings().resumption);
        let connected = tls::secure(&cx.link, channel, tls, &TlsPeer { peer, name, resume, protocol });
        connected.map_err(|failure| tls_failure(&failure, &format!("with {name}")))?
    };
    if let Err(error) = tls::handshake(&mut secured).await {
        return Err(failed(cx, &error, name));
    }
    if let Some(facts) = secured.take_handshake() {
        counts::handshake(cx, &facts, started);
        if let Some(protocol) = protocol
            && facts.alpn.as_deref() != Some(protocol.as_bytes())
        {
            let detail = format!("with {name}: the peer did not choose the application protocol {protocol}");
            return Err(TransactionFailure::new(ErrorKind::TlsNothingInCommon, detail));
        }
    }
    Ok(secured)
}

/// The host in the URLs of a visible server, for which its certificate must be valid.
pub fn host_of(authority: &str) -> &str {
    let host = uri::host_port(authority.as_bytes()).and_then(|(host, _)| std::str::from_utf8(host).ok());
    host.unwrap_or(authority)
}

/// Opens an HTTP/3 connection to `hop` that is ready for its first request. It was begun at `opened`.
///
/// # Errors
/// If the handshake fails, or is not complete at `deadline`.
pub async fn open_http3<L: Link>(
    cx: RobotContext<'_, L>,
    hop: Hop,
    robots: &RefCell<SecureRobots>,
    opened: Nanos,
    deadline: Option<Nanos>,
) -> Result<Http3Client, TransactionFailure> {
    // The test was checked before its start.
    let unfit =
        || TransactionFailure::new(ErrorKind::Other, "HTTP/3 needs a server with TLS, and no proxies");
    let server = hop.server.filter(|_| cx.proxy().is_none() && cx.socks().is_none()).ok_or_else(unfit)?;
    let authority = cx.authority(server);
    let name = host_of(&authority);
    let client = {
        let mut robots = robots.borrow_mut();
        let tls = robots.of(cx)?;
        let resume = cx.draw_event(tls.settings().resumption);
        let peer = (hop.target(), Some(server));
        let wanted = TlsPeer { peer, name, resume, protocol: Some(HTTP3) };
        let way = (cx.address(), hop.target());
        http3::connect(&cx.link, way, tls, &wanted, &cx.profile().http2).map_err(|error| match error {
            StartError::Connect(error) => error.into(),
            StartError::Tls(failure) => tls_failure(&failure, &format!("with {name}")),
        })?
    };
    // Without a limit, a peer that never answers would hold the transaction until QUIC itself gives up.
    let patience = if hop.alternative.is_some() { ALTERNATIVE_LIMIT } else { ANSWER_LIMIT };
    let limit = deadline.map_or(opened + patience, |deadline| deadline.min(opened + patience));
    if let Err(error) = client.ready(&cx.link, Some(limit)).await {
        let in_time = deadline.is_none_or(|deadline| cx.now() < deadline);
        return Err(match error.kind() {
            io::ErrorKind::TimedOut if in_time => {
                let detail = format!("no answer of {name} at {hop} over UDP in {} s", patience / SECOND);
                TransactionFailure::new(ErrorKind::QuicNoAnswer, detail)
            }
            io::ErrorKind::ConnectionRefused => {
                let (ip, port) = (hop.target().ip(), hop.target().port());
                let detail = format!("nothing listens on UDP port {port} of {ip}, where {name} is to be");
                TransactionFailure::new(ErrorKind::ConnectFailed, detail)
            }
            _ => match stream_error(&error) {
                Some((kind, _)) => TransactionFailure::new(kind, format!("with {name}: {error}")),
                None => failed(cx, &error, name),
            },
        });
    }
    if let Some(facts) = client.take_handshake() {
        counts::handshake(cx, &facts, opened);
    }
    Ok(client)
}

fn failed<L: Link>(cx: RobotContext<'_, L>, error: &io::Error, name: &str) -> TransactionFailure {
    counts::alert(cx, error);
    if let Some(failure) = polygraph_tls::failure::TlsFailure::of(error) {
        return tls_failure(failure, &format!("with {name}"));
    }
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        why => connect_error(why),
    };
    TransactionFailure::new(kind, format!("during the TLS handshake with {name}: {error}"))
}
