//! The seam between the simulated parties and the world: clock, timers, connections, datagrams, tasks.
//!
//! Robots and origins are written against [`Link`] only. The engine implements it with real sockets, one link
//! per event loop; a simulation implements it with a virtual clock and in-memory connections. Either way a
//! transaction is one `async` function that reads top-down.
//!
//! A link belongs to one thread: nothing here is `Send`, nothing is shared between loops.

mod tape;

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

pub use tape::Tape;

/// Nanoseconds since an arbitrary fixed moment before the start of the run, by a clock that never jumps.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Converts seconds to nanoseconds; negative values and NaN become 0, huge ones saturate.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// Why a connection cannot even be begun.
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
    /// The local address is not one of this machine's.
    #[error("cannot bind to the local address: {0}")]
    Bind(io::ErrorKind),
    /// The system refused at once.
    #[error("cannot connect: {0}")]
    Refused(io::ErrorKind),
}

/// What an event loop offers to the parties that live on it. Clones are handles to the same loop.
pub trait Link: Clone + 'static {
    /// Connections of this link.
    type Conn: Conn;

    /// The time now.
    fn now(&self) -> Nanos;

    /// The time of day as an HTTP date, to the second.
    fn http_date(&self) -> [u8; 29];

    /// The time of day in seconds since 1970.
    fn unix_seconds(&self) -> i64;

    /// Completes at `at` or, on a loaded machine, later, never earlier.
    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()>;

    /// Begins a connection to `to`, from the address `from` if given (its port is chosen by the link). The
    /// connection is usable at once: the first [`Conn::try_send`] may report `WouldBlock` until the peer has
    /// accepted.
    ///
    /// # Errors
    /// If the connection cannot be begun for want of a local resource, or is refused at once.
    fn connect(&self, from: Option<std::net::IpAddr>, to: SocketAddr) -> Result<Self::Conn, ConnectError>;

    /// Sends `datagram` over UDP to `server`, from the address `from` if given (its port is chosen by the link), and
    /// shows what comes back from there to `accept`, one datagram after the other, until that returns
    /// something. The bytes are in a buffer that belongs to the loop.
    ///
    /// # Errors
    /// `TimedOut` at `until`; otherwise what the system reports, for example that nobody listens there.
    fn ask<R>(
        &self,
        from: Option<std::net::IpAddr>,
        server: SocketAddr,
        datagram: &[u8],
        until: Option<Nanos>,
        accept: impl FnMut(&[u8]) -> Option<R>,
    ) -> impl Future<Output = io::Result<R>>;

    /// Runs `task` on this loop.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);
}

/// What has arrived on an idle connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stir {
    /// It is as it was.
    Nothing,
    /// Bytes that nobody asked for: the first of them.
    Bytes(Vec<u8>),
    /// The peer has closed or broken it.
    Closed,
}

impl Stir {
    /// Of so many bytes something is shown, at most.
    pub const SHOWN: usize = 60;
}

/// A byte stream connection. Dropping it closes it.
#[expect(async_fn_in_trait, reason = "connections never leave their loop, so no Send bound is wanted")]
pub trait Conn: 'static {
    /// Sends as much of `parts` as the connection takes now and returns the number of bytes.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now, else what the system reports.
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Completes when [`Conn::try_send`] is worth another try. Only for who has just been told `WouldBlock`:
    /// otherwise it may wait for a change that never comes.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, else what the system reports.
    async fn writable(&mut self) -> io::Result<()>;

    /// Waits for bytes and shows them to `see`; an empty slice means that the peer has closed. The bytes are
    /// in a buffer that belongs to the loop: whatever is not consumed must be copied.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, else what the system reports.
    async fn recv<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> io::Result<R>;

    /// What has arrived on an idle connection. Costs no system call unless something did.
    fn stir(&mut self) -> Stir;

    /// True if something arrived on an idle connection: the peer has closed it or sent garbage.
    fn is_disturbed(&mut self) -> bool {
        self.stir() != Stir::Nothing
    }

    /// From `at` on (with a resolution of a tenth of a second) waiting ends with `TimedOut`.
    fn set_deadline(&mut self, at: Option<Nanos>);

    /// What went over the connection since the last call; `None` where nobody keeps it.
    fn take_tape(&mut self) -> Option<Tape> {
        None
    }
}

/// Lets the other tasks of the loop have their turn. Whoever works through a backlog must call it now and
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

/// What comes of `work` if that is before `end` completes; otherwise it is dropped.
pub async fn before<R>(end: impl Future<Output = ()>, work: impl Future<Output = R>) -> Option<R> {
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
    let mut sent = 0;
    while sent < bytes.len() {
        match conn.try_send(&[IoSlice::new(&bytes[sent..])]) {
            Ok(n) => sent += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => conn.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
