//! Numbers as text for people: every crate that prints a number for a reader uses these functions, so that numbers look the same
//! everywhere. A number and its unit have a space between them, thousands are separated, and digits that mean nothing are left out.

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

/// A whole number with separated thousands.
pub fn whole(count: u64) -> String {
    number(Some(count as f64), 0)
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
    if size < 1024.0 {
        // Means have fractions.
        let unit = if size == 1.0 { "byte" } else { "bytes" };
        return format!("{} {unit}", trimmed(size, 1));
    }
    size /= 1024.0;
    for unit in ["KB", "MB", "GB"] {
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

/// A share from 0 to 1 as a percentage with at most the given number of decimals, without zeros at their end.
pub fn percent(share: f64, decimals: usize) -> String {
    format!("{} %", trimmed(share * 100.0, decimals))
}

/// A number with at most the given number of decimals, without zeros at their end.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = number(Some(value), decimals);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number of things: `1 run`, `2 runs`. `name` is the singular of a noun with a regular plural.
pub fn counted(count: u64, name: &str) -> String {
    format!("{} {}", whole(count), plural(count, name))
}

/// The noun of that number of things, without the number: `run`, `runs`.
pub fn plural(count: u64, name: &str) -> String {
    let before_y = name.strip_suffix('y').filter(|rest| !rest.ends_with(['a', 'e', 'o', 'u']));
    match before_y {
        _ if count == 1 => name.to_owned(),
        Some(rest) => format!("{rest}ies"),
        None if name.ends_with(['s', 'x']) || name.ends_with("ch") => format!("{name}es"),
        None => format!("{name}s"),
    }
}

/// How often something happened.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { counted(count, "time") }
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
        assert_eq!([0, 999, 1000, 1_048_576].map(whole), ["0", "999", "1,000", "1,048,576"]);
    }

    #[test]
    fn numbers_have_units() {
        let times = [1390.4, 0.0421, 31000.0, 5.0, 0.0].map(|value| ms(Some(value)));
        assert_eq!(times, ["1,390 ms", "42.1 µs", "31.0 s", "5.00 ms", "0 ms"]);
        let sizes = [0.0, 1.0, 12.0, 500.5, 13_000.0].map(|size| bytes(Some(size)));
        assert_eq!(sizes, ["0 bytes", "1 byte", "12 bytes", "500.5 bytes", "12.7 KB"]);
        assert_eq!([4.0, 0.25, 3600.0, 3725.0].map(duration), ["4 s", "0.2 s", "1 h", "1 h 2 min 5 s"]);
        // 0.07 * 100 is more than 7.
        let shares = [(0.07, 2), (1.0, 2), (0.335, 0), (0.000_5, 2), (0.123_456, 2)];
        assert_eq!(
            shares.map(|(share, decimals)| percent(share, decimals)),
            ["7 %", "100 %", "34 %", "0.05 %", "12.35 %"]
        );
    }

    #[test]
    fn things_are_counted() {
        for (count, name, want) in [
            (0, "run", "0 runs"),
            (1, "run", "1 run"),
            (2, "run", "2 runs"),
            (1, "process", "1 process"),
            (2, "process", "2 processes"),
            (2, "address", "2 addresses"),
            (2, "query", "2 queries"),
            (2, "key", "2 keys"),
            (1200, "reply", "1,200 replies"),
        ] {
            assert_eq!(counted(count, name), want);
        }
        assert_eq!([1, 2, 1000].map(times), ["once", "2 times", "1,000 times"]);
    }
}
