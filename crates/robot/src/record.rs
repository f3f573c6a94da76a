//! What a finished transaction counts as (reference: models.md, sections 12 and 27).

pub mod popularity;

use std::rc::Rc;

use polygraph_link::{Capture, Link, Nanos};
use polygraph_stats::evidence::fact;
use polygraph_stats::{Block, Class, ErrorKind, Evidence, Finished, MissCause, Xact};
use polygraph_traffic::{ContentKind, Method, Oid, RequestKind, UniqId};
use polygraph_wire::markup::MarkupError;

use crate::exchange::reply::{Coding, ReplyMeta};
use crate::exchange::{Done, TransactionFailure, Unfinished};
use crate::group::RobotGroup;
use crate::judge::freshness::{self, http_time};
use crate::judge::history::{Delivery, Miss};
use crate::request::auth::AuthSource;
use crate::request::generator::{Cause, Request, SharedWorld};
use crate::violation::{ExpectedVsActual, Violation};

/// Clocks may differ by so many seconds.
const CLOCK_TOLERANCE_S: i64 = 60;
/// The date of a reply that took longer than this, in nanoseconds, says nothing about clocks.
const SLOW: u64 = 30 * polygraph_link::SECOND;

/// Counts a transaction that has ended. Returns true if it failed.
pub fn settle<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    mut outcome: Result<Done, Unfinished>,
) -> bool {
    let now = outcome.as_ref().map_or_else(|_| group.now(), |done| done.ended);
    group.recorder().end(request.ticket, now);
    let fault = match outcome {
        // It stays where it is: copies of it were a good part of what a transaction cost.
        Ok(ref mut done) => {
            let verdict = match &*done {
                done if done.aborted => Ok(Class::Abort),
                done if done.denied => Ok(Class::Authenticating),
                done => judge(group, robot, request, done),
            };
            match verdict {
                Ok(class) => {
                    finish(group, robot, request, done, class, now);
                    return false;
                }
                Err(fault) => {
                    // A page of the device's own in place of the object, or one that says that there is none.
                    match &done.problem {
                        Some(problem) if is_of_other_contents(done) => {
                            report(group, robot, request, &done.facts, problem, now);
                        }
                        Some(_) => {
                            note_origin(group, robot, request, &done.facts, fault.comparison.as_deref(), now);
                        }
                        None => {}
                    }
                    TransactionFailure { capture: done.capture.take(), ..fault.since(done.started) }
                }
            }
        }
        Err(Unfinished::Failed(fault)) => fault,
        Err(Unfinished::Cancelled) => {
            group.history().cut(&request.oid, Coding::Identity);
            give_up(group, robot, request);
            return false;
        }
    };
    fail(group, robot, request, &fault, now);
    true
}

/// Takes note that what was wanted will not come.
fn give_up<L: Link>(group: &Rc<RobotGroup<L>>, robot: usize, request: &Request) {
    group.note_visit(robot, request, None);
    if let Some(page) = &request.page {
        page.leave(None);
    }
}

/// Shows the messages of a transaction, as far as that is wanted.
fn dump<L: Link>(
    group: &Rc<RobotGroup<L>>,
    request: &Request,
    failed: Option<&str>,
    capture: Option<&Capture>,
) {
    if let Some(capture) = capture {
        let why = failed.map_or_else(String::new, |why| format!(", failed: {why}"));
        let title = format!("{} {}, xact {}{why}", request.method.word(), group.url(request), request.xact);
        let plan = group.recorder().dump();
        group.recorder().show(plan.show(&title, failed.is_some(), &capture.sent, &capture.received));
    }
}

fn fail<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    fault: &TransactionFailure,
    now: u64,
) {
    dump(group, request, Some(&fault.detail), fault.capture.as_deref());
    let facts = fault.facts.as_deref();
    let comparison = fault.comparison.as_deref();
    group
        .recorder()
        .error_with(fault.kind, now, || evidence(group, robot, request, facts, &fault.detail, comparison));
    if let (Some(facts), Some(started)) = (facts.filter(|facts| facts.status > 0), fault.started) {
        let custom = group.profile(robot).custom_scope.contains(facts.status);
        group.recorder().fail(facts.status, (now - started) / 1000, facts.size(), custom);
    }
    group.count_request(request);
    group.history().cut(&request.oid, facts.map_or(Coding::Identity, |facts| facts.coding));
    group.remember(robot, request.oid, false);
    group.count_session(robot, 0);
    give_up(group, robot, request);
}

