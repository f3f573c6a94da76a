//! Whether this host allows io_uring, and if not, why.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::{Probe, opcode};

use crate::ring::{Gather, Ring, Wait};

/// Why a ring cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// What the system said, and what that means.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// Tries a ring; `None` if it works.
pub fn refusal() -> Option<Unavailable> {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
    match Ring::new().and_then(|ring| ring.check()) {
        Ok(()) => None,
        Err(error) => Some(explain(&error, disabled.as_deref().map(str::trim))),
    }
}

/// What an error of the system means, if `kernel.io_uring_disabled` has this value.
fn explain(error: &io::Error, disabled: Option<&str>) -> Unavailable {
    let refusal = |reason: String, remedy: &str| Unavailable { reason, remedy: remedy.to_owned() };
    match error.raw_os_error() {
        Some(libc::EPERM) if disabled.is_some_and(|value| value != "0") => refusal(
            format!("kernel.io_uring_disabled is {}", disabled.unwrap_or_default()),
            "as root: sysctl -w kernel.io_uring_disabled=0",
        ),
        Some(libc::EPERM) => refusal(
            "io_uring_setup(2) is not permitted, which is usually the seccomp profile of a container"
                .to_owned(),
            "start the container with a profile that allows io_uring, such as --security-opt seccomp=unconfined",
        ),
        Some(libc::ENOSYS) => refusal(
            "the kernel has no io_uring, or a sandbox hides it".to_owned(),
            "use Linux 6.1 or later, or leave the sandbox",
        ),
        Some(libc::ENOMEM) => refusal(
            "the memory that the user may lock does not suffice for the ring".to_owned(),
            "raise the limit: ulimit -l 8192, or LimitMEMLOCK=8M in a service",
        ),
        Some(libc::EINVAL | libc::EOPNOTSUPP) => refusal(
            format!("the kernel lacks a part of io_uring that is needed ({error})"),
            "use Linux 6.1 or later",
        ),
        Some(libc::EMFILE | libc::ENFILE) => {
            refusal("no file descriptor is left for the ring".to_owned(), "raise the limit: ulimit -n")
        }
        _ => refusal(format!("the ring cannot be used: {error}"), "see io_uring_setup(2)"),
    }
}

impl Ring {
    /// Checks that the kernel knows all operations, and completes some.
    fn check(&self) -> io::Result<()> {
        let mut probe = Probe::new();
        self.0.core.borrow().register_probe(&mut probe)?;
        let needed = [
            opcode::AcceptMulti::CODE,
            opcode::AsyncCancel::CODE,
            opcode::Close::CODE,
            opcode::PollAdd::CODE,
            opcode::RecvMsgMulti::CODE,
            opcode::RecvMulti::CODE,
            opcode::Send::CODE,
        ];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let bell = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC)?;
        self.watch_bell(bell.as_fd())?;
        self.turn(Wait::For(Some(Duration::from_secs(1)), Gather::NOTHING))?;
        match self.was_rung() {
            true => self.check_datagrams(),
            false => Err(io::Error::other("a request was not completed")),
        }
    }

    /// Checks that one request receives several messages: the number of the operation does not tell.
    fn check_datagrams(&self) -> io::Result<()> {
        let (ours, peer) = UnixDatagram::pair()?;
        ours.set_nonblocking(true)?;
        let socket = self.datagrams(OwnedFd::from(ours))?;
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            // The first call asks, and finds nothing yet.
            if let Poll::Ready(Err(error)) = socket.poll_recv(&mut cx, |_| ()) {
                return Err(error);
            }
            peer.send(b"?")?;
            self.turn(Wait::For(Some(Duration::from_secs(1)), Gather::NOTHING))?;
            let mut count = 0;
            match socket.poll_recv(&mut cx, |_| count += 1) {
                Poll::Ready(Ok(())) if count == 1 && socket.is_receiving() => {}
                Poll::Ready(Err(error)) => return Err(error),
                _ => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_passes_its_checks_passes_them_again() {
        // Where the engine is not available, there is nothing to check.
        let Ok(ring) = Ring::new() else { return };
        for _ in 0..2 {
            ring.check_datagrams().unwrap();
        }
        ring.check().unwrap();
    }

    #[test]
    fn every_refusal_has_a_reason_and_a_remedy() {
        let of = |error| io::Error::from_raw_os_error(error);
        for (error, disabled, reason, remedy) in [
            (of(libc::EPERM), Some("2"), "io_uring_disabled is 2", "sysctl"),
            (of(libc::EPERM), Some("0"), "seccomp", "--security-opt"),
            (of(libc::EPERM), None, "seccomp", "--security-opt"),
            (of(libc::ENOSYS), None, "no io_uring", "6.1"),
            (of(libc::ENOMEM), Some("0"), "lock", "ulimit -l"),
            (of(libc::EINVAL), Some("0"), "lacks", "6.1"),
            (of(libc::EMFILE), Some("0"), "descriptor", "ulimit -n"),
            (io::Error::other("odd"), Some("0"), "odd", "io_uring_setup"),
        ] {
            let Unavailable { reason: found, remedy: advice } = explain(&error, disabled);
            assert!(found.contains(reason) && advice.contains(remedy), "{found}; {advice}");
        }
    }
}
