//! Figures of TLS connections and of tunnels through proxies.

use std::borrow::Cow;
use std::collections::BTreeSet;

use polygraph_stats::tls::{CodeCounts, TlsStats};
use polygraph_tls::names::{Version, alert_name, cipher_name, group_name};

use super::table::FigureTable;
use super::{Unit, percent};
use crate::scope::Scope;

/// The rows of a table of counts: name, count, share in percent.
fn rows(counts: impl Iterator<Item = (String, u64)>) -> Vec<Vec<String>> {
    let counts: Vec<(String, u64)> = counts.collect();
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let share =
        |n: u64| percent(n as f64, all as f64).map_or_else(String::new, |share| format!("{share:.2}"));
    counts.into_iter().map(|(name, n)| vec![name, n.to_string(), share(n)]).collect()
}

/// Names of the registry with their counts.
fn named(counts: &CodeCounts, name: fn(u16) -> Option<&'static str>) -> Vec<Vec<String>> {
    rows(counts.iter().map(|(code, n)| (name(code).map_or_else(|| format!("{code:#06x}"), str::to_owned), n)))
}

/// The name of a version by its registered number.
pub(crate) fn version_name(code: u16) -> Option<&'static str> {
    Version::ALL.into_iter().find(|version| version.code() == code).map(Version::name)
}

/// TLS connections, transactions on them, and tunnels.
pub(super) fn tls(t: &mut FigureTable) {
    use Unit::{Ms, Percent};
    t.start_section("TLS and tunnels");
    t.add_time_and_size(
        "ssl",
        "transactions over TLS; the first one on a connection includes the set-up of the connection",
        |s| Cow::Borrowed(&s.block.tls.transactions.rptm_us),
        |s| Cow::Borrowed(&s.block.tls.transactions.size),
    );
    t.add_histogram(
        "ssl.ready_rptm",
        "response time of transactions over TLS without the set-up of connections",
        Ms,
        1e-3,
        |s| &s.block.tls.ready_rptm_us,
    );
    t.add_histogram("ssl.handshake.full", "time of full TLS handshakes", Ms, 1e-3, |s| &s.block.tls.full_us);
    t.add_histogram(
        "ssl.handshake.resumed",
        "time of TLS handshakes that resumed a session",
        Ms,
        1e-3,
        |s| &s.block.tls.resumed_us,
    );
    t.add_histogram(
        "ssl.handshake.early",
        "time of TLS handshakes that resumed a session and whose early data were accepted (0-RTT)",
        Ms,
        1e-3,
        |s| &s.block.tls.early_us,
    );
    let count = |pick: fn(&TlsStats) -> u64| move |s: &Scope| pick(&s.block.tls);
    t.add_count(
        "ssl.sessions.measured.new",
        "TLS handshakes that began a new session",
        count(|tls| tls.full_us.count()),
    );
    t.add_count(
        "ssl.sessions.measured.reused",
        "TLS handshakes that resumed a session",
        count(TlsStats::resumptions),
    );
    t.add_count(
        "ssl.sessions.offered.new",
        "TLS handshakes in which a robot offered no session (on servers: all)",
        count(|tls| tls.handshakes().saturating_sub(tls.offered)),
    );
    t.add_count(
        "ssl.sessions.offered.reused",
        "TLS handshakes in which a robot offered a session",
        count(|tls| tls.offered),
    );
    t.add_figure(
        "ssl.sessions.reused.ratio",
        Percent,
        "share of TLS handshakes that resumed a session",
        |s| percent(s.block.tls.resumptions() as f64, s.block.tls.handshakes() as f64),
    );
    t.add_count(
        "ssl.early.refused.count",
        "TLS handshakes whose early data were refused and sent again",
        count(|tls| tls.early_refused),
    );
    t.add_count(
        "ssl.stapled.count",
        "certificates that came with an OCSP response",
        count(|tls| tls.stapled),
    );
    t.add_count(
        "ssl.alert.count",
        "alerts that peers sent during TLS handshakes",
        count(|tls| tls.alerts.sum()),
    );
    t.add_class_stats(
        "ssl.refusal",
        "transactions in which the bad certificate of a server was refused, as it must be; they count as successful, but are in no other \
         times and sizes",
        |s| s.block.tls.all_refusals(),
    );
    t.add_count(
        "ssl.refusal.page.count",
        "of these, refusals by a page with a status below 400 that no server made, or by a redirect",
        count(TlsStats::page_count),
    );
    t.add_count(
        "ssl.refusal.handshakes.count",
        "TLS handshakes of servers with a bad certificate that clients broke off, as they must",
        count(|tls| tls.refused_handshakes),
    );
    const COLUMNS: &[&str] = &["name", "count", "percent"];
    t.add_list(
        "ssl.fault.tbl",
        "faults of bad certificates: how many transactions ended with a refusal, and in how many content arrived all the same",
        &["name", "refused", "accepted"],
        |s| {
            let (refused, accepted) = (&s.block.tls.refused_faults, &s.block.tls.accepted_faults);
            let names: BTreeSet<&str> = refused.iter().chain(accepted.iter()).map(|(name, _)| name).collect();
            let row = |name: &str| vec![name.to_owned(), refused.get(name).to_string(), accepted.get(name).to_string()];
            names.into_iter().map(row).collect()
        },
    );
    t.add_list("ssl.refusal.tbl", "refusals of bad certificates, by the status of the reply", COLUMNS, |s| {
        let name = |status| match status {
            0 => "no reply".to_owned(),
            status => format!("status {status}"),
        };
        let refusals = s.block.tls.refusals.iter();
        rows(refusals.map(|(status, stats)| (name(status), stats.size.count())))
    });
    t.add_list("ssl.version.tbl", "versions of TLS", COLUMNS, |s| named(&s.block.tls.versions, version_name));
    t.add_list("ssl.cipher.tbl", "cipher suites", COLUMNS, |s| named(&s.block.tls.ciphers, cipher_name));
    t.add_list("ssl.group.tbl", "groups of key exchanges", COLUMNS, |s| {
        named(&s.block.tls.groups, group_name)
    });
    t.add_list("ssl.alert.tbl", "alerts that peers sent, by name", COLUMNS, |s| {
        named(&s.block.tls.alerts, |code| alert_name(u8::try_from(code).ok()?))
    });
    t.add_list("ssl.staple.tbl", "what OCSP responses say that came with certificates", COLUMNS, |s| {
        rows(s.block.tls.staples.iter().map(|(text, n)| (text.to_owned(), n)))
    });
    t.add_list("ssl.issuer.tbl", "issuers of the certificates of peers", COLUMNS, |s| {
        rows(s.block.tls.issuers.iter().map(|(name, n)| (name.to_owned(), n)))
    });
    t.add_time_and_size(
        "connect",
        "successful CONNECT requests",
        |s| Cow::Borrowed(&s.block.tls.connects.rptm_us),
        |s| Cow::Borrowed(&s.block.tls.connects.size),
    );
    t.add_time_and_size(
        "tunneled",
        "transactions through tunnels of proxies",
        |s| Cow::Borrowed(&s.block.tls.tunneled.rptm_us),
        |s| Cow::Borrowed(&s.block.tls.tunneled.size),
    );
}
