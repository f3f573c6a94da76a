//! The figures of the report.

use polygraph_stats::{Class, Hist};

use super::chart::{Across, Chart, Drawn, Series, share_of_nines};
use crate::fold::{RunFacts, SideFacts};
use crate::series::Point;

/// Lines of one figure over time: name in the legend, figure of the series.
type Columns = &'static [(&'static str, &'static str)];

/// A figure over time.
fn over_time(side: &SideFacts, base: Chart, columns: Columns) -> Chart {
    let points = with_gaps(&side.series);
    let (across, unit_s) = Across::time(points.last().map_or(0.0, |(at, _)| *at));
    let line = |&(name, figure): &(&'static str, &'static str)| {
        let values =
            points.iter().map(|(at, point)| (at / unit_s, point.and_then(|point| point.get(figure))));
        Series::line(name, values.collect())
    };
    Chart { series: columns.iter().map(line).collect(), marks: marks(side, unit_s), across, ..base }
}

/// Where phases begin, in units of so many seconds.
fn marks(side: &SideFacts, unit_s: f64) -> Vec<f64> {
    side.phases
        .iter()
        .filter_map(|phase| phase.begin_s)
        .filter(|at| *at > 0.0)
        .map(|at| at / unit_s)
        .collect()
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

fn chart(id: &str, title: &str, y_title: &str, about: &str) -> Chart {
    Chart::new(id, title, y_title).about(about)
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
    over_time(
        facts.main_side(),
        chart(
            "fig-rptm",
            "Response time over time",
            "ms",
            "Mean and percentiles of all good replies, from the actual start of each request.",
        ),
        &[("mean", "baseline.rptm.mean"), ("p95", "baseline.rptm.p95"), ("p99", "baseline.rptm.p99")],
    )
    .log_if_wide()
    .draw()
}

pub fn response_time_by_class(facts: &RunFacts) -> Option<Drawn> {
    facts.client.as_ref()?;
    over_time(
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
    )
    .log_if_wide()
    .draw()
}

/// A line of response times in milliseconds over shares of values.
fn quantiles(name: &str, hist: &Hist, x: &[f64], share: impl Fn(f64) -> f64) -> Series {
    Series::line(name, x.iter().map(|&x| (x, hist.quantile(share(x)).map(|us| us as f64 * 1e-3))).collect())
}

pub fn distribution(facts: &RunFacts) -> Option<Drawn> {
    let scope = &facts.headline.as_ref()?.scope;
    let percent: Vec<f64> = (0..=200).map(|i| f64::from(i) / 2.0).collect();
    let line = |name: &str, hist: &Hist| quantiles(name, hist, &percent, |p| p / 100.0);
    let of = |name: &str, class: Class| line(name, &scope.block.class(class).rptm_us);
    let mut chart = chart(
        "fig-distribution",
        "Distribution of response times",
        "ms",
        "For each share of the replies of the primary phase, the response time that they did not exceed.",
    )
    .across(Across::Percent)
    .with(line("all", &scope.all.rptm_us));
    if facts.client.is_some() {
        chart = chart
            .with(of("hits", Class::Hit))
            .with(of("cachable misses", Class::Miss))
            .with(of("uncachable", Class::Uncachable));
    }
    chart.log_if_wide().draw()
}

pub fn percentiles(facts: &RunFacts) -> Option<Drawn> {
    let scope = &facts.headline.as_ref()?.scope;
    let count = scope.all.rptm_us.count();
    // A percentile needs at least one value above it to be more than the maximum.
    let nines = ((count as f64).log10() * 20.0).floor().clamp(0.0, 100.0) as u32;
    let x: Vec<f64> = (0..=nines).map(|i| f64::from(i) / 20.0).collect();
    let line = |name: &str, hist: &Hist| quantiles(name, hist, &x, share_of_nines);
    chart(
        "fig-percentiles",
        "High percentiles of response time",
        "ms",
        "The slow end of the distribution of the primary phase, stretched: each step is a tenth of the replies \
         left. Where the lines part, the bench was late.",
    )
    .across(Across::Nines)
    .with(line("from the actual start", &scope.all.rptm_us))
    .with(line("from the moment due", &scope.all.due_rptm_us))
    .log_if_wide()
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
        base.up_to(100.0),
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
    let base = base.up_to(100.0);
    // Both sides share the axis of the main one; the other's points are put where its windows match.
    let main = facts.main_side();
    let mut chart = over_time(main, base, &[("client", "cpu.busiest.share")]);
    chart.series[0].name = main.side.name().to_owned();
    if let Some(server) = facts.server.as_ref().filter(|_| facts.client.is_some()) {
        let at = |at_s: f64| server.series.iter().find(|point| (point.at_s - at_s).abs() < 0.01);
        let points = with_gaps(&main.series);
        let values = points.iter().map(|(at_s, _)| at(*at_s)?.get("cpu.busiest.share"));
        let xs = chart.series[0].points.iter().map(|(x, _)| *x);
        chart.series.push(Series::line("server", xs.zip(values).collect()));
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
    let late = &mut chart.series[0].points;
    if late.iter().filter_map(|(_, ms)| *ms).all(|ms| ms < 5.0) {
        late.iter_mut().filter_map(|(_, ms)| ms.as_mut()).for_each(|ms| *ms *= 1000.0);
        chart.y_title = "us".to_owned();
    }
    chart.draw()
}

pub fn memory(facts: &RunFacts) -> Option<Drawn> {
    let side = facts.main_side();
    let base =
        chart("fig-memory", "Memory of the load generator", "MB", "Resident memory of all its processes.");
    let mut chart = over_time(side, base, &[("resident", "rss.size")]);
    chart.series[0]
        .points
        .iter_mut()
        .filter_map(|(_, size)| size.as_mut())
        .for_each(|size| *size /= 1024.0 * 1024.0);
    chart.draw()
}
