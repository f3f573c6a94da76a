//! The figures of a bake-off report. Their numbers are those of 1999.

use polygraph_report::html;
use polygraph_report::html::chart::{Bars, Chart, RenderedChart, Series, XAxis};
use polygraph_report::popularity::Curve;

use crate::entry::{Participant, RatePoint};

/// Maximum number of curves in an appendix; more could not be distinguished.
const CURVES: usize = 6;
/// Maximum number of names that fit below bars.
const NAMES: usize = 7;
/// Rates that differ by more than this factor are drawn on a logarithmic axis; on a linear axis, devices with low rates
/// would overlap at the left.
const WIDE: f64 = 40.0;

/// Popularity of objects in a run.
#[derive(Clone, Debug)]
pub struct Popularity {
    /// Name of the run.
    pub name: String,
    /// Requests by rank.
    pub curve: Curve,
}

/// The axis of request rates.
fn rates(entries: &[Participant]) -> XAxis {
    let all = || entries.iter().flat_map(Participant::passed).map(|point| point.rate);
    let title = "requests per second".to_owned();
    match all().fold(0.0, f64::max) > WIDE * all().fold(f64::MAX, f64::min) {
        true => XAxis::Log(title),
        false => XAxis::Linear(title),
    }
}

/// A figure over the request rate with a line for each device; a device with one value is a point.
fn over_rate(
    id: &str,
    title: &str,
    y_title: &str,
    about: &str,
    entries: &[Participant],
    value: impl Fn(&Participant, &RatePoint) -> Option<f64>,
) -> Chart {
    let chart = Chart::new(id, title, y_title).about(about).x_axis(rates(entries));
    entries.iter().enumerate().fold(chart, |chart, (style, entry)| {
        let points: Vec<(f64, Option<f64>)> =
            entry.passed().map(|point| (point.rate, value(entry, point))).collect();
        chart.with(series(entry, points, style))
    })
}

fn series(entry: &Participant, points: Vec<(f64, Option<f64>)>, style: usize) -> Series {
    let known: Vec<(f64, f64)> = points.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect();
    match known.len() {
        0 | 1 => Series::points(&entry.name, known).styled(style),
        _ => Series::marked(&entry.name, points).styled(style),
    }
}

