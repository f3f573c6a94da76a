//! Counting the outcome of transactions. Only this module reports outcomes to the recorder.

mod evidence;
pub mod popularity;

use polygraph_link::{Capture, Link, Nanos};
use polygraph_stats::{Block, Class, ErrorKind, Finished, Xact};
use polygraph_tls::settings::CertificateFault;
use polygraph_traffic::Oid;
use polygraph_traffic::ranges::RangeSet;

use self::evidence::evidence;
use crate::context::RobotContext;
use crate::exchange::reply::ReplyMeta;
use crate::exchange::{Completed, Exchange};
use crate::failure::TransactionFailure;
use crate::judge::certificate::CertificateRefusal;
use crate::judge::{Verdict, Verifiable, class_of_request, is_first_hand, verifiable};
use crate::request::page::Page;
use crate::request::{Cause, Request};
use crate::violation::Violation;

/// What the robots know about a requested object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remembered {
    /// How many times it has been requested, and the number of objects for which it stands (see [`popularity`]).
    pub rank: Option<(u32, u32)>,
    /// Milliseconds since the previous transfer of the complete object.
    pub since_transfer_ms: Option<u64>,
}

/// Counts a transaction that starts at `now`, and gives it a handle.
pub fn start<L: Link>(cx: RobotContext<'_, L>, request: &mut Request, now: Nanos) {
    request.handle = cx.recorder.begin(now);
    if request.foreign.is_some() {
        cx.recorder.with(|block| block.foreign.started += 1);
    }
    if request.cause == Cause::Direct {
        cx.recorder.with(|block| {
            block.late_us.record(now.saturating_sub(request.due).as_micros());
            count_choice(block, request);
        });
    }
}

/// Counts an exchange that ended in a challenge and that the transaction repeats with credentials.
pub fn challenge<L: Link>(cx: RobotContext<'_, L>, completed: &Completed, started: Nanos, now: Nanos) {
    let Some(scheme) = completed.auth.scheme else { return };
    let (size, status) = (completed.reply.size(), completed.reply.status);
    let custom = cx.profile().custom_scope.contains(status);
    cx.recorder.with(|block| block.challenge(scheme, status, (now - started).as_micros(), size, custom));
}

/// Counts the use, from `now` on, of a connection that was used before, and that may have been idle.
pub fn reuse<L: Link>(cx: RobotContext<'_, L>, now: Nanos, was_idle: bool) {
    cx.recorder.with(|block| {
        block.reused += 1;
        if was_idle {
            block.idle.leave(now);
        }
    });
}

/// Counts a request that the peer did not process and that is sent once more.
pub fn unprocessed<L: Link>(cx: RobotContext<'_, L>, failure: &TransactionFailure) {
    let refused = failure.violation.kind == ErrorKind::StreamRefused;
    cx.recorder.with(|block| match refused {
        true => block.streams.refused += 1,
        false => block.streams.unprocessed += 1,
    });
    // The announced end of a connection is no error.
    if refused {
        cx.recorder.error(ErrorKind::StreamRefused, cx.now(), || failure.violation.detail.clone());
    }
}

/// Counts a reply 421 after which the request is sent on another connection.
pub fn misdirected<L: Link>(cx: RobotContext<'_, L>, request: &Request) {
    cx.recorder.with(|block| {
        block.streams.misdirected += 1;
        block.retried += 1;
    });
    cx.recorder.error(ErrorKind::MisdirectedReply, cx.now(), || cx.url(request));
}

/// Counts that the robot begins to use an alternative service.
pub fn alternative<L: Link>(cx: RobotContext<'_, L>) {
    cx.recorder.with(|block| block.streams.alternatives += 1);
}

/// Counts an alternative service that cannot be used.
pub fn broken_alternative<L: Link>(cx: RobotContext<'_, L>, why: impl FnOnce() -> String) {
    cx.recorder.with(|block| block.streams.broken_alternatives += 1);
    cx.recorder.error(ErrorKind::AltSvcBroken, cx.now(), why);
}

/// Counts a request that is sent once more.
pub fn retry<L: Link>(cx: RobotContext<'_, L>) {
    cx.recorder.with(|block| block.retried += 1);
}

/// Counts the requests in flight on a connection.
pub fn pipeline_depth<L: Link>(cx: RobotContext<'_, L>, depth: usize) {
    cx.recorder.with(|block| block.pipeline_depth.record(depth as u64));
}

/// Counts a pipelined request whose connection ended before its reply.
pub fn pipeline_cancelled<L: Link>(cx: RobotContext<'_, L>, request: &Request) {
    cx.recorder.error(ErrorKind::PipelineCancelled, cx.now(), || cx.url(request));
}

/// Counts a link or a redirect that the robot cannot follow.
pub fn bad_link<L: Link>(cx: RobotContext<'_, L>, kind: ErrorKind, from: &Request, link: &[u8]) {
    let detail = || format!("{} in {}", String::from_utf8_lossy(link), cx.url(from));
    cx.recorder.error(kind, cx.now(), detail);
}

