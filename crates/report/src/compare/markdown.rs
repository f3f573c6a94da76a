//! A comparison as Markdown, for a pull request.

use std::fmt::Write as _;

use super::cells::{self, BEST, TextTable};
use super::{ChangeJudgement, ComparedFigure, ComparedPhases, Comparison, DifferenceSeverity, matrix, text};
use crate::text::{counted, duration};

/// Headline, warnings, tables and method, in the dialect of GitHub. Unless they are to be `full`, tables have only figures that differ,
/// and the others are counted.
pub fn markdown(comparison: &Comparison<'_>, full: bool) -> String {
    let names: Vec<&str> = comparison.groups.iter().map(|group| group.name.as_str()).collect();
    let mut out = format!("### {}\n\n", escape(&names.join(" / ")));
    let _ = writeln!(out, "{}\n", text::conclusion(comparison));
    for differs in &comparison.differs {
        let word = differs.weight.word();
        let mark = if differs.weight == DifferenceSeverity::Note { "" } else { "**" };
        let _ = writeln!(out, "- {mark}{word}{mark}: {}", escape(&differs.text()));
        if let Some(diff) = &differs.diff {
            let indented: String = diff.lines().map(|line| format!("  {line}\n")).collect();
            let _ = write!(out, "\n  ```diff\n{indented}  ```\n");
        }
    }
    for part in &comparison.parts {
        let seconds: Vec<String> = part.seconds.iter().map(|seconds| duration(*seconds)).collect();
        let _ = writeln!(out, "\n**{}** ({})\n", escape(&part.phase), seconds.join(", "));
        let cells = cells::of_part(comparison, part, !full, BEST);
        if !cells.rows.is_empty() {
            out.push_str(&piped(&cells));
        }
        out.push_str(&omitted(part, cells.rows.len()));
        for (title, cells) in matrix::of_part(comparison, part) {
            let _ = write!(out, "\n{}\n\n{}", escape(&title), piped(&cells));
        }
    }
    let _ = writeln!(
        out,
        "\n<sub>{} * marks the best values, and those that do not differ significantly from them.</sub>",
        comparison.method()
    );
    out
}

/// A line about the figures that are not among the `shown` ones of a table, if there are any.
fn omitted(part: &ComparedPhases, shown: usize) -> String {
    let omitted = part.rows.len() - shown;
    if omitted == 0 {
        return String::new();
    }
    let is_unknown =
        |row: &&ComparedFigure| row.changes.iter().all(|change| change.judgement == ChangeJudgement::Unknown);
    let unknown = match part.rows.iter().filter(is_unknown).count() {
        0 => String::new(),
        count => format!(" ({count} of them: unknown, because too little was measured)"),
    };
    let lead = if shown == 0 { "No figure differs" } else { "No other figure differs" };
    format!(
        "\n{lead} significantly: {} left out{unknown}; `--full` lists all.\n",
        counted(omitted as u64, "row")
    )
}

/// Escapes text for Markdown.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn piped(cells: &TextTable) -> String {
    let row = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<&str> =
        (0..cells.head.len()).map(|column| if column < 2 { "---" } else { "---:" }).collect();
    let rows: String = cells.rows.iter().map(row).collect();
    format!("{}| {} |\n{rows}", row(&cells.head), rule.join(" | "))
}