fn finish<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    done: &Done,
    class: Class,
    now: u64,
) {
    let field = &group.settings().field;
    let facts = &done.facts;
    // What is not ours is cachable if it says so (reference: models.md, section 8.1).
    let cachable = match request.foreign {
        Some(_) => facts.cachable,
        None => field.catalog.cachable(&request.oid),
    };
    let offered = class.is_basic() && request.repeat && cachable;
    let rptm_us = (now - done.started) / 1000;
    let size = facts.size();
    let kinds = field.marks_cachable.is_none();
    let kind_of = |oid: &Oid| kinds.then_some(usize::from(oid.kind.0));
    let custom = group.profile(robot).custom_scope.contains(facts.status);
    group.recorder().finish(&Finished {
        class,
        rptm_us,
        due_rptm_us: Some((now - request.due) / 1000),
        size,
        request_size: done.sent,
        kind: kind_of(&request.oid),
        request_kind: request.sends.as_ref().and_then(kind_of),
        status: facts.status,
        custom,
        offered_hit: offered,
        authenticated: done.answers.scheme().filter(|_| class != Class::Authenticating),
        embedded: request.cause == Cause::Embedded,
        first: !request.repeat,
    });
    let verifiable = verifiable(request, facts, class);
    group.recorder().with(|block| {
        block.verified.replies += u64::from(is_verified(done));
        block.verified.due += u64::from(verifiable == Verifiable::Body);
        block.verified.marked += u64::from(verifiable == Verifiable::Marks);
        block.verified.bytes += done.verified.bytes;
        block.verified.uncompared += done.verified.uncompared;
        block.verified.digests += u64::from(done.verified.digest);
        if let Some(at) = done.continued {
            block.continue_us.record((at - done.started) / 1000);
        }
        if class.is_basic() && done.exchanges == 1 {
            let since = |at: Nanos| at.saturating_sub(done.started) / 1000;
            if let Some(at) = done.told {
                block.latency.last_request_byte_written_us.record(since(at));
            }
            block.latency.first_reply_byte_read_us.record(since(done.first_byte.unwrap_or(now)));
        }
        count_compound(block, done, rptm_us, size);
    });
    dump(group, request, None, done.capture.as_deref());
    if group.recorder().dump().summary {
        let (url, ms) = (group.url(request), rptm_us as f64 * 1e-3);
        group.recorder().show(format!(
            "sum: xact {} {} {ms:.3} ms {size} bytes status {} {} {url}",
            request.xact,
            class.name(),
            facts.status,
            request.method.word(),
        ));
    }
    group.recorder().take(|| Xact {
        ended_ns: now,
        lifetime_us: rptm_us,
        queued_us: Some(done.started.saturating_sub(request.due) / 1000),
        id: request.xact.to_string(),
        connection: done.connection,
        object: request.foreign.as_deref().map_or_else(|| group.path(request), str::to_owned),
        size,
        status: facts.status,
        robot: Some((group.settings().first_robot + robot) as u64),
        server: request.foreign.is_none().then_some(request.server as u64),
        ims: None,
    });
    note(group, robot, request, done, class, now);
    remember(group, robot, request, done, class, offered && class != Class::Hit, cachable, now);
    if let Some(page) = &request.page
        && let Some(bytes) = page.leave(Some(size))
    {
        let parts = page.parts();
        group.recorder().with(|block| block.page((now - page.started) / 1000, bytes, parts));
    }
    if facts.is_redirect() && class == Class::RepToRedir {
        match facts.rare.as_deref().and_then(|rare| rare.location.as_deref()) {
            Some(location) => group.follow_redirect(robot, request, location),
            None => group.recorder().error(ErrorKind::BadLocation, now, || group.url(request)),
        }
    }
}

