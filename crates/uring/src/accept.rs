//! Accepting connections: one request to the kernel for all of them.

use std::collections::VecDeque;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use io_uring::{opcode, types::Fd};
use rustix::io::Errno;

use crate::ring::{Completion, Core, Operation, Ring};
use crate::states::AcceptState;

/// Accepts the connections of a listening socket. Dropping it closes the socket.
#[derive(Debug)]
pub struct Acceptor {
    ring: Ring,
    key: usize,
}

impl Core {
    /// A connection was accepted, or could not be.
    pub(crate) fn accepted(&mut self, key: usize, completion: Completion) {
        let accepted = match completion.result {
            // SAFETY: the kernel has just opened the descriptor for this request.
            fd @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            error => Err(Errno::from_raw_os_error(-error)),
        };
        let Some(acceptor) = self.acceptors.get_mut(key) else { return };
        acceptor.armed = completion.more;
        if acceptor.closed {
            if !acceptor.armed {
                self.acceptors.remove(key);
            }
            return;
        }
        acceptor.accepted.push_back(accepted);
        if let Some(waker) = acceptor.waker.take() {
            waker.wake();
        }
    }
}

impl Ring {
    /// Accepts on a listening socket. Accepted sockets are closed when a program is executed.
    pub fn acceptor(&self, listener: OwnedFd) -> Acceptor {
        let fd = listener.into_raw_fd();
        let state = AcceptState { fd, armed: false, accepted: VecDeque::new(), waker: None, closed: false };
        Acceptor { ring: self.clone(), key: self.0.core.borrow_mut().acceptors.insert(state) }
    }
}

impl Acceptor {
    /// The listening socket, which belongs to the ring.
    pub fn fd(&self) -> RawFd {
        self.ring.0.core.borrow().acceptors[self.key].fd
    }

    /// The next connection.
    ///
    /// # Errors
    /// Why a connection could not be accepted; the next call tries again.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Result<OwnedFd, Errno>> {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        let acceptor = &mut core.acceptors[self.key];
        if let Some(accepted) = acceptor.accepted.pop_front() {
            return Poll::Ready(accepted);
        }
        acceptor.waker = Some(cx.waker().clone());
        if !acceptor.armed {
            acceptor.armed = true;
            let accept = opcode::AcceptMulti::new(Fd(acceptor.fd)).flags(libc::SOCK_CLOEXEC).build();
            let entry = accept.user_data(Operation::Accept.on(self.key));
            if let Err(error) = core.push(&entry) {
                core.acceptors[self.key].armed = false;
                return Poll::Ready(Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
            }
        }
        Poll::Pending
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let mut core = self.ring.0.core.borrow_mut();
        let acceptor = &mut core.acceptors[self.key];
        acceptor.closed = true;
        acceptor.waker = None;
        acceptor.accepted.clear();
        let (fd, armed) = (acceptor.fd, acceptor.armed);
        if armed {
            core.cancel(Operation::Accept.on(self.key));
        } else {
            core.acceptors.remove(self.key);
        }
        core.push_ignored(opcode::Close::new(Fd(fd)).build());
    }
}
