//! Differences between two outputs of `lx` (docs/reference/statistics.md, "Comparing two outputs of lx").

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpScope {
    /// Compare figures except those with little meaning: last levels, extremes outside of distributions, deviations and
    /// sums, means that a distribution has as well, and rare classes.
    Important,
    /// Compare every figure.
    All,
}

impl std::str::FromStr for CmpScope {
    type Err = String;

    fn from_str(text: &str) -> Result<CmpScope, String> {
        match text {
            "important" => Ok(CmpScope::Important),
            "all" => Ok(CmpScope::All),
            _ => Err(format!("`{text}` is not a scope: write important or all")),
        }
    }
}

/// Times that differ by fewer milliseconds than this count as equal.
const RESOLUTION_MS: f64 = 1.0;
/// Share of the started transactions below which a class is rare.
const RARE: f64 = 0.1;
/// Share of the started transactions below which an error is rare.
const RARE_ERROR: f64 = 0.001;
/// Quantiles of a distribution outside of which values are ignored.
const TRIM: (f64, f64) = (0.01, 0.99);

/// A value of an output.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

/// The values of an output by name. Distributions are reduced to a few numbers.
fn parse(text: &str) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((name, value)) = line.split_once(':').filter(|(name, value)| is_value(name, value)) {
            let value = value.trim();
            let value = value.parse().map_or_else(|_| Value::Text(value.to_owned()), Value::Number);
            values.insert(name.to_owned(), value);
        } else if let Some(name) = line.strip_suffix(".hist:") {
            let rows = lines.by_ref().take_while(|line| !line.trim().is_empty()).filter_map(row);
            reduce(name, &rows.collect::<Vec<_>>(), &mut values);
        } else if line.ends_with(':') {
            // Other lists have their own numbers under other names.
            lines.by_ref().take_while(|line| !line.trim().is_empty()).for_each(drop);
        } else if let Some((name, value)) =
            line.rsplit_once(':').filter(|(_, value)| !value.trim().is_empty())
        {
            let value = value.trim();
            let value = value.parse().map_or_else(|_| Value::Text(value.to_owned()), Value::Number);
            values.insert(name.to_owned(), value);
        }
    }
    values
}

/// `rptm_mean:hit: 12.0` has two colons, so the first one ends a name only if a blank follows.
fn is_value(name: &str, value: &str) -> bool {
    !name.is_empty() && value.starts_with([' ', '\t']) && !value.trim().is_empty()
}

/// Smallest value, largest value and count of a line of a distribution.
fn row(line: &str) -> Option<(f64, f64, f64)> {
    let numbers: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, first, last, count, ..] = numbers[..] else { return None };
    Some((first, last, count))
}

/// Count, mean, extremes and quartiles of the middle 98 % of a distribution.
fn reduce(name: &str, rows: &[(f64, f64, f64)], values: &mut BTreeMap<String, Value>) {
    let all: f64 = rows.iter().map(|(_, _, count)| count).sum();
    let mut seen = 0.0;
    let middle: Vec<_> = rows
        .iter()
        .filter(|(_, _, count)| {
            let begin = seen / all;
            seen += count;
            begin < TRIM.1 && seen / all > TRIM.0
        })
        .collect();
    let (Some(first), Some(last)) = (middle.first(), middle.last()) else { return };
    let count: f64 = middle.iter().map(|(_, _, count)| count).sum();
    let mean = middle.iter().map(|(first, last, count)| (first + last) / 2.0 * count).sum::<f64>() / count;
    let quantile = |share: f64| {
        let mut seen = 0.0;
        let bin = middle.iter().find(|(_, _, count)| {
            seen += count;
            seen >= share * count_of(&middle)
        });
        bin.map_or(last.1, |(_, last, _)| *last)
    };
    for (leaf, value) in [
        ("min", first.0),
        ("max", last.1),
        ("mean", mean),
        ("count", count),
        ("p25", quantile(0.25)),
        ("p50", quantile(0.5)),
        ("p75", quantile(0.75)),
    ] {
        values.insert(format!("{name}.hist.{leaf}"), Value::Number(value));
    }
}

fn count_of(rows: &[&(f64, f64, f64)]) -> f64 {
    rows.iter().map(|(_, _, count)| count).sum()
}

/// The differences between two outputs.
#[derive(Debug)]
pub struct Differences {
    /// One line for each difference, which starts with the name.
    pub text: String,
    /// Number of differences.
    pub count: usize,
}

