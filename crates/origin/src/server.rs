//! Serves a connection: request, think time, reply, until one side closes it.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos, SECOND, nanos, send_all};
use polygraph_stats::{CloseKind, ErrorKind, Recorder};
use polygraph_tls::failure::TlsFailure;
use polygraph_traffic::{AbortCoords, Body, Oid, Random};
use polygraph_transport::Channel;
use polygraph_transport::tls::{self, TlsServer};
use polygraph_wire::auth::access::{AccessRequest, ConnectionAccess};
use polygraph_wire::worlds::WorldMark;
use polygraph_wire::{BodyError, preflight};

use crate::known_worlds::KnownWorlds;
use crate::names::ServerNames;
use crate::object_lookup::RequestedObject;
use crate::origin::Origin;
use crate::record::{ConnectionId, Sent, ServerOutcome, TransactionTimes, kind_of_fault, record_outcome};
use crate::reply::{ReplyContext, ReplyWriter, ServerIdentity};
use crate::request::{Expectation, Rejection, Request, RequestReader};
use crate::settings::{ServerProfile, ServerSpec};
use crate::upload::Upload;

/// The longest time from the first byte of a request head to its last. The head of a robot's request arrives at once.
const HEAD_LIMIT: Nanos = Nanos::from_secs(30);
/// How long a new connection may be silent if idle connections have no limit, because devices may connect in advance.
const SILENCE_LIMIT: Nanos = Nanos::from_secs(300);

/// An origin server on one event loop.
#[derive(Debug)]
pub struct Server<L: Link> {
    origin: Rc<Origin<L>>,
    profile: usize,
    number: u64,
    names: ServerNames,
    identity: ServerIdentity,
    /// TLS, if the server has it; or why it cannot be used.
    tls: Option<Result<TlsServer, TlsFailure>>,
    /// The known worlds by server name; the list grows on demand.
    known_worlds: RefCell<Vec<KnownWorlds>>,
}

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

/// How a connection ended, or what else it carries.
enum ServedRequests {
    /// It ended; how, if no error occurred.
    Ended(Option<CloseKind>),
    /// It carries HTTP/2, of which these first bytes have arrived.
    Http2(Vec<u8>),
}

/// Why a request body is incomplete.
enum BodyFault {
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

/// A transaction in progress.
struct Transaction {
    started: Nanos,
    /// When its lifetime ends.
    deadline: Option<Nanos>,
    /// Whether the connection closes after it.
    last: bool,
    /// Whether the client must not send its body.
    refuse_body: bool,
}

impl<L: Link> Server<L> {
    /// A server of the loop of `origin`, ready to serve connections.
    ///
    /// # Panics
    /// If the configuration of `origin` has no such profile.
    pub fn new(origin: &Rc<Origin<L>>, spec: ServerSpec) -> Rc<Server<L>> {
        origin.register_server();
        let tls = origin.tls_of(&spec);
        Rc::new(Server {
            profile: spec.profile,
            number: spec.number,
            names: ServerNames::new(&spec.names, tls.is_some()),
            tls,
            identity: ServerIdentity::new(&origin.config, &spec, origin.contents),
            known_worlds: RefCell::default(),
            origin: Rc::clone(origin),
        })
    }

    pub(crate) fn profile(&self) -> &ServerProfile {
        &self.origin.config.profiles[self.profile]
    }

