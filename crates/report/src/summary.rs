//! The summary of a run on the console.

use std::fmt::Write as _;
use std::path::Path;

use crate::facts::RunFacts;
use polygraph_stats::{Block, HttpVersion};

use crate::figures::tls::version_name;
use crate::figures::{percent, value};
use crate::text::{duration, ms, number, times};
use crate::{correctness, misses};

/// The summary: verdict with reasons, load, response time, hit ratio, errors, and paths. `places` has names with paths,
/// for example `("report", path)`.
pub fn summary_text(facts: &RunFacts, places: &[(&str, &Path)]) -> String {
    let mut out = facts.verdict.text();
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<14} {text}");
    };
    if let Some(headline) = &facts.headline {
        let figure = |name| value(name, &headline.scope);
        let fixed = |name, decimals| number(figure(name), decimals);
        let header = facts.main_side().header();
        let stand_in = if headline.primary { String::new() } else { format!(" ({})", headline.reason) };
        let length = duration(headline.scope.seconds);
        row("phase", format!("{}, {length} of {}{stand_in}", headline.phase, header.workload));
        row(
            "load",
            format!(
                "{} requests/s offered, {}/s succeeded, {}/s failed",
                fixed("req_rate", 2),
                fixed("ok_xact.rate", 2),
                fixed("err_xact.rate", 2)
            ),
        );
        row(
            "response time",
            format!(
                "mean {}, p50 {}, p95 {}, p99 {}",
                ms(figure("resp_tm_mean")),
                ms(figure("resp_tm_p50")),
                ms(figure("resp_tm_p95")),
                ms(figure("resp_tm_p99"))
            ),
        );
        if let Some(text) = protocols(&headline.scope.block) {
            row("protocols", text);
        }
        if facts.client.is_some() {
            row(
                "hit ratio",
                format!(
                    "documents {} % of {} % offered, bytes {} % of {} % offered",
                    fixed("rep_dhr", 2),
                    fixed("req_dhr", 2),
                    fixed("rep_bhr", 2),
                    fixed("req_bhr", 2)
                ),
            );
        }
        if let Some(story) = misses::explain(facts) {
            story.sentences.into_iter().take(2).enumerate().for_each(|(i, sentence)| {
                row(if i == 0 { "missed hits" } else { "" }, sentence);
            });
        }
        if headline.scope.block.pages.parts.count() > 0 {
            row(
                "pages",
                format!(
                    "{}, {} replies each, mean {}",
                    fixed("page.parts.count", 0),
                    fixed("page.parts.mean", 1),
                    ms(figure("page.rptm.mean"))
                ),
            );
        }
        let ended = number(Some(headline.scope.ended_count() as f64), 0);
        let most = headline
            .scope
            .block
            .errors
            .iter()
            .filter(|(kind, _)| kind.fails())
            .max_by_key(|(_, count)| *count)
            .map_or_else(String::new, |(kind, count)| format!("; {}: {}", times(count), kind.text()));
        let (count, percent) = (fixed("err_cnt", 0), fixed("err_pct", 2));
        row("errors", format!("{count} of {ended} transactions, {percent} %{most}"));
    }
    if facts.client.is_some() {
        let found = correctness::of_run(facts);
        row("correctness", found.conclusion());
        for finding in found.findings.iter().take(3) {
            let (kind, side) = (finding.kind, finding.side.name());
            row("", format!("({}) {}: {} ({side})", kind.number(), kind.text(), times(finding.count)));
        }
    }
    for (what, place) in places {
        row(what, place.display().to_string());
    }
    out
}

/// The protocols of the transactions, if some use TLS or a version of HTTP from 2 on: shares of versions of HTTP in transactions, and
/// of versions of TLS in handshakes.
fn protocols(block: &Block) -> Option<String> {
    let tls = &block.tls;
    let counts = HttpVersion::ALL.map(|version| (version, block.versions[version as usize].size.count()));
    let is_new = counts.iter().any(|(version, count)| version.is_multiplexed() && *count > 0);
    let encrypted = tls.transactions.size.count();
    if !is_new && tls.handshakes() == 0 && encrypted == 0 {
        return None;
    }
    let share = |n: u64, all: u64| format!("{} %", number(percent(n as f64, all as f64), 1));
    let all = counts.iter().map(|(_, count)| count).sum();
    let http = counts.iter().filter(|(_, count)| *count > 0);
    let http: Vec<String> =
        http.map(|(version, count)| format!("{} {}", version.title(), share(*count, all))).collect();
    let mut parts = vec![http.join(", ")];
    if tls.handshakes() > 0 {
        let named =
            |code, n| format!("{} {}", version_name(code).unwrap_or("TLS"), share(n, tls.versions.sum()));
        let versions: Vec<String> = tls.versions.iter().map(|(code, n)| named(code, n)).collect();
        let (handshakes, resumed) = (tls.handshakes(), share(tls.resumptions(), tls.handshakes()));
        let handshakes = number(Some(handshakes as f64), 0);
        parts.push(format!("{}, {handshakes} handshakes, {resumed} resumed", versions.join(", ")));
    } else if encrypted > 0 {
        // The connections are older than the phase.
        parts.push(format!("TLS {}, no handshake", share(encrypted, all)));
    }
    Some(parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_tls::names::Version;

    /// A phase with transactions of one version of HTTP, of which `encrypted` use TLS.
    fn phase(version: HttpVersion, transactions: u64, encrypted: u64) -> Block {
        let mut block = Block::default();
        block.versions[version as usize].size.record_n(1_000, transactions);
        block.tls.transactions.size.record_n(1_000, encrypted);
        block
    }

    #[test]
    fn protocols_are_named_where_they_are_not_plain_http_1() {
        assert_eq!(protocols(&phase(HttpVersion::Http11, 200, 0)), None);
        assert_eq!(protocols(&phase(HttpVersion::Http2, 200, 0)).as_deref(), Some("HTTP/2 100.0 %"));
        let kept = phase(HttpVersion::Http11, 200, 150);
        assert_eq!(protocols(&kept).as_deref(), Some("HTTP/1.1 100.0 %; TLS 75.0 %, no handshake"));
        let mut resumed = phase(HttpVersion::Http2, 200, 200);
        resumed.tls.versions.add(Version::Tls13.code(), 40);
        resumed.tls.full_us.record_n(900, 30);
        resumed.tls.resumed_us.record_n(300, 10);
        assert_eq!(
            protocols(&resumed).as_deref(),
            Some("HTTP/2 100.0 %; TLSv1.3 100.0 %, 40 handshakes, 25.0 % resumed")
        );
    }
}
