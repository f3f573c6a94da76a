//! Waiting for file descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use polygraph_uring::Ring;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes the poller of the current loop on epoll watch `fd` for `interest`.
///
/// # Errors
/// If the poller does not accept the descriptor.
pub fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and it lives inside the
    // registration, which is removed before the descriptor is closed.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// A descriptor that a task waits for now and then, on either kind of loop.
#[derive(Debug)]
pub struct Watched {
    fd: WatchedFd,
    interest: Interest,
}

#[derive(Debug)]
enum WatchedFd {
    Epoll(AsyncFd<OwnedFd>),
    Ring(Ring, OwnedFd),
}

impl Watched {
    /// Watches `fd`, which must be non-blocking, on `ring` or, without one, on the current loop on epoll.
    ///
    /// # Errors
    /// If the poller does not accept the descriptor.
    pub fn new(ring: Option<&Ring>, fd: OwnedFd, interest: Interest) -> io::Result<Watched> {
        let fd = match ring {
            Some(ring) => WatchedFd::Ring(ring.clone(), fd),
            None => WatchedFd::Epoll(register(fd, interest)?),
        };
        Ok(Watched { fd, interest })
    }

    /// Calls `work` whenever the descriptor is ready until it returns something else than `AGAIN`.
    ///
    /// # Errors
    /// What `work` or the poller reports.
    pub async fn when_ready<R>(
        &self,
        mut work: impl FnMut(BorrowedFd<'_>) -> Result<R, Errno>,
    ) -> io::Result<R> {
        loop {
            match &self.fd {
                WatchedFd::Epoll(fd) => {
                    let mut guard = fd.ready(self.interest).await?;
                    match work(guard.get_inner().as_fd()) {
                        Err(Errno::AGAIN) => guard.clear_ready(),
                        result => return Ok(result?),
                    }
                }
                WatchedFd::Ring(ring, fd) => match work(fd.as_fd()) {
                    Err(Errno::AGAIN) => ring.ready(fd.as_fd(), self.events())?.await?,
                    result => return Ok(result?),
                },
            }
        }
    }

    /// The events of poll(2).
    fn events(&self) -> i16 {
        let of = |wanted: bool, event: i16| if wanted { event } else { 0 };
        of(self.interest.is_readable(), libc::POLLIN) | of(self.interest.is_writable(), libc::POLLOUT)
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            WatchedFd::Epoll(fd) => fd.get_ref().as_fd(),
            WatchedFd::Ring(_, fd) => fd.as_fd(),
        }
    }

    /// The descriptor, which is no longer watched.
    pub fn into_inner(self) -> OwnedFd {
        match self.fd {
            WatchedFd::Epoll(fd) => fd.into_inner(),
            WatchedFd::Ring(_, fd) => fd,
        }
    }
}
