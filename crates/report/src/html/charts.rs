//! Charts over time.

use super::chart::{Chart, RenderedChart, Series, XAxis};
use crate::device::DeviceFacts;
use crate::facts::{RunFacts, SideFacts};
use crate::series::SeriesPoint;

/// Lines of one chart over time: name in the legend, name of the figure.
type Columns<'a> = &'a [(&'a str, &'a str)];

/// A chart over time.
fn over_time(side: &SideFacts, base: Chart, columns: Columns<'_>) -> Chart {
    let points = with_gaps(&side.series);
    let (x_axis, unit_s) = XAxis::time(points.last().map_or(0.0, |(at, _)| *at));
    let line = |&(name, figure): &(&str, &str)| {
        let values =
            points.iter().map(|(at, point)| (at / unit_s, point.and_then(|point| point.get(figure))));
        Series::line(name, values.collect())
    };
    Chart { series: columns.iter().map(line).collect(), marks: marks(side, unit_s), x_axis, ..base }
}

/// Phase boundaries in units of `unit_s` seconds.
pub(super) fn marks(side: &SideFacts, unit_s: f64) -> Vec<f64> {
    side.phases
        .iter()
        .filter_map(|phase| phase.begin_s)
        .filter(|at| *at > 0.0)
        .map(|at| at / unit_s)
        .collect()
}

/// The points, with an empty one where intervals are missing, so that lines have gaps there.
fn with_gaps(series: &[SeriesPoint]) -> Vec<(f64, Option<&SeriesPoint>)> {
    let step = series.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::MAX, f64::min);
    let mut out: Vec<(f64, Option<&SeriesPoint>)> = Vec::with_capacity(series.len());
    for point in series {
        if out.last().is_some_and(|(at, _)| point.at_s - at > 1.5 * step) {
            out.push((point.at_s - step, None));
        }
        out.push((point.at_s, Some(point)));
    }
    out
}

pub(super) fn chart(id: &str, title: &str, y_title: &str, about: &str) -> Chart {
    Chart::new(id, title, y_title).about(about)
}

/// Adds lines of the server side at the times of the main side.
fn with_servers(facts: &RunFacts, mut chart: Chart, columns: Columns<'_>) -> Chart {
    let (Some(server), true) = (&facts.server, facts.client.is_some()) else { return chart };
    let at = |at_s: f64| server.series.iter().find(|point| (point.at_s - at_s).abs() < 0.01);
    let times: Vec<(f64, f64)> = with_gaps(&facts.main_side().series)
        .iter()
        .zip(&chart.series[0].points)
        .map(|((at_s, _), (x, _))| (*at_s, *x))
        .collect();
    for &(name, figure) in columns {
        let points = times.iter().map(|&(at_s, x)| (x, at(at_s).and_then(|point| point.get(figure))));
        chart.series.push(Series::line(name, points.collect()));
    }
    chart
}

pub fn load(facts: &RunFacts) -> Option<RenderedChart> {
    let base = chart(
        "fig-load",
        "Offered load and replies",
        "per second",
        "Transactions started, finished and succeeded per second, and requests that reached the servers.",
    );
    let chart = over_time(
        facts.main_side(),
        base,
        &[("offered", "baseline.req.rate"), ("finished", "baseline.rep.rate"), ("succeeded", "ok_xact.rate")],
    );
    with_servers(facts, chart, &[("at the servers", "baseline.rep.rate")]).draw()
}

/// The run in one low chart for the first screen: offered, successful and failed transactions.
pub fn overview(facts: &RunFacts) -> Option<RenderedChart> {
    let base = chart(
        "fig-overview",
        "Load over time",
        "per second",
        "Transactions started, succeeded and failed per second, over the whole run.",
    );
    let columns: Columns<'_> = &[("offered", "baseline.req.rate"), ("succeeded", "ok_xact.rate")];
    let side = facts.main_side();
    let mut chart = over_time(side, base, columns).high(190.0);
    let failed = |point: Option<&SeriesPoint>| {
        point.and_then(|point| Some(point.get("err_xact.count")? / point.seconds.max(f64::MIN_POSITIVE)))
    };
    let rates: Vec<Option<f64>> = with_gaps(&side.series).iter().map(|(_, point)| failed(*point)).collect();
    if rates.iter().flatten().any(|rate| *rate > 0.0) {
        let times: Vec<f64> = chart.series[0].points.iter().map(|(x, _)| *x).collect();
        chart.series.push(Series::line("failed", times.into_iter().zip(rates).collect()).styled(11));
    }
    chart.draw()
}

