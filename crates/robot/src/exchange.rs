//! One exchange: a connection is taken, the request sent, the reply read.

pub mod comparison;
pub mod entity;
pub mod links;
pub mod pipeline;
pub mod reply;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Capture, Conn, ConnectError, Link, Nanos, SECOND, send_all, yield_now};
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_traffic::coding::gzip;
use polygraph_traffic::{AbortCoords, Body, Method};
use polygraph_wire::checksum::{self, ContentMd5};
use polygraph_wire::markup::MarkupError;

use crate::connections::pool::PooledConnection;
use crate::exchange::entity::{Entity, Verified};
use crate::exchange::reply::{Progress, ReplyMeta, ReplyReader};
use crate::group::RobotGroup;
use crate::request::auth::{AuthAnswers, AuthSource};
use crate::request::generator::Request;
use crate::violation::{ExpectedVsActual, Violation};

/// A request is tried on so many connections that the peer closed before it answered at all.
const MAX_RETRIES: u32 = 10;
/// How long 100 (continue) is waited for before the body is sent without it.
const CONTINUE_PATIENCE: Nanos = 3 * SECOND;
/// So long may nothing come of a reply that only the end of the connection would end, although the connection is to
/// stay open.
const CLOSE_PATIENCE: Nanos = 5 * SECOND;

/// Why an exchange failed.
#[derive(Clone, Debug)]
pub struct TransactionFailure {
    /// Its class.
    pub kind: ErrorKind,
    /// What was seen, for people.
    pub detail: String,
    /// The reply as far as it has come.
    pub facts: Option<Box<ReplyMeta>>,
    /// What had to come and what came.
    pub comparison: Option<Box<ExpectedVsActual>>,
    /// When the exchange began, if there was one.
    pub started: Option<Nanos>,
    /// The messages, if they are kept.
    pub capture: Option<Box<Capture>>,
}

impl TransactionFailure {
    /// A fault without a reply.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> TransactionFailure {
        TransactionFailure {
            kind,
            detail: detail.into(),
            facts: None,
            comparison: None,
            started: None,
            capture: None,
        }
    }

    /// A fault of the reply with these facts.
    pub fn of(violation: Violation, facts: &ReplyMeta) -> TransactionFailure {
        let Violation { kind, detail, comparison } = violation;
        TransactionFailure {
            facts: Some(Box::new(facts.clone())),
            comparison,
            ..TransactionFailure::new(kind, detail)
        }
    }

    /// The fault of an exchange that began then.
    #[must_use]
    pub fn since(self, started: Nanos) -> TransactionFailure {
        TransactionFailure { started: self.started.or(Some(started)), ..self }
    }
}

/// Why a transaction has no result.
#[derive(Clone, Debug)]
pub enum Unfinished {
    /// It failed.
    Failed(TransactionFailure),
    /// The robot lost interest before the request was sent.
    Cancelled,
}

impl From<TransactionFailure> for Unfinished {
    fn from(fault: TransactionFailure) -> Unfinished {
        Unfinished::Failed(fault)
    }
}

impl From<ConnectError> for TransactionFailure {
    fn from(error: ConnectError) -> TransactionFailure {
        let kind = match error {
            ConnectError::NoPort => ErrorKind::NoPort,
            ConnectError::NoDescriptor => ErrorKind::NoDescriptor,
            ConnectError::NoMemory | ConnectError::Bind(_) => ErrorKind::System,
            ConnectError::Refused(why) => failed_to_connect(why),
        };
        TransactionFailure::new(kind, error.to_string())
    }
}

/// The class of a connection that was not established: because of who was to accept it, or of the way there. Anything
/// else, like memory that is short or a packet filter of this host, is the doing of the host of the robots.
fn failed_to_connect(why: io::ErrorKind) -> ErrorKind {
    use io::ErrorKind as K;
    match why {
        K::HostUnreachable | K::NetworkUnreachable | K::NetworkDown => ErrorKind::Unreachable,
        K::ConnectionRefused | K::TimedOut | K::ConnectionAborted | K::NotConnected => {
            ErrorKind::ConnectFailed
        }
        _ => ErrorKind::System,
    }
}

