//! The histograms whose bins someone needs.

use std::ops::BitOr;

/// A set of histograms of a block. Whoever needs only sums, means or extremes need not add up the bins of the others, on which
/// reading a long log would spend most of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinSet(u8);

impl BinSet {
    /// No histograms.
    pub const NONE: BinSet = BinSet(0);
    /// Response times of each class, from the actual start.
    pub const RESPONSE_TIMES: BinSet = BinSet(1);
    /// Response times of each class, from the due time.
    pub const DUE_RESPONSE_TIMES: BinSet = BinSet(2);
    /// Reply sizes of each class.
    pub const SIZES: BinSet = BinSet(4);
    /// Lateness of starts.
    pub const LATENESS: BinSet = BinSet(8);
    /// All histograms, also those that no other set contains.
    pub const ALL: BinSet = BinSet(u8::MAX);

    /// Whether all of `other` are in this set.
    pub fn contains(self, other: BinSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The histograms of both sets.
impl BitOr for BinSet {
    type Output = BinSet;

    fn bitor(self, other: BinSet) -> BinSet {
        BinSet(self.0 | other.0)
    }
}
