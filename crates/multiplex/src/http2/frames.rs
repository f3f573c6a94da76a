//! Frames (RFC 9113, sections 4 and 6): their headers, and their payloads with the checks that need nothing but the frame.

use super::{Http2Error, codes};

/// Types of frames.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of the standard")]
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs, reason = "the names are those of the standard")]
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// The size of a frame's header.
pub const HEADER: usize = 9;

/// The largest payload with which connections start, which is the largest that this side takes (RFC 9113, section 4.2).
pub const MAX_PAYLOAD: usize = 16_384;

/// The largest id of a stream, and the largest increment of a window.
pub const MAX_31: u32 = (1 << 31) - 1;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The length of the payload.
    pub length: usize,
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// The header at the start of `bytes`, if it is complete.
    pub fn read(bytes: &[u8]) -> Option<FrameHeader> {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes.first_chunk::<HEADER>()?;
        Some(FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s, t, u, v]) & MAX_31,
        })
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The bytes of the header.
    pub fn bytes(&self) -> [u8; HEADER] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    /// Appends the header.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }
}

/// A frame other than DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Frame<'a> {
    /// The start of a field section.
    Headers {
        /// The part of the header block that is in this frame.
        block: &'a [u8],
        /// Whether it is the whole block.
        is_whole: bool,
        /// Whether the stream ends behind the field section.
        ends_stream: bool,
        /// Whether the stream depends on itself, which is an error of the stream.
        depends_on_itself: bool,
    },
    /// More of a field section.
    Continuation {
        /// The next part of the header block.
        block: &'a [u8],
        /// Whether it is the last part.
        is_last: bool,
    },
    /// The priority of a stream, which this side does not use.
    Priority {
        /// Whether the stream depends on itself, which is an error of the stream.
        depends_on_itself: bool,
    },
    /// The end of a stream.
    Reset {
        /// The error code.
        code: u32,
    },
    /// Settings: see [`super::settings`].
    Settings(&'a [u8]),
    /// The peer has seen the settings of this side.
    SettingsAck,
    /// A promise of a reply that was not asked for.
    PushPromise,
    /// A sign of life is wanted.
    Ping([u8; 8]),
    /// The sign of life.
    Pong([u8; 8]),
    /// The end of the connection.
    GoAway {
        /// The last stream that the peer processes.
        last: u32,
        /// The error code.
        code: u32,
    },
    /// More room in a window.
    WindowUpdate {
        /// In bytes; 0 is an error.
        increment: u32,
    },
    /// A frame of another type, which is ignored.
    Unknown,
}

