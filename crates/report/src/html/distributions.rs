//! Charts of distributions: response times, loads, kinds of content.

use polygraph_stats::{Class, Histogram};

use super::chart::{Bars, HeatMap, RenderedChart, Series, XAxis, share_of_nines};
use super::charts::{chart, marks};
use crate::facts::RunFacts;
use crate::series::{SeriesPoint, bin_edges_ms};

/// Largest number of columns of a heat map; more would be too narrow to see.
const COLUMNS_MAX: usize = 150;

/// A line of response times in milliseconds over shares of values.
fn quantiles(name: &str, hist: &Histogram, x: &[f64], share: impl Fn(f64) -> f64) -> Series {
    Series::line(name, x.iter().map(|&x| (x, hist.quantile(share(x)).map(|us| us as f64 * 1e-3))).collect())
}

pub fn response_times(facts: &RunFacts) -> Option<RenderedChart> {
    let scope = &facts.headline.as_ref()?.scope;
    let percent: Vec<f64> = (0..=200).map(|i| f64::from(i) / 2.0).collect();
    let line = |name: &str, hist: &Histogram| quantiles(name, hist, &percent, |p| p / 100.0);
    let of = |name: &str, class: Class| line(name, &scope.block.class(class).rptm_us);
    let mut chart = chart(
        "fig-distribution",
        "Distribution of response times",
        "ms",
        "For each share of the replies of the primary phase, the response time that this share did not exceed.",
    )
    .x_axis(XAxis::Percent)
    .with(line("all", scope.rptm_us()));
    if facts.client.is_some() {
        let mut validations = scope.block.class(Class::Ims200).rptm_us.clone();
        validations.merge(&scope.block.class(Class::Ims304).rptm_us);
        chart = chart
            .with(of("hits", Class::Hit))
            .with(of("cachable misses", Class::Miss))
            .with(of("uncachable", Class::Uncachable))
            .with(line("validations", &validations));
    }
    chart.log_if_wide().draw()
}

pub fn percentiles(facts: &RunFacts) -> Option<RenderedChart> {
    let scope = &facts.headline.as_ref()?.scope;
    let count = scope.rptm_us().count();
    // A percentile needs at least one value above it to be more than the maximum.
    let nines = ((count as f64).log10() * 20.0).floor().clamp(0.0, 100.0) as u32;
    let x: Vec<f64> = (0..=nines).map(|i| f64::from(i) / 20.0).collect();
    let line = |name: &str, hist: &Histogram| quantiles(name, hist, &x, share_of_nines);
    chart(
        "fig-percentiles",
        "High percentiles of response time",
        "ms",
        "The slowest replies of the primary phase: each step to the right leaves a tenth of the replies. Where the two \
         lines differ, the bench was late.",
    )
    .x_axis(XAxis::Nines)
    .with(line("from the actual start", scope.rptm_us()))
    .with(line("from the scheduled start", scope.due_rptm_us()))
    .log_if_wide()
    .draw()
}

/// Heat map of all response times over time.
pub fn heat(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.main_side();
    let (first, last) = (side.series.first()?, side.series.last()?);
    let step = side.series.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::MAX, f64::min);
    let begin = first.at_s - step / 2.0;
    // Columns are whole numbers of windows.
    let windows = ((last.at_s - first.at_s) / step).round() as usize + 1;
    let width = step * windows.div_ceil(COLUMNS_MAX) as f64;
    let mut columns = vec![Vec::new(); windows.div_ceil(windows.div_ceil(COLUMNS_MAX))];
    for point in &side.series {
        let column: &mut Vec<u64> = columns.get_mut(((point.at_s - begin) / width) as usize)?;
        column.resize(point.heat.len(), 0);
        column.iter_mut().zip(&point.heat).for_each(|(sum, count)| *sum += count);
    }
    let (x_axis, unit_s) = XAxis::time(last.at_s);
    HeatMap {
        id: "fig-heat".into(),
        title: "All response times over time".into(),
        about: "Each column is an interval, each cell a range of response times (eight ranges per decade). The shade is the share \
                of the successful transactions of the interval in that range. Unlike a mean, the chart shows hits and misses \
                as separate bands."
            .into(),
        x_axis,
        y_title: "ms".into(),
        starts: (0..columns.len()).map(|i| (begin + i as f64 * width) / unit_s).collect(),
        width: width / unit_s,
        edges: bin_edges_ms(),
        columns,
        marks: marks(side, unit_s),
    }
    .draw()
}

/// Response time against load: where a device cannot keep up, the points turn upwards.
pub fn knee(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.main_side();
    let headline = facts.headline.as_ref()?;
    let inside = |point: &SeriesPoint| point.at_s >= headline.begin_s && point.at_s < headline.end_s;
    let pair = |point: &SeriesPoint| Some((point.get("ok_xact.rate")?, point.get("baseline.rptm.mean")?));
    let points = |primary: bool| {
        let wanted = side.series.iter().filter(move |point| inside(point) == primary);
        wanted.filter_map(pair).collect::<Vec<_>>()
    };
    chart(
        "fig-knee",
        "Response time against load",
        "ms",
        "Each point is an interval: replies per second and their mean response time. Where the points turn upwards, the device \
         cannot keep up.",
    )
    .x_axis(XAxis::Linear("replies per second".into()))
    .with(Series::points("primary phase", points(true)))
    .with(Series::points("other phases", points(false)))
    .log_if_wide()
    .draw()
}

/// Hit ratios of kinds of content.
pub fn contents(facts: &RunFacts) -> Option<RenderedChart> {
    facts.client.as_ref()?;
    let scope = &facts.headline.as_ref()?.scope;
    let names = &facts.main_side().header().contents;
    let (mut categories, mut offered, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for (name, kind) in names.iter().zip(&scope.block.kinds).filter(|(_, kind)| kind.basic.count > 0) {
        let percent = |count: u64| Some(100.0 * count as f64 / kind.basic.count as f64);
        categories.push(name.clone());
        offered.push(percent(kind.offered_hits.count));
        measured.push(percent(kind.hits.count));
    }
    Bars {
        id: "fig-contents".into(),
        title: "Hit ratio by kind of content".into(),
        about: "Document hit ratio of plain requests in the primary phase, for each kind of content.".into(),
        of: "content".into(),
        y_title: "%".into(),
        categories,
        groups: vec![("offered".into(), offered), ("measured".into(), measured)],
    }
    .draw()
}

/// Response times by phase.
pub fn phases(facts: &RunFacts) -> Option<RenderedChart> {
    let side = facts.main_side();
    let measured: Vec<_> = side.phases.iter().filter_map(|p| Some((p, p.scope.as_ref()?))).collect();
    if measured.len() < 2 {
        return None;
    }
    let times =
        |figure: &str| measured.iter().map(|(_, scope)| crate::figures::value(figure, scope)).collect();
    Bars {
        id: "fig-phases".into(),
        title: "Response time by phase".into(),
        about: "Mean, median and 95th percentile of the response times of each phase.".into(),
        of: "phase".into(),
        y_title: "ms".into(),
        categories: measured.iter().map(|(phase, _)| phase.name.clone()).collect(),
        groups: vec![
            ("mean".into(), times("resp_tm_mean")),
            ("p50".into(), times("resp_tm_p50")),
            ("p95".into(), times("resp_tm_p95")),
        ],
    }
    .draw()
}
