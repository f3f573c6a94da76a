//! Unique ids of worlds and transactions, and the *mutant* that proves that a reply is not a stored one.

use std::fmt;

use crate::hex::{hex, hex_sixteen, parse_eight, parse_sixteen};
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
    #[inline]
    pub fn hash(self) -> u64 {
        mix(u64::from(self.counter))
    }

    /// The text form as bytes, without allocation.
    #[inline]
    pub fn text(self) -> [u8; ID_TEXT_LEN] {
        let mut out = *b"00000000.00000000:00000000";
        let time_and_mix = hex_sixteen(u64::from(self.time) << 32 | u64::from(self.mix));
        out[0..8].copy_from_slice(&time_and_mix[..8]);
        out[9..17].copy_from_slice(&time_and_mix[8..]);
        out[18..26].copy_from_slice(&hex(self.counter));
        out
    }

    /// Reads the text form; `None` if it is anything else.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<UniqId> {
        let text: &[u8; ID_TEXT_LEN] = text.try_into().ok()?;
        let counter = parse_eight(&eight(text, 18))?;
        UniqId::with_counter(text, counter)
    }

    /// Reads two ids in their text forms; `None` if one is anything else.
    #[inline]
    pub fn parse_two(one: &[u8; ID_TEXT_LEN], other: &[u8; ID_TEXT_LEN]) -> Option<[UniqId; 2]> {
        let counters = parse_sixteen([eight(one, 18), eight(other, 18)])?;
        Some([
            UniqId::with_counter(one, (counters >> 32) as u32)?,
            UniqId::with_counter(other, counters as u32)?,
        ])
    }

    #[inline]
    fn with_counter(text: &[u8; ID_TEXT_LEN], counter: u32) -> Option<UniqId> {
        if text[8] != b'.' || text[17] != b':' {
            return None;
        }
        let time_and_mix = parse_sixteen([eight(text, 0), eight(text, 9)])?;
        Some(UniqId { time: (time_and_mix >> 32) as u32, mix: time_and_mix as u32, counter })
    }
}

/// The eight bytes at this place.
#[inline]
fn eight(text: &[u8; ID_TEXT_LEN], at: usize) -> [u8; 8] {
    std::array::from_fn(|i| text[at + i])
}

impl fmt::Display for UniqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

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
