//! Writes replies, and refuses what is no request.

use std::io::{self, IoSlice};

use polygraph_link::{Conn, Link, Nanos};
use polygraph_stats::ErrorKind;
use polygraph_traffic::{Body, Oid, Random};
use polygraph_transport::Channel;
use polygraph_wire::worlds::WorldMark;

use super::{Server, Transaction};
use crate::known_worlds::KnownWorlds;
use crate::object_lookup::RequestedObject;
use crate::record::Sent;
use crate::reply::{ReplyContext, ReplyWriter};
use crate::request::{Rejection, Request};

/// A reply of up to so many bytes usually needs one send. For larger ones, a segment more or less does not matter.
const ONE_SEND: u64 = 64 * 1024;

/// The most slices of a send: the head and pieces of the body.
const SLICES: usize = 16;

impl<L: Link> Server<L> {
    /// Sends the reply. `is_end` tells that the client sends nothing more.
    pub(super) async fn reply(
        &self,
        conn: &mut Channel<L::Conn>,
        request: &Request,
        transaction: &Transaction,
        is_end: bool,
    ) -> io::Result<Sent> {
        let origin = &self.origin;
        let date = origin.link.http_date();
        let writer = ReplyWriter {
            config: &origin.config,
            profile: self.profile(),
            identity: &self.identity,
            request,
            about: ReplyContext {
                date: &date,
                now: origin.link.unix_seconds(),
                last: transaction.last,
                refuse_body: transaction.refuse_body,
                redirect: self.redirect(request),
                remote_world: self.exchange_worlds(request),
                phases: origin.phase_fields(&request.marks),
            },
        };
        // Nearly always the socket takes head and body at once, and the one buffer of the loop suffices.
        let (mut body, unsent, mut sent) = {
            let mut head = origin.head.borrow_mut();
            head.clear();
            let reply = writer.write(&mut origin.rng.borrow_mut(), &mut head);
            let mut body = reply.body;
            let size = head.len() as u64 + body.len();
            if is_end && !reply.is_cut && size <= ONE_SEND {
                conn.expect_end();
            }
            let sent = self.send_some(conn, &head, &body)?;
            body.advance(sent.saturating_sub(head.len()) as u64);
            let begun = (0 < sent && (sent as u64) < size).then(|| self.now());
            let sent_reply = Sent {
                status: reply.status,
                size,
                is_cut: reply.is_cut,
                cookies: reply.cookies,
                begun,
                custom: self.profile().custom_scope.contains(reply.status),
            };
            (body, head[sent.min(head.len())..].to_vec(), sent_reply)
        };
        self.send_rest(conn, &unsent, &mut body, &mut sent.begun).await?;
        Ok(sent)
    }

    async fn send_rest(
        &self,
        conn: &mut Channel<L::Conn>,
        mut head: &[u8],
        body: &mut Body,
        begun: &mut Option<Nanos>,
    ) -> io::Result<()> {
        while !(head.is_empty() && body.is_empty()) {
            // A body of many pieces is sent a few pieces at a time, so a short send does not mean that the socket is
            // full.
            let sent = self.send_some(conn, head, body)?;
            if sent == 0 {
                conn.writable().await?;
                continue;
            }
            if begun.is_none() {
                *begun = Some(self.now());
            }
            let of_head = sent.min(head.len());
            head = &head[of_head..];
            body.advance((sent - of_head) as u64);
        }
        Ok(())
    }

    /// The object to which a request is redirected; `None` if it is not.
    fn redirect(&self, request: &Request) -> Option<Oid> {
        let profile = self.profile();
        let redirects = profile.redirects.as_ref()?;
        if request.fault.is_some()
            || request.denial.is_some()
            || request.method.has_body()
            || !matches!(request.requested, RequestedObject::Object(_))
        {
            return None;
        }
        let mut rng = self.origin.rng.borrow_mut();
        if !rng.event(redirects.share * self.origin.special()) {
            return None;
        }
        let known_worlds = self.known_worlds.borrow();
        let catalog = &self.origin.config.catalog;
        let target = known_worlds.get(request.name).and_then(|worlds| {
            worlds.choose(&redirects.popularity, catalog, profile.contents.items(), &mut *rng)
        });
        if target.is_none() {
            let detail = || "no object is known yet".to_owned();
            self.origin.recorder.error(ErrorKind::NoRedirect, self.now(), detail);
        }
        target
    }

    /// Records what the client reports about worlds, and returns a world that it may not know.
    fn exchange_worlds(&self, request: &Request) -> Option<WorldMark> {
        let shares = self.origin.config.share_worlds;
        let marks = &request.marks;
        if !(shares || self.profile().redirects.is_some())
            || marks.local_world.is_none() && marks.remote_world.is_none()
        {
            return None;
        }
        let mut known_worlds = self.known_worlds.borrow_mut();
        if known_worlds.len() <= request.name {
            known_worlds.resize_with(request.name + 1, KnownWorlds::default);
        }
        let worlds = &mut known_worlds[request.name];
        if let Some(local) = &marks.local_world {
            worlds.learn(local);
        }
        let quoted = marks.remote_world.as_ref().filter(|_| shares)?;
        worlds.advise(quoted, marks.local_world.as_ref())
    }

    /// Sends as much of head and body as the connection takes now, and returns the number of bytes.
    fn send_some(&self, conn: &mut Channel<L::Conn>, head: &[u8], body: &Body) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        slices[0] = IoSlice::new(head);
        let used = 1 + body.slices(&mut slices[1..]);
        match conn.try_send(&slices[..used]) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
            Ok(sent) => {
                self.count_written(sent);
                Ok(sent)
            }
        }
    }

    /// Answers bytes that are not a request.
    pub(super) fn refuse(&self, conn: &mut Channel<L::Conn>, refusal: Rejection) {
        let (kind, reply): (_, &[u8]) = match refusal {
            Rejection::Malformed => (ErrorKind::BadHead, b"HTTP/1.1 400 Bad Request\r\n"),
            Rejection::TooLarge => {
                (ErrorKind::HeadTooLarge, b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
            }
            Rejection::Version => (ErrorKind::WrongVersion, b"HTTP/1.1 505 HTTP Version Not Supported\r\n"),
        };
        self.count_broken(kind, "in a request".into());
        // A client that does not speak HTTP/1 on this port cannot read such a reply.
        if conn.is_stream() || self.profile().accepts_http1 || refusal == Rejection::Version {
            self.send_refusal(conn, reply);
        }
    }

    /// Sends a minimal error reply.
    pub(super) fn send_refusal(&self, conn: &mut Channel<L::Conn>, reply: &[u8]) {
        let rest = b"Connection: close\r\nContent-Length: 0\r\n\r\n";
        // The connection ends in any case, so a failed send does not matter.
        let _ = conn.try_send(&[IoSlice::new(reply), IoSlice::new(rest)]);
    }
}
