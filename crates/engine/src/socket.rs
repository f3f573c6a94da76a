//! One TCP connection on a loop.
//!
//! A socket is registered with the poller only when there is something to wait for, and for writing only if
//! it must wait to write. On short exchanges that saves most of the poller's share of the work: a request
//! goes out right behind the connect, and an accepted connection often has its request waiting already.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, Waker, ready};

use polygraph_link::{Conn, Nanos};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
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
        if std::mem::take(&mut self.eager) {
            match self.net.with_buffer(|buffer| rustix::io::read(self.raw(), buffer)) {
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
                let (read, room) = net
                    .with_buffer(|buffer| (rustix::io::read(guard.get_inner(), &mut *buffer), buffer.len()));
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

impl Conn for Socket {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match rustix::io::writev(self.raw(), parts) {
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
