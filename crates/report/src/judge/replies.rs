//! What the device answered: failed transactions and wrong replies.

use polygraph_stats::error::Nature;
use polygraph_stats::{EndReason, ErrorKind, Side};

use super::blame::{self, Blame, ERRORS_MAX, failed_by, most_to_blame, relayed};
use super::disconnected::{RECOVERY_S, connected};
use super::explained::{demanded_of_some, explained, refused_certificate};
use super::lateness::late_replies;
use super::{Findings, LimitingParty, apart, foreign};
use crate::facts::{PhaseFacts, RunFacts};
use crate::scope::Scope;
use crate::{correctness, text};

/// Largest share of wrong replies in the primary phase.
pub(super) const WRONG_MAX: f64 = 0.001;

pub(super) fn errors(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let text = |phase: &str, scope: &Scope, blamed: f64| {
        let ended = blame::ended(scope);
        let (percent, limit) = apart(100.0 * blamed / ended, 100.0 * ERRORS_MAX, 2);
        format!(
            "{percent} % of the transactions failed in phase {phase} ({blamed:.0} of {ended:.0}){}; the limit is {limit} %",
            blame::usual_status(scope)
        )
    };
    let too_many = |scope: &Scope| {
        let blamed = failed_by(scope, Blame::Device) + failed_by(scope, Blame::Slow);
        Some(blamed).filter(|&blamed| blamed > ERRORS_MAX * blame::ended(scope))
    };
    let evidence = headline.evidence();
    if let Some(blamed) = too_many(evidence) {
        let (mut text, deed) = (text(&headline.phase, evidence, blamed), blame::deed(evidence));
        let is_much = |failed: f64| failed > ERRORS_MAX * blame::ended(evidence);
        let said = failed_by(evidence, Blame::Device);
        let relayed = relayed(evidence);
        let own = explained(facts, evidence, &headline.phase);
        if own.is_none() {
            text += &refused_certificate(facts, blamed);
            text += demanded_of_some(facts, evidence);
        }
        match own {
            Some((party, why)) => {
                let share = (blamed, blame::ended(evidence));
                found.explain("errors", party, format!("{text}{why}"), share);
            }
            None if is_much(said - relayed) => found.failed_as("errors", deed, text),
            None if is_much(said) => {
                let late = !is_much(said - relayed.min(late_replies(facts)));
                found.relayed_as("errors", deed, text, late);
            }
            None => found.slow_as("errors", deed, text),
        }
    } else if let (Some(blamed), Some(gone)) = (too_many(&headline.scope), &facts.origin_gone) {
        let text = format!(
            "{}, but an origin server left no records after {:.1} s of the run: failures without the server are no evidence \
             against the device",
            text(&headline.phase, &headline.scope, blamed),
            gone.at_s
        );
        found.invalid("origin", LimitingParty::Server, text);
    } else {
        // A cache that was not filled as planned is not the device that the figures seem to be about.
        let headline: Vec<&str> = headline.phase.split('|').collect();
        let others = facts.main_side().phases.iter().filter(|phase| !headline.contains(&phase.name.as_str()));
        for (phase, scope) in others.filter_map(|phase| Some((phase, phase.evidence()?))) {
            if let Some(blamed) = too_many(scope).filter(|&blamed| blamed >= blame::WARNED_LEAST) {
                found.warn("errors", text(&phase.name, scope, blamed));
            }
        }
    }
}

pub(super) fn error_goal(facts: &RunFacts, found: &mut Findings) {
    let Some(client) = &facts.client else { return };
    for process in &client.processes {
        let Some(EndReason::ErrorGoal { phase }) = &process.end else { continue };
        let mut text = format!("the run ended as failed in phase {phase}: too many transactions failed");
        let phase = client.phase(phase);
        let all = phase.and_then(|phase| phase.scope.as_ref());
        let evidence = phase.and_then(PhaseFacts::evidence);
        text += &evidence.map(blame::usual_status).unwrap_or_default();
        let own = evidence.zip(phase).and_then(|(scope, phase)| explained(facts, scope, &phase.name));
        let share = |who| evidence.map_or(0.0, |scope| failed_by(scope, who) / blame::ended(scope).max(1.0));
        let share_of = |count: f64| evidence.map_or(0.0, |scope| count / blame::ended(scope).max(1.0));
        let relayed = evidence.map_or(0.0, relayed);
        let deed = evidence.map_or(blame::OVERLOADED, blame::deed);
        match all.and_then(most_to_blame) {
            Some(Blame::Names) => found.invalid("error goal", LimitingParty::NameServer, text),
            Some(Blame::Tickets) => found.invalid("error goal", LimitingParty::Kdc, text),
            Some(Blame::Network) => found.invalid("error goal", LimitingParty::Network, text),
            Some(Blame::Foreign) => {
                let text = format!("{text}, most of them with {}", foreign::servers(facts));
                found.invalid("error goal", LimitingParty::ForeignServer, text);
            }
            Some(Blame::Bench) => {
                let text = format!("{text}, most of them because of the local system");
                found.invalid("error goal", LimitingParty::Host, text);
            }
            _ if let Some((party, why)) = &own => {
                found.invalid("error goal", *party, format!("{text}{why}"));
            }
            _ if share(Blame::Device) - share_of(relayed) > ERRORS_MAX => {
                found.failed_as("error goal", deed, text)
            }
            _ if share(Blame::Device) > ERRORS_MAX => {
                let by_lateness = share_of(relayed.min(late_replies(facts)));
                let late = share(Blame::Device) - by_lateness <= ERRORS_MAX;
                found.relayed_as("error goal", deed, text, late);
            }
            _ if facts.origin_gone.is_some() && share(Blame::Slow) <= ERRORS_MAX => {
                found.invalid("error goal", LimitingParty::Server, text);
            }
            _ => found.slow_as("error goal", deed, text),
        }
    }
}

