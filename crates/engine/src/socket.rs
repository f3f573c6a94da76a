//! One TCP connection on a loop.
//!
//! A socket is registered with the poller only when it has to wait, and for writing only if it has to wait to write.
//! On short exchanges that saves most of the cost of polling: a request is sent without waiting for the connect to
//! complete, and the request on an accepted connection is usually there already.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use polygraph_link::{Capture, Conn, IdleState, Nanos};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::loop_state::LoopState;
use crate::poller::register;

/// A TCP connection.
#[derive(Debug)]
pub struct Socket {
    fd: Registration,
    /// Bytes may have arrived already, so a read is tried before the socket is registered.
    eager: bool,
    /// The last send found the socket full, so the readiness to write that the poller reported before is stale.
    full: bool,
    nagle: Nagle,
    state: LoopState,
    place: usize,
    capture: Option<Box<Capture>>,
}

/// Nagle's algorithm (RFC 9293, section 3.7.4) delays small segments until the peer has acknowledged all earlier
/// ones, which takes 40 ms if the peer waits for more data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nagle {
    /// The algorithm is off.
    Off,
    /// The algorithm is on, but does not delay the next send: the peer has answered everything.
    Harmless,
    /// The algorithm would delay the next send.
    Harmful,
}

/// How the socket is registered with the poller.
#[derive(Debug)]
enum Registration {
    Not(OwnedFd),
    Reading(AsyncFd<OwnedFd>),
    Both(AsyncFd<OwnedFd>),
    /// Temporary state while the registration changes.
    Changing,
}

impl Socket {
    /// Takes over a non-blocking socket. `accepted` means that the peer opened the connection and that Nagle's
    /// algorithm is off, as on all sockets of [`crate::listen::listen`].
    pub fn new(state: LoopState, fd: OwnedFd, accepted: bool) -> Socket {
        let place = state.deadlines().enter();
        let capture = state.new_capture();
        // Most requests need one send, so an outgoing connection sets the option only if it needs it.
        let nagle = if accepted { Nagle::Off } else { Nagle::Harmless };
        Socket { fd: Registration::Not(fd), eager: accepted, full: false, nagle, state, place, capture }
    }

    fn raw(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Registration::Not(fd) => fd.as_fd(),
            Registration::Reading(fd) | Registration::Both(fd) => fd.get_ref().as_fd(),
            Registration::Changing => unreachable!("never left in between"),
        }
    }

    /// Registers the socket for reading, and also for writing if `writing`.
    fn register(&mut self, writing: bool) -> io::Result<()> {
        self.fd = match std::mem::replace(&mut self.fd, Registration::Changing) {
            Registration::Not(fd) if writing => {
                Registration::Both(register(fd, Interest::READABLE | Interest::WRITABLE)?)
            }
            Registration::Not(fd) => Registration::Reading(register(fd, Interest::READABLE)?),
            Registration::Reading(fd) if writing => {
                let fd = fd.into_inner();
                Registration::Both(register(fd, Interest::READABLE | Interest::WRITABLE)?)
            }
            registered => registered,
        };
        Ok(())
    }

    /// The socket as the poller knows it, after [`Socket::register`].
    fn registered(&self) -> &AsyncFd<OwnedFd> {
        match &self.fd {
            Registration::Reading(fd) | Registration::Both(fd) => fd,
            Registration::Not(_) | Registration::Changing => unreachable!("registered before"),
        }
    }

    /// Reads into the buffer of the loop and returns the number of bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if std::mem::take(&mut self.eager) && self.state.eager_reads().is_worth_it() {
            let read = self.state.with_buffer(|buffer| receive(self.raw(), buffer));
            self.state.eager_reads().record(read.is_ok());
            match read {
                Err(Errno::AGAIN | Errno::INTR) => {}
                read => return Poll::Ready(Ok(read?)),
            }
        }
        self.register(false)?;
        let fd = self.registered();
        loop {
            if self.state.deadlines().check(self.place, cx.waker()) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let mut guard = ready!(fd.poll_read_ready(cx))?;
            let (read, room) =
                self.state.with_buffer(|buffer| (receive(guard.get_inner(), buffer), buffer.len()));
            match read {
                // A short read has emptied the socket; the poller reports when more arrives.
                Ok(n) if n > 0 && n < room => {
                    guard.clear_ready();
                    return Poll::Ready(Ok(n));
                }
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
    }
}

fn receive(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(fd, buffer, RecvFlags::empty()).map(|(_, n)| n)
}

