//! A comparison on the console.

use std::fmt::Write as _;

use super::cells::{self, BEST, TextTable};
use super::{ChangeJudgement, Comparison, DifferenceSeverity, matrix};
use crate::text::{aligned, duration};

/// Lines of a workload's differences that are shown.
const DIFF_LINES: usize = 40;

/// Differences of the runs, the tables, and how to read them. `changed_only` leaves out what is noise.
pub fn text(comparison: &Comparison<'_>, changed_only: bool) -> String {
    let mut out = String::new();
    out.push_str(&preface(comparison));
    for part in &comparison.parts {
        let seconds: Vec<String> = part.seconds.iter().map(|seconds| duration(*seconds)).collect();
        let _ = writeln!(out, "phase {} ({})", part.phase, seconds.join(", "));
        let cells = cells::of_part(comparison, part, changed_only, BEST);
        if cells.rows.is_empty() {
            out.push_str("no figure differs\n");
        } else {
            out.push_str(&lines(&cells));
        }
        for (title, cells) in matrix::of_part(comparison, part) {
            let _ = write!(out, "\n{title}\n{}", lines(&cells));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{}", conclusion(comparison));
    let _ = writeln!(out, "{}", comparison.method());
    if comparison.parts.iter().flat_map(|part| &part.rows).any(|row| !row.best.is_empty()) {
        let _ = writeln!(out, "{BEST} best value, or not significantly different from it");
    }
    out
}

/// In what the runs differ beside their figures; the weightiest first.
pub fn preface(comparison: &Comparison<'_>) -> String {
    let mut out = String::new();
    for differs in &comparison.differs {
        let _ = writeln!(out, "{}: {}", differs.weight.word(), differs.text());
        for line in differs.diff.iter().flat_map(|diff| diff.lines().take(DIFF_LINES)) {
            let _ = writeln!(out, "    {line}");
        }
        let more = differs.diff.as_ref().map_or(0, |diff| diff.lines().count().saturating_sub(DIFF_LINES));
        if more > 0 {
            let _ = writeln!(out, "    ... and {more} more lines");
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The result in a sentence.
pub(super) fn conclusion(comparison: &Comparison<'_>) -> String {
    let found = comparison.found().count();
    let total: usize = comparison.parts.iter().flat_map(|part| &part.rows).map(|row| row.changes.len()).sum();
    let changes = comparison.parts.iter().flat_map(|part| &part.rows).flat_map(|row| &row.changes);
    let unknown = changes.filter(|change| change.judgement == ChangeJudgement::Unknown).count();
    let unsure =
        comparison.differs.iter().filter(|differs| differs.weight != DifferenceSeverity::Note).count();
    let mut text = match found {
        0 if unknown == total && total > 0 => {
            "Undecided: too little was measured to compare any figure.".to_owned()
        }
        0 => format!("No difference: none of {} figures differs significantly.", total - unknown),
        1 => format!("1 of {total} figures differs."),
        found => format!("{found} of {total} figures differ."),
    };
    if (1..total).contains(&unknown) {
        let _ = write!(text, " {unknown} more cannot be judged: too little was measured.");
    }
    if unsure > 0 {
        text.push_str(" The runs also differ in other ways; see the list.");
    }
    text
}

fn lines(cells: &TextTable) -> String {
    let rows = std::iter::once(&cells.head).chain(&cells.rows).map(Vec::as_slice);
    aligned(rows, 1).into_iter().map(|line| line + "\n").collect()
}
