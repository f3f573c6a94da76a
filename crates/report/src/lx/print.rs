//! Output formats of figures: text in the format of the classic extractor, CSV, JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::select::wants_all;
use super::{Extract, LxError, Selected, select};
use crate::figures::{self, Distribution, Figure, List, TableEntry, absent};
use crate::scope::Scope;
use crate::text::csv_cell;

/// Smallest share of all values in a row of a printed distribution.
const STEP: f64 = 0.01;

impl Extract {
    fn entries(&self) -> Vec<TableEntry<'_>> {
        select(&self.objects, &self.of_run).map(|Selected { entries, .. }| entries).unwrap_or_default()
    }

    /// The figures among the entries with their values.
    fn values<'a>(&'a self, entries: &[TableEntry<'a>]) -> Vec<(&'a Figure, Option<f64>)> {
        let figures = || {
            entries.iter().filter_map(|entry| match entry {
                TableEntry::Figure(figure) => Some(*figure),
                _ => None,
            })
        };
        figures().zip(figures::extract(figures(), &self.scope)).collect()
    }

    /// Figures as text: one `name: value` per line, undefined values as -1. A list has a line with its name, a line
    /// with the names of its columns, a line for each row, and an empty line; empty lists are omitted. `values_only`
    /// omits the names of figures, and all lists.
    pub fn text(&self, values_only: bool) -> String {
        let entries = self.entries();
        let mut values = self.values(&entries).into_iter();
        let mut out = String::new();
        for entry in entries {
            match entry {
                TableEntry::Figure(_) => {
                    let Some((figure, value)) = values.next() else { break };
                    if !values_only {
                        let _ = write!(out, "{}: ", figure.name);
                    }
                    let _ = writeln!(out, "{}", figure.print(value.unwrap_or(-1.0)));
                }
                TableEntry::Distribution(distribution) if !values_only => {
                    bins(&mut out, distribution, &self.scope)
                }
                TableEntry::List(list) if !values_only => rows(&mut out, list, &self.scope),
                _ => {}
            }
        }
        out
    }

    /// A line `name,unit,value` for each figure, with all digits; undefined values are empty. Lists are omitted.
    pub fn csv(&self) -> String {
        let mut out = String::from("name,unit,value\n");
        for (figure, value) in self.values(&self.entries()) {
            let value = value.map_or_else(String::new, |value| value.to_string());
            // Names of contents may contain any characters.
            let name = csv_cell(&figure.name);
            let _ = writeln!(out, "{name},{},{value}", figure.unit.symbol());
        }
        out
    }

    /// `{"phases": [...], "figures": {name: value}}` with all digits; undefined values are null. If figures are named,
    /// `lists` has the lists that the names select; otherwise `correctness` and `missed_hits` have the results of the
    /// analysis.
    pub fn json(&self) -> Value {
        let entries = self.entries();
        let values: Map<String, Value> = self
            .values(&entries)
            .into_iter()
            .map(|(figure, value)| (figure.name.clone(), json!(value)))
            .collect();
        let mut all = json!({ "phases": self.phases, "figures": values });
        if let Some(correctness) = &self.correctness {
            all["correctness"] = correctness.clone();
        }
        if let Some(sentences) = &self.missed_hits {
            all["missed_hits"] = json!(sentences);
        }
        if !wants_all(&self.objects) {
            let lists = entries.iter().filter_map(|entry| Some((entry.name(), list(entry, &self.scope)?)));
            let lists: Map<String, Value> = lists.collect();
            if !lists.is_empty() {
                all["lists"] = json!(lists);
            }
        }
        all
    }
}

/// A list as JSON; `None` for figures.
fn list(entry: &TableEntry<'_>, scope: &Scope) -> Option<Value> {
    match entry {
        TableEntry::Figure(_) => None,
        TableEntry::Distribution(distribution) => {
            let (values, scale) = (distribution.of(scope), distribution.scale);
            let row = |row: &figures::BinRow| json!({ "min": row.first as f64 * scale, "max": row.last as f64 * scale, "count": row.count });
            Some(values.rows(STEP).iter().map(row).collect())
        }
        TableEntry::List(list) => {
            let rows = list.of(scope);
            if list.columns.is_empty() {
                return Some(rows.into_iter().flatten().collect());
            }
            let object = |row: Vec<String>| -> Map<String, Value> {
                list.columns
                    .iter()
                    .zip(row)
                    .map(|(name, cell)| ((*name).to_owned(), cell_of(&cell)))
                    .collect()
            };
            Some(rows.into_iter().map(|row| Value::Object(object(row))).collect())
        }
    }
}

