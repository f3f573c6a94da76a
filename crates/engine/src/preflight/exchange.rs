//! The exchange of a preflight check in the form that robots will use: with TLS or without, over HTTP/1 or HTTP/2.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_multiplex::{ClientConnection, Http2Settings};
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::handshake::TlsPeer;
use polygraph_traffic::Seed;
use polygraph_transport::Channel;
use polygraph_transport::tls::{self, ClientConfigs};
use polygraph_wire::preflight::{self, PreflightReply};

use super::{MAX_REPLY, PAUSE, ProbeError, ProbeTls};
use crate::net::Net;

/// A request, and the token that the reply must repeat.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub request: &'a [u8],
    pub token: &'a str,
}

/// Carries out a handshake on a connection to `to`, as robots will, and then asks the question, if there is one.
///
/// # Errors
/// If the handshake fails, or if there is no reply after `patience`.
pub fn over_tls(
    stream: TcpStream,
    to: SocketAddr,
    tls: &ProbeTls,
    question: Option<Question<'_>>,
    patience: Duration,
) -> Result<Option<PreflightReply>, ProbeError> {
    on_a_loop(async |net| {
        let conn = Channel::Plain(net.accepted(connection(stream)?));
        let mut rng = Seed(0).stream("preflight", 0);
        let mut robot = ClientConfigs::default().robot(0, &tls.settings, 0, &mut rng)?;
        let wanted = TlsPeer { peer: (to, None), name: &tls.name, resume: false, protocol: tls.protocol };
        let mut secured = tls::secure(&net, conn, &mut robot, &wanted)?;
        let deadline = net.now() + nanos(patience);
        until(&net, deadline, tls::handshake(&mut secured)).await?;
        match (tls.protocol, secured.protocol()) {
            (Some(wanted), chosen) if chosen != Some(wanted.as_bytes()) => {
                let text = format!("the peer did not choose the application protocol {wanted}");
                return Err(TlsFailure::new(FailureKind::NothingInCommon, text).into());
            }
            _ => {}
        }
        let Some(question) = question else { return Ok(Ok(None)) };
        let reply = match tls.protocol {
            Some(_) => ask_over_http2(&net, secured, "https", question, deadline).await,
            None => ask(&net, &mut secured, question, deadline).await,
        };
        Ok(reply.map(Some))
    })
}

/// Asks the question over HTTP/1 without TLS.
///
/// # Errors
/// If there is no reply after `patience`.
pub fn over_http1(
    stream: TcpStream,
    question: Question<'_>,
    patience: Duration,
) -> Result<PreflightReply, ProbeError> {
    on_a_loop(async |net| {
        let mut conn = net.accepted(connection(stream)?);
        Ok(ask(&net, &mut conn, question, net.now() + nanos(patience)).await)
    })
}

/// Asks the question over HTTP/2 without TLS, of a peer that is known to speak it.
///
/// # Errors
/// If there is no reply after `patience`.
pub fn over_http2(
    stream: TcpStream,
    question: Question<'_>,
    patience: Duration,
) -> Result<PreflightReply, ProbeError> {
    on_a_loop(async |net| {
        let conn = net.accepted(connection(stream)?);
        let deadline = net.now() + nanos(patience);
        Ok(ask_over_http2(&net, conn, "http", question, deadline).await)
    })
}

/// Runs an exchange on an event loop of its own.
fn on_a_loop<T>(
    exchange: impl AsyncFnOnce(Net) -> io::Result<Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
        runtime.block_on(async { exchange(Net::on_epoll(Nanos::from_millis(1), None)?).await })
    };
    run().unwrap_or_else(|error| Err(trouble(&error)))
}

/// The result of `work`, or an error at `deadline`: the deadlines of connections are watched by the drivers of loops only.
async fn until<R>(net: &Net, deadline: Nanos, work: impl Future<Output = io::Result<R>>) -> io::Result<R> {
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

fn trouble(error: &io::Error) -> ProbeError {
    match TlsFailure::of(error) {
        Some(failure) => ProbeError::Tls(failure.clone()),
        None if error.kind() == io::ErrorKind::TimedOut => ProbeError::Silent,
        None => ProbeError::Closed,
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
    until(net, deadline, send_all(conn, question.request)).await.map_err(|error| trouble(&error))?;
    let (mut data, mut seen) = (Vec::new(), None);
    loop {
        let part = conn.recv(|part| (part.is_empty(), data.extend_from_slice(part)));
        let ended = match until(net, deadline, part).await {
            Ok((is_end, ())) => is_end.then_some(ProbeError::Closed),
            Err(error) => Some(trouble(&error)),
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
