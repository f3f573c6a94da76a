//! The page of a search for a peak: the knee of the curve, and every run that drew it.

use super::chart::{Chart, RenderedChart, Series, XAxis};
use super::page::{Banner, Page, Part, Section, Tile, Tone};
use super::table::{Mark, Table, columns};
use crate::peak::{PeakCriteria, RateMeasurement, TimeLimit};
use crate::text;

/// A search for a peak.
#[derive(Clone, Debug)]
pub struct Story {
    /// What was searched with: workload, device.
    pub title: String,
    /// When, how many runs, how long.
    pub subtitle: String,
    /// How the search ended.
    pub ending: Ending,
    /// The result in a sentence.
    pub conclusion: String,
    /// What to do next, if there is something to do.
    pub next: Option<String>,
    /// The highest rate that holds, requests per second.
    pub held: Option<f64>,
    /// The lowest rate that does not.
    pub failed: Option<f64>,
    /// When a rate holds.
    pub criteria: PeakCriteria,
    /// Figures at low load, which limits are multiples of.
    pub low: Option<RateMeasurement>,
    /// The runs in order.
    pub runs: Vec<Run>,
    /// The command line.
    pub command: String,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has not.
    Searching,
    /// A rate holds, and one that is hardly higher does not.
    Found,
    /// The highest rate that was to be tried holds: the peak is beyond it.
    NotReached,
    /// The bench cannot offer more than what holds.
    BenchLimit,
    /// There were not enough runs to find out.
    OutOfRuns,
    /// No rate holds.
    Nothing,
}

impl Ending {
    fn word(self) -> &'static str {
        match self {
            Ending::Searching => "SEARCHING",
            Ending::Found => "FOUND",
            Ending::NotReached => "NOT REACHED",
            Ending::BenchLimit => "BENCH LIMIT",
            Ending::OutOfRuns => "NOT NARROWED DOWN",
            Ending::Nothing => "NOT FOUND",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Ending::Found => Tone::Good,
            Ending::Nothing => Tone::Bad,
            _ => Tone::Doubtful,
        }
    }

    /// The peak may be higher than the highest rate that holds.
    fn is_open(self) -> bool {
        matches!(self, Ending::NotReached | Ending::BenchLimit | Ending::Searching)
    }
}

/// A run of the search.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its rate, requests per second.
    pub rate: f64,
    /// Why this rate, in a word.
    pub why: String,
    /// Whether the device held; `None` if the bench did not do its part.
    pub held: Option<bool>,
    /// What speaks against the device or the bench.
    pub reasons: Vec<String>,
    /// The figures.
    pub measured: RateMeasurement,
    /// Its result directory.
    pub directory: String,
}

/// The page of a search.
pub fn html(story: &Story) -> String {
    let page = Page {
        title: story.title.clone(),
        subtitle: story.subtitle.clone(),
        banner: Some(Banner {
            word: story.ending.word().to_owned(),
            meaning: story.conclusion.clone(),
            tone: story.ending.tone(),
            reasons: story.next.iter().cloned().collect(),
            warnings: Vec::new(),
        }),
        tiles: tiles(story),
        lead: "Each rate was given to the device in runs of their own; the highest rate at which most of them held, \
               with all lower ones, is the peak."
            .to_owned(),
        sections: sections(story),
        footer: format!("{} · {}", story.title, story.subtitle),
        ..Page::default()
    };
    page.html()
}

