//! The page of a search for the peak: response time and throughput over the rate, and all runs.

use super::chart::{Chart, RenderedChart, Series, XAxis};
use super::page::{Banner, Page, Part, Section, Tile, Tone};
use super::table::{Mark, Table, columns};
use crate::peak::{PeakCriteria, PeakStatus, RateMeasurement, TimeLimit};
use crate::text;

/// A search for a peak.
#[derive(Clone, Debug)]
pub struct PeakReport {
    /// Title of the page: workload and device.
    pub title: String,
    /// Number of runs and their duration.
    pub subtitle: String,
    /// Whether and how the search ended.
    pub status: PeakStatus,
    /// The result in a sentence, without the status.
    pub conclusion: String,
    /// What to do next, if there is something to do.
    pub next: Option<String>,
    /// The highest sustained rate, in requests per second.
    pub held: Option<f64>,
    /// The lowest rate that was not sustained, in requests per second.
    pub failed: Option<f64>,
    /// When a rate counts as sustained.
    pub criteria: PeakCriteria,
    /// Figures at low load; limits are multiples of them.
    pub low: Option<RateMeasurement>,
    /// The runs in order.
    pub runs: Vec<PeakRun>,
    /// The command line.
    pub command: String,
}

/// A run of the search.
#[derive(Clone, Debug)]
pub struct PeakRun {
    /// Offered rate in requests per second.
    pub rate: f64,
    /// Why the search chose this rate, in a word.
    pub why: String,
    /// Whether the device sustained the rate; `None` if the bench was the limit.
    pub held: Option<bool>,
    /// Why the device did not sustain the rate, or why the bench was the limit.
    pub reasons: Vec<String>,
    /// The measured figures.
    pub measured: RateMeasurement,
    /// The result directory.
    pub directory: String,
}

/// The page of a search.
pub fn html(report: &PeakReport) -> String {
    let page = Page {
        title: report.title.clone(),
        subtitle: report.subtitle.clone(),
        banner: Some(Banner {
            word: report.status.word().to_owned(),
            meaning: report.conclusion.clone(),
            tone: match report.status {
                PeakStatus::Found => Tone::Good,
                PeakStatus::Nothing => Tone::Bad,
                _ => Tone::Doubtful,
            },
            reasons: report.next.iter().cloned().collect(),
            remedy: None,
            warnings: Vec::new(),
        }),
        tiles: tiles(report),
        lead: "The search offered each rate in separate runs. The peak is the highest rate that the device sustained in most \
               of its runs, and in most runs of every lower rate."
            .to_owned(),
        sections: sections(report),
        footer: format!("{} · {}", report.title, report.subtitle),
        ..Page::default()
    };
    page.html()
}

fn tiles(report: &PeakReport) -> Vec<Tile> {
    let at = |rate: Option<f64>| rate.map(|rate| mean_at(report, rate));
    let tile = |name: &str, value: String, unit: &str, more: String| Tile {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        more,
        ..Tile::default()
    };
    let figure = |pick: fn(&RateMeasurement) -> Option<f64>| at(report.held).and_then(|run| pick(&run));
    let may_be_higher = report.failed.is_none() || report.status == PeakStatus::BenchLimit;
    vec![
        tile(
            if may_be_higher { "Peak, at least" } else { "Peak" },
            text::short(report.held),
            "requests/s",
            match (report.failed, report.status) {
                (Some(failed), PeakStatus::BenchLimit) => {
                    format!("limit of the bench at {}/s", text::short(Some(failed)))
                }
                (Some(failed), _) => format!("not sustained at {}/s", text::short(Some(failed))),
                (None, _) => "all rates sustained".to_owned(),
            },
        ),
        tile(
            "Mean response time at the peak",
            text::short(figure(|run| run.mean_ms)),
            "ms",
            format!("{} at low load", text::ms(report.low.as_ref().and_then(|low| low.mean_ms))),
        ),
        tile(
            "Document hit ratio at the peak",
            text::number(figure(|run| run.dhr), 1),
            "%",
            format!("{} % offered", text::number(figure(|run| run.offered_dhr), 1)),
        ),
        tile(
            "Errors at the peak",
            text::number(figure(|run| run.errors), 2),
            "%",
            "of all transactions".to_owned(),
        ),
    ]
}

