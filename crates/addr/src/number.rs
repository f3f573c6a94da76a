//! Ranges of numbers, `n-m`, as they appear in addresses and names.

use std::fmt;
use std::ops::Range;

use crate::{ParseError, ParseProblem};

/// Consecutive numbers, both ends included; `lo` is never above `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// The first number.
    pub lo: u32,
    /// The last number.
    pub hi: u32,
}

impl NumberRange {
    /// The numbers from `lo` to `hi`, or `None` if `hi` is smaller.
    pub fn new(lo: u32, hi: u32) -> Option<Self> {
        (lo <= hi).then_some(NumberRange { lo, hi })
    }

    /// A range of one number.
    pub fn one(n: u32) -> Self {
        NumberRange { lo: n, hi: n }
    }

    /// The count of numbers.
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub fn len(self) -> u64 {
        u64::from(self.hi) - u64::from(self.lo) + 1
    }

    /// The number at an index that wraps around, and the index for the next slower position.
    pub(crate) fn digit(self, index: u64) -> (u32, u64) {
        (self.lo + (index % self.len()) as u32, index / self.len())
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lo == self.hi {
            true => write!(f, "{}", self.lo),
            false => write!(f, "{}-{}", self.lo, self.hi),
        }
    }
}

/// Reads `n` or `n-m` in the given base, 10 or 16.
pub(crate) fn read_range(
    text: &str,
    at: Range<usize>,
    base: u32,
    what: &'static str,
    max: u32,
) -> Result<NumberRange, ParseError> {
    let part = &text[at.clone()];
    let number = |at: Range<usize>| {
        let digits = &text[at.clone()];
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
            return Err(ParseError::new(text, at, ParseProblem::NotASpan(part.to_owned())));
        }
        match u32::from_str_radix(digits, base) {
            Ok(n) if n <= max => Ok(n),
            _ => Err(ParseError::new(text, at, ParseProblem::TooBig { what, value: digits.to_owned(), max })),
        }
    };
    let (lo, hi) = match part.find('-') {
        None => (number(at.clone())?, number(at.clone())?),
        Some(dash) => (number(at.start..at.start + dash)?, number(at.start + dash + 1..at.end)?),
    };
    match NumberRange::new(lo, hi) {
        Some(span) => Ok(span),
        None => Err(ParseError::new(text, at, ParseProblem::Backwards(part.to_owned()))),
    }
}

pub(crate) fn strip_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

/// True for text of digits, dots, dashes and brackets, which is an IPv4 address even if it is a wrong one. A
/// name has a letter, a `*` or a `\`.
pub(crate) fn looks_like_ipv4(host: &str) -> bool {
    host.bytes().all(|b| b.is_ascii_digit() || b".-[]".contains(&b))
}
