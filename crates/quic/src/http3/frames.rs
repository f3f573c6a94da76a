//! Frames (RFC 9114, section 7).

use bytes::{Buf, Bytes};

use super::{Http3Error, codes, qpack, varint};

/// The types of frames.
pub mod kind {
    /// A part of the content of a message.
    pub const DATA: u64 = 0x0;
    /// A field section.
    pub const HEADERS: u64 = 0x1;
    /// Gives up a pushed reply.
    pub const CANCEL_PUSH: u64 = 0x3;
    /// Settings of the connection.
    pub const SETTINGS: u64 = 0x4;
    /// Announces a pushed reply.
    pub const PUSH_PROMISE: u64 = 0x5;
    /// Announces the end of the connection.
    pub const GOAWAY: u64 = 0x7;
    /// Allows pushed replies.
    pub const MAX_PUSH_ID: u64 = 0xd;

    /// Whether this type belongs to HTTP/2 and must not occur in HTTP/3 (RFC 9114, section 7.2.8).
    pub fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// The size of the header of a HEADERS frame with a usual field section.
const USUAL_HEADER: usize = 3;

/// Appends a HEADERS frame with the field section to which `put` appends the fields.
pub fn put_headers<R>(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let start = out.len();
    out.extend_from_slice(&[kind::HEADERS as u8, 0, 0]);
    qpack::put_prefix(out);
    let result = put(out);
    let length = out.len() - start - USUAL_HEADER;
    match length {
        // A variable-length integer of two bytes (RFC 9000, section 16).
        0x40..0x4000 => out[start + 1..start + 3].copy_from_slice(&(length as u16 | 0x4000).to_be_bytes()),
        _ => {
            let mut header = Vec::new();
            put_header(kind::HEADERS, length, &mut header);
            out.splice(start..start + USUAL_HEADER, header);
        }
    }
    result
}

/// Appends the header of a frame.
pub fn put_header(kind: u64, length: usize, out: &mut Vec<u8>) {
    varint::put(kind, out);
    varint::put(length as u64, out);
}

/// A piece of a stream of frames.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Some content of DATA frames.
    Content(Bytes),
    /// The payload of another frame that was collected, and its type.
    Whole(u64, Bytes),
}

/// Takes a stream of frames apart. Frames of unknown types are skipped.
#[derive(Debug)]
pub struct FrameReader {
    /// The most bytes of the payload of a frame other than DATA.
    limit: usize,
    /// The start of a header that has not arrived completely, and its size.
    header: [u8; MAX_HEADER],
    begun: usize,
    payload: Option<Payload>,
}

#[derive(Debug)]
struct Payload {
    kind: u64,
    left: u64,
    /// What has arrived of a payload that is collected.
    collected: Option<Vec<u8>>,
}

/// The longest header in bytes: two integers.
const MAX_HEADER: usize = 16;

impl FrameReader {
    /// A reader that collects payloads of up to `limit` bytes.
    pub fn new(limit: usize) -> FrameReader {
        FrameReader { limit, header: [0; MAX_HEADER], begun: 0, payload: None }
    }