/// Counts a redirect without a location.
pub fn no_location<L: Link>(cx: RobotContext<'_, L>, request: &Request) {
    cx.recorder.error(ErrorKind::BadLocation, cx.now(), || cx.url(request));
}

/// Counts a page that is complete, of `bytes` bytes.
pub fn page<L: Link>(cx: RobotContext<'_, L>, page: &Page, bytes: u64, now: Nanos) {
    cx.recorder.with(|block| block.page((now - page.started).as_micros(), bytes, page.parts()));
}

/// Counts a violation in the reply to `request`.
pub fn violation<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    completed: &Completed,
    violation: &Violation,
) {
    let reply = Some(&*completed.reply);
    cx.recorder.error_with(violation.kind, completed.ended, || evidence(cx, request, reply, violation));
}

/// Counts a transaction that failed at `now`.
pub fn failure<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    failure: &TransactionFailure,
    now: Nanos,
) {
    let violation = &failure.violation;
    if violation.kind == ErrorKind::StreamReset {
        cx.recorder.with(|block| block.streams.resets += 1);
    }
    if request.foreign.is_some() {
        cx.recorder.with(|block| block.foreign.failed.count(violation.kind));
    } else if let Some(class) = class_of_request(request) {
        cx.recorder.with(|block| block.fail_class(class));
    }
    show_messages(cx, request, Some(&violation.detail), failure.capture.as_deref());
    let reply = failure.reply.as_deref();
    cx.recorder.error_with(violation.kind, now, || evidence(cx, request, reply, violation));
    if let (Some(reply), Some(started)) = (reply.filter(|reply| reply.status > 0), failure.started) {
        let custom = cx.profile().custom_scope.contains(reply.status);
        cx.recorder.fail(reply.status, (now - started).as_micros(), reply.size(), custom);
    }
}

/// Counts a transaction that ended at `now` because the bad certificate of the server was refused, as it must be.
pub fn refusal<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    fault: CertificateFault,
    refusal: CertificateRefusal,
    now: Nanos,
) {
    let CertificateRefusal { status, size, started } = refusal;
    let rptm_us = now.saturating_sub(started.unwrap_or(request.due)).as_micros();
    cx.recorder.with(|block| {
        block.tls.refusals.at_mut(status).record(rptm_us, size);
        block.tls.refused_faults.add(fault.name(), 1);
    });
}

/// Counts that content of a server with a bad certificate arrived.
pub fn acceptance<L: Link>(cx: RobotContext<'_, L>, fault: CertificateFault) {
    cx.recorder.with(|block| block.tls.accepted_faults.add(fault.name(), 1));
}

/// Counts a request for an object that may be requested repeatedly.
pub fn rank<L: Link>(cx: RobotContext<'_, L>, remembered: &Remembered) {
    if let Some((n, weight)) = remembered.rank {
        cx.recorder.with(|block| block.ordinals.record_n(u64::from(n), u64::from(weight)));
    }
}

