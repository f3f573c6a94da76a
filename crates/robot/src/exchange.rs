//! Exchanges: one or more requests on one connection, and their replies.

pub mod comparison;
pub mod digests;
pub mod entity;
pub mod links;
pub mod receive;
pub mod reply;
pub mod send;

use polygraph_link::{Capture, Conn, Link, Nanos};
use polygraph_stats::{AuthScheme, ErrorKind};
use polygraph_transport::Channel;
use polygraph_wire::markup::MarkupError;

use self::entity::Verified;
use self::receive::{Incoming, ReplyEnd};
use self::reply::ReplyMeta;
use self::send::Upload;
use crate::connections::hop::Hop;
use crate::connections::pool::PooledConnection;
use crate::context::RobotContext;
use crate::failure::TransactionFailure;
use crate::request::Request;
use crate::request::auth::{AuthAnswers, AuthSource};
use crate::violation::Violation;

/// One request and its reply, as observed on the wire.
#[derive(Debug)]
pub struct Exchange {
    /// When the robot had a connection for the request.
    pub started: Nanos,
    /// When the transaction times out.
    pub deadline: Option<Nanos>,
    /// Where the request goes.
    pub hop: Hop,
    /// Number of the connection among those of the loop.
    pub connection: u64,
    /// When the set-up of the connection ended, if it is a part of this exchange.
    pub ready: Option<Nanos>,
    /// Whether the request was sent before, on another connection.
    pub retried: bool,
    /// Bytes of the request, head and body.
    pub sent: u64,
    /// Whether one side ended the exchange on purpose.
    pub aborted: bool,
    /// Violation in the content.
    pub violation: Option<Violation>,
    /// How much of the content was compared.
    pub verified: Verified,
    /// Errors in the markup.
    pub markup_errors: Vec<MarkupError>,
    /// The challenges that the request answers.
    pub answers: AuthAnswers,
    /// Whether the request has `Expect: 100-continue`.
    pub expects: bool,
    /// When 100 (continue) arrived.
    pub continued: Option<Nanos>,
    /// When the socket had taken the head of the request.
    pub head_sent: Option<Nanos>,
    /// When the first bytes of the reply arrived, if its end arrived later.
    pub first_byte: Option<Nanos>,
    /// The messages on the wire, if the user requested a dump.
    pub capture: Option<Box<Capture>>,
}

impl Exchange {
    /// An exchange that starts now.
    pub fn new(started: Nanos, deadline: Option<Nanos>, hop: Hop, connection: u64) -> Exchange {
        Exchange {
            started,
            deadline,
            hop,
            connection,
            ready: None,
            retried: false,
            sent: 0,
            aborted: false,
            violation: None,
            verified: Verified::default(),
            markup_errors: Vec::new(),
            answers: AuthAnswers::default(),
            expects: false,
            continued: None,
            head_sent: None,
            first_byte: None,
            capture: None,
        }
    }

    /// Begins again with another exchange, in the same memory: it is large, so it is not moved.
    pub fn restart(&mut self, began: Nanos, until: Option<Nanos>, to: Hop, number: u64) {
        let Exchange {
            started,
            deadline,
            hop,
            connection,
            ready,
            retried,
            sent,
            aborted,
            violation,
            verified,
            markup_errors,
            answers,
            expects,
            continued,
            head_sent,
            first_byte,
            capture,
        } = self;
        (*started, *deadline, *hop, *connection) = (began, until, to, number);
        (*ready, *retried, *sent, *aborted, *expects) = (None, false, 0, false, false);
        (*violation, *verified, *answers) = (None, Verified::default(), AuthAnswers::default());
        markup_errors.clear();
        (*continued, *head_sent, *first_byte, *capture) = (None, None, None, None);
    }
}

/// What authentication added to a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuthSteps {
    /// Number of exchanges that ended in challenges.
    pub challenges: u32,
    /// Scheme of the last answered challenge.
    pub scheme: Option<AuthScheme>,
    /// Whether access was refused as expected, because the password is wrong on purpose.
    pub refused: bool,
    /// The side that granted access in spite of a wrong password.
    pub ignored_by: Option<AuthSource>,
}

/// A complete exchange.
#[derive(Debug)]
pub struct Completed {
    /// What was observed on the wire.
    pub exchange: Box<Exchange>,
    /// The facts in the reply.
    pub reply: Box<ReplyMeta>,
    /// When the reply was complete.
    pub ended: Nanos,
    /// What authentication added.
    pub auth: AuthSteps,
}

/// A reply, or why there is none.
pub type ReplyResult = Result<Box<ReplyMeta>, Box<TransactionFailure>>;

/// A request in flight on a connection.
pub struct InFlight<'a> {
    /// The request.
    pub request: &'a Request,
    /// Further header lines: credentials and cookies.
    pub lines: &'a [u8],
    /// What was observed so far.
    pub exchange: Box<Exchange>,
    /// When the exchange ended, and its result; `None` if no reply was read because an earlier exchange ended the connection.
    pub result: Option<(Nanos, ReplyResult)>,
    /// Whether the exchange failed before any byte of a reply arrived.
    pub silent: bool,
}

