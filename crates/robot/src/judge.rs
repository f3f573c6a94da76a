//! Judges replies: the class of the transaction, violations, and the reason why an offered hit was a miss.
//!
//! The functions of this module depend only on the request, the reply and the knowledge of the robots. They do not
//! count or send anything.

pub mod certificate;
pub mod freshness;
pub mod history;
mod rules;

use polygraph_link::{Nanos, SECOND};
use polygraph_stats::{Class, ErrorKind, MissCause};
use polygraph_traffic::{Method, RequestKind};

use self::history::{History, Miss};
use crate::exchange::Completed;
use crate::exchange::reply::{Coding, ReplyMeta};
use crate::failure::TransactionFailure;
use crate::request::auth::AuthSource;
use crate::request::generator::RequestGenerator;
use crate::request::{Cause, Request};
use crate::settings::{Profile, Settings};
use crate::violation::Violation;

/// The knowledge of the robots when a reply is complete.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The settings of the group.
    pub settings: &'a Settings,
    /// The robot's profile.
    pub profile: &'a Profile,
    /// Number of the robot in its group.
    pub robot: usize,
    /// What happened to objects before.
    pub history: &'a History,
    /// The objects that the robots made.
    pub generator: &'a RequestGenerator,
    /// Time of day in seconds since 1970.
    pub unix_s: i64,
}

/// The verdict on a reply.
#[derive(Debug)]
pub struct Verdict {
    /// The class of the transaction, or why it failed.
    pub class: Result<Class, Box<TransactionFailure>>,
    /// Further violations in the reply.
    pub violations: Vec<Violation>,
    /// Whether the object is cachable, regardless of the header of the reply ([`ReplyMeta::may_be_stored`]).
    pub object_cachable: bool,
    /// Whether the request offered a hit.
    pub offered_hit: bool,
    /// Why the reply is not a hit although the request offered one.
    pub miss: Option<MissCause>,
    /// By how many seconds the server's clock is ahead of the robot's, as `Date` says; `None` if the reply does not tell.
    pub date_ahead: Option<i64>,
}

/// The age of `Date` does not matter if the reply took less than this.
const QUICK: Nanos = Nanos::from_secs(1);

/// The time that the reply took, in nanoseconds.
fn response_time(completed: &Completed) -> Nanos {
    completed.ended - completed.exchange.started
}

/// Judges a complete exchange. The violations in its content are moved to the verdict.
pub fn judge(known: &Known<'_>, request: &Request, completed: &mut Completed) -> Verdict {
    let problem = completed.exchange.violation.take();
    let class = match &*completed {
        completed if completed.exchange.aborted => Ok(Class::Abort),
        completed if completed.auth.refused => Ok(Class::Authenticating),
        completed => classify(known, request, completed, problem.as_ref()),
    };
    let reply = &*completed.reply;
    let field = &known.settings.field;
    // A foreign object is cachable if its reply may be stored (`docs/reference/models.md`, "Hit detection").
    let object_cachable = match request.foreign {
        Some(_) => reply.may_be_stored,
        None => field.catalog.cachable(&request.oid),
    };
    match class {
        Ok(class) => {
            let offered_hit = class.is_basic() && request.repeat && object_cachable;
            let missed = offered_hit && class != Class::Hit;
            Verdict {
                class: Ok(class),
                violations: rules::violations(known, request, completed, (class, object_cachable), problem),
                object_cachable,
                offered_hit,
                miss: missed.then(|| miss_cause(known, request, completed)),
                date_ahead: date_ahead(known, request, completed),
            }
        }
        Err(mut failure) => {
            failure.started = Some(completed.exchange.started);
            failure.capture = completed.exchange.capture.take();
            // The reply may be a page of the device instead of the object, or a page which says that there is no such object. Or the
            // device says that it has stored an upload, which never arrives at a server.
            let claims_storage = request.method.has_body() && matches!(reply.status, 200..=299);
            let violation = match problem {
                Some(problem) if problem.kind == ErrorKind::OtherContents => Some(problem),
                None if !claims_storage => None,
                _ => rules::foreign_reply(known, request, reply, failure.violation.comparison.as_deref()),
            };
            let violations = violation.into_iter().collect();
            Verdict {
                class: Err(failure),
                violations,
                object_cachable,
                offered_hit: false,
                miss: None,
                date_ahead: None,
            }
        }
    }
}

