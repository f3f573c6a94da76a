//! Numbers, times and commands as text for people.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The text for an undefined value.
pub const UNDEFINED: &str = "–";

/// A number with the given number of decimals and separated thousands; a dash if it is undefined.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    let Some(value) = value else { return UNDEFINED.to_owned() };
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let negative = value < 0.0 && plain.bytes().any(|b| b.is_ascii_digit() && b != b'0');
    let mut out = String::from(if negative { "-" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number with about three significant digits, more if it is large.
pub fn short(value: Option<f64>) -> String {
    number(value, value.map_or(0, decimals))
}

/// The decimals that show about three significant digits of a number, at most three.
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v > 0.0 => 3,
        _ => 0,
    }
}

/// A time given in milliseconds, with a unit: seconds from ten seconds on, µs below a tenth of a millisecond.
pub fn ms(value: Option<f64>) -> String {
    match value {
        None => UNDEFINED.to_owned(),
        Some(_) => {
            let (number, unit) = in_unit(value);
            format!("{number} {unit}")
        }
    }
}

/// The same as a number and its unit.
pub fn in_unit(ms: Option<f64>) -> (String, &'static str) {
    match ms {
        Some(v) if v >= 10_000.0 => (short(Some(v / 1000.0)), "s"),
        Some(v) if v > 0.0 && v < 0.1 => (short(Some(v * 1000.0)), "µs"),
        _ => (short(ms), "ms"),
    }
}

/// A number of bytes in the largest suitable binary unit.
pub fn bytes(value: Option<f64>) -> String {
    let Some(mut size) = value else { return UNDEFINED.to_owned() };
    for unit in ["bytes", "KB", "MB", "GB"] {
        if size < 1024.0 {
            return format!("{} {unit}", short(Some(size)));
        }
        size /= 1024.0;
    }
    format!("{} TB", short(Some(size)))
}

/// A duration in seconds, minutes and hours.
pub fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        let text = format!("{seconds:.1}");
        return format!("{} s", text.strip_suffix(".0").unwrap_or(&text));
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, 0) => format!("{h} h"),
        (h, m, 0) => format!("{h} h {m} min"),
        (h, m, s) => format!("{h} h {m} min {s} s"),
    }
}

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

/// How often something happened.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", number(Some(count as f64), 0)) }
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
    fn numbers() {
        for (value, decimals, want) in [
            (Some(1234567.891), 2, "1,234,567.89"),
            (Some(999.0), 0, "999"),
            (Some(-1000.5), 1, "-1,000.5"),
            (Some(-0.001), 2, "0.00"),
            (None, 2, "–"),
        ] {
            assert_eq!(number(value, decimals), want);
        }
        assert_eq!(
            (ms(Some(1390.4)), ms(Some(0.0421)), ms(Some(31000.0))),
            ("1,390 ms".into(), "42.1 µs".into(), "31.0 s".into())
        );
        assert_eq!((bytes(Some(0.0)), bytes(Some(13_000.0))), ("0 bytes".into(), "12.7 KB".into()));
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "value"], ["a", "1.5"], ["–", "100.25"]].map(|row| row.map(str::to_owned));
        let lines = aligned(rows.iter().map(<[String; 2]>::as_slice), 1);
        assert_eq!(lines, ["name   value", "a        1.5", "–     100.25"]);
    }

    #[test]
    fn durations_and_commands() {
        assert_eq!(
            [duration(4.0), duration(0.25), duration(3600.0), duration(3725.0)],
            ["4 s", "0.2 s", "1 h", "1 h 2 min 5 s"]
        );
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
