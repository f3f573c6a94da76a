//! Serves a connection: request, think time, reply, until one side closes it.
//!
//! * this file: connections and their transactions.
//! * `reading`: heads and bodies of requests.
//! * `writing`: replies and refusals.

mod reading;
mod writing;

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos, nanos};
use polygraph_stats::{CloseKind, ErrorKind, Recorder};
use polygraph_tls::failure::TlsFailure;
use polygraph_traffic::{AbortCoords, Random};
use polygraph_transport::Channel;
use polygraph_transport::tls::{self, TlsServer};
use polygraph_wire::auth::access::{AccessRequest, ConnectionAccess, ProvenKeys};

use self::reading::HEAD_LIMIT;
pub(crate) use self::reading::{NextRequest, begins_like_a_request};
use crate::known_worlds::KnownWorlds;
use crate::names::ServerNames;
use crate::object_lookup::RequestedObject;
use crate::origin::Origin;
use crate::record::{ConnectionId, Sent, ServerOutcome, TransactionTimes, kind_of_fault, record_outcome};
use crate::reply::ServerIdentity;
use crate::request::{Expectation, Request};
use crate::settings::{ServerProfile, ServerSpec};

/// An origin server on one event loop.
#[derive(Debug)]
pub struct Server<L: Link> {
    origin: Rc<Origin<L>>,
    profile: usize,
    number: u64,
    /// Its place among the servers of the loop.
    place: usize,
    names: ServerNames,
    identity: ServerIdentity,
    /// TLS, if the server has it; or why it cannot be used.
    tls: Option<Result<TlsServer, TlsFailure>>,
    /// The known worlds by server name; the list grows on demand.
    known_worlds: RefCell<Vec<KnownWorlds>>,
    /// Which keys of its keytab are right.
    proven: ProvenKeys,
}

/// How a connection ended, or what else it carries.
enum ServedRequests {
    /// It ended; how, if no error occurred.
    Ended(Option<CloseKind>),
    /// It carries HTTP/2, of which these first bytes have arrived.
    Http2(Vec<u8>),
}

/// When a request arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Its first byte, if its head did not arrive at once.
    pub first_byte: Option<Nanos>,
    /// The end of its head.
    pub complete: Nanos,
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
        let place = origin.register_server(&spec);
        let tls = origin.tls_of(&spec);
        Rc::new(Server {
            profile: spec.profile,
            number: spec.number,
            place,
            names: ServerNames::new(&spec.names, tls.is_some()),
            tls,
            identity: ServerIdentity::new(&origin.config, &spec, origin.contents),
            known_worlds: RefCell::default(),
            proven: ProvenKeys::default(),
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

    /// Whether its certificate is bad on purpose.
    pub(crate) fn shows_bad_certificate(&self) -> bool {
        self.profile().certificate_fault().is_some()
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
                let served = self.serve_requests(&mut conn, (place, opened), &mut uses, &mut looked).await;
                self.count_handshake(&mut conn, opened);
                match served {
                    ServedRequests::Ended(closed) => closed,
                    ServedRequests::Http2(received) => {
                        // Its state is large, and most connections carry HTTP/1.
                        let served =
                            Box::pin(Rc::clone(&self).serve_http2(conn, &received, (connection, opened)))
                                .await;
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
        (place, opened): (ConnectionId, Nanos),
        uses: &mut u64,
        looked: &mut bool,
    ) -> ServedRequests {
        let mut limit = self.connection_uses();
        let (mut request, mut inbox) = (Request::default(), Vec::new());
        let mut access = ConnectionAccess::default();
        loop {
            let next = self.next_request(conn, &mut request, &mut inbox, *uses == 0).await;
            // The clock is read as rarely as possible: the transaction starts when the connection is not idle any more.
            let now = self.now();
            if *uses > 0 {
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
            let (arrival, last) = (Arrival { first_byte, complete: now }, *uses >= limit);
            let served = self.serve_request(conn, &mut request, &mut inbox, place, arrival, last).await;
            // With early data, the handshake is complete only after the first request.
            self.count_handshake(conn, opened);
            match served {
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
        arrival: Arrival,
        last: bool,
    ) -> Result<Nanos, Option<CloseKind>> {
        let mut transaction = self.begin(request, arrival.complete, last);
        conn.set_deadline(transaction.deadline);
        let outcome = self.transact(conn, request, inbox, &mut transaction).await;
        let cut =
            matches!(outcome, ServerOutcome::Sent(Sent { is_cut: true, .. }) | ServerOutcome::CutByClient);
        let times = TransactionTimes {
            first_byte: arrival.first_byte,
            started: transaction.started,
            ended: self.now(),
        };
        self.dump(conn, request, &outcome, times.ended - times.started);
        let (recorder, config) = (&self.origin.recorder, &self.origin.config);
        let size = if let ServerOutcome::Sent(sent) = &outcome { sent.size } else { 0 };
        let succeeded = record_outcome(recorder, config, request, place, times, outcome);
        if request.marks.xact.is_some() {
            self.origin.count_at(self.place, |stats| match succeeded {
                true => {
                    stats.rptm_us.record((times.ended - times.started).as_micros());
                    stats.bytes += size;
                }
                false => stats.failed += 1,
            });
        }
        if !succeeded {
            return Err(None);
        }
        if transaction.last || cut { Err(Some(CloseKind::Busy)) } else { Ok(times.ended) }
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
            proven: &self.proven,
        };
        let fields = credentials.fields.iter().map(Vec::as_slice);
        match access.check(connection, fields, &about) {
            Ok(proof) => request.proof = proof,
            Err(denial) => request.denial = Some(denial),
        }
    }

    /// Starts a transaction.
    fn begin(&self, request: &mut Request, started: Nanos, last: bool) -> Transaction {
        let origin = &self.origin;
        let is_marked = request.marks.xact.is_some();
        let is_ours = matches!(request.requested, RequestedObject::Object(_));
        origin.recorder.with(|block| {
            block.xacts.enter(started);
            block.unmarked += u64::from(is_ours && !is_marked);
        });
        origin.count_at(self.place, |stats| {
            *(if is_marked { &mut stats.requests } else { &mut stats.unmarked }) += 1;
        });
        origin.note_phases(&request.marks);
        match request.requested {
            RequestedObject::Any | RequestedObject::UnknownEmbedded => {
                request.choose(Some(origin.any_object(self.profile())), &origin.config.catalog);
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

    fn count_read(&self, data: &[u8]) {
        if !data.is_empty() {
            self.origin.recorder.with(|block| block.reads.record(data.len() as u64));
        }
    }

    fn count_written(&self, bytes: usize) {
        self.origin.recorder.with(|block| block.writes.record(bytes as u64));
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

    pub(crate) fn connection_uses(&self) -> u64 {
        let drawn = self.profile().requests_per_connection.sample(&mut *self.origin.rng.borrow_mut());
        drawn.trunc().max(1.0) as u64
    }
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
