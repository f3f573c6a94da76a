//! The summary of a run on the console.

use std::fmt::Write as _;
use std::path::Path;

use crate::facts::{ErrorExample, RunFacts};
use polygraph_stats::evidence::fact;
use polygraph_stats::{Block, ErrorKind, HttpVersion};

use crate::figures::tls::version_name;
use crate::figures::{percent, value};
use crate::judge::unanswered;
use crate::text::{duration, ms, number, times};
use crate::{correctness, headline_spread, misses};

/// The setting of robots with TLS that says whether they check certificates, `yes` or `no`.
pub const CHECKS_CERTIFICATES: &str = "checks certificates";

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
        if let Some(text) = protocols_of(facts) {
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
        if let Some(spread) = headline_spread::spread(facts) {
            row("servers", spread.text());
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
            .map_or_else(String::new, |(kind, count)| {
                let status = Some(kind).filter(|kind| *kind == ErrorKind::BadStatus);
                let examples = &facts.main_side().samples;
                let status = status.and_then(|_| usual_status(&headline.scope.block, examples, count));
                format!("; {}: {}{}", times(count), kind.text(), status.unwrap_or_default())
            });
        let (count, percent) = (fixed("err_cnt", 0), fixed("err_pct", 2));
        let forgotten = forgotten(facts).map_or_else(String::new, |count| {
            format!("; {} requests had no answer when the phase ended", number(Some(count), 0))
        });
        row("errors", format!("{count} of {ended} transactions, {percent} %{most}{forgotten}"));
        let tls = &headline.scope.block.tls;
        let [refused, pages] =
            [tls.refusal_count(), tls.page_count()].map(|count| number(Some(count as f64), 0));
        if tls.refusal_count() > 0 {
            let by_page = match tls.page_count() {
                0 => String::new(),
                _ => format!("; {pages} by a page or a redirect instead of an error"),
            };
            row("certificates", format!("{refused} bad ones refused, as they must be{by_page}"));
        }
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

/// How many requests of the headline's phase nobody answered, which are no errors yet, if there are enough to tell.
fn forgotten(facts: &RunFacts) -> Option<f64> {
    let (client, headline) = (facts.client.as_ref()?, facts.headline.as_ref()?);
    // The last of several phases has what is left of the others.
    let last = headline.phase.rsplit('|').next()?;
    let told = unanswered::told(facts, client.phase(last)?)?;
    Some(told.count)
}

/// The status of most replies with an unexpected one, if examples name it.
fn usual_status(block: &Block, examples: &[ErrorExample], errors: u64) -> Option<String> {
    let seen = |example: &ErrorExample| {
        let (_, seen) = example.facts.iter().find(|(name, _)| name == fact::SEEN)?;
        seen.strip_prefix("status ")?.parse::<u16>().ok()
    };
    let statuses = examples.iter().filter(|example| example.kind == ErrorKind::BadStatus).filter_map(seen);
    let replies = |status: u16| block.other_replies.get(status).map_or(0, |replies| replies.size.count());
    let most = statuses.max_by_key(|status| replies(*status))?;
    let of_all = if replies(most) >= errors { "" } else { "most often " };
    Some(format!(", {of_all}{most}"))
}

/// What to say about the certificates of peers if not all robots that use TLS check them.
fn unchecked(settings: &[(String, String)]) -> Option<&'static str> {
    let checks: Vec<bool> = settings
        .iter()
        .filter(|(name, _)| {
            name == CHECKS_CERTIFICATES || name.ends_with(&format!(": {CHECKS_CERTIFICATES}"))
        })
        .map(|(_, value)| value == "yes")
        .collect();
    match (checks.contains(&true), checks.contains(&false)) {
        (_, false) => None,
        (false, true) => Some("certificates not checked"),
        (true, true) => Some("certificates not checked by all robots"),
    }
}

/// The protocols of the transactions in the phase of the headline figures, if there is more to say than HTTP/1 without TLS.
pub fn protocols_of(facts: &RunFacts) -> Option<String> {
    let headline = facts.headline.as_ref()?;
    let robots = facts.client.as_ref().map(|side| side.header().settings.as_slice());
    protocols(&headline.scope.block, robots.and_then(unchecked))
}

/// The protocols of the transactions, if some use TLS or a version of HTTP from 2 on: shares of versions of HTTP in transactions, and
/// of versions of TLS in handshakes. `unchecked` is a remark about certificates.
fn protocols(block: &Block, unchecked: Option<&str>) -> Option<String> {
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
    // Without a reply, no version of HTTP is known.
    let mut parts: Vec<String> = if http.is_empty() { Vec::new() } else { vec![http.join(", ")] };
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
    if tls.handshakes() > 0 || encrypted > 0 {
        parts.extend(unchecked.map(str::to_owned));
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
    fn robots_that_check_no_certificates_are_told() {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        for (settings, said) in [
            (&[][..], None),
            (&[("checks certificates", "yes")], None),
            (&[("checks certificates", "no")], Some("certificates not checked")),
            (
                &[("A: checks certificates", "yes"), ("B: checks certificates", "no")],
                Some("certificates not checked by all robots"),
            ),
        ] {
            let all: Vec<(String, String)> = settings.iter().map(owned).collect();
            assert_eq!(unchecked(&all), said, "{settings:?}");
        }
    }

    #[test]
    fn the_status_of_most_replies_is_named() {
        let mut block = Block::default();
        (0..5).for_each(|_| block.fail(503, 1, 1, false));
        (0..9).for_each(|_| block.fail(403, 1, 1, false));
        block.fail(404, 1, 1, false);
        let example = |kind, seen: &str| ErrorExample {
            at_s: 1.0,
            kind,
            detail: String::new(),
            facts: vec![(fact::SEEN.to_owned(), seen.to_owned())],
        };
        let denied = example(ErrorKind::DeniedAnonymous, "status 403");
        let (usual, rare) =
            (example(ErrorKind::BadStatus, "status 503"), example(ErrorKind::BadStatus, "status 404"));
        let examples = [denied.clone(), rare, usual.clone()];
        assert_eq!(usual_status(&block, &examples, 6).as_deref(), Some(", most often 503"));
        assert_eq!(usual_status(&block, &[denied.clone(), usual], 5).as_deref(), Some(", 503"));
        assert_eq!(usual_status(&block, &[denied], 5), None);
    }

    #[test]
    fn protocols_are_named_where_they_are_not_plain_http_1() {
        assert_eq!(protocols(&phase(HttpVersion::Http11, 200, 0), None), None);
        let unchecked = Some("certificates not checked");
        // Without TLS, there are no certificates.
        let plain = phase(HttpVersion::Http2, 200, 0);
        assert_eq!(protocols(&plain, unchecked).as_deref(), Some("HTTP/2 100.0 %"));
        let kept = phase(HttpVersion::Http11, 200, 150);
        assert_eq!(
            protocols(&kept, unchecked).as_deref(),
            Some("HTTP/1.1 100.0 %; TLS 75.0 %, no handshake; certificates not checked")
        );
        let mut resumed = phase(HttpVersion::Http2, 200, 200);
        resumed.tls.versions.add(Version::Tls13.code(), 40);
        resumed.tls.full_us.record_n(900, 30);
        resumed.tls.resumed_us.record_n(300, 10);
        let mut refused = phase(HttpVersion::Http2, 0, 0);
        refused.tls = resumed.tls.clone();
        assert_eq!(
            protocols(&refused, None).as_deref(),
            Some("TLSv1.3 100.0 %, 40 handshakes, 25.0 % resumed")
        );
        assert_eq!(
            protocols(&resumed, None).as_deref(),
            Some("HTTP/2 100.0 %; TLSv1.3 100.0 %, 40 handshakes, 25.0 % resumed")
        );
    }
}
