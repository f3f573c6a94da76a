//! One request and its reply over UDP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use polygraph_link::yield_now;
use polygraph_uring::Ring;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send};
use tokio::io::Interest;

use crate::loop_state::LoopState;
use crate::poller::Watched;

/// Sends `datagram` and passes each reply to `accept` until that returns a value. The socket is connected, so replies
/// come from `server` only, and a missing server is noticed at once.
///
/// # Errors
/// Any error that the system reports.
pub async fn exchange<R>(
    state: &LoopState,
    ring: Option<&Ring>,
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
        let watched = Watched::new(ring, fd, Interest::WRITABLE)?;
        watched.when_ready(|fd| send(fd, datagram, SendFlags::NOSIGNAL)).await?;
        fd = watched.into_inner();
    }
    // A pending error, such as "connection refused", does not make a socket readable.
    let watched = Watched::new(ring, fd, Interest::READABLE | Interest::ERROR)?;
    loop {
        let receive = |fd: BorrowedFd<'_>| {
            state.with_buffer(|buffer| {
                recv(fd, &mut *buffer, RecvFlags::empty()).map(|(_, n)| accept(&buffer[..n]))
            })
        };
        match watched.when_ready(receive).await {
            Ok(Some(taken)) => return Ok(taken),
            // A server that floods the socket with wrong replies must not block the loop.
            Ok(None) => yield_now().await,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => yield_now().await,
            Err(error) => return Err(error),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::{Engine, EventLoop};
    use crate::timers::DEFAULT_QUANTUM;
    use polygraph_link::{Link, Nanos};
    use std::net::UdpSocket;

    #[test]
    fn a_reply_that_fits_ends_the_exchange_and_its_absence_is_an_error() {
        for engine in Engine::available() {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = server.local_addr().unwrap();
            let answering = std::thread::spawn(move || {
                let (_, client) = server.recv_from(&mut [0; 9]).unwrap();
                for reply in ["no", "not this", "yes"] {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    server.send_to(reply.as_bytes(), client).unwrap();
                }
                server
            });
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
            let places = [address, silent.local_addr().unwrap()];
            let results = event_loop.run(async move {
                let soon = || Some(net.now() + Nanos::from_millis(100));
                let accept = |reply: &[u8]| (reply == b"yes").then_some(reply.len());
                let answered = net.exchange_datagram(None, places[0], b"?", None, accept).await;
                let silent = net.exchange_datagram(None, places[1], b"?", soon(), accept).await;
                let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
                let refused = net.exchange_datagram(None, nobody, b"?", None, accept).await;
                [answered, silent, refused].map(|result| result.map_err(|error| error.kind()))
            });
            let expected = [Ok(3), Err(io::ErrorKind::TimedOut), Err(io::ErrorKind::ConnectionRefused)];
            assert_eq!(results.unwrap(), expected, "{engine:?}");
            answering.join().unwrap();
        }
    }
}