/// What came of an exchange that did not fail.
#[derive(Debug)]
pub struct Done {
    /// What the reply says.
    pub facts: Box<ReplyMeta>,
    /// Start: when a connection was taken.
    pub started: Nanos,
    /// When the reply was complete.
    pub ended: Nanos,
    /// Where the request went.
    pub hop: SocketAddr,
    /// Number of the connection among those of the loop.
    pub connection: u64,
    /// Bytes of the request.
    pub sent: u64,
    /// One side ended the exchange on purpose.
    pub aborted: bool,
    /// What is wrong with the content.
    pub problem: Option<Violation>,
    /// How much of the content was compared.
    pub verified: Verified,
    /// What is wrong with the markup.
    pub faults: Vec<MarkupError>,
    /// Whose challenges the request answered.
    pub answers: AuthAnswers,
    /// When 100 (continue) came.
    pub continued: Option<Nanos>,
    /// When the head of the request was with the socket.
    pub told: Option<Nanos>,
    /// When the first bytes of the reply came, if its end came later.
    pub first_byte: Option<Nanos>,
    /// The request was sent more than once.
    pub retried: bool,
    /// Number of exchanges, with those that ended in challenges.
    pub exchanges: u32,
    /// Scheme of the last challenge.
    pub challenge: Option<AuthScheme>,
    /// Access was refused, as it has to be with a spoiled password.
    pub denied: bool,
    /// Who granted access in spite of a spoiled password.
    pub fooled: Option<AuthSource>,
    /// The messages, if they are kept.
    pub capture: Option<Box<Capture>>,
}

/// Carries out `request` for `robot` from `now` on. `lines` are further header lines, credentials and cookies, by which it
/// gives `answers`.
///
/// # Errors
/// What made the transaction fail, or that it is not wanted any more.
pub async fn exchange<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    lines: &[u8],
    answers: AuthAnswers,
    now: Nanos,
) -> Result<Done, Unfinished> {
    let deadline = group.deadline(robot, now);
    let hop = group.hop(robot, request, deadline).await?;
    for attempt in 0..=MAX_RETRIES {
        let mut connection = group.lease(robot, hop, deadline).await?;
        let reused = connection.uses > 0;
        let begun = group.now();
        let mut talk = Talk { answers, deadline, ..Talk::new(begun, hop, connection.number, attempt > 0) };
        if reused {
            group.count_reuse(begun);
        } else {
            // Connections first, requests then: when many transactions begin at once, a peer that is woken by the
            // first request finds the others already there, instead of being woken by each.
            yield_now().await;
        }
        connection.uses += 1;
        let (mut result, silent) =
            converse(group, robot, &mut connection, request, lines, deadline, &mut talk).await;
        let capture = connection.conn.take_capture().map(Box::new);
        match &mut result {
            Ok(_) => talk.capture = capture,
            Err(fault) => fault.capture = capture,
        }
        match result {
            Ok(facts) => {
                let ended = group.now();
                match talk.aborted {
                    true => group.close(robot, connection, false),
                    false => group.give_back(robot, connection, facts.keep_alive, ended),
                }
                return Ok(talk.done(facts, ended));
            }
            // The peer closed an idle connection just as we used it: nobody's fault (RFC 9112, section 9.5).
            Err(fault) if reused && silent && fault.kind != ErrorKind::Timeout => {
                group.close(robot, connection, false);
                group.count_retry();
            }
            Err(fault) => {
                group.close(robot, connection, false);
                return Err(fault.since(talk.started).into());
            }
        }
    }
    let detail = format!("closed {MAX_RETRIES} times before any reply");
    Err(TransactionFailure::new(ErrorKind::TooManyRetries, detail).into())
}

/// What is noted while an exchange goes on.
pub(crate) struct Talk {
    pub(crate) started: Nanos,
    pub(crate) hop: SocketAddr,
    connection: u64,
    retried: bool,
    sent: u64,
    pub(crate) aborted: bool,
    /// When the transaction has to be over.
    pub(crate) deadline: Option<Nanos>,
    problem: Option<Violation>,
    verified: Verified,
    faults: Vec<MarkupError>,
    pub(crate) answers: AuthAnswers,
    continued: Option<Nanos>,
    told: Option<Nanos>,
    first_byte: Option<Nanos>,
    pub(crate) capture: Option<Box<Capture>>,
}

impl Talk {
    pub(crate) fn new(started: Nanos, hop: SocketAddr, connection: u64, retried: bool) -> Talk {
        Talk {
            started,
            hop,
            connection,
            retried,
            sent: 0,
            aborted: false,
            deadline: None,
            problem: None,
            verified: Verified::default(),
            faults: Vec::new(),
            answers: AuthAnswers::default(),
            continued: None,
            told: None,
            first_byte: None,
            capture: None,
        }
    }