/// Counts a transaction of several exchanges.
fn count_compound(block: &mut Block, done: &Done, rptm_us: u64, size: u64) {
    if let Some(scheme) = done.challenge {
        let compound = &mut block.compounds[scheme as usize];
        compound.rptm_us.record(rptm_us);
        compound.request_size.record(done.sent);
        compound.size.record(size);
        compound.exchanges.record(u64::from(done.exchanges));
    }
}

fn is_verified(done: &Done) -> bool {
    done.verified.bytes > 0 || done.verified.digest || done.verified.empty
}

/// What shows that a good reply is the one that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verifiable {
    /// Its body, which the robot knows.
    Body,
    /// The marks of our servers: it has no body.
    Marks,
    /// Nothing: it is somebody else's, it was cut short on purpose, or a device may well make it itself.
    Nothing,
}

/// A redirect of our servers, of which the test has some that redirect. Marks alone can be kept by a device that puts a redirect
/// of its own in place of a reply.
fn is_expected_redirect<L: Link>(group: &Rc<RobotGroup<L>>, facts: &ReplyMeta) -> bool {
    facts.is_marked() && group.settings().field.redirects
}

fn verifiable(request: &Request, facts: &ReplyMeta, class: Class) -> Verifiable {
    if request.foreign.is_some() || matches!(class, Class::Abort | Class::Authenticating) {
        return Verifiable::Nothing;
    }
    let bodiless = request.method == Method::Head || matches!(facts.status, 201 | 204 | 304 | 416 | 417);
    // Positions in a compressed object mean nothing to who does not have it.
    let coded_part = facts.status == 206 && facts.coding != Coding::Identity;
    match facts.is_marked() {
        true if bodiless => Verifiable::Marks,
        true if facts.is_redirect() || coded_part => Verifiable::Nothing,
        false if bodiless => Verifiable::Nothing,
        _ => Verifiable::Body,
    }
}

/// Keeps what later transactions want to know.
#[expect(clippy::too_many_arguments, reason = "all that is known of a transaction")]
fn remember<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    done: &Done,
    class: Class,
    missed: bool,
    cachable: bool,
    now: u64,
) {
    let field = &group.settings().field;
    let (facts, size) = (&done.facts, done.facts.size());
    group.count_session(robot, if class == Class::Miss { size } else { 0 });
    // What is known of an object is seldom in the processor's caches: everything is looked up together, so that it is
    // waited for once.
    group.count_request(request);
    if request.foreign.is_some() {
        if missed {
            group.recorder().with(|block| block.miss(MissCause::Unmarked, size));
        }
        return;
    }
    let mut history = group.history();
    let at_ms = now / 1_000_000;
    let mut cause = None;
    if missed {
        let known = if facts.marks.xact.is_none() {
            MissCause::Unmarked
        } else if !facts.cachable {
            MissCause::Forbidden
        } else {
            let unix = group.link().unix_seconds();
            let modified_since =
                |then| field.catalog.times(&request.oid, unix).is_some_and(|times| times.lmt >= then);
            let varies =
                field.catalog.content(request.oid.kind).is_some_and(|content| content.encodings.varies());
            let own = !varies && !group.settings().others_fill && group.generator().is_own(request);
            history.miss_cause(&request.oid, facts.coding, Miss { at_ms, unix, own }, modified_since)
        };
        group.recorder().with(|block| block.miss(known, size));
        cause = Some(known);
    }
    let whole = facts.status == 200 && request.method == Method::Get && request.kind.fills();
    if cachable && class == Class::Abort {
        history.cut(&request.oid, facts.coding);
    } else if cachable && whole && group.repeats() {
        let hit = class == Class::Hit;
        let delivery = Delivery { at_ms, kind: request.kind, hit, expires: facts.expires };
        let age = history.delivered(&request.oid, facts.coding, delivery);
        if let Some(age) = age
            && (hit && request.repeat || cause.is_some_and(MissCause::is_of_storage))
        {
            group.recorder().with(|block| block.repeat_age(hit, age));
        }
    }
    if !cachable {
        history.asks(request.xact, robot);
    }
    drop(history);
    group.remember(robot, request.oid, whole && cachable && class.is_basic());
    // Only the server itself knows what it says: stored headers are of yesterday.
    let first_hand = is_first_hand(request, facts);
    group.note_visit(robot, request, Some(&**facts).filter(|_| first_hand));
    if field.share_worlds
        && first_hand
        && let Some(mark) = facts.marks.remote_world
    {
        let facts = polygraph_traffic::WorldFacts { size: mark.size, window: mark.window, hot_end: mark.hot };
        let told = SharedWorld { id: mark.id, kind: mark.kind, facts };
        group.generator().learn(field, request.server, told);
    }
}