/// Compares two outputs of `lx`. Numbers differ if they are at least `precision` percent of the smaller one apart; the change
/// that is printed is in percent of the first one.
/// Names without a positive value on either side are omitted.
pub fn cmp_lx(one: &str, two: &str, precision: f64, scope: CmpScope) -> Differences {
    let (one, two) = (parse(one), parse(two));
    let mut names: Vec<&String> = one.keys().chain(two.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Differences { text: String::new(), count: 0 };
    for name in names {
        if scope == CmpScope::Important && !is_important(name, &one, &two) {
            continue;
        }
        if let Some(text) = difference(name, one.get(name), two.get(name), precision) {
            let _ = writeln!(found.text, "{:<40} {text}", format!("{name}:"));
            found.count += 1;
        }
    }
    found
}

fn difference(name: &str, one: Option<&Value>, two: Option<&Value>, precision: f64) -> Option<String> {
    let unique = |value: &Value, left: bool| {
        let text = match value {
            Value::Number(number) if *number > 0.0 => format!("{number:.2}"),
            Value::Number(_) => return None,
            Value::Text(text) => text.clone(),
        };
        Some(if left { format!("   uniq {text:>12} <") } else { format!("   uniq {text:>12} >") })
    };
    match (one, two) {
        (Some(value), None) => unique(value, true),
        (None, Some(value)) => unique(value, false),
        (Some(&Value::Number(a)), Some(&Value::Number(b))) => numbers(name, a, b, precision),
        (Some(a), Some(b)) => (a != b).then(|| format!("    str {} | {}", shown(a), shown(b))),
        (None, None) => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.clone(),
    }
}

fn numbers(name: &str, a: f64, b: f64, precision: f64) -> Option<String> {
    if a <= 0.0 && b <= 0.0 || is_time(name) && (a - b).abs() < RESOLUTION_MS {
        return None;
    }
    let sign = if a < b { '<' } else { '>' };
    if a <= 0.0 || b <= 0.0 {
        return Some(format!("    inf {a:>12.2} {sign} {b:>12.2}"));
    }
    let percent_of = |base: f64| 100.0 * (b - a) / base;
    // A fall and the rise back are both told or both not.
    let differs = a != b && percent_of(a.min(b)).abs() >= precision;
    differs.then(|| format!("{:>6.1}% {a:>12.2} {sign} {b:>12.2}", percent_of(a)))
}

fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A time in milliseconds.
fn is_time(name: &str) -> bool {
    let is = |part: &str| matches!(part, "rptm" | "due_rptm" | "ttl" | "late" | "100_continue");
    let number = matches!(leaf(name), "count" | "rel_dev");
    !number && (name.split('.').any(is) || name.starts_with("resp_tm") || name.starts_with("rptm_mean"))
}

fn is_important(name: &str, one: &BTreeMap<String, Value>, two: &BTreeMap<String, Value>) -> bool {
    let of_hist = name.contains(".hist.");
    let number = |values: &BTreeMap<String, Value>, name: &str| match values.get(name) {
        Some(Value::Number(number)) => *number,
        _ => 0.0,
    };
    let has = |name: &str| one.contains_key(name) || two.contains_key(name);
    match leaf(name) {
        "last" | "rel_dev" | "std_dev" | "sum" => return false,
        "min" | "max" if !of_hist => return false,
        "mean" if !of_hist && has(&format!("{}.hist.mean", name.trim_end_matches(".mean"))) => return false,
        _ => {}
    }
    let stem = name.trim_end_matches(leaf(name)).trim_end_matches('.');
    let stem = stem.strip_suffix(".hist").unwrap_or(stem);
    let count = if leaf(name) == "count" { name.to_owned() } else { format!("{stem}.count") };
    if !has(&count) {
        return true;
    }
    let share = |values| {
        let started = number(values, "xact.started");
        if started > 0.0 { number(values, &count) / started } else { 1.0 }
    };
    let enough = if name.starts_with("err") { RARE_ERROR } else { RARE };
    share(one).max(share(two)) >= enough
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lx::{LxOptions, lx};
    use crate::testlog::Run;

    const ONE: &str = "name: meas\nxact.started: 1000\nrep_rate: 100.00\nrptm_mean:hit: 12.00\nhit.rptm.count: 500\n\
        hit.rptm.mean: 12.00\nhit.rptm.max: 90.00\nabort.size.count: 3\nundefined: -1.00\nhit.rptm.hist:\n\
        #  bin min max count % acc%\n 0 0 9 100 20 20\n 1 10 19 300 60 80\n 2 20 99 100 20 100\n\nonly: 5.00\n";

    fn compare(one: &str, two: &str, scope: CmpScope) -> (usize, String) {
        let found = cmp_lx(one, two, 10.0, scope);
        (found.count, found.text)
    }

    #[test]
    fn equal_outputs_do_not_differ() {
        assert_eq!(compare(ONE, ONE, CmpScope::All).0, 0);
        let run = Run { rich: true, ..Run::default() };
        let text = lx(&run.logs(), &LxOptions::default()).unwrap();
        assert_eq!(compare(&text, &text, CmpScope::All), (0, String::new()));
        let other = Run { rich: true, seed: 5, rate: 150.0, ..Run::default() };
        let other = lx(&other.logs(), &LxOptions::default()).unwrap();
        let (count, told) = compare(&text, &other, CmpScope::Important);
        assert!(told.contains("rep_rate: ") && !told.contains("hit.rptm.hist.p50"), "{told}");
        assert!(count < compare(&text, &other, CmpScope::All).0);
    }

    #[test]
    fn differences_by_kind() {
        let two = ONE
            .replace("rep_rate: 100", "rep_rate: 111")
            .replace("name: meas", "name: warm")
            .replace("hit: 12.00", "hit: 12.90")
            .replace("undefined: -1.00", "undefined: 7.00")
            .replace("max: 90", "max: 190")
            .replace("size.count: 3", "size.count: 9")
            .replace("only: 5.00", "other: 6.00");
        let (count, text) = compare(ONE, &two, CmpScope::Important);
        insta::assert_snapshot!(text);
        assert_eq!(count, 5);
        // With extremes and rare classes.
        assert_eq!(compare(ONE, &two, CmpScope::All).0, 7);
    }

    #[test]
    fn changes_are_in_percent_of_the_first_number() {
        for (one, two, expected) in [(100, 110, "  10.0%"), (110, 100, "  -9.1%"), (1729, 292, " -83.1%")] {
            let (_, text) = compare(&format!("x: {one}\n"), &format!("x: {two}\n"), CmpScope::All);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn distributions_are_compared_in_the_middle() {
        let two = ONE.replace("1 10 19 300", "1 10 29 300");
        let (count, text) = compare(ONE, &two, CmpScope::All);
        assert!(text.contains("hit.rptm.hist.p50: ") && text.contains("52.6%"), "{text}");
        assert_eq!(count, 4, "mean and quartiles: {text}");
    }
}
