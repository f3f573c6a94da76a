//! A comparison as a page: figures, then other differences, then charts of all runs side by side.

use polygraph_stats::Histogram;

use super::cells::{self, TextTable};
use super::{
    ChangeJudgement, ComparedPhases, Comparison, DifferenceSeverity, RunDifference, RunGroup, matrix, text,
};
use crate::facts::Headline;
use crate::html::chart::{Chart, RenderedChart, Series, XAxis, share_of_nines};
use crate::html::page::{Banner, Page, Part, Section, Tile, Tone};
use crate::html::table::{Mark, Table};
use crate::series::SeriesPoint;
use crate::text::{counted, duration, time_of_day};

/// The page: one file, like the report of a run.
pub fn page(comparison: &Comparison<'_>) -> String {
    let names: Vec<&str> = comparison.groups.iter().map(|group| group.name.as_str()).collect();
    let title = match names[..] {
        [one, other] => format!("{other} against {one}"),
        _ => format!("{} against {} others", names[0], names.len() - 1),
    };
    let first = comparison.groups[0].runs[0].facts.main_side().header();
    let page = Page {
        subtitle: format!(
            "{} · {}",
            first.workload,
            counted(comparison.groups.iter().map(|group| group.runs.len() as u64).sum(), "run")
        ),
        banner: Some(banner(comparison)),
        tiles: tiles(comparison),
        lead: format!("Differences from {}. {}", names[0], comparison.method()),
        sections: sections(comparison),
        footer: format!("{title} · polygraph {}. A dash (–) marks an undefined value.", first.version),
        title,
        ..Page::default()
    };
    page.html()
}

fn banner(comparison: &Comparison<'_>) -> Banner {
    let of = |weight: DifferenceSeverity| -> Vec<String> {
        comparison.differs.iter().filter(|d| d.weight == weight).map(RunDifference::text).collect()
    };
    let worse = comparison.found().any(|(_, _, _, change)| change.judgement == ChangeJudgement::Worse);
    let found = comparison.found().next().is_some();
    let (word, tone) = match (comparison.refused(), found, worse) {
        (true, _, _) => ("NOT COMPARABLE", Tone::Doubtful),
        (false, false, _) => ("NO DIFFERENCE", Tone::Good),
        (false, true, false) => ("DIFFERENT", Tone::Good),
        (false, true, true) => ("REGRESSIONS", Tone::Bad),
    };
    Banner {
        word: word.to_owned(),
        meaning: text::conclusion(comparison),
        tone,
        reasons: of(DifferenceSeverity::Refuse),
        remedy: None,
        warnings: of(DifferenceSeverity::Warn),
    }
}

/// The main figures of the first part: for two groups, the difference of the second; otherwise, the best group.
fn tiles(comparison: &Comparison<'_>) -> Vec<Tile> {
    let main = [
        ("ok_xact.rate", "Successful transactions"),
        ("baseline.rptm.mean", "Mean response time"),
        ("baseline.rptm.p95", "Response time, 95th percentile"),
        ("hit.ratio.obj", "Document hit ratio"),
        ("err_xact.ratio", "Errors"),
    ];
    let Some(part) = comparison.parts.first() else { return Vec::new() };
    let tile = |&(name, title): &(&str, &str)| {
        let row = part.rows.iter().find(|row| row.figure.name == name)?;
        let values: Vec<String> = row.values.iter().map(|value| cells::print(row.figure, *value)).collect();
        let (shown, more) = match (&row.changes[..], row.best.first()) {
            ([change], _) => {
                let (by, plus_minus) = cells::difference(row.figure, change);
                (1, format!("{by} ± {plus_minus} from {}: {}", values[0], change.judgement.word()))
            }
            (_, Some(&best)) => {
                let others = if row.best.len() > 1 { " and others" } else { "" };
                (
                    best,
                    format!(
                        "{}{others}; {} of {}",
                        comparison.groups[best].name, values[0], comparison.groups[0].name
                    ),
                )
            }
            (_, None) => (0, format!("{}; no group is better", comparison.groups[0].name)),
        };
        Some(Tile {
            name: title.to_owned(),
            value: values[shown].clone(),
            unit: row.figure.unit.symbol().to_owned(),
            more,
            ..Tile::default()
        })
    };
    main.iter().filter_map(tile).collect()
}

fn sections(comparison: &Comparison<'_>) -> Vec<Section> {
    let mut all: Vec<Section> = comparison
        .parts
        .iter()
        .enumerate()
        .map(|(index, part)| {
            let seconds: Vec<String> = part.seconds.iter().map(|seconds| duration(*seconds)).collect();
            let mut section = Section::new(
                format!("phase-{index}"),
                format!("Figures of phase {}", part.phase),
                format!(
                    "Measured for {}. The best values, and those that do not differ significantly from them, are marked.",
                    seconds.join(", ")
                ),
            );
            section.parts.push(figures(comparison, part).into());
            let matrices = matrix::of_part(comparison, part);
            section
                .parts
                .extend(matrices.into_iter().map(|(title, cells)| table(title, &cells, Vec::new()).into()));
            section
        })
        .collect();
    let charts = charts(comparison);
    if !charts.is_empty() {
        let about = "Each curve is the first run of its group. Time is counted from the start of the run.";
        all.push(Section::new("charts", "Side by side", about).with(charts));
    }
    all.push(runs(comparison));
    if !comparison.differs.is_empty() {
        all.push(differs(comparison));
    }
    all
}

