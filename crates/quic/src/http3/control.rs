//! The unidirectional streams of a connection (RFC 9114, section 6.2): the control stream, and those of QPACK.

use bytes::{Buf, Bytes};

use super::frames::{FrameReader, Piece, kind, put_header};
use super::{Http3Error, codes, varint};

/// The types of streams.
mod stream {
    pub const CONTROL: u64 = 0x0;
    pub const PUSH: u64 = 0x1;
    pub const ENCODER: u64 = 0x2;
    pub const DECODER: u64 = 0x3;
}

/// The setting for the largest field section, as RFC 9114, section 4.2.2, counts it.
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// The most bytes of a frame on the control stream.
const MAX_CONTROL_FRAME: usize = 4096;
/// The most frames on the control stream, apart from settings: a GOAWAY now and then.
const MAX_CONTROL_FRAMES: u32 = 100;
/// The most bytes on a stream of QPACK, on which nothing of use can come without a dynamic table.
const MAX_QPACK_BYTES: u64 = 64 * 1024;

/// The first bytes of the control stream of this side: its type and the settings. There is no dynamic table.
pub fn start(max_field_section: u64) -> Vec<u8> {
    let (mut out, mut settings) = (Vec::new(), Vec::new());
    varint::put(MAX_FIELD_SECTION_SIZE, &mut settings);
    varint::put(max_field_section, &mut settings);
    varint::put(stream::CONTROL, &mut out);
    put_header(kind::SETTINGS, settings.len(), &mut out);
    out.extend_from_slice(&settings);
    out
}

/// A GOAWAY frame: the first stream that is not processed, or for a client the first push.
pub fn goaway(id: u64) -> Vec<u8> {
    let (mut out, mut payload) = (Vec::new(), Vec::new());
    varint::put(id, &mut payload);
    put_header(kind::GOAWAY, payload.len(), &mut out);
    out.extend_from_slice(&payload);
    out
}

/// What the peer has said on its unidirectional streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerControl {
    /// The types of its streams so far, as bits.
    opened: u8,
    /// The largest field section that it accepts.
    pub max_field_section: Option<u64>,
    /// The first stream that it does not process, if it has announced the end of the connection.
    pub goaway: Option<u64>,
}

/// A unidirectional stream of the peer.
#[derive(Debug)]
pub struct ControlStream {
    state: State,
}

#[derive(Debug)]
enum State {
    /// The bytes of its type so far.
    Type(Vec<u8>),
    Control {
        frames: FrameReader,
        has_settings: bool,
        count: u32,
    },
    /// A stream of QPACK.
    Qpack {
        kind: u64,
        count: u64,
        in_integer: bool,
    },
    /// A stream of an unknown type.
    Unknown,
}

/// What becomes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is read on.
    Goes,
    /// Its type is unknown, so it is of no interest.
    Stops,
}

impl Default for ControlStream {
    fn default() -> ControlStream {
        ControlStream { state: State::Type(Vec::new()) }
    }
}

impl ControlStream {
    /// Takes bytes of the stream. `of_server` tells whether this side is a client.
    ///
    /// # Errors
    /// If they break the protocol; the connection must then end.
    pub fn take(
        &mut self,
        mut bytes: Bytes,
        of_server: bool,
        peer: &mut PeerControl,
    ) -> Result<Fate, Http3Error> {
        if let State::Type(start) = &mut self.state {
            let earlier = start.len();
            start.extend_from_slice(&bytes[..bytes.len().min(8 - earlier)]);
            let Some((kind, used)) = varint::get(start) else { return Ok(Fate::Goes) };
            bytes.advance(used - earlier);
            self.state = State::of(kind, of_server, peer)?;
        }
        match &mut self.state {
            State::Type(_) => Ok(Fate::Goes),
            State::Unknown => Ok(Fate::Stops),
            State::Qpack { kind, count, in_integer } => {
                check_qpack(*kind, &bytes, in_integer)?;
                *count += bytes.len() as u64;
                match *count > MAX_QPACK_BYTES {
                    true => Err(Http3Error::new(codes::H3_EXCESSIVE_LOAD, "too much on a stream of QPACK")),
                    false => Ok(Fate::Goes),
                }
            }
            State::Control { frames, has_settings, count } => {
                while let Some(piece) = frames.next(&mut bytes)? {
                    *count += 1;
                    if *count > MAX_CONTROL_FRAMES {
                        return Err(Http3Error::new(codes::H3_EXCESSIVE_LOAD, "too many control frames"));
                    }
                    take_frame(piece, has_settings, of_server, peer)?;
                }
                Ok(Fate::Goes)
            }
        }
    }

