//! The exchange of a preflight check in the form that robots will use: through a SOCKS proxy, in a tunnel, with TLS or without, over
//! HTTP/1 or HTTP/2.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_multiplex::{ClientConnection, Http2Settings};
use polygraph_robot::failure::stream_error;
use polygraph_stats::ErrorKind;
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::handshake::TlsPeer;
use polygraph_traffic::Seed;
use polygraph_transport::Channel;
use polygraph_transport::http3::{self, StartError};
use polygraph_transport::socks::{self, SocksFailure};
use polygraph_transport::tls::{self, ClientConfigs};
use polygraph_transport::tunnel::{self, TunnelFailure};
use polygraph_wire::preflight::{self, PreflightReply};
use polygraph_wire::socks::{Destination, SocksCredentials, SocksError};

use super::{MAX_REPLY, PAUSE, Probe, ProbeError, ProbeStep, ProbeTls, ProbeUser};
use crate::net::Net;

/// A request, and the token that the reply must repeat.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub request: &'a [u8],
    pub token: &'a str,
    /// Field lines of the question for a tunnel.
    pub of_tunnel: &'a str,
}

/// Adds the layers to a connection to the peer of `probe` that robots will add, and then asks the question.
///
/// # Errors
/// If a step fails, or if there is no reply after `patience`.
pub fn carry_out(
    probe: &Probe,
    stream: TcpStream,
    question: Question<'_>,
    patience: Duration,
) -> Result<PreflightReply, ProbeError> {
    on_a_loop(async |net| {
        let deadline = net.now() + nanos(patience);
        let conn = net.accepted(connection(stream).map_err(|error| trouble(&error, ProbeStep::Request))?);
        let mut conn = Channel::Plain(conn);
        if let Some(to) = &probe.socks {
            through_socks(&net, &mut conn, to, probe.user.as_ref(), deadline).await?;
        }
        let mut top = None;
        if let Some(tls) = &probe.tls {
            conn = secure(&net, conn, probe.to, tls, deadline, ProbeStep::Tls).await?;
            top = Some(tls);
        }
        if let Some(tls) = &probe.tunnel {
            open_tunnel(&net, &mut conn, &probe.authority, question.of_tunnel, deadline).await?;
            conn = secure(&net, conn, probe.to, tls, deadline, ProbeStep::ServerTls).await?;
            top = Some(tls);
        }
        match top {
            Some(tls) if tls.protocol.is_some() => {
                ask_over_http2(&net, conn, "https", question, deadline).await
            }
            None if probe.http2 => ask_over_http2(&net, conn, "http", question, deadline).await,
            _ => ask(&net, &mut conn, question, deadline).await,
        }
    })
}

/// Opens a QUIC connection to the peer of `probe`, and asks the question over HTTP/3.
///
/// # Errors
/// If the handshake fails, or if there is no reply after `patience`.
pub fn over_quic(
    probe: &Probe,
    question: Question<'_>,
    patience: Duration,
) -> Result<PreflightReply, ProbeError> {
    on_a_loop(async |net| {
        let deadline = net.now() + nanos(patience);
        let Some(tls) = &probe.tls else {
            return Err(ProbeError::Unreachable(io::ErrorKind::Unsupported.into()));
        };
        let failed = |failure: TlsFailure| ProbeError::Tls(ProbeStep::Quic, failure);
        let mut rng = Seed(0).stream("preflight", 0);
        let mut robot = ClientConfigs::default().robot(0, &tls.settings, 0, &mut rng).map_err(failed)?;
        let wanted =
            TlsPeer { peer: (probe.to, None), name: &tls.name, resume: false, protocol: tls.protocol };
        let way = (probe.from, probe.to);
        let client = http3::connect(&net, way, &mut robot, &wanted, &Http2Settings::default());
        let client = client.map_err(|error| match error {
            StartError::Connect(error) => ProbeError::Unreachable(io::Error::other(error.to_string())),
            StartError::Tls(failure) => failed(failure),
        })?;
        client.ready(&net, Some(deadline)).await.map_err(no_quic)?;
        ask(&net, &mut http3::open_stream::<<Net as Link>::Conn>(&client), question, deadline).await
    })
}

