//! Constants in quotes: strings and string ranges; addresses, ranges, times and MIME headers.

use std::sync::Arc;

use polygraph_addr::{AddrRange, ParseError, ParseProblem, TextRange};

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Rec, fresh};
use crate::value::{MatchScope, Pattern, Slot, Value};

type Result = std::result::Result<Value, Box<Diagnostic>>;

/// The value of `"..."`; `text` includes the quotes.
pub fn string(text: &str, span: Span) -> Result {
    let inner = &text[1..text.len() - 1];
    if has_bracket(inner) {
        // `\"` means the same with and without a range, so the range parser gets the text as written.
        return match TextRange::parse(inner) {
            Ok(range) if range.len() == u64::MAX => too_many(span),
            Ok(range) => Ok(Value::StrRange(Arc::new(range))),
            Err(error) => Err(Box::new(
                from_addr(&error, Code::BadRange, span)
                    .help("an unescaped `[` starts a range `[n-m]`; write `\\[` for a plain bracket"),
            )),
        };
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    Ok(Value::Str(out.into()))
}

fn has_bracket(text: &str) -> bool {
    let mut escaped = false;
    text.bytes().any(|c| {
        let found = c == b'[' && !escaped;
        escaped = c == b'\\' && !escaped;
        found
    })
}

fn too_many(span: Span) -> Result {
    Err(Box::new(Diagnostic::new(Code::TooManyItems, span, "this range has too many items")))
}

/// The value of `'...'`; `text` includes the quotes. The content determines the type.
pub fn constant(text: &str, span: Span) -> Result {
    let inner = &text[1..text.len() - 1];
    if inner.contains(": ") || inner.contains(":\t") {
        return header(inner, span);
    }
    if inner.bytes().filter(|c| *c == b'/').count() == 2 {
        return time(inner, span);
    }
    // Positions of errors count from the text inside the quotes.
    let at = span.part(1, text.len() - 1);
    let range = AddrRange::parse(inner).map_err(|error| {
        let code = match error.problem {
            ParseProblem::NotASpan(_) | ParseProblem::Backwards(_) | ParseProblem::UnclosedGroup => {
                Code::BadRange
            }
            _ => Code::BadAddress,
        };
        Box::new(from_addr(&error, code, at))
    })?;
    if range.len() == u64::MAX {
        return too_many(span);
    }
    match range.as_single() {
        // A hyphen makes it a range even with only one address.
        Some(addr) if !inner.contains('-') => Ok(Value::Addr(Arc::new(addr))),
        _ => Ok(Value::AddrRange(Arc::new(range))),
    }
}

/// The diagnostic for a text that is not an address or range; `at` is the position of that text.
fn from_addr(error: &ParseError, code: Code, at: Span) -> Diagnostic {
    let place = if error.span.is_empty() { at } else { at.part(error.span.start, error.span.end) };
    Diagnostic::new(code, place, error.problem.to_string()).help(error.problem.help())
}

fn header(text: &str, span: Span) -> Result {
    let bad = |why: &str| {
        Err(Box::new(
            Diagnostic::new(Code::BadHeader, span, why)
                .note("a quoted constant with a colon and a blank is a MIME header `Name: value`"),
        ))
    };
    let Some((name, value)) = text.split_once(':') else { return bad("a MIME header needs a colon") };
    if name.trim().is_empty() {
        return bad("the name of the MIME header is empty");
    }
    if !value.starts_with([' ', '\t']) {
        return bad("the first colon of a MIME header must be followed by a blank");
    }
    if name.contains([' ', '\t']) {
        return bad("the name of a MIME header must not contain blanks");
    }
    let value = value.trim();
    let mut record = (*fresh(Rec::MimeHeader)).clone();
    let slot = |value: Value| Slot { value, at: Some(span) };
    record.slots[0] = slot(Value::str(name));
    if !value.is_empty() {
        record.slots[1] = slot(Value::str(value));
    }
    Ok(Value::Record(Arc::new(record)))
}

fn time(text: &str, span: Span) -> Result {
    match parse_time(text) {
        Some(seconds) => Ok(Value::Time(seconds * 1_000_000)),
        None => Err(Box::new(
            Diagnostic::new(Code::BadTime, span, "this is not an absolute time")
                .note("absolute times are 'YYYY/MM/DD', 'YYYY/MM/DD HH:MM' or 'YYYY/MM/DD HH:MM:SS'"),
        )),
    }
}

/// Seconds since 1970 in UTC; `None` if the text has another form or the day does not exist.
fn parse_time(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let number = |text: &str, digits: usize| {
        let good = text.len() == digits && text.bytes().all(|c| c.is_ascii_digit());
        good.then(|| text.parse::<i64>().ok()).flatten()
    };
    let mut parts = date.split('/');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), |text| number(text, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let longest = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    // Days from the civil calendar: years start in March, so that the leap day is the last one.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era_day = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    let days = era_day + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// A regular expression: its scope word and the literal `=~/re/flags`.
pub fn regex(
    scope: &str,
    text: &str,
    span: Span,
) -> std::result::Result<(Pattern, Option<Diagnostic>), Box<Diagnostic>> {
    let exact = text.starts_with("==");
    let delimiter = text[2..].chars().next().unwrap_or('/');
    let body = &text[3..];
    let Some(end) = body.rfind(delimiter) else {
        return Err(Box::new(Diagnostic::new(Code::BadRegex, span, "the regular expression is not closed")));
    };
    let (re, flags) = (&body[..end], &body[end + 1..]);
    let known = MatchScope::ALL.iter().find(|(word, _)| *word == scope);
    let warning = known.is_none().then(|| {
        Diagnostic::new(Code::UnknownScope, span, format!("`{scope}` is not a scope and is taken as url"))
            .did_you_mean(scope, MatchScope::ALL.iter().map(|(word, _)| *word))
    });
    let scope = known.map_or(MatchScope::Url, |(_, scope)| *scope);
    // Group names are compared case-sensitively by default, everything else case-insensitively.
    let mut ignore_case = !(exact && scope == MatchScope::UserGroup);
    for flag in flags.chars() {
        match flag {
            'i' => ignore_case = true,
            'C' => ignore_case = false,
            _ => {
                let text =
                    format!("`{flag}` is not a flag; the flags are `i` (ignore case) and `C` (case matters)");
                return Err(Box::new(Diagnostic::new(Code::BadRegex, span, text)));
            }
        }
    }
    if re.is_empty() {
        return Err(Box::new(Diagnostic::new(Code::BadRegex, span, "the regular expression is empty")));
    }
    let text = re.replace(&format!("\\{delimiter}"), &delimiter.to_string());
    if !exact && let Some(why) = malformed(&text) {
        return Err(Box::new(Diagnostic::new(Code::BadRegex, span, why)));
    }
    Ok((Pattern { scope, exact, text, ignore_case }, warning))
}

/// Finds brackets that do not match and repetitions of nothing, the common errors in POSIX extended syntax.
fn malformed(re: &str) -> Option<&'static str> {
    let mut open = 0usize;
    let mut after_atom = false;
    let mut chars = re.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                if chars.next().is_none() {
                    return Some("a backslash ends the regular expression");
                }
                after_atom = true;
            }
            '[' => {
                let _ = chars.next_if_eq(&'^');
                let _ = chars.next_if_eq(&']');
                if !chars.by_ref().any(|c| c == ']') {
                    return Some("a `[` of the regular expression is not closed");
                }
                after_atom = true;
            }
            '(' => {
                open += 1;
                after_atom = false;
            }
            ')' if open == 0 => return Some("a `)` of the regular expression has no `(`"),
            ')' => {
                open -= 1;
                after_atom = true;
            }
            '*' | '+' | '?' if !after_atom => return Some("nothing to repeat in the regular expression"),
            '|' => after_atom = false,
            '^' => {}
            _ => after_atom = true,
        }
    }
    (open > 0).then_some("a `(` of the regular expression is not closed")
}