    /// The peer has ended the stream.
    ///
    /// # Errors
    /// If the connection needs the stream.
    pub fn end(&self) -> Result<(), Http3Error> {
        match self.state {
            State::Control { .. } | State::Qpack { .. } => Err(Http3Error::new(
                codes::H3_CLOSED_CRITICAL_STREAM,
                "the control stream or one of QPACK ended",
            )),
            State::Type(_) | State::Unknown => Ok(()),
        }
    }
}

impl State {
    fn of(kind: u64, of_server: bool, peer: &mut PeerControl) -> Result<State, Http3Error> {
        match kind {
            stream::CONTROL | stream::ENCODER | stream::DECODER => {
                let bit = 1 << kind;
                if peer.opened & bit != 0 {
                    return Err(Http3Error::new(codes::H3_STREAM_CREATION_ERROR, "a second control stream"));
                }
                peer.opened |= bit;
            }
            stream::PUSH if of_server => {
                return Err(Http3Error::new(codes::H3_ID_ERROR, "a pushed reply, which was not allowed"));
            }
            stream::PUSH => {
                return Err(Http3Error::new(codes::H3_STREAM_CREATION_ERROR, "a client pushes"));
            }
            _ => {}
        }
        Ok(match kind {
            stream::CONTROL => {
                State::Control { frames: FrameReader::new(MAX_CONTROL_FRAME), has_settings: false, count: 0 }
            }
            stream::ENCODER | stream::DECODER => State::Qpack { kind, count: 0, in_integer: false },
            _ => State::Unknown,
        })
    }
}

/// Without a dynamic table, an encoder can only say that the table has no room, and a decoder only that it gave up a stream (RFC
/// 9204, section 4). `in_integer` tells whether the bytes begin within the number of a stream.
fn check_qpack(kind: u64, bytes: &[u8], in_integer: &mut bool) -> Result<(), Http3Error> {
    if kind == stream::ENCODER {
        return match bytes.iter().all(|byte| *byte == 0x20) {
            true => Ok(()),
            false => Err(Http3Error::new(
                codes::QPACK_ENCODER_STREAM_ERROR,
                "an instruction for the dynamic table, which was not allowed",
            )),
        };
    }
    for byte in bytes {
        *in_integer = match (*in_integer, *byte) {
            (true, byte) => byte & 0x80 != 0,
            (false, 0x40..0x80) => byte & 0x3f == 0x3f,
            (false, _) => {
                let text = "an acknowledgement of what was not sent";
                return Err(Http3Error::new(codes::QPACK_DECODER_STREAM_ERROR, text));
            }
        };
    }
    Ok(())
}

fn take_frame(
    piece: Piece,
    has_settings: &mut bool,
    of_server: bool,
    peer: &mut PeerControl,
) -> Result<(), Http3Error> {
    let unexpected =
        || Http3Error::new(codes::H3_FRAME_UNEXPECTED, "a frame that the control stream cannot have");
    let Piece::Whole(kind, payload) = piece else { return Err(unexpected()) };
    if !*has_settings {
        if kind != kind::SETTINGS {
            return Err(Http3Error::new(
                codes::H3_MISSING_SETTINGS,
                "the control stream begins without settings",
            ));
        }
        *has_settings = true;
        return take_settings(&payload, peer);
    }
    let only = |payload: &[u8]| match varint::get(payload) {
        Some((id, used)) if used == payload.len() => Ok(id),
        _ => Err(Http3Error::new(codes::H3_FRAME_ERROR, "a control frame with a bad payload")),
    };
    match kind {
        kind::GOAWAY => {
            let id = only(&payload)?;
            if of_server && id % 4 != 0 || peer.goaway.is_some_and(|earlier| id > earlier) {
                return Err(Http3Error::new(codes::H3_ID_ERROR, "GOAWAY with a bad id"));
            }
            peer.goaway = Some(id);
            Ok(())
        }
        kind::MAX_PUSH_ID if !of_server => only(&payload).map(|_| ()),
        // There is no push that could be given up.
        kind::CANCEL_PUSH => only(&payload)
            .and_then(|_| Err(Http3Error::new(codes::H3_ID_ERROR, "gives up a push that there is not"))),
        _ => Err(unexpected()),
    }
}

