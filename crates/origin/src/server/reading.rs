//! Reads requests: heads, and bodies.

use std::io;

use polygraph_link::{Conn, Link, Nanos, SECOND, send_all};
use polygraph_stats::{CloseKind, ErrorKind};
use polygraph_traffic::AbortCoords;
use polygraph_transport::Channel;
use polygraph_wire::{BodyError, preflight};

use super::Server;
use crate::record::{ServerOutcome, kind_of_fault};
use crate::request::{Rejection, Request, RequestReader};
use crate::upload::Upload;

/// The longest time from the first byte of a request head to its last. The head of a robot's request arrives at once.
pub(super) const HEAD_LIMIT: Nanos = Nanos::from_secs(30);
/// How long a new connection may be silent if idle connections have no limit, because devices may connect in advance.
const SILENCE_LIMIT: Nanos = Nanos::from_secs(300);

/// The interim reply to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What arrives on a connection between two requests.
pub(crate) enum NextRequest {
    /// A request, and when its first byte arrived if the head did not arrive at once.
    Request(Option<Nanos>),
    /// The connection ended without another request.
    Closed(CloseKind),
    /// An incomplete request.
    Broken(ErrorKind, String),
    Refused(Rejection),
    /// Bytes that do not look like a request, on a connection without an earlier one: a port scan.
    Noise,
    /// The start of HTTP/2.
    Http2,
    /// Bytes with which neither HTTP/2 nor HTTP/1 starts, from a client that may speak HTTP/2.
    NoPreface,
    /// A preflight request, and the reply to it, see [`preflight`].
    Preflight(Vec<u8>),
}

/// Why a request body is incomplete.
pub(super) enum BodyFault {
    Coding,
    /// Content, although the method has none.
    Forbidden,
    Ended(io::Error),
}

impl From<BodyError> for BodyFault {
    fn from(_: BodyError) -> BodyFault {
        BodyFault::Coding
    }
}

impl From<io::Error> for BodyFault {
    fn from(error: io::Error) -> BodyFault {
        BodyFault::Ended(error)
    }
}

