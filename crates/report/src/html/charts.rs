//! The figures of the report.

use polygraph_stats::{Class, Hist};

use super::chart::{Across, Chart, Drawn, Line, share_of_nines};
use crate::fold::{RunFacts, SideFacts};
use crate::series::Point;

/// Lines of one figure over time: name in the legend, figure of the series.
type Columns = &'static [(&'static str, &'static str)];

/// A figure over time.
fn over_time(side: &SideFacts, base: Chart, columns: Columns) -> Chart {
    let points = with_gaps(&side.series);
    let lines = columns.iter().map(|&(name, figure)| {
        Line::new(name, points.iter().map(|(_, point)| point.and_then(|point| point.get(figure))).collect())
    });
    let (across, unit_s) = Across::time(points.last().map_or(0.0, |(at, _)| *at));
    Chart {
        across,
        x: points.iter().map(|(at, _)| *at / unit_s).collect(),
        lines: lines.collect(),
        marks: side
            .phases
            .iter()
            .filter_map(|phase| phase.begin_s)
            .filter(|at| *at > 0.0)
            .map(|at| at / unit_s)
            .collect(),
        ..base
    }
}

/// Points with an empty one where windows are missing, so that lines do not run over what was not measured.
fn with_gaps(series: &[Point]) -> Vec<(f64, Option<&Point>)> {
    let step = series.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::MAX, f64::min);
    let mut out: Vec<(f64, Option<&Point>)> = Vec::with_capacity(series.len());
    for point in series {
        if out.last().is_some_and(|(at, _)| point.at_s - at > 1.5 * step) {
            out.push((point.at_s - step, None));
        }
        out.push((point.at_s, Some(point)));
    }
    out
}

