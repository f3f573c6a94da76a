//! A transaction with an origin: the request is forwarded, the reply relayed and, if it may be, stored.

use std::io::{self, IoSlice};

use polygraph_link::{Conn, Link, send_all_parts};
use polygraph_wire::{BodyReader, ReplyHead, RequestHead, parse_reply};

use crate::admission::Admission;
use crate::buffered::{First, first};
use crate::message::{BodyOut, ChunkFrame, MAX_HEAD, OwnReply, write_reply};
use crate::object::ReplyForm;
use crate::origins::Connection;
use crate::policy::RequestFacts;
use crate::proxy::{Client, Proxy};
use crate::reply::AfterReply;
use crate::request::{ForwardError, ForwardedRequest, Outgoing};

/// A `1xx` reply.
struct Interim {
    /// The head that the client receives.
    head: Vec<u8>,
    /// Bytes of the head that the origin has sent.
    len: usize,
}

/// The head of a reply.
#[expect(clippy::large_enum_variant, reason = "most heads are final, and none is kept")]
enum OriginHead {
    /// Another reply follows.
    Interim(Interim),
    /// The reply to the request.
    Final(Result<Admission, ForwardError>),
}

impl<L: Link> Proxy<L> {
    /// Carries out a request with its origin.
    pub(crate) async fn forward(
        &self,
        client: &mut Client<L>,
        mut request: Box<ForwardedRequest>,
    ) -> AfterReply {
        match request.stale {
            Some(_) => self.counters.validations.add(1),
            None => self.counters.misses.add(1),
        }
        let mut reuse = request.is_replayable();
        loop {
            match self.attempt(client, &mut request, reuse).await {
                Ok(after) => return after,
                // At most once, because a new connection cannot be outdated.
                Err(ForwardError::Outdated) => reuse = false,
                Err(ForwardError::Contradiction) => {
                    let stale = request.take_stale(&self.shared.name, self.shared.config.role());
                    if let Some(stale) = stale {
                        self.shared.store.remove_object(&stale);
                    }
                }
                Err(ForwardError::Client) => {
                    self.counters.aborted.add(1);
                    return AfterReply::Close;
                }
                Err(ForwardError::Gateway(status, text)) => {
                    self.counters.origin_errors.add(1);
                    let keep = request.client.keep && request.is_bodiless();
                    return self
                        .send_own(client, OwnReply::new(status, text), request.client.minor, keep)
                        .await;
                }
            }
        }
    }

    async fn attempt(
        &self,
        client: &mut Client<L>,
        request: &mut ForwardedRequest,
        reuse: bool,
    ) -> Result<AfterReply, ForwardError> {
        let request_ms = self.link.unix_millis();
        let Outgoing { host, port, head } = &request.outgoing;
        let mut connection = self.origins.send(host, *port, reuse, head).await?;
        let whole = self.send_body(client, request, &mut connection).await?;
        let mut admission = self.read_reply_head(client, request, &mut connection, request_ms).await?;
        connection.stream.consume(admission.head_len);
        let Some(fresh) = admission.validated else {
            let after = self.relay(client, request, &mut connection, &mut admission, whole).await?;
            self.end_transaction(connection, admission.is_reusable && whole && after != AfterReply::Reset);
            return Ok(after);
        };
        self.end_transaction(connection, admission.is_reusable);
        self.counters.validated.add(1);
        let form = |head: &RequestHead<'_, '_>| {
            ReplyForm::to(head.method, &RequestFacts::read(head.headers, request_ms), &fresh)
        };
        let form = request.with_head(form);
        Ok(self.send_stored(client, &fresh, form, request.client).await)
    }

    /// Ends the transaction on a connection, which is kept for the next one if it is `reusable`, unless the origin has sent more
    /// than its reply.
    fn end_transaction(&self, mut connection: Connection<L::Conn>, reusable: bool) {
        // The buffer of a connection that is closed is used again, too.
        connection.stream.release(&self.bodies);
        if reusable && connection.stream.unread().is_empty() {
            self.origins.give_back(connection);
        }
    }

