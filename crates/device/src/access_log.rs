//! Access logs of devices: the meaning of columns, and counts over lines.

use std::io::{self, BufRead};

use polygraph_wire::preflight;
use serde::Deserialize;

/// How to read the access log of a device: lines of columns that are separated by blanks.
///
/// A pattern is the text of the result column; each `*` in it matches any text. Patterns are tried in the order skip,
/// hit, miss.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogFormat {
    /// The path of the log in the work directory.
    pub file: String,
    /// The longest time in seconds for which the program buffers lines.
    #[serde(default)]
    pub delay_s: f64,
    /// The column of the result; the first column is 1.
    pub result_column: usize,
    /// The column of the reply's size in bytes.
    pub bytes_column: usize,
    /// Patterns for requests that a stored reply answered, whether or not the device validated it with the origin.
    #[serde(default)]
    pub hit: Vec<String>,
    /// Patterns for requests that the origin answered with its own reply. A device without a store has none, so its requests
    /// count as [`AccessCounts::other`].
    #[serde(default)]
    pub miss: Vec<String>,
    /// Patterns for lines that are not requests.
    #[serde(default)]
    pub skip: Vec<String>,
    /// How to recognise plain requests; `None` if the log does not distinguish them.
    pub plain: Option<PlainRequests>,
}

/// How to recognise plain requests: GET requests without conditions, ranges and `no-cache`. Only these count in the hit ratios of
/// a benchmark.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainRequests {
    /// The column to look at; the first column is 1.
    pub column: usize,
    /// The pattern of the column for a plain request.
    pub text: String,
}

/// Counts over the lines of an access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// All requests: the sum of the next three.
    pub requests: u64,
    /// Requests that the device answered with a stored reply.
    pub hits: u64,
    /// Requests that the origin answered.
    pub misses: u64,
    /// Requests that are neither: refused or failed ones, or those of a device that stores nothing.
    pub other: u64,
    /// Bytes sent to clients, as the device counts them.
    pub bytes: u64,
    /// Lines without the expected columns, including a line that is cut short.
    pub unreadable: u64,
    /// The plain requests among these, if the log distinguishes them.
    pub plain: Option<PlainCounts>,
}

/// Counts of plain requests, see [`PlainRequests`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainCounts {
    /// Plain requests.
    pub requests: u64,
    /// Plain requests that the device answered with a stored reply.
    pub hits: u64,
}

impl AccessCounts {
    /// The share of hits in all requests; `None` without requests.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.hits as f64 / self.requests as f64)
    }

    /// The counts without those of `before`. Counts of plain requests are unchanged.
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
    /// Counts the lines of a log.
    ///
    /// # Errors
    /// If `log` cannot be read. Unreadable lines are counted.
    pub fn count(&self, log: impl BufRead) -> io::Result<AccessCounts> {
        self.count_after(0, log)
    }

    /// Counts the lines of a log without preflight requests, which are known by their URL, and after the first `overlooked`
    /// requests, to which those belong.
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
            if is_preflight(&line) {
                left = left.saturating_sub(1);
                line.clear();
                continue;
            }
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
            // In JSON, a comma follows.
            digits => std::str::from_utf8(digits).ok()?.trim_end_matches(',').parse().ok()?,
        };
        // A line that is not a proper request may end before that column.
        let selected = self.plain.as_ref().and_then(|plain| Some((plain, column(plain.column)?)));
        let plain = selected.is_some_and(|(plain, column)| matches(plain.text.as_bytes(), column));
        Some(Line { result: column(self.result_column)?, bytes, plain })
    }
}

/// Whether the line is about a preflight request: all devices log URLs.
fn is_preflight(line: &[u8]) -> bool {
    let path = preflight::PATH.as_bytes();
    line.windows(path.len()).any(|part| part == path)
}

/// The columns of a line.
struct Line<'a> {
    result: &'a [u8],
    /// The size of the reply; 0 if the column is `-`.
    bytes: u64,
    plain: bool,
}

/// Whether `text` matches `pattern`, in which each `*` matches any text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The first match is as good as any, because anything may follow it.
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

    /// Clients of a lab send them, each when it starts.
    #[test]
    fn preflight_requests_are_no_requests_of_the_test() {
        let device = crate::Device::find("squid").unwrap();
        let line = |result: &str, path: &str| {
            format!(
                "1.5 2 127.0.0.1 {result}/200 100 GET http://127.0.0.1:9090/{path} - HIER_DIRECT/127.0.0.1 - GET/no-cache/-/-\n"
            )
        };
        let probe = line("TCP_MISS", "polygraph-preflight/18ebeb48b5039a1a00003d540000");
        let log = [&probe, &line("TCP_MISS", "a"), &probe, &line("TCP_HIT", "a"), &line("TCP_HIT", "a")]
            .map(String::as_str)
            .concat();
        let counts =
            |overlooked| device.log_format().unwrap().count_after(overlooked, log.as_bytes()).unwrap();
        let seen = |counts: AccessCounts| (counts.requests, counts.hits, counts.misses, counts.bytes);
        assert_eq!(seen(counts(0)), (3, 2, 1, 300));
        assert_eq!(seen(counts(1)), (3, 2, 1, 300), "a run counts its preflight request itself");
        // CONNECT of a tunnel for one.
        assert_eq!(seen(counts(2)).0, 2);
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
