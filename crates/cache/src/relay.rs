//! Relays an origin's reply to the client and into the store.

use std::io::IoSlice;

use polygraph_link::{Conn, Link, send_all_parts};
use polygraph_wire::{BodyReader, Framing, decimal, field_start};

use crate::admission::Admission;
use crate::message::{ChunkFrame, write_end};
use crate::origins::Connection;
use crate::proxy::{Client, Proxy};
use crate::reply::AfterReply;
use crate::request::{ForwardError, ForwardedRequest};

/// Room for the fields at the end of a head that depend on the client and on the framing.
const HEAD_END: usize = 128;

impl<L: Link> Proxy<L> {
    /// Relays the reply as it arrives, behind its head. `whole`: the origin received the complete request.
    pub(crate) async fn relay(
        &self,
        client: &mut Client<L>,
        request: &mut ForwardedRequest,
        connection: &mut Connection<L::Conn>,
        admission: &mut Admission,
        whole: bool,
    ) -> Result<AfterReply, ForwardError> {
        let Admission { status, framing, is_bodiless, head: block, age, pending, .. } = admission;
        let (status, framing, is_bodiless, age) = (*status, *framing, *is_bodiless, *age);
        let is_open_ended = matches!(framing, Framing::Chunked | Framing::UntilClose);
        let until_close = is_open_ended && request.client.minor == 0;
        let chunked = is_open_ended && !until_close;
        let keep = request.client.keep && whole && !until_close && !self.is_stopping();

        let mut head = match pending {
            Some(_) => {
                let mut copy = Vec::with_capacity(block.len() + HEAD_END);
                copy.extend_from_slice(block);
                copy
            }
            None => std::mem::take(block),
        };
        match framing {
            _ if is_bodiless => {}
            Framing::Length(bytes) => {
                head.extend_from_slice(field_start!("Content-Length"));
                decimal::write(&mut head, bytes);
                head.extend_from_slice(b"\r\n");
            }
            _ if chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            _ => {}
        }
        write_end(&mut head, age, request.client.minor, keep);

        let mut reader = BodyReader::new(framing);
        let mut content = Vec::new();
        let mut ended = false;
        loop {
            content.clear();
            let fed = reader.feed(connection.stream.unread(), |piece| {
                if framing == Framing::Chunked {
                    content.extend_from_slice(piece);
                }
                if pending.as_mut().is_some_and(|pending| !pending.append(piece)) {
                    *pending = None;
                }
            });
            let Ok(fed) = fed else {
                self.counters.aborted.add(1);
                return Ok(AfterReply::Reset);
            };
            let done = fed.done || ended;
            if done && let Some(pending) = pending.take() {
                // The reply is stored before its last byte is sent, so that a client that has received it will find it
                // stored.
                self.store_complete(request, status, std::mem::take(block), pending);
            }
            let until = Some(self.link.now() + self.io_timeout);
            client.conn.set_deadline(until);
            // Nothing but the head differs from what the origin has sent.
            let is_as_sent =
                framing != Framing::Chunked && !chunked && fed.consumed == connection.stream.unread().len();
            let passed = match is_as_sent {
                true => connection.stream.pass_on(&head, &mut client.conn).await,
                false => None,
            };
            let sent = match passed {
                Some(passed) => passed,
                None => {
                    let piece: &[u8] = match framing {
                        Framing::Chunked => &content,
                        _ => &connection.stream.unread()[..fed.consumed],
                    };
                    let frame = ChunkFrame::new(chunked, piece.len(), done);
                    let mut parts = [&head, frame.before(), piece, frame.after()].map(IoSlice::new);
                    let bytes = parts.iter().map(|part| part.len()).sum();
                    let sent = send_all_parts(&mut client.conn, &mut parts).await.map(|()| bytes);
                    connection.stream.consume(fed.consumed);
                    sent
                }
            };
            self.counters.bytes_out.add(sent.map_err(|_| ForwardError::Client)? as u64);
            head.clear();
            if done {
                break;
            }
            connection.stream.conn.set_deadline(until);
            match connection.stream.fill(&self.bodies).await {
                Ok(0) if reader.ends_at_close() => ended = true,
                Ok(n @ 1..) => self.counters.bytes_in.add(n as u64),
                _ => {
                    self.counters.aborted.add(1);
                    return Ok(AfterReply::Reset);
                }
            }
        }
        Ok(match (keep, whole && !request.client.keep) {
            (true, _) => AfterReply::NextRequest,
            (false, true) => request.client.after(client),
            // The client does not expect the end of the connection and may have sent more.
            (false, false) => AfterReply::LingeringClose,
        })
    }
}