/// By how many seconds `Date` of a reply is ahead of the robot's clock. Only quick replies that the server made for the request tell
/// about its clock.
fn date_ahead(known: &Known<'_>, request: &Request, completed: &Completed) -> Option<i64> {
    let reply = &completed.reply;
    let quick = response_time(completed) < QUICK && is_first_hand(request, reply);
    reply.date.filter(|_| quick).map(|date| date - known.unix_s)
}

/// The class of a complete reply, or the violation that makes it a failure. `problem` is the violation in its content.
fn classify(
    known: &Known<'_>,
    request: &Request,
    completed: &Completed,
    problem: Option<&Violation>,
) -> Result<Class, Box<TransactionFailure>> {
    let reply = &*completed.reply;
    let failure = |violation| Err(Box::new(TransactionFailure::of_reply(violation, reply)));
    let bad_status = |wanted: &str| {
        let detail = format!("status {} instead of {wanted}", reply.status);
        let actual = format!("status {}", reply.status);
        failure(Violation::new(ErrorKind::BadStatus, detail).expected(format!("status {wanted}"), actual))
    };
    if let Some(problem) = problem
        && problem.kind.fails()
    {
        return failure(problem.clone());
    }
    if let Some(source) = completed.auth.ignored_by {
        let (kind, status) = match source {
            AuthSource::Proxy => (ErrorKind::ProxyAuthIgnored, "status 407"),
            AuthSource::Origin(_) => (ErrorKind::OriginAuthIgnored, "status 401"),
        };
        let violation = Violation::new(kind, "access was granted with a wrong password");
        return failure(violation.expected(status, format!("status {}", reply.status)));
    }
    let is_upload = request.method.has_body();
    // Robots also send uploads with a condition. Servers ignore it (RFC 9110, section 13.1.3); Varnish does not.
    let validates = matches!(request.kind, RequestKind::Ims200 | RequestKind::Ims304);
    match reply.status {
        200 => {}
        203 | 204 if request.foreign.is_some() => {}
        206 if request.kind == RequestKind::Range => {}
        416 if request.kind == RequestKind::Range => {}
        // Servers of the test answer uploads with the object, so that robots can verify these replies, too.
        201 | 204 if is_upload && is_foreign(known, request) => {}
        304 if validates => {}
        // It says that `Expect` cannot be met, so nobody else gets it (RFC 9110, section 15.5.18).
        417 if completed.exchange.expects && completed.exchange.continued.is_none() => {}
        _ if reply.is_redirect() => {
            let expected = is_expected_redirect(known, reply) || is_foreign(known, request);
            return if expected { Ok(Class::RepToRedir) } else { failure(rules::unexpected_redirect(reply)) };
        }
        401 | 403 | 407 => {
            return failure(rules::access_denied(known, completed));
        }
        _ if request.kind == RequestKind::Range => return bad_status("206"),
        _ if request.kind == RequestKind::Ims304 => return bad_status("304"),
        _ => return bad_status("200"),
    }
    let other_contents = problem.is_some_and(|problem| problem.kind == ErrorKind::OtherContents);
    if let Some(violation) = rules::stolen_reply(known, request, completed, other_contents) {
        return failure(violation);
    }
    Ok(class_of(request, reply))
}

/// Whether a redirect comes from a server of the test: it is marked, and the test has servers that redirect. Marks alone prove
/// nothing, because a device that replaces a reply by its own redirect can keep them.
fn is_expected_redirect(known: &Known<'_>, reply: &ReplyMeta) -> bool {
    reply.is_marked() && known.settings.field.redirects
}

/// Whether replies to the request may come from servers outside the test, because the workload requests foreign URLs or
/// the user tolerates foreign replies.
fn is_foreign(known: &Known<'_>, request: &Request) -> bool {
    request.foreign.is_some() || known.settings.tolerance.foreign_replies
}

