//! Registration of file descriptors with the poller of the loop.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes the poller of the current loop watch `fd` for `interest`.
///
/// # Errors
/// If the poller does not accept the descriptor.
pub fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and it lives inside the
    // registration, which is removed before the descriptor is closed.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
