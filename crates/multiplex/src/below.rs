//! The connection below a session, whatever its type: the driver uses it, and a stream that is alone.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use polygraph_link::Conn;

/// What a session does with the connection below.
pub trait Below {
    /// As [`Conn::try_send`].
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize>;

    /// As [`Conn::poll_writable`].
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// As [`Conn::poll_recv`].
    fn poll_recv(&self, cx: &mut Context<'_>, take: &mut dyn FnMut(&[u8])) -> Poll<io::Result<()>>;

    /// As [`Conn::finish`].
    fn finish(&self);

    /// Drops the connection. What is done with it later fails.
    fn close(&self);
}

impl fmt::Debug for dyn Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Below").finish_non_exhaustive()
    }
}

/// A connection until it is closed.
impl<C: Conn> Below for RefCell<Option<C>> {
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let conn = &mut *self.borrow_mut();
        conn.as_mut().map_or_else(closed, |conn| conn.try_send(&[IoSlice::new(bytes)]))
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let conn = &mut *self.borrow_mut();
        conn.as_mut().map_or_else(|| Poll::Ready(closed()), |conn| conn.poll_writable(cx))
    }

    fn poll_recv(&self, cx: &mut Context<'_>, take: &mut dyn FnMut(&[u8])) -> Poll<io::Result<()>> {
        let conn = &mut *self.borrow_mut();
        conn.as_mut().map_or_else(|| Poll::Ready(closed()), |conn| conn.poll_recv(cx, take))
    }

    fn finish(&self) {
        self.borrow_mut().iter_mut().for_each(Conn::finish);
    }

    fn close(&self) {
        drop(self.take());
    }
}

fn closed<R>() -> io::Result<R> {
    Err(io::ErrorKind::NotConnected.into())
}
