//! A comparison as Markdown, for a pull request.

use std::fmt::Write as _;

use super::cells::{self, BEST, TextTable};
use super::{Comparison, DifferenceSeverity, matrix, text};
use crate::text::duration;

/// Headline, warnings, tables and method, in the dialect of GitHub. `changed_only` omits figures that do not differ.
pub fn markdown(comparison: &Comparison<'_>, changed_only: bool) -> String {
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
        let cells = cells::of_part(comparison, part, changed_only, BEST);
        if cells.rows.is_empty() {
            out.push_str("No figure differs.\n");
        } else {
            out.push_str(&piped(&cells));
        }
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
