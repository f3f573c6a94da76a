//! The value grammar of the command lines (`docs/reference/tools.md`, "Value grammar").
//!
//! | kind | examples |
//! |---|---|
//! | share | `0.55`, `55%`, `55p` |
//! | time | `3s`, `1.5min`, `1hr`, `250msec`, `0` |
//! | size | `13KB`, `1MB`, `512` (steps of 1024 bytes) |
//! | rate | `250/sec`, `3/min` |
//! | distribution | `exp:13KB`, `norm:3s,1.5s`, `unif:1s,2s`, `const:5s`, `logn:25KB,10KB`, `zipf:64`, `seq:10` |
//! | goal | `1hr`, `5000`, `-1:1hr:0.30` (transactions : time : errors) |
//!
//! Every function takes the whole value and returns its meaning, or a sentence that says what would be right.

use polygraph_traffic::{Distr, Popularity};

use crate::goal::Goal;

/// A share between 0 and 1.
///
/// # Errors
/// If the text is anything else.
pub fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a share: write 55p, 55% or 0.55");
    let (digits, scale) = match text.strip_suffix(['p', '%']) {
        Some(digits) => (digits, 0.01),
        None => (text, 1.0),
    };
    let value = number(digits).ok_or_else(wrong)? * scale;
    if !(0.0..=1.0).contains(&value) {
        return Err(format!("`{text}` is not a share from 0p to 100p: write 55p, 55% or 0.55"));
    }
    Ok(value)
}

/// A time in seconds; a unit without a number means one of it.
///
/// # Errors
/// If the text is anything else.
pub fn time(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a time: write 3s, 250msec, 1.5min, 1hr or 2day");
    if text == "0" {
        return Ok(0.0);
    }
    let (digits, unit) = split_unit(text);
    let seconds = match unit {
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" => 1.0,
        "min" => 60.0,
        "h" | "hr" | "hour" => 3600.0,
        "day" => 86_400.0,
        "year" => 365.0 * 86_400.0,
        _ => return Err(wrong()),
    };
    let count = if digits.is_empty() { 1.0 } else { number(digits).ok_or_else(wrong)? };
    non_negative(count * seconds, text)
}

/// A size in bytes.
///
/// # Errors
/// If the text is anything else.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write 13KB, 1.5MB, 256MB, 2GB or 512 for bytes");
    let (digits, unit) = split_unit(text);
    let bytes: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let value = non_negative(number(digits).ok_or_else(wrong)? * bytes, text)?;
    Ok(value.round() as u64)
}

/// A rate per second.
///
/// # Errors
/// If the text is anything else or not positive.
pub fn rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a rate: write 250/sec, 3/min or 0.4/sec");
    let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
    let seconds = time(if unit.is_empty() { "sec" } else { unit }).map_err(|_| wrong())?;
    let value = number(count).ok_or_else(wrong)? / seconds;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(format!("`{text}` is not a rate: it must be positive; leave out the option for best effort"))
    }
}

/// The unit of the parameters of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times; values in seconds.
    Time,
    /// Sizes; values in bytes.
    Size,
    /// Plain numbers.
    Count,
}

impl Unit {
    fn parse(self, text: &str) -> Result<f64, String> {
        match self {
            Unit::Time => time(text),
            Unit::Size => size(text).map(|bytes| bytes as f64),
            Unit::Count => number(text)
                .filter(|value| *value >= 0.0)
                .ok_or_else(|| format!("`{text}` is not a number: write for example 64")),
        }
    }

    fn example(self) -> &'static str {
        match self {
            Unit::Time => "norm:3s,1.5s, exp:2s, unif:1s,2s or const:3s",
            Unit::Size => "exp:13KB, logn:25KB,10KB, unif:1KB,8KB or const:13KB",
            Unit::Count => "const:1, zipf:64, exp:10 or unif:1,5",
        }
    }
}