impl<'a> Http2Frame<'a> {
    /// Reads the payload of a frame, which must not be DATA.
    ///
    /// # Errors
    /// If the frame is malformed, or if its type does not belong to such a stream.
    pub fn read(header: &FrameHeader, payload: &'a [u8]) -> Result<Http2Frame<'a>, Http2Error> {
        let size = |what| Http2Error::new(codes::FRAME_SIZE_ERROR, what);
        let of_stream = header.stream != 0;
        match header.kind {
            kind::HEADERS if of_stream => {
                let mut block = unpad(header, payload)?;
                let mut depends_on_itself = false;
                if header.has(flag::PRIORITY) {
                    let (priority, rest) =
                        block.split_first_chunk::<5>().ok_or(size("HEADERS without its priority"))?;
                    depends_on_itself = dependency(priority) == header.stream;
                    block = rest;
                }
                Ok(Http2Frame::Headers {
                    block,
                    is_whole: header.has(flag::END_HEADERS),
                    ends_stream: header.has(flag::END_STREAM),
                    depends_on_itself,
                })
            }
            kind::CONTINUATION if of_stream => {
                Ok(Http2Frame::Continuation { block: payload, is_last: header.has(flag::END_HEADERS) })
            }
            kind::PRIORITY if of_stream => {
                let priority = payload.try_into().map_err(|_| size("PRIORITY of a wrong size"))?;
                Ok(Http2Frame::Priority { depends_on_itself: dependency(priority) == header.stream })
            }
            kind::RST_STREAM if of_stream => {
                let code = payload.try_into().map_err(|_| size("RST_STREAM of a wrong size"))?;
                Ok(Http2Frame::Reset { code: u32::from_be_bytes(code) })
            }
            kind::PUSH_PROMISE if of_stream => Ok(Http2Frame::PushPromise),
            kind::SETTINGS if !of_stream => match (header.has(flag::ACK), payload.len()) {
                (true, 0) => Ok(Http2Frame::SettingsAck),
                (false, length) if length % 6 == 0 => Ok(Http2Frame::Settings(payload)),
                _ => Err(size("SETTINGS of a wrong size")),
            },
            kind::PING if !of_stream => {
                let data = payload.try_into().map_err(|_| size("PING of a wrong size"))?;
                Ok(if header.has(flag::ACK) { Http2Frame::Pong(data) } else { Http2Frame::Ping(data) })
            }
            kind::GOAWAY if !of_stream => {
                let (last, rest) = payload.split_first_chunk().ok_or(size("GOAWAY of a wrong size"))?;
                let (code, _) = rest.split_first_chunk().ok_or(size("GOAWAY of a wrong size"))?;
                Ok(Http2Frame::GoAway {
                    last: u32::from_be_bytes(*last) & MAX_31,
                    code: u32::from_be_bytes(*code),
                })
            }
            kind::WINDOW_UPDATE => {
                let increment = payload.try_into().map_err(|_| size("WINDOW_UPDATE of a wrong size"))?;
                Ok(Http2Frame::WindowUpdate { increment: u32::from_be_bytes(increment) & MAX_31 })
            }
            kind::DATA..=kind::CONTINUATION => {
                Err(Http2Error::protocol("a frame of the connection on a stream, or the reverse"))
            }
            _ => Ok(Http2Frame::Unknown),
        }
    }
}

fn dependency(priority: &[u8; 5]) -> u32 {
    let [a, b, c, d, _] = *priority;
    u32::from_be_bytes([a, b, c, d]) & MAX_31
}

/// A payload without its padding.
fn unpad<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<&'a [u8], Http2Error> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload
        .split_first()
        .ok_or(Http2Error::new(codes::FRAME_SIZE_ERROR, "a padded frame without its padding"))?;
    let length = rest.len().checked_sub(usize::from(*padding));
    Ok(&rest[..length.ok_or(Http2Error::protocol("more padding than the frame has"))?])
}

/// Appends a frame of a fixed layout.
fn put(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { length: payload.len(), kind, flags, stream }.put(out);
    out.extend_from_slice(payload);
}