/// Text as a JSON number if it is one.
fn cell_of(text: &str) -> Value {
    text.parse::<f64>().map_or_else(|_| json!(text.trim_matches('"')), |number| json!(number))
}

/// The bins of a distribution: number of the first bin, smallest and largest value, count, share, share so far.
fn bins(out: &mut String, distribution: &Distribution, scope: &Scope) {
    let (values, scale) = (distribution.of(scope), distribution.scale);
    let all = values.summary().count as f64;
    let rows = values.rows(STEP);
    if rows.is_empty() {
        return;
    }
    // Microseconds are shown as milliseconds, with all their digits.
    let digits = if scale < 1.0 { 3 } else { 0 };
    let _ = writeln!(out, "{}:", distribution.list_name());
    let _ = writeln!(out, "#  bin          min          max        count      %   acc%");
    let mut sum = 0;
    for row in rows {
        sum += row.count;
        let _ = writeln!(
            out,
            "{:>6} {:>12.digits$} {:>12.digits$} {:>12} {:>6.2} {:>6.2}",
            row.bin,
            row.first as f64 * scale,
            row.last as f64 * scale,
            row.count,
            100.0 * row.count as f64 / all,
            100.0 * sum as f64 / all,
        );
    }
    out.push('\n');
}

fn rows(out: &mut String, list: &List, scope: &Scope) {
    let rows = list.of(scope);
    if rows.is_empty() {
        return;
    }
    if list.columns.is_empty() {
        let _ = writeln!(out, "{}: {}", list.name, rows.concat().join(" "));
        return;
    }
    let _ = writeln!(out, "{}:\n# {}", list.name, list.columns.join(" "));
    for row in rows {
        let (words, numbers) = row.split_last().map_or(("", &row[..]), |(last, rest)| (last.as_str(), rest));
        numbers.iter().for_each(|number| {
            let _ = write!(out, "{number:>12} ");
        });
        let _ = writeln!(out, "{words}");
    }
    out.push('\n');
}

/// Names, units and definitions of the entries that `objects` selects.
///
/// # Errors
/// If no entry has any of the names.
pub fn list_figures(objects: &[String]) -> Result<String, LxError> {
    let of_run = figures::of_any_run();
    let entries = select(objects, &of_run)?.entries;
    let width = entries.iter().map(|entry| entry.name().len()).max().unwrap_or(0);
    let mut out = String::new();
    for entry in entries {
        let (unit, text) = match entry {
            TableEntry::Figure(figure) => (figure.unit.symbol(), figure.definition.clone()),
            TableEntry::Distribution(distribution) => {
                (distribution.unit.symbol(), format!("list of bins: {}", distribution.definition))
            }
            TableEntry::List(list) if list.columns.is_empty() => ("", list.definition.to_owned()),
            TableEntry::List(list) => ("", format!("list: {}", list.definition)),
        };
        let _ = writeln!(out, "{:<width$}  {unit:<6}  {text}", entry.name());
    }
    Ok(out)
}

/// The same as JSON: objects with name, unit, kind (figure, distribution or list) and definition; with `absent` also
/// the names of the original that do not exist here, with the reason.
///
/// # Errors
/// As [`list_figures`].
pub fn list_json(objects: &[String], absent: bool) -> Result<Value, LxError> {
    let of_run = figures::of_any_run();
    let about = |entry: &TableEntry<'_>| {
        let (kind, unit, text) = match entry {
            TableEntry::Figure(figure) => ("figure", figure.unit.symbol(), figure.definition.clone()),
            TableEntry::Distribution(distribution) => {
                ("distribution", distribution.unit.symbol(), distribution.definition.clone())
            }
            TableEntry::List(list) => ("list", "", list.definition.to_owned()),
        };
        json!({ "name": entry.name(), "unit": unit, "kind": kind, "definition": text })
    };
    let mut all: Vec<Value> = select(objects, &of_run)?.entries.iter().map(about).collect();
    if absent {
        let missing = absent::ABSENT
            .iter()
            .map(|(name, why)| json!({ "name": format!("{name}.*"), "kind": "absent", "reason": why }));
        all.extend(missing);
    }
    Ok(Value::Array(all))
}

/// Names of the original that do not exist here, and why.
pub fn list_absent() -> String {
    let width = absent::ABSENT.iter().map(|(name, _)| name.len() + 2).max().unwrap_or(0);
    let mut out = String::from("\nNames of Web Polygraph without a figure here:\n");
    for (name, why) in absent::ABSENT {
        let _ = writeln!(out, "{:<width$}  {why}", format!("{name}.*"));
    }
    out
}