impl<L: Link> Server<L> {
    /// Reads the next head into `request`; `inbox` contains bytes that have arrived but are not used yet.
    pub(crate) async fn next_request(
        &self,
        conn: &mut Channel<L::Conn>,
        request: &mut Request,
        inbox: &mut Vec<u8>,
        first: bool,
    ) -> NextRequest {
        let patience = self.profile().idle_timeout.or(first.then_some(SILENCE_LIMIT));
        conn.set_deadline(patience.map(|patience| self.now() + patience));
        let (mut taken, mut begun) = (Ok(false), None);
        if !inbox.is_empty() {
            let data = std::mem::take(inbox);
            taken = self.take(&data, request, inbox);
        }
        loop {
            // Nothing else begins so, and four bytes are enough to know.
            if first && inbox.len() >= 4 && polygraph_multiplex::may_be_http2(inbox) {
                return match self.profile().http2 {
                    Some(_) => NextRequest::Http2,
                    None => NextRequest::Refused(Rejection::Version),
                };
            }
            if first && self.lacks_preface(conn, inbox, &taken) {
                return NextRequest::NoPreface;
            }
            match taken {
                Ok(true) if !self.profile().accepts_http1 && first => {
                    return NextRequest::Refused(Rejection::Version);
                }
                Ok(true) => return NextRequest::Request(begun),
                Ok(false) if !first || is_blank(inbox) || begins_like_a_request(inbox) => {}
                Err(refusal) if !first || begins_like_a_request(inbox) => {
                    return NextRequest::Refused(refusal);
                }
                _ => return NextRequest::Noise,
            }
            if begun.is_none() && !is_blank(inbox) {
                let now = self.now();
                begun = Some(now);
                // The connection is not idle any more, but a client that never completes its request must not keep it
                // open for ever.
                conn.set_deadline(Some(now + HEAD_LIMIT));
            }
            let mut look = None;
            let received = conn
                .recv(|data| {
                    if inbox.is_empty() {
                        look = preflight::token(data).map(preflight::reply);
                    }
                    if look.is_some() {
                        return None;
                    }
                    self.count_read(data);
                    if data.is_empty() {
                        return None;
                    }
                    if inbox.is_empty() {
                        return Some(self.take(data, request, inbox));
                    }
                    let mut all = std::mem::take(inbox);
                    all.extend_from_slice(data);
                    Some(self.take(&all, request, inbox))
                })
                .await;
            if let Some(reply) = look {
                return NextRequest::Preflight(reply);
            }
            let idle = is_blank(inbox);
            taken = match received {
                Ok(Some(taken)) => taken,
                // An idle connection may be closed in any way; a request that has started must be completed.
                Err(e) if idle && e.kind() == io::ErrorKind::TimedOut => {
                    return NextRequest::Closed(CloseKind::IdleLocal);
                }
                Ok(None) | Err(_) if idle => return NextRequest::Closed(CloseKind::IdleForeign),
                Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                    self.send_refusal(conn, b"HTTP/1.1 408 Request Timeout\r\n");
                    let limit = HEAD_LIMIT / SECOND;
                    return NextRequest::Broken(
                        ErrorKind::Timeout,
                        format!("no complete request head after {limit} s"),
                    );
                }
                Ok(None) => {
                    return NextRequest::Broken(ErrorKind::HeadShort, "while reading a request".into());
                }
                Err(e) => {
                    return NextRequest::Broken(
                        ErrorKind::HeadShort,
                        format!("while reading a request: {e}"),
                    );
                }
            };
        }
    }

    /// Reads a request head from `data`. The rest, or all of it if the head is incomplete or invalid, goes to
    /// `inbox`.
    fn take(&self, data: &[u8], request: &mut Request, inbox: &mut Vec<u8>) -> Result<bool, Rejection> {
        let reader = RequestReader {
            config: &self.origin.config,
            profile: self.profile(),
            names: &self.names,
            all_names: &self.origin.all_names,
        };
        let read = reader.read(data, request, &mut self.origin.scratch.borrow_mut());
        let used = if read == Ok(true) { request.head_size } else { 0 };
        inbox.extend_from_slice(&data[used..]);
        read
    }

    /// Reads the body of a request. If the client `asks`, it first gets permission to continue.
    pub(super) async fn receive_body(
        &self,
        conn: &mut Channel<L::Conn>,
        upload: &mut Upload,
        asks: bool,
        inbox: &mut Vec<u8>,
    ) -> Result<(), BodyFault> {
        if asks {
            send_all(conn, CONTINUE).await?;
            self.count_written(CONTINUE.len());
        }
        let mut take = |data: &[u8], inbox: &mut Vec<u8>| -> Result<bool, BodyFault> {
            let used = upload.feed(data)?;
            inbox.extend_from_slice(&data[used..]);
            if upload.is_forbidden() { Err(BodyFault::Forbidden) } else { Ok(upload.is_done()) }
        };
        let data = std::mem::take(inbox);
        let mut done = take(&data, inbox)?;
        while !done {
            done = conn
                .recv(|data| {
                    self.count_read(data);
                    if data.is_empty() {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                    take(data, inbox)
                })
                .await??;
        }
        Ok(())
    }

    pub(super) fn body_fault(
        &self,
        conn: &mut Channel<L::Conn>,
        upload: &Upload,
        coords: Option<AbortCoords>,
        fault: BodyFault,
    ) -> ServerOutcome {
        let so_far = upload.received();
        match fault {
            BodyFault::Coding => {
                self.send_refusal(conn, b"HTTP/1.1 400 Bad Request\r\n");
                ServerOutcome::Failed(
                    ErrorKind::BadCoding,
                    format!("in a request after {so_far} bytes of body"),
                )
            }
            BodyFault::Forbidden => {
                self.send_refusal(conn, b"HTTP/1.1 400 Bad Request\r\n");
                ServerOutcome::Failed(
                    ErrorKind::ForbiddenLength,
                    "the request has a body, and its method has none".into(),
                )
            }
            BodyFault::Ended(e) if e.kind() == io::ErrorKind::TimedOut => {
                ServerOutcome::Failed(ErrorKind::Timeout, format!("after {so_far} bytes of a request's body"))
            }
            BodyFault::Ended(_) if upload.is_cut(coords) => ServerOutcome::CutByClient,
            BodyFault::Ended(e) => ServerOutcome::Failed(
                kind_of_fault(&e).unwrap_or(ErrorKind::BodyShort),
                format!("after {so_far} bytes of a request's body: {e}"),
            ),
        }
    }
}

/// Whether the data consists of line ends only, which may precede a request (RFC 9112, section 2.2).
fn is_blank(data: &[u8]) -> bool {
    data.iter().all(|&b| b == b'\r' || b == b'\n')
}

/// Whether the data may be the start of a request line: a method in capital letters.
pub(crate) fn begins_like_a_request(data: &[u8]) -> bool {
    let data = data.trim_ascii_start();
    let letters = data.iter().take_while(|b| b.is_ascii_uppercase()).count();
    (1..=20).contains(&letters) && data.get(letters).is_none_or(|&b| b == b' ')
}
