//! Waiting for a descriptor that the ring does not read or write itself.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use io_uring::{opcode, types::Fd};

use crate::ring::{Core, Operation, Ring};
use crate::states::ReadinessState;

/// Completes when a descriptor is ready.
#[derive(Debug)]
pub struct Readiness {
    ring: Ring,
    key: usize,
}

impl Core {
    /// A wait is over.
    pub(crate) fn is_ready(&mut self, key: usize, result: i32) {
        let Some(wait) = self.waits.get_mut(key) else { return };
        wait.result = Some(result);
        if let Some(waker) = wait.waker.take() {
            waker.wake();
        }
        if wait.dropped {
            self.waits.remove(key);
        }
    }
}

impl Ring {
    /// Waits until `fd` is ready for `events` (poll(2)), or has failed. The descriptor must stay open until then.
    ///
    /// # Errors
    /// If the ring cannot take the request.
    pub fn ready(&self, fd: BorrowedFd<'_>, events: i16) -> io::Result<Readiness> {
        let mut core = self.0.core.borrow_mut();
        let key = core.waits.insert(ReadinessState { result: None, waker: None, dropped: false });
        let poll = opcode::PollAdd::new(Fd(fd.as_raw_fd()), events as u32).build();
        match core.push(&poll.user_data(Operation::Ready.on(key))) {
            Ok(()) => Ok(Readiness { ring: self.clone(), key }),
            Err(error) => {
                core.waits.remove(key);
                Err(error)
            }
        }
    }
}

impl Future for Readiness {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut core = self.ring.0.core.borrow_mut();
        let wait = &mut core.waits[self.key];
        match wait.result {
            Some(result @ ..0) => Poll::Ready(Err(io::Error::from_raw_os_error(-result))),
            Some(_) => Poll::Ready(Ok(())),
            None => {
                wait.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let mut core = self.ring.0.core.borrow_mut();
        let wait = &mut core.waits[self.key];
        if wait.result.is_some() {
            core.waits.remove(self.key);
            return;
        }
        wait.dropped = true;
        wait.waker = None;
        core.cancel(Operation::Ready.on(self.key));
    }
}