    /// Whether the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.payload.is_none() && self.begun == 0
    }

    /// Takes the next piece from the front of `bytes`; `None` if that needs more bytes, and all were taken.
    ///
    /// # Errors
    /// If a frame is too large to be collected. The reader is then of no more use.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Piece>, Http3Error> {
        loop {
            let Some(payload) = &mut self.payload else {
                if !self.begin(bytes)? {
                    return Ok(None);
                }
                continue;
            };
            let here = usize::try_from(payload.left).unwrap_or(usize::MAX).min(bytes.len());
            payload.left -= here as u64;
            let part = bytes.split_to(here);
            let (kind, is_complete) = (payload.kind, payload.left == 0);
            let whole = match &mut payload.collected {
                // Nearly all payloads arrive in one piece, and are passed on where they are.
                Some(collected) if is_complete && collected.is_empty() => Some(part.clone()),
                Some(collected) => {
                    collected.extend_from_slice(&part);
                    is_complete.then(|| std::mem::take(collected).into())
                }
                None => None,
            };
            if is_complete {
                self.payload = None;
            }
            match whole {
                Some(whole) => return Ok(Some(Piece::Whole(kind, whole))),
                None if kind == kind::DATA && !part.is_empty() => return Ok(Some(Piece::Content(part))),
                None if bytes.is_empty() => return Ok(None),
                None => {}
            }
        }
    }

    /// Reads the header of a frame. Returns whether it is complete.
    fn begin(&mut self, bytes: &mut Bytes) -> Result<bool, Http3Error> {
        let earlier = std::mem::take(&mut self.begun);
        let more = bytes.len().min(MAX_HEADER - earlier);
        self.header[earlier..earlier + more].copy_from_slice(&bytes[..more]);
        let header = &self.header[..earlier + more];
        let read = varint::get(header)
            .and_then(|(kind, n)| varint::get(&header[n..]).map(|(length, m)| (kind, length, n + m)));
        let Some((kind, length, used)) = read else {
            self.begun = earlier + more;
            bytes.clear();
            return Ok(false);
        };
        bytes.advance(used - earlier);
        use kind::*;
        let collected = match kind {
            HEADERS | CANCEL_PUSH | SETTINGS | PUSH_PROMISE | GOAWAY | MAX_PUSH_ID => {
                if length > self.limit as u64 {
                    return Err(Http3Error::new(codes::H3_EXCESSIVE_LOAD, "a frame is too large"));
                }
                Some(Vec::new())
            }
            kind if is_of_http2(kind) => {
                return Err(Http3Error::new(codes::H3_FRAME_UNEXPECTED, "a frame of HTTP/2"));
            }
            _ => None,
        };
        self.payload = Some(Payload { kind, left: length, collected });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_header(kind, payload.len(), &mut out);
        out.extend_from_slice(payload);
        out
    }

    /// Frames, and whether the stream ends between two of them.
    type Read = (Vec<(u64, Vec<u8>)>, bool);

    /// Content is joined, because its pieces depend on how the bytes arrive.
    fn read(pieces: &[&[u8]]) -> Result<Read, Http3Error> {
        let (mut reader, mut all) = (FrameReader::new(100), Vec::<(u64, Vec<u8>)>::new());
        for piece in pieces {
            let mut bytes = Bytes::copy_from_slice(piece);
            while let Some(piece) = reader.next(&mut bytes)? {
                match (piece, all.last_mut()) {
                    (Piece::Content(more), Some((kind::DATA, content))) => content.extend_from_slice(&more),
                    (Piece::Content(content), _) => all.push((kind::DATA, content.to_vec())),
                    (Piece::Whole(kind, payload), _) => all.push((kind, payload.to_vec())),
                }
            }
            assert!(bytes.is_empty());
        }
        Ok((all, reader.is_between_frames()))
    }

    #[test]
    fn frames_are_read_and_unknown_ones_skipped() {
        let all = [
            frame(kind::HEADERS, b"fields"),
            frame(kind::DATA, b"content"),
            frame(0x21, b"grease"),
            frame(kind::DATA, b""),
            frame(kind::DATA, b" and more"),
            frame(kind::HEADERS, b""),
        ]
        .concat();
        let expected = vec![
            (kind::HEADERS, b"fields".to_vec()),
            (kind::DATA, b"content and more".to_vec()),
            (kind::HEADERS, Vec::new()),
        ];
        assert_eq!(read(&[&all]), Ok((expected, true)));
        assert_eq!(read(&[&all[..3]]), Ok((Vec::new(), false)));
    }

    #[test]
    fn large_frames_and_those_of_http2_are_refused() {
        let code = |bytes: &[u8]| read(&[bytes]).map_err(|error| error.code);
        assert_eq!(code(&frame(kind::HEADERS, &[0; 101])), Err(codes::H3_EXCESSIVE_LOAD));
        assert_eq!(code(&frame(0x6, b"")), Err(codes::H3_FRAME_UNEXPECTED));
        // Content and unknown frames need no memory.
        assert!(code(&frame(kind::DATA, &[0; 101])).is_ok());
        assert!(code(&frame(0x40, &[0; 101])).is_ok());
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_arrive(
            frames in prop::collection::vec((0u64..0x50, prop::collection::vec(any::<u8>(), 0..50)), 0..6),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let all: Vec<u8> = frames.iter().flat_map(|(kind, payload)| frame(*kind, payload)).collect();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
            ends.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for end in ends.into_iter().chain([all.len()]) {
                pieces.push(&all[from..end]);
                from = end;
            }
            prop_assert_eq!(read(&pieces), read(&[&all]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&bytes]);
        }
    }
}
