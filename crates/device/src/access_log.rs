//! Access logs: which column says what, and what the lines add up to.

use std::io::{self, BufRead};

use serde::Deserialize;

/// How to read the access log of a device: lines of columns that are separated by blanks.
///
/// A pattern is the text of the result column, in which each `*` stands for any text. Patterns are tried in the
/// order skip, hit, miss.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogFormat {
    /// The file, in the work directory.
    pub file: String,
    /// The program keeps lines to itself for so many seconds.
    #[serde(default)]
    pub delay_s: f64,
    /// Column of the result, the first is 1.
    pub result_column: usize,
    /// Column of the reply's size in bytes.
    pub bytes_column: usize,
    /// Results of requests that a stored reply answered, even if the origin was asked whether it is still good.
    #[serde(default)]
    pub hit: Vec<String>,
    /// Results of requests that the origin answered with a reply of its own.
    #[serde(default)]
    pub miss: Vec<String>,
    /// Results of lines that stand for no request.
    #[serde(default)]
    pub skip: Vec<String>,
    /// How to tell plain requests; without it nobody can.
    pub plain: Option<PlainRequests>,
}

/// Which requests are plain: without conditions or `no-cache`, and of method GET. Only those count in a
/// benchmark's hit ratios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainRequests {
    /// The column that tells them, the first is 1.
    pub column: usize,
    /// Its text, as a pattern, for a plain request.
    pub text: String,
}

/// What the lines of an access log add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Requests: the sum of the next three.
    pub requests: u64,
    /// Requests answered with a stored reply.
    pub hits: u64,
    /// Requests answered by the origin.
    pub misses: u64,
    /// Requests of which the log says neither: refused, failed, or of a device that stores nothing.
    pub other: u64,
    /// Bytes sent to clients, as the device counts them.
    pub bytes: u64,
    /// Lines that have not the columns they should have; a line that is cut short is one.
    pub unreadable: u64,
    /// Those of the requests that are plain, if the device tells them from others.
    pub plain: Option<PlainCounts>,
}

/// PlainCounts requests, see [`PlainRequests`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainCounts {
    /// Requests.
    pub requests: u64,
    /// Those answered with a stored reply.
    pub hits: u64,
}

impl AccessCounts {
    /// Share of hits in all requests; `None` without requests.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.hits as f64 / self.requests as f64)
    }

    /// Without what was counted `before`; of plain requests nothing is taken away.
    pub(crate) fn less(&self, before: &AccessCounts) -> AccessCounts {
        AccessCounts {
            requests: self.requests.saturating_sub(before.requests),
            hits: self.hits.saturating_sub(before.hits),
            misses: self.misses.saturating_sub(before.misses),
            other: self.other.saturating_sub(before.other),
            bytes: self.bytes.saturating_sub(before.bytes),
            unreadable: self.unreadable.saturating_sub(before.unreadable),
            plain: self.plain,
        }
    }

    pub(crate) fn plus(&self, other: &AccessCounts) -> AccessCounts {
        AccessCounts {
            requests: self.requests + other.requests,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            other: self.other + other.other,
            bytes: self.bytes.saturating_add(other.bytes),
            unreadable: self.unreadable + other.unreadable,
            plain: match (self.plain, other.plain) {
                (Some(a), Some(b)) => {
                    Some(PlainCounts { requests: a.requests + b.requests, hits: a.hits + b.hits })
                }
                (a, b) => a.or(b),
            },
        }
    }
}

impl LogFormat {
    /// AccessCounts the lines of a log.
    ///
    /// # Errors
    /// If `log` cannot be read. Lines that make no sense are counted, not reported.
    pub fn count(&self, log: impl BufRead) -> io::Result<AccessCounts> {
        self.count_after(0, log)
    }

    /// The same, but for the first `overlooked` requests.
    ///
    /// # Errors
    /// As [`LogFormat::count`].
    pub fn count_after(&self, overlooked: u64, mut log: impl BufRead) -> io::Result<AccessCounts> {
        let none = AccessCounts {
            plain: self.plain.as_ref().map(|_| PlainCounts::default()),
            ..AccessCounts::default()
        };
        let (mut counts, mut line, mut left) = (none, Vec::new(), overlooked);
        while log.read_until(b'\n', &mut line)? > 0 {
            self.add(&line, &mut counts);
            if left > 0 && counts.requests > 0 {
                (counts, left) = (AccessCounts { unreadable: counts.unreadable, ..none }, left - 1);
            }
            line.clear();
        }
        Ok(counts)
    }

    fn add(&self, line: &[u8], counts: &mut AccessCounts) {
        let Some(line) = self.read(line) else {
            counts.unreadable += 1;
            return;
        };
        let is =
            |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern.as_bytes(), line.result));
        if is(&self.skip) {
            return;
        }
        counts.requests += 1;
        counts.bytes = counts.bytes.saturating_add(line.bytes);
        let hit = is(&self.hit);
        *if hit {
            &mut counts.hits
        } else if is(&self.miss) {
            &mut counts.misses
        } else {
            &mut counts.other
        } += 1;
        if let Some(plain) = counts.plain.as_mut().filter(|_| line.plain) {
            plain.requests += 1;
            plain.hits += u64::from(hit);
        }
    }

    fn read<'a>(&self, line: &'a [u8]) -> Option<Line<'a>> {
        let complete = line.strip_suffix(b"\n")?;
        let column = |number: usize| {
            let mut columns = complete.split(|byte| *byte == b' ').filter(|column| !column.is_empty());
            columns.nth(number.checked_sub(1)?)
        };
        let bytes = match column(self.bytes_column)? {
            b"-" => 0,
            digits => std::str::from_utf8(digits).ok()?.parse().ok()?,
        };
        // A line that stands for no proper request may end before that column.
        let told = self.plain.as_ref().and_then(|plain| Some((plain, column(plain.column)?)));
        let plain = told.is_some_and(|(plain, column)| matches(plain.text.as_bytes(), column));
        Some(Line { result: column(self.result_column)?, bytes, plain })
    }
}

