//! Random choices at load time. All processes of a test must make the same ones, so they depend only on the global
//! seed and on how often each kind of call was made before.

/// One stream for each kind of call.
#[derive(Debug)]
pub struct LoadTimeRandom {
    /// For `select()`.
    pub select: SplitMix,
    /// For group assignments with probabilities.
    pub group: SplitMix,
    /// For `credentials()`.
    pub credentials: SplitMix,
}

impl LoadTimeRandom {
    /// The streams of a global seed.
    pub fn new(seed: u64) -> Self {
        let stream = |kind: u64| SplitMix(seed ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { select: stream(1), group: stream(2), credentials: stream(3) }
    }
}

/// SplitMix64: a counter whose values are mixed (Steele, Lea and Flood, 2014). It is small, and good enough for
/// shuffles.
#[derive(Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must be positive.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Shuffles by the algorithm of Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
