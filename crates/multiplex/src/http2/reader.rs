//! Cuts what arrives into frames. Content is passed on as it comes, so that it is copied only to where it is read; other frames are
//! collected until they are complete.

use super::frames::{FrameHeader, HEADER, MAX_PAYLOAD, flag, kind};
use super::{Http2Error, codes};

/// What has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A frame other than DATA, with its payload.
    Whole(FrameHeader, &'a [u8]),
    /// A part of a DATA frame.
    Data(DataPart<'a>),
}

/// A part of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPart<'a> {
    /// The stream.
    pub stream: u32,
    /// The content in this part.
    pub content: &'a [u8],
    /// The bytes of padding in this part, which windows count, too.
    pub padding: usize,
    /// Whether it is the first part of the frame.
    pub is_first: bool,
    /// Whether it is the last part, and the stream ends behind the frame.
    pub ends_stream: bool,
}

/// A DATA frame of which some bytes are to come.
#[derive(Clone, Copy, Debug)]
struct OpenData {
    stream: u32,
    content: usize,
    padding: usize,
    ends_stream: bool,
}

/// Cuts frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The start of a frame that is not complete.
    partial: Vec<u8>,
    /// Whether `partial` was returned as a whole frame.
    is_returned: bool,
    data: Option<OpenData>,
}

impl FrameReader {
    /// Takes bytes from the front of `bytes`. Returns their number and what they complete; without the latter, more is needed.
    ///
    /// # Errors
    /// If a frame is larger than this side allows, or if the padding of DATA is wrong.
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Result<(usize, Option<Piece<'a>>), Http2Error> {
        if let Some(open) = self.data.take() {
            if bytes.is_empty() {
                self.data = Some(open);
                return Ok((0, None));
            }
            return Ok(self.part(open, 0, false, bytes));
        }
        if std::mem::take(&mut self.is_returned) {
            self.partial.clear();
        }
        if self.partial.is_empty() {
            let Some((header, wanted)) = Self::wanted(bytes)? else { return Ok(self.keep(bytes, HEADER)) };
            if bytes.len() < wanted {
                return Ok(self.keep(bytes, wanted));
            }
            return match header.kind {
                kind::DATA => self.start_data(&header, bytes, wanted).map(|(open, extra)| {
                    let (used, piece) = self.part(open, extra, true, &bytes[wanted..]);
                    (wanted + used, piece)
                }),
                _ => Ok((wanted, Some(Piece::Whole(header, &bytes[HEADER..wanted])))),
            };
        }
        self.complete(bytes)
    }

