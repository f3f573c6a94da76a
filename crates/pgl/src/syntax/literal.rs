//! Values of number literals: plain, with `%`, and with units.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::value::Value;

/// Units of time with their length in microseconds.
pub const TIME_UNITS: &[(&str, i64)] = &[
    ("msec", 1_000),
    ("ms", 1_000),
    ("sec", 1_000_000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("hour", 3_600_000_000),
    ("hr", 3_600_000_000),
    ("day", 86_400_000_000),
    ("year", 31_536_000_000_000),
];

/// Units of size with their length in bits.
pub const SIZE_UNITS: &[(&str, i64)] = &[
    ("bit", 1),
    ("Byte", 8),
    ("Kb", 1 << 10),
    ("KB", 1 << 13),
    ("Mb", 1 << 20),
    ("MB", 1 << 23),
    ("Gb", 1 << 30),
    ("GB", 1 << 33),
];

/// Words that are units when they stand alone; the other units are names then.
pub const BARE: &[&str] =
    &["msec", "sec", "min", "hour", "day", "year", "bit", "Byte", "Kb", "KB", "Mb", "MB", "Gb", "GB"];

type Result = std::result::Result<Value, Box<Diagnostic>>;

fn fail(code: Code, span: Span, text: impl Into<String>) -> Result {
    Err(Box::new(Diagnostic::new(code, span, text)))
}

/// The value of a boolean or unit word that stands alone; `None` for ordinary names.
pub fn constant(word: &str, span: Span) -> Option<Result> {
    match word {
        "yes" | "true" | "on" => Some(Ok(Value::Bool(true))),
        "no" | "false" | "off" => Some(Ok(Value::Bool(false))),
        _ if BARE.contains(&word) => Some(with_unit("1", word, span)),
        _ => None,
    }
}

/// The value of digits.
pub fn int(text: &str, span: Span) -> Result {
    match text.parse::<i32>() {
        Ok(value) => Ok(Value::Int(value)),
        Err(_) => Err(Box::new(
            Diagnostic::new(Code::IntTooLarge, span, format!("{text} is too large for an int"))
                .note("an int has 32 bits, up to 2147483647")
                .help(format!("write `{text}.0` for a float, or use a unit")),
        )),
    }
}

/// The value of a number with a point or exponent.
pub fn float(text: &str, span: Span) -> Result {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Float(value)),
        _ => fail(Code::BadNumber, span, format!("{text} is too large for a float")),
    }
}

/// The value of a number with `%`.
pub fn percent(text: &str, span: Span) -> Result {
    let digits = text.trim_end_matches('%');
    if digits.contains('e') {
        return fail(Code::BadNumber, span, "a percentage cannot have an exponent");
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Float(value / 100.0)),
        _ => fail(Code::BadNumber, span, format!("{text} is too large")),
    }
}

/// The value of a number with a word glued to it.
pub fn measure(text: &str, span: Span) -> Result {
    let bytes = text.as_bytes();
    let mut split = bytes.iter().position(|c| !matches!(c, b'0'..=b'9' | b'.')).unwrap_or(bytes.len());
    // `1e3sec`: the letter e starts an exponent if digits follow, otherwise a word.
    let exponent = bytes.get(split) == Some(&b'e')
        && bytes[split + 1..].iter().find(|c| !matches!(c, b'+' | b'-')).is_some_and(u8::is_ascii_digit);
    if exponent {
        split = bytes
            .iter()
            .skip(split + 2)
            .position(u8::is_ascii_alphabetic)
            .map_or(bytes.len(), |n| n + split + 2);
    }
    let (number, unit) = text.split_at(split);
    if exponent {
        let text = "a number with a unit cannot have an exponent";
        return fail(Code::BadNumber, span, text);
    }
    with_unit(number, unit, span)
}

fn with_unit(number: &str, unit: &str, span: Span) -> Result {
    // Digits are computed exactly: 0.3sec is 300 milliseconds, not 299.999.
    let Some((digits, scale)) = decimal(number) else {
        return fail(Code::BadNumber, span, format!("{number}{unit} has too many digits"));
    };
    let too_large = || fail(Code::Overflow, span, format!("{number}{unit} is too large"));
    if let Some((_, us)) = TIME_UNITS.iter().find(|(name, _)| *name == unit) {
        let Some(us) = digits.checked_mul(i128::from(*us)).map(|us| us / scale) else { return too_large() };
        return i64::try_from(us).map_or_else(|_| too_large(), |us| Ok(Value::Time(us)));
    }
    if let Some((_, bits)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
        let Some(bits) = digits.checked_mul(i128::from(*bits)) else { return too_large() };
        let bytes = match unit {
            "bit" => {
                let bits = (bits + scale / 2) / scale;
                if bits % 8 != 0 {
                    return Err(Box::new(
                        Diagnostic::new(
                            Code::PartialByte,
                            span,
                            format!("{bits} bits are not a whole number of bytes"),
                        )
                        .help("a number of bits must be a multiple of 8"),
                    ));
                }
                bits / 8
            }
            "Byte" => (bits / 8 + scale / 2) / scale,
            _ => bits / 8 / scale,
        };
        return i64::try_from(bytes).map_or_else(|_| too_large(), |bytes| Ok(Value::Size(bytes)));
    }
    let at = span.part(number.len(), number.len() + unit.len());
    fail(Code::UnknownUnit, at, format!("`{unit}` is not a unit"))
}

/// Number and word of a measure whose word is not a unit.
pub fn bad_unit(text: &str) -> Option<(&str, &str)> {
    let split = text.find(|c: char| !matches!(c, '0'..='9' | '.'))?;
    let (number, unit) = text.split_at(split);
    let word = unit.bytes().all(|c| c.is_ascii_alphabetic());
    let known = TIME_UNITS.iter().chain(SIZE_UNITS).any(|(name, _)| *name == unit);
    (word && !known && decimal(number).is_some()).then_some((number, unit))
}

/// The unit that a word usually means, of those that fit.
pub fn unit_alias(word: &str, fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    Some(match word {
        "seconds" | "second" | "secs" => "sec",
        "m" if fits("MB") => "MB",
        "minutes" | "minute" | "mins" | "m" => "min",
        "hours" | "h" => "hour",
        "days" | "d" => "day",
        "years" | "y" => "year",
        "b" | "B" | "bytes" => "Byte",
        "k" | "K" | "kb" | "kB" | "KiB" => "KB",
        "M" | "mb" | "MiB" => "MB",
        "g" | "G" | "gb" | "GiB" => "GB",
        _ => return None,
    })
}

/// The unit that a word means where units stand without a number: `10/second`.
pub fn bare_unit(word: &str) -> Option<&'static str> {
    match word {
        "s" => Some("sec"),
        "ms" => Some("msec"),
        "hr" => Some("hour"),
        word if word.len() > 1 => unit_alias(word, |_| true),
        _ => None,
    }
}

/// `12.5` as (125, 10); `None` with more digits than fit.
fn decimal(text: &str) -> Option<(i128, i128)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // Digits beyond any resolution are dropped rather than refused.
    let fraction = &fraction[..fraction.len().min(15)];
    if whole.len() > 19 {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse::<i128>().ok()?;
    Some((digits, 10i128.pow(fraction.len() as u32)))
}
