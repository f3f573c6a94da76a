//! The connection below HTTP/2: the traits of the crate `h2` over a [`Conn`].

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use polygraph_link::Conn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Once so many bytes wait to be sent, they are sent before more are taken.
const SEND_BUFFER: usize = 64 * 1024;

/// Bytes that a connection carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireBytes {
    /// All bytes that were sent: frames with their headers.
    pub sent: u64,
    /// All bytes that were received.
    pub received: u64,
    /// Bytes of content among those that were sent.
    pub sent_content: u64,
    /// Bytes of content among those that were received.
    pub received_content: u64,
}

impl WireBytes {
    /// The bytes since `before`.
    pub fn since(self, before: WireBytes) -> WireBytes {
        WireBytes {
            sent: self.sent - before.sent,
            received: self.received - before.received,
            sent_content: self.sent_content - before.sent_content,
            received_content: self.received_content - before.received_content,
        }
    }
}

/// Counts the bytes of a connection.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: Cell<WireBytes>,
    /// The bytes that [`Meter::take`] has returned.
    taken: Cell<WireBytes>,
}

impl Meter {
    /// Changes the counters.
    pub fn count(&self, change: impl FnOnce(&mut WireBytes)) {
        let mut bytes = self.bytes.get();
        change(&mut bytes);
        self.bytes.set(bytes);
    }

    /// The bytes so far.
    pub fn all(&self) -> WireBytes {
        self.bytes.get()
    }

    /// The bytes since the last call.
    pub fn take(&self) -> WireBytes {
        self.bytes.get().since(self.taken.replace(self.bytes.get()))
    }
}

#[derive(Debug)]
struct Wire<C> {
    conn: C,
    /// Received bytes that were not asked for yet.
    unread: BytesMut,
    /// Written bytes that were not sent yet.
    unsent: BytesMut,
    meter: Rc<Meter>,
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
    /// A connection from which `received` was read already, and whose bytes `meter` counts.
    pub fn new(conn: C, received: &[u8], meter: Rc<Meter>) -> Transport<C> {
        meter.count(|bytes| bytes.received += received.len() as u64);
        let (unread, unsent) = (BytesMut::from(received), BytesMut::new());
        Transport(Rc::new(RefCell::new(Wire { conn, unread, unsent, meter })))
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
                    self.meter.count(|bytes| bytes.sent += n as u64);
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
        let Wire { conn, unread, meter, .. } = &mut *self.0.borrow_mut();
        if unread.is_empty() {
            // The loop's buffer is larger than that of `h2`, which takes the rest later.
            return conn.poll_recv(cx, |data| {
                meter.count(|bytes| bytes.received += data.len() as u64);
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
