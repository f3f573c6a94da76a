//! Who is to blame for a failed transaction.

use http::StatusCode;
use polygraph_stats::error::Nature;
use polygraph_stats::{Block, ClassStats, ErrorKind, status};

use crate::figures::error_count;
use crate::scope::Scope;

/// Largest share of transactions that may fail in the primary phase (the rule of the 1999 bake-off).
pub(crate) const ERRORS_MAX: f64 = 0.03;

/// So many failures that do not decide are worth a warning.
pub(super) const WARNED_LEAST: f64 = 10.0;

/// Who is to blame for a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The device, because of what it sent.
    Device,
    /// The device, if the bench was fast enough.
    Slow,
    /// The name server.
    Names,
    /// The key distribution centre.
    Tickets,
    /// The network.
    Network,
    /// A server outside of the test, or the device before it: nobody knows what that server sent.
    Foreign,
    /// The bench.
    Bench,
}

impl Blame {
    const ALL: [Blame; 7] = [
        Blame::Device,
        Blame::Slow,
        Blame::Names,
        Blame::Tickets,
        Blame::Network,
        Blame::Foreign,
        Blame::Bench,
    ];
}

fn blame(kind: ErrorKind) -> Blame {
    match kind.nature() {
        Nature::Content | Nature::Caching | Nature::Message | Nature::Access => Blame::Device,
        Nature::Slow => Blame::Slow,
        Nature::Names => Blame::Names,
        Nature::Tickets => Blame::Tickets,
        Nature::Network => Blame::Network,
        Nature::Bench => Blame::Bench,
    }
}

/// Failed transactions by who is to blame.
pub(super) fn failed_by(scope: &Scope, who: Blame) -> f64 {
    failing(scope).filter(|failed| failed.who == who).map(|failed| failed.count).sum()
}

/// Ended transactions with servers of the test, of which failures are evidence about the device.
pub(super) fn ended(scope: &Scope) -> f64 {
    scope.ended_count() as f64 - ended_foreign(&scope.block)
}

/// Ended transactions with servers outside of the test.
pub(super) fn ended_foreign(block: &Block) -> f64 {
    (block.foreign_count() + block.foreign.failed.sum(ErrorKind::fails)) as f64
}

/// Statuses that say that the next server cannot be reached or does not answer (RFC 9110, section 15.6), and what load balancers and
/// Squid say then.
const GATEWAY: [u16; 3] = [502, 503, 504];

/// Failures that a device blames on the next server: these statuses, and connections that a SOCKS proxy did not open.
pub(super) fn relayed(scope: &Scope) -> f64 {
    let of_status = |&status| scope.block.other_replies.get(status).map_or(0, |replies| replies.size.count());
    GATEWAY.iter().map(of_status).sum::<u64>() as f64 + error_count(&scope.block, ErrorKind::SocksConnect)
}

/// Failures of other kinds than this one for which the device is to blame because of what it sent.
pub(super) fn failed_otherwise(scope: &Scope, than: ErrorKind) -> f64 {
    let others = failing(scope).filter(|failed| failed.kind != than && failed.who == Blame::Device);
    others.map(|failed| failed.count).sum()
}

/// Who is to blame for most of the failed transactions; `None` if none failed.
pub(super) fn most_to_blame(scope: &Scope) -> Option<Blame> {
    let counts = Blame::ALL.map(|who| (who, failed_by(scope, who)));
    let most = counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.filter(|(_, count)| *count > 0.0).map(|(who, _)| who)
}

/// Transactions that failed in the same way.
struct Failures {
    kind: ErrorKind,
    who: Blame,
    count: f64,
}

fn failing(scope: &Scope) -> impl Iterator<Item = Failures> + '_ {
    ErrorKind::all().filter(|kind| kind.fails()).flat_map(|kind| {
        let (all, who) = (error_count(&scope.block, kind), blame(kind));
        let foreign = match who {
            Blame::Device | Blame::Slow => scope.block.foreign.failed[kind] as f64,
            _ => 0.0,
        };
        let own = Failures { kind, who, count: all - foreign };
        [own, Failures { kind, who: Blame::Foreign, count: foreign }]
    })
}

/// Failures of this kind with servers of the test.
pub(super) fn failed_with(scope: &Scope, kind: ErrorKind) -> f64 {
    failing(scope)
        .filter(|failed| failed.kind == kind && failed.who != Blame::Foreign)
        .map(|failed| failed.count)
        .sum()
}

/// The most frequent failure for which a device is responsible; `None` if there is none.
pub(super) fn most(scope: &Scope) -> Option<ErrorKind> {
    most_of(scope, &[Blame::Device, Blame::Slow])
}

/// The most frequent failure for which one of these is to blame; `None` if there is none.
pub(super) fn most_of(scope: &Scope, whom: &[Blame]) -> Option<ErrorKind> {
    let blamed = failing(scope).filter(|failed| whom.contains(&failed.who) && failed.count > 0.0);
    blamed.max_by(|a, b| a.count.total_cmp(&b.count)).map(|failed| failed.kind)
}

