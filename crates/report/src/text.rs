//! Tables, times of day and commands as text for people, besides the [numbers](polygraph_text).

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use polygraph_text::{
    UNDEFINED, bytes, counted, decimals, duration, in_unit, ms, number, percent, plural, short, times,
    trimmed, whole,
};

/// Lines of a table with aligned columns: the first `left` columns to the left, all others, which are numbers, to the
/// right. All rows must have as many cells as the first one.
pub fn aligned<'a>(rows: impl Iterator<Item = &'a [String]> + Clone, left: usize) -> Vec<String> {
    let count = rows.clone().next().map_or(0, <[String]>::len);
    let width = |column: usize| rows.clone().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.map(|row| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let gap = " ".repeat(width - cell.chars().count());
            if column < left { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    })
    .collect()
}

/// A text as a cell of a table for spreadsheets: text that a spreadsheet would read as a formula is prefixed with an
/// apostrophe.
pub fn harmless_cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if is_formula { format!("'{text}").into() } else { text.into() }
}

/// The same, quoted for a line of comma-separated values (RFC 4180).
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let cell = harmless_cell(text);
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\"")).into()
    } else {
        cell
    }
}

/// A time of day in UTC.
pub fn time_of_day(unix_ns: u64) -> String {
    match Timestamp::from_second(i64::try_from(unix_ns / 1_000_000_000).unwrap_or(i64::MAX)) {
        Ok(time) => time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => UNDEFINED.to_owned(),
    }
}

/// A command line quoted for a shell.
pub fn command(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "value"], ["a", "1.5"], ["–", "100.25"]].map(|row| row.map(str::to_owned));
        let lines = aligned(rows.iter().map(<[String; 2]>::as_slice), 1);
        assert_eq!(lines, ["name   value", "a        1.5", "–     100.25"]);
    }

    #[test]
    fn commands_and_times_of_day() {
        assert_eq!(command(&["a".into(), "b c".into(), "it's".into()]), "a 'b c' 'it'\\''s'");
        assert_eq!(time_of_day(920_863_899_589_571_000), "1999-03-08 03:31:39 UTC");
    }

    #[test]
    fn cells_are_no_formulas() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+cmd", "'+cmd"),
            ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=\"a\",b", "\"'=\"\"a\"\",b\""),
            ("-5", "-5"),
            ("+1.5e3", "+1.5e3"),
            ("a=b", "a=b"),
            ("", ""),
            ("a,b", "\"a,b\""),
        ] {
            assert_eq!(csv_cell(text), cell, "{text:?}");
        }
    }
}