    /// Goes on with a frame whose start is kept.
    fn complete<'a>(&'a mut self, bytes: &'a [u8]) -> Result<(usize, Option<Piece<'a>>), Http2Error> {
        let (mut used, mut wanted, mut header) = (0, HEADER, None);
        loop {
            let more = wanted.saturating_sub(self.partial.len()).min(bytes.len() - used);
            self.partial.extend_from_slice(&bytes[used..used + more]);
            used += more;
            if self.partial.len() < wanted {
                return Ok((used, None));
            }
            let Some(found) = header else {
                let known = Self::wanted(&self.partial)?;
                header = known.map(|(header, _)| header);
                wanted = known.map_or(wanted, |(_, wanted)| wanted);
                continue;
            };
            return match found.kind {
                kind::DATA => {
                    let (open, extra) = self.start_data(&found, &self.partial, wanted)?;
                    self.partial.clear();
                    let (more, piece) = self.part(open, extra, true, &bytes[used..]);
                    Ok((used + more, piece))
                }
                _ => {
                    self.is_returned = true;
                    Ok((used, Some(Piece::Whole(found, &self.partial[HEADER..wanted]))))
                }
            };
        }
    }

    /// Whether nothing is missing from a frame.
    pub fn is_between_frames(&self) -> bool {
        self.data.is_none() && (self.partial.is_empty() || self.is_returned)
    }

    fn keep(&mut self, bytes: &[u8], wanted: usize) -> (usize, Option<Piece<'static>>) {
        self.partial.reserve(wanted);
        self.partial.extend_from_slice(bytes);
        (bytes.len(), None)
    }

    /// The header at the start of `bytes`, and how many bytes are needed at once: of DATA, those before the content, of other frames all.
    fn wanted(bytes: &[u8]) -> Result<Option<(FrameHeader, usize)>, Http2Error> {
        let Some(header) = FrameHeader::read(bytes) else { return Ok(None) };
        if header.length > MAX_PAYLOAD {
            return Err(Http2Error::new(codes::FRAME_SIZE_ERROR, "a frame is larger than allowed"));
        }
        let payload = match (header.kind, header.has(flag::PADDED)) {
            (kind::DATA, false) => 0,
            (kind::DATA, true) if header.length == 0 => {
                return Err(Http2Error::new(codes::FRAME_SIZE_ERROR, "a padded frame without its padding"));
            }
            (kind::DATA, true) => 1,
            _ => header.length,
        };
        Ok(Some((header, HEADER + payload)))
    }

    /// The parts of a DATA frame with this header, which is in `bytes` with what is `wanted`, and the bytes of padding among these.
    fn start_data(
        &self,
        header: &FrameHeader,
        bytes: &[u8],
        wanted: usize,
    ) -> Result<(OpenData, usize), Http2Error> {
        if header.stream == 0 {
            return Err(Http2Error::protocol("DATA without a stream"));
        }
        let extra = wanted - HEADER;
        let padding = if extra == 0 { 0 } else { usize::from(bytes[HEADER]) };
        let content = (header.length - extra).checked_sub(padding);
        let open = OpenData {
            stream: header.stream,
            content: content.ok_or(Http2Error::protocol("more padding than the frame has"))?,
            padding,
            ends_stream: header.has(flag::END_STREAM),
        };
        Ok((open, extra))
    }

    /// The next part of a DATA frame. `extra` bytes of padding have arrived before `bytes`.
    fn part<'a>(
        &mut self,
        mut open: OpenData,
        extra: usize,
        is_first: bool,
        bytes: &'a [u8],
    ) -> (usize, Option<Piece<'a>>) {
        let content = open.content.min(bytes.len());
        let padding = open.padding.min(bytes.len() - content);
        (open.content, open.padding) = (open.content - content, open.padding - padding);
        let is_complete = open.content + open.padding == 0;
        let part = DataPart {
            stream: open.stream,
            content: &bytes[..content],
            padding: padding + extra,
            is_first,
            ends_stream: is_complete && open.ends_stream,
        };
        self.data = (!is_complete).then_some(open);
        (content + padding, Some(Piece::Data(part)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out: frames, and the parts of DATA put together.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Frames {
        list: Vec<(u8, u32, Vec<u8>, usize, bool)>,
    }

    fn read(bytes: &[u8], size: usize) -> Result<Frames, Http2Error> {
        let (mut reader, mut frames) = (FrameReader::default(), Frames::default());
        for mut piece in bytes.chunks(size.max(1)) {
            loop {
                let (used, found) = reader.next(piece)?;
                match found {
                    Some(Piece::Whole(header, payload)) => {
                        frames.list.push((header.kind, header.stream, payload.to_vec(), 0, header.has(1)));
                    }
                    Some(Piece::Data(part)) => {
                        if part.is_first {
                            frames.list.push((kind::DATA, part.stream, Vec::new(), 0, false));
                        }
                        let frame = frames.list.last_mut().unwrap();
                        assert!(!frame.4, "nothing follows the last part");
                        assert_eq!(frame.1, part.stream);
                        frame.2.extend_from_slice(part.content);
                        frame.3 += part.padding;
                        frame.4 = part.ends_stream;
                    }
                    None => {
                        assert_eq!(used, piece.len(), "a reader that wants more has taken everything");
                        break;
                    }
                }
                piece = &piece[used..];
            }
        }
        assert!(reader.is_between_frames());
        Ok(frames)
    }

    #[test]
    fn frames_that_are_too_large_or_wrongly_padded_are_refused() {
        for (bytes, code) in [
            (&b"\0\x40\x01\x06\0\0\0\0\0"[..], codes::FRAME_SIZE_ERROR),
            (b"\0\x40\x01\0\0\0\0\0\x01", codes::FRAME_SIZE_ERROR),
            (b"\0\0\0\0\x08\0\0\0\x01", codes::FRAME_SIZE_ERROR),
            (b"\0\0\x01\0\x08\0\0\0\x01\x01", codes::PROTOCOL_ERROR),
            (b"\0\0\x01\0\0\0\0\0\0a", codes::PROTOCOL_ERROR),
        ] {
            for size in [1, bytes.len()] {
                assert_eq!(read(bytes, size).map_err(|error| error.code), Err(code), "{bytes:?}");
            }
        }
    }

    #[test]
    fn content_is_passed_on_as_it_comes() {
        let mut reader = FrameReader::default();
        let part = |content, padding, is_first, ends_stream| {
            Some(Piece::Data(DataPart { stream: 1, content, padding, is_first, ends_stream }))
        };
        assert_eq!(reader.next(b"\0\0\x07\0\x09\0\0\0\x01"), Ok((9, None)));
        assert_eq!(reader.next(b"\x02ab"), Ok((3, part(b"ab", 1, true, false))));
        assert_eq!(reader.next(b""), Ok((0, None)));
        assert_eq!(reader.next(b"cd\0"), Ok((3, part(b"cd", 1, false, false))));
        assert!(!reader.is_between_frames());
        assert_eq!(reader.next(b"\0more"), Ok((1, part(b"", 1, false, true))));
        assert!(reader.is_between_frames());
        assert_eq!(reader.next(b"\0\0\0\0\x01\0\0\0\x01"), Ok((9, part(b"", 0, true, true))));
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            frames in prop::collection::vec((0u8..11, any::<bool>(), 1u32..9, "[a-z]{0,30}", 0u8..9), 0..8),
            size in 1usize..50,
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Frames::default());
            for (kind, ends, stream, payload, padding) in frames {
                let is_data = kind == kind::DATA;
                let padding = usize::from(padding).min(if is_data { 9 } else { 0 });
                let is_padded = padding > 0;
                let flags = u8::from(ends) | if is_padded { flag::PADDED } else { 0 };
                FrameHeader { length: payload.len() + padding, kind, flags, stream }.put(&mut bytes);
                if is_padded {
                    bytes.push(padding as u8 - 1);
                }
                bytes.extend_from_slice(payload.as_bytes());
                bytes.extend(std::iter::repeat_n(0, padding.saturating_sub(1)));
                expected.list.push((kind, stream, payload.into_bytes(), padding, ends));
            }
            prop_assert_eq!(read(&bytes, size).unwrap(), expected);
        }
    }
}
