//! A connection as HTTP messages see it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_multiplex::message::request::{RequestFields, RequestLine};
use polygraph_multiplex::{Stream, WireBytes};
use polygraph_tls::handshake::{Handshake, HandshakeFacts};
use polygraph_wire::head::HeadIndex;

/// A connection with its layers. Dropping it closes it.
#[derive(Debug)]
pub enum Channel<C: Conn> {
    /// The connection of the link itself: messages travel in the clear.
    Plain(C),
    /// A stream of a multiplexed connection, for one exchange.
    Stream(Box<Stream>),
    /// A stream of an HTTP/3 connection, for one exchange.
    #[cfg(feature = "tls")]
    Http3(Box<polygraph_quic::Http3Stream>),
    /// TLS over another channel.
    #[cfg(feature = "tls")]
    Tls(Box<polygraph_tls::TlsConn<Channel<C>>>),
}

impl<C: Conn> Channel<C> {
    /// Whether it is a stream of a multiplexed connection, which carries one exchange.
    pub fn is_stream(&self) -> bool {
        match self {
            Channel::Plain(_) => false,
            Channel::Stream(_) => true,
            #[cfg(feature = "tls")]
            Channel::Http3(_) => true,
            #[cfg(feature = "tls")]
            Channel::Tls(_) => false,
        }
    }

    /// Sends a request without content on a stream, without its HTTP/1 form: `fields` passes on its fields. Returns the size that it has in
    /// this form; `None` if it must be written in it.
    ///
    /// # Errors
    /// As [`Conn::try_send`].
    pub fn send_request(
        &mut self,
        line: &RequestLine<'_>,
        fields: impl FnOnce(&mut RequestFields<'_>),
    ) -> io::Result<Option<usize>> {
        match self {
            Channel::Stream(stream) => stream.send_request(line, fields),
            #[cfg(feature = "tls")]
            Channel::Http3(stream) => stream.send_request(line, fields),
            _ => Ok(None),
        }
    }

    /// As [`Conn::recv`]. `take` also gets an index of the head with which the bytes begin, if the stream has put it together.
    ///
    /// # Errors
    /// As [`Conn::recv`].
    pub async fn recv_head<R>(&mut self, take: impl FnOnce(&[u8], Option<&HeadIndex>) -> R) -> io::Result<R> {
        let mut take = Some(take);
        poll_fn(|cx| {
            let mut pass = |data: &[u8], index: Option<&HeadIndex>| {
                let take = take.take().expect("bytes are passed on once");
                take(data, index)
            };
            match &mut *self {
                Channel::Plain(conn) => conn.poll_recv(cx, |data| pass(data, None)),
                Channel::Stream(stream) => stream.poll_recv_head(cx, pass),
                #[cfg(feature = "tls")]
                Channel::Http3(stream) => stream.poll_recv_head(cx, pass),
                #[cfg(feature = "tls")]
                Channel::Tls(conn) => conn.poll_recv(cx, |data| pass(data, None)),
            }
        })
        .await
    }

    /// Of a stream: the number of open streams of its connection, this one included. Otherwise 0.
    pub fn open_streams(&self) -> usize {
        match self {
            Channel::Stream(stream) => stream.open_streams(),
            #[cfg(feature = "tls")]
            Channel::Http3(stream) => stream.open_streams(),
            _ => 0,
        }
    }

    /// Of a stream: the bytes of its connection since this was last asked, on any of its streams.
    pub fn take_bytes(&self) -> WireBytes {
        match self {
            Channel::Stream(stream) => stream.take_bytes(),
            #[cfg(feature = "tls")]
            Channel::Http3(stream) => stream.take_bytes(),
            _ => WireBytes::default(),
        }
    }

    /// The application protocol that the topmost layer of TLS has negotiated (RFC 7301), for example `h2`.
    pub fn protocol(&self) -> Option<&[u8]> {
        match self {
            #[cfg(feature = "tls")]
            Channel::Tls(conn) => conn.protocol(),
            _ => None,
        }
    }

    /// The facts of the topmost TLS handshake, once after it is complete. With early data, that is when the first reply
    /// has arrived.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        match self {
            Channel::Plain(_) | Channel::Stream(_) => None,
            #[cfg(feature = "tls")]
            Channel::Http3(stream) => stream.take_handshake(),
            #[cfg(feature = "tls")]
            Channel::Tls(conn) => conn.handshake_facts().take(),
        }
    }

    /// Where the facts of the topmost TLS handshake appear, for whoever passes the connection on.
    pub fn handshake_facts(&self) -> Option<HandshakeFacts> {
        match self {
            #[cfg(feature = "tls")]
            Channel::Tls(conn) => Some(conn.handshake_facts().clone()),
            _ => None,
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
            Channel::Http3($conn) => $call,
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
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Poll<io::Result<(Vec<u8>, usize)>> {
        top!(self, conn => conn.poll_take(cx, spare))
    }

    #[inline]
    fn try_send_buffer(&mut self, buffer: &mut Vec<u8>, start: usize) -> io::Result<usize> {
        top!(self, conn => conn.try_send_buffer(buffer, start))
    }

    #[inline]
    fn note_idle(&mut self, owner: u32) {
        top!(self, conn => conn.note_idle(owner));
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
    fn expect_end(&mut self) {
        top!(self, conn => conn.expect_end());
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
