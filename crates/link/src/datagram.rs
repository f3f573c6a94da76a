//! Datagrams over UDP, for protocols that have their own connections, such as QUIC.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use crate::Capture;

/// Datagrams of the same size, of which the last may be shorter, that are sent in one step.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingDatagrams<'a> {
    /// Where they go.
    pub to: SocketAddr,
    /// The local address that they come from, if the socket has several.
    pub from: Option<IpAddr>,
    /// The two bits of Explicit Congestion Notification (RFC 3168, section 5).
    pub ecn: u8,
    /// The size of each in bytes; `None`: `bytes` is one datagram.
    pub segment: Option<usize>,
    /// Their contents, one behind the other.
    pub bytes: &'a [u8],
}

/// Datagrams of the same size, of which the last may be shorter, that arrived in one step from the same peer.
#[derive(Clone, Copy, Debug)]
pub struct IncomingDatagrams<'a> {
    /// Where they come from.
    pub from: SocketAddr,
    /// The local address to which they were sent, if the system tells.
    pub to: Option<IpAddr>,
    /// The two bits of Explicit Congestion Notification.
    pub ecn: u8,
    /// The size of each in bytes.
    pub segment: usize,
    /// Their contents, one behind the other, in a buffer that belongs to the loop.
    pub bytes: &'a [u8],
}

/// A UDP socket, used by one task. Dropping it closes it.
pub trait Datagrams: 'static {
    /// The most datagrams that [`Datagrams::try_send`] takes at once.
    fn most_segments(&self) -> usize;

    /// Whether datagrams are never fragmented, so that the largest size that fits the path can be found out.
    fn keeps_whole(&self) -> bool;

    /// The largest datagram in bytes that is worth a try. By default it is what fits the packets of an Ethernet, with IPv6 and some room
    /// for tunnels; the packets of a loopback interface are larger.
    fn largest(&self) -> u16 {
        1452
    }

    /// An empty capture for the messages of a connection, if this link keeps captures.
    fn new_capture(&self) -> Option<Capture> {
        None
    }

    /// Sends datagrams, or takes them to send them with those of other tasks that run now.
    ///
    /// # Errors
    /// `WouldBlock` if the socket takes nothing now; otherwise what the system reports, which may concern an earlier datagram: that
    /// nobody receives datagrams at the address is noticed at the next one. What concerns a datagram that was taken is an error of
    /// [`Datagrams::poll_recv`].
    fn try_send(&self, datagrams: &OutgoingDatagrams<'_>) -> io::Result<()>;

    /// Ready when [`Datagrams::try_send`] is worth another try; until then, the task is woken when it is. Call it only after a
    /// `WouldBlock`.
    ///
    /// # Errors
    /// What the system reports.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Passes datagrams that have arrived to `take`, one batch after the other. If nothing has arrived, the task is woken when something
    /// does, or when there is an error.
    ///
    /// # Errors
    /// What the system reports, also about datagrams that were taken for sending.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        take: impl FnMut(&IncomingDatagrams<'_>),
    ) -> Poll<io::Result<()>>;
}

/// The UDP sockets of a link that has none.
#[derive(Debug)]
pub enum NoDatagrams {}

impl Datagrams for NoDatagrams {
    fn most_segments(&self) -> usize {
        match *self {}
    }

    fn keeps_whole(&self) -> bool {
        match *self {}
    }

    fn try_send(&self, _: &OutgoingDatagrams<'_>) -> io::Result<()> {
        match *self {}
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_recv(&self, _: &mut Context<'_>, _: impl FnOnce(&IncomingDatagrams<'_>)) -> Poll<io::Result<()>> {
        match *self {}
    }
}