    /// Sends the body of the request. Returns false if the origin began its reply before it had received the complete
    /// body.
    async fn send_body(
        &self,
        client: &mut Client<L>,
        request: &ForwardedRequest,
        connection: &mut Connection<L::Conn>,
    ) -> Result<bool, ForwardError> {
        let chunked = BodyOut::of(request.framing) == BodyOut::Chunked;
        let mut reader = BodyReader::new(request.framing);
        let mut content = Vec::new();
        while !reader.is_done() {
            let until = Some(self.link.now() + self.io_timeout);
            connection.stream.conn.set_deadline(until);
            if client.unread().is_empty() {
                client.conn.set_deadline(until);
                match first(client.fill(&self.heads), connection.stream.fill(&self.bodies)).await {
                    First::Left(Ok(1..)) => {}
                    First::Right(Ok(n @ 1..)) => {
                        self.counters.bytes_in.add(n as u64);
                        if !self.pass_all_interim(client, request, connection).await? {
                            return Ok(false);
                        }
                    }
                    First::Right(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                        return Err(ForwardError::Client);
                    }
                    First::Right(_) => {
                        let text = "The origin closed the connection during the request.";
                        return Err(ForwardError::Gateway(502, text));
                    }
                    First::Left(_) => return Err(ForwardError::Client),
                }
                continue;
            }
            content.clear();
            let fed = reader.feed(client.unread(), |piece| content.extend_from_slice(piece));
            let fed = fed.map_err(|_| ForwardError::Client)?;
            client.consume(fed.consumed);
            let frame = ChunkFrame::new(chunked, content.len(), fed.done);
            let mut parts =
                [IoSlice::new(frame.before()), IoSlice::new(&content), IoSlice::new(frame.after())];
            let sent = send_all_parts(&mut connection.stream.conn, &mut parts).await;
            sent.map_err(|error| ForwardError::of(&error, connection, request))?;
        }
        Ok(true)
    }

    /// Forwards `1xx` replies to the client. Returns false when the origin sends the final reply.
    async fn pass_all_interim(
        &self,
        client: &mut Client<L>,
        request: &ForwardedRequest,
        connection: &mut Connection<L::Conn>,
    ) -> Result<bool, ForwardError> {
        loop {
            match parse_reply(connection.stream.unread(), |reply| self.interim(reply)) {
                Ok(Some(Some(interim))) => self.pass_interim(client, request, connection, interim).await?,
                // The reply is final, incomplete or malformed, which its reader detects.
                _ => return Ok(connection.stream.unread().is_empty()),
            }
        }
    }

    /// A `1xx` reply as the client receives it; `None` for other replies.
    fn interim(&self, reply: &ReplyHead<'_, '_>) -> Option<Interim> {
        matches!(reply.status, 100 | 102..=199).then(|| {
            let mut head = Vec::with_capacity(reply.len + 128);
            write_reply(&mut head, reply, false, self.link.unix_millis() / 1000, &self.shared.name);
            head.extend_from_slice(b"\r\n");
            Interim { head, len: reply.len }
        })
    }

    /// Forwards a `1xx` reply to the client.
    async fn pass_interim(
        &self,
        client: &mut Client<L>,
        request: &ForwardedRequest,
        connection: &mut Connection<L::Conn>,
        interim: Interim,
    ) -> Result<(), ForwardError> {
        connection.stream.consume(interim.len);
        if request.client.minor > 0 {
            client.conn.set_deadline(Some(self.link.now() + self.io_timeout));
            let passed = send_all_parts(&mut client.conn, &mut [IoSlice::new(&interim.head)]).await;
            passed.map_err(|_| ForwardError::Client)?;
            self.counters.bytes_out.add(interim.head.len() as u64);
        }
        Ok(())
    }

    async fn read_reply_head(
        &self,
        client: &mut Client<L>,
        request: &ForwardedRequest,
        connection: &mut Connection<L::Conn>,
        request_ms: u64,
    ) -> Result<Admission, ForwardError> {
        let mut seen = 0;
        loop {
            if connection.stream.unread()[seen..].contains(&b'\n') {
                let head = parse_reply(connection.stream.unread(), |reply| match self.interim(reply) {
                    Some(interim) => OriginHead::Interim(interim),
                    None => OriginHead::Final(self.admit(request, reply, request_ms)),
                });
                match head {
                    Ok(Some(OriginHead::Final(admission))) => return admission,
                    Ok(Some(OriginHead::Interim(interim))) => {
                        self.pass_interim(client, request, connection, interim).await?;
                        seen = 0;
                        continue;
                    }
                    Ok(None) => {}
                    Err(_) => return Err(ForwardError::Gateway(502, "The origin's reply is not HTTP/1.")),
                }
            }
            seen = connection.stream.unread().len();
            if seen > MAX_HEAD {
                let text = "The head of the origin's reply is too large.";
                return Err(ForwardError::Gateway(502, text));
            }
            connection.stream.conn.set_deadline(Some(self.link.now() + self.io_timeout));
            match connection.stream.fill(&self.bodies).await {
                Ok(0) => {
                    let end = io::ErrorKind::UnexpectedEof.into();
                    return Err(ForwardError::of(&end, connection, request));
                }
                Ok(n) => self.counters.bytes_in.add(n as u64),
                Err(error) => return Err(ForwardError::of(&error, connection, request)),
            }
        }
    }
}
