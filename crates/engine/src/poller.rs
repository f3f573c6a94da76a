//! Registration of descriptors with the loop's poller.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes the current loop's poller watch `fd` for `interest`.
///
/// # Errors
/// If the poller does not take it.
pub fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and it lives inside the
    // registration, which is removed before the descriptor is closed.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