/// The server echoes the mutant of the request's transaction id; a stored reply carries that of an older one.
fn is_first_hand(request: &Request, facts: &ReplyMeta) -> bool {
    facts.marks.xact.is_some_and(|mark| mark.id == request.xact.mutant())
}

/// A reply without the mark is never a hit; it counts as a miss and as foreign.
fn is_second_hand(request: &Request, facts: &ReplyMeta) -> bool {
    facts.marks.xact.is_some() && !is_first_hand(request, facts)
}

/// The reply was made for a later request of this loop for the same object, which came to the device first: the first
/// one was held up for longer than new objects are left alone.
fn was_overtaken(request: &Request, facts: &ReplyMeta) -> bool {
    facts.marks.xact.is_some_and(|mark| {
        let (asker, own) = (mark.id.mutant(), request.xact);
        (asker.time, asker.mix) == (own.time, own.mix) && asker.counter > own.counter
    })
}

/// The class of a complete reply, or what makes it a failure.
fn judge<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    done: &Done,
) -> Result<Class, TransactionFailure> {
    let facts = &done.facts;
    let fault = |violation| Err(TransactionFailure::of(violation, facts));
    let bad_status = |wanted: &str| {
        let detail = format!("status {} instead of {wanted}", facts.status);
        let seen = format!("status {}", facts.status);
        fault(Violation::new(ErrorKind::BadStatus, detail).expected(format!("status {wanted}"), seen))
    };
    if let Some(problem) = &done.problem
        && problem.kind.fails()
    {
        return fault(problem.clone());
    }
    if let Some(asker) = done.fooled {
        let (kind, status) = match asker {
            AuthSource::Proxy => (ErrorKind::ProxyAuthIgnored, "status 407"),
            AuthSource::Origin(_) => (ErrorKind::OriginAuthIgnored, "status 401"),
        };
        let violation = Violation::new(kind, "access was granted with a wrong password");
        return fault(violation.expected(status, format!("status {}", facts.status)));
    }
    match facts.status {
        200 => {}
        203 | 204 if request.foreign.is_some() => {}
        206 if request.kind == RequestKind::Range => {}
        416 if request.kind == RequestKind::Range => {}
        201 | 204 if request.method.has_body() => {}
        304 if matches!(request.kind, RequestKind::Ims200 | RequestKind::Ims304) => {}
        417 if done.continued.is_none() && request.sends.is_some() => {}
        _ if facts.is_redirect() && (is_expected_redirect(group, facts) || is_foreign(group, request)) => {
            return Ok(Class::RepToRedir);
        }
        _ if facts.is_redirect() => return Err(led_astray(facts)),
        401 | 403 | 407 => return denied(facts, !group.profile(robot).credentials.is_empty()),
        _ if request.kind == RequestKind::Range => return bad_status("206"),
        _ if request.kind == RequestKind::Ims304 => return bad_status("304"),
        _ => return bad_status("200"),
    }
    let second_hand = is_second_hand(request, facts);
    // Worlds belong to one loop of one run, so as a rule nobody else can have asked for a new object of them before;
    // only what a page names may have been fetched ahead by the device itself.
    if second_hand
        && request.cause != Cause::Embedded
        && !was_overtaken(request, facts)
        && !group.settings().others_fill
        && request.is_basic()
        && !request.repeat
        && !done.retried
        && is_of_a_world(request)
    {
        let detail = "a stored reply to a request that was never made";
        return fault(copy_given(ErrorKind::UnrequestedHit, detail, request, facts));
    }
    if second_hand
        && request.foreign.is_none()
        && !is_of_other_contents(done)
        && !group.settings().field.catalog.cachable(&request.oid)
        && let Some(other) = other_asker(group, robot, request, facts)
    {
        let detail = format!("a reply that was made for {other} alone came to {}", name(group, robot));
        return fault(copy_given(ErrorKind::PrivateLeak, detail, request, facts));
    }
    Ok(class_of(request, facts, second_hand))
}

