//! Serves a client's connection, which may have TLS and may carry HTTP/2.

use std::io::IoSlice;
use std::rc::Rc;

use polygraph_link::{Conn, Link, SECOND, send_all_parts};
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{Http2Settings, ServerPolicy};
use polygraph_transport::Channel;
use polygraph_transport::tls::{self, TlsServer};
use polygraph_wire::auth::access::ConnectionAccess;

use crate::buffered::BufferedConn;
use crate::client::Decision;
use crate::message::OwnReply;
use crate::proxy::{Client, Proxy};
use crate::reply::AfterReply;
use crate::service::nanos_of;

/// Maximum number of refused connections per event loop that receive a reply at the same time; further ones are closed
/// without a reply.
const MAX_REFUSALS: usize = 64;

/// What follows on a connection.
enum Served {
    /// The connection ends.
    Ended(AfterReply),
    /// The connection carries HTTP/2.
    Http2,
}

impl<L: Link> Proxy<L> {
    /// Serves a client's connection until its end; refuses it if there are too many.
    pub async fn serve(self: Rc<Self>, conn: L::Conn) {
        let conn = Channel::Plain(conn);
        let Some(_open) = self.open_connection() else {
            self.counters.refused.add(1);
            // A client that expects TLS could not read a reply.
            if self.shared.tls.is_none() {
                self.refuse(&mut BufferedConn::new(conn)).await;
            }
            return;
        };
        self.counters.accepted.add(1);
        let conn = match &self.shared.tls {
            None => conn,
            // A handshake is rare and its state is large, so it is boxed.
            Some(tls) => match Box::pin(self.secure(conn, tls)).await {
                Some(conn) => conn,
                None => return,
            },
        };
        let mut client = BufferedConn::new(conn);
        match self.serve_requests(&mut client).await {
            Served::Ended(after) => self.end(&mut client, after).await,
            // Its state is large, and most connections carry HTTP/1.
            Served::Http2 => Box::pin(self.serve_http2(client)).await,
        }
    }

    /// Adds TLS. Returns `None` if the handshake fails.
    async fn secure(&self, conn: Channel<L::Conn>, tls: &TlsServer) -> Option<Channel<L::Conn>> {
        let limit = Some(self.link.now() + nanos_of(self.shared.config.head_timeout));
        let mut secured = tls::accept(&self.link, conn, tls).ok()?;
        secured.set_deadline(limit);
        let done = tls::handshake(&mut secured).await;
        let counter = if done.is_ok() { &self.counters.handshakes } else { &self.counters.failed_handshakes };
        counter.add(1);
        done.is_ok().then_some(secured)
    }

    /// Serves requests of HTTP/1 until the connection ends, unless it starts like one of HTTP/2.
    async fn serve_requests(&self, client: &mut Client<L>) -> Served {
        let (mut after, mut access) = (AfterReply::NextRequest, ConnectionAccess::default());
        let mut is_new = true;
        while after == AfterReply::NextRequest {
            let decision = self.next_decision(client, &mut access).await;
            if is_new && matches!(decision, Decision::Http2) {
                return Served::Http2;
            }
            is_new = false;
            let _active = self.begin_transaction();
            after = self.carry_out(client, decision).await;
            if after == AfterReply::NextRequest && self.is_stopping() {
                after = AfterReply::Close;
            }
        }
        Served::Ended(after)
    }

    /// Serves a connection of HTTP/2 until it ends. Each stream is served like a connection with one request.
    async fn serve_http2(self: &Rc<Self>, client: Client<L>) {
        self.counters.http2.add(1);
        let policy = ServerPolicy {
            settings: Http2Settings::default(),
            form: TargetForm::Absolute,
            use_limit: u64::MAX,
            idle_timeout: Some(nanos_of(self.shared.config.idle_timeout)),
        };
        let received = client.unread().to_vec();
        let accept = |stream| {
            let stream = BufferedConn::new(Channel::Stream(Box::new(stream)));
            self.link.spawn(Rc::clone(self).serve_stream(stream));
        };
        let end = polygraph_multiplex::serve(&self.link, client.conn, &received, &policy, accept).await;
        if end.fault().is_some() || end.malformed > 0 {
            self.counters.bad_requests.add(end.malformed.max(1));
        }
    }

    /// Serves the request of a stream.
    async fn serve_stream(self: Rc<Self>, mut stream: Client<L>) {
        // Handshakes of authentication need a connection of HTTP/1, so what a stream begins, no other one continues.
        let decision = self.next_decision(&mut stream, &mut ConnectionAccess::default()).await;
        let _active = self.begin_transaction();
        let after = self.carry_out(&mut stream, decision).await;
        self.end(&mut stream, after).await;
    }

    /// Ends a connection or a stream.
    async fn end(&self, client: &mut Client<L>, after: AfterReply) {
        match after {
            AfterReply::NextRequest | AfterReply::Close => {}
            AfterReply::LingeringClose => self.linger(client).await,
            AfterReply::Reset => client.conn.reset(),
        }
        client.release(&self.heads);
    }

    /// Answers a client that is refused because of the connection limit.
    async fn refuse(&self, client: &mut Client<L>) {
        if self.refusals.get() >= MAX_REFUSALS {
            return;
        }
        self.refusals.set(self.refusals.get() + 1);
        let reply = OwnReply::new(503, "The proxy has reached its limit of connections.");
        let reply = reply.bytes(1, false, self.link.unix_millis() / 1000, &self.shared.name);
        client.conn.set_deadline(Some(self.link.now() + SECOND));
        if send_all_parts(&mut client.conn, &mut [IoSlice::new(&reply)]).await.is_ok() {
            self.linger(client).await;
        }
        self.refusals.set(self.refusals.get() - 1);
    }

    /// Closes the connection after the client has read the reply: closing a socket with unread input would reset the
    /// connection, and the last reply might be lost (RFC 9112, section 9.6).
    async fn linger(&self, client: &mut Client<L>) {
        const MAX_READS: usize = 64;
        client.conn.finish();
        client.conn.set_deadline(Some(self.link.now() + SECOND));
        for _ in 0..MAX_READS {
            client.consume(usize::MAX / 2);
            if !matches!(client.fill(&self.heads).await, Ok(1..)) {
                break;
            }
        }
    }
}
