//! The tables of the report. The first cell of each row is its heading.

use std::borrow::Cow;

use super::table::{Table, columns, row};
use super::view::View;
use crate::downtime::Downtime;
use crate::facts::{PhaseFacts, RunFacts, SideFacts};
use crate::figures::value;
use crate::prediction::RunPrediction;
use crate::scope::Scope;
use crate::text::{self, UNDEFINED, bytes, duration, ms, number, short};

pub(super) fn caption(what: &str, view: &View<'_>) -> String {
    format!("{what}, {}", view.name)
}

pub fn load(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let fixed = |name, decimals| number(value(name, scope), decimals);
    let planned = view.planned_rate;
    let mut rows = Vec::new();
    if planned.is_some() {
        rows.push(row("planned", [number(planned, 2), UNDEFINED.into(), UNDEFINED.into()]));
    }
    rows.push(row("offered", [fixed("req_rate", 2), fixed("xact.started", 0), UNDEFINED.into()]));
    rows.push(row("finished", [fixed("rep_rate", 2), fixed("xact.finished", 0), UNDEFINED.into()]));
    rows.push(row(
        "succeeded",
        [fixed("ok_xact.rate", 2), fixed("ok_xact.count", 0), fixed("rep.bwidth", 2)],
    ));
    Some(Table {
        caption: caption("Load", view),
        head: columns(&["", "per second", "transactions", "Mbit/s of replies"]),
        rows,
        ..Table::default()
    })
}

pub fn response_times(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let cells = |prefix: &str| {
        let time = |leaf: &str| short(value(&format!("{prefix}.{leaf}"), scope));
        let count = number(value(&format!("{prefix}.count"), scope), 0);
        [count, time("mean"), time("p50"), time("p90"), time("p95"), time("p99"), time("max")]
    };
    let mut rows = vec![row("all", cells("baseline.rptm"))];
    if view.sees_hits() {
        rows.push(row("hits", cells("hit.rptm")));
        rows.push(row("cachable misses", cells("fill.rptm")));
        rows.push(row("uncachable", cells("uncachable.rptm")));
        rows.push(row("all, from the scheduled start", cells("baseline.due_rptm")));
    }
    rows.retain(|row| !["0", UNDEFINED].contains(&row[1].as_str()));
    if rows.is_empty() {
        return None;
    }
    Some(Table {
        caption: caption("Response time in ms", view),
        head: columns(&["replies", "count", "mean", "p50", "p90", "p95", "p99", "max"]),
        rows,
        ..Table::default()
    })
}

pub fn hits(view: &View<'_>) -> Option<Table> {
    if !view.sees_hits() {
        return None;
    }
    let scope = view.scope;
    // Without a successful transaction there is no ratio.
    value("rep_dhr", scope).or(value("cachable.ratio.obj", scope))?;
    let percent = |share: Option<f64>| {
        share.map_or_else(|| UNDEFINED.to_owned(), |share| format!("{} %", number(Some(share), 2)))
    };
    let pair = |documents, bytes| [percent(value(documents, scope)), percent(value(bytes, scope))];
    let mut rows = Vec::new();
    if let Some(planned) = view.side.header().offered_dhr {
        rows.push(row(
            "planned (recurrence of the workload, --dhr)",
            [percent(Some(100.0 * planned)), UNDEFINED.into()],
        ));
    }
    rows.push(row("ideal: a cache that keeps everything", pair("req_dhr", "req_bhr")));
    rows.push(row("measured, from benchmark header fields", pair("rep_dhr", "rep_bhr")));
    if let Some(two) = view.two_sided() {
        rows.push(row("measured, client minus server counts", two.hits.map(percent)));
        if two.cheap != two.hits {
            rows.push(row(
                "the same, counting validations answered with 304 as hits",
                two.cheap.map(percent),
            ));
        }
    }
    rows.push(row("cachable replies", pair("cachable.ratio.obj", "cachable.ratio.byte")));
    let head = columns(&["", "documents", "bytes"]);
    Some(Table::new(caption("Hit ratio", view), head, rows))
}

pub fn connections(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let level = |counts: &str, level: &str| {
        [
            number(value(&format!("{counts}.started"), scope), 0),
            number(value(&format!("{counts}.finished"), scope), 0),
            number(value(&format!("{level}.level.mean"), scope), 1),
            number(value(&format!("{level}.level.peak"), scope), 0),
            number(value(&format!("{level}.level.last"), scope), 0),
        ]
    };
    let connection = [
        ms(value("conn.setup.mean", scope)),
        ms(value("conn.setup.p95", scope)),
        ms(value("conn.ttl.mean", scope)),
        number(value("conn.use.mean", scope), 2),
    ];
    let transaction =
        [UNDEFINED.into(), UNDEFINED.into(), ms(value("baseline.rptm.mean", scope)), UNDEFINED.into()];
    Some(Table {
        caption: caption("Concurrent connections and transactions", view),
        head: columns(&[
            "",
            "started",
            "finished",
            "mean number",
            "peak",
            "at the end",
            "mean set-up",
            "p95 of set-up",
            "mean lifetime",
            "transactions each",
        ]),
        rows: vec![
            row("connections", level("conn.open", "conn.open").into_iter().chain(connection)),
            row("transactions", level("xact", "xact").into_iter().chain(transaction)),
        ],
        ..Table::default()
    })
}

