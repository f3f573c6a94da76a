//! The task that drives a connection: it lets `h2` read and write, sends what was written, and watches the deadlines of the
//! streams.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use polygraph_link::{Conn, Link, Nanos};

use crate::alarm::Alarm;
use crate::stream::Shared;
use crate::transport::Transport;

/// Drives a connection until `turn`, which polls it once, is ready or the connection fails. `turn` gets the time until which it has
/// to wait at most, to be changed.
///
/// # Errors
/// If the connection fails.
pub async fn drive<L: Link, C: Conn, R>(
    link: &L,
    transport: &Transport<C>,
    shared: &Shared,
    mut turn: impl FnMut(&mut Context<'_>, &mut Nanos) -> Poll<R>,
) -> io::Result<R> {
    let mut sleep = pin!(None);
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        loop {
            shared.poll_ending(cx);
            let mut until = Nanos::MAX;
            let turned = turn(cx, &mut until);
            // Frames of the last turn, such as GOAWAY, are sent as far as the connection takes them.
            let sent = transport.poll_send(cx);
            match (turned, sent) {
                (Poll::Ready(result), _) => return Poll::Ready(Ok(result)),
                (Poll::Pending, Poll::Ready(Err(e))) => return Poll::Ready(Err(e)),
                (Poll::Pending, _) => {}
            }
            let next = shared.deadlines.strike(link.now(), cx.waker()).min(until);
            if alarm.poll(sleep.as_mut(), next, |at| link.sleep_until(at), cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
