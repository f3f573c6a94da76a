//! The task that drives a connection: it receives and sends, and watches the deadlines of the streams.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use polygraph_link::{Link, Nanos};

use crate::alarm::Alarm;
use crate::http2::connection::End;
use crate::session::Http2Session;

/// Drops the connection below with the task that drives it.
struct Closing<'a>(&'a Http2Session);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Drives a connection until it ends. `turn`, which is called after whatever has arrived, gets the time until which to wait at most, to be
/// changed. Frames of a turn leave together. Returns the error, if there was one.
pub async fn drive<L: Link>(
    link: &L,
    session: &Http2Session,
    mut turn: impl FnMut(&mut Nanos),
) -> Option<io::Error> {
    let _closing = Closing(session);
    let mut sleep = pin!(None);
    let mut alarm = Alarm::default();
    let failure = poll_fn(|cx| {
        loop {
            let now = link.now();
            session.begin_turn(now, cx.waker());
            let received = session.receive();
            let mut until = Nanos::MAX;
            turn(&mut until);
            session.connection.borrow_mut().close_if_over();
            // Frames of the last turn, such as GOAWAY, are sent as far as the connection takes them.
            let sent = match received {
                Ok(_) => session.send(),
                Err(_) => Ok(()),
            };
            let was_full = match received.and_then(|was_full| sent.map(|()| was_full)) {
                Ok(was_full) => was_full,
                Err(error) => {
                    let mut connection = session.connection.borrow_mut();
                    // If the protocol has ended, what the connection does is of no interest.
                    connection.fail_below(error);
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
            let next = session.deadlines.strike(now, cx.waker()).min(until);
            if alarm.poll(sleep.as_mut(), next, |at| link.sleep_until(at), cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    session.finish();
    failure
}

fn of_end(end: Option<&End>) -> Option<io::Error> {
    match end {
        Some(End::Fault(fault)) => Some(fault.clone().into()),
        Some(End::Io(failure)) => Some(failure.clone().into()),
        Some(End::Closed) | None => None,
    }
}
