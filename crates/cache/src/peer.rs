//! One end of a connection: reading into buffers that belong to the loop, writing without copying.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Receive buffers of one loop. A connection borrows one when bytes arrive and returns it when it has used
/// them, so idle connections, of which there are thousands, hold none.
#[derive(Debug)]
pub struct Buffers {
    free: RefCell<Vec<Vec<u8>>>,
    size: usize,
}

/// Buffers kept for reuse; more are freed.
const MAX_FREE: usize = 256;

impl Buffers {
    /// Buffers of `size` bytes.
    pub fn new(size: usize) -> Buffers {
        Buffers { free: RefCell::default(), size }
    }

    /// An empty buffer that [`Buffers::give`] should get back.
    pub fn take(&self) -> Vec<u8> {
        self.free.borrow_mut().pop().unwrap_or_else(|| vec![0; self.size])
    }

    /// Takes a buffer back. One that has grown is freed.
    pub fn give(&self, buffer: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        if buffer.len() == self.size && free.len() < MAX_FREE {
            free.push(buffer);
        }
    }
}

/// A connected socket and the bytes read from it that nobody has used yet.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    /// Either empty or a borrowed buffer with unread bytes at `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Peer {
    /// Takes over a connected socket.
    pub fn new(stream: TcpStream) -> Peer {
        Peer { stream, buffer: Vec::new(), start: 0, end: 0 }
    }

    /// Bytes read and not yet used.
    pub fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks the first `n` unread bytes as used.
    pub fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Reads more bytes behind the unread ones and gives their number, 0 at the end of the stream.
    ///
    /// # Errors
    /// Those of the socket. Nothing is lost if the future is dropped early.
    pub async fn fill(&mut self, buffers: &Buffers) -> io::Result<usize> {
        poll_fn(|cx| {
            self.make_room(buffers);
            let mut space = ReadBuf::new(&mut self.buffer[self.end..]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
                Poll::Ready(outcome) => {
                    let n = space.filled().len();
                    self.end += n;
                    Poll::Ready(outcome.map(|()| n))
                }
                Poll::Pending => {
                    self.release(buffers);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns the buffer if all its bytes are used.
    pub fn release(&mut self, buffers: &Buffers) {
        if self.end == 0 && !self.buffer.is_empty() {
            buffers.give(std::mem::take(&mut self.buffer));
        }
    }

    fn make_room(&mut self, buffers: &Buffers) {
        if self.buffer.is_empty() {
            self.buffer = buffers.take();
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
    }

    /// Writes all of `slices`, in as few system calls as the socket allows.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        poll_fn(|cx| {
            while !slices.is_empty() {
                let n = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
                if n == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                IoSlice::advance_slices(&mut slices, n);
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// True if the idle connection is still open and silent, as far as the kernel has told.
    pub fn is_quiet(&self) -> bool {
        let outcome = self.stream.try_read(&mut [0]);
        self.end == 0 && outcome.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Closes with a reset, so that the peer cannot take what it got for complete.
    pub fn abort(self) {
        // If the option cannot be set the connection is already gone.
        let _ = self.stream.set_zero_linger();
    }

    /// Closes after what was written has been read: a socket closed with unread input would reset the
    /// connection and might take the last reply with it (RFC 9112, section 9.6).
    pub async fn close_gently(mut self, buffers: &Buffers) {
        const PATIENCE: Duration = Duration::from_secs(1);
        const MAX_READS: usize = 64;
        if socket2::SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write).is_err() {
            return;
        }
        let drained = async {
            for _ in 0..MAX_READS {
                self.consume(usize::MAX - self.start);
                if !matches!(self.fill(buffers).await, Ok(1..)) {
                    break;
                }
            }
        };
        // Whichever comes first, the socket is closed now.
        let _ = tokio::time::timeout(PATIENCE, drained).await;
        self.consume(usize::MAX - self.start);
        self.release(buffers);
    }
}

/// Runs `operation`; too long is the error `TimedOut`.
pub async fn within<T>(limit: Duration, operation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, operation).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The output of whichever of two futures is ready first.
pub enum First<A, B> {
    /// The left one's.
    Left(A),
    /// The right one's.
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
