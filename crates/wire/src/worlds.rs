//! Marks that carry the state of the sender: worlds, intended aborts of bodies, phases of the peers.
//!
//! | field | value | meaning |
//! |---|---|---|
//! | `X-Loc-World`, `X-Rem-World` | id, `t` type, window `/` size, hot position | a world of the sender; a world that it knows |
//! | `X-Abort` | two numbers other than 0 | generator states from which the receiver computes an intended abort |
//! | `X-Phase-Sync-Pos` | a number | position of the slowest process known |
//! | `X-Phase-Sync-Wait` | 1 | in requests: the sender is at the end of a phase and waits for others |
//! | `X-Phase-Sync-Gone` | id | in replies: a group of processes that was silent for too long; the test ends |
//!
//! All numbers except ids are decimal (`docs/reference/models.md`, "Benchmark header fields").
//! `X-Phase-Sync-Wait` and `X-Phase-Sync-Gone` are additions of this program.

use std::num::NonZeroI64;

use polygraph_traffic::id::ID_TEXT_LEN;
use polygraph_traffic::{ContentKind, UniqId};

use crate::body::parse_decimal;
use crate::decimal;

/// Name of the field with a world of the sender.
pub const X_LOC_WORLD: &str = "X-Loc-World";
/// Name of the field with a world that the sender knows.
pub const X_REM_WORLD: &str = "X-Rem-World";
/// Name of the field with the coordinates of an abort.
pub const X_ABORT: &str = "X-Abort";
/// Name of the field with the position in the schedule of phases.
pub const X_PHASE_SYNC_POS: &str = "X-Phase-Sync-Pos";
/// Name of the field of senders that wait at the end of a phase.
pub const X_PHASE_SYNC_WAIT: &str = "X-Phase-Sync-Wait";
/// Name of the field with a group of processes that was given up.
pub const X_PHASE_SYNC_GONE: &str = "X-Phase-Sync-Gone";

/// The state of a world in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldMark {
    /// Id of the world.
    pub id: UniqId,
    /// Content type.
    pub kind: ContentKind,
    /// The number of names in the working set; `None` while it grows (`-1` on the wire).
    pub window: Option<u64>,
    /// The number of names so far.
    pub size: u64,
    /// Position of the hot set.
    pub hot: u64,
}

impl WorldMark {
    /// Appends the text form: `12345678.00abcdef:0000002a t3 -1/500 250`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.text());
        out.extend_from_slice(b" t");
        decimal::write(out, u64::from(self.kind.0));
        out.push(b' ');
        match self.window {
            Some(window) => decimal::write(out, window),
            None => out.extend_from_slice(b"-1"),
        }
        out.push(b'/');
        decimal::write(out, self.size);
        out.push(b' ');
        decimal::write(out, self.hot);
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<WorldMark> {
        let (id, rest) = value.trim_ascii().split_at_checked(ID_TEXT_LEN)?;
        let id = UniqId::parse(id)?;
        let mut words = rest.strip_prefix(b" ")?.split(|&b| b == b' ');
        let kind = u8::try_from(parse_decimal(words.next()?.strip_prefix(b"t")?)?).ok()?;
        let set = words.next()?;
        let slash = memchr::memchr(b'/', set)?;
        let window = match &set[..slash] {
            b"-1" => None,
            window => Some(parse_decimal(window)?),
        };
        let size = parse_decimal(&set[slash + 1..])?;
        let hot = parse_decimal(words.next()?)?;
        words.next().is_none().then_some(WorldMark { id, kind: ContentKind(kind), window, size, hot })
    }
}

/// The value of `X-Abort`: the receiver computes from it whether and where the sender means to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortMark {
    /// The state of the generator after the draw of the position, if the body is to end early.
    pub whether: NonZeroI64,
    /// The state of the generator that draws the position.
    pub place: NonZeroI64,
}

