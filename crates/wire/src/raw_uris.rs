//! Absolute `http` and `https` URLs anywhere in a text: in scripts, in JSON, in prose.

/// The largest length of a reported URL, in bytes.
const MAX_URI: usize = 8 * 1024;

/// Scans a text that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct UriScanner {
    /// The current URL, or the start of one.
    text: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// The current text is the beginning of `http://` or `https://`.
    Beginning,
    /// Between the two slashes and the next: brackets belong to the URL.
    Host,
    /// After the host.
    Path,
    /// In a URL that is too long: up to its end.
    Skip,
}

impl UriScanner {
    /// Resets the scanner for another text.
    pub fn reset(&mut self) {
        self.text.clear();
        self.state = State::Outside;
    }

    /// Takes the next piece of the text and passes the URLs that end in it to `sink`.
    ///
    /// A URL ends before a blank, a control character, a byte that is not ASCII, and any of ``"'`<>()[]{}|\^``
    /// outside of a host in brackets. Punctuation at its end belongs to the sentence and is left out.
    pub fn feed(&mut self, mut data: &[u8], mut sink: impl FnMut(&[u8])) {
        while let Some(&byte) = data.first() {
            let taken = match self.state {
                State::Outside => match memchr::memchr2(b'h', b'H', data) {
                    Some(at) => {
                        self.text.clear();
                        self.text.push(data[at]);
                        self.state = State::Beginning;
                        at + 1
                    }
                    None => data.len(),
                },
                State::Beginning => self.beginning(byte),
                State::Host if matches!(byte, b'[' | b']') => self.keep(&data[..1]),
                State::Host | State::Path if !is_uri_byte(byte) => {
                    self.finish(&mut sink);
                    0
                }
                State::Host => {
                    if byte == b'/' {
                        self.state = State::Path;
                    }
                    self.keep(&data[..1])
                }
                State::Path => {
                    let end = data.iter().position(|&b| !is_uri_byte(b)).unwrap_or(data.len());
                    self.keep(&data[..end])
                }
                State::Skip => match data.iter().position(|&b| !is_uri_byte(b)) {
                    Some(end) => {
                        self.reset();
                        end
                    }
                    None => data.len(),
                },
            };
            data = &data[taken..];
        }
    }

    /// Ends the text. Afterwards the scanner is in its initial state.
    pub fn finish(&mut self, mut sink: impl FnMut(&[u8])) {
        if matches!(self.state, State::Host | State::Path) {
            let url = trim_sentence(&self.text);
            let host_at = memchr::memchr(b'/', url).map_or(0, |at| at + 2);
            if url.get(host_at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'[') {
                sink(url);
            }
        }
        self.reset();
    }

    /// Takes a byte if it continues `http://` or `https://`; returns the number of bytes taken.
    fn beginning(&mut self, byte: u8) -> usize {
        let text = &mut self.text;
        text.push(byte.to_ascii_lowercase());
        text[0] = b'h';
        if text == b"http://" || text == b"https://" {
            self.state = State::Host;
        } else if !b"http://".starts_with(text) && !b"https://".starts_with(text) {
            // Only the first letter is an h, so only this byte can start another URL.
            self.reset();
            return 0;
        }
        1
    }

    /// Keeps a part of the current URL, or drops the URL if it gets too long; returns the number of bytes.
    fn keep(&mut self, part: &[u8]) -> usize {
        if self.text.len() + part.len() > MAX_URI {
            self.state = State::Skip;
        } else {
            self.text.extend_from_slice(part);
        }
        part.len()
    }
}

fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`<>()[]{}|\\^".contains(&byte)
}

fn trim_sentence(url: &[u8]) -> &[u8] {
    let end = url.iter().rposition(|b| !b".,;:!?".contains(b)).map_or(0, |at| at + 1);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &[u8], step: usize) -> Vec<String> {
        let mut scanner = UriScanner::default();
        let mut found = Vec::new();
        let mut sink = |url: &[u8]| found.push(String::from_utf8_lossy(url).into_owned());
        for piece in text.chunks(step.max(1)) {
            scanner.feed(piece, &mut sink);
        }
        scanner.finish(&mut sink);
        found
    }

    #[test]
    fn texts_by_example() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            for step in [1, 2, 5, text.len()] {
                assert_eq!(scan(text.as_bytes(), step), expected, "{text} by {step}");
            }
        }
        check(
            "var a = 'http://a.com/x'; b=\"HTTPS://b:8/?q=1&r\"",
            &["http://a.com/x", "https://b:8/?q=1&r"],
        );
        check("see http://a.com/x., or (http://b/).", &["http://a.com/x", "http://b/"]);
        check("url(http://a/b.gif) http://[::1]:80/c[1]", &["http://a/b.gif", "http://[::1]:80/c"]);
        check("hhttp://a httphttp://b httpshttps://c", &["http://a", "http://b", "https://c"]);
        check("http:// http:///x http:/a http//a ftp://a hhh", &[]);
        check("http://a\u{e9} h", &["http://a"]);
        check(&format!("http://a/{} http://b/", "x".repeat(MAX_URI)), &["http://b/"]);
        check("http://a", &["http://a"]);
    }

    proptest! {
        #[test]
        fn cutting_a_text_anywhere_changes_nothing(
            words in prop::collection::vec(prop::sample::select(vec![
                "h", "t", "tp", "http", "s", ":", "/", "//", "http://", "https://", "a", ".", " ", "\"", "[", "]",
            ]), 0..30),
            step in 1usize..9,
        ) {
            let text = words.concat();
            prop_assert_eq!(scan(text.as_bytes(), step), scan(text.as_bytes(), text.len()));
        }

        #[test]
        fn urls_among_filler_are_found(urls in prop::collection::vec("https?://[a-z]{1,9}(/[a-z0-9_=&]{0,9}){0,3}", 0..5), filler in "[ -/<>]{0,40}") {
            let text: String = urls.iter().map(|url| format!("{url} {filler}\n")).collect();
            prop_assert_eq!(scan(text.as_bytes(), 100), urls);
        }

        #[test]
        fn random_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
            let _ = scan(&data, step);
        }
    }
}