/// `None` if there were no errors.
pub fn errors(facts: &RunFacts) -> Option<Table> {
    let mut rows = Vec::new();
    for side in facts.sides() {
        let Some(total) = &side.total else { continue };
        for (kind, count) in total.block.errors.iter() {
            let share = 100.0 * count as f64 / total.ended_count().max(1) as f64;
            let effect = if kind.fails() { "transaction failed" } else { "noted" };
            rows.push(row(
                &format!("{}: {}", kind.number(), kind.text()),
                [
                    side.side.name().into(),
                    effect.into(),
                    number(Some(count as f64), 0),
                    format!("{} %", number(Some(share), 3)),
                ],
            ));
        }
    }
    (!rows.is_empty()).then(|| Table {
        caption: "Errors of the whole run".into(),
        head: columns(&["error", "side", "effect", "count", "of transactions"]),
        rows,
        ..Table::default()
    })
}

/// Measured and predicted figures side by side; `None` without a prediction.
pub fn prediction(prediction: &RunPrediction) -> Option<Table> {
    let RunPrediction::Made { device, .. } = prediction else { return None };
    let head = columns(&["phase", "replies per second", "predicted", "document hit ratio, %", "predicted"]);
    let caption = format!("Measured, and predicted by a simulation (device: {device})");
    Some(Table::new(caption, head, prediction.rows()))
}

/// When the device was available again.
pub fn downtime(found: &Downtime) -> Table {
    let rows = found.moments().map(|moment| {
        row(
            moment.name,
            [
                moment.at_s.map_or(UNDEFINED.into(), |at| format!("{at:.2}")),
                moment.after_kill_s.map_or(UNDEFINED.into(), |after| format!("{after:+.2}")),
                moment.after_restart_s.map_or(UNDEFINED.into(), |after| format!("{after:+.2}")),
            ],
        )
    });
    let head = columns(&["", "s from the start of the run", "s from the kill", "s from the restart"]);
    Table::new("When the device was available again", head, rows.collect())
}

pub fn phases(side: &SideFacts) -> Table {
    let cells = |phase: &PhaseFacts| {
        let scope = phase.scope.as_ref();
        let figure = |name: &str| scope.and_then(|scope| value(name, scope));
        let fixed = |name, decimals| number(figure(name), decimals);
        let time = |seconds: Option<f64>| seconds.map_or(UNDEFINED.to_owned(), duration);
        let goal = match (phase.goal_duration_s, phase.goal_xactions) {
            (Some(seconds), _) => duration(seconds),
            (None, Some(xactions)) => text::counted(xactions, "transaction"),
            (None, None) => UNDEFINED.to_owned(),
        };
        [
            goal,
            time(phase.begin_s),
            time(scope.map(|scope| scope.seconds)),
            phase.end.text().to_owned(),
            fixed("req_rate", 2),
            fixed("ok_xact.rate", 2),
            ms(figure("resp_tm_mean")),
            ms(figure("resp_tm_p95")),
            fixed("rep_dhr", 2),
            fixed("rep_bhr", 2),
            fixed("err_cnt", 0),
            fixed("err_pct", 2),
        ]
    };
    let name = |phase: &PhaseFacts| {
        if phase.primary { format!("{} (primary)", phase.name) } else { phase.name.clone() }
    };
    let mut table = Table {
        caption: format!("Phases, {} side", side.side.name()),
        head: columns(&[
            "phase",
            "goal",
            "start",
            "measured",
            "end",
            "offered/s",
            "succeeded/s",
            "mean response time",
            "p95",
            "document hit ratio, %",
            "byte hit ratio, %",
            "errors",
            "errors %",
        ]),
        rows: side.phases.iter().map(|phase| row(&name(phase), cells(phase))).collect(),
        ..Table::default()
    };
    if side.side == polygraph_stats::Side::Server {
        // Servers see no hits, so these columns would be empty.
        table.drop_columns(&["document hit ratio, %", "byte hit ratio, %"]);
    }
    table
}

pub fn health(facts: &RunFacts) -> Option<Table> {
    let scopes: Vec<(&str, &Scope)> = facts
        .sides()
        .filter_map(|side| {
            // The headline is the main side's; the other side may have no such phase, so its whole run counts.
            let of_main = std::ptr::eq(side, facts.main_side());
            let scope = if of_main { facts.headline.as_ref().map(|h| &h.scope) } else { side.total.as_ref() };
            Some((side.side.name(), scope?))
        })
        .collect();
    let mut table = Table {
        caption: "Health of the load generator, primary phase (servers: whole run)".into(),
        head: columns(&["", "client", "server"]),
        rows: Vec::new(),
        ..Table::default()
    };
    table.head = std::iter::once("").chain(scopes.iter().map(|(name, _)| *name)).map(Cow::Borrowed).collect();
    let mut line = |name: &str, show: &dyn Fn(&Scope) -> String| {
        let cells: Vec<String> = scopes.iter().map(|(_, scope)| show(scope)).collect();
        if cells.iter().any(|cell| cell != UNDEFINED) {
            table.rows.push(row(name, cells));
        }
    };
    let time = |name: &'static str| move |scope: &Scope| ms(value(name, scope));
    line("load of the busiest event loop", &|scope| {
        value("cpu.busiest.share", scope)
            .map_or(UNDEFINED.into(), |share| format!("{} %", number(Some(share), 1)))
    });
    line("processor time per transaction", &|scope| {
        value("cpu.xact.time", scope).map_or(UNDEFINED.into(), |us| format!("{} µs", number(Some(us), 1)))
    });
    line("lateness of requests (servers: of the ends of think times), mean", &time("late.mean"));
    line("lateness of requests (servers: of the ends of think times), p50", &time("late.p50"));
    line("lateness of requests (servers: of the ends of think times), p99", &time("late.p99"));
    line("lateness of requests (servers: of the ends of think times), max", &time("late.max"));
    line("largest clock step", &time("clock.step"));
    line("memory", &|scope| bytes(value("rss.size", scope)));
    (!scopes.is_empty()).then_some(table)
}