/// Replies that are not of our servers are what the workload asks for, or what the user puts up with.
fn is_foreign<L: Link>(group: &RobotGroup<L>, request: &Request) -> bool {
    request.foreign.is_some() || group.settings().tolerance.foreign_replies
}

/// The device leads robots elsewhere instead of getting them the object.
fn led_astray(facts: &ReplyMeta) -> TransactionFailure {
    let location = facts.rare.as_deref().and_then(|rare| rare.location.as_deref());
    let to = location.map_or_else(
        || "without a location".to_owned(),
        |to| format!("to {}", String::from_utf8_lossy(&to[..to.len().min(100)])),
    );
    let detail = format!("status {} {to}, no X- headers", facts.status);
    let violation = Violation::new(ErrorKind::UnmarkedRedirect, detail.clone());
    TransactionFailure::of(
        violation.expected("the object, or a redirect with the marks of our servers", detail),
        facts,
    )
}

/// For whom a stored reply was made, if that was another robot.
fn other_asker<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    facts: &ReplyMeta,
) -> Option<String> {
    let asker = facts.marks.xact?.id.mutant();
    if !asker.shares_source(request.xact) {
        return Some("a robot of another loop".to_owned());
    }
    let other = group.history().asker(asker).filter(|other| *other != robot)?;
    Some(name(group, other))
}

fn name<L: Link>(group: &RobotGroup<L>, robot: usize) -> String {
    format!("robot {}", group.settings().first_robot + robot)
}

/// Files of a document root are in no world: all loops ask for the same ones, under ever new names.
fn is_of_a_world(request: &Request) -> bool {
    request.foreign.is_none() && request.oid.world != UniqId::default()
}

fn class_of(request: &Request, facts: &ReplyMeta, second_hand: bool) -> Class {
    match (request.cause, request.kind, request.method) {
        (Cause::Redirected, ..) => Class::RedirectedReq,
        (_, RequestKind::Ims200 | RequestKind::Ims304, Method::Get) if facts.status == 304 => Class::Ims304,
        (_, RequestKind::Ims200 | RequestKind::Ims304, Method::Get) => Class::Ims200,
        (_, RequestKind::Reload, Method::Get) => Class::Reload,
        (_, RequestKind::Range, Method::Get) => Class::Range,
        (.., Method::Head) => Class::Head,
        (.., Method::Post) => Class::Post,
        (.., Method::Put) => Class::Put,
        _ if second_hand => Class::Hit,
        _ if facts.cachable => Class::Miss,
        _ => Class::Uncachable,
    }
}

/// Access was refused.
fn denied(facts: &ReplyMeta, has_credentials: bool) -> Result<Class, TransactionFailure> {
    let challenged = facts.rare.as_deref().is_some_and(|rare| !rare.challenges.is_empty());
    let kind = match (facts.status, has_credentials) {
        (407, _) if !challenged => ErrorKind::NoProxyChallenge,
        (401, _) if !challenged => ErrorKind::NoOriginChallenge,
        (407, true) => ErrorKind::ProxyAuthAgain,
        (401, true) => ErrorKind::OriginAuthAgain,
        (407, false) => ErrorKind::ProxyCredentials,
        (401, false) => ErrorKind::OriginCredentials,
        (_, true) => ErrorKind::DeniedAfter,
        (_, false) => ErrorKind::DeniedAnonymous,
    };
    Err(TransactionFailure::of(Violation::new(kind, format!("status {}", facts.status)), facts))
}