impl AbortMark {
    /// Appends the text form: two decimal numbers.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_signed(out, self.whether);
        out.push(b' ');
        write_signed(out, self.place);
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<AbortMark> {
        let value = value.trim_ascii();
        let blank = memchr::memchr(b' ', value)?;
        Some(AbortMark { whether: parse_signed(&value[..blank])?, place: parse_signed(&value[blank + 1..])? })
    }
}

fn write_signed(out: &mut Vec<u8>, value: NonZeroI64) {
    if value.is_negative() {
        out.push(b'-');
    }
    decimal::write(out, value.get().unsigned_abs());
}

fn parse_signed(text: &[u8]) -> Option<NonZeroI64> {
    let (digits, sign) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    if digits.is_empty() {
        return None;
    }
    // The number that is farthest from 0 is negative.
    let number = digits.iter().try_fold(0i64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(sign * digit)
    });
    NonZeroI64::new(number?)
}

/// Reads the value of `X-Phase-Sync-Pos`; [`decimal::write`] writes it. `None` if it is not a number of at most
/// 18 digits.
pub fn parse_sync_position(value: &[u8]) -> Option<u64> {
    parse_decimal(value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGEST: u64 = 999_999_999_999_999_999;

    #[test]
    fn worlds_by_example() {
        let id = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        let growing = WorldMark { id, kind: ContentKind(3), window: None, size: 500, hot: 250 };
        let mut text = Vec::new();
        growing.write(&mut text);
        assert_eq!(text, b"12345678.00abcdef:0000002a t3 -1/500 250");
        assert_eq!(WorldMark::parse(&text), Some(growing));
        assert_eq!(
            WorldMark::parse(b"12345678.00abcdef:0000002a t3 100/500 450"),
            Some(WorldMark { window: Some(100), hot: 450, ..growing })
        );
        for bad in [
            "",
            "12345678.00abcdef:0000002a",
            "12345678.00abcdef:0000002a t3 1/500",
            "12345678.00abcdef:0000002a t3 1/500 250 1",
            "12345678.00abcdef:0000002a  t3 1/500 250",
            "12345678.00abcdef:0000002a t256 1/500 250",
            "12345678.00abcdef:0000002a 3 1/500 250",
            "12345678.00abcdef:0000002a t3 -2/500 250",
            "12345678.00abcdef:0000002a t3 500 250",
            "12345678.00abcdef:0000002a t3 1/-500 250",
            "12345678.00abcdef-0000002a t3 1/500 250",
        ] {
            assert_eq!(WorldMark::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn numbers_by_example() {
        for bad in ["", "1", "1 0", "0 1", "1 2 3", "1  2", "+1 2", "1 x", "9223372036854775808 1", "- 1"] {
            assert_eq!(AbortMark::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_sync_position(b" 12 "), Some(12));
        assert_eq!(parse_sync_position(b"-1"), None);
    }

    proptest! {
        #[test]
        fn round_trips(
            ids: (u32, u32, u32), kind: u8, window in prop::option::of(0..=LARGEST), size in 0..=LARGEST,
            hot in 0..=LARGEST, whether: NonZeroI64, place: NonZeroI64,
        ) {
            let id = UniqId { time: ids.0, mix: ids.1, counter: ids.2 };
            let world = WorldMark { id, kind: ContentKind(kind), window, size, hot };
            let abort = AbortMark { whether, place };
            let mut text = Vec::new();
            world.write(&mut text);
            prop_assert_eq!(WorldMark::parse(&text), Some(world));
            text.clear();
            abort.write(&mut text);
            prop_assert_eq!(AbortMark::parse(&text), Some(abort));
        }

        #[test]
        fn random_text_never_panics(value in prop::collection::vec(any::<u8>(), 0..80), tail in "[ t0-9/-]{0,40}") {
            let _ = WorldMark::parse(&value);
            let _ = WorldMark::parse(&[b"12345678.00abcdef:0000002a t".as_slice(), tail.as_bytes()].concat());
            let _ = AbortMark::parse(tail.as_bytes());
        }
    }
}
