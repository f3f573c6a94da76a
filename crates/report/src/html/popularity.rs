//! Popularity of objects by rank, as in figure 3.1 of the bake-off report of 1999, and as a table.

use super::Extras;
use super::chart::{Chart, RenderedChart, Series, XAxis};
use super::table::{Table, columns, row};
use crate::facts::RunFacts;
use crate::popularity::Curve;
use crate::text::number;

/// A chart of requests over rank, beside two distributions with as many requests and objects, and further curves.
pub fn figure(chart: Chart, name: &str, curve: &Curve, others: &[(String, &Curve)]) -> Option<RenderedChart> {
    let line = |name: &str, curve: &Curve| {
        Series::line(name, curve.points.iter().map(|&(rank, requests)| (rank, Some(requests))).collect())
    };
    let chart = chart
        .x_axis(XAxis::Log("rank of the object".into()))
        .log()
        .with(line(name, curve))
        .with(line("uniform choice among known objects", &curve.uniform()))
        .with(line("Zipf's law", &curve.zipf()));
    others.iter().fold(chart, |chart, (name, curve)| chart.with(line(name, curve))).draw()
}

/// The trace to compare the run with.
fn trace(extras: &Extras) -> Option<(String, &Curve)> {
    extras.trace.as_ref().map(|(name, curve)| (format!("trace {name}"), curve))
}

/// Popularity of the objects of a run, beside two distributions and a trace.
pub(super) fn of_run(facts: &RunFacts, extras: &Extras) -> Option<RenderedChart> {
    let chart = Chart::new("fig-popularity", "Popularity of objects by rank", "requests").about(
        "Number of requests for each object of the whole run, by rank; rank 1 is the most popular object. The other two curves \
         show how the same number of requests for the same number of objects would be distributed.",
    );
    figure(chart, "this run", &Curve::of_run(facts)?, trace(extras).as_slice())
}

/// How many requests the most popular objects received.
pub(super) fn table(facts: &RunFacts, extras: &Extras) -> Option<Table> {
    let cells = |curve: &Curve| {
        let top = curve.points.first().map(|(_, requests)| *requests);
        let often = |least: f64| {
            let found = curve.points.iter().rfind(|(_, requests)| *requests >= least);
            number(Some(found.map_or(0.0, |(rank, _)| *rank)), 0)
        };
        [
            number(Some(curve.requests), 0),
            number(Some(curve.objects), 0),
            number(Some(curve.requests / curve.objects), 2),
            number(top, 0),
            often(10.0),
            often(100.0),
            often(1000.0),
        ]
    };
    let head = columns(&[
        "",
        "requests",
        "objects",
        "requests per object",
        "requests for the most popular object",
        "objects with 10 or more requests",
        "100 or more",
        "1,000 or more",
    ]);
    let run = row("this run", cells(&Curve::of_run(facts)?));
    let trace = trace(extras).map(|(name, curve)| row(&name, cells(curve)));
    let rows = std::iter::once(run).chain(trace).collect();
    Some(Table::new("Requests and objects, whole run", head, rows))
}
