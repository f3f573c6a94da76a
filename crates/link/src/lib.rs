//! The interface between protocol code and the event loop it runs on: clock, timers, connections, datagrams, tasks.
//!
//! Robots, origin servers and the built-in proxy use nothing but [`Link`] and [`Conn`]. The crate `engine` implements
//! the two traits with sockets, one link per event loop; the crate `sim` implements them with a virtual clock and
//! connections in memory. Either way a transaction is one `async` function that reads top-down.
//!
//! A link belongs to one thread: nothing here is `Send`, nothing is shared between event loops.

mod capture;
mod datagram;
mod nanos;

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll};

pub use capture::Capture;
pub use datagram::{Datagrams, IncomingDatagrams, NoDatagrams, OutgoingDatagrams};
pub use nanos::{Nanos, SECOND, nanos};

/// Why [`Link::connect`] fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// All local ports of the configured range or of the system are in use.
    #[error("out of local ports")]
    NoPort,
    /// The process has no file descriptor left.
    #[error("out of file descriptors")]
    NoDescriptor,
    /// The system has no memory left for connections.
    #[error("out of memory for connections")]
    NoMemory,
    /// The local address does not belong to this machine.
    #[error("cannot bind to the local address: {0}")]
    Bind(io::ErrorKind),
    /// The system refused at once.
    #[error("cannot connect: {0}")]
    Refused(io::ErrorKind),
}

/// An event loop as the code that runs on it sees it. Clones are handles to the same loop.
pub trait Link: Clone + 'static {
    /// The connections of this link.
    type Conn: Conn;
    /// The UDP sockets of this link.
    type Datagrams: Datagrams;

    /// The current time.
    fn now(&self) -> Nanos;

    /// The time of day as an HTTP date, to the second.
    fn http_date(&self) -> [u8; 29];

    /// The time of day in seconds since 1970.
    fn unix_seconds(&self) -> i64;

    /// The time of day in milliseconds since 1970.
    fn unix_millis(&self) -> u64;

    /// Completes at `at` or, on a loaded machine, later, never earlier.
    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()>;

    /// Starts a connection to `to`, from the address `from` if given; the link chooses the local port. The
    /// connection is usable at once: the first [`Conn::try_send`] may report `WouldBlock` until the peer has
    /// accepted.
    ///
    /// # Errors
    /// If a local resource is missing, or the system refuses at once.
    fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> Result<Self::Conn, ConnectError>;

    /// Sends `datagram` over UDP to `server`, from the address `from` if given (the link chooses the port), and
    /// passes each datagram that comes back from there to `accept` until that returns something. The bytes are
    /// in a buffer that belongs to the loop.
    ///
    /// # Errors
    /// `TimedOut` at `until`; otherwise what the system reports, for example that nobody listens there.
    fn exchange_datagram<R>(
        &self,
        from: Option<IpAddr>,
        server: SocketAddr,
        datagram: &[u8],
        until: Option<Nanos>,
        accept: impl FnMut(&[u8]) -> Option<R>,
    ) -> impl Future<Output = io::Result<R>>;

    /// Opens a UDP socket that exchanges datagrams with `to` only, from the address `from` if given; the link chooses the local
    /// port.
    ///
    /// # Errors
    /// If a local resource is missing, or the system refuses at once.
    fn connect_datagrams(
        &self,
        from: Option<IpAddr>,
        to: SocketAddr,
    ) -> Result<Self::Datagrams, ConnectError>;

    /// Another handle to the same loop, for which [`Link::take_disturbed`] reports only connections that it or its clones have opened.
    fn separate(&self) -> Self {
        self.clone()
    }

    /// The owners, as given to [`Conn::note_idle`], of the idle connections on which something has happened since the last call, in
    /// ascending order. `None` if the link does not know, so that every connection must be asked.
    fn take_disturbed(&self) -> Option<Vec<u32>> {
        None
    }

    /// Runs `task` on this loop.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);
}

/// What happened on a connection while it was idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleState {
    /// Nothing happened.
    Quiet,
    /// The peer sent bytes without a request: the first of them, at most [`IdleState::MAX_SHOWN`].
    Bytes(Vec<u8>),
    /// The peer closed or reset the connection.
    Closed,
}

impl IdleState {
    /// The most unexpected bytes that [`IdleState::Bytes`] shows.
    pub const MAX_SHOWN: usize = 60;
}

