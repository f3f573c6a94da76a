//! Text with number positions: `www[1-5].host[1-2].com`.

use std::fmt;

use crate::number::{NumberRange, read_range, strip_brackets};
use crate::{ParseError, ParseProblem};

/// A part of a [`TextRange`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextPart {
    /// Text that stays as it is.
    Lit(String),
    /// A number that takes all values of a range.
    Range(NumberRange),
}

/// Text in which numbers take all values of a range. The right-most number changes fastest.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct TextRange {
    pub(crate) parts: Vec<TextPart>,
}

/// Whether `n-m` between dots, without brackets, is a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeSyntax {
    /// Only `[n-m]`: PGL strings.
    Plain,
    /// Also whole labels `n-m`; only characters of host names are allowed.
    HostName,
}

impl TextRange {
    /// Reads a string range: any number of `[n-m]` or `[n]` groups; a backslash makes the next character plain.
    /// Leading zeros of a range are lost.
    ///
    /// # Errors
    /// If a group is not closed or not a range of numbers, or the text ends with a backslash.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_within(text, 0..text.len(), RangeSyntax::Plain)
    }

    /// Builds a pattern from its parts.
    pub fn from_parts(parts: impl IntoIterator<Item = TextPart>) -> Self {
        let mut range = TextRange::default();
        for part in parts {
            match part {
                TextPart::Lit(text) => range.push_str(&text),
                TextPart::Range(_) => range.parts.push(part),
            }
        }
        range
    }

    /// A text without ranges, its digits kept as they are.
    pub fn literal(text: &str) -> Self {
        Self::from_parts([TextPart::Lit(text.to_owned())])
    }

    pub(crate) fn parse_within(
        text: &str,
        at: std::ops::Range<usize>,
        style: RangeSyntax,
    ) -> Result<Self, ParseError> {
        let fail = |span: std::ops::Range<usize>, problem| Err(ParseError::new(text, span, problem));
        let mut range = TextRange::default();
        let mut pos = at.start;
        while pos < at.end {
            let rest = &text[pos..at.end];
            let Some(c) = rest.chars().next() else { break };
            match c {
                '\\' => {
                    let Some(next) = rest[1..].chars().next() else {
                        return fail(pos..pos + 1, ParseProblem::DanglingEscape);
                    };
                    if style == RangeSyntax::HostName && !is_name_char(next) {
                        return fail(pos + 1..pos + 1 + next.len_utf8(), ParseProblem::NameChar(next));
                    }
                    range.push_str(next.encode_utf8(&mut [0; 4]));
                    pos += 1 + next.len_utf8();
                }
                '[' => {
                    let Some(len) = rest.find(']') else {
                        return fail(pos..at.end, ParseProblem::UnclosedGroup);
                    };
                    let inner = pos + 1..pos + len;
                    range.parts.push(TextPart::Range(read_range(text, inner, 10, "number", u32::MAX)?));
                    pos += len + 1;
                }
                _ if style == RangeSyntax::HostName && !is_name_char(c) => {
                    return fail(pos..pos + c.len_utf8(), ParseProblem::NameChar(c));
                }
                _ if style == RangeSyntax::HostName && text[at.start..pos].ends_with('.') => {
                    let label = rest.split('.').next().unwrap_or(rest);
                    if is_span_label(label) {
                        let span = read_range(text, pos..pos + label.len(), 10, "number", u32::MAX)?;
                        range.parts.push(TextPart::Range(span));
                        pos += label.len();
                    } else {
                        range.push_str(c.encode_utf8(&mut [0; 4]));
                        pos += c.len_utf8();
                    }
                }
                _ => {
                    range.push_str(c.encode_utf8(&mut [0; 4]));
                    pos += c.len_utf8();
                }
            }
        }
        Ok(range)
    }

    /// Splits a plain name into text and numbers, so that neighbours can be merged. Numbers with leading zeros stay text.
    pub(crate) fn numbered(name: &str) -> Self {
        let mut range = TextRange::default();
        let mut rest = name;
        while !rest.is_empty() {
            let text_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            range.push_str(&rest[..text_len]);
            rest = &rest[text_len..];
            let digits_len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let digits = &rest[..digits_len];
            match digits.parse::<u32>() {
                Ok(n) if digits == "0" || !digits.starts_with('0') => {
                    range.parts.push(TextPart::Range(NumberRange::one(n)))
                }
                _ => range.push_str(digits),
            }
            rest = &rest[digits_len..];
        }
        range
    }

    /// The pattern with ranges of one number turned into plain text.
    pub(crate) fn folded(&self) -> Self {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Range(span) if span.len() == 1 => TextPart::Lit(span.lo.to_string()),
            other => other.clone(),
        });
        Self::from_parts(parts)
    }

    /// The parts in order.
    pub fn parts(&self) -> &[TextPart] {
        &self.parts
    }

    /// The number of texts; `u64::MAX` means that many or more.
    pub fn len(&self) -> u64 {
        self.spans().fold(1, |n: u64, span| n.saturating_mul(span.len()))
    }

    /// Always false: a range has at least one member.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The member at an index, the right-most number changing fastest; the index wraps around.
    pub(crate) fn at(&self, mut index: u64) -> String {
        let mut values: Vec<u32> = Vec::new();
        for part in self.parts.iter().rev() {
            if let TextPart::Range(span) = part {
                values.push(span.lo + (index % span.len()) as u32);
                index /= span.len();
            }
        }
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TextPart::Lit(text) => out.push_str(text),
                TextPart::Range(_) => out.push_str(&values.pop().unwrap_or_default().to_string()),
            }
        }
        out
    }

    /// The member at an index, the right-most number changing fastest; `None` past the end.
    pub fn get(&self, index: u64) -> Option<String> {
        (index < self.len()).then(|| self.at(index))
    }

    /// Iterates over all members in order.
    pub fn iter(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.len()).map(|index| self.at(index))
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = NumberRange> + '_ {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Range(span) => Some(*span),
            TextPart::Lit(_) => None,
        })
    }

    fn push_str(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(TextPart::Lit(last)) => last.push_str(text),
            _ => self.parts.push(TextPart::Lit(text.to_owned())),
        }
    }
}

/// Writes the notation that [`TextRange::parse`] reads back to an equal value, for host names too.
impl fmt::Display for TextRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            match part {
                TextPart::Range(span) => write!(f, "[{span}]")?,
                TextPart::Lit(text) => {
                    let labels = text.split('.').count();
                    for (j, label) in text.split('.').enumerate() {
                        if j > 0 {
                            f.write_str(".")?;
                        }
                        // A plain label that looks like a range is escaped, unless more text follows in the
                        // same label: the part ends inside a label and another part follows.
                        let ends_label = labels > j + 1 || i + 1 == self.parts.len();
                        if j > 0 && ends_label && is_span_label(label) {
                            f.write_str("\\")?;
                        }
                        for c in label.chars() {
                            if matches!(c, '[' | '\\') {
                                f.write_str("\\")?;
                            }
                            write!(f, "{c}")?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*')
}

fn is_span_label(label: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    strip_brackets(label) == label && label.split_once('-').is_some_and(|(a, b)| digits(a) && digits(b))
}
