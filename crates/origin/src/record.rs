//! Records the outcome of a transaction (docs/reference/models.md, "Transaction classes";
//! docs/reference/generated/errors.md).

use std::io;

use polygraph_link::Nanos;
use polygraph_multiplex::{Fault, FaultKind};
use polygraph_stats::evidence::fact;
use polygraph_stats::{Class, ErrorKind, Evidence, Finished, HttpVersion, Recorder, Xact};
use polygraph_traffic::{Method, Oid};
use polygraph_wire::auth::access::Refused;

use crate::object_lookup::RequestedObject;
use crate::request::{Arrival, Request, RequestFault};
use crate::settings::OriginConfig;

/// A reply that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The status code.
    pub status: u16,
    /// Bytes of head and body.
    pub size: u64,
    /// Whether the body was cut on purpose.
    pub is_cut: bool,
    /// Number of cookies that the reply sets.
    pub cookies: u64,
    /// When the first bytes were sent, if the last ones were sent later.
    pub begun: Option<Nanos>,
    /// Whether the status is in the server's custom scope.
    pub custom: bool,
}

/// The times of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct TransactionTimes {
    /// When the first byte of the request arrived, if its head did not arrive at once.
    pub first_byte: Option<Nanos>,
    /// When the head of the request was complete: the start of the transaction.
    pub started: Nanos,
    /// When the transaction ended.
    pub ended: Nanos,
}

/// The outcome of a transaction on the server side.
#[derive(Debug)]
pub enum ServerOutcome {
    /// The server sent a reply.
    Sent(Sent),
    /// The client cut its request on purpose.
    CutByClient,
    /// The transaction failed.
    Failed(ErrorKind, String),
}

/// The error class of a faulty request.
fn error_of(fault: RequestFault) -> ErrorKind {
    match fault {
        RequestFault::Foreign | RequestFault::Method => ErrorKind::ForeignRequest,
        RequestFault::Misdirected => ErrorKind::Misdirected,
        RequestFault::NoHost => ErrorKind::NoHost,
        RequestFault::SeveralHosts => ErrorKind::BadHead,
        RequestFault::NoLength => ErrorKind::NoRequestLength,
        RequestFault::ForbiddenLength => ErrorKind::ForbiddenLength,
    }
}

fn class_of(request: &Request, sent: &Sent) -> Class {
    let conditional = request.if_modified_since.is_some();
    match (sent.status, request.method) {
        _ if sent.is_cut => Class::Abort,
        (401, _) => Class::Authenticating,
        (302, _) => Class::RepToRedir,
        (_, Method::Post) => Class::Post,
        (_, Method::Put) => Class::Put,
        (304, _) => Class::Ims304,
        _ if conditional => Class::Ims200,
        _ if request.reload => Class::Reload,
        _ if request.parts.is_some() => Class::Range,
        (_, Method::Head) => Class::Head,
        (_, Method::Get) if request.cachable => Class::Miss,
        (_, Method::Get) => Class::Uncachable,
    }
}

/// The connection of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionId {
    /// The number of the server.
    pub server: u64,
    /// The number of the connection on the loop.
    pub connection: u64,
    /// The version of HTTP that it carries, if its messages do not say so themselves.
    pub multiplexed: Option<HttpVersion>,
}

/// Records the outcome of a transaction. Returns true if it succeeded.
pub fn record_outcome(
    recorder: &Recorder,
    config: &OriginConfig,
    request: &Request,
    place: ConnectionId,
    times: TransactionTimes,
    outcome: ServerOutcome,
) -> bool {
    let TransactionTimes { started, ended: now, .. } = times;
    recorder.with(|block| block.xacts.leave(now));
    let evidence = |detail: String| evidence(config, request, detail);
    let sent = match outcome {
        ServerOutcome::Failed(kind, detail) => {
            recorder.error_with(kind, now, || evidence(detail));
            return false;
        }
        ServerOutcome::CutByClient => {
            Sent { status: 0, size: 0, is_cut: true, cookies: 0, begun: None, custom: false }
        }
        ServerOutcome::Sent(sent) => sent,
    };
    let rptm_us = (now - started).as_micros();
    if let Some(fault) = request.fault {
        recorder.with(|block| block.fail(sent.status, rptm_us, sent.size, sent.custom));
        recorder.error_with(error_of(fault), now, || evidence(request.sample.clone().unwrap_or_default()));
        return false;
    }
    let class = class_of(request, &sent);
    recorder.with(|block| {
        block.finish(&Finished {
            class,
            rptm_us,
            size: sent.size,
            request_size: request.size(),
            kind: request.oid.map(|oid| usize::from(oid.kind.0)),
            status: sent.status,
            custom: sent.custom,
            embedded: request.oid.is_some_and(|oid| oid.is_embedded()),
            version: match (place.multiplexed, request.minor_version) {
                (Some(version), _) => version,
                (None, 0) => HttpVersion::Http10,
                (None, _) => HttpVersion::Http11,
            },
            ..Finished::default()
        });
        if class.is_basic() {
            let received = started.saturating_sub(times.first_byte.unwrap_or(started));
            block.latency.last_request_byte_read_us.record(received.as_micros());
            let begun = sent.begun.unwrap_or(now).saturating_sub(started);
            block.latency.first_reply_byte_written_us.record(begun.as_micros());
            block.basic_marked += u64::from(request.marks.xact.is_some());
        }
        if request.upload.is_some() {
            block.verified.due += 1;
            block.verified.replies += u64::from(request.marks.upload.is_some());
        }
        if sent.cookies > 0 {
            block.cookies.sent.record(sent.cookies);
        }
        if request.is_validation_by_device() && !sent.is_cut {
            let useless = sent.status == 304;
            let seen = if useless { &mut block.validations.useless } else { &mut block.validations.useful };
            seen.record(rptm_us, sent.size);
        }
    });
    recorder.take(|| Xact {
        ended_ns: now.as_u64(),
        lifetime_us: rptm_us,
        queued_us: None,
        id: request.marks.xact.map(|xact| xact.id.to_string()).unwrap_or_default(),
        connection: place.connection,
        object: request.oid.map_or_else(String::new, |oid| path(config, &oid)),
        size: sent.size,
        status: sent.status,
        robot: None,
        server: Some(place.server),
        ims: request.if_modified_since,
    });
    note(recorder, config, request, &sent, now);
    true
}

