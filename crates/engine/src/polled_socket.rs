//! A TCP socket on a loop on epoll.
//!
//! It is registered with the poller only when it has to wait, and for writing only if it has to wait to write.
//! On short exchanges that saves most of the cost of polling: a request is sent without waiting for the connect to
//! complete, and the request on an accepted connection is usually there already.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use polygraph_link::IdleState;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::loop_state::LoopState;
use crate::poller::register;

/// A non-blocking TCP socket.
#[derive(Debug)]
pub struct PolledSocket {
    fd: Registration,
    /// Bytes may have arrived already, so a read is tried before the socket is registered.
    eager: bool,
    /// The last send found the socket full, so the readiness to write that the poller reported before is stale.
    full: bool,
    /// The socket is closed right after the next send.
    ends_soon: bool,
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

impl PolledSocket {
    /// Takes over a non-blocking socket. `eager` means that bytes may have arrived already.
    pub fn new(fd: OwnedFd, eager: bool) -> PolledSocket {
        PolledSocket { fd: Registration::Not(fd), eager, full: false, ends_soon: false }
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

    /// Reads into the buffer of the loop and returns the number of bytes; 0 is the end of the stream.
    ///
    /// # Errors
    /// What the system reports.
    pub fn poll_read(&mut self, state: &LoopState, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if std::mem::take(&mut self.eager) && state.eager_reads().is_worth_it() {
            let read = state.with_buffer(|buffer| receive(&*self, buffer));
            state.eager_reads().record(read.is_ok());
            match read {
                Err(Errno::AGAIN | Errno::INTR) => {}
                read => return Poll::Ready(Ok(read?)),
            }
        }
        self.register(false)?;
        let fd = self.registered();
        loop {
            let mut guard = ready!(fd.poll_read_ready(cx))?;
            let (read, room) = state.with_buffer(|buffer| (receive(guard.get_inner(), buffer), buffer.len()));
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

    /// Sends as much of `parts` as the socket takes now.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing, otherwise what the system reports.
    pub fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // send(2) is a little cheaper than writev(2), which goes through the file layer.
            let mut flags = SendFlags::NOSIGNAL;
            flags.set(SendFlags::MORE, self.ends_soon);
            let sent = match parts {
                [one] => send(&*self, one, flags),
                several => sendmsg(&*self, several, &mut SendAncillaryBuffer::default(), flags),
            };
            if sent != Err(Errno::INTR) {
                self.full = sent == Err(Errno::AGAIN);
                return Ok(sent?);
            }
        }
    }

    /// Announces that the socket is closed right after the next send, so that it may hold that back until then.
    pub fn expect_end(&mut self) {
        self.ends_soon = true;
    }

    /// Ready when another try to send is worth it. To be called only after a `WouldBlock`.
    ///
    /// # Errors
    /// If the poller does not accept the socket.
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.register(true)?;
        let mut stale = std::mem::take(&mut self.full);
        let fd = self.registered();
        loop {
            let mut guard = ready!(fd.poll_write_ready(cx))?;
            if !std::mem::take(&mut stale) {
                guard.retain_ready();
                return Poll::Ready(Ok(()));
            }
            guard.clear_ready();
        }
    }

    /// What happened on the idle connection.
    pub fn idle_state(&self) -> IdleState {
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
}

impl AsFd for PolledSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Registration::Not(fd) => fd.as_fd(),
            Registration::Reading(fd) | Registration::Both(fd) => fd.get_ref().as_fd(),
            Registration::Changing => unreachable!("never left in between"),
        }
    }
}

fn receive(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(fd, buffer, RecvFlags::empty()).map(|(_, n)| n)
}