/// Charts with more lines cannot be read.
const MAX_LINES: usize = 8;

/// Requests per second at each server; `None` for one server or very many.
pub fn servers(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.server.as_ref()?;
    let servers: Vec<&str> = side.total.as_ref()?.block.servers.iter().map(|(address, _)| address).collect();
    if !(2..=MAX_LINES).contains(&servers.len()) {
        return None;
    }
    let base = chart(
        "fig-servers",
        "Requests by server over time",
        "per second",
        "Requests of robots that arrived at each server. A server that ended or got no requests is at 0.",
    );
    let points = with_gaps(&side.series);
    let (x_axis, unit_s) = XAxis::time(points.last().map_or(0.0, |(at, _)| *at));
    let line = |address: &&str| {
        let rate = |point: &SeriesPoint| {
            point.servers.get(address).map_or(0, |stats| stats.requests) as f64 / point.seconds
        };
        Series::line(*address, points.iter().map(|(at, point)| (at / unit_s, point.map(rate))).collect())
    };
    let series = servers.iter().map(line).collect();
    Chart { series, marks: marks(side, unit_s), x_axis, ..base }.draw()
}

pub fn bandwidth(facts: &RunFacts) -> Option<RenderedChart> {
    let base = chart(
        "fig-bandwidth",
        "Bandwidth",
        "Mbit/s",
        "Headers and bodies of successful transactions. The difference between the replies that robots received and those that servers sent is what the device saved.",
    );
    let chart = over_time(facts.main_side(), base, &[("replies", "rep.bwidth"), ("requests", "req.bwidth")]);
    with_servers(facts, chart, &[("replies of servers", "rep.bwidth")]).log_if_wide().draw()
}

/// Leaves out the median: with a hit ratio near 50 % it jumps between the response times of hits and of misses.
pub fn response_time(facts: &RunFacts) -> Option<RenderedChart> {
    over_time(
        facts.main_side(),
        chart(
            "fig-rptm",
            "Response time over time",
            "ms",
            "Mean and percentiles of all successful transactions, measured from the actual start of each request.",
        ),
        &[("mean", "baseline.rptm.mean"), ("p95", "baseline.rptm.p95"), ("p99", "baseline.rptm.p99")],
    )
    .log_if_wide()
    .draw()
}

pub fn response_time_by_class(facts: &RunFacts) -> Option<RenderedChart> {
    facts.client.as_ref()?;
    over_time(
        facts.main_side(),
        chart(
            "fig-rptm-class",
            "Mean response time of hits and misses",
            "ms",
            "Hits show the speed of the device; misses show that of the device, the network and the servers together.",
        ),
        &[
            ("hits", "hit.rptm.mean"),
            ("cachable misses", "fill.rptm.mean"),
            ("uncachable", "uncachable.rptm.mean"),
            ("validations", "ims.rptm.mean"),
        ],
    )
    .log_if_wide()
    .draw()
}

/// Hit ratio over time, of documents or of bytes.
pub fn hit_ratio(facts: &RunFacts, bytes: bool) -> Option<RenderedChart> {
    let side = facts.client.as_ref()?;
    let (id, title, columns, served): (_, _, Columns<'_>, _) = if bytes {
        (
            "fig-hits-bytes",
            "Byte hit ratio over time",
            &[("measured", "hit.ratio.byte"), ("ideal", "offered.hit.ratio.byte")],
            "rep.bwidth",
        )
    } else {
        (
            "fig-hits",
            "Document hit ratio over time",
            &[("measured", "hit.ratio.obj"), ("ideal", "offered.hit.ratio.obj")],
            "ok_xact.rate",
        )
    };
    let base = chart(
        id,
        title,
        "%",
        "Measured: from header fields that the benchmark adds. Ideal: a cache that keeps everything. Clients minus \
         servers: from the counts of both sides, which include prefetching and validations by the device.",
    );
    let chart = with_servers(facts, over_time(side, base, columns), &[("clients minus servers", served)]);
    both_sides(side, chart, served).up_to(100.0).draw()
}

/// Replaces the rates of the servers, the last series, by the share of the clients' rates that the device saved.
fn both_sides(side: &SideFacts, mut chart: Chart, served: &str) -> Chart {
    let points = with_gaps(&side.series);
    if let Some(last) = chart.series.get_mut(2) {
        for ((_, given), (_, point)) in last.points.iter_mut().zip(points) {
            let got = point.and_then(|point| point.get(served)).filter(|got| *got > 0.0);
            *given = given.zip(got).map(|(given, got)| (100.0 * (got - given) / got).max(0.0));
        }
    }
    chart
}

