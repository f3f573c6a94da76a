//! The settings that the peer announces (RFC 9113, section 6.5.2).

use super::frames::{MAX_31, MAX_PAYLOAD};
use super::hpack::TABLE_SIZE;
use super::{Http2Error, codes};

/// The ids of settings.
pub mod id {
    #![allow(missing_docs, reason = "the names are those of the standard")]
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const ENABLE_PUSH: u16 = 0x2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
}

/// The most payload in a frame that is used, whatever the peer allows: others want to be sent, too.
const LARGEST_PAYLOAD: usize = 65_536;

/// The window of streams before the settings are known (RFC 9113, section 6.9.2).
pub const FIRST_WINDOW: u32 = 65_535;

/// What the peer has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// The most bytes of the dynamic table for what this side sends.
    pub table: usize,
    /// The most streams that this side may have open.
    pub streams: u32,
    /// The window of each new stream.
    pub window: u32,
    /// The most payload in a frame.
    pub payload: usize,
}

impl Default for PeerSettings {
    /// Before the settings are known. There is no limit of streams; 100 is what all peers should allow.
    fn default() -> PeerSettings {
        PeerSettings { table: TABLE_SIZE, streams: 100, window: FIRST_WINDOW, payload: MAX_PAYLOAD }
    }
}

impl PeerSettings {
    /// Takes the payload of the frame, whose length is a multiple of six. `is_first` tells whether there were none before. `of_server`
    /// tells whether this side is a client.
    ///
    /// # Errors
    /// If a value is not allowed.
    pub fn take(&mut self, payload: &[u8], is_first: bool, of_server: bool) -> Result<(), Http2Error> {
        if is_first {
            self.streams = u32::MAX;
        }
        for setting in payload.chunks_exact(6) {
            let (id, value) = setting.split_at(2);
            let id = id.iter().fold(0, |id, byte| id << 8 | u16::from(*byte));
            let value = value.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            match id {
                id::HEADER_TABLE_SIZE => self.table = value as usize,
                id::ENABLE_PUSH if value > u32::from(!of_server) => {
                    return Err(Http2Error::protocol("ENABLE_PUSH with a value that is not allowed"));
                }
                id::MAX_CONCURRENT_STREAMS => self.streams = value,
                id::INITIAL_WINDOW_SIZE if value > MAX_31 => {
                    return Err(Http2Error::new(
                        codes::FLOW_CONTROL_ERROR,
                        "INITIAL_WINDOW_SIZE is too large",
                    ));
                }
                id::INITIAL_WINDOW_SIZE => self.window = value,
                id::MAX_FRAME_SIZE if !(MAX_PAYLOAD as u32..1 << 24).contains(&value) => {
                    return Err(Http2Error::protocol("MAX_FRAME_SIZE with a value that is not allowed"));
                }
                id::MAX_FRAME_SIZE => self.payload = (value as usize).min(LARGEST_PAYLOAD),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::{HEADER, put_settings};
    use super::*;

    fn take(settings: &[(u16, u32)], of_server: bool) -> Result<PeerSettings, u32> {
        let (mut frame, mut peer) = (Vec::new(), PeerSettings::default());
        put_settings(settings, &mut frame);
        peer.take(&frame[HEADER..], true, of_server).map(|()| peer).map_err(|error| error.code)
    }

    #[test]
    fn settings_are_taken() {
        let none = PeerSettings { streams: u32::MAX, ..PeerSettings::default() };
        assert_eq!(take(&[], true), Ok(none));
        let all = [(1, 100), (2, 0), (3, 7), (4, MAX_31), (5, 1 << 20), (6, 9), (0x99, 1)];
        let expected = PeerSettings { table: 100, streams: 7, window: MAX_31, payload: LARGEST_PAYLOAD };
        assert_eq!(take(&all, true), Ok(expected));
        let mut later = expected;
        later.take(&[], false, true).unwrap();
        assert_eq!(later, expected, "settings stay until they are changed");
        assert_eq!(take(&[(3, 1), (3, 2)], true).map(|peer| peer.streams), Ok(2));
    }

    #[test]
    fn values_that_are_not_allowed_have_their_codes() {
        for (setting, of_server, code) in [
            ((2, 1), true, Err(codes::PROTOCOL_ERROR)),
            ((2, 1), false, Ok(())),
            ((2, 2), false, Err(codes::PROTOCOL_ERROR)),
            ((4, 1 << 31), false, Err(codes::FLOW_CONTROL_ERROR)),
            ((5, 16_383), false, Err(codes::PROTOCOL_ERROR)),
            ((5, 1 << 24), false, Err(codes::PROTOCOL_ERROR)),
            ((5, (1 << 24) - 1), false, Ok(())),
        ] {
            assert_eq!(take(&[setting], of_server).map(drop), code, "{setting:?}");
        }
    }
}
