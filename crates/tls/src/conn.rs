//! A TLS connection over another connection.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker, ready};

use polygraph_link::{Capture, Conn, IdleState, Nanos};

use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::HandshakeFacts;
use crate::session::Session;

/// One side of a TLS connection. Dropping it says so to the peer and closes the connection below.
#[derive(Debug)]
pub struct TlsConn<C: Conn> {
    conn: C,
    session: Session,
    /// Number of bytes that are encrypted, but not reported as sent: see [`TlsConn::try_send`].
    held: usize,
    /// Whether this side has said that nothing more comes.
    closed: bool,
    capture: Option<Box<Capture>>,
}

impl<C: Conn> TlsConn<C> {
    /// A connection before its handshake. What the link has captured so far is discarded: from now on, messages are captured
    /// as they are before encryption.
    pub(crate) fn new(mut conn: C, session: Session) -> TlsConn<C> {
        let capture = conn.take_capture().map(|mut capture| {
            capture.take();
            Box::new(capture)
        });
        TlsConn { conn, session, held: 0, closed: false, capture }
    }

    /// Carries out the handshake, or as much of it as must precede the first message: a client that may send early data, and a
    /// server that has received some, need not wait.
    ///
    /// # Errors
    /// A [`TlsFailure`] in an `io::Error`, or an error of the connection below.
    pub async fn handshake(&mut self) -> io::Result<()> {
        if self.session.may_send_early() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_handshake(cx)).await
    }

    /// Where the facts of the handshake appear when it is complete.
    pub fn handshake_facts(&self) -> &HandshakeFacts {
        self.session.handshake()
    }

    /// The application protocol (RFC 7301), if one was negotiated.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.session.protocol()
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.session.is_complete() && !self.session.has_plaintext() {
            while !self.flush()? {
                ready!(self.conn.poll_writable(cx))?;
            }
            if self.session.is_ended() {
                let text = "the peer closed the connection during the TLS handshake";
                return Poll::Ready(Err(TlsFailure::new(FailureKind::Closed, text).into()));
            }
            ready!(self.poll_fill(cx))?;
        }
        // A last message of the handshake is sent along; what the connection does not take now follows later.
        self.flush()?;
        Poll::Ready(Ok(()))
    }

    /// Receives records.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let session = &mut self.session;
        let received = match session.has_backlog() {
            true => session.work(),
            false => ready!(self.conn.poll_recv(cx, |bytes| session.receive(bytes)))?,
        };
        Poll::Ready(received.map_err(|failure| {
            // The alert that explains the failure to the peer.
            let _ = self.flush();
            self.closed = true;
            failure.into()
        }))
    }

    /// Sends encrypted bytes. Returns whether all of them are sent.
    fn flush(&mut self) -> io::Result<bool> {
        while !self.session.outgoing().is_empty() {
            match self.conn.try_send(&[IoSlice::new(self.session.outgoing())]) {
                Ok(n) => self.session.sent(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Says that nothing more comes from this side, as far as the connection takes it.
    fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.session.close();
            let _ = self.flush();
        }
    }
}

impl<C: Conn> Conn for TlsConn<C> {
    /// Bytes count as sent when the connection below has taken their last record completely: until then, the last of them is
    /// held back. Otherwise a caller that has sent everything could close the connection before the rest has left.
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let mut sent = std::mem::take(&mut self.held).min(all);
        while sent < all {
            let encrypted = self.session.write(parts, sent)?;
            if encrypted == 0 {
                break;
            }
            sent += encrypted;
            if !self.flush()? {
                (self.held, sent) = (1, sent - 1);
                break;
            }
        }
        if sent == 0 && all > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(capture) = &mut self.capture {
            let mut rest = sent;
            for part in parts {
                let of_part = rest.min(part.len());
                capture.send(&part[..of_part]);
                rest -= of_part;
            }
        }
        Ok(sent)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.session.is_complete() && !self.session.may_send_early() {
            ready!(self.poll_handshake(cx))?;
        }
        while !self.flush()? {
            ready!(self.conn.poll_writable(cx))?;
        }
        // The limit of early data is reached: the rest has to wait for the end of the handshake.
        if !self.session.is_complete() {
            return self.poll_handshake(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        loop {
            // The peer may have sent an explanation before it closed the connection, so a failed send must not prevent reading.
            let blocked = self.flush().is_ok_and(|sent| !sent);
            if self.session.has_plaintext() {
                break;
            }
            if self.session.is_ended() {
                if !self.session.is_complete() {
                    let text = "the peer closed the connection during the TLS handshake";
                    return Poll::Ready(Err(TlsFailure::new(FailureKind::Closed, text).into()));
                }
                return Poll::Ready(Ok(take(&[])));
            }
            if let Poll::Ready(filled) = self.poll_fill(cx) {
                filled?;
            } else if !(blocked && self.conn.poll_writable(cx)?.is_ready()) {
                return Poll::Pending;
            }
        }
        let capture = &mut self.capture;
        let taken = self.session.read(|bytes| {
            if let Some(capture) = capture {
                capture.receive(bytes);
            }
            take(bytes)
        });
        // There is plaintext, as was just found.
        taken.map_or(Poll::Pending, |taken| Poll::Ready(Ok(taken)))
    }

    fn idle_state(&mut self) -> IdleState {
        // Tickets and the end of the connection arrive while it is idle, and are no messages.
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let mut first = Vec::new();
            let read = self.session.read(|bytes| {
                first.extend_from_slice(&bytes[..bytes.len().min(IdleState::MAX_SHOWN)]);
            });
            if read.is_some() {
                return IdleState::Bytes(first);
            }
            if self.session.is_ended() {
                return IdleState::Closed;
            }
            if !self.session.has_backlog() {
                match self.conn.idle_state() {
                    IdleState::Bytes(_) => {}
                    other => return other,
                }
            }
            match self.poll_fill(&mut cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return IdleState::Closed,
                Poll::Pending => return IdleState::Quiet,
            }
        }
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.conn.set_deadline(at);
    }

    fn finish(&mut self) {
        self.close();
        self.conn.finish();
    }

    fn reset(&mut self) {
        self.closed = true;
        self.conn.reset();
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(|capture| capture.take())
    }
}

impl<C: Conn> Drop for TlsConn<C> {
    fn drop(&mut self) {
        self.close();
    }
}
