//! Facts of both sides about a transaction with an error, for the examples of errors in logs.

use polygraph_link::Link;
use polygraph_stats::Evidence;
use polygraph_stats::evidence::fact;
use polygraph_traffic::{ContentKind, RequestKind};
use polygraph_wire::uri;

use crate::context::RobotContext;
use crate::exchange::reply::ReplyMeta;
use crate::judge::freshness::http_time;
use crate::request::{Cause, Request};
use crate::violation::Violation;

/// The evidence of a violation.
pub fn evidence<L: Link>(
    cx: RobotContext<'_, L>,
    request: &Request,
    reply: Option<&ReplyMeta>,
    violation: &Violation,
) -> Evidence {
    let evidence = Evidence::new(&*violation.detail)
        .fact(fact::URL, cx.url(request))
        .fact(fact::REQUEST, describe(request))
        .fact(fact::XACT, request.xact.to_string())
        .fact(fact::ROBOT, cx.number().to_string());
    let foreign = request.foreign.as_deref().and_then(|url| uri::split(url.as_bytes()));
    let evidence = match foreign {
        Some(parts) => evidence.fact(fact::FOREIGN_SERVER, String::from_utf8_lossy(parts.authority)),
        None => add_object(cx, request, evidence),
    };
    let evidence = match &violation.comparison {
        Some(comparison) => comparison.add_to(evidence),
        None => evidence,
    };
    match reply {
        Some(reply) => add_reply(request, reply, evidence),
        None => evidence,
    }
}

/// Method, kind and cause of a request, in words.
fn describe(request: &Request) -> String {
    let kind = if request.kind == RequestKind::Basic { "" } else { request.kind.word() };
    let cause = match request.cause {
        Cause::Direct => "",
        Cause::Embedded => "embedded",
        Cause::Redirected => "redirected",
    };
    let words = [request.method.word(), kind, cause, if request.repeat { "repeated" } else { "new" }];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn add_object<L: Link>(cx: RobotContext<'_, L>, request: &Request, evidence: Evidence) -> Evidence {
    let (field, oid) = (&cx.settings.field, &request.oid);
    if oid.kind == ContentKind::FOREIGN || field.marks_cachable.is_some() {
        return evidence;
    }
    let name = field.catalog.content(oid.kind).map_or("unknown", |content| content.name.as_str());
    let cachable = if field.catalog.cachable(oid) { "cachable" } else { "not cachable" };
    evidence.fact("object", format!("{name}, {} bytes, {cachable}", field.catalog.size(oid)))
}

fn add_reply(request: &Request, reply: &ReplyMeta, mut evidence: Evidence) -> Evidence {
    evidence = evidence.fact("status", reply.status.to_string());
    if let Some(mark) = &reply.marks.xact {
        let hand = if mark.id == request.xact.mutant() { "first hand" } else { "of an earlier transaction" };
        evidence = evidence.fact("reply's transaction", format!("{} ({hand})", mark.id.mutant()));
    }
    if let Some(target) = reply.marks.target() {
        evidence = evidence.fact(fact::SERVER, target.as_str());
    }
    let times = [("Date", reply.date), ("Last-Modified", reply.last_modified), ("Expires", reply.expires)];
    for (name, value) in times {
        if let Some(value) = value {
            evidence = evidence.fact(fact::HEADER, format!("{name}: {}", http_time(value)));
        }
    }
    for (name, value) in [("Age", reply.age), ("Content-Length", reply.length)] {
        if let Some(value) = value {
            evidence = evidence.fact(fact::HEADER, format!("{name}: {value}"));
        }
    }
    evidence
}