    /// TLS, if the server has it; or why it cannot be used.
    pub(crate) fn tls(&self) -> Option<&Result<TlsServer, TlsFailure>> {
        self.tls.as_ref()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.origin.link.now()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn link(&self) -> &L {
        &self.origin.link
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.origin.recorder
    }

    /// Serves an accepted connection until it ends.
    pub async fn serve(self: Rc<Self>, conn: L::Conn) {
        let opened = self.now();
        let connection = self.enter_connection(opened);
        let place = ConnectionId { server: self.number, connection, multiplexed: None };
        let (mut uses, mut looked) = (0, false);
        let closed = match self.secure(Channel::Plain(conn), opened).await {
            Some(mut conn) => {
                let served = self.serve_requests(&mut conn, place, &mut uses, &mut looked).await;
                // With early data, the handshake is complete only after the first request.
                self.count_handshake(&mut conn, opened);
                match served {
                    ServedRequests::Ended(closed) => closed,
                    ServedRequests::Http2(received) => {
                        // Its state is large, and most connections carry HTTP/1.
                        let served =
                            Box::pin(Rc::clone(&self).serve_http2(conn, &received, connection)).await;
                        (uses, looked) = (served.requests, served.looked);
                        served.closed
                    }
                }
            }
            None => None,
        };
        self.leave_connection(opened, closed, uses, looked);
    }

    /// Counts a connection that was accepted at `opened`. Returns its number on the loop.
    pub(crate) fn enter_connection(&self, opened: Nanos) -> u64 {
        self.origin.recorder.with(|block| {
            block.conns.enter(opened);
            block.established.enter(opened);
        });
        self.origin.number_connection()
    }

    /// Counts the end of a connection that was accepted at `opened` and carried `uses` requests. `looked` tells whether there was a
    /// preflight request.
    pub(crate) fn leave_connection(&self, opened: Nanos, closed: Option<CloseKind>, uses: u64, looked: bool) {
        let now = self.now();
        self.origin.recorder.with(|block| {
            if looked && uses == 0 {
                // The connection was only a preflight check, which is not part of the test.
                block.conns.forget(opened, now);
                block.established.forget(opened, now);
                return;
            }
            block.conns.leave(now);
            block.established.leave(now);
            if let Some(kind) = closed
                && uses > 0
            {
                block.close_connection(kind, (now - opened).as_micros(), uses);
            }
        });
    }

    /// Adds TLS to a connection that was accepted at `opened`, if the server has it. Returns `None` if that fails.
    async fn secure(&self, conn: Channel<L::Conn>, opened: Nanos) -> Option<Channel<L::Conn>> {
        let tls = match &self.tls {
            None => return Some(conn),
            Some(Ok(tls)) => tls,
            Some(Err(failure)) => {
                self.count_broken(failure.kind.class(), failure.to_string());
                return None;
            }
        };
        // A handshake is rare and its state is large, so it is boxed.
        let outcome = Box::pin(async {
            let mut secured = tls::accept(&self.origin.link, conn, tls)?;
            secured.set_deadline(Some(opened + HEAD_LIMIT));
            tls::handshake(&mut secured).await?;
            Ok::<_, io::Error>(secured)
        })
        .await;
        match outcome {
            Ok(mut secured) => {
                self.count_handshake(&mut secured, opened);
                Some(secured)
            }
            Err(e) => {
                if let Some(failure) = TlsFailure::of(&e) {
                    self.count_tls(failure);
                }
                None
            }
        }
    }

    /// Counts the handshake of a connection once it is complete.
    fn count_handshake(&self, conn: &mut Channel<L::Conn>, opened: Nanos) {
        if let Some(facts) = conn.take_handshake() {
            self.origin.recorder.with(|block| facts.count(&mut block.tls, opened));
        }
    }

    /// Serves all requests of a connection. Returns how it was closed, if no error occurred.
    async fn serve_requests(
        &self,
        conn: &mut Channel<L::Conn>,
        place: ConnectionId,
        uses: &mut u64,
        looked: &mut bool,
    ) -> ServedRequests {
        let mut limit = self.connection_uses();
        let (mut request, mut inbox) = (Request::default(), Vec::new());
        let mut access = ConnectionAccess::default();
        loop {
            let next = self.next_request(conn, &mut request, &mut inbox, *uses == 0).await;
            if *uses > 0 {
                let now = self.now();
                self.origin.recorder.with(|block| block.idle.leave(now));
            }
            let first_byte = match next {
                NextRequest::Request(first_byte) => first_byte,
                NextRequest::Http2 => return ServedRequests::Http2(inbox),
                NextRequest::Preflight(reply) => {
                    *looked = true;
                    // If the reply does not arrive, the client reports that.
                    let _ = conn.try_send(&[IoSlice::new(&reply)]);
                    return ServedRequests::Ended(Some(CloseKind::Busy));
                }
                other => return ServedRequests::Ended(self.without_request(conn, other)),
            };
            *uses += 1;
            self.check_access(&mut request, &mut access);
            // The request that completes a handshake must come on the same connection.
            limit = limit.saturating_add(u64::from(matches!(access, ConnectionAccess::Begun(_))));
            match self.serve_request(conn, &mut request, &mut inbox, place, first_byte, *uses >= limit).await
            {
                Ok(ended) => self.origin.recorder.with(|block| block.idle.enter(ended)),
                Err(closed) => return ServedRequests::Ended(closed),
            }
        }
    }

    /// Ends a connection or a stream on which no request arrived. Returns how it was closed, if no error occurred.
    pub(crate) fn without_request(
        &self,
        conn: &mut Channel<L::Conn>,
        next: NextRequest,
    ) -> Option<CloseKind> {
        match next {
            NextRequest::Closed(kind) => return Some(kind),
            NextRequest::Noise => self.send_refusal(conn, b"HTTP/1.1 400 Bad Request\r\n"),
            NextRequest::NoPreface => {
                self.count_broken(ErrorKind::BadFrame, "a connection without the preface of HTTP/2".into());
                // The connection ends in any case, so a failed send does not matter.
                let _ = conn.try_send(&[IoSlice::new(polygraph_multiplex::NO_PREFACE)]);
            }
            NextRequest::Broken(kind, detail) => self.count_broken(kind, detail),
            NextRequest::Refused(refusal) => self.refuse(conn, refusal),
            NextRequest::Request(_) | NextRequest::Http2 | NextRequest::Preflight(_) => {}
        }
        None
    }

    /// Serves a request whose head has arrived. Returns when that was done, or how the connection must be closed, if no error
    /// occurred.
    pub(crate) async fn serve_request(
        &self,
        conn: &mut Channel<L::Conn>,
        request: &mut Request,
        inbox: &mut Vec<u8>,
        place: ConnectionId,
        first_byte: Option<Nanos>,
        last: bool,
    ) -> Result<Nanos, Option<CloseKind>> {
        let mut transaction = self.begin(request, last);
        conn.set_deadline(transaction.deadline);
        let outcome = self.transact(conn, request, inbox, &mut transaction).await;
        let cut =
            matches!(outcome, ServerOutcome::Sent(Sent { is_cut: true, .. }) | ServerOutcome::CutByClient);
        let times = TransactionTimes { first_byte, started: transaction.started, ended: self.now() };
        self.dump(conn, request, &outcome, times.ended - times.started);
        let (recorder, config) = (&self.origin.recorder, &self.origin.config);
        if !record_outcome(recorder, config, request, place, times, outcome) {
            return Err(None);
        }
        if transaction.last || cut { Err(Some(CloseKind::Busy)) } else { Ok(times.ended) }
    }

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
        let reader =
            RequestReader { config: &self.origin.config, profile: self.profile(), names: &self.names };
        let read = reader.read(data, request, &mut self.origin.scratch.borrow_mut());
        let used = if read == Ok(true) { request.head_size } else { 0 };
        inbox.extend_from_slice(&data[used..]);
        read
    }