/// A distribution, `type:p1,p2` or `type(p1,p2)`; a plain value is constant.
///
/// # Errors
/// If the text is anything else.
pub fn distr(text: &str, unit: Unit) -> Result<Distr, String> {
    let wrong = |why: String| format!("`{text}` is not a distribution: {why}; write {}", unit.example());
    let opening = text.find([':', '(']);
    let (name, parameters) = match opening {
        Some(at) if text.as_bytes()[at] == b'(' => {
            let inner = text[at + 1..].strip_suffix(')').ok_or_else(|| wrong("`)` is missing".into()))?;
            (&text[..at], inner)
        }
        Some(at) => (&text[..at], &text[at + 1..]),
        None => return unit.parse(text).map(Distr::Const).map_err(wrong),
    };
    let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let value = |i: usize| unit.parse(parameters[i]).map_err(wrong);
    let want = |count: usize| match parameters.len() == count {
        true => Ok(()),
        false => Err(wrong(format!("`{name}` takes {count} parameter(s), not {}", parameters.len()))),
    };
    let whole = |i: usize| {
        parameters[i]
            .parse::<u64>()
            .ok()
            .filter(|&n| n > 0)
            .ok_or_else(|| wrong(format!("`{}` is not a positive whole number", parameters[i])))
    };
    match name.to_ascii_lowercase().as_str() {
        "const" => want(1).and_then(|()| Ok(Distr::Const(value(0)?))),
        "exp" => want(1).and_then(|()| Ok(Distr::Exp { mean: value(0)? })),
        "unif" => {
            want(2)?;
            let (min, max) = (value(0)?, value(1)?);
            if min > max {
                return Err(wrong("the smaller value must come first".into()));
            }
            Ok(Distr::Unif { min, max })
        }
        "norm" => want(2).and_then(|()| Ok(Distr::Norm { mean: value(0)?, sd: value(1)? })),
        "logn" => want(2).and_then(|()| Ok(Distr::logn(value(0)?, value(1)?))),
        "zipf" => want(1).and_then(|()| Ok(Distr::Zipf { n: whole(0)? })),
        "seq" => want(1).and_then(|()| Ok(Distr::Seq { period: whole(0)? })),
        "table" | "tab" => Err(wrong("tables are not supported here yet".into())),
        _ => Err(wrong(format!("`{name}` is not one of const, exp, unif, norm, logn, zipf, seq"))),
    }
}

/// A distribution or `none`.
///
/// # Errors
/// As [`distr`].
pub fn optional_distr(text: &str, unit: Unit) -> Result<Option<Distr>, String> {
    if is_none(text) { Ok(None) } else { distr(text, unit).map(Some) }
}

/// A time or `none`.
///
/// # Errors
/// As [`time`].
pub fn optional_time(text: &str) -> Result<Option<f64>, String> {
    if is_none(text) { Ok(None) } else { time(text).map(Some) }
}

/// A goal: a time, a number of transactions, or `transactions:time:errors` with -1 for none.
///
/// # Errors
/// If the text is anything else.
pub fn goal(text: &str) -> Result<Goal, String> {
    let wrong = |why: String| {
        format!(
            "`{text}` is not a goal: {why}; write 1hr, 5000 (transactions) or -1:1hr:0.30 (transactions:time:errors)"
        )
    };
    // A phase without a goal never ends, and one of no length measures nothing: neither is meant by 0.
    let is_zero = |part: &str| wrong(format!("`{part}` would end the test before it begins"));
    let xactions = |part: &str| match whole_or_none(part) {
        Some(Some(0)) => Err(is_zero(part)),
        Some(xactions) => Ok(xactions),
        None => Err(wrong(format!("`{part}` is not a number of transactions"))),
    };
    let duration = |part: &str| match time(part).map_err(wrong)? {
        0.0 => Err(is_zero(part)),
        seconds => Ok(Some(seconds)),
    };
    let absent = |part: &str| part == "-1" || is_none(part);
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [one] if whole_or_none(one).is_some() => Ok(Goal { xactions: xactions(one)?, ..Goal::default() }),
        [one] => Ok(Goal { duration: duration(one)?, ..Goal::default() }),
        [count, length, errors] => Ok(Goal {
            fill_size: None,
            xactions: xactions(count)?,
            duration: if absent(length) { None } else { duration(length)? },
            errors: if absent(errors) { None } else { Some(errors_limit(errors).map_err(wrong)?) },
        }),
        _ => Err(wrong("it must have one part or three parts".into())),
    }
}

/// The negative part of a goal: a share below 1 or a number of errors.
fn errors_limit(text: &str) -> Result<f64, String> {
    match number(text) {
        Some(value) if value >= 1.0 => Ok(value),
        _ => share(text).ok().filter(|&share| share > 0.0).ok_or_else(|| {
            format!("`{text}` is not an error limit: a share like 0.30 or a number of errors like 10")
        }),
    }
}

/// A range of ports, `1024:30000`.
///
/// # Errors
/// If the text is anything else.
pub fn ports(text: &str) -> Result<(u16, u16), String> {
    let range = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    match range {
        Some((low, high)) if (1..=high).contains(&low) => Ok((low, high)),
        _ => Err(format!("`{text}` is not a port range: write low:high, for example 1024:30000")),
    }
}

/// A user name and a password, `joe:secret`.
///
/// # Errors
/// If there is no name or no colon.
pub fn credentials(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("write name:password, for example joe:secret".to_owned()),
    }
}

