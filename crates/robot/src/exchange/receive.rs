//! Reading a reply.

use std::io;

use polygraph_link::{Conn, Link, Nanos};
use polygraph_stats::ErrorKind;
use polygraph_tls::failure::TlsFailure;
use polygraph_traffic::{AbortCoords, Method};
use polygraph_transport::Channel;
use polygraph_wire::head::HeadIndex;

use super::InFlight;
use super::entity::Entity;
use super::reply::{Progress, ReplyReader};
use super::send::{self, Upload};
use crate::connections::counts;
use crate::connections::hop::Hop;
use crate::context::RobotContext;
use crate::failure::{TransactionFailure, connect_error, stream_error};
use crate::request::Request;
use crate::violation::{ExpectedVsActual, Violation};

/// How long the robot waits for 100 (continue) before it sends the body without it.
const CONTINUE_TIMEOUT: Nanos = Nanos::from_secs(3);
/// How long the robot waits for more of a reply that only the end of the connection would end, although the connection is to stay
/// open.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(5);

/// A reply that is being read.
pub struct Incoming<'a> {
    /// Reads head and framing.
    pub reader: ReplyReader,
    /// Checks the content.
    pub entity: Entity<'a>,
    /// Bytes that arrived after the previous reply, or after this one.
    pub carry: Vec<u8>,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    /// The reply is complete.
    Complete,
    /// A complete final reply arrived instead of 100 (continue), so the robot does not send the body.
    BeforeBody,
    /// The robot has aborted the transaction in the middle of the request body.
    BodyCut,
}

impl<'a> Incoming<'a> {
    /// The reply to `request`, whose URL is `url()`.
    pub fn new<L: Link>(
        cx: RobotContext<'a, L>,
        request: &'a Request,
        url: &'a dyn Fn() -> String,
        expects_continue: bool,
        carry: Vec<u8>,
    ) -> Incoming<'a> {
        let reader = ReplyReader::new(request.method == Method::Head, expects_continue);
        Incoming { reader, entity: Entity::new(cx, request, url), carry }
    }

    /// Checks that nothing follows the last reply.
    ///
    /// # Errors
    /// If bytes follow.
    pub fn check_end(&self) -> Result<(), TransactionFailure> {
        match self.carry.len() {
            0 => Ok(()),
            rest => Err(failure(ErrorKind::BodyLong, &format!("{rest} bytes too many; "), &self.reader)),
        }
    }
}

/// Reads a reply. Before that, sends the body of a request that waits for 100 (continue).
///
/// # Errors
/// If the connection fails, if the reply violates HTTP, or if it is not complete at the deadline.
pub async fn reply<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &mut Channel<L::Conn>,
    flight: &mut InFlight<'_>,
    incoming: &mut Incoming<'_>,
    upload: Option<&mut Upload>,
    found_link: &mut impl FnMut(&Request, Hop, &[u8]),
) -> Result<ReplyEnd, TransactionFailure> {
    let deadline = flight.exchange.deadline;
    if let Some(upload) = upload {
        if upload.expects_continue {
            // A server that does not support the expectation sends nothing; the client must not wait for ever (RFC
            // 9110, section 10.1.1).
            conn.set_deadline(earlier(cx.now() + CONTINUE_TIMEOUT, deadline));
            match read(cx, conn, flight, incoming, found_link).await {
                Ok(Progress::Continue { .. }) => flight.exchange.continued = Some(cx.now()),
                Ok(_) => return Ok(ReplyEnd::BeforeBody),
                Err(failure)
                    if failure.violation.kind == ErrorKind::Timeout && incoming.reader.is_silent() => {}
                Err(failure) => return Err(failure),
            }
            incoming.reader.stop_awaiting();
            conn.set_deadline(deadline);
            send::body(cx, conn, flight, upload).await?;
        }
        if upload.is_cut {
            return Ok(ReplyEnd::BodyCut);
        }
    }
    read(cx, conn, flight, incoming, found_link).await?;
    Ok(ReplyEnd::Complete)
}

