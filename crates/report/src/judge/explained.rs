//! Failures that the bench itself explains: limits of its robots that no device could have kept, and what its servers refused.

use polygraph_stats::record::settings::{ACCOUNTS, NO_ACCOUNTS};
use polygraph_stats::{Block, Class, ErrorKind, KindLimits, RobotLimits};
use polygraph_tls::names::alert_name;

use super::blame::{self, ERRORS_MAX};
use super::{LimitingParty, roles};
use crate::facts::{RunFacts, SideFacts};
use crate::figures::error_count;
use crate::scope::Scope;

/// Share of the connections that robots may have open. If requests for which servers think occupy more, the think times are why robots
/// ran out of connections.
pub(super) const OCCUPIED_MAX: f64 = 0.8;

/// Why robots refuse a certificate.
const CERTIFICATES: [ErrorKind; 5] = [
    ErrorKind::CertificateName,
    ErrorKind::CertificateDates,
    ErrorKind::CertificateIssuer,
    ErrorKind::BadCertificate,
    ErrorKind::AuthorityCertificate,
];

/// Alerts of a client that does not accept the certificate of a server (RFC 8446, section 6.2).
const CERTIFICATE_ALERTS: [&str; 6] = [
    "bad_certificate",
    "unsupported_certificate",
    "certificate_revoked",
    "certificate_expired",
    "certificate_unknown",
    "unknown_ca",
];

/// If the bench explains most failures of these phases without the device: whose fault they are, and the reason as the end of a sentence.
pub(super) fn explained(facts: &RunFacts, scope: &Scope, phases: &str) -> Option<(LimitingParty, String)> {
    use LimitingParty::{Server, Test};
    let kind = blame::most(scope)?;
    // What else the device sent is evidence against it.
    if blame::failed_otherwise(scope, kind) > ERRORS_MAX * blame::ended(scope) {
        return None;
    }
    match kind {
        ErrorKind::TooManyOpen => Some((Test, connections_occupied(facts, phases)?)),
        ErrorKind::Timeout => Some((Test, think_times_outlive(facts, scope)?)),
        // Robots that have credentials may have sent them, and the device may have removed them.
        ErrorKind::OriginCredentials => {
            let demands = |block: &Block| block.class(Class::Authenticating).size.count() as f64;
            seen_by_servers(facts, kind, demands)?;
            Some((Test, ": the servers demanded credentials that robots do not have".to_owned()))
        }
        // What the servers refuse is what the robots sent, or what the device made of it.
        ErrorKind::OriginAuthAgain if other_accounts(facts) => {
            let refused = |block: &Block| block.errors[ErrorKind::CredentialsRefused] as f64;
            let refused = seen_by_servers(facts, kind, refused)?;
            let why = format!(
                ": the servers refused the credentials of robots {refused:.0} times, because client and server have different `credentials`: \
                 start both with the same workload and --set"
            );
            Some((Test, why))
        }
        // Robots have tickets for a key that the servers do not have, whatever is between them.
        ErrorKind::KerberosRefused => {
            let unopened = |block: &Block| block.errors[ErrorKind::TicketKey] as f64;
            let unopened = seen_by_servers(facts, kind, unopened)?;
            let why = format!(
                ": the servers' `keytab` lacks the key of {unopened:.0} tickets that robots showed, or has a wrong one: make the keytab anew, \
                 with the KDC of the robots"
            );
            Some((Test, why))
        }
        // A proxy that demands credentials does what it is there for, but not if it lets most robots pass without.
        ErrorKind::ProxyCredentials
            if lacks_accounts(facts)
                && roles::may_be_proxy(facts)
                && (met_most(scope, kind) || roles::unreached(facts).is_some()) =>
        {
            Some((Test, NO_PROXY_CREDENTIALS.to_owned()))
        }
        ErrorKind::SocksCredentials if met_most(scope, kind) => Some((Test, NO_SOCKS_CREDENTIALS.to_owned())),
        ErrorKind::SocksNoMethod if lacks_accounts(facts) && met_most(scope, kind) => {
            Some((Test, NO_SOCKS_CREDENTIALS.to_owned()))
        }
        // Such a certificate was made for the test; a site could not use it.
        ErrorKind::AuthorityCertificate if met_most(scope, kind) => {
            Some((Test, AUTHORITY_CERTIFICATE.to_owned()))
        }
        kind if CERTIFICATES.contains(&kind) => {
            let refused = seen_by_servers(facts, kind, |block| error_count(block, ErrorKind::TlsRefused))?;
            let why = format!(
                ": robots refused the certificate of the servers themselves, as {refused:.0} alerts say there"
            );
            Some((Server, why))
        }
        ErrorKind::TlsRefused | ErrorKind::TlsNothingInCommon => {
            let refused = |block: &Block| {
                let kinds = CERTIFICATES.into_iter().chain([ErrorKind::TlsNothingInCommon]);
                kinds.map(|kind| error_count(block, kind)).sum()
            };
            match seen_by_servers(facts, kind, refused) {
                Some(_) => {
                    Some((Test, ": the servers refused what robots offered in TLS handshakes".to_owned()))
                }
                None if met_most(scope, kind) => Some((Test, certificate_demanded(facts, kind)?)),
                None => None,
            }
        }
        _ => None,
    }
}

