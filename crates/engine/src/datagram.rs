//! One request and its reply over UDP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use polygraph_link::yield_now;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send};
use tokio::io::Interest;

use crate::loop_state::LoopState;
use crate::poller::register;

/// Sends `datagram` and passes each reply to `accept` until that returns a value. The socket is connected, so replies
/// come from `server` only, and a missing server is noticed at once.
///
/// # Errors
/// Any error that the system reports.
pub async fn exchange<R>(
    state: &LoopState,
    from: Option<IpAddr>,
    server: SocketAddr,
    datagram: &[u8],
    mut accept: impl FnMut(&[u8]) -> Option<R>,
) -> io::Result<R> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let mut fd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    if let Some(from) = from {
        bind(&fd, &SocketAddr::new(from, 0))?;
    }
    connect(&fd, &server)?;
    // A datagram is sent at once unless the queue of the network device is full, which is rare: the socket is
    // registered for writing only then.
    if try_send(&fd, datagram)?.is_none() {
        fd = send_when_possible(fd, datagram).await?;
    }
    // A pending error, such as "connection refused", does not make a socket readable.
    let interest = Interest::READABLE | Interest::ERROR;
    let fd = register(fd, interest)?;
    loop {
        let mut guard = fd.ready(interest).await?;
        let taken = state.with_buffer(|buffer| {
            recv(guard.get_inner(), &mut *buffer, RecvFlags::empty()).map(|(_, n)| accept(&buffer[..n]))
        });
        match taken {
            Ok(Some(taken)) => return Ok(taken),
            // A server that floods the socket with wrong replies must not block the loop.
            Ok(None) | Err(Errno::INTR) => yield_now().await,
            Err(Errno::AGAIN) => guard.clear_ready(),
            Err(error) => return Err(error.into()),
        }
    }
}

/// `None` if the send buffer is full.
fn try_send(fd: impl AsFd, datagram: &[u8]) -> io::Result<Option<()>> {
    loop {
        match send(&fd, datagram, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(Some(())),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

async fn send_when_possible(fd: OwnedFd, datagram: &[u8]) -> io::Result<OwnedFd> {
    let fd = register(fd, Interest::WRITABLE)?;
    loop {
        let mut guard = fd.writable().await?;
        if try_send(guard.get_inner(), datagram)?.is_some() {
            break;
        }
        guard.clear_ready();
    }
    Ok(fd.into_inner())
}