/// A byte stream connection. Dropping it closes it.
#[expect(async_fn_in_trait, reason = "connections never leave their loop, so no Send bound is wanted")]
pub trait Conn: 'static {
    /// Sends as much of `parts` as the connection takes now and returns the number of bytes.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now, otherwise what the system reports.
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ready when [`Conn::try_send`] is worth another try; until then, the task is woken when it is. Call it only
    /// after a `WouldBlock`: otherwise it may wait for a change that never comes.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, otherwise what the system reports.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Passes bytes that have arrived to `take`; an empty slice means that the peer has closed. The bytes are in a
    /// buffer that belongs to the loop: `take` copies what it does not consume. If nothing has arrived, `take` is not
    /// called, and the task is woken when something does.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, otherwise what the system reports.
    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>>;

    /// As [`Conn::poll_recv`] for a caller that keeps the bytes: returns a buffer and the position at which they begin in it; what is
    /// before has no meaning. The buffer is the empty one that `spare` returns, or one of the link, which then keeps the spare one. `spare`
    /// is not called if the peer has closed.
    ///
    /// # Errors
    /// As [`Conn::poll_recv`].
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Poll<io::Result<(Vec<u8>, usize)>> {
        self.poll_recv(cx, |bytes| {
            let mut buffer = if bytes.is_empty() { Vec::new() } else { spare() };
            buffer.extend_from_slice(bytes);
            (buffer, 0)
        })
    }

    /// As [`Conn::try_send`] of what is in `buffer` from `start` on. If the link takes all of it, it may keep the buffer and leave
    /// another, empty one.
    ///
    /// # Errors
    /// As [`Conn::try_send`].
    fn try_send_buffer(&mut self, buffer: &mut Vec<u8>, start: usize) -> io::Result<usize> {
        self.try_send(&[IoSlice::new(&buffer[start..])])
    }

    /// Completes when [`Conn::poll_writable`] is ready.
    ///
    /// # Errors
    /// As [`Conn::poll_writable`].
    async fn writable(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// Waits for bytes and passes them to `take`, as [`Conn::poll_recv`]. If the future is dropped before it
    /// completes, no byte is lost.
    ///
    /// # Errors
    /// As [`Conn::poll_recv`].
    async fn recv<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let mut take = Some(take);
        poll_fn(|cx| {
            self.poll_recv(cx, |bytes| take.take().map(|take| take(bytes)))
                .map_ok(|taken| taken.expect("bytes are passed on once"))
        })
        .await
    }

    /// Tells that the connection is idle until it is used again. If something happens on it, [`Link::take_disturbed`] reports `owner`.
    fn note_idle(&mut self, _owner: u32) {}

    /// What happened on this idle connection. Costs no system call unless something did.
    fn idle_state(&mut self) -> IdleState;

    /// True if the peer closed this idle connection or sent bytes without a request.
    fn is_disturbed(&mut self) -> bool {
        self.idle_state() != IdleState::Quiet
    }

    /// Makes waiting end with `TimedOut` from `at` on (with a resolution of a tenth of a second).
    fn set_deadline(&mut self, at: Option<Nanos>);

    /// Announces that the connection will be dropped right after what is sent next, and that the peer sends nothing more. Then TCP
    /// can carry the last bytes and the end of the stream in one segment. Connections may ignore it.
    fn expect_end(&mut self) {}

    /// Ends what this side sends; it can still receive.
    fn finish(&mut self);

    /// Ends the connection with a reset, so that the peer cannot take what it received for complete. The reset is
    /// sent when the connection is dropped, if not at once.
    fn reset(&mut self);

    /// What went over the connection since the last call; `None` if this link keeps no captures.
    fn take_capture(&mut self) -> Option<Capture> {
        None
    }
}

/// Lets the other tasks of the loop run. Code that works through a backlog must call it now and
/// then, or nothing else on the loop happens until the backlog is gone.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| match std::mem::replace(&mut yielded, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// The output of `work`, or `None` if `end` completes first; then `work` is dropped.
pub async fn run_until<R>(end: impl Future<Output = ()>, work: impl Future<Output = R>) -> Option<R> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Sends all of `bytes`.
///
/// # Errors
/// As [`Conn::try_send`] and [`Conn::writable`].
pub async fn send_all<C: Conn>(conn: &mut C, bytes: &[u8]) -> io::Result<()> {
    send_all_parts(conn, &mut [IoSlice::new(bytes)]).await
}

/// Sends all that is in `buffer` from `start` on, which leaves another buffer there if the link keeps this one.
///
/// # Errors
/// As [`Conn::try_send`] and [`Conn::writable`].
pub async fn send_buffer<C: Conn>(conn: &mut C, buffer: &mut Vec<u8>, mut start: usize) -> io::Result<()> {
    while start < buffer.len() {
        match conn.try_send_buffer(buffer, start) {
            Ok(n) => start += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => conn.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Sends all of `parts`, one behind the other, in as few system calls as the connection allows.
///
/// # Errors
/// As [`Conn::try_send`] and [`Conn::writable`].
pub async fn send_all_parts<C: Conn>(conn: &mut C, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match conn.try_send(parts) {
            Ok(n) => IoSlice::advance_slices(&mut parts, n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => conn.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