fn no_quic(error: io::Error) -> ProbeError {
    match stream_error(&error) {
        Some((kind, _)) => ProbeError::Quic(kind, error),
        None if error.kind() == io::ErrorKind::ConnectionRefused => ProbeError::Refused,
        None if error.kind() == io::ErrorKind::ConnectionAborted => {
            ProbeError::Quic(ErrorKind::ConnectFailed, error)
        }
        None => trouble(&error, ProbeStep::Quic),
    }
}

/// Runs an exchange on an event loop of its own.
fn on_a_loop<T>(exchange: impl AsyncFnOnce(Net) -> Result<T, ProbeError>) -> Result<T, ProbeError> {
    let made = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
        let net = runtime.block_on(async { Net::on_epoll(Nanos::from_millis(1), None) })?;
        io::Result::Ok((runtime, net))
    };
    let (runtime, net) = made().map_err(ProbeError::Unreachable)?;
    runtime.block_on(exchange(net))
}

/// Lets a SOCKS proxy connect to `to`.
async fn through_socks<C: Conn>(
    net: &Net,
    conn: &mut C,
    to: &Destination,
    user: Option<&ProbeUser>,
    deadline: Nanos,
) -> Result<(), ProbeError> {
    let account =
        user.map(|user| SocksCredentials { user: user.name.clone(), password: user.password.clone() });
    let opened = until(net, deadline, async { Ok(socks::connect(conn, to.clone(), account).await) }).await;
    match opened.map_err(|error| trouble(&error, ProbeStep::Socks))? {
        Ok(_) => Ok(()),
        Err(SocksFailure::Closed(_)) => Err(ProbeError::Closed(ProbeStep::Socks)),
        Err(SocksFailure::Send(error) | SocksFailure::Receive(error)) => {
            Err(trouble(&error, ProbeStep::Socks))
        }
        Err(SocksFailure::Refused { error, .. }) => Err(match (error, user) {
            (SocksError::NoMethod | SocksError::NoCredentials, None) => ProbeError::UserDemanded,
            (SocksError::Denied(_), Some(user)) => ProbeError::UserRefused(user.name.clone()),
            (error, _) => ProbeError::NoSocks(error),
        }),
    }
}

/// Carries out a TLS handshake with `peer`, as robots will.
async fn secure<C: Conn + 'static>(
    net: &Net,
    conn: Channel<C>,
    peer: SocketAddr,
    tls: &ProbeTls,
    deadline: Nanos,
    step: ProbeStep,
) -> Result<Channel<C>, ProbeError>
where
    Net: Link<Conn = C>,
{
    let failed = |failure: TlsFailure| ProbeError::Tls(step, failure);
    let mut rng = Seed(0).stream("preflight", 0);
    let mut robot = ClientConfigs::default().robot(0, &tls.settings, 0, &mut rng).map_err(failed)?;
    let wanted = TlsPeer { peer: (peer, None), name: &tls.name, resume: false, protocol: tls.protocol };
    let mut secured = tls::secure(net, conn, &mut robot, &wanted).map_err(failed)?;
    let shaken = until(net, deadline, tls::handshake(&mut secured)).await;
    shaken.map_err(|error| trouble(&error, step))?;
    match (tls.protocol, secured.protocol()) {
        (Some(wanted), chosen) if chosen != Some(wanted.as_bytes()) => {
            let text = format!("the peer did not choose the application protocol {wanted}");
            Err(failed(TlsFailure::new(FailureKind::NothingInCommon, text)))
        }
        _ => Ok(secured),
    }
}