fn take_settings(mut payload: &[u8], peer: &mut PeerControl) -> Result<(), Http3Error> {
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let setting = varint::get(payload)
            .and_then(|(id, n)| varint::get(&payload[n..]).map(|(value, m)| (id, value, n + m)));
        let (id, value, used) =
            setting.ok_or(Http3Error::new(codes::H3_FRAME_ERROR, "settings that end early"))?;
        payload = &payload[used..];
        // RFC 9114, section 7.2.4: none twice, and none of HTTP/2.
        if seen.contains(&id) || matches!(id, 0x2..=0x5) {
            return Err(Http3Error::new(codes::H3_SETTINGS_ERROR, "a setting twice, or one of HTTP/2"));
        }
        seen.push(id);
        if id == MAX_FIELD_SECTION_SIZE {
            peer.max_field_section = Some(value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(bytes: &[u8], of_server: bool) -> Result<PeerControl, u64> {
        let (mut stream, mut peer) = (ControlStream::default(), PeerControl::default());
        let fate = stream.take(Bytes::copy_from_slice(bytes), of_server, &mut peer);
        fate.map(|_| peer).map_err(|error| error.code)
    }

    #[test]
    fn what_this_side_sends_is_understood() {
        let mut bytes = start(70_000);
        let peer = take(&bytes, true).unwrap();
        assert_eq!((peer.max_field_section, peer.goaway), (Some(70_000), None));
        bytes.extend(goaway(400));
        bytes.extend(goaway(8));
        assert_eq!(take(&bytes, true).unwrap().goaway, Some(8));
        bytes.extend(goaway(12));
        assert_eq!(take(&bytes, true), Err(codes::H3_ID_ERROR), "GOAWAY must not take back");
    }

    #[test]
    fn mistakes_have_their_codes() {
        for (bytes, of_server, code) in [
            (&b"\x00\x07\x01\x00"[..], true, codes::H3_MISSING_SETTINGS),
            (b"\x00\x04\x00\x04\x00", true, codes::H3_FRAME_UNEXPECTED),
            (b"\x00\x04\x00\x01\x00", true, codes::H3_FRAME_UNEXPECTED),
            (b"\x00\x04\x00\x00\x01x", true, codes::H3_FRAME_UNEXPECTED),
            (b"\x00\x04\x02\x02\x00", true, codes::H3_SETTINGS_ERROR),
            (b"\x00\x04\x04\x06\x09\x06\x09", true, codes::H3_SETTINGS_ERROR),
            (b"\x00\x04\x01\x06", true, codes::H3_FRAME_ERROR),
            (b"\x00\x04\x00\x07\x02\x00\x00", true, codes::H3_FRAME_ERROR),
            (b"\x00\x04\x00\x07\x01\x03", true, codes::H3_ID_ERROR),
            (b"\x00\x04\x00\x03\x01\x00", true, codes::H3_ID_ERROR),
            (b"\x00\x04\x00\x0d\x01\x00", true, codes::H3_FRAME_UNEXPECTED),
            (b"\x00\x04\x50\x01", true, codes::H3_EXCESSIVE_LOAD),
            (b"\x01", true, codes::H3_ID_ERROR),
            (b"\x01", false, codes::H3_STREAM_CREATION_ERROR),
            (b"\x02\x80\x00", true, codes::QPACK_ENCODER_STREAM_ERROR),
            (b"\x03\x01", true, codes::QPACK_DECODER_STREAM_ERROR),
            (b"\x03\x44\x84", true, codes::QPACK_DECODER_STREAM_ERROR),
        ] {
            assert_eq!(take(bytes, of_server), Err(code), "{bytes:?}");
        }
        for (bytes, of_server) in [
            (&b"\x00\x04\x00\x0d\x01\x00"[..], false),
            (b"\x00\x04\x00\x21\x03abc", true),
            (b"\x00\x04\x06\x01\x00\x07\x00\x21\x09", true),
            (b"\x02\x20", true),
            (b"\x03\x44\x7f\x81\x01\x48", true),
            (b"\x21whatever", true),
            (b"\x40", true),
        ] {
            assert!(take(bytes, of_server).is_ok(), "{bytes:?}");
        }
    }

    #[test]
    fn floods_end_the_connection() {
        let mut bytes = start(1);
        (0..MAX_CONTROL_FRAMES).for_each(|_| bytes.extend(goaway(8)));
        assert_eq!(take(&bytes, true), Err(codes::H3_EXCESSIVE_LOAD));
    }

    #[test]
    fn critical_streams_must_not_end_and_must_not_come_twice() {
        let mut peer = PeerControl::default();
        let mut first = ControlStream::default();
        assert_eq!(first.end(), Ok(()));
        first.take(Bytes::from_static(b"\x00"), true, &mut peer).unwrap();
        assert_eq!(first.end().unwrap_err().code, codes::H3_CLOSED_CRITICAL_STREAM);
        let second = ControlStream::default().take(Bytes::from_static(b"\x00"), true, &mut peer);
        assert_eq!(second.unwrap_err().code, codes::H3_STREAM_CREATION_ERROR);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>(), of_server: bool,
        ) {
            let (mut stream, mut peer) = (ControlStream::default(), PeerControl::default());
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            if stream.take(Bytes::copy_from_slice(first), of_server, &mut peer).is_ok() {
                let _ = stream.take(Bytes::copy_from_slice(second), of_server, &mut peer);
            }
            let _ = stream.end();
        }
    }
}