/// Notes a reply that is not from our servers. `comparison` is what its content says, if that is wrong.
fn note_origin<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    facts: &ReplyMeta,
    comparison: Option<&ExpectedVsActual>,
    now: u64,
) {
    // These a device may well answer by itself (reference: models.md, section 11.4).
    let excused = facts.is_redirect() || matches!(facts.status, 204 | 304 | 401 | 403 | 407);
    if facts.is_marked() || excused || is_foreign(group, request) {
        return;
    }
    let violation = Violation::new(ErrorKind::ForeignReply, "no X- headers")
        .expected("the marks X-Target and X-Xact of our servers", "neither of them");
    let comparison = comparison.or(violation.comparison.as_deref());
    group.recorder().error_with(violation.kind, now, || {
        evidence(group, robot, request, Some(facts), &violation.detail, comparison)
    });
}

/// Counts something that is wrong with a reply, with what both sides know about it.
fn report<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    facts: &ReplyMeta,
    violation: &Violation,
    now: u64,
) {
    group.recorder().error_with(violation.kind, now, || {
        evidence(group, robot, request, Some(facts), &violation.detail, violation.comparison.as_deref())
    });
}

/// The reply was made by a server that has other contents than the robots.
fn is_of_other_contents(done: &Done) -> bool {
    done.problem.as_ref().is_some_and(|problem| problem.kind == ErrorKind::OtherContents)
}

/// What is wrong with a reply but lets the transaction succeed.
fn note<L: Link>(
    group: &Rc<RobotGroup<L>>,
    robot: usize,
    request: &Request,
    done: &Done,
    class: Class,
    now: u64,
) {
    let facts = &done.facts;
    let report = |violation: &Violation| report(group, robot, request, facts, violation, now);
    done.problem.iter().for_each(report);
    // Robots expect what its server does not know of.
    if is_of_other_contents(done) {
        return;
    }
    let tolerance = group.settings().tolerance;
    for fault in done.faults.iter().filter(|_| !tolerance.bad_tags) {
        report(&Violation::new(markup_class(*fault), fault.to_string()));
    }
    if class == Class::Abort || request.foreign.is_some() {
        return;
    }
    note_origin(group, robot, request, facts, None, now);
    if let Some(rare) = facts.rare.as_deref() {
        if rare.length_ignored {
            let detail = "Content-Length beside Transfer-Encoding: chunked";
            report(&Violation::new(ErrorKind::LengthIgnored, detail));
        }
        if rare.trailer {
            report(&Violation::new(ErrorKind::TrailerIgnored, "fields behind the last chunk"));
        }
    }
    let field = &group.settings().field;
    let second_hand = is_second_hand(request, facts);
    let copy = class == Class::Hit || second_hand && matches!(class, Class::Ims200 | Class::Ims304);
    if copy && !(facts.cachable && field.catalog.cachable(&request.oid)) {
        report(&copy_given(
            ErrorKind::UncachableHit,
            "a stored reply that must not be stored",
            request,
            facts,
        ));
    }
    let is_first = !request.repeat && !done.retried && is_of_a_world(request);
    if class == Class::Hit && is_first && !tolerance.false_hits {
        let detail = "a stored reply to a request that this test has not made";
        report(&copy_given(ErrorKind::FalseHit, detail, request, facts));
    }
    if request.kind == RequestKind::Reload && second_hand {
        let detail = "a stored reply to a request with no-cache";
        report(&copy_given(ErrorKind::ReloadHit, detail, request, facts));
    }
    let unix = group.link().unix_seconds();
    match facts.date {
        _ if second_hand || !facts.is_marked() => {}
        None => report(&Violation::new(ErrorKind::NoDate, "no Date").expected("Date", "none")),
        Some(date) if now - done.started < SLOW && (date - unix).abs() > CLOCK_TOLERANCE_S => {
            let detail = format!("the server's clock differs by {} s", date - unix);
            let violation = Violation::new(ErrorKind::ClockSkew, detail);
            report(&violation.expected(format!("about {}", http_time(unix)), http_time(date)));
        }
        Some(_) => {}
    }
    let asked = unix - ((now - done.started) / polygraph_link::SECOND) as i64;
    let times_at = |moment| field.catalog.times(&request.oid, moment);
    let violation = match facts.status {
        304 if request.kind == RequestKind::Ims200 => times_at(asked)
            .and_then(|times| freshness::not_modified(&field.catalog, request, facts, times, asked)),
        304 => None,
        // Of a copy given in spite of no-cache enough has been said.
        _ if second_hand && request.kind != RequestKind::Reload => freshness::of_copy(facts, asked, times_at),
        _ => None,
    };
    violation.iter().for_each(report);
}

