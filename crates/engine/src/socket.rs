//! One TCP connection on a loop.
//!
//! A socket is registered with the poller only when there is something to wait for, and for writing only if
//! it must wait to write. On short exchanges that saves most of the poller's share of the work: a request
//! goes out without waiting for the connect to complete, and an accepted connection has its request there already.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, Waker, ready};

use polygraph_link::{Conn, Nanos};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::net::Net;
use crate::poller::register;

/// A connection.
#[derive(Debug)]
pub struct Socket {
    fd: Registration,
    /// Bytes may be there already, so a first read is worth a system call before registering.
    eager: bool,
    net: Net,
    place: usize,
}

/// How far the socket is known to the poller.
#[derive(Debug)]
enum Registration {
    Not(OwnedFd),
    Reading(AsyncFd<OwnedFd>),
    Both(AsyncFd<OwnedFd>),
    /// Only while one of the above turns into another.
    Changing,
}

impl Socket {
    /// Takes charge of a non-blocking socket. `accepted`: the peer opened the connection.
    pub fn new(net: Net, fd: OwnedFd, accepted: bool) -> Socket {
        let place = net.watch().enter();
        Socket { fd: Registration::Not(fd), eager: accepted, net, place }
    }

    fn raw(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Registration::Not(fd) => fd.as_fd(),
            Registration::Reading(fd) | Registration::Both(fd) => fd.get_ref().as_fd(),
            Registration::Changing => unreachable!("never left in between"),
        }
    }

    /// Makes the poller watch the socket, also for writing if `writing`.
    fn register(&mut self, writing: bool) -> io::Result<&mut AsyncFd<OwnedFd>> {
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
        match &mut self.fd {
            Registration::Reading(fd) | Registration::Both(fd) => Ok(fd),
            Registration::Not(_) | Registration::Changing => unreachable!("registered above"),
        }
    }

    /// Reads into the loop's buffer and returns the number of bytes.
    async fn read(&mut self) -> io::Result<usize> {
        if std::mem::take(&mut self.eager) && self.net.eagerness().is_worth_it() {
            let read = self.net.with_buffer(|buffer| receive(self.raw(), buffer));
            self.net.eagerness().learn(read.is_ok());
            match read {
                Err(Errno::AGAIN | Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
        let (net, place) = (self.net.clone(), self.place);
        let fd = self.register(false)?;
        poll_fn(|cx| {
            loop {
                if net.watch().check(place, cx.waker()) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                let mut guard = ready!(fd.poll_read_ready(cx))?;
                let (read, room) =
                    net.with_buffer(|buffer| (receive(guard.get_inner(), buffer), buffer.len()));
                match read {
                    // A short read emptied the socket: the poller will tell when there is more.
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
        })
        .await
    }
}

fn receive(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(fd, buffer, RecvFlags::empty()).map(|(_, n)| n)
}

/// Whether a first read right after accepting is likely to find a request: that depends on whether clients send
/// behind their connect, as ours do, or wait for it to complete.
#[derive(Debug, Default)]
pub struct Eagerness {
    /// Recent successes minus failures, within a few.
    score: Cell<i8>,
    /// Connections since the last try, while tries fail.
    skipped: Cell<u8>,
}

impl Eagerness {
    const LIMIT: i8 = 8;
    /// While first reads fail, one in so many is tried all the same, to notice when that changes.
    const PROBE: u8 = 32;

    fn is_worth_it(&self) -> bool {
        if self.score.get() >= 0 {
            return true;
        }
        self.skipped.set((self.skipped.get() + 1) % Self::PROBE);
        self.skipped.get() == 0
    }

    fn learn(&self, found: bool) {
        let step = if found { 2 } else { -1 };
        self.score.set((self.score.get() + step).clamp(-Self::LIMIT, Self::LIMIT));
    }
}

impl Conn for Socket {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // A little cheaper than writev(2), which goes through the file layer.
            let flags = SendFlags::NOSIGNAL;
            let sent = match parts {
                [one] => send(self.raw(), one, flags),
                several => sendmsg(self.raw(), several, &mut SendAncillaryBuffer::default(), flags),
            };
            match sent {
                Err(Errno::INTR) => {}
                sent => return Ok(sent?),
            }
        }
    }

    async fn writable(&mut self) -> io::Result<()> {
        let (net, place) = (self.net.clone(), self.place);
        let fd = self.register(true)?;
        // The caller has just found the socket full, so readiness from before that is stale.
        let mut stale = true;
        poll_fn(|cx| {
            loop {
                if net.watch().check(place, cx.waker()) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                let mut guard = match fd.poll_write_ready(cx) {
                    Poll::Pending => {
                        stale = false;
                        return Poll::Pending;
                    }
                    Poll::Ready(guard) => guard?,
                };
                if !std::mem::take(&mut stale) {
                    guard.retain_ready();
                    return Poll::Ready(Ok(()));
                }
                guard.clear_ready();
            }
        })
        .await
    }

    async fn recv<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let n = self.read().await?;
        // No other task ran since the read, so the loop's buffer still holds these bytes.
        Ok(self.net.with_buffer(|buffer| see(&buffer[..n])))
    }

    fn is_disturbed(&mut self) -> bool {
        let (Registration::Reading(fd) | Registration::Both(fd)) = &mut self.fd else { return false };
        let mut cx = Context::from_waker(Waker::noop());
        match fd.poll_read_ready(&mut cx) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(mut guard)) => {
                let mut byte = [0; 1];
                match recv(guard.get_inner(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN) => {
                        guard.clear_ready();
                        false
                    }
                    _ => true,
                }
            }
        }
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.net.watch().set(self.place, at);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.net.watch().leave(self.place);
    }
}