/// Reads until the reply is complete or 100 (continue) has arrived.
async fn read<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &mut Channel<L::Conn>,
    flight: &mut InFlight<'_>,
    incoming: &mut Incoming<'_>,
    found_link: &mut impl FnMut(&Request, Hop, &[u8]),
) -> Result<Progress, TransactionFailure> {
    let Incoming { reader, entity, carry } = incoming;
    loop {
        let fed = if carry.is_empty() {
            let received = conn.recv_head(|data, index| {
                cx.recorder.read(flight.request.handle, data.len() as u64);
                reader.reuse(|| cx.spare_replies.borrow_mut().pop());
                feed(reader, entity, data, index, carry)
            });
            received.await.map_err(|e| receive_failure(cx, conn, &e, reader))?
        } else {
            let data = std::mem::take(carry);
            feed(reader, entity, &data, None, carry)
        };
        let progress = fed.map_err(|violation| {
            let Violation { kind, mut detail, .. } = *violation;
            if !detail.is_empty() {
                detail.push_str("; ");
            }
            failure(kind, &detail, reader)
        })?;
        if let Some(links) = &mut entity.links {
            if matches!(progress, Progress::Complete { .. }) {
                links.finish();
            }
            links.found.iter().for_each(|link| found_link(flight.request, flight.exchange.hop, link));
            links.found.clear();
        }
        if progress != Progress::Partial {
            return Ok(progress);
        }
        if reader.is_endless() {
            conn.set_deadline(earlier(cx.now() + CLOSE_TIMEOUT, flight.exchange.deadline));
        }
        if flight.exchange.first_byte.is_none() && !reader.is_silent() {
            flight.exchange.first_byte = Some(cx.now());
        }
    }
}

/// Passes `data` to the reader, and keeps the bytes of the next reply.
fn feed(
    reader: &mut ReplyReader,
    entity: &mut Entity<'_>,
    data: &[u8],
    index: Option<&HeadIndex>,
    carry: &mut Vec<u8>,
) -> Result<Progress, Box<Violation>> {
    let fed = reader.feed_indexed(data, index, entity);
    if let Ok(Progress::Complete { rest } | Progress::Continue { rest }) = fed {
        carry.extend_from_slice(&data[data.len() - rest..]);
    }
    fed
}

fn earlier(at: Nanos, deadline: Option<Nanos>) -> Option<Nanos> {
    Some(deadline.map_or(at, |deadline| deadline.min(at)))
}

/// Whether a reply is incomplete because its server aborted it, as announced in the head (`docs/reference/models.md`,
/// "Aborts").
pub fn is_intended<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    failure: &TransactionFailure,
) -> bool {
    let Some(reply) = failure.reply.as_deref() else { return false };
    let Some(mark) = reply.marks.abort else { return false };
    let cut_short =
        matches!(failure.violation.kind, ErrorKind::BodyShort | ErrorKind::Reset | ErrorKind::StreamReset);
    let coords = AbortCoords { whether: mark.whether.get(), place: mark.place.get() };
    let size = reply.length.unwrap_or_else(|| cx.settings.field.catalog.size(&request.oid));
    cut_short && coords.cut(size).is_some_and(|position| reply.body_bytes <= position)
}

fn receive_failure<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &Channel<L::Conn>,
    error: &io::Error,
    reader: &ReplyReader,
) -> TransactionFailure {
    // An alert to all streams of a connection is counted at its end.
    if !conn.is_stream() {
        counts::alert(cx, error);
    }
    if let Some(tls) = TlsFailure::of(error) {
        let kind = tls.kind.class();
        return failure(kind, &format!("TLS while waiting for the reply: {tls}; "), reader);
    }
    if let Some((kind, unprocessed)) = stream_error(error) {
        let failure = failure(kind, &format!("while waiting for the reply: {error}; "), reader);
        return TransactionFailure { unprocessed, ..failure };
    }
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if reader.is_endless() => {
            return failure(ErrorKind::NoLength, "no length, and the connection stays open; ", reader);
        }
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset => ErrorKind::Reset,
        why => connect_error(why),
    };
    failure(kind, &format!("while waiting for the reply: {error}; "), reader)
}

/// A failure while a reply was read. The detail starts with `what` and ends with how far the reply came.
fn failure(kind: ErrorKind, what: &str, reader: &ReplyReader) -> TransactionFailure {
    let reply = reader.meta();
    let state = match reply {
        _ if reader.is_silent() => "nothing received".into(),
        None => format!("{} bytes of a head received", reader.received()),
        Some(reply) => format!("status {}, {} body bytes received", reply.status, reply.body_bytes),
    };
    let expected = match reply.and_then(|reply| Some((reply.status, reply.length?))) {
        Some((status, length)) => format!("status {status}, {length} body bytes"),
        None => "a complete reply".into(),
    };
    let comparison = ExpectedVsActual { expected, actual: format!("{what}{state}") };
    let violation =
        Violation { kind, detail: comparison.actual.clone(), comparison: Some(Box::new(comparison)) };
    TransactionFailure { reply: reply.map(|reply| Box::new(reply.clone())), ..violation.into() }
}