/// Whether a demand of the device, or a certificate that it shows, stopped at least half of the transactions that met it. A device that
/// lets most of them pass does not demand it of everybody, but fails.
fn met_most(scope: &Scope, kind: ErrorKind) -> bool {
    let block = &scope.block;
    let passed = match kind {
        ErrorKind::SocksCredentials | ErrorKind::SocksNoMethod => block.socks.transactions.size.count(),
        ErrorKind::ProxyCredentials => block.ok_count().saturating_sub(block.foreign_count()),
        _ => block.tls.transactions.size.count(),
    };
    blame::failed_with(scope, kind) >= passed as f64
}

/// If the device demanded credentials of robots without any: whether others passed without, as the end of a sentence.
pub(super) fn demanded_of_some(facts: &RunFacts, scope: &Scope) -> &'static str {
    use ErrorKind::{ProxyCredentials, SocksCredentials, SocksNoMethod};
    match blame::most(scope) {
        Some(kind @ (ProxyCredentials | SocksCredentials | SocksNoMethod))
            if lacks_accounts(facts) && !met_most(scope, kind) =>
        {
            ": the device demanded credentials for these, although no robot has any, and most requests passed without"
        }
        _ => "",
    }
}

/// If the device refused the certificate of the servers about as often as transactions failed: what the end of a sentence says about it.
/// Whether it was right depends on whom it is configured to trust, so this is no excuse.
pub(super) fn refused_certificate(facts: &RunFacts, failed: f64) -> String {
    let alerts =
        facts.server.as_ref().and_then(|side| side.total.as_ref()).map(|total| &total.block.tls.alerts);
    let about_certificates =
        alerts.into_iter().flat_map(|alerts| alerts.iter()).filter_map(|(code, count)| {
            let name =
                alert_name(u8::try_from(code).ok()?).filter(|name| CERTIFICATE_ALERTS.contains(name))?;
            Some((name, count))
        });
    match about_certificates.max_by_key(|(_, count)| *count) {
        Some((name, count)) if facts.tested.is_device() && 2.0 * count as f64 > failed => format!(
            ": the device refused the certificate of the servers, as {count} alerts say there ({name}); give the servers a certificate that \
             it accepts, or let it trust their authority"
        ),
        _ => String::new(),
    }
}

/// Whether the device refused robots because they showed no certificate (RFC 8446, section 6.2), as the end of a sentence. No alert
/// of earlier versions of TLS tells this.
fn certificate_demanded(facts: &RunFacts, kind: ErrorKind) -> Option<String> {
    let robots = &facts.client.as_ref()?.total.as_ref()?.block;
    let is_demand = |code| u8::try_from(code).ok().and_then(alert_name) == Some("certificate_required");
    let demanded: u64 =
        robots.tls.alerts.iter().filter(|(code, _)| is_demand(*code)).map(|(_, count)| count).sum();
    (2.0 * demanded as f64 > error_count(robots, kind)).then(|| {
        format!(
            ": the device demanded a certificate of robots that have none, as {demanded} alerts say (certificate_required): give the robots \
             one (`client_certificate`), or let the device accept clients without"
        )
    })
}

/// Why robots refuse a certificate that says it is that of an authority, as the end of a sentence.
const AUTHORITY_CERTIFICATE: &str = ": robots were shown a certificate of an authority (CA:TRUE), which is none of a server: make one \
     without that (`openssl req -x509 ... -addext basicConstraints=critical,CA:FALSE`, or `polygraph certs`)";

/// Why a proxy refuses robots, as the end of a sentence.
const NO_PROXY_CREDENTIALS: &str = ": the proxy demands credentials of robots without `credentials`: give them some (--credentials), or let \
     it accept clients without";

/// Why a SOCKS proxy refuses robots, as the end of a sentence.
const NO_SOCKS_CREDENTIALS: &str = ": the SOCKS proxy demands a name and a password of robots without `credentials`: give them some, or let \
     it accept clients without";

/// Whether no robot has a user and a password, as the log of every client states.
fn lacks_accounts(facts: &RunFacts) -> bool {
    let mut clients = facts.client.iter().flat_map(|client| &client.processes);
    clients.all(|process| process.setting(ACCOUNTS) == Some(NO_ACCOUNTS))
}

/// Whether servers know other users and passwords than the robots have, as the logs of both state.
fn other_accounts(facts: &RunFacts) -> bool {
    let marks = |side: &Option<SideFacts>| -> Option<Vec<String>> {
        let marks =
            side.as_ref()?.processes.iter().map(|process| process.setting(ACCOUNTS).map(str::to_owned));
        marks.collect()
    };
    let (Some(robots), Some(servers)) = (marks(&facts.client), marks(&facts.server)) else { return false };
    robots.iter().any(|mark| !servers.contains(mark))
}