    /// Dumps the messages of a transaction, as configured.
    fn dump(&self, conn: &mut Channel<L::Conn>, request: &Request, outcome: &ServerOutcome, took: Nanos) {
        let recorder = &self.origin.recorder;
        let plan = recorder.dump();
        let title = || {
            let mut path = Vec::new();
            if let Some(oid) = &request.oid {
                self.origin.config.catalog.write_path(oid, &mut path);
            }
            let xact = request.marks.xact.map(|xact| xact.id.to_string()).unwrap_or_default();
            format!("{} {}, xact {xact}", request.method.word(), String::from_utf8_lossy(&path))
        };
        if let Some(capture) = conn.take_capture() {
            let (failed, why) = match outcome {
                ServerOutcome::Failed(_, detail) => (true, format!(", failed: {detail}")),
                ServerOutcome::Sent(_) | ServerOutcome::CutByClient => {
                    (request.fault.is_some(), String::new())
                }
            };
            recorder.show(plan.show(&(title() + &why), failed, &capture.received, &capture.sent));
        }
        if let (true, ServerOutcome::Sent(sent), None) = (plan.summary, outcome, request.fault) {
            let ms = took.as_f64() * 1e-6;
            recorder.show(format!("sum: {} {ms:.3} ms {} bytes status {}", title(), sent.size, sent.status));
        }
    }

    /// Decides whether the request gets an object or challenges, if the server has access control.
    pub(crate) fn check_access(&self, request: &mut Request, connection: &mut ConnectionAccess) {
        let Some(credentials) = request.credentials.take() else { return };
        let Some(access) = &self.profile().access else { return };
        let about = AccessRequest {
            method: &credentials.method,
            target: &credentials.target,
            unix_ms: self.origin.link.unix_millis(),
            secret: self.origin.config.seed.0,
        };
        let fields = credentials.fields.iter().map(Vec::as_slice);
        match access.check(connection, fields, &about) {
            Ok(proof) => request.proof = proof,
            Err(denial) => request.denial = Some(denial),
        }
    }

    /// Starts a transaction.
    fn begin(&self, request: &mut Request, last: bool) -> Transaction {
        let origin = &self.origin;
        let started = self.now();
        origin.recorder.with(|block| block.xacts.enter(started));
        origin.note_phases(&request.marks);
        match request.requested {
            RequestedObject::Any | RequestedObject::UnknownEmbedded => {
                request.oid = Some(origin.any_object(self.profile()))
            }
            RequestedObject::Health(_) => origin.note_health_check(),
            RequestedObject::Object(_) | RequestedObject::Misdirected(_) | RequestedObject::Foreign => {}
        }
        let profile = self.profile();
        let mut rng = origin.rng.borrow_mut();
        let lifetime = profile.lifetime.as_ref().map(|lifetime| nanos(lifetime.sample(&mut *rng)));
        let asks = request.expectation == Expectation::Continue && request.upload.is_some();
        let refuse_body = asks && !rng.event(profile.continue_prob);
        let unread = request.upload.is_some() && (refuse_body || request.expectation == Expectation::Other);
        Transaction {
            started,
            deadline: lifetime.map(|lifetime| started + lifetime),
            last: last || !request.keep_alive || request.fault.is_some() || unread,
            refuse_body,
        }
    }