impl<'a> InFlight<'a> {
    /// A request before it is sent.
    pub fn new(request: &'a Request, lines: &'a [u8], exchange: Box<Exchange>) -> InFlight<'a> {
        InFlight { request, lines, exchange, result: None, silent: false }
    }

    /// The complete exchange; `None` if no reply was read.
    pub fn complete(self) -> Option<Result<Completed, Box<TransactionFailure>>> {
        let (ended, result) = self.result?;
        Some(result.map(|reply| Completed {
            exchange: self.exchange,
            reply,
            ended,
            auth: AuthSteps::default(),
        }))
    }

    /// Sets the result of an exchange that failed.
    fn fail<L: Link>(
        &mut self,
        cx: RobotContext<'_, L>,
        conn: &mut Channel<L::Conn>,
        failure: TransactionFailure,
        silent: bool,
    ) {
        let capture = conn.take_capture().map(Box::new);
        let failure = TransactionFailure { capture, started: Some(self.exchange.started), ..failure };
        self.silent = silent;
        self.result = Some((cx.now(), Err(Box::new(failure))));
    }

    /// Sets the result of an exchange whose reply was read. Returns the bytes after the reply; `None` if the connection cannot be
    /// used for the replies of further requests.
    fn conclude<L: Link>(
        &mut self,
        cx: RobotContext<'_, L>,
        conn: &mut Channel<L::Conn>,
        incoming: &mut Incoming<'_>,
        read: Result<ReplyEnd, TransactionFailure>,
        is_last: bool,
    ) -> Option<Vec<u8>> {
        let read = match read {
            Ok(ReplyEnd::Complete) if is_last => incoming.check_end().map(|()| ReplyEnd::Complete),
            read => read,
        };
        let Incoming { reader, entity, carry } = incoming;
        let reply = match read {
            Ok(ReplyEnd::Complete | ReplyEnd::BeforeBody) => {
                conn.set_deadline(None);
                let reply = reader.take_meta();
                if let Some(links) = &mut entity.links {
                    self.exchange.markup_errors = std::mem::take(&mut links.errors);
                }
                (self.exchange.violation, self.exchange.verified) = entity.finish(&reply);
                reply
            }
            Ok(ReplyEnd::BodyCut) => {
                self.exchange.aborted = true;
                Box::default()
            }
            Err(failure) if receive::is_intended(cx, self.request, &failure) => {
                self.exchange.aborted = true;
                reader.take_meta()
            }
            Err(failure) => {
                self.fail(cx, conn, failure, reader.is_silent());
                return None;
            }
        };
        self.exchange.capture = conn.take_capture().map(Box::new);
        let is_usable = reply.keep_alive && !self.exchange.aborted;
        self.result = Some((cx.now(), Ok(reply)));
        is_usable.then(|| std::mem::take(carry))
    }

    /// Whether the peer has closed an idle connection just when the robot reused it, which is not an error of either side (RFC
    /// 9112, section 9.5), or says that it did not process the request. `may_race` tells whether the connection could be closed
    /// like that.
    pub fn lost_race(&self, may_race: bool) -> bool {
        let failed = |failure: &TransactionFailure| {
            let is_closed = matches!(failure.violation.kind, ErrorKind::Reset | ErrorKind::NoReply);
            failure.unprocessed || may_race && is_closed
        };
        self.silent
            && self
                .result
                .as_ref()
                .is_some_and(|(_, result)| result.as_ref().is_err_and(|failure| failed(failure)))
    }

    /// The failure of the exchange, if the peer says that it did not process the request.
    pub fn unprocessed(&self) -> Option<&TransactionFailure> {
        let (_, result) = self.result.as_ref()?;
        result.as_ref().err().map(|failure| &**failure).filter(|failure| failure.unprocessed)
    }
}

/// Sends the requests of `flights` on one connection, one after the other, and reads their replies in the same order. Stops at
/// the first exchange after which the connection cannot be used. Calls `found_link` with each link to an embedded object as
/// soon as it arrives. Only requests without a body may share a connection.
///
/// The result of each exchange is in its [`InFlight`]. If sending fails, the failure is that of the first one.
pub async fn exchange<L: Link>(
    cx: RobotContext<'_, L>,
    connection: &mut PooledConnection<L::Conn>,
    flights: &mut [InFlight<'_>],
    found_link: &mut impl FnMut(&Request, Hop, &[u8]),
) {
    let mut upload = None;
    for (at, flight) in flights.iter_mut().enumerate() {
        if at > 0 {
            flight.exchange.started = cx.now();
        }
        connection.conn.set_deadline(flight.exchange.deadline);
        // How long servers outside of the test take is nobody's failure in it.
        if flight.request.foreign.is_none() {
            cx.recorder.ask(flight.request.handle, flight.exchange.started);
        }
        upload = flight.request.sends.map(|oid| Upload::new(cx, flight.request, oid));
        flight.exchange.expects = upload.as_ref().is_some_and(|upload| upload.expects_continue);
        if let Err(failure) = send::request(cx, connection, flight, upload.as_mut()).await {
            return flights[0].fail(cx, &mut connection.conn, failure, true);
        }
    }
    // Bytes that arrived after the previous reply.
    let mut carry = Vec::new();
    let count = flights.len();
    for (at, flight) in flights.iter_mut().enumerate() {
        let request = flight.request;
        let url = || cx.url(request);
        let mut incoming = Incoming::new(cx, request, &url, flight.exchange.expects, carry);
        let conn = &mut connection.conn;
        if at > 0 {
            conn.set_deadline(flight.exchange.deadline);
        }
        let read = receive::reply(cx, conn, flight, &mut incoming, upload.as_mut(), found_link).await;
        let is_last = at + 1 == count;
        match flight.conclude(cx, conn, &mut incoming, read, is_last) {
            Some(rest) => carry = rest,
            None => return,
        }
    }
}
