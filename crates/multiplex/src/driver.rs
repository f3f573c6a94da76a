//! The task that drives a connection: it receives and sends, and watches the deadlines of the streams.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Poll};

use polygraph_link::{Conn, Link, Nanos};

use crate::alarm::Alarm;
use crate::http2::connection::End;
use crate::session::Http2Session;

/// How many times a turn receives, so that streams can read in between.
const RECEIVES: usize = 16;

/// Drives a connection until it ends. `turn`, which is called after whatever has arrived, gets the time until which to wait at most, to be
/// changed. Frames of a turn leave together. Returns the error, if there was one.
pub async fn drive<L: Link, C: Conn>(
    link: &L,
    mut conn: C,
    session: &Http2Session,
    mut turn: impl FnMut(&mut Nanos),
) -> Option<io::Error> {
    let mut sleep = pin!(None);
    let mut alarm = Alarm::default();
    let failure = poll_fn(|cx| {
        loop {
            session.begin_turn(cx.waker());
            let received = receive(&mut conn, session, cx);
            let mut until = Nanos::MAX;
            turn(&mut until);
            session.connection.borrow_mut().close_if_over();
            // Frames of the last turn, such as GOAWAY, are sent as far as the connection takes them.
            let sent = match received {
                Ok(_) => send(&mut conn, session, cx),
                Err(_) => Ok(()),
            };
            let was_full = match received.and_then(|was_full| sent.map(|()| was_full)) {
                Ok(was_full) => was_full,
                Err(error) => {
                    let mut connection = session.connection.borrow_mut();
                    // If the protocol has ended, what the connection does is of no interest.
                    let failed = connection.end().is_none();
                    connection.fail_below(&error);
                    if failed {
                        return Poll::Ready(Some(error));
                    }
                    return Poll::Ready(of_end(connection.end()));
                }
            };
            let connection = session.connection.borrow();
            if connection.end().is_some() {
                return Poll::Ready(of_end(connection.end()));
            }
            if was_full && connection.has_buffer() {
                continue;
            }
            drop(connection);
            let next = session.deadlines.strike(link.now(), cx.waker()).min(until);
            if alarm.poll(sleep.as_mut(), next, |at| link.sleep_until(at), cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    conn.finish();
    failure
}

fn of_end(end: Option<&End>) -> Option<io::Error> {
    match end {
        Some(End::Fault(fault)) => Some(fault.clone().into()),
        Some(End::Io(kind, text)) => Some(io::Error::new(*kind, text.clone())),
        Some(End::Closed) | None => None,
    }
}

/// Receives what has arrived. Returns whether it was left because too much waits to be sent.
fn receive(conn: &mut impl Conn, session: &Http2Session, cx: &mut Context<'_>) -> io::Result<bool> {
    for _ in 0..RECEIVES {
        let connection = session.connection.borrow();
        if connection.end().is_some() {
            return Ok(false);
        }
        if !connection.has_buffer() {
            return Ok(true);
        }
        drop(connection);
        let received = conn.poll_recv(cx, |data| {
            let mut connection = session.connection.borrow_mut();
            match data {
                [] => connection.receive_end(),
                data => connection.receive(data),
            }
        });
        match received {
            Poll::Ready(result) => result?,
            Poll::Pending => return Ok(false),
        }
    }
    cx.waker().wake_by_ref();
    Ok(false)
}

/// Sends what the connection takes.
fn send(conn: &mut impl Conn, session: &Http2Session, cx: &mut Context<'_>) -> io::Result<()> {
    let mut connection = session.connection.borrow_mut();
    while !connection.unsent().is_empty() {
        match conn.try_send(&[IoSlice::new(connection.unsent())]) {
            Ok(size) => connection.note_sent(size),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => match conn.poll_writable(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => break,
            },
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
