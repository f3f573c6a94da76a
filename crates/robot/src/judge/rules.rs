//! The rules that replies must obey.

use polygraph_link::Nanos;
use polygraph_stats::{AuthScheme, Class, ErrorKind};
use polygraph_traffic::RequestKind;
use polygraph_wire::markup::MarkupError;

use super::freshness::{self, http_time};
use super::{Known, is_first_hand, is_foreign, is_second_hand, response_time, sent_at};
use crate::exchange::Completed;
use crate::exchange::reply::ReplyMeta;
use crate::request::{Cause, Request};
use crate::settings::ToldFreshness;
use crate::violation::{ExpectedVsActual, Violation};

/// The clocks of two hosts may differ by this, in seconds.
const CLOCK_TOLERANCE_S: i64 = 60;
/// The date of a reply that took longer than this does not show what the server's clock says.
const SLOW: Nanos = Nanos::from_secs(30);

/// The violations in a reply that does not fail, with the class of the transaction and whether the object is cachable. `problem` is the
/// violation in its content.
pub(super) fn violations(
    known: &Known<'_>,
    request: &Request,
    completed: &Completed,
    (class, cachable): (Class, bool),
    problem: Option<Violation>,
) -> Vec<Violation> {
    let reply = &*completed.reply;
    // If the server has other contents than the robot expects, nothing else can be judged.
    let other_contents = problem.as_ref().is_some_and(|problem| problem.kind == ErrorKind::OtherContents);
    let mut found: Vec<Violation> = problem.into_iter().collect();
    if other_contents {
        return found;
    }
    let settings = known.settings;
    if !settings.tolerance.bad_tags {
        let errors = completed.exchange.markup_errors.iter();
        found.extend(errors.map(|error| Violation::new(markup_kind(*error), error.to_string())));
    }
    // A SOCKS proxy that refused a wrong password as expected sent no reply.
    if class == Class::Abort || reply.status == 0 || request.foreign.is_some() {
        return found;
    }
    found.extend(foreign_reply(known, request, reply, None));
    if let Some(rare) = reply.rare.as_deref() {
        if rare.length_ignored {
            let detail = "Content-Length in addition to Transfer-Encoding: chunked";
            found.push(Violation::new(ErrorKind::LengthIgnored, detail));
        }
        if rare.trailer {
            found.push(Violation::new(ErrorKind::TrailerIgnored, "fields after the last chunk"));
        }
    }
    let second_hand = is_second_hand(request, reply);
    let copy = class == Class::Hit || second_hand && matches!(class, Class::Ims200 | Class::Ims304);
    if copy && !(reply.may_be_stored && cachable) {
        let detail = "a stored reply that must not be stored";
        found.push(stored_reply(ErrorKind::UncachableHit, detail, request, reply));
    }
    let is_first = !request.repeat && !completed.exchange.retried && request.is_of_a_world();
    if class == Class::Hit && is_first && !settings.tolerance.false_hits {
        let detail = "a stored reply to a request that this test has not made";
        found.push(stored_reply(ErrorKind::FalseHit, detail, request, reply));
    }
    if request.kind == RequestKind::Reload && second_hand {
        let detail = "a stored reply to a request with no-cache";
        found.push(stored_reply(ErrorKind::ReloadHit, detail, request, reply));
    }
    if !second_hand && reply.is_marked() {
        found.extend(wrong_date(known, completed));
    }
    found.extend(outdated(known, request, completed, second_hand));
    let catalog = &settings.field.catalog;
    // With a wrong `Date`, nobody knows when the server made the reply.
    let is_dated = !found.iter().any(|violation| violation.kind == ErrorKind::ClockSkew);
    let told = settings.field.freshness;
    let plain = matches!(class, Class::Miss | Class::Uncachable) && is_first_hand(request, reply);
    if plain && !cachable && !reply.forbids_storing && told != ToldFreshness::Configured {
        let detail = "Cache-Control of a server's reply that must not be stored lets caches store it";
        found.push(Violation::new(ErrorKind::MadeStorable, detail));
    }
    let first_hand = plain && class == Class::Miss;
    if cachable && (first_hand || class == Class::Hit) {
        let times_at = |moment| catalog.times(&request.oid, moment);
        let changed = (is_dated && first_hand).then(|| freshness::changed(told, reply, times_at)).flatten();
        found.extend(changed.or_else(|| freshness::hidden(told, reply, || times_at(known.unix_s))));
    }
    found
}

