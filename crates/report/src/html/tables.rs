//! The tables of the report. The first cell of each row is its heading.

use std::borrow::Cow;

use crate::figures::value;
use crate::fold::{PhaseFacts, RunFacts, SideFacts};
use crate::scope::Scope;
use crate::text::{UNDEFINED, bytes, duration, ms, number, short};

/// A table.
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Names of the columns; the first is that of the headings.
    pub head: Vec<Cow<'static, str>>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

pub(super) fn columns(names: &[&'static str]) -> Vec<Cow<'static, str>> {
    names.iter().map(|&name| name.into()).collect()
}

pub(super) fn row(name: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

pub(super) fn caption(what: &str, facts: &RunFacts) -> String {
    let phase = facts.headline.as_ref().map_or("none", |headline| &headline.phase);
    format!("{what}, phase {phase}")
}

pub fn load(facts: &RunFacts) -> Option<Table> {
    let scope = &facts.headline.as_ref()?.scope;
    let fixed = |name, decimals| number(value(name, scope), decimals);
    let planned = facts.main_side().offered_rate();
    let mut rows = Vec::new();
    if planned.is_some() {
        rows.push(row("planned", [number(planned, 2), UNDEFINED.into(), UNDEFINED.into()]));
    }
    rows.push(row("offered", [fixed("req_rate", 2), fixed("xact.started", 0), UNDEFINED.into()]));
    rows.push(row("measured", [fixed("rep_rate", 2), fixed("xact.finished", 0), UNDEFINED.into()]));
    rows.push(row(
        "ended well",
        [fixed("ok_xact.rate", 2), fixed("ok_xact.count", 0), fixed("rep.bwidth", 2)],
    ));
    Some(Table {
        caption: caption("Load", facts),
        head: columns(&["", "per second", "transactions", "Mbit/s of replies"]),
        rows,
    })
}

pub fn response_times(facts: &RunFacts) -> Option<Table> {
    let scope = &facts.headline.as_ref()?.scope;
    let cells = |prefix: &str| {
        let time = |leaf: &str| short(value(&format!("{prefix}.{leaf}"), scope));
        let count = number(value(&format!("{prefix}.count"), scope), 0);
        [count, time("mean"), time("p50"), time("p90"), time("p95"), time("p99"), time("max")]
    };
    let mut rows = vec![row("all", cells("baseline.rptm"))];
    if facts.client.is_some() {
        rows.push(row("hits", cells("hit.rptm")));
        rows.push(row("cachable misses", cells("fill.rptm")));
        rows.push(row("uncachable", cells("uncachable.rptm")));
        rows.push(row("all, from the moment due", cells("baseline.due_rptm")));
    }
    rows.retain(|row| row[1] != "0");
    Some(Table {
        caption: caption("Response time in ms", facts),
        head: columns(&["replies", "count", "mean", "p50", "p90", "p95", "p99", "max"]),
        rows,
    })
}

pub fn hits(facts: &RunFacts) -> Option<Table> {
    facts.client.as_ref()?;
    let scope = &facts.headline.as_ref()?.scope;
    let percent = |name| match value(name, scope) {
        Some(share) => format!("{} %", number(Some(share), 2)),
        None => UNDEFINED.to_owned(),
    };
    let planned =
        facts.main_side().header().offered_dhr.map(|dhr| format!("{} %", number(Some(100.0 * dhr), 2)));
    let mut rows = Vec::new();
    if let Some(planned) = planned {
        rows.push(row("of the workload", [planned, UNDEFINED.into()]));
    }
    rows.push(row("offered", [percent("req_dhr"), percent("req_bhr")]));
    rows.push(row("measured", [percent("rep_dhr"), percent("rep_bhr")]));
    if let (Some((documents, volume)), Some(total)) = (two_sided(facts), &facts.main_side().total) {
        let text =
            |share: Option<f64>| share.map_or(UNDEFINED.into(), |s| format!("{} %", number(Some(s), 2)));
        let seen = [text(value("rep_dhr", total)), text(value("rep_bhr", total))];
        rows.push(row("whole run, measured", seen));
        rows.push(row("whole run, client minus server counts", [text(Some(documents)), text(Some(volume))]));
    }
    rows.push(row("cachable replies", [percent("cachable.ratio.obj"), percent("cachable.ratio.byte")]));
    Some(Table { caption: caption("Hit ratio", facts), head: columns(&["", "documents", "bytes"]), rows })
}

/// Hit ratios in percent from what the clients got and the servers gave. Only of complete runs.
fn two_sided(facts: &RunFacts) -> Option<(f64, f64)> {
    if facts.missing().next().is_some() {
        return None;
    }
    let client = &facts.client.as_ref()?.total.as_ref()?.block;
    let server = &facts.server.as_ref()?.total.as_ref()?.block;
    let share = |got: f64, given: f64| (got > 0.0).then(|| 100.0 * (got - given) / got);
    Some((
        share(client.ok_count() as f64, server.ok_count() as f64)?,
        share(client.ok_bytes(), server.ok_bytes())?,
    ))
}

pub fn connections(facts: &RunFacts) -> Option<Table> {
    let scope = &facts.headline.as_ref()?.scope;
    let level = |counts: &str, level: &str| {
        [
            number(value(&format!("{counts}.started"), scope), 0),
            number(value(&format!("{counts}.finished"), scope), 0),
            number(value(&format!("{level}.level.mean"), scope), 1),
            number(value(&format!("{level}.level.peak"), scope), 0),
            number(value(&format!("{level}.level.last"), scope), 0),
        ]
    };
    let extra = |lifetime: String, uses: String| [lifetime, uses];
    let connection = extra(ms(value("conn.ttl.mean", scope)), number(value("conn.use.mean", scope), 2));
    let nothing = extra(ms(value("baseline.rptm.mean", scope)), UNDEFINED.into());
    Some(Table {
        caption: caption("Levels", facts),
        head: columns(&[
            "",
            "begun",
            "ended",
            "mean level",
            "peak",
            "at the end",
            "mean lifetime",
            "transactions each",
        ]),
        rows: vec![
            row("connections", level("conn.open", "conn.open").into_iter().chain(connection)),
            row("transactions", level("xact", "xact").into_iter().chain(nothing)),
        ],
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
    })
}

pub fn phases(side: &SideFacts) -> Table {
    let cells = |phase: &PhaseFacts| {
        let scope = phase.scope.as_ref();
        let figure = |name: &str| scope.and_then(|scope| value(name, scope));
        let fixed = |name, decimals| number(figure(name), decimals);
        let time = |seconds: Option<f64>| seconds.map_or(UNDEFINED.to_owned(), duration);
        let goal = match (phase.goal_duration_s, phase.goal_xactions) {
            (Some(seconds), _) => duration(seconds),
            (None, Some(xactions)) => format!("{} transactions", number(Some(xactions as f64), 0)),
            (None, None) => UNDEFINED.to_owned(),
        };
        [
            goal,
            time(phase.begin_s),
            time(scope.map(|scope| scope.seconds)),
            phase.end.text().to_owned(),
            fixed("req_rate", 2),
            fixed("rep_rate", 2),
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
            "from",
            "measured",
            "end",
            "offered/s",
            "measured/s",
            "mean",
            "p95",
            "DHR %",
            "BHR %",
            "errors",
            "errors %",
        ]),
        rows: side.phases.iter().map(|phase| row(&name(phase), cells(phase))).collect(),
    };
    if side.side == polygraph_stats::Side::Server {
        // Servers see no hits: that column would say nothing.
        table.drop_columns(&["DHR %", "BHR %"]);
    }
    table
}

impl Table {
    fn drop_columns(&mut self, names: &[&str]) {
        let keep: Vec<bool> = self.head.iter().map(|name| !names.contains(&name.as_ref())).collect();
        let mut flags = keep.iter();
        self.head.retain(|_| *flags.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut flags = keep.iter();
            row.retain(|_| *flags.next().unwrap_or(&true));
        }
    }
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
        caption: caption("Health of the load generator", facts) + " (servers: whole run)",
        head: columns(&["", "client", "server"]),
        rows: Vec::new(),
    };
    table.head = std::iter::once("").chain(scopes.iter().map(|(name, _)| *name)).map(Cow::Borrowed).collect();
    let mut line = |name: &str, show: &dyn Fn(&Scope) -> String| {
        let cells: Vec<String> = scopes.iter().map(|(_, scope)| show(scope)).collect();
        if cells.iter().any(|cell| cell != UNDEFINED) {
            table.rows.push(row(name, cells));
        }
    };
    let time = |name: &'static str| move |scope: &Scope| ms(value(name, scope));
    line("busiest event loop at work", &|scope| {
        value("cpu.busiest.share", scope)
            .map_or(UNDEFINED.into(), |share| format!("{} %", number(Some(share), 1)))
    });
    line("processor time per transaction", &|scope| {
        value("cpu.xact.time", scope).map_or(UNDEFINED.into(), |us| format!("{} us", number(Some(us), 1)))
    });
    line("lateness of starts, mean", &time("late.mean"));
    line("lateness of starts, p50", &time("late.p50"));
    line("lateness of starts, p99", &time("late.p99"));
    line("lateness of starts, max", &time("late.max"));
    line("largest clock step", &time("clock.step"));
    line("memory", &|scope| bytes(value("rss.size", scope)));
    (!scopes.is_empty()).then_some(table)
}
