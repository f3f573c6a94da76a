//! How long a message body is and where it ends (RFC 9112, section 6).

use crate::head::{Header, ReplyHead, RequestHead, is_named};

/// How the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A number of bytes; 0 means no body.
    Length(u64),
    /// Chunks (RFC 9112, section 7.1).
    Chunked,
    /// All bytes until the peer closes the connection.
    UntilClose,
}

/// An error in a body or its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// `Content-Length` is not a number, or several differ.
    #[error("bad Content-Length")]
    Length,
    /// A transfer coding other than `chunked`, or `chunked` not last.
    #[error("unsupported transfer coding")]
    Coding,
    /// A chunk size is no hex number, or too large a one.
    #[error("bad chunk size")]
    ChunkSize,
    /// A chunk size begins with a minus sign.
    #[error("negative chunk size")]
    ChunkNegative,
    /// A chunk extension or a trailer is too long.
    #[error("endless chunk extension or trailer")]
    ChunkLong,
    /// A chunk is not followed by a line end.
    #[error("bad end of a chunk")]
    ChunkEnd,
}

/// The framing of a request's body; without a length or coding there is no body.
///
/// # Errors
/// If the framing headers contradict each other.
pub fn request_framing(head: &RequestHead<'_, '_>) -> Result<Framing, BodyError> {
    DeclaredFraming::of(head.headers).request_framing()
}

/// True if a message has a length besides chunks: the chunks count, and the connection must be closed after it
/// (RFC 9112, section 6.3).
pub fn has_two_framings(headers: &[Header<'_>]) -> bool {
    DeclaredFraming::of(headers).is_length_ignored()
}

/// The framing of a reply's body. `to_head` means that the request's method was HEAD.
///
/// # Errors
/// If the framing headers contradict each other.
pub fn reply_framing(head: &ReplyHead<'_, '_>, to_head: bool) -> Result<Framing, BodyError> {
    DeclaredFraming::of(head.headers).reply_framing(head.status, to_head)
}

/// The framing headers of a message, for callers that see header fields one by one.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclaredFraming {
    length: Option<u64>,
    chunked: bool,
    /// The first error.
    fault: Option<BodyError>,
}

impl DeclaredFraming {
    fn of(headers: &[Header<'_>]) -> DeclaredFraming {
        let mut declared = DeclaredFraming::default();
        for header in headers {
            if is_named(header.name, "Content-Length") {
                declared.see_length(header.value);
            } else if is_named(header.name, "Transfer-Encoding") {
                declared.see_coding(header.value);
            }
        }
        declared
    }

    /// Takes the value of a `Content-Length`.
    pub fn see_length(&mut self, value: &[u8]) {
        match parse_decimal(value.trim_ascii()) {
            Some(length) if self.length.is_none_or(|seen| seen == length) => self.length = Some(length),
            _ => self.refuse(BodyError::Length),
        }
    }

    /// Takes the value of a `Transfer-Encoding`.
    pub fn see_coding(&mut self, value: &[u8]) {
        if !self.chunked && value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            self.chunked = true;
        } else if !value.trim_ascii().eq_ignore_ascii_case(b"identity") {
            // RFC 7230 dropped `identity`, but servers still send it. Besides another coding, sender and
            // receivers may disagree about the end of the message (RFC 9112, section 6.3).
            self.refuse(BodyError::Coding);
        }
    }

    fn refuse(&mut self, fault: BodyError) {
        self.fault.get_or_insert(fault);
    }

    /// The framing of the body of a request with these headers.
    ///
    /// # Errors
    /// If the framing headers contradict each other.
    pub fn request_framing(&self) -> Result<Framing, BodyError> {
        Ok(self.framing()?.unwrap_or(Framing::Length(0)))
    }

    /// The framing of the body of a reply with these headers. `to_head` means that the request's method was
    /// HEAD.
    ///
    /// # Errors
    /// If the framing headers contradict each other.
    pub fn reply_framing(&self, status: u16, to_head: bool) -> Result<Framing, BodyError> {
        if to_head || matches!(status, 100..=199 | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        Ok(self.framing()?.unwrap_or(Framing::UntilClose))
    }

    /// The value of `Content-Length`.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// True if there is a length that the chunks override (RFC 9112, section 6.3).
    pub fn is_length_ignored(&self) -> bool {
        self.chunked && self.length.is_some()
    }

    /// A transfer coding overrides a length.
    fn framing(&self) -> Result<Option<Framing>, BodyError> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.chunked => Ok(Some(Framing::Chunked)),
            None => Ok(self.length.map(Framing::Length)),
        }
    }
}

/// A decimal number of at most 18 digits, nothing else.
pub fn parse_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0u64, |value, &b| b.is_ascii_digit().then(|| value * 10 + u64::from(b - b'0')))
}

/// Follows a body through the bytes of a connection.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
}

