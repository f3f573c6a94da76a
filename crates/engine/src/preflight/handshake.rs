//! The TLS handshake of a preflight check.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use polygraph_link::{Conn, Link, Nanos};
use polygraph_tls::failure::{FailureKind, TlsFailure};
use polygraph_tls::handshake::TlsPeer;
use polygraph_traffic::Seed;
use polygraph_transport::Channel;
use polygraph_transport::tls::{self, ClientConfigs};

use super::{ProbeError, ProbeTls};
use crate::net::Net;

/// Carries out a handshake on a connection to `to`, as robots will.
///
/// # Errors
/// If it fails, or is not complete after `patience`.
pub fn shake_hands(
    stream: TcpStream,
    to: SocketAddr,
    tls: &ProbeTls,
    patience: Duration,
) -> Result<(), ProbeError> {
    match try_handshake(stream, to, tls, patience) {
        Ok(()) => Ok(()),
        Err(error) => Err(match TlsFailure::of(&error) {
            Some(failure) => ProbeError::Tls(failure.clone()),
            None if error.kind() == io::ErrorKind::TimedOut => ProbeError::Silent,
            None => ProbeError::Closed,
        }),
    }
}

fn try_handshake(stream: TcpStream, to: SocketAddr, tls: &ProbeTls, patience: Duration) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
    runtime.block_on(async {
        let net = Net::on_epoll(Nanos::from_millis(1), None)?;
        let conn = Channel::Plain(net.accepted(OwnedFd::from(stream)));
        let mut rng = Seed(0).stream("preflight", 0);
        let mut robot = ClientConfigs::default().robot(0, &tls.settings, 0, &mut rng)?;
        let wanted = TlsPeer { peer: (to, None), name: &tls.name, resume: false, protocol: tls.protocol };
        let mut secured = tls::secure(&net, conn, &mut robot, &wanted)?;
        secured.set_deadline(Some(net.now() + Nanos::new(patience.as_nanos() as u64)));
        tls::handshake(&mut secured).await?;
        match (tls.protocol, secured.protocol()) {
            (Some(wanted), chosen) if chosen != Some(wanted.as_bytes()) => {
                let text = format!("the peer did not choose the application protocol {wanted}");
                Err(TlsFailure::new(FailureKind::NothingInCommon, text).into())
            }
            _ => Ok(()),
        }
    })
}
