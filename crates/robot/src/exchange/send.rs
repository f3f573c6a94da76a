//! Sending a request: its head, and its body if it has one.

use std::io::{self, IoSlice};

use polygraph_link::{Conn, Link, send_all};
use polygraph_stats::ErrorKind;
use polygraph_tls::failure::TlsFailure;
use polygraph_traffic::coding::gzip;
use polygraph_traffic::{AbortCoords, Body, Draw, Oid, RequestKind};
use polygraph_transport::Channel;
use polygraph_wire::checksum::{self, ContentMd5};
use polygraph_wire::upload::{UploadDigest, UploadMark};

use super::InFlight;
use crate::connections::pool::PooledConnection;
use crate::context::RobotContext;
use crate::failure::{TransactionFailure, connect_error, stream_error, tls_failure};
use crate::request::Request;
use crate::request::encode::{self, BodyFields, HeadContext};
use crate::settings::Expect;

/// The body of a request.
#[derive(Debug)]
pub struct Upload {
    /// The rest that has not been sent.
    body: Body,
    /// Announced length of the whole body in bytes.
    length: u64,
    digest: Option<String>,
    mark: UploadMark,
    abort: AbortCoords,
    /// Whether the robot stops in the middle of the body.
    pub is_cut: bool,
    /// Whether the robot waits for 100 (continue) before it sends the body.
    pub expects_continue: bool,
}

impl Upload {
    /// The object `oid` as the body of `request`.
    pub fn new<L: Link>(cx: RobotContext<'_, L>, request: &Request, oid: Oid) -> Upload {
        let catalog = &cx.settings.field.catalog;
        let mut body = catalog.body(&oid, &[]);
        if catalog.content(oid.kind).is_some_and(|content| content.encodings.compresses_requests()) {
            body = gzip(body);
        }
        // The draw depends on the transaction only, so a retry is aborted at the same position.
        let mut rng = Draw::new(u64::from(request.xact.counter) ^ cx.settings.seed.0 << 32);
        let abort = AbortCoords::draw(cx.profile().abort_prob, &mut rng);
        let (length, digest) = (body.len(), catalog.has_checksum(&oid).then(|| digest_of(&body)));
        let mark = mark_of(&body);
        let cut = abort.cut(length);
        if let Some(position) = cut {
            body.truncate(position);
        }
        let expects_continue = match cx.profile().expect {
            Expect::Never => false,
            Expect::Prob(prob) => cx.http_minor() > 0 && cx.draw_event(prob),
            Expect::From(size) => cx.http_minor() > 0 && length >= size,
        };
        Upload { body, length, digest, mark, abort, is_cut: cut.is_some(), expects_continue }
    }

    fn fields(&self) -> BodyFields<'_> {
        let Upload { length, ref digest, mark, abort, expects_continue, .. } = *self;
        BodyFields { length, digest: digest.as_deref(), mark, abort, expects_continue }
    }
}

fn each_chunk(body: &Body, mut see: impl FnMut(&[u8])) {
    let mut body = body.clone();
    while !body.is_empty() {
        let n = body.chunk().len();
        see(body.chunk());
        body.advance(n as u64);
    }
}

fn mark_of(body: &Body) -> UploadMark {
    let mut digest = UploadDigest::default();
    each_chunk(body, |bytes| digest.update(bytes));
    digest.mark()
}

fn digest_of(body: &Body) -> String {
    let mut digest = ContentMd5::default();
    each_chunk(body, |bytes| digest.update(bytes));
    String::from_utf8_lossy(&checksum::text(digest.finish())).into_owned()
}

/// Sends a request on a connection, with its body unless the robot waits for 100 (continue).
///
/// # Errors
/// If the connection fails.
pub async fn request<L: Link>(
    cx: RobotContext<'_, L>,
    connection: &mut PooledConnection<L::Conn>,
    flight: &mut InFlight<'_>,
    mut upload: Option<&mut Upload>,
) -> Result<(), TransactionFailure> {
    connection.uses += 1;
    let last = connection.uses >= connection.use_limit;
    let conn = &mut connection.conn;
    // The socket nearly always takes the whole request at once, so the one buffer of the loop is enough. The body is sent along with
    // the head: behind it, a small body would wait until the peer has acknowledged the head (RFC 1122, section 4.2.3.4), and that
    // takes 40 ms if the peer waits for the body.
    let unsent = {
        let mut head = cx.head_buffer.borrow_mut();
        head.clear();
        let context = head_context(cx, flight, last, upload.as_deref());
        match send_fields(cx, conn, flight.request, &context, &mut head).map_err(|e| failure(&e))? {
            Some(size) => {
                flight.exchange.sent += size as u64;
                None
            }
            None => {
                head.clear();
                encode::write(flight.request, &context, &mut head);
                flight.exchange.sent += head.len() as u64;
                let body = upload.as_deref_mut().filter(|upload| !upload.expects_continue);
                let body = body.map(|upload| &mut upload.body);
                send_with_head(cx, conn, &head, body, &mut flight.exchange.sent).map_err(|e| failure(&e))?
            }
        }
    };
    if let Some(rest) = unsent {
        send_all(conn, &rest).await.map_err(|e| failure(&e))?;
        count_written(cx, rest.len());
    }
    let now = cx.now();
    flight.exchange.head_sent = Some(now);
    if !std::mem::replace(&mut connection.established, true) {
        cx.recorder.with(|block| block.set_up_connection(connection.opened, now));
    }
    match upload {
        Some(upload) if !upload.expects_continue => body(cx, &mut connection.conn, flight, upload).await,
        _ => Ok(()),
    }
}