/// ```text
///  Length ──> Done          Size <──┐            Trailer ──> Done
///  UntilClose               │ n > 0 └─ DataEnd <─ Data     ^
///                           └─────────────────────> Data   │ n == 0: Size ─┘
/// ```
#[derive(Clone, Debug)]
enum State {
    Length(u64),
    UntilClose,
    /// Inside a chunk size line.
    Size {
        value: u64,
        digits: u8,
        /// Past the digits, inside an extension; counts bytes to bound it.
        skipped: u16,
    },
    Data(u64),
    /// Expecting the line end after a chunk's data.
    DataEnd,
    /// In the trailer; counts bytes of the current line (without CR).
    Trailer {
        line: u16,
        total: u16,
        /// The line before was not empty.
        fields: bool,
    },
    Done {
        trailer: bool,
    },
}

/// The result of [`BodyReader::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedResult {
    /// Bytes that belong to this body; the bytes after them belong to the next message.
    pub consumed: usize,
    /// The body is complete.
    pub done: bool,
}

const DONE: State = State::Done { trailer: false };
const START_OF_CHUNK: State = State::Size { value: 0, digits: 0, skipped: 0 };
/// The largest length in bytes of chunk extensions and trailers.
const MAX_CHUNK_EXTRAS: u16 = 8 * 1024;

impl BodyReader {
    /// A reader at the start of a body.
    pub fn new(framing: Framing) -> BodyReader {
        BodyReader {
            state: match framing {
                Framing::Length(0) => DONE,
                Framing::Length(n) => State::Length(n),
                Framing::Chunked => START_OF_CHUNK,
                Framing::UntilClose => State::UntilClose,
            },
        }
    }

    /// True once the body is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done { .. })
    }

    /// True if the complete body has a trailer.
    pub fn has_trailer(&self) -> bool {
        matches!(self.state, State::Done { trailer: true })
    }

    /// True if the body ends where the peer closes the connection, so that closing is not an error.
    pub fn ends_at_close(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    /// Takes the next bytes of the connection and passes the content among them to `sink`.
    ///
    /// # Errors
    /// If the chunk framing is broken; the reader must not be used again.
    pub fn feed(&mut self, data: &[u8], sink: impl FnMut(&[u8])) -> Result<FeedResult, BodyError> {
        self.feed_with_trailer(data, sink, |_| ())
    }

    /// Like [`BodyReader::feed`], and passes each byte of the trailer to `trailer`: field lines and the empty line.
    ///
    /// # Errors
    /// If the chunk framing is broken; the reader must not be used again.
    pub fn feed_with_trailer(
        &mut self,
        data: &[u8],
        mut sink: impl FnMut(&[u8]),
        mut trailer: impl FnMut(u8),
    ) -> Result<FeedResult, BodyError> {
        let mut at = 0;
        while at < data.len() {
            let rest = &data[at..];
            match &mut self.state {
                State::Done { .. } => break,
                State::UntilClose => {
                    sink(rest);
                    at = data.len();
                }
                State::Length(left) | State::Data(left) => {
                    let n = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    sink(&rest[..n]);
                    at += n;
                    *left -= n as u64;
                    if *left == 0 {
                        let in_chunk = matches!(self.state, State::Data(_));
                        self.state = if in_chunk { State::DataEnd } else { DONE };
                    }
                }
                framing => {
                    at += 1;
                    if matches!(framing, State::Trailer { .. }) {
                        trailer(rest[0]);
                    }
                    if let Some(next) = framing_byte(framing, rest[0])? {
                        self.state = next;
                    }
                }
            }
        }
        Ok(FeedResult { consumed: at, done: self.is_done() })
    }
}

/// One byte of chunk framing: `Some` if it ends the current state.
fn framing_byte(state: &mut State, byte: u8) -> Result<Option<State>, BodyError> {
    match state {
        State::Size { value, digits, skipped } => match (byte, (byte as char).to_digit(16)) {
            (_, Some(digit)) if *skipped == 0 => {
                *digits += 1;
                *value = *value << 4 | u64::from(digit);
                if *digits > 15 { Err(BodyError::ChunkSize) } else { Ok(None) }
            }
            (b'\n', _) if *digits > 0 => Ok(Some(match *value {
                0 => State::Trailer { line: 0, total: 0, fields: false },
                n => State::Data(n),
            })),
            (b'\r' | b';' | b' ' | b'\t', _) if *digits > 0 => bounded(skipped).map(|()| None),
            (b'\n', _) => Err(BodyError::ChunkSize),
            _ if *skipped > 0 => bounded(skipped).map(|()| None),
            (b'-', _) if *digits == 0 => Err(BodyError::ChunkNegative),
            _ => Err(BodyError::ChunkSize),
        },
        State::DataEnd => match byte {
            b'\r' => Ok(None),
            b'\n' => Ok(Some(START_OF_CHUNK)),
            _ => Err(BodyError::ChunkEnd),
        },
        State::Trailer { line, total, fields } => {
            bounded(total)?;
            match byte {
                b'\n' if *line == 0 => return Ok(Some(State::Done { trailer: *fields })),
                b'\n' => (*line, *fields) = (0, true),
                b'\r' => {}
                _ => *line += 1,
            }
            Ok(None)
        }
        State::Length(_) | State::UntilClose | State::Data(_) | State::Done { .. } => Ok(None),
    }
}

