//! A connection as HTTP messages see it.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_multiplex::Stream;
use polygraph_tls::handshake::Handshake;

/// A connection with its layers. Dropping it closes it.
#[derive(Debug)]
pub enum Channel<C: Conn> {
    /// The connection of the link itself: messages travel in the clear.
    Plain(C),
    /// A stream of a multiplexed connection, for one exchange.
    Stream(Box<Stream>),
    /// TLS over another channel.
    #[cfg(feature = "tls")]
    Tls(Box<polygraph_tls::TlsConn<Channel<C>>>),
}

impl<C: Conn> Channel<C> {
    /// The facts of the topmost TLS handshake, once after it is complete. With early data, that is when the first reply
    /// has arrived.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        match self {
            Channel::Plain(_) | Channel::Stream(_) => None,
            #[cfg(feature = "tls")]
            Channel::Tls(conn) => conn.take_handshake(),
        }
    }
}

/// Calls a method of the topmost layer.
macro_rules! top {
    ($channel:expr, $conn:ident => $call:expr) => {
        match $channel {
            Channel::Plain($conn) => $call,
            Channel::Stream($conn) => $call,
            #[cfg(feature = "tls")]
            Channel::Tls($conn) => $call,
        }
    };
}

impl<C: Conn> Conn for Channel<C> {
    #[inline]
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        top!(self, conn => conn.try_send(parts))
    }

    #[inline]
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        top!(self, conn => conn.poll_writable(cx))
    }

    #[inline]
    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        top!(self, conn => conn.poll_recv(cx, take))
    }

    #[inline]
    fn idle_state(&mut self) -> IdleState {
        top!(self, conn => conn.idle_state())
    }

    #[inline]
    fn set_deadline(&mut self, at: Option<Nanos>) {
        top!(self, conn => conn.set_deadline(at));
    }

    #[inline]
    fn finish(&mut self) {
        top!(self, conn => conn.finish());
    }

    #[inline]
    fn reset(&mut self) {
        top!(self, conn => conn.reset());
    }

    #[inline]
    fn take_capture(&mut self) -> Option<Capture> {
        top!(self, conn => conn.take_capture())
    }
}