/// A reply of the store where there must be none.
fn copy_given(kind: ErrorKind, detail: impl Into<String>, request: &Request, facts: &ReplyMeta) -> Violation {
    let seen = facts.marks.xact.map_or("none".to_owned(), |mark| mark.id.mutant().to_string());
    let expected = format!("the server's reply to transaction {}", request.xact);
    Violation::new(kind, detail).expected(expected, format!("its reply to transaction {seen}"))
}

fn markup_class(fault: MarkupError) -> ErrorKind {
    match fault {
        MarkupError::ValueExpected => ErrorKind::TagValueExpected,
        MarkupError::ValueOpen => ErrorKind::TagValueOpen,
        MarkupError::EmptyTag => ErrorKind::TagEmpty,
        MarkupError::NoTagName => ErrorKind::TagNameless,
        MarkupError::BadUrl => ErrorKind::BadTagUrl,
        MarkupError::Rest => ErrorKind::BodyRest,
        MarkupError::Long => ErrorKind::LongToken,
    }
}

/// What both sides know about a transaction.
fn evidence<L: Link>(
    group: &RobotGroup<L>,
    robot: usize,
    request: &Request,
    facts: Option<&ReplyMeta>,
    detail: &str,
    comparison: Option<&ExpectedVsActual>,
) -> Evidence {
    let field = &group.settings().field;
    let number = group.settings().first_robot + robot;
    let kind = if request.kind == RequestKind::Basic { "" } else { request.kind.word() };
    let cause = match request.cause {
        Cause::Direct => "",
        Cause::Embedded => "embedded",
        Cause::Redirected => "redirected",
    };
    let words = [request.method.word(), kind, cause, if request.repeat { "repeated" } else { "new" }];
    let description: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut evidence = Evidence::new(detail)
        .fact(fact::URL, group.url(request))
        .fact(fact::REQUEST, description.join(" "))
        .fact(fact::XACT, request.xact.to_string())
        .fact(fact::ROBOT, number.to_string());
    if request.oid.kind != ContentKind::FOREIGN && field.marks_cachable.is_none() {
        let name = field.catalog.content(request.oid.kind).map_or("unknown", |content| content.name.as_str());
        let cachable = if field.catalog.cachable(&request.oid) { "cachable" } else { "not cachable" };
        let size = field.catalog.size(&request.oid);
        evidence = evidence.fact("object", format!("{name}, {size} bytes, {cachable}"));
    }
    if let Some(comparison) = comparison {
        evidence = comparison.tell(evidence);
    }
    let Some(facts) = facts else { return evidence };
    evidence = evidence.fact("status", facts.status.to_string());
    if let Some(mark) = &facts.marks.xact {
        let hand = if mark.id == request.xact.mutant() { "first hand" } else { "of an earlier transaction" };
        evidence = evidence.fact("reply's transaction", format!("{} ({hand})", mark.id.mutant()));
    }
    if let Some(target) = &facts.marks.target {
        evidence = evidence.fact(fact::SERVER, target.as_str());
    }
    let times = [("Date", facts.date), ("Last-Modified", facts.last_modified), ("Expires", facts.expires)];
    for (name, value) in times {
        if let Some(value) = value {
            evidence = evidence.fact(fact::HEADER, format!("{name}: {}", http_time(value)));
        }
    }
    if let Some(age) = facts.age {
        evidence = evidence.fact(fact::HEADER, format!("Age: {age}"));
    }
    if let Some(length) = facts.length {
        evidence = evidence.fact(fact::HEADER, format!("Content-Length: {length}"));
    }
    evidence
}
