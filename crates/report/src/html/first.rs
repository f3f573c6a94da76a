//! The first screen: can I trust it, what did it do, how fast, how many hits.

use super::page::{Banner, Tile, Tone};
use crate::figures::value;
use crate::fold::RunFacts;
use crate::text;
use crate::verdict::{Outcome, Weight};

pub fn title(facts: &RunFacts) -> String {
    let header = facts.main_side().header();
    let workload = if header.workload.is_empty() { "Unnamed workload" } else { &header.workload };
    match header.label.as_str() {
        "" => workload.to_owned(),
        label => format!("{workload}: {label}"),
    }
}

pub fn banner(facts: &RunFacts) -> Banner {
    let verdict = &facts.verdict;
    let texts = |warning: bool| {
        let wanted = verdict.findings.iter().filter(|f| (f.weight == Weight::Warning) == warning);
        wanted.map(|finding| finding.text.clone()).collect()
    };
    Banner {
        word: verdict.word(),
        meaning: verdict.meaning(),
        tone: match verdict.outcome {
            Outcome::Valid => Tone::Good,
            Outcome::Failed => Tone::Bad,
            Outcome::Invalid => Tone::Doubtful,
        },
        reasons: texts(false),
        warnings: texts(true),
    }
}

pub fn subtitle(facts: &RunFacts) -> String {
    let mut parts = vec![text::time_of_day(facts.start_unix_ns)];
    if let Some(total) = &facts.main_side().total {
        parts.push(format!("{} measured", text::duration(total.seconds)));
    }
    for side in facts.sides() {
        let n = side.processes.len();
        parts.push(format!("{n} {} process{}", side.side.name(), if n == 1 { "" } else { "es" }));
    }
    parts.join(" · ")
}

pub fn lead(facts: &RunFacts) -> String {
    match &facts.headline {
        None => "Nothing was measured.".to_owned(),
        Some(headline) => format!(
            "These figures are of phase {}, {} long, from {} to {} of the run: {}.",
            headline.phase,
            text::duration(headline.scope.seconds),
            text::duration(headline.begin_s),
            text::duration(headline.end_s),
            headline.reason
        ),
    }
}

pub fn tiles(facts: &RunFacts) -> Vec<Tile> {
    let Some(headline) = &facts.headline else { return Vec::new() };
    let figure = |name| value(name, &headline.scope);
    let mut tiles = vec![
        Tile {
            name: "Good replies".into(),
            value: text::number(figure("ok_xact.rate"), 1),
            unit: "replies/s".into(),
            more: match facts.main_side().offered_rate() {
                Some(planned) => format!(
                    "{} requests/s offered, {} planned, {} failed",
                    text::number(figure("req_rate"), 1),
                    text::number(Some(planned), 1),
                    text::number(figure("err_xact.rate"), 1)
                ),
                None => format!(
                    "{} requests/s offered, {} failed",
                    text::number(figure("req_rate"), 1),
                    text::number(figure("err_xact.rate"), 1)
                ),
            },
        },
        Tile {
            name: "Mean response time".into(),
            value: text::short(figure("resp_tm_mean")),
            unit: "ms".into(),
            more: [("p50", "resp_tm_p50"), ("p95", "resp_tm_p95"), ("p99", "resp_tm_p99")]
                .map(|(shown, name)| format!("{shown} {}", text::ms(figure(name))).replace(' ', "\u{a0}"))
                .join(" · "),
        },
    ];
    if facts.client.is_some() {
        tiles.push(Tile {
            name: "Document hit ratio".into(),
            value: text::number(figure("rep_dhr"), 1),
            unit: "%".into(),
            more: format!("{} % offered", text::number(figure("req_dhr"), 1)),
        });
        tiles.push(Tile {
            name: "Byte hit ratio".into(),
            value: text::number(figure("rep_bhr"), 1),
            unit: "%".into(),
            more: format!("{} % offered", text::number(figure("req_bhr"), 1)),
        });
    }
    tiles.push(Tile {
        name: "Errors".into(),
        value: text::number(figure("err_pct"), 2),
        unit: "%".into(),
        more: format!(
            "{} of {} transactions",
            text::number(figure("err_cnt"), 0),
            text::number(Some(headline.scope.ended_count() as f64), 0)
        ),
    });
    tiles
}