fn head_context<'a, L: Link>(
    cx: RobotContext<'a, L>,
    flight: &InFlight<'a>,
    last: bool,
    upload: Option<&'a Upload>,
) -> HeadContext<'a> {
    let (request, field) = (flight.request, &*cx.group.settings.field);
    let worlds = match field.share_worlds && request.foreign.is_none() {
        true => cx.generator.borrow_mut().worlds_to_share(field, request.server),
        false => (None, None),
    };
    let validates = matches!(request.kind, RequestKind::Ims200 | RequestKind::Ims304);
    HeadContext {
        field,
        profile: cx.profile(),
        via_proxy: cx.is_via_proxy(request),
        http_minor: cx.http_minor(),
        last,
        unix_s: if validates { cx.link.unix_seconds() } else { 0 },
        group: cx.settings.group,
        worlds,
        position: cx.phase_position(),
        body: upload.map(Upload::fields),
        lines: flight.lines,
    }
}

/// Sends a request whose head is plain on a stream, without its HTTP/1 form. Returns the size that it has in this form; `None` if it was not
/// sent. `memory` is empty at first.
fn send_fields<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &mut Channel<L::Conn>,
    request: &Request,
    context: &HeadContext<'_>,
    memory: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    if !conn.is_stream() || !context.is_plain(request) {
        return Ok(None);
    }
    context.field.catalog.write_path(&request.oid, memory);
    let line = context.line(request, memory);
    let host = line.authority.as_bytes();
    let sent = conn.send_request(&line, |fields| encode::pass(request, context, host, fields))?;
    sent.iter().for_each(|size| count_written(cx, *size));
    Ok(sent)
}

/// Sends as much of `head` and `body` as the socket accepts now. Returns the rest of the head, if there is any.
fn send_with_head<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &mut Channel<L::Conn>,
    head: &[u8],
    body: Option<&mut Body>,
    sent: &mut u64,
) -> io::Result<Option<Vec<u8>>> {
    let taken = match body.as_deref() {
        None => conn.try_send(&[IoSlice::new(head)]),
        Some(body) => {
            let mut slices = [IoSlice::new(head); 16];
            let used = body.slices(&mut slices[1..]);
            conn.try_send(&slices[..=used])
        }
    };
    match taken {
        Ok(n) => {
            count_written(cx, n);
            let of_body = n.saturating_sub(head.len()) as u64;
            if let Some(body) = body {
                body.advance(of_body);
                *sent += of_body;
            }
            Ok((n < head.len()).then(|| head[n..].to_vec()))
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Some(head.to_vec())),
        Err(e) => Err(e),
    }
}

/// Sends the rest of a request body.
///
/// # Errors
/// If the connection fails.
pub async fn body<L: Link>(
    cx: RobotContext<'_, L>,
    conn: &mut Channel<L::Conn>,
    flight: &mut InFlight<'_>,
    upload: &mut Upload,
) -> Result<(), TransactionFailure> {
    let body = &mut upload.body;
    while !body.is_empty() {
        let mut slices = [IoSlice::new(&[]); 16];
        let used = body.slices(&mut slices);
        match conn.try_send(&slices[..used]) {
            Ok(n) => {
                body.advance(n as u64);
                flight.exchange.sent += n as u64;
                count_written(cx, n);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                conn.writable().await.map_err(|e| failure(&e))?
            }
            Err(e) => return Err(failure(&e)),
        }
    }
    Ok(())
}

/// Counts the bytes of one write to a connection.
fn count_written<L: Link>(cx: RobotContext<'_, L>, bytes: usize) {
    cx.recorder.with(|block| block.writes.record(bytes as u64));
}

fn failure(error: &io::Error) -> TransactionFailure {
    if let Some(failure) = TlsFailure::of(error) {
        return tls_failure(failure, "while sending the request");
    }
    let detail = format!("while sending the request: {error}");
    if let Some((kind, unprocessed)) = stream_error(error) {
        return TransactionFailure { unprocessed, ..TransactionFailure::new(kind, detail) };
    }
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        io::ErrorKind::AddrNotAvailable => ErrorKind::NoPort,
        why => connect_error(why),
    };
    TransactionFailure::new(kind, detail)
}
