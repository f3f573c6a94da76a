//! Tables of statistics: over time, by figure, by bin.

use std::sync::{Arc, LazyLock};

use polygraph_report::facts::SideFacts;
use polygraph_report::figures::{self, Figure, Unit};
use polygraph_report::lx::scope;
use polygraph_report::{LogSource, Scope};
use polygraph_stats::{Interval, Side};

use crate::table::{CellValue, ColumnCells, ColumnSpec, FLOAT, INT, TEXT, TIME, Table};
use crate::tables::{LOG, seconds, time_of_day};
use crate::write::{ExportError, TableFile};

/// Figures that intervals have as columns. Over all intervals of a phase, counts and sums add up to the values that
/// `lx` prints.
const COLUMNS: &[&str] = &[
    "xact.started",
    "xact.finished",
    "xact.level.mean",
    "xact.level.last",
    "ok_xact.count",
    "err_xact.count",
    "errors.noted.count",
    "retr_xact.count",
    "baseline.req.rate",
    "baseline.rep.rate",
    "baseline.rptm.count",
    "baseline.rptm.sum",
    "baseline.rptm.mean",
    "baseline.rptm.p50",
    "baseline.rptm.p95",
    "baseline.rptm.p99",
    "baseline.rptm.max",
    "baseline.due_rptm.sum",
    "baseline.due_rptm.p95",
    "baseline.req.size.sum",
    "baseline.rep.size.sum",
    "basic.size.count",
    "basic.size.sum",
    "offered.hit.size.count",
    "offered.hit.size.sum",
    "offered.hit.ratio.obj",
    "hit.ratio.obj",
    "hit.ratio.byte",
    "hit.rptm.sum",
    "hit.size.count",
    "hit.size.sum",
    "miss.rptm.sum",
    "miss.size.count",
    "miss.size.sum",
    "fill.rptm.sum",
    "fill.size.count",
    "fill.size.sum",
    "uncachable.size.count",
    "uncachable.size.sum",
    "redired_req.size.count",
    "rep_to_redir.size.count",
    "ims.sc200.size.count",
    "ims.sc304.size.count",
    "reload.size.count",
    "range.size.count",
    "head.size.count",
    "post.size.count",
    "put.size.count",
    "abort.size.count",
    "auth.ing.size.count",
    "false_hit.size.count",
    "missed.size.count",
    "embedded.size.count",
    "page.rptm.count",
    "page.rptm.sum",
    "page.size.sum",
    "url.unique.count",
    "populus.level.last",
    "wait.started",
    "wait.level.mean",
    "conn.open.started",
    "conn.open.finished",
    "conn.open.level.mean",
    "conn.open.level.last",
    "conn.estb.level.mean",
    "conn.idle.level.mean",
    "conn.ttl.count",
    "conn.ttl.sum",
    "conn.use.sum",
    "so_read.size.count",
    "so_read.size.sum",
    "so_write.size.count",
    "so_write.size.sum",
    "verified.count",
    "dns.lookup.count",
    "late.p99",
    "late.max",
    "cpu.busiest.share",
    "cpu.throttled.share",
    "rss.size",
];

/// Dots have a special meaning in SQL.
fn column_name(figure: &str) -> String {
    figure.replace('.', "_")
}

fn declared<'a>(name: &'a str, figure: &'a Figure) -> ColumnSpec<'a> {
    let cells = if figure.unit == Unit::Count { ColumnCells::Int(Vec::new()) } else { FLOAT };
    (name, figure.unit.symbol(), &figure.definition, cells)
}

fn cell(figure: &Figure, value: Option<f64>) -> CellValue {
    match figure.unit {
        Unit::Count => CellValue::Int(value.map(|value| value as i64)),
        _ => CellValue::Float(value),
    }
}

/// The figures that intervals have as columns.
static INTERVAL_FIGURES: LazyLock<Vec<&Figure>> =
    LazyLock::new(|| COLUMNS.iter().filter_map(|name| figures::find(name)).collect());

pub fn intervals() -> Table {
    let names: Vec<String> = INTERVAL_FIGURES.iter().map(|figure| column_name(&figure.name)).collect();
    let first = [
        LOG,
        ("side", "", "client or server", TEXT),
        ("phase", "", "name of the phase", TEXT),
        ("begin_s", "s", "start, since the start of the process", FLOAT),
        ("end_s", "s", "end", FLOAT),
        ("begin", "", "begin", TIME),
        ("duration", "s", "length", FLOAT),
        ("cpu", "s", "processor time of all event loops", FLOAT),
        ("clock_step", "ms", "step of the time-of-day clock", FLOAT),
    ];
    let columns = names.iter().zip(&*INTERVAL_FIGURES).map(|(name, figure)| declared(name, figure));
    Table::new("intervals", "an interval of a log", first.into_iter().chain(columns))
}