fn tiles(story: &Story) -> Vec<Tile> {
    let at = |rate: Option<f64>| rate.map(|rate| mean_at(story, rate));
    let tile = |name: &str, value: String, unit: &str, more: String| Tile {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        more,
        ..Tile::default()
    };
    let figure = |pick: fn(&RateMeasurement) -> Option<f64>| at(story.held).and_then(|run| pick(&run));
    vec![
        tile(
            if story.ending.is_open() { "Peak, at least" } else { "Peak" },
            text::short(story.held),
            "requests/s",
            match (story.failed, story.ending) {
                (Some(failed), Ending::BenchLimit) => {
                    format!("beyond the bench at {}/s", text::short(Some(failed)))
                }
                (Some(failed), _) => format!("fails at {}/s", text::short(Some(failed))),
                (None, _) => "no rate failed".to_owned(),
            },
        ),
        tile(
            "Mean response time there",
            text::short(figure(|run| run.mean_ms)),
            "ms",
            format!("{} at low load", text::ms(story.low.as_ref().and_then(|low| low.mean_ms))),
        ),
        tile(
            "Document hit ratio there",
            text::number(figure(|run| run.dhr), 1),
            "%",
            format!("{} % offered", text::number(figure(|run| run.offered_dhr), 1)),
        ),
        tile(
            "Errors there",
            text::number(figure(|run| run.errors), 2),
            "%",
            "of all transactions".to_owned(),
        ),
    ]
}

fn sections(story: &Story) -> Vec<Section> {
    let knee = Section::new(
        "knee",
        "The knee",
        "What the device does as the rate rises. Lines go through the means of all runs of a rate; runs in which the \
         bench did not do its part are not in them.",
    );
    let charts = [response_time(story), throughput(story), hits(story), errors(story)];
    let runs = Section::new(
        "runs",
        "Runs",
        "In the order in which they were made; each has a report in its directory.",
    );
    let against: Vec<String> = story
        .runs
        .iter()
        .enumerate()
        .flat_map(|(at, run)| run.reasons.iter().map(move |reason| format!("run {}: {reason}", at + 1)))
        .collect();
    let mut parts = vec![Part::Table(table(story))];
    if !against.is_empty() {
        parts.push(Part::Heading("What speaks against device or bench".to_owned()));
        parts.push(Part::Notes(against));
    }
    let rules =
        Section::new("criteria", "When a rate holds", "All of these, and a verdict other than FAILED.");
    vec![
        knee.with(charts.into_iter().flatten()),
        runs.with(parts),
        rules.with([Part::Pairs(criteria(story)), Part::Code(story.command.clone())]),
    ]
}

