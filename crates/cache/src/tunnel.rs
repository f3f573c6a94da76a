//! Tunnels: bytes pass in both directions, unread (RFC 9110, section 9.3.6).

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use polygraph_link::{Conn, Link, Nanos, send_all_parts};

use crate::message::OwnReply;
use crate::origins::{Connection, SendError};
use crate::proxy::{Client, Proxy};
use crate::reply::AfterReply;
use crate::service::nanos_of;

/// The reply that opens a tunnel.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The bytes on their way in one direction.
#[derive(Default)]
struct Flow {
    bytes: Vec<u8>,
    sent: usize,
    ended: bool,
}

impl<L: Link> Proxy<L> {
    /// Opens a tunnel to an origin and serves it until one side closes it or both are silent for too long.
    pub(crate) async fn tunnel(
        &self,
        client: &mut Client<L>,
        (host, port): (&str, u16),
        minor: u8,
    ) -> AfterReply {
        let mut origin = match self.reach(host, port).await {
            Ok(connection) => connection,
            Err(failure) => {
                self.counters.origin_errors.add(1);
                let reply = match failure {
                    SendError::Timeout => OwnReply::new(504, "The origin cannot be reached in time."),
                    SendError::Unreachable | SendError::Outdated => {
                        OwnReply::new(502, "The origin cannot be reached.")
                    }
                };
                return self.send_own(client, reply, minor, false).await;
            }
        };
        if send_all_parts(&mut client.conn, &mut [IoSlice::new(ESTABLISHED)]).await.is_err() {
            return AfterReply::Close;
        }
        self.counters.tunnels.add(1);
        // The client need not wait for the reply.
        let mut up = Flow { bytes: client.unread().to_vec(), ..Flow::default() };
        client.consume(usize::MAX / 2);
        let mut down = Flow::default();
        let idle = nanos_of(self.shared.config.idle_timeout);
        let conns = (&mut client.conn, &mut origin.stream.conn);
        // How a tunnel ends concerns its two ends only.
        let _ = poll_fn(|cx| {
            let deadline = Some(self.link.now() + idle);
            let upward = poll_flow(cx, conns.0, conns.1, &mut up, deadline)?;
            let downward = poll_flow(cx, conns.1, conns.0, &mut down, deadline)?;
            if upward.is_ready() && downward.is_ready() {
                Poll::Ready(Ok::<_, io::Error>(()))
            } else {
                Poll::Pending
            }
        })
        .await;
        AfterReply::Close
    }

    /// A new connection to an origin that has accepted it.
    async fn reach(&self, host: &str, port: u16) -> Result<Connection<L::Conn>, SendError> {
        let mut origin = self.origins.send(host, port, false, &[]).await?;
        let conn = &mut origin.stream.conn;
        // Sending nothing shows whether the connection could be established.
        let established = match conn.writable().await {
            Ok(()) => conn.try_send(&[IoSlice::new(&[])]).map(drop),
            Err(e) => Err(e),
        };
        match established {
            Ok(()) => Ok(origin),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Err(SendError::Timeout),
            Err(_) => Err(SendError::Unreachable),
        }
    }
}

/// Moves bytes until there are no more, or until the connections have to wait. Ready when `from` has ended and everything is sent.
fn poll_flow(
    cx: &mut Context<'_>,
    from: &mut impl Conn,
    to: &mut impl Conn,
    flow: &mut Flow,
    deadline: Option<Nanos>,
) -> Poll<io::Result<()>> {
    loop {
        while flow.sent < flow.bytes.len() {
            match to.try_send(&[IoSlice::new(&flow.bytes[flow.sent..])]) {
                Ok(n) => flow.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready!(to.poll_writable(cx))?,
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        if flow.ended {
            return Poll::Ready(Ok(()));
        }
        (flow.sent, flow.bytes) = (0, Vec::new());
        let bytes = &mut flow.bytes;
        ready!(from.poll_recv(cx, |arrived| bytes.extend_from_slice(arrived)))?;
        if flow.bytes.is_empty() {
            flow.ended = true;
            to.finish();
        } else {
            from.set_deadline(deadline);
            to.set_deadline(deadline);
        }
    }
}