/// Counts a transaction that succeeded.
pub fn success<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    completed: &Completed,
    class: Class,
    verdict: &Verdict,
    remembered: &Remembered,
) {
    let field = &cx.settings.field;
    let Completed { exchange, reply, ended: now, auth } = completed;
    let rptm_us = (*now - exchange.started).as_micros();
    let size = reply.size();
    let (secure, socks) = (cx.is_secure(exchange.hop), cx.socks().is_some());
    let has_kinds = field.marks_cachable.is_none();
    let kind_of = |oid: &Oid| has_kinds.then_some(usize::from(oid.kind.0));
    cx.recorder.finish(&Finished {
        class,
        rptm_us,
        due_rptm_us: Some((*now - request.due).as_micros()),
        size,
        request_size: exchange.sent,
        kind: kind_of(&request.oid),
        request_kind: request.sends.as_ref().and_then(kind_of),
        status: reply.status,
        custom: cx.profile().custom_scope.contains(reply.status),
        offered_hit: verdict.offered_hit,
        authenticated: exchange.answers.scheme().filter(|_| class != Class::Authenticating),
        embedded: request.cause == Cause::Embedded,
        first: !request.repeat,
        version: cx.version_to(exchange.hop),
        socks,
        secure,
    });
    let verifiable = verifiable(request, reply, class);
    cx.recorder.with(|block| {
        count_verified(block, exchange, reply, verifiable);
        let is_upload = matches!(class, Class::Post | Class::Put);
        block.first_hand_uploads += u64::from(is_upload && is_first_hand(request, reply));
        if let Some(at) = exchange.continued {
            block.continue_us.record((at - exchange.started).as_micros());
        }
        if secure {
            let set_up = exchange.ready.map_or(Nanos::ZERO, |ready| ready.saturating_sub(exchange.started));
            block.tls.transactions.record(rptm_us, size);
            block.tls.ready_rptm_us.record(rptm_us.saturating_sub(set_up.as_micros()));
            if cx.is_tunneled(exchange.hop) {
                block.tls.tunneled.record(rptm_us, size);
            }
        }
        if socks {
            block.socks.transactions.record(rptm_us, size);
            if class == Class::Hit {
                block.socks.hits.add(size);
            }
        }
        if class.is_basic() && auth.challenges == 0 {
            let since = |at: Nanos| at.saturating_sub(exchange.started).as_micros();
            if let Some(at) = exchange.head_sent {
                block.latency.last_request_byte_written_us.record(since(at));
            }
            block.latency.first_reply_byte_read_us.record(since(exchange.first_byte.unwrap_or(*now)));
        }
        if let Some(scheme) = auth.scheme {
            let compound = &mut block.compounds[scheme as usize];
            compound.rptm_us.record(rptm_us);
            compound.request_size.record(exchange.sent);
            compound.size.record(size);
            compound.exchanges.record(u64::from(auth.challenges + 1));
        }
        if let Some(ahead) = verdict.date_ahead {
            block.clock.note(ahead);
        }
        if let Some(cause) = verdict.miss {
            block.miss(cause, size);
        }
        let hit = class == Class::Hit;
        if let Some(since_transfer_ms) = remembered.since_transfer_ms
            && (hit && request.repeat || verdict.miss.is_some_and(|cause| cause.is_of_storage()))
        {
            block.since_transfer(hit, since_transfer_ms);
        }
    });
    rank(cx, remembered);
    show_messages(cx, request, None, exchange.capture.as_deref());
    if cx.recorder.dump().summary {
        let (url, ms) = (cx.url(request), rptm_us as f64 * 1e-3);
        cx.recorder.show(format!(
            "sum: xact {} {} {ms:.3} ms {size} bytes status {} {} {url}",
            request.xact,
            class.name(),
            reply.status,
            request.method.word(),
        ));
    }
    cx.recorder.take(|| Xact {
        ended_ns: (*now).as_u64(),
        lifetime_us: rptm_us,
        queued_us: Some(exchange.started.saturating_sub(request.due).as_micros()),
        id: request.xact.to_string(),
        connection: exchange.connection,
        object: request.foreign.as_deref().map_or_else(|| cx.path(request), str::to_owned),
        size,
        status: reply.status,
        robot: Some(cx.number() as u64),
        server: request.foreign.is_none().then_some(request.server as u64),
        ims: None,
    });
}

/// Counts the amount of compared content.
fn count_verified(block: &mut Block, exchange: &Exchange, reply: &ReplyMeta, verifiable: Verifiable) {
    let verified = &exchange.verified;
    let counts = &mut block.verified;
    // Without the id of a transaction, nobody can tell a stored reply, so a device could hide that it breaks the rules of caching.
    let shows_its_origin = reply.marks.xact.is_some();
    counts.replies += u64::from(verified.is_whole() && (shows_its_origin || verifiable != Verifiable::Body));
    counts.due += u64::from(verifiable == Verifiable::Body);
    counts.marked += u64::from(verifiable == Verifiable::Marks);
    counts.bytes += verified.bytes;
    counts.uncompared += verified.uncompared;
    counts.digests += u64::from(verified.digest);
}

/// Dumps the messages of a transaction, if the user requested this.
fn show_messages<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    failed: Option<&str>,
    capture: Option<&Capture>,
) {
    if let Some(capture) = capture {
        let why = failed.map_or_else(String::new, |why| format!(", failed: {why}"));
        let title = format!("{} {}, xact {}{why}", request.method.word(), cx.url(request), request.xact);
        let plan = cx.recorder.dump();
        cx.recorder.show(plan.show(&title, failed.is_some(), &capture.sent, &capture.received));
    }
}

/// Counts how the object of a request was chosen, and its ranges.
fn count_choice(block: &mut Block, request: &Request) {
    let chosen = &mut block.oid_gen;
    let which = match (request.foreign.is_some(), request.repeat) {
        (true, false) => &mut chosen.new_foreign,
        (true, true) => &mut chosen.repeat_foreign,
        (false, false) => &mut chosen.new,
        (false, true) => &mut chosen.repeat,
    };
    *which += 1;
    if request.foreign.is_none() {
        *(if request.repeat_wanted { &mut chosen.need_repeat } else { &mut chosen.need_new }) += 1;
        chosen.lack_repeat += u64::from(request.repeat_wanted && !request.repeat);
    }
    if let Some(set) = request.ranges.as_deref() {
        count_ranges(block, set);
    }
}

fn count_ranges(block: &mut Block, set: &RangeSet) {
    let made = &mut block.range_gen;
    let mut all = 0;
    for spec in &set.specs {
        let (first, end) = spec.within(set.size);
        all += end.saturating_sub(first);
        made.spec_size.record(end.saturating_sub(first));
        made.spec_overflow += u64::from(spec.overflows(set.size));
    }
    made.set_size.record(all);
    made.specs_per_set.record(set.specs.len() as u64);
    made.first_last_swap += u64::from(set.swapped);
    made.set_overflow += u64::from(set.cut);
}