/// A missing or wrong `Date` of a server's own reply.
fn wrong_date(known: &Known<'_>, completed: &Completed) -> Option<Violation> {
    let Some(date) = completed.reply.date else {
        return Some(Violation::new(ErrorKind::NoDate, "no Date").expected("Date", "none"));
    };
    let difference = date - known.unix_s;
    if response_time(completed) >= SLOW || difference.abs() <= CLOCK_TOLERANCE_S {
        return None;
    }
    let detail = format!("the server's clock differs by {difference} s");
    let violation = Violation::new(ErrorKind::ClockSkew, detail);
    Some(violation.expected(format!("about {}", http_time(known.unix_s)), http_time(date)))
}

/// A copy that was not fresh any more, or a 304 for an object that was modified.
fn outdated(
    known: &Known<'_>,
    request: &Request,
    completed: &Completed,
    second_hand: bool,
) -> Option<Violation> {
    let (catalog, reply) = (&known.settings.field.catalog, &*completed.reply);
    let sent_at = sent_at(known, completed);
    let times_at = |moment| catalog.times(&request.oid, moment);
    match reply.status {
        304 if request.kind == RequestKind::Ims200 => {
            freshness::not_modified(catalog, request, reply, times_at(sent_at)?, sent_at)
        }
        304 => None,
        // A copy in reply to a request with no-cache is already a separate error.
        _ if second_hand && request.kind != RequestKind::Reload => {
            freshness::of_copy(reply, sent_at, times_at)
        }
        _ => None,
    }
}

/// A stored reply that cannot have been stored for this robot: nobody requested it before, or it is for another robot alone.
pub(super) fn stolen_reply(
    known: &Known<'_>,
    request: &Request,
    completed: &Completed,
    other_contents: bool,
) -> Option<Violation> {
    let reply = &*completed.reply;
    if !is_second_hand(request, reply) {
        return None;
    }
    // Worlds belong to one loop of one test, so as a rule nobody else can have requested a new object of them before. But a device
    // may fetch the embedded objects of a page in advance.
    let is_unrequested = request.cause != Cause::Embedded
        && !was_overtaken(request, reply)
        && !known.settings.others_fill
        && request.is_basic()
        && !request.repeat
        && !completed.exchange.retried
        && request.is_of_a_world();
    if is_unrequested {
        let detail = "a stored reply to a request that was never made";
        return Some(stored_reply(ErrorKind::UnrequestedHit, detail, request, reply));
    }
    if request.foreign.is_some() || other_contents || known.settings.field.catalog.cachable(&request.oid) {
        return None;
    }
    let other = other_requester(known, request, reply)?;
    let detail =
        format!("a reply that was generated for {other} alone was delivered to {}", name(known, known.robot));
    Some(stored_reply(ErrorKind::PrivateLeak, detail, request, reply))
}

/// Whether the server made the reply for a later request of this loop for the same object, which reached the device first because
/// the first request was delayed for longer than new objects are left alone.
fn was_overtaken(request: &Request, reply: &ReplyMeta) -> bool {
    reply.marks.xact.is_some_and(|mark| {
        let (requester, own) = (mark.id.mutant(), request.xact);
        (requester.time, requester.mix) == (own.time, own.mix) && requester.counter > own.counter
    })
}

/// The robot for which the server made a stored reply, if it is another one.
fn other_requester(known: &Known<'_>, request: &Request, reply: &ReplyMeta) -> Option<String> {
    let requester = reply.marks.xact?.id.mutant();
    if !requester.shares_source(request.xact) {
        return Some("a robot of another loop".to_owned());
    }
    let other = known.history.requester(requester).filter(|other| *other != known.robot)?;
    Some(name(known, other))
}