/// What the device did to cause these failures, in a few words that follow `the device`.
pub(super) fn deed(scope: &Scope) -> &'static str {
    use ErrorKind as K;
    let nothing_came = scope.block.ok_count() == 0;
    let Some(kind) = most(scope) else { return OVERLOADED };
    match (kind, kind.nature()) {
        (K::ConnectFailed, _) if nothing_came => "was unreachable",
        (K::ConnectFailed, _) => "refused connections",
        (_, Nature::Slow) if nothing_came => "did not answer",
        (_, Nature::Slow) => OVERLOADED,
        (K::NoReply | K::Reset, _) => "dropped connections",
        (K::BadCertificateAccepted, _) => ACCEPTED_CERTIFICATES,
        (K::CertificateName | K::CertificateDates | K::CertificateIssuer, _)
        | (K::BadCertificate | K::AuthorityCertificate, _) => "showed a certificate that robots refuse",
        (K::TlsRefused | K::TlsNothingInCommon | K::TlsClosed | K::NotTls | K::TlsProtocol, _) => {
            "failed in TLS handshakes"
        }
        (K::BadStatus, _) | (_, Nature::Access) => ANSWERED_WITH_ERRORS,
        (K::UnmarkedRedirect, _) => "redirected robots elsewhere",
        (_, Nature::Content) => WRONG_CONTENT,
        (_, Nature::Caching) => BROKE_CACHING,
        _ => BROKEN_MESSAGES,
    }
}

/// If most transactions failed because of the status of their replies: which status that was, as a part of a sentence.
pub(super) fn usual_status(scope: &Scope) -> String {
    let block = &scope.block;
    // The replies of foreign servers are counted with the others.
    if deed(scope) != ANSWERED_WITH_ERRORS || block.foreign.failed.sum(ErrorKind::fails) > 0 {
        return String::new();
    }
    let challenges: u64 = block.auth_steps.iter().map(|step| step.size.count()).sum();
    let failed = |(status, replies): (u16, &ClassStats)| match status {
        // Their failures have other reasons.
        200 => None,
        // Most of these begin a transaction that goes on.
        401 | 407 => Some((status, replies.size.count().saturating_sub(challenges))),
        _ => Some((status, replies.size.count())),
    };
    let counts: Vec<(u16, u64)> = block.other_replies.iter().filter_map(failed).collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let Some((status, count)) =
        counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
    else {
        return String::new();
    };
    let often = match count {
        _ if count == all => "all",
        _ if 2 * count > all => "mostly",
        _ => "most often",
    };
    format!(", {often} with {} ({count} of {all})", phrase(status))
}

/// A status as in a status line.
fn phrase(status: u16) -> String {
    if status == status::OTHER {
        return "a status that HTTP does not define".to_owned();
    }
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| format!("status {status}"), |reason| format!("{status} {reason}"))
}

pub(super) use crate::verdict::OVERLOADED;
/// What a device did that answered with statuses that robots do not expect.
const ANSWERED_WITH_ERRORS: &str = "answered with errors";
/// What a device did that delivered bodies other than those of the servers.
pub(super) const WRONG_CONTENT: &str = "delivered wrong content";
/// What a device did that passed on content of servers with bad certificates.
pub(super) const ACCEPTED_CERTIFICATES: &str = "accepted bad certificates";
/// What a device did that answered with copies that it must not use.
pub(super) const BROKE_CACHING: &str = "broke the rules of caching";
/// What a device did that left requests without an answer.
pub(super) const UNANSWERED: &str = "did not answer all requests";
/// What a device did that sent malformed messages.
pub(super) const BROKEN_MESSAGES: &str = "sent broken messages";
/// What a device did whose replies lack what robots need to verify them.
pub(super) const UNVERIFIABLE: &str = "delivered replies that robots cannot verify";
/// What a device did that made up its own replies.
pub(super) const OWN_REPLIES: &str = "answered in place of the servers";

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(statuses: &[(u16, u64)]) -> Scope {
        let mut block = Block::new();
        for &(status, count) in statuses {
            for _ in 0..count {
                block.count_error(ErrorKind::BadStatus);
                block.fail(status, 10, 100, false);
            }
        }
        Scope { block, seconds: 10.0, ..Scope::default() }
    }

    #[test]
    fn the_usual_status_has_its_phrase_and_share() {
        for (statuses, text) in [
            (&[(503, 412), (500, 18)][..], ", mostly with 503 Service Unavailable (412 of 430)"),
            (&[(404, 7), (200, 9)], ", all with 404 Not Found (7 of 7)"),
            (&[(502, 2), (599, 3), (403, 1)], ", most often with status 599 (3 of 6)"),
            (&[(799, 5)], ", all with a status that HTTP does not define (5 of 5)"),
            (&[], ""),
        ] {
            assert_eq!(usual_status(&failed(statuses)), text);
        }
    }

    #[test]
    fn challenges_and_foreign_replies_are_no_failures_of_the_device() {
        let mut scope = failed(&[(403, 3)]);
        for _ in 0..50 {
            scope.block.challenge(polygraph_stats::AuthScheme::Basic, 401, 10, 100, false);
        }
        assert_eq!(usual_status(&scope), ", all with 403 Forbidden (3 of 3)");
        scope.block.foreign.failed.count(ErrorKind::BadStatus);
        assert_eq!(usual_status(&scope), "");
        let mut slow = failed(&[(503, 3)]);
        (0..5).for_each(|_| slow.block.count_error(ErrorKind::Timeout));
        assert_eq!(usual_status(&slow), "");
    }
}
