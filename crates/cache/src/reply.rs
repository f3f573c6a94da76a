//! Replies to clients that come from the proxy: stored replies, and statuses with a sentence.

use std::io::{self, IoSlice};

use polygraph_link::{Conn, Link, send_all_parts};

use crate::buffered::BufferedConn;
use crate::content::Content;
use crate::message::{OwnReply, write_end, write_not_modified};
use crate::object::{Object, ReplyForm};
use crate::proxy::{Client, Proxy};

/// The state of a client's connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterReply {
    /// The connection carries the next request.
    NextRequest,
    /// The connection is closed.
    Close,
    /// The connection is closed once the client has read the reply, because the client may have sent more than was
    /// read.
    LingeringClose,
    /// The connection is reset, because the reply could not be completed.
    Reset,
}

/// The facts about a request on which the form of its reply depends.
#[derive(Clone, Copy, Debug)]
pub struct ClientContext {
    /// Bytes of the request's head.
    pub head_len: usize,
    /// The client's HTTP minor version.
    pub minor: u8,
    /// Whether the connection may persist.
    pub keep: bool,
}

impl ClientContext {
    /// The state of the connection after a complete reply to a request that was read completely.
    pub fn after<C: Conn>(&self, client: &BufferedConn<C>) -> AfterReply {
        if self.keep {
            AfterReply::NextRequest
        } else if client.unread().is_empty() {
            // The client has announced that it sends no more, so no data can arrive late.
            AfterReply::Close
        } else {
            AfterReply::LingeringClose
        }
    }
}

impl<L: Link> Proxy<L> {
    /// Sends a stored reply with one system call and without copying.
    pub(crate) async fn send_stored(
        &self,
        client: &mut Client<L>,
        object: &Object,
        form: ReplyForm,
        context: ClientContext,
    ) -> AfterReply {
        let mut end = [0; 64];
        let mut space = &mut end[..];
        let age = object.freshness.age_ms(self.link.unix_millis()) / 1000;
        write_end(&mut space, Some(age), context.minor, context.keep);
        let unused = space.len();
        let end = &end[..end.len() - unused];

        let mut not_modified = Vec::new();
        let (head, content): (&[u8], _) = match form {
            ReplyForm::Whole => (&object.head, Some(&object.body)),
            ReplyForm::Head => (&object.head, None),
            ReplyForm::NotModified => {
                not_modified.reserve(object.head.len() + 32);
                write_not_modified(&mut not_modified, &object.head);
                (&not_modified, None)
            }
        };
        client.conn.set_deadline(Some(self.link.now() + self.io_timeout));
        match send(&mut client.conn, head, end, content).await {
            Ok(bytes) => self.counters.bytes_out.add(bytes),
            Err(_) => {
                self.counters.aborted.add(1);
                return AfterReply::Close;
            }
        }
        context.after(client)
    }

    /// Sends a status and a sentence of the proxy itself.
    pub(crate) async fn send_own(
        &self,
        client: &mut Client<L>,
        reply: OwnReply<'_>,
        minor: u8,
        keep: bool,
    ) -> AfterReply {
        let keep = keep && !self.is_stopping();
        let reply = reply.bytes(minor, keep, self.link.unix_millis() / 1000, &self.shared.name);
        client.conn.set_deadline(Some(self.link.now() + self.io_timeout));
        match send_all_parts(&mut client.conn, &mut [IoSlice::new(&reply)]).await {
            Ok(()) => self.counters.bytes_out.add(reply.len() as u64),
            Err(_) => return AfterReply::Close,
        }
        if keep { AfterReply::NextRequest } else { AfterReply::LingeringClose }
    }
}

/// Sends a head in two parts and a content; returns the number of bytes.
async fn send<C: Conn>(conn: &mut C, head: &[u8], end: &[u8], content: Option<&Content>) -> io::Result<u64> {
    let bytes = (head.len() + end.len()) as u64 + content.map_or(0, Content::len);
    match content {
        None => send_all_parts(conn, &mut [IoSlice::new(head), IoSlice::new(end)]).await?,
        Some(Content::Kept(body)) => {
            let mut parts = [IoSlice::new(head), IoSlice::new(end), IoSlice::new(body)];
            send_all_parts(conn, &mut parts).await?;
        }
        Some(Content::Generated(recipe)) => {
            let (mut head, mut body) = (&[head, end].concat()[..], recipe.body());
            while !(head.is_empty() && body.is_empty()) {
                let mut parts = [IoSlice::new(&[]); 16];
                parts[0] = IoSlice::new(head);
                let used = 1 + body.slices(&mut parts[1..]);
                match conn.try_send(&parts[..used]) {
                    Ok(n) => {
                        let of_head = n.min(head.len());
                        head = &head[of_head..];
                        body.advance((n - of_head) as u64);
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => conn.writable().await?,
                    Err(e) => return Err(e),
                }
            }
        }
    }
    Ok(bytes)
}
