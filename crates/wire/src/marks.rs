//! The benchmark's own headers, by which both sides know from first hand what happened.
//!
//! | field | in a request | in a reply |
//! |---|---|---|
//! | `X-Xact` | sender's group id, this transaction's id, hex flags | server's group id, the *mutant* of the request's transaction id, flags |
//! | `X-Target` | the server the client believes it talks to | the actual address of the server that replied |
//! | `X-Contents` | | [`Fingerprint`] of the server's contents, and the size of the object without any coding |
//!
//! [`upload`](crate::upload) and [`worlds`](crate::worlds) have the others.

use polygraph_traffic::id::ID_TEXT_LEN;
use polygraph_traffic::{Fingerprint, UniqId};

use crate::body::parse_decimal;
use crate::decimal;
use crate::head::{Header, is_named};
use crate::target::TargetMark;
use crate::upload::{UploadMark, X_UPLOAD};
use crate::worlds::{
    AbortMark, WorldMark, X_ABORT, X_LOC_WORLD, X_PHASE_SYNC_GONE, X_PHASE_SYNC_POS, X_PHASE_SYNC_WAIT,
    X_REM_WORLD, parse_sync_position,
};

/// Name of the transaction mark.
pub const X_XACT: &str = "X-Xact";
/// Name of the server mark.
pub const X_TARGET: &str = "X-Target";
/// Name of the mark of contents.
pub const X_CONTENTS: &str = "X-Contents";

/// Bytes of an `X-Xact` value written by [`XactMark::write`].
pub const XACT_LEN: usize = ID_TEXT_LEN + 1 + ID_TEXT_LEN + 2;

/// The value of `X-Xact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XactMark {
    /// Process group of the sender.
    pub group: UniqId,
    /// Transaction id in a request, its mutant in a reply.
    pub id: UniqId,
    /// Bit 0: the request is a validation made by the client itself.
    pub flags: u32,
}

impl XactMark {
    /// Appends the text form: two ids and the flags in hex.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut text = [b' '; XACT_LEN];
        text[..ID_TEXT_LEN].copy_from_slice(&self.group.text());
        text[ID_TEXT_LEN + 1..XACT_LEN - 2].copy_from_slice(&self.id.text());
        text[XACT_LEN - 1] = b"0123456789abcdef"[(self.flags & 15) as usize];
        out.extend_from_slice(&text);
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<XactMark> {
        let (group, rest) = value.trim_ascii().split_first_chunk()?;
        let (id, rest) = rest.strip_prefix(b" ")?.split_first_chunk()?;
        let flags = polygraph_traffic::hex::parse_hex(rest.strip_prefix(b" ")?)? as u32;
        let [group, id] = UniqId::parse_two(group, id)?;
        Some(XactMark { group, id, flags })
    }
}

/// The value of `X-Contents`. Stored replies keep it, so hits carry the same value as the server's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentsMark {
    /// Fingerprint of the server's contents.
    pub fingerprint: Fingerprint,
    /// Size of the object in bytes; `None` if the reply is not about an object.
    pub size: Option<u64>,
}

impl ContentsMark {
    /// Appends the text form: `1a2b3c4d5e6f 13312`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.fingerprint.write(out);
        if let Some(size) = self.size {
            out.push(b' ');
            decimal::write(out, size);
        }
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<ContentsMark> {
        let (fingerprint, rest) = value.trim_ascii().split_at_checked(Fingerprint::LEN)?;
        let size = match rest {
            [] => None,
            rest => Some(parse_decimal(rest.strip_prefix(b" ")?)?),
        };
        Some(ContentsMark { fingerprint: Fingerprint::parse(fingerprint)?, size })
    }
}

/// The marks found among header fields; a malformed mark counts as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// The transaction mark.
    pub xact: Option<XactMark>,
    /// Whether there is a server mark.
    has_target: bool,
    /// The server mark that was read last: that of the next message is often the same.
    last_target: Option<TargetMark>,
    /// The mark of contents.
    pub contents: Option<ContentsMark>,
    /// A world of the sender.
    pub local_world: Option<WorldMark>,
    /// A world that the sender knows.
    pub remote_world: Option<WorldMark>,
    /// The mark of a request body.
    pub upload: Option<UploadMark>,
    /// The coordinates of an abort.
    pub abort: Option<AbortMark>,
    /// The position of the slowest process in the schedule of phases.
    pub sync_position: Option<u64>,
    /// The sender waits at the end of a phase.
    pub sync_waits: bool,
    /// A group of processes that the sender has given up.
    pub gone: Option<UniqId>,
}

impl Marks {
    /// The server mark.
    #[inline]
    pub fn target(&self) -> Option<&TargetMark> {
        self.last_target.as_ref().filter(|_| self.has_target)
    }

    /// Forgets all marks, for those of the next message in the same memory.
    #[inline]
    pub fn clear(&mut self) {
        let Marks {
            xact,
            has_target,
            last_target: _,
            contents,
            local_world,
            remote_world,
            upload,
            abort,
            sync_position,
            sync_waits,
            gone,
        } = self;
        (*xact, *has_target, *contents) = (None, false, None);
        (*local_world, *remote_world, *upload, *abort) = (None, None, None, None);
        (*sync_position, *sync_waits, *gone) = (None, false, None);
    }

    fn see_target(&mut self, value: &[u8]) {
        if self.last_target.as_ref().is_none_or(|last| !last.is(value)) {
            self.last_target = TargetMark::parse(value);
        }
        self.has_target = self.last_target.is_some();
    }

    /// Looks at one header field; true if it was a mark.
    #[inline]
    pub fn see(&mut self, header: &Header<'_>) -> bool {
        // The first two bytes rule out most fields.
        matches!(header.name.as_bytes(), [b'X' | b'x', b'-', ..]) && self.keep(header)
    }