    /// The head of the request is with the socket.
    pub(crate) fn tell<L: Link>(&mut self, group: &RobotGroup<L>, stands: &mut bool) {
        let now = group.now();
        self.told = Some(now);
        group.note_established(stands, now);
    }

    pub(crate) fn done(self, facts: Box<ReplyMeta>, ended: Nanos) -> Done {
        Done {
            facts,
            started: self.started,
            ended,
            hop: self.hop,
            connection: self.connection,
            sent: self.sent,
            aborted: self.aborted,
            problem: self.problem,
            verified: self.verified,
            faults: self.faults,
            answers: self.answers,
            continued: self.continued,
            told: self.told,
            first_byte: self.first_byte,
            retried: self.retried,
            exchanges: 1,
            challenge: None,
            denied: false,
            fooled: None,
            capture: self.capture,
        }
    }
}

/// Sends the request and reads the reply on one connection. Also tells whether nothing of a reply has come.
async fn converse<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    connection: &mut PooledConnection<L::Conn>,
    request: &Request,
    lines: &[u8],
    deadline: Option<Nanos>,
    talk: &mut Talk,
) -> (Result<Box<ReplyMeta>, TransactionFailure>, bool) {
    let last = connection.uses >= connection.use_limit;
    let conn = &mut connection.conn;
    conn.set_deadline(deadline);
    let mut upload = request.sends.is_some().then(|| Upload::new(group, robot, request));
    let expects = upload.as_ref().is_some_and(|upload| group.expects_continue(robot, upload.length));
    let mut reader = ReplyReader::new(request.method == Method::Head, expects);
    let url = || group.url(request);
    let mut entity = group.entity(robot, request, &url);
    let mut carry = Vec::new();

    if let Err(fault) =
        send_head(group, robot, conn, request, last, expects, upload.as_mut(), lines, talk).await
    {
        return (Err(fault), true);
    }
    talk.tell(group, &mut connection.stands);
    let conn = &mut connection.conn;
    if let Some(upload) = &mut upload {
        if expects {
            // A server that does not know the expectation says nothing; nobody waits for ever (RFC 9110, section 10.1.1).
            conn.set_deadline(earlier(group.now() + CONTINUE_PATIENCE, deadline));
            match receive(group, robot, conn, request, &mut reader, &mut entity, talk, &mut carry).await {
                Ok(Progress::Continue { .. }) => {
                    talk.continued = Some(group.now());
                    reader.stop_awaiting();
                }
                // A final reply instead of 100: the body is not wanted.
                Ok(_) => return conclude(reader, entity, connection, talk),
                Err(fault) if fault.kind == ErrorKind::Timeout && reader.is_silent() => {
                    reader.stop_awaiting();
                }
                Err(fault) => return (Err(fault), reader.is_silent()),
            }
            conn.set_deadline(deadline);
        }
        if let Err(e) = send_body(group, conn, &mut upload.body, talk).await {
            return (Err(sending(&e)), reader.is_silent());
        }
        if upload.is_cut {
            talk.aborted = true;
            return (Ok(Box::default()), false);
        }
    }
    let received = receive(group, robot, conn, request, &mut reader, &mut entity, talk, &mut carry).await;
    match received.and_then(|_| check_end(&carry, &reader)) {
        Ok(()) => conclude(reader, entity, connection, talk),
        Err(fault) if is_intended(&fault, request, group) => {
            talk.aborted = true;
            talk.verified = Verified::default();
            (Ok(reader.into_facts()), false)
        }
        Err(fault) => (Err(fault), reader.is_silent()),
    }
}

/// The body of a request.
pub(crate) struct Upload {
    /// What still has to be sent.
    body: Body,
    /// Length of the whole body, as announced.
    length: u64,
    digest: Option<String>,
    coords: AbortCoords,
    /// Not all of it will be sent.
    is_cut: bool,
}

