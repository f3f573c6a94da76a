//! Links in HTML-like text: values of chosen attributes of chosen tags, found while the text arrives.
//!
//! The scanner follows the tokens of HTML as far as links need it: quoted and unquoted values, comments, end tags,
//! and the raw text of `script` and `style`. Text between tags, which is most of a body, is only searched for `<`.

use crate::entities;

/// The largest length of a link value, in bytes.
const MAX_VALUE: usize = 8 * 1024;
/// The largest length of a tag or attribute name, in bytes.
const MAX_NAME: usize = 256;
/// The largest length in bytes of names that can be selected.
const MAX_CHOSEN: usize = 24;

/// The attributes and their tags that contain links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTags {
    /// Tag and attribute, in lower case.
    pairs: Vec<(ShortName, ShortName)>,
    /// Whether the usual ones, `<embed src>`, are among them.
    has_usual: bool,
}

/// A malformed selection of tags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a tag with attributes, like <embed src>: {0}")]
pub struct BadTag(pub String);

impl Default for LinkTags {
    /// The default: `<embed src>`.
    fn default() -> LinkTags {
        LinkTags::new(vec![LinkTags::usual()])
    }
}

impl LinkTags {
    fn new(pairs: Vec<(ShortName, ShortName)>) -> LinkTags {
        LinkTags { has_usual: pairs.contains(&LinkTags::usual()), pairs }
    }

    /// The tag and the attribute of links in pages of the servers of a test.
    fn usual() -> (ShortName, ShortName) {
        (ShortName::of(b"embed"), ShortName::of(b"src"))
    }

    /// Reads selections such as `<embed src>` or `<a href>`; several attributes may follow a tag.
    ///
    /// # Errors
    /// If one of them is malformed.
    pub fn parse<S: AsRef<str>>(choices: &[S]) -> Result<LinkTags, BadTag> {
        let mut pairs = Vec::new();
        for choice in choices {
            let text = choice.as_ref().trim();
            let bad = || BadTag(text.to_owned());
            let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).ok_or_else(bad)?;
            let mut words = inner.split_ascii_whitespace();
            let tag = words.next().and_then(chosen).ok_or_else(bad)?;
            let before = pairs.len();
            for attribute in words {
                pairs.push((tag, chosen(attribute).ok_or_else(bad)?));
            }
            if pairs.len() == before {
                return Err(bad());
            }
        }
        Ok(LinkTags::new(pairs))
    }

    fn has(&self, tag: &ShortName, attribute: &ShortName) -> bool {
        self.pairs.iter().any(|(t, a)| a == attribute && t == tag)
    }
}

fn chosen(word: &str) -> Option<ShortName> {
    let valid = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:.".contains(&b));
    (valid && word.len() <= MAX_CHOSEN).then(|| ShortName::of(word.as_bytes()))
}

/// An error in a text; scanning continues. The numbers are those of the error catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkupError {
    /// c51: nothing behind the `=` of an attribute, or a chosen attribute without `=`.
    #[error("attribute without value")]
    ValueExpected,
    /// c52: the text ends inside quotes.
    #[error("quoted value is not closed")]
    ValueOpen,
    /// c53: an empty tag, `<>`.
    #[error("tag without name and content")]
    EmptyTag,
    /// c54: an attribute directly after `<`.
    #[error("attribute without tag name")]
    NoTagName,
    /// c55: the value of a chosen attribute is empty or has blanks or control characters inside.
    #[error("bad URL in a tag")]
    BadUrl,
    /// c65: the text ends inside a tag, comment or script.
    #[error("unfinished tag at the end")]
    Rest,
    /// c66: a name or a chosen value is too long.
    #[error("tag or value is too long")]
    Long,
}

/// What a [`Scanner`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupEvent<'a> {
    /// The value of a selected attribute: a reference, relative to the URL of the text.
    Link(&'a [u8]),
    /// An error in the markup.
    Fault(MarkupError),
}

