//! A connection with bytes that were received but not used yet.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use polygraph_link::{Conn, send_buffer};

/// Receive buffers of one event loop. A connection borrows one when bytes arrive and returns it when it has used
/// them, so idle connections, of which there are thousands, occupy none.
#[derive(Debug)]
pub struct Buffers {
    free: RefCell<Vec<Vec<u8>>>,
    /// Bytes of the free buffers.
    free_bytes: Cell<usize>,
    size: usize,
}

/// Memory kept for reuse, as the number of buffers of the usual size; more is freed.
const MAX_FREE: usize = 256;

impl Buffers {
    /// Buffers of `size` bytes.
    pub fn new(size: usize) -> Buffers {
        Buffers { free: RefCell::default(), free_bytes: Cell::new(0), size }
    }

    fn take(&self) -> Vec<u8> {
        let Some(buffer) = self.free.borrow_mut().pop() else { return Vec::with_capacity(self.size) };
        self.free_bytes.set(self.free_bytes.get() - buffer.capacity());
        buffer
    }

    /// Takes back a buffer, which may have grown.
    fn give_back(&self, mut buffer: Vec<u8>) {
        let bytes = self.free_bytes.get() + buffer.capacity();
        if bytes <= MAX_FREE * self.size {
            buffer.clear();
            self.free_bytes.set(bytes);
            self.free.borrow_mut().push(buffer);
        }
    }
}

/// A connection with bytes that were received but not used yet.
#[derive(Debug)]
pub struct BufferedConn<C> {
    /// The connection.
    pub conn: C,
    /// The unread bytes; no memory is allocated while there are none.
    buffer: Vec<u8>,
    used: usize,
}

impl<C: Conn> BufferedConn<C> {
    /// Wraps a connection on which nothing was received yet.
    pub fn new(conn: C) -> BufferedConn<C> {
        BufferedConn { conn, buffer: Vec::new(), used: 0 }
    }

    /// The bytes that were received and not used yet.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Marks the first `n` unread bytes as used.
    pub fn consume(&mut self, n: usize) {
        self.used = (self.used + n).min(self.buffer.len());
    }

    /// Receives more bytes after the unread ones, and returns their number; 0 at the end of the stream.
    ///
    /// # Errors
    /// As [`Conn::recv`]. No byte is lost if the future is dropped early.
    pub async fn fill(&mut self, buffers: &Buffers) -> io::Result<usize> {
        self.release(buffers);
        if self.buffer.capacity() == 0 {
            (self.buffer, self.used) = poll_fn(|cx| self.conn.poll_take(cx, || buffers.take())).await?;
            return Ok(self.buffer.len() - self.used);
        }
        let (buffer, used) = (&mut self.buffer, &mut self.used);
        self.conn
            .recv(|bytes| {
                buffer.drain(..std::mem::take(used));
                buffer.extend_from_slice(bytes);
                bytes.len()
            })
            .await
    }

    /// Sends `head` and all unread bytes to another connection, if the head fits before them in the buffer: then nothing has to be copied. Returns the
    /// number of bytes, or `None` if it does not fit. All bytes are then used.
    ///
    /// # Errors
    /// As [`polygraph_link::send_buffer`].
    pub async fn pass_on(&mut self, head: &[u8], to: &mut impl Conn) -> Option<io::Result<usize>> {
        let start = self.used.checked_sub(head.len())?;
        self.buffer[start..self.used].copy_from_slice(head);
        let bytes = self.buffer.len() - start;
        let sent = send_buffer(to, &mut self.buffer, start).await;
        self.used = self.buffer.len();
        Some(sent.map(|()| bytes))
    }

    /// Returns the buffer if all its bytes are used.
    pub fn release(&mut self, buffers: &Buffers) {
        if self.used == self.buffer.len() && self.buffer.capacity() > 0 {
            buffers.give_back(std::mem::take(&mut self.buffer));
            self.used = 0;
        }
    }

    /// True if this idle connection is open and nothing arrived on it.
    pub fn is_quiet(&mut self) -> bool {
        self.unread().is_empty() && !self.conn.is_disturbed()
    }
}

/// The output of the first of two futures to complete.
pub enum First<A, B> {
    /// The output of the left future.
    Left(A),
    /// The output of the right future.
    Right(B),
}

/// Waits for the first of two futures and drops the other.
pub async fn first<A, B>(left: impl Future<Output = A>, right: impl Future<Output = B>) -> First<A, B> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|cx| {
        if let Poll::Ready(output) = left.as_mut().poll(cx) {
            return Poll::Ready(First::Left(output));
        }
        right.as_mut().poll(cx).map(First::Right)
    })
    .await
}
