//! The connection below HTTP/2: the traits of the crate `h2` over a [`Conn`].

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use polygraph_link::Conn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Once so many bytes wait to be sent, they are sent before more are taken.
const SEND_BUFFER: usize = 64 * 1024;

/// Bytes that a connection carried, frames and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireBytes {
    /// The bytes that were sent.
    pub sent: u64,
    /// The bytes that were received.
    pub received: u64,
}

#[derive(Debug)]
struct Wire<C> {
    conn: C,
    /// Received bytes that were not asked for yet.
    unread: BytesMut,
    /// Written bytes that were not sent yet.
    unsent: BytesMut,
    bytes: WireBytes,
}

/// A connection as `h2` uses it. Clones are handles to the same connection.
///
/// What is written is sent by [`Transport::poll_send`], which the task that drives the connection calls after each turn: all
/// frames of a turn leave in one system call.
#[derive(Debug)]
pub struct Transport<C>(Rc<RefCell<Wire<C>>>);

impl<C> Clone for Transport<C> {
    fn clone(&self) -> Transport<C> {
        Transport(Rc::clone(&self.0))
    }
}

impl<C: Conn> Transport<C> {
    /// A connection from which `received` was read already.
    pub fn new(conn: C, received: &[u8]) -> Transport<C> {
        let bytes = WireBytes { received: received.len() as u64, sent: 0 };
        let (unread, unsent) = (BytesMut::from(received), BytesMut::new());
        Transport(Rc::new(RefCell::new(Wire { conn, unread, unsent, bytes })))
    }

    /// The bytes so far.
    pub fn bytes(&self) -> WireBytes {
        self.0.borrow().bytes
    }

    /// Sends what was written.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        wire.poll_send(cx)
    }
}

impl<C: Conn> Wire<C> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            match self.conn.try_send(&[IoSlice::new(&self.unsent)]) {
                Ok(n) => {
                    self.bytes.sent += n as u64;
                    self.unsent.advance(n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready!(self.conn.poll_writable(cx))?,
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Whether more may be written.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.len() < SEND_BUFFER { Poll::Ready(Ok(())) } else { self.poll_send(cx) }
    }
}

impl<C: Conn> AsyncRead for Transport<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Wire { conn, unread, bytes, .. } = &mut *self.0.borrow_mut();
        if unread.is_empty() {
            // The loop's buffer is larger than that of `h2`, which takes the rest later.
            return conn.poll_recv(cx, |data| {
                bytes.received += data.len() as u64;
                let fits = data.len().min(out.remaining());
                out.put_slice(&data[..fits]);
                unread.extend_from_slice(&data[fits..]);
            });
        }
        let fits = unread.len().min(out.remaining());
        out.put_slice(&unread[..fits]);
        unread.advance(fits);
        Poll::Ready(Ok(()))
    }
}

impl<C: Conn> AsyncWrite for Transport<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = &mut *self.0.borrow_mut();
        ready!(wire.poll_room(cx))?;
        parts.iter().for_each(|part| wire.unsent.extend_from_slice(part));
        Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Sending waits for [`Transport::poll_send`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = &mut *self.0.borrow_mut();
        ready!(wire.poll_send(cx))?;
        wire.conn.finish();
        Poll::Ready(Ok(()))
    }
}
