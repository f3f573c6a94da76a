//! Unique ids of worlds and transactions, and the *mutant* that proves that a reply is not a stored one.

use std::fmt;

use crate::rng::mix;

/// A unique id: three numbers of 31 or 32 bits, written as `01234567.89abcdef:00000002`.
///
/// Ids come from an [`IdSource`] with an even counter. The [mutant](UniqId::mutant) of an id has an odd one, so
/// ids and mutants never collide.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
pub struct UniqId {
    /// Seconds since the id epoch in unique mode, the seed in reproducible mode.
    pub time: u32,
    /// Distinguishes processes that start in the same second.
    pub mix: u32,
    /// Even for ids, odd for mutants.
    pub counter: u32,
}

/// Length of the text form in bytes.
pub const ID_TEXT_LEN: usize = 26;

impl UniqId {
    /// The id that a server puts into its reply to prove that it answered *this* request.
    ///
    /// A cache that serves a stored reply necessarily returns the mutant of an older id. The transform is its
    /// own inverse.
    #[must_use]
    pub fn mutant(self) -> UniqId {
        UniqId { counter: !self.counter & 0x7fff_ffff, ..self }
    }

    /// True if both ids come from one source or its [`branch`](IdSource::branch), as those of one loop do.
    pub fn shares_source(self, other: UniqId) -> bool {
        self.time == other.time && matches!(self.mix ^ other.mix, 0 | BRANCH)
    }

    /// The number that represents the id in seeded draws.
    ///
    /// Only the counter contributes. Time and mix make ids differ from run to run, so that no cache knows the
    /// objects of an earlier run; sizes and cachability must not differ, or no run could be repeated.
    pub fn hash(self) -> u64 {
        mix(u64::from(self.counter))
    }

    /// The text form as bytes, without allocation.
    pub fn text(self) -> [u8; ID_TEXT_LEN] {
        let mut out = *b"00000000.00000000:00000000";
        out[0..8].copy_from_slice(&hex(self.time));
        out[9..17].copy_from_slice(&hex(self.mix));
        out[18..26].copy_from_slice(&hex(self.counter));
        out
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(text: &[u8]) -> Option<UniqId> {
        let text: &[u8; ID_TEXT_LEN] = text.try_into().ok()?;
        if text[8] != b'.' || text[17] != b':' {
            return None;
        }
        let number = |at: usize| parse_eight(text[at..at + 8].try_into().ok()?);
        Some(UniqId { time: number(0)?, mix: number(9)?, counter: number(18)? })
    }
}

impl fmt::Display for UniqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.{:08x}:{:08x}", self.time, self.mix, self.counter)
    }
}

/// The digits of `value` as lower-case hex, all of them at once: every transaction writes about ten numbers.
fn hex(value: u32) -> [u8; 8] {
    // One digit per byte, the highest first in memory.
    let mut digits = u64::from(value);
    digits = (digits << 16 | digits) & 0x0000_ffff_0000_ffff;
    digits = (digits << 8 | digits) & 0x00ff_00ff_00ff_00ff;
    digits = (digits << 4 | digits) & LOW_HALVES;
    text_of(digits).to_be_bytes()
}

const LOW_HALVES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight digits as text: the lower-case hex digit for each byte, 0 to 15.
fn text_of(digits: u64) -> u64 {
    let letters = (digits + 6 * ONES) >> 4 & ONES;
    digits + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'9' - 1)
}

/// Reads eight hex digits, either case, all of them at once; `None` for anything else.
#[inline]
fn parse_eight(text: &[u8; 8]) -> Option<u32> {
    let text = u64::from_be_bytes(*text);
    // Letters have a bit that digits lack, and count from 1.
    let letters = text >> 6 & ONES;
    let digits = (text & LOW_HALVES) + 9 * letters;
    // Bytes that are not digits were read as digits with another spelling, or as too large values.
    let lower_case = text | letters << 5;
    if (text_of(digits) ^ lower_case) | (digits & !LOW_HALVES) != 0 {
        return None;
    }
    let pairs = (digits | digits >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) as u32)
}

/// Writes `value` as lower-case hex, zero padded to the whole of `out`.
pub fn write_hex(out: &mut [u8], mut value: u64) {
    for byte in out.iter_mut().rev() {
        *byte = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

/// Reads up to 16 hex digits, either case; `None` for anything else.
#[inline]
pub fn parse_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    let (first, eights) = text.as_rchunks();
    // All bytes are read before any is checked, to avoid branches.
    let (value, seen) = first.iter().fold((0u64, 0u8), |(value, seen), &byte| {
        let digit = DIGIT[usize::from(byte)];
        (value << 4 | u64::from(digit & 15), seen | digit)
    });
    let value = (seen < 16).then_some(value)?;
    eights.iter().try_fold(value, |value, eight| Some(value << 32 | u64::from(parse_eight(eight)?)))
}

/// The value of a byte as a hex digit; 255 if it is not one.
const DIGIT: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        digits[digit as usize] = value as u8;
        digits[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    digits
};

/// The bits that separate the ids of a branch: no loop or process number reaches them.
const BRANCH: u32 = 0x6000_0000;

/// Hands out fresh ids with even counters.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct IdSource {
    next: UniqId,
}