impl Conn for Socket {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.nagle == Nagle::Harmful {
            // If the option cannot be set, sends are late, but work.
            let _ = sockopt::set_tcp_nodelay(self.raw(), true);
            self.nagle = Nagle::Off;
        }
        loop {
            // send(2) is a little cheaper than writev(2), which goes through the file layer.
            let flags = SendFlags::NOSIGNAL;
            let sent = match parts {
                [one] => send(self.raw(), one, flags),
                several => sendmsg(self.raw(), several, &mut SendAncillaryBuffer::default(), flags),
            };
            match sent {
                Err(Errno::INTR) => {}
                sent => {
                    self.full = sent == Err(Errno::AGAIN);
                    let sent = sent?;
                    if self.nagle == Nagle::Harmless {
                        self.nagle = Nagle::Harmful;
                    }
                    if let Some(capture) = &mut self.capture {
                        keep(capture, parts, sent);
                    }
                    return Ok(sent);
                }
            }
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.register(true)?;
        let mut stale = std::mem::take(&mut self.full);
        let fd = self.registered();
        loop {
            if self.state.deadlines().check(self.place, cx.waker()) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let mut guard = ready!(fd.poll_write_ready(cx))?;
            if !std::mem::take(&mut stale) {
                guard.retain_ready();
                return Poll::Ready(Ok(()));
            }
            guard.clear_ready();
        }
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        let n = ready!(self.poll_read(cx))?;
        if self.nagle == Nagle::Harmful {
            self.nagle = Nagle::Harmless;
        }
        // No other task has run since the read, so the buffer of the loop still contains these bytes.
        if let Some(capture) = &mut self.capture {
            self.state.with_buffer(|buffer| capture.receive(&buffer[..n]));
        }
        Poll::Ready(Ok(self.state.with_buffer(|buffer| take(&buffer[..n]))))
    }

    fn idle_state(&mut self) -> IdleState {
        let (Registration::Reading(fd) | Registration::Both(fd)) = &self.fd else { return IdleState::Quiet };
        // `poll_read_ready` would count against the cooperative budget of the task. Beyond the budget it reports
        // every socket as quiet, and a scan of thousands of idle connections would miss most closed ones.
        let mut first = [0; IdleState::MAX_SHOWN];
        let peeked = fd.try_io(Interest::READABLE, |fd| {
            Ok(recv(fd, &mut first[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?.1)
        });
        match peeked {
            Ok(0) => IdleState::Closed,
            Ok(n) => IdleState::Bytes(first[..n].to_vec()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => IdleState::Quiet,
            Err(_) => IdleState::Closed,
        }
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.state.deadlines().set(self.place, at);
    }

    fn finish(&mut self) {
        // Where this fails the peer has closed or reset the connection already.
        let _ = rustix::net::shutdown(self.raw(), rustix::net::Shutdown::Write);
    }

    fn reset(&mut self) {
        // Closing sends the reset. Where the option cannot be set the connection is gone already.
        let _ = sockopt::set_socket_linger(self.raw(), Some(std::time::Duration::ZERO));
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(|capture| capture.take())
    }
}

/// Captures the first `sent` bytes of `parts`.
fn keep(capture: &mut Capture, parts: &[IoSlice<'_>], mut sent: usize) {
    for part in parts {
        let of_part = sent.min(part.len());
        capture.send(&part[..of_part]);
        sent -= of_part;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.state.deadlines().leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::timers::DEFAULT_QUANTUM;
    use polygraph_link::Link;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn on_a_loop(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build_local(Default::default())
            .unwrap();
        runtime.block_on(test);
    }

    #[test]
    fn only_a_second_send_before_the_answer_turns_nagles_algorithm_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        on_a_loop(async {
            let net = Net::new(DEFAULT_QUANTUM, None).unwrap();
            let mut socket = net.connect(None, listener.local_addr().unwrap()).unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            for _ in 0..2 {
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
                assert!(!sockopt::tcp_nodelay(socket.raw()).unwrap(), "nothing is held back");
                peer.write_all(b"!").unwrap();
                socket.recv(|data| assert_eq!(data, b"!")).await.unwrap();
            }
            for _ in 0..2 {
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
            }
            assert!(sockopt::tcp_nodelay(socket.raw()).unwrap());
        });
    }

    #[test]
    fn of_many_idle_connections_all_that_the_peer_closed_are_noticed() {
        const MANY: usize = 500;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        on_a_loop(async {
            let net = Net::new(DEFAULT_QUANTUM, None).unwrap();
            let (mut sockets, mut peers) = (Vec::new(), Vec::new());
            for _ in 0..MANY {
                let mut socket = net.connect(None, address).unwrap();
                let (mut peer, _) = listener.accept().unwrap();
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
                peer.read_exact(&mut [0]).unwrap();
                peer.write_all(b"!").unwrap();
                socket.recv(|data| assert_eq!(data, b"!")).await.unwrap();
                sockets.push(socket);
                peers.push(peer);
            }
            assert!(!sockets.iter_mut().any(Conn::is_disturbed), "nothing has happened yet");
            // Every other one is closed; the first of the rest says something that nobody asked for.
            peers[1].write_all(b"boo").unwrap();
            let kept: Vec<_> = peers.into_iter().enumerate().filter(|(at, _)| at % 2 == 1).collect();
            let deadline = net.now() + 10 * polygraph_link::SECOND;
            loop {
                net.sleep_until(net.now() + Nanos::new(1_000_000)).await;
                // All in a row, as an event loop does it that looks through its pool.
                let disturbed: Vec<bool> = sockets.iter_mut().map(Conn::is_disturbed).collect();
                if disturbed.iter().enumerate().all(|(at, &is)| is == (at % 2 == 0 || at == 1)) {
                    break;
                }
                assert!(net.now() < deadline, "{} noticed", disturbed.iter().filter(|&&is| is).count());
            }
            drop(kept);
        });
    }
}