fn bounded(count: &mut u16) -> Result<(), BodyError> {
    *count += 1;
    if *count > MAX_CHUNK_EXTRAS { Err(BodyError::ChunkLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), BodyError> {
        let mut reader = BodyReader::new(framing);
        let mut body = Vec::new();
        let mut consumed = 0;
        for piece in pieces {
            consumed += reader.feed(piece, |bytes| body.extend_from_slice(bytes))?.consumed;
        }
        Ok((body, consumed, reader.is_done()))
    }

    #[test]
    fn lengths_and_the_next_message() {
        assert_eq!(read(Framing::Length(5), &[b"hel", b"lo!!"]), Ok((b"hello".to_vec(), 5, true)));
        assert_eq!(read(Framing::Length(0), &[b"x"]), Ok((vec![], 0, true)));
        assert_eq!(read(Framing::UntilClose, &[b"a", b"b"]), Ok((b"ab".to_vec(), 2, false)));
    }

    #[test]
    fn chunks() {
        let text = b"5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\nNEXT";
        assert_eq!(read(Framing::Chunked, &[text]), Ok((b"hello!".to_vec(), text.len() - 4, true)));
        let endless = format!("1;{}", "x".repeat(10_000));
        for (bad, error) in [
            ("\r\n", BodyError::ChunkSize),
            ("x\r\n", BodyError::ChunkSize),
            ("5-\r\n", BodyError::ChunkSize),
            ("fffffffffffffffff\r\n", BodyError::ChunkSize),
            (";\r\n", BodyError::ChunkSize),
            ("-5\r\n", BodyError::ChunkNegative),
            ("5\r\nhelloX", BodyError::ChunkEnd),
            (&endless, BodyError::ChunkLong),
        ] {
            assert_eq!(read(Framing::Chunked, &[bad.as_bytes()]), Err(error), "{bad:?}");
        }
    }

    #[test]
    fn trailers_are_seen() {
        for (text, expected) in [("0\r\n\r\n", false), ("0\n\n", false), ("0\r\nA: b\r\n\r\n", true)] {
            let mut reader = BodyReader::new(Framing::Chunked);
            let mut trailer = Vec::new();
            reader.feed_with_trailer(text.as_bytes(), |_| (), |byte| trailer.push(byte)).unwrap();
            assert_eq!((reader.is_done(), reader.has_trailer()), (true, expected), "{text:?}");
            assert_eq!(trailer, text.split_once('\n').unwrap().1.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn framing_rules() {
        #[track_caller]
        fn check(head: &str, to_head: bool, expected: Result<Framing, BodyError>) {
            let got = crate::parse_reply(head.as_bytes(), |r| reply_framing(r, to_head));
            assert_eq!(got, Ok(Some(expected)), "{head}");
        }
        check("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", false, Ok(Framing::Length(7)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, Ok(Framing::Length(0)));
        check("HTTP/1.1 304 OK\r\nContent-Length: 7\r\n\r\n", false, Ok(Framing::Length(0)));
        check("HTTP/1.0 200 OK\r\n\r\n", false, Ok(Framing::UntilClose));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 7\r\n\r\n",
            false,
            Ok(Framing::Chunked),
        );
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\n\r\n", false, Err(BodyError::Coding));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
            false,
            Err(BodyError::Coding),
        );
        for coding in ["chunked, identity", "identity, chunked", "identity;q=1"] {
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\nContent-Length: 7\r\n\r\n");
            check(&head, false, Err(BodyError::Coding));
        }
        check(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\nContent-length: 7\r\nContent-Length: 7\r\n\r\n",
            false,
            Ok(Framing::Length(7)),
        );
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: br\r\n\r\n",
            false,
            Err(BodyError::Length),
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\nContent-Length: x\r\n\r\n",
            false,
            Err(BodyError::Coding),
        );
        check("HTTP/1.1 204 OK\r\nContent-Length: x\r\n\r\n", false, Ok(Framing::Length(0)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 7x\r\n\r\n", false, Err(BodyError::Length));
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n",
            false,
            Err(BodyError::Length),
        );
    }

    proptest! {
        #[test]
        fn cutting_a_chunked_body_anywhere_changes_nothing(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
            cuts in prop::collection::vec(0usize..400, 0..6),
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            let mut at: Vec<usize> = cuts.into_iter().filter(|&c| c < text.len()).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in at {
                pieces.push(&text[from..cut]);
                from = cut;
            }
            pieces.push(&text[from..]);
            prop_assert_eq!(read(Framing::Chunked, &pieces), Ok((chunks.concat(), text.len(), true)));
        }

        #[test]
        fn random_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(Framing::Chunked, &[&data]);
            let _ = crate::parse_reply(&data, |r| reply_framing(r, false));
            let _ = crate::parse_request(&data, request_framing);
        }
    }
}