impl Upload {
    fn new<L: Link>(group: &RobotGroup<L>, robot: usize, request: &Request) -> Upload {
        let catalog = &group.settings().field.catalog;
        let oid = request.sends.unwrap_or(request.oid);
        let mut body = catalog.body(&oid, &[]);
        if catalog.content(oid.kind).is_some_and(|content| content.encodings.compresses_requests()) {
            body = gzip(body);
        }
        let coords = group.abort_coords(robot, request);
        let (length, digest) = (body.len(), catalog.has_checksum(&oid).then(|| digest_of(&body)));
        let cut = coords.cut(length);
        if let Some(place) = cut {
            body.truncate(place);
        }
        Upload { body, length, digest, coords, is_cut: cut.is_some() }
    }
}

fn digest_of(body: &Body) -> String {
    let (mut body, mut digest) = (body.clone(), ContentMd5::default());
    while !body.is_empty() {
        let n = body.chunk().len();
        digest.update(body.chunk());
        body.advance(n as u64);
    }
    String::from_utf8_lossy(&checksum::text(digest.finish())).into_owned()
}

#[expect(clippy::too_many_arguments, reason = "all that a head depends on")]
pub(crate) async fn send_head<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    conn: &mut L::Conn,
    request: &Request,
    last: bool,
    expects: bool,
    mut upload: Option<&mut Upload>,
    lines: &[u8],
    talk: &mut Talk,
) -> Result<(), TransactionFailure> {
    let (along, body) = match &mut upload {
        None => (None, None),
        Some(Upload { body, length, digest, coords, .. }) => {
            ((!expects).then_some(body), Some((*length, digest.as_deref(), *coords)))
        }
    };
    // Nearly always the socket takes the whole request at once and the loop's one buffer is enough. The body goes along:
    // sent by itself, a small one would wait until the peer has acknowledged the head (RFC 1122, section 4.2.3.4), which
    // takes 40 ms where the peer waits for the body.
    let unsent = group.with_request(robot, request, last, expects, body, lines, |request| {
        talk.sent += request.len() as u64;
        let taken = match along.as_deref() {
            None => conn.try_send(&[IoSlice::new(request)]),
            Some(body) => {
                let mut slices = [IoSlice::new(request); 16];
                let used = body.slices(&mut slices[1..]);
                conn.try_send(&slices[..=used])
            }
        };
        match taken {
            Ok(n) => {
                group.count_written(n);
                let of_body = n.saturating_sub(request.len()) as u64;
                if let Some(body) = along {
                    body.advance(of_body);
                    talk.sent += of_body;
                }
                Ok((n < request.len()).then(|| request[n..].to_vec()))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Some(request.to_vec())),
            Err(e) => Err(e),
        }
    });
    if let Some(rest) = unsent.map_err(|e| sending(&e))? {
        send_all(conn, &rest).await.map_err(|e| sending(&e))?;
        group.count_written(rest.len());
    }
    Ok(())
}