/// A popularity model: `unif`, `zipf` or `zipf:skew`.
///
/// # Errors
/// If the text is anything else.
pub fn popularity(text: &str) -> Result<Popularity, String> {
    let wrong = || format!("`{text}` is not a popularity model: write unif, zipf or zipf:0.8");
    match text.split_once(':') {
        None if text == "unif" => Ok(Popularity::Unif),
        None if text == "zipf" => Ok(Popularity::Zipf { skew: 1.0 }),
        Some(("zipf", skew)) => match number(skew) {
            Some(skew) if skew > 0.0 => Ok(Popularity::Zipf { skew }),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// True for the word that means "no value".
pub fn is_none(text: &str) -> bool {
    text.eq_ignore_ascii_case("none")
}

/// A finite decimal number without exponent or sign tricks.
fn number(text: &str) -> Option<f64> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// A whole number; -1 and `none` mean no limit. The outer `None`: neither.
fn whole_or_none(text: &str) -> Option<Option<u64>> {
    if text == "-1" || is_none(text) {
        return Some(None);
    }
    text.parse().ok().map(Some)
}

fn split_unit(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (&text[..at], &text[at..])
}

fn non_negative(value: f64, text: &str) -> Result<f64, String> {
    if value >= 0.0 { Ok(value) } else { Err(format!("`{text}` is negative")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        for text in ["80p", "80%", "0.8"] {
            assert!((share(text).unwrap() - 0.8).abs() < 1e-12, "{text}");
        }
        for text in ["", "p", "101p", "1.5", "-5p", "eighty", "8 0p", "1e0"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        for text in ["1hr", "60min", "3600s", "hour", "3600sec", "1h"] {
            assert_eq!(time(text), Ok(3600.0), "{text}");
        }
        assert_eq!(time("250msec"), Ok(0.25));
        assert_eq!(time("0"), Ok(0.0));
        for text in ["", "3", "3parsec", "-3s", "s3"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_rates() {
        assert_eq!(size("13KB"), Ok(13_312));
        assert_eq!(size("256MB"), Ok(256 << 20));
        assert_eq!(size("1.5K"), Ok(1536));
        assert!(size("KB").is_err() && size("13kilo").is_err());
        assert_eq!(rate("250/sec"), Ok(250.0));
        assert_eq!(rate("3/min"), Ok(0.05));
        assert_eq!(rate("7/"), Ok(7.0));
        assert!(rate("250").is_err() && rate("0/sec").is_err() && rate("x/sec").is_err());
    }

    #[test]
    fn distributions() {
        assert_eq!(distr("norm:3s,1.5s", Unit::Time), Ok(Distr::Norm { mean: 3.0, sd: 1.5 }));
        assert_eq!(distr("norm(3s, 1500ms)", Unit::Time), Ok(Distr::Norm { mean: 3.0, sd: 1.5 }));
        assert_eq!(distr("exp:13KB", Unit::Size), Ok(Distr::Exp { mean: 13_312.0 }));
        assert_eq!(distr("zipf:64", Unit::Count), Ok(Distr::Zipf { n: 64 }));
        assert_eq!(distr("2s", Unit::Time), Ok(Distr::Const(2.0)));
        assert_eq!(optional_distr("none", Unit::Time), Ok(None));
        for text in
            ["norm:3s", "norm:3s,1.5s,2s", "normal:3s,1s", "exp:13s", "unif:5KB,1KB", "exp(13KB", "zipf:0"]
        {
            assert!(distr(text, Unit::Size).is_err(), "{text}");
        }
    }

    #[test]
    fn goals() {
        let paper = Goal { duration: Some(3600.0), errors: Some(0.30), ..Goal::default() };
        assert_eq!(goal("-1:1hr:0.30"), Ok(paper));
        assert_eq!(goal("1hr"), Ok(Goal { duration: Some(3600.0), ..Goal::default() }));
        assert_eq!(goal("5000"), Ok(Goal { xactions: Some(5000), ..Goal::default() }));
        assert_eq!(
            goal("100:-1:10"),
            Ok(Goal { xactions: Some(100), errors: Some(10.0), ..Goal::default() })
        );
        for text in ["", "1hr:0.3", "a:1hr:0.3", "-1:soon:0.3", "-1:1hr:lots"] {
            assert!(goal(text).is_err(), "{text}");
        }
        for text in ["0", "0s", "0min", "0:1hr:0.30", "-1:0:0.30", "0:-1:-1"] {
            let error = goal(text).unwrap_err();
            assert!(error.contains("would end the test before it begins; write 1hr"), "{text}: {error}");
        }
    }

    #[test]
    fn wrong_values_say_what_would_be_right() {
        assert_eq!(share("55x").unwrap_err(), "`55x` is not a share: write 55p, 55% or 0.55");
        assert_eq!(
            distr("norm:3s", Unit::Time).unwrap_err(),
            "`norm:3s` is not a distribution: `norm` takes 2 parameter(s), not 1; write norm:3s,1.5s, exp:2s, \
             unif:1s,2s or const:3s"
        );
        assert_eq!(
            ports("30000:1024").unwrap_err(),
            "`30000:1024` is not a port range: write low:high, for example 1024:30000"
        );
        assert_eq!(credentials("joe:a:b").as_deref(), Ok("joe:a:b"));
        for text in ["joe", ":secret", ""] {
            assert_eq!(
                credentials(text).unwrap_err(),
                "write name:password, for example joe:secret",
                "{text}"
            );
        }
    }
}