    fn keep(&mut self, header: &Header<'_>) -> bool {
        let (name, value) = (header.name, header.value);
        // The length distinguishes most names.
        match name.len() {
            6 if is_named(name, X_XACT) => self.xact = XactMark::parse(value),
            7 if is_named(name, X_ABORT) => self.abort = AbortMark::parse(value),
            8 if is_named(name, X_UPLOAD) => self.upload = UploadMark::parse(value),
            8 if is_named(name, X_TARGET) => self.see_target(value),
            10 if is_named(name, X_CONTENTS) => self.contents = ContentsMark::parse(value),
            11 if is_named(name, X_LOC_WORLD) => self.local_world = WorldMark::parse(value),
            11 if is_named(name, X_REM_WORLD) => self.remote_world = WorldMark::parse(value),
            16 if is_named(name, X_PHASE_SYNC_POS) => self.sync_position = parse_sync_position(value),
            17 if is_named(name, X_PHASE_SYNC_WAIT) => self.sync_waits = value.trim_ascii() == b"1",
            17 if is_named(name, X_PHASE_SYNC_GONE) => self.gone = UniqId::parse(value.trim_ascii()),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_trips() {
        let id = |counter| UniqId { time: 1, mix: 0xabc, counter };
        let xact = XactMark { group: id(2), id: id(4), flags: 1 };
        let mut text = Vec::new();
        xact.write(&mut text);
        assert_eq!(text, b"00000001.00000abc:00000002 00000001.00000abc:00000004 1");
        assert_eq!(text.len(), XACT_LEN);
        assert_eq!(XactMark::parse(&text), Some(xact));
        assert_eq!(XactMark::parse(b"00000001.00000abc:00000002 00000001.00000abc:00000004"), None);
        assert_eq!(XactMark::parse(b"00000001.00000abc:00000002 00000001.00000abc:00000004 1 2"), None);
    }

    #[test]
    fn contents_are_told_with_and_without_a_size() {
        let fingerprint = Fingerprint { contents: 0x1a_2b3c, sizes: 0x4d_5e6f };
        for (size, expected) in [(Some(13_312), "1a2b3c4d5e6f 13312"), (None, "1a2b3c4d5e6f")] {
            let (mark, mut text) = (ContentsMark { fingerprint, size }, Vec::new());
            mark.write(&mut text);
            assert_eq!(String::from_utf8_lossy(&text), expected);
            assert_eq!(ContentsMark::parse(&text), Some(mark));
        }
        for text in ["", "1a2b3c4d5e6", "1a2b3c4d5e6f -1", "1a2b3c4d5e6f13312", "1a2b3c4d5e6g 1"] {
            assert_eq!(ContentsMark::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn marks_are_found_among_fields() {
        let mut marks = Marks::default();
        let mut see = |name, value: &str| marks.see(&Header { name, value: value.as_bytes() });
        for (name, value) in [
            ("x-xact", "00000001.00000abc:00000002 00000001.00000abc:00000004 1"),
            ("X-TARGET", "10.0.0.1:80"),
            ("x-contents", "1a2b3c4d5e6f 13312"),
            ("X-Loc-World", "12345678.00abcdef:0000002a t3 -1/500 250"),
            ("X-Rem-World", "12345678.00abcdef:0000002c t3 7/500 250"),
            ("X-Abort", "-5 7"),
            ("X-Phase-Sync-Pos", "3"),
            ("X-Phase-Sync-Wait", "1"),
            ("X-Phase-Sync-Gone", "00000001.00000abc:00000002"),
        ] {
            assert!(see(name, value), "{name}");
        }
        for name in ["X", "X-", "X-Cache", "Host", "x-forwarded-for", ""] {
            assert!(!see(name, "1"), "{name}");
        }
        assert_eq!(marks.xact.map(|xact| xact.flags), Some(1));
        assert_eq!(marks.target().and_then(|target| target.addr()), "10.0.0.1:80".parse().ok());
        assert_eq!(marks.contents.and_then(|contents| contents.size), Some(13312));
        assert_eq!(marks.local_world.map(|world| world.window), Some(None));
        assert_eq!(marks.remote_world.map(|world| world.window), Some(Some(7)));
        assert_eq!(marks.abort.map(|abort| abort.place.get()), Some(7));
        assert_eq!(marks.sync_position, Some(3));
        assert!(marks.sync_waits);
        assert_eq!(marks.gone.map(|group| group.counter), Some(2));
        assert!(marks.see(&Header { name: "X-Abort", value: b"0 0" }) && marks.abort.is_none());
    }

    #[test]
    fn nothing_is_left_of_earlier_messages() {
        let mut marks = Marks::default();
        let mut read = |targets: &[&str]| {
            marks.clear();
            targets.iter().for_each(|value| {
                marks.see(&Header { name: "X-Target", value: value.as_bytes() });
            });
            marks.target().map(|target| target.as_str().to_owned())
        };
        let long = format!("{}:80", "x".repeat(70));
        assert_eq!(read(&[]), None);
        for value in ["10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:8", "10.0.0.2:80", &long, &long[..61], &long] {
            let expected = TargetMark::parse(value.as_bytes()).map(|target| target.as_str().to_owned());
            assert_eq!(read(&[value]), expected, "{value}");
            assert_eq!(read(&[]), None, "after {value}");
            assert_eq!(read(&[value]), expected, "{value} again");
        }
        assert_eq!(read(&["10.0.0.1:80", "", "no port"]), None);
        assert_eq!(read(&["no port", "10.0.0.1:80"]).as_deref(), Some("10.0.0.1:80"));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (XactMark::parse(&value), ContentsMark::parse(&value));
        }
    }
}