/// Appends SETTINGS with these ids and values.
pub fn put_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    FrameHeader { length: 6 * settings.len(), kind: kind::SETTINGS, flags: 0, stream: 0 }.put(out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of SETTINGS.
pub fn put_settings_ack(out: &mut Vec<u8>) {
    put(kind::SETTINGS, flag::ACK, 0, &[], out);
}

/// Appends a PING, or the answer to one.
pub fn put_ping(data: [u8; 8], is_answer: bool, out: &mut Vec<u8>) {
    put(kind::PING, if is_answer { flag::ACK } else { 0 }, 0, &data, out);
}

/// Appends a GOAWAY.
pub fn put_goaway(last: u32, code: u32, out: &mut Vec<u8>) {
    FrameHeader { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.put(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
}

/// Appends a RST_STREAM.
pub fn put_reset(stream: u32, code: u32, out: &mut Vec<u8>) {
    put(kind::RST_STREAM, 0, stream, &code.to_be_bytes(), out);
}

/// Appends a WINDOW_UPDATE.
pub fn put_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    put(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes(), out);
}

/// Makes the bytes of `out` from `start`, which begin with room for a frame's header, a header block of this stream: HEADERS, with
/// CONTINUATION behind it if payloads of `largest` bytes are too small for it.
pub fn close_block(start: usize, stream: u32, ends_stream: bool, largest: usize, out: &mut Vec<u8>) {
    let block = out.len() - start - HEADER;
    let end_stream = if ends_stream { flag::END_STREAM } else { 0 };
    if block <= largest {
        let flags = flag::END_HEADERS | end_stream;
        let header = FrameHeader { length: block, kind: kind::HEADERS, flags, stream };
        out[start..start + HEADER].copy_from_slice(&header.bytes());
        return;
    }
    let block = out.split_off(start + HEADER);
    out.truncate(start);
    let mut parts = block.chunks(largest).peekable();
    let (mut kind, mut flags) = (kind::HEADERS, end_stream);
    while let Some(part) = parts.next() {
        put(kind, if parts.peek().is_none() { flags | flag::END_HEADERS } else { flags }, stream, part, out);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Http2Frame<'_>, u32> {
        let header = FrameHeader { length: payload.len(), kind, flags, stream };
        Http2Frame::read(&header, payload).map_err(|error| error.code)
    }

    #[test]
    fn frames_are_read() {
        let headers = |block, is_whole, ends_stream, depends_on_itself| {
            Ok(Http2Frame::Headers { block, is_whole, ends_stream, depends_on_itself })
        };
        for (kind, flags, stream, payload, expected) in [
            (kind::HEADERS, 0, 1, &b"block"[..], headers(&b"block"[..], false, false, false)),
            (kind::HEADERS, 5, 1, b"", headers(b"", true, true, false)),
            (kind::HEADERS, 0x2c, 3, b"\x02\x80\0\0\x03\x10block??", headers(b"block", true, false, true)),
            (kind::HEADERS, 0x20, 3, b"\0\0\0\x04\x10b", headers(b"b", false, false, false)),
            (kind::CONTINUATION, 4, 1, b"b", Ok(Http2Frame::Continuation { block: b"b", is_last: true })),
            (kind::PRIORITY, 0, 7, b"\0\0\0\x07\0", Ok(Http2Frame::Priority { depends_on_itself: true })),
            (kind::RST_STREAM, 0, 1, b"\0\0\0\x08", Ok(Http2Frame::Reset { code: 8 })),
            (kind::SETTINGS, 0, 0, b"\0\x04\0\0\0\x01", Ok(Http2Frame::Settings(b"\0\x04\0\0\0\x01"))),
            (kind::SETTINGS, 1, 0, b"", Ok(Http2Frame::SettingsAck)),
            (kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02", Ok(Http2Frame::PushPromise)),
            (kind::PING, 0, 0, b"12345678", Ok(Http2Frame::Ping(*b"12345678"))),
            (kind::PING, 1, 0, b"12345678", Ok(Http2Frame::Pong(*b"12345678"))),
            (kind::GOAWAY, 0, 0, b"\x80\0\0\x05\0\0\0\x01why", Ok(Http2Frame::GoAway { last: 5, code: 1 })),
            (kind::WINDOW_UPDATE, 0, 0, b"\x80\0\0\x09", Ok(Http2Frame::WindowUpdate { increment: 9 })),
            (kind::WINDOW_UPDATE, 0, 5, b"\0\0\0\0", Ok(Http2Frame::WindowUpdate { increment: 0 })),
            (0x10, 0xff, 5, b"anything", Ok(Http2Frame::Unknown)),
        ] {
            assert_eq!(read(kind, flags, stream, payload), expected, "{kind} {payload:?}");
        }
    }

    #[test]
    fn malformed_frames_have_their_codes() {
        use codes::{FRAME_SIZE_ERROR as SIZE, PROTOCOL_ERROR as PROTOCOL};
        for (kind, flags, stream, payload, code) in [
            (kind::HEADERS, 0, 0, &b""[..], PROTOCOL),
            (kind::HEADERS, 8, 1, b"", SIZE),
            (kind::HEADERS, 8, 1, b"\x04abc", PROTOCOL),
            (kind::HEADERS, 0x20, 1, b"\0\0\0\x01", SIZE),
            (kind::CONTINUATION, 0, 0, b"", PROTOCOL),
            (kind::PRIORITY, 0, 0, b"\0\0\0\x01\0", PROTOCOL),
            (kind::PRIORITY, 0, 1, b"\0\0\0\x01", SIZE),
            (kind::RST_STREAM, 0, 0, b"\0\0\0\x01", PROTOCOL),
            (kind::RST_STREAM, 0, 1, b"\0\0\0", SIZE),
            (kind::SETTINGS, 0, 1, b"", PROTOCOL),
            (kind::SETTINGS, 1, 0, b"\0\x04\0\0\0\x01", SIZE),
            (kind::SETTINGS, 0, 0, b"\0\x04\0\0\0", SIZE),
            (kind::PUSH_PROMISE, 0, 0, b"", PROTOCOL),
            (kind::PING, 0, 1, b"12345678", PROTOCOL),
            (kind::PING, 0, 0, b"1234567", SIZE),
            (kind::GOAWAY, 0, 1, b"\0\0\0\0\0\0\0\0", PROTOCOL),
            (kind::GOAWAY, 0, 0, b"\0\0\0\0\0\0\0", SIZE),
            (kind::WINDOW_UPDATE, 0, 0, b"\0\0\0", SIZE),
        ] {
            assert_eq!(read(kind, flags, stream, payload), Err(code), "{kind} {payload:?}");
        }
    }

    #[test]
    fn what_is_put_is_read() {
        type Put = fn(&mut Vec<u8>);
        let cases: [(Put, Http2Frame<'_>); 6] = [
            (|out| put_settings(&[(3, 9)], out), Http2Frame::Settings(b"\0\x03\0\0\0\x09")),
            (put_settings_ack, Http2Frame::SettingsAck),
            (|out| put_ping([7; 8], true, out), Http2Frame::Pong([7; 8])),
            (|out| put_goaway(MAX_31, 2, out), Http2Frame::GoAway { last: MAX_31, code: 2 }),
            (|out| put_reset(9, 3, out), Http2Frame::Reset { code: 3 }),
            (|out| put_window_update(0, 5, out), Http2Frame::WindowUpdate { increment: 5 }),
        ];
        for (put, expected) in cases {
            let mut out = Vec::new();
            put(&mut out);
            let header = FrameHeader::read(&out).unwrap();
            assert_eq!(header.length, out.len() - HEADER);
            assert_eq!(Http2Frame::read(&header, &out[HEADER..]), Ok(expected));
        }
    }

    #[test]
    fn large_blocks_are_continued() {
        for (block, expected) in [
            (&b""[..], &b"\0\0\0\x01\x05\0\0\0\x03"[..]),
            (b"abcd", b"\0\0\x04\x01\x05\0\0\0\x03abcd"),
            (b"abcde", b"\0\0\x04\x01\x01\0\0\0\x03abcd\0\0\x01\x09\x04\0\0\0\x03e"),
            (
                b"abcdefghi",
                b"\0\0\x04\x01\x01\0\0\0\x03abcd\0\0\x04\x09\0\0\0\0\x03efgh\0\0\x01\x09\x04\0\0\0\x03i",
            ),
        ] {
            let mut out = [b"before".as_slice(), &[0; HEADER], block].concat();
            close_block(6, 3, true, 4, &mut out);
            assert_eq!(&out[6..], expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(kind in 1u8..12, flags: u8, stream in 0u32..3, payload in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(Http2Frame::Headers { block, .. } | Http2Frame::Continuation { block, .. }) = read(kind, flags, stream, &payload) {
                prop_assert!(block.len() <= payload.len());
            }
        }

        #[test]
        fn headers_are_read_as_they_are_put(length in 0usize..1 << 24, kind: u8, flags: u8, stream in 0u32..1 << 31) {
            let header = FrameHeader { length, kind, flags, stream };
            prop_assert_eq!(FrameHeader::read(&header.bytes()), Some(header));
        }
    }
}