impl IdSource {
    /// A source whose ids differ from those of any other run. `seconds` and `micros` are the time of day;
    /// `discriminator` (process and loop number) separates sources that start in the same microsecond. Counting
    /// starts at `first`, which follows from the seed, so that whatever depends on an id repeats with the seed.
    pub fn unique(seconds: u64, micros: u32, discriminator: u32, first: u64) -> IdSource {
        let time = (seconds.wrapping_sub(912_345_678) & 0x7fff_ffff) as u32;
        let mix = ((micros << 16) ^ (micros >> 4) ^ discriminator) & 0x7fff_ffff;
        let counter = (first & 0x3fff_fffe) as u32 + 2;
        IdSource { next: UniqId { time, mix, counter } }
    }

    /// A source that gives the same ids in every run with the same `seed` and `index`.
    pub fn reproducible(seed: u64, index: u32) -> IdSource {
        IdSource { next: UniqId { time: (seed & 0x7fff_ffff) as u32, mix: index & 0x7fff_ffff, counter: 2 } }
    }

    /// A source of other ids, for events in unpredictable order: fresh ids of this source do not depend on
    /// them.
    #[must_use]
    pub fn branch(&self) -> IdSource {
        IdSource { next: UniqId { mix: self.next.mix ^ BRANCH, ..self.next } }
    }

    /// This source, advanced so far that neither its ids nor those of its [`branch`](IdSource::branch) repeat
    /// any that it and `branch` have given out.
    #[must_use]
    pub fn beyond(&self, branch: &IdSource) -> IdSource {
        IdSource { next: UniqId { counter: self.next.counter.max(branch.next.counter), ..self.next } }
    }

    /// A fresh id. The counter wraps into the mix part after about a billion ids.
    pub fn fresh(&mut self) -> UniqId {
        let id = self.next;
        self.next.counter += 2;
        if self.next.counter > 0x7fff_fffe {
            self.next.counter = 2;
            self.next.mix = (self.next.mix + 0x0001_0000) & 0x7fff_ffff;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let id = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        assert_eq!(id.to_string(), "12345678.00abcdef:0000002a");
        assert_eq!(id.text().as_slice(), id.to_string().as_bytes());
        assert_eq!(UniqId::parse(&id.text()), Some(id));
        for bad in
            ["", "12345678.00abcdef:0000002", "12345678-00abcdef:0000002a", "g2345678.00abcdef:0000002a"]
        {
            assert_eq!(UniqId::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn hex_is_that_of_the_standard_library() {
        let numbers =
            (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) - 1, 0x9abc_def0 >> bit, 0x90a1_f8e7 << bit]);
        for number in numbers.chain([u32::MAX]) {
            let text = format!("{number:08x}");
            assert_eq!(hex(number), text.as_bytes(), "{text}");
            assert_eq!(parse_hex(text.as_bytes()), Some(u64::from(number)));
            assert_eq!(parse_hex(text.to_uppercase().as_bytes()), Some(u64::from(number)));
        }
        for byte in 0..=u8::MAX {
            let digit = char::from(byte).to_digit(16).map(u64::from);
            assert_eq!(parse_hex(&[byte]), digit, "{byte}");
            assert_eq!(parse_hex(&[b'1', byte, b'2']), digit.map(|digit| 0x102 | digit << 4), "{byte}");
        }
        for (at, byte) in (0..16).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
            let mut text = *b"0a9F1c3E5b7d2A4f";
            text[at] = byte;
            for text in [&text[..8], &text[..9], &text] {
                let digits = text.iter().map(|&byte| char::from(byte).to_digit(16).map(u64::from));
                let expected = digits.reduce(|value, digit| Some(value? << 4 | digit?)).flatten();
                assert_eq!(parse_hex(text), expected, "{byte} at {at}");
            }
        }
        assert_eq!(parse_hex(b"fedcba9876543210"), Some(0xfedc_ba98_7654_3210));
        assert_eq!((parse_hex(b""), parse_hex(b"00000000000000001")), (None, None));
    }

    #[test]
    fn what_depends_on_ids_repeats_from_run_to_run() {
        let mut today = IdSource::unique(1_800_000_000, 1, 7, 42);
        let mut tomorrow = IdSource::unique(1_800_086_400, 9, 8, 42);
        for _ in 0..10 {
            let (a, b) = (today.fresh(), tomorrow.fresh());
            assert_ne!(a, b);
            assert_eq!(a.hash(), b.hash());
        }
    }

    #[test]
    fn branches_do_not_meet() {
        let mut source = IdSource::reproducible(1, 7);
        let mut branch = source.branch();
        let mut all: Vec<UniqId> = (0..10).map(|_| source.fresh()).collect();
        all.extend((0..30).map(|_| branch.fresh()));
        assert!(all.iter().all(|id| id.shares_source(all[0]) && all[0].shares_source(*id)));
        assert!(!IdSource::reproducible(1, 8).fresh().shares_source(all[0]));
        let mut later = source.beyond(&branch);
        let mut later_branch = later.branch();
        all.extend((0..30).flat_map(|_| [later.fresh(), later_branch.fresh()]));
        let distinct: std::collections::HashSet<_> = all.iter().map(UniqId::to_string).collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn mutants_are_odd_and_invertible() {
        let mut source = IdSource::unique(1_800_000_000, 123_456, 7, 99);
        for _ in 0..1000 {
            let id = source.fresh();
            assert_eq!(id.counter % 2, 0);
            assert_eq!(id.mutant().counter % 2, 1);
            assert_eq!(id.mutant().mutant(), id);
        }
    }
}