/// Records what is unusual about a successful transaction.
fn note(recorder: &Recorder, config: &OriginConfig, request: &Request, sent: &Sent, now: Nanos) {
    let note = |kind, detail: &dyn Fn() -> String| {
        recorder.error_with(kind, now, || evidence(config, request, detail()));
    };
    let sample = || request.sample.clone().unwrap_or_default();
    let kind = match request.arrival {
        _ if request.requested == RequestedObject::Any => None,
        Arrival::Right => None,
        Arrival::OtherServer => Some(ErrorKind::Misrouted),
        Arrival::OtherHost => Some(ErrorKind::HostChanged),
        Arrival::UnknownHost => Some(ErrorKind::UnknownHost),
    };
    if let Some(kind) = kind {
        note(kind, &sample);
    }
    let ours = matches!(request.requested, RequestedObject::Object(_)) && !config.accept_foreign_msgs;
    if ours && request.marks.target().is_none() {
        note(ErrorKind::NoTarget, &|| "no X-Target".into());
    }
    if request.length_ignored {
        note(ErrorKind::LengthIgnored, &|| "Content-Length in addition to Transfer-Encoding: chunked".into());
    }
    if request.requested == RequestedObject::UnknownEmbedded {
        note(ErrorKind::UnknownEmbedded, &sample);
    }
    match request.denial.as_ref().and_then(|denial| denial.refused.as_ref()) {
        Some(Refused::Credentials(account)) => note(ErrorKind::CredentialsRefused, &|| account.clone()),
        Some(Refused::Keys(why)) => note(ErrorKind::TicketKey, &|| why.clone()),
        None => {}
    }
    if sent.status == 406 {
        let accepted = request.accept_encoding.as_deref().unwrap_or_default();
        note(ErrorKind::NotAcceptable, &|| String::from_utf8_lossy(accepted).into_owned());
    }
}

/// The path of an object.
fn path(config: &OriginConfig, oid: &Oid) -> String {
    let mut path = Vec::new();
    config.catalog.write_path(oid, &mut path);
    String::from_utf8_lossy(&path).into_owned()
}

/// What is known about a request that has an error.
fn evidence(config: &OriginConfig, request: &Request, detail: String) -> Evidence {
    let mut evidence = Evidence::new(detail);
    if let Some(oid) = request.oid {
        evidence = evidence.fact(fact::URL, path(config, &oid));
    }
    evidence = evidence.fact(fact::REQUEST, request.method.word());
    if let Some(xact) = request.marks.xact {
        evidence = evidence.fact(fact::XACT, xact.id.to_string());
    }
    if let Some(target) = request.marks.target() {
        evidence = evidence.fact(fact::SERVER, target.as_str());
    }
    evidence
}

/// The error class of a failed exchange, if the protocol caused the failure.
pub fn kind_of_fault(error: &io::Error) -> Option<ErrorKind> {
    Some(match Fault::of(error)?.kind {
        FaultKind::Refused | FaultKind::Unprocessed | FaultKind::Reset => ErrorKind::StreamReset,
        FaultKind::GoAway => ErrorKind::ConnectionError,
        FaultKind::Flood => ErrorKind::FrameFlood,
        FaultKind::Protocol | FaultKind::Message => ErrorKind::BadFrame,
        FaultKind::Transport => ErrorKind::QuicError,
        FaultKind::Silent => ErrorKind::QuicSilent,
    })
}