    async fn transact(
        &self,
        conn: &mut Channel<L::Conn>,
        request: &mut Request,
        inbox: &mut Vec<u8>,
        transaction: &mut Transaction,
    ) -> ServerOutcome {
        let refused = transaction.refuse_body || request.expectation == Expectation::Other;
        if let Some(upload) = request.upload.as_deref_mut().filter(|_| !refused) {
            let asks = request.expectation == Expectation::Continue && inbox.is_empty();
            let received = self.receive_body(conn, upload, asks, inbox).await;
            if let Err(fault) = received {
                let coords = request
                    .marks
                    .abort
                    .map(|mark| AbortCoords { whether: mark.whether.get(), place: mark.place.get() });
                return self.body_fault(conn, upload, coords, fault);
            }
        }
        if !refused && let Some(detail) = request.altered_body() {
            self.send_refusal(conn, b"HTTP/1.1 400 Bad Request\r\n");
            return ServerOutcome::Failed(ErrorKind::AlteredBody, detail);
        }
        if request.denial.is_none() && !self.think(transaction).await {
            return ServerOutcome::Failed(ErrorKind::Timeout, "during the think time".into());
        }
        // If the client had sent more, closing would reset the connection, and what TCP holds back would be lost.
        let is_end = !request.keep_alive && request.upload.is_none() && inbox.is_empty();
        match self.reply(conn, request, transaction, is_end).await {
            Ok(sent) => ServerOutcome::Sent(sent),
            Err(e) => ServerOutcome::Failed(kind_of(&e), format!("while sending a reply: {e}")),
        }
    }

    /// Reads the body of a request. If the client `asks`, it first gets permission to continue.
    async fn receive_body(
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

    fn body_fault(
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

    /// Waits for the think time. Returns false if the lifetime of the transaction ends before.
    async fn think(&self, transaction: &Transaction) -> bool {
        let Some(think) = &self.profile().think else { return true };
        let seconds = think.sample(&mut *self.origin.rng.borrow_mut());
        let until = transaction.started + nanos(seconds);
        let deadline = transaction.deadline.unwrap_or(Nanos::MAX);
        if seconds > 0.0 {
            let end = until.min(deadline);
            self.origin.recorder.with(|block| block.think_us.record(nanos(seconds).as_micros()));
            self.origin.link.sleep_until(end).await;
            let late_us = self.origin.link.now().saturating_sub(end).as_micros();
            self.origin.recorder.with(|block| block.late_us.record(late_us));
        }
        until < deadline
    }

    /// Sends the reply. `is_end` tells that the client sends nothing more.
    async fn reply(
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

    fn count_read(&self, data: &[u8]) {
        if !data.is_empty() {
            self.origin.recorder.with(|block| block.reads.record(data.len() as u64));
        }
    }

    fn count_written(&self, bytes: usize) {
        self.origin.recorder.with(|block| block.writes.record(bytes as u64));
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

    /// Counts a transaction whose request was never complete.
    pub(crate) fn count_broken(&self, kind: ErrorKind, detail: String) {
        let now = self.now();
        self.origin.recorder.with(|block| {
            block.xacts.enter(now);
            block.xacts.leave(now);
        });
        self.origin.recorder.error(kind, now, || detail);
    }

    /// Answers bytes that are not a request.
    fn refuse(&self, conn: &mut Channel<L::Conn>, refusal: Rejection) {
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
    fn send_refusal(&self, conn: &mut Channel<L::Conn>, reply: &[u8]) {
        let rest = b"Connection: close\r\nContent-Length: 0\r\n\r\n";
        // The connection ends in any case, so a failed send does not matter.
        let _ = conn.try_send(&[IoSlice::new(reply), IoSlice::new(rest)]);
    }

    pub(crate) fn connection_uses(&self) -> u64 {
        let drawn = self.profile().requests_per_connection.sample(&mut *self.origin.rng.borrow_mut());
        drawn.trunc().max(1.0) as u64
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

fn kind_of(error: &io::Error) -> ErrorKind {
    if let Some(kind) = kind_of_fault(error) {
        return kind;
    }
    match error.kind() {
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        _ => ErrorKind::System,
    }
}

/// The interim reply to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A reply of up to so many bytes usually needs one send. For larger ones, a segment more or less does not matter.
const ONE_SEND: u64 = 64 * 1024;

/// The most slices of a send: the head and pieces of the body.
const SLICES: usize = 16;