pub fn levels(facts: &RunFacts) -> Option<RenderedChart> {
    over_time(
        facts.main_side(),
        chart(
            "fig-levels",
            "Open connections and concurrent transactions",
            "concurrent",
            "Mean numbers of open connections, of transactions in progress, and of transactions that wait for a connection.",
        ),
        &[
            ("open connections", "conn.open.level.mean"),
            ("transactions", "xact.level.mean"),
            ("waiting", "wait.level.mean"),
        ],
    )
    .draw()
}

pub fn reuse(facts: &RunFacts) -> Option<RenderedChart> {
    let base = chart(
        "fig-reuse",
        "Transactions per closed connection",
        "transactions",
        "Number of transactions on a connection by the time it was closed, on both sides of the device.",
    );
    let chart = over_time(facts.main_side(), base, &[("robots", "conn.use.mean")]);
    with_servers(facts, chart, &[("servers", "conn.use.mean")]).draw()
}

pub fn errors(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.main_side();
    let any = side.series.iter().any(|point| point.get("err_xact.count").unwrap_or(0.0) > 0.0);
    let base = chart(
        "fig-errors",
        "Failed transactions over time",
        "per interval",
        "Number of transactions that failed in each interval.",
    );
    any.then(|| over_time(side, base, &[("failed", "err_xact.count")]).draw()).flatten()
}

pub fn busy(facts: &RunFacts) -> Option<RenderedChart> {
    let base = chart(
        "fig-busy",
        "Load of the busiest event loop",
        "%",
        "Share of the time in which the busiest event loop of the bench was working. Above 90 % the run is INVALID.",
    );
    let mut chart = over_time(facts.main_side(), base.up_to(100.0), &[("client", "cpu.busiest.share")]);
    chart.series[0].name = facts.main_side().side.name().to_owned();
    with_servers(facts, chart, &[("server", "cpu.busiest.share")]).draw()
}

/// In microseconds if all requests started on time.
pub fn lateness(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.client.as_ref()?;
    let base = chart(
        "fig-late",
        "Lateness of requests",
        "ms",
        "The 99th percentile of the delay between the scheduled and the actual start of a request, by interval.",
    );
    let mut chart = over_time(side, base, &[("p99", "late.p99")]);
    let late = &mut chart.series[0].points;
    if late.iter().filter_map(|(_, ms)| *ms).all(|ms| ms < 5.0) {
        late.iter_mut().filter_map(|(_, ms)| ms.as_mut()).for_each(|ms| *ms *= 1000.0);
        chart.y_title = "µs".to_owned();
    }
    chart.draw()
}

pub fn memory(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.main_side();
    let base = chart(
        "fig-memory",
        "Memory of the load generator",
        "MB",
        "Resident memory of all processes of the load generator.",
    );
    let mut chart = over_time(side, base, &[("resident", "rss.size")]);
    chart.series[0]
        .points
        .iter_mut()
        .filter_map(|(_, size)| size.as_mut())
        .for_each(|size| *size /= 1024.0 * 1024.0);
    chart.draw()
}

/// Processor time and memory of the device.
pub fn device(facts: &RunFacts, device: &DeviceFacts) -> [Option<RenderedChart>; 2] {
    let (x_axis, unit_s) = XAxis::time(device.usage.last().map_or(0.0, |sample| sample.at_s));
    let figure = |base: Chart, name: &str, points: Vec<(f64, Option<f64>)>| {
        let marks = marks(facts.main_side(), unit_s);
        Chart { marks, x_axis: x_axis.clone(), ..base }.with(Series::line(name, points)).draw()
    };
    let cpu = device.usage.windows(2).map(|pair| {
        let share = (pair[1].cpu_s - pair[0].cpu_s) / (pair[1].at_s - pair[0].at_s);
        // The counter of a restarted device starts at 0 again.
        (pair[1].at_s / unit_s, Some(100.0 * share).filter(|share| *share >= 0.0))
    });
    let memory = device.usage.iter();
    let memory = memory.map(|sample| (sample.at_s / unit_s, Some(sample.resident_bytes / (1024.0 * 1024.0))));
    [
        figure(
            chart(
                "fig-device-cpu",
                "Processor time of the device",
                "% of a core",
                "User and system time of all processes of the device; 100 % is one core.",
            ),
            "processor",
            cpu.collect(),
        ),
        figure(
            chart(
                "fig-device-memory",
                "Memory of the device",
                "MB",
                "Resident memory of all processes of the device; shared memory counts for each of them. Of the built-in proxy: its stored replies.",
            ),
            "resident",
            memory.collect(),
        ),
    ]
}
