//! The cells of comparison tables, the same on the console, in Markdown and on a page.

use super::{ChangeJudgement, ComparedFigure, ComparedPhases, Comparison, FigureChange, choice};
use crate::figures::{Figure, Unit};
use crate::text::{UNDEFINED, number};

/// A table of words.
pub(super) struct TextTable {
    /// Heads of the columns.
    pub(super) head: Vec<String>,
    /// Rows, each with as many cells as there are columns.
    pub(super) rows: Vec<Vec<String>>,
}

/// The mark after the best values.
pub(super) const BEST: &str = "*";

/// The figures of a part, or only those that differ; `best` is the mark after the best values.
pub(super) fn of_part(
    comparison: &Comparison<'_>,
    part: &ComparedPhases,
    changed_only: bool,
    best: &str,
) -> TextTable {
    let two = comparison.groups.len() == 2;
    let mut head = vec!["figure".to_owned(), "unit".to_owned()];
    head.extend(comparison.groups.iter().map(|group| group.name.clone()));
    if two {
        head.extend(["difference", "±", "verdict"].map(str::to_owned));
    }
    let wanted =
        |row: &&ComparedFigure| !changed_only || row.changes.iter().any(|change| change.judgement.differs());
    let rows = part.rows.iter().filter(wanted).map(|row| {
        let mut cells = vec![choice::title(row.figure), row.figure.unit.symbol().to_owned()];
        for (group, value) in row.values.iter().enumerate() {
            let best = if row.best.contains(&group) { best } else { "" };
            let mut cell = format!("{}{best}", print(row.figure, *value));
            if let (false, Some(change)) = (two, group.checked_sub(1).map(|index| &row.changes[index])) {
                cell.push_str(&in_brackets(row.figure, change));
            }
            cells.push(cell);
        }
        if two {
            let change = &row.changes[0];
            let (by, plus_minus) = difference(row.figure, change);
            cells.extend([by, plus_minus, change.judgement.word().to_owned()]);
        }
        cells
    });
    TextTable { head, rows: rows.collect() }
}

/// A value without its unit.
pub(super) fn print(figure: &Figure, value: Option<f64>) -> String {
    match figure.unit {
        Unit::Count => number(value, 0),
        Unit::Percent => number(value, 2),
        // Four digits, because compared values often differ by little.
        _ => number(
            value,
            match value.map_or(0.0, f64::abs) {
                v if v >= 1000.0 || v == 0.0 => 0,
                v if v >= 100.0 => 1,
                v if v >= 10.0 => 2,
                v if v >= 1.0 => 3,
                _ => 4,
            },
        ),
    }
}

/// The difference and half of its interval: in percent of the first value, for percentages in points.
pub(super) fn difference(figure: &Figure, change: &FigureChange) -> (String, String) {
    let dash = || UNDEFINED.to_owned();
    let Some(difference) = &change.difference else { return (dash(), dash()) };
    let sign = if difference.by > 0.0 { "+" } else { "" };
    let points = figure.unit == Unit::Percent || change.percent.is_none();
    if points {
        let unit = if figure.unit == Unit::Percent { " points" } else { "" };
        let by = format!("{sign}{}{unit}", number(Some(difference.by), 2));
        return (by, change.plus_minus.map_or_else(dash, |half| format!("{}{unit}", number(Some(half), 2))));
    }
    let percent = change.percent.unwrap_or(0.0);
    let half = change.plus_minus.map(|half| half * (percent / difference.by).abs());
    let half = half.filter(|half| half.is_finite()).or(change.plus_minus.map(|_| 0.0));
    let half = half.map_or_else(dash, |half| format!("{} %", number(Some(half), 2)));
    (format!("{sign}{} %", number(Some(percent), 2)), half)
}

/// The values of a figure in the first group and in this one, and how they differ, in a line.
pub fn in_words(row: &ComparedFigure, group: usize, change: &FigureChange) -> String {
    let value = |group: usize| print(row.figure, row.values[group]);
    let unit = row.figure.unit.symbol();
    let (by, plus_minus) = difference(row.figure, change);
    format!(
        "{} {unit} instead of {} {unit}: {by} ± {plus_minus}, {}",
        value(group),
        value(0),
        change.judgement.word()
    )
}

/// The text after a value if there are many groups: its difference from the first group, unless it is noise.
fn in_brackets(figure: &Figure, change: &FigureChange) -> String {
    match change.judgement {
        ChangeJudgement::Noise => String::new(),
        ChangeJudgement::Unknown => " (?)".to_owned(),
        judgement => format!(" ({}, {})", difference(figure, change).0, judgement.word()),
    }
}
