//! Traces of foreign URLs: a file with one URL per line (`docs/reference/models.md`, "Foreign URLs").
//!
//! ```text
//! # a comment
//! http://www.example.com/a/${url_number}
//! 1066036250.129 GET http://www.example.com/b - DIRECT
//! ```

use std::ops::Range;

use crate::uri;

/// The URLs of a trace, in order, at least one.
#[derive(Clone, Debug)]
pub struct UrlTrace {
    text: String,
    /// The positions of the URLs.
    urls: Vec<Range<usize>>,
    skipped: usize,
}

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A URL without a host. Lines count from 1.
    #[error("line {0}: URL without a host")]
    NoHost(usize),
    /// No line has a URL.
    #[error("no URL")]
    Empty,
}

const SCHEMES: [&str; 3] = ["http://", "https://", "ftp://"];
const NUMBER: &str = "${url_number}";
const WORKER: &str = "${worker}";

impl UrlTrace {
    /// Reads a trace: of each line the first `http`, `https` or `ftp` URL, up to the next blank. Lines that begin with
    /// `#` are comments.
    ///
    /// # Errors
    /// If a URL has no host, or there is no URL at all.
    pub fn parse(text: String) -> Result<UrlTrace, TraceError> {
        let (mut urls, mut skipped, mut at) = (Vec::new(), 0, 0);
        for (number, line) in text.split('\n').enumerate() {
            let comment = line.trim_start().starts_with('#');
            if let Some(url) = first_url(line).filter(|_| !comment) {
                let parts = uri::split(&line.as_bytes()[url.clone()]);
                if parts.and_then(|parts| host(parts.authority)).is_none() {
                    return Err(TraceError::NoHost(number + 1));
                }
                urls.push(at + url.start..at + url.end);
            } else if !comment && !line.trim().is_empty() {
                skipped += 1;
            }
            at += line.len() + 1;
        }
        if urls.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(UrlTrace { text, urls, skipped })
    }

    /// Number of URLs.
    #[expect(clippy::len_without_is_empty, reason = "a trace is never empty")]
    pub fn len(&self) -> usize {
        self.urls.len()
    }

    /// The URLs as written, with their macros.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.urls.iter().map(|url| &self.text[url.clone()])
    }

    /// Lines that are neither comment nor blank but have no URL.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Appends the URL of foreign object `number`: entry `number` modulo the number of URLs, with
    /// `${url_number}` (8 hex digits) and `${worker}` replaced.
    pub fn write_url(&self, number: u64, worker: u32, out: &mut Vec<u8>) {
        let entry = usize::try_from(number % self.urls.len() as u64).unwrap_or_default();
        let mut rest = &self.text[self.urls[entry].clone()];
        while let Some(at) = rest.find("${") {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix(NUMBER) {
                let mut digits = [0; 8];
                polygraph_traffic::hex::write_hex(&mut digits, number);
                out.extend_from_slice(&digits);
                rest = after;
            } else if let Some(after) = rest.strip_prefix(WORKER) {
                crate::decimal::write(out, u64::from(worker));
                rest = after;
            } else {
                out.extend_from_slice(b"${");
                rest = &rest[2..];
            }
        }
        out.extend_from_slice(rest.as_bytes());
    }
}

/// The host of an authority, which may contain macros.
fn host(authority: &[u8]) -> Option<&[u8]> {
    let at = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let host = &authority[at..];
    (!host.is_empty() && host[0] != b':').then_some(host)
}

/// The position of the first URL of a line.
fn first_url(line: &str) -> Option<Range<usize>> {
    let starts = |at: usize| {
        let rest = &line.as_bytes()[at..];
        SCHEMES.iter().any(|s| rest.get(..s.len()).is_some_and(|r| r.eq_ignore_ascii_case(s.as_bytes())))
    };
    // Every scheme ends with `://`; searching for it and looking back keeps long lines cheap.
    let colon = |from: usize| line[from..].find("://").map(|at| from + at);
    let mut next = colon(0);
    while let Some(at) = next {
        let found = [5, 4, 3].into_iter().filter_map(|len| at.checked_sub(len)).find(|&from| starts(from));
        if let Some(start) = found {
            let end = line[start..].find(|c: char| c.is_whitespace() || c.is_control());
            return Some(start..end.map_or(line.len(), |end| start + end));
        }
        next = colon(at + 3);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urls(text: &str, count: u64) -> Result<Vec<String>, TraceError> {
        let trace = UrlTrace::parse(text.to_owned())?;
        let url = |number| {
            let mut out = Vec::new();
            trace.write_url(number, 7, &mut out);
            String::from_utf8(out).unwrap()
        };
        Ok((0..count).map(url).collect())
    }

    #[test]
    fn traces_by_example() {
        let text =
            "# http://no/\r\n\n http://a/x y\r\n1.5 GET HTTPS://b:8/?u=http://c d\nno url\nftp://u@d\n";
        assert_eq!(
            urls(text, 5).unwrap(),
            ["http://a/x", "HTTPS://b:8/?u=http://c", "ftp://u@d", "http://a/x", "HTTPS://b:8/?u=http://c"]
        );
        let trace = UrlTrace::parse(text.to_owned()).unwrap();
        assert_eq!((trace.len(), trace.skipped()), (3, 1));
        assert_eq!(
            urls("http://h${worker}.com/${url_number}.${x}${", 2).unwrap()[1],
            "http://h7.com/00000001.${x}${"
        );
        assert_eq!(urls("\u{e9}://\u{e9}http://a/\u{e9}", 1).unwrap()[0], "http://a/\u{e9}");
        assert_eq!(urls("http://a/\nhttp:///x", 1), Err(TraceError::NoHost(2)));
        assert_eq!(urls("http://:80/x", 1), Err(TraceError::NoHost(1)));
        assert_eq!(urls("gopher://a/\n# x\n", 1), Err(TraceError::Empty));
        assert_eq!(urls("", 1), Err(TraceError::Empty));
    }

    proptest! {
        #[test]
        fn all_urls_are_found(
            wanted in prop::collection::vec("(http|https|ftp)://[a-z]{1,9}(:[0-9]{1,3})?(/[!-~&&[^$]]{0,20})?", 1..6),
            before in "[a-z0-9 /.]{0,10} ",
        ) {
            let text: String = wanted.iter().map(|url| format!("{before}{url} after\n")).collect();
            prop_assert_eq!(urls(&text, wanted.len() as u64), Ok(wanted));
        }

        #[test]
        fn random_text_never_panics(text in "[htpsf:/ \n\u{e9}#a${}worke_]{0,80}", number: u64) {
            if let Ok(trace) = UrlTrace::parse(text) {
                trace.write_url(number, 1, &mut Vec::new());
            }
        }
    }
}