/// What servers counted, if it is about as much as the failures of this kind: then they had to do with the robots, and not with the
/// device in between.
fn seen_by_servers(facts: &RunFacts, kind: ErrorKind, seen: impl Fn(&Block) -> f64) -> Option<f64> {
    let failed = error_count(&facts.client.as_ref()?.total.as_ref()?.block, kind);
    let seen = seen(&facts.server.as_ref()?.total.as_ref()?.block);
    (2.0 * seen > failed).then_some(seen)
}

fn connections_occupied(facts: &RunFacts, phases: &str) -> Option<String> {
    // Without a device, there is nobody else who could occupy connections.
    let nobody_else = (!facts.tested.is_device()).then(String::new);
    occupied(facts, phases).or(nobody_else)
}

/// Whether requests for which servers think occupy the connections that robots may have, as the end of a sentence. By Little's law,
/// servers think for as many requests at a time as there are requests per second times the mean think time.
pub(super) fn occupied(facts: &RunFacts, phases: &str) -> Option<String> {
    let scopes: Vec<&Scope> =
        phases.split('|').filter_map(|name| facts.server.as_ref()?.phase(name)?.scope.as_ref()).collect();
    let think_s: f64 = scopes.iter().map(|scope| 1e-6 * scope.block.think_us.sum()).sum();
    let busy = think_s / scopes.iter().map(|scope| scope.seconds).sum::<f64>();
    let of_all = all_connections(facts).map(|limit| (busy, limit as f64, "robots"));
    // If some kinds of robots have no limit, the others lack connections if their requests need more than they have.
    let answered = facts.client.as_ref()?.total.as_ref()?.block.ok_count() as f64;
    let thought_s = 1e-6 * facts.server.as_ref()?.total.as_ref()?.block.think_us.sum();
    let load = phases.split('|').filter_map(|name| facts.client.as_ref()?.phase(name)?.mean_load());
    let load = load.reduce(f64::max).unwrap_or(0.0);
    let of_kinds = kinds(facts).filter_map(|kind| {
        let needed = load * kind.rate? * thought_s / answered;
        Some((needed, kind.open_connections? as f64, "some of the robots"))
    });
    let (busy, limit, who) =
        of_all.into_iter().chain(of_kinds).find(|(busy, limit, _)| *busy > OCCUPIED_MAX * limit)?;
    Some(format!(
        ": on average, servers were thinking about {busy:.1} requests, and {who} may have {limit} connections open"
    ))
}

/// The connections that the robots of all processes together may have open; `None` if some have no limit.
fn all_connections(facts: &RunFacts) -> Option<u64> {
    let of_process = |limits: &RobotLimits| {
        let of_kinds: Option<u64> = limits.kinds.iter().map(|kind| kind.open_connections).sum();
        of_kinds.filter(|_| !limits.kinds.is_empty()).into_iter().chain(limits.open_connections).min()
    };
    facts.client.as_ref()?.processes.iter().map(|process| of_process(&process.header.limits)).sum()
}

/// The kinds of robots of all processes.
fn kinds(facts: &RunFacts) -> impl Iterator<Item = &KindLimits> {
    facts.client.iter().flat_map(|client| &client.processes).flat_map(|process| &process.header.limits.kinds)
}

/// Whether so many think times were longer than robots wait that the other failures are few enough.
fn think_times_outlive(facts: &RunFacts, scope: &Scope) -> Option<String> {
    let think_us = &facts.server.as_ref()?.total.as_ref()?.block.think_us;
    // Kinds of robots make as large a share of the requests as their rates say, or their numbers.
    let rates: Option<f64> = kinds(facts).map(|kind| kind.rate).sum();
    let weight = |kind: &KindLimits| rates.and(kind.rate).unwrap_or(kind.robots as f64);
    let all: f64 = kinds(facts).map(weight).sum();
    let longer = |kind: &KindLimits| {
        let share = 1.0 - think_us.share_up_to((1e6 * kind.lifetime_s?) as u64)?;
        Some(weight(kind) / all * share)
    };
    let longer: f64 = kinds(facts).filter_map(longer).sum();
    let lifetime_s = kinds(facts).filter_map(|kind| kind.lifetime_s).reduce(f64::max)?;
    let ended = |block: &Block| (block.ok_count() + block.failed_count()) as f64;
    let of_all = scope.ended_count() as f64 / ended(&facts.client.as_ref()?.total.as_ref()?.block);
    let doomed = longer * think_us.count() as f64 * of_all;
    let failed = blame::failed_with(scope, ErrorKind::Timeout);
    (failed - doomed <= ERRORS_MAX * blame::ended(scope)).then(|| {
        format!(
            ": robots wait for {lifetime_s} s, and {:.0} % of the servers' think times are longer than robots wait",
            100.0 * longer
        )
    })
}