fn sections(report: &PeakReport) -> Vec<Section> {
    let knee = Section::new(
        "knee",
        "Figures by rate",
        "Lines connect the means of all runs at a rate. Runs in which the bench was the limit are not included.",
    );
    let charts = [response_time(report), throughput(report), hits(report), errors(report)];
    let runs = Section::new("runs", "Runs", "All runs in order; each has a report in its directory.");
    let against: Vec<String> = report
        .runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| run.reasons.iter().map(move |reason| format!("run {}: {reason}", at + 1)))
        .collect();
    let mut parts = vec![Part::Table(table(report))];
    if !against.is_empty() {
        parts.push(Part::Heading("Why runs did not count or failed".to_owned()));
        parts.push(Part::Notes(against));
    }
    let rules = Section::new(
        "criteria",
        "When a rate counts as sustained",
        "All of these conditions, and a verdict other than FAILED.",
    );
    vec![
        knee.with(charts.into_iter().flatten()),
        runs.with(parts),
        rules.with([Part::Pairs(criteria(report)), Part::Code(report.command.clone())]),
    ]
}

/// Rates in ascending order with the mean figures of each.
fn curve(report: &PeakReport) -> Vec<(f64, RateMeasurement)> {
    let mut rates: Vec<f64> =
        report.runs.iter().filter(|run| run.held.is_some()).map(|run| run.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates.into_iter().map(|rate| (rate, mean_at(report, rate))).collect()
}

/// The means of all runs at a rate.
fn mean_at(report: &PeakReport, rate: f64) -> RateMeasurement {
    let runs: Vec<&RateMeasurement> = report
        .runs
        .iter()
        .filter(|run| run.rate == rate && run.held.is_some())
        .map(|run| &run.measured)
        .collect();
    let mean = |pick: fn(&RateMeasurement) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| pick(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    RateMeasurement {
        offered: mean(|run| run.offered),
        measured: mean(|run| run.measured),
        mean_ms: mean(|run| run.mean_ms),
        p95_ms: mean(|run| run.p95_ms),
        max_ms: mean(|run| run.max_ms),
        dhr: mean(|run| run.dhr),
        offered_dhr: mean(|run| run.offered_dhr),
        errors: mean(|run| run.errors),
        ended: runs.iter().map(|run| run.ended).sum(),
        seconds: runs.iter().map(|run| run.seconds).sum(),
    }
}

fn chart(id: &str, title: &str, y_title: &str, about: &str) -> Chart {
    Chart::new(id, title, y_title).about(about).x_axis(XAxis::Linear("offered rate, requests/s".to_owned()))
}

fn line(report: &PeakReport, name: &str, pick: fn(&RateMeasurement) -> Option<f64>) -> Series {
    Series::marked(name, curve(report).iter().map(|(rate, run)| (*rate, pick(run))).collect())
}

fn response_time(report: &PeakReport) -> Option<RenderedChart> {
    let runs = |name: &str, held: bool| {
        let runs = report.runs.iter().filter(move |run| run.held == Some(held));
        Series::points(name, runs.filter_map(|run| Some((run.rate, run.measured.mean_ms?))))
    };
    let mut chart = chart(
        "fig-knee",
        "Response time by rate",
        "ms",
        "Mean and 95th percentile of all successful transactions. Points are the means of single runs.",
    )
    .with(line(report, "mean", |run| run.mean_ms))
    .with(line(report, "p95", |run| run.p95_ms))
    .with(runs("runs sustained", true))
    .with(runs("runs failed", false));
    let low = report.low.as_ref().and_then(|low| low.mean_ms);
    let ends = curve(report);
    if let (Some(limit), Some((first, _)), Some((last, _))) =
        (report.criteria.mean.and_then(|limit| limit.at(low)), ends.first(), ends.last())
    {
        chart =
            chart.with(Series::line("limit of the mean", vec![(*first, Some(limit)), (*last, Some(limit))]));
    }
    chart.log().draw()
}

fn throughput(report: &PeakReport) -> Option<RenderedChart> {
    let about = "If fewer transactions finish than start, the device does not keep up.";
    chart("fig-throughput", "Throughput by rate", "per second", about)
        .with(line(report, "started", |run| run.offered))
        .with(line(report, "finished", |run| run.measured))
        .draw()
}

fn hits(report: &PeakReport) -> Option<RenderedChart> {
    let about = "Document hit ratios: offered by the robots, and measured.";
    chart("fig-hits", "Hit ratio by rate", "%", about)
        .up_to(100.0)
        .with(line(report, "offered", |run| run.offered_dhr))
        .with(line(report, "measured", |run| run.dhr))
        .draw()
}

fn errors(report: &PeakReport) -> Option<RenderedChart> {
    let any = report.runs.iter().any(|run| run.measured.errors.is_some_and(|errors| errors > 0.0));
    let chart = chart("fig-errors", "Errors by rate", "%", "Share of the transactions that failed.");
    any.then(|| chart.with(line(report, "failed", |run| run.errors)).draw()).flatten()
}

fn table(report: &PeakReport) -> Table {
    let head = [
        "run",
        "why",
        "rate, /s",
        "device",
        "started, /s",
        "finished, /s",
        "mean, ms",
        "p95, ms",
        "document hit ratio, %",
        "offered, %",
        "errors, %",
        "directory",
    ];
    let rows = report.runs.iter().enumerate().map(|(at, run)| {
        let figures = &run.measured;
        let word = match run.held {
            Some(true) => "sustained",
            Some(false) => "failed",
            None => text::UNDEFINED,
        };
        vec![
            (at + 1).to_string(),
            run.why.clone(),
            text::short(Some(run.rate)),
            word.to_owned(),
            text::number(figures.offered, 1),
            text::number(figures.measured, 1),
            text::number(figures.mean_ms, 1),
            text::number(figures.p95_ms, 1),
            text::number(figures.dhr, 1),
            text::number(figures.offered_dhr, 1),
            text::number(figures.errors, 2),
            run.directory.clone(),
        ]
    });
    let mut table = Table::new("Runs of the search", columns(&head), rows.collect());
    let peak = report.runs.iter().enumerate().filter(|(_, run)| Some(run.rate) == report.held);
    table.marks = peak.map(|(at, _)| (at, 2, Mark::Best)).collect();
    table
}

fn criteria(report: &PeakReport) -> Vec<(String, String)> {
    let PeakCriteria { errors, rate_gap, mean, p95, dhr_gap } = report.criteria;
    let low = |pick: fn(&RateMeasurement) -> Option<f64>| report.low.as_ref().and_then(pick);
    let limit = |limit: Option<TimeLimit>, low_ms: Option<f64>| match limit {
        None => "no limit".to_owned(),
        Some(limit) => {
            let from = match (limit.factor, low_ms) {
                (0.0, _) | (_, None) => String::new(),
                (factor, Some(low)) => {
                    format!(
                        " ({factor} times {} at low load, and {})",
                        text::ms(Some(low)),
                        text::ms(Some(limit.more_ms))
                    )
                }
            };
            format!("at most {}{from}", text::ms(limit.at(low_ms)))
        }
    };
    let percent = |share: f64| text::number(Some(share * 100.0), 1);
    let pair = |name: &str, value: String| (name.to_owned(), value);
    vec![
        pair("errors", format!("at most {} % of the transactions", percent(errors))),
        pair("throughput", format!("at most {} % fewer finished than started", percent(rate_gap))),
        pair("mean response time", limit(mean, low(|low| low.mean_ms))),
        pair("p95 of the response time", limit(p95, low(|low| low.p95_ms))),
        pair(
            "document hit ratio",
            dhr_gap.map_or("no limit".to_owned(), |gap| {
                format!("at most {} points below what is offered", percent(gap))
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> PeakReport {
        let run = |rate: f64, held, mean: f64| PeakRun {
            rate,
            why: "bisect".to_owned(),
            held,
            reasons: if held == Some(true) { Vec::new() } else { vec!["a <reason>".to_owned()] },
            measured: RateMeasurement {
                offered: Some(rate),
                measured: Some(rate.min(190.0)),
                mean_ms: Some(mean),
                p95_ms: Some(2.0 * mean),
                max_ms: Some(3.0 * mean),
                dhr: Some(54.0),
                offered_dhr: Some(55.0),
                errors: Some(0.0),
                ended: 1000,
                seconds: 60.0,
            },
            directory: format!("step-{rate}"),
        };
        let runs = vec![
            run(50.0, Some(true), 1000.0),
            run(200.0, Some(false), 9000.0),
            run(100.0, Some(true), 1100.0),
            run(100.0, Some(true), 1300.0),
            run(100.0, None, 1e6),
        ];
        PeakReport {
            title: "Peak of squid".to_owned(),
            subtitle: "5 runs".to_owned(),
            conclusion: "peak 100/s".to_owned(),
            status: PeakStatus::Found,
            next: None,
            held: Some(100.0),
            failed: Some(200.0),
            criteria: PeakCriteria {
                errors: 0.03,
                rate_gap: 0.03,
                mean: Some(TimeLimit { factor: 1.25, more_ms: 250.0 }),
                p95: None,
                dhr_gap: Some(0.05),
            },
            low: Some(runs[0].measured.clone()),
            runs,
            command: "polygraph peak".to_owned(),
        }
    }

    #[test]
    fn runs_of_a_rate_are_averaged_without_void_ones() {
        let curve = curve(&report());
        let means: Vec<_> = curve.iter().map(|(rate, run)| (*rate, run.mean_ms)).collect();
        assert_eq!(means, [(50.0, Some(1000.0)), (100.0, Some(1200.0)), (200.0, Some(9000.0))]);
    }

    #[test]
    fn the_page_shows_the_peak_its_knee_and_every_run() {
        let page = html(&report());
        for wanted in [
            "FOUND",
            "peak 100/s",
            "not sustained at 200/s",
            "id=\"fig-knee\"",
            "id=\"fig-throughput\"",
            "id=\"fig-hits\"",
            "limit of the mean",
            "at most 1,500 ms (1.25 times 1,000 ms at low load, and 250 ms)",
            "run 2: a &lt;reason&gt;",
            "class=\"best\"",
            "step-200",
        ] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert!(!page.contains("id=\"fig-errors\""), "there are none");
        let nothing = PeakReport {
            runs: Vec::new(),
            held: None,
            failed: None,
            low: None,
            status: PeakStatus::Searching,
            ..report()
        };
        assert!(html(&nothing).contains("SEARCHING"));
    }

    /// A device that sustains the highest rate of the search has its peak beyond it.
    #[test]
    fn a_peak_that_was_not_reached_is_not_found() {
        let next = Some("raise --most".to_owned());
        let page = html(&PeakReport { status: PeakStatus::NotReached, next, failed: None, ..report() });
        for wanted in ["NOT REACHED", "Peak, at least", "all rates sustained", "<li>raise --most</li>"] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert!(!page.contains(">FOUND") && !page.contains("not sustained at"));
        let page = html(&PeakReport { status: PeakStatus::BenchLimit, ..report() });
        assert!(page.contains("BENCH LIMIT") && page.contains("limit of the bench at 200/s"));
        // If runs ran out before one failed, the peak may be higher, too.
        let page = html(&PeakReport { status: PeakStatus::OutOfRuns, failed: None, ..report() });
        assert!(page.contains("NOT NARROWED DOWN") && page.contains("Peak, at least"));
        let page = html(&PeakReport { status: PeakStatus::OutOfRuns, ..report() });
        assert!(!page.contains("Peak, at least"));
    }
}