fn name(known: &Known<'_>, robot: usize) -> String {
    format!("robot {}", known.settings.number(known.settings.first_robot + robot))
}

/// A stored reply where none is allowed.
fn stored_reply(
    kind: ErrorKind,
    detail: impl Into<String>,
    request: &Request,
    reply: &ReplyMeta,
) -> Violation {
    let actual = reply.marks.xact.map_or("none".to_owned(), |mark| mark.id.mutant().to_string());
    let expected = format!("the server's reply to transaction {}", request.xact);
    Violation::new(kind, detail).expected(expected, format!("its reply to transaction {actual}"))
}

/// A reply that no server of the test generated. `comparison` describes the violation in its content.
pub(super) fn foreign_reply(
    known: &Known<'_>,
    request: &Request,
    reply: &ReplyMeta,
    comparison: Option<&ExpectedVsActual>,
) -> Option<Violation> {
    // A device may generate these itself (`docs/reference/models.md`, "Missing benchmark fields").
    let excused = reply.is_redirect() || matches!(reply.status, 304 | 401 | 403 | 407);
    if reply.is_marked() || excused || is_foreign(known, request) {
        return None;
    }
    let violation = Violation::new(ErrorKind::ForeignReply, "no X- headers");
    Some(match comparison {
        Some(ExpectedVsActual { expected, actual }) => violation.expected(expected, actual),
        None => violation.expected("the marks X-Target and X-Xact of our servers", "neither of them"),
    })
}

/// A redirect that no server of the test sent: it has no marks, or no server of the test redirects.
pub(super) fn unexpected_redirect(reply: &ReplyMeta) -> Violation {
    let location = reply.rare.as_deref().and_then(|rare| rare.location.as_deref());
    let to = location.map_or_else(
        || "without a location".to_owned(),
        |to| format!("to {}", String::from_utf8_lossy(&to[..to.len().min(100)])),
    );
    let (why, expected) = match reply.is_marked() {
        true => ("although our servers send no redirects", "the object"),
        false => ("without X- headers", "the object, or a redirect with the marks of our servers"),
    };
    let detail = format!("status {} {to}, {why}", reply.status);
    Violation::new(ErrorKind::UnmarkedRedirect, detail.clone()).expected(expected, detail)
}

/// A reply that denies access.
pub(super) fn access_denied(known: &Known<'_>, completed: &Completed) -> Violation {
    let (reply, has_credentials) = (&*completed.reply, !known.profile.credentials.is_empty());
    let answers = completed.exchange.answers;
    let answered = if reply.status == 407 { answers.proxy } else { answers.origin };
    if reply.status != 403 && answered.is_some_and(|answered| answered.scheme == AuthScheme::Kerberos) {
        let detail = format!("status {} to a ticket of the realm", reply.status);
        return Violation::new(ErrorKind::KerberosRefused, detail);
    }
    let challenged = reply.rare.as_deref().is_some_and(|rare| !rare.challenges.is_empty());
    let kind = match (reply.status, has_credentials) {
        (407, _) if !challenged => ErrorKind::NoProxyChallenge,
        (401, _) if !challenged => ErrorKind::NoOriginChallenge,
        (407, true) => ErrorKind::ProxyAuthAgain,
        (401, true) => ErrorKind::OriginAuthAgain,
        (407, false) => ErrorKind::ProxyCredentials,
        (401, false) => ErrorKind::OriginCredentials,
        (_, true) => ErrorKind::DeniedAfter,
        (_, false) => ErrorKind::DeniedAnonymous,
    };
    Violation::new(kind, format!("status {}", reply.status))
}

fn markup_kind(error: MarkupError) -> ErrorKind {
    match error {
        MarkupError::ValueExpected => ErrorKind::TagValueExpected,
        MarkupError::ValueOpen => ErrorKind::TagValueOpen,
        MarkupError::EmptyTag => ErrorKind::TagEmpty,
        MarkupError::NoTagName => ErrorKind::TagNameless,
        MarkupError::BadUrl => ErrorKind::BadTagUrl,
        MarkupError::Rest => ErrorKind::BodyRest,
        MarkupError::Long => ErrorKind::LongToken,
    }
}