/// Response time against load: figures 5.1 and 5.2, and the figure of the 75th percentile.
pub fn response_times(entries: &[Participant]) -> Vec<RenderedChart> {
    let chart = |id: &str, title: &str, about: &str, value: fn(&RatePoint) -> Option<f64>| {
        over_rate(id, title, "seconds", about, entries, |_, point| value(point)).draw()
    };
    [
        chart(
            "fig-mean",
            "Figure 5.1. Response time: mean",
            "A few very slow replies are enough to raise the mean.",
            |point| Some(point.mean_s?.value),
        ),
        chart(
            "fig-median",
            "Figure 5.2. Response time: median",
            "Half of the replies took no longer. The median is the response time of a hit if the hit ratio is above 50 %, and \
             that of a miss otherwise, so it jumps where the hit ratio crosses 50 %.",
            |point| point.median_s,
        ),
        chart("fig-p75", "Response time: 75th percentile", "Three quarters of the replies took no longer.", |point| point.p75_s),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Figures 5.3 and 5.4: hit ratio against load and against response time.
pub fn hit_ratios(entries: &[Participant]) -> Vec<RenderedChart> {
    let over_load = over_rate(
        "fig-hits",
        "Figure 5.3. Document hit ratio",
        "percent",
        "PolyMix-1 offers 55 %. A lower value means that the device did not store objects, evicted them, or forwarded requests \
         that it could have answered.",
        entries,
        |_, point| Some(point.hit_pct?.value),
    )
    .up_to(60.0)
    .draw();
    let chart = Chart::new("fig-hits-rptm", "Figure 5.4. Document hit ratio against mean response time", "percent")
        .about("Each point is a run; points further up and to the left are better. The points of a device show whether it \
                sacrifices response time or hit ratio first as the load rises.")
        .x_axis(XAxis::Linear("mean response time, seconds".into()))
        .up_to(60.0);
    let both = entries.iter().enumerate().fold(chart, |chart, (style, entry)| {
        let points = entry.passed().filter_map(|point| Some((point.mean_s?.value, point.hit_pct?.value)));
        chart.with(Series::points(&entry.name, points.collect::<Vec<_>>()).styled(style))
    });
    [over_load, both.draw()].into_iter().flatten().collect()
}

/// Figures 5.5 and 5.6: throughput cost against load and utilisation.
pub fn costs(entries: &[Participant]) -> Vec<RenderedChart> {
    let over_load = over_rate(
        "fig-cost",
        "Figure 5.5. Throughput cost",
        "dollars per request per second",
        "Total price divided by request rate. The lower the curve, the more throughput one device provides for its price.",
        entries,
        |entry, point| entry.cost(point.rate),
    )
    .log_if_wide();
    let chart = Chart::new("fig-cost-use", "Figure 5.6. Throughput cost against utilisation", "dollars per request per second")
        .about("Throughput cost against request rate as a share of the achieved peak: the cost of throughput at partial load.")
        .x_axis(XAxis::Linear("percent of the achieved peak".into()));
    let over_use = entries.iter().enumerate().fold(chart, |chart, (style, entry)| {
        let points = entry
            .passed()
            .filter_map(|point| Some((100.0 * entry.utilisation(point.rate)?, entry.cost(point.rate))))
            .collect();
        chart.with(series(entry, points, style))
    });
    [over_load.draw(), over_use.log_if_wide().draw()].into_iter().flatten().collect()
}

/// Popularity of the workload's objects.
pub fn popularity(popularity: &Popularity) -> Option<RenderedChart> {
    let chart = Chart::new("fig-popularity", "Figure 3.1. Popularity of objects by rank", "requests").about(
        "Number of requests for each object, by rank; rank 1 is the most popular object. The other two curves show how the \
         same number of requests for the same number of objects would be distributed. Requests do not depend on the device, so \
         one run represents all runs at its rate.",
    );
    html::popularity::figure(chart, &popularity.name, &popularity.curve, &[])
}

/// Claimed and achieved peaks side by side.
pub fn peaks(entries: &[Participant]) -> Option<RenderedChart> {
    let claiming: Vec<&Participant> =
        entries.iter().filter(|entry| entry.claimed.is_some() && !entry.points.is_empty()).collect();
    let short = claiming.len() > NAMES;
    let name = |entry: &&Participant| if short { entry.appendix.clone() } else { entry.name.clone() };
    Bars {
        id: "fig-peaks".into(),
        title: "Peak throughput, achieved and claimed".into(),
        about: format!(
            "The highest rate that each device sustained, and the rate that its participant claimed{}.",
            if short { "; devices are named by appendix" } else { "" }
        ),
        of: "Box".into(),
        y_title: "requests per second".into(),
        categories: claiming.iter().map(name).collect(),
        groups: vec![
            ("achieved".into(), claiming.iter().map(|entry| entry.achieved()).collect()),
            ("claimed".into(), claiming.iter().map(|entry| entry.claimed).collect()),
        ],
    }
    .draw()
}

/// The figures of an appendix: response times and hit ratios against load, and distributions.
pub fn of_device(entry: &Participant, id: &str) -> Vec<RenderedChart> {
    let line = |name: &str, value: fn(&RatePoint) -> Option<f64>| {
        Series::marked(name, entry.passed().map(|point| (point.rate, value(point))).collect())
    };
    let times = Chart::new(format!("{id}-times"), format!("{}: response time", entry.name), "seconds")
        .about("Mean, median and 75th percentile.")
        .x_axis(XAxis::Linear("requests per second".into()))
        .with(line("mean", |point| Some(point.mean_s?.value)))
        .with(line("median", |point| point.median_s))
        .with(line("75 %", |point| point.p75_s));
    let hits = Chart::new(format!("{id}-hits"), format!("{}: document hit ratio", entry.name), "percent")
        .about("PolyMix-1 offers 55 %.")
        .x_axis(XAxis::Linear("requests per second".into()))
        .up_to(60.0)
        .with(line("hit ratio", |point| Some(point.hit_pct?.value)));
    let curves: Vec<&RatePoint> = entry.passed().filter(|point| !point.curve.is_empty()).collect();
    let every = curves.len().div_ceil(CURVES).max(1);
    let chart = Chart::new(format!("{id}-curves"), format!("{}: distribution of response times", entry.name), "percent of replies")
        .about("Share of the replies that took no longer than a given time, for several request rates. The step on the left \
                consists of hits, the slope on the right of misses.")
        .x_axis(XAxis::Linear("seconds".into()))
        .up_to(100.0);
    let curves = curves.iter().step_by(every).fold(chart, |chart, point| {
        let points = point.curve.iter().map(|(time, share)| (*time, Some(100.0 * share))).collect();
        chart.with(Series::line(format!("{} req/s", point.rate), points))
    });
    [times.draw(), hits.draw(), curves.draw()].into_iter().flatten().collect()
}