fn chart(id: &'static str, title: &'static str, y_title: &'static str, about: &str) -> Chart {
    Chart {
        id,
        title,
        about: about.to_owned(),
        across: Across::Seconds,
        x: Vec::new(),
        y_title,
        log: false,
        y_max: None,
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

/// A logarithmic axis where values differ by more than a factor of fifty.
fn log_if_wide(chart: Chart) -> Chart {
    let values = || chart.lines.iter().flat_map(|line| &line.values).flatten().copied().filter(|v| *v > 0.0);
    let log = values().fold(0.0, f64::max) > 50.0 * values().fold(f64::MAX, f64::min);
    Chart { log, ..chart }
}

pub fn load(facts: &RunFacts) -> Option<Drawn> {
    over_time(
        facts.main_side(),
        chart(
            "fig-load",
            "Offered and measured load",
            "per second",
            "Transactions begun, ended, and ended well, per second.",
        ),
        &[
            ("offered", "baseline.req.rate"),
            ("measured", "baseline.rep.rate"),
            ("ended well", "ok_xact.rate"),
        ],
    )
    .draw()
}

/// Without the median: with a hit ratio near 50 % it jumps between the times of hits and of misses.
pub fn response_time(facts: &RunFacts) -> Option<Drawn> {
    log_if_wide(over_time(
        facts.main_side(),
        chart(
            "fig-rptm",
            "Response time over time",
            "ms",
            "Mean and percentiles of all good replies, from the actual start of each request.",
        ),
        &[("mean", "baseline.rptm.mean"), ("p95", "baseline.rptm.p95"), ("p99", "baseline.rptm.p99")],
    ))
    .draw()
}

pub fn response_time_by_class(facts: &RunFacts) -> Option<Drawn> {
    facts.client.as_ref()?;
    log_if_wide(over_time(
        facts.main_side(),
        chart(
            "fig-rptm-class",
            "Mean response time of hits and misses",
            "ms",
            "Hits show the speed of the device, misses that of device, network and servers together.",
        ),
        &[
            ("hits", "hit.rptm.mean"),
            ("cachable misses", "fill.rptm.mean"),
            ("uncachable", "uncachable.rptm.mean"),
        ],
    ))
    .draw()
}

fn quantiles(hist: &Hist, shares: &[f64]) -> Vec<Option<f64>> {
    shares.iter().map(|&q| Some(hist.quantile(q)? as f64 * 1e-3)).collect()
}

pub fn distribution(facts: &RunFacts) -> Option<Drawn> {
    let scope = &facts.headline.as_ref()?.scope;
    let percent: Vec<f64> = (0..=200).map(|i| f64::from(i) / 2.0).collect();
    let shares: Vec<f64> = percent.iter().map(|p| p / 100.0).collect();
    let of = |class: Class| quantiles(&scope.block.class(class).rptm_us, &shares);
    let mut lines = vec![Line::new("all", quantiles(&scope.all.rptm_us, &shares))];
    if facts.client.is_some() {
        lines.push(Line::new("hits", of(Class::Hit)));
        lines.push(Line::new("cachable misses", of(Class::Miss)));
        lines.push(Line::new("uncachable", of(Class::Uncachable)));
    }
    log_if_wide(Chart {
        across: Across::Percent,
        x: percent,
        lines,
        ..chart(
            "fig-distribution",
            "Distribution of response times",
            "ms",
            "For each share of the replies of the primary phase, the response time that they did not exceed.",
        )
    })
    .draw()
}

pub fn percentiles(facts: &RunFacts) -> Option<Drawn> {
    let scope = &facts.headline.as_ref()?.scope;
    let count = scope.all.rptm_us.count();
    // A percentile needs at least one value above it to be more than the maximum.
    let nines = ((count as f64).log10() * 20.0).floor().clamp(0.0, 100.0) as u32;
    let x: Vec<f64> = (0..=nines).map(|i| f64::from(i) / 20.0).collect();
    let shares: Vec<f64> = x.iter().map(|&n| share_of_nines(n)).collect();
    let lines = vec![
        Line::new("from the actual start", quantiles(&scope.all.rptm_us, &shares)),
        Line::new("from the moment due", quantiles(&scope.all.due_rptm_us, &shares)),
    ];
    log_if_wide(Chart {
        across: Across::Nines,
        x,
        lines,
        ..chart(
            "fig-percentiles",
            "High percentiles of response time",
            "ms",
            "The slow end of the distribution of the primary phase, stretched: each step is a tenth of the replies \
             left. Where the lines part, the bench was late.",
        )
    })
    .draw()
}

pub fn hit_ratio(facts: &RunFacts) -> Option<Drawn> {
    let side = facts.client.as_ref()?;
    let base = chart(
        "fig-hits",
        "Hit ratio over time",
        "%",
        "Measured share of hits by documents and by bytes, and the share that the robots offered.",
    );
    over_time(
        side,
        Chart { y_max: Some(100.0), ..base },
        &[
            ("documents, measured", "hit.ratio.obj"),
            ("documents, offered", "offered.hit.ratio.obj"),
            ("bytes, measured", "hit.ratio.byte"),
        ],
    )
    .draw()
}

pub fn levels(facts: &RunFacts) -> Option<Drawn> {
    over_time(
        facts.main_side(),
        chart(
            "fig-levels",
            "Open connections and concurrent transactions",
            "at a time",
            "Open connections at the end of each interval, and the mean number of running transactions.",
        ),
        &[("open connections", "conn.open.level.last"), ("transactions", "xact.level.mean")],
    )
    .draw()
}

pub fn errors(facts: &RunFacts) -> Option<Drawn> {
    let side = facts.main_side();
    let any = side.series.iter().any(|point| point.get("err_xact.count").unwrap_or(0.0) > 0.0);
    let base =
        chart("fig-errors", "Failed transactions over time", "per interval", "Transactions that failed.");
    any.then(|| over_time(side, base, &[("failed", "err_xact.count")]).draw()).flatten()
}

pub fn busy(facts: &RunFacts) -> Option<Drawn> {
    let base = chart(
        "fig-busy",
        "Work of the busiest event loop",
        "%",
        "Share of the time that the busiest event loop of the bench was at work; above 90 % the run is invalid.",
    );
    let base = Chart { y_max: Some(100.0), ..base };
    // Both sides share the axis of the main one; the other's points are put where its windows match.
    let main = facts.main_side();
    let mut chart = over_time(main, base, &[("client", "cpu.busiest.share")]);
    chart.lines[0].name = main.side.name();
    if let Some(server) = facts.server.as_ref().filter(|_| facts.client.is_some()) {
        let at = |at_s: f64| server.series.iter().find(|point| (point.at_s - at_s).abs() < 0.01);
        let points = with_gaps(&main.series);
        let values = points.iter().map(|(at_s, _)| at(*at_s)?.get("cpu.busiest.share")).collect();
        chart.lines.push(Line::new("server", values));
    }
    chart.draw()
}

/// In microseconds if starts are as punctual as they should be.
pub fn lateness(facts: &RunFacts) -> Option<Drawn> {
    let side = facts.client.as_ref()?;
    let base = chart(
        "fig-late",
        "Lateness of starts",
        "ms",
        "99 % of the requests of each interval were started no later than this after they were due.",
    );
    let mut chart = over_time(side, base, &[("p99", "late.p99")]);
    let late = &mut chart.lines[0].values;
    if late.iter().flatten().all(|ms| *ms < 5.0) {
        late.iter_mut().flatten().for_each(|ms| *ms *= 1000.0);
        chart.y_title = "us";
    }
    chart.draw()
}

pub fn memory(facts: &RunFacts) -> Option<Drawn> {
    let side = facts.main_side();
    let base =
        chart("fig-memory", "Memory of the load generator", "MB", "Resident memory of all its processes.");
    let mut chart = over_time(side, base, &[("resident", "rss.size")]);
    chart.lines[0].values.iter_mut().flatten().for_each(|size| *size /= 1024.0 * 1024.0);
    chart.draw()
}