/// Adds the row of an interval.
pub fn add_interval(
    table: &mut TableFile,
    number: usize,
    log: &impl LogSource,
    interval: Interval,
) -> Result<(), ExportError> {
    let first = [
        number.into(),
        log.header().side.name().into(),
        log.phase_name(interval.phase).into(),
        seconds(interval.begin_ns).into(),
        seconds(interval.end_ns).into(),
        time_of_day(log.header(), interval.begin_ns),
        interval.seconds().into(),
        seconds(interval.cpu_ns).into(),
        (interval.clock_step_ns as f64 * 1e-6).into(),
    ];
    let scope = Scope::of_interval(interval);
    let values = figures::extract(INTERVAL_FIGURES.iter().copied(), &scope);
    table.push(
        first
            .into_iter()
            .chain(INTERVAL_FIGURES.iter().zip(values).map(|(figure, value)| cell(figure, value))),
    )
}

/// All logs of a side over one phase, or over all phases whose statistics count.
pub struct Folded {
    side: Side,
    phase: Option<String>,
    scope: Scope,
}

/// The phases of a side in the order in which they appear in the logs, then all of them together.
pub fn folded<'a>(side: &'a SideFacts, appeared: &'a [String]) -> impl Iterator<Item = Folded> + 'a {
    appeared.iter().map(Some).chain([None]).filter_map(|phase| {
        let (_, scope) = scope(side, phase.map_or(&[], std::slice::from_ref)).ok()?;
        Some(Folded { side: side.side, phase: phase.cloned(), scope })
    })
}

const SIDE: ColumnSpec<'static> = ("side", "", "client or server: all logs of the side are merged", TEXT);
const PHASE: ColumnSpec<'static> =
    ("phase", "", "name of the phase; null for all phases whose statistics count", TEXT);

pub fn figures() -> Table {
    Table::new(
        "figures",
        "a figure of one side in a phase: what `lx --side SIDE --phases PHASE` prints",
        [
            SIDE,
            PHASE,
            ("name", "", "name of the figure", TEXT),
            ("unit", "", "unit of the value", TEXT),
            ("value", "", "value; null if it is undefined", FLOAT),
            ("definition", "", "definition of the figure", TEXT),
        ],
    )
}

/// Adds the rows of a phase.
pub fn add_figures(table: &mut TableFile, folded: &Folded, contents: &[String]) -> Result<(), ExportError> {
    let Folded { side, phase, scope } = folded;
    let of_run = figures::of_run(contents, &scope.block.statuses());
    let all = || figures::all().iter().chain(of_run.figures());
    for (figure, value) in all().zip(figures::extract(all(), scope)) {
        table.push([
            side.name().into(),
            phase.clone().into(),
            figure.name.as_str().into(),
            figure.unit.word().into(),
            value.into(),
            figure.definition.as_str().into(),
        ])?;
    }
    Ok(())
}

pub fn histograms() -> Table {
    Table::new(
        "histograms",
        "a bin with values of one side in a phase",
        [
            SIDE,
            PHASE,
            (
                "name",
                "",
                "name of the distribution; the figures that start with this name are its aggregates",
                TEXT,
            ),
            ("unit", "", "unit of the values", TEXT),
            ("first", "", "smallest value of the bin", FLOAT),
            ("last", "", "largest value of the bin", FLOAT),
            ("count", "", "number of values in the bin", INT),
        ],
    )
}

/// Adds the rows of a phase.
pub fn add_histograms(
    table: &mut TableFile,
    folded: &Folded,
    contents: &[String],
) -> Result<(), ExportError> {
    let Folded { side, phase, scope } = folded;
    // The bins of all phases are the sums of the bins of single phases.
    let Some(phase) = phase else { return Ok(()) };
    let of_run = figures::of_run(contents, &scope.block.statuses());
    let (side, phase): (Arc<str>, Arc<str>) = (side.name().into(), phase.as_str().into());
    for distribution in figures::distributions().iter().chain(of_run.distributions()) {
        let (name, unit): (Arc<str>, Arc<str>) =
            (distribution.name.as_str().into(), distribution.unit.word().into());
        for (first, last, count) in distribution.of(scope).bins() {
            table.push([
                (&side).into(),
                (&phase).into(),
                (&name).into(),
                (&unit).into(),
                (first as f64 * distribution.scale).into(),
                (last as f64 * distribution.scale).into(),
                count.into(),
            ])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_figure() {
        COLUMNS.iter().for_each(|name| assert!(figures::find(name).is_some(), "{name}"));
    }
}
