//! `multipart/byteranges` (RFC 9110, section 14.6): several ranges of one entity in one body.
//!
//! ```text
//!  --BOUNDARY                          ┐
//!  Content-Type: text/html             │ head of a part
//!  Content-Range: bytes 0-4/100        │
//!                                      ┘
//!  hello                                 as many bytes as the range has
//!  --BOUNDARY
//!  ...
//!  --BOUNDARY--
//! ```

use crate::range::{ByteRange, ContentRange};

/// A boundary has 1 to 70 characters (RFC 2046, section 5.1.1).
const MAX_BOUNDARY: usize = 70;
/// The largest length in bytes of text before the first part, of a part's head, and of a boundary line.
const MAX_TEXT: usize = 8 * 1024;
/// The largest number of header fields of a part.
const MAX_FIELDS: usize = 32;

/// An error in a multipart body. The numbers are those of the error catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    /// c84: the boundary is invalid or missing.
    #[error("boundary is missing")]
    Boundary,
    /// c85: the head of a part is malformed or has no valid range.
    #[error("bad head of a part")]
    Part,
    /// c86: text behind a boundary.
    #[error("unexpected text after a boundary")]
    Garbage,
    /// c87: a line or the head of a part is too long.
    #[error("head or line of a part is too long")]
    Long,
}

/// The boundary in the value of a `Content-Type` field; `None` for types other than `multipart/byteranges` and
/// for unusable boundaries.
pub fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let mut parts = content_type.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    if !parts.next()?.eq_ignore_ascii_case(b"multipart/byteranges") {
        return None;
    }
    // A boundary contains neither `;` nor `"`, so quotes can be handled this late.
    let value = parts.find_map(|parameter| {
        let (name, value) = parameter.split_at_checked("boundary=".len())?;
        name.eq_ignore_ascii_case(b"boundary=").then_some(value)
    })?;
    let value = match value {
        [b'"', inner @ .., b'"'] => inner,
        plain => plain,
    };
    is_boundary(value).then_some(value)
}

fn is_boundary(value: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(b);
    (1..=MAX_BOUNDARY).contains(&value.len()) && value.iter().all(allowed) && !value.ends_with(b" ")
}

/// Writes the boundaries and heads around the ranges of an entity.
#[derive(Clone, Copy, Debug)]
pub struct MultipartWriter<'a> {
    /// Separates the parts; 1 to 70 characters that must not occur in the entity.
    pub boundary: &'a str,
    /// Type of the entity.
    pub content_type: &'a str,
    /// Size of the entity in bytes.
    pub size: u64,
}

const TYPE: &str = "\r\nContent-Type: ";
const RANGE: &str = "\r\nContent-Range: ";