/// Whether the server made the reply for this request: it echoes the mutant of the request's transaction id. A stored reply
/// carries that of an older request.
pub fn is_first_hand(request: &Request, reply: &ReplyMeta) -> bool {
    reply.marks.xact.is_some_and(|mark| mark.id == request.xact.mutant())
}

/// Whether the reply was stored. A reply without the mark is never a hit; it counts as a miss and as foreign
/// (`docs/reference/models.md`, "Hit detection").
fn is_second_hand(request: &Request, reply: &ReplyMeta) -> bool {
    reply.marks.xact.is_some() && !is_first_hand(request, reply)
}

/// The class of a successful transaction that is neither cut nor refused and whose reply is no redirect
/// (`docs/reference/models.md`, "Transaction classes").
fn class_of(request: &Request, reply: &ReplyMeta) -> Class {
    match class_of_request(request) {
        _ if request.cause == Cause::Redirected => Class::RedirectedReq,
        Some(Class::Ims200 | Class::Ims304) if reply.status == 304 => Class::Ims304,
        Some(Class::Ims200 | Class::Ims304) => Class::Ims200,
        Some(class) => class,
        None if is_second_hand(request, reply) => Class::Hit,
        None if reply.may_be_stored => Class::Miss,
        None => Class::Uncachable,
    }
}

/// The class of a transaction with this request, if it succeeds as planned; `None` for basic ones, whose class depends on the reply.
pub fn class_of_request(request: &Request) -> Option<Class> {
    match (request.kind, request.method) {
        (RequestKind::Ims200, Method::Get) => Some(Class::Ims200),
        (RequestKind::Ims304, Method::Get) => Some(Class::Ims304),
        (RequestKind::Reload, Method::Get) => Some(Class::Reload),
        (RequestKind::Range, Method::Get) => Some(Class::Range),
        (_, Method::Head) => Some(Class::Head),
        (_, Method::Post) => Some(Class::Post),
        (_, Method::Put) => Some(Class::Put),
        _ => None,
    }
}

/// Why a request that offered a hit was a miss.
fn miss_cause(known: &Known<'_>, request: &Request, completed: &Completed) -> MissCause {
    let reply = &*completed.reply;
    if request.foreign.is_some() || reply.marks.xact.is_none() {
        return MissCause::Unmarked;
    }
    if !reply.may_be_stored {
        return MissCause::Forbidden;
    }
    let (catalog, oid) = (&known.settings.field.catalog, &request.oid);
    let modified_since = |then| catalog.times(oid, known.unix_s).is_some_and(|times| times.lmt >= then);
    let varies = catalog.content(oid.kind).is_some_and(|content| content.encodings.varies());
    let own = !varies && !known.settings.others_fill && known.generator.is_own(request);
    let miss = Miss { at_ms: completed.ended.as_millis(), unix: known.unix_s, own };
    known.history.miss_cause(oid, reply.coding, miss, modified_since)
}

/// The evidence that a successful reply is the one that the robot requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verifiable {
    /// Its body, which the robot knows.
    Body,
    /// The marks of the servers of the test: the reply has no body.
    Marks,
    /// None: the reply is not from our servers, was aborted on purpose, or may be generated by a device.
    Nothing,
}

/// The evidence that the reply to `request` is the right one.
pub fn verifiable(request: &Request, reply: &ReplyMeta, class: Class) -> Verifiable {
    if request.foreign.is_some() || matches!(class, Class::Abort | Class::Authenticating) {
        return Verifiable::Nothing;
    }
    let bodiless = request.method == Method::Head || matches!(reply.status, 201 | 204 | 304 | 416 | 417);
    // A robot that does not have the compressed object cannot check positions in it.
    let coded_part = reply.status == 206 && reply.coding != Coding::Identity;
    match reply.is_marked() {
        true if bodiless => Verifiable::Marks,
        true if reply.is_redirect() || coded_part => Verifiable::Nothing,
        false if bodiless => Verifiable::Nothing,
        _ => Verifiable::Body,
    }
}

/// Seconds since 1970 when the request was sent.
fn sent_at(known: &Known<'_>, completed: &Completed) -> i64 {
    known.unix_s - (response_time(completed) / SECOND) as i64
}