/// Asks a proxy for a tunnel to `authority`.
async fn open_tunnel<C: Conn>(
    net: &Net,
    conn: &mut C,
    authority: &str,
    lines: &str,
    deadline: Nanos,
) -> Result<(), ProbeError> {
    let opened = until(net, deadline, async { Ok(tunnel::connect(conn, authority, lines.as_bytes()).await) });
    match opened.await.map_err(|error| trouble(&error, ProbeStep::Tunnel))? {
        Ok(_) => Ok(()),
        Err(TunnelFailure::Io(error)) => Err(trouble(&error, ProbeStep::Tunnel)),
        Err(TunnelFailure::Closed(_)) => Err(ProbeError::Closed(ProbeStep::Tunnel)),
        Err(TunnelFailure::NotHttp(start)) => Err(ProbeError::TunnelNotHttp(start)),
        Err(TunnelFailure::Refused { status, demand, .. }) => {
            let challenges = demand.challenges.iter();
            Err(ProbeError::NoTunnel(PreflightReply {
                status,
                ours: false,
                location: None,
                server: None,
                challenges: challenges.map(|field| String::from_utf8_lossy(field).into_owned()).collect(),
            }))
        }
    }
}

/// The result of `work`, or an error at `deadline`: the deadlines of connections are watched by the drivers of loops only.
pub async fn until<R>(
    net: &Net,
    deadline: Nanos,
    work: impl Future<Output = io::Result<R>>,
) -> io::Result<R> {
    let (mut work, mut sleep) = (pin!(work), pin!(net.sleep_until(deadline)));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Pending => sleep.as_mut().poll(cx).map(|_| Err(io::ErrorKind::TimedOut.into())),
        ready => ready,
    })
    .await
}

fn connection(stream: TcpStream) -> io::Result<OwnedFd> {
    stream.set_nonblocking(true)?;
    Ok(OwnedFd::from(stream))
}

fn nanos(time: Duration) -> Nanos {
    Nanos::new(time.as_nanos() as u64)
}

fn trouble(error: &io::Error, step: ProbeStep) -> ProbeError {
    match TlsFailure::of(error) {
        Some(failure) => ProbeError::Tls(step, failure.clone()),
        None if error.kind() == io::ErrorKind::TimedOut => ProbeError::Silent(step),
        None => ProbeError::Closed(step),
    }
}

async fn ask_over_http2<C: Conn>(
    net: &Net,
    conn: C,
    scheme: &'static str,
    question: Question<'_>,
    deadline: Nanos,
) -> Result<PreflightReply, ProbeError> {
    let connection = ClientConnection::start(net, conn, scheme, &Http2Settings::default());
    ask(net, &mut connection.open_stream(), question, deadline).await
}

/// Sends the request, and reads the reply until `deadline`.
async fn ask<C: Conn>(
    net: &Net,
    conn: &mut C,
    question: Question<'_>,
    deadline: Nanos,
) -> Result<PreflightReply, ProbeError> {
    let mut deadline = deadline;
    until(net, deadline, send_all(conn, question.request))
        .await
        .map_err(|error| trouble(&error, ProbeStep::Request))?;
    let (mut data, mut seen) = (Vec::new(), None);
    loop {
        let part = conn.recv(|part| (part.is_empty(), data.extend_from_slice(part)));
        let ended = match until(net, deadline, part).await {
            Ok((is_end, ())) => is_end.then_some(ProbeError::Closed(ProbeStep::Request)),
            Err(error) => Some(trouble(&error, ProbeStep::Request)),
        };
        let is_first = seen.is_none();
        seen = match preflight::read(&data, question.token) {
            Ok(found) => found,
            Err(_) => return Err(ProbeError::NotHttp(data)),
        };
        if seen.as_ref().is_some_and(|seen| seen.ours) || ended.is_some() || data.len() > MAX_REPLY {
            return seen.ok_or(ended.unwrap_or(ProbeError::NotHttp(data)));
        }
        // If the device drops the header field, the body has the token, so a foreign reply is read to its end.
        if is_first && seen.is_some() {
            deadline = deadline.min(net.now() + nanos(PAUSE));
        }
    }
}