impl MultipartWriter<'_> {
    /// Appends the boundary and head before the bytes of `range`.
    pub fn part(&self, range: ByteRange, out: &mut Vec<u8>) {
        for text in ["\r\n--", self.boundary, TYPE, self.content_type, RANGE] {
            out.extend_from_slice(text.as_bytes());
        }
        self.range(range).write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends the boundary after the last part.
    pub fn end(&self, out: &mut Vec<u8>) {
        for text in ["\r\n--", self.boundary, "--\r\n"] {
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Length of a body that carries `ranges`, in bytes: the `Content-Length` of the reply.
    pub fn len(&self, ranges: impl IntoIterator<Item = ByteRange>) -> u64 {
        let line = 4 + self.boundary.len();
        let fixed = line + TYPE.len() + self.content_type.len() + RANGE.len() + 4;
        let parts = ranges.into_iter().map(|range| {
            let head = fixed + self.range(range).text_len();
            (head as u64).saturating_add(range.len())
        });
        parts.fold(line as u64 + 4, u64::saturating_add)
    }

    fn range(&self, range: ByteRange) -> ContentRange {
        ContentRange::Part(range, Some(self.size))
    }
}

/// What a [`MultipartReader`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipartPiece<'a> {
    /// The start of a part: its range, and the size of the entity if given.
    Part(ByteRange, Option<u64>),
    /// Next bytes of the part.
    Data(&'a [u8]),
}

/// Reads a multipart body that arrives in pieces.
///
/// The length of a part comes from its `Content-Range`, so the bytes of the entity are never searched.
#[derive(Clone, Debug)]
pub struct MultipartReader {
    /// `--BOUNDARY`, which separates parts.
    delimiter: Vec<u8>,
    state: State,
    /// The current line or head so far.
    text: Vec<u8>,
}

/// ```text
///  Preamble ──> Head ──> Data ──> AfterData ──> Line ──> Head ...
///      └─────────────────────────────────────────┴──────> Epilogue
/// ```
#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the first boundary: ignored lines, with the number of their bytes.
    Preamble(usize),
    /// In the head of a part.
    Head,
    /// In a part, with the number of bytes to come.
    Data(u64),
    /// At the line end between a part and the next boundary.
    AfterData,
    /// In a line that must be a boundary.
    Line,
    /// After the last boundary.
    Epilogue,
}

impl MultipartReader {
    /// A reader at the start of a body whose parts `boundary` separates.
    ///
    /// # Errors
    /// [`MultipartError::Boundary`] if `boundary` is not valid.
    pub fn new(boundary: &[u8]) -> Result<MultipartReader, MultipartError> {
        if !is_boundary(boundary) {
            return Err(MultipartError::Boundary);
        }
        let delimiter = [b"--", boundary].concat();
        Ok(MultipartReader { delimiter, state: State::Preamble(0), text: Vec::new() })
    }

    /// True once the last boundary has arrived. A body that ends before is truncated.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Epilogue)
    }

    /// Takes the next bytes of the body and passes the pieces to `sink`.
    ///
    /// # Errors
    /// The error in the body; the reader must not be used again.
    pub fn feed(
        &mut self,
        mut data: &[u8],
        mut sink: impl FnMut(MultipartPiece<'_>),
    ) -> Result<(), MultipartError> {
        while let Some(&byte) = data.first() {
            match self.state {
                State::Data(left) => {
                    let n = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    sink(MultipartPiece::Data(&data[..n]));
                    data = &data[n..];
                    let left = left - n as u64;
                    self.state = if left == 0 { State::AfterData } else { State::Data(left) };
                }
                State::AfterData => {
                    data = &data[1..];
                    match byte {
                        b'\r' if self.text.is_empty() => self.text.push(byte),
                        b'\n' => self.enter(State::Line),
                        _ => return Err(MultipartError::Boundary),
                    }
                }
                State::Epilogue => {
                    if !data.iter().all(u8::is_ascii_whitespace) {
                        return Err(MultipartError::Garbage);
                    }
                    return Ok(());
                }
                State::Preamble(_) | State::Line | State::Head => {
                    data = self.gather(data, &mut sink)?;
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, state: State) {
        self.text.clear();
        self.state = state;
    }

    /// Takes bytes up to the next line end, and processes the line if it is complete.
    fn gather<'d>(
        &mut self,
        data: &'d [u8],
        sink: &mut impl FnMut(MultipartPiece<'_>),
    ) -> Result<&'d [u8], MultipartError> {
        // The body may end with the last boundary, without a line end.
        if !matches!(self.state, State::Head) && self.completes_the_end(data[0]) {
            self.enter(State::Epilogue);
            return Ok(&data[1..]);
        }
        let in_head = matches!(self.state, State::Head);
        let end = memchr::memchr(b'\n', data).map(|at| at + 1);
        // Boundary lines are read byte by byte as long as they may be the last.
        let taken =
            if in_head || self.text.len() > self.delimiter.len() + 2 { end.unwrap_or(data.len()) } else { 1 };
        self.text.extend_from_slice(&data[..taken]);
        if self.text.len() > MAX_TEXT {
            return Err(MultipartError::Long);
        }
        if end == Some(taken) {
            match self.state {
                State::Head => self.end_of_head_line(sink)?,
                State::Preamble(seen) => self.end_of_preamble_line(seen)?,
                _ => self.end_of_boundary_line()?,
            }
        }
        Ok(&data[taken..])
    }

    /// True if `byte` makes the current line `--BOUNDARY--`.
    fn completes_the_end(&self, byte: u8) -> bool {
        let line = &self.text;
        byte == b'-'
            && line.len() == self.delimiter.len() + 1
            && line.ends_with(b"-")
            && line.starts_with(&self.delimiter)
    }

    fn end_of_preamble_line(&mut self, seen: usize) -> Result<(), MultipartError> {
        if self.text.starts_with(&self.delimiter) {
            return self.end_of_boundary_line();
        }
        let seen = seen + self.text.len();
        if seen > MAX_TEXT {
            return Err(MultipartError::Boundary);
        }
        self.enter(State::Preamble(seen));
        Ok(())
    }

    /// Checks for `--BOUNDARY`, blanks, line end.
    fn end_of_boundary_line(&mut self) -> Result<(), MultipartError> {
        let rest = self.text.strip_prefix(self.delimiter.as_slice()).ok_or(MultipartError::Boundary)?;
        if !rest.trim_ascii().is_empty() {
            return Err(MultipartError::Garbage);
        }
        self.enter(State::Head);
        Ok(())
    }

    fn end_of_head_line(&mut self, sink: &mut impl FnMut(MultipartPiece<'_>)) -> Result<(), MultipartError> {
        let text = &self.text;
        let complete = matches!(text.as_slice(), b"\n" | b"\r\n")
            || text.ends_with(b"\n\n")
            || text.ends_with(b"\n\r\n");
        if !complete {
            return Ok(());
        }
        let (range, size) = part_range(text).ok_or(MultipartError::Part)?;
        sink(MultipartPiece::Part(range, size));
        self.enter(State::Data(range.len()));
        Ok(())
    }
}

/// The range that the head of a part announces.
fn part_range(head: &[u8]) -> Option<(ByteRange, Option<u64>)> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let httparse::Status::Complete((_, fields)) = httparse::parse_headers(head, &mut fields).ok()? else {
        return None;
    };
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case("Content-Range"))?;
    match ContentRange::parse(field.value)? {
        ContentRange::Part(range, size) => Some((range, size)),
        ContentRange::Unsatisfied(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Parts = Vec<(u64, u64, Option<u64>, Vec<u8>)>;

    fn read(boundary: &str, body: &[u8], step: usize) -> Result<(Parts, bool), MultipartError> {
        let mut reader = MultipartReader::new(boundary.as_bytes())?;
        let mut parts: Parts = Vec::new();
        for piece in body.chunks(step.max(1)) {
            reader.feed(piece, |piece| match piece {
                MultipartPiece::Part(range, size) => {
                    parts.push((range.first(), range.last(), size, Vec::new()))
                }
                MultipartPiece::Data(bytes) => parts.last_mut().unwrap().3.extend_from_slice(bytes),
            })?;
        }
        Ok((parts, reader.is_done()))
    }

    #[test]
    fn boundaries_by_example() {
        #[track_caller]
        fn check(content_type: &str, expected: Option<&str>) {
            assert_eq!(boundary(content_type.as_bytes()), expected.map(str::as_bytes), "{content_type}");
        }
        check("multipart/byteranges; boundary=THIS_STRING_SEPARATES", Some("THIS_STRING_SEPARATES"));
        check("Multipart/ByteRanges;charset=x;BOUNDARY=\"a b\"", Some("a b"));
        check("multipart/byteranges", None);
        check("multipart/byteranges; boundary=", None);
        check("multipart/byteranges; boundary=\"\"", None);
        check("multipart/byteranges; boundary=a\"b", None);
        check("multipart/form-data; boundary=x", None);
        check(&format!("multipart/byteranges; boundary={}", "x".repeat(71)), None);
    }

    const BODY: &str = "--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-4/20\r\n\r\nhello\r\n\
        --B  \r\ncontent-range: bytes 7-7/*\r\n\r\n!\r\n--B--\r\n";

    #[test]
    fn bodies_may_be_cut_anywhere() {
        let expected = vec![(0, 4, Some(20), b"hello".to_vec()), (7, 7, None, b"!".to_vec())];
        for step in 1..=BODY.len() {
            assert_eq!(read("B", BODY.as_bytes(), step), Ok((expected.clone(), true)), "{step}");
            let unix = BODY.replace("\r\n", "\n");
            assert_eq!(read("B", unix.as_bytes(), step), Ok((expected.clone(), true)), "{step}");
            let preamble = format!("\r\nsome text\r\n--C\r\n{BODY}");
            assert_eq!(read("B", preamble.as_bytes(), step), Ok((expected.clone(), true)), "{step}");
        }
        for cut in 0..BODY.len() - 2 {
            assert!(!read("B", &BODY.as_bytes()[..cut], 7).unwrap().1, "{cut}");
        }
        assert!(read("B", BODY.trim_end().as_bytes(), 3).unwrap().1, "no line end behind the last boundary");
    }

    #[test]
    fn faults_by_example() {
        #[track_caller]
        fn check(body: &str, expected: MultipartError) {
            for step in [1, 5, body.len()] {
                assert_eq!(read("B", body.as_bytes(), step), Err(expected), "{body:?} by {step}");
            }
        }
        use MultipartError::{Boundary, Garbage, Long, Part};
        check("--B\r\nContent-Range: bytes 0-4/20\r\n\r\nhello!\r\n--B--\r\n", Boundary);
        check("--B\r\nContent-Range: bytes 0-4/20\r\n\r\nhello\r\r\n--B--\r\n", Boundary);
        check("--B\r\nContent-Range: bytes 0-4/20\r\n\r\nhello\r\n--C--\r\n", Boundary);
        check(&"no boundary here\r\n".repeat(1000), Boundary);
        check("--B\r\n\r\nhello\r\n--B--\r\n", Part);
        check("--B\r\nContent-Range: bytes 4-0/20\r\n\r\n", Part);
        check("--B\r\nContent-Range: bytes */20\r\n\r\n", Part);
        check("--B\r\nno colon\r\n\r\n", Part);
        check(&format!("--B\r\n{}\r\n", "A: b\r\n".repeat(MAX_FIELDS + 1)), Part);
        check("--B!\r\n", Garbage);
        check("--B--\r\nmore", Garbage);
        check(&format!("--B\r\nX: {}", "y".repeat(MAX_TEXT)), Long);
        check(&"y".repeat(MAX_TEXT + 1), Long);
        assert_eq!(MultipartReader::new(b"").err(), Some(Boundary));
        assert_eq!(MultipartReader::new(b"a\nb").err(), Some(Boundary));
    }

    proptest! {
        #[test]
        fn round_trips(
            entity in prop::collection::vec(any::<u8>(), 1..300),
            picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
            boundary in "[A-Za-z0-9_]{1,70}",
            step in 1usize..400,
        ) {
            let size = entity.len() as u64;
            let writer = MultipartWriter { boundary: &boundary, content_type: "a/b", size };
            let ranges: Vec<ByteRange> = picks.iter().map(|(a, b)| {
                let (a, b) = (a.index(entity.len()) as u64, b.index(entity.len()) as u64);
                ByteRange::new(a.min(b), a.max(b)).unwrap()
            }).collect();
            let (mut body, mut expected) = (Vec::new(), Vec::new());
            for &range in &ranges {
                writer.part(range, &mut body);
                let bytes = &entity[range.first() as usize..=range.last() as usize];
                body.extend_from_slice(bytes);
                expected.push((range.first(), range.last(), Some(size), bytes.to_vec()));
            }
            writer.end(&mut body);
            prop_assert_eq!(body.len() as u64, writer.len(ranges));
            prop_assert_eq!(read(&boundary, &body, step), Ok((expected, true)));
        }

        #[test]
        fn random_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
            let _ = read("B", &data, step);
            let _ = read("B", &[b"--B\r\n", data.as_slice()].concat(), step);
            let _ = boundary(&data);
        }
    }
}