/// Scans a text that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    state: State,
    /// Name of the current tag.
    tag: ShortName,
    /// Name of the current attribute.
    attribute: ShortName,
    /// The current value, if it is selected.
    value: Vec<u8>,
    wanted: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Between tags.
    #[default]
    Text,
    /// After `<`.
    Open,
    /// After `<` and blanks; true inside a word.
    Nameless(bool),
    TagName,
    /// Between the attributes of a tag.
    InTag,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    /// In a value that ends with this quote.
    Quoted(u8),
    Unquoted,
    /// In an end tag or declaration: up to `>`.
    Skip,
    /// After `<!`, or `<!-` if true.
    Bang(bool),
    /// In a comment, after this number of dashes (2 means two or more).
    Comment(u8),
    /// In a script or style, whose name is the current tag, after this number of matching bytes of `</name`.
    Raw(usize),
}

impl Scanner {
    /// Resets the scanner for another text.
    pub fn reset(&mut self) {
        self.state = State::Text;
    }

    /// Takes the next piece of the text and passes links and errors to `sink`.
    pub fn feed(&mut self, tags: &LinkTags, mut data: &[u8], mut sink: impl FnMut(MarkupEvent<'_>)) {
        while !data.is_empty() {
            let taken = self.step(tags, data, &mut sink);
            data = &data[taken..];
        }
    }

    /// Whether the text is between tags so far: more of it without `<` changes nothing and has no links.
    pub fn is_between_tags(&self) -> bool {
        matches!(self.state, State::Text)
    }

    /// Ends the text. Afterwards the scanner is in its initial state.
    pub fn finish(&mut self, mut sink: impl FnMut(MarkupEvent<'_>)) {
        let fault = match self.state {
            State::Text | State::Nameless(_) => None,
            State::Quoted(_) => Some(MarkupError::ValueOpen),
            _ => Some(MarkupError::Rest),
        };
        if let Some(fault) = fault {
            sink(MarkupEvent::Fault(fault));
        }
        self.reset();
    }

    /// Processes the start of `data`, which is not empty. Returns the number of bytes; 0 only if the state
    /// changed.
    fn step(&mut self, tags: &LinkTags, data: &[u8], sink: &mut impl FnMut(MarkupEvent<'_>)) -> usize {
        let byte = data[0];
        let (state, taken) = match self.state {
            State::Text
                if byte == b'<'
                    && tags.has_usual
                    && let Some(link) = usual_link(data) =>
            {
                sink(MarkupEvent::Link(link));
                (State::Text, data.len())
            }
            State::Text => until(b'<', data, State::Open, State::Text),
            State::Skip => until(b'>', data, State::Text, State::Skip),
            State::Open => self.open(data, sink),
            State::Nameless(in_word) => match byte {
                b'>' if !in_word => fault(MarkupError::EmptyTag, sink),
                b'=' if in_word => fault(MarkupError::NoTagName, sink),
                b'<' => (State::Open, 1),
                b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => (State::Nameless(true), 1),
                _ if byte.is_ascii_whitespace() && !in_word => (State::Nameless(false), 1),
                _ => (State::Text, 1),
            },
            State::TagName => self.tag_name(data, sink),
            State::InTag => match byte {
                b'>' => (self.end_of_tag(), 1),
                _ if ends_name(byte) => (State::InTag, 1),
                _ => {
                    self.attribute.clear();
                    // The first byte belongs to the name, whatever it is.
                    self.attribute_name(data, 1, sink)
                }
            },
            State::AttributeName => self.attribute_name(data, 0, sink),
            State::AfterAttributeName => match byte {
                b'=' => (State::BeforeValue, 1),
                _ if byte.is_ascii_whitespace() => (State::AfterAttributeName, 1),
                _ => {
                    if tags.has(&self.tag, &self.attribute) {
                        sink(MarkupEvent::Fault(MarkupError::ValueExpected));
                    }
                    (State::InTag, 0)
                }
            },
            State::BeforeValue => match byte {
                b'>' => {
                    sink(MarkupEvent::Fault(MarkupError::ValueExpected));
                    (State::InTag, 0)
                }
                _ if byte.is_ascii_whitespace() => (State::BeforeValue, 1),
                _ => {
                    self.value.clear();
                    self.wanted = tags.has(&self.tag, &self.attribute);
                    if matches!(byte, b'"' | b'\'') { (State::Quoted(byte), 1) } else { (State::Unquoted, 0) }
                }
            },
            State::Quoted(quote) => {
                let end = memchr::memchr(quote, data);
                self.take_value(data, end, 1, sink)
            }
            State::Unquoted => {
                let end = data.iter().position(|&b| b == b'>' || b.is_ascii_whitespace());
                self.take_value(data, end, 0, sink)
            }
            State::Bang(dash) => match (byte, dash) {
                (b'-', false) => (State::Bang(true), 1),
                (b'-', true) => (State::Comment(2), 1),
                _ => (State::Skip, 0),
            },
            State::Comment(before) => match memchr::memchr(b'>', data) {
                Some(at) if dashes(before, &data[..at]) == 2 => (State::Text, at + 1),
                Some(at) => (State::Comment(0), at + 1),
                None => (State::Comment(dashes(before, data)), data.len()),
            },
            State::Raw(matched) => self.raw(matched, data),
        };
        self.state = state;
        taken
    }

    fn open(&mut self, data: &[u8], sink: &mut impl FnMut(MarkupEvent<'_>)) -> (State, usize) {
        let byte = data[0];
        match byte {
            b'/' | b'?' => until(b'>', data, State::Text, State::Skip),
            b'!' => (State::Bang(false), 1),
            b'>' => fault(MarkupError::EmptyTag, sink),
            b'=' | b'"' | b'\'' => fault(MarkupError::NoTagName, sink),
            b'<' => (State::Open, 1),
            _ if byte.is_ascii_alphabetic() => {
                self.tag.clear();
                self.tag_name(data, sink)
            }
            _ if byte.is_ascii_whitespace() => (State::Nameless(false), 1),
            _ => (State::Text, 1),
        }
    }

    fn tag_name(&mut self, data: &[u8], sink: &mut impl FnMut(MarkupEvent<'_>)) -> (State, usize) {
        let end = data.iter().position(|&b| ends_name(b));
        take_name(&mut self.tag, data, end, State::TagName, State::InTag, sink)
    }

    /// Takes the next part of an attribute name; its first `first` bytes belong to it, whatever they are.
    fn attribute_name(
        &mut self,
        data: &[u8],
        first: usize,
        sink: &mut impl FnMut(MarkupEvent<'_>),
    ) -> (State, usize) {
        let end = data[first..].iter().position(|&b| b == b'=' || ends_name(b)).map(|end| first + end);
        let (here, next) = (State::AttributeName, State::AfterAttributeName);
        take_name(&mut self.attribute, data, end, here, next, sink)
    }

    fn end_of_tag(&self) -> State {
        if [b"script".as_slice(), b"style"].iter().any(|name| self.tag.is(name)) {
            State::Raw(0)
        } else {
            State::Text
        }
    }

    /// Scans raw text, which ends with `</name` and a byte that ends a name.
    fn raw(&self, matched: usize, data: &[u8]) -> (State, usize) {
        let byte = data[0];
        match matched {
            0 => until(b'<', data, State::Raw(1), State::Raw(0)),
            1 if byte == b'/' => (State::Raw(2), 1),
            1 => (State::Raw(0), 0),
            _ => match self.tag.at(matched - 2) {
                Some(expected) if expected == byte.to_ascii_lowercase() => (State::Raw(matched + 1), 1),
                None if ends_name(byte) => (State::Skip, 0),
                _ => (State::Raw(0), 0),
            },
        }
    }

    /// Takes the next part of a value, up to `end` if that is present, and the `closing` bytes after it.
    fn take_value(
        &mut self,
        data: &[u8],
        end: Option<usize>,
        closing: usize,
        sink: &mut impl FnMut(MarkupEvent<'_>),
    ) -> (State, usize) {
        let part = &data[..end.unwrap_or(data.len())];
        if self.wanted && self.value.len() + part.len() > MAX_VALUE {
            sink(MarkupEvent::Fault(MarkupError::Long));
            self.wanted = false;
        }
        let Some(end) = end else {
            if self.wanted {
                self.value.extend_from_slice(part);
            }
            return (self.state, data.len());
        };
        if self.wanted && self.value.is_empty() && is_plain(part) {
            // Nearly all links are complete and need no decoding.
            sink(MarkupEvent::Link(part));
        } else if self.wanted {
            self.value.extend_from_slice(part);
            entities::decode(&mut self.value);
            // Values may contain line breaks.
            self.value.retain(|b| !matches!(b, b'\n' | b'\r' | b'\t'));
            let url = self.value.trim_ascii();
            sink(if is_url(url) { MarkupEvent::Link(url) } else { MarkupEvent::Fault(MarkupError::BadUrl) });
        }
        (State::InTag, end + closing)
    }
}

/// True if `value` may be a URL: not empty, no blanks or control characters inside.
fn is_url(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|&b| b > b' ' && b != 0x7f)
}

/// True if `value` may be a URL, needs no decoding and has no double quotes.
fn is_plain(value: &[u8]) -> bool {
    // Without an early exit, the loop can process several bytes at once.
    let is_plain = |b: u8| (b > b' ') & (b != 0x7f) & (b != b'&') & (b != b'"');
    !value.is_empty() && value.iter().fold(true, |plain, &b| plain & is_plain(b))
}

/// The link in `data` if that is a single tag, as servers of a test write them.
fn usual_link(data: &[u8]) -> Option<&[u8]> {
    let link = data.strip_prefix(b"<embed src=\"")?.strip_suffix(b"\">")?;
    (link.len() <= MAX_VALUE && is_plain(link)).then_some(link)
}

/// Skips to after `byte`: the state is `found` there, or `here` if `byte` does not occur.
fn until(byte: u8, data: &[u8], found: State, here: State) -> (State, usize) {
    if data[0] == byte {
        // A tag directly follows a tag.
        return (found, 1);
    }
    memchr::memchr(byte, data).map_or((here, data.len()), |at| (found, at + 1))
}

fn fault(error: MarkupError, sink: &mut impl FnMut(MarkupEvent<'_>)) -> (State, usize) {
    sink(MarkupEvent::Fault(error));
    (State::Text, 1)
}

fn take_name(
    name: &mut ShortName,
    data: &[u8],
    end: Option<usize>,
    here: State,
    next: State,
    sink: &mut impl FnMut(MarkupEvent<'_>),
) -> (State, usize) {
    let taken = end.unwrap_or(data.len());
    name.push(&data[..taken]);
    if usize::from(name.len) > MAX_NAME {
        sink(MarkupEvent::Fault(MarkupError::Long));
        return (State::Skip, taken);
    }
    (if end.is_some() { next } else { here }, taken)
}

fn ends_name(byte: u8) -> bool {
    matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace()
}

/// The number of dashes at the end of `text`, at most 2, if `before` dashes precede it.
fn dashes(before: u8, text: &[u8]) -> u8 {
    match text {
        [] => before,
        [b'-'] => (before + 1).min(2),
        [.., b'-', b'-'] => 2,
        [.., b'-'] => 1,
        _ => 0,
    }
}

/// A name in lower case. Only the start of long names is kept; they are never selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ShortName {
    text: [u8; MAX_CHOSEN],
    len: u16,
}

impl ShortName {
    fn of(text: &[u8]) -> ShortName {
        let mut name = ShortName::default();
        name.push(text);
        name
    }

    fn clear(&mut self) {
        *self = ShortName::default();
    }

    fn push(&mut self, part: &[u8]) {
        let room = self.text.get_mut(usize::from(self.len)..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(part) {
            *to = from.to_ascii_lowercase();
        }
        // Longer names are refused long before this saturates.
        self.len = self.len.saturating_add(u16::try_from(part.len()).unwrap_or(u16::MAX));
    }

    fn is(&self, text: &[u8]) -> bool {
        self.text.get(..usize::from(self.len)) == Some(text)
    }

    fn at(&self, index: usize) -> Option<u8> {
        self.text.get(..usize::from(self.len))?.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(tags: &LinkTags, text: &[u8], step: usize) -> Vec<Result<String, MarkupError>> {
        scan_pieces(tags, text.chunks(step.max(1)))
    }

    fn scan_pieces<'a>(
        tags: &LinkTags,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Vec<Result<String, MarkupError>> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        let mut sink = |item: MarkupEvent<'_>| {
            found.push(match item {
                MarkupEvent::Link(url) => Ok(String::from_utf8_lossy(url).into_owned()),
                MarkupEvent::Fault(fault) => Err(fault),
            });
        };
        for piece in pieces {
            scanner.feed(tags, piece, &mut sink);
        }
        scanner.finish(&mut sink);
        found
    }

    #[test]
    fn texts_by_example() {
        use MarkupError::{BadUrl, EmptyTag, Long, NoTagName, Rest, ValueExpected, ValueOpen};
        #[track_caller]
        fn check(text: &str, expected: &[Result<&str, MarkupError>]) {
            let tags = LinkTags::parse(&["<embed src>", "<A HREF ping>"]).unwrap();
            let expected: Vec<_> = expected.iter().map(|item| item.map(str::to_owned)).collect();
            for step in [1, 2, 3, 7, text.len()] {
                assert_eq!(scan(&tags, text.as_bytes(), step), expected, "{text} by {step}");
            }
        }
        check("filler <embed src=\"/x\"> filler", &[Ok("/x")]);
        check("<embed src=/x><embed src='/y'/><EMBED SRC = \"/z\" >", &[Ok("/x"), Ok("/y"), Ok("/z")]);
        check("<a class=x ping=/p href=\n'/a' id=i>t</a>", &[Ok("/p"), Ok("/a")]);
        check("<embed src=\"a>b\"><img src=/no><embedded src=/no><embed srcs=/no>", &[Ok("a>b")]);
        check("<img alt=\"<embed src=/no>\"><embed src=/x/>", &[Ok("/x/")]);
        check("<embed src=' /a\n/b?x=1&amp;y=2 '>", &[Ok("/a/b?x=1&y=2")]);
        check("<!-- <embed src=/no> --><embed src=/x>", &[Ok("/x")]);
        check("<!--><embed src=/x><!-- -> -- > --- ><embed src=/no>--->", &[Ok("/x")]);
        check("<!doctype html><?xml a?></embed src=/no><embed src=/x>", &[Ok("/x")]);
        check("<script>'<embed src=/no>' </scrip></scripts></SCRIPT\n><embed src=/x>", &[Ok("/x")]);
        check("<style a=b><</</style><embed src=/x>", &[Ok("/x")]);
        check("1 < 2, a<1, <<embed src=/x>", &[Ok("/x")]);
        check("<embed src=><a id=>", &[Err(ValueExpected), Err(ValueExpected)]);
        check("<embed src><img src>", &[Err(ValueExpected)]);
        check("<embed src id=1><a href ping=/p>", &[Err(ValueExpected), Err(ValueExpected), Ok("/p")]);
        check("<embed src=\"/x", &[Err(ValueOpen)]);
        check("<><  >", &[Err(EmptyTag), Err(EmptyTag)]);
        check("< src=x ><=x><'x'>", &[Err(NoTagName), Err(NoTagName), Err(NoTagName)]);
        check("<embed src=''><embed src='a b'><embed src='\u{1}'>", &[Err(BadUrl), Err(BadUrl), Err(BadUrl)]);
        for unfinished in ["<", "<a", "<a href", "<a href=", "<a href=x", "<!", "<!-- -", "<script>x", "</a"]
        {
            check(unfinished, &[Err(Rest)]);
        }
        let long = "x".repeat(MAX_VALUE + 1);
        check(&format!("<embed src='{long}'><embed src=/x>"), &[Err(Long), Ok("/x")]);
        check(&format!("<img src='{long}'><embed src=/x>"), &[Ok("/x")]);
        check(&format!("<{long} src=/no><a {long}=/no><embed src=/x>"), &[Err(Long), Err(Long), Ok("/x")]);
        check("", &[]);
    }

    /// A piece that is a whole tag is read at once; it has the same links as one that is read byte by byte.
    #[test]
    fn whole_tags_are_like_others() {
        let long = format!("<embed src=\"{}\">", "x".repeat(MAX_VALUE + 1));
        for tag in [
            "<embed src=\"/x\">",
            "<embed src=\"\">",
            "<embed src=\"a b\">",
            "<embed src=\"a&amp;b\">",
            "<embed src=\"/x\"><embed x=\"\">",
            "<embed src=\"/x\" id=\">",
            "<embed src=\">",
            &long,
        ] {
            for chosen in ["<embed src>", "<embed href>", "<a src>"] {
                let tags = LinkTags::parse(&[chosen]).unwrap();
                for before in ["", "<", "<a x=\"", "<!--", "<script>"] {
                    let text = [before, tag, "<embed src=/y>"].concat();
                    let (start, end) = (before.len(), before.len() + tag.len());
                    let pieces = [&text[..start], &text[start..end], &text[end..]].map(str::as_bytes);
                    let found = scan_pieces(&tags, pieces);
                    assert_eq!(found, scan(&tags, text.as_bytes(), 1), "{text}, {chosen}");
                }
            }
        }
    }

    #[test]
    fn choices_by_example() {
        assert_eq!(LinkTags::parse(&["<embed src>"]), Ok(LinkTags::default()));
        assert_eq!(LinkTags::parse(&[" < Embed  SRC > "]), Ok(LinkTags::default()));
        for bad in ["", "embed src", "<embed>", "<>", "<embed src", "<em=bed src>", "<1 src>"] {
            assert_eq!(LinkTags::parse(&[bad]), Err(BadTag(bad.into())));
        }
        assert!(LinkTags::parse(&[format!("<embed {}>", "x".repeat(MAX_CHOSEN + 1))]).is_err());
    }

    proptest! {
        #[test]
        fn cutting_a_text_anywhere_changes_nothing(
            words in prop::collection::vec(prop::sample::select(vec![
                "<", ">", "=", "\"", "'", "-", "--", "!", "/", " ", "\n", "a", "embed", "src", "<embed src=", "<!--",
                "-->", "<script>", "</script", "&amp;", "x", "<a ",
            ]), 0..30),
            step in 1usize..9,
        ) {
            let text = words.concat();
            let tags = LinkTags::default();
            prop_assert_eq!(scan(&tags, text.as_bytes(), step), scan(&tags, text.as_bytes(), text.len()));
        }

        #[test]
        fn links_among_filler_are_found(links in prop::collection::vec("/[a-z0-9/._]{0,50}", 0..5), filler in "[ -;=-~]{0,99}") {
            let text: String = links.iter().map(|link| format!("{filler}<embed src=\"{link}\">")).collect();
            let expected: Vec<_> = links.iter().cloned().map(Ok).collect();
            prop_assert_eq!(scan(&LinkTags::default(), text.as_bytes(), 1000), expected);
        }

        #[test]
        fn values_are_decoded_and_judged_however_they_come(
            value in "([!-~&&[^\"]]{0,3}|[ \t\r\n]|&amp;|&#[0-9]{1,3};|[\x00-\x7f\u{e9}&&[^\"]]){0,6}",
            step in 1usize..40,
        ) {
            let mut url = value.clone().into_bytes();
            entities::decode(&mut url);
            let url = String::from_utf8_lossy(&url).replace(['\t', '\r', '\n'], "");
            // The blanks of HTML include the form feed.
            let url = url.trim_matches([' ', '\x0c']);
            let bad = url.is_empty() || url.contains(|c: char| c == ' ' || c.is_ascii_control());
            let expected = if bad { Err(MarkupError::BadUrl) } else { Ok(url.to_owned()) };
            let text = format!("<p><embed src=\"{value}\">");
            prop_assert_eq!(scan(&LinkTags::default(), text.as_bytes(), step), vec![expected]);
        }

        #[test]
        fn random_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
            let _ = scan(&LinkTags::default(), &data, step);
        }
    }
}