/// The table of a part, with judgements as marks.
fn figures(comparison: &Comparison<'_>, part: &ComparedPhases) -> Table {
    let cells = cells::of_part(comparison, part, false, "");
    let two = comparison.groups.len() == 2;
    let mut marks = Vec::new();
    for (index, row) in part.rows.iter().enumerate() {
        marks.extend(row.best.iter().map(|group| (index, 2 + group, Mark::Best)));
        for (group, change) in row.changes.iter().enumerate() {
            let column = if two { 6 } else { 3 + group };
            let mark = match change.judgement {
                ChangeJudgement::Better => Mark::Better,
                ChangeJudgement::Worse => Mark::Worse,
                ChangeJudgement::Noise | ChangeJudgement::Unknown => Mark::Faint,
                ChangeJudgement::Higher | ChangeJudgement::Lower => continue,
            };
            if !marks.contains(&(index, column, Mark::Best)) {
                marks.push((index, column, mark));
            }
        }
    }
    table(String::new(), &cells, marks)
}

fn table(caption: String, cells: &TextTable, marks: Vec<(usize, usize, Mark)>) -> Table {
    let head = cells.head.iter().cloned().map(Into::into).collect();
    Table { marks, ..Table::new(caption, head, cells.rows.clone()) }
}

fn runs(comparison: &Comparison<'_>) -> Section {
    let head = ["group", "run", "begin", "device", "verdict"].map(Into::into).to_vec();
    let rows = comparison.groups.iter().flat_map(|group| {
        group.runs.iter().map(|run| {
            vec![
                group.name.clone(),
                run.path.display().to_string(),
                time_of_day(run.facts.start_unix_ns),
                run.device().unwrap_or_default(),
                run.facts.verdict.word(),
            ]
        })
    });
    let table = Table::new("", head, rows.collect());
    Section::new("runs", "Runs", "The runs that were compared. The first group is the baseline.")
        .with([table])
}

fn differs(comparison: &Comparison<'_>) -> Section {
    let head = ["what", "weight", "run", "first", "this"].map(Into::into).to_vec();
    let rows = comparison.differs.iter().map(|differs| {
        let (first, this) = differs.values.clone().unwrap_or_default();
        vec![differs.what.clone(), differs.weight.word().to_owned(), differs.run.clone(), first, this]
    });
    let mut section = Section::new(
        "differs",
        "Other differences",
        "Each of these differences, and not only the device, may explain why figures differ.",
    )
    .with([Table::new("", head, rows.collect())]);
    for differs in comparison.differs.iter() {
        if let Some(diff) = &differs.diff {
            section.parts.push(Part::Heading(format!("{}: {}", differs.run, differs.what)));
            section.parts.push(Part::Code(diff.clone()));
        }
    }
    section
}

/// All groups in one figure, a line each.
fn charts(comparison: &Comparison<'_>) -> Vec<RenderedChart> {
    let groups = comparison.groups;
    let longest = groups
        .iter()
        .filter_map(series)
        .filter_map(|all| all.last())
        .map(|last| last.at_s)
        .fold(0.0, f64::max);
    let (x_axis, unit_s) = XAxis::time(longest);
    let over_time = |id: &str, title: &str, unit: &str, figure: &str| {
        let line = |group: &RunGroup| {
            let points = series(group)
                .unwrap_or_default()
                .iter()
                .map(|point| (point.at_s / unit_s, point.get(figure)));
            Series::line(group.name.clone(), points.collect())
        };
        let chart = Chart::new(id, title, unit).x_axis(x_axis.clone());
        groups.iter().fold(chart, |chart, group| chart.with(line(group)))
    };
    let shares: Vec<f64> = (0..=60).map(|i| f64::from(i) / 20.0).collect();
    let percentiles = groups.iter().fold(
        Chart::new("cmp-percentiles", "Percentiles of response time", "ms")
            .about("For the phases from which results are taken. Each step to the right leaves a tenth of the replies.")
            .x_axis(XAxis::Nines),
        |chart, group| match &group.runs[0].facts.headline {
            Some(headline) => chart.with(quantiles(&group.name, headline, &shares)),
            None => chart,
        },
    );
    [
        over_time("cmp-rptm", "Mean response time over time", "ms", "baseline.rptm.mean").log_if_wide(),
        percentiles.log_if_wide(),
        over_time("cmp-p95", "95th percentile of response time over time", "ms", "baseline.rptm.p95")
            .log_if_wide(),
        over_time("cmp-hits", "Document hit ratio over time", "%", "hit.ratio.obj").up_to(100.0),
        over_time("cmp-rate", "Successful transactions over time", "per second", "ok_xact.rate"),
        over_time("cmp-level", "Concurrent transactions over time", "transactions", "xact.level.mean"),
    ]
    .into_iter()
    .filter_map(Chart::draw)
    .collect()
}

fn series(group: &RunGroup) -> Option<&[SeriesPoint]> {
    group.runs.first().map(|run| run.facts.main_side().series.as_slice())
}

fn quantiles(name: &str, headline: &Headline, nines: &[f64]) -> Series {
    let hist: &Histogram = headline.scope.rptm_us();
    // A percentile needs at least one value above it to be more than the maximum.
    let most = (hist.count() as f64).log10();
    let at =
        |&x: &f64| (x, hist.quantile(share_of_nines(x)).filter(|_| x <= most).map(|us| us as f64 * 1e-3));
    Series::line(name, nines.iter().map(at).collect())
}