/// Content that the server did not generate for the request: one such reply is too many, in any phase.
pub(super) fn content(facts: &RunFacts, found: &mut Findings) {
    for finding in correctness::of_run(facts).findings {
        if finding.kind.nature() == Nature::Content {
            let whom = match finding.side {
                Side::Client => "robots",
                Side::Server => "servers",
            };
            let times = text::times(finding.count);
            let text = format!("wrong content delivered to {whom} {times}: {}", finding.kind.text());
            found.failed_as("content", blame::WRONG_CONTENT, text);
        }
    }
}

/// Content of servers with a bad certificate: one such reply is too many, in any phase.
pub(super) fn certificates(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.client.as_ref().and_then(|side| side.total.as_ref()) else { return };
    let count = total.block.errors[ErrorKind::BadCertificateAccepted];
    if count == 0 {
        return;
    }
    let faults = total.block.tls.accepted_faults.iter();
    let faults: Vec<String> = faults.map(|(fault, n)| format!("{fault} ({n})")).collect();
    let text = format!(
        "content of servers with a bad certificate arrived {}: {}",
        text::times(count),
        faults.join(", ")
    );
    found.failed_as("certificates", blame::ACCEPTED_CERTIFICATES, text);
}

/// What the servers know about `expired` copies that robots found to have expired. A device that keeps the old `Expires` of a copy
/// that it has validated breaks the rules, too, but it delivers nothing stale.
fn validated(facts: &RunFacts, expired: u64) -> String {
    let (Some(server), Some(headline)) = (&facts.server, &facts.headline) else { return String::new() };
    let scopes = headline.phase.split('|').filter_map(|name| server.phase(name)?.scope.as_ref());
    match scopes.map(|scope| scope.block.validations.useless.size.count()).sum::<u64>() {
        0 => "; the servers confirmed no copy (304)".to_owned(),
        confirmed if confirmed < expired => format!(
            "; the servers confirmed {confirmed} copies (304), so at most that many of these can be validated copies that still show \
             their old Expires"
        ),
        confirmed => format!(
            "; the servers confirmed {confirmed} copies (304), so these may be validated copies that still show their old Expires, \
             although RFC 9111, section 4.3.4, demands the new one"
        ),
    }
}

pub(super) fn correctness(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = &facts.headline else { return };
    let server = facts.client.as_ref().and(facts.server.as_ref()).and_then(|side| side.total.as_ref());
    let scopes = [(headline.evidence(), &headline.scope)];
    for (evidence, scope) in scopes.into_iter().chain(server.map(|total| (total, total))) {
        let ended = scope.ended_count() as f64;
        // Foreign servers may redirect to any place.
        let ours_only = scope.block.foreign_count() == 0;
        let wrong = |kind: ErrorKind| match kind {
            ErrorKind::BadLocation => ours_only,
            ErrorKind::BadCertificateAccepted => false,
            _ => kind.concerns_correctness() && kind.nature() != Nature::Content,
        };
        for (kind, count) in scope.block.errors.iter().filter(|(kind, _)| wrong(*kind)) {
            let plain = format!("{}: {count} of {ended:.0} transactions", kind.text());
            let text = match kind {
                ErrorKind::Expired => plain.clone() + &validated(facts, count),
                _ => plain.clone(),
            };
            let few = evidence.block.errors[kind] as f64 <= WRONG_MAX * evidence.ended_count() as f64;
            let deed = match kind.nature() {
                _ if kind == ErrorKind::ForeignReply => blame::OWN_REPLIES,
                Nature::Caching => blame::BROKE_CACHING,
                _ => blame::BROKEN_MESSAGES,
            };
            let many = count as f64 > WRONG_MAX * ended;
            let disconnected = || {
                connected(facts, kind).is_some_and(|connected| connected.count <= WRONG_MAX * connected.ended)
            };
            match kind {
                _ if few && many && facts.origin_gone.is_some() && kind != ErrorKind::FalseHit => {
                    let text = format!("{text}, most of them after the last record of an origin server");
                    found.invalid("origin", LimitingParty::Server, text);
                }
                _ if few => found.warn("correctness", text),
                _ if disconnected() => {
                    let text = format!(
                        "{plain}, nearly all of them while a server stood still, or up to {RECOVERY_S} s later: caches may use old copies if they \
                         do not reach the server (RFC 9111, section 4.2.4)"
                    );
                    found.warn("correctness", text);
                }
                // A hit on an object that others requested is not an error of the device.
                ErrorKind::FalseHit => found.warn("correctness", text),
                // A bench that does not read its sockets may be the reason for a truncated message.
                ErrorKind::BodyShort => found.slow_as("correctness", deed, text),
                _ => found.failed_as("correctness", deed, text),
            }
        }
    }
}