/// What a line says.
struct Line<'a> {
    result: &'a [u8],
    /// A size of `-` is none.
    bytes: u64,
    plain: bool,
}

/// Whether `text` is `pattern`, in which each `*` stands for any text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The first place is as good as any: what follows may be anything.
        let Some(at) = find(part, rest) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn find(part: &[u8], text: &[u8]) -> Option<usize> {
    (0..=text.len().checked_sub(part.len())?).find(|&at| text[at..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("HIT", "HIT", true),
            ("HIT", "HITS", false),
            ("HIT", "AHIT", false),
            ("*", "", true),
            ("TCP_*HIT/*", "TCP_MEM_HIT/200", true),
            ("TCP_*HIT/*", "TCP_HIT/304", true),
            ("TCP_*HIT/*", "TCP_MISS/200", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*a*b*", "xxbaxb", true),
            ("*a*b*", "xxba", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    /// What `matches` means, slowly.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|at| reference(rest, &text[at..])),
            Some((byte, rest)) => text.first() == Some(byte) && reference(rest, &text[1..]),
        }
    }

    proptest::proptest! {
        #[test]
        fn patterns_match_as_they_should(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            proptest::prop_assert_eq!(matches(pattern, text), reference(pattern, text));
        }

        #[test]
        fn every_line_is_counted_once(log in "([hmx] ?[0-9-]{0,22}\n?){0,40}", noise: Vec<u8>) {
            let text = ["h".to_owned(), "m".to_owned()];
            let format = LogFormat {
                file: String::new(),
                delay_s: 0.0,
                result_column: 1,
                bytes_column: 2,
                hit: text[..1].into(),
                miss: text[1..].into(),
                skip: Vec::new(),
                plain: Some(PlainRequests { column: 1, text: "*".to_owned() }),
            };
            for bytes in [log.as_bytes(), &noise] {
                let counts = format.count(bytes).unwrap();
                let lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
                proptest::prop_assert_eq!(counts.requests + counts.unreadable, lines);
                proptest::prop_assert_eq!(counts.hits + counts.misses + counts.other, counts.requests);
                let plain = PlainCounts { requests: counts.requests, hits: counts.hits };
                proptest::prop_assert_eq!(counts.plain, Some(plain));
            }
        }
    }

    #[test]
    fn lines_without_the_columns_are_counted_as_such() {
        let format = LogFormat {
            file: String::new(),
            delay_s: 0.0,
            result_column: 3,
            bytes_column: 1,
            hit: vec!["hit".into()],
            miss: vec!["miss".into()],
            skip: vec!["none".into()],
            plain: None,
        };
        let log = "10 x hit\n-  y miss z\n7 x odd\n7 x none\n7 x\nseven x hit\n\n-1 x hit\n5 x hi";
        let counts = format.count(log.as_bytes()).unwrap();
        let expected =
            AccessCounts { requests: 3, hits: 1, misses: 1, other: 1, bytes: 17, unreadable: 5, plain: None };
        assert_eq!(counts, expected);
        assert_eq!(counts.hit_ratio(), Some(1.0 / 3.0));
        assert_eq!(AccessCounts::default().hit_ratio(), None);
    }

    #[test]
    fn requests_before_the_test_are_overlooked() {
        let format = LogFormat {
            file: String::new(),
            delay_s: 0.0,
            result_column: 1,
            bytes_column: 2,
            hit: vec!["hit".into()],
            miss: vec!["miss".into()],
            skip: vec!["none".into()],
            plain: None,
        };
        let log = "none 0\nmiss 100\nnone 0\nhit 7\nmiss 8\n";
        let counts = |overlooked| format.count_after(overlooked, log.as_bytes()).unwrap();
        assert_eq!((counts(0).requests, counts(0).bytes), (3, 115));
        let one = counts(1);
        assert_eq!((one.requests, one.hits, one.misses, one.bytes), (2, 1, 1, 15));
        assert_eq!(counts(9).requests, 0);
    }

    #[test]
    fn plain_requests_are_told_by_a_column() {
        let format = LogFormat {
            file: String::new(),
            delay_s: 0.0,
            result_column: 1,
            bytes_column: 2,
            hit: vec!["hit".into()],
            miss: vec!["miss".into()],
            skip: vec!["none".into()],
            plain: Some(PlainRequests { column: 3, text: "GET/-/-".into() }),
        };
        let log = "hit 1 GET/-/-\nmiss 1 GET/-/-\nhit 1 GET/-/Sun, 06 Nov 1994 08:49:37 GMT\n\
            hit 1 HEAD/-/-\nmiss 1 GET/no-cache/-\nnone 1 GET/-/-\nmiss 1\n";
        let counts = format.count(log.as_bytes()).unwrap();
        assert_eq!((counts.requests, counts.hits, counts.unreadable), (6, 3, 0));
        assert_eq!(counts.plain, Some(PlainCounts { requests: 2, hits: 1 }));
        let twice = counts.plus(&counts);
        assert_eq!(twice.plain, Some(PlainCounts { requests: 4, hits: 2 }));
    }
}