/// Rates in ascending order with the mean of what was measured at each.
fn curve(story: &Story) -> Vec<(f64, RateMeasurement)> {
    let mut rates: Vec<f64> =
        story.runs.iter().filter(|run| run.held.is_some()).map(|run| run.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates.into_iter().map(|rate| (rate, mean_at(story, rate))).collect()
}

/// The means of all runs at a rate.
fn mean_at(story: &Story, rate: f64) -> RateMeasurement {
    let runs: Vec<&RateMeasurement> = story
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

fn line(story: &Story, name: &str, pick: fn(&RateMeasurement) -> Option<f64>) -> Series {
    Series::marked(name, curve(story).iter().map(|(rate, run)| (*rate, pick(run))).collect())
}

fn response_time(story: &Story) -> Option<RenderedChart> {
    let runs = |name: &str, held: bool| {
        let runs = story.runs.iter().filter(move |run| run.held == Some(held));
        Series::points(name, runs.filter_map(|run| Some((run.rate, run.measured.mean_ms?))))
    };
    let mut chart = chart(
        "fig-knee",
        "Response time by rate",
        "ms",
        "Mean and p95 of all good replies. Points are the means of single runs.",
    )
    .with(line(story, "mean", |run| run.mean_ms))
    .with(line(story, "p95", |run| run.p95_ms))
    .with(runs("runs that held", true))
    .with(runs("runs that failed", false));
    let low = story.low.as_ref().and_then(|low| low.mean_ms);
    let ends = curve(story);
    if let (Some(limit), Some((first, _)), Some((last, _))) =
        (story.criteria.mean.and_then(|limit| limit.at(low)), ends.first(), ends.last())
    {
        chart =
            chart.with(Series::line("limit of the mean", vec![(*first, Some(limit)), (*last, Some(limit))]));
    }
    chart.log().draw()
}

fn throughput(story: &Story) -> Option<RenderedChart> {
    let about = "Where transactions that ended stay below those that began, the device does not follow.";
    chart("fig-throughput", "Throughput by rate", "per second", about)
        .with(line(story, "begun", |run| run.offered))
        .with(line(story, "ended", |run| run.measured))
        .draw()
}

fn hits(story: &Story) -> Option<RenderedChart> {
    let about = "Document hit ratio, offered by the robots and measured.";
    chart("fig-hits", "Hit ratio by rate", "%", about)
        .up_to(100.0)
        .with(line(story, "offered", |run| run.offered_dhr))
        .with(line(story, "measured", |run| run.dhr))
        .draw()
}

fn errors(story: &Story) -> Option<RenderedChart> {
    let any = story.runs.iter().any(|run| run.measured.errors.is_some_and(|errors| errors > 0.0));
    let chart = chart("fig-errors", "Errors by rate", "%", "Share of the transactions that failed.");
    any.then(|| chart.with(line(story, "failed", |run| run.errors)).draw()).flatten()
}

fn table(story: &Story) -> Table {
    let head = [
        "run",
        "why",
        "rate, /s",
        "device",
        "begun, /s",
        "ended, /s",
        "mean, ms",
        "p95, ms",
        "hits, %",
        "offered, %",
        "errors, %",
        "directory",
    ];
    let rows = story.runs.iter().enumerate().map(|(at, run)| {
        let figures = &run.measured;
        let word = match run.held {
            Some(true) => "held",
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
    let peak = story.runs.iter().enumerate().filter(|(_, run)| Some(run.rate) == story.held);
    table.marks = peak.map(|(at, _)| (at, 2, Mark::Best)).collect();
    table
}

fn criteria(story: &Story) -> Vec<(String, String)> {
    let PeakCriteria { errors, rate_gap, mean, p95, dhr_gap } = story.criteria;
    let low = |pick: fn(&RateMeasurement) -> Option<f64>| story.low.as_ref().and_then(pick);
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
        pair("throughput", format!("at most {} % fewer ended than begun", percent(rate_gap))),
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

    fn story() -> Story {
        let run = |rate: f64, held, mean: f64| Run {
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
        Story {
            title: "Peak of squid".to_owned(),
            subtitle: "5 runs".to_owned(),
            conclusion: "peak 100/s".to_owned(),
            ending: Ending::Found,
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
    fn runs_of_a_rate_are_averaged_and_void_ones_left_out() {
        let curve = curve(&story());
        let means: Vec<_> = curve.iter().map(|(rate, run)| (*rate, run.mean_ms)).collect();
        assert_eq!(means, [(50.0, Some(1000.0)), (100.0, Some(1200.0)), (200.0, Some(9000.0))]);
    }

    #[test]
    fn the_page_shows_the_peak_its_knee_and_every_run() {
        let page = html(&story());
        for wanted in [
            "FOUND",
            "peak 100/s",
            "fails at 200/s",
            "id=\"fig-knee\"",
            "id=\"fig-throughput\"",
            "id=\"fig-hits\"",
            "limit of the mean",
            "at most 1,500 ms (1.25 times 1,000 ms at low load, and 250 ms)",
            "run 2: a &#60;reason&#62;",
            "class=\"best\"",
            "step-200",
        ] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert!(!page.contains("id=\"fig-errors\""), "there are none");
        let nothing = Story {
            runs: Vec::new(),
            held: None,
            failed: None,
            low: None,
            ending: Ending::Searching,
            ..story()
        };
        assert!(html(&nothing).contains("SEARCHING"));
    }

    /// What holds at the highest rate that was to be tried is no peak.
    #[test]
    fn a_peak_that_was_not_reached_is_not_found() {
        let next = Some("raise --most".to_owned());
        let page = html(&Story { ending: Ending::NotReached, next, failed: None, ..story() });
        for wanted in ["NOT REACHED", "Peak, at least", "no rate failed", "<li>raise --most</li>"] {
            assert!(page.contains(wanted), "{wanted} is missing");
        }
        assert!(!page.contains(">FOUND") && !page.contains("fails at"));
        let page = html(&Story { ending: Ending::BenchLimit, ..story() });
        assert!(page.contains("BENCH LIMIT") && page.contains("beyond the bench at 200/s"));
    }
}
