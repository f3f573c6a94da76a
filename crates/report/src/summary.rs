//! The summary of a run on the console.

use std::fmt::Write as _;
use std::path::Path;

use crate::facts::RunFacts;
use crate::figures::value;
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