async fn send_body<L: Link>(
    group: &Rc<RobotGroup<L>>,
    conn: &mut L::Conn,
    body: &mut Body,
    talk: &mut Talk,
) -> io::Result<()> {
    while !body.is_empty() {
        let mut slices = [IoSlice::new(&[]); 16];
        let used = body.slices(&mut slices);
        match conn.try_send(&slices[..used]) {
            Ok(n) => {
                body.advance(n as u64);
                talk.sent += n as u64;
                group.count_written(n);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => conn.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "all that belongs to one conversation")]
/// Reads until the reply is complete or 100 (continue) has come; asks for embedded objects as they are seen.
/// `carry` holds bytes that came behind the reply before, and takes those that come behind this one.
pub(crate) async fn receive<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    conn: &mut L::Conn,
    request: &Request,
    reader: &mut ReplyReader,
    entity: &mut Entity<'_>,
    talk: &mut Talk,
    carry: &mut Vec<u8>,
) -> Result<Progress, TransactionFailure> {
    loop {
        let fed = if carry.is_empty() {
            let mut behind = Vec::new();
            let fed = conn
                .recv(|data| {
                    group.recorder().read(request.ticket, data.len() as u64);
                    let fed = reader.feed(data, entity);
                    if let Ok(Progress::Complete { rest } | Progress::Continue { rest }) = fed {
                        behind.extend_from_slice(&data[data.len() - rest..]);
                    }
                    fed
                })
                .await;
            *carry = behind;
            fed
        } else {
            let data = std::mem::take(carry);
            let fed = reader.feed(&data, entity);
            if let Ok(Progress::Complete { rest } | Progress::Continue { rest }) = fed {
                carry.extend_from_slice(&data[data.len() - rest..]);
            }
            Ok(fed)
        };
        let progress = match fed {
            Ok(Ok(progress)) => progress,
            Ok(Err(violation)) => {
                let Violation { kind, mut detail, .. } = *violation;
                if !detail.is_empty() {
                    detail.push_str("; ");
                }
                return Err(describe(kind, detail, reader));
            }
            Err(e) => return Err(receiving(&e, reader)),
        };
        if let Some(links) = &mut entity.links {
            if matches!(progress, Progress::Complete { .. }) {
                links.finish();
            }
            for link in std::mem::take(&mut links.found) {
                group.follow_link(robot, request, talk.hop, &link);
            }
        }
        if progress != Progress::Partial {
            return Ok(progress);
        }
        if reader.is_endless() {
            conn.set_deadline(earlier(group.now() + CLOSE_PATIENCE, talk.deadline));
        }
        if talk.first_byte.is_none() && !reader.is_silent() {
            talk.first_byte = Some(group.now());
        }
    }
}

fn earlier(at: Nanos, deadline: Option<Nanos>) -> Option<Nanos> {
    Some(deadline.map_or(at, |deadline| deadline.min(at)))
}

/// Behind the last reply that was asked for nothing may follow.
pub(crate) fn check_end(carry: &[u8], reader: &ReplyReader) -> Result<(), TransactionFailure> {
    match carry.len() {
        0 => Ok(()),
        rest => Err(describe(ErrorKind::BodyLong, format!("{rest} bytes too many; "), reader)),
    }
}

pub(crate) fn conclude<C: Conn>(
    reader: ReplyReader,
    mut entity: Entity<'_>,
    connection: &mut PooledConnection<C>,
    talk: &mut Talk,
) -> (Result<Box<ReplyMeta>, TransactionFailure>, bool) {
    connection.conn.set_deadline(None);
    let facts = reader.into_facts();
    if let Some(links) = &mut entity.links {
        talk.faults = std::mem::take(&mut links.faults);
    }
    (talk.problem, talk.verified) = entity.finish(&facts);
    (Ok(facts), false)
}

/// The server said in the head that it would stop where it did (reference: models.md, section 13).
pub(crate) fn is_intended<L: Link>(
    fault: &TransactionFailure,
    request: &Request,
    group: &RobotGroup<L>,
) -> bool {
    let Some(facts) = fault.facts.as_deref() else { return false };
    let Some(mark) = facts.marks.abort else { return false };
    let cut_short = matches!(fault.kind, ErrorKind::BodyShort | ErrorKind::Reset);
    let coords = AbortCoords { whether: mark.whether.get(), place: mark.place.get() };
    let size = facts.length.unwrap_or_else(|| group.settings().field.catalog.size(&request.oid));
    cut_short && coords.cut(size).is_some_and(|place| facts.body_bytes <= place)
}

fn sending(error: &io::Error) -> TransactionFailure {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if error.raw_os_error().is_none() => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ErrorKind::Reset,
        io::ErrorKind::AddrNotAvailable => ErrorKind::NoPort,
        why => failed_to_connect(why),
    };
    TransactionFailure::new(kind, format!("while sending the request: {error}"))
}

fn receiving(error: &io::Error, reader: &ReplyReader) -> TransactionFailure {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut if reader.is_endless() => {
            return describe(
                ErrorKind::NoLength,
                "no length, and the connection stays open; ".into(),
                reader,
            );
        }
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset => ErrorKind::Reset,
        why => failed_to_connect(why),
    };
    describe(kind, format!("while waiting for the reply: {error}; "), reader)
}

fn describe(kind: ErrorKind, what: String, reader: &ReplyReader) -> TransactionFailure {
    let facts = reader.facts();
    let state = match facts {
        _ if reader.is_silent() => "nothing received".into(),
        None => format!("{} bytes of a head received", reader.received()),
        Some(facts) => format!("status {}, {} body bytes received", facts.status, facts.body_bytes),
    };
    let expected = match facts.and_then(|facts| Some((facts.status, facts.length?))) {
        Some((status, length)) => format!("status {status}, {length} body bytes"),
        None => "a complete reply".into(),
    };
    let comparison = Some(Box::new(ExpectedVsActual { expected, seen: format!("{what}{state}") }));
    let facts = facts.map(|facts| Box::new(facts.clone()));
    TransactionFailure { facts, comparison, ..TransactionFailure::new(kind, format!("{what}{state}")) }
}
